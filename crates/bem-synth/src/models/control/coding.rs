//! The log as a code: what rewards and next observations take to say, one after the other, when a machine's state is known.
//!
//! For every state, observation and action the outcomes so far say how long the next one is. A state that tells nothing
//! makes the code longer, because everything has to be learned once more in it.
//! Must not know games. Clauses: SCC-2.

use super::recall::RECALL_SYMBOLS_MAX;
use crate::experience::Episode;
use crate::samples::Work;
use bem_base::environment::{Bits, Shape};
use bem_base::fixed::Fixed;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of observation and action at most.
const PAIRS_MAX: usize = 192;
/// Steps of the log that codes are measured on, at most.
const STEPS_MAX: usize = 32_000;
/// Fractional bits of a code length in natural units.
pub(super) const LENGTH_BITS: u32 = 16;
/// A first look takes one episode in so many.
const GLANCE: usize = 4;
/// Classes of rewards that are told apart at most.
const REWARDS_MAX: usize = 8;
/// Steps of an episode at most: a state is found by going through all steps before.
const HORIZON_MAX: u32 = 512;
/// What is seen after the last step that an episode may have: nobody knows.
const UNKNOWN: u16 = u16::MAX;

/// How often each outcome came: rewards first, then next observations.
type Outcomes = BTreeMap<(usize, u16), usize>;

/// The log in small numbers.
pub(super) struct Log {
    pub(super) observations: Vec<Bits>,
    pub(super) actions: usize,
    /// Per step the pair of observation and action, and the classes of the reward and of what is seen next.
    pub(super) steps: Vec<[u16; 3]>,
    /// Where episodes end. The first of them are a sample of all times.
    pub(super) ends: Vec<usize>,
    /// Per pair where its counters begin, of rewards and of next observations, and how many there are of each.
    counters: Vec<[(usize, usize); 2]>,
    width: usize,
    coder: Coder,
}

/// What counts take to say.
pub(super) struct Coder {
    /// Logarithms of factorials.
    factorials: Vec<i64>,
}

impl Coder {
    /// For counts and kinds of outcomes that together stay below this number.
    pub(super) fn new(largest: usize) -> Coder {
        let (mut sum, mut factorials) = (0, Vec::with_capacity(largest));
        for number in 0..largest as u64 {
            sum += Fixed::ln_count_floor(number.max(1)).to_raw() >> (32 - LENGTH_BITS);
            factorials.push(sum);
        }
        Coder { factorials }
    }

    /// What these counts of one of so many outcomes take to say, one after the other.
    pub(super) fn cost(&self, outcomes: usize, counts: impl Iterator<Item = usize>) -> i64 {
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
}

/// One part of a machine on trial: the next state at `state * pairs + pair`.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) next: Vec<u8>,
    pub(super) states: usize,
    /// Whether it is a tally: it stays one, and is neither divided nor bent.
    pub(super) is_tally: bool,
}

/// A machine on trial, and what the code takes with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Trial {
    pub(super) parts: Vec<Part>,
    pub(super) length: i64,
}

impl Trial {
    /// States of all parts together.
    pub(super) fn states(&self) -> usize {
        self.parts.iter().map(|part| part.states).product()
    }
}

/// How much of the log is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// One part in so many as [`GLANCE`] says.
    Glance,
    Whole,
}

/// How much shorter the code becomes when the last observations and own actions are known, in the same units.
pub fn gain_of_past(shape: &Shape, episodes: &[&Episode], history: usize) -> Option<i64> {
    let log = Log::of(shape, episodes)?;
    let plain = log.measure(&Trial::default(), Look::Whole, &mut Work::new(u64::MAX))?;
    let mut keys: Vec<Vec<u16>> = Vec::with_capacity(log.steps.len());
    let mut begin = 0;
    for end in &log.ends {
        for time in begin..*end {
            let past = (1..=history).map(|back| match time.checked_sub(back) {
                Some(earlier) if begin <= earlier => log.steps[earlier][0],
                _ => UNKNOWN,
            });
            keys.push(past.collect());
        }
        begin = *end;
    }
    let mut cells: BTreeMap<(&[u16], u16), Outcomes> = BTreeMap::new();
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
            length += log.coder.cost(log.counters[usize::from(*pair)][kind].1, counts);
        }
    }
    Some(plain - length)
}

impl Log {
    pub(super) fn of(shape: &Shape, episodes: &[&Episode]) -> Option<Log> {
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
                // What never came is a class of its own, whatever was done.
                let class = classes.get(&step.reward).copied().filter(|_| step.is_told());
                steps.push([pair, class.unwrap_or(classes.len() as u16), next]);
            }
            ends.push(steps.len());
        }
        let mut log =
            Log { observations, actions, steps, ends, counters: Vec::new(), width: 0, coder: Coder::new(0) };
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
        self.coder = Coder::new(self.steps.len() + self.width + 2);
    }

    pub(super) fn pairs(&self) -> usize {
        self.observations.len() * self.actions
    }

    /// Runs a machine over the log: what the code takes; none when the means are spent.
    pub(super) fn measure(&self, trial: &Trial, look: Look, work: &mut Work) -> Option<i64> {
        let ends = self.ends(look);
        let (states, pairs) = (trial.states(), self.pairs());
        let steps = ends.last().copied().unwrap_or(0);
        if !work
            .spend(((3 + trial.parts.len()) * steps + (3 + trial.parts.len()) * states * self.width) as u64)
        {
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
        let sizes: Vec<usize> = trial.parts.iter().map(|part| part.states).collect();
        Some(self.length_of(&counts, &sizes))
    }

    /// Where the episodes end that are looked at.
    pub(super) fn ends(&self, look: Look) -> &[usize] {
        match look {
            Look::Glance => &self.ends[..self.ends.len().div_ceil(GLANCE)],
            Look::Whole => &self.ends,
        }
    }

    /// Counters per state.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The counters of a step's reward and of what is seen next, the largest number where that is not known.
    pub(super) fn counters_of(&self, [pair, reward, next]: &[u16; 3]) -> [u32; 2] {
        let [rewards, nexts] = &self.counters[usize::from(*pair)];
        let next = if *next == UNKNOWN { u32::MAX } else { nexts.0 as u32 + u32::from(*next) };
        [rewards.0 as u32 + u32::from(*reward), next]
    }

    /// What the code takes with these counters, state by state; states are numbered by those of parts with these sizes, the
    /// first part fastest.
    ///
    /// A part may tell much after one action and nothing after another. So for every pair it is said once whether all parts
    /// count, all but one, or none: what learns nothing from a part need not be learned once more in each of its states.
    pub(super) fn length_of(&self, counts: &[u32], sizes: &[usize]) -> i64 {
        let (mut length, states) = (0, sizes.iter().product::<usize>());
        let places = || self.counters.iter().flatten().filter(|(_, outcomes)| 1 < *outcomes);
        let ways = sizes.len() + 1 + usize::from(1 < sizes.len());
        // Where there is a single place, parts that do not count for it count for nothing.
        let saying = if sizes.is_empty() || places().count() < 2 { 0 } else { natural_log(ways) };
        let mut sums = Vec::new();
        for (place, outcomes) in places() {
            let row = |state: usize| &counts[state * self.width + place..][..*outcomes];
            let costs = |row: &[u32]| self.coder.cost(*outcomes, row.iter().map(|count| *count as usize));
            let mut best: i64 = (0..states).map(|state| costs(row(state))).sum();
            let mut inner = 1;
            // Without the part whose states are this far apart; then without any, which is the same where there is one.
            let mut without = |inner: usize, size: usize| {
                let mut sum = 0;
                for outer in (0..states).step_by(inner * size) {
                    for first in outer..outer + inner {
                        sums.clear();
                        sums.resize(*outcomes, 0u32);
                        for state in (first..).step_by(inner).take(size) {
                            sums.iter_mut().zip(row(state)).for_each(|(sum, count)| *sum += count);
                        }
                        sum += costs(&sums);
                    }
                }
                best = best.min(sum);
            };
            for size in sizes {
                without(inner, *size);
                inner *= size;
            }
            if 1 < sizes.len() {
                without(1, states);
            }
            length += best + saying;
        }
        length
    }
}

/// The natural logarithm of a number of choices, in units of a code length.
pub(super) fn natural_log(choices: usize) -> i64 {
    Fixed::ln_count_floor(choices.max(1) as u64).to_raw() >> (32 - LENGTH_BITS)
}

/// Rewards in few classes: each its own where there are few, by rank where there are many.
pub(super) fn reward_classes(episodes: &[&Episode]) -> BTreeMap<i32, u16> {
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for step in episodes.iter().flat_map(|episode| &episode.steps).filter(|step| step.is_told()) {
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
