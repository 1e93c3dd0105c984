//! `bem asm`, `bem disasm` and `bem exec`: the control core by hand. Clauses: ISA-2, ISA-3.

use super::isa_record::{Record, Teaching};
use super::{Answer, isa_tools};
use crate::files;
use anyhow::{Context, bail};
use bem_isa::assemble::assemble;
use bem_isa::coprocessor::{Declining, Host};
use bem_isa::disassemble::{disassemble, line};
use bem_isa::instruction::SegmentBase;
use bem_isa::interpreter::{Core, Observer, SegmentStarts};
use bem_isa::memory::{Memory, STATE_START};
use bem_isa::program::Program;
use bem_isa::trap::Trap;
use bem_prover::Budget;
use clap::Args;
use std::path::{Path, PathBuf};

/// Assemble a text into a binary program.
#[derive(Args)]
#[command(after_help = "Example: bem asm examples/programs/sum.basm --out sum.bem")]
pub struct AsmArguments {
    /// The assembly text
    file: PathBuf,
    /// Where the binary goes [default: the text's name with the ending .bem]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Print a binary program as text that assembles to the same bytes.
#[derive(Args)]
#[command(after_help = "Example: bem disasm sum.bem")]
pub struct DisasmArguments {
    /// The binary program
    file: PathBuf,
}

/// Run a program, text or binary, on fresh memory and print the registers.
#[derive(Args)]
#[command(after_help = "Example: bem exec examples/programs/sum.basm --trace\n\
    Exit code 1 when the program traps.")]
pub struct ExecArguments {
    /// The program, as text or binary
    file: PathBuf,
    /// Stop after this many instructions
    #[arg(long, default_value_t = 1_000_000_000)]
    steps: u64,
    /// Print every instruction before it runs
    #[arg(long)]
    trace: bool,
    /// Seed of the random register
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A catalog: TOOL_ENQUEUE reaches its tools, and the program runs again when answers have come
    #[arg(long, value_name = "CATALOG.toml")]
    tools: Option<PathBuf>,
    /// How often the program runs at most while requests are under way
    #[arg(long, default_value_t = 100, requires = "tools")]
    ticks: u32,
    /// Keep what the program logs (LOG) and is taught (TEACH) in a signed ledger in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Reads a program in either form; the first four bytes tell which.
pub fn read_program(path: &Path) -> anyhow::Result<Program> {
    let name = path.display();
    let bytes = files::read_bytes(path)?;
    if bytes.starts_with(b"BEMP") {
        return Program::from_bytes(&bytes).with_context(|| format!("{name} is no program"));
    }
    let text = String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("{name} is no program: neither text nor a binary that begins with BEMP"))?;
    assemble(&text).with_context(|| name.to_string())
}

/// `bem asm`
pub fn asm(arguments: &AsmArguments) -> anyhow::Result<Answer> {
    let program = read_program(&arguments.file)?;
    let out = arguments.out.clone().unwrap_or_else(|| arguments.file.with_extension("bem"));
    if out == arguments.file {
        bail!("{} would overwrite its own source: name another file with --out", out.display());
    }
    std::fs::write(&out, program.to_bytes())
        .with_context(|| format!("{} cannot be written", out.display()))?;
    say!("{}: {} instructions, {} nodes", out.display(), program.words().len(), program.nodes().len());
    Ok(Answer::Yes)
}

/// `bem disasm`
pub fn disasm(arguments: &DisasmArguments) -> anyhow::Result<Answer> {
    say_text!("{}", disassemble(&read_program(&arguments.file)?));
    Ok(Answer::Yes)
}

struct Printer<'a>(&'a Program);

impl Observer for Printer<'_> {
    fn before(&mut self, core: &Core) {
        if let Some(Some(instruction)) = self.0.instructions().get(core.pc as usize) {
            let inside = |target: &u32| (*target as usize) <= self.0.words().len();
            say!("{:>6}  {}", core.pc, line(instruction, inside));
        }
    }
}

/// `bem exec`
pub fn exec(arguments: &ExecArguments) -> anyhow::Result<Answer> {
    if arguments.trace && arguments.json {
        bail!("--trace and --json both want standard output: choose one");
    }
    let program = read_program(&arguments.file)?;
    let mut record = Record::create(arguments.out.as_deref(), &program, arguments.seed)?;
    if let Some(catalog) = &arguments.tools {
        let (seed, steps, ticks) = (arguments.seed, arguments.steps, arguments.ticks);
        let (core, trap, teaching) = isa_tools::run(&program, catalog, seed, steps, ticks, &mut record)?;
        return Ok(show(arguments, &core, trap, &teaching));
    }
    let (mut shared, mut state) = (vec![0; 1 << 16], vec![0; 4 * 1_024]);
    let starts = SegmentStarts::default().with(SegmentBase::State, STATE_START);
    let mut core = Core::new(&program, arguments.seed, starts);
    let mut memory = Memory::open(&mut shared, &mut state);
    let teaching = Teaching::new(arguments.seed);
    let mut host = Host::with_slots(Budget::DEFAULT.conflicts, teaching, Declining::default());
    let result = if arguments.trace {
        core.run_observed(&program, &mut memory, &mut host, arguments.steps, &mut Printer(&program))
    } else {
        core.run(&program, &mut memory, &mut host, arguments.steps)
    };
    record.write(host.log(), &host.teacher)?;
    Ok(show(arguments, &core, result.err(), &host.teacher))
}

/// Prints registers and trap.
fn show(arguments: &ExecArguments, core: &Core, trap: Option<Trap>, teaching: &Teaching) -> Answer {
    let tasks = teaching.descriptors();
    if arguments.json {
        let registers: Vec<String> = core.x.iter().map(|word| format!("{word:#x}")).collect();
        let trap = trap.map(|trap| serde_json::json!({ "pc": trap.pc, "cause": trap.cause.to_string() }));
        say!(
            "{}",
            serde_json::json!({
                "executed": core.executed, "pc": core.pc, "x": registers, "trap": trap, "tasks": tasks,
            })
        );
    } else {
        for (number, word) in core.x.iter().enumerate().filter(|(_, word)| **word != 0) {
            say!("x{number:<3} {word:#018x} {word}");
        }
        for (number, task) in tasks.iter().enumerate() {
            say!("task {number}: {task}");
        }
        say!("{} instructions", core.executed);
        if let Some(trap) = trap {
            say!("{trap}");
        }
    }
    if trap.is_some() { Answer::No } else { Answer::Yes }
}
