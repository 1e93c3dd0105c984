//! Worlds drawn from the commit and a published salt, beside peers: `bem table --generated` plays them and hands out aggregates,
//! which become `docs/results/worlds.md`.
//!
//! Whoever changes the learner cannot know the worlds before committing: the commit, and what differs from it, name the seeds.
//! One run plays one kind, two runs at a time; a world's seed depends on its kind and its number, so that this changes no world.
//! Each run is kept beside the build, and an interrupted battery goes on where it was. With `--ablate` the page says what every
//! switched part was worth. A run of some kinds only, one that is served and one that asks for JSON print what they found and
//! leave the page as it is.

use super::kept::{self, Piece};
use super::results;
use crate::{built_bem, output, run};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Worlds of each kind for every unit of scale.
const WORLDS: u64 = 12;
/// The kinds, in the order of the page, and the worlds that change, which are none of them and are played where parts are
/// switched off.
const KINDS: [&str; 5] = ["consequence", "difference", "table", "chain", "noise"];
const CHANGING: &str = "changing";
/// Steps of a player in a world, if nothing else is asked for: those of `bem table`.
const STEPS: &str = "200000";
/// The mean over kinds of the learner's medians at least.
const MEAN_MIN: f64 = 0.85;
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
    // It is no release that a run with changes speaks for.
    let sources = kept::changes()?.map_or(commit.clone(), |sum| format!("{commit}+{sum}"));
    let count = count.to_string();
    let words = ["table", "--generated", "--worlds", &count, "--salt", salt, "--sources", &sources];
    let words = [&words[..], rest].concat();
    let bem = built_bem()?;
    if ["--json", "--served", "--families"].iter().any(|word| rest.contains(word)) {
        return run(&bem, &words);
    }
    let is_ablated = rest.contains(&"--ablate");
    let steps = rest.iter().skip_while(|word| **word != "--budget").nth(1).copied().unwrap_or(STEPS);
    let ablate = if is_ablated { "ablate" } else { "whole" };
    let name = format!("worlds-{}-{count}-{}-{ablate}-{steps}", sources.replace('+', "-"), in_a_name(salt));
    let folder = kept::folder(&name)?;
    let changing = is_ablated.then_some(CHANGING);
    let pieces = KINDS.into_iter().chain(changing);
    let pieces: Vec<Piece> = pieces
        .map(|kind| Piece::new(kind, &[&words[..], &["--families", kind, "--json"]].concat()))
        .collect();
    let failed = kept::run_pieces(&bem, &folder, &pieces);
    let found = merged(&folder, is_ablated, failed)?;
    let (page, path) = (page_of(&found)?, results("worlds.md")?);
    std::fs::write(&path, &page).with_context(|| path.display().to_string())?;
    println!("{page}\n{}", path.display());
    let missed = texts(&found["missed"]);
    if missed.is_empty() { Ok(()) } else { bail!("missed: {}", missed.join("; ")) }
}

/// A word as a part of the name of a folder: what is neither letter nor digit is spelled out, so that no two words have one name.
fn in_a_name(word: &str) -> String {
    let spelled = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("_{byte:02x}"),
    };
    word.bytes().map(spelled).collect()
}

/// All kinds that were played as one table, as if one run had played them; kinds that are missing are named among what was missed.
fn merged(folder: &Path, is_ablated: bool, failed: Vec<String>) -> Result<Value> {
    let (mut kinds, mut medians, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    let (mut missed, mut missing, mut first) = (failed, Vec::new(), None);
    for name in KINDS {
        let Some(table) = kept::kept(folder, name)? else {
            missing.push(name);
            continue;
        };
        kinds.extend(table["kinds"].as_array().context("a table without kinds")?.iter().cloned());
        medians.push(table["mean_of_medians"].as_f64().context("a table without its mean")?);
        shares.push(table["least_share_of_best_peer"].as_f64().context("a table without its share")?);
        // The mean is judged over all kinds, and not over this one alone.
        let own = format!("{name}: ");
        missed.extend(
            texts(&table["missed"]).into_iter().filter(|line| line.starts_with(&own)).map(str::to_string),
        );
        first.get_or_insert(table);
    }
    let first = first.with_context(|| format!("no kind was played: {}", missed.join("; ")))?;
    ensure!(kinds.len() == medians.len(), "a run that plays one kind has played another number of them");
    let changing = match is_ablated {
        true => kept::kept(folder, CHANGING)?
            .map(|table| table["changing"].clone())
            .filter(|kind| !kind.is_null()),
        false => None,
    };
    if is_ablated && changing.is_none() {
        missing.push(CHANGING);
    }
    let mean = medians.iter().sum::<f64>() / medians.len() as f64;
    if mean < MEAN_MIN {
        missed.push(format!("the mean over kinds is {mean:.3}, {MEAN_MIN} is asked"));
    }
    if !missing.is_empty() {
        missed.push(format!("not played: {}", missing.join(", ")));
    }
    Ok(
        json!({ "sources": first["sources"], "salt": first["salt"], "worlds": first["worlds"], "steps": first["steps"],
        "kinds": kinds, "changing": changing, "mean_of_medians": mean,
        "least_share_of_best_peer": shares.into_iter().fold(f64::MAX, f64::min), "missed": missed }),
    )
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
    use crate::root;

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

    #[test]
    fn kinds_that_were_played_apart_are_one_table_and_those_that_are_missing_are_named() {
        let folder = kept::folder(&format!("worlds-test-{}", std::process::id())).expect("a folder");
        let write = |name: &str, median: f64, share: f64, missed: &[&str]| {
            let kinds: Vec<Value> = if name == CHANGING {
                Vec::new()
            } else {
                vec![
                    json!({ "kind": name, "about": "it", "players": [player("bem", median), player("psrl", 0.9)] }),
                ]
            };
            let changing = (name == CHANGING)
                .then(|| json!({ "kind": name, "about": "it changes", "players": [player("bem", 0.9)] }));
            let table = json!({ "sources": "abc", "salt": "1", "worlds": 2, "steps": 1_000, "kinds": kinds,
                "changing": changing, "mean_of_medians": median, "least_share_of_best_peer": share, "missed": missed });
            std::fs::write(folder.join(format!("{name}.json")), table.to_string()).expect("it is written");
        };
        assert!(merged(&folder, false, vec!["chain: it ended".into()]).is_err());
        let low = "noise: 0.500 is 0.600 of the best peer's 0.833, 0.97 is asked";
        write("noise", 0.5, 0.6, &[low, "the mean over kinds is 0.500, 0.85 is asked"]);
        write("chain", 0.9, 1.1, &[]);
        let found = merged(&folder, true, vec!["table: it ended".into()]).expect("a table");
        let names: Vec<&str> = found["kinds"]
            .as_array()
            .expect("kinds")
            .iter()
            .filter_map(|kind| kind["kind"].as_str())
            .collect();
        assert_eq!(names, ["chain", "noise"]);
        assert_eq!(
            (found["mean_of_medians"].as_f64(), found["least_share_of_best_peer"].as_f64()),
            (Some(0.7), Some(0.6))
        );
        let wanted = [
            "table: it ended",
            low,
            "the mean over kinds is 0.700, 0.85 is asked",
            "not played: consequence, difference, table, changing",
        ];
        assert_eq!(texts(&found["missed"]), wanted);
        assert!(page_of(&found).expect("a page").contains("Missed: not played: consequence"));
        KINDS.iter().chain(&[CHANGING]).for_each(|name| write(name, 0.9, 0.99, &[]));
        let whole = merged(&folder, true, Vec::new()).expect("a table");
        assert_eq!((texts(&whole["missed"]).len(), whole["changing"]["kind"].as_str()), (0, Some(CHANGING)));
        assert!(merged(&folder, false, Vec::new()).expect("a table")["changing"].is_null());
        std::fs::remove_dir_all(folder).expect("it is there");
    }

    #[test]
    fn the_kinds_are_those_of_the_sources_and_salts_have_names_of_their_own() {
        let source = |path: &str| std::fs::read_to_string(root().join(path)).expect("a source");
        let text = source("crates/bem-games/src/generated/mod.rs");
        let names = text.split("const fn name(").nth(1).and_then(|text| text.split("const fn about(").next());
        let names: Vec<&str> = names.expect("names").split('"').skip(1).step_by(2).collect();
        assert_eq!(names, KINDS);
        assert!(
            source("crates/bem-tables/src/generated/changing.rs")
                .contains(&format!("NAME: &str = {CHANGING:?}"))
        );
        assert_eq!([in_a_name("1"), in_a_name("a/b"), in_a_name("a_2fb")], ["1", "a_2fb", "a_5f2fb"]);
    }
}
