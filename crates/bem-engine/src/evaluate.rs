//! The evaluator: how good a frozen policy is. It alone asks a game for its optimum and for random play.
//!
//! Evaluation seeds come from a domain of their own; what is found goes to the report and never to the
//! learner. Clauses: SCC-8, GLE-1.

use crate::agent::{Actor, Agent};
use crate::seeds::{Domain, Seeds};
use bem_base::environment::{Environment, EnvironmentError};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_games::game::Game;

/// Episodes of one evaluation at least.
pub const EVALUATION_EPISODES: u32 = 1_000;
/// Steps after which an evaluation ends with the next thousand episodes.
pub const EVALUATION_STEPS_MAX: u64 = 2_000_000;
/// The same in steps times gates.
const EVALUATION_GATES_MAX: u64 = 300_000_000;

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
    /// Episodes played.
    pub episodes: u32,
}

/// Plays a frozen agent on evaluation seeds: at least [`EVALUATION_EPISODES`], and more until the mean is known to
/// a quarter of a percent of what there is to gain, as far as [`EVALUATION_STEPS_MAX`] steps go.
pub fn evaluate(
    world: &mut dyn Environment,
    agent: &Agent,
    run_seed: u64,
    yardstick: Option<Yardstick>,
) -> Result<Evaluation, EnvironmentError> {
    let mut seeds = Seeds::new(run_seed, Domain::Evaluation);
    let mut actor = Actor::new(agent);
    // Large circuits cost more a step, so that they get fewer beyond the first thousand episodes.
    let cost = 100 + agent.policy().gates() as u64;
    let mut tally =
        Tally { steps_max: EVALUATION_STEPS_MAX.min(EVALUATION_GATES_MAX / cost), ..Tally::default() };
    loop {
        world.reset(seeds.next_seed())?;
        actor.begin();
        let (mut total, mut spoiled) = (0i64, false);
        loop {
            let action = actor.act(world.observation());
            let outcome = world.step(action)?;
            actor.see(action, outcome.reward);
            total += i64::from(outcome.reward);
            spoiled |= outcome.bad;
            tally.steps += 1;
            if outcome.done {
                break;
            }
        }
        tally.add(total, spoiled);
        if tally.is_enough(yardstick) {
            return Ok(tally.evaluation());
        }
    }
}

/// Sums of one evaluation.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    episodes: i64,
    steps: u64,
    steps_max: u64,
    sum: i64,
    squares: i128,
    bad: u32,
}

impl Tally {
    fn add(&mut self, total: i64, spoiled: bool) {
        self.episodes += 1;
        self.sum += total;
        self.squares += i128::from(total) * i128::from(total);
        self.bad += u32::from(spoiled);
    }

    fn is_enough(&self, yardstick: Option<Yardstick>) -> bool {
        let thousands = self.episodes % i64::from(EVALUATION_EPISODES) == 0;
        if !thousands {
            return false;
        }
        if self.steps_max <= self.steps {
            return true;
        }
        let Some(yardstick) = yardstick else { return true };
        // The squared standard error of the mean is (squares - sum^2 / n) / n^2.
        let count = i128::from(self.episodes);
        let spread = self.squares - i128::from(self.sum) * i128::from(self.sum) / count;
        let span = i128::from(yardstick.optimum.minus(yardstick.random).to_raw() >> FRACTION_BITS);
        if span <= 0 {
            return true;
        }
        let precise = spread * 400 * 400 <= span * span * count * count;
        // Four standard errors below 0.985 is far enough to know that it is not solved.
        let bound = i128::from(yardstick.random.to_raw() >> FRACTION_BITS) + span * 985 / 1_000;
        let short = bound * count - i128::from(self.sum);
        let hopeless = 0 < short && 16 * spread <= short * short;
        precise || hopeless
    }

    fn evaluation(&self) -> Evaluation {
        // Divide first, so that the quotient fits a fixed number.
        let whole = self.sum.div_euclid(self.episodes);
        let rest = self.sum.rem_euclid(self.episodes);
        let mean = Fixed::from_int(whole as i32).plus(Fixed::from_ratio(rest, self.episodes));
        Evaluation { mean, bad: self.bad, episodes: self.episodes as u32 }
    }
}
