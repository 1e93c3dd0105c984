//! The whole deterministic machine: fast, mid and slow path over one task or the ladder.
//!
//! [`learner`] plays, remembers, proposes, gates and installs, one small unit at a time; it sees only a running world,
//! and [`state`] makes bytes of it and a learner of bytes, between any two units. [`evaluate`] is
//! the one place that asks a game for its optimum, and what it finds out goes to the report, never to the
//! learner. Must not know files, clocks or threads.

mod act;
pub mod agent;
pub mod chronicle;
pub mod climb;
mod codec;
mod contexts;
mod counterexample;
pub mod evaluate;
mod exploration;
mod gate;
pub mod guarding;
pub mod journal;
pub mod learner;
mod machinery;
pub mod measure;
pub mod online;
mod pacing;
pub mod parameters;
pub mod payload;
mod planning;
mod play;
mod safety;
mod search;
pub mod seeds;
pub mod serving;
pub mod shard;
pub mod solve;
pub mod start;
pub mod state;
mod structure;
mod suspend;
pub mod verification;
mod watch;
pub mod world_file;
pub mod worlds;
