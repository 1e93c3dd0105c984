//! The whole deterministic machine: fast, mid and slow path over one task or the ladder.
//!
//! [`learner`] plays, remembers, proposes, gates and installs, one small unit at a time; it sees only a running world,
//! and [`state`] makes bytes of it and a learner of bytes, between any two units. [`evaluate`] is
//! the one place that asks a game for its optimum, and what it finds out goes to the report, never to the
//! learner. Must not know files, clocks or threads.

pub mod agent;
pub mod chronicle;
pub mod climb;
mod codec;
pub mod evaluate;
pub mod journal;
pub mod learner;
pub mod measure;
pub mod offer;
pub mod online;
pub mod parameters;
pub mod payload;
pub mod seeds;
pub mod session;
pub mod shard;
pub mod solve;
pub mod start;
pub mod suspend;
pub mod world_file;
pub mod worlds;

pub use learner::{serving, state};
