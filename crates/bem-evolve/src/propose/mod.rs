//! Proposals: changes worth trying, and the proposers that look at the pool alone.
//!
//! What the log asks for is proposed where the log is kept; here a circuit is made smaller, experts become one, and a
//! template becomes a change. Whether a change is right is for its condition to say, whether it helps is for the gate.
//! Clauses: SCC-2, SCC-7.

mod merge;
mod notebook;
mod shrink;
mod teach;

pub use merge::merge_by_bit;
pub use notebook::Notebook;
pub use shrink::{propose_smaller, shrink, shrink_thoroughly};
pub use teach::propose_teach_edit;

use crate::apply::{Tables, TablesError};
use crate::patch::{Change, ExpectedEffects, Patch, PatchKind};
use crate::verify::{EvidenceKind, Improvement};
use bem_machine::family::Family;

/// A change worth trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// What it does.
    pub change: Change,
    /// What speaks for it already; nothing where only rollouts can say.
    pub improvement: Option<Improvement>,
    /// What it is expected to bring.
    pub effects: ExpectedEffects,
    /// What it is, for people.
    pub words: String,
}

impl Proposal {
    /// Which kind of patch it would be.
    pub fn kind(&self) -> PatchKind {
        self.change.kind()
    }

    /// What it takes to accept it: rollouts cost steps, everything else is at hand.
    pub fn evidence_kind(&self) -> EvidenceKind {
        EvidenceKind::of_change(&self.change)
    }
}

/// Makes a patch of a change, against what there is now.
pub fn patch(
    tables: &Tables,
    current: Option<&Family>,
    serial: u64,
    family: u16,
    change: Change,
    effects: ExpectedEffects,
) -> Result<Patch, TablesError> {
    let parent = tables.parent(change.subject(), current).ok_or(TablesError::NoFamily { serial })?;
    Ok(Patch { serial, family, parent, change, effects })
}
