//! Why a change to a family is refused. Clause: VM-1.

use crate::expert::ExpertError;
use crate::layout::LayoutError;
use crate::route::directory::DirectoryError;

/// Why a change to a family was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// The world does not fit into STATE.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The expert breaks a bound.
    #[error(transparent)]
    Expert(#[from] ExpertError),
    /// The directory refused.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Every slot is taken.
    #[error("all {slots} slots of the pool are taken (K_exp)")]
    PoolFull {
        /// Slots there are.
        slots: usize,
    },
    /// No expert is in this slot.
    #[error("slot {slot} of the pool is empty")]
    EmptySlot {
        /// The slot asked for.
        slot: usize,
    },
    /// The expert would write what the world says.
    #[error("state bit {bit} belongs to the world: experts write actions and memory only")]
    WriteRefused {
        /// The bit named.
        bit: u16,
    },
    /// The expert writes memory but is not sticky.
    #[error("an expert that writes memory bit {bit} must be sticky, so that it is chosen for whole episodes")]
    MemoryNeedsSticky {
        /// The bit named.
        bit: u16,
    },
    /// A step with this expert could cost too much.
    #[error(
        "a step with this expert could cost {found} work units, {overhead} of them beside the expert; the bound is \
         {bound} (C_step_max)"
    )]
    StepCost {
        /// What a step could cost.
        found: u32,
        /// What of that is not the expert's.
        overhead: u32,
        /// What it may cost.
        bound: u32,
    },
    /// NOOP stays, and a bucket keeps at least one live arm.
    #[error("slot {slot} cannot be retired: a bucket would be left without an expert")]
    LastArm {
        /// The slot asked for.
        slot: usize,
    },
    /// Buckets whose held actions differ are not joined.
    #[error("buckets {one} and {other} hold different actions")]
    JoinedApart {
        /// The one.
        one: u16,
        /// The other.
        other: u16,
    },
    /// What is to be held does not exist here.
    #[error("{what}")]
    Held {
        /// What is wrong.
        what: &'static str,
    },
}
