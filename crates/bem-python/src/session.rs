//! A learner that Python holds: work for a while, say where it stands, save, go on, and be audited.
//!
//! Work is done in slices of time without the interpreter, so that Python sees interrupts, callbacks and progress in
//! between; where a slice ends changes nothing of what is learned. What asks nothing of the world, a search or a proof, is done
//! by a thread of its own: a slice that ends before it leaves it to its end, and whoever asks for the learner next waits for
//! that. Clauses: LOG-2, LOG-4, LOG-5; decisions D-81, D-82, D-280.

use crate::circuit::Circuit;
use crate::game::{Game, shape_dict};
use crate::refused;
use crate::rules::Rules;
use crate::world::PythonWorld;
use bem_base::environment::{Environment, Field, Shape};
use bem_base::limits::{ACTIONS_MAX, EPISODE_STEPS_MAX, OBSERVATION_BITS_MAX};
use bem_base::plain::plain;
use bem_data::Decimal;
use bem_data::grid::{quantiles, uniform};
use bem_engine::climb::{Climb, UnitResult};
use bem_engine::journal::{Journal, RunConditions};
use bem_engine::learner::{Repetition, Settings};
use bem_engine::parameters;
use bem_engine::session as engine;
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::checkpoint::Signer;
use bem_ledger::log::{LogOptions, store_blob};
use bem_ledger::store::MemoryStore;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Units between two looks at the clock.
const UNITS_A_LOOK: u32 = 16;

/// How long something is waited for between two looks for an interrupt.
const WAIT_A_LOOK: Duration = Duration::from_millis(20);

/// A world of either kind.
enum World {
    Python(Box<PythonWorld>),
    Native(Box<dyn Environment + Send>),
}

impl World {
    fn get(&mut self) -> &mut dyn Environment {
        match self {
            World::Python(world) => world.as_mut(),
            World::Native(world) => world.as_mut(),
        }
    }

    fn raised(&mut self) -> Option<PyErr> {
        match self {
            World::Python(world) => world.take_raised(),
            World::Native(_) => None,
        }
    }

    fn alarm(&self) -> Arc<AtomicBool> {
        match self {
            World::Python(world) => world.alarm(),
            World::Native(_) => Arc::default(),
        }
    }
}

/// What Python's object holds: the lesson and the world that it is about.
struct Inner {
    session: engine::Session,
    world: World,
}

/// A learner in one world.
#[pyclass(module = "bem._bem")]
pub struct Session {
    inner: Arc<Mutex<Inner>>,
    name: String,
    /// Hears when the unit that another thread does is over, if there is one.
    thought: Mutex<Option<Receiver<()>>>,
    /// Others may have used the environment since it was last looked at.
    is_shared: AtomicBool,
    /// Steps taken, for those who must not wait.
    steps: AtomicU64,
}

/// How a slice of work ended.
struct Slice {
    outcome: Result<(), String>,
    raised: Option<PyErr>,
    is_enough: bool,
}

impl Slice {
    fn ended(is_enough: bool) -> Slice {
        Slice { outcome: Ok(()), raised: None, is_enough }
    }

    fn raised(error: PyErr) -> Slice {
        Slice { outcome: Ok(()), raised: Some(error), is_enough: false }
    }
}

/// How a world looks, from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Declared {
    fields: Vec<u16>,
    actions: usize,
    horizon: u64,
    reward_range: (i64, i64),
    return_range: (i64, i64),
}

impl Declared {
    fn shape(self) -> PyResult<Shape> {
        let Declared { fields, actions, horizon, reward_range, return_range } = self;
        let bits: usize = fields.iter().map(|width| usize::from(*width)).sum();
        let check = |name: &str, value: u64, most: u64| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(refused(format!("{name} is {value}; allowed is 1 to {most}"))),
        };
        if OBSERVATION_BITS_MAX < bits {
            return Err(refused(format!(
                "an observation has {bits} bits; at most {OBSERVATION_BITS_MAX} are allowed"
            )));
        }
        check("the number of actions", actions as u64, ACTIONS_MAX as u64)?;
        check("horizon", horizon, EPISODE_STEPS_MAX as u64)?;
        let mut low = 0;
        let mut field = |width: u16| {
            let field = Field { low, width };
            low += width;
            field
        };
        let fields = fields.into_iter().filter(|width| 0 < *width).map(&mut field).collect();
        let narrow = |value: i64| value.clamp(i64::from(-i32::MAX), i64::from(i32::MAX));
        Ok(Shape {
            observation_bits: bits as u16,
            actions: actions as u16,
            horizon: horizon as u32,
            reward_min: narrow(reward_range.0.min(reward_range.1)) as i32,
            reward_max: narrow(reward_range.0.max(reward_range.1)) as i32,
            return_min: narrow(return_range.0.min(return_range.1)),
            return_max: narrow(return_range.0.max(return_range.1)),
            fields,
        })
    }
}

fn open_world(
    world: &Bound<'_, PyAny>,
    shape: Option<Shape>,
    repeats: bool,
    rules: Option<Py<Rules>>,
) -> PyResult<World> {
    if let Ok(game) = world.cast::<Game>() {
        return Ok(World::Native(game.get().game.start()));
    }
    let shape = shape.ok_or_else(|| refused("a world in Python needs its shape"))?;
    PythonWorld::new(world, shape, repeats, rules).map(|world| World::Python(Box::new(world)))
}

#[pymethods]
impl Session {
    /// Begins to learn. `world` is a [`Game`] or an object with `reset` and `step`, which `declared` describes; the latter may
    /// have rules.
    #[new]
    #[pyo3(signature = (world, declared, seed, config, repeats, name, rules = None))]
    #[allow(clippy::too_many_arguments, reason = "one place in Python calls it, which names them all")]
    fn new(
        world: &Bound<'_, PyAny>,
        declared: Option<Declared>,
        seed: u64,
        config: &str,
        repeats: bool,
        name: String,
        rules: Option<Py<Rules>>,
    ) -> PyResult<Session> {
        let config = parameters::read(config).map_err(|error| refused(format!("configuration: {error}")))?;
        let settings = Settings { seed, budget: engine::BUDGET, config: Arc::new(config) };
        let mut world = open_world(world, declared.map(Declared::shape).transpose()?, repeats, rules)?;
        let session = engine::Session::new(world.get(), settings).map_err(refused)?;
        Ok(Session::of(Inner { session, world }, name))
    }

    /// Goes on from bytes in a world that looks like the one of the session.
    #[staticmethod]
    #[pyo3(signature = (bytes, world, repeats, name, rules = None))]
    fn restore(
        py: Python<'_>,
        bytes: &[u8],
        world: &Bound<'_, PyAny>,
        repeats: bool,
        name: String,
        rules: Option<Py<Rules>>,
    ) -> PyResult<Session> {
        let shape = engine::Session::shape_in(bytes).map_err(refused)?;
        let mut world = open_world(world, Some(shape), repeats, rules)?;
        let restored = py.detach(|| engine::Session::restore(bytes, world.get()));
        if let Some(raised) = world.raised() {
            return Err(raised);
        }
        Ok(Session::of(Inner { session: restored.map_err(refused)?, world }, name))
    }

    /// Works until so many steps are taken in all, for at most about so many milliseconds. Whether the steps are taken. In a
    /// world that cannot be repeated an episode is finished first. `is_shared` says that others may have used the environment
    /// since the last slice: the episode under way is played again up to where it stands.
    fn run(&self, py: Python<'_>, steps: u64, milliseconds: u64, is_shared: bool) -> PyResult<bool> {
        let until = Instant::now() + Duration::from_millis(milliseconds);
        self.is_shared.fetch_or(is_shared, Ordering::Relaxed);
        let slice = py.detach(|| self.work(steps, until));
        if let Some(raised) = slice.raised {
            return Err(raised);
        }
        slice.outcome.map_err(refused)?;
        Ok(slice.is_enough)
    }

    /// Steps taken so far; it never waits.
    #[getter]
    fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The bytes from which it goes on as if nothing had happened.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.beside(py, |inner| inner.session.encode())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// What acts when nothing is explored.
    #[pyo3(signature = (features = None))]
    fn circuit(&self, py: Python<'_>, features: Option<String>) -> PyResult<Circuit> {
        let inner = self.open(py)?;
        let (learned, shape) = (inner.session.learned(), inner.session.shape());
        let policy = learned.agent.policy().clone();
        let tally = &learned.tally;
        let lines = vec![
            format!("BEM policy {}", self.name),
            format!("run: seed {}, history {}", inner.session.settings().seed, learned.chain_head),
            format!("learned in {} steps: {}", tally.steps, plain(&learned.words)),
        ];
        let horizon = Some(shape.horizon);
        Ok(Circuit::of(policy, usize::from(shape.observation_bits), horizon, &self.name, lines)
            .named(features))
    }

    /// Where it stands.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.open(py)?;
        let (learned, online) = (inner.session.learned(), inner.session.online().now());
        let tally = &learned.tally;
        let dict = PyDict::new(py);
        dict.set_item("steps", tally.steps)?;
        dict.set_item("episodes", tally.episodes)?;
        dict.set_item("patches_applied", tally.applied)?;
        dict.set_item("patches_rejected", tally.rejected)?;
        dict.set_item("rolled_back", tally.rolled_back)?;
        dict.set_item("proofs_checked", tally.proofs)?;
        dict.set_item("abandoned", tally.abandoned)?;
        dict.set_item("acting_changes", tally.acting_changes)?;
        dict.set_item("episodes_unplayed", tally.unplayed)?;
        let short = learned.shortfall.map(|short| {
            let mean = (short.mean.to_raw() as f64 / (1u64 << 32) as f64).round() / 1e3;
            (short.contexts, short.compared, mean)
        });
        dict.set_item("unexplained", short)?;
        dict.set_item("repeats", tally.repetition == Repetition::Claimed)?;
        dict.set_item("hypothesis", learned.words)?;
        dict.set_item("trace_head", learned.chain_head.to_hex())?;
        dict.set_item("online_episodes", online.episodes)?;
        let mean = (0 < online.episodes).then(|| online.earned as f64 / 1000.0 / online.episodes as f64);
        dict.set_item("online_mean", mean)?;
        dict.set_item("shape", shape_dict(py, inner.session.shape())?)?;
        Ok(dict)
    }

    /// All decisions about patches, in order.
    fn decisions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let inner = self.open(py)?;
        let list = PyList::empty(py);
        for decision in inner.session.decisions() {
            let dict = PyDict::new(py);
            dict.set_item("steps", decision.steps)?;
            dict.set_item("serial", decision.serial)?;
            dict.set_item("kind", format!("{:?}", decision.kind).to_uppercase())?;
            dict.set_item("words", &decision.words)?;
            dict.set_item("gates", decision.gates)?;
            dict.set_item("accepted", decision.accepted)?;
            dict.set_item("rolled_back", decision.rolled_back)?;
            dict.set_item("reason", &decision.reason)?;
            dict.set_item("evidence", decision.basis.name())?;
            dict.set_item("proofs", decision.proofs)?;
            list.append(dict)?;
        }
        Ok(list)
    }

    /// The history so far as the files of a ledger, which `bem verify`, `bem export` and `bem replay` take.
    fn ledger<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let name = self.name.clone();
        let store = self.beside(py, move |inner| written(&inner.session, &name))?.map_err(refused)?;
        let files = PyDict::new(py);
        for (name, bytes) in &store.files {
            files.set_item(name, PyBytes::new(py, bytes))?;
        }
        Ok(files)
    }

    /// Writes the history and audits it: chain, tree, roots, conditions stated again, certificates checked again.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let name = self.name.clone();
        let audited = self.beside(py, move |inner| {
            let mut store = written(&inner.session, &name)?;
            audit(&mut store, None, &mut RunConditions::new()).map_err(|error| error.to_string())
        })?;
        report_dict(py, audited.map_err(refused)?)
    }
}

/// The report of an audit, with the keys of `bem verify --json`.
fn report_dict(py: Python<'_>, report: bem_ledger::audit::AuditReport) -> PyResult<Bound<'_, PyDict>> {
    let (verdict, entry, reason) = match report.verdict {
        AuditVerdict::Ok => ("ok", None, None),
        AuditVerdict::Unanchored => ("unanchored", None, None),
        AuditVerdict::Broken { entry, reason } => ("broken", Some(entry), Some(reason)),
    };
    let dict = PyDict::new(py);
    dict.set_item("verdict", verdict)?;
    dict.set_item("entry", entry)?;
    dict.set_item("reason", reason)?;
    dict.set_item("entries", report.entries)?;
    dict.set_item("head", report.head.to_hex())?;
    dict.set_item("root", report.root.to_hex())?;
    dict.set_item("certificates", report.certificates)?;
    dict.set_item("conditions", report.conditions)?;
    dict.set_item("steps", report.steps)?;
    Ok(dict)
}

impl Session {
    fn of(inner: Inner, name: String) -> Session {
        let steps = AtomicU64::new(inner.session.tally().steps);
        let (inner, is_shared) = (Arc::new(Mutex::new(inner)), AtomicBool::new(false));
        Session { inner, name, thought: Mutex::new(None), is_shared, steps }
    }

    /// The learner, as soon as it has thought to the end. Whoever interrupts that leaves it to its end.
    fn open(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Inner>> {
        self.wait(py)?;
        self.take()
    }

    /// Waits until no other thread has the learner, and looks for interrupts meanwhile.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while !py.detach(|| self.has_thought(Instant::now() + WAIT_A_LOOK)) {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Has something long done by a thread of its own, so that an interrupt comes back at once; the learner is free when it is over.
    fn beside<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> T + Send + 'static,
    ) -> PyResult<T> {
        drop(self.open(py)?);
        let (sender, result) = channel();
        self.start("bem writes", move |inner| drop(sender.send(work(inner)))).map_err(refused)?;
        self.wait(py)?;
        result.recv().map_err(|_| PyRuntimeError::new_err("the learner broke off and cannot go on"))
    }

    fn take(&self) -> PyResult<MutexGuard<'_, Inner>> {
        self.inner.try_lock().map_err(|error| {
            PyRuntimeError::new_err(match error {
                TryLockError::WouldBlock => "the learner is at work in another thread",
                TryLockError::Poisoned(_) => "the learner broke off in the middle of a unit and cannot go on",
            })
        })
    }

    /// Waits for the thread that thinks, if there is one, at most to this moment; whether it has done.
    fn has_thought(&self, until: Instant) -> bool {
        let Ok(mut thought) = self.thought.try_lock() else {
            // Another thread of Python works with this learner, which is refused where the learner is taken.
            return true;
        };
        let Some(receiver) = thought.as_ref() else { return true };
        // A thread that has panicked says nothing any more: then it is over, too.
        let left = until.saturating_duration_since(Instant::now());
        let is_over = receiver.recv_timeout(left) != Err(RecvTimeoutError::Timeout);
        if is_over {
            *thought = None;
        }
        is_over
    }

    /// Has something done with the learner by a thread of its own.
    fn start(&self, name: &str, work: impl FnOnce(&mut Inner) + Send + 'static) -> Result<(), String> {
        let (sender, receiver) = channel();
        let inner = Arc::clone(&self.inner);
        let thread = std::thread::Builder::new().name(name.to_string());
        let mut thought = self.thought.lock().map_err(|error| error.to_string())?;
        thread
            .spawn(move || {
                if let Ok(mut inner) = inner.lock() {
                    work(&mut inner);
                }
                // The learner is free again before anybody hears of it, and nobody may listen any more.
                drop(inner);
                let _ = sender.send(());
            })
            .map_err(|error| format!("no thread can be started: {error}"))?;
        *thought = Some(receiver);
        Ok(())
    }

    /// One slice of work, without the interpreter.
    fn work(&self, steps: u64, until: Instant) -> Slice {
        loop {
            if !self.has_thought(until) {
                return Slice::ended(false);
            }
            let mut inner = match self.take() {
                Ok(inner) => inner,
                Err(error) => return Slice::raised(error),
            };
            let slice = self.play(&mut inner, steps, until);
            self.steps.store(inner.session.tally().steps, Ordering::Relaxed);
            let is_thinking = inner.session.is_thinking();
            drop(inner);
            let goes_on = slice.outcome.is_ok() && slice.raised.is_none() && !slice.is_enough;
            if !goes_on || !is_thinking || until <= Instant::now() {
                return slice;
            }
            if let Err(error) = self.start("bem thinks", |inner| inner.session.think()) {
                return Slice { outcome: Err(error), ..slice };
            }
        }
    }

    /// Plays until there is something to think about, the steps are taken, the time is over, or the environment has raised.
    fn play(&self, inner: &mut Inner, steps: u64, until: Instant) -> Slice {
        let Inner { session, world } = inner;
        if let World::Python(world) = world
            && self.is_shared.swap(false, Ordering::Relaxed)
            && let Err(error) = world.synchronise()
        {
            return Slice::raised(error);
        }
        let repeats = world.get().repeats();
        let is_enough = |taken: u64, in_episode: bool| steps <= taken && (repeats || !in_episode);
        if is_enough(session.tally().steps, false) {
            return Slice::ended(true);
        }
        let mut units = 0u32;
        let mut is_late = false;
        let alarm = world.alarm();
        let outcome = session.run_until_thought(world.get(), &mut |tally, in_episode| {
            units += 1;
            is_late |= units.is_multiple_of(UNITS_A_LOOK) && until <= Instant::now();
            !alarm.load(Ordering::Relaxed) && !is_late && !is_enough(tally.steps, in_episode)
        });
        let (raised, is_enough) = (world.raised(), is_enough(session.tally().steps, false));
        Slice { outcome: outcome.map_err(|error| error.to_string()), raised, is_enough }
    }
}

/// The history in memory, signed with a key that nobody keeps: whoever needs an anchor keeps the head.
fn written(session: &engine::Session, name: &str) -> Result<MemoryStore, String> {
    let (solution, file) = session.close();
    let bytes = file.to_bytes();
    let mut store = MemoryStore::new();
    let digest = store_blob(&mut store, &bytes).map_err(|error| error.to_string())?;
    let mut climb = Climb::single(name, name, session.settings()).with_files(vec![digest]);
    let mut secret = [0u8; 32];
    getrandom::fill(&mut secret).map_err(|error| error.to_string())?;
    let (signer, code) = (Signer::from_seed(&secret), env!("CARGO_PKG_VERSION"));
    let mut journal = Journal::create(store, signer, code, &climb, None, LogOptions::default())
        .map_err(|error| error.to_string())?;
    let unit = climb.next(&BTreeSet::new()).ok_or("a single task has one unit")?;
    let result = UnitResult { unit, seed: climb.config().seed, solution, reused: false };
    climb.take(&result);
    journal.unit(&result, &climb).map_err(|error| error.to_string())?;
    journal.save(&climb, Vec::new()).map_err(|error| error.to_string())?;
    Ok(journal.into_store())
}

/// The thresholds that BEM finds for a number: at quantiles of the values, or at round places between two bounds. Numbers are
/// texts, so that they stay exact.
#[pyfunction]
pub(crate) fn thresholds(
    values: Vec<String>,
    bounds: Option<(String, String)>,
    count: usize,
) -> PyResult<Vec<String>> {
    let number = |text: &String| Decimal::parse(text).map_err(|error| refused(format!("{text:?}: {error}")));
    let found = match bounds {
        Some((low, high)) => uniform(number(&low)?, number(&high)?, count),
        None => quantiles(&values.iter().map(number).collect::<PyResult<Vec<Decimal>>>()?, count),
    };
    Ok(found.iter().map(ToString::to_string).collect())
}
