//! The whole deterministic machine: fast, mid and slow path over one task or the ladder.
//!
//! [`learner`] plays, remembers, proposes, gates and installs; it sees only a running world. [`evaluate`] is
//! the one place that asks a game for its optimum, and what it finds out goes to the report, never to the
//! learner. Must not know files, clocks or threads.

pub mod agent;
pub mod bandit;
pub mod climb;
pub mod evaluate;
pub mod learner;
pub mod seeds;
pub mod solve;
pub mod verification;
