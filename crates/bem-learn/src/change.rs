//! Two-sided Page-Hinkley: has the world behind a bucket changed?
//!
//! Every observed loss is compared with the mean of the arm that earned it, so the sums stay near zero while
//! nothing changes, whichever arms are chosen. It only raises the alarm; the caller resets and logs. Clauses:
//! VM-16, D-4.

use crate::index::ChangeParameters;

/// Which way the losses moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Change {
    /// Losses are higher than they were.
    Worse = 0,
    /// Losses are lower than they were.
    Better = 1,
}

/// Accumulated excess in both directions, with 32 fractional bits; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeDetector {
    pub(crate) worse: i64,
    pub(crate) better: i64,
}

impl ChangeDetector {
    /// Books `visits` losses that exceeded their arm's mean by `excess` in sum (32 fractional bits).
    ///
    /// A batch counts as one large step: the sums are cut at zero once, after the whole of it.
    #[inline]
    pub fn observe(&mut self, parameters: &ChangeParameters, excess: i64, visits: u32) -> Option<Change> {
        // At most 2^32 visits at a drift of at most one, so this and all sums below stay under 2^63.
        let forgiven = parameters.drift.to_raw().saturating_mul(i64::from(visits)).min(i64::MAX / 2);
        let excess = excess.clamp(-(i64::MAX / 4), i64::MAX / 4);
        self.worse = (self.worse + excess - forgiven).max(0);
        self.better = (self.better - excess - forgiven).max(0);
        let threshold = parameters.threshold.to_raw();
        let change = match (threshold < self.worse, threshold < self.better) {
            (false, false) => return None,
            (true, _) => Change::Worse,
            (false, true) => Change::Better,
        };
        *self = ChangeDetector::default();
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::fixed::Fixed;

    const PARAMETERS: ChangeParameters =
        ChangeParameters { drift: Fixed::from_ratio(1, 20), threshold: Fixed::from_int(30) };

    #[test]
    fn a_steady_excess_is_reported_once_and_in_the_right_direction() {
        for (excess, want) in [(1i64 << 31, Change::Worse), (-(1i64 << 31), Change::Better)] {
            let mut detector = ChangeDetector::default();
            let alarm = (1..).find_map(|visit| Some(visit).zip(detector.observe(&PARAMETERS, excess, 1)));
            // 30 / (0.5 - 0.05) = 66.7 visits.
            assert_eq!(alarm, Some((67, want)));
            assert_eq!(detector, ChangeDetector::default());
        }
    }

    #[test]
    fn a_drift_within_what_is_forgiven_never_alarms() {
        let mut detector = ChangeDetector::default();
        let excess = Fixed::from_ratio(1, 21).to_raw();
        assert!((0..100_000).all(|_| detector.observe(&PARAMETERS, excess, 1).is_none()));
    }

    #[test]
    fn extreme_batches_saturate() {
        let mut detector = ChangeDetector::default();
        for excess in [i64::MAX / 2, i64::MIN / 2, i64::MAX / 2] {
            detector.observe(&PARAMETERS, excess, u32::MAX);
        }
    }
}
