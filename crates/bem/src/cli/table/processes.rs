//! Random decision processes for the held-out rows: everything about them is drawn, and some hide a part of the state.

use super::Row;
use anyhow::Result;
use bem_base::prng::Prng;
use bem_games::game::Game;
use bem_games::import::{self, Format, Seat};
use serde_json::{Value, json};
use std::sync::Arc;

/// One row a kind, each drawn anew for every seed.
pub fn rows() -> Vec<Row> {
    vec![
        Row::drawn("process of 4 to 32 states", |seed| process(seed, &Kind::of(seed, 32, false))),
        Row::drawn("process of 4 to 8 states that hides one bit", |seed| {
            process(seed, &Kind::of(seed, 8, true))
        }),
        Row::drawn("corridor of 20 cells", |seed| corridor(seed, 20)),
        Row::drawn("key and door on 25 cells", key_and_door),
    ]
}

/// What is drawn about a process before its transitions are.
struct Kind {
    states: u64,
    actions: u64,
    horizon: i64,
    successors: u64,
    /// Rewards: few full ones, any of both signs, or another one for every successor.
    rewards: u64,
    /// Whether some transitions end the episode.
    ends: bool,
    hides: bool,
}

impl Kind {
    fn of(seed: u64, states_max: i64, hides: bool) -> Kind {
        let mut prng = Prng::stream(seed, "table/kind");
        let states = prng.between(4, states_max) as u64;
        let actions = prng.between(2, 4) as u64;
        // The exact optimum of a process that hides states meets ever more situations with every step.
        let horizon = if hides { 8 } else { prng.between(8, 32) };
        let successors = [2, 4.min(states), if hides { 2 } else { states }][prng.below(3) as usize];
        Kind { states, actions, horizon, successors, rewards: prng.below(3), ends: prng.bit(), hides }
    }
}

fn process(seed: u64, kind: &Kind) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/transitions");
    let mut transitions = Vec::new();
    for state in 0..kind.states {
        for action in 0..kind.actions {
            let usual = match kind.rewards {
                0 => 1_000 * i64::from(prng.below(8) == 0),
                _ => prng.between(-1_000, 1_000),
            };
            for _ in 0..kind.successors {
                let reward = if kind.rewards == 2 { prng.between(0, 1_000) } else { usual };
                let (next, weight) = (prng.below(kind.states), 1 + prng.below(9));
                let done = kind.ends && prng.below(20) == 0;
                transitions.push(json!([state, action, next, weight, reward, done]));
            }
        }
    }
    let observe = if kind.hides {
        let show = |state: u64| json!([state & 1, state >> 1 & 1]);
        Value::Array((0..kind.states).map(show).collect())
    } else {
        json!("state")
    };
    read(json!({"states": kind.states, "actions": kind.actions, "horizon": kind.horizon,
        "start": [[0, 1], [1, 1]], "transitions": transitions, "observe": observe}))
}

/// In every cell one action, drawn, leads on and the other back to the start; the reward lies behind the last cell.
fn corridor(seed: u64, cells: u64) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/corridor");
    let mut transitions = Vec::new();
    for cell in 0..cells {
        let on = prng.below(2);
        let (reward, done) = if cell + 1 == cells { (1_000, true) } else { (0, false) };
        transitions.push(json!([cell, on, (cell + 1) % cells, 1, reward, done]));
        transitions.push(json!([cell, 1 - on, 0, 1, 0, false]));
    }
    read(json!({"states": cells, "actions": 2, "horizon": cells + 10, "start": [[0, 1]],
        "transitions": transitions, "observe": "state"}))
}

/// A grid of five by five cells: the key lies in one, drawn, and the door in another pays only with the key.
fn key_and_door(seed: u64) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/door");
    let key = 1 + prng.below(24);
    let door = 1 + (key + prng.below(23)) % 24;
    let mut transitions = Vec::new();
    for state in 0..50u64 {
        let (cell, has_key) = (state % 25, 25 <= state);
        let (x, y) = (cell % 5, cell / 5);
        let targets =
            [(x, y.saturating_sub(1)), (x, (y + 1).min(4)), (x.saturating_sub(1), y), ((x + 1).min(4), y)];
        for (action, (x, y)) in targets.into_iter().enumerate() {
            let next = 5 * y + x;
            let has_key = has_key || next == key;
            let opened = has_key && next == door;
            let target = next + 25 * u64::from(has_key);
            transitions.push(json!([state, action, target, 1, 1_000 * i64::from(opened), opened]));
        }
    }
    read(json!({"states": 50, "actions": 4, "horizon": 40, "start": [[0, 1]], "transitions": transitions,
        "observe": "state"}))
}

fn read(table: Value) -> Result<Arc<dyn Game>> {
    Ok(import::read(Format::Table, &table.to_string(), &Seat::default())?)
}
