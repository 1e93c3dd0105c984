//! The step, in the specification's order, in three forms that agree bit for bit.
//!
//! 1. The family that plays is known; its lane holds observation, last action, last reward and memory.
//! 2. The signature of the declared bits names a bucket.
//! 3. The bucket names an expert; an expert chosen for the whole episode stays.
//! 4. The expert's circuit reads STATE and SHARED and writes action and memory under its lane mask.
//! 5. The world takes the action and answers with observation, reward, done and BAD.
//! 6. A step record and a reward record are appended to the trace.
//! 7. The payoff, normalised to a loss, is booked where the choice was made: at once, or later for late rewards.
//!
//! [`scalar`] is the reference: one lane of plain truth values. [`single`] is one lane as fast as it goes. [`batched`]
//! is 256 lanes at a time. Must not know provers or the teacher. Clauses: VM-8, VM-13, VM-14, VM-15, D-32.

pub mod batched;
pub mod pending;
pub mod scalar;
pub mod schedule;
pub mod single;
mod turns;

use crate::expert::{Expert, IntegerMode};
use crate::family::Family;
use crate::memory::segment::Caller;
use crate::memory::shared::SharedMemory;
use bem_base::lanes::{LaneMask, LaneWord};
use bem_base::limits::CIRCUIT_OUTPUTS_MAX;
use bem_circuit::placed::{Evaluate, Scratch};

/// The number of a step since the start of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "step_global")]
pub struct StepNumber(pub u64);

/// The action that a number in the action planes stands for: itself, or action 0 if there is none with this number.
#[inline]
pub const fn action_of(number: u64, actions: u16) -> u16 {
    if number < actions as u64 { number as u16 } else { 0 }
}

/// Working memory of expert calls; one serves all lanes. Nothing in it outlives a call.
#[derive(Clone, Debug)]
pub struct Workspace {
    results: Vec<LaneWord>,
    scratch: Scratch,
}

impl Default for Workspace {
    fn default() -> Workspace {
        Workspace { results: vec![LaneWord::ZERO; CIRCUIT_OUTPUTS_MAX], scratch: Scratch::new() }
    }
}

impl Workspace {
    /// Lets a circuit that reads and writes STATE alone act on the lanes of `mask`.
    pub(crate) fn evaluate(&mut self, evaluator: &impl Evaluate, planes: &mut [LaneWord], mask: &LaneMask) {
        evaluator.evaluate(planes, mask, &mut self.results, &mut self.scratch);
    }
}

/// Lets the expert in a slot act on the lanes of `mask`.
///
/// Cost: the expert's static cost, whatever the lanes hold; no allocation once the workspace has met the circuit.
#[inline]
pub(crate) fn execute(
    family: &Family,
    slot: usize,
    planes: &mut [LaneWord],
    mask: &LaneMask,
    shared: &mut SharedMemory,
    workspace: &mut Workspace,
) {
    if family.facts[slot].uses_shared {
        let expert = family.expert(slot).expect("a chosen slot holds an expert");
        load_shared(expert, family.layout().state_bits(), planes, shared);
        family.evaluators[slot].evaluate(planes, mask, &mut workspace.results, &mut workspace.scratch);
        let counts = |result: usize| i64::from(workspace.results[result].count_ones());
        store_integers(expert, !mask.is_zero(), counts, shared);
    } else {
        family.evaluators[slot].evaluate(planes, mask, &mut workspace.results, &mut workspace.scratch);
    }
}

/// Spreads the bits of SHARED that an expert reads over the planes behind STATE.
fn load_shared(expert: &Expert, first: usize, planes: &mut [LaneWord], shared: &SharedMemory) {
    let view = shared.view(Caller::Expert);
    let mut plane = first;
    for field in &expert.read().shared {
        let word = view.read_address(field.address).expect("checked when the expert was built");
        for bit in field.low..field.low + field.width {
            planes[plane] = LaneWord::splat(word >> bit & 1 == 1);
            plane += 1;
        }
    }
}

/// Computes the integer outputs from the counts of lanes; sums wrap, so that their order never matters.
pub(crate) fn store_integers(
    expert: &Expert,
    any_lane: bool,
    counts: impl Fn(usize) -> i64,
    shared: &mut SharedMemory,
) {
    if !any_lane {
        return;
    }
    let mut view = shared.view_mut(Caller::Expert);
    for integer in &expert.write().integers {
        let value = integer.weights.iter().enumerate().fold(integer.constant, |sum, (result, weight)| {
            sum.wrapping_add(i64::from(*weight).wrapping_mul(counts(result)))
        });
        let old = view.read_address(integer.address).expect("checked when the expert was built");
        let word = match integer.mode {
            IntegerMode::Assign => value as u64,
            IntegerMode::Accumulate => old.wrapping_add(value as u64),
        };
        view.write_address(integer.address, word).expect("checked when the expert was built");
    }
}
