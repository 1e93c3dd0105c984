//! The three phases: learn on the easy grid until the gate is crossed stably, ratchet up to the target, evaluate.
//!
//! The harness decides nothing the agent could see. The threshold may be raised once, from 0.40 to 0.45, on the
//! easiest grid only, and that is a checked invariant: a second request is an error. Clauses: CUR-4, CUR-5, CUR-7.

mod config;
mod consolidate;
mod snapshot;
mod warmup;

pub use config::ProtocolConfig;
pub use consolidate::{Consolidate, ConsolidateEnd, RatchetStep};
pub use warmup::{Probe, Warmup, WarmupEnd};

use self::consolidate::Consolidation;
use crate::agent::{Agent, AgentConfig};
use crate::episode::{EpisodeReport, Onlooker, play};
use crate::fraction::{THRESHOLD, THRESHOLD_STEP};
use crate::trace::Trace;
use bem_base::prng::mix;
use bem_games::rulegrid::config::{ConfigError, GridConfig};
use bem_games::rulegrid::world::World;
use bem_ledger::entry::event_code;

/// Why the threshold was not raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// It was raised before.
    #[error("the threshold was already raised once; a second step is not allowed")]
    Used,
    /// Not the registered step.
    #[error("the threshold can only be raised from 0.40 to 0.45")]
    Unregistered,
    /// Not on the easiest grid.
    #[error("the threshold can only be raised on the easiest grid, before the second phase")]
    NotEasiest,
}

/// The state of a run between episodes: everything that decides what comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Bars and budgets.
    pub config: ProtocolConfig,
    /// The agent.
    pub agent: Agent,
    /// What happened.
    pub trace: Trace,
    seed: u64,
    global_step: u64,
    steps_used: u32,
    consolidation: Option<Consolidation>,
}

/// Seeds of episodes: all arms of a run see the same grids in the same phase.
pub fn episode_seed(seed: u64, phase: u64, episode: u32) -> u64 {
    mix(mix(seed ^ phase << 56) ^ u64::from(episode))
}

/// The median; the lower one of two in the middle.
pub fn median(values: impl IntoIterator<Item = u32>) -> u32 {
    let mut values: Vec<u32> = values.into_iter().collect();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

impl Run {
    /// A run before its first episode.
    pub fn new(config: ProtocolConfig, agent: AgentConfig, seed: u64) -> Result<Run, ConfigError> {
        config.check()?;
        let agent = Agent::new(agent, seed);
        Ok(Run {
            config,
            agent,
            trace: Trace::default(),
            seed,
            global_step: 0,
            steps_used: 0,
            consolidation: None,
        })
    }

    /// Whether the threshold was raised.
    pub fn threshold_step_used(&self) -> bool {
        0 < self.steps_used
    }

    /// Ticks over all episodes.
    pub fn global_step(&self) -> u64 {
        self.global_step
    }

    fn episode(
        &mut self,
        grid: &GridConfig,
        phase: u64,
        episode: u32,
        onlooker: &mut impl Onlooker,
    ) -> EpisodeReport {
        let mut world = World::new(grid.clone());
        let seed = episode_seed(self.seed, phase, episode);
        let report = play(&mut world, &mut self.agent, seed, self.global_step, &mut self.trace, onlooker);
        self.global_step += u64::from(report.length);
        report
    }

    /// The one step: a fresh agent with the same seed and the real gate at 0.45.
    pub fn raise_threshold(&mut self, to: i64) -> Result<(), StepError> {
        if 0 < self.steps_used {
            return Err(StepError::Used);
        }
        if to != THRESHOLD_STEP || self.agent.gate().config.threshold != THRESHOLD {
            return Err(StepError::Unregistered);
        }
        if self.consolidation.is_some() {
            return Err(StepError::NotEasiest);
        }
        self.steps_used = 1;
        let mut agent = Agent::new(self.agent.config, self.seed);
        agent.set_threshold(to);
        self.agent = agent;
        self.trace.event(event_code::THRESH_STEP, &[THRESHOLD, to], "");
        Ok(())
    }

    /// The third phase: everything frozen but the measurement of the variance.
    pub fn evaluate(
        &mut self,
        grid: &GridConfig,
        episodes: u32,
        onlooker: &mut impl Onlooker,
    ) -> Vec<EpisodeReport> {
        self.trace.phase("P2", &[i64::from(episodes)]);
        self.agent.set_learning(false);
        (1..=episodes).map(|episode| self.episode(grid, 2, episode, onlooker)).collect()
    }

    /// A copy for an arm: the same agent under another set-up, with a trace of its own.
    #[must_use]
    pub fn arm(&self, config: AgentConfig) -> Run {
        let mut arm = self.clone();
        arm.agent = self.agent.cloned_into(config);
        arm.trace = Trace::default();
        arm
    }
}
