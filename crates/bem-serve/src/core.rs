//! Three threads around one service: one decides, one writes the ledger, one learns.
//!
//! ```text
//! HTTP --queue--> decide: check, take effect, inbox, one sync, answers --lines--> ledger: entries, commits, snapshots
//!                    ^------------ what a round brought ------------ learn: takes episodes in, searches, proves
//! ```
//!
//! An answer is sent when its group is synced, never before. The queue is bounded: whoever finds it full is told to come back.
//! After a failed sync nothing is acknowledged any more and the process stops. Must not know HTTP. Clauses: VM-13, LOG-1,
//! LOG-4, SCC-9; decisions D-67 to D-69.

mod advising;
mod gauges;
mod handle;
mod patch_line;
mod proving;
mod routine;
mod telling;
mod threads;
mod tools;

pub use advising::{Advisor, said};
pub use gauges::Gauges;
pub use handle::{Busy, Handle};
pub use patch_line::PatchLine;
pub use routine::Routine;
pub use threads::Threads;
pub use tools::{Answered, ToolParts, Tooling};

use crate::declarations::Declarations;
use crate::inbox::Inbox;
use crate::priority;
use crate::saving::{self, Saving};
use crate::webhooks::{Webhook, Webhooks};
use anyhow::{Context, Result, bail};
use bem_base::encode::Writer;
use bem_base::environment::{Bits, Outcome};
use bem_engine::start::Start;
use bem_ledger::log::Log;
use bem_ledger::store::Store;
use bem_runtime::book::{Book, Derived, Line};
use bem_runtime::frozen::Frozen;
use bem_runtime::history::{LogSink, Opened};
use bem_runtime::input::{Input, WorldIndex, WorldSpec, decode_all};
use bem_runtime::round::{Done, Job};
use bem_runtime::service::{Effect, Refusal, RefusalKind, Service};
use bem_workers::resolve::Named;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, mpsc as queue, oneshot};

/// Requests that may wait.
pub const QUEUE_MAX: usize = 4_096;
/// Requests of one group.
const GROUP_MAX: usize = 1_024;
/// Two groups begin at least this far apart: a sync costs the same for one request and for a hundred.
const GROUP_APART: Duration = Duration::from_micros(400);
/// Inputs that the ledger may lag behind before deciding waits for it: a snapshot or an archive that it writes meanwhile takes
/// less time than these.
const LAG_MAX: u64 = 1 << 18;
/// The ledger is committed at least this often while inputs come.
const COMMIT_EVERY: Duration = Duration::from_millis(1_000);
/// Inputs between two snapshots.
const SNAPSHOT_INPUTS: u64 = 1 << 17;
/// How long a stop waits for a round that is under way.
const STOP_WAIT: Duration = Duration::from_secs(20);

/// What a decision is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// Its number.
    pub decision: u64,
    /// What is to be done.
    pub action: u16,
    /// The chance that it had, raw `Fixed`.
    pub propensity: i64,
    /// Who chose.
    pub expert: String,
}

type Reply<T> = oneshot::Sender<Result<T, Refusal>>;
/// Refuses a request, or makes an input of it.
type Check = dyn FnOnce(&Service) -> Result<Option<Input>, Refusal> + Send;
/// Looks at what a request brought.
type View = dyn FnOnce(&Service, Option<u64>) -> serde_json::Value + Send;

/// Looks at the bus, if there is one.
type LookAtTools = Box<dyn FnOnce(Option<&Tooling>) + Send>;

/// What the deciding thread is asked.
pub enum Message {
    /// A new world; whether it is new.
    Create(Box<WorldSpec>, Reply<bool>),
    /// A decision.
    Decide {
        /// The name of the world.
        world: String,
        /// What is seen.
        observation: Seen,
        /// The name of the episode; empty in worlds of one step.
        episode: String,
        /// Who waits.
        reply: Reply<Decided>,
    },
    /// An outcome; whether it is new.
    Reward {
        /// The name of the world.
        world: String,
        /// Which decision.
        decision: u64,
        /// What it brought.
        outcome: Outcome,
        /// Whether the episode is over, if that was said.
        done: Option<bool>,
        /// What is seen after the step, if that was said.
        seen: Option<Seen>,
        /// Who waits.
        reply: Reply<bool>,
    },
    /// Forget a world.
    Forget(String, Reply<()>),
    /// Something that is checked, and takes effect if it is new; what is answered is looked up afterwards.
    Act {
        /// Refuses, or makes an input; nothing where it was said before.
        check: Box<Check>,
        /// What is answered, with the number of the input if there is one.
        view: Box<View>,
        /// Who waits.
        reply: Reply<serde_json::Value>,
    },
    /// A request to a tool; the answer comes when it has ended.
    Tool(Box<Named>, Reply<Answered>),
    /// A question for TOOL_PROVER; who waits is told by silence that there is no answer.
    Prove(Vec<u8>, mpsc::Sender<Vec<u8>>),
    /// Requests to tools may have ended.
    ToolsReady,
    /// Look at the tools.
    LookTools(LookAtTools),
    /// Look at what is served.
    Look(Box<dyn FnOnce(&Service) + Send>),
    /// A round was worked on.
    Worked(Box<Done>),
    /// Save a snapshot as soon as no round is under way.
    Save(Box<Saving>),
    /// Stop cleanly.
    Stop,
}

/// What is seen, as the client said it: bits, or named features that the world's note says how to read.
pub enum Seen {
    /// Bits.
    Bits(Bits, usize),
    /// Named values.
    Named(serde_json::Map<String, serde_json::Value>),
}

/// What the ledger's thread is given.
enum Write {
    Lines(Vec<Line>),
    Snapshot(u64, Frozen, Option<Box<Saving>>),
}

/// What a new world begins with, if anything; an error in words where that does not fit it.
pub type Starts = dyn Fn(&WorldSpec) -> Result<Option<Start>, String> + Send + Sync;

/// Starts the threads of a history that was opened. Inputs that were acknowledged and are not in the ledger take effect first.
pub fn start<S: Store + Send + 'static>(
    opened: Opened<S>,
    state: &Path,
    starts: Option<Arc<Starts>>,
    (bus, hooks): (Option<ToolParts>, &[Webhook]),
) -> Result<(Handle, Threads)> {
    let Opened { mut log, mut player, .. } = opened;
    let (mut inbox, frames) = Inbox::open(state, log.instance())?;
    for frame in frames {
        let inputs = decode_all(&frame.payload).context("the inbox holds what is no input")?;
        for (number, input) in (frame.first..).zip(inputs) {
            let next = player.service.last() + 1;
            if next < number {
                bail!(
                    "the inbox goes on at input {number}, where {next} comes next: acknowledged inputs are missing"
                );
            }
            if number == next {
                player.take(&mut LogSink(&mut log), input)?;
            }
        }
    }
    player.book.close_block(&mut LogSink(&mut log))?;
    log.commit()?;
    inbox.rewind()?;
    let (service, book, jobs) = player.into_parts();
    let gauges = Arc::new(Gauges::default());
    gauges.inputs.store(service.last(), Ordering::Relaxed);
    gauges.covered.store(service.last(), Ordering::Relaxed);
    gauges.sign(service.last(), log.head().digest());
    let (events, _) = broadcast::channel(256);
    let (sender, receiver) = queue::channel(QUEUE_MAX);
    let (write, written) = mpsc::channel();
    let (work, worked) = mpsc::channel::<Box<Job>>();
    jobs.into_iter().for_each(|job| drop(work.send(job)));
    let tools = bus.as_ref().map(|parts| Arc::clone(parts.host.catalog()));
    let hooks = Arc::new(Webhooks::start(hooks, Arc::clone(&gauges))?);
    let (counts, listeners) = (Arc::clone(&gauges), events.clone());
    let handle = Handle { queue: sender.clone(), gauges: counts, events: listeners, hooks, tools };
    let parameters = Arc::clone(&service.config().parameters);
    let decider = Decider {
        tooling: bus.map(|parts| Tooling::new(parts, &parameters, state, &handle)).transpose()?,
        saved: service.last(),
        service,
        inbox,
        write,
        work,
        gauges: Arc::clone(&gauges),
        events,
        hooks: Arc::clone(&handle.hooks),
        declarations: Declarations::default(),
        starts,
        group: Group::default(),
        saving: None,
    };
    let (learning, has_tools) = (Arc::clone(&gauges), handle.tools.is_some());
    let threads = Threads {
        decide: spawn("decide", move || decider.run(receiver))?,
        ledger: spawn("ledger", move || write_ledger(log, book, &written, &gauges))?,
        learn: spawn("learn", move || learn(&worked, &sender, &learning, has_tools))?,
    };
    Ok((handle, threads))
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    std::thread::Builder::new().name(format!("bem-{name}")).spawn(work).context("a thread cannot be started")
}

/// Works on rounds until nobody asks any more. With a bus, conditions are shown through its prover.
fn learn(jobs: &mpsc::Receiver<Box<Job>>, queue: &queue::Sender<Message>, gauges: &Gauges, has_tools: bool) {
    priority::give_way(priority::LEARNING);
    while let Ok(job) = jobs.recv() {
        // A round that fails leaves its world to decide as it does; the others go on.
        let began = Instant::now();
        let work = || match has_tools {
            true => bem_prover::outside::through(Box::new(proving::Bus(queue.clone())), || job.work()),
            false => job.work(),
        };
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        gauges.learn_micros.fetch_add(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        let Ok(done) = worked else {
            gauges.learning_failed.store(true, Ordering::Relaxed);
            continue;
        };
        if queue.blocking_send(Message::Worked(Box::new(done))).is_err() {
            return;
        }
    }
}

/// Says that something failed when its thread panics: whoever waits for that thread does not wait for ever.
struct FailingAtPanic<'g>(&'g Gauges);

impl Drop for FailingAtPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Relaxed);
        }
    }
}

/// Writes lines as entries, and commits now and then.
fn write_ledger<S: Store>(
    mut log: Log<S>,
    mut book: Book,
    lines: &mpsc::Receiver<Write>,
    gauges: &Gauges,
) -> Result<()> {
    let _failing = FailingAtPanic(gauges);
    let mut written = || -> Result<()> {
        let (mut last, mut committed) = (gauges.covered.load(Ordering::Relaxed), Instant::now());
        let mut is_open = true;
        while is_open {
            let patience = COMMIT_EVERY.saturating_sub(committed.elapsed());
            let received = lines.recv_timeout(patience.max(Duration::from_millis(1)));
            let began = Instant::now();
            match received {
                Ok(Write::Lines(lines)) => {
                    last += lines.len() as u64;
                    let mut sink = LogSink(&mut log);
                    lines.iter().try_for_each(|line| book.take(&mut sink, line))?;
                }
                Ok(Write::Snapshot(step, frozen, saving)) => {
                    book.close_block(&mut LogSink(&mut log))?;
                    saving::save_and_archive(&mut log, &book, step, frozen, saving)?;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => is_open = false,
            }
            if COMMIT_EVERY <= committed.elapsed() || !is_open {
                book.close_block(&mut LogSink(&mut log))?;
                log.commit()?;
                committed = Instant::now();
                gauges.covered.store(last, Ordering::Release);
                gauges.sign(last, log.head().digest());
                gauges.entries.store(log.size(), Ordering::Relaxed);
            }
            gauges.ledger_micros.fetch_add(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
        Ok(())
    };
    let result = written();
    if result.is_err() {
        gauges.failed.store(true, Ordering::Relaxed);
    }
    result.context("the ledger cannot be written")
}

/// Answers that wait for the sync of their group.
type Answer = Box<dyn FnOnce(bool) + Send>;

/// A group of inputs that is acknowledged together.
#[derive(Default)]
struct Group {
    bytes: Writer,
    lines: Vec<Line>,
    answers: Vec<Answer>,
    /// What was decided, for whoever listens.
    decided: Vec<String>,
    /// What webhooks are told when it is durable.
    told: Vec<(&'static str, serde_json::Value)>,
    first: u64,
}

struct Decider {
    service: Service,
    inbox: Inbox,
    write: mpsc::Sender<Write>,
    work: mpsc::Sender<Box<Job>>,
    gauges: Arc<Gauges>,
    events: broadcast::Sender<String>,
    hooks: Arc<Webhooks>,
    declarations: Declarations,
    starts: Option<Arc<Starts>>,
    group: Group,
    tooling: Option<Tooling>,
    /// Inputs when the last snapshot was taken.
    saved: u64,
    /// A snapshot that was asked for and waits for the round under way.
    saving: Option<Box<Saving>>,
}

impl Decider {
    fn run(mut self, mut queue: queue::Receiver<Message>) -> Result<()> {
        let mut messages = Vec::with_capacity(GROUP_MAX);
        self.resume_tools();
        self.run_routine(None);
        self.acknowledge()?;
        self.send_tools();
        let (mut stop_at, mut grouped) = (None, Instant::now());
        loop {
            let is_stopping = stop_at.is_some();
            let is_settled = !self.service.is_searching();
            if is_stopping && (is_settled || stop_at < Some(Instant::now())) {
                break;
            }
            if queue.blocking_recv_many(&mut messages, GROUP_MAX) == 0 {
                break;
            }
            if let Some(rest) = GROUP_APART.checked_sub(grouped.elapsed()) {
                std::thread::sleep(rest);
                let more = std::iter::from_fn(|| queue.try_recv().ok());
                messages.extend(more.take(GROUP_MAX));
            }
            grouped = Instant::now();
            let began = grouped;
            for message in messages.drain(..) {
                match message {
                    Message::Stop => stop_at = stop_at.or(Some(Instant::now() + STOP_WAIT)),
                    Message::Worked(done) => self.publish(*done),
                    other if stop_at.is_some() => drop(other),
                    other => self.take(other),
                }
            }
            if stop_at.is_none() {
                self.begin_round();
            }
            self.take_tools();
            if stop_at.is_none() {
                self.seek_advice();
            }
            if let Err(error) = self.acknowledge() {
                self.gauges.failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
            self.send_tools();
            self.save(false);
            self.gauges.act_micros.fetch_add(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
        self.save(true);
        Ok(())
    }

    /// Applies an input that was checked.
    fn apply(&mut self, input: Input, done: Option<Done>) -> (u64, Effect) {
        let effect = self.service.apply(&input, done).expect("what was checked takes effect");
        let number = self.service.last();
        if self.group.lines.is_empty() {
            self.group.first = number;
        }
        input.encode(&mut self.group.bytes);
        // What the caller looks at is what the ledger gets.
        let seen = match &effect {
            Effect::Decided(begun, choice) => Effect::Decided(*begun, *choice),
            _ => Effect::Rewarded,
        };
        let (line, job) = Line::of(input, effect, &self.service);
        if let Some(job) = job {
            let _ = self.work.send(job);
        }
        self.note(&line, number);
        if !self.hooks.is_empty() {
            self.group.told.extend(telling::of(&line, &self.service, number));
        }
        saving::count_patches(&line, &self.gauges);
        self.group.lines.push(line);
        (number, seen)
    }

    /// Tells whoever listens what was decided about patches.
    fn note(&self, line: &Line, number: u64) {
        if !line.people.is_empty() && 0 < self.events.receiver_count() {
            let open = self.service.people().table().open().count();
            let event = serde_json::json!({ "event": "questions", "step": number, "open": open });
            let _ = self.events.send(event.to_string());
        }
        let world = match &line.derived {
            Derived::Opened(world, ..) => *world,
            Derived::Published(published) => published.world,
            _ => return,
        };
        let Some(served) = self.service.world(world).filter(|_| 0 < self.events.receiver_count()) else {
            return;
        };
        for patched in served.patched().iter().filter(|patched| patched.number == number) {
            let line = PatchLine::of(&served.spec().name, patched);
            let _ = self.events.send(serde_json::json!({ "event": "patch", "patch": line }).to_string());
        }
    }

    fn answer<T: Send + 'static>(&mut self, reply: Reply<T>, answer: Result<T, Refusal>) {
        self.group.answers.push(Box::new(move |is_durable| {
            if is_durable {
                let _ = reply.send(answer);
            }
        }));
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Create(spec, reply) => {
                let created = self.create(*spec);
                self.answer(reply, created);
            }
            Message::Decide { world, observation, episode, reply } => {
                let decided = self.decide(&world, observation, &episode);
                self.answer(reply, decided);
            }
            Message::Reward { world, decision, outcome, done, seen, reply } => {
                let rewarded = self.reward(&world, decision, outcome, (done, seen));
                self.answer(reply, rewarded);
            }
            Message::Forget(name, reply) => {
                let forgotten = self.service.find(&name).map(|(index, _)| index).map(|world| {
                    self.apply(Input::Forget { world }, None);
                });
                self.answer(reply, forgotten);
            }
            Message::Act { check, view, reply } => {
                let acted = check(&self.service).map(|input| {
                    let number = input.map(|input| self.apply(input, None).0);
                    view(&self.service, number)
                });
                self.answer(reply, acted);
            }
            Message::Look(look) => look(&self.service),
            Message::Save(saving) => self.saving = Some(saving),
            Message::Tool(named, reply) => self.ask_tool(*named, reply),
            Message::Prove(payload, reply) => self.prove(&payload, reply),
            Message::LookTools(look) => look(self.tooling.as_ref()),
            Message::Worked(_) | Message::ToolsReady | Message::Stop => {}
        }
    }

    /// Opens a world if it is new, with what it begins with; whether it is new.
    fn create(&mut self, spec: WorldSpec) -> Result<bool, Refusal> {
        let Some(input) = self.service.create(spec.clone())? else { return Ok(false) };
        let refuse =
            |message| Refusal { kind: RefusalKind::Bad, field: "start_from", code: "does_not_fit", message };
        let start = match &self.starts {
            Some(starts) => starts(&spec).map_err(refuse)?,
            None => None,
        };
        let start = start.map(|start| Service::start_for(&spec, start)).transpose()?;
        self.apply(input, None);
        if let Some(start) = start {
            let (world, _) = self.service.find(&spec.name)?;
            self.apply(Input::Start { world, start }, None);
        }
        Ok(true)
    }

    /// What is seen in a world, as bits.
    fn observed(&mut self, name: &str, seen: Seen) -> Result<(WorldIndex, Bits), Refusal> {
        let (index, world) = self.service.find(name)?;
        let bits = usize::from(world.spec().shape.observation_bits);
        let bad =
            |message: String| Refusal { kind: RefusalKind::Bad, field: "obs", code: "bad_field", message };
        let observation = match seen {
            Seen::Bits(observation, width) if width == bits => observation,
            Seen::Bits(_, width) => {
                return Err(bad(format!("obs has {width} bits: this world shows {bits}")));
            }
            Seen::Named(values) if !world.spec().note.is_empty() => {
                self.declarations.encode(world.spec(), &values)?
            }
            Seen::Named(_) => return Err(bad(format!("obs must be text of {bits} zeros and ones"))),
        };
        Ok((index, observation))
    }

    /// What is seen in an episode that goes on may make its last step BAD; that is an input of its own.
    fn judge_last(&mut self, index: WorldIndex, episode: &str, seen: &Bits) {
        let Some(world) = self.service.world(index) else { return };
        let Some(last) = world.latest_of(episode) else { return };
        if !self.declarations.is_bad_after(world.spec(), seen) {
            return;
        }
        if let Some(input) = self.service.find_bad(index, last) {
            self.apply(input, None);
        }
    }

    fn decide(&mut self, name: &str, seen: Seen, episode: &str) -> Result<Decided, Refusal> {
        let (index, observation) = self.observed(name, seen)?;
        let input = self.service.ask(index, observation, episode)?;
        self.judge_last(index, episode, &observation);
        let (decision, effect) = self.apply(input, None);
        self.gauges.decisions.fetch_add(1, Ordering::Relaxed);
        let Effect::Decided(begun, choice) = effect else { unreachable!("a decision decides") };
        if 0 < self.events.receiver_count() {
            let event = serde_json::json!({ "event": "decision", "world": name, "step": decision, "action": choice.action });
            self.group.decided.push(event.to_string());
        }
        let expert = self.service.world(index).map(|world| world.acting().chooser(begun, &choice));
        Ok(Decided {
            decision,
            action: choice.action,
            propensity: choice.propensity.to_raw(),
            expert: expert.unwrap_or_default(),
        })
    }

    fn reward(
        &mut self,
        name: &str,
        decision: u64,
        outcome: Outcome,
        (done, seen): (Option<bool>, Option<Seen>),
    ) -> Result<bool, Refusal> {
        let seen = seen.map(|seen| self.observed(name, seen)).transpose()?;
        let (index, world) = self.service.find(name)?;
        // An episode of one step ends with it, whatever is said.
        let done = world.spec().shape.horizon == 1 || done.unwrap_or(false);
        let after = seen.map(|(_, seen)| seen).into_iter().chain(world.seen_after(decision));
        let mut bad = outcome.bad;
        after.for_each(|seen| bad |= self.declarations.is_bad_after(world.spec(), &seen));
        // What was said without a word about BAD, and was found to be BAD since, is the same when it is said again.
        let known = world.decision(decision).and_then(|(step, ..)| step.outcome);
        bad |= Declarations::has_rules(world.spec()) && known.is_some_and(|known| known.bad);
        let input = self.service.reward(index, decision, Outcome { done, bad, ..outcome })?;
        let is_new = input.is_some();
        input.into_iter().for_each(|input| drop(self.apply(input, None)));
        self.gauges.rewards.fetch_add(u64::from(is_new), Ordering::Relaxed);
        Ok(is_new)
    }

    fn publish(&mut self, done: Done) {
        let world = done.world;
        self.apply(Input::Publish { world }, Some(done));
        self.gauges.rounds.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins a round if one is due and none is under way.
    fn begin_round(&mut self) {
        // A snapshot that waits is taken before the next round begins.
        if self.service.is_searching() || self.saving.is_some() {
            return;
        }
        if let Some(input) = self.service.due_round() {
            self.apply(input, None);
        }
    }

    /// Makes the group durable, and answers.
    fn acknowledge(&mut self) -> Result<()> {
        let Group { bytes, lines, answers, decided, told, first } = core::mem::take(&mut self.group);
        if lines.is_empty() {
            answers.into_iter().for_each(|answer| answer(true));
            return Ok(());
        }
        let began = Instant::now();
        self.inbox.append(first, lines.len() as u32, bytes.as_bytes())?;
        self.inbox.sync()?;
        let micros = began.elapsed().as_micros() as u64;
        self.gauges.sync_micros.fetch_add(micros, Ordering::Relaxed);
        self.gauges.sync_max_micros.fetch_max(micros, Ordering::Relaxed);
        self.gauges.groups.fetch_add(1, Ordering::Relaxed);
        self.gauges.inputs.store(self.service.last(), Ordering::Relaxed);
        answers.into_iter().for_each(|answer| answer(true));
        decided.into_iter().for_each(|event| drop(self.events.send(event)));
        told.iter().for_each(|(event, data)| self.hooks.send(event, data));
        if 0 < self.events.receiver_count() {
            let text =
                serde_json::json!({ "event": "step", "step": self.service.last(), "inputs": lines.len() });
            let _ = self.events.send(text.to_string());
        }
        let gone = || anyhow::anyhow!("the ledger is not written any more");
        self.write.send(Write::Lines(lines)).map_err(|_| gone())?;
        self.wait_for_ledger()?;
        self.inbox.turn(self.gauges.covered.load(Ordering::Acquire))
    }

    /// Waits while the ledger lags too far behind.
    fn wait_for_ledger(&self) -> Result<()> {
        let began = Instant::now();
        while self.gauges.covered.load(Ordering::Acquire) + LAG_MAX < self.service.last() {
            if self.gauges.failed.load(Ordering::Relaxed) {
                bail!("the ledger is not written any more");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let micros = began.elapsed().as_micros() as u64;
        self.gauges.ledger_wait_max_micros.fetch_max(micros, Ordering::Relaxed);
        Ok(())
    }

    /// Hands a snapshot to the ledger if one is due; no round may be under way.
    fn save(&mut self, is_last: bool) {
        let is_asked = is_last || self.saving.is_some();
        let due = if is_asked { self.saved + 1 } else { self.saved + SNAPSHOT_INPUTS };
        if self.service.is_searching() {
            return;
        }
        let saving = self.saving.take();
        if self.service.last() < due {
            // Nothing has happened since the last one: it is the newest.
            saving.into_iter().for_each(|saving| drop(saving.reply.send(None)));
            return;
        }
        self.saved = self.service.last();
        let (began, before) = (Instant::now(), priority::processor_micros());
        let frozen = self.service.freeze();
        let micros = began.elapsed().as_micros() as u64;
        self.gauges.barrier_max_micros.fetch_max(micros, Ordering::Relaxed);
        let micros = priority::processor_micros().saturating_sub(before);
        self.gauges.barrier_processor_max_micros.fetch_max(micros, Ordering::Relaxed);
        let _ = self.write.send(Write::Snapshot(self.saved, frozen, saving));
    }
}
