//! The experiments of the tables: which tasks are learned, beside whom, and what was earned and lost meanwhile.
//!
//! [`table`] has the rows of the table of floors and those that are drawn by a generator, [`online`] what they earn while they are
//! learned, [`controls`] what must fail, and [`generated`] worlds drawn from a seed with peers beside the learner. What was lost
//! against best play on the same seeds ([`beside`], [`losses`], [`figures`]) is also what `bem solve` tells.
//!
//! Whoever runs an experiment lends it its [`Edges`] and shows what comes out. Must not know arguments, terminals, files, networks,
//! threads or clocks of its own. Floats are fine here, as they are in the command line: what is measured goes into no machine and
//! into no history. Clauses: SCC-8, VM-16.

#![expect(clippy::float_arithmetic, reason = "results for people to read, by which no machine is changed")]

pub mod beside;
mod collected;
pub mod controls;
pub mod counters;
mod drawn;
pub mod figures;
pub mod generated;
mod held_out;
pub mod losses;
mod machines;
pub mod normal;
pub mod online;
mod paid;
mod processes;
mod q_learning;
mod rows;
pub mod table;

use anyhow::Result;
use bem_games::game::Game;
use std::sync::Arc;
use std::time::Duration;

/// The game that goes by a name with its parameters; hidden choices come from the seed.
pub type NamedGame = fn(&str, &[String], u64) -> Result<Arc<dyn Game>>;

/// What an experiment is lent by whoever runs it.
#[derive(Clone, Copy)]
pub struct Edges {
    /// Finds games by their names.
    pub named_game: NamedGame,
    /// Whether the work is asked to stop.
    pub is_asked: fn() -> bool,
    /// The processor time of this thread in seconds.
    pub cpu_seconds: fn() -> f64,
    /// The time on the wall, since a moment that stays the same.
    pub wall: fn() -> Duration,
}
