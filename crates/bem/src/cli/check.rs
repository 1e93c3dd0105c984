//! `bem check`: an independent look at a policy that carries its proof. The work is done by `bundle::check`.
//!
//! Clauses: SCC-4, LOG-2, LOG-3.

use super::Answer;
use crate::bundle::check::{Checked, check};
use crate::bundle::features::in_words;
use crate::bundle::{FORMAT, Forbidden};
use crate::cli::fit::{WIDTH, wrapped};
use crate::files;
use anyhow::{Result, bail};
use bem_base::words::quantity;
use bem_data::Column;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Forbidden pairs that are printed one by one.
const SHOWN_PAIRS: usize = 6;

/// Check a policy that carries its proof: signature, history, claims, figures.
#[derive(Args)]
#[command(after_help = "Example: bem export my-run --format bundle --out policy.bundle\n         \
    bem check policy.bundle\n\
    A second checker shares no code: python3 tools/bundle_check.py policy.bundle\n\
    Exit 0: everything holds. Exit 1: something does not, and it is said what.")]
pub struct CheckArguments {
    /// The bundle
    #[arg(required_unless_present = "jobs")]
    file: Option<PathBuf>,
    /// Take the names of bundles from standard input and answer one line for each
    #[arg(long, hide = true, conflicts_with_all = ["file", "json"])]
    jobs: bool,
    /// Only one that is signed by this public key, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    public_key: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `bem check`
pub fn run(arguments: &CheckArguments) -> Result<Answer> {
    let key = arguments.public_key.as_deref();
    if let Some(key) = key.filter(|key| crate::bundle::from_hex(key).is_none_or(|bytes| bytes.len() != 32)) {
        bail!("--public-key {key:?} must be 64 lower-case hexadecimal digits");
    }
    let Some(file) = &arguments.file else {
        for name in std::io::stdin().lines() {
            let found = files::read_bytes(name?.trim().as_ref()).and_then(|bytes| check(&bytes, key));
            match found {
                Ok(checked) => say!("accepted {}", checked.bundle.digest),
                Err(error) => say!("refused: {}", format!("{error:#}").replace('\n', " ")),
            }
        }
        return Ok(Answer::Yes);
    };
    let bytes = files::read_bytes(file)?;
    let checked = match check(&bytes, key) {
        Ok(checked) => checked,
        Err(error) => {
            let reason = format!("{error:#}");
            match arguments.json {
                true => say!("{}", json!({ "accepted": false, "reason": reason })),
                false => say!("refused: {reason}"),
            }
            return Ok(Answer::No);
        }
    };
    match arguments.json {
        true => say!("{}", to_json(&checked)),
        false => print(&checked),
    }
    Ok(Answer::Yes)
}

fn to_json(checked: &Checked) -> serde_json::Value {
    let body = &checked.bundle.body;
    json!({ "accepted": true, "task": body.provenance.task, "digest": checked.bundle.digest,
        "public_key": body.provenance.public_key, "gates": body.policy.gates.len(),
        "statement": checked.statement, "forbidden": checked.forbidden, "never": never(checked),
        "features": body.features, "measured": body.measured, "warnings": body.provenance.warnings })
}

/// The forbidden pairs, in words where features have names.
fn never(checked: &Checked) -> Vec<String> {
    let one = |pair: &Forbidden| {
        let seen = match &checked.features {
            Some(encoder) => in_words(encoder, &pair.observation),
            None if pair.is_pattern() => format!("the observation is like {} (-: any)", pair.observation),
            None => format!("the observation is {}", pair.observation),
        };
        format!("action {} where {seen}", pair.action)
    };
    checked.bundle.body.forbidden.iter().map(one).collect()
}

/// What the forbidden ones are called: a pattern leaves bits free.
fn noun(checked: &Checked) -> &'static str {
    let is_pattern = checked.bundle.body.forbidden.iter().any(Forbidden::is_pattern);
    if is_pattern { "pattern" } else { "pair" }
}

fn print(checked: &Checked) {
    let body = &checked.bundle.body;
    let line = |name: &str, text: &str| {
        for (place, part) in wrapped(text, WIDTH - 13).iter().enumerate() {
            say!("  {:<11}{part}", if place == 0 { name } else { "" });
        }
    };
    say!("accepted: {}", body.provenance.task);
    let policy = &body.policy;
    let (gates, memory) = (policy.gates.len(), policy.memory_bits);
    line(
        "circuit",
        &format!(
            "{}, {}, {}",
            quantity(gates, "gate"),
            quantity(memory, "memory bit"),
            quantity(policy.actions, "action")
        ),
    );
    if let Some(encoder) = &checked.features {
        let one = |column: &Column| format!("{} ({})", column.feature.name, column.feature.allowed());
        let all: Vec<String> = encoder.columns().iter().map(one).collect();
        line("features", &all.join(", "));
    }
    match (&checked.statement, &body.statement) {
        (Some(how), Some(statement)) => {
            let rules = statement.action.rules.len() + 1;
            line("statement", &format!("equal to {} for every input ({how})", quantity(rules, "rule")));
        }
        _ => line("statement", "none: no list of rules is claimed to be the circuit"),
    }
    match checked.forbidden {
        0 => line("forbidden", "nothing is claimed to be never done"),
        count => {
            line(
                "forbidden",
                &format!("{} of observation and action: never chosen", quantity(count, noun(checked))),
            );
            let never = never(checked);
            never.iter().take(SHOWN_PAIRS).for_each(|pair| line("", &format!("never {pair}")));
            if SHOWN_PAIRS < never.len() {
                line("", &format!("and {} more (all of them: --json)", never.len() - SHOWN_PAIRS));
            }
        }
    }
    match &body.measured {
        Some(measured) => {
            let episodes = measured.policy.episodes;
            line(
                "measured",
                &format!(
                    "return {} ({}), as the run says",
                    measured.policy.text(),
                    quantity(episodes, "episode")
                ),
            );
        }
        None => line("measured", "nothing"),
    }
    let under = "are entries under the run's signed checkpoint";
    match body.format == FORMAT {
        true => line(
            "history",
            &format!("circuit, task and the file of figures, seed, warnings and features {under}"),
        ),
        false => line(
            "history",
            &format!(
                "circuit, task and figures {under}; seed, warnings and features are only signed in the format {}",
                body.format
            ),
        ),
    }
    body.provenance.warnings.iter().for_each(|warning| line("warning", warning));
    say!("  key        {}", body.provenance.public_key);
    line("unchecked", "that the whole history is sound (bem verify), nor the world itself");
}
