//! The evaluator: how good a frozen policy is. It alone asks a game for its optimum and for random play.
//!
//! Evaluation seeds come from a domain of their own; what is found goes to the report and never to the
//! learner. Where the game has an oracle, it plays the same episodes: how lucky they were for it is known exactly,
//! and taking that luck out of the agent's mean leaves far less noise (a control variate). Where what the oracle earns on average was
//! itself measured, its standard error is part of that of the mean; scores do not suffer, because they are differences to it.
//!
//! There are two ways to play, and they give the same numbers bit for bit. [`Judge`] has a game, which can be started
//! many times, and plays 256 episodes side by side ([`lanes`]). [`evaluate`] has one running world and plays episode by
//! episode: worlds outside, and agents that go on learning within an episode. Clauses: SCC-8, GLE-1.

pub mod baselines;
mod interval;
mod judge;
pub mod lanes;
mod scalar;
mod tally;
#[cfg(test)]
mod tests;
mod transpose;

pub use self::judge::Judge;
pub use self::scalar::evaluate;

use bem_base::environment::{Late, Outcome};
use bem_base::fixed::Fixed;
use bem_evolve::verify::RETURN_TOLERANCE;
use bem_games::game::Game;
use bem_synth::policy::Policy;

/// Episodes between two looks at whether an evaluation is enough, and so of one at least; fewer where they are very long.
pub const EVALUATION_EPISODES: u32 = 1_000;
/// Steps between two such looks at most, and the episodes that are played all the same. What is left open then shows in the
/// interval, which goes by the episodes that were played.
const LOOK_STEPS_MAX: u32 = 1 << 20;
const LOOK_EPISODES_MIN: u32 = 16;
/// Steps after which an evaluation ends at the next look; without a yardstick, with the next episode.
pub const EVALUATION_STEPS_MAX: u64 = 2_000_000;
/// The same where what the best policy earns was itself measured: nobody needs to know more exactly than that.
const MEASURED_STEPS_MAX: u64 = 1 << 15;
/// The same in steps times gates.
///
/// Gates cost far less since episodes are played side by side. But this number decides how many episodes a large circuit
/// plays, so that another one would change what evaluations say; it is kept, and they stay the same bit for bit.
const EVALUATION_GATES_MAX: u64 = 300_000_000;
/// Standard errors within which a difference says nothing.
const DOUBT_ERRORS: i128 = 3;

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

/// Whether the evaluations leave open that the later one is lower by more than the tolerance.
pub fn leaves_doubt(before: &Evaluation, after: &Evaluation, yardstick: Yardstick) -> bool {
    let raw = |number: Fixed| i128::from(number.to_raw());
    let beyond = raw(after.mean) - raw(before.mean) + raw(yardstick.tolerated());
    beyond < DOUBT_ERRORS * (raw(before.error) + raw(after.error))
}

/// Episodes between two looks: as many as a bounded number of steps allows, whatever happens in them.
fn look_of(horizon: u32) -> u32 {
    (LOOK_STEPS_MAX / horizon.max(1)).clamp(LOOK_EPISODES_MIN, EVALUATION_EPISODES)
}

/// How long an evaluation goes on, and what is known of the optimum that it is held against.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Episodes between two looks.
    look: u32,
    /// Steps after which it ends with the next look.
    steps_max: u64,
    /// The standard error of the stated optimum; zero where it is exact.
    doubt: Fixed,
}

impl Extent {
    /// Of these policies in a world where episodes have so many steps at most.
    fn of(policies: &[&Policy], horizon: u32, doubt: Fixed) -> Extent {
        let steps_max = steps_max(policies);
        let steps_max = if doubt == Fixed::ZERO { steps_max } else { steps_max.min(MEASURED_STEPS_MAX) };
        Extent { look: look_of(horizon), steps_max, doubt }
    }

    /// Without a yardstick.
    fn outside(policies: &[&Policy]) -> Extent {
        Extent { look: EVALUATION_EPISODES, steps_max: steps_max(policies), doubt: Fixed::ZERO }
    }
}

/// Steps that these policies may play. Large circuits get fewer beyond the first look.
fn steps_max(policies: &[&Policy]) -> u64 {
    let gates: usize = policies.iter().map(|policy| policy.gates()).sum();
    EVALUATION_STEPS_MAX.min(EVALUATION_GATES_MAX / (100 + gates as u64))
}

/// What one episode brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// The sum of its rewards, in milli-units.
    pub total: i64,
    /// Something happened that must not.
    pub spoiled: bool,
    /// Its length.
    pub steps: u64,
}

impl Played {
    /// One more step.
    #[inline]
    fn take(&mut self, outcome: &Outcome) {
        self.total += i64::from(outcome.reward);
        self.spoiled |= outcome.bad;
        self.steps += 1;
    }

    /// What earlier steps are paid late.
    #[inline]
    fn take_late(&mut self, late: &[Late]) {
        self.total += late.iter().map(|late| i64::from(late.reward)).sum::<i64>();
    }
}
