//! `bem prove`: the prover on its own. Clauses: SCC-3, SCC-4, SCC-5.

use super::Answer;
use crate::files;
use anyhow::{Context, bail};
use bem_checker::lrat_reader::{self, StepReader};
use bem_checker::{Cnf, Literal, drat, lrat};
use bem_circuit::formats;
use bem_circuit::netlist::Netlist;
use bem_prover::equivalence::{
    EXHAUSTIVE_INPUTS_DEFAULT, EXHAUSTIVE_INPUTS_MAX, Equivalence, EquivalenceOptions, Evidence,
    check_equivalence_with,
};
use bem_prover::obligation::{ObligationBase, Verdict};
use bem_prover::{Budget, Outcome, solve};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Solve a formula, check a proof, compare two circuits.
#[derive(Args)]
#[command(after_help = "Example: bem prove sat formula.cnf --proof formula.lrat\n\
    Example: bem prove check formula.cnf formula.lrat\n\
    Example: bem prove holds base.cnf negation.cnf\n\
    Example: bem prove equiv one.aag other.blif")]
pub struct ProveArguments {
    #[command(subcommand)]
    command: ProveCommand,
}

#[derive(Subcommand)]
enum ProveCommand {
    /// Decide whether a DIMACS formula has a model; a "no" comes with a checked proof
    Sat(SatArguments),
    /// Check an LRAT or DRAT proof against its formula with the independent checker
    Check(CheckArguments),
    /// Decide whether conditions hold wherever a base does, all of them over one base that is kept
    Holds(HoldsArguments),
    /// Decide whether two circuits compute the same
    Equiv(EquivArguments),
}

/// Arguments of `bem prove sat`.
#[derive(Args)]
#[command(after_help = "Example: bem prove sat formula.cnf --proof formula.lrat\n\
    Example: bem prove sat formula.cnf --assume 1,-3\n\
    Prints `s SATISFIABLE` with a `v` line, `s UNSATISFIABLE` or `s UNKNOWN`. Where\n\
    assumptions rule out every model, `a` lines have a core: those of them that the\n\
    proof needs, none where the formula has no model anyway.\n\
    Exit code 0 for a decided answer, 1 for UNKNOWN, 2 for a formula that cannot be\n\
    read.")]
struct SatArguments {
    /// The formula, in DIMACS form
    formula: PathBuf,
    /// Literals that must hold, as in DIMACS, with commas between them
    #[arg(long, value_name = "LITERALS", value_delimiter = ',', allow_hyphen_values = true)]
    assume: Vec<i64>,
    /// Where to write the proof of unsatisfiability, as LRAT text
    #[arg(long)]
    proof: Option<PathBuf>,
    /// Write the proof in binary LRAT
    #[arg(long, requires = "proof")]
    binary: bool,
    /// Conflicts the solver may spend
    #[arg(long, default_value_t = i32::MAX as u32)]
    conflicts: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Forms of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ProofForm {
    /// With hints
    Lrat,
    /// Without hints (DRUP and DRAT; steps that need the RAT rule are rejected)
    Drat,
}

/// Arguments of `bem prove check`.
#[derive(Args)]
#[command(after_help = "Example: bem prove check formula.cnf formula.lrat\n\
    Example: bem prove check formula.cnf formula.lrat --assume 1,-3\n\
    Text and binary proofs are told apart by their content. Exit code 1 when the\n\
    proof is not accepted, whether it does not follow or cannot even be read; 2 when\n\
    the formula cannot be read.")]
struct CheckArguments {
    /// The formula, in DIMACS form
    formula: PathBuf,
    /// The proof
    proof: PathBuf,
    /// Its form, if it should not be guessed
    #[arg(long, value_enum)]
    form: Option<ProofForm>,
    /// Literals that were assumed when the proof was made; only LRAT has such proofs
    #[arg(long, value_name = "LITERALS", value_delimiter = ',', allow_hyphen_values = true)]
    assume: Vec<i64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `bem prove holds`.
#[derive(Args)]
#[command(after_help = "Example: bem prove holds base.cnf negation.cnf another.cnf\n\
    The base says what may be taken for granted. A condition is given as its\n\
    negation: clauses over the variables of the base, and over further ones of its\n\
    own. It holds if base and negation have no model together, and the base has one.\n\
    The base is read by the solver once, and what was learned of it serves all\n\
    conditions. Exit code 1 unless all of them hold.")]
struct HoldsArguments {
    /// The base, in DIMACS form
    base: PathBuf,
    /// Negated conditions, in DIMACS form
    #[arg(required = true)]
    negations: Vec<PathBuf>,
    /// Conflicts the solver may spend on each
    #[arg(long, default_value_t = Budget::DEFAULT.conflicts)]
    conflicts: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `bem prove equiv`.
#[derive(Args)]
#[command(after_help = "Example: bem prove equiv adder.aig adder.blif\n\
    Circuits are AIGER, BLIF or .net files; inputs and outputs are matched by\n\
    position, and bits of memory count as inputs and outputs. Exit code 1 when the\n\
    circuits differ or the budget runs out.")]
struct EquivArguments {
    /// One circuit
    left: PathBuf,
    /// The other circuit
    right: PathBuf,
    /// Conflicts the solver may spend
    #[arg(long, default_value_t = Budget::DEFAULT.conflicts)]
    conflicts: u32,
    /// Try all assignments up to this many inputs that matter; the solver decides above
    #[arg(long, default_value_t = EXHAUSTIVE_INPUTS_DEFAULT)]
    exhaustive: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `bem prove`
pub fn run(arguments: &ProveArguments) -> anyhow::Result<Answer> {
    match &arguments.command {
        ProveCommand::Sat(arguments) => sat(arguments),
        ProveCommand::Check(arguments) => check(arguments),
        ProveCommand::Holds(arguments) => holds(arguments),
        ProveCommand::Equiv(arguments) => equiv(arguments),
    }
}

fn read_formula(path: &Path) -> anyhow::Result<Cnf> {
    Cnf::from_dimacs(&files::read_bytes(path)?)
        .with_context(|| format!("{} is not a DIMACS formula", path.display()))
}

/// The literals of `--assume`: each of a variable of the formula, and none beside its opposite.
fn read_assumptions(numbers: &[i64], formula: &Cnf) -> anyhow::Result<Vec<Literal>> {
    let (mut assumptions, variables) = (Vec::new(), formula.variables());
    for number in numbers {
        let literal = Literal::from_dimacs(*number).filter(|literal| literal.variable() <= variables);
        let Some(literal) = literal else {
            bail!("--assume {number} is no literal of the formula, whose variables are 1 to {variables}");
        };
        if assumptions.contains(&!literal) {
            bail!("--assume {number} and {} are opposites: no model has both", -number);
        }
        assumptions.push(literal);
    }
    Ok(assumptions)
}

fn sat(arguments: &SatArguments) -> anyhow::Result<Answer> {
    let formula = read_formula(&arguments.formula)?;
    let assumptions = read_assumptions(&arguments.assume, &formula)?;
    let outcome = solve(&formula, &assumptions, Budget::conflicts(arguments.conflicts));
    let core = match &outcome {
        Outcome::Unsatisfiable { core, .. } if !assumptions.is_empty() => {
            let mut core: Vec<i32> = core.iter().map(|literal| literal.to_dimacs()).collect();
            core.sort_unstable_by_key(|literal| literal.abs());
            Some(core)
        }
        _ => None,
    };
    let (word, literals, proof) = match &outcome {
        Outcome::Satisfiable { model } => {
            let literals =
                model.iter().zip(1i64..).map(|(value, variable)| if *value { variable } else { -variable });
            ("SATISFIABLE", Some(literals.collect::<Vec<i64>>()), None)
        }
        Outcome::Unsatisfiable { certificate, .. } => ("UNSATISFIABLE", None, Some(&certificate.proof)),
        Outcome::Undecided(_) => ("UNKNOWN", None, None),
    };
    if let (Some(path), Some(proof)) = (&arguments.proof, proof) {
        let text = if arguments.binary { proof.clone() } else { lrat_reader::to_text(proof)?.into_bytes() };
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if arguments.json {
        say!(
            "{}",
            json!({
                "answer": word.to_lowercase(), "variables": formula.variables(), "clauses": formula.clause_count(),
                "model": literals, "proof_bytes": proof.map(Vec::len), "proof_checked": proof.is_some(),
                "assumed": arguments.assume, "core": core,
            })
        );
    } else {
        say!("s {word}");
        match &outcome {
            Outcome::Undecided(why) => say!("c {why}"),
            Outcome::Unsatisfiable { certificate, .. } => {
                say!("c proof of {} bytes, accepted by the checker", certificate.proof.len());
            }
            Outcome::Satisfiable { .. } => {}
        }
        if let Some(literals) = literals {
            print_literals('v', &literals);
        }
        if let Some(core) = core {
            print_literals('a', &core);
        }
    }
    Ok(if matches!(outcome, Outcome::Undecided(_)) { Answer::No } else { Answer::Yes })
}

/// Literals in lines of moderate length, as other solvers print them.
fn print_literals(sign: char, literals: &[impl std::fmt::Display]) {
    for chunk in literals.chunks(16) {
        let words: Vec<String> = chunk.iter().map(ToString::to_string).collect();
        say!("{sign} {}", words.join(" "));
    }
    say!("{sign} 0");
}

fn check(arguments: &CheckArguments) -> anyhow::Result<Answer> {
    let formula = read_formula(&arguments.formula)?;
    let proof = files::read_bytes(&arguments.proof)?;
    let assumptions = read_assumptions(&arguments.assume, &formula)?;
    let form = arguments.form.unwrap_or_else(|| guess_form(&proof));
    if form == ProofForm::Drat && !assumptions.is_empty() {
        bail!("--assume goes with LRAT proofs, and {} is a DRAT proof", arguments.proof.display());
    }
    let mut verdict = match form {
        ProofForm::Lrat => lrat::check_under(&formula, &assumptions, &proof),
        ProofForm::Drat => drat::check(&formula, &proof),
    };
    let mut name = if form == ProofForm::Lrat { "lrat" } else { "drat" };
    // Binary proofs of both forms look alike; one that fails as LRAT may still be good DRAT.
    if verdict.is_err()
        && arguments.form.is_none()
        && assumptions.is_empty()
        && matches!(proof.first(), Some(b'a' | b'd'))
        && let Ok(accepted) = drat::check(&formula, &proof)
    {
        (verdict, name) = (Ok(accepted), "drat");
    }
    if arguments.json {
        let object = match &verdict {
            Ok(accepted) => {
                json!({ "valid": true, "form": name, "steps": accepted.steps, "hints": accepted.hints })
            }
            Err(error) => json!({ "valid": false, "form": name, "reason": error.to_string() }),
        };
        say!("{object}");
    } else {
        match &verdict {
            Ok(accepted) => {
                say!("s VERIFIED UNSAT");
                say!("c {name}: {} steps, {} hints followed", accepted.steps, accepted.hints);
            }
            Err(error) => {
                say!("s NOT VERIFIED");
                say!("c {name}: {error}");
            }
        }
    }
    Ok(if verdict.is_ok() { Answer::Yes } else { Answer::No })
}

/// A negated condition whose own variables, those above the base's, stand above all that are taken already.
fn apart(negation: &Cnf, base: u32, taken: u32) -> Cnf {
    let mut moved = Cnf::new(taken.max(base) + negation.variables().saturating_sub(base));
    for clause in negation.clauses() {
        let move_up = |literal: &Literal| match literal.variable() <= base {
            true => *literal,
            false => {
                let variable = i64::from(literal.variable() - base + taken);
                let number = if literal.is_negative() { -variable } else { variable };
                Literal::from_dimacs(number).expect("there are fewer variables than a literal can name")
            }
        };
        moved.add(&clause.iter().map(move_up).collect::<Vec<_>>());
    }
    moved
}

/// What became of a condition: a word, a line for a reader, and the model where there is one.
fn told(verdict: &Verdict) -> (&'static str, String, Option<&Vec<bool>>) {
    match verdict {
        Verdict::Holds { certificate, .. } => {
            ("holds", format!("proof of {} bytes, accepted by the checker", certificate.proof.len()), None)
        }
        Verdict::Refuted { model } => {
            ("refuted", "base and negation have a model together".to_string(), Some(model))
        }
        Verdict::Vacuous { .. } => ("vacuous", "the base has no model, so nothing is said".to_string(), None),
        Verdict::Undecided(why) => ("undecided", why.to_string(), None),
    }
}

fn holds(arguments: &HoldsArguments) -> anyhow::Result<Answer> {
    let base = read_formula(&arguments.base)?;
    let budget = Budget::conflicts(arguments.conflicts);
    let mut kept = ObligationBase::new(&base, budget);
    let (mut all_hold, mut conditions) = (true, Vec::new());
    for path in &arguments.negations {
        let negation = apart(&read_formula(path)?, base.variables(), kept.variables());
        let verdict = kept.prove(&negation, budget);
        all_hold &= verdict.holds();
        let (word, line, model) = told(&verdict);
        let values = model.map(|model| {
            let signed =
                model.iter().zip(1i64..).map(|(value, number)| if *value { number } else { -number });
            signed.take(base.variables() as usize).collect::<Vec<i64>>()
        });
        if arguments.json {
            conditions.push(json!({
                "condition": path.display().to_string(), "answer": word, "reason": line, "model": values,
            }));
        } else {
            say!("{}: {word}: {line}", path.display());
            if let Some(values) = values {
                print_literals('v', &values);
            }
        }
    }
    if arguments.json {
        say!("{}", json!({ "holds": all_hold, "conditions": conditions }));
    }
    Ok(if all_hold { Answer::Yes } else { Answer::No })
}

/// LRAT if the whole file can be read as such; an empty file is an LRAT proof without steps.
fn guess_form(proof: &[u8]) -> ProofForm {
    let mut reader = StepReader::new(proof);
    loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => return ProofForm::Lrat,
            Err(_) => return ProofForm::Drat,
        }
    }
}

fn read_circuit(path: &Path) -> anyhow::Result<Netlist> {
    let model = formats::read(&files::read_bytes(path)?)
        .with_context(|| format!("{} is not a circuit", path.display()))?;
    if model.circuit().outputs().is_empty() {
        // Any two of these are equal, which is never what was asked.
        bail!("{} is not a circuit: it has no outputs", path.display());
    }
    Ok(model.circuit().clone())
}

fn equiv(arguments: &EquivArguments) -> anyhow::Result<Answer> {
    if EXHAUSTIVE_INPUTS_MAX < arguments.exhaustive {
        bail!("--exhaustive {} is too large: 0 to {EXHAUSTIVE_INPUTS_MAX} inputs", arguments.exhaustive);
    }
    let (left, right) = (read_circuit(&arguments.left)?, read_circuit(&arguments.right)?);
    let options = EquivalenceOptions {
        exhaustive_inputs: arguments.exhaustive,
        budget: Budget::conflicts(arguments.conflicts),
    };
    let answer = check_equivalence_with(&left, &right, options);
    let object = describe(&answer, &left, &right);
    if arguments.json {
        say!("{object}");
    } else {
        match &answer {
            Equivalence::Equal(Evidence::Exhaustive { rows }) => {
                say!("equal: all {rows} assignments agree")
            }
            Equivalence::Equal(Evidence::Proof { certificate, .. }) => {
                say!("equal: proof of {} bytes, accepted by the checker", certificate.proof.len());
            }
            Equivalence::Different { input } => {
                say!("different");
                say!("inputs  {}", digits(input));
                say!("left    {}", digits(&left.evaluate(input)));
                say!("right   {}", digits(&right.evaluate(input)));
            }
            Equivalence::Mismatch => say!(
                "different: {} inputs and {} outputs against {} and {}",
                left.inputs(),
                left.outputs().len(),
                right.inputs(),
                right.outputs().len()
            ),
            Equivalence::Undecided(why) => say!("undecided: {why}"),
        }
    }
    Ok(if answer.is_equal() { Answer::Yes } else { Answer::No })
}

fn describe(answer: &Equivalence, left: &Netlist, right: &Netlist) -> serde_json::Value {
    match answer {
        Equivalence::Equal(Evidence::Exhaustive { rows }) => {
            json!({ "equal": true, "evidence": "exhaustive", "rows": rows })
        }
        Equivalence::Equal(Evidence::Proof { certificate, .. }) => {
            json!({ "equal": true, "evidence": "proof", "proof_bytes": certificate.proof.len() })
        }
        Equivalence::Different { input } => json!({
            "equal": false, "inputs": digits(input),
            "left": digits(&left.evaluate(input)), "right": digits(&right.evaluate(input)),
        }),
        Equivalence::Mismatch => {
            json!({ "equal": false, "reason": "different numbers of inputs or outputs" })
        }
        Equivalence::Undecided(why) => json!({ "equal": null, "reason": why.to_string() }),
    }
}

/// Values as digits, the first one leftmost.
fn digits(values: &[bool]) -> String {
    values.iter().map(|value| if *value { '1' } else { '0' }).collect()
}
