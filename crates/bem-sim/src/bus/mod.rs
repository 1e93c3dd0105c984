//! The real tool bus beside its model: one seeded schedule of a machine and of workers that are slow, dead, late, lying or say
//! the same twice, after every move of which both must say the same.
//!
//! What is driven is the shipped `Channel` and `Port` over a mapping in this process, call by call; what happens within a call is
//! what `loom` looks at. Besides the comparison it is checked without the model that every request ends once, and in schedules
//! without liars that an answer is its own request's and that nothing which must not be repeated is given out twice.
//! Clauses: TOOL-2, TOOL-3, TOOL-9; decision D-202.

pub mod model;

use bem_base::ids::{ObjectClass, ObjectId};
use bem_base::prng::Prng;
use bem_tools::bus::{Channel, Completed, Request, key};
use bem_tools::error::ErrorCode;
use bem_tools::layout::{Window, private, request, request_word, side, side_word};
use bem_tools::limits::{SLOTS, WINDOWS_SMALL};
use bem_tools::word::{AtomicU64, Ordering};
use bem_tools::worker::{Failure, Job, Port};
use model::{Ended, Held, Model, Slip, Wanted};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug, Display};
use std::sync::Arc;

/// Moves of one schedule, before everything under way is brought to its end.
const MOVES: u32 = 3_000;
/// How long a worker may take.
const LEASE: u64 = 20;
/// Workers at a time.
const WORKERS: usize = 4;
/// Barriers after which everything must have ended.
const DRAIN_MAX: u32 = 4_000;

/// The words that machine and workers share.
type Memory = Arc<Vec<AtomicU64>>;

/// What happened in all schedules.
#[derive(Clone, Debug, Default)]
pub struct Totals(BTreeMap<&'static str, u64>);

impl Totals {
    fn count(&mut self, name: &'static str) {
        *self.0.entry(name).or_default() += 1;
    }

    /// How often something happened.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

impl Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(name, count)| format!("{count} {name}")).collect();
        formatter.write_str(&parts.join(", "))
    }
}

/// A worker with what it holds, as both sides see it.
struct Worker {
    number: u32,
    port: Port<Memory>,
    held: Vec<(Job, Held)>,
}

/// A schedule under way.
struct Bench<'t> {
    prng: Prng,
    has_liars: bool,
    now: u64,
    memory: Memory,
    channel: Channel<Memory>,
    model: Model,
    workers: Vec<Worker>,
    /// What was answered already, and what workers held that were given up: both come back.
    ghosts: Vec<(u32, Job, Held)>,
    workers_ever: u32,
    asked: u64,
    given_out: BTreeMap<u64, u32>,
    ended: BTreeSet<u64>,
    totals: &'t mut Totals,
}

fn same<T: PartialEq + Debug>(what: &str, real: T, model: T) -> Result<(), String> {
    if real == model { Ok(()) } else { Err(format!("{what}: the bus says {real:?}, the model {model:?}")) }
}

fn is_idempotent(number: u64) -> bool {
    !number.is_multiple_of(3)
}

fn ended(done: &Completed) -> Ended {
    let Completed { number, slot, generation, error, attempts, waited, .. } = *done;
    Ended { number, slot, generation, error, response: done.response.clone(), attempts, waited }
}

impl Bench<'_> {
    fn hire(&mut self) -> Result<Worker, String> {
        self.workers_ever += 1;
        let number = self.workers_ever;
        let port = Port::open(Arc::clone(&self.memory), number).map_err(|error| error.to_string())?;
        Ok(Worker { number, port, held: Vec::new() })
    }

    fn enqueue(&mut self) -> Result<(), String> {
        let number = self.asked;
        let mut payload = number.to_le_bytes().to_vec();
        payload.resize(if self.prng.below(40) == 0 { 5_000 } else { 8 + self.prng.below(60) as usize }, 7);
        let capacity = match self.prng.below(40) {
            0 => 5_000,
            1 => 4,
            _ => 64,
        };
        // A liar can hide a request from every worker: only patience ends that one.
        let patience = if self.prng.below(2) == 0 && !self.has_liars { 0 } else { 300 };
        let is_idempotent = is_idempotent(number);
        let asked = Request {
            operation: 1,
            flags: 0,
            resource: ObjectId::new(ObjectClass::FsNode, 9),
            payload: &payload,
            capacity,
            number,
            key: key(number, &payload),
            is_idempotent,
            lease: LEASE,
            patience,
        };
        let real = self.channel.enqueue(&asked, self.now);
        let wanted =
            Wanted { number, is_idempotent, payload: payload.clone(), capacity, lease: LEASE, patience };
        same("enqueue", real, self.model.enqueue(&wanted, self.now))?;
        match real {
            Ok(_) => self.asked += 1,
            Err(_) => self.totals.count("refused by a full bus"),
        }
        Ok(())
    }

    fn claim(&mut self, place: usize) -> Result<bool, String> {
        let worker = &mut self.workers[place];
        let (real, model) = (worker.port.claim(), self.model.claim(worker.number));
        let seen = real.as_ref().map(|job| (job.number, job.attempt, job.capacity, job.payload.as_slice()));
        let wanted =
            model.as_ref().map(|held| (held.number, held.attempt, held.capacity, held.payload.as_slice()));
        same("claim", seen, wanted)?;
        let (Some(job), Some(held)) = (real, model) else { return Ok(false) };
        let times = self.given_out.entry(job.number).or_default();
        *times += 1;
        if 1 < *times && !is_idempotent(job.number) && !self.has_liars {
            return Err(format!("request {} must not be repeated and was given out twice", job.number));
        }
        worker.held.push((job, held));
        Ok(true)
    }

    /// What a worker answers: mostly the number that the request begins with.
    fn outcome(&mut self, job: &Job) -> Result<Vec<u8>, Failure> {
        match self.prng.below(20) {
            0 => Err(Failure::new(ErrorCode::NOT_FOUND, "there is nothing of this name")),
            1 => Ok(vec![1; job.capacity as usize + 1]),
            _ => Ok(job.payload.iter().copied().take(8).collect()),
        }
    }

    fn finish(&mut self, port: &Port<Memory>, number: u32, job: &Job, held: &Held) -> Result<bool, String> {
        let outcome = self.outcome(job);
        let real = port.finish(job, &outcome);
        let told = outcome.map_err(|failure| (failure.code, failure.words));
        same("finish", real, self.model.finish(number, held, &told))?;
        Ok(real)
    }

    fn answer(&mut self, place: usize) -> Result<(), String> {
        let count = self.workers[place].held.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let chosen = self.prng.below(count) as usize;
        let (job, held) = self.workers[place].held.swap_remove(chosen);
        let number = self.workers[place].number;
        let port = Port::open(Arc::clone(&self.memory), number).map_err(|error| error.to_string())?;
        let is_taken = self.finish(&port, number, &job, &held)?;
        self.totals.count(if is_taken { "answers" } else { "answers after the lease" });
        if self.prng.below(4) == 0 {
            self.ghosts.push((number, job, held));
        }
        Ok(())
    }

    /// An answer that was given already, or one of a worker that was given up.
    fn haunt(&mut self) -> Result<(), String> {
        let count = self.ghosts.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let chosen = self.prng.below(count) as usize;
        let (number, job, held) = self.ghosts.swap_remove(chosen);
        let port = Port::open(Arc::clone(&self.memory), number).map_err(|error| error.to_string())?;
        // A second answer that says something else than the first, before the machine looked, is a lie.
        if self.has_liars {
            self.finish(&port, number, &job, &held)?;
        } else {
            let outcome: Result<Vec<u8>, Failure> = Ok(job.payload.iter().copied().take(8).collect());
            let real = port.finish(&job, &outcome);
            let told = outcome.map_err(|failure| (failure.code, failure.words));
            same("a second answer", real, self.model.finish(number, &held, &told))?;
        }
        self.totals.count("answers twice or from the dead");
        Ok(())
    }

    fn die(&mut self, place: usize) -> Result<(), String> {
        let fresh = self.hire()?;
        let gone = std::mem::replace(&mut self.workers[place], fresh);
        let does_return = self.prng.below(2) == 0;
        let held = gone.held.into_iter().filter(|_| does_return);
        self.ghosts.extend(held.map(|(job, held)| (gone.number, job, held)));
        self.totals.count("deaths");
        Ok(())
    }

    /// A liar writes where only the machine or another worker should.
    fn lie(&mut self) {
        let slot = self.prng.below(SLOTS as u64) as usize;
        let generation = u64::from(self.model.generation(slot));
        if generation == 0 {
            return;
        }
        let own = generation << 32;
        let before = (generation - 1) << 32;
        let state = request_word(slot, request::STATE);
        match self.prng.below(4) {
            0 => {
                let choices = [own | 2, own | 1, own, own | 3, before | 2, self.prng.next_u64()];
                let value = choices[self.prng.below(choices.len() as u64) as usize];
                self.memory[state].store(value, Ordering::Release);
                self.model.write_state(slot, value);
            }
            1 => {
                let choices = [own, own | 9_999, before, self.prng.next_u64()];
                let value = choices[self.prng.below(choices.len() as u64) as usize];
                self.memory[side_word(slot, side::CLAIM)].store(value, Ordering::Release);
                self.model.write_claim(slot, value);
            }
            2 => {
                let choices = [u64::MAX, 8, 65, 3 | 1 << 32, self.prng.next_u64()];
                let value = choices[self.prng.below(choices.len() as u64) as usize];
                self.memory[side_word(slot, side::USED)].store(value, Ordering::Release);
                self.model.write_used(slot, value);
            }
            _ => {
                let window = Window::small(self.prng.below(WINDOWS_SMALL as u64) as usize);
                let value = self.prng.next_u64();
                self.memory[window.word as usize].store(value, Ordering::Release);
                self.model.write_window(window, value);
            }
        }
        self.totals.count("lies");
    }

    fn poll(&mut self, max: usize) -> Result<(), String> {
        let mut completed = Vec::new();
        self.channel.poll(self.now, max, &mut completed);
        let real: Vec<Ended> = completed.iter().map(ended).collect();
        same("barrier", &real, &self.model.poll(self.now, max))?;
        let counts = self.channel.counts();
        let counted = [
            counts.enqueued,
            counts.done,
            counts.failed,
            counts.back_pressure,
            counts.leases_lost,
            counts.bad_answers,
        ];
        same("counts", counted, self.model.counted)?;
        same("under way", self.channel.in_flight() as usize, self.model.in_flight())?;
        for done in real {
            if !self.ended.insert(done.number) {
                return Err(format!("request {} ended twice", done.number));
            }
            if done.error.is_none() && !self.has_liars && done.response != done.number.to_le_bytes() {
                return Err(format!(
                    "request {} has the answer of another: {:?}",
                    done.number, done.response
                ));
            }
            self.totals.count(match done.error {
                None => "done",
                Some(ErrorCode::OUTCOME_UNKNOWN) => "with an outcome unknown",
                Some(ErrorCode::WORKER_LOST) => "given up after every attempt",
                Some(ErrorCode::TIMEOUT) => "out of time",
                Some(ErrorCode::BAD_RESPONSE) => "with a bad answer",
                Some(_) => "with an error of the tool",
            });
            if 1 < done.attempts {
                self.totals.count("ended after another attempt");
            }
        }
        Ok(())
    }

    /// One move of whoever comes next.
    fn act(&mut self) -> Result<(), String> {
        self.now += match self.prng.below(60) {
            0 => LEASE,
            _ => self.prng.below(2),
        };
        let place = self.prng.below(WORKERS as u64) as usize;
        match self.prng.below(20) {
            0..=6 => self.enqueue(),
            7..=11 => self.claim(place).map(drop),
            12..=15 => self.answer(place),
            16 => self.haunt(),
            17 if self.prng.below(4) == 0 => self.die(place),
            18 if self.has_liars => {
                self.lie();
                Ok(())
            }
            _ => {
                let max = [1, 4, SLOTS][self.prng.below(3) as usize];
                self.poll(max)
            }
        }
    }

    /// Everything under way ends, with one worker that does its work.
    fn drain(&mut self) -> Result<(), String> {
        for _ in 0..DRAIN_MAX {
            if self.channel.in_flight() == 0 {
                break;
            }
            self.now += LEASE / 2;
            while self.claim(0)? {}
            while !self.workers[0].held.is_empty() {
                self.answer(0)?;
            }
            self.poll(SLOTS)?;
        }
        same("requests that have ended", self.ended.len() as u64, self.asked)
    }
}

/// One schedule; every other one has liars. With a slip the model is wrong, and that must be found.
pub fn run_bus(seed: u64, slip: Option<Slip>, totals: &mut Totals) -> Result<(), String> {
    let memory: Memory = Arc::new(private());
    let channel = Channel::new(ObjectId::new(ObjectClass::ToolKind, 0), Arc::clone(&memory));
    let mut bench = Bench {
        prng: Prng::stream(seed, "sim/bus"),
        has_liars: !seed.is_multiple_of(2),
        now: 0,
        memory,
        channel,
        model: Model::new(slip),
        workers: Vec::new(),
        ghosts: Vec::new(),
        workers_ever: 0,
        asked: 0,
        given_out: BTreeMap::new(),
        ended: BTreeSet::new(),
        totals,
    };
    for _ in 0..WORKERS {
        let worker = bench.hire()?;
        bench.workers.push(worker);
    }
    for number in 0..MOVES {
        bench.act().map_err(|reason| format!("move {number}: {reason}"))?;
    }
    bench.drain().map_err(|reason| format!("at the end: {reason}"))?;
    bench.totals.0.entry("requests").and_modify(|count| *count += bench.asked).or_insert(bench.asked);
    Ok(())
}
