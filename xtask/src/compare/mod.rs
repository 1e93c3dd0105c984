//! `cargo xtask compare`: an earlier build and this one side by side, the table of floors, the default run at equal steps and
//! the instructions of a step.
//!
//! `measure` plays with the programs of one checkout and keeps what they print, one file for each seed, so that it can be
//! cut off and gone on with; `page` judges what two checkouts left and writes docs/results/one-machine.md
//! and one-machine-runs.md. Nothing here
//! knows how anything is learned. Clauses: SCC-8, VM-14.

pub mod instructions;
mod page;
mod rank;

use crate::output;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};

const HELP: &str = "\
cargo xtask compare measure FOLDER CHECKOUT [--seeds N] [--first-seed S] [--steps N] [--only table|runs|count]
cargo xtask compare page OLD_FOLDER NEW_FOLDER";
/// Seeds of the default run.
const RUN_SEEDS: [u64; 3] = [1, 2, 3];
/// Stages of its ladder. The rungs of the ladder of five were chosen anew by measured steps; those of six are the same in builds
/// before and after that.
pub const RUN_STAGES: &str = "6";

/// What `measure` is asked for.
struct Wanted<'a> {
    seeds: u64,
    first_seed: u64,
    steps: u64,
    only: Option<&'a str>,
}

/// Runs the chore.
pub fn compare(words: &[&str]) -> Result<()> {
    match words {
        ["measure", folder, checkout, rest @ ..] => {
            measure(Path::new(folder), Path::new(checkout), &wanted(rest)?)
        }
        ["page", old, new] => page::write(Path::new(old), Path::new(new)),
        _ => bail!("compare takes measure or page\n{HELP}"),
    }
}

fn wanted<'a>(words: &[&'a str]) -> Result<Wanted<'a>> {
    let mut wanted = Wanted { seeds: 20, first_seed: 201, steps: 2_500_000, only: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = *words.next().with_context(|| format!("{word} needs a value"))?;
        let number = || value.parse().with_context(|| format!("{word} {value}: not a whole number"));
        match *word {
            "--seeds" => wanted.seeds = number()?,
            "--first-seed" => wanted.first_seed = number()?,
            "--steps" => wanted.steps = number()?,
            "--only" if ["table", "runs", "count"].contains(&value) => wanted.only = Some(value),
            "--only" => bail!("--only {value}; allowed are table, runs and count"),
            other => bail!("{other:?} is not known here\n{HELP}"),
        }
    }
    Ok(wanted)
}

/// Plays what is not there yet. One folder is of one commit.
fn measure(folder: &Path, checkout: &Path, wanted: &Wanted<'_>) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let place = checkout.to_str().context("the name of the checkout is text")?;
    let commit = output("git", &["-C", place, "rev-parse", "--short", "HEAD"])?;
    let note = folder.join("commit");
    if note.exists() {
        let known = std::fs::read_to_string(&note)?;
        ensure!(known == commit, "{} is of commit {}, not {}", folder.display(), known.trim(), commit.trim());
    }
    std::fs::write(&note, &commit)?;
    let program = std::path::absolute(checkout.join("target/release/bem"))?;
    let program = program.to_str().context("the name of the program is text")?;
    let is_wanted = |part| wanted.only.is_none_or(|only| only == part);
    if is_wanted("count") {
        keep(&folder.join("count.json"), || instructions::count(checkout))?;
    }
    if is_wanted("runs") {
        for seed in RUN_SEEDS {
            let (steps, seed) = (wanted.steps.to_string(), seed.to_string());
            let out = folder.join(format!("out-{steps}-{seed}"));
            let words =
                ["run", "--steps", &steps, "--seed", &seed, "--stages", RUN_STAGES, "--json", "--out"];
            let words = [&words[..], &[out.to_str().context("the name of the folder is text")?]].concat();
            keep(&folder.join(format!("run-{steps}-{seed}.json")), || says(program, &words))?;
        }
    }
    if is_wanted("table") {
        for seed in wanted.first_seed..wanted.first_seed + wanted.seeds {
            let seed = seed.to_string();
            let words = ["table", "--seeds", "1", "--first-seed", &seed, "--peer-steps", "0", "--json"];
            keep(&folder.join(format!("table-{seed}.json")), || says(program, &words))?;
        }
    }
    Ok(())
}

/// Makes a file unless it is there; a file is there as a whole or not at all.
fn keep(file: &Path, make: impl FnOnce() -> Result<String>) -> Result<()> {
    if file.exists() {
        return Ok(());
    }
    let part = file.with_extension("part");
    std::fs::write(&part, make()?)?;
    std::fs::rename(&part, file)?;
    println!("{}", file.display());
    Ok(())
}

/// What a program says; that its answer is "no" is for the page to judge.
fn says(program: &str, words: &[&str]) -> Result<String> {
    let output = std::process::Command::new(program).args(words).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(matches!(output.status.code(), Some(0 | 1)), "{program} {words:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The files of a folder whose names begin so, in order of the numbers that they end with.
fn kept(folder: &Path, start: &str) -> Result<Vec<(u64, Value)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let path: PathBuf = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(".json"));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            let value = serde_json::from_str(&std::fs::read_to_string(&path)?)
                .with_context(|| format!("{} is no JSON", path.display()))?;
            found.push((number, value));
        }
    }
    found.sort_by_key(|(number, _)| *number);
    Ok(found)
}
