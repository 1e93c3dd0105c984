//! `bem synth`: the smallest circuit for a truth table or for examples. Clause: SCC-7.

use super::Answer;
use crate::files;
use anyhow::{Context, bail};
use bem_circuit::formats::{Format, Model};
use bem_circuit::netlist::Netlist;
use bem_prover::cegis::{Event, LowerBound};
use bem_prover::superoptimize::{SuperoptimizeOptions, superoptimize};
use bem_prover::{Budget, Specification, Synthesis, SynthesisOptions, synthesize};
use clap::Args;
use serde_json::json;
use std::io::IsTerminal;
use std::path::PathBuf;

/// The smallest circuit of two-input gates for a truth table or for input-output examples.
#[derive(Args)]
#[command(after_help = "Example: bem synth majority.txt --json\n\n\
    TABLE is a text in which `#` starts a comment. Its lines are all of one kind:\n  \
    INPUTS OUTPUTS   an example: digits 0 and 1, input 0 leftmost; `-` stands for\n                   \
    both values among the inputs and for \"does not matter\"\n                   \
    among the outputs; rows that no line covers do not matter\n  \
    TABLE            the whole table of one output, 2^n digits; digit r is the\n                   \
    value for the inputs whose bits form the number r, input 0\n                   \
    being the lowest bit\n\n\
    A full adder is two lines: 01101001 and 00010111.\n\
    Exit code 1 when no circuit was found within --max-gates.")]
pub struct SynthArguments {
    /// The text with the truth table or the examples
    table: PathBuf,
    /// The most gates to try
    #[arg(long, default_value_t = SynthesisOptions::default().gates_max)]
    max_gates: usize,
    /// Conflicts the solver may spend on each attempt
    #[arg(long, default_value_t = SynthesisOptions::default().budget.conflicts)]
    conflicts: u32,
    /// How to print the circuit: net, blif, aiger-ascii, verilog, c, rust or dot
    #[arg(long, default_value = "net")]
    format: String,
    /// Show every candidate and counterexample on standard error
    #[arg(long)]
    trace: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Circuits beyond this are not printed by anyone.
const GATES_MAX: usize = 1_024;
/// Sizes up to this are searched exactly; nobody gets through larger ones.
const EXACT_GATES_MAX: usize = 12;

/// `bem synth`
pub fn run(arguments: &SynthArguments) -> anyhow::Result<Answer> {
    if GATES_MAX < arguments.max_gates {
        bail!("--max-gates {} is too large: 0 to {GATES_MAX}", arguments.max_gates);
    }
    let format = Format::from_name(&arguments.format)
        .filter(|format| *format != Format::Aiger)
        .with_context(|| {
            format!(
                "--format {:?} is unknown: net, blif, aiger-ascii, verilog, c, rust or dot",
                arguments.format
            )
        })?;
    let path = &arguments.table;
    let text = files::read_text(path)?;
    let specification =
        Specification::parse(&text).with_context(|| format!("{} is not a table", path.display()))?;
    let options = SynthesisOptions {
        gates_max: arguments.max_gates.min(EXACT_GATES_MAX),
        budget: Budget::conflicts(arguments.conflicts),
        ..SynthesisOptions::default()
    };
    let spinner = if std::io::stderr().is_terminal() && !arguments.trace {
        indicatif::ProgressBar::new_spinner()
    } else {
        indicatif::ProgressBar::hidden()
    };
    let found = synthesize(&specification, options, &mut |event| {
        spinner.tick();
        match event {
            Event::Proposed { gates, .. } => spinner.set_message(format!("{gates} gates")),
            Event::Refuted { gates } => spinner.set_message(format!("{gates} gates refuted")),
            Event::Counterexample { .. } | Event::Undecided { .. } => {}
        }
        if arguments.trace {
            note!("{}", describe(event, specification.inputs()));
        }
    });
    spinner.finish_and_clear();
    // Above exact size a circuit is built and made smaller, each step proven equal; nobody says it is smallest.
    let built = match &found {
        Synthesis::NotFound { smaller } if !smaller.is_complete() => {
            build(&specification, arguments.max_gates)
        }
        _ => None,
    };
    print(&found, built.as_ref(), format, arguments.json);
    Ok(if built.is_some() || matches!(found, Synthesis::Found { .. }) { Answer::Yes } else { Answer::No })
}

/// A circuit by construction and superoptimisation, if it stays within the bound.
fn build(specification: &Specification, gates_max: usize) -> Option<Netlist> {
    let constructed = specification.construct()?;
    let options = SuperoptimizeOptions::default();
    let smaller = superoptimize(&constructed, options).map_or(constructed, |smaller| smaller.circuit);
    (smaller.gates().len() <= gates_max && specification.first_violated(&smaller).is_none())
        .then_some(smaller)
}

fn describe(event: &Event<'_>, inputs: usize) -> String {
    match event {
        Event::Proposed { gates, circuit } => {
            format!("candidate of {gates} gates, digest {}", circuit.digest())
        }
        Event::Counterexample { row } => {
            let bits: String =
                (0..inputs).map(|input| if row >> input & 1 == 1 { '1' } else { '0' }).collect();
            format!("wrong for inputs {bits}")
        }
        Event::Refuted { gates } => format!("{gates} gates are not enough: proof checked"),
        Event::Undecided { gates } => format!("{gates} gates: the budget ran out"),
    }
}

fn print(found: &Synthesis, built: Option<&Netlist>, format: Format, json: bool) {
    let (Synthesis::Found { smaller, .. } | Synthesis::NotFound { smaller }) = found;
    let refuted: Vec<usize> = smaller.refutations.iter().map(|refutation| refutation.gates).collect();
    let proof_bytes: usize =
        smaller.refutations.iter().map(|refutation| refutation.certificate.proof.len()).sum();
    let mut object = json!({
        "found": false, "by_counting": smaller.by_counting, "refuted": refuted, "undecided": smaller.undecided,
        "proof_bytes": proof_bytes,
    });
    let exact = match found {
        Synthesis::Found { circuit, gates, .. } => Some((circuit, *gates)),
        Synthesis::NotFound { .. } => built.map(|circuit| (circuit, circuit.gates().len())),
    };
    let Some((circuit, gates)) = exact else {
        object["excluded"] = json!(smaller.is_complete());
        if json {
            say!("{object}");
        } else if smaller.is_complete() {
            say!("no circuit within the bound: {}", evidence(smaller));
        } else {
            say!("no circuit found within the bound; the budget ran out for sizes {:?}", smaller.undecided);
        }
        return;
    };
    let text =
        String::from_utf8_lossy(&format.write(&Model::new("synthesized", circuit.clone()))).into_owned();
    if json {
        object["found"] = json!(true);
        object["gates"] = json!(gates);
        object["inverters"] = json!(circuit.gates().len() - gates);
        object["minimal"] = json!(built.is_none() && smaller.is_complete());
        object["circuit"] = json!(text);
        say!("{object}");
        return;
    }
    say_text!("{text}");
    let comment = if matches!(format, Format::Net | Format::Blif) { "#" } else { "//" };
    if built.is_some() {
        say!("{comment} {gates} gates, built and superoptimised, not proven minimal");
    } else if smaller.is_complete() {
        say!("{comment} {gates} gates, proven minimal: {}", evidence(smaller));
    } else {
        say!(
            "{comment} {gates} gates, not proven minimal: the budget ran out for sizes {:?}",
            smaller.undecided
        );
    }
}

fn evidence(smaller: &LowerBound) -> String {
    let counting = match smaller.by_counting {
        0 => "no gate is needed".to_owned(),
        bound => format!("fewer than {bound} cannot read all inputs"),
    };
    match (smaller.refutations.first(), smaller.refutations.last()) {
        (Some(first), Some(last)) => {
            format!("{counting}; {} to {} refuted with checked proofs", first.gates, last.gates)
        }
        _ => counting,
    }
}
