//! `bem run --world FILE`: a user's parametrised world on the ladder.
//!
//! Every setting is learned some times from scratch until it is solved; the median of the steps is its difficulty. Settings
//! are ordered by it, and as many rungs as asked for are taken evenly from that order. Whether the order can be trusted is
//! said by the rank correlation between two halves of the measurements. The rungs are part of the run's configuration, so that
//! they are in its history. Clauses: GLE-5, GLE-9; decision D-84.

use crate::cli::fit::WIDTH;
use crate::files;
use crate::interrupt;
use crate::world_ladder::{Setting, WorldLadder};
use anyhow::{Context as _, Result, bail};
use bem_base::digest::hash;
use bem_engine::climb::{Climb, ClimbConfig};
use bem_engine::learner::Settings;
use bem_engine::measure::{steps_to_solve, steps_to_solve_outside};
use bem_engine::parameters::check_world;
use bem_engine::world_file::WorldFile;
use bem_engine::worlds::World;
use bem_machine::config::GenesisConfig;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Times that a setting is learned to see how hard it is; an even number has two halves.
const SEEDS: u64 = 4;

/// What was measured of one setting.
pub struct Measured {
    task: String,
    setting: Setting,
    /// Steps until it was solved, for every seed; none where the budget ended before.
    steps: Vec<Option<u64>>,
    /// Its rung, counted from one, if it is one.
    rung: Option<usize>,
}

/// The settings in the order of their difficulty.
pub struct Ordered {
    rows: Vec<Measured>,
    budget: u64,
}

impl Measured {
    /// The steps in rising order, where a run that was not solved took more than any other.
    fn sorted(&self, part: impl Iterator<Item = usize>) -> Vec<u64> {
        let mut steps: Vec<u64> = part.map(|place| self.steps[place].unwrap_or(u64::MAX)).collect();
        steps.sort_unstable();
        steps
    }

    /// The upper median; nothing where at least half of the runs were not solved.
    fn median(&self) -> Option<u64> {
        let steps = self.sorted(0..self.steps.len());
        steps.get(steps.len() / 2).copied().filter(|steps| *steps != u64::MAX)
    }

    fn difficulty(&self) -> (u64, u128) {
        let sum = self.steps.iter().map(|steps| u128::from(steps.unwrap_or(u64::MAX))).sum();
        (self.median().unwrap_or(u64::MAX), sum)
    }
}

/// Reads the declaration, measures every setting and makes a climb over its rungs. The bytes are the world's file.
pub fn prepare(
    path: &Path,
    (seed, stages, unit_steps): (u64, usize, u64),
    parameters: Arc<GenesisConfig>,
    threads: usize,
) -> Result<(Climb, Vec<u8>, Ordered)> {
    let text = files::read_text(path)?;
    let named = || format!("--world {}", path.display());
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let ladder = WorldLadder::parse(&text, BTreeMap::new())
        .and_then(|ladder| ladder.with_files(|name| files::read_text(&folder.join(name))))
        .with_context(named)?;
    let mut ordered = measure(&ladder, seed, unit_steps, &parameters, threads).with_context(named)?;
    let count = ordered.rows.len();
    let stages = stages.min(count);
    let mut rungs = Vec::new();
    for stage in 0..stages {
        let place = stage * (count - 1) / (stages - 1);
        ordered.rows[place].rung = Some(stage + 1);
        rungs.push(ordered.rows[place].task.clone());
    }
    let config = ClimbConfig { seed, stages, unit_steps, families: vec![ladder.name.clone()], parameters };
    let bytes = WorldFile::Ladder { text, files: ladder.files().clone() }.to_bytes();
    let climb = Climb::with_rungs(config, vec![rungs])?.with_files(vec![hash(&bytes)]);
    Ok((climb, bytes, ordered))
}

/// Learns every setting some times from scratch.
fn measure(
    ladder: &WorldLadder,
    seed: u64,
    budget: u64,
    parameters: &Arc<GenesisConfig>,
    threads: usize,
) -> Result<Ordered> {
    let jobs = ladder.settings.len() * SEEDS as usize;
    let results: Mutex<Vec<Option<Result<Option<u64>>>>> = Mutex::new((0..jobs).map(|_| None).collect());
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if jobs <= job || interrupt::is_asked() {
                return;
            }
            let task = ladder.task(&ladder.settings[job / SEEDS as usize]);
            let settings = Settings {
                seed: seed.wrapping_mul(1_000).wrapping_add(job as u64 % SEEDS),
                budget,
                config: Arc::clone(parameters),
            };
            let answer = learn(ladder, &task, settings).with_context(|| task.clone());
            results.lock().unwrap_or_else(PoisonError::into_inner)[job] = Some(answer);
        }
    };
    std::thread::scope(|scope| (0..threads.min(jobs)).for_each(|_| drop(scope.spawn(work))));
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
    let mut rows = Vec::new();
    for setting in &ladder.settings {
        let mut steps = Vec::new();
        for result in results.by_ref().take(SEEDS as usize) {
            let Some(result) = result else {
                bail!("interrupted while settings were measured: nothing is kept")
            };
            steps.push(result?);
        }
        rows.push(Measured { task: ladder.task(setting), setting: setting.clone(), steps, rung: None });
    }
    rows.sort_by_key(Measured::difficulty);
    Ok(Ordered { rows, budget })
}

fn learn(ladder: &WorldLadder, task: &str, settings: Settings) -> Result<Option<u64>> {
    let seed = settings.seed;
    match ladder.open(task, seed)? {
        World::Game(game) => {
            check_world(&settings.config, game.shape())?;
            Ok(steps_to_solve(game.as_ref(), settings)?)
        }
        World::Stated(mut world, yardstick) => {
            check_world(&settings.config, world.shape())?;
            let World::Stated(mut judging, _) = ladder.open(task, seed)? else {
                bail!("a world that changes")
            };
            Ok(steps_to_solve_outside(world.as_mut(), judging.as_mut(), yardstick, settings)?)
        }
        World::Outside(_) => bail!("nobody knows when this world is solved"),
    }
}

impl Ordered {
    /// Spearman's rank correlation between the medians of the even and of the odd runs.
    pub fn rank_correlation(&self) -> Option<f64> {
        let half = |odd: usize| -> Vec<f64> {
            let medians: Vec<u64> = self
                .rows
                .iter()
                .map(|row| {
                    let steps = row.sorted((odd..row.steps.len()).step_by(2));
                    steps.get(steps.len() / 2).copied().unwrap_or(u64::MAX)
                })
                .collect();
            ranks(&medians)
        };
        correlation(&half(0), &half(1))
    }

    /// One line for every setting.
    pub fn table(&self) -> String {
        let width = self.rows.iter().map(|row| row.task.len()).max().unwrap_or(0).min(WIDTH - 24);
        let mut text = format!("{:<width$} {:>12}  rung\n", "setting, easiest first", "steps");
        for row in &self.rows {
            let steps = row.median().map_or(format!("> {}", self.budget), |steps| steps.to_string());
            let rung = row.rung.map_or(String::new(), |rung| rung.to_string());
            text.push_str(&format!("{:<width$} {steps:>12}  {rung}\n", row.task));
        }
        if let Some(agreement) = self.rank_correlation() {
            text.push_str(&format!(
                "rank correlation between two halves of the runs: {agreement:.2} ({SEEDS} runs a setting)\n"
            ));
        }
        text
    }

    /// The same for scripts.
    pub fn to_json(&self) -> Value {
        let row = |row: &Measured| {
            json!({ "task": row.task, "params": row.setting, "steps_to_99": row.steps, "median": row.median(),
                "rung": row.rung })
        };
        json!({ "settings": self.rows.iter().map(row).collect::<Vec<_>>(), "budget": self.budget,
            "rank_correlation": self.rank_correlation() })
    }
}

/// The ranks of values; equal ones share the mean of theirs.
fn ranks(values: &[u64]) -> Vec<f64> {
    let rank = |value: &u64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// The correlation of two rows; nothing where one of them does not vary.
fn correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    let count = one.len() as f64;
    let mean = |row: &[f64]| row.iter().sum::<f64>() / count;
    let (first, second) = (mean(one), mean(other));
    let product: f64 = one.iter().zip(other).map(|(a, b)| (a - first) * (b - second)).sum();
    let spread = |row: &[f64], mean: f64| row.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let scale = (spread(one, first) * spread(other, second)).sqrt();
    (0.0 < scale).then(|| product / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_ties_and_correlate_from_minus_one_to_one() {
        assert_eq!(ranks(&[5, 1, 5, 9]), [1.5, 0.0, 1.5, 3.0]);
        let rising = ranks(&[1, 2, 3, 4]);
        let falling = ranks(&[4, 3, 2, 1]);
        assert_eq!(correlation(&rising, &rising), Some(1.0));
        assert_eq!(correlation(&rising, &falling), Some(-1.0));
        assert_eq!(correlation(&rising, &[1.0; 4]), None);
    }
}
