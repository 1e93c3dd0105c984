//! One file per family. To add one, copy `parity.rs`, and add a line here and in the catalog.

pub mod add;
pub mod associative_recall;
pub mod auction;
pub mod bandit;
pub mod compare;
pub mod contextual_bandit;
pub mod copy;
pub mod distance;
pub mod dyck;
pub mod key_value;
pub mod majority;
pub mod matrix_game;
pub mod next_token;
pub mod nonstationary_bandit;
pub mod parity;
pub mod parity_stream;
pub mod permute;
pub mod popcount;
pub mod reverse;
pub mod rulegrid;
pub mod safety_grid;
pub mod sequence;
pub mod signaling;
pub mod small_sat;
pub mod sorting;
pub mod stack_machine;
pub mod subtract;
#[cfg(test)]
pub(crate) mod testing;
pub mod transducer;
