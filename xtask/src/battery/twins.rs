//! The same runs in different builds, on different numbers of threads and on a machine of 32 bits: one head for all.

use super::{scratch, text};
use crate::{output, root, run, target};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The second machine: other word size, other registers, no compiler for circuits, so the interpreter runs.
const SECOND: &str = "i686-unknown-linux-gnu";
/// Families whose steps are cheap and whose units are long, so that the debug build comes to its end: one with chance,
/// and one with noise that needs patches and proofs.
const RUN: [&str; 6] = ["--families", "bandit,signaling", "--stages", "2", "--unit-steps", "200000"];
/// Steps of one history at most: then the next seed. Practice makes longer ones much dearer and no more various.
const HISTORY_STEPS: u64 = 400_000;
/// Steps on the second machine, at least.
const SECOND_STEPS: u64 = 100_000;

/// Who runs, and on how many threads.
#[derive(Clone, Copy)]
struct Twin<'a> {
    program: &'a Path,
    threads: &'a str,
}

/// The head of the history of this seed and length, and the steps that it took.
fn head(twin: Twin<'_>, place: &Path, seed: u64, steps: u64) -> Result<(String, u64)> {
    let directory = place.join("run");
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    let key = place.join("key");
    let (seed, steps_text) = (seed.to_string(), steps.to_string());
    let words = ["run", "--out", text(&directory)?, "--key", text(&key)?, "--seed", &seed];
    let rest = ["--steps", &steps_text, "--threads", twin.threads, "--json"];
    let report: serde_json::Value =
        serde_json::from_str(&output(text(twin.program)?, &[&words[..], &RUN, &rest].concat())?)?;
    let head = report["ledger_head"].as_str().context("a run prints its head")?.to_owned();
    let taken = report["steps"].as_u64().context("a run prints its steps")?;
    ensure!(steps <= taken, "the run ended after {taken} of {steps} steps");
    Ok((head, taken))
}

/// One trial is a whole history; the debug build has its assertions and overflow checks on.
pub fn twins(scale: u64) -> Result<()> {
    let place = scratch("twins")?;
    run("cargo", &["build", "--quiet", "--package", "bem"])?;
    build_second()?;
    let program = |build: &str| target().join(build).join("bem");
    let (release, debug) = (program("release"), program("debug"));
    let twins =
        [(&release, "1"), (&release, "2"), (&release, "7"), (&debug, "1"), (&debug, "2"), (&debug, "7")];
    let twins = twins.map(|(program, threads)| Twin { program, threads });
    let wanted = SECOND_STEPS * scale;
    let (mut taken, mut seed) = (0, 0);
    while taken < wanted {
        seed += 1;
        let steps = HISTORY_STEPS.min(wanted - taken);
        let started = Instant::now();
        let (one, steps_taken) = head(twins[0], &place, seed, steps)?;
        for twin in &twins[1..] {
            let (other, _) = head(*twin, &place, seed, steps)?;
            let name = twin.program.display();
            ensure!(other == one, "seed {seed}: {name} with {} threads differs", twin.threads);
        }
        taken += steps_taken;
        println!("{one}  seed {seed}, {steps_taken} steps six times, {} s", started.elapsed().as_secs());
    }
    let second = target().join(SECOND).join("release").join("bem");
    let (here, _) = head(twins[0], &place, 1, SECOND_STEPS)?;
    let (there, steps_taken) = head(Twin { program: &second, threads: "2" }, &place, 1, SECOND_STEPS)?;
    ensure!(here == there, "the second machine differs");
    println!("one head for all: {taken} steps in {seed} histories, {steps_taken} on {SECOND}");
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
