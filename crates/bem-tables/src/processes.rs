//! Random decision processes for the held-out rows: everything about them is drawn, and some hide a part of the state.

use crate::table::Row;
use anyhow::Result;
use bem_base::prng::Prng;
use bem_games::game::Game;
use bem_games::import::{self, Format, Seat};
use serde_json::{Value, json};
use std::sync::Arc;

/// One row a kind, each drawn anew for every seed.
pub fn rows() -> Vec<Row> {
    vec![
        Row::drawn("process of 4 to 32 states", |seed| process(seed, &ProcessForm::of(seed, 32, false))),
        Row::drawn("process of 4 to 8 states that hides one bit", |seed| {
            process(seed, &ProcessForm::of(seed, 8, true))
        }),
        Row::drawn("corridor of 20 cells", |seed| corridor(seed, 20)),
        Row::drawn("key and door on 25 cells", key_and_door),
        Row::drawn("fork 4 to 8 cells behind its cue", fork),
        Row::drawn("key that nobody sees in a row of cells", hidden_key),
        Row::drawn("two arms, one pays in this episode", two_arms),
    ]
}

/// What is drawn about a process before its transitions are.
struct ProcessForm {
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

impl ProcessForm {
    fn of(seed: u64, states_max: i64, hides: bool) -> ProcessForm {
        let mut prng = Prng::stream(seed, "table/kind");
        let states = prng.between(4, states_max) as u64;
        let actions = prng.between(2, 4) as u64;
        // The exact optimum of a process that hides states meets ever more situations with every step.
        let horizon = if hides { 8 } else { prng.between(8, 32) };
        let successors = [2, 4.min(states), if hides { 2 } else { states }][prng.below(3) as usize];
        ProcessForm { states, actions, horizon, successors, rewards: prng.below(3), ends: prng.bit(), hides }
    }
}

fn process(seed: u64, kind: &ProcessForm) -> Result<Arc<dyn Game>> {
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

/// A cue at the start says which of two actions, drawn, pays at the end of a corridor whose cells all look alike.
fn fork(seed: u64) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/fork");
    let cells = 4 + prng.below(5);
    // Forward, back, and two that answer; which is which is drawn.
    let mut codes: Vec<u64> = (0..4).collect();
    prng.shuffle(&mut codes);
    let (mut transitions, mut observe) = (Vec::new(), Vec::new());
    for cue in 0..2 {
        for cell in 0..=cells {
            let state = |cell: u64| cue * (cells + 1) + cell;
            observe.push(match cell {
                0 => json!([1, cue]),
                _ => json!([0, u64::from(cell == cells)]),
            });
            for (role, code) in codes.iter().enumerate() {
                let (next, reward, done) = match role {
                    0 => ((cell + 1).min(cells), 0, false),
                    1 => (cell.saturating_sub(1), 0, false),
                    answer if cell == cells => (cell, 1_000 * i64::from(answer as u64 == 2 + cue), true),
                    _ => (cell, -25, false),
                };
                transitions.push(json!([state(cell), code, state(next), 1, reward, done]));
            }
        }
    }
    read(
        json!({"states": 2 * (cells + 1), "actions": 4, "horizon": 3 * cells, "start": [[0, 1], [cells + 1, 1]],
        "transitions": transitions, "observe": observe}),
    )
}

/// The door at one end of a row of cells pays only after the key at the other end; only the cell is seen.
fn hidden_key(seed: u64) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/hidden key");
    let (cells, turned) = (5 + prng.below(4), prng.bit());
    let (mut transitions, mut observe) = (Vec::new(), Vec::new());
    for has_key in [false, true] {
        for cell in 0..cells {
            let state = |has_key: bool, cell: u64| cell + cells * u64::from(has_key);
            observe.push(json!((0..4).map(|bit| cell >> bit & 1).collect::<Vec<u64>>()));
            for action in 0..3u64 {
                let next = match action {
                    2 => cell,
                    action if (action == 1) == turned => cell.saturating_sub(1),
                    _ => (cell + 1).min(cells - 1),
                };
                let opens = action == 2 && cell == cells - 1;
                let reward = if opens { if has_key { 1_000 } else { -500 } } else { 0 };
                let target = state(has_key || next == 0, next);
                transitions.push(json!([state(has_key, cell), action, target, 1, reward, opens]));
            }
        }
    }
    read(json!({"states": 2 * cells, "actions": 3, "horizon": 4 * cells, "start": [[cells / 2, 1]],
        "transitions": transitions, "observe": observe}))
}

/// Nothing is seen but what was earned last; one of two arms pays seldom and one often, drawn for every episode.
fn two_arms(seed: u64) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/arms");
    let (seldom, often) = (prng.between(5, 20), prng.between(75, 95));
    let mut transitions = Vec::new();
    for good in 0..2u64 {
        for action in 0..2 {
            let pays = if action == good { often } else { seldom };
            transitions.push(json!([good, action, good, pays, 1_000, false]));
            transitions.push(json!([good, action, good, 100 - pays, 0, false]));
        }
    }
    read(
        json!({"states": 2, "actions": 2, "horizon": 8, "start": [[0, 1], [1, 1]], "transitions": transitions,
        "observe": [[0], [0]]}),
    )
}

fn read(table: Value) -> Result<Arc<dyn Game>> {
    Ok(import::read(Format::Table, &table.to_string(), &Seat::default())?)
}
