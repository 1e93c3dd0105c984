//! Boolean circuits: three forms, 256 lanes at a time, interpreted or compiled, read and written in public formats.
//!
//! Must not know what a circuit is for: no experts, no games, no solver.

pub mod anf;
pub mod bdd;
pub mod compile;
pub mod cost;
pub mod formats;
pub mod interpret;
pub mod lanes;
pub mod netlist;
pub mod placed;
pub mod simplify;
pub mod testing;
pub mod truth_table;
