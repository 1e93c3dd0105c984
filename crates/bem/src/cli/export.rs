//! `bem export`: a learned policy as a program that runs elsewhere, or as a circuit that other tools read; of a served world also the log
//! of its decisions.
//!
//! With `--out` a program gets a self-test beside it. Clauses: GLE-9; decisions D-255, D-256.

use super::Answer;
use super::fit::hanging;
use super::ledger_directory;
use crate::bundle::{BYTES_MAX, make};
use crate::learned::{self, Found, Learned};
use crate::policy_file;
use crate::served;
use anyhow::{Context, Result, bail};
use bem_base::words::quantity;
use bem_circuit::formats::Format;
use bem_export::{FileNames, Language, Program, VECTORS_DEFAULT, VECTORS_MAX};
use bem_serve::taken::circuit_bytes;
use clap::Args;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// Write a learned policy as a program (C, Rust, Python, JavaScript, Verilog) or as a circuit (AIGER, BLIF, DOT, net).
#[derive(Args)]
#[command(after_help = "Example: bem export runs/1 --expert parity --format c --out parity.h\n\
    Example: bem export my-dyck --format python > policy.py\n\
    Example: bem export ads-state --expert ads --format log --out ads.jsonl\n\
    An expert is named by its family (the highest rung solved), or family/rung such\n\
    as parity/0; of a server it is a world. With --out a program gets a self-test\n\
    and its vectors beside it. A bundle is one signed file with circuit, rules,\n\
    proofs, figures and history: bem check takes it. A log has a line for every\n\
    decision of a served world whose episode is complete, with reward and\n\
    propensity: bem evaluate --log, bem learn and --start-from take it.")]
pub struct ExportArguments {
    /// The folder of a run or of a server, a snapshot, or a circuit in AIGER, BLIF or our own form
    #[arg(value_name = "RUN|FILE")]
    source: PathBuf,
    /// Which expert of a run, or which world of a server; where there are several and none is named, they are listed, or refused with --out
    #[arg(long)]
    expert: Option<String>,
    /// c, rust, python, javascript, verilog, aiger, aiger-ascii, blif, dot, net or bundle; log of a server
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
            "--format {name:?} is unknown: c, rust, python, javascript, verilog, aiger, aiger-ascii, blif, dot, net, bundle or log"
        )
    })
}

/// `bem export`
pub fn run(arguments: &ExportArguments) -> Result<Answer> {
    let is_bundle = arguments.format == "bundle";
    if let Some(vectors) = arguments.vectors.filter(|_| is_bundle || arguments.format == "log") {
        let format = &arguments.format;
        bail!("--vectors {vectors} has no effect with --format {format}: only a program gets a self-test");
    }
    if is_bundle {
        return bundle(arguments);
    }
    if let Some(key) = &arguments.key {
        bail!("--key {} has no effect without --format bundle: nothing else is signed", key.display());
    }
    if arguments.format == "log" {
        return log(arguments);
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
        // Who goes on with the file must not find out later that there is none.
        several if arguments.out.is_some() => several.one()?,
        Found::Several { all, .. } => {
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
    if std::fs::read_to_string(&arguments.source).is_ok_and(|text| policy_file::is_one(&text)) {
        let source = arguments.source.display();
        bail!(
            "{source} is a policy of bem learn, which has no history of a run that a bundle could carry: take it with --format c \
             (or another program) and --out, which writes a self-test beside it"
        );
    }
    if arguments.source.is_file() {
        bail!("--format bundle needs the folder of a run: {} is a file", arguments.source.display());
    }
    if served::is_served(&arguments.source) {
        let source = arguments.source.display();
        bail!(
            "--format bundle needs the folder of a run, and {source} is a server's: take the policy with --format c (or \
             another program or circuit), and its signed history with bem verify {source} or bem image"
        );
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

/// The decisions of a served world, one a line.
fn log(arguments: &ExportArguments) -> Result<Answer> {
    let source = &arguments.source;
    if !served::is_served(source) {
        ledger_directory::locate(source)?;
        bail!("--format log needs the folder of a server: {} is none", source.display());
    }
    let expert = arguments.expert.as_deref();
    let Some(path) = &arguments.out else {
        served::write_log(source, expert, &mut |bytes| {
            super::print_bytes(bytes);
            Ok(())
        })
        .with_context(|| source.display().to_string())?;
        return Ok(Answer::Yes);
    };
    let unwritable = || format!("{} cannot be written", path.display());
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).with_context(unwritable)?);
    let written = served::write_log(source, expert, &mut |bytes| file.write_all(bytes))
        .with_context(|| source.display().to_string())?;
    file.flush().with_context(unwritable)?;
    let served::WrittenLog { world, lines, has_episodes } = written;
    say!("{}: {} of world {world}", path.display(), quantity(lines, "decision"));
    say!("judge a policy by it with");
    let episode = if has_episodes { " --episode episode" } else { "" };
    say!("  bem evaluate POLICY --log {} \\", path.display());
    say!("    --action action --reward reward --propensity propensity{episode}");
    if path.extension().is_none_or(|ending| ending != "jsonl") {
        warn("bem evaluate and bem learn read it under a name that ends in .jsonl");
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
    let mut beside = vec![files.test.as_str(), files.vectors.as_str()];
    if let Some(rows) = bem_export::rows(&program).filter(|_| language.takes_names()) {
        save(&path.with_file_name(&files.rows), rows.as_bytes())?;
        beside.insert(1, &files.rows);
    }
    let line = format!("{}: {}, with {}", path.display(), arguments.format, listed(&beside));
    hanging(&line, 2).iter().for_each(|part| say!("{part}"));
    say!("check it in its folder with");
    say!("  {}", files.command(language));
    learned.warnings.iter().for_each(|warning| warn(warning));
    Ok(())
}

/// Names in a sentence; there are at least two.
fn listed(names: &[&str]) -> String {
    let (last, others) = names.split_last().expect("a self-test and its vectors");
    format!("{} and {last}", others.join(", "))
}

fn circuit(learned: &Learned, format: Format, out: Option<&Path>) -> Result<()> {
    if format == Format::Aiger && out.is_none() && std::io::stdout().is_terminal() {
        bail!("binary AIGER is not written to a terminal: name a file with --out, or take aiger-ascii");
    }
    let bytes = circuit_bytes(&learned.policy, &learned.name, &learned.lines(), format)
        .map_err(|error| anyhow::anyhow!("{error}"))?;
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
