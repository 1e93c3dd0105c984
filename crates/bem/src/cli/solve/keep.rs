//! The folder of a run over one task: its ledger from the first step on, snapshots on the way, and what it shows at the end.
//!
//! A game's run writes its ledger before it learns anything and puts its learner away now and then ([`Saves`]). What has happened
//! until then goes to the ledger, so that neither memory nor what is put away grows with the steps. A process that is killed
//! loses what came after the last of these and takes those steps again. A run that gets more budget begins a new history, and
//! the one before is set aside in the same folder, whole. Clauses: LOG-4, LOG-5;
//! decisions D-268, D-308.

use super::look;
use crate::answers;
use crate::cli::run::evaluations;
use crate::cli::run::history::{History, PutAway};
use crate::cli::run::report::{self, Curves, Played};
use crate::measured::Measured;
use anyhow::{Context as _, Result};
use bem_base::digest::hash;
use bem_base::environment::Shape;
use bem_engine::chronicle::Happening;
use bem_engine::climb::{Climb, Unit, UnitResult};
use bem_engine::journal::UnderWay;
use bem_engine::learner::Settings;
use bem_engine::solve::Solution;
use bem_engine::suspend::{write_off, written};
use bem_engine::world_file::WorldFile;
use bem_ledger::log::LogOptions;
use bem_tables::beside::{with_losses, without_losses};
use bem_tables::losses::Losses;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Steps between two times that a learner is put away, at least.
const SAVE_STEPS: u64 = 20_000;
/// They are also at least this part of the steps before: a learner is soon much larger than what happens in so few steps.
const SAVE_PART: u64 = 8;
/// And at most so many: what has happened is kept in memory until then, nine bytes a step or so.
const SAVE_STEPS_MAX: u64 = 200_000;

/// When a learner is put away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saves {
    /// The most steps at which it was put away.
    reached: u64,
    /// Steps at which it is put away next; unknown before the first look at a learner that goes on.
    due: Option<u64>,
}

impl Saves {
    /// For a learner that begins, or one that goes on from where it was put away.
    pub fn new(goes_on: bool) -> Saves {
        Saves { reached: 0, due: (!goes_on).then_some(SAVE_STEPS) }
    }

    fn after(reached: u64) -> u64 {
        reached + (reached / SAVE_PART).clamp(SAVE_STEPS, SAVE_STEPS_MAX)
    }

    /// Whether a learner that has taken so many steps is to be put away now.
    pub fn is_due(&mut self, steps: u64) -> bool {
        *self.due.get_or_insert_with(|| Saves::after(steps)) <= steps
    }

    /// It was put away after so many steps. A learner that began anew, because what was put away did not fit, is not put away
    /// before it is as far again.
    pub fn done(&mut self, steps: u64) {
        self.reached = self.reached.max(steps);
        self.due = Some(Saves::after(self.reached));
    }
}

/// What is moved when a run is set aside; the salt of its key is copied.
const PARTS: [&str; 5] = ["ledger", report::NAME, evaluations::NAME, "curves.jsonl", look::NAME];

/// The run over this task alone, and the files that its world is made of.
pub fn single(settings: &Settings, task: &str, file: Option<&WorldFile>) -> (Climb, Vec<Vec<u8>>) {
    let files: Vec<Vec<u8>> = file.into_iter().map(WorldFile::to_bytes).collect();
    let digests = files.iter().map(|file| hash(file)).collect();
    let climb = Climb::single(short_name(task), task, settings);
    (climb.with_files(digests), files)
}

/// How the names of scripts end, which an interpreter is given.
const SCRIPTS: [&str; 12] = ["py", "js", "mjs", "ts", "rb", "pl", "sh", "lua", "r", "jl", "php", "jar"];

/// What the expert is called: the family, the operator, the file or the script without folder and ending, or the program's
/// name.
fn short_name(task: &str) -> &str {
    let is_script = |word: &&str| {
        let ending = Path::new(word).extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| SCRIPTS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
    };
    let words = || task.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let first = words().find(is_script).or_else(|| words().next()).unwrap_or(task);
    let name = first.split(['{', '(']).next().unwrap_or(first);
    Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or("task")
}

/// A learner that was put away, and what it had lost against best play.
type Kept = (Vec<u8>, Losses);

/// A run's folder while its task is learned.
pub struct Keeper {
    directory: PathBuf,
    climb: Climb,
    unit: Unit,
    history: History,
    losses: Option<Losses>,
}

impl Keeper {
    /// Begins a history in a folder.
    pub fn create(
        directory: &Path,
        key: Option<&Path>,
        settings: &Settings,
        task: &str,
        file: Option<&WorldFile>,
    ) -> Result<Keeper> {
        let (climb, files) = single(settings, task, file);
        let unit = climb.next(&BTreeSet::new()).context("a single task has one unit")?;
        let history = History::create_with(directory, &climb, &files, key, None, LogOptions::default())?;
        Ok(Keeper { directory: directory.to_path_buf(), climb, unit, history, losses: None })
    }

    /// Goes on with a history; where its learner was put away, its bytes, and what it had lost until then.
    pub fn resume(directory: &Path, key: Option<&Path>) -> Result<(Keeper, Option<Kept>)> {
        let (history, climb, mut put_away) = History::resume(directory, key, LogOptions::default())?;
        let unit = climb.next(&BTreeSet::new()).context("the run is finished")?;
        let saved = put_away.remove(&unit.track).filter(|(number, _)| *number == unit.number);
        let directory = directory.to_path_buf();
        // A learner whose ledger holds another part of its unit than it says begins anew, which leads to the same end.
        let saved = saved.map(|(_, bytes)| without_losses(bytes));
        let saved = saved.filter(|(lesson, _)| written(lesson) == Some(history.written()));
        Ok((Keeper { directory, climb, unit, history, losses: None }, saved))
    }

    /// The same with what was lost against best play on the same seeds, for the report; nothing where that is not known.
    pub fn with_losses(self, losses: Option<Losses>) -> Keeper {
        Keeper { losses, ..self }
    }

    /// Writes what has happened since the last time and puts the learner away, with what it has lost where that is known. The
    /// lesson goes on from the bytes that are handed back, which do not hold what the ledger holds.
    pub fn save(&mut self, lesson: &[u8], shape: &Shape, losses: Option<&Losses>) -> Result<Vec<u8>> {
        let (chronicle, lesson) = write_off(lesson).context("the lesson that is put away")?;
        let learner = losses.map_or_else(|| lesson.clone(), |losses| with_losses(&lesson, losses));
        let put_away = PutAway::from([(self.unit.track, (self.unit.number, learner))]);
        let under_way = UnderWay { unit: &self.unit, seed: self.climb.config().seed, shape };
        self.history.under_way(&self.climb, under_way, &chronicle, put_away)?;
        Ok(lesson)
    }

    /// Writes what was learned and measured: ledger, curve, figures and report.
    pub fn finish(mut self, solution: &Solution, measured: Option<&Measured>) -> Result<()> {
        let seed = self.climb.config().seed;
        let result = UnitResult { unit: self.unit, seed, solution: solution.clone(), reused: false };
        let chronicle = &result.solution.chronicle;
        let mut written = Played::of(chronicle.end());
        if 0 < chronicle.written() {
            let first = chronicle.unwritten().iter().find_map(|happening| match happening {
                Happening::Play(block) => Some(block.first_step),
                _ => None,
            });
            self.history.played(first.unwrap_or(u64::MAX), |block| written.take(block))?;
        }
        self.climb.take(&result);
        let mut curves = Curves::open(&self.directory)?;
        curves.add(&result, measured, self.losses.as_ref(), Some(written))?;
        self.history.unit(&result, &self.climb)?;
        let saved = self.history.save(&self.climb, PutAway::new())?;
        let figures = evaluations::text(&self.directory, &self.climb, &curves);
        self.history.publish(&self.directory, evaluations::NAME, figures.as_bytes())?;
        let page = report::html(&self.climb, &curves, &saved);
        self.history.publish(&self.directory, report::NAME, page.as_bytes())?;
        answers::remove(&self.directory)
    }
}

/// Moves a run into a folder of its own below its folder, whole; where it went.
pub fn set_aside(directory: &Path) -> Result<PathBuf> {
    let aside = (1..100_000u32)
        .map(|number| directory.join(format!("before-{number}")))
        .find(|aside| !aside.exists())
        .with_context(|| format!("{} is full", directory.display()))?;
    std::fs::create_dir(&aside).with_context(|| format!("{} cannot be made", aside.display()))?;
    for part in PARTS.iter().filter(|part| directory.join(part).exists()) {
        std::fs::rename(directory.join(part), aside.join(part))
            .with_context(|| format!("{} cannot be moved to {}", part, aside.display()))?;
    }
    let salt = directory.join("key-salt");
    if salt.exists() {
        std::fs::copy(&salt, aside.join("key-salt")).with_context(|| salt.display().to_string())?;
    }
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_learner_is_put_away_soon_at_first_and_at_equal_distances_later() {
        let (mut saves, mut moments) = (Saves::new(false), Vec::new());
        for steps in (0..=10_000_000).step_by(64) {
            if saves.is_due(steps) {
                saves.done(steps);
                moments.push(steps);
            }
        }
        assert_eq!(moments[0], 20_032);
        // Nobody loses more than an eighth of the steps before, or what memory may hold, and a few looks.
        let distance = |pair: &[u64]| pair[1] - pair[0];
        let most = |pair: &[u64]| 64 + (pair[0] / SAVE_PART).clamp(SAVE_STEPS, SAVE_STEPS_MAX);
        assert!(moments.windows(2).all(|pair| distance(pair) <= most(pair)), "{moments:?}");
        assert!(moments.windows(2).all(|pair| SAVE_STEPS <= distance(pair)), "{moments:?}");
        assert!(9_800_000 < moments[moments.len() - 1] && moments.len() < 80, "{}", moments.len());
    }

    #[test]
    fn a_learner_that_goes_on_is_not_put_away_at_once_and_one_that_begins_anew_not_before_it_is_as_far() {
        let mut saves = Saves::new(true);
        assert!(!saves.is_due(800_000) && !saves.is_due(899_999) && saves.is_due(900_000));
        saves.done(900_000);
        assert!(!saves.is_due(64) && !saves.is_due(1_012_499) && saves.is_due(1_012_500));
    }

    #[test]
    fn an_expert_is_called_by_its_family_file_or_script() {
        for (task, want) in [
            ("parity{n=16}", "parity"),
            ("seq(parity{n=4},copy{length=2})", "seq"),
            ("worlds/machine.json", "machine"),
            ("python3 world.py", "world"),
            ("python3 -u \"../mine/retry.py\" --speed 2", "retry"),
            ("uv run --with numpy shop.PY", "shop"),
            ("/opt/simulators/lift --floors 4", "lift"),
            ("./lift", "lift"),
            ("", "task"),
        ] {
            assert_eq!(short_name(task), want, "{task}");
        }
    }
}
