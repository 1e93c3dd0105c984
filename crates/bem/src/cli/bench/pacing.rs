//! `bem bench pacing`: how many steps each way of pacing takes until the score is 0.99, family by family.
//!
//! The paced order is what the learner uses; the three schedulers of the specification stand beside it. The default may take two
//! percent more steps than the best of the four, or the answer is no. `cargo xtask results pacing` writes docs/results/pacing.md.

use super::{Benchmark, Measurement, answer_to, measure, progress_bar};
use crate::cli::Answer;
use anyhow::Context;
use bem_engine::learner::Settings;
use bem_engine::solve::solve;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_machine::config::{GenesisConfig, SchedulerKind, Word};
use serde_json::json;

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "pacing",
    area: "pacing",
    about: "steps to score 0.99 with the default scheduler, beside the best of the four",
    run: || Ok(measurement(&rows(SEEDS, |_| {})?)),
}];

/// Tasks of several kinds, each of which takes a second or so.
pub const TASKS: [&str; 8] = [
    "parity{n=16}",
    "majority{n=9}",
    "compare{bits=6}",
    "copy{length=6}",
    "dyck{types=1,depth=4,length=16}",
    "contextual_bandit{context_bits=2,noise_bits=3,arms=3}",
    "matrix_game{game=prisoners_dilemma,opponent=tit_for_tat,horizon=7}",
    "safety_grid",
];
/// Seeds of every task, among the other benchmarks and in a report of its own.
const SEEDS: u64 = 3;
const REPORT_SEEDS: u64 = 20;
/// Steps of one run; one that does not get there counts with all of them.
const BUDGET: u64 = 12_000;
/// The default takes at most so many times the steps of the best.
const RATIO_MOST: f64 = 1.02;

/// Steps of one task with each way of pacing: the median over the seeds.
struct Row {
    task: &'static str,
    steps: [u64; SchedulerKind::ALL.len()],
}

fn rows(seeds: u64, mut on_task: impl FnMut(&'static str)) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for task in TASKS {
        on_task(task);
        let mut steps = [0; SchedulerKind::ALL.len()];
        for (place, pacing) in SchedulerKind::ALL.iter().copied().enumerate() {
            let mut taken = Vec::new();
            for seed in 1..=seeds {
                let game = TaskTree::parse(task)?.build(seed, &NoPrograms)?;
                let settings = Settings { budget: BUDGET, ..Settings::new(seed) }
                    .with(|config| config.scheduler = pacing);
                let solution = solve(game.as_ref(), settings, &mut |_| true)
                    .with_context(|| format!("{task}, {}", pacing.name()))?;
                taken.push(solution.steps_to_99.unwrap_or(BUDGET));
            }
            taken.sort_unstable();
            steps[place] = taken[taken.len() / 2];
        }
        rows.push(Row { task, steps });
    }
    Ok(rows)
}

/// The mean over tasks of the logarithm of the steps, taken back: a task ten times as long does not count ten times.
fn typical(rows: &[Row], place: usize) -> f64 {
    let sum: f64 = rows.iter().map(|row| (row.steps[place].max(1) as f64).ln()).sum();
    (sum / rows.len() as f64).exp()
}

fn measurement(rows: &[Row]) -> Measurement {
    let all: [f64; SchedulerKind::ALL.len()] = std::array::from_fn(|place| typical(rows, place));
    compared(GenesisConfig::default().scheduler, all)
}

/// What the default takes, beside the best of all.
fn compared(default: SchedulerKind, all: [f64; SchedulerKind::ALL.len()]) -> Measurement {
    let best = all.into_iter().fold(f64::INFINITY, f64::min);
    let place = SchedulerKind::ALL.iter().position(|kind| *kind == default).expect("all kinds are listed");
    let told =
        Measurement::new("pacing", all[place], "steps", best, "the best of the four, same tasks and seeds");
    let kinds = SchedulerKind::ALL.iter().zip(all);
    kinds.fold(told.at_most(RATIO_MOST), |told, (kind, steps)| told.with(kind.name(), steps))
}

/// Prints all ways of pacing side by side.
pub fn report(json: bool) -> anyhow::Result<Answer> {
    let progress = progress_bar(TASKS.len() as u64, json);
    let rows = rows(REPORT_SEEDS, |task| {
        progress.set_message(task);
        progress.inc(1);
    })?;
    progress.finish_and_clear();
    let bench = measurement(&rows);
    let answer = answer_to(&bench);
    if json {
        let tasks: Vec<_> = rows
            .iter()
            .map(|row| {
                let steps = SchedulerKind::ALL.iter().zip(row.steps);
                let steps: serde_json::Map<_, _> =
                    steps.map(|(pacing, steps)| (pacing.name().to_string(), json!(steps))).collect();
                json!({ "task": row.task, "steps_to_99": steps })
            })
            .collect();
        say!("{}", json!({ "machine": measure::machine(), "benches": [bench.to_json()], "tasks": tasks }));
        return Ok(answer);
    }
    let names: Vec<&str> = SchedulerKind::ALL.iter().map(|pacing| pacing.name()).collect();
    say!(
        "Steps to a score of 0.99 by what decides what the next unit of work is spent on (`scheduler`): the median of \
         {REPORT_SEEDS} seeds, where {BUDGET} means not reached.\n"
    );
    say!("| task | {} |", names.join(" | "));
    say!("|---|{}", "---|".repeat(names.len()));
    for row in &rows {
        let steps = row.steps.map(|steps| steps.to_string());
        say!("| `{}` | {} |", row.task, steps.join(" | "));
    }
    let typical: Vec<String> =
        (0..names.len()).map(|place| format!("{:.1}", typical(&rows, place))).collect();
    say!("| geometric mean | {} |", typical.join(" | "));
    say!(
        "\nThe default takes {:.3} times the steps of the best of the four (asked: at most {RATIO_MOST}).",
        bench.ratio()
    );
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_that_is_more_than_two_percent_behind_the_best_is_a_miss() {
        let missed = |all| compared(SchedulerKind::Paced, all).missed().is_some();
        assert!(!missed([290.0, 299.0, 301.0, 303.0]) && !missed([101.9, 100.0, 140.0, 120.0]));
        assert!(missed([102.1, 140.0, 100.0, 120.0]));
        assert!(compared(SchedulerKind::Linear, [290.0, 299.0, 301.0, 303.0]).missed().is_some());
    }
}
