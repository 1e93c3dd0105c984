//! What is learned and earned on every row of the table, with seeds that the commit names: the figures of
//! `docs/results/acting.md`.
//!
//! Six runs of `bem table`: as it is, disguised twice, in worlds that cannot be repeated, with late rewards, and what is earned
//! while learning. Each is kept beside the build, so that an interrupted battery goes on where it was. Two run at a time.

use super::{commit, results};
use crate::{built_bem, output, target};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Mutex;

/// Seeds of every row for every unit of scale.
const SEEDS: u64 = 5;

/// A run of the table: its name here, and its words.
type Part = (&'static str, &'static [&'static str]);

const PARTS: [Part; 6] = [
    ("online", &["--online"]),
    ("plain", &[]),
    ("once", &["--no-replay"]),
    ("fields", &["--scramble", "fields"]),
    ("actions", &["--scramble", "actions"]),
    ("late", &["--delay-rewards", "10"]),
];

/// Runs what was not run before, two at a time, and writes the page.
pub fn acting(scale: u64) -> Result<()> {
    let (bem, commit) = (built_bem()?, commit()?);
    let digits: String = commit.chars().filter(char::is_ascii_hexdigit).take(7).collect();
    let first = 2_000_000 + u64::from_str_radix(&digits, 16)? % 1_000_000;
    let (seeds, first) = ((SEEDS * scale).to_string(), first.to_string());
    let folder = target().join("battery").join(format!("acting-{}-{seeds}", commit.replace(' ', "-")));
    std::fs::create_dir_all(&folder)?;
    let waiting = Mutex::new(PARTS.iter());
    let work = || -> Result<()> {
        loop {
            let part = waiting.lock().map_err(|_| anyhow::anyhow!("a part failed"))?.next();
            let Some((name, words)) = part else { return Ok(()) };
            let page = folder.join(format!("{name}.json"));
            if !page.exists() {
                let basic =
                    ["table", "--json", "--peer-steps", "0", "--seeds", &seeds, "--first-seed", &first];
                std::fs::write(&page, output(&bem, &[&basic[..], words].concat())?)?;
                println!("{name}: done");
            }
        }
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| anyhow::anyhow!("a part failed"))?)
    })?;
    let rows = |name: &str| -> Result<Vec<Value>> {
        let said: Value =
            serde_json::from_str(&std::fs::read_to_string(folder.join(format!("{name}.json")))?)?;
        Ok(said["rows"].as_array().context("a table has rows")?.clone())
    };
    let mut text = format!(
        "# Learning and acting, measured\n\nWritten by `cargo xtask battery acting`, commit {commit}: {seeds} seeds of every row from {first} on, \
         which the commit names.\nA run is solved with 0.99 of the way from random play to the optimum.\n\n| what | found | asked |\n|---|---|---|\n"
    );
    let plain = rows("plain")?;
    let mut is_met = true;
    for (name, words) in
        [("plain", "as it is"), ("fields", "fields disguised"), ("actions", "actions disguised")]
    {
        let found = rows(name)?;
        let (solved, runs) = (sum(&found, "solved"), sum(&found, "runs"));
        writeln!(text, "| `bem table`, {words} | {solved} of {runs} runs solved | all |")?;
        is_met &= solved == runs;
    }
    for (name, words) in [("once", "worlds that cannot be repeated"), ("late", "rewards 10 steps late")] {
        let ratios = ratios(&plain, &rows(name)?);
        let within =
            |most: f64| ratios.iter().filter(|ratio| ratio.is_some_and(|ratio| ratio <= most)).count();
        let mut known: Vec<f64> = ratios.iter().map(|ratio| ratio.unwrap_or(f64::INFINITY)).collect();
        known.sort_unstable_by(f64::total_cmp);
        writeln!(
            text,
            "| {words} | rows within 2 times the steps: {} of {}, within 5 times: {}; median {:.2} | 24; all; 2 |",
            within(2.0),
            ratios.len(),
            within(5.0),
            known[known.len() / 2],
        )?;
        is_met &= known[known.len() / 2] <= 2.0;
    }
    is_met &= write_online(&mut text, &rows("online")?)?;
    std::fs::write(results("acting.md")?, &text)?;
    print!("{text}");
    ensure!(is_met, "not everything that is asked was reached");
    Ok(())
}

fn sum(rows: &[Value], name: &str) -> u64 {
    rows.iter().filter_map(|row| row[name].as_u64()).sum()
}

/// For every row how many times the median steps it took; none where not more than half of the runs were solved.
fn ratios(plain: &[Value], other: &[Value]) -> Vec<Option<f64>> {
    let pairs = plain.iter().zip(other);
    pairs.map(|(plain, other)| Some(other["median"].as_f64()? / plain["median"].as_f64()?.max(1.0))).collect()
}

/// What was earned while learning: the worst run of every row, and what is asked of all of them.
fn write_online(text: &mut String, runs: &[Value]) -> Result<bool> {
    let mut tasks: Vec<&str> = runs.iter().filter_map(|run| run["task"].as_str()).collect();
    tasks.dedup();
    let mut lines = String::new();
    let (mut halves, mut scores, mut exponents, mut shares) = (0, Vec::new(), 0, 0.0f64);
    for task in &tasks {
        let of = |name: &str| -> Vec<f64> {
            let own = runs.iter().filter(|run| run["task"].as_str() == Some(task));
            let mut values: Vec<f64> = own.filter_map(|run| run[name].as_f64()).collect();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        let median = |values: &[f64]| values.get(values.len() / 2).copied();
        let shown = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.3}"));
        let (online, last) = (median(&of("online_score")), of("online_score_last_half"));
        let (exponent, share) = (of("regret_exponent"), of("explored_share_last_half"));
        let least = if task.starts_with("nonstationary") { 0.95 } else { 0.98 };
        halves += usize::from(last.first().is_some_and(|last| least <= *last));
        exponents += usize::from(exponent.last().is_none_or(|exponent| *exponent <= 0.6));
        shares = shares.max(share.last().copied().unwrap_or(0.0));
        scores.extend(online);
        writeln!(
            lines,
            "| {task} | {} | {} | {} | {} |",
            shown(online),
            shown(last.first().copied()),
            shown(exponent.last().copied()),
            shown(share.last().copied())
        )?;
    }
    scores.sort_unstable_by(f64::total_cmp);
    let (count, median) = (tasks.len(), scores[scores.len() / 2]);
    writeln!(
        text,
        "| earned in the last half, worst run of a row | {halves} of {count} rows at least 0.98 (nonstationary_bandit 0.95) | all |"
    )?;
    writeln!(text, "| online score, median over rows | {median:.3} | 0.95 |")?;
    writeln!(
        text,
        "| exponent of regret, worst run of a row | at most 0.6 or not defined in {exponents} of {count} rows | 24 |"
    )?;
    writeln!(text, "| explored in the last half, most of all runs | {:.1} % | 2 % |", 100.0 * shares)?;
    writeln!(
        text,
        "\n| row, learned online | online score, median | last half, least | exponent of regret, largest | explored in the last half, most |\n|---|---|---|---|---|\n{lines}"
    )?;
    Ok(halves == count && 0.95 <= median && 24 <= exponents && shares <= 0.02)
}
