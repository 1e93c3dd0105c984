//! `bem evaluate`: what a policy would have earned, judged by a log that another policy wrote. Clauses: GLE-9.

use super::Answer;
use super::learn::{
    ColumnArguments, bit_name, bits_apart, estimate_json, is_learned_from, print_estimate, print_row, table,
    unit,
};
use crate::learned::{self, Learned};
use anyhow::{Context as _, Result};
use bem_base::environment::Bits;
use bem_data::{Feature, Table};
use bem_logs::{Log, Options, episodes, learn};
use bem_synth::policy::Player;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Off-policy evaluation: what a policy would have earned, by inverse propensity, self-normalised and doubly robust.
#[derive(Args)]
#[command(
    after_help = "Example: bem evaluate ads.policy --log new.csv --action shown --reward click \\\n           \
    --propensity p\n\
    Example: bem evaluate my-run --log steps.jsonl --action a --reward r --episode e\n\
    A policy with named features reads the columns of these names. Of any other\n\
    policy the log needs a column obs with the bits of the observation. Exit code 1\n\
    when support is missing; values are withheld then."
)]
pub struct EvaluateArguments {
    /// A policy of bem learn, the folder of a run or of a server, a snapshot, or a circuit in a file
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
    /// Which expert of a run, or which world of a server
    #[arg(long)]
    expert: Option<String>,
    /// The log: .csv or .jsonl
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    #[command(flatten)]
    columns: ColumnArguments,
    /// All random choices come from this number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `bem evaluate`
pub fn run(arguments: &EvaluateArguments) -> Result<Answer> {
    let learned = learned::open(&arguments.policy, arguments.expert.as_deref())?.one()?;
    let path = &arguments.log;
    let table = table(path)?;
    let (log, rows) =
        read(&learned, &table, &arguments.columns).with_context(|| path.display().to_string())?;
    let options = Options { seed: arguments.seed, ..Options::default() };
    let result = if log.has_episodes {
        episodes::evaluate(&log, &learned.policy, &rows, &options)
    } else {
        let mut player = Player::new(&learned.policy);
        let act = |row: &Bits| {
            player.begin();
            player.act(row)
        };
        let chosen: Vec<u16> = rows.iter().map(act).collect();
        learn::evaluate(&log, &chosen, &options)
    };
    let (estimate, mut warnings) = result.with_context(|| path.display().to_string())?;
    if is_learned_from(&learned, &table) {
        let words = "the policy was learned from this very log: the estimates are too good; take a log that it has not seen";
        warnings.insert(0, words.to_string());
    }
    let is_supported = estimate.is_supported();
    if arguments.json {
        let mut object = estimate_json(&estimate);
        object["policy"] = json!(arguments.policy.display().to_string());
        object["log"] = json!(path.display().to_string());
        object["supported"] = json!(is_supported);
        object["warnings"] = json!(warnings);
        say!("{object}");
    } else {
        let (policy, unit) = (arguments.policy.display(), unit(&log));
        say!("{policy} on {} {unit} of {}", estimate.rows, path.display());
        print_estimate(&estimate, unit);
        warnings.iter().for_each(|warning| print_row("warning", warning));
    }
    Ok(if is_supported { Answer::Yes } else { Answer::No })
}

/// The log in the policy's own features and actions, and what the policy sees in every row.
fn read(learned: &Learned, table: &Table, columns: &ColumnArguments) -> Result<(Log, Vec<Bits>)> {
    let actions: Vec<String> = match learned.actions.is_empty() {
        true => (0..learned.policy.actions()).map(|action| action.to_string()).collect(),
        false => learned.actions.clone(),
    };
    let mut roles = columns.roles(table, None);
    if let Some(encoder) = &learned.names {
        let table = &bits_apart(table);
        let features: Vec<Feature> = encoder.columns().iter().map(|column| column.feature.clone()).collect();
        let log = Log::new(table, &roles, Some((&features, &actions)))?;
        let rows = log.rows.iter().map(|values| encoder.encode_values(values)).collect();
        return Ok((log, rows));
    }
    // Bits without names: one feature for every bit. A circuit alone reads up to some bit of what is seen.
    let is_alone = learned.horizon.is_none();
    let width = learned.observation_bits;
    let place =
        table.column("obs").context("the policy has no named features: the log needs a column of bits")?;
    let mut wide = Table { names: table.names.clone(), rows: table.rows.clone() };
    wide.names.extend((0..width).map(bit_name));
    let mut rows = Vec::with_capacity(wide.rows.len());
    for (number, cells) in wide.rows.iter_mut().enumerate() {
        let text = cells[place].trim().to_string();
        let is_wide = text.len() == width || is_alone && width < text.len();
        let bits = Bits::from_text(&text).filter(|_| is_wide);
        rows.push(
            bits.with_context(|| format!("row {}: \"obs\" must be {width} zeros and ones", number + 1))?,
        );
        cells.extend(text.chars().take(width).map(String::from));
    }
    let feature = |bit: usize| Feature { name: bit_name(bit), kind: bem_data::FeatureKind::Bit };
    let features: Vec<Feature> = (0..width).map(feature).collect();
    roles.features = (0..width).map(bit_name).collect();
    Ok((Log::new(&wide, &roles, Some((&features, &actions)))?, rows))
}
