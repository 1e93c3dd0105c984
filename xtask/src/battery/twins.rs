//! The same run in different builds, on different numbers of threads and on a machine of 32 bits: one head for all.

use super::{scratch, text};
use crate::{output, root, run, target};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The second machine: other word size, other registers, no compiler for circuits, so the interpreter runs.
const SECOND: &str = "i686-unknown-linux-gnu";
/// Families whose steps are cheap, one of each sort: plain, streamed, with memory, with noise, with chance.
const FAMILIES: &str = "parity,parity_stream,majority,compare,add,bandit,copy,dyck";
/// Steps on the second machine, at least.
const SECOND_STEPS: u64 = 100_000;

fn head(program: &Path, place: &Path, steps: u64, threads: &str) -> Result<String> {
    let directory = place.join("run");
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    let key = place.join("key");
    let started = Instant::now();
    let steps_text = steps.to_string();
    let words = ["run", "--out", text(&directory)?, "--key", text(&key)?, "--families", FAMILIES];
    let rest = ["--steps", &steps_text, "--threads", threads, "--json"];
    let report: serde_json::Value =
        serde_json::from_str(&output(text(program)?, &[&words[..], &rest].concat())?)?;
    let head = report["ledger_head"].as_str().context("a run prints its head")?.to_owned();
    let taken = report["steps"].as_u64().context("a run prints its steps")?;
    let seconds = started.elapsed().as_secs();
    println!("{head}  {taken} steps, {threads} threads, {seconds} s, {}", program.display());
    ensure!(steps <= taken, "the run ended after {taken} of {steps} steps");
    Ok(head)
}

/// One trial is a whole run; the debug build has its assertions and overflow checks on.
pub fn twins(scale: u64) -> Result<()> {
    let place = scratch("twins")?;
    run("cargo", &["build", "--quiet", "--package", "bem"])?;
    build_second()?;
    let program = |build: &str| target().join(build).join("bem");
    let (release, debug) = (program("release"), program("debug"));
    let steps = SECOND_STEPS * scale;
    let one = head(&release, &place, steps, "1")?;
    for (twin, threads) in [(&release, "2"), (&debug, "1"), (&debug, "2")] {
        ensure!(
            head(twin, &place, steps, threads)? == one,
            "{} with {threads} threads differs",
            twin.display()
        );
    }
    let short = head(&release, &place, SECOND_STEPS, "1")?;
    let second = target().join(SECOND).join("release").join("bem");
    ensure!(head(&second, &place, SECOND_STEPS, "2")? == short, "the second machine differs");
    println!("one head for all");
    std::fs::remove_dir_all(&place)?;
    Ok(())
}

/// Builds for the second machine. The solver's few floating-point numbers must round there as they do here.
fn build_second() -> Result<()> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "bem", "--target", SECOND])
        .env("CXXFLAGS_i686_unknown_linux_gnu", "-msse2 -mfpmath=sse")
        .current_dir(root())
        .status()?;
    if !status.success() {
        bail!("no build for {SECOND}: it needs `rustup target add {SECOND}` and the package g++-multilib");
    }
    Ok(())
}
