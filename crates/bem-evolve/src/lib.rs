//! Changes to structure: patches, their conditions, measured improvement and application.
//!
//! The way of a change: a proposer makes a [`patch::Patch`] ([`propose`], guided by [`localize`]); it waits in the
//! [`queue`]; [`verify::verify`] shows its [`condition`]; [`verify::accept`] adds measured [`improvement`] and a
//! [`score`]; [`apply::Tables::apply`] puts it into force, all or nothing, and [`watch`] can take it back. [`evolution`] is
//! this way as one object that a learner drives; [`rebuild`] follows it from a history alone. Must not know files, clocks or games.

pub mod apply;
pub mod battery;
pub mod condition;
pub mod contexts;
pub mod evolution;
pub mod grounds;
pub mod improvement;
pub mod localize;
pub mod patch;
pub mod propose;
pub mod queue;
pub mod rebuild;
pub mod rollout;
pub mod score;
pub mod teach;
pub mod verify;
pub mod watch;
