//! One file per family. To add one, copy `parity.rs`, and add a line here and in the catalog.

pub mod add;
pub mod auction;
pub mod bandit;
pub mod compare;
pub mod distance;
pub mod majority;
pub mod matrix_game;
pub mod parity;
pub mod safety_grid;
pub mod signaling;
pub mod small_sat;
pub mod sorting;
pub mod subtract;

#[cfg(test)]
pub(crate) mod testing;
