//! The machine's memory: STATE, one bit-sliced block per 256 lanes, and SHARED, one flat array of words.
//!
//! Must not know experts, routing or worlds. Clauses: MEM-1, MEM-2, MEM-4.

pub mod context;
pub mod segment;
pub mod shared;
pub mod state;
pub mod tables;
