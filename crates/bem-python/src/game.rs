//! A family of games, or a composition of them, as one object, and an episode of it step by step.
//!
//! Numbers and arrays only; what a space or a seed means to Gymnasium is the Python part's. Clauses: GLE-1, GLE-9.

use crate::refused;
use bem_base::environment::{Bits, Environment, Shape};
use bem_games::catalog;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::game as rules;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// One game with all hidden choices made.
#[pyclass(frozen, module = "bem._bem")]
pub struct Game {
    pub(crate) game: Arc<dyn rules::Game>,
    text: String,
    seed: u64,
}

#[pymethods]
impl Game {
    /// `Game("parity", {"n": "8"}, 1)`, or a composition such as `seq(parity{n=4},majority{n=5})`.
    #[new]
    fn new(name: &str, params: BTreeMap<String, String>, seed: u64) -> PyResult<Game> {
        let described = |error: rules::GameError| refused(format!("{name}: {error}"));
        if name.contains(['(', '{']) {
            let tree = TaskTree::parse(name).map_err(described)?;
            let mut settings = tree.settings().clone();
            settings.extend(params);
            let tree = tree.with_settings(settings);
            let game = tree.build(seed, &NoPrograms).map_err(described)?;
            return Ok(Game { game, text: tree.to_string(), seed });
        }
        let family = catalog::family(name).map_err(|error| refused(error.to_string()))?;
        let settings =
            catalog::settings(family, &params).map_err(|error| refused(format!("family {name}: {error}")))?;
        let game = catalog::build(family, &settings, seed)
            .map_err(|error| refused(format!("family {name}: {error}")))?;
        let given: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = if given.is_empty() { name.to_string() } else { format!("{name}{{{}}}", given.join(",")) };
        Ok(Game { game, text, seed })
    }

    /// The game in one line, as the command line takes it.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// The seed of its hidden choices.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// What may be known before playing.
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        shape_dict(py, self.game.shape())
    }

    /// The expected return of the best policy, in units.
    #[getter]
    fn optimum(&self) -> f64 {
        units(self.game.optimum().mean)
    }

    /// The expected return of random play, in units.
    #[getter]
    fn random(&self) -> f64 {
        units(self.game.random().mean)
    }

    /// Whether 256 episodes are played in bit-sliced form.
    #[getter]
    fn is_sliced(&self) -> bool {
        self.game.start_sliced().is_some()
    }

    /// A running episode.
    fn start(&self) -> Episode {
        Episode {
            bits: usize::from(self.game.shape().observation_bits),
            world: Mutex::new(self.game.start()),
        }
    }
}

/// A number in milli-units as units.
pub(crate) fn units(value: bem_base::fixed::Fixed) -> f64 {
    value.to_raw() as f64 / (1u64 << 32) as f64 / 1000.0
}

/// A shape as a dictionary.
pub(crate) fn shape_dict<'py>(py: Python<'py>, shape: &Shape) -> PyResult<Bound<'py, PyDict>> {
    let fields: Vec<(u16, u16)> = shape.fields.iter().map(|field| (field.low, field.width)).collect();
    let dict = PyDict::new(py);
    dict.set_item("observation_bits", shape.observation_bits)?;
    dict.set_item("actions", shape.actions)?;
    dict.set_item("horizon", shape.horizon)?;
    dict.set_item("reward_range", (shape.reward_min, shape.reward_max))?;
    dict.set_item("return_range", (shape.return_min, shape.return_max))?;
    dict.set_item("fields", fields)?;
    Ok(dict)
}

/// All families: name, sentence, and parameters as `(name, about, min, max, default, words)`.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "plain tuples cross to Python without a class")]
pub(crate) fn families()
-> Vec<(&'static str, &'static str, Vec<(&'static str, &'static str, i64, i64, i64, Vec<&'static str>)>)> {
    let parameter = |parameter: rules::Parameter| match parameter.range {
        rules::Range::Number { min, max, default } => {
            (parameter.name, parameter.about, min, max, default, Vec::new())
        }
        rules::Range::Choice { words } => {
            (parameter.name, parameter.about, 0, words.len() as i64 - 1, 0, words.to_vec())
        }
    };
    let family = |family: &&'static dyn rules::Family| {
        (family.name(), family.about(), catalog::parameters(*family).into_iter().map(parameter).collect())
    };
    catalog::families().iter().map(family).collect()
}

/// A running episode, which must be reset before its first step.
#[pyclass(module = "bem._bem")]
pub struct Episode {
    world: Mutex<Box<dyn Environment + Send>>,
    bits: usize,
}

#[pymethods]
impl Episode {
    /// Begins the episode of this seed; what is seen, one byte a bit.
    fn reset<'py>(&mut self, py: Python<'py>, seed: u64) -> PyResult<Bound<'py, PyArray1<i8>>> {
        let bits = self.bits;
        let world = self.world.get_mut().map_err(refused)?;
        world.reset(seed).map_err(refused)?;
        Ok(bit_array(py, world.observation(), bits))
    }

    /// Takes an action: what is seen then, the reward in milli-units, whether the episode is over, whether it was BAD.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        action: u16,
    ) -> PyResult<(Bound<'py, PyArray1<i8>>, i32, bool, bool)> {
        let bits = self.bits;
        let world = self.world.get_mut().map_err(refused)?;
        let outcome = world.step(action).map_err(refused)?;
        Ok((bit_array(py, world.observation(), bits), outcome.reward, outcome.done, outcome.bad))
    }
}

/// The bits of an observation, one byte each.
fn bit_array<'py>(py: Python<'py>, observation: &Bits, bits: usize) -> Bound<'py, PyArray1<i8>> {
    PyArray1::from_iter(py, (0..bits).map(|bit| i8::from(observation.get(bit))))
}
