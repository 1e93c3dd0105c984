//! Worlds in which actions change what is seen next: counts of what followed what, and the best plans in them.
//!
//! [`counts`] books outcomes per state and action, where a state is the observation, and with a [`Lens`] also the
//! last few observations and own actions (numbers as finely as [`grain`] says), or what a [`recall`]ing machine keeps of all of them, found by [`memory_search`];
//! how many are worth it where that is too much to search, [`depth`] says. [`chance`] turns counts into chances, expected or
//! drawn from what the counts leave open. [`plan`] finds the best action for every state and number of steps left, [`value`] says what
//! any circuit is worth in a model, [`compile`] makes a circuit of a plan, and [`explore`] plays for knowledge. Where pairs
//! of state and action are too many to be tried, [`analogy`] says what those that were not are worth; where observations are
//! too many to be counted, [`fitted`] values take the place of counts.
//! Must not know games. Clauses: SCC-2, SCC-8.

pub mod analogy;
pub mod chance;
mod coding;
pub mod compile;
pub mod counts;
pub mod dependence;
pub mod depth;
pub mod explore;
pub mod fitted;
pub mod grain;
pub mod memory_search;
pub mod plan;
pub mod planner;
pub mod recall;
mod tally;
pub mod value;

#[cfg(test)]
mod tests;

pub use counts::{Lens, Model};
pub use explore::Explorer;
pub use grain::Grain;
pub use planner::{PlanComparison, PlannedControl};
