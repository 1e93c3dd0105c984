//! Expectations kept with 64 fractional bits while they are computed.
//!
//! Dynamic programming rounds at every node. With 32 bits beyond those of the result, the rounding of a million
//! nodes stays below the last bit that a [`Value`] keeps. Must not know any game. Clauses: GLE-1.

use crate::game::Value;
use bem_base::fixed::Fixed;

/// A number with 64 fractional bits and 63 whole ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expectation(i128);

const FRACTION_BITS: u32 = 64;

impl Expectation {
    /// Zero.
    pub const ZERO: Expectation = Expectation(0);
    /// One.
    pub const ONE: Expectation = Expectation(1 << FRACTION_BITS);

    /// A whole number.
    pub const fn from_int(value: i64) -> Expectation {
        Expectation((value as i128) << FRACTION_BITS)
    }

    /// `numerator / denominator`, rounded down; the numerator must stay below 2^62.
    pub const fn from_ratio(numerator: i128, denominator: i128) -> Expectation {
        assert!(0 < denominator);
        let whole = numerator.div_euclid(denominator);
        let rest = numerator.rem_euclid(denominator);
        // A denominator past 2^63 would push the shifted rest out of range: both lose the same low bits.
        let excess = (128 - denominator.leading_zeros()).saturating_sub(63);
        let fraction = ((rest >> excess) << FRACTION_BITS) / (denominator >> excess);
        Expectation((whole << FRACTION_BITS) + fraction)
    }

    /// `self + other`.
    #[must_use]
    pub const fn plus(self, other: Expectation) -> Expectation {
        Expectation(self.0 + other.0)
    }

    /// `self * count`; the product must stay below 2^63.
    #[must_use]
    pub const fn times(self, count: i64) -> Expectation {
        Expectation(self.0 * count as i128)
    }

    /// `self / count`, rounded down.
    #[must_use]
    pub const fn over(self, count: u64) -> Expectation {
        assert!(0 < count);
        Expectation(self.0.div_euclid(count as i128))
    }

    /// `self * numerator / denominator`, rounded down, without overflow for returns the machine allows.
    #[must_use]
    pub const fn share(self, numerator: u64, denominator: u64) -> Expectation {
        assert!(0 < denominator && numerator <= denominator);
        // Quotient and rest apart: neither product can leave 128 bits while weights stay below 2^62.
        let quotient = self.0.div_euclid(denominator as i128);
        let rest = self.0.rem_euclid(denominator as i128);
        Expectation(quotient * numerator as i128 + (rest * numerator as i128) / denominator as i128)
    }

    /// `self * chance` for a chance between zero and one, rounded down.
    #[must_use]
    pub const fn times_chance(self, chance: Expectation) -> Expectation {
        assert!(0 <= chance.0 && chance.0 <= Expectation::ONE.0);
        // Half of the fraction of each factor is enough here: the whole part may take the rest.
        Expectation((self.0 >> 32) * (chance.0 >> 32))
    }

    /// The exact value it stands for, rounded down at the 32nd fractional bit.
    pub fn to_value(self) -> Value {
        Value::exact(self.to_fixed())
    }

    /// The same number with 32 fractional bits, rounded down; held at the ends of the range.
    pub fn to_fixed(self) -> Fixed {
        // Half a unit of the last place kept makes up for what rounding down at every node took away.
        let rounded = (self.0 + (1 << 20)) >> 32;
        Fixed::from_raw(rounded.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// An expectation from a value.
    pub fn from_fixed(value: Fixed) -> Expectation {
        Expectation(i128::from(value.to_raw()) << 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_add_up_to_the_whole() {
        let third = Expectation::from_ratio(1, 3);
        let sum = third.plus(third).plus(third);
        assert_eq!(sum.to_fixed(), Fixed::ONE);
        assert_eq!(Expectation::from_int(-7).over(2).to_fixed(), Fixed::from_ratio(-7, 2));
    }

    #[test]
    fn shares_of_large_returns_do_not_overflow() {
        let large = Expectation::from_int(i64::from(i32::MAX));
        let denominator = (1 << 61) - 1;
        assert_eq!(large.share(denominator, denominator), large);
        assert_eq!(large.share(0, denominator), Expectation::ZERO);
        assert_eq!(large.times_chance(Expectation::ONE), large);
    }

    #[test]
    fn ratios_with_huge_denominators_are_close() {
        let huge = 3i128.pow(60);
        let got = Expectation::from_ratio(huge / 3, huge).to_fixed().to_raw();
        assert!(got.abs_diff(Fixed::from_ratio(1, 3).to_raw()) <= 1);
    }
}
