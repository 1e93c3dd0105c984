//! A policy with memory as a state diagram: what it can remember, and what leads from one to the other.
//!
//! Reachable means: by some sequence of observations that the named features allow, whether or not a world ever shows it.

use crate::facts::facts;
use crate::list::{RuleList, StepsMet, rule_list};
use crate::observations::Observations;
use crate::points::{ALL_INPUTS_MAX, Points};
use crate::{Words, action_of};
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_synth::policy::{Policy, action_bits};
use std::fmt::Write as _;

/// A diagram with more states is no help.
pub const STATES_MAX: usize = 16;

/// One state: what is remembered, and the rules that hold then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The memory bits.
    pub memory: Vec<bool>,
    /// Action and next memory for what is seen.
    pub rules: RuleList,
}

/// All states that can be reached from the start, which is the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDiagram {
    /// In the order in which they are reached.
    pub states: Vec<State>,
    action_bits: usize,
}

/// The diagram of a policy with memory, if it has few states and reads few bits.
pub fn state_diagram(policy: &Policy, words: &Words<'_>) -> Option<StateDiagram> {
    let seen = policy.circuit().support().iter().filter(|place| **place < policy.reads().len()).count();
    if policy.memory_bits() == 0 || ALL_INPUTS_MAX < seen {
        return None;
    }
    let code = action_bits(policy.actions());
    let mut memories = vec![vec![false; policy.memory_bits()]];
    let mut circuits = Vec::new();
    while circuits.len() < memories.len() {
        let circuit = within(policy, &memories[circuits.len()])?;
        for next in successors(&circuit, code, words) {
            if !memories.contains(&next) {
                memories.push(next);
            }
        }
        if STATES_MAX < memories.len() {
            return None;
        }
        circuits.push(circuit);
    }
    let state = |(memory, circuit): (Vec<bool>, &Netlist)| {
        let rules = rule_list(circuit, &facts(words, circuit), words, &StepsMet::default());
        State { memory, rules }
    };
    let states = memories.into_iter().zip(&circuits).map(state).collect();
    Some(StateDiagram { states, action_bits: code })
}

/// The circuit with what is remembered put in.
fn within(policy: &Policy, memory: &[bool]) -> Option<Netlist> {
    let observed = policy.reads().len();
    let mut builder = Builder::new(policy.circuit().inputs());
    let inputs: Vec<Signal> = (0..policy.circuit().inputs())
        .map(|place| match place.checked_sub(observed) {
            None => Signal::input(place),
            Some(bit) => Signal::constant(memory[bit]),
        })
        .collect();
    let outputs = builder.embed(policy.circuit(), &inputs);
    builder.finish(&outputs).ok()
}

/// Every memory that one step can lead to, in a fixed order.
fn successors(circuit: &Netlist, code: usize, words: &Words<'_>) -> Vec<Vec<bool>> {
    let observations = Observations::new(words, &circuit.support());
    let points = Points::new(circuit.inputs(), observations);
    let columns = points.evaluate(circuit);
    let mut found: Vec<Vec<bool>> = Vec::new();
    for point in 0..points.count() {
        let bit = |column: &Vec<u64>| column[point / 64] >> (point % 64) & 1 == 1;
        let next: Vec<bool> = columns[code..].iter().map(bit).collect();
        if !found.contains(&next) {
            found.push(next);
        }
    }
    found
}

impl StateDiagram {
    /// Action and number of the next state, from the outputs of a rule.
    pub fn arrow(&self, then: &[bool]) -> (u16, usize) {
        let (action, memory) = then.split_at(self.action_bits);
        let next = self.states.iter().position(|state| state.memory == memory);
        (action_of(action), next.unwrap_or(0))
    }

    /// Whether the rules of every state are proven equal to the circuit.
    pub fn is_exact(&self) -> bool {
        self.states.iter().all(|state| state.rules.is_exact())
    }

    /// The diagram for Graphviz.
    pub fn to_dot(&self, words: &Words<'_>) -> String {
        let mut text =
            String::from("digraph policy {\n  rankdir=LR;\n  start [shape=point];\n  start -> s0;\n");
        for (number, state) in self.states.iter().enumerate() {
            let _ = writeln!(text, "  s{number} [shape=circle, label=\"S{number}\"];");
            let rules = state.rules.rules.iter().map(|rule| (words.conditions(&rule.when), &rule.then));
            let last = ("otherwise".to_string(), &state.rules.otherwise);
            for (label, then) in rules.chain(std::iter::once(last)) {
                let (action, next) = self.arrow(then);
                let label = if state.rules.rules.is_empty() { "always".to_string() } else { label };
                let _ = writeln!(text, "  s{number} -> s{next} [label=\"{label} / action {action}\"];");
            }
        }
        text + "}\n"
    }
}

/// How many memory bits are a clock inside the policy: [`Policy::counts_steps`].
pub fn counts_steps(policy: &Policy) -> usize {
    policy.counts_steps()
}
