//! From outcomes to losses: reward less the penalties for BAD steps and for cost, on the family's own range.
//!
//! The range covers a BAD step only once the family has seen one: a world that is never BAD keeps the whole range of
//! losses for its rewards. The division is done here, once; a step multiplies. Clauses: VM-17, VM-11, D-8.

use crate::config::GenesisConfig;
use bem_base::environment::{Outcome, Shape};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_learn::loss::{Loss, PayoffRange, SPAN_MAX, Widening};

/// The payoff scale of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "u_t")]
pub struct PayoffScale {
    reward: (i64, i64),
    episode_return: (i64, i64),
    bad_penalty: i64,
    cost_penalty_max: i64,
    covers_bad: bool,
    step_range: PayoffRange,
    episode_range: PayoffRange,
    /// Returns are halved this many times before they are compared, so that their range fits.
    episode_shift: u32,
}

/// What work units cost, in milli-units, rounded down.
pub fn cost_penalty(config: &GenesisConfig, work_units: u32) -> i64 {
    ((i128::from(config.cost_penalty.to_raw()) * i128::from(work_units)) >> FRACTION_BITS) as i64
}

impl PayoffScale {
    /// The scale for a world of this shape, before any BAD step.
    pub fn new(config: &GenesisConfig, shape: &Shape) -> PayoffScale {
        let no_cost = config.cost_penalty == Fixed::ZERO;
        let cost_penalty_max = if no_cost { 0 } else { cost_penalty(config, config.expert_cost_max) };
        let unit = PayoffRange::new(0, 1).expect("a range of one unit is valid");
        let mut scale = PayoffScale {
            reward: (i64::from(shape.reward_min), i64::from(shape.reward_max)),
            episode_return: (shape.return_min, shape.return_max),
            bad_penalty: i64::from(config.bad_penalty),
            cost_penalty_max,
            covers_bad: false,
            step_range: unit,
            episode_range: unit,
            episode_shift: 0,
        };
        scale.fit();
        scale
    }

    /// Derives the ranges; a world that always pays the same gets a range of one unit.
    fn fit(&mut self) {
        let bad = if self.covers_bad { self.bad_penalty } else { 0 };
        let low = self.reward.0 - bad - self.cost_penalty_max;
        let high = self.reward.1.max(low + 1).min(low + SPAN_MAX);
        self.step_range = PayoffRange::new(low, high).expect("at least one and at most SPAN_MAX units");
        // A declared return at the very end of the numbers still leaves a range of one unit.
        let low = self.episode_return.0.saturating_sub(bad).min(i64::MAX - 1);
        let high = self.episode_return.1.max(low + 1);
        let mut shift = 0;
        while SPAN_MAX <= (high >> shift).saturating_sub(low >> shift) {
            shift += 1;
        }
        let low = low >> shift;
        let high = (high >> shift).max(low + 1);
        self.episode_range = PayoffRange::new(low, high).expect("the shift makes it fit");
        self.episode_shift = shift;
    }

    /// Whether this outcome needs a wider range than the one in use: the first BAD step of a family.
    #[inline]
    pub fn must_widen(&self, outcome: &Outcome) -> bool {
        outcome.bad && !self.covers_bad
    }

    /// Makes the ranges cover BAD steps; how losses of steps and of episodes from before are brought onto them. Penalties lower
    /// the low end alone.
    pub fn widen(&mut self) -> (Widening, Widening) {
        let before = self.spans();
        self.covers_bad = true;
        self.fit();
        let after = self.spans();
        // Returns are halved before they are compared: a range may lose a unit to that, and is never narrower than before.
        let widening = |from: u64, to: u64| Widening::new(from, to.max(from), 0);
        (widening(before.0, after.0), widening(before.1, after.1))
    }

    /// Makes the ranges hold those of a world that has paid more or less than it had said; how losses of steps and of episodes
    /// from before are brought onto them, where their range has changed.
    pub fn cover(&mut self, shape: &Shape) -> (Option<Widening>, Option<Widening>) {
        let before = self.clone();
        self.reward.0 = self.reward.0.min(i64::from(shape.reward_min));
        self.reward.1 = self.reward.1.max(i64::from(shape.reward_max));
        self.episode_return.0 = self.episode_return.0.min(shape.return_min);
        self.episode_return.1 = self.episode_return.1.max(shape.return_max);
        self.fit();
        let (from, to) = (before.spans().1, self.spans().1);
        let high = |scale: &PayoffScale| i128::from(scale.episode_range.parts().1) << scale.episode_shift;
        let step = before.step_range.widening_to(&self.step_range);
        let episode = Widening::new(from, to.max(from), high(self) - high(&before));
        let (ranges, known) = (self.ranges(), before.ranges());
        let is_same_episode = (ranges.1, ranges.2) == (known.1, known.2);
        ((ranges.0 != known.0).then_some(step), (!is_same_episode).then_some(episode))
    }

    /// How many units the ranges of steps and of episodes are wide.
    fn spans(&self) -> (u64, u64) {
        let span = |range: &PayoffRange| {
            let (low, high, _) = range.parts();
            (high - low) as u64
        };
        (span(&self.step_range), span(&self.episode_range) << self.episode_shift)
    }

    /// Whether the range covers BAD steps.
    pub fn covers_bad(&self) -> bool {
        self.covers_bad
    }

    /// The range of one step's payoff, that of an episode's sum, and how often the sum is halved before.
    pub fn ranges(&self) -> (PayoffRange, PayoffRange, u32) {
        (self.step_range, self.episode_range, self.episode_shift)
    }

    /// `u_t = r_t - lambda_bad * BAD_t - lambda_cost * cost_t`, in milli-units.
    #[inline]
    pub fn payoff(&self, outcome: &Outcome, cost_penalty: i64) -> i64 {
        i64::from(outcome.reward) - self.bad_penalty * i64::from(outcome.bad) - cost_penalty
    }

    /// The loss of one step.
    #[inline]
    pub fn step_loss(&self, outcome: &Outcome, cost_penalty: i64) -> Loss {
        self.step_range.loss(self.payoff(outcome, cost_penalty))
    }

    /// The loss of a whole episode with this sum of payoffs; more than one BAD step is held at the low end.
    #[inline]
    pub fn episode_loss(&self, payoff_sum: i64) -> Loss {
        self.episode_range.loss(payoff_sum >> self.episode_shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape {
            observation_bits: 1,
            actions: 2,
            horizon: 4,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 4_000,
            fields: Vec::new(),
        }
    }

    fn outcome(reward: i32, bad: bool) -> Outcome {
        Outcome { reward, done: false, bad }
    }

    #[test]
    fn rewards_use_the_whole_range_until_the_first_bad_step() {
        let mut scale = PayoffScale::new(&GenesisConfig::default(), &shape());
        let loss = |scale: &PayoffScale, reward, bad| scale.step_loss(&outcome(reward, bad), 0).to_raw();
        assert_eq!((loss(&scale, 1_000, false), loss(&scale, 0, false)), (0, 1 << 32));
        assert!(scale.must_widen(&outcome(0, true)));
        scale.widen();
        assert!(!scale.must_widen(&outcome(0, true)));
        // The range is now -1000 to 1000.
        let four = [(1_000, false), (0, false), (1_000, true), (0, true)].map(|(r, b)| loss(&scale, r, b));
        assert_eq!(four, [0, 1 << 31, 1 << 31, 1 << 32]);
    }

    #[test]
    fn losses_from_before_are_where_the_same_payoffs_are_on_a_wider_range() {
        let wider = |reward: (i32, i32), total: (i64, i64)| Shape {
            reward_min: reward.0,
            reward_max: reward.1,
            return_min: total.0,
            return_max: total.1,
            ..shape()
        };
        let ranges = [
            ((-3_000, 1_000), (-9_000, 4_000)),
            ((0, 5_000), (0, 1 << 33)),
            ((-500, 1_500), (-(1 << 33), 7_000)),
        ];
        for (covers_bad, (reward, total)) in
            [false, true].into_iter().flat_map(|bad| ranges.map(|to| (bad, to)))
        {
            let mut scale = PayoffScale::new(&GenesisConfig::default(), &shape());
            if covers_bad {
                scale.widen();
            }
            let before = scale.clone();
            let (step, episode) = scale.cover(&wider(reward, total));
            for payoff in [0, 1, 250, 999, 1_000] {
                let (old, new) = (
                    before.step_loss(&outcome(payoff, false), 0),
                    scale.step_loss(&outcome(payoff, false), 0),
                );
                let moved = step.unwrap().apply(old.to_raw(), Loss::ONE.to_raw());
                assert!(moved.abs_diff(new.to_raw()) <= 4, "{payoff} {reward:?}");
                let (old, new) =
                    (before.episode_loss(4 * i64::from(payoff)), scale.episode_loss(4 * i64::from(payoff)));
                let moved = episode.unwrap().apply(old.to_raw(), Loss::ONE.to_raw());
                // Sums are halved until their range fits, rounded down to a unit of what is left.
                let (_, range, shift) = scale.ranges();
                let (low, high, _) = range.parts();
                let unit = if shift == 0 { 0 } else { Loss::ONE.to_raw() / (high - low) as u64 };
                assert!(moved.abs_diff(new.to_raw()) <= 4 + unit, "{payoff} {total:?}");
            }
            assert_eq!(scale.cover(&wider(reward, total)), (None, None));
        }
    }

    #[test]
    fn cost_is_a_penalty_too() {
        let config =
            GenesisConfig { cost_penalty: Fixed::HALF, expert_cost_max: 2_000, ..GenesisConfig::default() };
        let scale = PayoffScale::new(&config, &shape());
        assert_eq!(cost_penalty(&config, 101), 50);
        assert_eq!(scale.payoff(&outcome(700, true), 50), 700 - 1_000 - 50);
        // The range is -1000 (no reward at the highest cost) to 1000.
        assert_eq!(scale.step_loss(&outcome(0, false), 0).to_raw(), 1 << 31);
    }

    #[test]
    fn returns_at_the_ends_of_all_numbers_have_a_scale() {
        let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        for (return_min, return_max) in ends.iter().flat_map(|low| ends.map(|high| (*low, high))) {
            let shape = Shape { return_min, return_max, ..shape() };
            let mut scale = PayoffScale::new(&GenesisConfig::default(), &shape);
            for widened in [false, true] {
                let (_, range, shift) = scale.ranges();
                let middle = (return_min >> 1) + (return_max >> 1);
                assert!(scale.episode_loss(middle) <= Loss::ONE, "{shape:?} {range:?} {shift} {widened}");
                scale.widen();
            }
        }
    }

    #[test]
    fn odd_shapes_still_have_a_scale() {
        let flat = Shape { reward_max: 0, return_max: 0, ..shape() };
        let scale = PayoffScale::new(&GenesisConfig::default(), &flat);
        assert_eq!(scale.step_loss(&outcome(0, false), 0), Loss::ONE);
        let wide = Shape { return_min: i64::MIN / 4, return_max: i64::MAX / 4, ..shape() };
        let scale = PayoffScale::new(&GenesisConfig::default(), &wide);
        assert_eq!(scale.episode_loss(i64::MIN / 4), Loss::ONE);
        assert_eq!(scale.episode_loss(i64::MAX / 4), Loss::ZERO);
    }
}
