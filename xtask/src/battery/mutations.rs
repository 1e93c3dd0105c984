//! Deliberate mistakes in the code that a reader must trust: the tests must notice them.
//!
//! One line of a copy of the sources is changed at a time (another comparison, another connective, a check left out), and the
//! tests of its crate run on it. A mistake that nothing notices is listed and fails the battery, unless it is one of
//! [`HARMLESS`], which change nothing that could be noticed, each with the reason. What does not build is no mistake.

use crate::{root, target};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file that is spoiled, and the tests that must notice.
struct Trusted {
    file: &'static str,
    package: &'static str,
    tests: &'static str,
}

const fn statement(file: &'static str) -> Trusted {
    Trusted { file, package: "bem-evolve", tests: "condition" }
}

const TRUSTED: &[Trusted] = &[
    Trusted { file: "crates/bem-checker/src/lrat.rs", package: "bem-checker", tests: "" },
    Trusted { file: "crates/bem-checker/src/certificate.rs", package: "bem-checker", tests: "" },
    statement("crates/bem-evolve/src/condition/statement/formulas.rs"),
    statement("crates/bem-evolve/src/condition/statement/memories.rs"),
    statement("crates/bem-evolve/src/condition/statement/numbers.rs"),
    statement("crates/bem-evolve/src/condition/statement/policies.rs"),
    statement("crates/bem-evolve/src/condition/statement/rows.rs"),
    statement("crates/bem-evolve/src/condition/statement/wirings.rs"),
    statement("crates/bem-evolve/src/condition/statement/mod.rs"),
    statement("crates/bem-evolve/src/condition/guard.rs"),
];

/// What is written instead of what.
const SWAPS: &[(&str, &str)] = &[
    (" && ", " || "),
    (" || ", " && "),
    (" < ", " <= "),
    (" <= ", " < "),
    (" == ", " != "),
    (" != ", " == "),
    (" + 1", " + 2"),
    (" - 1", " - 2"),
    ("true", "false"),
    ("false", "true"),
    ("outcome?;", "let _ = outcome;"),
    ("graph.all(", "graph.any("),
    ("graph.any(", "graph.all("),
    ("graph.and(", "graph.or("),
    ("graph.or(", "graph.and("),
    ("graph.odd(", "graph.all("),
    ("graph.xor(", "graph.and("),
    (".all(|", ".any(|"),
    (".any(|", ".all(|"),
    ("!bit", "bit"),
    ("(!", "("),
    (".skip(", ".take("),
    (".rev()", ""),
    ("return Err(", "let _: Result<(), _> = Err("),
    ("is_empty()", "len() == 1"),
];

/// Mistakes that no test can notice: what stands in the line, what is swapped in it, and why it does not matter.
const HARMLESS: &[(&str, &str, &str)] = &[
    ("superfluous", "", "counts hints for the figures of a report"),
    ("steps += 1;", "", "counts steps for the figures of a report"),
    ("falsified: vec![false; 2 *", " + 1", "room for one variable more"),
    ("let size = 2 * (highest.min", " + 1", "room for one variable more"),
    ("if self.falsified.len() < size", " < ", "the same size again"),
    ("if self.id_limit < id", " < ", "one identifier less of a bound on memory"),
    ("positive.push((if *weight < 0", " < ", "a weight of zero adds nothing, of a bit or of its inverse"),
    ("let third = if 2 < open.len()", " < ", "a third of two bits is none either way"),
    ("rows.values().all(|value| *value == first)", " == ", "a constant is found by a longer way as well"),
    ("if support.len() <= EXHAUSTIVE_INPUTS", " <= ", "proven instead of tried"),
    ("let bit = |place: usize, lane: u64|", " == ", "all rows in another order"),
    ("if *hint < 0", " < ", "a zero ends the list of hints and is none"),
];

/// One mistake.
struct Mistake {
    line: usize,
    before: String,
    after: String,
}

/// Tries `8 x scale` mistakes of every file.
pub fn mutations(scale: u64) -> Result<()> {
    let copy = target().join("mutations");
    copy_sources(&copy)?;
    let mut survivors = 0;
    for trusted in TRUSTED {
        let path = copy.join(trusted.file);
        let honest = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        ensure!(test(&copy, trusted)?.success(), "{} fails its tests as it is", trusted.file);
        let (mut noticed, mut unbuilt) = (0, 0);
        for mistake in chosen(mistakes(&honest), 8 * scale as usize) {
            std::fs::write(&path, spoiled(&honest, &mistake))?;
            match test(&copy, trusted)? {
                Outcome::Passed => {
                    survivors += 1;
                    println!("not noticed: {}:{}: {}", trusted.file, mistake.line + 1, mistake.after.trim());
                }
                Outcome::Failed => noticed += 1,
                Outcome::NotBuilt => unbuilt += 1,
            }
        }
        std::fs::write(&path, honest)?;
        println!("{:<58} {noticed} noticed, {unbuilt} do not build", trusted.file);
    }
    ensure!(survivors == 0, "{survivors} mistakes were not noticed");
    Ok(())
}

/// Every line of the code, but for tests and comments, with every swap that fits it.
fn mistakes(source: &str) -> Vec<Mistake> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let is_code = |line: &str| {
        let start = line.trim_start();
        !start.starts_with("//") && !start.starts_with("use ") && !start.starts_with('#')
    };
    let mut all = Vec::new();
    for (line, before) in code.lines().enumerate().filter(|(_, line)| is_code(line)) {
        let harmless = |from: &str| {
            HARMLESS.iter().any(|(line, swap, _)| before.contains(line) && (swap.is_empty() || *swap == from))
        };
        for (from, to) in SWAPS.iter().filter(|(from, _)| before.contains(from) && !harmless(from)) {
            all.push(Mistake { line, before: before.to_owned(), after: before.replacen(from, to, 1) });
        }
    }
    all
}

/// So many of them, spread over the file.
fn chosen(all: Vec<Mistake>, count: usize) -> Vec<Mistake> {
    let stride = all.len().div_ceil(count.max(1)).max(1);
    all.into_iter().step_by(stride).collect()
}

fn spoiled(honest: &str, mistake: &Mistake) -> String {
    let line = |(place, line): (usize, &str)| {
        if place == mistake.line {
            assert_eq!(line, mistake.before, "the file has not changed");
            return mistake.after.clone() + "\n";
        }
        format!("{line}\n")
    };
    honest.lines().enumerate().map(line).collect()
}

/// What the tests said of a mutant.
#[derive(PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    NotBuilt,
}

impl Outcome {
    fn success(&self) -> bool {
        *self == Outcome::Passed
    }
}

/// Builds and runs the tests of the copy.
fn test(copy: &Path, trusted: &Trusted) -> Result<Outcome> {
    let cargo = |more: &[&str]| {
        // A mistake may make a loop endless, which is noticed.
        let mut command = Command::new("timeout");
        command
            .args(["900", "cargo", "test", "--release", "--quiet", "--lib", "--package", trusted.package])
            .args(more);
        command.current_dir(copy).env("CARGO_TARGET_DIR", target()).env("CARGO_INCREMENTAL", "1");
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().context("cargo cannot be started")
    };
    if !cargo(&["--no-run"])?.success() {
        return Ok(Outcome::NotBuilt);
    }
    Ok(if cargo(&[trusted.tests])?.success() { Outcome::Passed } else { Outcome::Failed })
}

/// The files that are kept under version control, as they are now.
fn copy_sources(copy: &Path) -> Result<()> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output()?;
    ensure!(listed.status.success(), "git ls-files fails");
    for name in String::from_utf8(listed.stdout)?.split('\0').filter(|name| !name.is_empty()) {
        let (from, to): (PathBuf, PathBuf) = (root().join(name), copy.join(name));
        if !from.is_file() {
            continue;
        }
        let bytes = std::fs::read(&from)?;
        // Files that stay the same keep their time, so that they are not built again.
        if std::fs::read(&to).is_ok_and(|old| old == bytes) {
            continue;
        }
        std::fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        std::fs::write(&to, bytes)?;
    }
    Ok(())
}
