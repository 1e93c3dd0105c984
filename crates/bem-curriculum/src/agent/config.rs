//! How an agent is set up, and what an arm or a control takes from it or does to it. Clauses: CUR-6, CUR-8.

use crate::gate::GateConfig;
use crate::latch::RELEASE_THRESHOLD_MILLI;

/// What is done to the running variance before the gate looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    /// Nothing: the learner alone writes it.
    None,
    /// Pinned before every look.
    Pinned(i64),
    /// Raised for one look at every second look, and put back.
    Spiked,
}

/// What is taken from the learning of a control arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starvation {
    /// Nothing.
    None,
    /// The model's counts never change.
    FrozenModel,
    /// The error never reaches the running variance.
    NoErrorSignal,
    /// The model learns with moves drawn at random instead of those taken.
    ScrambledActions,
}

/// How an agent is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Constants of the gate.
    pub gate: GateConfig,
    /// Whether the latch holds.
    pub bistable: bool,
    /// What is done to the variance.
    pub interference: Interference,
    /// What is taken from learning.
    pub starvation: Starvation,
    /// Completion at which a hold ends, in thousandths.
    pub release_threshold_milli: u32,
    /// Whether the automatic closure is on.
    pub automatic_closure: bool,
    /// Weight of the no-go list, in millionths of reward per tick.
    pub nogo_weight: i64,
    /// An error that replaces the measured one, to try the protocol; every use is counted as an injection.
    pub scripted_error: Option<i64>,
}

impl Default for AgentConfig {
    fn default() -> AgentConfig {
        AgentConfig {
            gate: GateConfig::default(),
            bistable: true,
            interference: Interference::None,
            starvation: Starvation::None,
            release_threshold_milli: RELEASE_THRESHOLD_MILLI,
            automatic_closure: true,
            nogo_weight: 0,
            scripted_error: None,
        }
    }
}
