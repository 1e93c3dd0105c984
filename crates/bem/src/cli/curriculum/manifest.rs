//! The manifest of an experiment: set-up, bars, measurements and verdicts as one JSON object.

use bem_curriculum::experiment::{self, Criterion, Outcome, SeedResult, Trained};
use bem_curriculum::fraction::{THRESHOLD, THRESHOLD_STEP, VARIANCE_RATE, VARIANCE_START, to_milli};
use bem_curriculum::protocol::ProtocolConfig;
use serde_json::{Value, json};

/// Everything that was set, measured and judged.
pub fn manifest(
    config: &ProtocolConfig,
    results: &[(SeedResult, Trained)],
    outcome: Outcome,
    criteria: &[Criterion],
) -> Value {
    let plain: Vec<SeedResult> = results.iter().map(|(result, _)| result.clone()).collect();
    json!({
        "build": env!("CARGO_PKG_VERSION"),
        "config": {
            "budgets": config.budgets, "probe_every": config.probe_every,
            "abort_at_milli": config.abort_at_milli, "stable_probes": config.stable_probes,
            "competence_floor_milli": config.competence_floor_milli,
            "ratchet_committed": config.ratchet_committed, "introduction": config.introduction,
            "easy_grid": format!("{:?}", config.easy_grid),
        },
        "registered": {
            "threshold_milli": to_milli(THRESHOLD), "threshold_step_milli": to_milli(THRESHOLD_STEP),
            "variance_start_milli": to_milli(VARIANCE_START), "variance_rate_milli": to_milli(VARIANCE_RATE),
        },
        "seeds": results.iter().map(|(result, _)| seed(result)).collect::<Vec<_>>(),
        "criteria": criteria,
        "contrast": experiment::contrast(&plain),
        "outcome": outcome,
        "exit_code": outcome.exit_code(),
    })
}

fn seed(result: &SeedResult) -> Value {
    let probes: Vec<Value> = result
        .warmup
        .probes
        .iter()
        .map(|probe| {
            json!({
                "episode": probe.episode, "variance_milli": to_milli(probe.variance),
                "variance_window_max_milli": to_milli(probe.variance_window_max),
                "threshold_milli": to_milli(probe.threshold), "competence_milli": probe.competence_milli,
                "committed_mean": probe.committed_mean, "hold_rate_milli": probe.hold_rate_milli,
                "covered": probe.covered, "passed": probe.passed,
            })
        })
        .collect();
    let ladder: Vec<Value> = result
        .ladder()
        .iter()
        .map(|step| {
            json!({
                "difficulty": step.difficulty, "episode": step.episode, "global_step": step.global_step,
            })
        })
        .collect();
    let curve = |values: &[i64]| values.iter().map(|value| to_milli(*value)).collect::<Vec<_>>();
    json!({
        "seed": result.seed,
        "threshold_step_used": result.threshold_step_used,
        "warmup": { "end": format!("{:?}", result.warmup.end), "episodes": result.warmup.episodes,
                    "probes": probes, "variance_curve_milli": curve(&result.warmup.variance_curve) },
        "consolidate": result.consolidate.as_ref().map(|phase| json!({
            "end": format!("{:?}", phase.end), "episodes": phase.episodes, "difficulty": phase.difficulty,
            "ladder": ladder, "variance_curve_milli": curve(&phase.variance_curve) })),
        "arms": result.arms, "starved": result.starved, "pilot": result.pilot,
        "foreign_writes": result.foreign_writes, "trace_head": result.trace_head,
    })
}
