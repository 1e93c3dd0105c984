//! Changes to structure: patches, their conditions, measured improvement and application.
//!
//! The way of a change: a proposer makes a [`patch::Patch`] ([`propose`]); it waits in the
//! [`queue`]; [`verify::verify`] shows its [`condition`]; [`verify::accept`] adds measured [`improvement`] and a
//! [`score`]; a machine that takes nothing else puts it into force ([`apply`]), all or nothing, and [`watch`] can take it back. [`evolution`] is
//! this way as one object that a learner drives; [`rebuild`] follows it from a history alone. Must not know files, clocks or games.

pub mod apply;
pub mod battery;
pub mod condition;
pub mod doubt;
pub mod evolution;
pub mod improvement;
pub mod patch;
pub mod propose;
pub mod queue;
pub mod rebuild;
pub mod rollout;
pub mod score;
pub mod teach;
pub mod verify;
pub mod watch;
