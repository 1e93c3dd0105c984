//! From logs and tables to a circuit: supervised tables, logged decisions of one step, logged episodes.
//!
//! A log ([`log`]) is encoded as bits ([`design`], [`cuts`]), learners ([`linear`], [`tree`]) propose policies that stay where the
//! log has support ([`support`]), held-out cases ([`cases`]) choose among them, and [`estimate`] says what the log supports of the result: inverse propensity, self-normalised and doubly
//! robust estimates with intervals. All arithmetic is in integers. Must not know games, runs or files.
//! Clauses: GLE-9, SCC-2.

pub mod cases;
pub mod cuts;
pub mod design;
pub mod episodes;
pub mod estimate;
pub mod learn;
pub mod linear;
pub mod log;
pub(crate) mod rewards;
pub mod support;
pub mod tree;
pub mod vote;

pub use estimate::{Estimate, Interval};
pub use learn::{Learned, Options, learn};
pub use log::{Log, Roles};
