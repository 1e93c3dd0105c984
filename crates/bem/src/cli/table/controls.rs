//! `bem table --controls`: says how every control went. Which controls there are and what must come of them is the business of
//! `bem_tables::controls`.

use super::{EDGES, TableArguments};
use crate::cli::Answer;
use anyhow::Result;
use bem_machine::config::GenesisConfig;
use bem_tables::controls;
use serde_json::{Value, json};
use std::sync::Arc;

/// Runs all controls; yes if each went as it must.
pub fn run(arguments: &TableArguments, config: &Arc<GenesisConfig>) -> Result<Answer> {
    let terms = arguments.terms.check()?;
    let (seeds, budget) = (arguments.seeds, arguments.budget);
    let found = controls::run(seeds, budget, config, terms, EDGES.named_game, &mut |control| {
        if !arguments.json {
            let word = if control.is_ok { "ok" } else { "FAIL" };
            say!("{word:<4} {:<58} {}", control.name, control.result);
        }
    })?;
    if arguments.json {
        let list: Vec<Value> = found
            .iter()
            .map(|control| json!({"control": control.name, "result": control.result, "ok": control.is_ok}))
            .collect();
        say!("{}", json!({ "seeds": seeds, "budget": budget, "controls": list }));
    }
    Ok(if found.iter().all(|control| control.is_ok) { Answer::Yes } else { Answer::No })
}
