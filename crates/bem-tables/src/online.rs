//! What every row earns while it is learned, exploration and measurements included, beside best play on
//! the same seeds.
//!
//! Must not know how rows are asked for or shown. Clauses: VM-16, SCC-8.

use crate::Edges;
use crate::beside::Beside;
use crate::figures::Figures;
use crate::table::Row;
use anyhow::{Context as _, Result};
use bem_engine::learner::Settings;
use bem_engine::parameters::check_world;
use bem_engine::solve::solve;
use bem_machine::config::GenesisConfig;
use serde_json::{Value, json};
use std::sync::Arc;

/// Steps of a run at least.
const STEPS_MIN: u64 = 100_000;
/// Steps for every step of the floor.
const FLOORS: u64 = 20;
/// Episodes of a run at least.
const EPISODES_MIN: u64 = 8;

/// What a row earns with one seed, as an object with the keys of `bem solve --online`.
pub fn run(row: &Row, seed: u64, config: &Arc<GenesisConfig>, edges: &Edges) -> Result<Value> {
    let game = (row.build)(seed).with_context(|| row.name.clone())?;
    check_world(config, game.shape())
        .with_context(|| format!("{} does not fit the configuration", row.name))?;
    let floor = row.floor.unwrap_or(0).saturating_mul(FLOORS);
    let budget = floor.max(STEPS_MIN).max(EPISODES_MIN * u64::from(game.shape().horizon));
    let settings = Settings { seed, budget, config: Arc::clone(config) };
    let settings = settings.with(|config| config.until_budget = true);
    let beside = Beside::new(game);
    let solution =
        solve(&beside, settings, &mut |_| !(edges.is_asked)()).with_context(|| row.name.clone())?;
    let losses = beside.losses_of(&solution.online).with_context(|| row.name.clone())?;
    let mut found = json!({
        "task": row.name, "seed": seed, "solved": solution.is_solved(), "steps": solution.learned.tally.steps,
    });
    Figures::of(&solution, losses.as_ref()).add_to(&mut found);
    Ok(found)
}
