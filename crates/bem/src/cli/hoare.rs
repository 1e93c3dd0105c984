//! `bem hoare`: do a program's invariants hold along every edge? Clause: SCC-6.

use super::Answer;
use anyhow::{anyhow, bail};
use bem_isa::hoare::{self, Checked, Counterexample, HoareError, Options, Verdict};
use bem_prover::Budget;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Check that every node's invariant implies the next one's.
#[derive(Args)]
#[command(after_help = "Example: bem hoare examples/programs/sum.basm\n\
    Exit code 1 when an invariant is refuted, vacuous or undecided.")]
pub struct HoareArguments {
    /// The program, as text or binary
    file: PathBuf,
    /// Words of memory that exist; any other address traps
    #[arg(long, default_value_t = hoare::MEMORY_WORDS_DEFAULT)]
    memory: usize,
    /// Conflicts the solver may spend on each way out
    #[arg(long, default_value_t = Budget::DEFAULT.conflicts)]
    conflicts: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Words of memory beyond which the bounded model gets slow.
const MEMORY_WORDS_MAX: usize = 1_024;

/// `bem hoare`
pub fn run(arguments: &HoareArguments) -> anyhow::Result<Answer> {
    if MEMORY_WORDS_MAX < arguments.memory {
        bail!("--memory {} is too large: the model holds 0 to {MEMORY_WORDS_MAX} words", arguments.memory);
    }
    let program = super::isa::read_program(&arguments.file)?;
    let options = Options { memory_words: arguments.memory, budget: Budget::conflicts(arguments.conflicts) };
    let checked = hoare::check(&program, options).map_err(|error| refusal(&error, &arguments.file))?;
    let holds = hoare::all_hold(&checked);
    if arguments.json {
        let edges: Vec<_> = checked
            .iter()
            .map(|edge| json!({ "from": edge.from, "to": edge.to, "verdict": word(edge) }))
            .collect();
        say!("{}", json!({ "holds": holds, "edges": edges }));
    } else {
        for edge in &checked {
            say!("{:<16} -> {:<24} {}", edge.from, edge.to, word(edge));
            match &edge.verdict {
                Verdict::Refuted(example) => print_state(example),
                Verdict::Undecided(why) => say!("    {why}"),
                Verdict::Holds(certificate) => {
                    say!("    proof of {} bytes, checked", certificate.proof.len())
                }
                Verdict::Vacuous => say!("    the invariant of {} can never hold", edge.from),
            }
        }
        say!("{}", if holds { "every invariant holds" } else { "not every invariant holds" });
    }
    Ok(if holds { Answer::Yes } else { Answer::No })
}

/// Why a program cannot be checked, and what would have to change.
fn refusal(error: &HoareError, file: &Path) -> anyhow::Error {
    let name = file.display();
    match error {
        HoareError::NoNodeAt { from, target } => anyhow!(
            "{name} cannot be checked: instruction {from} goes to instruction {target}, which is in the middle of a node, and \
             invariants are stated where nodes start; begin one there with .node NAME \"INVARIANT\""
        ),
        HoareError::NoNodes => {
            anyhow!("{name} cannot be checked: it has no nodes; begin one with .node NAME \"INVARIANT\"")
        }
        other => anyhow!("{name} cannot be checked: {other}"),
    }
}

fn word(edge: &Checked) -> &'static str {
    match edge.verdict {
        Verdict::Holds(_) => "holds",
        Verdict::Refuted(_) => "refuted",
        Verdict::Vacuous => "vacuous",
        Verdict::Undecided(_) => "undecided",
    }
}

/// The registers that matter: those that change, and memory words that are not zero.
fn print_state(example: &Counterexample) {
    for (number, (before, after)) in example.before.x.iter().zip(&example.after.x).enumerate() {
        if before != after || (*before != 0 && *before < 1 << 32 && number != 31) {
            say!("    x{number:<3} {before:#x} -> {after:#x}");
        }
    }
    for (index, word) in example.memory.iter().enumerate().filter(|(_, word)| **word != 0) {
        say!("    [{}] {word:#x}", 8 * index);
    }
}
