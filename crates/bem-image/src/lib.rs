//! Container images without a daemon: an OCI layout that is written in crash-safe steps and read with every digest checked.
//!
//! [`layer`] packs files into deterministic layers, [`layout`] keeps blobs and tags, [`image`] puts base and state together,
//! [`statement`] signs and promotes, [`retain`] says what goes, [`gate`] says whether a state may become an image at all,
//! [`migration`] changes the format of a state folder in one step.
//! Must not know files, clocks, the engine or the network: bytes go through a ledger [`Store`](bem_ledger::store::Store), time is
//! an argument. Clauses: IMG-1 to IMG-6; decisions D-19, D-30, D-85 to D-88, D-230.

pub mod error;
pub mod gate;
pub mod image;
pub mod layer;
pub mod layout;
pub mod limits;
pub mod migration;
pub mod model;
pub mod retain;
pub mod statement;
pub mod tag;

pub use error::ImageError;
