//! The whole experiment: phases, arms, starved controls and the delayed-reward pilot, judged by five criteria.
//!
//! P0 and P1 are run once per seed; every arm starts from a copy of that agent and evaluates on the same grids.
//! The verdicts are computed from what was measured, against bars that are written down here. Clauses: CUR-5,
//! CUR-6, CUR-8, CUR-10.

use crate::agent::{AgentConfig, Interference, Starvation};
use crate::episode::EpisodeReport;
use crate::fraction::{FORCED_HIGH, FORCED_LOW, RULE_SET_NORM, THRESHOLD_STEP, to_milli};
use crate::latch::RELEASE_THRESHOLD_MILLI;
use crate::protocol::{
    Consolidate, ConsolidateEnd, ProtocolConfig, RatchetStep, Run, Warmup, WarmupEnd, median,
};
use bem_games::rulegrid::config::{ConfigError, DIFFICULTY_MAX, Delay, GridConfig};
use serde::Serialize;

/// What is changed about the agent in an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// Nothing: commitment must come by itself.
    Emergent,
    /// The running variance is pinned low.
    ForcedLow,
    /// The running variance is pinned high.
    ForcedHigh,
    /// The latch does not hold.
    NoHold,
    /// The variance spikes at every second look.
    Spike,
    /// The variance spikes and the latch does not hold.
    SpikeNoHold,
    /// Holds longer: a higher bar for completion and no automatic closure.
    Strong,
}

impl Arm {
    /// All arms, with their names on the command line.
    pub const ALL: [(Arm, &'static str); 7] = [
        (Arm::Emergent, "emergent"),
        (Arm::ForcedLow, "forced_low"),
        (Arm::ForcedHigh, "forced_high"),
        (Arm::NoHold, "no_hold"),
        (Arm::Spike, "spike"),
        (Arm::SpikeNoHold, "spike_no_hold"),
        (Arm::Strong, "strong"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Arm::ALL[self as usize].1
    }

    /// The arm with this name.
    pub fn parse(name: &str) -> Result<Arm, ConfigError> {
        let known = Arm::ALL.map(|(_, name)| name).join(", ");
        let found = Arm::ALL.into_iter().find(|(_, own)| *own == name);
        found.map(|(arm, _)| arm).ok_or_else(|| ConfigError::refused("arm", name, &format!("one of {known}")))
    }

    /// The agent's set-up in this arm.
    pub fn agent_config(self) -> AgentConfig {
        let base = AgentConfig::default();
        match self {
            Arm::Emergent => base,
            Arm::ForcedLow => AgentConfig { interference: Interference::Pinned(FORCED_LOW), ..base },
            Arm::ForcedHigh => AgentConfig { interference: Interference::Pinned(FORCED_HIGH), ..base },
            Arm::NoHold => AgentConfig { bistable: false, ..base },
            Arm::Spike => AgentConfig { interference: Interference::Spiked, ..base },
            Arm::SpikeNoHold => AgentConfig { interference: Interference::Spiked, bistable: false, ..base },
            Arm::Strong => AgentConfig {
                release_threshold_milli: RELEASE_THRESHOLD_MILLI + 200,
                automatic_closure: false,
                ..base
            },
        }
    }
}

/// Controls whose learning is starved. The fourth starves the threshold instead and is for diagnosis only.
pub const STARVED: [(&str, Starvation, Option<i64>); 4] = [
    ("S1 frozen model", Starvation::FrozenModel, None),
    ("S2 no error signal", Starvation::NoErrorSignal, None),
    ("S3 scrambled actions", Starvation::ScrambledActions, None),
    ("S4 threshold 0.02", Starvation::None, Some(1_311)),
];

/// An arm's evaluation in a few numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is the value of what its name says")]
pub struct ArmResult {
    pub arm: Arm,
    pub committed_median: u32,
    pub length_median: u32,
    pub hold_rate_milli: i64,
    pub premature_releases: u32,
    pub spikes_while_held: u32,
    pub releases_on_spike: u32,
    pub closures_automatic: u32,
    pub closures_explicit: u32,
    pub stable_episodes: u32,
    pub stable_while_held: u32,
    pub norm_max_milli: i64,
    pub contacts_mean: u32,
    pub error_mean_milli: i64,
    pub variance_end_milli: i64,
    pub episodes: u32,
    pub writes_forced: u64,
    pub writes_injected: u64,
    pub trace_head: String,
}

impl ArmResult {
    fn new(arm: Arm, run: &Run, reports: &[EpisodeReport]) -> ArmResult {
        let count = reports.len().max(1) as i64;
        let sum = |of: fn(&EpisodeReport) -> u32| reports.iter().map(of).sum::<u32>();
        let informative = i64::from(sum(|report| report.informative_ticks)).max(1);
        let norm = reports.iter().map(|report| report.norm_max).max().unwrap_or(0);
        let provenance = run.agent.gate().provenance();
        ArmResult {
            arm,
            committed_median: median(reports.iter().map(|report| report.committed_steps)),
            length_median: median(reports.iter().map(|report| report.length)),
            hold_rate_milli: reports.iter().map(EpisodeReport::hold_rate_milli).sum::<i64>() / count,
            premature_releases: sum(EpisodeReport::premature_releases),
            spikes_while_held: sum(|report| report.spikes_while_held),
            releases_on_spike: sum(|report| report.releases_on_spike),
            closures_automatic: sum(|report| report.closures_automatic),
            closures_explicit: sum(|report| report.closures_explicit),
            stable_episodes: reports.iter().filter(|report| 0 < report.stable_while_held).count() as u32,
            stable_while_held: sum(|report| report.stable_while_held),
            norm_max_milli: to_milli(norm),
            contacts_mean: sum(|report| report.counts.contacts) / count as u32,
            error_mean_milli: to_milli(
                reports.iter().map(|report| report.error_sum).sum::<i64>() / informative,
            ),
            variance_end_milli: reports.last().map_or(0, |report| to_milli(report.variance_end)),
            episodes: reports.len() as u32,
            writes_forced: provenance.forced,
            writes_injected: provenance.injected,
            trace_head: run.trace.head().to_hex(),
        }
    }
}

/// A starved control's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is the value of what its name says")]
pub struct StarvedResult {
    pub control: &'static str,
    pub aborted_at: Option<u32>,
    pub variance_milli: i64,
    pub as_required: bool,
}

/// The delayed-reward pilot in one arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is the value of what its name says")]
pub struct PilotResult {
    pub arm: Arm,
    pub opened: u32,
    pub paid: u32,
    pub broken: u32,
    pub unresolved: u32,
    pub success_milli: i64,
    pub ticks_waited_mean_milli: i64,
    pub windows: u32,
    pub windows_long: u32,
    pub window_mean_milli: i64,
    pub persistence_milli: i64,
    pub distractors_taken: u32,
    pub explicit_near_pay: u32,
    pub broken_by_closure: u32,
}

impl PilotResult {
    fn new(arm: Arm, reports: &[EpisodeReport]) -> PilotResult {
        let sum = |of: fn(&EpisodeReport) -> u32| reports.iter().map(of).sum::<u32>();
        let (opened, paid) =
            (sum(|report| report.counts.delays_opened), sum(|report| report.counts.delays_paid));
        let broken = sum(|report| report.counts.delays_broken);
        let windows: Vec<_> = reports.iter().flat_map(|report| report.windows.iter().copied()).collect();
        let long: Vec<_> = windows.iter().filter(|window| 3 <= window.ticks).collect();
        let kept: Vec<i64> = long
            .iter()
            .filter(|window| RULE_SET_NORM <= window.norms.0)
            .map(|window| window.norms.1 * 1_000 / window.norms.0)
            .collect();
        let mean = |total: i64, count: usize| total / (count.max(1) as i64);
        let ticks: i64 = windows.iter().map(|window| i64::from(window.ticks)).sum();
        PilotResult {
            arm,
            opened,
            paid,
            broken,
            unresolved: opened - paid - broken,
            success_milli: i64::from(paid) * 1_000 / i64::from((paid + broken).max(1)),
            ticks_waited_mean_milli: mean(
                i64::from(sum(|report| report.counts.ticks_waited)) * 1_000,
                opened as usize,
            ),
            windows: windows.len() as u32,
            windows_long: long.len() as u32,
            window_mean_milli: mean(ticks * 1_000, windows.len()),
            persistence_milli: mean(kept.iter().sum(), kept.len()),
            distractors_taken: sum(|report| report.counts.distractors_taken),
            explicit_near_pay: sum(|report| report.explicit_near_pay),
            broken_by_closure: sum(|report| report.broken_by_closure),
        }
    }
}

/// Everything one seed gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedResult {
    /// The seed.
    pub seed: u64,
    /// The first phase; if the threshold was raised, its second try.
    pub warmup: Warmup,
    /// Whether the threshold was raised.
    pub threshold_step_used: bool,
    /// The second phase, if the first converged.
    pub consolidate: Option<Consolidate>,
    /// Arms, if the second phase emerged.
    pub arms: Vec<ArmResult>,
    /// Writes to the running variance by others than the learner, up to and on the emergent arm.
    pub foreign_writes: u64,
    /// Starved controls.
    pub starved: Vec<StarvedResult>,
    /// The pilot.
    pub pilot: Vec<PilotResult>,
    /// Head of the chain over the first two phases.
    pub trace_head: String,
}

impl SeedResult {
    /// The result of one arm.
    pub fn arm(&self, wanted: Arm) -> Option<&ArmResult> {
        self.arms.iter().find(|result| result.arm == wanted)
    }

    /// The pilot's result of one arm.
    pub fn pilot_arm(&self, wanted: Arm) -> Option<&PilotResult> {
        self.pilot.iter().find(|result| result.arm == wanted)
    }

    /// The ladder of difficulties as it was climbed.
    pub fn ladder(&self) -> &[RatchetStep] {
        self.consolidate.as_ref().map_or(&[], |phase| phase.ladder.as_slice())
    }
}

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

/// One of the five criteria.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Criterion {
    /// Its name.
    pub name: &'static str,
    /// What was asked.
    pub bar: &'static str,
    /// What was measured.
    pub value: String,
    /// Whether it passed.
    pub passed: bool,
}

/// What the whole experiment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All five criteria hold.
    Pass,
    /// At least one does not.
    Fail,
    /// Commitment did not come.
    CommitmentNotElicited,
    /// The gate was missed at both thresholds.
    GateMiscalibratedVsWorldModelError,
    /// A starved control did not abort: the probe cannot be trusted.
    StarvedControlFailed,
    /// The pilot opened too few delays to say anything.
    NonContributory,
    /// Somebody else wrote the running variance on the emergent arm.
    InvalidForcedWrite,
}

impl Outcome {
    /// The process's exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Outcome::Pass => 0,
            Outcome::Fail | Outcome::InvalidForcedWrite => 1,
            Outcome::CommitmentNotElicited => 3,
            Outcome::GateMiscalibratedVsWorldModelError => 4,
            Outcome::StarvedControlFailed => 5,
            Outcome::NonContributory => 6,
        }
    }
}

/// At least two of three, rounded up.
fn two_thirds(count: usize, of: usize) -> bool {
    2 * of <= 3 * count && 0 < of
}

/// Emergent against forced: does the behaviour need commitment to emerge, or just the committed state?
pub fn contrast(results: &[SeedResult]) -> &'static str {
    let differs = |result: &SeedResult| {
        let (Some(emergent), Some(forced)) = (result.arm(Arm::Emergent), result.arm(Arm::ForcedLow)) else {
            return false;
        };
        forced.committed_median < 5 * emergent.committed_median.abs_diff(forced.committed_median)
    };
    if two_thirds(results.iter().filter(|result| differs(result)).count(), results.len()) {
        "requires emergent commitment"
    } else {
        "requires only the committed state"
    }
}

/// Judges all seeds.
pub fn judge(results: &[(SeedResult, Trained)]) -> (Outcome, Vec<Criterion>) {
    let seeds: Vec<&SeedResult> = results.iter().map(|(result, _)| result).collect();
    let criteria = vec![committed(&seeds), held(&seeds), closed(&seeds), starved(&seeds), piloted(&seeds)];
    let any = |wanted: Trained| results.iter().any(|(_, trained)| *trained == wanted);
    let starved_failed =
        seeds.iter().any(|seed| seed.starved.iter().take(3).any(|control| !control.as_required));
    let outcome = if starved_failed {
        Outcome::StarvedControlFailed
    } else if any(Trained::Escalate) {
        Outcome::GateMiscalibratedVsWorldModelError
    } else if any(Trained::NotElicited) {
        Outcome::CommitmentNotElicited
    } else if seeds.iter().any(|seed| 0 < seed.foreign_writes) {
        Outcome::InvalidForcedWrite
    } else if !two_thirds(seeds.iter().filter(|seed| pilot_says_something(seed)).count(), seeds.len()) {
        Outcome::NonContributory
    } else if criteria.iter().all(|criterion| criterion.passed) {
        Outcome::Pass
    } else {
        Outcome::Fail
    };
    (outcome, criteria)
}

fn committed(seeds: &[&SeedResult]) -> Criterion {
    let of = |field: fn(&ArmResult) -> u32| {
        median(seeds.iter().map(|seed| seed.arm(Arm::Emergent).map_or(0, field)))
    };
    let (steps, length) = (of(|arm| arm.committed_median), of(|arm| arm.length_median));
    let foreign: u64 = seeds.iter().map(|seed| seed.foreign_writes).sum();
    let high =
        seeds.iter().filter_map(|seed| seed.arm(Arm::ForcedHigh)).map(|arm| arm.committed_median).max();
    Criterion {
        name: "AC1 commitment emerges on the target",
        bar: "median of at least 3 seeds > 100 committed steps of 200, nobody else writes the variance, length >= 150, forced-high 0",
        value: format!(
            "{steps} committed steps, length {length}, {foreign} foreign writes, forced-high {}",
            high.unwrap_or(0)
        ),
        passed: 3 <= seeds.len() && 100 < steps && 150 <= length && foreign == 0 && high == Some(0),
    }
}

fn held(seeds: &[&SeedResult]) -> Criterion {
    let sum = |arm: Arm, field: fn(&ArmResult) -> u32| {
        seeds.iter().filter_map(|seed| seed.arm(arm)).map(field).sum::<u32>()
    };
    let premature = sum(Arm::Emergent, |arm| arm.premature_releases);
    let spiked = sum(Arm::Spike, |arm| arm.releases_on_spike);
    let shown = sum(Arm::Spike, |arm| arm.spikes_while_held);
    let flickered = sum(Arm::SpikeNoHold, |arm| arm.releases_on_spike);
    let rate = seeds
        .iter()
        .filter_map(|seed| seed.arm(Arm::Emergent))
        .map(|arm| arm.hold_rate_milli)
        .min()
        .unwrap_or(0);
    Criterion {
        name: "AC2 the latch holds",
        bar: "no premature release, none of the spikes releases while without hold some do, hold rate >= 0.7",
        value: format!(
            "{premature} premature, {spiked} of {shown} spikes release ({flickered} without hold), hold rate {rate} of 1000"
        ),
        passed: premature == 0 && spiked == 0 && 0 < shown && 0 < flickered && 700 <= rate,
    }
}

fn closed(seeds: &[&SeedResult]) -> Criterion {
    let stable = |seed: &SeedResult| {
        seed.arm(Arm::Emergent).is_some_and(|arm| {
            arm.episodes <= 2 * arm.stable_episodes && 10 < arm.norm_max_milli && 0 < arm.closures_automatic
        })
    };
    let right = seeds.iter().filter(|seed| stable(seed)).count();
    let idle: u32 = seeds
        .iter()
        .filter_map(|seed| seed.arm(Arm::ForcedHigh))
        .map(|arm| arm.closures_automatic + arm.closures_explicit)
        .sum();
    let automatic: u32 =
        seeds.iter().filter_map(|seed| seed.arm(Arm::Emergent)).map(|arm| arm.closures_automatic).sum();
    Criterion {
        name: "AC3 the rule settles and closes",
        bar: "stable during a hold in half of the episodes with a rule set, at least one automatic closure, per seed; none on forced-high",
        value: format!(
            "{right} of {} seeds, {automatic} automatic closures, {idle} on forced-high",
            seeds.len()
        ),
        passed: right == seeds.len() && !seeds.is_empty() && idle == 0,
    }
}

fn starved(seeds: &[&SeedResult]) -> Criterion {
    let controls = || seeds.iter().flat_map(|seed| seed.starved.iter().take(3));
    let right = controls().filter(|control| control.as_required).count();
    let all = controls().count();
    Criterion {
        name: "AC4 starved controls abort",
        bar: "frozen model and no error signal exactly at 60 % of the budget, scrambled actions at or after it, on every seed",
        value: format!("{right} of {all}"),
        passed: right == all && 0 < all,
    }
}

fn pilot_says_something(seed: &SeedResult) -> bool {
    seed.pilot_arm(Arm::Emergent).is_some_and(|hold| 20 <= hold.opened && 0 < hold.windows)
}

fn piloted(seeds: &[&SeedResult]) -> Criterion {
    let passes = |seed: &SeedResult| {
        let (Some(hold), Some(none)) = (seed.pilot_arm(Arm::Emergent), seed.pilot_arm(Arm::NoHold)) else {
            return false;
        };
        pilot_says_something(seed)
            && 0 < hold.windows_long
            && 500 <= hold.persistence_milli
            && 0 < hold.explicit_near_pay
            && none.window_mean_milli < hold.window_mean_milli
            && none.success_milli + 200 <= hold.success_milli
    };
    let right = seeds.iter().filter(|seed| passes(seed)).count();
    let range = |arm: Arm| {
        let values =
            || seeds.iter().filter_map(|seed| seed.pilot_arm(arm)).map(|result| result.success_milli);
        format!("{} to {}", values().min().unwrap_or(0), values().max().unwrap_or(0))
    };
    Criterion {
        name: "AC5 holding carries a delayed reward",
        bar: "success with hold at least 0.20 above without, longer windows, rule kept, closed by the reward; on two thirds of the seeds",
        value: format!(
            "{right} of {} seeds, success {} of 1000 with hold, {} without",
            seeds.len(),
            range(Arm::Emergent),
            range(Arm::NoHold)
        ),
        passed: two_thirds(right, seeds.len()),
    }
}
