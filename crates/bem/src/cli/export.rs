//! `bem export`: a learned circuit of a run, in a form that other tools read.

use super::Answer;
use super::snapshot::newest_climb;
use anyhow::{Context, Result, bail};
use bem_circuit::formats::{Format, Model};
use clap::Args;
use std::io::Write as _;
use std::path::PathBuf;

/// Write a learned circuit as Verilog, AIGER, BLIF, C, Rust, DOT or our own text.
#[derive(Args)]
#[command(after_help = "Example: bem export runs/1 --expert parity --format verilog --out parity.v\n\
    An expert is named by its family (the highest rung solved), or family/rung such as parity/0.")]
pub struct ExportArguments {
    /// A run
    directory: PathBuf,
    /// Which expert; without it the run's experts are listed
    #[arg(long)]
    expert: Option<String>,
    /// verilog, aiger, aag, blif, c, rust, dot or net
    #[arg(long, default_value = "verilog")]
    format: String,
    /// Where it goes [default: standard output]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// `bem export`
pub fn run(arguments: &ExportArguments) -> Result<Answer> {
    let (climb, _) = newest_climb(&arguments.directory)?;
    let experts: Vec<_> = climb
        .tracks()
        .iter()
        .flat_map(|track| {
            track.climbed.iter().filter(|climbed| climbed.solved).map(move |climbed| (track, climbed))
        })
        .collect();
    let Some(wanted) = &arguments.expert else {
        for (track, climbed) in &experts {
            println!(
                "{:<26} {:>4} gates  {}",
                format!("{}/{}", track.family, climbed.stage),
                climbed.policy.gates(),
                climbed.task
            );
        }
        return Ok(Answer::Yes);
    };
    let named = |family: &str, stage: usize| *wanted == family || *wanted == format!("{family}/{stage}");
    let Some((_, climbed)) =
        experts.iter().rev().find(|(track, climbed)| named(&track.family, climbed.stage))
    else {
        let known: Vec<String> =
            experts.iter().map(|(track, climbed)| format!("{}/{}", track.family, climbed.stage)).collect();
        bail!("there is no expert {wanted:?} in this run; there are {}", known.join(", "));
    };
    let format = Format::from_name(&arguments.format).with_context(|| {
        format!("--format {:?} is unknown: verilog, aiger, aag, blif, c, rust, dot or net", arguments.format)
    })?;
    let policy = &climbed.policy;
    let inputs: Vec<String> = policy
        .reads()
        .iter()
        .map(|bit| format!("observation_{bit}"))
        .chain((0..policy.memory_bits()).map(|bit| format!("memory_{bit}")))
        .collect();
    let actions = policy.circuit().outputs().len() - policy.memory_bits();
    let outputs: Vec<String> = (0..actions)
        .map(|bit| format!("action_{bit}"))
        .chain((0..policy.memory_bits()).map(|bit| format!("next_memory_{bit}")))
        .collect();
    let name = wanted.replace('/', "_");
    let model = Model::with_memory(&name, policy.circuit().clone(), policy.memory_bits())
        .map_err(|error| anyhow::anyhow!("{error}"))?
        .named(&inputs, &outputs);
    let bytes = format.write(&model);
    match &arguments.out {
        Some(path) => {
            std::fs::write(path, bytes).with_context(|| format!("{} cannot be written", path.display()))?
        }
        None => std::io::stdout().write_all(&bytes)?,
    }
    Ok(Answer::Yes)
}
