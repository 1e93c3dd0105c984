//! Boolean circuits: three forms, 256 lanes at a time, interpreted or compiled, read and written in public formats.
//!
//! Must not know what a circuit is for: no experts, no games, no solver.

pub mod netlist;
