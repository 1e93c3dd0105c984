//! Pages of `docs/results` that one benchmark prints: `cargo xtask results NAME`.
//!
//! The benchmark says what it found, and by its answer whether that is enough; the page names the commit and is written either way.

use crate::{built_bem, output, root, target};
use anyhow::{Context as _, Result, bail, ensure};
use std::path::PathBuf;
use std::process::Command;

/// A benchmark with a page of its own: its name, which is that of the page, and the heading.
const PAGES: [(&str, &str); 6] = [
    ("threads", "What two threads save"),
    ("pacing", "The order of work: the schedulers beside each other"),
    ("choice_rules", "Choice rules in worlds"),
    ("regret_learner", "Regret of the whole learner beside the choice rule alone"),
    ("bounds", "What can be reached"),
    ("long_run", "Ten million steps online, tenth by tenth"),
];

/// Where the run of `long_run` is kept while it is measured: without a folder there are no bytes on disk to be counted.
const LONG_RUN: (&str, &str, &str) = ("long_run", "BEM_LONG_FOLDER", "results-long-run");

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
    let mut bench = Command::new(&program);
    bench.args(["bench", name]).current_dir(root()).stderr(std::process::Stdio::inherit());
    let folder = folder_of(name)?;
    if let Some(folder) = &folder {
        bench.env(LONG_RUN.1, folder);
    }
    let found = bench.output().with_context(|| format!("{program} could not be started"))?;
    if let Some(folder) = folder {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
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

/// The folder in which a benchmark keeps its run, if it keeps one; it is empty, as what an earlier run left is none of this one's.
fn folder_of(name: &str) -> Result<Option<PathBuf>> {
    if name != LONG_RUN.0 {
        return Ok(None);
    }
    let folder = target().join(LONG_RUN.2);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(Some(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_run_is_kept_in_a_folder_that_its_program_reads_and_that_is_empty() {
        let source = |path: &str| std::fs::read_to_string(root().join(path)).expect("a source");
        assert!(source("crates/bem/src/cli/bench/long_run.rs").contains(&format!("{:?}", LONG_RUN.1)));
        assert!(PAGES.iter().any(|(name, _)| *name == LONG_RUN.0));
        let folder = folder_of(LONG_RUN.0).expect("a folder").expect("the long run has one");
        std::fs::write(folder.join("left"), "x").expect("it is written");
        let again = folder_of(LONG_RUN.0).expect("a folder").expect("the long run has one");
        assert_eq!((again.read_dir().expect("a folder").count(), &again), (0, &folder));
        assert!(folder_of("threads").expect("no folder").is_none());
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}
