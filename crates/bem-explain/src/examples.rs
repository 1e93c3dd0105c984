//! Inputs that stand for many: for each of the first rules one observation to which it applies.
//!
//! Where observations of a world are known, the examples are among them; otherwise they are drawn from those that can occur.
//! What is remembered is what the policy itself comes to remember on the way. Must not know worlds. Clauses: GLE-9.

use crate::observations::Observations;
use crate::{Explainable, RuleList, StepsMet};
use bem_base::environment::Bits;
use bem_base::prng::Prng;
use bem_data::Column;
use bem_synth::policy::action_bits;
use std::collections::BTreeSet;

/// Examples of one policy.
pub const EXAMPLES_MAX: usize = 5;
/// Gates of a policy whose actions are given reasons without being asked for.
pub const EXAMPLE_GATES_MAX: usize = 2_000;
/// Steps that are looked at.
const STEPS_MAX: usize = 4_096;
/// Episodes that are drawn where no observations are known, and their length.
const DRAWN: (usize, usize) = (32, 32);

/// An input of the circuit and the rule that decides on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleInput {
    /// The place of the rule; the number of rules where none applies.
    pub rule: usize,
    /// What is seen and remembered.
    pub input: Vec<bool>,
    /// How many of the steps that were looked at this rule decided.
    pub count: usize,
}

/// Examples of a policy with these rules, those of the rule that decides most often first. `seen` are episodes, each a sequence
/// of observations; where there are none, they are drawn.
pub fn examples(subject: &Explainable<'_>, rules: &RuleList, seen: &[Vec<Bits>]) -> Vec<ExampleInput> {
    let inputs = match seen.is_empty() {
        false => inputs_met(subject, seen),
        true => walked(subject, &drawn(subject)),
    };
    let mut found: Vec<ExampleInput> = Vec::new();
    for input in inputs {
        let (rule, _) = rules.deciding(&input);
        match found.iter_mut().find(|example| example.rule == rule) {
            Some(example) => example.count += 1,
            None => found.push(ExampleInput { rule, input, count: 1 }),
        }
    }
    found.sort_by_key(|example| (usize::MAX - example.count, example.rule));
    found.truncate(EXAMPLES_MAX);
    found
}

/// The inputs of the circuit at the first steps of these episodes, with what the policy itself comes to remember.
pub fn inputs_met(subject: &Explainable<'_>, episodes: &[Vec<Bits>]) -> Vec<Vec<bool>> {
    let read = |bits: &Bits| -> Vec<bool> {
        subject.policy.reads().iter().map(|bit| bits.get(usize::from(*bit))).collect()
    };
    let episodes: Vec<Vec<Vec<bool>>> =
        episodes.iter().map(|episode| episode.iter().map(read).collect()).collect();
    walked(subject, &episodes)
}

/// What is met in these episodes.
pub fn met(subject: &Explainable<'_>, episodes: &[Vec<Bits>]) -> StepsMet {
    let columns = subject.names.map_or(&[][..], |names| names.columns());
    let seen: BTreeSet<&Bits> = episodes.iter().flatten().collect();
    let values = |column: &Column| -> Vec<usize> {
        let shows = |value: usize, bits: &Bits| {
            let low = usize::from(column.low);
            (0..usize::from(column.width)).all(|bit| column.shows(value, bit) == bits.get(low + bit))
        };
        column.values().into_iter().filter(|value| seen.iter().any(|bits| shows(*value, bits))).collect()
    };
    let values = if episodes.is_empty() { Vec::new() } else { columns.iter().map(values).collect() };
    StepsMet { inputs: inputs_met(subject, episodes), values }
}

/// The inputs of the circuit where these are seen.
fn walked(subject: &Explainable<'_>, episodes: &[Vec<Vec<bool>>]) -> Vec<Vec<bool>> {
    let code = action_bits(subject.policy.actions());
    let mut inputs: Vec<Vec<bool>> = Vec::new();
    for episode in episodes {
        let mut memory = vec![false; subject.policy.memory_bits()];
        for seen in episode.iter().take(STEPS_MAX - inputs.len()) {
            let input: Vec<bool> = seen.iter().chain(&memory).copied().collect();
            memory.copy_from_slice(&subject.policy.circuit().evaluate(&input)[code..]);
            inputs.push(input);
        }
    }
    inputs
}

/// Episodes of observations that can occur, by chance.
fn drawn(subject: &Explainable<'_>) -> Vec<Vec<Vec<bool>>> {
    let observed = subject.policy.reads().len();
    let support: Vec<usize> = (0..observed).collect();
    let observations = Observations::new(&subject.words(), &support);
    let mut prng = Prng::stream(observed as u64, "explain/examples");
    let mut one = || {
        let mut seen = vec![false; observed];
        for unit in observations.units() {
            let state = unit.drawn(&mut prng);
            unit.inputs(state).into_iter().for_each(|(place, bit)| seen[place] = bit);
        }
        seen
    };
    (0..DRAWN.0).map(|_| (0..DRAWN.1).map(|_| one()).collect()).collect()
}
