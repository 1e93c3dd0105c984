//! Bundles: policies of every family exported, accepted by both checkers, and refused when one thing is changed.

use crate::run;
use crate::target;
use anyhow::Result;

/// Mutants of each of six parts at scale 1; each is asked about as it is and signed anew.
const MUTANTS: u64 = 1_700;

/// Runs the battery of `crates/bem/examples/bundle_mutants.rs`.
pub fn bundles(scale: u64) -> Result<()> {
    let bem = target().join("release/bem").display().to_string();
    let count = (MUTANTS * scale).to_string();
    let words = [
        "run",
        "--release",
        "--quiet",
        "--package",
        "bem",
        "--example",
        "bundle_mutants",
        "--",
        &bem,
        &count,
    ];
    run("cargo", &words)
}
