//! SUPEROPT: the circuits that act most often, made smaller.
//!
//! Simplification first; then, where a circuit is small, an exact search for a smallest one, and where it is not, windows
//! of it. Nothing of this is trusted: equivalence is shown by the patch's condition. Budgets count conflicts.

use super::{Notebook, Proposal};
use crate::localize::TracedEpisode;
use crate::patch::{Change, ExpectedEffects};
use crate::verify::Improvement;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_circuit::simplify::simplify;
use bem_machine::family::{Family, STEP_BY_STEP};
use bem_prover::equivalence::EquivalenceOptions;
use bem_prover::superoptimize::{SuperoptimizeOptions, superoptimize};
use bem_prover::{Budget, CircuitOracle, Synthesis, SynthesisOptions, synthesize};
use std::collections::BTreeMap;

/// Circuits within these sizes are searched for exactly.
const EXACT_INPUTS_MAX: usize = 6;
/// See [`EXACT_INPUTS_MAX`].
const EXACT_GATES_MAX: usize = 6;
/// Circuits up to this size are searched window by window; that takes up to a tenth of a second.
const WINDOWED_GATES_MAX: usize = 64;
/// Experts that one call tries to make smaller.
const TRIES_MAX: usize = 2;

/// The expert that acts most often among those that can be made smaller. Experts that cannot are noted, so that they are
/// tried once.
pub fn propose_superoptimized(
    family: &Family,
    episodes: &[TracedEpisode],
    notebook: &mut Notebook,
) -> Option<Proposal> {
    let mut uses: BTreeMap<u8, u32> = family.occupied().map(|(slot, _)| (slot as u8, 0)).collect();
    episodes.iter().flatten().for_each(|step| *uses.entry(step.slot).or_default() += 1);
    let mut hot: Vec<(u8, u32)> = uses.into_iter().collect();
    hot.sort_by_key(|(slot, count)| (core::cmp::Reverse(*count), *slot));
    let mut tries = 0;
    for (slot, _) in hot.into_iter().filter(|(slot, _)| usize::from(*slot) != STEP_BY_STEP) {
        let Some(expert) = family.expert(usize::from(slot)) else { continue };
        let (old, id) = (expert.placed().circuit(), expert.id().to_word());
        if notebook.is_smallest(id) || old.gates().len() < 2 {
            continue;
        }
        if tries == TRIES_MAX {
            break;
        }
        tries += 1;
        let circuit = shrink_thoroughly(old);
        let (from, to) = (old.gates().len(), circuit.gates().len());
        if to < from {
            return Some(Proposal {
                change: Change::Superoptimize { slot, circuit },
                improvement: Some(Improvement::Static),
                effects: ExpectedEffects { gates_saved: (from - to) as i32, ..ExpectedEffects::default() },
                words: format!("slot {slot} with {to} gates in place of {from}"),
            });
        }
        notebook.note_smallest(id);
    }
    None
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
