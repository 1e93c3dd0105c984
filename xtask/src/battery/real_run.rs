//! The shipped program on a small real run: killed in every phase, its files turned over bit by bit and tampered with.

use super::simulated::simulate;
use super::{Draw, scratch, text};
use crate::{output, target};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The run: low rungs of families that need proofs, so that it takes a fraction of a second; small files, so that the
/// ledger rotates; and one thread, so that system calls come in one order.
const SMALL: RunForm =
    RunForm { families: "parity,majority,compare,add", unit_steps: "1000", segment_bytes: "4000" };
const STEPS: &str = "2000";
/// A run with a long trace and little else, for flips: an audit of it is cheap.
const LONG: RunForm =
    RunForm { families: "bandit,contextual_bandit", unit_steps: "4000", segment_bytes: "1000000" };
const LONG_STEPS: &str = "13000";
/// System calls that change the disk.
const CALLS: [&str; 7] = ["openat", "pwrite64", "fsync", "fdatasync", "rename", "unlink", "ftruncate"];
/// What the run can be doing when it is killed; any-time kills are not aimed.
const PHASES: [&str; 6] = ["patch", "snapshot", "rotation", "checkpoint", "append", "any time"];

/// How a run is set up.
#[derive(Clone, Copy)]
struct RunForm {
    families: &'static str,
    unit_steps: &'static str,
    segment_bytes: &'static str,
}

/// A tenth of all kills, at least, must fall into each of these.
const AIMED: [&str; 4] = ["patch", "snapshot", "rotation", "recovery"];

/// A run's folder with the key beside it.
struct Run {
    kind: RunForm,
    directory: PathBuf,
    key: PathBuf,
}

impl Run {
    fn new(kind: RunForm, scratch: &Path) -> Run {
        Run { kind, directory: scratch.join("run"), key: scratch.join("key") }
    }

    fn ledger(&self) -> PathBuf {
        self.directory.join("ledger")
    }

    /// The words that start the run, or go on with it once it has a checkpoint.
    fn words(&self, steps: &str) -> Result<Vec<String>> {
        let (directory, key) = (text(&self.directory)?, text(&self.key)?);
        let RunForm { families, unit_steps, segment_bytes } = self.kind;
        let mut words = vec!["run", "--key", key, "--steps", steps, "--threads", "1", "--json"];
        words.extend(["--segment-bytes", segment_bytes]);
        if self.ledger().join("checkpoint").exists() {
            words.extend(["--resume", directory]);
        } else {
            words.extend(["--out", directory, "--families", families, "--unit-steps", unit_steps]);
        }
        Ok(words.into_iter().map(str::to_owned).collect())
    }

    /// Goes on to the end; the head of the ledger.
    fn finish(&self, steps: &str) -> Result<String> {
        let words = self.words(steps)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let printed = output(text(&program())?, &words)?;
        let report: serde_json::Value = serde_json::from_str(&printed)?;
        Ok(report["ledger_head"].as_str().context("the run prints its head")?.to_owned())
    }
}

fn program() -> PathBuf {
    target().join("release").join("bem")
}

/// A moment in a run: the so-manyth call of a kind.
#[derive(Clone, Debug)]
struct Moment {
    call: String,
    index: u64,
}

/// All storage calls of an undisturbed run, by phase.
fn moments(run: &Run) -> Result<BTreeMap<&'static str, Vec<Moment>>> {
    let log = run.directory.with_extension("strace");
    let trace = format!("trace={}", CALLS.join(","));
    let status = Command::new("strace")
        .args(["-f", "-y", "-qq", "-o", text(&log)?, "-e", &trace])
        .arg(program())
        .args(run.words(STEPS)?)
        .stdout(Stdio::null())
        .status()
        .context("strace is needed: run `cargo xtask tools`")?;
    ensure!(status.success(), "the undisturbed run failed");
    let (ledger, mut counts) = (text(&run.ledger())?.to_owned(), BTreeMap::new());
    let mut phases: BTreeMap<&'static str, Vec<Moment>> = BTreeMap::new();
    let mut begun = false;
    for line in std::fs::read_to_string(&log)?.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let Some((call, arguments)) = rest.trim_start().split_once('(') else { continue };
        if !CALLS.contains(&call) {
            continue;
        }
        let count = counts.entry((process.to_owned(), call.to_owned())).or_insert(0u64);
        *count += 1;
        if !arguments.contains(&ledger) || call == "openat" && !arguments.contains("O_CREAT") {
            continue;
        }
        let names = |name: &str| arguments.contains(&format!("/{name}"));
        let first_segment = names("segment-00000000");
        let phase = match call {
            _ if names("blob-") => "patch",
            _ if names("snapshot-") => "snapshot",
            _ if names("checkpoint") => "checkpoint",
            "openat" if names("segment-") && !first_segment => "rotation",
            // The first write to a new segment is its header.
            "pwrite64" if begun && !first_segment => "rotation",
            _ => "append",
        };
        begun = call == "openat" && phase == "rotation";
        phases.entry(phase).or_default().push(Moment { call: call.to_owned(), index: *count });
    }
    Ok(phases)
}

/// Runs until the moment comes and the process is killed at it; false if it never came.
fn kill_at(run: &Run, moment: &Moment) -> Result<bool> {
    let injection = format!("inject={}:signal=KILL:when={}", moment.call, moment.index);
    let status = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &injection])
        .arg(program())
        .args(run.words(STEPS)?)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(!status.success())
}

/// Runs for some time and is killed from outside; false if it had ended before.
fn kill_after(run: &Run, pause: Duration) -> Result<bool> {
    let mut child = Command::new(program())
        .args(run.words(STEPS)?)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(pause);
    child.kill()?;
    Ok(!child.wait()?.success())
}

/// Keeps the checkpoint as somebody outside would.
fn keep_checkpoint(run: &Run, kept: &mut Vec<PathBuf>) -> Result<()> {
    let checkpoint = run.ledger().join("checkpoint");
    if checkpoint.exists() {
        let copy = run.directory.with_extension(format!("checkpoint-{}", kept.len()));
        std::fs::copy(checkpoint, &copy)?;
        kept.push(copy);
    }
    Ok(())
}

/// One trial: a run is killed in one phase, every other time again while it recovers, and then goes on to its end. Its head must be
/// that of the undisturbed run, and it must extend every checkpoint that was seen at a kill.
pub fn kill(scale: u64) -> Result<()> {
    let (wanted, mut draw) = (250 * scale, Draw::new());
    let place = scratch("kill")?;
    let reference = Run::new(SMALL, &place.join("reference"));
    std::fs::create_dir_all(place.join("reference"))?;
    // The key decides the head; so all runs share it. It is made by the first.
    let phases = moments(&reference)?;
    let key = reference.key.clone();
    let head = reference.finish(STEPS)?;
    let (mut counts, mut trials): (BTreeMap<&str, u64>, u64) = (BTreeMap::new(), 0);
    let enough = |counts: &BTreeMap<&str, u64>| {
        let of = |phase: &&str| counts.get(phase).copied().unwrap_or(0);
        wanted <= counts.values().sum() && AIMED.iter().all(|phase| wanted <= 10 * of(phase))
    };
    while !enough(&counts) {
        trials += 1;
        if trials.is_multiple_of(100) {
            println!("{trials} runs: {counts:?}");
        }
        let folder = scratch("kill-trial")?;
        let run = Run { key: key.clone(), ..Run::new(SMALL, &folder) };
        let mut kept = Vec::new();
        let phase = PHASES[trials as usize % PHASES.len()];
        let killed = match phases.get(phase) {
            Some(moments) => kill_at(&run, &moments[draw.below(moments.len() as u64) as usize])?,
            None => kill_after(&run, Duration::from_micros(500 + draw.below(400_000)))?,
        };
        *counts.entry(phase).or_default() += u64::from(killed);
        keep_checkpoint(&run, &mut kept)?;
        // Opening writes the checkpoint anew before anything else: the first calls of a kind are recovery.
        let again = (trials / PHASES.len() as u64).is_multiple_of(2);
        if killed && again && run.ledger().join("checkpoint").exists() {
            let call = ["pwrite64", "fdatasync", "rename", "fsync"][draw.below(4) as usize].to_owned();
            let index = 1 + draw.below(2);
            let killed = kill_at(&run, &Moment { call, index })?;
            *counts.entry("recovery").or_default() += u64::from(killed);
            keep_checkpoint(&run, &mut kept)?;
        }
        let end = run.finish(STEPS).with_context(|| format!("trial {trials}, killed in {phase}"))?;
        ensure!(end == head, "trial {trials}, killed in {phase}: head {end}, undisturbed {head}");
        for checkpoint in kept {
            let words = ["verify", text(&run.directory)?, "--checkpoint", text(&checkpoint)?, "--json"];
            let report: serde_json::Value = serde_json::from_str(&output(text(&program())?, &words)?)?;
            ensure!(report["verdict"] == "ok", "trial {trials}, killed in {phase}: {report}");
        }
        std::fs::remove_dir_all(&folder)?;
    }
    for phase in PHASES.iter().chain(&["recovery"]) {
        ensure!(counts.contains_key(phase), "no run was killed in {phase}");
    }
    let sum: u64 = counts.values().sum();
    println!(
        "{sum} kills over {trials} runs, every head as undisturbed, nothing acknowledged lost: {counts:?}"
    );
    std::fs::remove_dir_all(&place)?;
    Ok(())
}

/// Every n-th bit of every file of two runs' ledgers, one at a time, through the audit behind `bem verify`: one run with a
/// trace above 64 KiB, and one with proofs. And thousands of them through the program.
pub fn flips(scale: u64) -> Result<()> {
    let place = scratch("flips")?;
    for (kind, steps) in [(LONG, LONG_STEPS), (SMALL, STEPS)] {
        let run = Run::new(kind, &place.join(kind.families));
        std::fs::create_dir_all(place.join(kind.families))?;
        run.finish(steps)?;
        simulate(&["flip", text(&run.ledger())?, &(64 / scale.clamp(1, 64)).to_string()])?;
        flip_through_program(&run, (50 * scale).min(2_000))?;
    }
    std::fs::remove_dir_all(&place)?;
    Ok(())
}

/// So many bits anywhere in the files, each found by `bem verify` itself; the honest files are accepted in between.
fn flip_through_program(run: &Run, count: u64) -> Result<()> {
    let mut draw = Draw::new();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(run.ledger())? {
        let path = entry?.path();
        let bytes = std::fs::read(&path)?;
        files.push((path, bytes));
    }
    files.sort();
    let total: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64 * 8).sum();
    let verdict = || -> Result<Option<i32>> {
        let words = ["verify", text(&run.directory)?];
        Ok(Command::new(program()).args(words).stdout(Stdio::null()).status()?.code())
    };
    for trial in 0..count {
        let mut bit = draw.below(total);
        let (path, honest) = files
            .iter()
            .find(|(_, bytes)| {
                let size = bytes.len() as u64 * 8;
                let here = bit < size;
                bit -= if here { 0 } else { size };
                here
            })
            .context("the bit lies in some file")?;
        let mut flipped = honest.clone();
        flipped[(bit / 8) as usize] ^= 1 << (bit % 8);
        std::fs::write(path, flipped)?;
        ensure!(verdict()? == Some(1), "{}: bit {bit} was not found by bem verify", path.display());
        std::fs::write(path, honest)?;
        ensure!(trial % 100 != 0 || verdict()? == Some(0), "the honest files are refused");
    }
    println!("{count} of {total} bits through bem verify, all found");
    Ok(())
}

/// What somebody with the files, but without the key, can do.
pub fn tamper(scale: u64) -> Result<()> {
    let place = scratch("tamper")?;
    // Several entries in every file, so that nearly every draw finds two to exchange.
    let run = Run::new(RunForm { segment_bytes: "60000", ..SMALL }, &place);
    run.finish(STEPS)?;
    let old = place.join("old");
    std::fs::create_dir_all(&old)?;
    for entry in std::fs::read_dir(run.ledger())? {
        let entry = entry?;
        std::fs::copy(entry.path(), old.join(entry.file_name()))?;
    }
    // Long enough for five hundred entries that can be moved.
    if run.finish("8000")?.is_empty() {
        bail!("the run has no head");
    }
    simulate(&["tamper", text(&old)?, text(&run.ledger())?, &(500 * scale).to_string()])?;
    std::fs::remove_dir_all(&place)?;
    Ok(())
}

/// Everything that the history of a small run and of a solved task names, removed on its own, and histories forged with the
/// run's own key. And every file through the program, the report included. At a larger scale the run is longer.
pub fn removal(scale: u64) -> Result<()> {
    let place = scratch("removal")?;
    let run = Run::new(RunForm { segment_bytes: "1000000", ..SMALL }, &place);
    run.finish(&(2_000 * scale).to_string())?;
    let solved = Run { kind: SMALL, directory: place.join("solved"), key: place.join("solved-key") };
    let words = ["--key", text(&solved.key)?, "--out", text(&solved.directory)?, "--json"];
    output(text(&program())?, &[&["solve", "safety_grid", "--budget", "30000"][..], &words].concat())?;
    for run in [&run, &solved] {
        simulate(&["removal", text(&run.ledger())?, text(&run.key)?, "1"])?;
        remove_through_program(run)?;
    }
    std::fs::remove_dir_all(&place)?;
    Ok(())
}

/// Every blob and snapshot and the report, moved away and brought back; `bem verify` misses each of them.
fn remove_through_program(run: &Run) -> Result<()> {
    let code = |words: &[&str]| -> Result<Option<i32>> {
        let words = [&["verify", text(&run.directory)?], words].concat();
        Ok(Command::new(program()).args(words).stdout(Stdio::null()).stderr(Stdio::null()).status()?.code())
    };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(run.ledger())?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.file_name().is_some_and(|name| name != "lock"));
    files.push(run.directory.join("report.html"));
    files.sort();
    let aside = run.directory.with_extension("aside");
    for path in &files {
        std::fs::rename(path, &aside)?;
        let found = code(&[])?;
        std::fs::rename(&aside, path)?;
        ensure!(found == Some(1), "{} was not missed: {found:?}", path.display());
    }
    let report = run.directory.join("report.html");
    let honest = std::fs::read(&report)?;
    std::fs::write(&report, [&honest[..], b" "].concat())?;
    let found = code(&[])?;
    std::fs::write(&report, &honest)?;
    ensure!(found == Some(1), "a changed report was not found: {found:?}");
    std::fs::write(&aside, b"no checkpoint")?;
    ensure!(code(&["--checkpoint", text(&aside)?])? == Some(2), "what is no checkpoint must be bad input");
    ensure!(code(&[])? == Some(0), "the honest files are refused");
    println!("{} files through bem verify, each missed", files.len());
    Ok(())
}
