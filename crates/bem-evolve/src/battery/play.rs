//! MACRO in time in the laboratory: what a sequence of experts did, as a counter, right and wrong.
//! Clauses: SCC-2, SCC-3.

use super::laboratory::{ACTIONS, EDITORS, OBSERVATION_BITS, observation};
use super::spoil::free_slot;
use crate::patch::{Change, Example, ExampleStep, PLAY_STEPS_MAX};
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};
use bem_synth::function::build_word_table;
use bem_synth::policy::{Policy, PolicyState};
use std::collections::BTreeMap;

/// Experts that look at observations and their own memory only: two that remember nothing and one that does.
pub(super) const PLAYERS: u8 = 3;
/// Their slots.
const FIRST: u8 = EDITORS + 1;
const SECOND: u8 = FIRST + 1;
const REMEMBERING: u8 = FIRST + 2;
/// Bits of the counter, and so the longest sequence.
const COUNTER_BITS: usize = 2;
/// Observations that there are.
const SEEN: u64 = 1 << OBSERVATION_BITS;

/// One of the experts that play; all of them take two actions at least.
pub(super) fn player(number: u8) -> Policy {
    let seen = usize::from(OBSERVATION_BITS);
    let memory_bits = usize::from(number + 1 == PLAYERS);
    let mut builder = Builder::new(seen + memory_bits);
    let (action, memory) = match number {
        0 => {
            let second = builder.and_not(Signal::input(1), Signal::input(0));
            ([Signal::input(0), second], Vec::new())
        }
        1 => ([Signal::FALSE, Signal::input(4)], Vec::new()),
        _ => {
            let sum = builder.xor(Signal::input(2), Signal::input(seen));
            ([sum, Signal::FALSE], vec![sum])
        }
    };
    Policy::close(builder, seen, ACTIONS, &action, &memory).expect("a few gates")
}

/// What the player in a slot does next, and its memory then.
fn act(slot: u8, state: &PolicyState, seen: u64) -> (u16, PolicyState) {
    let mut next = state.clone();
    (next.act(&player(slot - FIRST), &observation(seen)), next)
}

/// A sequence of experts, what it does, and episodes in which it did that.
pub(super) struct Recital {
    sequence: Vec<u8>,
    actions: Vec<u16>,
    examples: Vec<Example>,
}

impl Recital {
    /// A random one.
    pub(super) fn draw(prng: &mut Prng) -> Recital {
        let length = 2 + prng.below((1 << COUNTER_BITS) - 1) as usize;
        // Who remembers plays alone.
        let sequence: Vec<u8> = match prng.below(3) {
            0 => vec![REMEMBERING; length],
            _ => (0..length).map(|_| if prng.bit() { FIRST } else { SECOND }).collect(),
        };
        let mut recital = Recital { sequence, actions: Vec::new(), examples: Vec::new() };
        // The first episode decides what is done, all others are its beginnings.
        for _ in 0..1 + prng.below(4) {
            let steps =
                if recital.examples.is_empty() { length } else { 1 + prng.below(length as u64) as usize };
            let example = recital.episode(steps, prng);
            recital.examples.push(example);
        }
        recital
    }

    fn episode(&mut self, length: usize, prng: &mut Prng) -> Example {
        let mut states: BTreeMap<u8, PolicyState> =
            self.sequence.iter().map(|slot| (*slot, PolicyState::new(&player(slot - FIRST)))).collect();
        let mut steps = Vec::with_capacity(length);
        for (time, slot) in self.sequence.iter().take(length).enumerate() {
            let (seen, action, next) = loop {
                let seen = prng.below(SEEN);
                let (action, next) = act(*slot, &states[slot], seen);
                if self.actions.get(time).is_none_or(|decided| *decided == action) {
                    break (seen, action, next);
                }
            };
            if self.actions.len() == time {
                self.actions.push(action);
            }
            states.insert(*slot, next);
            steps.push(ExampleStep { observation: observation(seen), wanted: Some(action) });
        }
        Example { steps }
    }

    /// The actions of the sequence by a counter, whatever is seen.
    fn counted(&self) -> Policy {
        let seen_bits = usize::from(OBSERVATION_BITS);
        let (mut actions, mut next) = (BTreeMap::new(), BTreeMap::new());
        for row in 0..SEEN << COUNTER_BITS {
            let count = row / SEEN;
            actions.insert(row, u64::from(self.actions.get(count as usize).copied().unwrap_or(0)));
            next.insert(row, (count + 1) % (1 << COUNTER_BITS));
        }
        let mut builder = Builder::new(seen_bits + COUNTER_BITS);
        let inputs: Vec<Signal> = (0..seen_bits + COUNTER_BITS).map(Signal::input).collect();
        let action = build_word_table(&mut builder, &inputs, &actions, 2);
        let memory = build_word_table(&mut builder, &inputs, &next, COUNTER_BITS);
        Policy::close(builder, seen_bits, ACTIONS, &action, &memory).expect("the table is small")
    }

    fn with(self, policy: Policy) -> Change {
        Change::Play { sequence: self.sequence, policy, examples: self.examples }
    }

    /// The macro.
    pub(super) fn into_change(self) -> Change {
        let policy = self.counted();
        self.with(policy)
    }

    /// The macro with claims that are not what the sequence did; none if by chance they are.
    pub(super) fn into_false_change(mut self, prng: &mut Prng) -> Option<Change> {
        let time = prng.below(self.sequence.len() as u64) as usize;
        let other = (self.actions[time] + 1 + prng.below(u64::from(ACTIONS) - 1) as u16) % ACTIONS;
        let right = self.counted();
        match prng.below(6) {
            // A claim that the macro does not keep.
            0 => self.examples[0].steps[time].wanted = Some(other),
            // The macro goes another way than the sequence, and claims just that.
            1 => {
                self.actions[time] = other;
                for example in &mut self.examples {
                    example.steps.iter_mut().skip(time).take(1).for_each(|step| step.wanted = Some(other));
                }
                let policy = self.counted();
                return Some(self.with(policy));
            }
            // Another sequence, which does something else.
            2 => {
                let slot = [SECOND, FIRST][usize::from(self.sequence[time] - FIRST).min(1)];
                let seen = self.examples[0].steps[time].observation.field(0, usize::from(OBSERVATION_BITS));
                let (action, _) = act(slot, &PolicyState::new(&player(slot - FIRST)), seen);
                (action != self.actions[time]).then_some(())?;
                self.sequence[time] = slot;
            }
            3 => self.examples.clear(),
            4 => self.examples[0].steps[time].wanted = None,
            // Who remembers is followed by somebody who does not, or follows him.
            _ => {
                self.sequence[0] = FIRST;
                self.sequence[1] = REMEMBERING;
            }
        }
        Some(self.with(right))
    }
}

/// A sequence that is too short, too long, or names slots that cannot play.
pub(super) fn exceed_sequence(sequence: &mut Vec<u8>, prng: &mut Prng) {
    let (length, last) = (sequence.len() as u64, sequence[sequence.len() - 1]);
    let place = prng.below(length) as usize;
    match prng.below(4) {
        // The first claimed episode is as long as the sequence was.
        0 => sequence.truncate(1 + prng.below(length - 1) as usize),
        1 => sequence.resize(PLAY_STEPS_MAX + 1 + prng.below(100) as usize, last),
        2 => sequence[place] = free_slot(prng),
        // An expert that works on the action that another one left.
        _ => sequence[place] = 1 + prng.below(u64::from(EDITORS)) as u8,
    }
}
