//! A world in Python as the engine sees it: an object with `reset(seed)` and `step(action)`.
//!
//! The interpreter is held only during these two calls. An exception of the object loses the episode in flight and nothing
//! else: it waits here until the learner has stopped, and then reaches the caller. A KeyboardInterrupt in the middle of a
//! step costs nothing at all where the world can be repeated: the episode is played again up to there.
//! What is paid beyond the range known so far widens it (D-62). Clauses: GLE-9, VM-15; decisions D-46, D-62, D-81.

use crate::rules::Rules;
use bem_base::environment::{
    Bits, Environment, EnvironmentError, Forbidden, OBSERVATION_WORDS, Outcome, Shape,
};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The largest reward of a step, in milli-units; the bound of worlds in programs.
const REWARD_MAX: f64 = 250_000_000.0;

/// A world in Python.
pub struct PythonWorld {
    reset: Py<PyAny>,
    step: Py<PyAny>,
    shape: Shape,
    repeats: bool,
    /// What is BAD and what must never be done, where the user says it.
    rules: Option<Py<Rules>>,
    observation: Bits,
    /// The seed and actions of the episode under way.
    seed: u64,
    actions: Vec<u16>,
    total: i64,
    is_open: bool,
    /// What the object raised, and whether it has: whoever runs the learner looks at the latter between two units.
    raised: Option<PyErr>,
    has_raised: Arc<AtomicBool>,
}

impl PythonWorld {
    pub fn new(
        object: &Bound<'_, PyAny>,
        shape: Shape,
        repeats: bool,
        rules: Option<Py<Rules>>,
    ) -> PyResult<PythonWorld> {
        let bits = rules.as_ref().map_or(shape.observation_bits.into(), |rules| rules.get().bits());
        if bits != usize::from(shape.observation_bits) {
            return Err(PyValueError::new_err("the rules are of another observation space"));
        }
        Ok(PythonWorld {
            reset: object.getattr("reset")?.unbind(),
            step: object.getattr("step")?.unbind(),
            shape,
            repeats,
            rules,
            observation: Bits::ZERO,
            seed: 0,
            actions: Vec::new(),
            total: 0,
            is_open: false,
            raised: None,
            has_raised: Arc::default(),
        })
    }

    /// Says between two units whether something was raised.
    pub fn alarm(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_raised)
    }

    /// What was raised since it was last asked for.
    pub fn take_raised(&mut self) -> Option<PyErr> {
        self.has_raised.store(false, Ordering::Relaxed);
        self.raised.take()
    }

    fn raise(&mut self, error: PyErr) {
        self.raised = Some(error);
        self.has_raised.store(true, Ordering::Relaxed);
    }

    /// Brings the object to where the episode under way stands: others may have used it meanwhile.
    pub fn synchronise(&mut self) -> Result<(), PyErr> {
        if !self.is_open || !self.repeats {
            return Ok(());
        }
        Python::attach(|py| self.play_again(py))
    }

    fn play_again(&mut self, py: Python<'_>) -> PyResult<()> {
        let mut seen = self.ask_reset(py, self.seed)?;
        for place in 0..self.actions.len() {
            seen = self.ask_step(py, self.actions[place])?.0;
        }
        if seen != self.observation {
            self.repeats = false;
        }
        Ok(())
    }

    fn ask_reset(&self, py: Python<'_>, seed: u64) -> PyResult<Bits> {
        bits_of(&self.reset.bind(py).call1((seed,))?, self.shape.observation_bits.into())
    }

    fn ask_step(&self, py: Python<'_>, action: u16) -> PyResult<(Bits, Outcome)> {
        let answer = self.step.bind(py).call1((action,))?;
        let answer = answer.cast::<PyTuple>()?;
        let seen = bits_of(&answer.get_item(0)?, self.shape.observation_bits.into())?;
        let reward: f64 = answer.get_item(1)?.extract()?;
        let milli = (reward * 1000.0).round();
        if !(-REWARD_MAX..=REWARD_MAX).contains(&milli) {
            let words = format!(
                "the environment paid {reward}; a reward is a number from -{0} to {0}",
                REWARD_MAX / 1000.0
            );
            return Err(PyValueError::new_err(words));
        }
        let (done, bad) = (answer.get_item(2)?.extract()?, answer.get_item(3)?.extract()?);
        Ok((seen, Outcome { reward: milli as i32, done, bad }))
    }

    /// An exception: the episode is lost, and the learner stops. An interrupt leaves the episode as it was.
    fn fail(&mut self, error: PyErr) -> EnvironmentError {
        self.raise(error);
        self.is_open = false;
        EnvironmentError::Lost
    }
}

/// A whole number as observation bits.
pub(crate) fn bits_of(code: &Bound<'_, PyAny>, width: usize) -> PyResult<Bits> {
    let mut bits = Bits::ZERO;
    if width <= 64 {
        bits.0[0] = code.extract()?;
        if width < 64 && bits.0[0] >> width != 0 {
            return Err(PyValueError::new_err("an observation has more bits than its space"));
        }
        return Ok(bits);
    }
    let bytes: Vec<u8> = code.call_method1("to_bytes", (8 * OBSERVATION_WORDS, "little"))?.extract()?;
    let (words, _) = bytes.as_chunks::<8>();
    for (word, bytes) in bits.0.iter_mut().zip(words) {
        *word = u64::from_le_bytes(*bytes);
    }
    Ok(bits)
}

impl Environment for PythonWorld {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn forbidden(&self) -> &[Forbidden] {
        self.rules.as_ref().map_or(&[], |rules| rules.get().forbidden())
    }

    fn repeats(&self) -> bool {
        self.repeats
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.actions.clear();
        (self.seed, self.total) = (seed, 0);
        let seen = Python::attach(|py| match self.ask_reset(py, seed) {
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                self.raise(error);
                self.ask_reset(py, seed)
            }
            answer => answer,
        });
        self.observation = seen.map_err(|error| self.fail(error))?;
        self.is_open = true;
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        if !self.is_open {
            return Err(EnvironmentError::EpisodeOver);
        }
        let answer = Python::attach(|py| match self.ask_step(py, action) {
            Err(error) if self.repeats && error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                self.raise(error);
                self.play_again(py).and_then(|()| self.ask_step(py, action))
            }
            answer => answer,
        });
        let (seen, mut outcome) = answer.map_err(|error| self.fail(error))?;
        let is_bad = |rules: &Py<Rules>| rules.get().is_bad(&self.observation, action, &seen);
        outcome.bad |= self.rules.as_ref().is_some_and(is_bad);
        self.observation = seen;
        self.actions.push(action);
        outcome.done |= self.shape.horizon as usize <= self.actions.len();
        self.total += i64::from(outcome.reward);
        self.shape.cover_reward(outcome.reward);
        if outcome.done {
            self.is_open = false;
            self.shape.cover_return(self.total);
        }
        Ok(outcome)
    }
}
