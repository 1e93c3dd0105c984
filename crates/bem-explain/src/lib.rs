//! What a learned policy does, in words: ordered rules, a state diagram, and the reason for one action.
//!
//! Rules are found by sequential covering over facts about fields, bits and memory ([`facts`]); the list is then a
//! circuit of its own that the prover compares with the policy's. A list that is equal is called exact, with the
//! evidence; any other is a summary with the share of inputs on which it agrees. Where features have names, only what they
//! can show is looked at ([`observations`]), and reasons speak of features. The terminal, the report and the service say it
//! in the same words: as lines ([`text`]), as JSON ([`json`]), and as parts of a page ([`html`], [`drawing`]). Must not know
//! games, runs or files.
//! Clauses: GLE-9, SCC-3, SCC-4.

pub mod clock;
pub mod drawing;
pub mod examples;
pub mod facts;
pub mod html;
pub mod json;
pub mod list;
pub mod observations;
pub mod points;
pub mod reason;
pub mod states;
pub mod subject;
pub mod text;
pub mod words;

pub use facts::Fact;
pub use list::{Agreement, Condition, Rule, RuleList};
pub use reason::{Finding, Reason, reason};
pub use states::{StateDiagram, counts_steps, state_diagram};
pub use subject::{AskError, Explainable, GivenObservation};
pub use words::Words;

use bem_base::environment::Field;
use bem_data::Encoder;
use bem_synth::policy::{Policy, action_bits};

/// What a policy does: its actions, and what it remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The action for what is seen and remembered.
    pub action: RuleList,
    /// For every bit of memory, how its next value comes about.
    pub memory: Vec<RuleList>,
    /// The bits of memory that count steps, lowest first; rules call their number "steps so far".
    pub clock: Vec<usize>,
}

impl Explanation {
    /// Whether every list is proven equal to the circuit.
    pub fn is_exact(&self) -> bool {
        std::iter::once(&self.action).chain(&self.memory).all(RuleList::is_exact)
    }
}

/// A policy as rules; the fields group observation bits and come from the world's shape. Where features have names, the rules
/// are made for and held against the observations that these can show; without names, all assignments of bits count.
pub fn explain(policy: &Policy, fields: &[Field], names: Option<&Encoder>) -> Explanation {
    let code = action_bits(policy.actions());
    let words = Words { reads: policy.reads(), fields, names };
    let clock = clock::clock(policy);
    let places: Vec<usize> = clock.iter().map(|bit| policy.reads().len() + bit).collect();
    let of = |outputs: Vec<usize>| {
        let target = policy.circuit().cone(&outputs);
        list::rule_list(&target, &facts::facts(&words, &places, &target), words.reads, names)
    };
    let action = of((0..code).collect());
    let memory = (0..policy.memory_bits()).map(|bit| of(vec![code + bit])).collect();
    Explanation { action, memory, clock }
}

/// The action that output bits stand for.
pub fn action_of(bits: &[bool]) -> u16 {
    bits.iter().enumerate().fold(0, |code, (place, bit)| code | u16::from(*bit) << place)
}

#[cfg(test)]
mod named_tests;
#[cfg(test)]
mod shown_tests;
#[cfg(test)]
mod tests;
