//! The project's own chores, one word each: `cargo xtask help` lists them.

mod battery;
mod compare;
mod conformance;
mod default_run;
mod dependencies;
mod ladder;
mod python;
mod results;
mod tidy;
mod tools;
mod wheel;
mod words;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask test      install what tests need, then run all of them (in release, overflow checks on)
cargo xtask python    only the tests of the Python package, in an environment of their own: [pytest's words]
cargo xtask wheel     a manylinux wheel of the Python package, judged by auditwheel, and `pip install ./python`, both tried in fresh environments: [--wheel]
cargo xtask lint      formatting, clippy, house rules, who may use whom, licences
cargo xtask ci        lint and test: what runs before a change lands
cargo xtask bench     micro-benchmarks with ratios to their floors, and instruction counts
cargo xtask count     instructions a step early and late in a run, beside a busy tool bus and beside people's questions, with valgrind: [--full]
cargo xtask compare   an earlier build and this one side by side: measure FOLDER CHECKOUT, page OLD NEW
cargo xtask ladder    choose the rungs whose measured steps lie on a line: choose FILE...; renew the tables of docs/ladder.md: page
cargo xtask battery   what the project promises, tried at length: [NAME] [--scale N]
cargo xtask results   a page of docs/results that one command writes: threads, pacing, choice_rules, regret_learner, bounds, long_run, default-run [--minutes N], what a run of ten minutes uses, or peers [words of bench/peers/run.py]
cargo xtask static    build bem without shared libraries, for base images, and try it inside one: target/static
cargo xtask golden    renew the golden playthroughs, golden/formats, docs/config.md and the roles of docs/security.md; the commit must say why
cargo xtask words     renew docs/words.md, the type names with more than one meaning
cargo xtask tools     only install what tests need";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match chore(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chore(words: &[&str]) -> Result<()> {
    match words {
        ["test", rest @ ..] => test(rest),
        ["python", rest @ ..] => python::test(rest),
        ["wheel", rest @ ..] => wheel::wheel(rest),
        ["lint"] => lint(),
        ["ci"] => lint().and_then(|()| test(&[])),
        ["bench", rest @ ..] => bench(rest),
        ["count", rest @ ..] => count_instructions(rest),
        ["compare", rest @ ..] => compare::compare(rest),
        ["ladder", rest @ ..] => ladder::ladder(rest),
        ["results", "default-run", rest @ ..] => default_run::default_run(rest),
        ["results", "peers", rest @ ..] => python::peers(rest),
        ["results", rest @ ..] => results::results(rest),
        ["battery", rest @ ..] => battery::run_battery(rest),
        ["static"] => build_static(),
        ["golden"] => golden(),
        ["words"] => words::write(&root()),
        ["tools"] => tools::install_for_tests(),
        ["help"] | ["--help"] | [] => {
            println!("{HELP}");
            Ok(())
        }
        [other, ..] => bail!("there is no chore called {other:?}\n{HELP}"),
    }
}

/// The top folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_path_buf()
}

/// Runs a program in the repository and fails when it does.
pub fn run(program: &str, arguments: &[&str]) -> Result<()> {
    println!("$ {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .status()
        .with_context(|| format!("{program} could not be started"))?;
    if !status.success() {
        bail!("`{program} {}` failed", arguments.join(" "));
    }
    Ok(())
}

/// Runs a program in the repository and returns what it printed.
pub fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .with_context(|| format!("{program} could not be started"))?;
    if !output.status.success() {
        bail!("`{program} {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).context("output that is not text")
}

fn test(rest: &[&str]) -> Result<()> {
    tools::install_for_tests()?;
    let mut arguments = vec!["test", "--release", "--workspace"];
    arguments.extend_from_slice(rest);
    run("cargo", &arguments)?;
    // Words that choose among the tests of cargo are none of pytest's.
    if !rest.is_empty() {
        return Ok(());
    }
    check_state_word()?;
    python::test(&[])
}

/// The state word of the tool bus under every interleaving. Its feature changes what an atomic word is, so that it is built apart
/// from everything else: three small crates and what they need.
fn check_state_word() -> Result<()> {
    let folder = target().join("loom");
    let folder = folder.to_str().context("a path that is text")?;
    let words = ["test", "--release", "-p", "bem-tools", "--features", "loom", "--test", "loom"];
    run("cargo", &[&words[..], &["--target-dir", folder]].concat())
}

fn lint() -> Result<()> {
    run("cargo", &["fmt", "--all", "--check"])?;
    tidy::check(&root())?;
    dependencies::check()?;
    conformance::check(&root())?;
    words::check(&root())?;
    run(
        "cargo",
        &["clippy", "--release", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
    )?;
    tools::cargo_deny()
}

fn bench(rest: &[&str]) -> Result<()> {
    run(&built_bem()?, &[&["bench"], rest].concat())?;
    count_instructions(&[])
}

/// A step must cost the same early and late. Callgrind counts instructions, so a busy machine changes nothing.
fn count_instructions(rest: &[&str]) -> Result<()> {
    let late = match rest {
        [] => 1_000_000u64,
        ["--full"] => 10_000_000,
        _ => bail!("cargo xtask count takes --full or nothing"),
    };
    build(&["--example", "step_count"])?;
    let program = target().join("release/examples/step_count");
    let instructions = |warm| compare::instructions::a_step(&program, "single", warm, 10_000);
    let (early, late_cost) = (instructions(10_000)?, instructions(late)?);
    println!("instructions a step: {early:.1} after 10,000 steps, {late_cost:.1} after {late}");
    if early * 0.01 < (early - late_cost).abs() {
        bail!("the cost of a step changed by more than one percent");
    }
    count_beside_tools()?;
    count_beside_people()
}

/// A step must cost the same whatever happens on the tool bus (TOOL-12).
fn count_beside_tools() -> Result<()> {
    let ways = [
        ("idle", "no traffic on the tool bus"),
        ("full", "a request at every step on a full bus"),
        ("silent", "workers that never answer"),
        ("slow", "a simulator of 50 ms a step beside it"),
    ];
    count_beside("bus_count", "step", 0.01, &ways)
}

/// A decision must cost the same whatever people are asked (HUM-10). After its reward it is looked at whether they are, which may
/// cost little.
fn count_beside_people() -> Result<()> {
    let ways = [
        ("off", "nobody who is asked"),
        ("on", "people who are asked about steps"),
        ("full", "a queue of people that is full"),
    ];
    count_beside("people_count", "step", 0.01, &ways)?;
    count_beside("people_count", "reward", 0.03, &ways)
}

/// Counts the steps of an example, or another part of it, in several ways, of which the first is what the others are compared
/// with: no more than this share apart.
fn count_beside(example: &str, part: &str, apart: f64, ways: &[(&str, &str)]) -> Result<()> {
    build(&["--example", example])?;
    let program = target().join("release/examples").join(example).display().to_string();
    let mut idle = None;
    for (how, words) in ways {
        let total = |steps: u64| {
            compare::instructions::counted(&[
                &format!("--toggle-collect=*counted_{part}*"),
                &program,
                &steps.to_string(),
                *how,
            ])
        };
        let cost = (total(30_000)? - total(10_000)?) / 20_000.0;
        println!("instructions a {part}: {cost:.2} with {words}");
        let first = *idle.get_or_insert(cost);
        if first * apart < (first - cost).abs() {
            bail!("the cost of a {part} is {first:.2} with {}, and {cost:.2} with {words}", ways[0].1);
        }
    }
    Ok(())
}

/// Builds programs of the workspace with the features that all of it uses, so that nothing is compiled twice.
pub fn build(targets: &[&str]) -> Result<()> {
    run("cargo", &[&["build", "--release", "--quiet", "--workspace"], targets].concat())
}

/// The path of `bem`, built a moment ago.
pub fn built_bem() -> Result<String> {
    build(&["--bin", "bem"])?;
    Ok(target().join("release/bem").display().to_string())
}

/// Where cargo builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A program that needs no shared library. The C library of the system is linked in, which finds names in files and by DNS
/// without loading anything; the flags replace those of `.cargo/config.toml`.
fn build_static() -> Result<()> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let folder = target().join("static").display().to_string();
    let flags = "RUSTFLAGS=-C target-cpu=x86-64-v3 -C target-feature=+crt-static";
    let build = ["build", "--release", "--package", "bem", "--target", TARGET, "--target-dir", &folder];
    run("env", &[&[flags, "CARGO_PROFILE_RELEASE_DEBUG=0", "cargo"][..], &build].concat())?;
    let program = format!("{folder}/{TARGET}/release/bem");
    println!("{program}");
    // Inside its image it proves something and resolves a name; the tools for that are installed like those of all tests.
    tools::install_for_tests()?;
    let test = [
        "test",
        "--release",
        "--workspace",
        "--test",
        "images_tools",
        "without_shared_libraries",
        "--",
        "--ignored",
    ];
    run("env", &[&[&format!("BEM_STATIC_PROGRAM={program}"), "cargo"][..], &test].concat())
}

fn golden() -> Result<()> {
    println!("$ BEM_GOLDEN=renew cargo test --release --workspace golden");
    let status = Command::new("cargo")
        .args(["test", "--release", "--workspace", "golden"])
        .env("BEM_GOLDEN", "renew")
        .current_dir(root())
        .status()?;
    if !status.success() {
        bail!("the golden files could not be renewed");
    }
    run("git", &["status", "--short", "golden", "docs/config.md", "docs/security.md"])
}
