//! The tool bus at length, written into `docs/results/tools.md`: workers that die, a worker that scribbles, paths that try to
//! escape, damaged payloads and answers, and databases as worlds on five seeds.
//!
//! Trials are defined in `docs/batteries.md`. What the tests print is what the page says. Clauses: TOOL-2 to TOOL-9, TOOL-13.

use super::{commit, results, scratch, simulator, text};
use crate::{output, root, target};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;

/// One test with what it is told and what it prints.
struct Trial {
    words: &'static [&'static str],
    name: &'static str,
    /// Lines with one of these words are figures.
    tells: &'static [&'static str],
}

const TRIALS: &[Trial] = &[
    Trial { words: &["--test", "bus"], name: "workers_that_are_killed_at_random", tells: &["requests, "] },
    Trial { words: &["--test", "bus"], name: "a_hostile_worker_that_scribbles", tells: &["of scribbling"] },
    Trial { words: &["--test", "bus"], name: "what_a_worker_did_before_it_died", tells: &[] },
    Trial { words: &["--test", "sandbox"], name: "a_worker_cannot_open_what_lies_outside", tells: &[] },
    Trial { words: &["--test", "payloads"], name: "mutated_payloads", tells: &["payloads for each"] },
    Trial { words: &["--lib"], name: "damaged_answers_never_panic", tells: &["damaged answers"] },
    Trial { words: &["--lib"], name: "a_link_that_is_swapped", tells: &["swaps"] },
    Trial { words: &["--lib"], name: "no_path_leads_outside_its_root", tells: &[] },
    Trial { words: &["--lib"], name: "endless_statements_and_large_results_end", tells: &[] },
    Trial { words: &["--test", "models"], name: "of_a_models_right_wrong_and_hostile", tells: &[] },
];

/// Worlds in a database: the file, the budget, and the score to reach or to stay below.
const WORLDS: [(&str, u32, Option<f64>); 4] = [
    ("cheapest", 6_000, Some(0.99)),
    ("shop", 20_000, Some(0.99)),
    ("tariff", 4_000, Some(0.99)),
    ("blind", 4_000, None),
];

/// Runs all of it.
pub fn bus(scale: u64) -> Result<()> {
    let set = [
        format!("BEM_BUS_REQUESTS={}", 100_000 * scale),
        format!("BEM_BUS_KILLS={}", 200 * scale),
        format!("BEM_BUS_SCRIBBLE_SECONDS={}", 600 * scale),
        format!("BEM_BUS_ESCAPES={}", 20_000 * scale),
        format!("BEM_BUS_PAYLOADS={}", 10_000_000 * scale),
    ];
    let mut page = format!(
        "# The tool bus, measured\n\nWritten by `cargo xtask battery bus --scale {scale}` on commit {}; every line below is what \
        the named test printed.\n\n| test | what came of it |\n|---|---|\n",
        commit()?
    );
    for trial in TRIALS {
        let found = tried(trial, &set)?;
        writeln!(page, "| `{}` | {found} |", trial.name)?;
    }
    let model = modelled(20_000 * scale)?;
    writeln!(page, "| `bem-sim bus` | {model} |")?;
    page += &worlds()?;
    let path = results("tools.md")?;
    std::fs::write(&path, page).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    Ok(())
}

/// The bus beside its model, so many schedules; what it says of them.
fn modelled(schedules: u64) -> Result<String> {
    let program = simulator();
    let said = output(text(&program)?, &["bus", "1", &schedules.to_string()])?;
    print!("{said}");
    Ok(said.trim().to_string())
}

/// Runs one test; the figures that it printed.
fn tried(trial: &Trial, set: &[String]) -> Result<String> {
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let test = ["cargo", "test", "--release", "--workspace"];
    let words = [&set[..], &test[..], trial.words, &["--", "--nocapture", trial.name]].concat();
    println!("$ env {}", words.join(" "));
    let said = output("env", &words)?;
    let is_told = |line: &&str| trial.tells.iter().any(|tells| line.contains(tells));
    let told: Vec<&str> = said.lines().map(str::trim).filter(is_told).collect();
    let passed: u64 = said.lines().filter_map(passed_in).sum();
    if passed == 0 {
        bail!("no test is called {}", trial.name);
    }
    told.iter().for_each(|line| println!("{line}"));
    Ok(if told.is_empty() { "passed".to_string() } else { told.join("; ") })
}

/// How many tests a line of a summary says to have passed.
fn passed_in(line: &str) -> Option<u64> {
    line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok()
}

/// Databases as worlds, five seeds each.
fn worlds() -> Result<String> {
    let folder = scratch("tools")?;
    let examples = root().join("examples/tools");
    let copy = format!(
        "cp {}/* {} && cd {} && python3 make_shop.py",
        examples.display(),
        text(&folder)?,
        text(&folder)?
    );
    output("sh", &["-c", &copy])?;
    let task = std::fs::read_to_string(folder.join("tariff.toml"))?;
    std::fs::write(folder.join("blind.toml"), task.replace("enabled = true", "enabled = false"))?;
    let mut page = String::from(
        "\n`bem solve --tool-task FILE --seed N`, seeds 1 to 5: 0 is random play, 1 the optimum, which was found by trying every \
        statement in every state. `blind` is `tariff` without its lookup.\n\n| world | budget | random play | optimum | scores |\n|---|---|---|---|---|\n",
    );
    let program = target().join("release/bem");
    for (name, budget, wanted) in WORLDS {
        let (mut scores, mut last) = (Vec::new(), Value::Null);
        for seed in 1..=5 {
            // A task that is not solved ends with 1.
            let line = format!(
                "cd {} && {{ {} solve --tool-task {name}.toml --budget {budget} --seed {seed} --json; test $? -le 1; }}",
                text(&folder)?,
                program.display()
            );
            last = serde_json::from_str(&output("sh", &["-c", &line])?)?;
            scores.push(last["score"].as_f64().context("a score")?);
        }
        let is_met = |score: &f64| wanted.map_or(*score < 0.1, |wanted| wanted <= *score);
        let shown: Vec<String> = scores.iter().map(|score| format!("{score:.4}")).collect();
        writeln!(
            page,
            "| {name} | {budget} | {} | {} | {} |",
            last["random"],
            last["optimum"],
            shown.join(", ")
        )?;
        println!("{name}: {}", shown.join(", "));
        if !scores.iter().all(is_met) {
            bail!("{name} is not what it should be: {scores:?}");
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(page)
}
