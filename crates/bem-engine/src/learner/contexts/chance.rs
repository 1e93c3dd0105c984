//! How surprising a sum of squared differences is: a bound on the tail of the chi-square distribution, in integers.
//!
//! With k degrees of freedom and m = k / 2, rounded up, the chance of a sum of at least 2u is at most
//! `exp(-u) * sum of u^i / i!` for i below m: exact where k is even, and a degree of freedom more where it is odd. Above the
//! mean the terms grow, so that the sum is at most its last term over `1 - (m - 1) / u`. Must not know where the differences
//! come from. Clauses: SCC-13, VM-17.

use bem_base::fixed::{FRACTION_BITS, Fixed};

/// Half sums beyond this are surprising enough, with their 20 fractional bits.
const HALF_MAX: i128 = 1 << 50;

/// The natural logarithm of one over the chance of a sum of squares of at least this many parts of `scale`, rounded down; zero
/// where chance brings as much.
pub(crate) fn surprise(sum: i128, scale: i128, freedom: i128) -> Fixed {
    let last = (freedom + 1) / 2 - 1;
    // u with as many fractional bits as fit a logarithm of whole numbers.
    let half = ((sum << 20) / (2 * scale)).clamp(0, HALF_MAX) as u64;
    let above = i128::from(half) - (last << 20);
    if freedom <= 0 || above <= 0 {
        return Fixed::ZERO;
    }
    let u = Fixed::from_raw((half << (FRACTION_BITS - 20)) as i64);
    let ln = |raw: u64| i128::from(Fixed::ln_count_floor(raw.max(1)).to_raw());
    let ln_u = ln(half) - ln(1 << 20);
    // ln n! is at least n ln n - n + ln(6 n) / 2.
    let factorial = match last {
        0 => 0,
        n => n * ln(n as u64) - (n << FRACTION_BITS) + ln(6 * n as u64) / 2,
    };
    let tail = ln(half) - ln(above as u64) + (1 << 8);
    let surprise = i128::from(u.to_raw()) - last * (ln_u + 4) + factorial - tail;
    Fixed::from_raw(surprise.clamp(0, i128::from(i64::MAX)) as i64)
}

/// What must be exceeded by each of this many tests that share a chance of error of one over `odds`.
pub(crate) fn needed(odds: u128, tests: usize) -> Fixed {
    let shared = odds.saturating_mul(tests.max(1) as u128);
    Fixed::ln_count_floor(u64::try_from(shared).unwrap_or(u64::MAX)).plus(Fixed::from_raw(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surprise_is_below_the_logarithm_of_the_true_tail_and_close_to_it() {
        // Degrees of freedom, quantile in thousandths, and the logarithm of one over its tail in thousandths (tables).
        for (freedom, quantile, truth) in [
            (2, 13_816, 6_908),
            (4, 18_467, 6_908),
            (10, 29_588, 6_908),
            (2, 27_631, 13_816),
            (4, 33_377, 13_816),
            (20, 65_421, 13_816),
            (100, 149_449, 6_908),
        ] {
            let found = surprise(quantile, 1_000, freedom);
            let truth = Fixed::from_ratio(truth, 1_000);
            assert!(found < truth.plus(Fixed::from_ratio(1, 500)), "{freedom} {quantile}: {found}");
            assert!(truth.minus(Fixed::ONE) < found, "{freedom} {quantile}: {found}");
        }
        assert_eq!(surprise(3_000, 1_000, 8), Fixed::ZERO);
        assert!(surprise(1 << 60, 1, 1) > Fixed::from_int(1_000));
    }
}
