//! `bem table --online`: says what every row earns while it is learned, which `bem_tables::online` works out.
//!
//! Clauses: VM-16, SCC-8.

use super::{EDGES, TableArguments, usage};
use crate::cli::Answer;
use crate::interrupt;
use anyhow::Result;
use bem_machine::config::GenesisConfig;
use bem_tables::online;
use serde_json::json;
use std::sync::Arc;

/// Runs the rows.
pub fn run(arguments: &TableArguments, config: &Arc<GenesisConfig>) -> Result<Answer> {
    let (wanted, mut rows) = (super::rows_of(arguments)?, Vec::new());
    if !arguments.json {
        say!("| task | seed | solved | online score | last half | regret exponent | explored, last half |");
        say!("|---|---|---|---|---|---|---|");
    }
    for row in wanted {
        for seed in usage::seeds("--first-seed", arguments.first_seed, arguments.seeds)? {
            let found = online::run(&row, seed, config, &EDGES)?;
            if !arguments.json {
                say!(
                    "| {} | {seed} | {} | {} | {} | {} | {} |",
                    row.name,
                    found["solved"],
                    found["online_score"],
                    found["online_score_last_half"],
                    found["regret_exponent"],
                    found["explored_share_last_half"],
                );
            }
            rows.push(found);
            if interrupt::is_asked() {
                break;
            }
        }
    }
    if arguments.json {
        say!("{}", json!({ "rows": rows }));
    }
    Ok(Answer::Yes)
}
