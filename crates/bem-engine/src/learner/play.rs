//! MACRO in time: a sequence that the incumbent plays in every episode, played by a counter.
//!
//! Looked at are logged episodes that the incumbent played or would have played the same way. Where each of them is a
//! beginning of the longest one, what it sees makes no difference to what it does: a counter in the memory of an expert can
//! take its place. It is proposed if its circuit is smaller, and must win or tie its rollouts. Clauses: SCC-2, SCC-13.

use crate::learner::Learner;
use crate::learner::structure::LOG_STEPS_MAX;
use crate::parameters::queries;
use bem_base::environment::Shape;
use bem_circuit::netlist::{Builder, Signal};
use bem_evolve::patch::{Change, Example, ExampleStep, ExpectedEffects, PLAY_STEPS_MAX};
use bem_evolve::propose::{Proposal, shrink_thoroughly};
use bem_prover::{Budget, Specification, Synthesis, SynthesisOptions, synthesize};
use bem_synth::experience::Episode;
use bem_synth::function::build_word_table;
use bem_synth::policy::{Policy, action_bits};
use bem_synth::propose;
use bem_synth::samples::Queries;
use std::collections::BTreeMap;

/// Episodes of the incumbent that must have gone the same way.
const EPISODES_MIN: usize = 32;
/// Gates of a smallest circuit for one bit of the action.
const GATES_MAX: usize = 5;
/// Episodes that the patch claims, the newest: more would prove the same again.
const CLAIMED_MAX: usize = 16;

impl Learner {
    /// The incumbent's sequence as an expert of its own, where there is one and it is smaller.
    pub(super) fn propose_play(&self, slot: u8, is_settled: bool) -> Option<Proposal> {
        // A counter knows how many steps were taken.
        if !is_settled || self.shape.horizon == 1 || self.settings.config.stationary {
            return None;
        }
        let log = propose::recent(&self.experience, LOG_STEPS_MAX);
        let own: Vec<&Episode> = log.into_iter().filter(|episode| self.is_held_play(episode)).collect();
        let actions = common_sequence(&own)?;
        let policy = counted_play(&self.shape, &actions, queries(&self.settings.config))?;
        let gates = self.machinery.frozen().gates();
        let is_tested = self.candidates.tested_at(&policy).is_some();
        if own.len() < EPISODES_MIN || gates <= policy.gates() || is_tested {
            return None;
        }
        let claimed = |episode: &&Episode| Example {
            steps: episode
                .steps
                .iter()
                .map(|step| ExampleStep { observation: step.observation, wanted: Some(step.action) })
                .collect(),
        };
        let saved = (gates - policy.gates()) as i32;
        let words =
            format!("{} steps of slot {slot} in a row, by a counter: {} gates less", actions.len(), saved);
        let change = Change::Play {
            sequence: vec![slot; actions.len()],
            policy,
            examples: own.iter().rev().take(CLAIMED_MAX).map(claimed).collect(),
        };
        let effects = ExpectedEffects { gates_saved: saved, ..ExpectedEffects::default() };
        Some(Proposal { change, improvement: None, effects, words })
    }
}

/// The actions of the longest episode, if every other one is a beginning of it.
fn common_sequence(episodes: &[&Episode]) -> Option<Vec<u16>> {
    let longest = episodes.iter().max_by_key(|episode| episode.steps.len())?;
    let actions: Vec<u16> = longest.steps.iter().map(|step| step.action).collect();
    let begins =
        |episode: &&Episode| episode.steps.iter().zip(&actions).all(|(step, action)| step.action == *action);
    let fits = (2..=PLAY_STEPS_MAX).contains(&actions.len());
    (fits && episodes.iter().all(begins)).then_some(actions)
}

/// The smallest expert found that takes these actions one after the other. What it does after them nobody has asked for.
///
/// Two ways to count: by ones, and by a shift register with feedback, which needs a single gate but goes through its states in
/// an order that may suit the actions less.
fn counted_play(shape: &Shape, actions: &[u16], queries: Queries) -> Option<Policy> {
    let ways: [fn(u64, usize) -> u64; 2] = [count_by_ones, shift];
    let policies = ways.into_iter().filter_map(|advance| clocked(shape, actions, queries, advance));
    policies.min_by_key(Policy::gates)
}

/// The next number.
fn count_by_ones(state: u64, bits: usize) -> u64 {
    (state + 1) & ((1 << bits) - 1)
}

/// The next state of a shift register whose feedback makes it go through all states but one, beginning with zero.
fn shift(state: u64, bits: usize) -> u64 {
    // The second tap of a register of this many bits; the first is its last bit.
    const TAPS: [usize; 7] = [0, 0, 0, 1, 2, 2, 4];
    let tap = TAPS.get(bits).copied().unwrap_or(0);
    let feedback = !(state >> (bits - 1) ^ state >> tap) & 1;
    (state << 1 | feedback) & ((1 << bits) - 1)
}

/// An expert whose memory goes from state to state in this way; nothing if it comes back too early.
fn clocked(
    shape: &Shape,
    actions: &[u16],
    queries: Queries,
    advance: fn(u64, usize) -> u64,
) -> Option<Policy> {
    let memory_bits = (u64::BITS - (actions.len() as u64 - 1).leading_zeros()) as usize;
    let (mut state, mut act) = (0, BTreeMap::new());
    for action in actions {
        if act.insert(state, u64::from(*action)).is_some() {
            return None;
        }
        state = advance(state, memory_bits);
    }
    let next: BTreeMap<u64, u64> =
        (0..1 << memory_bits).map(|state| (state, advance(state, memory_bits))).collect();
    let mut builder = Builder::new(memory_bits);
    let count: Vec<Signal> = (0..memory_bits).map(Signal::input).collect();
    let bits = 0..action_bits(shape.actions);
    let mut outputs: Vec<Signal> =
        bits.map(|bit| build_bit(&mut builder, &count, &act, bit, queries)).collect();
    outputs.extend(build_word_table(&mut builder, &count, &next, memory_bits));
    let circuit = shrink_thoroughly(&builder.finish(&outputs).ok()?);
    Policy::new(circuit, Vec::new(), memory_bits, shape.actions)
}

/// One bit of a table, by a smallest circuit where one is found; rows that are not in it may become either.
fn build_bit(
    builder: &mut Builder,
    inputs: &[Signal],
    table: &BTreeMap<u64, u64>,
    bit: usize,
    queries: Queries,
) -> Signal {
    let value = |row: &u64| row >> bit & 1 == 1;
    let mut specification = Specification::new(inputs.len(), 1);
    let is_table = table.iter().all(|(key, row)| specification.want(*key, &[Some(value(row))]));
    let Queries { conflicts, rounds } = queries;
    let (budget, rounds_max) = (Budget::conflicts(conflicts), rounds as usize);
    let options = SynthesisOptions { gates_max: GATES_MAX, budget, rounds_max };
    match synthesize(&specification, options, &mut |_| ()) {
        Synthesis::Found { circuit, .. } if is_table => builder.embed(&circuit, inputs)[0],
        _ => {
            let rows = table.iter().map(|(key, row)| (*key, u64::from(value(row)))).collect();
            build_word_table(builder, inputs, &rows, 1)[0]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::environment::{Bits, Field};
    use bem_synth::experience::Step;
    use bem_synth::policy::Player;

    fn episode(actions: &[u16]) -> Episode {
        let step = |action: &u16| Step {
            observation: Bits::ZERO,
            action: *action,
            reward: 0,
            done: false,
            bad: false,
            uniform: false,
            propensity: u16::MAX,
        };
        Episode { serial: 1, steps: actions.iter().map(step).collect() }
    }

    #[test]
    fn episodes_that_go_the_same_way_have_a_sequence_and_others_have_none() {
        let (long, short, other) = (episode(&[2, 0, 1, 1]), episode(&[2, 0]), episode(&[2, 1]));
        assert_eq!(common_sequence(&[&short, &long]), Some(vec![2, 0, 1, 1]));
        assert_eq!(common_sequence(&[&short, &long, &other]), None);
        assert_eq!(common_sequence(&[&episode(&[1])]), None);
    }

    #[test]
    fn a_shift_register_comes_back_after_all_states_but_one() {
        for bits in 2..=6 {
            let mut seen = std::collections::BTreeSet::new();
            let mut state = 0;
            while seen.insert(state) {
                state = shift(state, bits);
            }
            assert_eq!((state, seen.len()), (0, (1 << bits) - 1), "{bits}");
        }
    }

    #[test]
    fn a_counter_plays_every_sequence() {
        let shape = Shape {
            observation_bits: 2,
            actions: 3,
            horizon: 9,
            reward_min: 0,
            reward_max: 1,
            return_min: 0,
            return_max: 9,
            fields: vec![Field { low: 0, width: 2 }],
        };
        for length in 2..20u16 {
            let actions: Vec<u16> = (0..length).map(|time| time * time % 3).collect();
            let policy = counted_play(&shape, &actions, Queries::DEFAULT).unwrap();
            let mut player = Player::new(&policy);
            player.begin();
            let played: Vec<u16> =
                actions.iter().map(|_| player.act(&Bits([u64::from(length) & 3, 0, 0, 0]))).collect();
            assert_eq!(played, actions);
        }
    }
}
