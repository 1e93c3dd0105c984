//! `cargo xtask battery [NAME] [--scale N]`: what the project promises, tried at length.
//!
//! Scale 1 takes minutes; the floors of the reliability figures are reached at the scale each entry names. One trial is
//! defined beside each figure. What was acknowledged is decided here, by the process that reads the pipe, never by the
//! process that dies.

use crate::{output, root, run};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// One part of the battery.
struct Part {
    name: &'static str,
    about: &'static str,
    run: fn(u64) -> Result<()>,
}

const PARTS: &[Part] = &[
    Part { name: "seeds", about: "simulated lives with crashes and failures: 2,000 runs x N", run: seeds },
    Part {
        name: "power-loss",
        about: "power loss at every disk operation: 2,500 images x N",
        run: power_loss,
    },
    Part { name: "lies", about: "disks that drop, misplace or rot data: 2,000 runs x N", run: lies },
    Part { name: "mutants", about: "one sync left out: each of seven mutants must be noticed", run: mutants },
    Part { name: "kill", about: "kill -9 of a real process at random operations: 250 kills x N", run: kill },
    Part { name: "strace", about: "SIGKILL at every storage system call of a real run", run: strace },
    Part {
        name: "full-disk",
        about: "a write fails with ENOSPC or EIO at every index of a real run",
        run: full_disk,
    },
    Part {
        name: "flips",
        about: "every N-th bit of a 64 KiB ledger turned over; all bits at scale 8",
        run: flips,
    },
    Part {
        name: "python",
        about: "proofs and checkpoints against the Python verifier: 1,000 x N of each",
        run: python,
    },
    Part {
        name: "patches",
        about: "bad patches of every kind and fault, and as many good ones: 12,000 x N",
        run: patches,
    },
];

/// Runs one part, or all of them.
pub fn run_battery(words: &[&str]) -> Result<()> {
    let (mut name, mut scale) = (None, 1);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--scale" => {
                let value = words.next().context("--scale needs a number")?;
                scale = value.parse().with_context(|| format!("--scale {value}: not a whole number"))?;
            }
            other if name.is_none() => name = Some(other),
            other => bail!("{other:?} is one word too many"),
        }
    }
    let chosen: Vec<&Part> = PARTS.iter().filter(|part| name.is_none_or(|name| name == part.name)).collect();
    if chosen.is_empty() {
        let known: Vec<String> =
            PARTS.iter().map(|part| format!("  {:<11} {}", part.name, part.about)).collect();
        bail!("there is no battery called {:?}\n{}", name.unwrap_or_default(), known.join("\n"));
    }
    run("cargo", &["build", "--release", "--quiet", "--package", "bem-sim"])?;
    for part in chosen {
        println!("== {}: {}", part.name, part.about);
        (part.run)(scale).with_context(|| format!("battery {}", part.name))?;
    }
    Ok(())
}

/// The program that was built a moment ago.
fn simulator() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("release").join("bem-sim")
}

fn simulate(words: &[&str]) -> Result<()> {
    let program = simulator();
    run(program.to_str().context("the target directory's name is text")?, words)
}

fn seeds(scale: u64) -> Result<()> {
    simulate(&["random", "0", &(2_000 * scale).to_string()])
}

fn power_loss(scale: u64) -> Result<()> {
    simulate(&["power-loss", &(2_500 * scale).to_string()])
}

fn lies(scale: u64) -> Result<()> {
    simulate(&["lies", "0", &(2_000 * scale).to_string()])
}

fn mutants(scale: u64) -> Result<()> {
    simulate(&["mutants", &(200 * scale).to_string()])
}

/// A directory that is empty now.
fn scratch(name: &str) -> Result<PathBuf> {
    let directory = std::env::temp_dir().join(format!("bem-battery-{}-{name}", std::process::id()));
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

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
fn kill(scale: u64) -> Result<()> {
    let (kills_wanted, mut kills, mut seed) = (250 * scale, 0, 0);
    let mut phases: BTreeMap<String, u64> = BTreeMap::new();
    // A small generator of its own: the moments need not be good, only many.
    let mut draw = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |bound: u64| {
        draw ^= draw << 13;
        draw ^= draw >> 7;
        draw ^= draw << 17;
        draw % bound
    };
    while kills < kills_wanted {
        seed += 1;
        let directory = scratch("kill")?;
        let mut promised = 0;
        loop {
            // The killer waits for a phase, lets some operations in it pass, and strikes at the next.
            let target = PHASES[below(PHASES.len() as u64) as usize];
            let operations = 1 + below(6);
            let mut child = start(&directory, seed)?;
            let lines = BufReader::new(child.stdout.take().context("the pipe was asked for")?).lines();
            let (mut heard, mut announced) = (Heard::default(), 0);
            for line in lines {
                let line = line?;
                heard.take(&line)?;
                announced += u64::from(line.starts_with("op ") && heard.phase == target);
                if announced == operations && kills < kills_wanted {
                    child.kill()?;
                    break;
                }
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
            *phases.entry(heard.phase).or_default() += 1;
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

fn strace(scale: u64) -> Result<()> {
    let trials = at_every_call("strace", scale, &CALLS, |call, index| {
        format!("inject={call}:signal=KILL:when={index}")
    })?;
    println!("{trials} kills at system calls, nothing acknowledged was lost");
    Ok(())
}

fn full_disk(scale: u64) -> Result<()> {
    for error in ["ENOSPC", "EIO"] {
        let injection = |call: &str, index| format!("inject={call}:error={error}:when={index}+");
        let trials = at_every_call("full-disk", scale, &CHANGES, injection)?;
        println!("{trials} runs with {error} from some call on, nothing acknowledged was lost");
    }
    Ok(())
}

fn flips(scale: u64) -> Result<()> {
    let directory = scratch("flips")?;
    let path = directory.to_str().context("a temporary name is text")?.to_owned();
    // About 64 KiB of segments, snapshots, blobs and a checkpoint.
    let program = simulator();
    output(program.to_str().context("a target name is text")?, &["work", &path, "3", "330"])?;
    simulate(&["flip", &path, &(8 / scale.clamp(1, 8)).to_string()])?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn patches(scale: u64) -> Result<()> {
    let count = (12_000 * scale).to_string();
    let words = ["run", "--release", "--quiet", "--package", "bem-evolve", "--example", "bad_patches", "--"];
    run("cargo", &[&words[..], &[count.as_str()]].concat())
}

fn python(scale: u64) -> Result<()> {
    let program = simulator();
    let count = (1_000 * scale).to_string();
    let printed = output(program.to_str().context("a target name is text")?, &["cases", "1", &count])?;
    let cases: Vec<(&str, &str)> = printed.lines().filter_map(|line| line.split_once(' ')).collect();
    let directory = scratch("python")?;
    let file = directory.join("cases.jsonl");
    let lines: String = cases.iter().map(|(_, case)| format!("{case}\n")).collect();
    std::fs::write(&file, lines)?;
    let answers = output(
        "python3",
        &["python/tlog_verify.py", "cases", file.to_str().context("a temporary name is text")?],
    )?;
    let answers: Vec<&str> = answers.lines().collect();
    ensure!(answers.len() == cases.len(), "{} cases, {} answers", cases.len(), answers.len());
    for ((ours, case), theirs) in cases.iter().zip(&answers) {
        ensure!(ours == theirs, "we say {ours}, Python says {theirs}: {case}");
    }
    let accepted = answers.iter().filter(|answer| **answer == "yes").count();
    println!("{accepted} accepted and {} refused by both", answers.len() - accepted);
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
