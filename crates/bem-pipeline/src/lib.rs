//! Specialists that teach a main machine: domains, phases, distillation, the pool of experts, and who works on what.
//!
//! A specialist climbs the ladders of its domain's families. What it has solved is distilled: its good episodes and its machines
//! are what the main machine begins with on the same settings, and on settings that no specialist has seen. Afterwards the main
//! machine goes on with mixed domains; new domains come in through a specialist of their own. Every change of structure goes
//! through the gate and the proof of the learner that makes it; the pool then takes in what costs nobody anything.
//!
//! A [`pipeline::Pipeline`] is data. It says which units may be worked on now, all independent of each other, and takes their
//! results in the order of their numbers, so that its history is a function of its plan alone, whoever worked and whoever failed.
//! Between two rounds it is also canonical bytes (`saved.rs`), so that answers need not be kept that it has taken in.
//! Must not know files, clocks, threads, processes or networks. Clauses: PIPE-1 to PIPE-4; decisions D-132 to D-136, D-237.

pub mod domain;
mod expert;
pub mod pipeline;
pub mod pool;
mod renaming;
pub mod report;
mod saved;
mod scoring;
pub mod specialist;
mod unserved;
pub mod volume;

use bem_base::environment::EnvironmentError;
use bem_engine::climb::ClimbError;
use bem_games::game::GameError;

/// Why a pipeline cannot start or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// No domain has this name.
    #[error("there is no domain {name:?}; known are {known}")]
    UnknownDomain {
        /// The name asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// A domain is named twice.
    #[error("domain {name:?} is named twice")]
    Twice {
        /// The domain.
        name: String,
    },
    /// A climb refuses.
    #[error(transparent)]
    Climb(#[from] ClimbError),
    /// A game cannot be built.
    #[error(transparent)]
    Game(#[from] GameError),
    /// A world failed while an expert was evaluated.
    #[error(transparent)]
    World(#[from] EnvironmentError),
}
