//! What stands around the searching half of a served world: a world in which nothing happens by itself, and a notebook.
//!
//! Must not know episodes: those are handed in by whoever serves. Clauses: VM-13, SCC-8.

use crate::agent::Agent;
use crate::chronicle::{Chronicle, Happening, PatchNote};
use crate::learner::{Decision, Tally, Witness};
use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_evolve::verify::AcceptedPatch;

/// Why a served world plays nothing by itself.
const UNPAIRED: &str = "a served world cannot be played";

/// A world in which nothing happens by itself.
pub(super) struct Still(pub(super) Shape);

impl Environment for Still {
    fn shape(&self) -> &Shape {
        &self.0
    }

    fn repeats(&self) -> bool {
        false
    }

    fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
        Err(EnvironmentError::External(UNPAIRED.to_string()))
    }

    fn observation(&self) -> &Bits {
        &Bits::ZERO
    }

    fn step(&mut self, _: u16) -> Result<Outcome, EnvironmentError> {
        Err(EnvironmentError::External(UNPAIRED.to_string()))
    }
}

/// Writes down what was decided about patches.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    chronicle: Chronicle,
    /// What an approval must add before everything that was let in may act.
    missing: Fixed,
}

impl Witness for Notes {
    fn incumbent_changed(&mut self, _: &Agent, _: &str, _: &Tally) {}

    fn decided(&mut self, decision: &Decision, patch: Option<&AcceptedPatch>) {
        self.chronicle.decided(decision, patch);
        self.missing = self.missing.max(patch.map_or(Fixed::ZERO, AcceptedPatch::missing));
    }

    fn tick(&mut self, _: &Tally) -> bool {
        true
    }
}

impl Notes {
    /// Whether nothing was written down.
    pub(super) fn is_empty(&self) -> bool {
        self.chronicle.happenings().is_empty()
    }

    /// What an approval must add before everything that was let in may act; zero where it needs none.
    pub(super) fn missing(&self) -> Fixed {
        self.missing
    }

    /// Whether something that was in force was taken back.
    pub(super) fn has_rollback(&self) -> bool {
        self.patches().iter().any(|note| note.rolled_back)
    }

    /// What was decided about patches, in order.
    pub(super) fn patches(&self) -> Vec<PatchNote> {
        let note = |happening: &Happening| match happening {
            Happening::Patch(note) => Some(note.clone()),
            _ => None,
        };
        self.chronicle.happenings().iter().filter_map(note).collect()
    }
}
