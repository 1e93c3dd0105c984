//! `bem bench pacing`: how many steps each way of pacing takes until the score is 0.99, family by family.
//!
//! The paced order is what the learner uses; the three schedulers of the specification stand beside it.

use super::{Benchmark, Measurement, measure, progress_bar};
use crate::cli::Answer;
use anyhow::Context;
use bem_engine::learner::Settings;
use bem_engine::solve::solve;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_machine::config::{SchedulerKind, Word};
use serde_json::json;

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "pacing",
    area: "pacing",
    about: "steps to score 0.99 with the best scheduler, beside the paced order",
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
    let all: Vec<f64> = (0..SchedulerKind::ALL.len()).map(|place| typical(rows, place)).collect();
    let best = all[1..].iter().copied().fold(f64::INFINITY, f64::min);
    Measurement::new("pacing", best, "steps", all[0], "the paced order, same tasks and seeds")
        .with("activities", all[1])
        .with("linear", all[2])
        .with("schedules", all[3])
}

/// Prints all ways of pacing side by side.
pub fn report(json: bool) -> anyhow::Result<Answer> {
    let progress = progress_bar(TASKS.len() as u64, json);
    let rows = rows(REPORT_SEEDS, |task| {
        progress.set_message(task);
        progress.inc(1);
    })?;
    progress.finish_and_clear();
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
        let bench = measurement(&rows).to_json();
        say!("{}", json!({ "machine": measure::machine(), "benches": [bench], "tasks": tasks }));
        return Ok(Answer::Yes);
    }
    say!("Steps to score 0.99, median of {REPORT_SEEDS} seeds; {BUDGET} means not reached.");
    say_text!("{:<68}", "task");
    SchedulerKind::ALL.iter().for_each(|pacing| say_text!(" {:>10}", pacing.name()));
    say!();
    for row in &rows {
        say_text!("{:<68}", row.task);
        row.steps.iter().for_each(|steps| say_text!(" {steps:>10}"));
        say!();
    }
    say_text!("{:<68}", "typical (geometric mean)");
    (0..SchedulerKind::ALL.len()).for_each(|place| say_text!(" {:>10.0}", typical(&rows, place)));
    say!();
    Ok(Answer::Yes)
}
