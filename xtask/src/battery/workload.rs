//! Real processes that write a workload to real files, and die or meet a failing disk at every step of it.

use super::{Draw, scratch, simulator};
use crate::output;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Operations of the workload in the real-process parts.
const OPERATIONS: u64 = 120;

fn undisturbed_head(seed: u64, operations: u64) -> Result<String> {
    let program = simulator();
    let head = output(
        program.to_str().context("the target directory's name is text")?,
        &["head", &seed.to_string(), &operations.to_string()],
    )?;
    Ok(head.trim().to_owned())
}

/// What was read from a worker's pipe.
#[derive(Default)]
struct Heard {
    acknowledged: u64,
    recovered: Option<u64>,
    head: Option<String>,
    phase: String,
}

impl Heard {
    fn take(&mut self, line: &str) -> Result<()> {
        match line.split_once(' ') {
            Some(("ack", size)) => self.acknowledged = size.parse()?,
            Some(("recovered", size)) => {
                self.recovered = Some(size.parse()?);
                self.phase = "open".to_owned();
            }
            Some(("done", head)) => self.head = Some(head.to_owned()),
            Some(("phase", phase)) => self.phase = phase.to_owned(),
            // A new segment in the middle of an append is a rotation; recovery and creation keep their names.
            Some(("op", "create segment")) if self.phase == "append" => self.phase = "rotation".to_owned(),
            Some(("op", "create checkpoint")) if self.phase != "recovery" => {
                self.phase = "checkpoint".to_owned()
            }
            _ => {}
        }
        Ok(())
    }
}

fn start(directory: &Path, seed: u64) -> Result<Child> {
    Command::new(simulator())
        .args(["work", directory.to_str().context("a temporary name is text")?])
        .args([seed.to_string(), OPERATIONS.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .context("bem-sim could not be started")
}

/// What a worker can be doing when it is killed.
const PHASES: [&str; 6] = ["recovery", "append", "patch", "rotation", "snapshot", "checkpoint"];

/// Kills a real process when it announces its n-th operation, again and again, and lets the last one finish.
pub fn kill(scale: u64) -> Result<()> {
    let (kills_wanted, mut kills, mut seed) = (250 * scale, 0, 0);
    let mut phases: BTreeMap<String, u64> = BTreeMap::new();
    let mut draw = Draw::new();
    while kills < kills_wanted {
        seed += 1;
        let directory = scratch("kill")?;
        let mut promised = 0;
        loop {
            // The killer waits for a phase, lets some operations in it pass, and strikes at the next.
            let target = PHASES[draw.below(PHASES.len() as u64) as usize];
            let operations = 1 + draw.below(6);
            let mut child = start(&directory, seed)?;
            let mut output = BufReader::new(child.stdout.take().context("the pipe was asked for")?);
            let (mut heard, mut announced, mut phase) = (Heard::default(), 0, None);
            let mut line = String::new();
            // What it said before it died counts; a line that was cut off does not.
            while 0 < output.read_line(&mut line)? && line.ends_with('\n') {
                heard.take(line.trim_end())?;
                announced += u64::from(line.starts_with("op ") && heard.phase == target);
                if announced == operations && kills < kills_wanted && phase.is_none() {
                    child.kill()?;
                    phase = Some(heard.phase.clone());
                }
                line.clear();
            }
            let status = child.wait()?;
            if let Some(recovered) = heard.recovered {
                ensure!(promised <= recovered, "seed {seed}: {promised} acknowledged, {recovered} recovered");
            }
            promised = promised.max(heard.acknowledged).max(heard.recovered.unwrap_or(0));
            if let Some(head) = heard.head {
                ensure!(head == undisturbed_head(seed, OPERATIONS)?, "seed {seed}: another head at the end");
                break;
            }
            ensure!(status.code().is_none(), "seed {seed}: the worker failed on its own: {status}");
            kills += 1;
            *phases.entry(phase.unwrap_or_default()).or_default() += 1;
        }
        std::fs::remove_dir_all(&directory)?;
    }
    println!("{kills} kills over {seed} runs, nothing acknowledged was lost; phase at the kill: {phases:?}");
    Ok(())
}

/// System calls that change the disk.
const CHANGES: [&str; 6] = ["pwrite64", "fsync", "fdatasync", "rename", "ftruncate", "unlink"];
/// The same, and those that may make a file.
const CALLS: [&str; 8] =
    ["openat", "mkdir", "pwrite64", "fsync", "fdatasync", "rename", "ftruncate", "unlink"];

/// Runs the worker to its end and checks promise and head.
fn finish(directory: &Path, seed: u64, promised: u64, head: &str) -> Result<()> {
    let program = simulator();
    let words = [
        "work",
        directory.to_str().context("a temporary name is text")?,
        &seed.to_string(),
        &OPERATIONS.to_string(),
    ];
    let printed = output(program.to_str().context("a target name is text")?, &words)?;
    let mut heard = Heard::default();
    for line in printed.lines() {
        heard.take(line)?;
    }
    let recovered = heard.recovered.context("the worker did not recover")?;
    ensure!(promised <= recovered, "{promised} acknowledged, {recovered} recovered");
    ensure!(heard.head.as_deref() == Some(head), "another head at the end");
    Ok(())
}

/// Runs the worker under strace with one injection; returns what it acknowledged and whether it was hit.
fn inject(directory: &Path, seed: u64, injection: &str) -> Result<(u64, bool)> {
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", injection])
        .arg(simulator())
        .args(["work", directory.to_str().context("a temporary name is text")?])
        .args([seed.to_string(), OPERATIONS.to_string()])
        .stderr(Stdio::null())
        .output()
        .context("strace is needed: run `cargo xtask tools`")?;
    let mut heard = Heard::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        heard.take(line)?;
    }
    Ok((heard.acknowledged.max(heard.recovered.unwrap_or(0)), heard.head.is_none()))
}

/// Tries an injection at the first, second, third ... call of each kind until the run is not hit any more.
fn at_every_call(
    name: &str,
    scale: u64,
    calls: &[&str],
    injection: impl Fn(&str, u64) -> String,
) -> Result<u64> {
    let (seed, mut trials) = (7, 0);
    let head = undisturbed_head(seed, OPERATIONS)?;
    for &call in calls {
        for index in 1.. {
            // At scale 1 every call of the rare kinds and every fourth of the frequent ones.
            if scale < 4 && 12 < index && index % 4 != 0 {
                continue;
            }
            let directory = scratch(name)?;
            let (promised, hit) = inject(&directory, seed, &injection(call, index))?;
            finish(&directory, seed, promised, &head).with_context(|| format!("{call} number {index}"))?;
            std::fs::remove_dir_all(&directory)?;
            if !hit {
                break;
            }
            trials += 1;
        }
    }
    Ok(trials)
}

pub fn strace(scale: u64) -> Result<()> {
    let trials = at_every_call("strace", scale, &CALLS, |call, index| {
        format!("inject={call}:signal=KILL:when={index}")
    })?;
    println!("{trials} kills at system calls, nothing acknowledged was lost");
    Ok(())
}

pub fn full_disk(scale: u64) -> Result<()> {
    for error in ["ENOSPC", "EIO"] {
        let injection = |call: &str, index| format!("inject={call}:error={error}:when={index}+");
        let trials = at_every_call("full-disk", scale, &CHANGES, injection)?;
        println!("{trials} runs with {error} from some call on, nothing acknowledged was lost");
    }
    Ok(())
}
