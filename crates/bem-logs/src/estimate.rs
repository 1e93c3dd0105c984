//! Off-policy estimates: what a policy would have earned, judged by a log that another policy wrote.
//!
//! Inverse propensity weighs every row whose action the policy would have taken too by one over the chance of that action;
//! the self-normalised form divides by the weights' own sum; the doubly robust form corrects a reward model by the weighted
//! error of the model. Intervals are Student's, with the degrees of freedom that the kurtosis of the terms leaves to their
//! variance, and moved by their skewness (Johnson): weighted rewards are far from normal. Clauses: GLE-9.

use crate::cases::by_case;
use bem_base::fixed::Fixed;

/// Below this effective number of rows an estimate is not worth its interval.
pub const EFFECTIVE_MIN: u64 = 30;
/// Of so many rows one may be beyond the log at most: intervals are widened by what it may bring.
const BEYOND_SHARE: u64 = 100;
/// How many hundredths of the half width of its 95 % interval the mean weight may lie from one. A log that supports the policy
/// lies further in about one case of a thousand.
const WEIGHT_HUNDREDTHS: i64 = 170;
/// What chances that were rounded to a few digits move the mean weight by.
const WEIGHT_ROUNDED: Fixed = Fixed::from_ratio(1, 1_000);

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The estimate.
    pub mean: Fixed,
    /// The lower end.
    pub low: Fixed,
    /// The upper end.
    pub high: Fixed,
    /// The width that the normal approximation gives, for comparison.
    pub normal_width: Fixed,
}

impl Interval {
    /// The same, cut where the truth cannot lie.
    #[must_use]
    pub fn within(self, least: Fixed, most: Fixed) -> Interval {
        Interval { low: self.low.max(least), high: self.high.min(most), ..self }
    }

    /// The same with both ends further out.
    #[must_use]
    fn widened(self, by: Fixed) -> Interval {
        Interval { low: self.low.minus(by), high: self.high.plus(by), ..self }
    }
}

/// One decision of the log, and what the policy would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The policy would have taken the logged action.
    pub matches: bool,
    /// What the logged action brought.
    pub reward: Fixed,
    /// The chance with which it was taken; above zero.
    pub propensity: Fixed,
    /// What a model that has not seen this row predicts for the policy's action.
    pub predicted: Fixed,
    /// What it predicts for the logged action.
    pub predicted_logged: Fixed,
    /// Rows with the same number are about the same case, and together one piece of evidence.
    pub case: u32,
}

/// What a log says about a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Inverse propensity.
    pub ips: Interval,
    /// Self-normalised inverse propensity.
    pub snips: Interval,
    /// Doubly robust; there is none for episodes.
    pub dr: Option<Interval>,
    /// What the log itself earned.
    pub logged: Interval,
    /// How much more than the log, row by row: the doubly robust terms less the rewards; for episodes the weighted rewards less
    /// the rewards.
    pub gain: Interval,
    /// Rows of the log.
    pub rows: u64,
    /// Rows whose action the policy would have taken.
    pub matched: u64,
    /// As many rows of the policy's own would say as much.
    pub effective: u64,
    /// The mean weight; one in expectation where the log supports all that the policy does.
    pub weight: Interval,
    /// The largest weight.
    pub weight_max: Fixed,
    /// Rows in which the policy does what the log never did where it looked like this.
    pub beyond: u64,
}

/// Why a log does not support a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The policy does what the log never did.
    Beyond,
    /// The weights' mean is not one.
    Weights,
    /// The log says as much as too few rows of the policy's own.
    Rows,
}

/// A weighted number, with 32 fractional bits.
type Raw = i128;
const ONE: Raw = 1 << 32;

fn fixed(raw: Raw) -> Fixed {
    Fixed::from_raw(raw.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

fn multiply(a: Raw, b: Raw) -> Raw {
    a.saturating_mul(b) >> 32
}

/// The integer square root, rounded down.
fn root(value: u128) -> u128 {
    if value < 2 {
        return value;
    }
    let mut guess = 1u128 << (value.ilog2() / 2 + 1);
    loop {
        let next = (guess + value / guess) / 2;
        if guess <= next {
            return guess;
        }
        guess = next;
    }
}

/// A mean and its interval from terms with 32 fractional bits.
pub fn interval(terms: &[Raw]) -> Interval {
    let count = terms.len() as i128;
    if count == 0 {
        return Interval {
            mean: Fixed::ZERO,
            low: Fixed::ZERO,
            high: Fixed::ZERO,
            normal_width: Fixed::ZERO,
        };
    }
    let mean = terms.iter().sum::<Raw>() / count;
    if count == 1 {
        return Interval {
            mean: fixed(mean),
            low: fixed(-ONE << 30),
            high: fixed(ONE << 30),
            normal_width: fixed(ONE << 31),
        };
    }
    // Squares with 32 fractional bits of differences with 16.
    let squares = |total: u128, term: &Raw| {
        let difference = (term - mean).unsigned_abs() >> 16;
        total.saturating_add(difference.saturating_mul(difference))
    };
    let variance = terms.iter().fold(0, squares) / (count - 1) as u128;
    let deviation = (root(variance) << 16) as i128;
    let error = (root((variance << 32.min(variance.leading_zeros())) / count as u128) as i128)
        << ((32 - 32.min(variance.leading_zeros() as i32)) / 2);
    if deviation < 1 << 20 {
        return Interval {
            mean: fixed(mean),
            low: fixed(mean - 2 * error),
            high: fixed(mean + 2 * error),
            normal_width: fixed(4 * error),
        };
    }
    // Third and fourth powers of standardised differences, with 16 fractional bits.
    let (mut third, mut fourth) = (0i128, 0i128);
    for term in terms {
        let standard = (((term - mean) << 16) / deviation).clamp(-1 << 30, 1 << 30);
        let square = (standard * standard) >> 16;
        third = third.saturating_add(square.saturating_mul(standard) >> 16);
        fourth = fourth.saturating_add(square.saturating_mul(square) >> 16);
    }
    let (skewness, kurtosis) = (third / count, fourth / count);
    // The variance has 2n / (kurtosis - 1) degrees of freedom.
    let freedom = ((2 * count) << 16) / (kurtosis - (1 << 16)).max(1 << 15);
    let freedom = freedom.clamp(1, count - 1);
    let critical = critical(freedom);
    // Johnson's correction of the centre: skewness times the error over six times the root of n, and its square part.
    let per_root = multiply(skewness << 16, error) / (root((count as u128) << 32) as i128).max(1) * (1 << 16);
    let square = multiply(critical, critical);
    let moved = (per_root + 2 * multiply(per_root, square)) / 6;
    let half = multiply(critical, error);
    let (low, high) = (mean - half + moved.min(0).max(-half), mean + half + moved.max(0).min(half));
    Interval {
        mean: fixed(mean),
        low: fixed(low),
        high: fixed(high),
        normal_width: fixed(2 * multiply(NORMAL, error)),
    }
}

/// The normal quantile of 97.5 %.
const NORMAL: Raw = 8_418_040_176;

/// Student's quantile of 97.5 %: a table up to four degrees of freedom, then the expansion around the normal one.
fn critical(freedom: i128) -> Raw {
    const FEW: [i128; 4] = [12_706, 4_303, 3_182, 2_776];
    match FEW.get(freedom as usize - 1) {
        Some(milli) => milli * ONE / 1_000,
        // z + (z^3 + z)/4v + (5z^5 + 16z^3 + 3z)/96v^2 with z = 1.959964.
        None => {
            NORMAL + 2_372_272 * ONE / 1_000_000 / freedom + 2_822_499 * ONE / 1_000_000 / (freedom * freedom)
        }
    }
}

/// What the rows say about the policy.
pub fn estimate(rows: &[Row]) -> Estimate {
    let weight = |row: &Row| match row.matches {
        true => ONE * ONE / i128::from(row.propensity.to_raw()).max(1),
        false => 0,
    };
    let raw = |value: Fixed| i128::from(value.to_raw());
    let weights: Vec<Raw> = rows.iter().map(weight).collect();
    let rewards: Vec<Raw> = rows.iter().map(|row| raw(row.reward)).collect();
    let products: Vec<Raw> =
        weights.iter().zip(&rewards).map(|(weight, reward)| multiply(*weight, *reward)).collect();
    let robust = |(row, weight): (&Row, &Raw)| {
        raw(row.predicted) + multiply(*weight, raw(row.reward) - raw(row.predicted_logged))
    };
    let robust: Vec<Raw> = rows.iter().zip(&weights).map(robust).collect();
    let gains: Vec<Raw> = robust.iter().zip(&rewards).map(|(term, reward)| term - reward).collect();
    let total: Raw = weights.iter().sum();
    let squares: Raw = weights.iter().map(|weight| multiply(*weight, *weight)).sum();
    let cases: Vec<u32> = rows.iter().map(|row| row.case).collect();
    let interval = |terms: &[Raw]| interval(&by_case(&cases, terms));
    Estimate {
        ips: interval(&products),
        snips: interval(&normalised(&weights, &rewards)),
        dr: Some(interval(&robust)),
        logged: interval(&rewards),
        gain: interval(&gains),
        rows: rows.len() as u64,
        matched: rows.iter().filter(|row| row.matches).count() as u64,
        effective: (multiply(total, total) / squares.max(1)) as u64,
        weight: interval(&weights),
        weight_max: fixed(weights.iter().copied().max().unwrap_or(0)),
        beyond: 0,
    }
}

/// One logged episode and what the policy would have done in it: for every step whether both agree, the reward, and the
/// chance of the logged action.
pub type Steps = Vec<(bool, Fixed, Fixed)>;

/// What logged episodes say about the policy, by per-decision weights: a step counts by the product of the weights up to it.
pub fn estimate_episodes(episodes: &[Steps]) -> Estimate {
    let raw = |value: Fixed| i128::from(value.to_raw());
    let (mut terms, mut totals, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for steps in episodes {
        let (mut weight, mut sum) = (ONE, 0);
        for (matches, reward, propensity) in steps {
            let inverse = ONE * ONE / raw(*propensity).max(1);
            weight = if *matches { multiply(weight, inverse).min(ONE << 40) } else { 0 };
            sum += multiply(weight, raw(*reward));
        }
        terms.push(sum);
        weights.push(weight);
        totals.push(steps.iter().map(|(_, reward, _)| raw(*reward)).sum::<Raw>());
    }
    let gains: Vec<Raw> = terms.iter().zip(&totals).map(|(term, total)| term - total).collect();
    let total: Raw = weights.iter().sum();
    let squares = weights.iter().fold(0, |sum: Raw, weight| sum.saturating_add(multiply(*weight, *weight)));
    Estimate {
        ips: interval(&terms),
        snips: interval(&normalised(&weights, &totals)),
        dr: None,
        logged: interval(&totals),
        gain: interval(&gains),
        rows: episodes.len() as u64,
        matched: weights.iter().filter(|weight| 0 < **weight).count() as u64,
        effective: (multiply(total, total) / squares.max(1)) as u64,
        weight: interval(&weights),
        weight_max: fixed(weights.iter().copied().max().unwrap_or(0)),
        beyond: 0,
    }
}

/// The terms of the linear part of the self-normalised mean; none where no weight is left.
fn normalised(weights: &[Raw], rewards: &[Raw]) -> Vec<Raw> {
    let total: Raw = weights.iter().sum();
    let count = weights.len().max(1) as i128;
    if total == 0 {
        return Vec::new();
    }
    let sum: Raw = weights.iter().zip(rewards).map(|(weight, reward)| multiply(*weight, *reward)).sum();
    let mean = sum.saturating_mul(1 << 16) / (total >> 16).max(1);
    let share = (total / count).max(1);
    let term =
        |(weight, reward): (&Raw, &Raw)| mean + multiply(*weight, reward - mean).saturating_mul(ONE) / share;
    weights.iter().zip(rewards).map(term).collect()
}

impl Estimate {
    /// Whether it is made of episodes, of which there is no doubly robust estimate.
    pub fn is_of_episodes(&self) -> bool {
        self.dr.is_none()
    }

    /// The same, where in so many rows the policy does what the log never did. What these bring lies within a range of this width
    /// and nothing more is known of it: intervals hold both of its ends.
    #[must_use]
    pub fn with_beyond(mut self, beyond: u64, spread: Fixed) -> Estimate {
        self.beyond = beyond;
        let by = i128::from(spread.to_raw()) * i128::from(beyond) / i128::from(self.rows.max(1));
        for interval in [&mut self.ips, &mut self.snips, &mut self.gain].into_iter().chain(&mut self.dr) {
            *interval = interval.widened(fixed(by));
        }
        self
    }

    /// What is missing for the log to support the policy, if something is. Where this is so, no value and no gain is told.
    pub fn missing(&self) -> Option<Missing> {
        if self.rows < BEYOND_SHARE * self.beyond {
            Some(Missing::Beyond)
        } else if self.matched == 0 || !self.is_weight_one() {
            Some(Missing::Weights)
        } else if self.effective < EFFECTIVE_MIN {
            Some(Missing::Rows)
        } else {
            None
        }
    }

    /// Whether the log supports what the policy does.
    pub fn is_supported(&self) -> bool {
        self.missing().is_none()
    }

    fn is_weight_one(&self) -> bool {
        let Interval { mean, low, high, .. } = self.weight;
        let away = mean.to_raw().abs_diff(Fixed::ONE.to_raw());
        let half = if Fixed::ONE < mean { mean.minus(low) } else { high.minus(mean) };
        let allowed = half.to_raw().saturating_mul(WEIGHT_HUNDREDTHS) / 100;
        away <= allowed.max(WEIGHT_ROUNDED.to_raw()).unsigned_abs()
    }

    /// What the log does not support, in words.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let unit = if self.is_of_episodes() { "episodes" } else { "decisions" };
        if self.effective < EFFECTIVE_MIN {
            warnings.push(format!(
                "support is missing: the log says as much as {} {unit} of this policy would; {EFFECTIVE_MIN} are needed",
                self.effective
            ));
        }
        if 0 < self.beyond {
            let share = match self.missing() {
                Some(Missing::Beyond) => "what that brings is unknown",
                _ => "the intervals hold whatever that may bring",
            };
            warnings.push(format!(
                "support is missing: in {} of {} {unit} the policy does what the log never did in such cases; {share}",
                self.beyond, self.rows
            ));
        }
        if !self.is_weight_one() {
            warnings.push(
                "the weights' mean is not one: propensities are wrong, or the policy acts where the log never did".to_string(),
            );
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_roots_are_right() {
        assert_eq!((root(0), root(15), root(16), root(1 << 100)), (0, 3, 4, 1 << 50));
        let terms: Vec<Raw> = (0..100).map(|term| (term % 10) * ONE).collect();
        let got = interval(&terms);
        assert_eq!(got.mean, Fixed::from_ratio(45, 10));
        // The standard deviation is 2.887, the error 0.2887, the half width 1.98 times that.
        let half = got.high.minus(got.mean).to_raw();
        assert!(
            (half - Fixed::from_ratio(572, 1_000).to_raw()).abs() < Fixed::from_ratio(1, 50).to_raw(),
            "{got:?}"
        );
        assert_eq!(interval(&[ONE; 9]).high, Fixed::ONE);
        let wide = Interval { low: Fixed::ONE.negated(), high: Fixed::from_ratio(3, 2), ..got };
        let cut = wide.within(Fixed::ZERO, Fixed::ONE);
        assert_eq!((cut.mean, cut.low, cut.high), (got.mean, Fixed::ZERO, Fixed::ONE));
    }

    #[test]
    fn missing_support_is_said() {
        let row = |case, matches| Row {
            case,
            matches,
            reward: Fixed::ONE,
            propensity: Fixed::from_ratio(1, 2),
            predicted: Fixed::ZERO,
            predicted_logged: Fixed::ZERO,
        };
        let rows: Vec<Row> = (0..1_000).map(|place| row(place, place % 2 == 0)).collect();
        let good = estimate(&rows);
        assert!(good.warnings().is_empty(), "{:?}", good.warnings());
        assert_eq!((good.ips.mean, good.snips.mean, good.matched), (Fixed::ONE, Fixed::ONE, 500));
        let rows: Vec<Row> = (0..1_000).map(|place| row(place, place % 100 == 0)).collect();
        assert_eq!(estimate(&rows).warnings().len(), 2);
        assert!(good.is_supported() && !good.is_of_episodes());
    }

    /// Rows of a fair coin in which the policy matches so many of a thousand.
    fn coins(matched: u32, propensity: Fixed) -> Estimate {
        let row = |case: u32| Row {
            case,
            matches: case * 7 % 1_000 < matched,
            reward: Fixed::ONE,
            propensity,
            predicted: Fixed::ONE,
            predicted_logged: Fixed::ONE,
        };
        estimate(&(0..1_000).map(row).collect::<Vec<_>>())
    }

    #[test]
    fn a_mean_weight_that_is_not_one_supports_nothing() {
        let half = Fixed::from_ratio(1, 2);
        // One standard error is 0.032: 0.94 happens, 0.86 does not.
        assert_eq!(coins(470, half).missing(), None);
        assert_eq!(coins(430, half).missing(), Some(Missing::Weights));
        assert_eq!(coins(570, half).missing(), Some(Missing::Weights));
        assert_eq!(coins(0, half).missing(), Some(Missing::Weights));
        // Chances of a logger that never varied, rounded or not, are no lack of support.
        assert_eq!(coins(1_000, Fixed::ONE).missing(), None);
        assert_eq!(coins(1_000, Fixed::from_ratio(9_999, 10_000)).missing(), None);
        assert_eq!(coins(1_000, half).missing(), Some(Missing::Weights));
    }

    #[test]
    fn what_the_log_never_did_widens_intervals_and_beyond_a_hundredth_supports_nothing() {
        let fair = coins(500, Fixed::from_ratio(1, 2));
        let few = fair.clone().with_beyond(10, Fixed::from_int(2));
        assert_eq!((few.missing(), few.warnings().len()), (None, 1));
        let moved = fair.gain.low.minus(few.gain.low);
        assert!(moved.to_raw().abs_diff(Fixed::from_ratio(2, 100).to_raw()) < 9, "{moved:?}");
        assert_eq!(few.dr.unwrap().mean, fair.dr.unwrap().mean);
        let many = fair.with_beyond(11, Fixed::from_int(2));
        assert_eq!(many.missing(), Some(Missing::Beyond));
        assert!(many.warnings()[0].contains("in 11 of 1000 decisions"), "{:?}", many.warnings());
    }

    #[test]
    fn episodes_without_support_have_no_interval() {
        let step = |matches| (matches, Fixed::ONE, Fixed::from_ratio(1, 2));
        let log = |count: usize| -> Vec<Steps> {
            (0..400).map(|place| vec![step(place < count), step(place < count)]).collect()
        };
        let (none, one, many) =
            (estimate_episodes(&log(0)), estimate_episodes(&log(1)), estimate_episodes(&log(100)));
        // The self-normalised mean of one episode varies by nothing at all.
        assert_eq!(one.snips.low, one.snips.high);
        assert!(!none.is_supported() && !one.is_supported() && many.is_supported());
        assert!(none.warnings()[0].contains("as much as 0 episodes"), "{:?}", none.warnings());
    }
}
