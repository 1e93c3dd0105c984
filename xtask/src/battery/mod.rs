//! `cargo xtask battery [NAME] [--scale N]`: what the project promises, tried at length.
//!
//! Scale 1 takes minutes; the floors of the reliability figures are reached at the scale that each part names. One trial
//! is defined beside each figure. What was acknowledged is decided here, by the process that watches, never by the
//! process that dies. `docs/results/batteries.md` has what was measured.

mod acting;
mod annotators;
mod bundles;
mod bus;
mod estimates;
mod findings;
mod images;
mod kept;
mod mutations;
mod null;
mod pipeline;
mod problems;
mod real_run;
mod service;
mod simulated;
mod soak;
mod tables;
mod twins;
mod workload;
mod worlds;

use crate::{build, ladder, output, python, root, run, target};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// One part of the battery.
struct Part {
    name: &'static str,
    about: &'static str,
    run: fn(u64) -> Result<()>,
}

const PARTS: &[Part] = &[
    Part {
        name: "seeds",
        about: "simulated lives with crashes and failures: 2,000 runs x N",
        run: simulated::seeds,
    },
    Part {
        name: "power-loss",
        about: "power loss at every disk operation: 2,500 images x N",
        run: simulated::power_loss,
    },
    Part {
        name: "lies",
        about: "disks that drop, misplace or rot data: 2,000 runs x N",
        run: simulated::lies,
    },
    Part {
        name: "mutants",
        about: "one sync left out: each of seven mutants must be noticed",
        run: simulated::mutants,
    },
    Part {
        name: "engine",
        about: "the engine's journal on a failing disk: 1,000 climbs x N",
        run: simulated::engine,
    },
    Part {
        name: "restore",
        about: "learners put away and taken up: 250 points x N; 1,000 at scale 4",
        run: simulated::restore,
    },
    Part {
        name: "kill",
        about: "kill -9 of bem run in every phase: 250 kills x N; 1,000 at scale 4",
        run: real_run::kill,
    },
    Part { name: "workload", about: "kill -9 of a bare ledger writer: 250 kills x N", run: workload::kill },
    Part { name: "strace", about: "SIGKILL at every storage system call of a writer", run: workload::strace },
    Part {
        name: "full-disk",
        about: "a write fails with ENOSPC or EIO at every index of a writer",
        run: workload::full_disk,
    },
    Part {
        name: "flips",
        about: "every 64th bit of a run's files turned over; every bit at scale 64",
        run: real_run::flips,
    },
    Part {
        name: "tamper",
        about: "truncated, reordered, spliced, rolled back: 500 x N of each",
        run: real_run::tamper,
    },
    Part {
        name: "removal",
        about: "what the histories of a run and a solved task name removed, and forged with the key: all of it",
        run: real_run::removal,
    },
    Part {
        name: "twins",
        about: "debug, release, 1, 2 and 7 threads, 32 bits: 10^5 steps x N; 10^7 at scale 100",
        run: twins::twins,
    },
    Part {
        name: "fuzz",
        about: "damaged inputs for every decoder: 10^6 x N each; 10^7 at scale 10",
        run: simulated::fuzz,
    },
    Part {
        name: "python",
        about: "proofs and checkpoints against the Python verifier: 1,000 x N of each",
        run: simulated::python,
    },
    Part {
        name: "patches",
        about: "bad patches of every kind and fault, and as many good ones: 12,000 x N; spoiled ones of real histories: 10,000 x N of each of six kinds",
        run: simulated::patches,
    },
    Part {
        name: "mutations",
        about: "deliberate mistakes in checker and definitions of statements, which the tests must notice: 8 x N of each file",
        run: mutations::mutations,
    },
    Part {
        name: "bundles",
        about: "policies of every family and of the five problems that carry their proof, and mutants: 2,000 x N of each part",
        run: bundles::bundles,
    },
    Part {
        name: "findings",
        about: "the tests of docs/findings.md with the program in which new users found it: each must fail there",
        run: findings::findings,
    },
    Part {
        name: "acting",
        about: "every row of the table learned plainly, disguised, without repetition, with late rewards and online: 5 seeds x N; [PART...] runs some alone",
        run: acting::acting,
    },
    Part {
        name: "problems",
        about: "five problems of one's own learned, exported to C and played for 10^5 episodes: 5 seeds x N; 20 at scale 4",
        run: problems::problems,
    },
    Part {
        name: "estimates",
        about: "intervals of off-policy estimates on 1,000 logs whose truth is known",
        run: estimates::estimates,
    },
    Part {
        name: "tables",
        about: "three public tables against scikit-learn: one five-fold cross-validation x N; ten at scale 10",
        run: tables::tables,
    },
    Part {
        name: "worlds",
        about: "worlds drawn from the commit and a salt, beside Q-learning, PSRL and UCB: 60 x N; [--count N] [--salt S]",
        run: worlds::worlds,
    },
    Part {
        name: "null",
        about: "coin-flip rewards teach nothing, with pairs and without, what is switched off is missed: 24 runs x N of 20,000 steps of each; 480 at scale 20; docs/results/null.md",
        run: null::null,
    },
    Part {
        name: "ladder",
        about: "how straight the measured ladder is, on seeds that the commit names: 15 runs x N of every rung",
        run: |scale| ladder::measure(15 * scale, &commit()?, &results("ladder.md")?),
    },
    Part {
        name: "serve",
        about: "bem serve killed with SIGKILL under load and asked malformed requests: 200 kills and 10^6 requests x N",
        run: serve,
    },
    Part {
        name: "service",
        about: "load, served worlds and a long run of bem serve, into docs/results/service.md: 10 worlds of 10^5 steps and 10^6 decisions x N",
        run: service::service,
    },
    Part {
        name: "bus",
        about: "100,000 requests x N over four workers killed 200 x N times, a hostile worker for ten minutes x N, 10^7 x N payloads, databases as worlds; docs/results/tools.md",
        run: bus::bus,
    },
    Part {
        name: "people",
        about: "1,000 questions x N, eight people, closed tabs, double and late answers, expired leases, 10 kills x N, in one process and over HTTP; 100 answers x N taken back after 10,000 steps x N; 10,000, 100, 1,000 and 10^5 at scale 10",
        run: people,
    },
    Part {
        name: "annotators",
        about: "a script that knows the optimum, one that errs and one that lies, beside a learner in 36 drawn worlds; docs/results/annotators.md",
        run: annotators::annotators,
    },
    Part {
        name: "images",
        about: "bem image killed with SIGKILL, 100 kills x N, and with a full disk at every call; images of a server at work, 20 x N; bits of an image turned over, 2,000 x N; simulated disks before",
        run: images::images,
    },
    Part {
        name: "transfer",
        about: "ten families at twice the size with what was learned before, against from scratch: five seeds x N",
        run: pipeline::transfer,
    },
    Part {
        name: "pipeline",
        about: "specialists, distillation, mixed learning and a late domain, with ablations, judged into docs/results/pipeline.md: three seeds x N",
        run: pipeline::pipeline,
    },
    Part {
        name: "ray",
        about: "the pipeline on two raylets, one of which is lost: the head is that of threads; BEM_PYTHON names the environment",
        run: pipeline::ray,
    },
    Part {
        name: "python_calls",
        about: "random calls of the Python package with good, wrong and absurd arguments, another seed each time: 10^5 x N",
        run: python_calls,
    },
    Part {
        name: "soak",
        about: "a server under load with images for a minute x N: memory, disk and cost of a step; an hour at scale 60",
        run: soak::soak,
    },
];

/// The test of random calls at length, in the environment of the tests of the package.
fn python_calls(scale: u64) -> Result<()> {
    for seed in 1..=scale {
        let set = [("BEM_CALLS", "100000".to_string()), ("BEM_SEED", seed.to_string())];
        python::test_with(&["tests/test_any_calls.py"], &set)?;
    }
    Ok(())
}

/// The tests of the decision service at length.
fn serve(scale: u64) -> Result<()> {
    let (kills, requests) = ((200 * scale).to_string(), (1_000_000 * scale).to_string());
    let set = [format!("BEM_SERVE_KILLS={kills}"), format!("BEM_SERVE_MALFORMED={requests}")];
    let test = ["cargo", "test", "--release", "--workspace", "--test", "serve", "--", "--nocapture"];
    let names = ["nothing_acknowledged_is_lost", "malformed_requests_are_refused"];
    run("env", &[&set.each_ref().map(String::as_str)[..], &test[..], &names[..]].concat())
}

/// The tests of people's questions at length: in one process, and over HTTP.
fn people(scale: u64) -> Result<()> {
    let (questions, kills) = ((1_000 * scale).to_string(), (10 * scale).to_string());
    let (answers, steps) = ((100 * scale).to_string(), (10_000 * scale).to_string());
    let set = [
        format!("BEM_PEOPLE_QUESTIONS={questions}"),
        format!("BEM_PEOPLE_KILLS={kills}"),
        format!("BEM_PEOPLE_ANSWERS={answers}"),
        format!("BEM_PEOPLE_STEPS={steps}"),
    ];
    let set = set.each_ref().map(String::as_str);
    let names = ["every_answer_counts_once_or_is_refused", "answers_of_every_kind_are_taken_back"];
    let inside = ["cargo", "test", "--release", "--workspace", "--lib", "--"];
    run("env", &[&set[..], &inside[..], &names[..]].concat())?;
    let over_http =
        ["cargo", "test", "--release", "--workspace", "--test", "people_storm", "--", "--nocapture"];
    run("env", &[&set[..], &over_http[..]].concat())
}

/// Runs one part, or all of them.
pub fn run_battery(words: &[&str]) -> Result<()> {
    if let ["worlds", rest @ ..] = words
        && !rest.contains(&"--scale")
    {
        return worlds::with_words(rest);
    }
    if let ["acting", rest @ ..] = words {
        return acting::with_words(rest);
    }
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
    if chosen.iter().any(|part| part.name != "mutations") {
        build(&["--bin", "bem-sim", "--bin", "bem"])?;
    }
    for part in chosen {
        println!("== {}: {}", part.name, part.about);
        (part.run)(scale).with_context(|| format!("battery {}", part.name))?;
    }
    Ok(())
}

/// The simulator that was built a moment ago.
fn simulator() -> PathBuf {
    target().join("release").join("bem-sim")
}

/// The commit that is measured; a sign says that the sources of the crates differ from it.
fn commit() -> Result<String> {
    let commit = output("git", &["rev-parse", "--short", "HEAD"])?;
    let changed = output("git", &["diff", "HEAD", "--", "crates"])?;
    Ok(format!("{}{}", commit.trim(), if changed.is_empty() { "" } else { " with changes" }))
}

/// A page of `docs/results`, by its name.
fn results(name: &str) -> Result<PathBuf> {
    let folder = root().join("docs/results");
    std::fs::create_dir_all(&folder)?;
    Ok(folder.join(name))
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

/// A path as a word of a command.
fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a temporary name is text")
}

/// A small generator of its own: the moments need not be good, only many.
struct Draw(u64);

impl Draw {
    fn new() -> Draw {
        Draw(0x9E37_79B9_7F4A_7C15)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
