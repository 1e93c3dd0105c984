//! What a learned policy does, in words: ordered rules, a state diagram, and the reason for one action.
//!
//! Rules are found by sequential covering over facts about fields, bits and memory ([`facts`]); the list is then a
//! circuit of its own that the prover compares with the policy's. A list that is equal is called exact, with the
//! evidence; any other is a summary with the share of inputs on which it agrees. Memory that holds what was seen or done
//! earlier, or counts steps, is called so ([`meaning`]). Only what can occur is looked at ([`observations`]), and rules and
//! reasons speak of features, actions and steps ([`topic`]). The terminal, the report and the service say it
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
pub mod meaning;
pub mod observations;
pub mod points;
pub mod reason;
mod remembered;
pub mod states;
pub mod subject;
pub mod table;
pub mod text;
pub mod topic;
pub mod words;

pub use facts::Fact;
pub use list::{Agreement, Condition, Rule, RuleList, StepsMet};
pub use meaning::Meaning;
pub use reason::{Finding, Reason, reason};
pub use states::{StateDiagram, counts_steps, state_diagram};
pub use subject::{AskError, Explainable, GivenObservation};
pub use topic::Topic;
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
    /// What every bit of memory is.
    pub kept: Vec<Meaning>,
    /// The bits of memory that count steps, lowest first; rules call their number "steps so far".
    pub clock: Vec<usize>,
}

impl Explanation {
    /// Whether every list is proven equal to the circuit; memory that has a meaning needs no rules.
    pub fn is_exact(&self) -> bool {
        let own = self.memory.iter().zip(&self.kept).filter(|(_, kept)| matches!(kept, Meaning::Kept(_)));
        std::iter::once(&self.action).chain(own.map(|(list, _)| list)).all(RuleList::is_exact)
    }
}

/// A policy as rules; the fields group observation bits and come from the world's shape. Where features have names, the rules
/// are made for and held against the observations that these can show; without names, all assignments of bits count.
pub fn explain(policy: &Policy, fields: &[Field], names: Option<&Encoder>) -> Explanation {
    explain_as(policy, &Words::of(policy, fields, names), &StepsMet::default())
}

/// A policy as rules over bits alone, held against the circuit on every input whether or not it can occur.
pub fn explain_bits(policy: &Policy, fields: &[Field]) -> Explanation {
    explain_as(policy, &Words::of_bits(policy, fields), &StepsMet::default())
}

/// A policy as rules in these words; `met` is what a summary is about.
pub fn explain_as(policy: &Policy, words: &Words<'_>, met: &StepsMet) -> Explanation {
    let code = action_bits(policy.actions());
    let of = |outputs: Vec<usize>| {
        let target = policy.circuit().cone(&outputs);
        list::rule_list(&target, &facts::facts(words, &target), words, met)
    };
    let action = of((0..code).collect());
    let memory = (0..policy.memory_bits()).map(|bit| of(vec![code + bit])).collect();
    let kept = words.places[policy.reads().len()..].to_vec();
    Explanation { action, memory, clock: clock::clock(policy), kept }
}

/// The action that output bits stand for.
pub fn action_of(bits: &[bool]) -> u16 {
    bits.iter().enumerate().fold(0, |code, (place, bit)| code | u16::from(*bit) << place)
}

#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod named_tests;
#[cfg(test)]
mod remembered_tests;
#[cfg(test)]
mod shown_tests;
#[cfg(test)]
mod tests;
