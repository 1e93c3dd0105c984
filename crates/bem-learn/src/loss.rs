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

/// What a place between the ends of a range, such as a loss, becomes on a wider range: the part that the range before is of the
/// wider one, and how far away its own zero lies from the wider one's.
///
/// Parts and shifts are rounded towards zero to 64 fractional bits, and so is every product of one with a sum: a sum of losses
/// is less than four units of its last place away from the exact one, however many losses it has, and a sum of squares less
/// than sixteen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widening {
    /// The part times 2^64; the whole is one unit less.
    part: u64,
    /// The distance of the two zeros as a part of the wider range, times 2^64.
    shift: u64,
    /// The zero of the wider range lies between the ends of the range before.
    is_negative: bool,
}

impl Widening {
    /// From a range of this many units to one that is at least as wide and whose zero is so many units further out. Losses count
    /// from the high end: the units are those by which it has risen.
    pub fn new(from: u64, to: u64, offset: i128) -> Widening {
        assert!(0 < from && from <= to, "a range only widens");
        // The range before lies within the wider one: part and shift together are at most one.
        let offset = offset.clamp(1 - i128::from(to), i128::from(to - from));
        let share = |units: u128| u64::try_from((units << 64) / u128::from(to)).unwrap_or(u64::MAX);
        Widening {
            part: share(u128::from(from)),
            shift: share(offset.unsigned_abs()),
            is_negative: offset < 0,
        }
    }

    /// The part times 2^64.
    pub const fn to_raw(self) -> u64 {
        self.part
    }

    /// A sum on the wider range; `ones` is what it would be if everything in it were one, at most 2^63. The result lies between
    /// zero and `ones`.
    #[inline]
    pub fn apply(self, sum: u64, ones: u64) -> u64 {
        let (scaled, shifted) = (self.scale(sum), product(ones, self.shift));
        match self.is_negative {
            false => scaled.saturating_add(shifted).min(ones),
            true => scaled.saturating_sub(shifted),
        }
    }

    /// A sum of squares with the sum of what was squared, both as they were: `p^2 squares + 2 p s sum + s^2 ones`. The result is
    /// at most the sum on the wider range.
    #[inline]
    pub fn apply_squares(self, squares: u64, sum: u64, ones: u64) -> u64 {
        let scaled = self.scale(self.scale(squares));
        // Each factor is below one and the sum at most 2^63, so that twice the product fits.
        let mixed = 2 * product(self.scale(sum), self.shift);
        let shifted = product(product(ones, self.shift), self.shift);
        let squares = match self.is_negative {
            false => scaled.saturating_add(mixed).saturating_add(shifted),
            true => scaled.saturating_add(shifted).saturating_sub(mixed),
        };
        squares.min(self.apply(sum, ones))
    }

    /// A difference of two sums, from which the shift falls out.
    #[inline]
    pub const fn scale(self, difference: u64) -> u64 {
        product(difference, self.part)
    }
}

/// A number times a factor with 64 fractional bits, rounded down.
#[inline]
const fn product(number: u64, factor: u64) -> u64 {
    ((number as u128 * factor as u128) >> 64) as u64
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

    /// How losses on this range become losses on one that holds it.
    pub fn widening_to(&self, wider: &PayoffRange) -> Widening {
        let span = |range: &PayoffRange| (range.high - range.low) as u64;
        let offset = i128::from(wider.high) - i128::from(self.high);
        Widening::new(span(self), span(wider).max(span(self)), offset)
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

    /// Count, sum and sum of squares of these losses.
    fn sums(losses: impl Iterator<Item = Loss>) -> (u64, u64, u64) {
        losses.fold((0, 0, 0), |(count, sum, squares), loss| {
            (count + 1, sum + loss.to_raw(), squares + loss.squared_raw())
        })
    }

    #[test]
    fn a_world_that_has_always_paid_the_same_is_brought_onto_every_wider_range() {
        // One unit wide, so that what was paid all along lies at the low end.
        let flat = PayoffRange::new(0, 1).unwrap();
        let (count, sum, squares) = sums((0..100).map(|_| flat.loss(0)));
        let ones = count << 32;
        for (low, high, part) in [(0, 1_000, 1_000), (-1_000, 0, 0), (-1_000, 1, 1), (-1_000, 1_000, 500)] {
            let widening = flat.widening_to(&PayoffRange::new(low, high).unwrap());
            let want = u64::try_from(u128::from(ones) * part / 1_000).unwrap();
            let [is, square] = [widening.apply(sum, ones), widening.apply_squares(squares, sum, ones)];
            assert!(is.abs_diff(want) < 1 << 30, "{low}..{high}: {is}");
            let want = u64::try_from(u128::from(want) * part / 1_000).unwrap();
            assert!(square.abs_diff(want) < 1 << 30, "{low}..{high}: {square}");
        }
    }

    #[test]
    fn the_largest_sums_fit() {
        let ones = 1u64 << 63;
        for (from, to) in [(1, 1), (1, 2), (1, u64::MAX), (u64::MAX, u64::MAX), (1 << 63, u64::MAX)] {
            for offset in [i128::MIN, -1, 0, 1, i128::MAX] {
                let widening = Widening::new(from, to, offset);
                for sum in [0, 1, ones / 2, ones] {
                    let moved = widening.apply(sum, ones);
                    assert!(moved <= ones && widening.apply_squares(sum, sum, ones) <= moved);
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn sums_on_a_wider_range_are_those_of_what_was_paid(
            seed in 0u64.., low in -(1i64 << 30)..(1i64 << 20), span in 1i64..=1 << 20,
            fall in 0i64..=1 << 20, rise in 0i64..=1 << 20, which in 1u8..4, count in 1u64..200
        ) {
            let (fall, rise) = (if which & 1 == 0 { 0 } else { fall }, if which & 2 == 0 { 0 } else { rise });
            let before = PayoffRange::new(low, low + span).unwrap();
            let after = PayoffRange::new(low - fall, low + span + rise).unwrap();
            let mut prng = bem_base::prng::Prng::quick(seed);
            let payoffs: Vec<i64> = (0..count).map(|_| low + prng.below(span as u64 + 1) as i64).collect();
            let (_, sum, squares) = sums(payoffs.iter().map(|payoff| before.loss(*payoff)));
            let (_, want, want_squares) = sums(payoffs.iter().map(|payoff| after.loss(*payoff)));
            let (ones, widening) = (count << 32, before.widening_to(&after));
            proptest::prop_assert_eq!(widening, before.widening_to(&after));
            let (is, is_squares) = (widening.apply(sum, ones), widening.apply_squares(squares, sum, ones));
            // A loss is rounded by a unit of its last place, its square by three.
            proptest::prop_assert!(is.abs_diff(want) <= 2 * count + 4, "{} {}", is, want);
            proptest::prop_assert!(is_squares.abs_diff(want_squares) <= 6 * count + 16);
            proptest::prop_assert!(is_squares <= is && is <= ones);
            // Mean and variance of what was paid are the same, to a millionth of the span and of its square.
            let paid = |range: &PayoffRange, sum: u64, squares: u64| {
                let (low, high, _) = range.parts();
                let [width, sum, squares, ones] = [high.abs_diff(low), sum, squares, ones].map(i128::from);
                (i128::from(high) * ones - sum * width, (squares * ones - sum * sum) * width * width)
            };
            let (old, new) = (paid(&before, sum, squares), paid(&after, is, is_squares));
            let (width, ones) = (i128::from(span + fall + rise), i128::from(ones));
            proptest::prop_assert!((old.0 - new.0).abs() <= ones * width / 1_000_000);
            proptest::prop_assert!((old.1 - new.1).abs() / (width * width) <= ones * ones / 1_000_000);
        }

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
