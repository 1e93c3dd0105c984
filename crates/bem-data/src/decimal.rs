//! Decimal numbers, exact: what a file says is what is compared.
//!
//! A number has at most 18 digits behind the point and is at most 10^15 in size. Text with more is refused, never
//! rounded: two readers of one log must agree on every threshold. Clauses: GLE-9.

use crate::DataError;
use bem_base::fixed::Fixed;
use core::fmt;

/// Digits behind the point.
pub const DIGITS: u32 = 18;
/// Largest size, in whole units.
const WHOLE_MAX: i128 = 1_000_000_000_000_000;
const ONE: i128 = 10i128.pow(DIGITS);
/// Largest exponent that is looked at.
const EXPONENT_MAX: i32 = 60;

/// A decimal number, in units of 10^-18.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(i128);

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal(0);
    /// One.
    pub const ONE: Decimal = Decimal(ONE);
    /// One millionth.
    pub const MICRO: Decimal = Decimal(ONE / 1_000_000);
    /// The smallest number there is.
    pub const MIN: Decimal = Decimal(-WHOLE_MAX * ONE);
    /// The largest number there is.
    pub const MAX: Decimal = Decimal(WHOLE_MAX * ONE);

    /// A whole number; at most 10^15 in size.
    pub const fn from_int(value: i32) -> Decimal {
        Decimal(value as i128 * ONE)
    }

    /// Reads `-12.5`, `+3`, `.25` or `1.5e-3`.
    pub fn parse(text: &str) -> Result<Decimal, DataError> {
        parse(text.trim()).ok_or_else(|| {
            DataError(format!(
                "{text:?} is no decimal number of at most {DIGITS} digits behind the point and 10^15 in size"
            ))
        })
    }

    /// Halfway between two numbers, with as few digits as still lie between them; `low` must be below `high`.
    ///
    /// The result is above `low` and at most `high`, so that `value >= result` tells them apart.
    pub fn between(low: Decimal, high: Decimal) -> Decimal {
        debug_assert!(low < high);
        let middle = low.0 + (high.0 - low.0) / 2;
        let mut unit = 10i128.pow(DIGITS) * WHOLE_MAX;
        while 1 < unit {
            let rounded = (2 * middle + unit).div_euclid(2 * unit) * unit;
            if low.0 < rounded && rounded <= high.0 {
                return Decimal(rounded);
            }
            unit /= 10;
        }
        high
    }

    /// A point at this share of the way from `low` to `high`, rounded down.
    pub fn at_share(low: Decimal, high: Decimal, numerator: u32, denominator: u32) -> Decimal {
        Decimal(low.0 + (high.0 - low.0) / i128::from(denominator.max(1)) * i128::from(numerator))
    }

    /// The sum; bounds of features keep it far below what can be counted.
    pub fn plus(self, other: Decimal) -> Decimal {
        Decimal(self.0.saturating_add(other.0))
    }

    /// The difference; bounds of features keep it far below what can be counted.
    pub fn minus(self, other: Decimal) -> Decimal {
        Decimal(self.0.saturating_sub(other.0))
    }

    /// The smallest multiple of a step that is above this number; the step must be above zero.
    pub fn multiple_above(self, step: Decimal) -> Decimal {
        Decimal((self.0.div_euclid(step.0) + 1) * step.0)
    }

    /// Whether the first place is nearer to the wanted one than the second.
    pub fn is_nearer(wanted: Decimal, first: Decimal, second: Decimal) -> bool {
        (wanted.0 - first.0).abs() < (wanted.0 - second.0).abs()
    }

    /// The next larger number: what `value > x` compares with at least.
    pub fn next_up(self) -> Decimal {
        Decimal(self.0 + 1)
    }

    /// The same with 32 fractional bits, rounded down; nothing where it is too large.
    pub fn to_fixed(self) -> Option<Fixed> {
        let whole = self.0.div_euclid(ONE);
        let part = self.0.rem_euclid(ONE);
        i64::try_from((whole << 32) + ((part << 32) / ONE)).ok().map(Fixed::from_raw)
    }

    /// In thousandths, if it is a whole number of them.
    pub fn to_milli(self) -> Option<i64> {
        let unit = ONE / 1_000;
        (self.0 % unit == 0).then(|| i64::try_from(self.0 / unit).ok()).flatten()
    }

    /// As a whole number, if it is one.
    pub fn to_int(self) -> Option<i64> {
        (self.0 % ONE == 0).then(|| i64::try_from(self.0 / ONE).ok()).flatten()
    }
}

fn parse(text: &str) -> Option<Decimal> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (digits, exponent) = match text.find(['e', 'E']) {
        None => (text, 0),
        Some(place) => (&text[..place], text[place + 1..].parse::<i32>().ok()?),
    };
    if !(-EXPONENT_MAX..=EXPONENT_MAX).contains(&exponent) {
        return None;
    }
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    // Zeros at either end say nothing; without them at most 34 digits fit.
    let all: String = [whole, part].concat();
    if !all.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let kept = all.trim_end_matches('0');
    let mut power = exponent + (all.len() - kept.len()) as i32 - part.len() as i32 + DIGITS as i32;
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() {
        return Some(Decimal::ZERO);
    }
    if 34 < kept.len() || power < 0 {
        return None;
    }
    let mut value: i128 = kept.parse().ok()?;
    while 0 < power {
        value = value.checked_mul(10)?;
        power -= 1;
    }
    (value <= WHOLE_MAX * ONE).then_some(Decimal(if negative { -value } else { value }))
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        let (whole, part) = (size / ONE as u128, size % ONE as u128);
        if part == 0 {
            return write!(f, "{sign}{whole}");
        }
        let part = format!("{part:018}");
        write!(f, "{sign}{whole}.{}", part.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn decimals_are_read_exactly_and_written_shortest() {
        for (text, want) in [
            ("21.5", "21.5"),
            ("-0.10", "-0.1"),
            ("+3", "3"),
            (".25", "0.25"),
            ("1.5e-3", "0.0015"),
            ("12E2", "1200"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("-0", "0"),
            ("1000000000000000", "1000000000000000"),
            ("0e99999999", ""),
        ] {
            match Decimal::parse(text) {
                Ok(value) => assert_eq!(value.to_string(), want, "{text}"),
                Err(_) => assert_eq!(want, "", "{text}"),
            }
        }
        for text in
            ["", "-", ".", "1.2.3", "nan", "1e", "0.0000000000000000001", "1000000000000001", "1e60", "٣"]
        {
            assert!(Decimal::parse(text).is_err(), "{text}");
        }
        assert!(number("0.1") < number("0.10000000000000001"));
    }

    #[test]
    fn thresholds_between_two_values_are_short_and_tell_them_apart() {
        for (low, high, want) in [
            ("20", "23", "22"),
            ("20.1", "20.4", "20.3"),
            ("0", "1", "1"),
            ("-3", "4", "0"),
            ("9", "11", "10"),
        ] {
            let (low, high) = (number(low), number(high));
            let middle = Decimal::between(low, high);
            assert!(low < middle && middle <= high, "{low} {middle} {high}");
            assert_eq!(middle.to_string(), want);
        }
    }

    proptest::proptest! {
        #[test]
        fn text_and_number_go_both_ways(whole in -1_000_000i64..1_000_000, part in 0u32..1_000_000) {
            let text = format!("{whole}.{part:06}");
            let value = Decimal::parse(&text).unwrap();
            proptest::prop_assert_eq!(Decimal::parse(&value.to_string()).unwrap(), value);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,40}|[-+0-9.eE]{0,60}") {
            let _ = Decimal::parse(&text);
        }

        #[test]
        fn what_lies_between_lies_between(low in -1_000_000i64..1_000_000, more in 1i64..1_000_000) {
            let (low, high) = (number(&format!("{low}e-3")), number(&format!("{}e-3", low + more)));
            let middle = Decimal::between(low, high);
            proptest::prop_assert!(low < middle && middle <= high);
        }
    }
}
