//! `bem bench beside`: what could be gained if a search ran beside the steps instead of between them.
//!
//! A search whose result takes effect L steps after it began can hide the time of L steps and no more, whoever computes it. L
//! steps are also what whoever waits for the result loses. The benchmark times every unit of the learner on the tasks of
//! `bem bench pacing` and adds up what a delay of three steps in a hundred could hide: in the worlds as they are, and in worlds
//! whose step takes a millisecond.

use super::pacing::TASKS;
use super::{Benchmark, Measurement, measure};
use crate::cli::Answer;
use bem_engine::learner::{Event, Learner, Settings};
use bem_games::compose::{NoPrograms, TaskTree};
use serde_json::json;
use std::time::Instant;

/// The benchmark of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "beside",
    area: "beside",
    about: "share of the time that searching beside the steps could hide",
    run: || Ok(measurement(&rows()?)),
}];

const SEED: u64 = 1;
const BUDGET: u64 = 12_000;
/// A search takes effect so much later: a share of the steps so far.
const DELAY: f64 = 0.03;
/// Seconds of one step of a slow world.
const SLOW: f64 = 0.001;

/// Where the time of one task went.
struct Row {
    task: &'static str,
    steps: u64,
    /// Seconds of all steps, and of everything else that is no search: proofs, contexts, measuring.
    stepping: f64,
    other: f64,
    /// Steps so far and seconds of every search.
    searches: Vec<(u64, f64)>,
}

impl Row {
    fn searching(&self) -> f64 {
        self.searches.iter().map(|(_, seconds)| seconds).sum()
    }

    /// The share of the time that can be hidden where a step takes so many seconds.
    fn hidden(&self, step: f64) -> f64 {
        let hidden: f64 =
            self.searches.iter().map(|(steps, seconds)| seconds.min(DELAY * *steps as f64 * step)).sum();
        hidden / (self.steps as f64 * step + self.searching() + self.other)
    }

    fn step(&self) -> f64 {
        self.stepping / self.steps.max(1) as f64
    }
}

fn row(task: &'static str) -> anyhow::Result<Row> {
    let game = TaskTree::parse(task)?.build(SEED, &NoPrograms)?;
    let mut world = game.start();
    let settings = Settings { budget: BUDGET, ..Settings::new(SEED) };
    let mut learner = Learner::new(world.shape(), settings)?;
    let mut row = Row { task, steps: 0, stepping: 0.0, other: 0.0, searches: Vec::new() };
    loop {
        let work = learner.tally().work;
        let started = Instant::now();
        let event = learner.advance(world.as_mut(), &mut ())?;
        let seconds = started.elapsed().as_secs_f64();
        let tally = learner.tally();
        match event {
            Event::Over => break,
            Event::Stepped | Event::EpisodeBegan | Event::EpisodeEnded => row.stepping += seconds,
            _ if work < tally.work => row.searches.push((tally.steps, seconds)),
            _ => row.other += seconds,
        }
    }
    row.steps = learner.tally().steps;
    Ok(row)
}

fn rows() -> anyhow::Result<Vec<Row>> {
    TASKS.into_iter().map(row).collect()
}

fn mean(rows: &[Row], value: impl Fn(&Row) -> f64) -> f64 {
    rows.iter().map(value).sum::<f64>() / rows.len() as f64
}

fn measurement(rows: &[Row]) -> Measurement {
    let slow = mean(rows, |row| row.hidden(SLOW));
    let fast = mean(rows, |row| row.hidden(row.step()));
    Measurement::new(
        "beside",
        fast,
        "of the time",
        DELAY,
        "the share of steps by which results would come later",
    )
    .with("with_steps_of_a_millisecond", slow)
}

/// Prints where the time of every task went.
pub fn report(json: bool) -> anyhow::Result<Answer> {
    let rows = rows()?;
    if json {
        let of = |row: &Row| {
            json!({
                "task": row.task, "steps": row.steps, "stepping_s": row.stepping, "searching_s": row.searching(),
                "other_s": row.other, "searches": row.searches.len(), "hidden": row.hidden(row.step()),
                "hidden_slow": row.hidden(SLOW),
            })
        };
        let tasks: Vec<_> = rows.iter().map(of).collect();
        let bench = measurement(&rows).to_json();
        say!("{}", json!({ "machine": measure::machine(), "benches": [bench], "tasks": tasks }));
        return Ok(Answer::Yes);
    }
    say!("Results of a search {DELAY} of the steps later: the share of the time that this can hide at most.");
    say!(
        "{:<68} {:>6} {:>9} {:>9} {:>9} {:>8} {:>7} {:>9}",
        "task",
        "steps",
        "step us",
        "search s",
        "other s",
        "searches",
        "hidden",
        "at 1 ms"
    );
    for row in &rows {
        say!(
            "{:<68} {:>6} {:>9.2} {:>9.3} {:>9.3} {:>8} {:>7.4} {:>9.4}",
            row.task,
            row.steps,
            1e6 * row.step(),
            row.searching(),
            row.other,
            row.searches.len(),
            row.hidden(row.step()),
            row.hidden(SLOW)
        );
    }
    Ok(Answer::Yes)
}
