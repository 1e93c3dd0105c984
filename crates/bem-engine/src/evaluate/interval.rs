//! The 95 % interval around a mean return: Student's t on the standard error, so that few episodes are not overrated.
//!
//! Returns are taken as they are; with thousands of episodes the interval is the normal one. Where every episode brought the
//! same return it is a point, and says no more than that. Clauses: SCC-8.

use super::Evaluation;
use bem_base::fixed::Fixed;

/// From so many degrees of freedom on, the two-sided 95 % quantile of Student's t, in thousandths; between two rows the one
/// above is taken, which is the wider.
const QUANTILES: [(u32, i128); 18] = [
    (1, 12_706),
    (2, 4_303),
    (3, 3_182),
    (4, 2_776),
    (5, 2_571),
    (6, 2_447),
    (7, 2_365),
    (8, 2_306),
    (9, 2_262),
    (10, 2_228),
    (12, 2_179),
    (15, 2_131),
    (20, 2_086),
    (30, 2_042),
    (60, 2_000),
    (120, 1_980),
    (500, 1_965),
    (2_000, 1_961),
];

impl Evaluation {
    /// The 95 % interval around the mean; none with fewer than two episodes.
    pub fn interval95(&self) -> Option<(Fixed, Fixed)> {
        let freedom = self.episodes.checked_sub(1).filter(|freedom| 1 <= *freedom)?;
        let quantile = QUANTILES.iter().rev().find(|(from, _)| *from <= freedom)?.1;
        // The error is that of the sample's own spread; over the degrees of freedom it is a little larger.
        let error = i128::from(self.error.to_raw());
        let error = error.saturating_mul(error) / i128::from(freedom);
        let error = error.saturating_mul(i128::from(self.episodes)).isqrt();
        let half = i64::try_from(error.saturating_mul(quantile) / 1_000).unwrap_or(i64::MAX);
        let half = Fixed::from_raw(half);
        let low = Fixed::from_raw(self.mean.to_raw().saturating_sub(half.to_raw()));
        Some((low, self.mean.plus_saturating(half)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(mean: i32, error: i32, episodes: u32) -> Evaluation {
        Evaluation { mean: Fixed::from_int(mean), error: Fixed::from_int(error), bad: 0, episodes }
    }

    #[test]
    fn an_interval_is_as_wide_as_students_t_says() {
        let half = |error, episodes| {
            let (low, high) = evaluation(500, error, episodes).interval95().unwrap();
            assert_eq!(high.minus(Fixed::from_int(500)), Fixed::from_int(500).minus(low));
            high.minus(Fixed::from_int(500)).to_raw() as f64 / 4_294_967_296.0
        };
        assert!((half(100, 1_000_000) - 196.1).abs() < 0.01);
        // Two episodes: one degree of freedom, and a spread that is twice the sample's own.
        assert!((half(100, 2) - 1_270.6 * 2f64.sqrt()).abs() < 0.01);
        assert!((half(100, 10) - 226.2 * (10f64 / 9.0).sqrt()).abs() < 0.01);
        assert!((half(100, 1_000) - 196.5 * (1_000f64 / 999.0).sqrt()).abs() < 0.01);
        assert_eq!(half(0, 100), 0.0);
    }

    #[test]
    fn one_episode_has_no_interval_and_large_returns_do_not_overflow() {
        assert_eq!(evaluation(5, 0, 1).interval95(), None);
        assert_eq!(evaluation(5, 0, 0).interval95(), None);
        let huge = Evaluation { error: Fixed::from_raw(i64::MAX), ..evaluation(i32::MAX, 0, 2) };
        let (low, high) = huge.interval95().unwrap();
        assert!(low < high);
    }
}
