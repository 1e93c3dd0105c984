//! Parts of the battery that need no process but the simulator and the verifiers.

use super::{scratch, simulator};
use crate::{build, output, run, target};
use anyhow::{Context, Result, ensure};

/// Runs the simulator with these words.
pub fn simulate(words: &[&str]) -> Result<()> {
    let program = simulator();
    run(program.to_str().context("the target directory's name is text")?, words)
}

pub fn seeds(scale: u64) -> Result<()> {
    simulate(&["random", "0", &(2_000 * scale).to_string()])
}

pub fn power_loss(scale: u64) -> Result<()> {
    simulate(&["power-loss", &(2_500 * scale).to_string()])
}

pub fn lies(scale: u64) -> Result<()> {
    simulate(&["lies", "0", &(2_000 * scale).to_string()])
}

pub fn mutants(scale: u64) -> Result<()> {
    simulate(&["mutants", &(200 * scale).to_string()])
}

/// The engine's own journal on the simulated disk.
pub fn engine(scale: u64) -> Result<()> {
    simulate(&["engine", "0", &(1_000 * scale).to_string()])
}

/// Learners put away and taken up again.
pub fn restore(scale: u64) -> Result<()> {
    simulate(&["restore", &(250 * scale).to_string(), "1"])
}

/// Every decoder, one after the other; the floor of 10^7 executions each is reached at scale 10.
pub fn fuzz(scale: u64) -> Result<()> {
    simulate(&["fuzz", "all", &(1_000_000 * scale).to_string(), "1"])
}

/// Bad patches of the laboratory, then patches of real histories that are spoiled.
pub fn patches(scale: u64) -> Result<()> {
    let count = (12_000 * scale).to_string();
    build(&["--example", "bad_patches"])?;
    run(&target().join("release/examples/bad_patches").display().to_string(), &[&count])?;
    simulate(&["spoiled", &(10_000 * scale).to_string(), "1"])
}

pub fn python(scale: u64) -> Result<()> {
    let program = simulator();
    let count = (1_000 * scale).to_string();
    let printed = output(program.to_str().context("a target name is text")?, &["cases", "1", &count])?;
    let cases: Vec<(&str, &str)> = printed.lines().filter_map(|line| line.split_once(' ')).collect();
    let directory = scratch("python")?;
    let file = directory.join("cases.jsonl");
    let lines: String = cases.iter().map(|(_, case)| format!("{case}\n")).collect();
    std::fs::write(&file, lines)?;
    let answers = output(
        "python3",
        &["python/tlog_verify.py", "cases", file.to_str().context("a temporary name is text")?],
    )?;
    let answers: Vec<&str> = answers.lines().collect();
    ensure!(answers.len() == cases.len(), "{} cases, {} answers", cases.len(), answers.len());
    for ((ours, case), theirs) in cases.iter().zip(&answers) {
        ensure!(ours == theirs, "we say {ours}, Python says {theirs}: {case}");
    }
    let accepted = answers.iter().filter(|answer| **answer == "yes").count();
    println!("{accepted} accepted and {} refused by both", answers.len() - accepted);
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
