//! What happened: entries, chain, tree, checkpoints, storage, snapshots and audit.
//!
//! An auditor needs this crate, the proof checker and nothing of the engine. It sees no files, no clock and no random
//! numbers: bytes go through a [`store::Store`] that the application supplies and the simulator breaks.
//! The bytes are drawn in `docs/formats/ledger.md`.

pub mod archive;
pub mod audit;
pub mod chain;
pub mod checkpoint;
pub mod entry;
mod error;
pub mod experience;
pub mod limits;
pub mod log;
pub mod merkle;
pub mod play;
pub mod reader;
pub mod recover;
mod ring;
pub mod segment;
pub mod snapshot;
pub mod store;
pub mod tables;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod view;
pub mod whole;
pub mod witness;

pub use error::{LedgerError, StoreError};
