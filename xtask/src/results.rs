//! Pages of `docs/results` that one benchmark prints: `cargo xtask results NAME`.
//!
//! The benchmark says what it found, and by its answer whether that is enough; the page names the commit and is written either way.

use crate::{built_bem, output, root};
use anyhow::{Context as _, Result, bail, ensure};
use std::process::Command;

/// A benchmark with a page of its own: its name, which is that of the page, and the heading.
const PAGES: [(&str, &str); 5] = [
    ("threads", "What two threads save"),
    ("pacing", "The order of work: the schedulers beside each other"),
    ("choice_rules", "Choice rules in worlds"),
    ("regret_learner", "Regret of the whole learner beside the choice rule alone"),
    ("long_run", "Ten million steps online, tenth by tenth"),
];

/// Runs the chore: one page.
pub fn results(words: &[&str]) -> Result<()> {
    let known = PAGES.map(|(name, _)| name).join(", ") + ", default-run, peers";
    let [asked] = words else { bail!("cargo xtask results NAME: one of {known}") };
    let Some((name, heading)) = PAGES.into_iter().find(|(name, _)| name == asked) else {
        bail!("{asked:?} is no page that a command writes; those are {known}");
    };
    let program = built_bem()?;
    let (commit, changed) = (
        output("git", &["rev-parse", "--short", "HEAD"])?,
        output("git", &["diff", "HEAD", "--", "crates"])?,
    );
    let state = if changed.is_empty() { "" } else { " with changes" };
    let found = Command::new(&program)
        .args(["bench", name])
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{program} could not be started"))?;
    let body = String::from_utf8(found.stdout).context("output that is not text")?;
    // Without a table there is nothing to write: the benchmark ended before.
    ensure!(body.contains("|---|"), "`bem bench {name}` printed no table");
    let written = format!(
        "Written by `cargo xtask results {name}` (`bem bench {name}`) at commit {}{state}.",
        commit.trim()
    );
    let path = root().join(format!("docs/results/{name}.md"));
    std::fs::write(&path, format!("# {heading}\n\n{written}\n\n{body}"))
        .with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    ensure!(found.status.success(), "`bem bench {name}` found less than is asked");
    Ok(())
}
