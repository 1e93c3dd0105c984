//! The phased commitment curriculum: grid, gate, latch, closure, phases and arms.
//!
//! An agent ([`agent`]) learns a grid until its prediction error is low enough to commit ([`gate`]), holds what it
//! committed to ([`latch`]) and closes what is done ([`closure`]); [`protocol`] takes it through the phases and
//! [`experiment`] judges it beside its controls. Must not know circuits, solvers or the engine. Clauses: CUR-1 to CUR-10.

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
