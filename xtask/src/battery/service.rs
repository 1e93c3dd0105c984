//! The figures of the decision service, written into `docs/results/service.md`: load, served worlds, a million decisions.
//!
//! One trial is one pair of decision and reward over HTTP; of the served worlds, one world. Clauses: VM-13, LOG-1, LOG-5.

use crate::{output, root};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;

/// Pairs a second at least, and milliseconds that one request in a hundred takes at most.
const PAIRS_MIN: f64 = 5_000.0;
const P99_MAX_MS: f64 = 5.0;
/// What a served world earns at least, of what the learner earns that plays it itself.
const SHARE_MIN: f64 = 0.95;
/// Processor time of the last tenth by that of the second, and memory at the end by that in the middle, at most.
const RATIO_MAX: f64 = 1.1;
const GROWTH_MAX: f64 = 1.1;

/// Runs all three, with a hundred thousand steps of each world and a million decisions for every unit of scale.
pub fn service(scale: u64) -> Result<()> {
    let commit = output("git", &["rev-parse", "HEAD"])?.trim().to_string();
    let (steps, decisions) = ((100_000 * scale).to_string(), (1_000_000 * scale).to_string());
    let worlds = ["table", "--generated", "--served", "--http", "--worlds", "2", "--budget", &steps];
    let worlds = [&worlds[..], &["--sources", &commit, "--salt", "service"]].concat();
    let (serve, worlds) = (measured(&["bench", "serve"], &[])?, measured(&worlds, &[])?);
    let million = measured(&["bench", "serve_long"], &[format!("BEM_SERVE_DECISIONS={decisions}")])?;
    let broken = not_held(&serve, &worlds, &million)?;
    let held = broken.iter().map(|words| format!("**Not held:** {words}.\n")).collect();
    let text = [head(&commit, scale), held, load(&serve)?, served(&worlds)?, long(&million)?];
    let path = root().join("docs/results/service.md");
    std::fs::write(&path, text.join("\n")).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    if broken.is_empty() { Ok(()) } else { bail!("{}", broken.join("\n")) }
}

/// What is promised and was not measured.
fn not_held(serve: &Value, worlds: &Value, million: &Value) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let mut require = |holds: bool, words: String| {
        if !holds {
            broken.push(words);
        }
    };
    let (pairs, slowest) = (number(serve, "pairs_per_second")?, number(serve, "p99_ms")?);
    require(PAIRS_MIN <= pairs, format!("{pairs:.0} pairs a second, at least {PAIRS_MIN} are asked for"));
    require(slowest < P99_MAX_MS, format!("p99 {slowest:.2} ms, below {P99_MAX_MS} is asked for"));
    let share = number(worlds, "served_share")?;
    require(SHARE_MIN <= share, format!("served worlds earn {share:.3}, at least {SHARE_MIN} is asked for"));
    let ratio = number(million, "acting_ratio")?;
    require(
        ratio <= RATIO_MAX,
        format!("the last tenth costs {ratio:.2} of the second, at most {RATIO_MAX}"),
    );
    let parts = million["parts"].as_array().context("tenths")?;
    let resident = |place: usize| number(&parts[place], "resident_kb");
    let grown = resident(parts.len() - 1)? / resident(parts.len() / 2)?;
    require(
        grown <= GROWTH_MAX,
        format!("memory grows to {grown:.2} in the second half, at most {GROWTH_MAX}"),
    );
    Ok(broken)
}

/// What a command of the program says in JSON; that the answer is "no" is an answer too.
fn measured(words: &[&str], set: &[String]) -> Result<Value> {
    let program = crate::target().join("release/bem");
    let line = format!("env {} {} {} --json || true", set.join(" "), program.display(), words.join(" "));
    let said = output("sh", &["-c", &line])?;
    serde_json::from_str(&said).with_context(|| format!("bem {}", words.join(" ")))
}

fn number(value: &Value, key: &str) -> Result<f64> {
    value[key].as_f64().with_context(|| format!("{key} is missing"))
}

fn head(commit: &str, scale: u64) -> String {
    format!(
        "# The decision service, measured\n\nWritten by `cargo xtask battery service --scale {scale}` on commit {}. Times depend on what else the \
        machine does; counts for each pair do not.\n",
        &commit[..12.min(commit.len())]
    )
}

fn load(found: &Value) -> Result<String> {
    let mut text = String::from("## Load: `bem bench serve`\n\n| figure | value |\n|---|---|\n");
    let of = |key: &str| number(found, key);
    writeln!(text, "| machine | {} |", found["machine"].as_str().unwrap_or_default())?;
    writeln!(text, "| connections | {} |", found["clients"])?;
    writeln!(
        text,
        "| pairs a second | {:.0}, p50 {:.2} ms, p99 {:.2} ms a request |",
        of("pairs_per_second")?,
        of("p50_ms")?,
        of("p99_ms")?
    )?;
    writeln!(
        text,
        "| an empty handler in the same run | {:.0} requests a second, p50 {:.2} ms, p99 {:.2} ms |",
        of("empty_per_second")?,
        of("empty_p50_ms")?,
        of("empty_p99_ms")?
    )?;
    writeln!(text, "| syncs for each pair | {:.2}, {:.2} ms each |", of("syncs_per_pair")?, of("sync_ms")?)?;
    for thread in found["threads"].as_array().into_iter().flatten() {
        writeln!(
            text,
            "| {} | {:.1} us of processor, {:.2} switches for each pair |",
            thread["thread"].as_str().unwrap_or_default(),
            number(thread, "cpu_us_per_pair")?,
            number(thread, "switches_per_pair")?
        )?;
    }
    writeln!(text, "| rounds of learning meanwhile | {} |", found["rounds"])?;
    Ok(text)
}

fn served(found: &Value) -> Result<String> {
    let mut text = format!(
        "## Ten drawn worlds, served: `bem table --generated --served --http`\n\nRewards come up to 1,000 decisions late, 5 % never; {} steps \
        each. The online score of the service is {:.3} of that of `bem solve --online` over all worlds.\n\n\
        | kind | solve --online, mean | served, mean | share |\n|---|---|---|---|\n",
        found["steps"],
        number(found, "served_share")?
    );
    for kind in found["kinds"].as_array().into_iter().flatten() {
        let mean = |place: usize| number(&kind["players"][place], "mean");
        let name = kind["kind"].as_str().unwrap_or_default();
        writeln!(
            text,
            "| {name} | {:.3} | {:.3} | {:.3} |",
            mean(0)?,
            mean(1)?,
            number(kind, "served_share")?
        )?;
    }
    Ok(text)
}

fn long(found: &Value) -> Result<String> {
    let mut text = format!(
        "## {} decisions with their rewards: `bem bench serve_long`\n\n{:.1} bytes of ledger for a decision with its reward. Processor time \
        of decide, door and ledger for a pair in the last tenth: {:.2} of the second's. Played again, every entry is as recorded; \
        head `{}`.\n\n| decisions | p50 ms | p99 ms | decide, door and ledger us a pair | learn us a pair | resident MB |\n|---|---|---|---|---|---|\n",
        found["decisions"],
        number(found, "ledger_bytes_per_decision")?,
        number(found, "acting_ratio")?,
        found["head"].as_str().unwrap_or_default()
    );
    let mut sum = 0;
    for part in found["parts"].as_array().into_iter().flatten() {
        sum += part["pairs"].as_u64().unwrap_or(0);
        let of = |key: &str| number(part, key);
        writeln!(
            text,
            "| {sum} | {:.2} | {:.2} | {:.1} | {:.1} | {:.0} |",
            of("p50_ms")?,
            of("p99_ms")?,
            of("acting_us")?,
            of("learn_us")?,
            of("resident_kb")? / 1_024.0
        )?;
    }
    Ok(text)
}
