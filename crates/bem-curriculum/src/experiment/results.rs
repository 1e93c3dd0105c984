//! What was measured, in a few numbers an arm and a seed. Measures only; the verdicts are in `criteria`.
//!
//! Clauses: CUR-6, CUR-8, CUR-10.

use super::arm::Arm;
use crate::episode::EpisodeReport;
use crate::fraction::{RULE_SET_NORM, to_milli};
use crate::protocol::{Consolidate, RatchetStep, Run, Warmup, median};
use serde::Serialize;

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
    pub(super) fn new(arm: Arm, run: &Run, reports: &[EpisodeReport]) -> ArmResult {
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
    pub(super) fn new(arm: Arm, reports: &[EpisodeReport]) -> PilotResult {
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
