//! `evaluation.json`: what was measured of every policy that can be taken out of a run, and what is said of it besides, in a file whose
//! digest the history names.
//!
//! The ledger says what was done and proven; how well it plays is measured, and this is where. Seed, warnings and the meaning
//! of the bits stand beside it, so that a bundle cannot say others. The file has one spelling: keys in order, whole numbers,
//! no spaces. Clauses: SCC-8, LOG-3.

use super::report::Curves;
use crate::bundle::check::circuit_digest;
use crate::bundle::features::{self, NamedFeature};
use crate::cli::solve::Look;
use crate::kept_world::{SharedWorlds, encoder_of, kept_files, worlds_from};
use crate::learned::{experts, shape_of, warnings};
use crate::measured::Measured;
use bem_base::digest::Digest;
use bem_data::Encoder;
use bem_engine::climb::{Climb, Climbed};
use bem_engine::worlds::World;
use serde_json::{Value, json};
use std::path::Path;

/// The file in the run's folder.
pub const NAME: &str = "evaluation.json";
/// Its format; files of the one before have figures alone.
pub const FORMAT: &str = "bem-evaluation-2";
/// The format before.
pub const FORMAT_OF_FIGURES: &str = "bem-evaluation-1";

/// How the figures were taken.
const METHOD: &str = "mean return of the frozen policy over episodes whose seeds are never used in learning; 95 % interval \
    by Student's t on the standard error, with the optimal policy's luck in the same episodes taken out where it is \
    known; numbers in millionths of a unit of reward";

/// What a run has kept of a policy.
pub struct Kept {
    /// The whole file.
    pub text: String,
    /// What was measured, if anything was.
    pub measured: Option<Measured>,
    /// What was played before the first step, if anything was.
    pub before: Look,
    /// What is said besides; files of the first format say nothing.
    pub said: Option<Said>,
}

/// What is said of a policy besides its figures.
pub struct Said {
    /// The run's seed.
    pub seed: u64,
    /// What to look out for.
    pub warnings: Vec<String>,
    /// What the bits of an observation mean, where they have names.
    pub features: Option<Vec<NamedFeature>>,
}

/// The file's text.
pub fn text(directory: &Path, climb: &Climb, curves: &Curves) -> String {
    let files = kept_files(directory, climb.files()).unwrap_or_default();
    let encoder = encoder_of(&files);
    let worlds: Option<SharedWorlds> = worlds_from(files).ok();
    let seed = climb.config().seed;
    // Where it cannot be read, whoever goes on with the run is told so.
    let looked = Look::kept(directory).unwrap_or_default();
    let entry = |climbed: &Climbed| {
        let measured = curves.of(climbed).and_then(|curve| curve.measured.as_ref());
        let mut entry = json!({ "task": climbed.task, "attempt": climbed.attempt,
            "circuit": circuit_digest(&climbed.policy).to_hex(), "measured": measured,
            "seed": seed, "warnings": null, "features": null });
        if looked != Look::default() {
            entry["before"] = json!(looked);
        }
        // Of a world that cannot be built any more nothing is said.
        if let Some(world) = worlds.as_ref().and_then(|worlds| worlds.open(&climbed.task, seed).ok()) {
            let (shape, is_known) = (shape_of(&world), !matches!(world, World::Outside(_)));
            let is_width = |encoder: &&Encoder| encoder.bits() == usize::from(shape.observation_bits);
            entry["warnings"] = json!(warnings(climbed, shape.horizon, is_known));
            entry["features"] = json!(encoder.as_ref().filter(is_width).map(features::of));
        }
        entry
    };
    let policies: Vec<Value> = experts(climb).into_iter().map(|(_, climbed)| entry(climbed)).collect();
    json!({ "format": FORMAT, "method": METHOD, "policies": policies }).to_string() + "\n"
}

/// The entry of a policy in a file; its circuit and its task name it.
pub fn entry<'f>(file: &'f Value, circuit: &Digest, task: &str) -> Option<&'f Value> {
    let circuit = circuit.to_hex();
    let of = |entry: &&Value| entry["task"] == task && entry["circuit"] == circuit.as_str();
    file["policies"].as_array()?.iter().find(of)
}

/// What the run has kept of this policy.
pub fn read(directory: &Path, climbed: &Climbed) -> Option<Kept> {
    let text = std::fs::read_to_string(directory.join(NAME)).ok()?;
    let file: Value = serde_json::from_str(&text).ok()?;
    let entry = entry(&file, &circuit_digest(&climbed.policy), &climbed.task)?;
    let measured = serde_json::from_value(entry["measured"].clone()).ok()?;
    let before = serde_json::from_value(entry["before"].clone()).unwrap_or_default();
    let said = (file["format"] == FORMAT).then(|| -> Option<Said> {
        Some(Said {
            seed: entry["seed"].as_u64()?,
            warnings: serde_json::from_value(entry["warnings"].clone()).ok()?,
            features: serde_json::from_value(entry["features"].clone()).ok()?,
        })
    });
    Some(Kept { text, measured, before, said: said.flatten() })
}
