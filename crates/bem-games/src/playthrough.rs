//! An episode as text: what is seen, what is played, what it brings.
//!
//! Golden files keep such texts, so that a change of any game shows up as a difference one can read. Every
//! other step follows the oracle, the rest a seeded coin, so that both right and wrong answers appear. Clause: GLE-1.

use crate::game::Game;
use bem_base::environment::{Bits, EnvironmentError, Shape};
use bem_base::prng::Prng;
use std::fmt::Write;

/// Steps of one episode that are written in full; the rest is summed up.
const STEPS_SHOWN: u32 = 48;

/// The observation with its fields apart, bit 0 first.
pub fn observation_text(shape: &Shape, observation: &Bits) -> String {
    if shape.fields.is_empty() {
        return "nothing".to_string();
    }
    let text = observation.to_text(usize::from(shape.observation_bits));
    let part = |low: u16, width: u16| &text[usize::from(low)..usize::from(low + width)];
    shape.fields.iter().map(|field| part(field.low, field.width)).collect::<Vec<_>>().join(" ")
}

/// The shape in one line.
pub fn shape_text(shape: &Shape) -> String {
    let widths: Vec<String> = shape.fields.iter().map(|field| field.width.to_string()).collect();
    let fields = if widths.is_empty() { "none".to_string() } else { widths.join(" ") };
    format!(
        "{} observation bits (fields {fields}), {} actions, horizon {}, reward {}..{}, return {}..{}",
        shape.observation_bits,
        shape.actions,
        shape.horizon,
        shape.reward_min,
        shape.reward_max,
        shape.return_min,
        shape.return_max
    )
}

/// Facts of the game and one episode for each seed.
pub fn playthrough(title: &str, game: &dyn Game, seeds: &[u64]) -> Result<String, EnvironmentError> {
    let shape = game.shape();
    let mut text = format!("{title}\n{}\n", shape_text(shape));
    let (optimum, random) = (game.optimum(), game.random());
    writeln!(text, "optimum {}, random {}", optimum.mean, random.mean).expect("text takes every line");
    for &seed in seeds {
        text.push_str(&episode_text(game, seed)?);
    }
    Ok(text)
}

fn episode_text(game: &dyn Game, seed: u64) -> Result<String, EnvironmentError> {
    let shape = game.shape();
    let mut world = game.start();
    let mut oracle = game.oracle();
    let mut coin = Prng::stream(seed, "playthrough");
    let mut text = format!("\nepisode {seed}\n");
    world.reset(seed)?;
    oracle.begin(seed);
    let (mut sum, mut length) = (0i64, 0u32);
    loop {
        let seen = observation_text(shape, world.observation());
        let best = oracle.act(world.observation());
        let action = if (seed + u64::from(length)) % 2 == 1 {
            best
        } else {
            coin.below(u64::from(shape.actions)) as u16
        };
        let outcome = world.step(action)?;
        oracle.see(action, &outcome);
        sum += i64::from(outcome.reward);
        length += 1;
        if length <= STEPS_SHOWN {
            let bad = if outcome.bad { ", BAD" } else { "" };
            let line = format!("{seen}: plays {action} (best {best}), gets {}{bad}", outcome.reward);
            writeln!(text, "{line}").expect("text takes every line");
        }
        if outcome.done {
            let line = format!("return {sum} after {length} steps");
            writeln!(text, "{line}").expect("text takes every line");
            return Ok(text);
        }
    }
}
