//! Fixed-point numbers: 64 bits, 32 of them after the point, and integer logarithm and square root.
//!
//! There are no `*` and `/` operators: every product and quotient names its rounding, and widens to 128 bits
//! inside. Must not know what the numbers mean. Clauses: VM-11, D-7.

use core::fmt;

/// A signed number with 32 fractional bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fixed(i64);

/// Bits after the point.
pub const FRACTION_BITS: u32 = 32;

/// ln 2 with 62 fractional bits, rounded down.
const LN_2_Q62: i128 = 0x2C5C_85FD_F473_DE6A;

impl Fixed {
    /// Zero.
    pub const ZERO: Fixed = Fixed(0);
    /// One.
    pub const ONE: Fixed = Fixed(1 << FRACTION_BITS);
    /// One half.
    pub const HALF: Fixed = Fixed(1 << (FRACTION_BITS - 1));
    /// The largest number.
    pub const MAX: Fixed = Fixed(i64::MAX);
    /// The smallest number.
    pub const MIN: Fixed = Fixed(i64::MIN);

    /// The number with these 64 raw bits.
    pub const fn from_raw(raw: i64) -> Fixed {
        Fixed(raw)
    }

    /// The 64 raw bits.
    pub const fn to_raw(self) -> i64 {
        self.0
    }

    /// A whole number below 2^31.
    pub const fn from_int(value: i32) -> Fixed {
        Fixed((value as i64) << FRACTION_BITS)
    }

    /// `numerator / denominator`, rounded toward negative infinity. The quotient must fit.
    pub const fn from_ratio(numerator: i64, denominator: i64) -> Fixed {
        assert!(0 < denominator);
        let quotient = ((numerator as i128) << FRACTION_BITS).div_euclid(denominator as i128);
        Fixed(narrow(quotient))
    }

    /// `self + other`; the caller's invariants rule overflow out, and a breach panics.
    #[must_use]
    pub const fn plus(self, other: Fixed) -> Fixed {
        Fixed(self.0.checked_add(other.0).expect("fixed-point sum in range"))
    }

    /// `self - other`; as for [`Fixed::plus`].
    #[must_use]
    pub const fn minus(self, other: Fixed) -> Fixed {
        Fixed(self.0.checked_sub(other.0).expect("fixed-point difference in range"))
    }

    /// `self + other`, held at the ends of the range.
    #[must_use]
    pub const fn plus_saturating(self, other: Fixed) -> Fixed {
        Fixed(self.0.saturating_add(other.0))
    }

    /// `-self`.
    #[must_use]
    pub const fn negated(self) -> Fixed {
        Fixed(self.0.checked_neg().expect("the smallest number has no negative"))
    }

    /// `self * other`, rounded toward negative infinity.
    #[must_use]
    pub const fn mul_floor(self, other: Fixed) -> Fixed {
        Fixed(narrow((self.0 as i128 * other.0 as i128) >> FRACTION_BITS))
    }

    /// `self * count`, exact.
    #[must_use]
    pub const fn mul_int(self, count: i64) -> Fixed {
        Fixed(narrow(self.0 as i128 * count as i128))
    }

    /// `self / other`, rounded toward negative infinity. `other` must be positive.
    #[must_use]
    pub const fn div_floor(self, other: Fixed) -> Fixed {
        assert!(0 < other.0);
        Fixed(narrow(((self.0 as i128) << FRACTION_BITS).div_euclid(other.0 as i128)))
    }

    /// `self / count`, rounded toward negative infinity. `count` must be positive.
    #[must_use]
    pub const fn div_count_floor(self, count: u64) -> Fixed {
        assert!(0 < count);
        Fixed(narrow((self.0 as i128).div_euclid(count as i128)))
    }

    /// The largest `r` with `r * r <= self`, exact to the last bit. `self` must not be negative.
    #[must_use]
    pub const fn sqrt_floor(self) -> Fixed {
        assert!(0 <= self.0);
        Fixed(((self.0 as u128) << FRACTION_BITS).isqrt() as i64)
    }

    /// Natural logarithm of a whole number, from below: at most two units in the last place low, never high.
    ///
    /// Why: 32 squarings of a mantissa with 62 fractional bits lose less than 2^-26 units of the last bit
    /// kept; cutting log2 after 32 bits loses less than one unit (times ln 2 < 1), and the final shift loses
    /// less than one more.
    #[must_use]
    pub const fn ln_count_floor(count: u64) -> Fixed {
        let log2 = log2_count_floor(count);
        Fixed(((log2.0 as i128 * LN_2_Q62) >> 62) as i64)
    }

    /// The smaller of two.
    #[must_use]
    pub const fn min(self, other: Fixed) -> Fixed {
        if self.0 <= other.0 { self } else { other }
    }

    /// The larger of two.
    #[must_use]
    pub const fn max(self, other: Fixed) -> Fixed {
        if self.0 >= other.0 { self } else { other }
    }

    /// `self` held between `low` and `high`.
    #[must_use]
    pub const fn clamp(self, low: Fixed, high: Fixed) -> Fixed {
        assert!(low.0 <= high.0);
        self.max(low).min(high)
    }

    /// Reads a decimal such as `-0.25` exactly, rounding toward negative infinity past the 32nd bit.
    ///
    /// At most nine digits may follow the point, so that the text names one number and nothing is lost twice.
    pub fn parse_decimal(text: &str) -> Option<Fixed> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || 9 < fraction.len() || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let scale = 10i128.pow(fraction.len() as u32);
        let whole: i128 = whole.parse().ok().filter(|value| *value < 1 << 31)?;
        let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
        let numerator = whole * scale + fraction;
        let signed = if negative { -numerator } else { numerator };
        i64::try_from((signed << FRACTION_BITS).div_euclid(scale)).ok().map(Fixed)
    }
}

/// Base-2 logarithm of a whole number, from below, at most one unit in the last place low.
#[must_use]
pub const fn log2_count_floor(count: u64) -> Fixed {
    assert!(0 < count);
    // Bit by bit: square the mantissa; each carry past 2 is the next bit of the logarithm.
    let whole = count.ilog2();
    let mut mantissa: u128 = ((count as u128) << 62) >> whole;
    let mut log2: i64 = (whole as i64) << FRACTION_BITS;
    let mut bit = FRACTION_BITS as i32 - 1;
    while 0 <= bit {
        mantissa = (mantissa * mantissa) >> 62;
        if 2 << 62 <= mantissa {
            mantissa >>= 1;
            log2 |= 1 << bit;
        }
        bit -= 1;
    }
    Fixed(log2)
}

const fn narrow(wide: i128) -> i64 {
    assert!(i64::MIN as i128 <= wide && wide <= i64::MAX as i128, "fixed-point result in range");
    wide as i64
}

impl fmt::Display for Fixed {
    /// Six decimals, rounded toward zero.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let fraction = ((magnitude & 0xFFFF_FFFF) as u128 * 1_000_000) >> FRACTION_BITS;
        let text = format!("{}.{fraction:06}", magnitude >> FRACTION_BITS);
        formatter.pad_integral(0 <= self.0, "", &text)
    }
}

/// A chance as a fraction of whole numbers, so that no draw depends on rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// How many of `denominator` draws succeed.
    pub numerator: u64,
    /// Never zero.
    pub denominator: u64,
}

impl Ratio {
    /// `numerator` out of `denominator`; the first must not exceed the second.
    pub const fn new(numerator: u64, denominator: u64) -> Ratio {
        assert!(0 < denominator && numerator <= denominator);
        Ratio { numerator, denominator }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_of_one_is_zero() {
        assert_eq!(Fixed::ln_count_floor(1), Fixed::ZERO);
    }

    #[test]
    fn logarithms_lie_within_two_units_below_the_true_value() {
        // True values times 2^32, rounded down, from a 50-digit table.
        for (count, want) in [
            (2u64, 2_977_044_471i64),
            (3, 4_718_503_850),
            (10, 9_889_527_670),
            (1_000, 29_668_583_011),
            (1_000_000, 59_337_166_023),
            (u64::MAX, 190_530_846_196),
        ] {
            let got = Fixed::ln_count_floor(count).to_raw();
            assert!(want - 2 <= got && got <= want, "count={count} got={got} want={want}");
        }
    }

    #[test]
    fn decimals_are_read_exactly_and_nonsense_is_refused() {
        assert_eq!(Fixed::parse_decimal("0.5"), Some(Fixed::HALF));
        assert_eq!(Fixed::parse_decimal("-1"), Some(Fixed::from_int(-1)));
        assert_eq!(Fixed::parse_decimal("0.1"), Some(Fixed::from_ratio(1, 10)));
        for bad in ["", "-", ".5", "1.0000000001", "1e3", "9999999999", "0x1", "1.-2", "+1"] {
            assert_eq!(Fixed::parse_decimal(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn numbers_print_with_six_decimals() {
        assert_eq!(Fixed::from_ratio(-5, 4).to_string(), "-1.250000");
        assert_eq!(Fixed::HALF.to_string(), "0.500000");
    }

    proptest::proptest! {
        #[test]
        fn square_root_is_the_largest_that_squares_back(raw in 0..i64::MAX) {
            let root = Fixed(raw).sqrt_floor().to_raw() as i128;
            let wide = (raw as i128) << FRACTION_BITS;
            proptest::prop_assert!(root * root <= wide && wide < (root + 1) * (root + 1));
        }

        #[test]
        fn logarithm_never_decreases(count in 1..u64::MAX) {
            proptest::prop_assert!(Fixed::ln_count_floor(count) <= Fixed::ln_count_floor(count + 1));
        }

        #[test]
        fn quotient_times_divisor_is_at_most_the_dividend(raw in -(1i64 << 50)..(1i64 << 50), count in 1u64..1 << 40) {
            let quotient = Fixed(raw).div_count_floor(count).to_raw() as i128;
            let wide = raw as i128;
            proptest::prop_assert!(quotient * count as i128 <= wide);
            proptest::prop_assert!(wide < (quotient + 1) * count as i128);
        }
    }
}
