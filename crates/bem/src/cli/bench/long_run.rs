//! `bem bench long_run`: a small world online for ten million steps, tenth by tenth: steps a second of processor time, resident
//! memory and, where the run is kept in a folder, bytes on disk and bytes written.
//!
//! The learner works as in `bem solve --online`, and is put away at the same moments. What is asked for: a step of the last tenth
//! costs at most a tenth more than one of the second tenth, memory does not grow, kept or not, and a folder grows at most in
//! proportion to the steps. Only what becomes worse is a miss: steps that are faster late, or memory that is given back, are
//! none. Clauses: VM-16, LOG-4; decisions D-268, D-308.

use super::measure::cpu_seconds;
use super::serve_long::resident_kb;
use super::{Benchmark, Measurement};
use crate::cli::Answer;
use crate::cli::solve::keep::{Keeper, Saves};
use crate::interrupt;
use crate::task::GameArguments;
use anyhow::{Context as _, Result, bail};
use bem_engine::learner::{Settings, Tally};
use bem_engine::solve::{Lesson, Taught, teach_on};
use core::ops::RangeInclusive;
use serde_json::{Value, json};
use std::path::Path;

/// The world.
const TASK: &str = "contextual_bandit{context_bits=2,noise_bits=2,arms=4}";
/// Steps of the report and of the benchmark, unless the environment says otherwise.
const STEPS: u64 = 10_000_000;
const STEPS_SHORT: u64 = 100_000;
const STEPS_WORD: &str = "BEM_LONG_STEPS";
/// Names the folder that the report keeps its run in; without it nothing is kept.
const FOLDER_WORD: &str = "BEM_LONG_FOLDER";
/// Parts of the run that are compared.
const PARTS: u64 = 10;
/// Steps beyond those that are measured, so that the end of the run is in none of the parts.
const BEYOND: u64 = 1_024;
/// How much worse the last tenth may be than the second. It may be better by any amount.
const WORSE_MAX: f64 = 0.1;

/// The benchmark of this area.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "long_run",
    area: "long_run",
    about: "processor time of a step online in the last tenth of a long run, beside that of the second",
    run,
}];

/// The state of things after one tenth of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    steps: u64,
    cpu_seconds: f64,
    resident_kb: u64,
    /// Bytes in the folder, if there is one, and all bytes that this process has ever written to files.
    disk: u64,
    written: u64,
}

impl Mark {
    fn now(steps: u64, folder: Option<&Path>) -> Mark {
        Mark {
            steps,
            cpu_seconds: cpu_seconds(),
            resident_kb: resident_kb(),
            disk: folder.map_or(0, bytes_in),
            written: written(),
        }
    }
}

/// Bytes of all files below a folder; a file that goes away meanwhile counts as nothing.
fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => bytes_in(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

/// Bytes that this process has written, as far as the system tells.
fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar:"));
    line.and_then(|line| line.trim().parse().ok()).unwrap_or(0)
}

fn steps(usual: u64) -> Result<u64> {
    let Ok(text) = std::env::var(STEPS_WORD) else { return Ok(usual) };
    match text.parse() {
        Ok(count) if (1_000..=1_000_000_000).contains(&count) => Ok(count),
        _ => bail!("{STEPS_WORD} is {text:?}; a whole number from 1000 to 1000000000 is allowed"),
    }
}

/// What is measured: one mark at the beginning and one after each tenth.
struct Long {
    marks: Vec<Mark>,
    is_kept: bool,
}

/// Learns for so many steps; with a folder the run is kept there as `bem solve --out` keeps it.
fn measure(steps: u64, folder: Option<&Path>) -> Result<Long> {
    let arguments = GameArguments { task: Some(TASK.to_string()), params: Vec::new(), game: None };
    let (_, game) = arguments.open_game(1)?;
    let settings = Settings { budget: steps + BEYOND, ..Settings::new(1) };
    let settings = settings.with(|config| config.until_budget = true);
    let create =
        |folder: &Path| Keeper::create(folder, Some(&folder.join("signing-key")), &settings, TASK, None);
    let mut keeper = folder.map(create).transpose()?;
    let is_kept = keeper.is_some();
    let (mut saves, mut saved) = (Saves::new(false), None);
    let mut marks = vec![Mark::now(0, folder)];
    let solution = loop {
        let mut on_tick = |tally: &Tally| {
            while marks.len() as u64 <= PARTS && steps * marks.len() as u64 / PARTS <= tally.steps {
                marks.push(Mark::now(tally.steps, folder));
            }
            !(interrupt::is_asked() || is_kept && saves.is_due(tally.steps))
        };
        let lesson = Lesson { keeps_play: is_kept, ..Lesson::alone(settings.clone()) };
        let Taught { solution, put_away } = teach_on(game.as_ref(), lesson, saved.as_deref(), &mut on_tick)?;
        let Some(bytes) = put_away else { break solution };
        if interrupt::is_asked() {
            bail!("interrupted after {} steps", solution.learned.tally.steps);
        }
        saved = Some(match &mut keeper {
            Some(keeper) => keeper.save(&bytes, game.shape(), None)?,
            None => bytes,
        });
        saves.done(solution.learned.tally.steps);
    };
    if let Some(keeper) = keeper {
        keeper.finish(&solution, None)?;
    }
    if marks.len() as u64 <= PARTS {
        bail!("the learner ended after {} steps of {steps}", solution.learned.tally.steps);
    }
    Ok(Long { marks, is_kept })
}

/// What a long run comes to.
struct Figures {
    /// Steps a second of the last tenth, as a part of those of the second.
    speed: f64,
    /// The most resident memory after one of the last five tenths, as a multiple of the most after one of the four before.
    memory: f64,
    /// Bytes by which memory, the folder and what was ever written have grown for each step since the second tenth.
    memory_growth: f64,
    disk_growth: f64,
    written_growth: f64,
    /// Bytes on disk for each step at the end, as a multiple of those after the second tenth.
    disk: f64,
}

impl Long {
    /// Steps a second of processor time in one tenth, counted from one.
    fn speed(&self, tenth: usize) -> f64 {
        let (before, after) = (&self.marks[tenth - 1], &self.marks[tenth]);
        (after.steps - before.steps) as f64 / (after.cpu_seconds - before.cpu_seconds).max(1e-9)
    }

    fn figures(&self) -> Figures {
        let (second, last) = (&self.marks[2], &self.marks[PARTS as usize]);
        let growth = |of: fn(&Mark) -> u64| {
            (of(last) as f64 - of(second) as f64) / (last.steps - second.steps).max(1) as f64
        };
        // Where a learner is put away, copies of it come and go: one tenth alone says little.
        let most =
            |tenths: RangeInclusive<usize>| self.marks[tenths].iter().map(|mark| mark.resident_kb).max();
        let most = |tenths| most(tenths).unwrap_or(0) as f64;
        let half = PARTS as usize / 2;
        let for_a_step = |mark: &Mark| mark.disk as f64 / mark.steps.max(1) as f64;
        Figures {
            speed: self.speed(PARTS as usize) / self.speed(2),
            memory: most(half + 1..=PARTS as usize) / most(2..=half).max(1.0),
            memory_growth: growth(|mark| 1_024 * mark.resident_kb),
            disk_growth: growth(|mark| mark.disk),
            written_growth: growth(|mark| mark.written),
            disk: for_a_step(last) / for_a_step(second).max(f64::MIN_POSITIVE),
        }
    }

    /// Everything that is asked for and was not reached.
    fn missed(&self) -> Vec<String> {
        let Figures { speed, memory, disk, .. } = self.figures();
        let slow = (speed < 1.0 - WORSE_MAX)
            .then(|| format!("steps a second of the last tenth are {speed:.2} of the second's"));
        let large = (1.0 + WORSE_MAX < memory)
            .then(|| format!("memory grew {memory:.2} times from one half to the other"));
        let wide = (self.is_kept && 1.0 + WORSE_MAX < disk)
            .then(|| format!("bytes on disk for a step grew {disk:.2} times"));
        [slow, large, wide].into_iter().flatten().collect()
    }

    fn to_json(&self) -> Value {
        let Figures { speed, memory, memory_growth, disk_growth, written_growth, disk } = self.figures();
        let tenth = |tenth: usize| {
            let mark = &self.marks[tenth];
            json!({ "steps": mark.steps, "steps_per_cpu_second": self.speed(tenth), "resident_kb": mark.resident_kb,
                "disk_bytes": mark.disk, "written_bytes": mark.written - self.marks[0].written })
        };
        let tenths: Vec<Value> = (1..=PARTS as usize).map(tenth).collect();
        json!({ "task": TASK, "kept": self.is_kept, "tenths": tenths, "speed_ratio": speed, "memory_ratio": memory,
            "memory_bytes_per_step": memory_growth, "disk_bytes_per_step": disk_growth,
            "written_bytes_per_step": written_growth, "disk_per_step_ratio": disk, "missed": self.missed() })
    }

    fn print(&self) {
        say!("| steps | steps a CPU second | resident MB | MB on disk | MB written |");
        say!("|---|---|---|---|---|");
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        for tenth in 1..=PARTS as usize {
            let mark = &self.marks[tenth];
            let written = mark.written - self.marks[0].written;
            let disk = if self.is_kept { format!("{:.1}", megabytes(mark.disk)) } else { "-".to_string() };
            say!(
                "| {} | {:.0} | {} | {disk} | {:.1} |",
                mark.steps,
                self.speed(tenth),
                mark.resident_kb / 1_024,
                megabytes(written)
            );
        }
        let Figures { speed, memory_growth, disk_growth, written_growth, .. } = self.figures();
        say!(
            "\nSteps a second in the last tenth: {speed:.2} of the second's (at least {:.2} is asked; faster is no miss).",
            1.0 - WORSE_MAX
        );
        say!("Since the second tenth memory grew by {memory_growth:.2} bytes a step.");
        if self.is_kept {
            say!("The folder grew by {disk_growth:.1} bytes a step, {written_growth:.1} were written.");
        }
        self.missed().iter().for_each(|missed| say!("Missed: {missed}."));
    }
}

fn run() -> Result<Measurement> {
    let long = measure(steps(STEPS_SHORT)?, None)?;
    let name = "the same in the second tenth";
    let us = |tenth: usize| 1e6 / long.speed(tenth);
    Ok(Measurement::new("long_run", us(PARTS as usize), "us", us(2), name))
}

/// Prints every tenth.
pub fn report(as_json: bool) -> Result<Answer> {
    let folder = std::env::var_os(FOLDER_WORD);
    let folder = folder.as_deref().map(Path::new);
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    interrupt::listen();
    let long = measure(steps(STEPS)?, folder)?;
    if as_json {
        say!("{}", long.to_json());
    } else {
        long.print();
    }
    Ok(if long.missed().is_empty() { Answer::Yes } else { Answer::No })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_is_measured_in_ten_parts_and_kept_if_asked_to() {
        let folder = tempfile::tempdir().expect("a folder");
        for folder in [None, Some(folder.path())] {
            let long = measure(21_000, folder).expect("a game does not fail");
            assert_eq!(long.marks.len(), 11);
            for (part, mark) in long.marks.iter().enumerate().skip(1) {
                assert!(mark.steps.abs_diff(2_100 * part as u64) < 500, "{mark:?}");
            }
            let disk = long.marks[10].disk;
            assert_eq!(0 < disk, folder.is_some());
            assert!(long.to_json()["tenths"].as_array().is_some_and(|tenths| tenths.len() == 10));
        }
        // One learner was put away on the way, and what was learned is there.
        assert!(folder.path().join("ledger").exists() && folder.path().join("report.html").exists());
    }

    /// A run whose tenths take so long and need so much.
    fn of(is_kept: bool, seconds: fn(u64) -> f64, resident: fn(u64) -> u64, disk: fn(u64) -> u64) -> Long {
        let mut marks = vec![Mark::default()];
        for part in 1..=PARTS {
            let cpu_seconds = marks[part as usize - 1].cpu_seconds + seconds(part);
            let (resident_kb, disk) = (resident(part), disk(part));
            marks.push(Mark { steps: 1_000 * part, cpu_seconds, resident_kb, disk, written: disk });
        }
        Long { marks, is_kept }
    }

    #[test]
    fn slower_steps_growing_memory_and_a_disk_that_outgrows_the_steps_are_missed() {
        let flat = of(false, |_| 1.0, |_| 9_000, |_| 0);
        assert_eq!(flat.missed(), Vec::<String>::new());
        assert!((flat.figures().speed - 1.0).abs() < 1e-9);
        // The first tenth is not compared, and a tenth more is forgiven.
        let beginning = of(false, |part| if part == 1 { 0.1 } else { 1.0 }, |part| 9_000 + 10 * part, |_| 0);
        assert_eq!(beginning.missed(), Vec::<String>::new());
        let slower = of(false, |part| if part == 10 { 1.2 } else { 1.0 }, |_| 9_000, |_| 0).missed();
        assert!(slower.len() == 1 && slower[0].contains("0.83 of the second's"), "{slower:?}");
        let larger = of(false, |_| 1.0, |part| 9_000 + 1_000 * part, |_| 0).missed();
        assert!(larger.len() == 1 && larger[0].starts_with("memory grew 1.36 times"), "{larger:?}");
        // A folder may grow with the steps, memory may not; learners that are put away make it larger now and then.
        let sometimes = |part: u64| if part % 3 == 2 { 18_000 } else { 9_000 };
        let kept = of(true, |_| 1.0, sometimes, |part| 50_000 * part);
        assert_eq!(kept.missed(), Vec::<String>::new());
        assert!((kept.figures().disk_growth - 50.0).abs() < 1e-9);
        let larger = of(true, |_| 1.0, |part| 9_000 + 1_000 * part, |part| 50_000 * part).missed();
        assert!(larger.len() == 1 && larger[0].starts_with("memory grew 1.36 times"), "{larger:?}");
        let wider = of(true, |_| 1.0, |_| 9_000, |part| 50_000 * part * part).missed();
        assert!(wider.len() == 1 && wider[0].starts_with("bytes on disk for a step grew 5.00"), "{wider:?}");
    }
}
