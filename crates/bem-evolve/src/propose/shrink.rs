//! SUPEROPT: the circuit that acts, made smaller.
//!
//! Simplification first; then, where a circuit is small, an exact search for a smallest one, and where it is not, windows
//! of it. Nothing of this is trusted: equivalence is shown by the patch's condition. Budgets count conflicts.

use super::{Notebook, Proposal};
use crate::patch::{Change, ExpectedEffects};
use crate::verify::Improvement;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_circuit::simplify::simplify;
use bem_machine::family::{Family, STEP_BY_STEP};
use bem_prover::equivalence::EquivalenceOptions;
use bem_prover::superoptimize::{SuperoptimizeOptions, superoptimize};
use bem_prover::{Budget, CircuitOracle, Synthesis, SynthesisOptions, synthesize};

/// Circuits within these sizes are searched for exactly.
const EXACT_INPUTS_MAX: usize = 6;
/// See [`EXACT_INPUTS_MAX`].
const EXACT_GATES_MAX: usize = 6;
/// Circuits up to this size are searched window by window; that takes up to a tenth of a second.
const WINDOWED_GATES_MAX: usize = 64;

/// The expert in this slot with fewer gates; one that cannot be made smaller is noted, so that it is tried once.
#[doc(alias = "SUPEROPT")]
pub fn propose_smaller(family: &Family, slot: u8, notebook: &mut Notebook) -> Option<Proposal> {
    let expert = family.expert(usize::from(slot)).filter(|_| usize::from(slot) != STEP_BY_STEP)?;
    let (old, id) = (expert.placed().circuit(), expert.id().to_word());
    if notebook.is_smallest(id) || old.gates().len() < 2 {
        return None;
    }
    let circuit = shrink_thoroughly(old);
    let (from, to) = (old.gates().len(), circuit.gates().len());
    if from <= to {
        notebook.note_smallest(id);
        return None;
    }
    Some(Proposal {
        change: Change::Superoptimize { slot, circuit },
        improvement: Some(Improvement::Static),
        effects: ExpectedEffects { gates_saved: (from - to) as i32, ..ExpectedEffects::default() },
        words: format!("slot {slot} with {to} gates in place of {from}"),
    })
}

/// Like [`shrink`], and window by window where the circuit is too large for an exact search.
pub fn shrink_thoroughly(circuit: &Netlist) -> Netlist {
    let simple = shrink(circuit);
    if WINDOWED_GATES_MAX < simple.gates().len() {
        return simple;
    }
    superoptimize(&simple, SuperoptimizeOptions::default()).map_or(simple, |smaller| smaller.circuit)
}

/// A circuit of the same meaning with no more gates: simplified, and if it is small, searched for exactly.
pub fn shrink(circuit: &Netlist) -> Netlist {
    let simple = simplify(circuit);
    let best = if simple.gates().len() <= circuit.gates().len() { simple } else { circuit.clone() };
    let (compact, support) = best.compact();
    let gates = compact.gates().len();
    if EXACT_INPUTS_MAX < compact.inputs() || !(2..=EXACT_GATES_MAX).contains(&gates) {
        return best;
    }
    let oracle = CircuitOracle::new(compact, EquivalenceOptions::default());
    let options = SynthesisOptions {
        gates_max: gates - 1,
        budget: Budget::conflicts(2_000),
        ..SynthesisOptions::default()
    };
    let Synthesis::Found { circuit: found, .. } = synthesize(&oracle, options, &mut |_| {}) else {
        return best;
    };
    let mut builder = Builder::new(circuit.inputs());
    let inputs: Vec<Signal> = support.into_iter().map(Signal::input).collect();
    let outputs = builder.embed(&found, &inputs);
    let exact = builder.finish(&outputs).expect("a smaller circuit is within the bounds of the larger");
    if exact.gates().len() < best.gates().len() { exact } else { best }
}
