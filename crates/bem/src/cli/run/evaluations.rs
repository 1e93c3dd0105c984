//! `evaluation.json`: what was measured of every policy that a run shows, in a file whose digest the history names.
//!
//! The ledger says what was done and proven; how well it plays is measured, and this is where. The file has one spelling:
//! keys in order, whole numbers, no spaces. Clauses: SCC-8, LOG-3.

use super::report::Curves;
use super::scoreboard::best;
use crate::bundle::check::circuit_digest;
use crate::measured::Measured;
use bem_engine::climb::{Climb, Climbed};
use serde_json::{Value, json};
use std::path::Path;

/// The file in the run's folder.
pub const NAME: &str = "evaluation.json";

/// How the figures were taken.
const METHOD: &str = "mean return of the frozen policy over episodes whose seeds are never used in learning; 95 % interval \
    by Student's t on the standard error, with the optimal policy's luck in the same episodes taken out where it is \
    known; numbers in millionths of a unit of reward";

/// The file's text.
pub fn text(climb: &Climb, curves: &Curves) -> String {
    let shown = climb.tracks().iter().filter_map(best);
    let entry = |climbed: &Climbed| {
        let measured = curves.of(climbed)?.measured.as_ref()?;
        Some(json!({ "task": climbed.task, "attempt": climbed.attempt,
            "circuit": circuit_digest(&climbed.policy).to_hex(), "measured": measured }))
    };
    let policies: Vec<Value> = shown.filter_map(entry).collect();
    json!({ "format": "bem-evaluation-1", "method": METHOD, "policies": policies }).to_string() + "\n"
}

/// What the run has kept of this policy, with the whole file.
pub fn read(directory: &Path, climbed: &Climbed) -> Option<(Measured, String)> {
    let text = std::fs::read_to_string(directory.join(NAME)).ok()?;
    let file: Value = serde_json::from_str(&text).ok()?;
    let circuit = circuit_digest(&climbed.policy).to_hex();
    let of = |entry: &&Value| {
        entry["task"] == climbed.task
            && entry["attempt"] == climbed.attempt
            && entry["circuit"] == circuit.as_str()
    };
    let entry = file["policies"].as_array()?.iter().find(of)?;
    let measured = serde_json::from_value(entry["measured"].clone()).ok()?;
    Some((measured, text))
}
