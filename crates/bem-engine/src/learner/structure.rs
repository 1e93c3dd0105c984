//! Structure: what the pool suggests itself, beside new circuits.
//!
//! A smaller circuit for the incumbent is proven to do the same and costs no step. Once an incumbent has stood for a while
//! and every episode of it goes the same way, the sequence itself becomes an expert: a counter in its memory takes the
//! place of what the incumbent looks at (MACRO), if that is smaller and wins or ties its rollouts. Clauses: SCC-2, SCC-7.

use crate::learner::Learner;
use bem_evolve::patch::Change;
use bem_evolve::propose::{Proposal, propose_smaller};
use bem_synth::hypothesis::Hypothesis;

/// The newest steps of the log that structure is judged by.
pub(super) const LOG_STEPS_MAX: usize = 8_192;

impl Learner {
    /// Makes a patch of what the pool suggests; whether there is one. One at a time, because what is applied makes the
    /// others obsolete.
    pub(super) fn submit_structure(&mut self) -> bool {
        // The circuit is also made smaller when the run is about to end.
        let is_settled = self.standing.is_settled(self.tally.steps);
        if !self.acts_by_proof() || !is_settled && !self.is_done() {
            return false;
        }
        let Some(slot) = self.machinery.held_slot().map(|slot| slot as u8) else { return false };
        let family = self.machinery.family().clone();
        let smaller = propose_smaller(&family, slot, self.machinery.notebook_mut());
        let Some(proposal) = smaller.or_else(|| self.propose_play(slot, is_settled)) else { return false };
        let candidate = self.macro_candidate(&proposal);
        let Some(serial) = self.machinery.submit(proposal) else { return false };
        candidate.into_iter().for_each(|candidate| self.candidates.wait(serial, candidate));
        true
    }

    /// Who plays the rollouts of a macro.
    fn macro_candidate(&self, proposal: &Proposal) -> Option<Hypothesis> {
        let Change::Play { policy, .. } = &proposal.change else { return None };
        Some(Hypothesis {
            policy: policy.clone(),
            statement: None,
            words: proposal.words.clone(),
            description_length: u32::MAX,
            exact: false,
            predicted: None,
            provenance: self.experience.digest(),
            // What it stands for is still what can be built for other sizes.
            machine: self.standing.incumbent().machine.clone(),
        })
    }
}

/// Gates of the circuit that a change brings.
pub(super) fn gates_of(change: &Change) -> usize {
    match change {
        Change::Merge { body, .. } => body.circuit.gates().len(),
        Change::Superoptimize { circuit, .. } => circuit.gates().len(),
        Change::Synthesize { policy, .. } | Change::Play { policy, .. } => policy.gates(),
        Change::Retire { .. }
        | Change::Reset { .. }
        | Change::Split { .. }
        | Change::Join { .. }
        | Change::Hold { .. }
        | Change::Guard { .. }
        | Change::TeachEdit { .. } => 0,
    }
}
