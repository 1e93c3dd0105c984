//! What is learned and earned on every row of the table, with seeds that the commit names: the figures of
//! `docs/results/acting.md`.
//!
//! Eight runs of `bem table`: as it is, disguised twice, in worlds that cannot be repeated, with rewards one, ten and fifty steps
//! late in rows of several steps, and what is earned while learning. Each can be asked for alone (`cargo xtask battery acting
//! late-10`) and is kept beside the build, so that an interrupted battery goes on where it was. Two run at a time. The page is
//! written from what is there: what is missing or was missed stands in it, and the command fails.

use super::kept::{self, Piece};
use super::{commit, results};
use crate::built_bem;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Seeds of every row for every unit of scale.
const SEEDS: u64 = 5;
/// Rows of the table that are learned within twice the steps in worlds that cannot be repeated, at least.
const ROWS_WITHIN: usize = 24;
/// How many times the steps those may take, and how many times all the others.
const TIMES: f64 = 2.0;
const TIMES_MAX: f64 = 5.0;

/// A run of the table: its name here, and its words.
type Part = (&'static str, &'static [&'static str]);

const PARTS: [Part; 8] = [
    ("online", &["--online"]),
    ("plain", &[]),
    ("once", &["--no-replay"]),
    ("fields", &["--scramble", "fields"]),
    ("actions", &["--scramble", "actions"]),
    ("late-1", &["--several-steps", "--delay-rewards", "1"]),
    ("late-10", &["--several-steps", "--delay-rewards", "10"]),
    ("late-50", &["--several-steps", "--delay-rewards", "50"]),
];

/// Runs every part.
pub fn acting(scale: u64) -> Result<()> {
    measure(scale, &[], None)
}

/// `cargo xtask battery acting [PART...] [--scale N] [--of COMMIT]`; with a commit the page is written from what was kept of it.
pub fn with_words(words: &[&str]) -> Result<()> {
    let (mut scale, mut names, mut of) = (1, Vec::new(), None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--scale" => {
                let value = words.next().context("--scale needs a number")?;
                scale = value.parse().with_context(|| format!("--scale {value}: not a whole number"))?;
            }
            "--of" => of = Some(*words.next().context("--of needs a commit")?),
            name if PARTS.iter().any(|(known, _)| *known == name) => names.push(name),
            other => {
                let known: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
                bail!("{other:?} is no part of this battery; they are {}", known.join(", "));
            }
        }
    }
    measure(scale, &names, of)
}

/// Runs the parts of these names that were not run before, or all of them, two at a time, and writes the page. Of an earlier commit
/// nothing is run: its page is written from what is there.
fn measure(scale: u64, names: &[&str], of: Option<&str>) -> Result<()> {
    let commit = of.map_or_else(commit, |commit| Ok(commit.to_string()))?;
    let digits: String = commit.chars().filter(char::is_ascii_hexdigit).take(7).collect();
    let first = 2_000_000 + u64::from_str_radix(&digits, 16)? % 1_000_000;
    let (seeds, first) = ((SEEDS * scale).to_string(), first.to_string());
    let folder = folder(&commit, &seeds, of.is_some())?;
    let mut failed = match of {
        Some(_) => Vec::new(),
        None => run_parts(&built_bem()?, &folder, names, (&seeds, &first)),
    };
    let found = kept_in(&folder)?;
    let (mut text, mut missed) = page_of(&found)?;
    missed.append(&mut failed);
    let missing = PARTS.iter().map(|(name, _)| *name).filter(|name| !found.contains_key(name));
    let missing: Vec<&str> = missing.collect();
    if names.is_empty() && !missing.is_empty() {
        missed.push(format!("not run: {}", missing.join(", ")));
    }
    let head = format!(
        "# Learning and acting, measured\n\nWritten by `cargo xtask battery acting`, commit {commit}: {seeds} seeds of every row from {first} on, \
         which the commit names.\nA run is solved with 0.99 of the way from random play to the optimum.\n\n"
    );
    text.insert_str(0, &head);
    if !missed.is_empty() {
        let lines: Vec<String> = missed.iter().map(|line| format!("- {line}\n")).collect();
        write!(text, "\n## Missed\n\n{}", lines.concat())?;
    }
    std::fs::write(results("acting.md")?, &text)?;
    print!("{text}");
    if missed.is_empty() { Ok(()) } else { bail!("not everything that is asked was reached") }
}

/// Runs the parts of these names that are not kept yet, or all of them, two at a time; those that failed, and why.
fn run_parts(bem: &str, folder: &Path, names: &[&str], (seeds, first): (&str, &str)) -> Vec<String> {
    let asked = PARTS.iter().filter(|(name, _)| names.is_empty() || names.contains(name));
    let basic = ["table", "--json", "--peer-steps", "0", "--seeds", seeds, "--first-seed", first];
    let pieces: Vec<Piece> =
        asked.map(|(name, words)| Piece::new(name, &[&basic[..], words].concat())).collect();
    kept::run_pieces(bem, folder, &pieces)
}

/// The rows of every part that was run.
fn kept_in(folder: &Path) -> Result<BTreeMap<&'static str, Vec<Value>>> {
    let mut found = BTreeMap::new();
    for (name, _) in PARTS {
        if let Some(said) = kept::kept(folder, name)? {
            found.insert(name, said["rows"].as_array().context("a table has rows")?.clone());
        }
    }
    Ok(found)
}

/// Where the parts are kept; of an earlier commit nothing is run, so that it does not matter what is not committed.
fn folder(commit: &str, seeds: &str, is_earlier: bool) -> Result<PathBuf> {
    let changed = if is_earlier { None } else { kept::changes()? };
    let sum = changed.map_or(String::new(), |sum| format!("-{sum}"));
    kept::folder(&format!("acting-{}{sum}-{seeds}", commit.replace(' ', "-")))
}

/// Everything that was measured as a page, and what was missed.
fn page_of(found: &BTreeMap<&str, Vec<Value>>) -> Result<(String, Vec<String>)> {
    let (mut text, mut missed) = ("| what | found | asked |\n|---|---|---|\n".to_string(), Vec::new());
    let mut tables = String::new();
    for (name, words) in
        [("plain", "as it is"), ("fields", "fields disguised"), ("actions", "actions disguised")]
    {
        let Some(rows) = found.get(name) else {
            writeln!(text, "| `bem table`, {words} | not run | all |")?;
            continue;
        };
        let (solved, runs) = (sum(rows, "solved"), sum(rows, "runs"));
        writeln!(text, "| `bem table`, {words} | {solved} of {runs} runs solved | all |")?;
        for row in rows.iter().filter(|row| row["solved"] != row["runs"]) {
            let (solved, runs) = (&row["solved"], &row["runs"]);
            missed.push(format!("{words}: {} is solved in {solved} of {runs} runs", task(row)));
        }
    }
    for (name, words, asked) in [
        ("once", "worlds that cannot be repeated", Asked::Most),
        ("late-1", "rewards 1 step late, rows of several steps", Asked::All),
        ("late-10", "rewards 10 steps late, rows of several steps", Asked::All),
        ("late-50", "rewards 50 steps late, rows of several steps", Asked::All),
    ] {
        match found.get("plain").zip(found.get(name)) {
            Some((plain, rows)) => missed.extend(compare(&mut text, &mut tables, plain, rows, words, asked)?),
            None => writeln!(text, "| {words} | not run, or nothing to compare with | {} |", asked.words())?,
        }
    }
    match found.get("online") {
        Some(runs) => missed.extend(write_online(&mut text, &mut tables, runs)?),
        None => writeln!(text, "| earned while learning | not run | |")?,
    }
    text.push_str(&tables);
    Ok((text, missed))
}

/// What is asked of the rows of a table beside the plain one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Most of them within twice the steps, and all within five times.
    Most,
    /// All of them within twice the steps.
    All,
}

impl Asked {
    fn words(self) -> String {
        match self {
            Asked::Most => {
                format!("{ROWS_WITHIN} within {TIMES} times, all within {TIMES_MAX}; median {TIMES}")
            }
            Asked::All => format!("all within {TIMES} times"),
        }
    }
}

fn task(row: &Value) -> &str {
    row["task"].as_str().unwrap_or("?")
}

fn sum(rows: &[Value], name: &str) -> u64 {
    rows.iter().filter_map(|row| row[name].as_u64()).sum()
}

/// For every row how many times the median steps it took; none where not more than half of the runs were solved.
fn ratios<'a>(plain: &[Value], other: &'a [Value]) -> Vec<(&'a str, Option<f64>)> {
    let ratio = |row: &Value| {
        let before = plain.iter().find(|before| task(before) == task(row))?;
        Some(row["median"].as_f64()? / before["median"].as_f64()?.max(1.0))
    };
    other.iter().map(|row| (task(row), ratio(row))).collect()
}

/// Writes how many times the steps of the plain table the rows of another took; what was missed, by the names of rows.
fn compare(
    text: &mut String,
    tables: &mut String,
    plain: &[Value],
    rows: &[Value],
    words: &str,
    asked: Asked,
) -> Result<Vec<String>> {
    let ratios = ratios(plain, rows);
    let beyond = |most: f64| {
        let is_beyond = move |(_, ratio): &&(&str, Option<f64>)| ratio.is_none_or(|ratio| most < ratio);
        ratios.iter().filter(is_beyond).collect::<Vec<_>>()
    };
    let shown = |ratio: &Option<f64>| ratio.map_or("not solved".to_string(), |ratio| format!("{ratio:.2}"));
    let mut sorted: Vec<f64> = ratios.iter().map(|(_, ratio)| ratio.unwrap_or(f64::INFINITY)).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY);
    let (slow, lost, count) = (beyond(TIMES), beyond(TIMES_MAX), ratios.len());
    writeln!(
        text,
        "| {words} | rows within {TIMES} times the steps: {} of {count}, within {TIMES_MAX} times: {}; median {median:.2}; {} of {} runs solved | {} |",
        count - slow.len(),
        count - lost.len(),
        sum(rows, "solved"),
        sum(rows, "runs"),
        asked.words(),
    )?;
    writeln!(tables, "\n| row, {words} | times the steps |\n|---|---|")?;
    for (task, ratio) in &ratios {
        writeln!(tables, "| {task} | {} |", shown(ratio))?;
    }
    let few = count - slow.len() < ROWS_WITHIN.min(count);
    let missing = match asked {
        Asked::All => slow,
        Asked::Most if few || TIMES < median => slow,
        Asked::Most => lost,
    };
    let said = |(task, ratio): &&(&str, Option<f64>)| match ratio {
        Some(ratio) => format!("{words}: {task} takes {ratio:.2} times the steps"),
        None => format!("{words}: {task} is not solved in more than half of the runs"),
    };
    Ok(missing.iter().map(said).collect())
}

/// What was earned while learning: the worst run of every row, and what is asked of all of them.
fn write_online(text: &mut String, tables: &mut String, runs: &[Value]) -> Result<Vec<String>> {
    let mut tasks: Vec<&str> = runs.iter().map(task).collect();
    tasks.dedup();
    let (mut lines, mut missed) = (String::new(), Vec::new());
    let (mut halves, mut scores, mut steep, mut shares) = (0, Vec::new(), Vec::new(), 0.0f64);
    for task in &tasks {
        let of = |name: &str| -> Vec<f64> {
            let own = runs.iter().filter(|run| run["task"].as_str() == Some(task));
            let mut values: Vec<f64> = own.filter_map(|run| run[name].as_f64()).collect();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        let shown = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.3}"));
        let (online, last) = (of("online_score"), of("online_score_last_half"));
        let (online, last) = (online.get(online.len() / 2).copied(), last.first().copied());
        let (exponent, share) = (of("regret_exponent"), of("explored_share_last_half"));
        let (exponent, share) = (exponent.last().copied(), share.last().copied());
        let least = if task.starts_with("nonstationary") { 0.95 } else { 0.98 };
        match last {
            Some(last) if least <= last => halves += 1,
            _ => missed
                .push(format!("online: {task} earns {} in the last half, {least} is asked", shown(last))),
        }
        if let Some(share) = share.filter(|share| 0.02 < *share) {
            missed.push(format!(
                "online: {task} explores {:.1} % in the last half, 2 % is asked",
                100.0 * share
            ));
        }
        steep.extend(exponent.filter(|exponent| 0.6 < *exponent).map(|exponent| (*task, exponent)));
        shares = shares.max(share.unwrap_or(0.0));
        scores.extend(online);
        let figures = [online, last, exponent, share].map(shown);
        writeln!(lines, "| {task} | {} |", figures.join(" | "))?;
    }
    scores.sort_unstable_by(f64::total_cmp);
    let (count, median) = (tasks.len(), scores.get(scores.len() / 2).copied().unwrap_or(0.0));
    let gentle = count - steep.len();
    write!(
        text,
        "| earned in the last half, worst run of a row | {halves} of {count} rows at least 0.98 (nonstationary_bandit 0.95) | all |\n\
         | online score, median over rows | {median:.3} | 0.95 |\n\
         | exponent of regret, worst run of a row | at most 0.6 or not defined in {gentle} of {count} rows | 24 |\n\
         | explored in the last half, most of all runs | {:.1} % | 2 % |\n",
        100.0 * shares
    )?;
    writeln!(
        tables,
        "\n| row, learned online | online score, median | last half, least | exponent of regret, largest | explored in the last half, most |\n|---|---|---|---|---|\n{}",
        lines.trim_end()
    )?;
    if median < 0.95 {
        missed.push(format!("online: the median score over rows is {median:.3}, 0.95 is asked"));
    }
    if gentle < ROWS_WITHIN {
        let steep: Vec<String> =
            steep.iter().map(|(task, exponent)| format!("{task} ({exponent:.2})")).collect();
        missed.push(format!("online: the exponent of regret is beyond 0.6 in {}", steep.join(", ")));
    }
    Ok(missed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows(medians: &[(&str, Option<u64>)]) -> Vec<Value> {
        let row = |(task, median): &(&str, Option<u64>)| json!({ "task": task, "median": median, "solved": 4 + u64::from(median.is_some()), "runs": 5 });
        medians.iter().map(row).collect()
    }

    #[test]
    fn rows_that_miss_are_named_and_what_was_not_run_is_said() {
        let plain = rows(&[("parity n=32", Some(100)), ("dyck", Some(1_000)), ("copy", Some(10))]);
        // Rows are compared by name: late rewards are tried in rows of several steps alone.
        let late = rows(&[("dyck", Some(2_000)), ("copy", Some(21))]);
        let once = rows(&[("parity n=32", Some(150)), ("dyck", Some(6_000)), ("copy", None)]);
        let found = BTreeMap::from([("plain", plain), ("late-10", late), ("once", once)]);
        let (page, missed) = page_of(&found).expect("it is written");
        let wanted = [
            "worlds that cannot be repeated: dyck takes 6.00 times the steps",
            "worlds that cannot be repeated: copy is not solved in more than half of the runs",
            "rewards 10 steps late, rows of several steps: copy takes 2.10 times the steps",
        ];
        assert_eq!(missed, wanted);
        for line in [
            "fields disguised | not run",
            "rewards 1 step late",
            "| dyck | 2.00 |",
            "earned while learning | not run",
        ] {
            assert!(page.contains(line), "{line} is not in {page}");
        }
    }

    #[test]
    fn a_disguised_row_that_is_not_always_solved_is_named() {
        let found = BTreeMap::from([("fields", rows(&[("parity", Some(1)), ("add", None)]))]);
        let (_, missed) = page_of(&found).expect("it is written");
        assert_eq!(missed, ["fields disguised: add is solved in 4 of 5 runs"]);
    }

    #[test]
    fn what_is_earned_online_is_judged_row_by_row() {
        let run = |task: &str, last: f64, share: f64| {
            json!({ "task": task, "online_score": 0.96, "online_score_last_half": last, "regret_exponent": null,
                "explored_share_last_half": share })
        };
        let runs: Vec<Value> = (0..27)
            .map(|row| {
                run(
                    &format!("row {row}"),
                    if row == 3 { 0.97 } else { 0.99 },
                    if row == 5 { 0.03 } else { 0.01 },
                )
            })
            .collect();
        let (_, missed) = page_of(&BTreeMap::from([("online", runs)])).expect("it is written");
        let wanted = [
            "online: row 3 earns 0.970 in the last half, 0.98 is asked",
            "online: row 5 explores 3.0 % in the last half, 2 % is asked",
        ];
        assert_eq!(missed, wanted);
    }
}
