//! Losses between zero and one, and the affine map from payoffs to losses.
//!
//! Must not know what a payoff is made of: rewards less penalties arrive as one whole number, and the stated
//! range must cover the penalties too. Clauses: VM-11, VM-17, D-8.

use bem_base::fixed::Fixed;

/// A loss between zero and one, with 32 fractional bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss(u64);

impl Loss {
    /// Nothing lost.
    pub const ZERO: Loss = Loss(0);
    /// Everything lost.
    pub const ONE: Loss = Loss(1 << 32);

    /// The loss with these raw bits; above one is a bug.
    #[inline]
    pub const fn from_raw(raw: u64) -> Loss {
        assert!(raw <= Loss::ONE.0);
        Loss(raw)
    }

    /// `value` as a loss, if it lies between zero and one.
    pub const fn from_fixed(value: Fixed) -> Option<Loss> {
        let raw = value.to_raw();
        if 0 <= raw && raw <= Fixed::ONE.to_raw() { Some(Loss(raw as u64)) } else { None }
    }

    /// Zero or one.
    #[inline]
    pub const fn from_bit(lost: bool) -> Loss {
        Loss((lost as u64) << 32)
    }

    /// The raw bits, 32 of them after the point.
    #[inline]
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// The loss times itself, rounded down, as raw bits.
    #[inline]
    pub const fn squared_raw(self) -> u64 {
        ((self.0 as u128 * self.0 as u128) >> 32) as u64
    }
}

/// How much of a wider range of payoffs the range before it is; losses measured on that one shrink by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widening {
    /// The part times 2^64; the whole is one unit less.
    part: u64,
}

impl Widening {
    /// From a range of this many units to one that is at least as wide.
    pub fn new(from: u64, to: u64) -> Widening {
        assert!(0 < from && from <= to, "a range only widens");
        Widening { part: u64::try_from((u128::from(from) << 64) / u128::from(to)).unwrap_or(u64::MAX) }
    }

    /// The part times 2^64.
    pub const fn to_raw(self) -> u64 {
        self.part
    }

    /// A sum of losses on the wider range, rounded down.
    #[inline]
    pub const fn apply(self, sum: u64) -> u64 {
        ((sum as u128 * self.part as u128) >> 64) as u64
    }
}

/// Why a range of payoffs is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("payoff range {low}..={high}: the high end must exceed the low end by at most {SPAN_MAX}")]
pub struct RangeError {
    low: i64,
    high: i64,
}

/// The widest range of payoffs: up to here both ends map to a loss of exactly one and zero.
pub const SPAN_MAX: i64 = 1 << 30;

/// The range of payoffs, and its reciprocal so that no step divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayoffRange {
    low: i64,
    high: i64,
    /// 2^63 / (high - low), rounded down.
    reciprocal: u64,
}

impl PayoffRange {
    /// The range from `low` to `high`, both reachable.
    pub fn new(low: i64, high: i64) -> Result<PayoffRange, RangeError> {
        match high.checked_sub(low) {
            Some(span) if 0 < span && span <= SPAN_MAX => {
                Ok(PayoffRange { low, high, reciprocal: (1 << 63) / span as u64 })
            }
            _ => Err(RangeError { low, high }),
        }
    }

    /// The low end, the high end, and 2^63 divided by their distance.
    pub fn parts(&self) -> (i64, i64, u64) {
        (self.low, self.high, self.reciprocal)
    }

    /// The same by a division, to the nearest unit: equal for all ranges on which the payoff lies at the same place.
    #[inline]
    pub fn exact_loss(&self, payoff: i64) -> Loss {
        let span = (self.high - self.low) as u64;
        let below = (self.high - payoff.clamp(self.low, self.high)) as u64;
        Loss(((below << 32) + span / 2) / span)
    }

    /// `(high - payoff) / (high - low)`, to the nearest unit; payoffs outside the range are held at its ends.
    #[inline]
    pub fn loss(&self, payoff: i64) -> Loss {
        let below = (self.high - payoff.clamp(self.low, self.high)) as u64;
        // below * reciprocal <= 2^63, and the rounding bit is far below what is left.
        Loss::from_raw((below * self.reciprocal + (1 << 30)) >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_width_is_refused_by_name() {
        let error = PayoffRange::new(3, 3).unwrap_err();
        assert!(error.to_string().starts_with("payoff range 3..=3"), "{error}");
        assert!(PayoffRange::new(i64::MIN, i64::MAX).is_err());
    }

    proptest::proptest! {
        #[test]
        fn the_ends_are_exact_and_between_them_the_error_is_one_unit(
            low in -(1i64 << 40)..(1i64 << 40), span in 1i64..=SPAN_MAX, part in 0u64..=1000
        ) {
            let range = PayoffRange::new(low, low + span).unwrap();
            proptest::prop_assert_eq!(range.loss(low), Loss::ONE);
            proptest::prop_assert_eq!(range.loss(low - 7), Loss::ONE);
            proptest::prop_assert_eq!(range.loss(low + span), Loss::ZERO);
            let offset = (span as u64 * part / 1000) as i64;
            let exact = (u128::from((span - offset) as u64) << 32) / span as u128;
            proptest::prop_assert!(exact.abs_diff(u128::from(range.loss(low + offset).to_raw())) <= 1);
        }
    }
}
