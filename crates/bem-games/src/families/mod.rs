//! One file per family. To add one, copy `parity.rs`, and add a line here and in the catalog.

pub mod bandit;
pub mod majority;
pub mod parity;
