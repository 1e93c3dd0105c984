//! Instructions of a step of the machine, counted by callgrind: a busy machine changes nothing.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// Counts one step of a single lane and one of 256 lanes with the example program of a checkout.
pub fn count(checkout: &Path) -> Result<String> {
    let built = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "bem-machine", "--example", "step_count"])
        .current_dir(checkout)
        .status()?;
    ensure!(built.success(), "step_count of {} cannot be built", checkout.display());
    let program = checkout.join("target/release/examples/step_count");
    let single = a_step(&program, "single", 10_000, 20_000)?;
    let batched = a_step(&program, "lanes", 500, 1_000)?;
    let few = a_step(&program, "groups", 500, 1_000)?;
    Ok(json!({ "step_single": single, "step_batched": batched, "step_batched_few_buckets": few }).to_string())
}

/// The difference of two runs that differ in `more` steps alone.
pub fn a_step(program: &Path, kind: &str, warm: u64, more: u64) -> Result<f64> {
    let program = program.display().to_string();
    let total = |steps: u64| counted(&[&program, &warm.to_string(), &steps.to_string(), kind]);
    Ok((total(2 * more)? - total(more)?) / more as f64)
}

/// Instructions of a program under callgrind; words before its name are callgrind's.
pub fn counted(words: &[&str]) -> Result<f64> {
    let printed = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(words)
        .output()
        .context("valgrind could not be started")?;
    let text = String::from_utf8_lossy(&printed.stderr).to_string();
    let counted = text.lines().find_map(|line| line.split_once("Collected :"));
    let counted = counted.and_then(|(_, count)| count.trim().parse().ok());
    counted.with_context(|| format!("callgrind said no count: {text}"))
}
