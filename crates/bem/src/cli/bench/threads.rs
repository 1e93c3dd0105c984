//! `bem bench threads`: the time of a run of many rungs with two threads, beside that with one, and that both are one history.
//!
//! This very program runs as it always does, with its history, its report and its baselines, in a folder that is thrown away.
//! Numbers of threads take turns, and the least time of each counts: the machine may be busy with something else. What both
//! have worked, in seconds of the processor, shows how much was begun ahead of its turn and not needed. Two threads may take 0.65 of the time of
//! one, or the answer is no. `cargo xtask results threads` writes docs/results/threads.md. Clauses: SCC-15.

use super::{Benchmark, Measurement, answer_to, measure};
use crate::cli::Answer;
use crate::interrupt;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The benchmark of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "threads",
    area: "threads",
    about: "seconds of a run of many rungs with two threads, beside those with one",
    run: || Ok(measurement(&runs(1)?)),
}];

/// The run: every family, as many steps as take each of them up several rungs.
const STEPS: u64 = 400_000;
const SEED: u64 = 1;
const THREADS: [usize; 2] = [1, 2];
/// Times that each number of threads has its turn, in a report of its own.
const TRIALS: usize = 3;
/// Two threads take at most so many times the seconds of one.
const RATIO_MOST: f64 = 0.65;

/// What one number of threads took, at least.
#[derive(Clone, Debug)]
struct Run {
    threads: usize,
    seconds: f64,
    processor: f64,
    head: String,
    rungs: u64,
}

/// A folder that is gone with it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn runs(trials: usize) -> Result<Vec<Run>> {
    let folder = Folder(std::env::temp_dir().join(format!("bem-bench-threads-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).with_context(|| format!("{}", folder.0.display()))?;
    let mut best: Vec<Run> = Vec::new();
    for trial in 0..trials {
        for (place, threads) in THREADS.into_iter().enumerate() {
            if interrupt::is_asked() {
                bail!("interrupted");
            }
            let run = run(&folder.0.join(format!("{trial}-{threads}")), threads)?;
            match best.get_mut(place) {
                None => best.push(run),
                Some(known) => {
                    ensure!(known.head == run.head, "two runs with {threads} threads differ");
                    known.seconds = known.seconds.min(run.seconds);
                    known.processor = known.processor.min(run.processor);
                }
            }
        }
    }
    ensure!(best[0].head == best[1].head, "one thread and two have different histories");
    Ok(best)
}

fn run(out: &Path, threads: usize) -> Result<Run> {
    let program = std::env::current_exe().context("this program's own file")?;
    let (steps, seed, threads_text) = (STEPS.to_string(), SEED.to_string(), threads.to_string());
    let mut command = Command::new(program);
    command.args(["run", "--json", "--steps", &steps, "--seed", &seed, "--threads", &threads_text]);
    command.arg("--out").arg(out).arg("--key").arg(out.with_extension("key"));
    let (before, started) = (processor(), Instant::now());
    let output = command.stderr(Stdio::inherit()).output().context("bem run cannot be started")?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(output.status.success(), "bem run with {threads} threads failed");
    let answer: Value = serde_json::from_slice(&output.stdout).context("the answer of bem run")?;
    let families = answer["families"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(Run {
        threads,
        seconds,
        processor: processor() - before,
        head: answer["trace_head"].as_str().unwrap_or_default().to_string(),
        rungs: families.iter().filter_map(|family| family["rungs_solved"].as_u64()).sum(),
    })
}

/// Seconds of the processor that programs started here have taken, as far as they have ended; zero where nobody says.
fn processor() -> f64 {
    // Fields 16 and 17, counted behind the name in brackets; a hundredth of a second each.
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn measurement(runs: &[Run]) -> Measurement {
    let [one, two] = runs else { unreachable!("two numbers of threads") };
    Measurement::new("threads", two.seconds, "s", one.seconds, "one thread, the same history")
        .at_most(RATIO_MOST)
        .with("processor", two.processor)
        .with("processor_of_one", one.processor)
        .with("rungs", one.rungs as f64)
}

/// Prints both with their ratio.
pub fn report(json: bool) -> Result<Answer> {
    interrupt::listen();
    let runs = runs(TRIALS)?;
    let bench = measurement(&runs);
    let answer = answer_to(&bench);
    if json {
        say!("{}", json!({ "machine": measure::machine(), "benches": [bench.to_json()] }));
        return Ok(answer);
    }
    say!(
        "{STEPS} steps over all families, seed {SEED}, {} rungs solved; the least of {TRIALS} runs each, on {}.\n",
        runs[0].rungs,
        measure::machine()
    );
    say!("| threads | seconds | seconds of the processor | history |");
    say!("|---|---|---|---|");
    for run in &runs {
        say!("| {} | {:.2} | {:.2} | `{}` |", run.threads, run.seconds, run.processor, run.head);
    }
    say!("\nTwo threads take {:.2} of the time of one (asked: at most {RATIO_MOST}).", bench.ratio());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_that_save_less_than_asked_for_are_a_miss() {
        let took = |threads, seconds| Run { threads, seconds, processor: 1.0, head: String::new(), rungs: 1 };
        let missed = |two| measurement(&[took(1, 10.0), took(2, two)]).missed();
        assert_eq!(missed(6.5), None);
        assert!(missed(6.6).is_some());
    }
}
