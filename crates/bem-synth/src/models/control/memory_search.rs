//! Looks for the machine whose states tell most about what follows: states are divided, flags added and edges bent one by
//! one, as long as rewards and next observations take fewer bits to say than before.
//!
//! The measure is the length of a code that learns as it goes ([`super::coding`]). The machine has parts that move side by
//! side. A division sends the edges of one event to a new state of one part, which is left like the old one, or stays itself
//! wherever the old one did; a flag is a new part of two states that remembers an event, for ever or for one step, or counts
//! it modulo two. Then single edges are bent. Must not know games. Clauses: SCC-2.

use super::coding::{LENGTH_BITS, Log, Look, Part, Trial, natural_log};
use super::recall::{RECALL_STATES_MAX, Recall};
use super::tally::TALLY_WORK;
use crate::experience::Episode;
use crate::samples::Work;
use bem_base::environment::{Bits, OBSERVATION_WORDS, Shape};

/// What the choice of one edge must save beyond the number of choices there were.
pub(super) const MARGIN: i64 = 4 << LENGTH_BITS;
/// Divisions whose edges are bent before the best is taken.
const DIVISIONS_KEPT: usize = 3;
/// Rounds over all edges.
const ROUNDS_MAX: usize = 4;
/// Word operations with which a machine grows that begins as a flag, and one that begins as a tally.
const GROWTH_WORK: [u64; 2] = [240_000_000, 80_000_000];
/// Word operations of one search.
pub const RECALL_WORK: u64 = GROWTH_WORK[0] + GROWTH_WORK[1] + 2 * TALLY_WORK;

/// What one machine may spend on growth, and on its tallies.
struct Means {
    growth: Work,
    tallies: Work,
}

/// The best machine found and how much shorter it makes the code than no machine; none where it tells too little.
///
/// There are two beginnings: a flag, and the tally that tells most.
pub fn find_memory(shape: &Shape, episodes: &[&Episode], work: &mut Work) -> Option<(Recall, i64)> {
    let log = Log::of(shape, episodes)?;
    let events = log.events();
    let mut nothing = Trial::default();
    nothing.length = log.measure(&nothing, Look::Whole, work)?;
    let mut best: Option<(i64, Trial)> = None;
    for (beginning, growth) in GROWTH_WORK.into_iter().enumerate() {
        let mut means = Means { growth: work.take(growth), tallies: work.take(TALLY_WORK) };
        let begun = match beginning {
            0 => log.grow(&nothing, &events, &mut means.growth),
            _ => log.tally(&nothing, &events, &mut means.tallies),
        };
        if let Some(begun) = begun {
            let (held, described) = log.complete(begun, &events, &mut means);
            let gain = nothing.length - held.length - described;
            if best.as_ref().is_none_or(|(other, _)| *other < gain) {
                best = Some((gain, held));
            }
        }
        work.put_back(means.growth);
        work.put_back(means.tallies);
    }
    let (gain, machine) = best.filter(|(gain, _)| 0 < *gain)?;
    Some((log.join(shape, &machine), gain))
}

impl Log {
    /// Grows a machine until nothing more is gained; with what it takes to say what was chosen.
    fn complete(
        &self,
        (mut held, mut described): (Trial, i64),
        events: &[Vec<usize>],
        means: &mut Means,
    ) -> (Trial, i64) {
        loop {
            let grown = self.grow(&held, events, &mut means.growth);
            let counted = self.tally(&held, events, &mut means.tallies);
            let machines = [grown, counted].into_iter().flatten();
            match machines.min_by_key(|(trial, said)| trial.length + said) {
                Some((better, said)) => (held, described) = (better, described + said),
                None => return (held, described),
            }
        }
    }

    /// All parts as one machine.
    fn join(&self, shape: &Shape, trial: &Trial) -> Recall {
        let Part { next, states, .. } = self.together(&trial.parts);
        Recall::new(&self.observations, shape.actions, states as u8, next)
    }

    /// Parts as one.
    pub(super) fn together(&self, parts: &[Part]) -> Part {
        let states = parts.iter().map(|part| part.states).product();
        let pairs = self.pairs();
        let mut next = Vec::with_capacity(states * pairs);
        for state in 0..states {
            for pair in 0..pairs {
                let (mut rest, mut scale, mut target) = (state, 1, 0);
                for part in parts {
                    target += scale * usize::from(part.next[rest % part.states * pairs + pair]);
                    (rest, scale) = (rest / part.states, scale * part.states);
                }
                next.push(target as u8);
            }
        }
        Part { next, states, is_tally: false }
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
                    with(None, Part { next, states: 2, is_tally: false });
                }
            }
            for (place, part) in held.parts.iter().enumerate() {
                if part.is_tally || RECALL_STATES_MAX < states / part.states * (part.states + 1) {
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
                    if trial.parts[place].is_tally {
                        continue;
                    }
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
    /// The same without states that it never comes to, in the order in which it comes to them.
    pub(super) fn trimmed(&self, pairs: usize) -> Part {
        let mut order = vec![0];
        let mut place = 0;
        while let Some(state) = order.get(place).copied() {
            for target in &self.next[usize::from(state) * pairs..][..pairs] {
                if !order.contains(target) {
                    order.push(*target);
                }
            }
            place += 1;
        }
        let number = |target: &u8| order.iter().position(|held| held == target).unwrap_or(0) as u8;
        let rows = order.iter().flat_map(|state| &self.next[usize::from(*state) * pairs..][..pairs]);
        Part { next: rows.map(number).collect(), states: order.len(), is_tally: false }
    }

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
        moved.then_some(Part { next, states: self.states + 1, is_tally: false })
    }
}
