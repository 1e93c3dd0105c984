//! The phased commitment curriculum: grid, gate, latch, closure, phases and arms.

pub mod agent;
pub mod closure;
pub mod episode;
pub mod experiment;
pub mod fraction;
pub mod gate;
pub mod latch;
pub mod policy;
pub mod protocol;
pub mod rule_state;
pub mod trace;
pub mod world_model;
