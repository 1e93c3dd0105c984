//! The peer: tabular Q-learning on the observation, with falling step size and exploration.

#![expect(
    clippy::disallowed_types,
    reason = "it looks things up and goes through no map, and reaches no state"
)]

use anyhow::Result;
use bem_base::environment::Bits;
use bem_engine::evaluate::Yardstick;
use bem_games::game::Game;
use std::collections::HashMap;

/// Episodes of its evaluation.
const EPISODES: u64 = 1_000;

/// The score of the greedy policy after `steps` steps of learning.
pub fn score(game: &dyn Game, seed: u64, steps: u64) -> Result<f64> {
    let mut world = game.start();
    let actions = usize::from(game.shape().actions);
    let mut draw = bem_base::prng::Prng::stream(seed, "table/q");
    let mut table: HashMap<Bits, Vec<(f64, u32)>> = HashMap::new();
    let fresh = vec![(0.0, 0u32); actions];
    let mut taken = 0;
    while taken < steps {
        world.reset(draw.next_u64() >> 2)?;
        let mut state = *world.observation();
        loop {
            let explore = 1.0 - 0.9 * taken as f64 / steps as f64;
            let action = if (draw.below(1_000) as f64) < 1_000.0 * explore {
                draw.below(actions as u64) as usize
            } else {
                greedy(table.get(&state).unwrap_or(&fresh))
            };
            let outcome = world.step(action as u16)?;
            taken += 1;
            let next = *world.observation();
            let ahead = if outcome.done { 0.0 } else { best(table.get(&next).unwrap_or(&fresh)) };
            let (value, visits) = &mut table.entry(state).or_insert_with(|| fresh.clone())[action];
            *visits += 1;
            let rate = f64::max(1.0 / f64::from(*visits), 0.02);
            *value += rate * (f64::from(outcome.reward) + ahead - *value);
            if outcome.done || steps + 100_000 < taken {
                break;
            }
            state = next;
        }
    }
    let mut sum = 0.0;
    let episodes = (EPISODES * 1_000 / u64::from(game.shape().horizon).max(1_000)).max(4);
    for _ in 0..episodes {
        world.reset(draw.next_u64() >> 2 | 2 << 62)?;
        loop {
            let action = greedy(table.get(world.observation()).unwrap_or(&fresh));
            let outcome = world.step(action as u16)?;
            sum += f64::from(outcome.reward);
            if outcome.done {
                break;
            }
        }
    }
    let yardstick = Yardstick::of(game);
    let (optimum, random) = (yardstick.optimum.to_raw() as f64, yardstick.random.to_raw() as f64);
    let mean = sum / episodes as f64 * 4_294_967_296.0;
    Ok((mean - random) / (optimum - random).max(1.0))
}

fn best(cells: &[(f64, u32)]) -> f64 {
    cells.iter().map(|(value, _)| *value).fold(f64::MIN, f64::max)
}

fn greedy(cells: &[(f64, u32)]) -> usize {
    let top = best(cells);
    cells.iter().position(|(value, _)| *value == top).unwrap_or(0)
}
