//! Tasks that no class was written for, drawn from a seed: hidden subsets, random truth tables, random
//! machines, random processes and compositions of two families.

use super::{Row, named_game};
use anyhow::Result;
use bem_base::prng::Prng;
use bem_games::game::Game;
use bem_games::import::{self, Format, Seat};
use serde_json::json;
use std::sync::Arc;

/// All kinds, each drawn anew for every seed.
pub fn rows() -> Vec<Row> {
    let named = |task: &'static str, params: &'static [&'static str]| {
        let texts: Vec<String> = params.iter().map(|text| (*text).to_string()).collect();
        Row {
            name: format!("{task} {}", params.join(" ")).trim_end().to_string(),
            floor: None,
            build: Box::new(move |seed| named_game(task, &texts, seed)),
        }
    };
    let drawn = |name: &str, build: fn(u64) -> Result<Arc<dyn Game>>| Row {
        name: name.to_string(),
        floor: None,
        build: Box::new(build),
    };
    vec![
        named("parity", &["n=48", "relevant=13"]),
        named("majority", &["n=32", "relevant=11"]),
        drawn("truth table of 6 bits", |seed| truth_table(seed, 6)),
        drawn("truth table of 8 bits", |seed| truth_table(seed, 8)),
        named("transducer", &["states=12", "inputs=2", "outputs=2", "horizon=24"]),
        named("transducer", &["states=16", "inputs=2", "outputs=2", "horizon=24"]),
        drawn("process of 12 states, 3 actions", |seed| process(seed, 12, 3, 12)),
        drawn("process of 32 states, 4 actions", |seed| process(seed, 32, 4, 16)),
        named("seq(parity{n=4},majority{n=5})", &[]),
        named("par(parity{n=8},majority{n=5})", &[]),
        named("branch(compare{bits=4},parity{n=6})", &[]),
    ]
}

/// One step, the observation is the row, one of two actions is right by a coin per row.
fn truth_table(seed: u64, bits: u32) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/truth");
    let states = 1u64 << bits;
    let start: Vec<_> = (0..states).map(|state| json!([state, 1])).collect();
    let mut transitions = Vec::new();
    for state in 0..states {
        let right = prng.below(2);
        for action in 0..2 {
            let reward = if action == right { 1_000 } else { 0 };
            transitions.push(json!([state, action, state, 1, reward, true]));
        }
    }
    read(json!({"states": states, "actions": 2, "horizon": 1, "start": start, "transitions": transitions,
        "observe": "state"}))
}

/// A random process: every state and action has two successors by chance; few pairs are rewarded.
fn process(seed: u64, states: u64, actions: u64, horizon: u64) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/process");
    let mut transitions = Vec::new();
    for state in 0..states {
        for action in 0..actions {
            let reward = if prng.below(8) == 0 { 1_000 } else { 0 };
            let (often, rarely) = (prng.below(states), prng.below(states));
            transitions.push(json!([state, action, often, 4, reward, false]));
            if rarely != often {
                transitions.push(json!([state, action, rarely, 1, reward, false]));
            }
        }
    }
    read(json!({"states": states, "actions": actions, "horizon": horizon, "start": [[0, 1]],
        "transitions": transitions, "observe": "state"}))
}

fn read(table: serde_json::Value) -> Result<Arc<dyn Game>> {
    Ok(import::read(Format::Table, &table.to_string(), &Seat::default())?)
}
