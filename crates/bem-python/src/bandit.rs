//! A contextual bandit: decisions now, rewards later or never, and data that others have logged.
//!
//! The two halves of a served world ([`bem_engine::serving`]) in one object: it decides by what was published last, and
//! learns in rounds when enough is new. A round is worked on at once, in the call that completes it, so that the same calls
//! bring the same answers. It is done by a thread of its own: whoever interrupts that call leaves the round to its end, and whoever
//! asks next waits for it. Clauses: VM-13, VM-16, SCC-8; decisions D-67, D-68, D-83, D-322.

use crate::circuit::Circuit;
use crate::refused;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Field, OBSERVATION_WORDS, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::{ACTIONS_MAX, OBSERVATION_BITS_MAX};
use bem_base::plain::plain;
use bem_base::prng::{Prng, mix};
use bem_engine::parameters;
use bem_engine::serving::{Acting, Begun, Round, Searching, Settled, settings_of};
use bem_machine::turn::{Odds, Turn};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Decisions that may wait for their reward.
const WAITING_MAX: usize = 1 << 20;
/// The largest reward, in units.
const REWARD_MAX: f64 = 250_000.0;
/// Chances are whole parts of this.
const WHOLE: f64 = (1u64 << 32) as f64;
/// Logged rows that are taken in between two looks for an interrupt.
const ROWS_A_LOOK: usize = 1_000;
/// How long a round is waited for between two looks for an interrupt.
const WAIT_A_LOOK: Duration = Duration::from_millis(20);
const FORMAT: &str = "bem bandit 1";

/// A decision that waits for its reward.
#[derive(Clone, Copy)]
struct Waiting {
    begun: Begun,
    observation: Bits,
    action: u16,
    odds: Odds,
}

/// Logged rows that were looked at and may be taken in.
struct Told<'a> {
    contexts: &'a [u64],
    words: usize,
    actions: &'a [i64],
    paid: &'a [i32],
    chances: Option<&'a [f64]>,
    /// The least of the chances.
    least: Option<f64>,
}

/// A contextual bandit over bits.
#[pyclass(module = "bem._bem")]
pub struct Bandit {
    acting: Acting,
    searching: Arc<Mutex<Searching>>,
    /// Brings the round that a thread works on, if one does.
    round: Mutex<Option<Receiver<Round>>>,
    shape: Shape,
    seed: u64,
    decisions: u64,
    rows: u64,
    waiting: BTreeMap<u64, Waiting>,
    earned: i128,
    rewarded: u64,
    patches: u64,
    proofs: u64,
}

impl Bandit {
    fn milli(&self, reward: f64) -> PyResult<i32> {
        let milli = (reward * 1000.0).round();
        let (low, high) = (self.shape.reward_min, self.shape.reward_max);
        if !(f64::from(low)..=f64::from(high)).contains(&milli) {
            let (low, high) = (f64::from(low) / 1000.0, f64::from(high) / 1000.0);
            return Err(refused(format!("reward {reward} is out of range: {low} to {high} (reward_range)")));
        }
        Ok(milli as i32)
    }

    fn bits(&self, words: &[u64]) -> Bits {
        let mut bits = Bits::ZERO;
        bits.0.iter_mut().zip(words).for_each(|(bit, word)| *bit = *word);
        bits
    }

    fn check_words(&self, words: usize) -> PyResult<()> {
        let needed = usize::from(self.shape.observation_bits).div_ceil(64).max(1);
        if words == needed {
            return Ok(());
        }
        Err(refused(format!("a context has {words} words of 64 bits; {needed} are needed")))
    }

    /// Takes one row in; the statistics of what acts, and the log.
    fn take(&mut self, waiting: &Waiting, reward: i32) {
        let Waiting { begun, observation, action, odds } = *waiting;
        let outcome = Outcome { reward, done: true, bad: false };
        let settled = [Settled { observation, action, odds, outcome, is_told: true }];
        self.acting.settle(begun, &settled);
        self.searching().take(begun, &settled);
        self.earned += i128::from(reward);
        self.rewarded += 1;
    }

    /// Takes logged rows in from this one on, until a search is due or many are taken; the next row.
    fn take_rows(&mut self, told: &Told<'_>, from: usize) -> usize {
        let end = told.paid.len().min(from + ROWS_A_LOOK);
        for row in from..end {
            let observation = self.bits(&told.contexts[row * told.words..(row + 1) * told.words]);
            let is_even = match (told.least, told.chances) {
                (Some(least), Some(chances)) => {
                    let register = Prng::quick(self.seed ^ mix(self.rows ^ 0x6c6f_6773)).next_u64() >> 32;
                    (register as f64) < WHOLE * least / chances[row]
                }
                _ => false,
            };
            self.rows += 1;
            let odds = if is_even { Odds::equal(self.shape.actions) } else { Odds::CERTAIN };
            let begun = Begun::alone(if is_even { Turn::DRAW } else { Turn::INDEX });
            let waiting = Waiting { begun, observation, action: told.actions[row] as u16, odds };
            self.take(&waiting, told.paid[row]);
            if self.searching().has_work() {
                return row + 1;
            }
        }
        end
    }

    fn searching(&self) -> MutexGuard<'_, Searching> {
        self.searching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the round that is due, if one is.
    fn learn(&mut self, py: Python<'_>) -> PyResult<()> {
        if !self.searching().has_work() {
            return Ok(());
        }
        let (sender, receiver) = channel();
        let searching = Arc::clone(&self.searching);
        let thread = std::thread::Builder::new().name("bem searches".to_string());
        thread
            .spawn(move || {
                let round = searching.lock().unwrap_or_else(PoisonError::into_inner).work();
                // Nobody listens any more where the bandit was dropped.
                let _ = sender.send(round);
            })
            .map_err(|error| refused(format!("no thread can be started: {error}")))?;
        *self.round.get_mut().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
        self.settle(py)
    }

    /// Waits for the round that a thread works on, if one does, and lets it act; an interrupt leaves it to its end.
    fn settle(&mut self, py: Python<'_>) -> PyResult<()> {
        let place = self.round.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(receiver) = place.as_mut() else { return Ok(()) };
        let round = loop {
            // Only one thread may listen: it is lent, not shared.
            let lent = &mut *receiver;
            match py.detach(move || lent.recv_timeout(WAIT_A_LOOK)) {
                Ok(round) => break round,
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err(
                        "the bandit broke off in the middle of a round and cannot go on",
                    ));
                }
            }
        };
        *place = None;
        self.patches += round.patches.len() as u64;
        self.proofs += round.patches.iter().map(|note| note.proofs.len() as u64).sum::<u64>();
        self.acting.replace(round.acting);
        Ok(())
    }

    /// For those who only look: the bandit when no round is under way.
    fn settled<'py>(slf: &Bound<'py, Bandit>) -> PyResult<PyRef<'py, Bandit>> {
        let is_under_way = slf.try_borrow()?.round.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if is_under_way {
            slf.try_borrow_mut()?.settle(slf.py())?;
        }
        Ok(slf.try_borrow()?)
    }
}

#[pymethods]
impl Bandit {
    #[new]
    fn new(
        actions: usize,
        fields: Vec<u16>,
        seed: u64,
        reward_range: (f64, f64),
        floor: f64,
        config: &str,
    ) -> PyResult<Bandit> {
        let bits: usize = fields.iter().map(|width| usize::from(*width)).sum();
        if !(1..=ACTIONS_MAX).contains(&actions) {
            return Err(refused(format!("n_actions is {actions}; allowed is 1 to {ACTIONS_MAX}")));
        }
        if OBSERVATION_BITS_MAX < bits {
            return Err(refused(format!("n_bits is {bits}; allowed is 0 to {OBSERVATION_BITS_MAX}")));
        }
        let (low, high) = reward_range;
        let is_range = -REWARD_MAX <= low && low < high && high <= REWARD_MAX;
        if !is_range {
            return Err(refused(format!(
                "reward_range is ({low}, {high}); it must rise, within {REWARD_MAX} either way"
            )));
        }
        if !(0.0..=0.5).contains(&floor) {
            return Err(refused(format!("min_propensity is {floor}; allowed is 0 to 0.5")));
        }
        let mut place = 0;
        let mut field = |width: u16| {
            let field = Field { low: place, width };
            place += width;
            field
        };
        let fields = fields.into_iter().filter(|width| 0 < *width).map(&mut field).collect();
        let (low, high) = ((low * 1000.0).round() as i32, (high * 1000.0).round() as i32);
        let shape = Shape {
            observation_bits: bits as u16,
            actions: actions as u16,
            horizon: 1,
            reward_min: low,
            reward_max: high,
            return_min: i64::from(low),
            return_max: i64::from(high),
            fields,
        };
        let config = parameters::read(config).map_err(|error| refused(format!("configuration: {error}")))?;
        let floor = Fixed::from_raw((floor * WHOLE).round() as i64);
        let (searching, round) =
            Searching::open(&shape, settings_of(&config, seed), floor, &[]).map_err(refused)?;
        Ok(Bandit {
            acting: round.acting,
            searching: Arc::new(Mutex::new(searching)),
            round: Mutex::new(None),
            shape,
            seed,
            decisions: 0,
            rows: 0,
            waiting: BTreeMap::new(),
            earned: 0,
            rewarded: 0,
            patches: 0,
            proofs: 0,
        })
    }

    /// Decides: the number of the decision, the action, and the chance that it had.
    fn decide(&mut self, py: Python<'_>, context: Vec<u64>) -> PyResult<(u64, u16, f64)> {
        self.settle(py)?;
        self.check_words(context.len())?;
        let observation = self.bits(&context);
        let number = self.decisions;
        let (begun, choice) = self.acting.begin(number, &observation);
        self.decisions += 1;
        let waiting = Waiting { begun, observation, action: choice.action, odds: choice.odds };
        self.waiting.insert(number, waiting);
        if WAITING_MAX < self.waiting.len() {
            self.waiting.pop_first();
        }
        Ok((number, choice.action, choice.propensity.to_raw() as f64 / WHOLE))
    }

    /// The reward of a decision.
    fn reward(&mut self, py: Python<'_>, decision: u64, reward: f64) -> PyResult<()> {
        self.settle(py)?;
        let milli = self.milli(reward)?;
        let waiting = self.waiting.remove(&decision).ok_or_else(|| {
            refused(format!(
                "decision {decision} does not wait for a reward: it is unknown, was rewarded, or is too old"
            ))
        })?;
        self.take(&waiting, milli);
        self.learn(py)
    }

    /// Learns from logged rows. With propensities a random part of the rows, chosen so that every action is as likely, counts
    /// as drawn evenly; the rest, and rows without propensities, are experience that proves nothing.
    #[pyo3(signature = (contexts, actions, rewards, propensities = None))]
    fn fit(
        &mut self,
        py: Python<'_>,
        contexts: PyReadonlyArray2<'_, u64>,
        actions: PyReadonlyArray1<'_, i64>,
        rewards: PyReadonlyArray1<'_, f64>,
        propensities: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<()> {
        self.settle(py)?;
        let [rows, words] = [contexts.shape()[0], contexts.shape()[1]];
        self.check_words(words)?;
        let (contexts, actions) =
            (contexts.as_slice().map_err(refused)?, actions.as_slice().map_err(refused)?);
        let rewards = rewards.as_slice().map_err(refused)?;
        let chances = propensities.as_ref().map(|chances| chances.as_slice().map_err(refused)).transpose()?;
        if actions.len() != rows
            || rewards.len() != rows
            || chances.is_some_and(|chances| chances.len() != rows)
        {
            return Err(refused(format!(
                "{rows} contexts, {} actions, {} rewards{}: there must be as many of each",
                actions.len(),
                rewards.len(),
                chances.map_or_else(String::new, |chances| format!(", {} propensities", chances.len()))
            )));
        }
        // Everything is looked at before anything is taken in.
        let last = i64::from(self.shape.actions) - 1;
        let mut paid = Vec::with_capacity(rows);
        for row in 0..rows {
            if !(0..=last).contains(&actions[row]) {
                return Err(refused(format!(
                    "action {} of row {row} is out of range: 0 to {last}",
                    actions[row]
                )));
            }
            let reward = self
                .milli(rewards[row])
                .map_err(|error| refused(format!("row {row}: {}", error.value(py))))?;
            paid.push(reward);
            if let Some(chance) = chances.map(|chances| chances[row])
                && !(chance > 0.0 && chance <= 1.0)
            {
                return Err(refused(format!(
                    "propensity {chance} of row {row} is out of range: above 0, at most 1"
                )));
            }
        }
        let least = chances.map(|chances| chances.iter().copied().fold(f64::INFINITY, f64::min));
        let told = Told { contexts, words, actions, paid: &paid, chances, least };
        let mut row = 0;
        while row < rows {
            // What was taken in before an interrupt stays, with the round that it has made due.
            row = py.detach(|| self.take_rows(&told, row));
            self.learn(py)?;
            py.check_signals()?;
        }
        Ok(())
    }

    /// What acts when nothing is explored.
    fn circuit(slf: &Bound<'_, Bandit>) -> PyResult<Circuit> {
        let bandit = Bandit::settled(slf)?;
        let force = bandit.acting.in_force();
        let lines = vec![
            "BEM policy contextual_bandit".to_string(),
            format!("learned from {} rewards: {}", bandit.rewarded, plain(&force.words)),
        ];
        let bits = usize::from(bandit.shape.observation_bits);
        Ok(Circuit::of(force.agent.policy().clone(), bits, Some(1), "contextual_bandit", lines))
    }

    /// Where it stands.
    fn state<'py>(slf: &Bound<'py, Bandit>) -> PyResult<Bound<'py, PyDict>> {
        let (py, bandit) = (slf.py(), Bandit::settled(slf)?);
        let dict = PyDict::new(py);
        dict.set_item("decisions", bandit.decisions)?;
        dict.set_item("rewards", bandit.rewarded)?;
        dict.set_item("waiting", bandit.waiting.len())?;
        dict.set_item("patches", bandit.patches)?;
        dict.set_item("proofs", bandit.proofs)?;
        let mean = (0 < bandit.rewarded).then(|| bandit.earned as f64 / 1000.0 / bandit.rewarded as f64);
        dict.set_item("online_mean", mean)?;
        let force = bandit.acting.in_force();
        dict.set_item("hypothesis", force.words)?;
        dict.set_item("contexts", force.contexts)?;
        Ok(dict)
    }

    /// The bytes from which it goes on as if nothing had happened.
    fn to_bytes<'py>(slf: &Bound<'py, Bandit>) -> PyResult<Bound<'py, PyBytes>> {
        let bandit = Bandit::settled(slf)?;
        let mut writer = Writer::new();
        writer.text(FORMAT);
        bandit.shape.encode(&mut writer);
        [bandit.seed, bandit.decisions, bandit.rows, bandit.rewarded, bandit.patches, bandit.proofs]
            .into_iter()
            .for_each(|count| writer.u64(count));
        writer.u64(bandit.earned as u64);
        writer.i64((bandit.earned >> 64) as i64);
        writer.length(bandit.waiting.len());
        for (number, waiting) in &bandit.waiting {
            writer.u64(*number);
            waiting.begun.encode(&mut writer);
            waiting.observation.0.iter().for_each(|word| writer.u64(*word));
            writer.u16(waiting.action);
            writer.u16(waiting.odds.to_raw());
        }
        bandit.acting.encode(&mut writer);
        bandit.searching().encode(&mut writer);
        Ok(PyBytes::new(slf.py(), &writer.into_bytes()))
    }

    /// Reads canonical bytes.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Bandit> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a bandit, or one of another version");
        if reader.text().map_err(refused)? != FORMAT {
            return Err(refused(foreign));
        }
        let shape = Shape::decode(&mut reader).map_err(refused)?;
        let mut counts = [0; 6];
        for count in &mut counts {
            *count = reader.u64().map_err(refused)?;
        }
        let low = reader.u64().map_err(refused)?;
        let earned = i128::from(low) | i128::from(reader.i64().map_err(refused)?) << 64;
        let mut waiting = BTreeMap::new();
        for _ in 0..reader.length(8 + 8 * OBSERVATION_WORDS + 4).map_err(refused)? {
            let number = reader.u64().map_err(refused)?;
            let begun = Begun::decode(&mut reader).map_err(refused)?;
            let mut observation = Bits::ZERO;
            for word in &mut observation.0 {
                *word = reader.u64().map_err(refused)?;
            }
            let (action, drawn) = (reader.u16().map_err(refused)?, reader.u16().map_err(refused)?);
            let odds = Odds::from_raw(drawn, shape.actions).filter(|_| action < shape.actions);
            let odds = odds.ok_or_else(|| refused(foreign.clone()))?;
            waiting.insert(number, Waiting { begun, observation, action, odds });
        }
        let acting = Acting::decode(&shape, &mut reader).map_err(refused)?;
        let searching = Searching::decode(&shape, &mut reader).map_err(refused)?;
        reader.finish().map_err(refused)?;
        let [seed, decisions, rows, rewarded, patches, proofs] = counts;
        Ok(Bandit {
            acting,
            searching: Arc::new(Mutex::new(searching)),
            round: Mutex::new(None),
            shape,
            seed,
            decisions,
            rows,
            waiting,
            earned,
            rewarded,
            patches,
            proofs,
        })
    }

    /// The best actions for rows of packed contexts, nothing explored.
    fn predict<'py>(
        slf: &Bound<'py, Bandit>,
        contexts: PyReadonlyArray2<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (py, bandit) = (slf.py(), Bandit::settled(slf)?);
        bandit.check_words(contexts.shape()[1])?;
        let policy = bandit.acting.in_force().agent;
        let mut blocks = crate::blocks::Blocks::new(policy.policy());
        let (rows, words) = (contexts.shape()[0], contexts.shape()[1]);
        let seen = contexts.as_slice().map_err(refused)?;
        let mut actions = vec![0i64; rows];
        let mut state = vec![0u64; rows * blocks.state_words()];
        py.detach(|| blocks.act(seen, words, &mut state, &mut actions));
        Ok(PyArray1::from_vec(py, actions))
    }
}
