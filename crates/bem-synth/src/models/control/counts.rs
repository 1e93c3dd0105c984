//! Counts of what followed what.
//!
//! A state is what the [`Lens`] shows: the observation, as finely as the [`Grain`] looks at it, and the pairs of observation and
//! own action before it, or what a machine recalls of them. An outcome is the next state, or the end of the episode, together with the reward.
//! An episode that only ran out of steps did not end by what was done, so that its last successor is unknown.

use super::dependence::HISTORY_MAX;
use super::grain::Grain;
use super::plan::STEPS_MAX;
use super::recall::Recall;
use crate::experience::{Episode, Step};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS, Shape};
use bem_base::limits::ACTIONS_MAX;
use std::collections::BTreeMap;
use std::sync::Arc;

/// States at most.
pub const STATES_MAX: usize = 1 << 14;
/// States that may always be counted; beyond them a plan must stay cheap.
const STATES_FREE: usize = 4_096;
/// States times actions times steps of a plan, beyond the states that may always be counted.
const PLAN_WORK_MAX: usize = 1 << 20;
/// Tries of every pair of state and action, on average, below which counts are thin.
const TRIES_FEW: usize = 4;
/// Pairs of state and action from which on there is no trying them all.
const PAIRS_MANY: usize = 1_024;
/// Counts at most; more steps than that are never logged.
const COUNT_MAX: i64 = 1 << 32;
/// The successor that is none: the episode ended.
pub const END: u32 = u32::MAX;
/// The successor that is not known: the episode ran out of steps, which says nothing about the state.
pub const CUT: u32 = u32::MAX - 1;
/// Stands in a key for what lies before the start of the episode.
pub const BEFORE_START: u32 = u32::MAX;

/// How much of the past counts as the state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lens {
    /// This many pairs of observation and own action before the present observation.
    Past(usize),
    /// What a machine over all of these pairs recalls.
    Recalled(Arc<Recall>),
}

impl Default for Lens {
    fn default() -> Lens {
        Lens::Past(0)
    }
}

/// Stands for a recalling machine where the number of pairs is stored.
const RECALLED: u8 = u8::MAX;
/// Stands before a lens where not all of what is seen is looked at.
const GRAINED: u8 = u8::MAX - 1;

impl Lens {
    /// Parts of a key beside the present symbol.
    fn parts(&self) -> usize {
        match self {
            Lens::Past(history) => 2 * history,
            Lens::Recalled(_) => 1,
        }
    }

    /// What is recalled after one more step; nothing where no machine does.
    fn after(&self, recalled: u32, seen: &Bits, action: u16) -> u32 {
        match self {
            Lens::Past(_) => 0,
            Lens::Recalled(recall) => recall.after(recalled, seen, action),
        }
    }

    fn encode(&self, writer: &mut Writer) {
        match self {
            Lens::Past(history) => writer.u8(*history as u8),
            Lens::Recalled(recall) => {
                writer.u8(RECALLED);
                recall.encode(writer);
            }
        }
    }

    fn decode(first: u8, actions: u16, reader: &mut Reader<'_>) -> Result<Lens, DecodeError> {
        let malformed = reader.error("a lens out of bounds");
        match first {
            RECALLED => {
                let recall = Recall::decode(reader)?;
                if recall.actions() == actions {
                    Ok(Lens::Recalled(Arc::new(recall)))
                } else {
                    Err(malformed)
                }
            }
            history if usize::from(history) <= HISTORY_MAX => Ok(Lens::Past(usize::from(history))),
            _ => Err(malformed),
        }
    }
}

/// What one action brought in one state.
#[derive(Clone, Debug, Default)]
pub struct Edge {
    /// How often it was tried.
    pub count: i64,
    /// Successor and reward, and how often.
    pub outcomes: BTreeMap<(u32, i32), i64>,
}

/// What followed what.
#[derive(Clone, Debug)]
pub struct Model {
    lens: Lens,
    grain: Grain,
    symbols: BTreeMap<Bits, u32>,
    observations: Vec<Bits>,
    /// The present symbol, then what is recalled, or back in time: action, symbol, action, symbol.
    states: BTreeMap<Vec<u32>, u32>,
    keys: Vec<Vec<u32>>,
    edges: Vec<Vec<Edge>>,
    starts: BTreeMap<u32, i64>,
    actions: u16,
    horizon: u32,
}

/// Counts one of these so many times more; what is counted no more is not there.
fn count<K: Ord + Copy>(counts: &mut BTreeMap<K, i64>, what: K, by: i64) {
    let held = counts.entry(what).or_default();
    *held += by;
    if *held == 0 {
        counts.remove(&what);
    }
}

impl Model {
    /// Nothing counted yet.
    pub fn new(shape: &Shape, lens: Lens, grain: Grain) -> Model {
        Model {
            lens,
            grain,
            symbols: BTreeMap::new(),
            observations: Vec::new(),
            states: BTreeMap::new(),
            keys: Vec::new(),
            edges: Vec::new(),
            starts: BTreeMap::new(),
            actions: shape.actions,
            horizon: shape.horizon,
        }
    }

    /// Counts the log; none when there are too many states.
    pub fn of(shape: &Shape, lens: Lens, grain: Grain, episodes: &[&Episode]) -> Option<Model> {
        let mut model = Model::new(shape, lens, grain);
        episodes.iter().all(|episode| model.add(episode)).then_some(model)
    }

    /// Counts one more episode; false when there are too many states, and then nothing may be asked any more.
    #[must_use]
    pub fn add(&mut self, episode: &Episode) -> bool {
        self.book(episode, 1)
    }

    /// An episode that was counted is none any more.
    pub fn take_out(&mut self, episode: &Episode) {
        let is_known = self.book(episode, -1);
        debug_assert!(is_known, "what was counted has its states");
    }

    /// Counts an episode so many times more; what is then counted no more leaves no trace but its state.
    fn book(&mut self, episode: &Episode, by: i64) -> bool {
        let mut recalled = 0;
        let Some(mut state) = self.intern(&episode.steps, 0, recalled) else { return false };
        count(&mut self.starts, state, by);
        for (time, step) in episode.steps.iter().enumerate() {
            recalled = self.after(recalled, step);
            let next = if time + 1 < episode.steps.len() {
                match self.intern(&episode.steps, time + 1, recalled) {
                    Some(next) => next,
                    None => return false,
                }
            } else if time + 1 < self.horizon as usize {
                END
            } else {
                CUT
            };
            if step.is_told() {
                let edge = &mut self.edges[state as usize][usize::from(step.action)];
                edge.count += by;
                count(&mut edge.outcomes, (next, step.reward), by);
            }
            state = next;
        }
        true
    }

    /// What is recalled after one more step.
    fn after(&self, recalled: u32, step: &Step) -> u32 {
        self.lens.after(recalled, &self.grain.look(&step.observation), step.action)
    }

    fn intern(&mut self, steps: &[Step], time: usize, recalled: u32) -> Option<u32> {
        let number = self.symbols.len() as u32;
        let seen = self.grain.look(&steps[time].observation);
        let symbol = *self.symbols.entry(seen).or_insert(number);
        if symbol == number {
            self.observations.push(seen);
        }
        let key = self.key(steps, time, (symbol, recalled));
        if let Some(state) = self.states.get(&key) {
            return Some(*state);
        }
        let state = self.keys.len() as u32;
        if self.states_max() <= self.keys.len() {
            return None;
        }
        self.keys.push(key.clone());
        self.states.insert(key, state);
        self.edges.push(vec![Edge::default(); usize::from(self.actions)]);
        Some(state)
    }

    fn states_max(&self) -> usize {
        let rows = usize::from(self.actions) * (self.horizon as usize).clamp(1, STEPS_MAX);
        (PLAN_WORK_MAX / rows).clamp(STATES_FREE, STATES_MAX)
    }

    /// The key of a state from the steps before it, its symbol and what is recalled.
    fn key(&self, past: &[Step], time: usize, (symbol, recalled): (u32, u32)) -> Vec<u32> {
        let history = match self.lens {
            Lens::Recalled(_) => return vec![symbol, recalled],
            Lens::Past(history) => history,
        };
        let mut key = vec![symbol];
        for back in 1..=history {
            match time.checked_sub(back).map(|earlier| &past[earlier]) {
                Some(step) => {
                    let seen = self.symbols.get(&self.grain.look(&step.observation)).copied();
                    key.extend([u32::from(step.action), seen.unwrap_or(BEFORE_START)]);
                }
                None => key.extend([BEFORE_START; 2]),
            }
        }
        key
    }

    /// The state in which an episode is after these steps; none if it was never seen.
    pub fn find(&self, past: &[Step], observation: &Bits) -> Option<u32> {
        let symbol = *self.symbols.get(&self.grain.look(observation))?;
        let recalled = match self.lens {
            Lens::Past(_) => 0,
            Lens::Recalled(_) => past.iter().fold(0, |recalled, step| self.after(recalled, step)),
        };
        self.states.get(&self.key(past, past.len(), (symbol, recalled))).copied()
    }

    /// How much of the past counts.
    pub fn lens(&self) -> &Lens {
        &self.lens
    }

    /// How finely it looks.
    pub fn grain(&self) -> Grain {
        self.grain
    }

    /// Per state what every action brought.
    pub fn edges(&self) -> &[Vec<Edge>] {
        &self.edges
    }

    /// First states, and how often.
    pub fn starts(&self) -> &BTreeMap<u32, i64> {
        &self.starts
    }

    /// The keys of the states: the present symbol, then what is recalled, or back in time action and symbol.
    pub fn keys(&self) -> &[Vec<u32>] {
        &self.keys
    }

    /// The observation of every symbol.
    pub fn observations(&self) -> &[Bits] {
        &self.observations
    }

    /// What is seen in a state.
    pub fn observation(&self, state: u32) -> &Bits {
        &self.observations[self.keys[state as usize][0] as usize]
    }

    /// How often any pair of state and action was tried.
    pub fn tries(&self) -> i64 {
        self.edges.iter().flatten().map(|edge| edge.count).sum()
    }

    /// Whether hardly any pair of state and action was tried often.
    pub fn is_thin(&self) -> bool {
        self.tries() < (TRIES_FEW * self.pairs()) as i64
    }

    /// Whether pairs are too many to try them all, and nothing but the observation tells states apart.
    pub fn is_crowded(&self) -> bool {
        PAIRS_MANY <= self.pairs() && self.lens == Lens::default() && self.is_thin()
    }

    fn pairs(&self) -> usize {
        self.keys.len() * usize::from(self.actions)
    }

    /// How far apart the rewards seen so far lie.
    pub fn reward_span(&self) -> i64 {
        let rewards = || self.edges.iter().flatten().flat_map(|edge| edge.outcomes.keys().map(|key| key.1));
        i64::from(rewards().max().unwrap_or(0)) - i64::from(rewards().min().unwrap_or(0))
    }

    /// Actions are below this.
    pub fn actions(&self) -> u16 {
        self.actions
    }

    /// Steps of an episode at most.
    pub fn horizon(&self) -> u32 {
        self.horizon
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u16(self.actions);
        writer.u32(self.horizon);
        if !self.grain.is_full() {
            writer.u8(GRAINED);
            self.grain.encode(writer);
        }
        self.lens.encode(writer);
        writer.length(self.observations.len());
        self.observations.iter().flat_map(|seen| seen.0).for_each(|word| writer.u64(word));
        writer.length(self.keys.len());
        self.keys.iter().flatten().for_each(|part| writer.u32(*part));
        for edge in self.edges.iter().flatten() {
            writer.length(edge.outcomes.len());
            for ((next, reward), count) in &edge.outcomes {
                writer.u32(*next);
                writer.i32(*reward);
                writer.i64(*count);
            }
        }
        writer.length(self.starts.len());
        for (state, count) in &self.starts {
            writer.u32(*state);
            writer.i64(*count);
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Model, DecodeError> {
        let (actions, horizon) = (reader.u16()?, reader.u32()?);
        if actions == 0 || ACTIONS_MAX < usize::from(actions) {
            return Err(reader.error("a model out of bounds"));
        }
        let (grain, first) = match reader.u8()? {
            GRAINED => (Grain::decode(reader)?, reader.u8()?),
            first => (Grain::FULL, first),
        };
        let lens = Lens::decode(first, actions, reader)?;
        let count = reader.length(8 * OBSERVATION_WORDS)?;
        let mut observations = vec![Bits::ZERO; count];
        for word in observations.iter_mut().flat_map(|seen| &mut seen.0) {
            *word = reader.u64()?;
        }
        let symbols: BTreeMap<Bits, u32> = observations.iter().copied().zip(0..).collect();
        let states = reader.length(4)?;
        if STATES_MAX < states || symbols.len() != observations.len() {
            return Err(reader.error("a model with too many states, or an observation twice"));
        }
        let within = |place: usize, part: u32| match (place, &lens) {
            (0, _) => (part as usize) < count,
            (_, Lens::Recalled(recall)) => (part as usize) < recall.states(),
            _ if part == BEFORE_START => true,
            (place, _) if place % 2 == 1 => part < u32::from(actions),
            _ => (part as usize) < count,
        };
        let mut keys = Vec::with_capacity(states);
        for _ in 0..states {
            let key = (0..1 + lens.parts()).map(|_| reader.u32()).collect::<Result<Vec<u32>, _>>()?;
            if !key.iter().enumerate().all(|(place, part)| within(place, *part)) {
                return Err(reader.error("a state of nothing that was seen"));
            }
            keys.push(key);
        }
        let numbered: BTreeMap<Vec<u32>, u32> = keys.iter().cloned().zip(0..).collect();
        let mut edges = Vec::with_capacity(states);
        for _ in 0..states {
            let row = (0..actions).map(|_| Edge::decode(reader, states)).collect::<Result<Vec<Edge>, _>>()?;
            edges.push(row);
        }
        let mut starts = BTreeMap::new();
        for _ in 0..reader.length(12)? {
            let (state, count) = (reader.u32()?, reader.i64()?);
            if states <= state as usize || !(1..=COUNT_MAX).contains(&count) {
                return Err(reader.error("a start out of bounds"));
            }
            starts.insert(state, count);
        }
        if numbered.len() != keys.len() {
            return Err(reader.error("a state twice"));
        }
        Ok(Model {
            lens,
            grain,
            symbols,
            observations,
            states: numbered,
            keys,
            edges,
            starts,
            actions,
            horizon,
        })
    }
}

impl Edge {
    fn decode(reader: &mut Reader<'_>, states: usize) -> Result<Edge, DecodeError> {
        let mut edge = Edge::default();
        for _ in 0..reader.length(16)? {
            let (next, reward, count) = (reader.u32()?, reader.i32()?, reader.i64()?);
            let known = (next as usize) < states || next == CUT || next == END;
            if !known || !(1..=COUNT_MAX).contains(&count) || COUNT_MAX < edge.count {
                return Err(reader.error("an outcome out of bounds"));
            }
            edge.count += count;
            edge.outcomes.insert((next, reward), count);
        }
        Ok(edge)
    }
}
