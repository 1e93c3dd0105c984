//! Faulty stores, a reference model and seeded crashes: the ledger's real code on a disk that misbehaves.
//!
//! Everything is a function of a seed; `cargo run --release -p bem-sim -- SEED` repeats a run. What is simulated is the
//! disk alone: engine, writer, recovery, snapshots and audit are the shipped ones.

pub mod cases;
pub mod counters;
pub mod disk;
pub mod engine;
pub mod flips;
pub mod fuzz;
pub mod golden;
pub mod images;
pub mod migrate;
pub mod removal;
pub mod restore;
pub mod run;
pub mod spoiled;
pub mod store;
pub mod tamper;
