//! A history that begins anew where a learner cannot go on from an older one: what the old history says without its learner is
//! carried over.
//!
//! Carried over are the worlds as they were declared, the circuit that each acts by (worked out from its patches), what was played
//! there with its rewards, and what the owner has set about people. No byte of the old learner is read and nothing is played again, so that this
//! works whatever the learner was. What was under way is not carried over: questions, requests to tools, decisions whose reward
//! had not come, statistics. The new history names the head of the old one. Must not know files. Clauses: IMG-5, LOG-4; decision D-231.

use super::{HistoryError, LogSink, Opened, Player, SNAPSHOTS_KEPT, configuration, parts};
use crate::base::{BaseState, anew_text, restored_state};
use crate::book::Book;
use crate::input::{Input, WorldIndex, WorldSpec, decode_all};
use crate::people::input::PeopleInput;
use crate::service::{Refusal, Service};
use bem_base::digest::{Digest, hash, hash_parts};
use bem_base::encode::{DecodeError, Reader};
use bem_base::environment::Bits;
use bem_engine::offer::Policy;
use bem_engine::start::{EPISODES_MAX, Episode, Start, Step, machine_of};
use bem_ledger::LedgerError;
use bem_ledger::archive::Archived;
use bem_ledger::checkpoint::Signer;
use bem_ledger::entry::{Entry, Genesis, event_code};
use bem_ledger::log::{Log, LogOptions, read_blob, store_blob};
use bem_ledger::reader::EntryReader;
use bem_ledger::recover::read_checkpoint;
use bem_ledger::store::Store;
use std::collections::{BTreeMap, VecDeque};

/// Decisions of a world that are remembered at once; more than a start has room for.
const DECISIONS_MAX: usize = 1 << 16;

/// What was carried over of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Its name; empty where the history does not say any more what the world was.
    pub name: String,
    /// Whether its circuit is tried first.
    pub has_circuit: bool,
    /// Episodes that it begins with.
    pub episodes: usize,
}

/// One decision of an old history.
#[derive(Clone, Debug)]
struct Decided {
    number: u64,
    observation: Bits,
    episode: String,
    /// Action and chance, once its answer was read.
    answer: Option<(u16, u16)>,
    /// Reward, whether the episode ended with it, whether it was BAD.
    outcome: Option<(i32, bool, bool)>,
}

/// A walk over an old history.
struct Walk {
    book: Book,
    /// The latest decisions of every world.
    decisions: BTreeMap<u16, VecDeque<Decided>>,
    control: Option<PeopleInput>,
    /// Decisions of the last block of inputs that its answers are about.
    asked: Vec<(u16, u64)>,
}

fn unreadable(reason: String) -> HistoryError {
    HistoryError::State { what: "the old history", reason }
}

impl Walk {
    fn over<S: Store>(store: &mut S, late: &[(u64, Input)]) -> Result<Walk, HistoryError> {
        let book = Book::new(configuration(store)?);
        let mut walk = Walk { book, decisions: BTreeMap::new(), control: None, asked: Vec::new() };
        let mut reader = EntryReader::open(store)?;
        // Behind a gap the structure is not known until an entry says what it was.
        let mut is_blind = false;
        loop {
            let index = reader.position();
            let Some(bytes) = reader.next(store)? else { break };
            let entry = Entry::from_bytes(bytes).map_err(|source| LedgerError::Entry { index, source })?;
            let gap = reader.gap();
            is_blind |= gap.is_some_and(|gap| gap.first == index);
            if let Some(state) = gap.and_then(|gap| Archived::of(&entry).filter(|one| one.covers(gap))) {
                walk.take_up(store, &state.state)?;
                is_blind = false;
            } else if let Some(state) = restored_state(&entry) {
                walk.take_up(store, &state)?;
            }
            walk.read(&entry)?;
            if !is_blind {
                walk.book
                    .follow(&entry, &mut |digest| read_blob(store, digest).map_err(LedgerError::from))?;
            }
        }
        // What was acknowledged and is not in the ledger: rewards count, decisions have no answer there.
        let last = walk.book.last;
        for (number, input) in late.iter().filter(|(number, _)| last < *number) {
            walk.input(*number, input);
            match input {
                Input::World(spec) => drop(walk.book.open_world(spec).map_err(unreadable)?),
                Input::Forget { world } => drop(walk.book.forget_world(*world)),
                _ => {}
            }
        }
        Ok(walk)
    }

    /// Goes on from a saved state, of which only the part is read that no learner wrote.
    fn take_up<S: Store>(&mut self, store: &mut S, digest: &Digest) -> Result<(), HistoryError> {
        let bytes = read_blob(store, digest).map_err(LedgerError::from)?;
        let state = BaseState::from_bytes(&bytes).map_err(|error| unreadable(error.to_string()))?;
        let book = state.book(self.book.config.clone()).map_err(|error| unreadable(error.to_string()))?;
        let before = core::mem::replace(&mut self.book, book);
        // A state that does not name its worlds has those among them that are known from before.
        self.book.specs = state.worlds.unwrap_or(before.specs);
        let twins = &self.book.twins;
        self.book.specs.retain(|place, _| twins.contains_key(place));
        Ok(())
    }

    fn read(&mut self, entry: &Entry) -> Result<(), HistoryError> {
        match entry {
            Entry::Input { step, payload, .. } => {
                self.asked.clear();
                let inputs = decode_all(payload).map_err(|error| unreadable(error.to_string()))?;
                for (number, input) in (*step..).zip(&inputs) {
                    self.input(number, input);
                }
                Ok(())
            }
            Entry::Event { code: event_code::SERVED, payload, .. } => {
                self.answers(payload).map_err(|error| unreadable(error.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn input(&mut self, number: u64, input: &Input) {
        match input {
            Input::Decide { world, observation, episode } => {
                let (observation, episode) = (*observation, episode.clone());
                let decided = Decided { number, observation, episode, answer: None, outcome: None };
                let decisions = self.decisions.entry(world.0).or_default();
                decisions.push_back(decided);
                if DECISIONS_MAX < decisions.len() {
                    decisions.pop_front();
                }
                self.asked.push((world.0, number));
            }
            Input::Reward { world, decision, reward, done, bad } => {
                if let Some(decided) = self.decided(*world, *decision) {
                    decided.outcome = Some((*reward, *done, *bad));
                }
            }
            Input::Bad { world, decision } => {
                if let Some((_, _, bad)) =
                    self.decided(*world, *decision).and_then(|found| found.outcome.as_mut())
                {
                    *bad = true;
                }
            }
            Input::People(said) => {
                if let PeopleInput::Control { .. } = **said {
                    self.control = Some(PeopleInput::clone(said));
                }
            }
            _ => {}
        }
    }

    fn decided(&mut self, world: WorldIndex, number: u64) -> Option<&mut Decided> {
        let decisions = self.decisions.get_mut(&world.0)?;
        let place = decisions.binary_search_by_key(&number, |decided| decided.number).ok()?;
        decisions.get_mut(place)
    }

    fn answers(&mut self, payload: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(payload);
        for (world, number) in core::mem::take(&mut self.asked) {
            let (action, _odds, chance) = (reader.u16()?, reader.u16()?, reader.u32()?);
            // Chances of a log are in 65,535ths, and the lowest means something else.
            let chance = ((u64::from(chance) * 65_535) >> 32).clamp(2, 65_535) as u16;
            if let Some(decided) = self.decided(WorldIndex(world), number) {
                decided.answer = Some((action, chance));
            }
        }
        reader.finish()
    }

    /// What a world begins with that goes on from this one.
    fn start(&self, place: u16, spec: &WorldSpec) -> Start {
        let policy = self.book.policy_in_force(place);
        let machines = policy.and_then(|policy| machine_of(&policy, &spec.shape)).into_iter().collect();
        let episodes = self.decisions.get(&place).map(|decisions| episodes(spec, decisions));
        Start { machines, episodes: episodes.unwrap_or_default(), baseline: None }
    }
}

/// What the worlds of a history were and learned, as far as it says so without its learner.
pub fn told<S: Store>(store: &mut S) -> Result<Vec<(WorldSpec, Start)>, HistoryError> {
    let walk = Walk::over(store, &[])?;
    Ok(walk.book.specs.iter().map(|(place, spec)| (spec.clone(), walk.start(*place, spec))).collect())
}

/// The worlds of a history, each with the circuit that its patches amount to; nothing where there were none.
pub fn policies<S: Store>(store: &mut S) -> Result<Vec<(WorldSpec, Option<Policy>)>, HistoryError> {
    let Walk { book, .. } = Walk::over(store, &[])?;
    Ok(book.specs.iter().map(|(place, spec)| (spec.clone(), book.policy_in_force(*place))).collect())
}

/// The episodes of a world that are complete, in the order in which they began.
fn episodes(spec: &WorldSpec, decisions: &VecDeque<Decided>) -> Vec<Episode> {
    let horizon = spec.shape.horizon as usize;
    let mut open: BTreeMap<&str, Vec<&Decided>> = BTreeMap::new();
    let mut complete: Vec<(u64, Vec<&Decided>)> = Vec::new();
    for decided in decisions {
        let so_far = open.entry(if horizon == 1 { "" } else { &decided.episode }).or_default();
        so_far.push(decided);
        if so_far.len() == horizon || decided.outcome.is_some_and(|(_, done, _)| done) {
            let steps = core::mem::take(so_far);
            complete.push((steps[0].number, steps));
        }
    }
    complete.sort_by_key(|(first, _)| *first);
    let mut found = Vec::new();
    for (_, steps) in complete {
        let last = steps.len() - 1;
        let step = |(place, decided): (usize, &&Decided)| {
            let ((action, propensity), (reward, _, bad)) = (decided.answer?, decided.outcome?);
            let even = 65_535 / u32::from(spec.shape.actions);
            let uniform = u32::from(propensity).abs_diff(even) <= 1;
            let observation = decided.observation;
            Some(Step { observation, action, reward, done: place == last, bad, uniform, propensity })
        };
        let steps: Option<Vec<Step>> = steps.iter().enumerate().map(step).collect();
        found.extend(steps.map(|steps| Episode { serial: found.len() as u64, steps }));
    }
    let first = found.len().saturating_sub(EPISODES_MAX);
    found.split_off(first)
}

/// Begins a history in another store that carries over what an old one says without its learner. `late` are inputs that were
/// acknowledged and are not in the old ledger, with their numbers.
pub fn renewed<O: Store, S: Store>(
    old: &mut O,
    late: &[(u64, Input)],
    mut store: S,
    signer: Signer,
    code: &str,
    options: LogOptions,
) -> Result<(Opened<S>, Vec<Carried>), HistoryError> {
    let origin = read_checkpoint(old)?.checkpoint.head.digest();
    let walk = Walk::over(old, late)?;
    let config = walk.book.config.clone();
    let configuration = config.to_bytes();
    // Under the same key it is another history all the same.
    let instance =
        hash_parts("bem/instance", &[&signer.public_key(), &config.seed.to_le_bytes(), origin.as_bytes()]);
    let genesis = Genesis {
        instance,
        configuration: hash(&configuration),
        code: code.to_string(),
        public_key: signer.public_key(),
    };
    store_blob(&mut store, &configuration).map_err(LedgerError::from)?;
    let mut log = Log::create(store, signer, &genesis, options)?;
    let mut player = Player::new(config);
    player.book.boot(&mut LogSink(&mut log))?;
    let payload = anew_text(&origin).into_bytes();
    log.append(&Entry::Event { step: 0, code: event_code::RESTORED, values: Vec::new(), payload })?;
    let mut carried = Vec::new();
    for place in walk.book.twins.keys() {
        carried.push(carry(&mut player, &mut log, &walk, *place)?);
    }
    if let Some(control) = walk.control {
        player.take(&mut LogSink(&mut log), Input::People(Box::new(control)))?;
    }
    player.book.close_block(&mut LogSink(&mut log))?;
    log.commit()?;
    log.write_snapshot(player.service.last(), parts(&player.service), SNAPSHOTS_KEPT)?;
    Ok((Opened { log, player, rejected: Vec::new() }, carried))
}

/// One world goes on in the new history.
fn carry<S: Store>(
    player: &mut Player,
    log: &mut Log<S>,
    walk: &Walk,
    place: u16,
) -> Result<Carried, HistoryError> {
    let Some(spec) = walk.book.specs.get(&place) else {
        return Ok(Carried { name: String::new(), has_circuit: false, episodes: 0 });
    };
    let refused = |refusal: Refusal| unreadable(refusal.message);
    let world = player.service.create(spec.clone()).map_err(refused)?;
    let index = WorldIndex(player.book.worlds);
    if let Some(input) = world {
        player.take(&mut LogSink(log), input)?;
    }
    let mut carried = Carried { name: spec.name.clone(), has_circuit: false, episodes: 0 };
    // A world about which nothing is known begins as it did.
    if let Ok(start) = Service::start_for(spec, walk.start(place, spec)) {
        (carried.has_circuit, carried.episodes) = (!start.machines.is_empty(), start.episodes.len());
        player.take(&mut LogSink(log), Input::Start { world: index, start })?;
    }
    Ok(carried)
}

#[cfg(test)]
mod tests;
