//! Proposals of others as machines: small circuits and formulas, each with what it says, so that its condition can be shown.
//!
//! Whoever proposes gives a circuit, whose whole table is what it says, or one formula for each bit of the action's code, of
//! which the circuit is built here. Neither is believed: the gate holds one against the other and measures both. Must not know
//! who proposes, or in which words. Clauses: SCC-2, TOOL-8; decision D-130.

use crate::start::machine_called;
use bem_base::environment::Shape;
use bem_synth::transfer;

pub use bem_synth::library::Machine;
pub use bem_synth::policy::{Policy, action_bits};
pub use bem_synth::statement::{Atom, Formula, Rule};

/// Bits of observation and memory that a circuit may read.
pub use crate::start::STATED_INPUTS_MAX;

/// What is proposed.
#[derive(Clone, Debug)]
pub enum Offer {
    /// A circuit with or without memory.
    Circuit(Policy),
    /// One formula for each bit of the action's code, the lowest first.
    Formulas(Vec<Formula>),
}

impl Offer {
    /// The machine, with its name; none where it does not fit the world, or is too large to say what it does.
    pub fn machine(self, shape: &Shape, words: String) -> Option<Machine> {
        match self {
            Offer::Circuit(policy) => machine_called(&policy, shape, words),
            Offer::Formulas(formulas) if formulas.len() == action_bits(shape.actions) => {
                let (stated, length) = transfer::stated(shape, formulas)?;
                Some(Machine::circuit(shape, stated, (words, length)))
            }
            Offer::Formulas(_) => None,
        }
    }
}
