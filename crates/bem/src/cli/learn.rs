//! `bem learn`: a circuit from a labelled table, from logged decisions or from logged episodes. The work is done by
//! `bem-logs`; this file reads the log, shows progress and writes the policy. Clauses: GLE-9.

use super::Answer;
use super::fit::hanging;
use super::solve::circuit_words;
use crate::files;
use crate::learned::Learned;
use crate::policy_file;
use anyhow::{Context as _, Result, bail};
use bem_base::digest::hash;
use bem_base::limits::OBSERVATION_BITS_MAX;
use bem_base::plain::plain;
use bem_base::words::quantity;
use bem_data::Table;
use bem_logs::estimate::Missing;
use bem_logs::learn::Verdict;
use bem_logs::{Estimate, Interval, Log, Options, Roles, episodes, learn};
use bem_tables::figures::to_float;
use clap::Args;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Learn a circuit from a table with labels, from logged decisions, or from logged episodes.
#[derive(Args)]
#[command(after_help = "Example: bem learn wine.csv --label class --out wine.policy\n\
    Example: bem learn clicks.csv --features age,hour,device --action shown \\\n           \
    --reward click --propensity p --out ads.policy\n\
    Example: bem learn visits.jsonl --action a --reward r --episode visit\n\
    Then: bem explain ads.policy, bem export ads.policy --format c --out ads.h,\n\
    bem evaluate ads.policy --log new.csv --action shown --reward click\n\
    Exit code 1 when the log does not show that the circuit is better than what\n\
    is there.")]
pub struct LearnArguments {
    /// The log: .csv with a line of names, or .jsonl with one object a line
    #[arg(value_name = "LOG.csv|LOG.jsonl")]
    log: PathBuf,
    #[command(flatten)]
    columns: ColumnArguments,
    /// What would have been right: every other action pays nothing
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["action", "reward", "propensity", "episode"])]
    label: Option<String>,
    /// All random choices come from this number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Gates that the circuit may take
    #[arg(long, default_value_t = Options::default().gates_max)]
    max_gates: usize,
    /// Of logged decisions, how many of a hundred are set aside for the gate; labels are cross-validated instead
    /// [default: 30]
    #[arg(long)]
    set_aside: Option<u32>,
    /// Where the policy goes; nothing is written where nothing is supported
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Which column is what, for learning and for evaluation.
#[derive(Args)]
pub struct ColumnArguments {
    /// What the policy may look at, separated by commas [default: all other columns]; what a column is follows behind a colon
    /// where its cells do not tell: "zip:choice" (or number, bit)
    #[arg(long, value_name = "A,B:KIND,C", value_delimiter = ',')]
    features: Vec<String>,
    /// What was done
    #[arg(long, value_name = "COLUMN", requires = "reward")]
    action: Option<String>,
    /// What it brought
    #[arg(long, value_name = "COLUMN", requires = "action")]
    reward: Option<String>,
    /// The chance with which it was done; modelled from the features where there is none
    #[arg(long, value_name = "COLUMN", requires = "action")]
    propensity: Option<String>,
    /// Rows with the same value here, one after the other, are one episode
    #[arg(long, value_name = "COLUMN", requires = "action")]
    episode: Option<String>,
}

impl ColumnArguments {
    /// The roles of a table's columns.
    pub fn roles(&self, table: &Table, label: Option<&String>) -> Roles {
        let taken: Vec<&String> = [&self.action, &self.reward, &self.propensity, &self.episode]
            .into_iter()
            .flatten()
            .chain(label)
            .collect();
        let features = match self.features.is_empty() {
            true => table.names.iter().filter(|name| !taken.contains(name)).cloned().collect(),
            false => self.features.iter().map(|name| name.trim().to_string()).collect(),
        };
        Roles {
            features,
            action: self.action.clone(),
            reward: self.reward.clone(),
            propensity: self.propensity.clone(),
            episode: self.episode.clone(),
            label: label.cloned(),
        }
    }
}

/// Reads a log's table.
pub fn table(path: &Path) -> Result<Table> {
    let text = files::read_text(path)?;
    let table = match path.extension().and_then(|ending| ending.to_str()) {
        Some("csv") => Table::from_csv(&text),
        Some("jsonl") => Table::from_jsonl(&text),
        _ => bail!("{} must end in .csv or .jsonl", path.display()),
    };
    table.with_context(|| path.display().to_string())
}

/// What bit N of the column `obs` is called.
pub fn bit_name(bit: usize) -> String {
    format!("obs bit {bit}")
}

/// A table whose column `obs` holds zeros and ones, as served worlds write it, with a column for every bit in its place; any other
/// table as it is.
pub fn bits_apart(table: &Table) -> Cow<'_, Table> {
    let Ok(place) = table.column("obs") else { return Cow::Borrowed(table) };
    let text = |cells: &Vec<String>| cells[place].trim().to_string();
    let width = table.rows.first().map_or(0, |cells| text(cells).len());
    let is_bits = |cells: &Vec<String>| {
        let text = text(cells);
        text.len() == width && text.bytes().all(|sign| matches!(sign, b'0' | b'1'))
    };
    // One digit is a bit already.
    if !(2..=OBSERVATION_BITS_MAX).contains(&width) || !table.rows.iter().all(is_bits) {
        return Cow::Borrowed(table);
    }
    let mut apart = table.clone();
    apart.names.remove(place);
    apart.names.extend((0..width).map(bit_name));
    for cells in &mut apart.rows {
        let bits = cells.remove(place);
        cells.extend(bits.trim().chars().map(String::from));
    }
    Cow::Owned(apart)
}

/// `bem learn`
pub fn run(arguments: &LearnArguments) -> Result<Answer> {
    if !(100..=8_192).contains(&arguments.max_gates) {
        bail!("--max-gates {} is out of range: 100 to 8192", arguments.max_gates);
    }
    if let (Some(share), Some(label)) = (arguments.set_aside, &arguments.label) {
        bail!(
            "--set-aside {share} has no effect with --label {label}: labels are cross-validated; it needs --action and --reward"
        );
    }
    let set_aside = arguments.set_aside.unwrap_or(Options::default().set_aside);
    if !(10..=70).contains(&set_aside) {
        bail!("--set-aside {set_aside} is out of range: 10 to 70 of a hundred");
    }
    let started = Instant::now();
    let path = &arguments.log;
    let table = table(path)?;
    let is_seen = arguments.columns.features.is_empty() && arguments.label.as_deref() != Some("obs");
    let apart = if is_seen { bits_apart(&table) } else { Cow::Borrowed(&table) };
    let roles = arguments.columns.roles(&apart, arguments.label.as_ref());
    let log = Log::new(&apart, &roles, None).with_context(|| path.display().to_string())?;
    let options = Options { seed: arguments.seed, gates_max: arguments.max_gates, set_aside };
    let spinner = match std::io::stderr().is_terminal() && !arguments.json {
        true => ProgressBar::new_spinner(),
        false => ProgressBar::hidden(),
    };
    spinner.enable_steady_tick(Duration::from_millis(100));
    let progress = &mut |words: &str| spinner.set_message(words.to_string());
    let result = if log.has_episodes {
        episodes::learn(&log, &options, progress)
    } else {
        learn(&log, &options, progress)
    };
    spinner.finish_and_clear();
    let result = result.with_context(|| path.display().to_string())?;
    let learned = as_policy(path, &table, &log, &result, arguments.seed);
    let is_supported = result.verdict == Verdict::Supported;
    if let Some(out) = arguments.out.as_ref().filter(|_| is_supported) {
        let text = policy_file::write(&learned)?;
        std::fs::write(out, text).with_context(|| format!("{} cannot be written", out.display()))?;
    }
    if arguments.json {
        say!("{}", to_json(arguments, &log, &learned, &result, started.elapsed()));
    } else {
        print(arguments, &log, &learned, &result);
    }
    Ok(if is_supported { Answer::Yes } else { Answer::No })
}

/// The line of a policy that says which log it was learned from; [`digest`] names the log.
const LOG_LINE: &str = "log: ";

/// What a log's cells amount to.
fn digest(table: &Table) -> String {
    let text: Vec<String> = table.rows.iter().map(|cells| cells.join("\u{1f}")).collect();
    hash(text.join("\n").as_bytes()).to_string()
}

/// Whether a policy was learned from this very log.
pub fn is_learned_from(learned: &Learned, table: &Table) -> bool {
    let digest = digest(table);
    learned.provenance.iter().any(|line| line.starts_with(LOG_LINE) && line.contains(&digest))
}

/// What was learned, as a policy that other commands take.
fn as_policy(path: &Path, table: &Table, log: &Log, result: &bem_logs::Learned, seed: u64) -> Learned {
    let policy = result.policy.clone();
    let digest = digest(table);
    let what = if log.is_labelled { "cross-validated accuracy" } else { "estimated reward" };
    let provenance = vec![
        format!(
            "BEM policy learned from {}",
            path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        ),
        format!("{LOG_LINE}{} rows, digest {digest}, seed {seed}", log.rows.len()),
        format!("model: {}", plain(&result.words)),
        format!(
            "circuit: {}, {} gates, {} memory bits, reads {} bits of {} features, {} actions",
            policy.digest(),
            policy.gates(),
            policy.memory_bits(),
            policy.reads().len(),
            result.encoder.columns().len(),
            policy.actions()
        ),
        format!("{what}: {}", words(&result.value)),
    ];
    let named = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("policy");
    Learned {
        name: named.to_string(),
        observation_bits: result.encoder.bits(),
        fields: result.encoder.fields(),
        horizon: (!log.has_episodes).then_some(1),
        names: Some(result.encoder.clone()),
        actions: log.actions.clone(),
        policy,
        provenance,
        warnings: result.warnings.clone(),
    }
}

/// A mean with its interval, in words.
pub fn words(interval: &Interval) -> String {
    let Interval { mean, low, high, .. } = interval;
    format!("{:.4}, 95 % interval {:.4} to {:.4}", to_float(*mean), to_float(*low), to_float(*high))
}

/// A mean with its interval.
pub fn interval_json(interval: &Interval) -> Value {
    json!({ "mean": to_float(interval.mean), "interval95": [to_float(interval.low), to_float(interval.high)] })
}

/// An estimate as far as the log supports it: nothing where the policy goes where the log never went, the mean alone where there
/// are few rows.
fn told_json(estimate: &Estimate, interval: &Interval) -> Value {
    match estimate.missing() {
        None => interval_json(interval),
        Some(Missing::Rows) => json!({ "mean": to_float(interval.mean), "interval95": null }),
        Some(Missing::Beyond | Missing::Weights) => Value::Null,
    }
}

/// All estimates of a log about a policy.
pub fn estimate_json(estimate: &Estimate) -> Value {
    let known = |interval: &Interval| told_json(estimate, interval);
    json!({
        "ips": known(&estimate.ips), "snips": known(&estimate.snips),
        "dr": estimate.dr.as_ref().map(known), "logged": interval_json(&estimate.logged),
        "gain": known(&estimate.gain), "rows": estimate.rows, "matched": estimate.matched,
        "effective": estimate.effective, "weight_mean": interval_json(&estimate.weight),
        "weight_max": to_float(estimate.weight_max), "beyond": estimate.beyond,
    })
}

/// What one piece of evidence of a log is called.
pub fn unit(log: &Log) -> &'static str {
    if log.has_episodes { "episodes" } else { "decisions" }
}

/// An estimate with its interval, or with why there is none.
fn estimated(estimate: &Estimate, interval: &Interval) -> String {
    match estimate.missing() {
        None => words(interval),
        Some(Missing::Beyond) => "withheld: the policy does what the log never did".to_string(),
        Some(Missing::Weights) if estimate.matched == 0 => {
            "withheld: the log never did throughout what the policy does".to_string()
        }
        Some(Missing::Weights) => "withheld: the weights' mean is not one".to_string(),
        Some(Missing::Rows) => {
            let (mean, matched) = (to_float(interval.mean), estimate.matched);
            format!("{mean:.4}, interval withheld: {matched} matches are too few")
        }
    }
}

/// One figure with its name, in as many lines as it needs.
pub fn print_row(name: &str, text: &str) {
    hanging(&format!("  {name:<20} {text}"), 23).iter().for_each(|line| say!("{line}"));
}

/// The estimates, one a line.
pub fn print_estimate(estimate: &Estimate, unit: &str) {
    let Estimate { matched, rows, effective, .. } = estimate;
    print_row("inverse propensity", &estimated(estimate, &estimate.ips));
    print_row("self-normalised", &estimated(estimate, &estimate.snips));
    if let Some(robust) = &estimate.dr {
        print_row("doubly robust", &estimated(estimate, robust));
    }
    print_row("what the log earned", &words(&estimate.logged));
    print_row("more than the log", &estimated(estimate, &estimate.gain));
    let support = format!("{matched} of {rows} {unit} match, worth {effective} of the policy's own");
    print_row("support", &support);
}

fn verdict(log: &Log, result: &bem_logs::Learned) -> String {
    let what =
        if log.is_labelled { "always the most frequent label" } else { "the policy that wrote the log" };
    match result.verdict {
        Verdict::Supported => format!("better than {what}: the lower end of the gain is above zero"),
        Verdict::NotSupported
            if result.estimate.as_ref().is_some_and(|estimate| !estimate.is_supported()) =>
        {
            "nothing is supported: the log does not say what this circuit would earn".to_string()
        }
        Verdict::NotSupported => {
            format!("nothing is supported: the log does not show that the circuit is better than {what}")
        }
    }
}

fn to_json(
    arguments: &LearnArguments,
    log: &Log,
    learned: &Learned,
    result: &bem_logs::Learned,
    wall: Duration,
) -> Value {
    let candidates: Vec<Value> = result
        .candidates
        .iter()
        .map(|(name, mean)| json!({ "model": name, "held_out": to_float(*mean) }))
        .collect();
    let told = |interval: &Interval| match &result.estimate {
        Some(estimate) => told_json(estimate, interval),
        None => interval_json(interval),
    };
    json!({
        "log": arguments.log.display().to_string(), "rows": log.rows.len(), "actions": log.actions, "seed": arguments.seed,
        "labelled": log.is_labelled, "episodes": log.has_episodes, "supported": result.verdict == Verdict::Supported,
        "model": result.words, "value": told(&result.value), "gain": told(&result.gain),
        "estimate": result.estimate.as_ref().map(estimate_json), "gates": learned.policy.gates(),
        "state_bits": learned.policy.memory_bits(), "reads": learned.policy.reads().len(), "candidates": candidates,
        "circuit": learned.policy.digest().to_hex(), "warnings": result.warnings,
        "out": arguments.out.as_ref().filter(|_| result.verdict == Verdict::Supported).map(|out| out.display().to_string()),
        "wall_ms": wall.as_millis() as u64,
    })
}

fn print(arguments: &LearnArguments, log: &Log, learned: &Learned, result: &bem_logs::Learned) {
    let kind = match (log.is_labelled, log.has_episodes) {
        (true, _) => "labelled rows",
        (_, true) => "logged steps of episodes",
        _ => "logged decisions",
    };
    say!(
        "{} (seed {}): {} {kind}, {}",
        arguments.log.display(),
        arguments.seed,
        log.rows.len(),
        quantity(log.actions.len(), "action")
    );
    print_row("model", &plain(&result.words));
    let (gates, memory) = (learned.policy.gates(), learned.policy.memory_bits());
    let reads = learned.policy.reads().len();
    print_row("circuit", &circuit_words(gates, memory, reads));
    match &result.estimate {
        None => {
            print_row("accuracy", &format!("{} (cross-validated)", words(&result.value)));
            print_row("more than one label", &words(&result.gain));
        }
        Some(estimate) => {
            say!("  on {} {} that were set aside:", estimate.rows, unit(log));
            print_estimate(estimate, unit(log));
        }
    }
    print_row("verdict", &verdict(log, result));
    result.warnings.iter().for_each(|warning| print_row("warning", warning));
    if let Some(out) = &arguments.out {
        let out = out.display();
        match result.verdict {
            Verdict::Supported => {
                print_row("kept in", &format!("{out}"));
                print_row("next", &format!("bem explain {out}, bem export {out} --format c"));
            }
            Verdict::NotSupported => say!("  nothing is written to {out}"),
        }
    }
}
