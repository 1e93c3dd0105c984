//! Many episodes of one game side by side, for numpy: bit-sliced where the game has that form, one by one elsewhere.
//!
//! A lane whose episode is over begins its next one in the same step, so that what it shows is the new episode; its last
//! observation has no use, because every episode of BEM ends by its own rules. Clauses: VM-8, VM-15, GLE-9.

use crate::blocks::transpose;
use crate::game::Game;
use crate::refused;
use bem_base::environment::{Bits, Environment};
use bem_base::lanes::{LaneEnvironment, LaneWord, planes_for};
use bem_base::limits::LANES;
use bem_base::prng::mix;
use numpy::{PyArray1, PyArray2, PyArrayMethods as _, PyReadonlyArray1};
use pyo3::prelude::*;
use std::sync::Mutex;

/// Lanes at most: one array of observations stays below a gigabyte.
const LANES_MAX: usize = 1 << 20;

/// What a step of all lanes brought.
type Stepped<'py> = (
    Bound<'py, PyArray2<i8>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
);

/// Running episodes, one a lane.
#[pyclass(module = "bem._bem")]
pub struct Lanes {
    worlds: Mutex<Worlds>,
    count: usize,
    bits: usize,
    actions: u16,
}

/// The lanes as Python's object holds them.
struct Worlds {
    kind: LaneWorlds,
    /// Rewards in units.
    rewards: [f64; 2],
    seed: u64,
    is_reset: bool,
}

/// The worlds, 256 in a block or one by one.
enum LaneWorlds {
    Sliced(Vec<Sliced>),
    Single(Vec<Single>),
}

struct Sliced {
    world: Box<dyn LaneEnvironment + Send>,
    seen: Vec<LaneWord>,
    action: Vec<LaneWord>,
}

struct Single {
    world: Box<dyn Environment + Send>,
    episodes: u64,
}

/// Each value of eight bits as eight bytes, the lowest bit first.
const SPREAD: [[i8; 8]; 256] = {
    let mut table = [[0i8; 8]; 256];
    let mut value = 0;
    while value < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[value][bit] = (value >> bit & 1) as i8;
            bit += 1;
        }
        value += 1;
    }
    table
};

/// Writes the bits of one word from a place on, one byte each.
#[inline]
fn spread(word: u64, row: &mut [i8]) {
    let mut bytes = word.to_le_bytes().into_iter();
    let (whole, rest) = row.as_chunks_mut::<8>();
    for chunk in whole {
        *chunk = SPREAD[usize::from(bytes.next().unwrap_or(0))];
    }
    if !rest.is_empty() {
        let tail = &SPREAD[usize::from(bytes.next().unwrap_or(0))];
        let length = rest.len();
        rest.copy_from_slice(&tail[..length]);
    }
}

impl Sliced {
    /// Writes what the lanes see, one byte a bit.
    fn show(&self, bits: usize, rows: &mut [i8]) {
        if bits == 0 {
            return;
        }
        for (group, rows) in rows.chunks_mut(64 * bits).enumerate() {
            for low in (0..bits).step_by(64) {
                let width = (bits - low).min(64);
                let mut matrix = [0u64; 64];
                (0..width).for_each(|bit| matrix[bit] = self.seen[low + bit].0[group]);
                transpose(&mut matrix);
                for (row, word) in rows.chunks_mut(bits).zip(&matrix) {
                    spread(*word, &mut row[low..low + width]);
                }
            }
        }
    }

    fn choose(&mut self, actions: &[i64]) {
        for (group, actions) in actions.chunks(64).enumerate() {
            let mut matrix = [0u64; 64];
            matrix.iter_mut().zip(actions).for_each(|(word, action)| *word = *action as u64);
            transpose(&mut matrix);
            for (plane, word) in self.action.iter_mut().zip(&matrix) {
                plane.0[group] = *word;
            }
        }
    }
}

fn show(observation: &Bits, row: &mut [i8]) {
    for (word, part) in observation.0.iter().zip(row.chunks_mut(64)) {
        spread(*word, part);
    }
}

impl Worlds {
    fn reset(&mut self, seed: u64, bits: usize, seen: &mut [i8]) -> Result<(), String> {
        (self.seed, self.is_reset) = (seed, true);
        match &mut self.kind {
            LaneWorlds::Sliced(blocks) => {
                for (place, block) in blocks.iter_mut().enumerate() {
                    block.world.reset(mix(seed ^ mix(place as u64)), &mut block.seen);
                    let end = seen.len().min((place + 1) * LANES * bits);
                    block.show(bits, &mut seen[place * LANES * bits..end]);
                }
            }
            LaneWorlds::Single(lanes) => {
                for (place, lane) in lanes.iter_mut().enumerate() {
                    lane.episodes = 0;
                    lane.begin(seed, place)?;
                    show(lane.world.observation(), &mut seen[place * bits..(place + 1) * bits]);
                }
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        actions: &[i64],
        bits: usize,
        seen: &mut [i8],
        rewards: &mut [f64],
        dones: &mut [bool],
        bads: &mut [bool],
    ) -> Result<(), String> {
        let [low, high] = self.rewards;
        let seed = self.seed;
        match &mut self.kind {
            LaneWorlds::Sliced(blocks) => {
                for (place, block) in blocks.iter_mut().enumerate() {
                    let (first, end) = (place * LANES, actions.len().min((place + 1) * LANES));
                    block.choose(&actions[first..end]);
                    let mask = LaneWord::first(end - first);
                    let outcome = block.world.step(&block.action, mask, &mut block.seen);
                    for lane in 0..end - first {
                        rewards[first + lane] = if outcome.reward.get(lane) { high } else { low };
                        dones[first + lane] = outcome.done.get(lane);
                        bads[first + lane] = outcome.bad.get(lane);
                    }
                    block.show(bits, &mut seen[first * bits..end * bits]);
                }
            }
            LaneWorlds::Single(lanes) => {
                for (place, (lane, action)) in lanes.iter_mut().zip(actions).enumerate() {
                    let outcome = lane.world.step(*action as u16).map_err(|error| error.to_string())?;
                    rewards[place] = f64::from(outcome.reward) / 1000.0;
                    dones[place] = outcome.done;
                    bads[place] = outcome.bad;
                    if outcome.done {
                        lane.begin(seed, place)?;
                    }
                    show(lane.world.observation(), &mut seen[place * bits..(place + 1) * bits]);
                }
            }
        }
        Ok(())
    }
}

impl Single {
    /// The next episode of this lane.
    fn begin(&mut self, seed: u64, place: usize) -> Result<(), String> {
        let episode = mix(seed ^ mix(place as u64 + (self.episodes << 24)));
        self.episodes += 1;
        self.world.reset(episode).map_err(|error| error.to_string())
    }
}

#[pymethods]
impl Lanes {
    /// So many lanes of a game; `is_sliced` may be switched off for comparison.
    #[new]
    #[pyo3(signature = (game, count, is_sliced = true))]
    fn new(game: &Game, count: usize, is_sliced: bool) -> PyResult<Lanes> {
        if !(1..=LANES_MAX).contains(&count) {
            return Err(refused(format!("num_envs is {count}; allowed is 1 to {LANES_MAX}")));
        }
        let shape = game.game.shape();
        let (bits, actions) = (usize::from(shape.observation_bits), shape.actions);
        let rewards = [f64::from(shape.reward_min) / 1000.0, f64::from(shape.reward_max) / 1000.0];
        let sliced = |world| Sliced {
            world,
            seen: vec![LaneWord::ZERO; bits],
            action: vec![LaneWord::ZERO; planes_for(usize::from(actions))],
        };
        let blocks: Option<Vec<Sliced>> = match is_sliced {
            true => (0..count.div_ceil(LANES)).map(|_| game.game.start_sliced().map(sliced)).collect(),
            false => None,
        };
        let single = |_| Single { world: game.game.start(), episodes: 0 };
        let kind =
            blocks.map_or_else(|| LaneWorlds::Single((0..count).map(single).collect()), LaneWorlds::Sliced);
        let worlds = Mutex::new(Worlds { kind, rewards, seed: 0, is_reset: false });
        Ok(Lanes { worlds, count, bits, actions })
    }

    /// Begins the first episode of every lane; what they see, a row a lane.
    fn reset<'py>(&mut self, py: Python<'py>, seed: u64) -> PyResult<Bound<'py, PyArray2<i8>>> {
        let (count, bits, worlds) = (self.count, self.bits, self.worlds.get_mut().map_err(refused)?);
        let mut seen = vec![0i8; count * bits];
        py.detach(|| worlds.reset(seed, bits, &mut seen)).map_err(refused)?;
        PyArray1::from_vec(py, seen).reshape([count, bits])
    }

    /// One step of every lane: what they see, rewards in units, which episodes are over, which steps were BAD.
    fn step<'py>(&mut self, py: Python<'py>, actions: PyReadonlyArray1<'py, i64>) -> PyResult<Stepped<'py>> {
        let (count, bits, last) = (self.count, self.bits, i64::from(self.actions) - 1);
        let worlds = self.worlds.get_mut().map_err(refused)?;
        let actions = actions.as_slice().map_err(refused)?;
        if actions.len() != count {
            return Err(refused(format!("{} actions for {count} environments", actions.len())));
        }
        if !worlds.is_reset {
            return Err(refused("the episode is over: reset before the next step"));
        }
        if let Some(place) = actions.iter().position(|action| !(0..=last).contains(action)) {
            let action = actions[place];
            return Err(refused(format!(
                "action {action} of environment {place} is out of range: this world takes 0 to {last}"
            )));
        }
        let mut seen = vec![0i8; count * bits];
        let (mut rewards, mut dones, mut bads) = (vec![0f64; count], vec![false; count], vec![false; count]);
        py.detach(|| worlds.step(actions, bits, &mut seen, &mut rewards, &mut dones, &mut bads))
            .map_err(refused)?;
        let seen = PyArray1::from_vec(py, seen).reshape([count, bits])?;
        let [dones, bads] = [dones, bads].map(|flags| PyArray1::from_vec(py, flags));
        Ok((seen, PyArray1::from_vec(py, rewards), dones, bads))
    }
}
