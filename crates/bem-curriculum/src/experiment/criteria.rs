//! The five criteria and the verdict of the whole experiment, from what was measured against bars written down here.
//!
//! Clauses: CUR-6, CUR-10.

use super::Trained;
use super::arm::Arm;
use super::results::{ArmResult, SeedResult};
use crate::protocol::median;
use serde::Serialize;

/// With fewer seeds no run can pass: the first criterion asks for a median of at least so many.
pub const SEEDS_MIN: usize = 3;

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
        passed: SEEDS_MIN <= seeds.len() && 100 < steps && 150 <= length && foreign == 0 && high == Some(0),
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
