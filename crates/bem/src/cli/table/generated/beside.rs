//! A world beside which best play is played on the same seeds: luck that both have in common is not counted as skill.
//!
//! What an episode loses is what best play earns on its seed less what it earned. In expectation that is the regret, and where
//! chance pays both alike nothing is left of it. Whoever plays sees the world alone. Clauses: VM-16; decision D-97.

use bem_base::environment::{Bits, Environment, EnvironmentError, Forbidden, Late, Outcome, Shape};
use bem_games::game::{Game, Oracle};

/// Episodes that were played to their end, and what they lost in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    episodes: u64,
    lost: i64,
}

/// A running world, and best play in another one.
pub struct Beside {
    world: Box<dyn Environment + Send>,
    twin: Box<dyn Environment + Send>,
    oracle: Box<dyn Oracle>,
    seed: u64,
    earned: i64,
    /// The last seed that best play has played, and what it earned.
    best: Option<(u64, i64)>,
    steps: u64,
    /// Steps after which the last half begins.
    half: u64,
    all: Sums,
    first_half: Sums,
    /// What best play earns more than random play, in milli-units.
    worth: f64,
}

impl Beside {
    /// A world that is played for so many steps, in which best play is worth so much more than random play.
    pub fn new(game: &dyn Game, steps: u64, worth: f64) -> Beside {
        Beside {
            world: game.start(),
            twin: game.start(),
            oracle: game.oracle(),
            seed: 0,
            earned: 0,
            best: None,
            steps: 0,
            half: steps / 2,
            all: Sums::default(),
            first_half: Sums::default(),
            worth: worth.max(f64::MIN_POSITIVE),
        }
    }

    /// What was earned, on the scale on which random play is 0 and best play 1.
    pub fn score(&self) -> f64 {
        self.scored(self.all).unwrap_or(0.0)
    }

    /// The same of the episodes that ended in the last half of the steps.
    pub fn score_last_half(&self) -> Option<f64> {
        let Sums { episodes, lost } = self.first_half;
        self.scored(Sums { episodes: self.all.episodes - episodes, lost: self.all.lost - lost })
    }

    fn scored(&self, sums: Sums) -> Option<f64> {
        let mean = sums.lost as f64 / sums.episodes as f64;
        (0 < sums.episodes).then(|| 1.0 - mean / self.worth)
    }

    /// What best play earns on this seed.
    fn best_on(&mut self, seed: u64) -> Result<i64, EnvironmentError> {
        if let Some((known, total)) = self.best
            && known == seed
        {
            return Ok(total);
        }
        self.twin.reset(seed)?;
        self.oracle.begin(seed);
        let mut total = 0;
        loop {
            let action = self.oracle.act(self.twin.observation());
            let outcome = self.twin.step(action)?;
            self.oracle.see(action, &outcome);
            total += i64::from(outcome.reward);
            if outcome.done {
                self.best = Some((seed, total));
                return Ok(total);
            }
        }
    }
}

impl Environment for Beside {
    fn shape(&self) -> &Shape {
        self.world.shape()
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        (self.seed, self.earned) = (seed, 0);
        self.world.reset(seed)
    }

    fn observation(&self) -> &Bits {
        self.world.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let outcome = self.world.step(action)?;
        self.steps += 1;
        self.earned += i64::from(outcome.reward);
        if outcome.done {
            let lost = self.best_on(self.seed)? - self.earned;
            self.all = Sums { episodes: self.all.episodes + 1, lost: self.all.lost + lost };
            if self.steps <= self.half {
                self.first_half = self.all;
            }
        }
        Ok(outcome)
    }

    fn forbidden(&self) -> &[Forbidden] {
        self.world.forbidden()
    }

    fn repeats(&self) -> bool {
        self.world.repeats()
    }

    fn is_awaited(&self) -> bool {
        self.world.is_awaited()
    }

    fn late(&self) -> &[Late] {
        self.world.late()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;
    use bem_games::generated::WorldKind;

    /// The scores of so many episodes in a world of noise, by one action for everything or by best play.
    fn scores(is_best: bool) -> (f64, f64) {
        let game = WorldKind::Noise.draw(3);
        let milli = |value: bem_games::game::Value| value.mean.to_raw() as f64 / f64::from(2.0f32).powi(32);
        let mut world = Beside::new(game.as_ref(), 4_000, milli(game.optimum()) - milli(game.random()));
        let (mut oracle, mut seeds, mut prng) = (game.oracle(), Prng::quick(1), Prng::quick(2));
        for _ in 0..4_000 {
            let seed = seeds.next_u64() >> 2;
            world.reset(seed).expect("it begins");
            oracle.begin(seed);
            let best = oracle.act(world.observation());
            let drawn = prng.below(u64::from(world.shape().actions)) as u16;
            world.step(if is_best { best } else { drawn }).expect("it goes on");
        }
        (world.score(), world.score_last_half().expect("half of the steps were taken"))
    }

    #[test]
    fn best_play_scores_one_whatever_its_luck_and_random_play_about_zero() {
        assert_eq!(scores(true), (1.0, 1.0));
        let (score, last_half) = scores(false);
        assert!(score.abs() < 0.1 && last_half.abs() < 0.1, "{score} {last_half}");
    }
}
