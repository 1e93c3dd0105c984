//! Faulty stores, reference models and seeded crashes: the ledger's real code on a disk that misbehaves, and the real tool bus
//! beside workers that do.
//!
//! Everything is a function of a seed; `cargo run --release -p bem-sim -- SEED` repeats a run. What is simulated is the
//! disk and who works at the bus: engine, writer, recovery, snapshots, audit and bus are the shipped ones.

pub mod bus;
pub mod cases;
pub mod counters;
pub mod disk;
pub mod engine;
pub mod fuzz;
pub mod golden;
pub mod images;
pub mod removal;
pub mod restore;
pub mod run;
pub mod spoiled;
pub mod store;
pub mod tamper;
