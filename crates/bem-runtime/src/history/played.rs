//! What was decided in a served world and what it brought: the log that estimates of other policies are made from.
//!
//! Told are the complete episodes of which every reward came, in the order in which they were complete, so that what was told once stays
//! as it is and whoever comes back goes on behind it. An episode that lacks a reward is not told: what a reward was taken for is no
//! outcome. No byte of the learner is read but for the names of episodes that were open where entries are archived. Must not know files
//! nor what bits mean. Clauses: GLE-9, LOG-4; decision D-255.

use super::{HistoryError, configuration};
use crate::base::{BaseState, restored_state};
use crate::input::{Input, WorldIndex, WorldSpec, decode_all};
use crate::world::GoingOn;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader};
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_ledger::LedgerError;
use bem_ledger::archive::Archived;
use bem_ledger::entry::{Entry, event_code};
use bem_ledger::log::read_blob;
use bem_ledger::reader::EntryReader;
use bem_ledger::store::Store;
use std::collections::BTreeMap;

/// A decision and what it brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedStep {
    /// What was seen.
    pub observation: Bits,
    /// What was done.
    pub action: u16,
    /// The chance that this action had, as it was answered.
    pub propensity: Fixed,
    /// What it brought, in milli-units.
    pub reward: i32,
}

/// A complete episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEpisode {
    /// Its first decision.
    pub first: u64,
    /// The input with which it was complete: no two episodes have the same.
    pub complete: u64,
    /// Its steps in order.
    pub steps: Vec<LoggedStep>,
}

/// A step whose reward may be missing.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    observation: Bits,
    action: u16,
    propensity: Fixed,
    reward: Option<i32>,
}

/// An episode that is not complete.
#[derive(Clone, Debug)]
struct OpenEpisode {
    name: String,
    /// Which decision of its world its first one was.
    place: u64,
    steps: Vec<Pending>,
    /// Steps that were taken where nobody could read them: the episode is never told.
    unread: usize,
    is_over: bool,
}

/// The open episodes of one world, as the entries go by.
struct LogWalk<'w> {
    world: WorldIndex,
    spec: &'w WorldSpec,
    /// By their first decision.
    open: BTreeMap<u64, OpenEpisode>,
    by_name: BTreeMap<String, u64>,
    /// The decisions of open episodes: the episode, and which step of it.
    waiting: BTreeMap<u64, (u64, usize)>,
    /// Decisions of the world so far.
    decisions: u64,
}

fn unreadable(reason: String) -> HistoryError {
    HistoryError::State { what: "the history", reason }
}

impl LogWalk<'_> {
    /// Forgets everything that was open; episodes that a saved state has open are known to be.
    fn take_up<S: Store>(&mut self, store: &mut S, state: &Digest) -> Result<(), HistoryError> {
        (self.open, self.by_name, self.waiting) = Default::default();
        if self.spec.shape.horizon == 1 {
            return Ok(());
        }
        let bytes = read_blob(store, state).map_err(LedgerError::from)?;
        let state = BaseState::from_bytes(&bytes).map_err(|error| unreadable(error.to_string()))?;
        let service = state.service().map_err(|error| unreadable(error.to_string()))?;
        let Some(world) = service.world(self.world) else { return Ok(()) };
        self.decisions = world.statistics().decisions;
        for GoingOn { first, place, name, steps: unread } in world.going_on() {
            let (name, steps) = (name.to_string(), Vec::new());
            self.by_name.insert(name.clone(), first);
            self.open.insert(first, OpenEpisode { name, place, steps, unread, is_over: false });
        }
        Ok(())
    }

    /// Episodes whose first decision is forgotten are lost.
    fn expire(&mut self) {
        let keep = u64::from(self.spec.expire_after);
        while let Some(oldest) = self.open.first_entry() {
            if self.decisions < oldest.get().place + keep {
                return;
            }
            let (first, lost) = oldest.remove_entry();
            if self.by_name.get(&lost.name) == Some(&first) {
                self.by_name.remove(&lost.name);
            }
            for step in &lost.steps {
                self.waiting.remove(&step.number);
            }
        }
    }

    fn decide(&mut self, number: u64, (observation, name): (Bits, &str), (action, propensity): (u16, Fixed)) {
        self.expire();
        self.decisions += 1;
        let horizon = self.spec.shape.horizon as usize;
        let going_on = self.by_name.get(name).copied().filter(|_| 1 < horizon);
        let first = going_on.unwrap_or(number);
        let place = self.decisions;
        let open = self.open.entry(first).or_insert_with(|| OpenEpisode {
            name: name.to_string(),
            place,
            steps: Vec::new(),
            unread: 0,
            is_over: false,
        });
        self.waiting.insert(number, (first, open.steps.len()));
        open.steps.push(Pending { number, observation, action, propensity, reward: None });
        open.is_over = horizon <= open.steps.len() + open.unread;
        match (open.is_over, 1 < horizon) {
            (true, _) => drop(self.by_name.remove(name)),
            (false, true) => drop(self.by_name.insert(name.to_string(), first)),
            (false, false) => {}
        }
    }

    /// A reward came; the episode that is complete with it.
    fn reward(&mut self, input: u64, decision: u64, (reward, done): (i32, bool)) -> Option<LoggedEpisode> {
        let (first, place) = self.waiting.remove(&decision)?;
        let open = self.open.get_mut(&first)?;
        open.steps[place].reward = Some(reward);
        if done && !open.is_over {
            open.is_over = true;
            self.by_name.remove(&open.name);
        }
        if !open.is_over || open.steps.iter().any(|step| step.reward.is_none()) {
            return None;
        }
        let open = self.open.remove(&first)?;
        let step = |pending: &Pending| {
            let Pending { observation, action, propensity, reward, .. } = *pending;
            Some(LoggedStep { observation, action, propensity, reward: reward? })
        };
        let steps: Option<Vec<LoggedStep>> = open.steps.iter().map(step).collect();
        let steps = steps.filter(|_| open.unread == 0)?;
        Some(LoggedEpisode { first, complete: input, steps })
    }
}

/// The chances and actions of a block of inputs, in the order of its decisions.
fn answers(payload: &[u8]) -> Result<Vec<(u16, Fixed)>, DecodeError> {
    let mut reader = Reader::new(payload);
    let mut answers = Vec::with_capacity(payload.len() / 8);
    while 0 < reader.remaining() {
        let (action, _odds, chance) = (reader.u16()?, reader.u16()?, reader.u32()?);
        // A chance of one does not fit 32 bits and is written as the largest number that does.
        let chance = if chance == u32::MAX { Fixed::ONE } else { Fixed::from_raw(i64::from(chance)) };
        answers.push((action, chance));
    }
    Ok(answers)
}

/// Tells the episodes of a world that were complete behind the input `after`, until `tell` wants no more.
pub fn played<S: Store>(
    store: &mut S,
    (world, spec): (WorldIndex, &WorldSpec),
    after: u64,
    tell: &mut dyn FnMut(LoggedEpisode) -> bool,
) -> Result<(), HistoryError> {
    let (open, by_name, waiting) = Default::default();
    let mut walk = LogWalk { world, spec, open, by_name, waiting, decisions: 0 };
    let mut reader = EntryReader::open(store)?;
    // Where entries are archived, what was open is only known again with the state that an entry behind them names.
    let mut is_blind = false;
    // A block of inputs waits for its answers, which are the next entry.
    let mut block: Option<(u64, Vec<Input>)> = None;
    loop {
        let index = reader.position();
        let Some(bytes) = reader.next(store)? else { return Ok(()) };
        let entry = Entry::from_bytes(bytes).map_err(|source| LedgerError::Entry { index, source })?;
        let gap = reader.gap();
        if gap.is_some_and(|gap| gap.end == index) {
            (walk.open, walk.by_name, walk.waiting) = Default::default();
            (is_blind, block) = (1 < spec.shape.horizon, None);
        }
        let archived = gap.and_then(|gap| Archived::of(&entry).filter(|one| one.covers(gap)));
        if let Some(state) = archived.map(|one| one.state).or_else(|| restored_state(&entry)) {
            walk.take_up(store, &state)?;
            is_blind = false;
        }
        let (first, inputs, answers) = match entry {
            Entry::Input { step, payload, .. } => {
                let inputs = decode_all(&payload).map_err(|error| unreadable(error.to_string()))?;
                if inputs.iter().any(|input| matches!(input, Input::Decide { .. })) {
                    block = Some((step, inputs));
                    continue;
                }
                (step, inputs, Vec::new())
            }
            Entry::Event { code: event_code::SERVED, payload, .. } => {
                let Some((step, inputs)) = block.take() else { continue };
                (step, inputs, answers(&payload).map_err(|error| unreadable(error.to_string()))?)
            }
            _ => continue,
        };
        let mut answers = answers.into_iter();
        for (number, input) in (first..).zip(inputs) {
            // Every decision of the block has its answer, also those of other worlds.
            let answer = matches!(input, Input::Decide { .. }).then(|| answers.next());
            match input {
                _ if is_blind => {}
                Input::Decide { world: asked, observation, episode } if asked == world => {
                    let missing = || unreadable(format!("input {number} has no answer"));
                    walk.decide(number, (observation, &episode), answer.flatten().ok_or_else(missing)?);
                }
                Input::Reward { world: asked, decision, reward, done, .. } if asked == world => {
                    let complete = walk.reward(number, decision, (reward, done));
                    if let Some(complete) = complete.filter(|complete| after < complete.complete)
                        && !tell(complete)
                    {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
    }
}

/// The worlds that a history serves in the end, as they were declared, with their places.
pub fn declared<S: Store>(store: &mut S) -> Result<BTreeMap<u16, WorldSpec>, HistoryError> {
    let config = configuration(store)?;
    let mut specs: BTreeMap<u16, WorldSpec> = BTreeMap::new();
    let mut worlds = 0;
    let mut reader = EntryReader::open(store)?;
    loop {
        let index = reader.position();
        let Some(bytes) = reader.next(store)? else { return Ok(specs) };
        let entry = Entry::from_bytes(bytes).map_err(|source| LedgerError::Entry { index, source })?;
        let archived =
            reader.gap().and_then(|gap| Archived::of(&entry).filter(|archived| archived.covers(gap)));
        if let Some(digest) = archived.map(|one| one.state).or_else(|| restored_state(&entry)) {
            let bytes = read_blob(store, &digest).map_err(LedgerError::from)?;
            let state = BaseState::from_bytes(&bytes).map_err(|error| unreadable(error.to_string()))?;
            worlds = state.book(config.clone()).map_err(|error| unreadable(error.to_string()))?.worlds;
            specs = match state.worlds {
                Some(worlds) => worlds,
                None => state.service().map_err(|error| unreadable(error.to_string()))?.specs(),
            };
        }
        let Entry::Input { payload, .. } = &entry else { continue };
        for input in decode_all(payload).map_err(|error| unreadable(error.to_string()))? {
            match input {
                Input::World(spec) => {
                    specs.insert(worlds, *spec);
                    worlds += 1;
                }
                Input::Forget { world } => drop(specs.remove(&world.0)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
