//! Changes to structure: patches, their conditions, measured improvement and application.
//!
//! The way of a change: a proposer makes a [`patch::Patch`] ([`propose`], guided by [`localize`]); it waits in the
//! [`queue`]; [`verify::verify`] shows its [`condition`]; [`verify::accept`] adds measured [`improvement`] and a
//! [`score`]; [`apply::Tables::apply`] puts it into force, all or nothing. Must not know files, clocks or games.

pub mod apply;
pub mod battery;
pub mod condition;
pub mod improvement;
pub mod localize;
pub mod patch;
pub mod propose;
pub mod queue;
pub mod score;
pub mod verify;
pub mod watch;
