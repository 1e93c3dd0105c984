//! Helpers for the tests of families: build from texts, and compare stated values with play.

use crate::game::{Family, Game, Settings, Value};
use bem_base::prng::Prng;
use std::sync::Arc;

/// Builds a game from texts such as `n=4`.
pub fn build(family: &dyn Family, texts: &[(&str, &str)], seed: u64) -> Arc<dyn Game> {
    let texts = texts.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = Settings::parse(family.parameters(), &texts).unwrap();
    family.build(&settings, seed).unwrap()
}

/// The mean return of the oracle over consecutive seeds, in whole milli-units.
pub fn play_oracle(game: &dyn Game, episodes: u64) -> i64 {
    let (mut world, mut oracle) = (game.start(), game.oracle());
    let mut sum = 0;
    for seed in 0..episodes {
        world.reset(seed).unwrap();
        oracle.begin(seed);
        loop {
            let action = oracle.act(world.observation());
            let outcome = world.step(action).unwrap();
            oracle.see(action, &outcome);
            sum += i64::from(outcome.reward);
            if outcome.done {
                break;
            }
        }
    }
    sum / episodes as i64
}

/// The mean return of uniform play.
pub fn play_random(game: &dyn Game, episodes: u64) -> i64 {
    let mut world = game.start();
    let mut random = Prng::stream(1, "uniform play");
    let mut sum = 0;
    for seed in 0..episodes {
        world.reset(seed).unwrap();
        loop {
            let outcome = world.step(random.below(u64::from(game.shape().actions)) as u16).unwrap();
            sum += i64::from(outcome.reward);
            if outcome.done {
                break;
            }
        }
    }
    sum / episodes as i64
}

/// Asserts that stated values lie within `tolerance` milli-units of what many episodes give.
pub fn check_values(game: &dyn Game, tolerance: u64) {
    let whole = |value: Value| value.mean.to_raw() >> 32;
    let (optimum, random) = (whole(game.optimum()), whole(game.random()));
    let (best, uniform) = (play_oracle(game, 20_000), play_random(game, 20_000));
    assert!(optimum.abs_diff(best) <= tolerance, "optimum stated {optimum}, played {best}");
    assert!(random.abs_diff(uniform) <= tolerance, "random stated {random}, played {uniform}");
    assert!(random <= optimum, "random {random} above optimum {optimum}");
}
