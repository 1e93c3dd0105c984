//! One file per subcommand: raw arguments, then a validated struct, then work.
//!
//! Exit codes are the same everywhere: 0 for success, 1 when the answer is "no", 2 for bad input with one
//! clear line on standard error.

/// Prints a line on standard output.
macro_rules! say {
    () => { $crate::cli::print(format_args!("\n")) };
    ($($words:tt)*) => { $crate::cli::print(format_args!("{}\n", format_args!($($words)*))) };
}

/// Prints a line on standard error. A reader that has gone away is no reason to stop.
macro_rules! note {
    ($($words:tt)*) => { $crate::cli::remark(format_args!("{}\n", format_args!($($words)*))) };
}

/// Prints text that ends its own lines.
macro_rules! say_text {
    ($($words:tt)*) => { $crate::cli::print(format_args!($($words)*)) };
}

mod bench;
mod check;
mod config;
mod curriculum;
mod doctor;
mod engine;
mod evaluate;
mod explain;
mod export;
pub mod fit;
mod games;
mod hoare;
mod image;
mod image_options;
mod init;
mod inspect;
mod isa;
mod isa_record;
mod isa_tools;
mod ladder;
mod learn;
pub mod ledger_directory;
mod mcp;
mod people;
pub mod pipeline;
mod proof;
mod prove;
pub mod run;
pub mod serve;
pub mod snapshot;
pub mod solve;
mod synth;
mod table;
mod token;
mod tools;
mod unit_worker;
mod usage;
mod verify;
mod witness;

use clap::{Parser, Subcommand};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The first write to standard output that failed, other than for a reader that has gone away.
static UNWRITTEN: OnceLock<String> = OnceLock::new();

/// Prints. A reader that has gone away (`bem games list | head -1`) stops neither the work nor the answer of a command;
/// any other failure, such as a full disk, is kept for the exit code.
fn print(text: std::fmt::Arguments<'_>) {
    keep_failure(std::io::stdout().lock().write_fmt(text));
}

/// The same for bytes.
fn print_bytes(bytes: &[u8]) {
    keep_failure(std::io::stdout().lock().write_all(bytes));
}

/// Prints on standard error; whether anybody reads it changes nothing. A message is one line in a file and for a program
/// that reads it, and as many as it needs on a terminal.
pub fn remark(text: std::fmt::Arguments<'_>) {
    let mut error = std::io::stderr().lock();
    let _ = match error.is_terminal() {
        true => error.write_all(fit::message(&text.to_string()).as_bytes()),
        false => error.write_fmt(text),
    };
}

fn keep_failure(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = UNWRITTEN.set(error.to_string());
    }
}

/// BEM, the Boolean Expert Machine: learns small Boolean circuits from play, and proves every change.
#[derive(Parser)]
#[command(
    name = "bem",
    version,
    max_term_width = 80,
    after_help = "Example: bem solve parity --param n=16\n\
    Example: bem run --minutes 1 --out my-run, then bem verify my-run\n\
    Without a command bem climbs the ladder over all families for two minutes."
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

/// Every subcommand lives in the file of its name. The order is that of the help: learning first, then histories, the
/// prover, the control core.
#[derive(Subcommand)]
enum Command {
    /// Climb the ladder over all families: the main job, and what `bem` alone does.
    Run(run::RunArguments),
    /// Learn one task from scratch.
    Solve(solve::SolveArguments),
    /// Specialists that teach a main machine: phases, domains, many workers.
    Pipeline(pipeline::PipelineArguments),
    /// Work on units that come over standard input.
    #[command(hide = true)]
    UnitWorker(unit_worker::UnitWorkerArguments),
    /// Write a working starting point for a problem of one's own.
    Init(init::InitArguments),
    /// Learn a circuit from a table or a log.
    Learn(learn::LearnArguments),
    /// What a policy would have earned, judged by a log.
    Evaluate(evaluate::EvaluateArguments),
    /// Decide now and learn from rewards that come later, over HTTP.
    Serve(serve::ServeArguments),
    /// The questions of a running server: list, answer, take back, statistics.
    People(people::PeopleArguments),
    /// Tokens of a server: add one, list them, take one back.
    Token(token::TokenArguments),
    /// A machine's state as container images: saved, restored, promoted, pruned, moved.
    Image(image::ImageArguments),
    /// The machine of an image, also under the name bem-engine.
    #[command(hide = true)]
    Engine(engine::EngineArguments),
    /// The resource catalog: check it, show it, one request by hand.
    Tools(tools::ToolsArguments),
    /// A worker of a running bus, in a process of its own.
    Worker(tools::WorkerArguments),
    /// A running server's tools and questions for a client of the Model Context Protocol.
    Mcp(mcp::McpArguments),
    /// The games BEM can learn from: list them, look at one, play one by hand.
    Games(games::GamesArguments),
    /// The difficulty ladder: stages, bands, estimated and measured difficulty, fit.
    Ladder(ladder::LadderArguments),
    /// Learn every row of the table of floors and compare.
    Table(table::TableArguments),
    /// Micro-benchmarks with ratios to their floor.
    Bench(bench::BenchArguments),
    /// A learned policy as a program or circuit, for use elsewhere.
    Export(export::ExportArguments),
    /// A learned policy as rules, and why it chooses what it chooses.
    Explain(explain::ExplainArguments),
    /// An independent look at a policy that carries its proof.
    Check(check::CheckArguments),
    /// Audit a run: chain, tree, roots, proofs, signatures.
    Verify(verify::VerifyArguments),
    /// Play a run again from its configuration and compare heads.
    Replay(snapshot::ReplayArguments),
    /// Show what is in a run, a segment, a snapshot or a checkpoint, or all limits.
    Inspect(inspect::InspectArguments),
    /// Copy the newest sound snapshot of a run.
    Snapshot(snapshot::SnapshotArguments),
    /// Start a run from a snapshot file.
    Restore(snapshot::RestoreArguments),
    /// Inclusion and consistency proofs over a ledger.
    Proof(proof::ProofArguments),
    /// Sign a run's newest checkpoint, if it extends the last one signed.
    Witness(witness::WitnessArguments),
    /// Solve a formula, check a proof, compare two circuits.
    Prove(prove::ProveArguments),
    /// The smallest circuit for a truth table or for input-output examples.
    Synth(synth::SynthArguments),
    /// Assemble a text into a binary program.
    Asm(isa::AsmArguments),
    /// Print a binary program as text.
    Disasm(isa::DisasmArguments),
    /// Run a program of the control core.
    Exec(isa::ExecArguments),
    /// Check the invariants of a program, with proofs and counterexamples.
    Hoare(hoare::HoareArguments),
    /// The phased commitment protocol with its controls.
    Curriculum(curriculum::CurriculumArguments),
    /// The frozen parameters of a run: show those in force, check a file.
    Config(config::ConfigArguments),
    /// What this machine offers, and what would be missing.
    Doctor(doctor::DoctorArguments),
}

/// What a command answers when nothing went wrong: yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Success: exit code 0.
    Yes,
    /// The work was done and the answer is "no" (not solved, not valid, refuted): exit code 1.
    No,
    /// The work was done and the answer has a code of its own, named in the command's help.
    Code(u8),
}

/// Parses the arguments, runs the command and turns its answer into an exit code.
pub fn main() -> ExitCode {
    let arguments = match usage::parse(engine::arguments(std::env::args_os().collect())) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let answer: anyhow::Result<Answer> = match arguments.command {
        None => run::run(&run::RunArguments::default()),
        Some(Command::Run(arguments)) => run::run(&arguments),
        Some(Command::Pipeline(arguments)) => pipeline::run(&arguments),
        Some(Command::UnitWorker(arguments)) => unit_worker::run(&arguments),
        Some(Command::Solve(arguments)) => solve::run(&arguments),
        Some(Command::Init(arguments)) => init::run(&arguments),
        Some(Command::Learn(arguments)) => learn::run(&arguments),
        Some(Command::Evaluate(arguments)) => evaluate::run(&arguments),
        Some(Command::Serve(arguments)) => serve::run(&arguments),
        Some(Command::People(arguments)) => people::run(&arguments),
        Some(Command::Token(arguments)) => token::run(&arguments),
        Some(Command::Image(arguments)) => image::run(&arguments),
        Some(Command::Engine(arguments)) => engine::run(&arguments),
        Some(Command::Tools(arguments)) => tools::run(&arguments),
        Some(Command::Worker(arguments)) => tools::worker(&arguments),
        Some(Command::Mcp(arguments)) => mcp::run(&arguments),
        Some(Command::Games(arguments)) => games::run(&arguments),
        Some(Command::Ladder(arguments)) => ladder::run(&arguments),
        Some(Command::Table(arguments)) => table::run(&arguments),
        Some(Command::Bench(arguments)) => bench::run(&arguments),
        Some(Command::Export(arguments)) => export::run(&arguments),
        Some(Command::Explain(arguments)) => explain::run(&arguments),
        Some(Command::Check(arguments)) => check::run(&arguments),
        Some(Command::Verify(arguments)) => verify::run(&arguments),
        Some(Command::Replay(arguments)) => snapshot::replay(&arguments),
        Some(Command::Inspect(arguments)) => inspect::run(&arguments),
        Some(Command::Snapshot(arguments)) => snapshot::snapshot(&arguments),
        Some(Command::Restore(arguments)) => snapshot::restore(&arguments),
        Some(Command::Proof(arguments)) => proof::run(&arguments),
        Some(Command::Witness(arguments)) => witness::run(&arguments),
        Some(Command::Prove(arguments)) => prove::run(&arguments),
        Some(Command::Synth(arguments)) => synth::run(&arguments),
        Some(Command::Asm(arguments)) => isa::asm(&arguments),
        Some(Command::Disasm(arguments)) => isa::disasm(&arguments),
        Some(Command::Exec(arguments)) => isa::exec(&arguments),
        Some(Command::Hoare(arguments)) => hoare::run(&arguments),
        Some(Command::Curriculum(arguments)) => curriculum::run(&arguments),
        Some(Command::Config(arguments)) => config::run(&arguments),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments),
    };
    finish(answer)
}

/// The exit code of an answer, if all of it could be printed; what went wrong goes to standard error in one line.
fn finish(answer: anyhow::Result<Answer>) -> ExitCode {
    keep_failure(std::io::stdout().lock().flush());
    let unwritten =
        UNWRITTEN.get().map(|reason| anyhow::anyhow!("standard output cannot be written: {reason}"));
    match unwritten.map_or(answer, Err) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Code(code)) => ExitCode::from(code),
        Err(error) => {
            note!("bem: {error:#}");
            ExitCode::from(2)
        }
    }
}
