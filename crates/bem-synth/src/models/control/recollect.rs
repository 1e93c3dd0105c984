//! Looks for the machine whose states tell most about what follows: states are divided, flags added and edges bent one by
//! one, as long as rewards and next observations take fewer bits to say than before.
//!
//! The measure is the length of a code that learns as it goes: for every state, observation and action the outcomes so
//! far say how long the next one is. A state that tells nothing makes the code longer, because everything has to be
//! learned once more in it. The machine has parts that move side by side. A division sends the edges of one event to a new
//! state of one part, which is left like the old one, or stays itself wherever the old one did; a flag is a new part of two
//! states that remembers an event, for ever or for one step, or counts it modulo two. Then single edges are bent.

use super::recall::{RECALL_STATES_MAX, RECALL_SYMBOLS_MAX, Recall};
use crate::experience::Episode;
use crate::samples::Work;
use bem_base::environment::{Bits, OBSERVATION_WORDS, Shape};
use bem_base::fixed::Fixed;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of observation and action at most.
const PAIRS_MAX: usize = 192;
/// Steps of the log that codes are measured on, at most.
const STEPS_MAX: usize = 32_000;
/// Fractional bits of a code length in natural units.
const LENGTH_BITS: u32 = 16;
/// A first look takes one episode in so many.
const GLANCE: usize = 4;
/// Classes of rewards that are told apart at most.
const REWARDS_MAX: usize = 8;
/// What the choice of one edge must save beyond the number of choices there were.
const MARGIN: i64 = 4 << LENGTH_BITS;
/// Divisions whose edges are bent before the best is taken.
const DIVISIONS_KEPT: usize = 3;
/// Rounds over all edges.
const ROUNDS_MAX: usize = 4;
/// Steps of an episode at most: a state is found by going through all steps before.
const HORIZON_MAX: u32 = 512;
/// Word operations of one search.
pub const RECALL_WORK: u64 = 400_000_000;

/// Outcomes of one kind, as classes: what the log says of one step.
const UNKNOWN: u16 = u16::MAX;

/// The log in small numbers.
struct Log {
    observations: Vec<Bits>,
    actions: usize,
    /// Per step the pair of observation and action, and the classes of the reward and of what is seen next.
    steps: Vec<[u16; 3]>,
    /// Where episodes end. The first of them are a sample of all times.
    ends: Vec<usize>,
    /// Per pair where its counters begin, of rewards and of next observations, and how many there are of each.
    counters: Vec<[(usize, usize); 2]>,
    width: usize,
    /// Logarithms of factorials.
    factorials: Vec<i64>,
}

/// One part of a machine on trial: the next state at `state * pairs + pair`.
#[derive(Clone, Debug)]
struct Part {
    next: Vec<u8>,
    states: usize,
}

/// A machine on trial, and what the code takes with it.
#[derive(Clone, Debug, Default)]
struct Trial {
    parts: Vec<Part>,
    length: i64,
}

impl Trial {
    /// States of all parts together.
    fn states(&self) -> usize {
        self.parts.iter().map(|part| part.states).product()
    }
}

/// How much of the log is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// One part in so many as [`GLANCE`] says.
    Glance,
    Whole,
}

/// The best machine found and how much shorter it makes the code than no machine; none where it tells too little.
pub fn recollect(shape: &Shape, episodes: &[&Episode], work: &mut Work) -> Option<(Recall, i64)> {
    let log = Log::of(shape, episodes)?;
    let events = log.events();
    let mut held = Trial::default();
    held.length = log.measure(&held, Look::Whole, work)?;
    let (plain, mut described) = (held.length, 0);
    while let Some((better, said)) = log.grow(&held, &events, work) {
        described += said;
        held = better;
    }
    let gain = plain - held.length - described;
    (0 < gain && 1 < held.states()).then(|| (log.join(shape, &held), gain))
}

/// How much shorter the code becomes when the last observations and own actions are known, in the same units.
pub fn gain_of_past(shape: &Shape, episodes: &[&Episode], history: usize) -> Option<i64> {
    let log = Log::of(shape, episodes)?;
    let plain = log.measure(&Trial::default(), Look::Whole, &mut Work::new(u64::MAX))?;
    let mut cells: BTreeMap<(&[[u16; 3]], u16), BTreeMap<(usize, u16), usize>> = BTreeMap::new();
    let mut keys: Vec<Vec<[u16; 3]>> = Vec::with_capacity(log.steps.len());
    let mut begin = 0;
    for end in &log.ends {
        for time in begin..*end {
            let past = (1..=history).map(|back| match time.checked_sub(back) {
                Some(earlier) if begin <= earlier => [log.steps[earlier][0], 0, 0],
                _ => [UNKNOWN; 3],
            });
            keys.push(past.collect());
        }
        begin = *end;
    }
    for (key, step) in keys.iter().zip(&log.steps) {
        let cell = cells.entry((key, step[0])).or_default();
        for kind in 0..2 {
            if step[1 + kind] != UNKNOWN {
                *cell.entry((kind, step[1 + kind])).or_default() += 1;
            }
        }
    }
    let mut length = 0;
    for ((_, pair), cell) in &cells {
        for kind in 0..2 {
            let counts = cell.iter().filter(|((held, _), _)| *held == kind).map(|(_, count)| *count);
            length += log.cost(log.counters[usize::from(*pair)][kind].1, counts);
        }
    }
    Some(plain - length)
}

impl Log {
    fn of(shape: &Shape, episodes: &[&Episode]) -> Option<Log> {
        if HORIZON_MAX < shape.horizon {
            return None;
        }
        let mut symbols: BTreeSet<Bits> = BTreeSet::new();
        for step in episodes.iter().flat_map(|episode| &episode.steps) {
            symbols.insert(step.observation);
            if RECALL_SYMBOLS_MAX < symbols.len() {
                return None;
            }
        }
        let actions = usize::from(shape.actions);
        if PAIRS_MAX < symbols.len() * actions {
            return None;
        }
        let observations: Vec<Bits> = symbols.into_iter().collect();
        let classes = reward_classes(episodes);
        // Early play was drawn with equal chance and late play was not: the sample is of all times.
        let all: usize = episodes.iter().map(|episode| episode.steps.len()).sum();
        let stride = all.div_ceil(STEPS_MAX).max(1);
        let (mut steps, mut ends) = (Vec::new(), Vec::new());
        let sample: Vec<&Episode> = episodes.iter().copied().step_by(stride).collect();
        for episode in (0..GLANCE).flat_map(|first| sample.iter().skip(first).step_by(GLANCE)) {
            for (time, step) in episode.steps.iter().enumerate() {
                let number = |seen: &Bits| observations.binary_search(seen).map_or(0, |place| place as u16);
                let next = match episode.steps.get(time + 1) {
                    Some(then) => 1 + number(&then.observation),
                    None if time + 1 < shape.horizon as usize => 0,
                    None => UNKNOWN,
                };
                let pair = number(&step.observation) * shape.actions + step.action;
                steps.push([pair, classes[&step.reward], next]);
            }
            ends.push(steps.len());
        }
        let mut log = Log {
            observations,
            actions,
            steps,
            ends,
            counters: Vec::new(),
            width: 0,
            factorials: Vec::new(),
        };
        log.lay_out();
        Some(log)
    }

    /// Numbers the outcomes of every pair and gives each a counter.
    fn lay_out(&mut self) {
        let mut seen: Vec<[BTreeMap<u16, u16>; 2]> = vec![Default::default(); self.pairs()];
        for step in &mut self.steps {
            for kind in 0..2 {
                if step[1 + kind] != UNKNOWN {
                    let known = &mut seen[usize::from(step[0])][kind];
                    let number = known.len() as u16;
                    step[1 + kind] = *known.entry(step[1 + kind]).or_insert(number);
                }
            }
        }
        for kinds in &seen {
            let rewards = (self.width, kinds[0].len());
            let nexts = (rewards.0 + rewards.1, kinds[1].len());
            self.width = nexts.0 + nexts.1;
            self.counters.push([rewards, nexts]);
        }
        let (mut sum, largest) = (0, self.steps.len() + self.width + 2);
        for number in 0..largest as u64 {
            sum += Fixed::ln_count_floor(number.max(1)).to_raw() >> (32 - LENGTH_BITS);
            self.factorials.push(sum);
        }
    }

    fn pairs(&self) -> usize {
        self.observations.len() * self.actions
    }

    /// What these counts of one of so many outcomes take to say, one after the other.
    fn cost(&self, outcomes: usize, counts: impl Iterator<Item = usize>) -> i64 {
        if outcomes < 2 {
            return 0;
        }
        let (mut sum, mut known) = (0, 0);
        for count in counts {
            sum += count;
            known += self.factorials[count];
        }
        self.factorials[sum + outcomes - 1] - self.factorials[outcomes - 1] - known
    }

    /// Runs a machine over the log: what the code takes; none when the means are spent.
    fn measure(&self, trial: &Trial, look: Look, work: &mut Work) -> Option<i64> {
        let ends = match look {
            Look::Glance => &self.ends[..self.ends.len().div_ceil(GLANCE)],
            Look::Whole => &self.ends,
        };
        let (states, pairs) = (trial.states(), self.pairs());
        let steps = ends.last().copied().unwrap_or(0);
        if !work.spend(((3 + trial.parts.len()) * steps + 2 * states * self.width) as u64) {
            return None;
        }
        let mut counts = vec![0u32; states * self.width];
        let (mut begin, mut places) = (0, vec![0; trial.parts.len()]);
        for end in ends {
            places.fill(0);
            let mut state = 0;
            for [pair, reward, next] in &self.steps[begin..*end] {
                let [rewards, nexts] = &self.counters[usize::from(*pair)];
                let base = state * self.width;
                counts[base + rewards.0 + usize::from(*reward)] += 1;
                if *next != UNKNOWN {
                    counts[base + nexts.0 + usize::from(*next)] += 1;
                }
                state = 0;
                for (place, part) in places.iter_mut().zip(&trial.parts).rev() {
                    *place = usize::from(part.next[*place * pairs + usize::from(*pair)]);
                    state = state * part.states + *place;
                }
            }
            begin = *end;
        }
        let mut length = 0;
        for state in counts.chunks(self.width.max(1)) {
            for (place, outcomes) in self.counters.iter().flatten() {
                let counts = &state[*place..][..*outcomes];
                length += self.cost(*outcomes, counts.iter().map(|count| *count as usize));
            }
        }
        Some(length)
    }

    /// All parts as one machine.
    fn join(&self, shape: &Shape, trial: &Trial) -> Recall {
        let (states, pairs) = (trial.states(), self.pairs());
        let mut next = Vec::with_capacity(states * pairs);
        for state in 0..states {
            for pair in 0..pairs {
                let (mut rest, mut scale, mut target) = (state, 1, 0);
                for part in &trial.parts {
                    target += scale * usize::from(part.next[rest % part.states * pairs + pair]);
                    (rest, scale) = (rest / part.states, scale * part.states);
                }
                next.push(target as u8);
            }
        }
        Recall::new(&self.observations, shape.actions, states as u8, next)
    }

    /// Sets of pairs that may matter as one, the widest first: an action, a bit, an observation, a bit with an action, a
    /// single pair.
    fn events(&self) -> Vec<Vec<usize>> {
        let mut sets: Vec<Vec<usize>> = Vec::new();
        let mut add = |holds: &dyn Fn(&Bits, usize) -> bool| {
            let of = |pair: &usize| holds(&self.observations[pair / self.actions], pair % self.actions);
            let set: Vec<usize> = (0..self.pairs()).filter(of).collect();
            if !sets.contains(&set) && !set.is_empty() && set.len() < self.pairs() {
                sets.push(set);
            }
        };
        let differs = |bit: &usize| {
            self.observations.iter().any(|seen| seen.get(*bit) != self.observations[0].get(*bit))
        };
        let bits: Vec<usize> = (0..64 * OBSERVATION_WORDS).filter(differs).collect();
        let literals = || bits.iter().flat_map(|bit| [(*bit, false), (*bit, true)]);
        (0..self.actions).for_each(|wanted| add(&|_, action| action == wanted));
        literals().for_each(|(bit, value)| add(&|seen, _| seen.get(bit) == value));
        self.observations.iter().for_each(|wanted| add(&|seen, _| seen == wanted));
        for (bit, value) in literals() {
            (0..self.actions)
                .for_each(|wanted| add(&|seen, action| action == wanted && seen.get(bit) == value));
        }
        for wanted in &self.observations {
            (0..self.actions).for_each(|chosen| add(&|seen, action| action == chosen && seen == wanted));
        }
        sets
    }

    /// The best machine with one more state or flag, and what it takes to say what was chosen; none if nothing is gained.
    fn grow(&self, held: &Trial, events: &[Vec<usize>], work: &mut Work) -> Option<(Trial, i64)> {
        let glance = self.measure(held, Look::Glance, work)?;
        let mut first: Vec<Trial> = Vec::new();
        let candidates = self.candidates(held, events);
        let choices = natural_log(candidates.len());
        for mut trial in candidates {
            let Some(length) = self.measure(&trial, Look::Glance, work) else { break };
            trial.length = length;
            let place = first.partition_point(|other| other.length <= length);
            if place < DIVISIONS_KEPT && length < glance {
                first.insert(place, trial);
                first.truncate(DIVISIONS_KEPT);
            }
        }
        let mut best: Option<(Trial, i64)> = None;
        for mut trial in first {
            let Some(length) = self.measure(&trial, Look::Whole, work) else { break };
            trial.length = length;
            let described = choices + MARGIN + self.bend(&mut trial, events, work);
            let leads = |(other, cost): &(Trial, i64)| trial.length + described < other.length + cost;
            if trial.length + described < held.length && best.as_ref().is_none_or(leads) {
                best = Some((trial, described));
            }
        }
        best
    }

    /// All machines with one more state or flag.
    fn candidates(&self, held: &Trial, events: &[Vec<usize>]) -> Vec<Trial> {
        let (mut list, states, pairs) = (Vec::new(), held.states(), self.pairs());
        let mut with = |place: Option<usize>, part: Part| {
            let mut trial = held.clone();
            match place {
                Some(place) => trial.parts[place] = part,
                None => trial.parts.push(part),
            }
            list.push(trial);
        };
        for event in events {
            if 2 * states <= RECALL_STATES_MAX {
                for (set, again) in [(1, 1), (0, 1), (1, 0)] {
                    // Where the flag was down and where it was up: what the event makes of it, and what all else does.
                    let mut next = vec![0; pairs];
                    next.extend(vec![set; pairs]);
                    for pair in event {
                        (next[*pair], next[pairs + pair]) = (1, again);
                    }
                    with(None, Part { next, states: 2 });
                }
            }
            for (place, part) in held.parts.iter().enumerate() {
                if RECALL_STATES_MAX < states / part.states * (part.states + 1) {
                    continue;
                }
                for split in 0..part.states {
                    for stays in [true, false] {
                        if let Some(part) = part.divide(pairs, split, event, stays) {
                            with(Some(place), part);
                        }
                    }
                }
            }
        }
        list
    }

    /// Bends edges as long as the code gets shorter; what it takes to say which.
    fn bend(&self, trial: &mut Trial, events: &[Vec<usize>], work: &mut Work) -> i64 {
        let pairs = self.pairs();
        let squares: usize = trial.parts.iter().map(|part| part.states * part.states).sum();
        let margin = MARGIN + natural_log(events.len() * squares);
        let mut described = 0;
        let Some(mut glance) = self.measure(trial, Look::Glance, work) else { return 0 };
        for _ in 0..ROUNDS_MAX {
            let before = described;
            for event in events {
                for place in 0..trial.parts.len() {
                    let states = trial.parts[place].states;
                    for (state, target) in
                        (0..states).flat_map(|from| (0..states).map(move |to| (from, to as u8)))
                    {
                        let edges = || event.iter().map(|pair| state * pairs + pair);
                        if edges().all(|edge| trial.parts[place].next[edge] == target) {
                            continue;
                        }
                        let mut other = trial.clone();
                        edges().for_each(|edge| other.parts[place].next[edge] = target);
                        let Some(seen) = self.measure(&other, Look::Glance, work) else { return described };
                        if glance <= seen {
                            continue;
                        }
                        let Some(length) = self.measure(&other, Look::Whole, work) else { return described };
                        if length + margin < trial.length {
                            other.length = length;
                            *trial = other;
                            glance = seen;
                            described += margin;
                        }
                    }
                }
            }
            if described == before {
                break;
            }
        }
        described
    }
}

impl Part {
    /// One more state, to which the edges of an event lead that led to an old one; none if there are no such edges.
    fn divide(&self, pairs: usize, split: usize, event: &[usize], stays: bool) -> Option<Part> {
        let fresh = self.states as u8;
        let mut next = self.next.clone();
        let mut moved = false;
        for state in 0..self.states {
            for pair in event {
                let edge = &mut next[state * pairs + pair];
                if usize::from(*edge) == split {
                    *edge = fresh;
                    moved = true;
                }
            }
        }
        let row: Vec<u8> = next[split * pairs..][..pairs].to_vec();
        let target = |old: u8| if stays && usize::from(old) == split { fresh } else { old };
        next.extend(row.into_iter().map(target));
        moved.then_some(Part { next, states: self.states + 1 })
    }
}

/// The natural logarithm of a number of choices, in units of a code length.
fn natural_log(choices: usize) -> i64 {
    Fixed::ln_count_floor(choices.max(1) as u64).to_raw() >> (32 - LENGTH_BITS)
}

/// Rewards in few classes: each its own where there are few, by rank where there are many.
fn reward_classes(episodes: &[&Episode]) -> BTreeMap<i32, u16> {
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for step in episodes.iter().flat_map(|episode| &episode.steps) {
        *counts.entry(step.reward).or_default() += 1;
    }
    if counts.len() <= REWARDS_MAX {
        return counts.keys().copied().zip(0..).collect();
    }
    let all: usize = counts.values().sum();
    let mut below = 0;
    let class = |(reward, count): (&i32, &usize)| {
        let class = below * REWARDS_MAX / all;
        below += count;
        (*reward, class as u16)
    };
    counts.iter().map(class).collect()
}
