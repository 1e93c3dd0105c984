//! Where the worlds of units come from: the catalog, or whoever keeps what a history was played from.
//!
//! A run over the catalog's families needs no more than the text of its tasks. A game that came as a file, and a world in
//! another program, come back from the files that the run has kept ([`crate::climb::Climb::files`]); reading those is
//! the application's part. Must not know files. Clauses: LOG-5, GLE-9.

use crate::evaluate::Yardstick;
use crate::start::Start;
use bem_base::environment::Environment;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::game::{Game, GameError};
use std::sync::Arc;

/// A world to play in.
pub enum World {
    /// A game whose optimum is known.
    Game(Arc<dyn Game>),
    /// A world outside, of which nobody knows the optimum.
    Outside(Box<dyn Environment>),
    /// A world outside that says what the best policy and random play are worth.
    Stated(Box<dyn Environment>, Yardstick),
}

/// Finds the world of a task.
pub trait Worlds {
    /// The world of this task; hidden choices come from the seed.
    fn open(&self, task: &str, seed: u64) -> Result<World, GameError>;
    /// What a learner in these worlds begins with.
    fn start(&self) -> Start {
        Start::default()
    }
    /// What a learner of this task and seed begins with.
    fn start_of(&self, _task: &str, _seed: u64) -> Start {
        self.start()
    }
}

/// The families that come with the machine, and their compositions.
#[derive(Clone, Copy, Debug)]
pub struct Catalog;

impl Catalog {
    /// The game that the task's text names.
    pub fn game(&self, task: &str, seed: u64) -> Result<Arc<dyn Game>, GameError> {
        TaskTree::parse(task)?.build(seed, &NoPrograms)
    }
}

impl Worlds for Catalog {
    fn open(&self, task: &str, seed: u64) -> Result<World, GameError> {
        self.game(task, seed).map(World::Game)
    }
}
