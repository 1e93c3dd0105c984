//! `bem bench people`: whether answers help, on drawn worlds where reward alone is slow.
//!
//! Worlds of three kinds are drawn, and those kept in which the learner is slow without help. In each of them a
//! script that knows the optimum answers, then one that is right four times in five, then one that lies. Answers are few and
//! late (see [`script`]). Runs are functions of their seeds, so that the figures come back. Clause: HUM-13; decisions D-126, D-184,
//! D-210, D-216, D-217.

pub mod harm;
pub mod page;
pub mod script;

use super::{Benchmark, Measurement, progress_bar};
use crate::cli::Answer;
use crate::interrupt;
use anyhow::Result;
use bem_engine::learner::Settings;
use bem_games::game::Game;
use bem_games::generated::WorldKind;
use script::{Annotator, Course, Ran};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "people_noise",
        area: "people",
        about: "steps to score 0.99 with 200 late answers, beside nobody: noisy rewards",
        run: || measurement("people_noise", WorldKind::Noise),
    },
    Benchmark {
        name: "people_chain",
        area: "people",
        about: "the same where one reward lies at the end of a long chain",
        run: || measurement("people_chain", WorldKind::Chain),
    },
    Benchmark {
        name: "people_consequence",
        area: "people",
        about: "the same where a first action decides what is paid much later",
        run: || measurement("people_consequence", WorldKind::Consequence),
    },
];

/// Tasks of every kind that are measured. The other two kinds are quick by reward alone: none of eight took 5,000 steps.
const TASKS: usize = 12;
/// Steps of one run; one that does not get there counts with all of them.
const BUDGET: u64 = 200_000;
/// Reward alone is slow where it takes as many steps.
const SLOW: u64 = 5_000;
/// Seeds begin here: none of those that the rules were tried on.
const FIRST_SEED: u64 = 7_000;
/// Other random streams of the learner in the same world, with nobody and with the liar: what chance does by itself.
const STREAMS: u64 = 1;
/// Seeds of every kind that are looked at before giving up.
const SEEDS_MAX: u64 = 64;

/// Share of nobody's steps that right answers may leave, and what a liar may cost of the last score.
const RIGHT_MOST: f64 = 0.5;
const LOSS_MOST: f64 = 0.01;

/// Who answers, in the order of the columns.
const ANNOTATORS: [Annotator; 4] =
    [Annotator::Nobody, Annotator::Right(100), Annotator::Right(80), Annotator::Liar];
const NAMES: [&str; 4] = ["nobody", "right", "right 80 %", "liar"];

/// Learns a game beside an annotator until 0.99 has lasted.
fn run(
    game: &dyn Game,
    settings: Settings,
    annotator: Annotator,
) -> Result<Ran, bem_base::environment::EnvironmentError> {
    script::run(game, settings, annotator, Course::default())
}

/// One task.
pub struct Row {
    kind: WorldKind,
    seed: u64,
    /// One run for each annotator.
    ran: Vec<Ran>,
    /// Nobody and the liar once more, with other random streams of the learner.
    again: Vec<[Ran; 2]>,
}

impl Row {
    fn steps(&self, place: usize) -> u64 {
        self.ran[place].steps_to_99.unwrap_or(BUDGET)
    }

    fn ratio(&self, place: usize) -> f64 {
        self.steps(place) as f64 / self.steps(0).max(1) as f64
    }

    fn score(&self, place: usize) -> f64 {
        self.ran[place].score.to_raw() as f64 / (1u64 << 32) as f64
    }
}

/// One task, unless it is quick by reward alone.
fn row(kind: WorldKind, seed: u64) -> Result<Option<Row>> {
    let game = kind.draw(seed);
    let ran = |stream: u64, annotator| {
        let settings = Settings { budget: BUDGET, ..Settings::new(seed + (stream << 32)) };
        run(game.as_ref(), settings, annotator)
    };
    let alone = ran(0, Annotator::Nobody)?;
    if alone.steps_to_99.is_some_and(|steps| steps < SLOW) {
        return Ok(None);
    }
    let mut all = vec![alone];
    for annotator in &ANNOTATORS[1..] {
        all.push(ran(0, *annotator)?);
    }
    let again =
        (1..=STREAMS).map(|stream| Ok([ran(stream, Annotator::Nobody)?, ran(stream, Annotator::Liar)?]));
    let again = again.collect::<Result<_>>()?;
    Ok(Some(Row { kind, seed, ran: all, again }))
}

/// The first slow tasks of a kind, as many at a time as there are cores. Every thread finishes the seed that it has taken, so that
/// the first ones are the same for any number of threads.
fn rows(kind: WorldKind, on_row: impl Fn(&Row) + Sync) -> Result<Vec<Row>> {
    let (next, found) = (AtomicU64::new(FIRST_SEED), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let is_enough = TASKS <= found.lock().expect("no thread stopped").len();
            if is_enough || FIRST_SEED + SEEDS_MAX <= seed || interrupt::is_asked() {
                return Ok(());
            }
            if let Some(row) = row(kind, seed)? {
                on_row(&row);
                found.lock().expect("no thread stopped").push(row);
            }
        }
    };
    std::thread::scope(|scope| -> Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread stopped"))
    })?;
    let mut rows = found.into_inner().expect("no thread stopped");
    rows.sort_by_key(|row| row.seed);
    rows.truncate(TASKS);
    Ok(rows)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}

/// The median ratio of steps of one column to nobody's.
fn median_ratio(rows: &[Row], place: usize) -> f64 {
    median(rows.iter().map(|row| row.ratio(place)).collect())
}

/// By how much the liar's final score is lower than nobody's, at worst.
fn worst_loss(rows: &[Row]) -> f64 {
    rows.iter().map(|row| row.score(0) - row.score(3)).fold(0.0, f64::max)
}

/// The mean of last scores over all tasks and streams, and how many runs did not get to 0.99: nobody's or the liar's.
fn over_streams(rows: &[Row], is_liar: bool) -> (f64, usize) {
    let runs = rows.iter().flat_map(|row| {
        let first = &row.ran[if is_liar { 3 } else { 0 }];
        row.again.iter().map(move |pair| &pair[usize::from(is_liar)]).chain([first])
    });
    let scores: Vec<f64> = runs.map(|ran| ran.score.to_raw() as f64 / (1u64 << 32) as f64).collect();
    let failed = scores.iter().filter(|score| **score < 0.99).count();
    (scores.iter().sum::<f64>() / scores.len().max(1) as f64, failed)
}

fn measurement(name: &'static str, kind: WorldKind) -> Result<Measurement> {
    let rows = rows(kind, |_| {})?;
    let floor = "half of the steps that it takes without people";
    Ok(Measurement::new(name, median_ratio(&rows, 1), "of nobody's steps", RIGHT_MOST, floor)
        .with("tasks", rows.len() as f64)
        .with("right_80_percent", median_ratio(&rows, 2))
        .with("liar", median_ratio(&rows, 3))
        .with("liar_worst_loss", worst_loss(&rows))
        .with("nobody_mean_score", over_streams(&rows, false).0)
        .with("liar_mean_score", over_streams(&rows, true).0)
        .with("nobody_failed", over_streams(&rows, false).1 as f64)
        .with("liar_failed", over_streams(&rows, true).1 as f64))
}

fn row_json(row: &Row) -> Value {
    let runs: Vec<Value> = row
        .ran
        .iter()
        .zip(NAMES)
        .map(|(ran, name)| {
            json!({ "annotator": name, "steps_to_99": ran.steps_to_99, "steps": ran.steps,
                "score": ran.score.to_raw() as f64 / (1u64 << 32) as f64, "bad_per_1000": ran.bad,
                "asked": ran.asked, "answered": ran.answered, "patches_applied": ran.applied,
                "patches_rejected": ran.rejected, "trace_head": ran.head, "policy": ran.words })
        })
        .collect();
    json!({ "kind": row.kind.name(), "seed": row.seed, "runs": runs })
}

fn cell(row: &Row, place: usize) -> String {
    match row.ran[place].steps_to_99 {
        Some(steps) => steps.to_string(),
        None => format!("- ({:.3})", row.score(place)),
    }
}

/// The line of a task in the table.
fn line(row: &Row) -> String {
    let (kind, seed, answers) = (row.kind.name(), row.seed, row.ran[1].answered);
    let [nobody, right, mostly, liar] = [0, 1, 2, 3].map(|place| cell(row, place));
    format!("| {kind} {seed} | {nobody} | {right} | {answers} | {mostly} | {liar} | {:.3} |", row.score(3))
}

/// The kinds that these names ask for: the area, or benchmarks of it; none where other benchmarks are asked for too.
pub fn kinds(names: &[String]) -> Option<Vec<WorldKind>> {
    const KINDS: [WorldKind; 3] = [WorldKind::Noise, WorldKind::Chain, WorldKind::Consequence];
    if names == ["people"] {
        return Some(KINDS.to_vec());
    }
    let named =
        |name: &String| KINDS.into_iter().find(|kind| name.strip_prefix("people_") == Some(kind.name()));
    names.iter().map(named).collect::<Option<Vec<WorldKind>>>().filter(|kinds| !kinds.is_empty())
}

/// Prints the tables of these kinds, and medians over each and over all of them.
pub fn report(kinds: &[WorldKind], is_json: bool) -> Result<Answer> {
    interrupt::listen();
    let progress = progress_bar((TASKS * kinds.len()) as u64, is_json);
    let mut tables = Vec::new();
    for kind in kinds {
        let on_row = |row: &Row| {
            progress.inc(1);
            progress.suspend(|| note!("{}", line(row)));
        };
        tables.push(rows(*kind, on_row)?);
    }
    progress.finish_and_clear();
    let all: Vec<&Row> = tables.iter().flatten().collect();
    if is_json {
        let table: Vec<Value> = all.iter().map(|row| row_json(row)).collect();
        let medians: Vec<Value> = kinds
            .iter()
            .zip(&tables)
            .map(|(kind, rows)| {
                json!({ "kind": kind.name(), "tasks": rows.len(), "right": median_ratio(rows, 1),
                    "right_80": median_ratio(rows, 2), "liar": median_ratio(rows, 3),
                    "liar_worst_loss": worst_loss(rows), "nobody_mean_score": over_streams(rows, false).0,
                    "liar_mean_score": over_streams(rows, true).0, "nobody_failed": over_streams(rows, false).1,
                    "liar_failed": over_streams(rows, true).1 })
            })
            .collect();
        say!("{}", json!({ "tasks": table, "medians": medians }));
        return Ok(Answer::Yes);
    }
    say!(
        "Steps until the score is 0.99 and stays, {BUDGET} at most; where it was not reached, the last score."
    );
    say!(
        "At most one question in {} steps, {} answers, each {} steps late. Slow is {SLOW} steps or more.\n",
        script::STEPS_A_QUESTION,
        script::ANSWERS_MAX,
        script::LATE
    );
    say!("| world | nobody | right | answers | right 80 % | liar | liar's last score |");
    say!("|---|---|---|---|---|---|---|");
    all.iter().for_each(|row| say!("{}", line(row)));
    say!("\n| kind | tasks | right | right 80 % | liar | liar's last score below nobody's, at worst |");
    say!("|---|---|---|---|---|---|");
    for (kind, rows) in kinds.iter().zip(&tables) {
        let [right, mostly, liar] = [1, 2, 3].map(|place| median_ratio(rows, place));
        let (kind, tasks, loss) = (kind.name(), rows.len(), worst_loss(rows));
        say!("| {kind} | {tasks} | {right:.2} | {mostly:.2} | {liar:.2} | {loss:.3} |");
    }
    say!(
        "\n| kind | runs of {} streams each | mean last score, nobody | liar | below 0.99, nobody | liar |",
        STREAMS + 1
    );
    say!("|---|---|---|---|---|---|");
    for (kind, rows) in kinds.iter().zip(&tables) {
        let [(alone, failed), (lied_to, lost)] = [false, true].map(|is_liar| over_streams(rows, is_liar));
        let (kind, runs) = (kind.name(), rows.len() * (1 + STREAMS as usize));
        say!("| {kind} | {runs} | {alone:.3} | {lied_to:.3} | {failed} | {lost} |");
    }
    let [right, mostly, liar] =
        [1, 2, 3].map(|place| median(all.iter().map(|row| row.ratio(place)).collect()));
    let loss = tables.iter().map(|rows| worst_loss(rows)).fold(0.0, f64::max);
    say!(
        "\nMedian share of nobody's steps over all {}: right {right:.2} (asked: {RIGHT_MOST}), right 80 % {mostly:.2}",
        all.len()
    );
    say!(
        "(asked: below 1), liar {liar:.2}. The liar's last score is at worst {loss:.3} below nobody's (asked: {LOSS_MOST})."
    );
    let is_reached = right <= RIGHT_MOST && mostly < 1.0 && loss <= LOSS_MOST;
    Ok(if is_reached { Answer::Yes } else { Answer::No })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_answers_halve_the_steps_and_wrong_ones_let_nothing_in_that_is_worse() {
        // Four contexts, five actions, rewards that differ by less than their noise: slow by reward alone.
        let game = WorldKind::Noise.draw(1);
        let ran = |annotator| {
            let settings = Settings { budget: 40_000, ..Settings::new(1) };
            run(game.as_ref(), settings, annotator).expect("a drawn world does not fail")
        };
        let [nobody, right, mostly, liar] = ANNOTATORS.map(ran);
        let steps = |ran: &Ran| ran.steps_to_99.unwrap_or(40_000);
        assert!(2 * steps(&right) <= steps(&nobody), "{} of {}", steps(&right), steps(&nobody));
        assert!(steps(&mostly) < steps(&nobody), "{} of {}", steps(&mostly), steps(&nobody));
        assert_eq!((nobody.asked, nobody.answered), (0, 0));
        assert!(
            right.answered <= script::ANSWERS_MAX
                && right.asked as u64 * script::STEPS_A_QUESTION <= right.steps
        );
        let [alone, lied_to] = [&nobody, &liar].map(|ran| ran.score.to_raw() as f64 / (1u64 << 32) as f64);
        assert!(alone - lied_to <= 0.01, "{lied_to} after {alone}");
        // The same again makes the same history.
        assert_eq!(ran(ANNOTATORS[1]).head, right.head);
    }

    #[test]
    fn in_a_chain_right_answers_lead_on_and_a_liar_costs_steps_only() {
        // Ten places, one reward at the end: reward alone takes more than ten thousand steps.
        let game = WorldKind::Chain.draw(5_017);
        let ran = |annotator| {
            let settings = Settings { budget: 40_000, ..Settings::new(5_017) };
            run(game.as_ref(), settings, annotator).expect("a drawn world does not fail")
        };
        let [nobody, right, mostly, liar] = ANNOTATORS.map(ran);
        let steps = |ran: &Ran| ran.steps_to_99.unwrap_or(40_000);
        assert!(SLOW <= steps(&nobody));
        assert!(2 * steps(&right) <= steps(&nobody), "{} of {}", steps(&right), steps(&nobody));
        assert!(steps(&mostly) < steps(&nobody), "{} of {}", steps(&mostly), steps(&nobody));
        let [alone, lied_to] = [&nobody, &liar].map(|ran| ran.score.to_raw() as f64 / (1u64 << 32) as f64);
        assert!(alone - lied_to <= 0.01, "{lied_to} after {alone}");
        assert!(
            right.answered <= script::ANSWERS_MAX
                && right.asked as u64 * script::STEPS_A_QUESTION <= right.steps
        );
    }
}
