//! `bem hoare`: do a program's invariants hold along every edge? Clause: SCC-6.

use super::Answer;
use anyhow::{anyhow, bail};
use bem_base::words::quantity;
use bem_isa::hoare::{self, Checked, Counterexample, HoareError, Options, Verdict};
use bem_prover::Budget;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Check that every node's invariant implies the next one's.
#[derive(Args)]
#[command(after_help = "Example: bem hoare examples/programs/sum.basm\n\
    Exit code 1 when an invariant is refuted, vacuous or undecided.\n\n\
    Calls and returns are refused: put what is called in its place, as a .macro.\n\
    What a tool or co-processor answers is unknown, and so is memory after it; that\n\
    it answers is assumed. An address that is read from memory needs an invariant\n\
    that bounds it.")]
pub struct HoareArguments {
    /// The program, as text or binary
    file: PathBuf,
    /// Words of memory that exist; any other address traps [default: as many as the offsets of the program reach, and at
    /// least 8]
    #[arg(long)]
    memory: Option<usize>,
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
    if let Some(words) = arguments.memory.filter(|words| MEMORY_WORDS_MAX < *words) {
        bail!("--memory {words} is too large: the model holds 0 to {MEMORY_WORDS_MAX} words");
    }
    let program = super::isa::read_program(&arguments.file)?;
    let memory_words =
        arguments.memory.unwrap_or_else(|| hoare::memory_words(&program).min(MEMORY_WORDS_MAX));
    let options = Options { memory_words, budget: Budget::conflicts(arguments.conflicts) };
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
            say!("{:<24} -> {:<25} {}", edge.from, edge.to, word(edge));
            match &edge.verdict {
                Verdict::Refuted(example) => print_state(example),
                Verdict::Undecided(why) => say!("    {why}"),
                Verdict::Holds(certificate) => {
                    say!("    proof of {} bytes, checked", certificate.proof.len())
                }
                Verdict::Vacuous => say!("    the invariant of {} can never hold", edge.from),
            }
        }
        let model = quantity(memory_words, "word");
        match holds {
            true => say!("every invariant holds, with {model} of memory"),
            false => say!("not every invariant holds, with {model} of memory"),
        }
        let is_access = |edge: &Checked| edge.to.starts_with("no trap at ");
        if checked.iter().any(|edge| is_access(edge) && !matches!(edge.verdict, Verdict::Holds(_))) {
            say!("an access may leave memory: give the model more words with --memory, or begin");
            say!("a node before it with .node NAME \"INVARIANT\" that bounds its address");
        }
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
