//! Worlds drawn from the commit and a published salt, beside peers: `bem table --generated` plays them and hands out aggregates,
//! which become `docs/results/worlds.md`.
//!
//! Whoever changes the learner cannot know the worlds before committing: the commit, and what differs from it, name the seeds.
//! With `--ablate` the page says what every switched part was worth. A run of some kinds only, one that is served and one that
//! asks for JSON print what they found and leave the page as it is.

use super::results;
use crate::{built_bem, output, root, run};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

/// Worlds of each kind for every unit of scale.
const WORLDS: u64 = 12;
/// How the table calls the learner, and the learner without one of its parts.
const LEARNER: &str = "bem";
const WITHOUT: &str = "bem without ";

/// Draws twelve worlds of each kind for every unit of scale.
pub fn worlds(scale: u64) -> Result<()> {
    play(WORLDS * scale, "1", &[])
}

/// `cargo xtask battery worlds [--count N] [--salt S]`, and further words for `bem table`.
pub fn with_words(words: &[&str]) -> Result<()> {
    let (mut count, mut salt, mut rest) = (WORLDS, "1", Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--count" => {
                let value = words.next().context("--count needs a number")?;
                count = value.parse().with_context(|| format!("--count {value}: not a whole number"))?;
            }
            "--salt" => salt = words.next().context("--salt needs a word")?,
            "--json" | "--ablate" | "--served" => rest.push(*word),
            "--budget" | "--families" => rest.extend([*word, words.next().context("a value is missing")?]),
            other => bail!(
                "{other:?} is not known here; allowed are --count, --salt, --budget, --families, --ablate, --served and --json"
            ),
        }
    }
    play(count, salt, &rest)
}

fn play(count: u64, salt: &str, rest: &[&str]) -> Result<()> {
    let commit = output("git", &["rev-parse", "HEAD"])?.trim().to_string();
    let changed = output("git", &["diff", "HEAD", "--", "crates"])?;
    // What is not committed is told apart by its length and a sum: it is no release that such a run speaks for.
    let sum = changed.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let sources = if changed.is_empty() { commit } else { format!("{commit}+{sum:x}") };
    let count = count.to_string();
    let words = ["table", "--generated", "--worlds", &count, "--salt", salt, "--sources", &sources];
    let words = [&words[..], rest].concat();
    if ["--json", "--served", "--families"].iter().any(|word| rest.contains(word)) {
        return run(&built_bem()?, &words);
    }
    let found = measured(&[&words[..], &["--json"]].concat())?;
    let (page, path) = (page_of(&found)?, results("worlds.md")?);
    std::fs::write(&path, &page).with_context(|| path.display().to_string())?;
    println!("{page}\n{}", path.display());
    let missed = texts(&found["missed"]);
    if missed.is_empty() { Ok(()) } else { bail!("missed: {}", missed.join("; ")) }
}

/// What the table says, which is also an answer where something was missed.
pub(super) fn measured(words: &[&str]) -> Result<Value> {
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

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// Those who played one kind.
fn players(kind: &Value) -> Result<&Vec<Value>> {
    kind["players"].as_array().with_context(|| format!("a kind without players: {kind}"))
}

fn name_of(player: &Value) -> &str {
    player["player"].as_str().unwrap_or("?")
}

fn figure(value: &Value) -> String {
    value.as_f64().map_or("-".to_string(), |value| format!("{value:.3}"))
}

/// The page: where the worlds come from, who earned what by kind, what was asked for, and what the switched parts were worth.
fn page_of(found: &Value) -> Result<String> {
    let kinds = found["kinds"].as_array().context("a table without kinds")?;
    let said = |key: &str| found[key].as_str().map_or_else(|| found[key].to_string(), str::to_string);
    let mut page = format!(
        "# Drawn worlds, measured\n\nWritten by `cargo xtask battery worlds`: {} worlds of each kind, {} steps each; seeds from \
         sources {} and salt {}.\nOnline scores: 0 is random play, 1 the optimum, over all steps of learning. Steps to 0.95 are \
         those from which on the score over all steps so far stays\nthere, in the median of all worlds; in brackets the worlds in which \
         it never does, which count as more than any other. Single worlds\nare not shown.\n\n",
        said("worlds"),
        said("steps"),
        said("sources"),
        said("salt")
    );
    page.push_str(
        "| kind | player | median online score | mean (95 %) | median, last half | steps to 0.95 (never) | CPU s a world |\n\
         |---|---|---|---|---|---|---|\n",
    );
    let changing = Some(&found["changing"]).filter(|kind| !kind.is_null());
    for kind in kinds.iter().chain(changing) {
        for player in players(kind)?.iter().filter(|player| !name_of(player).starts_with(WITHOUT)) {
            write_player(&mut page, kind, player)?;
        }
    }
    page.push('\n');
    for kind in kinds.iter().chain(changing) {
        let text = |key: &str| kind[key].as_str().unwrap_or("?");
        writeln!(page, "- {}: {}", text("kind"), text("about"))?;
    }
    let (mean, least) = (figure(&found["mean_of_medians"]), figure(&found["least_share_of_best_peer"]));
    writeln!(
        page,
        "\nOver the {} kinds the mean of the learner's medians is {mean} (0.85 is asked), and its least share of the best peer's \
         median {least} (0.97 is asked).",
        kinds.len()
    )?;
    texts(&found["missed"]).iter().try_for_each(|missed| writeln!(page, "Missed: {missed}."))?;
    if let Some(changing) = changing {
        page.push_str(&worth_of(&kinds.iter().chain([changing]).collect::<Vec<_>>())?);
    }
    Ok(page)
}

fn write_player(page: &mut String, kind: &Value, player: &Value) -> Result<()> {
    let half = player["half_width95"].as_f64().map_or(String::new(), |half| format!(" ± {half:.3}"));
    let (median, mean) = (figure(&player["median"]), figure(&player["mean"]));
    let (last, seconds) =
        (figure(&player["median_last_half"]), player["cpu_seconds"].as_f64().unwrap_or(0.0));
    let (kind, name) = (kind["kind"].as_str().unwrap_or("?"), name_of(player));
    let steady = player["median_steps_to_95"].as_u64().map_or("never".to_string(), |steps| steps.to_string());
    let never = player["never_95"].as_u64().unwrap_or(0);
    writeln!(
        page,
        "| {kind} | {name} | {median} | {mean}{half} | {last} | {steady} ({never}) | {seconds:.2} |"
    )?;
    Ok(())
}

/// What every switched part was worth: how much less the mean online score is without it, kind by kind.
fn worth_of(kinds: &[&Value]) -> Result<String> {
    let names: Vec<&str> = kinds.iter().map(|kind| kind["kind"].as_str().unwrap_or("?")).collect();
    let mut text = format!(
        "\n## What each part was worth\n\nThe mean online score less that without the part, in the same worlds; `{}` is no kind of \
         the figures above, and only alarms are switched off in it.\n\n| without | {} |\n|---|{}\n",
        names.last().unwrap_or(&"?"),
        names.join(" | "),
        "---|".repeat(names.len())
    );
    let mut switched: Vec<&str> = Vec::new();
    for player in players(kinds[0])? {
        switched.extend(name_of(player).strip_prefix(WITHOUT));
    }
    for part in switched {
        let worth = |kind: &&Value| -> Result<String> {
            let mean = |wanted: &str| -> Result<Option<f64>> {
                let own = players(kind)?.iter().find(|player| name_of(player) == wanted);
                Ok(own.and_then(|player| player["mean"].as_f64()))
            };
            let (whole, less) = (mean(LEARNER)?, mean(&format!("{WITHOUT}{part}"))?);
            Ok(whole.zip(less).map_or("-".to_string(), |(whole, less)| format!("{:+.3}", whole - less)))
        };
        let cells = kinds.iter().map(worth).collect::<Result<Vec<_>>>()?;
        writeln!(text, "| {part} | {} |", cells.join(" | "))?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn player(name: &str, mean: f64) -> Value {
        json!({ "player": name, "median": mean, "mean": mean, "half_width95": 0.01, "median_last_half": null,
            "median_steps_to_95": 3_000, "never_95": 1, "cpu_seconds": 1.5 })
    }

    #[test]
    fn the_page_has_a_table_by_kind_and_one_of_what_each_part_was_worth() {
        let mut found = json!({
            "sources": "abc", "salt": "1", "worlds": 2, "steps": 1_000, "mean_of_medians": 0.9,
            "least_share_of_best_peer": 0.95, "missed": ["chain: less than asked"], "changing": null,
            "kinds": [{ "kind": "chain", "about": "a chain", "players":
                [player("bem", 0.9), player("bem without alarms", 0.9), player("psrl", 0.95)] }],
        });
        let plain = page_of(&found).expect("a page");
        assert!(plain.contains("| chain | psrl | 0.950 | 0.950 ± 0.010 | - | 3000 (1) | 1.50 |"), "{plain}");
        assert!(plain.contains("sources abc and salt 1") && plain.contains("Missed: chain: less"), "{plain}");
        assert!(!plain.contains("without"), "{plain}");
        found["changing"] = json!({ "kind": "changing", "about": "it changes", "players":
            [player("bem", 0.9), player("bem without alarms", 0.6)] });
        let ablated = page_of(&found).expect("a page");
        assert!(ablated.contains("| without | chain | changing |\n|---|---|---|\n"), "{ablated}");
        assert!(ablated.contains("| alarms | +0.000 | +0.300 |"), "{ablated}");
    }
}
