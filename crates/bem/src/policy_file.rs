//! A policy in one file: circuit, named features, names of actions, where it comes from.
//!
//! `bem learn --out` writes it; `bem explain`, `bem export` and `bem evaluate` take it. It is one JSON object with `"format":
//! "bem policy 1"`; the circuit is in our own form. Clauses: GLE-9.

use crate::learned::{Learned, circuit};
use anyhow::{Context as _, Result, anyhow, bail};
use bem_circuit::formats::{self, Format, Model};
use bem_data::Encoder;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const FORMAT: &str = "bem policy 1";

/// The file as it is written, field by field.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    name: String,
    features: Box<RawValue>,
    actions: Vec<String>,
    provenance: Vec<String>,
    warnings: Vec<String>,
    circuit: String,
}

/// The text of a policy's file; it must have named features.
pub fn write(learned: &Learned) -> Result<String> {
    let encoder =
        learned.names.as_ref().context("a policy without named features is exported as a circuit")?;
    let policy = &learned.policy;
    let memory = || 0..policy.memory_bits();
    let seen = policy.reads().iter().map(|bit| format!("observation_{bit}"));
    let inputs: Vec<String> = seen.chain(memory().map(|bit| format!("memory_{bit}"))).collect();
    let code = 0..policy.circuit().outputs().len() - policy.memory_bits();
    let outputs: Vec<String> = code
        .map(|bit| format!("action_{bit}"))
        .chain(memory().map(|bit| format!("next_memory_{bit}")))
        .collect();
    let model = Model::with_memory("policy", policy.circuit().clone(), policy.memory_bits())
        .map_err(|error| anyhow!("{error}"))?
        .named(&inputs, &outputs);
    let circuit =
        String::from_utf8(Format::Net.write(&model)).context("a circuit in our own form is text")?;
    let file = File {
        format: FORMAT.to_string(),
        name: learned.name.clone(),
        features: RawValue::from_string(encoder.to_json())?,
        actions: learned.actions.clone(),
        provenance: learned.provenance.clone(),
        warnings: learned.warnings.clone(),
        circuit,
    };
    Ok(serde_json::to_string_pretty(&file)? + "\n")
}

/// Whether a text claims to be a policy's file.
pub fn is_one(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains(FORMAT)
}

/// Reads a policy's file.
pub fn read(text: &str) -> Result<Learned> {
    let file: File =
        serde_json::from_str(text).map_err(|error| anyhow!("it is no policy's file: {error}"))?;
    if file.format != FORMAT {
        bail!("\"format\" is {:?}; this version reads {FORMAT:?}", file.format);
    }
    let encoder = Encoder::from_json(file.features.get()).context("\"features\"")?;
    let model = formats::read(file.circuit.as_bytes()).context("\"circuit\"")?;
    let mut learned = circuit(&model).context("\"circuit\"")?;
    let actions = u16::try_from(file.actions.len())
        .ok()
        .filter(|count| 0 < *count)
        .context("\"actions\" has no names")?;
    let (bits, outputs) = (encoder.bits(), model.free_outputs());
    let reads = learned.policy.reads().to_vec();
    if reads.last().is_some_and(|last| bits <= usize::from(*last)) {
        bail!("the circuit reads bits past the {bits} of its features");
    }
    learned.policy = bem_synth::policy::Policy::new(model.circuit().clone(), reads, model.memory(), actions)
        .with_context(|| format!("{actions} actions do not fit {outputs} outputs"))?;
    learned.observation_bits = bits;
    learned.fields = encoder.fields();
    learned.horizon = (model.memory() == 0).then_some(1);
    (learned.name, learned.provenance, learned.warnings) = (file.name, file.provenance, file.warnings);
    (learned.names, learned.actions) = (Some(encoder), file.actions);
    Ok(learned)
}
