//! The whole experiment: phases, arms, starved controls and the delayed-reward pilot, judged by five criteria.
//!
//! P0 and P1 are run once per seed; every arm starts from a copy of that agent and evaluates on the same grids.
//! Clauses: CUR-5, CUR-6, CUR-8, CUR-10.

mod arm;
mod criteria;
mod results;

pub use arm::Arm;
pub use criteria::{Criterion, Outcome, SEEDS_MIN, contrast, judge};
pub use results::{ArmResult, PilotResult, SeedResult, StarvedResult};

use crate::agent::{AgentConfig, Starvation};
use crate::fraction::{THRESHOLD_STEP, to_milli};
use crate::protocol::{Consolidate, ConsolidateEnd, ProtocolConfig, Run, Warmup, WarmupEnd};
use bem_games::rulegrid::config::{ConfigError, DIFFICULTY_MAX, Delay, GridConfig};

/// Controls whose learning is starved. The fourth starves the threshold instead and is for diagnosis only.
pub const STARVED: [(&str, Starvation, Option<i64>); 4] = [
    ("S1 frozen model", Starvation::FrozenModel, None),
    ("S2 no error signal", Starvation::NoErrorSignal, None),
    ("S3 scrambled actions", Starvation::ScrambledActions, None),
    ("S4 threshold 0.02", Starvation::None, Some(1_311)),
];

/// How the first two phases ended for a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trained {
    /// Ready to be evaluated.
    Ready,
    /// No commitment, with this many tries.
    NotElicited,
    /// The gate was missed at both thresholds.
    Escalate,
}

/// Runs the first two phases, raising the threshold once if that is allowed and needed.
pub fn train(run: &mut Run) -> (Warmup, Option<Consolidate>, Trained) {
    let mut warmup = run.warm_up();
    if warmup.end != WarmupEnd::Converged && run.config.allow_step {
        if run.raise_threshold(THRESHOLD_STEP).is_err() {
            return (warmup, None, Trained::NotElicited);
        }
        warmup = run.warm_up();
        if warmup.end != WarmupEnd::Converged {
            return (warmup, None, Trained::Escalate);
        }
    }
    if warmup.end != WarmupEnd::Converged {
        return (warmup, None, Trained::NotElicited);
    }
    let consolidate = run.consolidate(u32::MAX).expect("the phase ends within its budget");
    let trained =
        if consolidate.end == ConsolidateEnd::Emerged { Trained::Ready } else { Trained::NotElicited };
    (warmup, Some(consolidate), trained)
}

/// The target grid with a delayed reward and a distractor.
pub fn pilot_grid() -> GridConfig {
    GridConfig {
        delay: Some(Delay { ticks: 12, distractor: true }),
        timeout: 40,
        ..GridConfig::of_difficulty(DIFFICULTY_MAX)
    }
}

/// Runs all starved controls of one seed.
pub fn starve(config: &ProtocolConfig, seed: u64) -> Result<Vec<StarvedResult>, ConfigError> {
    let registered = (config.budgets.0 * config.abort_at_milli).div_ceil(1_000);
    STARVED
        .into_iter()
        .map(|(control, starvation, threshold)| {
            let protocol = ProtocolConfig { allow_step: false, ..config.clone() };
            let mut agent = AgentConfig { starvation, ..AgentConfig::default() };
            agent.gate.threshold = threshold.unwrap_or(agent.gate.threshold);
            let mut run = Run::new(protocol, agent, seed)?;
            let warmup = run.warm_up();
            let aborted_at = match warmup.end {
                WarmupEnd::NotElicited { episode } => Some(episode),
                _ => None,
            };
            let exact = matches!(starvation, Starvation::FrozenModel | Starvation::NoErrorSignal);
            let as_required = aborted_at
                .is_some_and(|episode| if exact { episode == registered } else { registered <= episode });
            Ok(StarvedResult {
                control,
                aborted_at,
                variance_milli: to_milli(run.agent.gate().variance()),
                as_required,
            })
        })
        .collect()
}

/// Runs one seed from the first episode to the last arm.
pub fn run_seed(config: &ProtocolConfig, seed: u64) -> Result<(SeedResult, Trained), ConfigError> {
    let mut run = Run::new(config.clone(), AgentConfig::default(), seed)?;
    let (warmup, consolidate, trained) = train(&mut run);
    let mut result = SeedResult {
        seed,
        warmup,
        threshold_step_used: run.threshold_step_used(),
        consolidate,
        arms: Vec::new(),
        foreign_writes: 0,
        starved: starve(config, seed)?,
        pilot: Vec::new(),
        trace_head: run.trace.head().to_hex(),
    };
    if trained == Trained::Ready {
        let target = GridConfig::of_difficulty(DIFFICULTY_MAX);
        for arm in [Arm::Emergent, Arm::ForcedLow, Arm::ForcedHigh, Arm::NoHold, Arm::Spike, Arm::SpikeNoHold]
        {
            let mut copy = run.arm(arm.agent_config());
            let reports = copy.evaluate(&target, config.budgets.2, &mut ());
            if arm == Arm::Emergent {
                let provenance = copy.agent.gate().provenance();
                result.foreign_writes = provenance.forced + provenance.injected;
            }
            result.arms.push(ArmResult::new(arm, &copy, &reports));
        }
        result.pilot = pilot(&run, config.budgets.2.min(30));
    }
    Ok((result, trained))
}

/// The pilot on copies of a trained agent.
pub fn pilot(run: &Run, episodes: u32) -> Vec<PilotResult> {
    [Arm::Emergent, Arm::ForcedLow, Arm::NoHold, Arm::ForcedHigh, Arm::Strong]
        .into_iter()
        .map(|arm| {
            let mut copy = run.arm(arm.agent_config());
            PilotResult::new(arm, &copy.evaluate(&pilot_grid(), episodes, &mut ()))
        })
        .collect()
}
