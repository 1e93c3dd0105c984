//! 256 lanes of one bit: the unit in which circuits are evaluated, shared with worlds and the machine.
//!
//! The state of a block of lanes is a slice of [`LaneWord`]s, one per state bit (a *plane*). Must not know what a
//! lane stands for. Clauses: MEM-1, VM-2.

pub use bem_base::lanes::{LANE_WORDS as WORDS, LaneMask, LaneWord};

use bem_base::limits::LANES;

const _: () = assert!(LANES == 256, "the compiler emits code for 256 lanes");
