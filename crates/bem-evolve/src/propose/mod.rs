//! Proposers: from statistics and the log to changes worth trying, one file a kind.
//!
//! [`propose_all`] is the one entry: it looks at one family, its newest episodes and what the teacher suggests, and
//! hands back proposals in the order in which they should be tried. Whether a change is right is for its condition to
//! say, whether it helps is for the gate. SYNTH is proposed by `bem-synth`. How to go on from here:
//!
//! ```text
//! let proposals = propose_all(&sources, &pox, &mut notebook);   // bounded work, no steps in the world
//! evolution.submit(proposal, family)                            // PENDING, see crate::evolution
//! evolution.advance(..)                                         // VERIFIED; APPLIED at once, or a trial opens
//! ```
//!
//! Clauses: SCC-2, SCC-7, SCC-13.

mod merge;
mod notebook;
mod reset;
mod retire;
mod sequence;
mod shrink;
mod split;
mod teach;

pub use merge::{merge_by_bit, propose_merge};
pub use notebook::Notebook;
pub use reset::propose_reset;
pub use retire::propose_retire;
pub use sequence::propose_macros;
pub use shrink::{propose_superoptimized, shrink, shrink_thoroughly};
pub use split::propose_split;
pub use teach::propose_teach_edit;

use crate::apply::{Tables, TablesError};
use crate::localize::TracedEpisode;
use crate::patch::{Change, ExpectedEffects, Patch, PatchKind};
use crate::score::{Measured, PoxState};
use crate::verify::{EvidenceKind, Improvement};
use bem_base::fixed::Fixed;
use bem_machine::family::Family;
use bem_teacher::mutate::TeachEdit;

/// The newest steps that proposers look at.
pub const STEPS_MAX: usize = 16_384;
/// Proposals of one call.
pub const PROPOSALS_MAX: usize = 8;

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

/// What proposers look at.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The family with its statistics.
    pub family: &'a Family,
    /// What was played, the newest last.
    pub episodes: &'a [TracedEpisode],
    /// What the teacher suggests.
    pub edits: &'a [TeachEdit],
}

/// Proposals of all kinds but SYNTH, the most promising first, at most [`PROPOSALS_MAX`].
///
/// Promise is the score that the expected effects would have, times the trust in the proposer: what it proposed before and
/// what became of it. Ties go to the lower kind. Work is bounded by [`STEPS_MAX`] and the budgets of each proposer.
pub fn propose_all(sources: &Sources<'_>, pox: &PoxState, notebook: &mut Notebook) -> Vec<Proposal> {
    let Sources { family, episodes, edits } = *sources;
    let mut steps = 0;
    let newest = episodes.iter().rev().take_while(|episode| {
        let fits = steps < STEPS_MAX;
        steps += episode.len();
        fits
    });
    let episodes = &episodes[episodes.len() - newest.count()..];
    let mut proposals: Vec<Proposal> = propose_retire(family).into_iter().collect();
    proposals.extend(propose_reset(family, episodes));
    proposals.extend(propose_split(family, episodes));
    proposals.extend(propose_merge(family, episodes));
    proposals.extend(propose_superoptimized(family, episodes, notebook));
    proposals.extend(edits.iter().filter_map(propose_teach_edit));
    proposals.extend(propose_macros(family, episodes));
    proposals.retain(|proposal| !notebook.was_refused(&proposal.change));
    let promise = |proposal: &Proposal| {
        let effects = &proposal.effects;
        let expected = Measured {
            return_gain: effects.return_gain,
            gates_saved: i64::from(effects.gates_saved),
            behaviour_is_equal: proposal.kind() == PatchKind::Superoptimize,
            safety_gain: effects.safety_gain,
            novelty: effects.novelty,
        };
        pox.score(&expected).max(Fixed::ZERO).mul_floor(pox.record(proposal.kind()).trust())
    };
    proposals.sort_by_key(|proposal| (core::cmp::Reverse(promise(proposal)), proposal.kind()));
    proposals.truncate(PROPOSALS_MAX);
    proposals
}

/// Makes a patch of a change, against what there is now.
pub fn patch(
    tables: &Tables,
    serial: u64,
    family: u16,
    change: Change,
    effects: ExpectedEffects,
) -> Result<Patch, TablesError> {
    let parent = tables.parent(change.subject(), family)?;
    Ok(Patch { serial, family, parent, change, effects })
}

#[cfg(test)]
mod tests;
