//! The sums of an evaluation, what they say so far, and whether that is enough.
//!
//! Sums of integers: no order of episodes changes them. Must not know how episodes are played. Clauses: SCC-8.

use super::{DOUBT_ERRORS, EVALUATION_EPISODES, Evaluation, Extent, Played, Yardstick};
use bem_base::fixed::{FRACTION_BITS, Fixed};

/// Episodes of an evaluation without a yardstick at least: a world outside takes its time for every step.
const OUTSIDE_EPISODES_MIN: i64 = 32;

/// A sum with the sum of squares.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    sum: i64,
    squares: i128,
}

impl Moments {
    fn add(&mut self, value: i64) {
        self.sum += value;
        // The square of 64 bits fits in 128; asking whether it does would take longer than all the rest.
        self.squares += i128::from(value).wrapping_mul(i128::from(value));
    }

    /// The summed squares of deviations from the mean.
    fn spread(&self, count: i64) -> i128 {
        self.squares - i128::from(self.sum) * i128::from(self.sum) / i128::from(count.max(1))
    }
}

/// Sums of one evaluation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    episodes: i64,
    steps: u64,
    extent: Extent,
    /// Returns of the agent.
    own: Moments,
    /// Returns of the agent less those of the oracle in the same episodes.
    behind: Option<Moments>,
    bad: u32,
}

impl Tally {
    /// Nothing yet, and how long it goes on.
    pub(super) fn new(extent: Extent) -> Tally {
        Tally { episodes: 0, steps: 0, extent, own: Moments::default(), behind: None, bad: 0 }
    }

    /// One more episode, and what the oracle earns in it.
    pub(super) fn add(&mut self, played: &Played, best: Option<i64>) {
        self.episodes += 1;
        self.steps += played.steps;
        self.own.add(played.total);
        if let Some(best) = best {
            self.behind.get_or_insert_default().add(played.total - best);
        }
        self.bad += u32::from(played.spoiled);
    }

    /// One more episode that two agents have played: by how much the second did better.
    pub(super) fn add_pair(&mut self, [before, after]: [&Played; 2]) {
        let steps = before.steps + after.steps;
        self.add(&Played { total: after.total - before.total, spoiled: false, steps }, None);
    }

    /// The sums with the smaller spread, what has to be added to their mean, and how far that itself may be off.
    fn estimate(&self, yardstick: Option<Yardstick>) -> (Moments, Fixed, Fixed) {
        match (self.behind, yardstick) {
            (Some(behind), Some(yardstick))
                if behind.spread(self.episodes) < self.own.spread(self.episodes) =>
            {
                (behind, yardstick.optimum, self.extent.doubt)
            }
            _ => (self.own, Fixed::ZERO, Fixed::ZERO),
        }
    }

    /// Whether as many steps have been played as there may be.
    pub(super) fn is_long(&self) -> bool {
        self.extent.steps_max <= self.steps
    }

    /// Whether the evaluation may end: with a yardstick only where it is looked.
    pub(super) fn is_enough(&self, yardstick: Option<Yardstick>) -> bool {
        let is_long = self.is_long() && OUTSIDE_EPISODES_MIN <= self.episodes;
        let is_whole = self.episodes % i64::from(self.extent.look) == 0;
        let may_end = is_whole || is_long && yardstick.is_none();
        if !may_end {
            return false;
        }
        let Some(yardstick) = yardstick else { return true };
        // The squared standard error of the mean is spread / n^2.
        let (moments, added, doubt) = self.estimate(Some(yardstick));
        let count = i128::from(self.episodes);
        let spread = moments.spread(self.episodes);
        let span = i128::from(yardstick.optimum.minus(yardstick.random).to_raw() >> FRACTION_BITS);
        if span <= 0 {
            return true;
        }
        // By how much the summed returns fall short of a score in thousandths.
        let short_of = |score: i128| {
            let bound = i128::from(yardstick.random.minus(added).to_raw() >> FRACTION_BITS);
            (bound + span * score / 1_000) * count - i128::from(moments.sum)
        };
        // Few very long episodes may leave open whether it is solved: luck is not to decide that.
        let is_open = short_of(990).pow(2) < DOUBT_ERRORS * DOUBT_ERRORS * spread;
        if is_open && doubt == Fixed::ZERO && count < i128::from(EVALUATION_EPISODES) {
            return false;
        }
        let precise = spread * 400 * 400 <= span * span * count * count;
        // Four standard errors below 0.985 is far enough to know that it is not solved.
        let hopeless = 0 < short_of(985) && 16 * spread <= short_of(985).pow(2);
        self.is_long() || precise || hopeless
    }

    /// Of pairs: the mean difference, once it is known whether it lies beyond the tolerance.
    pub(super) fn difference(&self, yardstick: Yardstick) -> Option<Fixed> {
        if self.episodes % i64::from(self.extent.look) != 0 {
            return None;
        }
        let Evaluation { mean, error, .. } = self.evaluation(None);
        let beyond = i128::from(mean.to_raw()) + i128::from(yardstick.tolerated().to_raw());
        let is_known = DOUBT_ERRORS * i128::from(error.to_raw()) <= beyond.abs();
        (is_known || self.is_long()).then_some(mean)
    }

    /// What the sums say.
    pub(super) fn evaluation(&self, yardstick: Option<Yardstick>) -> Evaluation {
        let (moments, added, doubt) = self.estimate(yardstick);
        // Divide first, so that the quotient fits a fixed number; a mean beyond all of them is the largest there is.
        let whole = moments.sum.div_euclid(self.episodes).clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        let rest = moments.sum.rem_euclid(self.episodes);
        let mean = Fixed::from_int(whole as i32).plus(Fixed::from_ratio(rest, self.episodes)).plus(added);
        // The root comes first, so that no return is too large for it.
        let error = (moments.spread(self.episodes).isqrt() << FRACTION_BITS) / i128::from(self.episodes);
        let error = if doubt == Fixed::ZERO { error } else { joint(error, i128::from(doubt.to_raw())) };
        let error = Fixed::from_raw(i64::try_from(error).unwrap_or(i64::MAX));
        Evaluation { mean, error, bad: self.bad, episodes: self.episodes as u32 }
    }
}

/// The error of a sum whose parts have these errors and nothing to do with each other.
fn joint(one: i128, other: i128) -> i128 {
    one.saturating_mul(one).saturating_add(other.saturating_mul(other)).isqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{EVALUATION_STEPS_MAX, look_of};

    const EXTENT: Extent =
        Extent { look: EVALUATION_EPISODES, steps_max: EVALUATION_STEPS_MAX, doubt: Fixed::ZERO };

    fn episode_of(total: i64) -> Played {
        Played { total, ..Played::default() }
    }

    #[test]
    fn long_episodes_of_a_world_outside_are_not_played_a_thousand_times() {
        let yardstick = Yardstick { optimum: Fixed::ONE, random: Fixed::ZERO };
        let is_enough = |episodes: i64, steps: u64, yardstick| {
            Tally { episodes, steps, ..Tally::new(EXTENT) }.is_enough(yardstick)
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
            let mut tally = Tally::new(EXTENT);
            (0..4).for_each(|_| tally.add(&episode_of(total), None));
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
            let mut tally = Tally::new(EXTENT);
            (0..400).for_each(|episode| tally.add(&episode_of(episode % 2 * 4_000 * scale), None));
            tally.evaluation(None).error
        };
        assert_eq!(error_at(1), Fixed::from_int(100));
        assert_eq!(error_at(1_000_000), Fixed::from_int(100_000_000));
        assert_eq!(error_at(1_000_000_000_000), Fixed::from_raw(i64::MAX));
    }

    #[test]
    fn luck_that_the_oracle_shares_is_taken_out() {
        let yardstick = Yardstick { optimum: Fixed::from_int(5_000), random: Fixed::from_int(1_000) };
        let (mut alone, mut paired) = (Tally::new(EXTENT), Tally::new(EXTENT));
        for episode in 0..1_000i64 {
            let luck = episode * 7_919 % 10_001;
            // Every tenth episode it earns 400 less than it could.
            let own = luck - if episode % 10 == 0 { 400 } else { 0 };
            alone.add(&episode_of(own), None);
            paired.add(&episode_of(own), Some(luck));
        }
        assert_eq!(paired.evaluation(Some(yardstick)).mean, Fixed::from_int(4_960));
        assert!(paired.is_enough(Some(yardstick)) && !alone.is_enough(Some(yardstick)));
    }

    #[test]
    fn very_long_episodes_are_few_unless_they_leave_open_whether_it_is_solved() {
        assert_eq!([1, 1_000, 2_000, 64_000, 1 << 20].map(look_of), [1_000, 1_000, 524, 16, 16]);
        let yardstick = Yardstick { optimum: Fixed::from_int(1_000_000), random: Fixed::ZERO };
        let is_enough = |episodes: i64, mean: i64| {
            let extent = Extent { look: look_of(64_000), ..EXTENT };
            let mut tally = Tally::new(extent);
            (0..episodes)
                .for_each(|episode| tally.add(&episode_of(mean - 4_000 + episode % 2 * 8_000), None));
            tally.steps = episodes as u64 * 64_000;
            tally.is_enough(Some(yardstick))
        };
        assert!(is_enough(16, 996_000) && is_enough(16, 980_000) && !is_enough(15, 996_000));
        // A score of 0.991 is told from 0.99 by 144 episodes of this spread, and one of 0.99 by none.
        assert!(!is_enough(128, 991_000) && is_enough(144, 991_000));
        assert!(!is_enough(992, 990_000) && is_enough(1_008, 990_000));
    }

    /// A stated optimum that is off by its error shifts the mean by as much: the interval must know.
    #[test]
    fn the_error_of_a_measured_optimum_is_part_of_the_error_of_the_mean() {
        let yardstick = Yardstick { optimum: Fixed::from_int(1_000), random: Fixed::ZERO };
        let error_with = |doubt: i32| {
            let mut tally = Tally::new(Extent { doubt: Fixed::from_int(doubt), ..EXTENT });
            for episode in 0..400i64 {
                let luck = episode * 7_919 % 10_001;
                tally.add(&episode_of(luck + episode % 2 * 120), Some(luck));
            }
            tally.evaluation(Some(yardstick)).error
        };
        // Differences stray by 60, and the root of 400 is 20.
        assert_eq!(error_with(0), Fixed::from_int(3));
        assert_eq!(error_with(4), Fixed::from_int(5));
    }
}
