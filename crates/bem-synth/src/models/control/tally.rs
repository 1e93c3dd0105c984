//! A part of a recalling machine that begins as a tally: it goes up on some events, down on others, and stays at its ends.
//!
//! Evidence that adds up slowly is not found by dividing one state after the other, because no single division tells
//! enough. A tally is the whole scale at once. What moves it is an event, alone or in one state of what is recalled already,
//! or after one of the own actions: what an action brought is seen a step later. The search begins with the
//! events whose count tells most, pairs them, and then changes what single events do; the size comes last. All of it is
//! chosen by the length of the code ([`super::coding`]). Must not know games. Clauses: SCC-2.

use super::coding::{Log, Look, Part, Trial, natural_log};
use super::memory_search::MARGIN;
use super::recall::RECALL_STATES_MAX;
use crate::samples::Work;

/// Positions of a tally while its events are chosen.
const SIZE_FIRST: usize = 5;
/// Positions that are tried in the end.
const SIZES: [usize; 7] = [3, 4, 5, 6, 7, 8, 9];
/// Events that are counted one by one at first.
const EVENTS_MAX: usize = 384;
/// Of these, so many are paired and changed.
const EVENTS_KEPT: usize = 16;
/// Pairs whose other events are changed before the best is taken.
const PAIRS_KEPT: usize = 2;
/// Rounds over all events.
const ROUNDS_MAX: usize = 2;
/// Word operations for the tallies of one machine.
pub(super) const TALLY_WORK: u64 = 80_000_000;

/// What an event does to a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Stay,
    Up,
    Down,
    /// Back to where an episode begins.
    Reset,
}

/// A tally on trial.
#[derive(Clone)]
struct Tally<'c> {
    /// What the tally knows beside the step, and carries along.
    context: &'c Part,
    /// The move at `state of the context * pairs + pair`.
    moves: Vec<Move>,
    size: usize,
}

impl Tally<'_> {
    /// Where an episode begins: the lowest position of a tally that never goes down, and else the middle one.
    fn start(&self) -> usize {
        if self.moves.contains(&Move::Down) { self.size / 2 } else { 0 }
    }

    /// The position after a move.
    fn moved(&self, position: usize, start: usize, by: Move) -> usize {
        match by {
            Move::Stay => position,
            Move::Up => (position + 1).min(self.size - 1),
            Move::Down => position.saturating_sub(1),
            Move::Reset => start,
        }
    }

    /// The tally and its context as one part, in which state zero is where an episode begins.
    fn part(&self, pairs: usize) -> Part {
        let start = self.start();
        let mut next = Vec::with_capacity(self.context.states * self.size * pairs);
        for row in 0..self.context.states * self.size {
            let (context, position) = (row / self.size, (row % self.size + start) % self.size);
            for place in context * pairs..(context + 1) * pairs {
                let moved = self.moved(position, start, self.moves[place]);
                let target = (moved + self.size - start) % self.size;
                next.push((usize::from(self.context.next[place]) * self.size + target) as u8);
            }
        }
        Part { next, states: self.context.states * self.size, is_tally: true }
    }

    fn set(&mut self, event: &[usize], to: Move) {
        event.iter().for_each(|place| self.moves[*place] = to);
    }
}

/// What a tally may know beside the step.
struct Context {
    part: Part,
    /// The parts that it takes the place of are gone; else it stands beside them.
    is_whole: bool,
}

/// A step of the log as a tally meets it.
struct Met {
    /// The place among the moves.
    place: u32,
    /// The state of everything but the tally.
    state: u32,
    /// Counters of the reward and, where it is known, of what is seen next.
    counters: [u32; 2],
}

/// One search for a tally over one context.
struct TallySearch<'s> {
    log: &'s Log,
    /// The parts beside the tally.
    beside: &'s [Part],
    context: &'s Part,
    /// States of everything but the tally.
    states: usize,
    met: Vec<Met>,
}

impl Log {
    /// The held machine with the best tally, its size and events chosen; with what it takes to say what was chosen. None
    /// if nothing is gained.
    pub(super) fn tally(&self, held: &Trial, events: &[Vec<usize>], work: &mut Work) -> Option<(Trial, i64)> {
        let mut best: Option<(Trial, i64)> = None;
        for Context { part, is_whole } in self.contexts(held) {
            let beside = if is_whole { &[] } else { held.parts.as_slice() };
            let states = beside.iter().map(|part| part.states).product::<usize>() * part.states;
            if RECALL_STATES_MAX < SIZES[0] * states || work.left() == 0 {
                continue;
            }
            let search = TallySearch::new(self, beside, &part);
            let Some((trial, described)) = search.best(events, work) else { continue };
            let leads = |(other, cost): &(Trial, i64)| trial.length + described < other.length + cost;
            if trial.length + described < held.length && best.as_ref().is_none_or(leads) {
                best = Some((trial, described));
            }
        }
        best
    }

    /// Nothing, the last own action, all that is recalled already, and both.
    fn contexts(&self, held: &Trial) -> Vec<Context> {
        let pairs = self.pairs();
        let last = Part {
            next: (0..self.actions * pairs).map(|place| (place % pairs % self.actions) as u8).collect(),
            states: self.actions,
            is_tally: false,
        };
        let nothing = Part { next: vec![0; pairs], states: 1, is_tally: false };
        let mut list =
            vec![Context { part: nothing, is_whole: false }, Context { part: last.clone(), is_whole: false }];
        if !held.parts.is_empty() {
            let whole = self.together(&held.parts).trimmed(pairs);
            if whole.states * self.actions <= usize::from(u8::MAX) {
                let both = self.together(&[whole.clone(), last]).trimmed(pairs);
                if both.states != whole.states {
                    list.push(Context { part: both, is_whole: true });
                }
            }
            list.push(Context { part: whole, is_whole: true });
        }
        list
    }
}

impl<'s> TallySearch<'s> {
    /// Runs everything but the tally over the log, once for all tallies.
    fn new(log: &'s Log, beside: &'s [Part], context: &'s Part) -> TallySearch<'s> {
        let pairs = log.pairs();
        let parts: Vec<Part> = beside.iter().chain([context]).cloned().collect();
        let states: usize = parts.iter().map(|part| part.states).product();
        let whole = log.together(&parts);
        let mut met = Vec::with_capacity(log.steps.len());
        let mut begin = 0;
        for end in &log.ends {
            let mut state = 0;
            for step in &log.steps[begin..*end] {
                let pair = usize::from(step[0]);
                let place = state / (states / context.states) * pairs + pair;
                met.push(Met { place: place as u32, state: state as u32, counters: log.counters_of(step) });
                state = usize::from(whole.next[state * pairs + pair]);
            }
            begin = *end;
        }
        TallySearch { log, beside, context, states, met }
    }

    fn best(&self, events: &[Vec<usize>], work: &mut Work) -> Option<(Trial, i64)> {
        let size = SIZE_FIRST.min(self.room());
        let pairs = self.log.pairs();
        let plain =
            Tally { context: self.context, moves: vec![Move::Stay; self.context.states * pairs], size };
        let events = self.telling(&plain, self.events(events), work)?;
        let mut first: Vec<(i64, Tally<'_>)> = Vec::new();
        let mut choices = events.len();
        for (place, up) in events.iter().enumerate() {
            for down in &events[place + 1..] {
                if up.iter().any(|one| down.contains(one)) {
                    continue;
                }
                choices += 1;
                let mut tally = plain.clone();
                tally.set(up, Move::Up);
                tally.set(down, Move::Down);
                let length = self.measure(&tally, Look::Glance, work)?;
                keep(&mut first, PAIRS_KEPT, length, tally);
            }
        }
        if let Some(up) = events.first() {
            let mut tally = plain.clone();
            tally.set(up, Move::Up);
            first.push((0, tally));
        }
        let mut best: Option<(Trial, i64)> = None;
        for (_, mut tally) in first {
            let Some(changed) = self.change(&mut tally, &events, work) else { break };
            for size in SIZES.into_iter().filter(|size| *size <= self.room()) {
                tally.size = size;
                // Every position is one more state of which a plan must learn what follows.
                let described = natural_log(choices) + changed + MARGIN * (size - 1) as i64;
                let Some(length) = self.measure(&tally, Look::Whole, work) else { break };
                let leads = |(other, cost): &(Trial, i64)| length + described < other.length + cost;
                if best.as_ref().is_none_or(leads) {
                    best = Some((self.trial(&tally, length), described));
                }
            }
        }
        best
    }

    /// Positions for which there is room.
    fn room(&self) -> usize {
        RECALL_STATES_MAX / self.states
    }

    /// Events wherever the context is, and in each of its states.
    fn events(&self, plain: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let (states, pairs) = (self.context.states, self.log.pairs());
        let within = |event: &Vec<usize>, states: core::ops::Range<usize>| -> Vec<usize> {
            states.flat_map(|state| event.iter().map(move |pair| state * pairs + pair)).collect()
        };
        let mut list: Vec<Vec<usize>> = plain.iter().map(|event| within(event, 0..states)).collect();
        if 1 < states {
            for event in plain {
                list.extend((0..states).map(|state| within(event, state..state + 1)));
            }
        }
        list.truncate(EVENTS_MAX);
        list
    }

    /// The events whose counts tell most, the most telling first.
    fn telling(
        &self,
        plain: &Tally<'_>,
        events: Vec<Vec<usize>>,
        work: &mut Work,
    ) -> Option<Vec<Vec<usize>>> {
        let mut first = Vec::new();
        for event in events {
            let mut tally = plain.clone();
            tally.set(&event, Move::Up);
            let length = self.measure(&tally, Look::Glance, work)?;
            keep(&mut first, EVENTS_KEPT, length, event);
        }
        Some(first.into_iter().map(|(_, event)| event).collect())
    }

    /// Changes what single events do as long as the code gets shorter; what it takes to say which.
    fn change(&self, tally: &mut Tally<'_>, events: &[Vec<usize>], work: &mut Work) -> Option<i64> {
        let margin = MARGIN + natural_log(3 * events.len());
        let mut described = 0;
        let mut glance = self.measure(tally, Look::Glance, work)?;
        let mut length = self.measure(tally, Look::Whole, work)?;
        for _ in 0..ROUNDS_MAX {
            let before = described;
            for event in events {
                for to in [Move::Up, Move::Down, Move::Stay, Move::Reset] {
                    if event.iter().all(|place| tally.moves[*place] == to) {
                        continue;
                    }
                    let mut other = tally.clone();
                    other.set(event, to);
                    let seen = self.measure(&other, Look::Glance, work)?;
                    if glance <= seen {
                        continue;
                    }
                    let whole = self.measure(&other, Look::Whole, work)?;
                    if whole + margin < length {
                        (*tally, glance, length) = (other, seen, whole);
                        described += margin;
                    }
                }
            }
            if described == before {
                break;
            }
        }
        Some(described)
    }

    /// The machine with this tally.
    fn trial(&self, tally: &Tally<'_>, length: i64) -> Trial {
        let mut parts = self.beside.to_vec();
        parts.push(tally.part(self.log.pairs()));
        Trial { parts, length }
    }

    /// What the code takes with this tally; none when the means are spent.
    fn measure(&self, tally: &Tally<'_>, look: Look, work: &mut Work) -> Option<i64> {
        let ends = self.log.ends(look);
        let steps = ends.last().copied().unwrap_or(0);
        let (size, width) = (tally.size, self.log.width());
        if !work.spend((2 * steps + (4 + self.beside.len()) * self.states * size * width) as u64) {
            return None;
        }
        let start = tally.start();
        let mut counts = vec![0u32; self.states * size * width];
        let mut begin = 0;
        for end in ends {
            let mut position = start;
            for met in &self.met[begin..*end] {
                let base = (position * self.states + met.state as usize) * width;
                for counter in met.counters.iter().filter(|counter| **counter != u32::MAX) {
                    counts[base + *counter as usize] += 1;
                }
                position = tally.moved(position, start, tally.moves[met.place as usize]);
            }
            begin = *end;
        }
        let own = self.context.states * size;
        let sizes: Vec<usize> = self.beside.iter().map(|part| part.states).chain([own]).collect();
        Some(self.log.length_of(&counts, &sizes))
    }
}

/// Keeps the shortest few, the earlier first where two are alike.
fn keep<T>(first: &mut Vec<(i64, T)>, most: usize, length: i64, thing: T) {
    let place = first.partition_point(|(other, _)| *other <= length);
    if place < most {
        first.insert(place, (length, thing));
        first.truncate(most);
    }
}
