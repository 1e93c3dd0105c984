//! Tasks that no class was written for, drawn anew for every seed: hidden subsets, machines, processes and
//! compositions of two families. Drawn functions and drawn machines have files of their own.

use crate::NamedGame;
use crate::table::Row;
use anyhow::Result;
use bem_base::prng::Prng;
use bem_games::game::Game;
use bem_games::import::{self, Format, Seat};
use serde_json::json;
use std::sync::Arc;

/// All kinds.
pub fn rows(named_game: NamedGame) -> Vec<Row> {
    let named = |task: &'static str, params: &'static [&'static str]| {
        let texts: Vec<String> = params.iter().map(|text| (*text).to_string()).collect();
        Row {
            name: format!("{task} {}", params.join(" ")).trim_end().to_string(),
            floor: None,
            build: Box::new(move |seed| named_game(task, &texts, seed)),
        }
    };
    vec![
        named("parity", &["n=48", "relevant=13"]),
        named("majority", &["n=32", "relevant=11"]),
        named("transducer", &["states=12", "inputs=2", "outputs=2", "horizon=24"]),
        named("transducer", &["states=16", "inputs=2", "outputs=2", "horizon=24"]),
        Row::drawn("process of 12 states, 3 actions", |seed| process(seed, 12, 3, 12)),
        Row::drawn("process of 32 states, 4 actions", |seed| process(seed, 32, 4, 16)),
        Row::drawn("seq of two", move |seed| composed(named_game, seed, "seq", STREAMS)),
        Row::drawn("interleave of two", move |seed| composed(named_game, seed, "interleave", STREAMS)),
        Row::drawn("branch of two", move |seed| composed(named_game, seed, "branch", STREAMS)),
        Row::drawn("par of two", move |seed| composed(named_game, seed, "par", WORDS)),
        Row::drawn("repeat of one", move |seed| composed(named_game, seed, "repeat", STREAMS)),
        Row::drawn("loop of one", move |seed| composed(named_game, seed, "loop", STREAMS)),
        Row::drawn("nest of one", move |seed| composed(named_game, seed, "nest", WORDS)),
        Row::drawn("mask of one", move |seed| composed(named_game, seed, "mask", WORDS)),
    ]
}

/// Parts of compositions that ask once about a whole word.
const WORDS: &[&str] = &[
    "parity{n=6}",
    "majority{n=7}",
    "compare{bits=4}",
    "popcount{n=4}",
    "distance{n=5,cap=3}",
    "add{bits=2,form=word}",
];
/// Parts of any kind.
const STREAMS: &[&str] = &[
    "parity{n=6}",
    "majority{n=7}",
    "compare{bits=4}",
    "copy{length=4}",
    "reverse{length=4}",
    "parity_stream{n=6}",
    "stack_machine{depth=3,horizon=12}",
    "add{bits=4,form=serial}",
];

/// An operator over parts that are drawn; with one part if it takes one.
fn composed(
    named_game: NamedGame,
    seed: u64,
    operator: &str,
    parts: &[&'static str],
) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, operator);
    let mut draw = || parts[prng.below(parts.len() as u64) as usize];
    let two = matches!(operator, "seq" | "interleave" | "branch" | "par");
    let task =
        if two { format!("{operator}({},{})", draw(), draw()) } else { format!("{operator}({})", draw()) };
    named_game(&task, &[], seed)
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
    let table = json!({"states": states, "actions": actions, "horizon": horizon, "start": [[0, 1]],
        "transitions": transitions, "observe": "state"});
    Ok(import::read(Format::Table, &table.to_string(), &Seat::default())?)
}
