//! `bem export`: a learned circuit of a run, in a form that other tools read.

use super::Answer;
use super::snapshot::newest_climb;
use anyhow::{Context, Result};
use bem_circuit::formats::{Format, Model};
use bem_engine::climb::{Climb, Climbed, Track};
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
    /// Which expert; without it the run's experts are listed (a run over one task has only one)
    #[arg(long)]
    expert: Option<String>,
    /// verilog, aiger, aiger-ascii, blif, c, rust, dot or net
    #[arg(long, default_value = "verilog")]
    format: String,
    /// Where it goes [default: standard output]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// `bem export`
pub fn run(arguments: &ExportArguments) -> Result<Answer> {
    let (climb, _) = newest_climb(&arguments.directory)?;
    let experts = experts(&climb);
    let names: Vec<String> = experts.iter().map(|(track, climbed)| name_of(track, climbed)).collect();
    let place = match &arguments.expert {
        Some(wanted) => {
            let named = |track: &Track, name: &String| *wanted == track.family || wanted == name;
            let place = (0..experts.len()).rev().find(|place| named(experts[*place].0, &names[*place]));
            place.with_context(|| {
                format!("there is no expert {wanted:?} in this run; there are {}", names.join(", "))
            })?
        }
        // A run over one task has one expert, which needs no name.
        None if climb.config().stages == 1 && !experts.is_empty() => 0,
        None => {
            for ((_, climbed), name) in experts.iter().zip(&names) {
                say!("{name:<26} {:>4} gates  {}", climbed.policy.gates(), climbed.task);
            }
            return Ok(Answer::Yes);
        }
    };
    let climbed = experts[place].1;
    let format = Format::from_name(&arguments.format).with_context(|| {
        format!(
            "--format {:?} is unknown: verilog, aiger, aiger-ascii, blif, c, rust, dot or net",
            arguments.format
        )
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
    let name = arguments.expert.as_ref().unwrap_or(&names[place]).replace('/', "_");
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

/// What can be exported: every solved rung, and of a family without any what it came to last.
fn experts(climb: &Climb) -> Vec<(&Track, &Climbed)> {
    let of = |track: &Track| -> Vec<usize> {
        let solved: Vec<usize> =
            (0..track.climbed.len()).filter(|place| track.climbed[*place].solved).collect();
        if solved.is_empty() { (0..track.climbed.len()).rev().take(1).collect() } else { solved }
    };
    let tracks = climb.tracks().iter();
    tracks.flat_map(|track| of(track).into_iter().map(move |place| (track, &track.climbed[place]))).collect()
}

fn name_of(track: &Track, climbed: &Climbed) -> String {
    format!("{}/{}", track.family, climbed.stage)
}
