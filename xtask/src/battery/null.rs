//! Learners whose rewards are coins, and learners without one of their parts: `bem table --controls` runs and judges them, in
//! worlds that can be repeated and in such that cannot, where nothing is measured in pairs. What they say becomes
//! `docs/results/null.md`, whether it is as it must be or not.

use super::{commit, results};
use crate::{built_bem, root};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

/// Seeds of every world with coins, for every unit of scale, and steps of every run.
const SEEDS: u64 = 3;
const STEPS: &str = "20000";
/// What differs between the two runs of all controls, in words for the page and for the table.
const WORLDS: [(&str, &[&str]); 2] =
    [("worlds that can be repeated", &[]), ("worlds that cannot be repeated", &["--no-replay"])];

/// Runs all controls in both sorts of worlds, and writes the page.
pub fn null(scale: u64) -> Result<()> {
    let seeds = (SEEDS * scale).to_string();
    let controls = ["table", "--controls", "--seeds", &seeds, "--budget", STEPS, "--json"];
    let found = WORLDS
        .into_iter()
        .map(|(name, words)| Ok((name, measured(&[&controls[..], words].concat())?)))
        .collect::<Result<Vec<_>>>()?;
    let (page, path) = (page_of(&commit()?, &found)?, results("null.md")?);
    std::fs::write(&path, &page).with_context(|| path.display().to_string())?;
    println!("{page}\n{}", path.display());
    let missed = missed(&found)?;
    if missed.is_empty() { Ok(()) } else { bail!("not as it must be: {}", missed.join("; ")) }
}

/// What the table says, which is also an answer where something was missed.
fn measured(words: &[&str]) -> Result<Value> {
    let bem = built_bem()?;
    println!("$ {bem} {}", words.join(" "));
    let ran = Command::new(&bem)
        .args(words)
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{bem} could not be started"))?;
    if !matches!(ran.status.code(), Some(0 | 1)) {
        bail!("`{bem} {}` failed", words.join(" "));
    }
    serde_json::from_slice(&ran.stdout).context("a table that is not JSON")
}

fn controls(found: &Value) -> Result<&Vec<Value>> {
    found["controls"].as_array().context("a table without controls")
}

fn text<'v>(control: &'v Value, key: &str) -> &'v str {
    control[key].as_str().unwrap_or("?")
}

/// The controls that did not go as they must, in both sorts of worlds.
fn missed(found: &[(&str, Value)]) -> Result<Vec<String>> {
    let mut missed = Vec::new();
    for (worlds, table) in found {
        let failed = controls(table)?.iter().filter(|control| control["ok"] != true);
        missed.extend(failed.map(|control| format!("{}, {worlds}", text(control, "control"))));
    }
    Ok(missed)
}

fn page_of(commit: &str, found: &[(&str, Value)]) -> Result<String> {
    let mut page = format!(
        "# Coins and ablations, measured\n\nWritten by `cargo xtask battery null`, commit {commit}: runs of {STEPS} steps.\n\n\
         Where rewards are coins there is nothing to learn. What a test lets in there, on rollouts or on the log, is an error: over \
         all\nworlds together at most as many as the share of error of all runs, one in twenty a run (alpha). Holds and counted plans \
         follow means\nand counts without a test, so that alpha does not bound them; they have a limit of their own for every run \
         and decade of its steps.\nA learner without one of its parts must fail where that is needed, and must not where it is not.\n"
    );
    for (worlds, table) in found {
        writeln!(page, "\n## In {worlds}\n\n| control | what came of it | as it must be |\n|---|---|---|")?;
        for control in controls(table)? {
            let is_ok = if control["ok"] == true { "yes" } else { "no" };
            writeln!(page, "| {} | {} | {is_ok} |", text(control, "control"), text(control, "result"))?;
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_page_has_every_control_of_both_sorts_of_worlds_and_names_what_is_not_as_it_must_be() {
        let table = |is_ok: bool| {
            json!({ "seeds": 3, "budget": 20_000, "controls": [
                { "control": "coins in all worlds", "result": "24 runs", "ok": true },
                { "control": "without memory: copy (must fail)", "result": "score 0.500", "ok": is_ok },
            ] })
        };
        let found = [(WORLDS[0].0, table(true)), (WORLDS[1].0, table(false))];
        let page = page_of("abc", &found).expect("a page");
        assert!(page.contains("commit abc: runs of 20000 steps"), "{page}");
        assert_eq!(page.matches("| coins in all worlds | 24 runs | yes |").count(), 2, "{page}");
        assert!(page.contains("| without memory: copy (must fail) | score 0.500 | no |"), "{page}");
        let missed = missed(&found).expect("controls");
        assert_eq!(missed, ["without memory: copy (must fail), worlds that cannot be repeated"]);
    }
}
