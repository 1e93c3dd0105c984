//! Worlds of one step that show nothing, in which one choice rule does better than another.
//!
//! `Opponent` plays against whoever plays it: it predicts the next action from what followed the last ones, and pays when it is
//! wrong. `Arms` pays every arm by a chance of its own. Both count what they paid by themselves, whoever hears of it.

use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::prng::Prng;

/// Actions back that the opponent remembers.
const REMEMBERED: u32 = 3;
/// Its counts are halved when one of them reaches this, so that it follows who changes.
const HALVE_AT: u32 = 32;

fn shape(actions: u16) -> Shape {
    Shape {
        observation_bits: 0,
        actions,
        fields: Vec::new(),
        horizon: 1,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 1_000,
    }
}

/// What a world has paid, and how often.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paid {
    /// Steps.
    pub steps: u64,
    /// What they were worth, in millionths of the most that one can bring.
    pub worth: u64,
}

impl Paid {
    fn book(&mut self, millionths: u64) {
        *self = Paid { steps: self.steps + 1, worth: self.worth + millionths };
    }

    /// The mean worth of a step.
    pub fn mean(&self) -> f64 {
        self.worth as f64 / self.steps.max(1) as f64 / 1e6
    }
}

/// A player who learns to predict the other one and is paid what it guesses.
pub struct Opponent {
    shape: Shape,
    /// How often each action followed the last ones.
    counts: Vec<Vec<u32>>,
    past: usize,
    /// What was paid, in all and in the second half.
    pub paid: Paid,
}

impl Opponent {
    /// Against a player with so many actions.
    pub fn new(actions: u16) -> Opponent {
        let pasts = usize::from(actions).pow(REMEMBERED);
        let counts = vec![vec![0; usize::from(actions)]; pasts];
        Opponent { shape: shape(actions), counts, past: 0, paid: Paid::default() }
    }

    /// The action that followed the last ones most often; ties go to the lowest.
    fn guess(&self) -> usize {
        let counts = self.counts[self.past].iter().enumerate();
        counts
            .max_by_key(|(action, count)| (**count, core::cmp::Reverse(*action)))
            .map_or(0, |(action, _)| action)
    }

    fn learn(&mut self, action: usize) {
        let counts = &mut self.counts[self.past];
        counts[action] += 1;
        if HALVE_AT <= counts[action] {
            counts.iter_mut().for_each(|count| *count /= 2);
        }
        self.past = (self.past * usize::from(self.shape.actions) + action) % self.counts.len();
    }
}

impl Environment for Opponent {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn repeats(&self) -> bool {
        false
    }

    fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &Bits::ZERO
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let is_wrong = self.guess() != usize::from(action);
        self.learn(usize::from(action));
        self.paid.book(1_000_000 * u64::from(is_wrong));
        Ok(Outcome { reward: 1_000 * i32::from(is_wrong), done: true, bad: false })
    }
}

/// Arms that pay with a chance of their own, in percent.
pub struct Arms {
    shape: Shape,
    prng: Prng,
    percent: Vec<u64>,
    /// What the choices were worth, whatever luck made of them, as a share of the best arm's.
    pub paid: Paid,
}

impl Arms {
    /// So many arms, one of which pays seven times in ten and the others three times.
    pub fn new(seed: u64, arms: u16) -> Arms {
        let mut prng = Prng::stream(seed, "bench/choice_rules");
        let best = prng.below(u64::from(arms));
        let percent = (0..u64::from(arms)).map(|arm| if arm == best { 70 } else { 30 }).collect();
        Arms { shape: shape(arms), prng, percent, paid: Paid::default() }
    }
}

impl Environment for Arms {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn repeats(&self) -> bool {
        false
    }

    fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &Bits::ZERO
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let percent = self.percent[usize::from(action)];
        let best = self.percent.iter().copied().max().unwrap_or(1);
        self.paid.book(1_000_000 * percent / best);
        let is_paid = self.prng.below(100) < percent;
        Ok(Outcome { reward: 1_000 * i32::from(is_paid), done: true, bad: false })
    }
}
