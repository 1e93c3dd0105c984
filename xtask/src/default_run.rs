//! `cargo xtask results default-run [--minutes N]`: what a run of ten minutes uses, as docs/results/default-run.md.
//!
//! The run is that of `bem run` with seed 1 on two threads; it is audited and played again, and the page counts what it says of
//! itself: entries by kind, what programs of the control core asked for, what was practised, which priors moved, which tops were
//! reached. The answer is no where something of this is missing. A run of another length is shown and not kept. Clauses: LOG-1,
//! GLE-10, VM-12.

use crate::{built_bem, output, root, target};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::Command;

/// Minutes of the run whose page is kept.
const MINUTES: &str = "10";
/// Kinds of entries that need tools, people or a server.
const ELSEWHERE: [&str; 3] = ["tool_call", "human_task", "input"];
/// Where templates that are practised come from, as `bem run --json` names it, and in words.
const ORIGINS: [(&str, &str); 5] = [
    ("composition", "a composition with another family"),
    ("trace", "the trace: rungs that one machine solved"),
    ("counterexample", "a situation in which what was learned kept failing"),
    ("contradiction", "a situation in which verification found the log contradicted"),
    ("mutation", "a mutation"),
];

/// What a finished run says: of itself, by its audit, and when it is played again.
struct Told {
    run: Value,
    audit: Value,
    replay: String,
}

/// Runs the chore.
pub fn default_run(words: &[&str]) -> Result<()> {
    let minutes = match words {
        [] => MINUTES,
        ["--minutes", minutes] => minutes,
        _ => bail!("cargo xtask results default-run takes --minutes N or nothing"),
    };
    let program = built_bem()?;
    let commit = output("git", &["rev-parse", "--short", "HEAD"])?;
    let is_changed = !output("git", &["diff", "HEAD", "--", "crates"])?.is_empty();
    let told = run(&program, minutes)?;
    let (body, missing) = page(&told);
    let state = if is_changed { " with changes" } else { "" };
    let text = format!(
        "# What a default run uses\n\nWritten by `cargo xtask results default-run` at commit {}{state}: \
         `bem run --minutes {minutes} --threads 2 --seed 1`, then `bem verify` and `bem replay`. How far a run gets in its time \
         depends on the machine; what it does on the way does not.\n\n{body}",
        commit.trim()
    );
    if minutes == MINUTES {
        let path = root().join("docs/results/default-run.md");
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("{}", path.display());
    } else {
        println!("{text}");
    }
    ensure!(missing.is_empty(), "the run is without {}", missing.join(", "));
    Ok(())
}

/// A fresh run in a folder beside the build, with its audit and replay.
fn run(program: &str, minutes: &str) -> Result<Told> {
    let folder = target().join("default-run");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let [out, key] = ["run", "signing.key"].map(|name| folder.join(name).display().to_string());
    let json = |arguments: &[&str]| -> Result<Value> {
        println!("$ {program} {}", arguments.join(" "));
        serde_json::from_str(&output(program, arguments)?).context("one JSON object")
    };
    let words = ["run", "--minutes", minutes, "--threads", "2", "--seed", "1", "--out", &out];
    let run = json(&[&words[..], &["--key", &key, "--json"]].concat())?;
    let audit = json(&["verify", &out, "--json"])?;
    let replay = Command::new(program).args(["replay", &out]).output().context("bem replay")?;
    let said = String::from_utf8_lossy(&replay.stdout);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let replay = if replay.status.success() { "as recorded".to_string() } else { said };
    Ok(Told { run, audit, replay })
}

/// The page, and what is missing of what a default run must use.
fn page(told: &Told) -> (String, Vec<String>) {
    let (mut text, mut missing) = (String::new(), Vec::new());
    let _ = writeln!(text, "| | |\n|---|---|");
    for (name, found) in summary(told) {
        let _ = writeln!(text, "| {name} | {found} |");
    }
    let audit = told.audit["verdict"].as_str().unwrap_or("none");
    if !matches!(audit, "valid" | "unanchored") {
        missing.push(format!("an audit that accepts it ({audit})"));
    }
    if told.replay != "as recorded" {
        missing.push("a replay that ends as recorded".to_string());
    }
    entries(told, &mut text, &mut missing);
    practice(told, &mut text, &mut missing);
    families(told, &mut text, &mut missing);
    (text, missing)
}

/// The sum of a figure over all families.
fn total(told: &Told, figure: impl Fn(&Value) -> u64) -> u64 {
    told.run["families"].as_array().into_iter().flatten().map(figure).sum()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn summary(told: &Told) -> Vec<(&'static str, String)> {
    let scheduled = &told.run["scheduled"];
    let units = |name: &str| number(&scheduled[name]);
    vec![
        ("steps", number(&told.run["steps"]).to_string()),
        ("steps that the machine chose", number(&told.run["steps_by_machine"]).to_string()),
        ("changes of what acts, by patches", number(&told.run["acting_changes_patched"]).to_string()),
        ("units of ACT, SYNTH, VERIFY", format!("{}, {}, {}", units("act"), units("synth"), units("verify"))),
        ("barriers passed", number(&told.run["barriers"]).to_string()),
        ("audit", told.audit["verdict"].as_str().unwrap_or("none").to_string()),
        ("replay", told.replay.clone()),
    ]
}

fn entries(told: &Told, text: &mut String, missing: &mut Vec<String>) {
    let _ = writeln!(text, "\n## Entries of the ledger\n\n| kind | entries |\n|---|---|");
    for (kind, count) in told.audit["kinds"].as_object().into_iter().flatten() {
        let is_elsewhere = ELSEWHERE.contains(&kind.as_str());
        let note = if is_elsewhere { " (needs tools, people or a server)" } else { "" };
        let _ = writeln!(text, "| `{kind}`{note} | {} |", number(count));
        if number(count) == 0 && !is_elsewhere {
            missing.push(format!("entries of kind {kind}"));
        }
    }
    if told.audit["kinds"].as_object().is_none_or(serde_json::Map::is_empty) {
        missing.push("entries".to_string());
    }
}

fn practice(told: &Told, text: &mut String, missing: &mut Vec<String>) {
    let _ = writeln!(text, "\n## Practice\n\n| | |\n|---|---|");
    let mut row = |name: &str, count: u64, is_asked: bool| {
        let _ = writeln!(text, "| {name} | {count} |");
        if count == 0 && is_asked {
            missing.push(name.to_string());
        }
    };
    row("requests by programs of the control core", total(told, |family| number(&family["requests"])), true);
    row("priors moved by group advantages", number(&told.run["priors_moved"]), true);
    row(
        "templates whose difficulty was re-estimated",
        total(told, |family| number(&family["re_estimated"])),
        true,
    );
    for (name, words) in ORIGINS {
        let practised = |family: &Value| number(&family["practised_from"][name]);
        row(&format!("tasks practised of a template by {words}"), total(told, practised), true);
    }
    let solved = |family: &Value| family["compositions_solved"].as_array().map_or(0, |all| all.len() as u64);
    row("compositions across families solved", total(told, solved), true);
    let all = || told.run["families"].as_array().into_iter().flatten();
    let first = all().find_map(|family| family["compositions_solved"][0]["task"].as_str());
    if let Some(first) = first {
        let _ = writeln!(text, "\nThe first composition that was solved: `{first}`.");
    }
}

fn families(told: &Told, text: &mut String, missing: &mut Vec<String>) {
    let _ = writeln!(
        text,
        "\n## Families\n\n| family | rungs solved | of | steps | tasks practised | standing |\n|---|---|---|---|---|---|"
    );
    let (mut tops, mut below) = (0, Vec::new());
    for family in told.run["families"].as_array().into_iter().flatten() {
        let name = family["family"].as_str().unwrap_or_default();
        let figure = |key: &str| number(&family[key]);
        let (solved, rungs) = (figure("rungs_solved"), figure("rungs"));
        let standing = family["standing"].as_str().unwrap_or_default();
        let _ = writeln!(
            text,
            "| {name} | {solved} | {rungs} | {} | {} | {standing} |",
            figure("steps"),
            figure("practised")
        );
        tops += usize::from(solved == rungs);
        if solved != rungs {
            below.push(name);
        }
    }
    let _ = write!(text, "\n{tops} of {} families are at the top of their ladders", tops + below.len());
    if below.is_empty() {
        text.push_str(".\n");
    } else {
        let _ = writeln!(text, "; not at the top: {}.", below.join(", "));
        missing.push(format!("the top of {}", below.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn whole() -> Told {
        let from =
            json!({ "composition": 2, "trace": 1, "counterexample": 1, "contradiction": 3, "mutation": 1 });
        let family = |name: &str, solved: u64| {
            json!({
                "family": name, "rungs_solved": solved, "rungs": 5, "steps": 700, "practised": 7, "standing": "top",
                "requests": 4, "re_estimated": 5, "practised_from": from,
                "compositions_solved": [{ "task": "seq(parity{n=2},majority{n=3})", "steps": 90 }],
            })
        };
        Told {
            run: json!({ "steps": 1_400, "priors_moved": 6, "families": [family("parity", 5), family("dyck", 5)] }),
            audit: json!({ "verdict": "unanchored", "kinds": { "episode": 9, "patch": 3, "tool_call": 0 } }),
            replay: "as recorded".to_string(),
        }
    }

    #[test]
    fn a_run_that_uses_everything_is_without_nothing() {
        let (text, missing) = page(&whole());
        assert!(missing.is_empty(), "{missing:?}");
        for said in [
            "| requests by programs of the control core | 8 |",
            "| compositions across families solved | 2 |",
            "2 of 2 families are at the top",
            "| `tool_call` (needs tools, people or a server) | 0 |",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }

    #[test]
    fn whatever_a_run_lacks_is_named() {
        let without = |spoil: fn(&mut Told)| {
            let mut told = whole();
            spoil(&mut told);
            page(&told).1.join("; ")
        };
        type Spoil = fn(&mut Told);
        let spoilt: [(Spoil, &str); 7] = [
            (|told| told.audit["kinds"]["patch"] = json!(0), "entries of kind patch"),
            (|told| told.audit["verdict"] = json!("broken"), "an audit that accepts it (broken)"),
            (|told| told.replay = "unit 3 differs".to_string(), "a replay that ends as recorded"),
            (|told| told.run["priors_moved"] = json!(0), "priors moved by group advantages"),
            (|told| told.run["families"][1]["rungs_solved"] = json!(4), "the top of dyck"),
            (|told| told.audit["kinds"] = json!({}), "entries"),
            (
                |told| {
                    for place in 0..2 {
                        told.run["families"][place]["practised_from"]["trace"] = json!(0);
                    }
                },
                "tasks practised of a template by the trace: rungs that one machine solved",
            ),
        ];
        for (spoil, named) in spoilt {
            assert_eq!(without(spoil), named);
        }
    }
}
