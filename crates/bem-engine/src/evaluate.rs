//! The evaluator: how good a frozen policy is. It alone asks a game for its optimum and for random play.
//!
//! Evaluation seeds come from a domain of their own; what is found goes to the report and never to the
//! learner. Where the game has an oracle, it plays the same episodes: how lucky they were for it is known exactly,
//! and taking that luck out of the agent's mean leaves far less noise (a control variate). Clauses: SCC-8, GLE-1.

use crate::agent::{Actor, Agent};
use crate::seeds::{Domain, Seeds};
use bem_base::environment::{Environment, EnvironmentError};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_evolve::verify::RETURN_TOLERANCE;
use bem_games::game::{Game, Oracle};

/// Episodes of one evaluation at least.
pub const EVALUATION_EPISODES: u32 = 1_000;
/// Steps after which an evaluation ends with the next thousand episodes; without a yardstick, with the next one.
pub const EVALUATION_STEPS_MAX: u64 = 2_000_000;
/// The same in steps times gates.
const EVALUATION_GATES_MAX: u64 = 300_000_000;
/// Episodes of an evaluation without a yardstick at least: a world outside takes its time for every step.
const OUTSIDE_EPISODES_MIN: i64 = 32;

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

    /// By how much a change may lower the mean return.
    fn tolerated(&self) -> Fixed {
        self.optimum.minus(self.random).max(Fixed::ZERO).mul_floor(RETURN_TOLERANCE)
    }
}

/// The result of one evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// Mean return in milli-units.
    pub mean: Fixed,
    /// Its standard error.
    pub error: Fixed,
    /// Episodes in which something happened that must not.
    pub bad: u32,
    /// Episodes played.
    pub episodes: u32,
}

/// Plays a frozen agent on evaluation seeds: at least [`EVALUATION_EPISODES`], and more until the mean is known to
/// a quarter of a percent of what there is to gain, as far as [`EVALUATION_STEPS_MAX`] steps go. Where nobody knows what
/// there is to gain, very long episodes may be fewer.
pub fn evaluate(
    world: &mut dyn Environment,
    agent: &Agent,
    run_seed: u64,
    yardstick: Option<Yardstick>,
    mut oracle: Option<&mut dyn Oracle>,
) -> Result<Evaluation, EnvironmentError> {
    let mut seeds = Seeds::new(run_seed, Domain::Evaluation);
    let mut actor = Actor::new(agent);
    let mut tally = Tally { steps_max: steps_max(&[agent]), ..Tally::default() };
    loop {
        let seed = seeds.next_seed();
        let played = play(world, &mut actor, seed)?;
        tally.steps += played.steps;
        let best = match &mut oracle {
            Some(oracle) => Some(play_oracle(world, *oracle, seed)?),
            None => None,
        };
        tally.add(played.total, best, played.spoiled);
        if tally.is_enough(yardstick) {
            return Ok(tally.evaluation(yardstick));
        }
    }
}

/// How much more one agent earns than another in the same episodes, on average: as many as it takes to know whether it
/// earns less by more than the tolerance. What both owe to luck cancels out.
pub fn compare(
    world: &mut dyn Environment,
    [before, after]: [&Agent; 2],
    run_seed: u64,
    yardstick: Yardstick,
) -> Result<Fixed, EnvironmentError> {
    let mut seeds = Seeds::new(run_seed, Domain::Evaluation);
    let mut actors = [before, after].map(Actor::new);
    let steps_max = steps_max(&[before, after]);
    let (mut steps, mut tally) = (0, Tally::default());
    loop {
        let seed = seeds.next_seed();
        let [one, other] = &mut actors;
        let (one, other) = (play(world, one, seed)?, play(world, other, seed)?);
        steps += one.steps + other.steps;
        tally.add(other.total - one.total, None, false);
        if tally.episodes % i64::from(EVALUATION_EPISODES) != 0 {
            continue;
        }
        let Evaluation { mean, error, .. } = tally.evaluation(None);
        let beyond = i128::from(mean.to_raw()) + i128::from(yardstick.tolerated().to_raw());
        if DOUBT_ERRORS * i128::from(error.to_raw()) <= beyond.abs() || steps_max <= steps {
            return Ok(mean);
        }
    }
}

/// Standard errors within which a difference says nothing.
const DOUBT_ERRORS: i128 = 3;

/// Whether the evaluations leave open that the later one is lower by more than the tolerance.
pub fn leaves_doubt(before: &Evaluation, after: &Evaluation, yardstick: Yardstick) -> bool {
    let raw = |number: Fixed| i128::from(number.to_raw());
    let beyond = raw(after.mean) - raw(before.mean) + raw(yardstick.tolerated());
    beyond < DOUBT_ERRORS * (raw(before.error) + raw(after.error))
}

/// Steps that these agents may play. Large circuits cost more a step, so that they get fewer beyond the first thousand
/// episodes.
fn steps_max(agents: &[&Agent]) -> u64 {
    let gates: usize = agents.iter().map(|agent| agent.policy().gates()).sum();
    EVALUATION_STEPS_MAX.min(EVALUATION_GATES_MAX / (100 + gates as u64))
}

/// One episode of an agent.
struct Played {
    total: i64,
    spoiled: bool,
    steps: u64,
}

fn play(world: &mut dyn Environment, actor: &mut Actor<'_>, seed: u64) -> Result<Played, EnvironmentError> {
    world.reset(seed)?;
    actor.begin();
    let mut played = Played { total: 0, spoiled: false, steps: 0 };
    loop {
        let action = actor.act(world.observation());
        let outcome = world.step(action)?;
        actor.see(action, outcome.reward);
        played.total += i64::from(outcome.reward);
        played.spoiled |= outcome.bad;
        played.steps += 1;
        if outcome.done {
            return Ok(played);
        }
    }
}

/// What the oracle earns in the episode of this seed.
fn play_oracle(
    world: &mut dyn Environment,
    oracle: &mut dyn Oracle,
    seed: u64,
) -> Result<i64, EnvironmentError> {
    world.reset(seed)?;
    oracle.begin(seed);
    let mut total = 0;
    loop {
        let action = oracle.act(world.observation());
        let outcome = world.step(action)?;
        oracle.see(action, &outcome);
        total += i64::from(outcome.reward);
        if outcome.done {
            return Ok(total);
        }
    }
}

/// A sum with the sum of squares.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    sum: i64,
    squares: i128,
}

impl Moments {
    fn add(&mut self, value: i64) {
        self.sum += value;
        self.squares += i128::from(value) * i128::from(value);
    }

    /// The summed squares of deviations from the mean.
    fn spread(&self, count: i64) -> i128 {
        self.squares - i128::from(self.sum) * i128::from(self.sum) / i128::from(count.max(1))
    }
}

/// Sums of one evaluation.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    episodes: i64,
    steps: u64,
    steps_max: u64,
    /// Returns of the agent.
    own: Moments,
    /// Returns of the agent less those of the oracle in the same episodes.
    behind: Option<Moments>,
    bad: u32,
}

impl Tally {
    fn add(&mut self, total: i64, best: Option<i64>, spoiled: bool) {
        self.episodes += 1;
        self.own.add(total);
        if let Some(best) = best {
            self.behind.get_or_insert_default().add(total - best);
        }
        self.bad += u32::from(spoiled);
    }

    /// The sums with the smaller spread, and what has to be added to their mean.
    fn estimate(&self, yardstick: Option<Yardstick>) -> (Moments, Fixed) {
        match (self.behind, yardstick) {
            (Some(behind), Some(yardstick))
                if behind.spread(self.episodes) < self.own.spread(self.episodes) =>
            {
                (behind, yardstick.optimum)
            }
            _ => (self.own, Fixed::ZERO),
        }
    }

    fn is_enough(&self, yardstick: Option<Yardstick>) -> bool {
        let is_long = self.steps_max <= self.steps && OUTSIDE_EPISODES_MIN <= self.episodes;
        let is_whole = self.episodes % i64::from(EVALUATION_EPISODES) == 0;
        let may_end = is_whole || is_long && yardstick.is_none();
        if !may_end {
            return false;
        }
        if self.steps_max <= self.steps {
            return true;
        }
        let Some(yardstick) = yardstick else { return true };
        // The squared standard error of the mean is spread / n^2.
        let (moments, added) = self.estimate(Some(yardstick));
        let count = i128::from(self.episodes);
        let spread = moments.spread(self.episodes);
        let span = i128::from(yardstick.optimum.minus(yardstick.random).to_raw() >> FRACTION_BITS);
        if span <= 0 {
            return true;
        }
        let precise = spread * 400 * 400 <= span * span * count * count;
        // Four standard errors below 0.985 is far enough to know that it is not solved.
        let bound = i128::from(yardstick.random.minus(added).to_raw() >> FRACTION_BITS) + span * 985 / 1_000;
        let short = bound * count - i128::from(moments.sum);
        let hopeless = 0 < short && 16 * spread <= short * short;
        precise || hopeless
    }

    fn evaluation(&self, yardstick: Option<Yardstick>) -> Evaluation {
        let (moments, added) = self.estimate(yardstick);
        // Divide first, so that the quotient fits a fixed number; a mean beyond all of them is the largest there is.
        let whole = moments.sum.div_euclid(self.episodes).clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        let rest = moments.sum.rem_euclid(self.episodes);
        let mean = Fixed::from_int(whole as i32).plus(Fixed::from_ratio(rest, self.episodes)).plus(added);
        // The root comes first, so that no return is too large for it.
        let error = (moments.spread(self.episodes).isqrt() << FRACTION_BITS) / i128::from(self.episodes);
        let error = Fixed::from_raw(i64::try_from(error).unwrap_or(i64::MAX));
        Evaluation { mean, error, bad: self.bad, episodes: self.episodes as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_games::compose::{NoPrograms, TaskTree};
    use bem_synth::policy::Policy;

    #[test]
    fn long_episodes_of_a_world_outside_are_not_played_a_thousand_times() {
        let yardstick = Yardstick { optimum: Fixed::ONE, random: Fixed::ZERO };
        let is_enough = |episodes: i64, steps: u64, yardstick| {
            Tally { episodes, steps, steps_max: EVALUATION_STEPS_MAX, ..Tally::default() }
                .is_enough(yardstick)
        };
        assert!(is_enough(32, EVALUATION_STEPS_MAX, None));
        assert!(!is_enough(31, EVALUATION_STEPS_MAX, None));
        assert!(!is_enough(999, EVALUATION_STEPS_MAX - 1, None));
        assert!(is_enough(1_000, 1_000, None));
        assert!(!is_enough(999, EVALUATION_STEPS_MAX, Some(yardstick)));
    }

    #[test]
    fn a_mean_beyond_all_numbers_keeps_its_sign() {
        let mean_of = |total: i64| {
            let mut tally = Tally::default();
            (0..4).for_each(|_| tally.add(total, None, false));
            tally.evaluation(None).mean
        };
        assert_eq!(mean_of(4_000_000_000), Fixed::from_int(i32::MAX));
        assert_eq!(mean_of(-4_000_000_000), Fixed::from_int(i32::MIN));
        assert_eq!(mean_of(-4_000), Fixed::from_int(-4_000));
    }

    #[test]
    fn the_error_of_a_mean_is_known_for_small_and_for_large_returns() {
        // Returns stray by 2,000 from their mean, in this scale, and the root of 400 episodes is 20.
        let error_at = |scale: i64| {
            let mut tally = Tally::default();
            (0..400).for_each(|episode| tally.add(episode % 2 * 4_000 * scale, None, false));
            tally.evaluation(None).error
        };
        assert_eq!(error_at(1), Fixed::from_int(100));
        assert_eq!(error_at(1_000_000), Fixed::from_int(100_000_000));
        assert_eq!(error_at(1_000_000_000_000), Fixed::from_raw(i64::MAX));
    }

    #[test]
    fn luck_that_the_oracle_shares_is_taken_out() {
        let yardstick = Yardstick { optimum: Fixed::from_int(5_000), random: Fixed::from_int(1_000) };
        let (mut alone, mut paired) = (Tally::default(), Tally::default());
        for episode in 0..1_000i64 {
            let luck = episode * 7_919 % 10_001;
            // Every tenth episode it earns 400 less than it could.
            let own = luck - if episode % 10 == 0 { 400 } else { 0 };
            alone.add(own, None, false);
            paired.add(own, Some(luck), false);
        }
        assert_eq!(paired.evaluation(Some(yardstick)).mean, Fixed::from_int(4_960));
        paired.steps_max = u64::MAX;
        alone.steps_max = u64::MAX;
        assert!(paired.is_enough(Some(yardstick)) && !alone.is_enough(Some(yardstick)));
    }

    #[test]
    fn two_agents_are_told_apart_by_the_episodes_that_both_play() {
        let game = TaskTree::parse("bandit{arms=2,gap=20}").unwrap().build(1, &NoPrograms).unwrap();
        let yardstick = Yardstick::of(game.as_ref());
        let mut world = game.start();
        let [one, other] = [0, 1].map(|action| Agent::circuit(Policy::constant(2, action)));
        let mut gain = |agents| compare(world.as_mut(), agents, 1, yardstick).unwrap();
        assert_eq!(gain([&one, &one]), Fixed::ZERO);
        let (there, back) = (gain([&one, &other]), gain([&other, &one]));
        assert!(yardstick.tolerated() < there.max(back) && there.plus(back) == Fixed::ZERO);
    }

    #[test]
    fn doubt_is_left_where_errors_reach_beyond_the_tolerance() {
        let yardstick = Yardstick { optimum: Fixed::from_int(6_400), random: Fixed::ZERO };
        let of = |mean, error| {
            let (mean, error) = (Fixed::from_int(mean), Fixed::from_int(error));
            Evaluation { mean, error, bad: 0, episodes: 1_000 }
        };
        assert!(!leaves_doubt(&of(500, 0), &of(400, 0), yardstick));
        assert!(leaves_doubt(&of(500, 0), &of(399, 0), yardstick));
        assert!(leaves_doubt(&of(500, 20), &of(500, 20), yardstick));
        assert!(!leaves_doubt(&of(500, 20), &of(520, 20), yardstick));
    }
}
