//! The evaluator: how good a frozen policy is. It alone asks a game for its optimum and for random play.
//!
//! Evaluation seeds come from a domain of their own; what is found goes to the report and never to the
//! learner. Clauses: SCC-8, GLE-1.

use crate::seeds::{Domain, Seeds};
use bem_base::environment::{Environment, EnvironmentError};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_games::game::Game;
use bem_synth::policy::{Player, Policy};

/// Episodes of one evaluation.
pub const EVALUATION_EPISODES: u32 = 1_000;

/// What the optimum and random play are worth, if anyone knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Yardstick {
    /// The expected return of the best policy.
    pub optimum: Fixed,
    /// The expected return of random play.
    pub random: Fixed,
}

impl Yardstick {
    /// Asks the game.
    pub fn of(game: &dyn Game) -> Yardstick {
        Yardstick { optimum: game.optimum().mean, random: game.random().mean }
    }

    /// `(mean - random) / (optimum - random)`; one when there is nothing to gain.
    pub fn score(&self, mean: Fixed) -> Fixed {
        let span = self.optimum.minus(self.random);
        if span <= Fixed::ZERO {
            return Fixed::ONE;
        }
        mean.minus(self.random).div_floor(span)
    }
}

/// The result of one evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// Mean return in milli-units.
    pub mean: Fixed,
    /// Episodes in which something happened that must not.
    pub bad: u32,
}

/// Plays a frozen policy (or, without one, uniformly at random) on evaluation seeds.
pub fn evaluate(
    world: &mut dyn Environment,
    policy: Option<&Policy>,
    run_seed: u64,
    episodes: u32,
) -> Result<Evaluation, EnvironmentError> {
    let mut seeds = Seeds::new(run_seed, Domain::Evaluation);
    let mut draw = Prng::stream(run_seed, "engine/evaluation/uniform");
    let mut player = policy.map(Player::new);
    let (mut sum, mut bad) = (0i64, 0);
    let actions = u64::from(world.shape().actions);
    for _ in 0..episodes {
        world.reset(seeds.next_seed())?;
        if let Some(player) = &mut player {
            player.begin();
        }
        let mut spoiled = false;
        loop {
            let action = match &mut player {
                Some(player) => player.act(world.observation()),
                None => draw.below(actions) as u16,
            };
            let outcome = world.step(action)?;
            sum += i64::from(outcome.reward);
            spoiled |= outcome.bad;
            if outcome.done {
                break;
            }
        }
        bad += u32::from(spoiled);
    }
    // Sums of 32-bit rewards over bounded episodes; divide first so that the quotient fits a fixed number.
    let whole = sum.div_euclid(i64::from(episodes));
    let rest = sum.rem_euclid(i64::from(episodes));
    let mean = Fixed::from_int(whole as i32).plus(Fixed::from_ratio(rest, i64::from(episodes)));
    Ok(Evaluation { mean, bad })
}
