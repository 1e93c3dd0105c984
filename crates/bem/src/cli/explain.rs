//! `bem explain`: what a learned policy does, as rules, and why it does it. The work is done by `bem-explain`.
//!
//! Clauses: GLE-9.

use super::Answer;
use super::fit::hanging;
use super::learn::{bits_apart, table};
use crate::cli::run::report::recorded_in;
use crate::learned::{self, Learned};
use anyhow::{Context as _, Result, anyhow, bail};
use bem_base::environment::Bits;
use bem_data::Feature;
use bem_explain::reason::CONFLICTS;
use bem_explain::{AskError, GivenObservation, json, text};
use bem_logs::Log;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Rules of a list that are printed; a longer list is in JSON and in the report.
const SHOWN_RULES: usize = 40;

/// Rows of a log at most.
const ROWS_MAX: usize = 1 << 16;

/// A learned policy as rules that people read, and why it chooses what it chooses.
#[derive(Args)]
#[command(after_help = "Example: bem explain my-run --expert dyck\n\
    Example: bem explain ads-state --expert ads\n\
    Example: bem explain my-run --obs 01101\n\
    Example: bem explain my-run --obs field0=3,bit7=1 --memory 10\n\
    Example: bem explain my-run --obs 'mode=eco,temp=19.5,steps so far=3'\n\
    Example: bem explain my-run --dot | dot -Tsvg > states.svg\n\
    Example: bem explain wine.policy --log wine.csv")]
pub struct ExplainArguments {
    /// The folder of a run or of a server, a snapshot, or a circuit in a file
    #[arg(value_name = "RUN|FILE")]
    source: PathBuf,
    /// Which expert of a run, or which world of a server, where there are several
    #[arg(long)]
    expert: Option<String>,
    /// Why this action: an observation as bits, as fieldN=VALUE and bitN=VALUE with all others 0, or as NAME=VALUE for
    /// every feature where features have names; what is remembered may be given beside it, by the names that the rules use
    /// ("steps so far=3", "temp (1 step ago)=20.5")
    #[arg(long, value_name = "BITS|K=V,...")]
    obs: Option<String>,
    /// What is remembered when it is seen, as bits or by name; what is left out is as at the start of an episode
    #[arg(long, value_name = "BITS|K=V,...", requires = "obs", conflicts_with_all = ["log", "dot"])]
    memory: Option<String>,
    /// Where no short list of rules is the circuit, rules for what the rows of this log show (.csv or .jsonl); columns that are
    /// no features of the policy do not matter
    #[arg(long, value_name = "FILE", conflicts_with_all = ["obs", "dot"])]
    log: Option<PathBuf>,
    /// Rows of the log with the same value here, one after the other, are one episode; what a policy remembers goes on in it
    #[arg(long, value_name = "COLUMN", requires = "log", conflicts_with_all = ["obs", "dot"])]
    episode: Option<String>,
    /// Print the state diagram for Graphviz and nothing else
    #[arg(long, conflicts_with_all = ["obs", "json"])]
    dot: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the policy sees in the rows of a log, episode by episode.
fn rows_of(learned: &Learned, path: &Path, episode: Option<&str>) -> Result<Vec<Vec<Bits>>> {
    let encoder = learned.names.as_ref().context("the policy has no named features that a log could have")?;
    if 0 < learned.policy.memory_bits() && episode.is_none() {
        bail!("the policy remembers: --episode COLUMN says which rows follow each other");
    }
    let table = table(path)?;
    if ROWS_MAX < table.rows.len() {
        bail!("{} rows; at most {ROWS_MAX} are taken", table.rows.len());
    }
    let features: Vec<Feature> = encoder.columns().iter().map(|column| column.feature.clone()).collect();
    let apart = bits_apart(&table);
    let seen = Log::values(&apart, &features)?.into_iter().map(|values| encoder.encode_values(&values));
    let Some(episode) = episode else { return Ok(seen.map(|seen| vec![seen]).collect()) };
    let column = table.column(episode)?;
    let mut episodes: Vec<Vec<Bits>> = Vec::new();
    for (row, seen) in seen.enumerate() {
        let goes_on = 0 < row && table.rows[row - 1][column] == table.rows[row][column];
        match episodes.last_mut().filter(|_| goes_on) {
            Some(steps) => steps.push(seen),
            None => episodes.push(vec![seen]),
        }
    }
    Ok(episodes)
}

/// `bem explain`
pub fn run(arguments: &ExplainArguments) -> Result<Answer> {
    let learned = learned::open(&arguments.source, arguments.expert.as_deref())?.one()?;
    let subject = learned.subject();
    let refused = |AskError { field, message }: AskError| anyhow!("--{field} {message}");
    let input = match &arguments.obs {
        None => None,
        Some(text) => {
            Some(subject.input(&GivenObservation::Text(text), arguments.memory.as_deref()).map_err(refused)?)
        }
    };
    if arguments.dot {
        let diagram = subject
            .diagram()
            .context("there is no state diagram: the policy has no memory, or too many states or inputs")?;
        say_text!("{}", diagram.to_dot(&subject.words()));
        return Ok(Answer::Yes);
    }
    let why = input.as_ref().map(|input| subject.reason(input, CONFLICTS));
    // With one observation to explain, the whole policy is not worked out as well.
    let met = match &arguments.log {
        Some(log) => rows_of(&learned, log, arguments.episode.as_deref())
            .with_context(|| format!("--log {}", log.display()))?,
        None => recorded_in(&arguments.source),
    };
    let whole = why.is_none().then(|| subject.explain_met(&met));
    let diagram = whole.as_ref().and_then(|_| subject.diagram());
    if arguments.json {
        let mut object = json!({ "expert": learned.name, "provenance": learned.provenance, "warnings": learned.warnings,
            "circuit": learned.policy.digest().to_hex(), "actions": learned.policy.actions(),
            "memory_bits": learned.policy.memory_bits(), "action_names": learned.actions });
        if let Some(whole) = &whole {
            for (name, value) in json::policy(&subject, whole, diagram.as_ref()) {
                object[name] = value;
            }
        }
        if let Some(reason) = &why {
            object["why"] = json::reason(&subject, reason);
        }
        say!("{object}");
        return Ok(Answer::Yes);
    }
    learned.lines().iter().flat_map(|line| hanging(line, 2)).for_each(|line| say!("{line}"));
    if let Some(whole) = &whole {
        say!();
        let text = text::policy_within(&subject, whole, diagram.as_ref(), SHOWN_RULES);
        text.lines().flat_map(|line| hanging(line, 6)).for_each(|line| say!("{line}"));
    }
    if let Some(reason) = &why {
        say!();
        let [why, claim, nearest] = text::reason(&subject, reason);
        let claim = if claim.is_empty() { claim } else { format!("  {claim}") };
        let lines = [why, claim, nearest];
        let said = lines.iter().filter(|line| !line.is_empty());
        said.flat_map(|line| hanging(line, 2)).for_each(|line| say!("{line}"));
    }
    Ok(Answer::Yes)
}
