//! `bem export`: a learned policy as a program that runs elsewhere, or as a circuit that other tools read.
//!
//! With `--out` a program gets a self-test beside it. Clauses: GLE-9.

use super::Answer;
use super::fit::hanging;
use crate::bundle::{BYTES_MAX, make};
use crate::learned::{self, Found, Learned};
use anyhow::{Context, Result, bail};
use bem_circuit::formats::{Format, Model};
use bem_export::{FileNames, Language, Program, VECTORS_DEFAULT, VECTORS_MAX, comments};
use clap::Args;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// Write a learned policy as a program (C, Rust, Python, JavaScript, Verilog) or as a circuit (AIGER, BLIF, DOT, net).
#[derive(Args)]
#[command(after_help = "Example: bem export runs/1 --expert parity --format c --out parity.h\n\
    Example: bem export my-dyck --format python > policy.py\n\
    An expert is named by its family (the highest rung solved), or family/rung such\n\
    as parity/0. With --out a program gets a self-test and its vectors beside it. A\n\
    bundle is one signed file with circuit, rules, proofs, figures and history: bem\n\
    check takes it.")]
pub struct ExportArguments {
    /// A run, a snapshot, or a circuit in AIGER, BLIF or our own form
    #[arg(value_name = "RUN|FILE")]
    source: PathBuf,
    /// Which expert; without it the run's experts are listed (a run over one task has only one)
    #[arg(long)]
    expert: Option<String>,
    /// c, rust, python, javascript, verilog, aiger, aiger-ascii, blif, dot, net or bundle
    #[arg(long, default_value = "verilog")]
    format: String,
    /// Where it goes [default: standard output]
    #[arg(long)]
    out: Option<PathBuf>,
    /// The file of the run's key, which signs a bundle [default: as for bem run]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Steps of the self-test that a program gets beside it; needs --out [default: 2000]
    #[arg(long)]
    vectors: Option<usize>,
}

/// What is written.
enum Form {
    Program(Language),
    Circuit(Format),
}

fn form(name: &str) -> Result<Form> {
    if let Some(language) = Language::from_name(name) {
        return Ok(Form::Program(language));
    }
    Format::from_name(name).map(Form::Circuit).with_context(|| {
        format!(
            "--format {name:?} is unknown: c, rust, python, javascript, verilog, aiger, aiger-ascii, blif, dot, net or bundle"
        )
    })
}

/// `bem export`
pub fn run(arguments: &ExportArguments) -> Result<Answer> {
    if arguments.format == "bundle" {
        if let Some(vectors) = arguments.vectors {
            bail!("--vectors {vectors} has no effect with --format bundle: only a program gets a self-test");
        }
        return bundle(arguments);
    }
    if let Some(key) = &arguments.key {
        bail!("--key {} has no effect without --format bundle: nothing else is signed", key.display());
    }
    let form = form(&arguments.format)?;
    if let Some(vectors) = arguments.vectors {
        if !(1..=VECTORS_MAX).contains(&vectors) {
            bail!("--vectors {vectors} is out of range: 1 to {VECTORS_MAX}");
        }
        if matches!(form, Form::Circuit(_)) {
            bail!(
                "--vectors {vectors} has no effect with --format {}: only a program gets a self-test",
                arguments.format
            );
        }
        if arguments.out.is_none() {
            bail!(
                "--vectors {vectors} has no effect without --out: the self-test is written beside that file"
            );
        }
    }
    let learned = match learned::open(&arguments.source, arguments.expert.as_deref())? {
        Found::One(learned) => learned,
        Found::Several(all) => {
            for one in all {
                say!("{:<26} {:>4} gates  {}", one.name, one.gates, one.task);
            }
            return Ok(Answer::Yes);
        }
    };
    match form {
        Form::Program(language) => program(&learned, language, arguments)?,
        Form::Circuit(format) => circuit(&learned, format, arguments.out.as_deref())?,
    }
    Ok(Answer::Yes)
}

/// One signed file with everything.
fn bundle(arguments: &ExportArguments) -> Result<Answer> {
    if arguments.source.is_file() {
        bail!("--format bundle needs the folder of a run: {} is a file", arguments.source.display());
    }
    let bundle = make::bundle(&arguments.source, arguments.expert.as_deref(), arguments.key.as_deref())?;
    let text = bundle.text();
    if BYTES_MAX < text.len() {
        bail!("the bundle has {} bytes; at most {BYTES_MAX} are allowed", text.len());
    }
    match &arguments.out {
        None => say_text!("{text}"),
        Some(path) => {
            save(path, text.as_bytes())?;
            say!(
                "{}: bundle, {} bytes; check it with bem check {}",
                path.display(),
                text.len(),
                path.display()
            );
            bundle.body.provenance.warnings.iter().for_each(|warning| warn(warning));
        }
    }
    Ok(Answer::Yes)
}

fn program(learned: &Learned, language: Language, arguments: &ExportArguments) -> Result<()> {
    let lines = learned.lines();
    let program = Program {
        policy: &learned.policy,
        observation_bits: learned.observation_bits,
        horizon: learned.horizon,
        name: &learned.name,
        encoder: learned.names.as_ref(),
        provenance: &lines,
    };
    let text = bem_export::write(language, &program);
    let Some(path) = &arguments.out else {
        say_text!("{text}");
        return Ok(());
    };
    let name = path.file_name().and_then(|name| name.to_str()).filter(|name| !name.contains(['"', '\\']));
    let name = name.with_context(|| format!("--out {} is no name for a file of source", path.display()))?;
    let files = FileNames::of(language, name);
    let vectors = arguments.vectors.unwrap_or(VECTORS_DEFAULT);
    save(path, text.as_bytes())?;
    save(&path.with_file_name(&files.test), bem_export::self_test(language, &program, &files).as_bytes())?;
    save(&path.with_file_name(&files.vectors), bem_export::vectors(&program, vectors).as_bytes())?;
    say!("{}: {}, with {} and {}", path.display(), arguments.format, files.test, files.vectors);
    say!("check it in its folder with");
    say!("  {}", files.command(language));
    learned.warnings.iter().for_each(|warning| warn(warning));
    Ok(())
}

fn circuit(learned: &Learned, format: Format, out: Option<&Path>) -> Result<()> {
    if format == Format::Aiger && out.is_none() && std::io::stdout().is_terminal() {
        bail!("binary AIGER is not written to a terminal: name a file with --out, or take aiger-ascii");
    }
    let policy = &learned.policy;
    let memory = || 0..policy.memory_bits();
    let inputs: Vec<String> = (policy.reads().iter().map(|bit| format!("observation_{bit}")))
        .chain(memory().map(|bit| format!("memory_{bit}")))
        .collect();
    let actions = policy.circuit().outputs().len() - policy.memory_bits();
    let outputs: Vec<String> = ((0..actions).map(|bit| format!("action_{bit}")))
        .chain(memory().map(|bit| format!("next_memory_{bit}")))
        .collect();
    let model =
        Model::with_memory(&learned.name.replace('/', "_"), policy.circuit().clone(), policy.memory_bits())
            .map_err(|error| anyhow::anyhow!("{error}"))?
            .named(&inputs, &outputs);
    let mut bytes = match format {
        // An AIGER file ends in a comment.
        Format::Aiger | Format::AigerAscii => Vec::new(),
        Format::Dot => comments(&learned.lines(), "// ").into_bytes(),
        _ => comments(&learned.lines(), "# ").into_bytes(),
    };
    bytes.extend(format.write(&model));
    if matches!(format, Format::Aiger | Format::AigerAscii) {
        bytes.extend(comments(&learned.lines(), "").into_bytes());
    }
    match out {
        Some(path) => save(path, &bytes),
        None => {
            super::print_bytes(&bytes);
            Ok(())
        }
    }
}

fn warn(warning: &str) {
    hanging(&format!("warning: {warning}"), 2).iter().for_each(|line| say!("{line}"));
}

fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("{} cannot be written", path.display()))
}
