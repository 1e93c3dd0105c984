//! The logarithm and square root of the index: a few multiplications each, with stated error bounds.
//!
//! `bem_base::fixed` has the exact ones; they cost tens of nanoseconds and these cost a few. Each is tested
//! against the exact one. Clauses: VM-9, D-7.

use bem_base::fixed::Fixed;

/// The high half of a 64 by 64 bit product.
#[inline(always)]
pub(crate) const fn mul_high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// `(value * factor) >> 64` for a wide value; the result must fit 128 bits, which it does since factor < 2^64.
#[inline(always)]
pub(crate) const fn mul_wide_high(value: u128, factor: u64) -> u128 {
    let high = (value >> 64) as u64;
    let low = value as u64;
    (high as u128 * factor as u128).wrapping_add(mul_high(low, factor) as u128)
}

const LN_STEPS: usize = 128;

/// ln 2 with 56 fractional bits.
const LN_2_Q56: u64 = 0xB1_7217_F7D1_CF79;

/// One cell per 128th of an octave: the reciprocal of its lower end, and the logarithm of that end.
struct LogarithmTable {
    reciprocal_q63: [u64; LN_STEPS],
    ln_q56: [u64; LN_STEPS],
}

static LOGARITHM: LogarithmTable = logarithm_table();

const fn logarithm_table() -> LogarithmTable {
    let mut table = LogarithmTable { reciprocal_q63: [0; LN_STEPS], ln_q56: [0; LN_STEPS] };
    let mut step = 0;
    while step < LN_STEPS {
        let end = LN_STEPS + step;
        table.reciprocal_q63[step] = (((LN_STEPS as u128) << 63) / end as u128) as u64;
        let ln = Fixed::ln_count_floor(end as u64).to_raw() - Fixed::ln_count_floor(LN_STEPS as u64).to_raw();
        table.ln_q56[step] = (ln as u64) << 24;
        step += 1;
    }
    table
}

/// Natural logarithm of a positive whole number with 32 fractional bits, within four units.
#[inline]
pub(crate) fn ln_q32(count: u64) -> u64 {
    debug_assert!(0 < count);
    let zeros = count.leading_zeros();
    let mantissa_q63 = count << zeros;
    let step = (mantissa_q63 >> 56) as usize & (LN_STEPS - 1);
    // What is left over the cell's lower end, below 1/128, goes through four terms of the series.
    let over_q62 = mul_high(mantissa_q63, LOGARITHM.reciprocal_q63[step]).saturating_sub(1 << 62);
    let second_q60 = mul_high(over_q62, over_q62);
    let third_q58 = mul_high(over_q62, second_q60);
    let fourth_q56 = mul_high(second_q60, second_q60);
    let series_q56 = (over_q62 >> 6) + ((third_q58 / 3) >> 2) - (second_q60 >> 5) - (fourth_q56 >> 2);
    ((63 - zeros) as u64 * LN_2_Q56 + LOGARITHM.ln_q56[step] + series_q56) >> 24
}

const ROOT_STEPS: usize = 512;

/// Reciprocal square roots at the middle of each 512th of the unit interval, with 30 fractional bits.
static RECIPROCAL_ROOT_Q30: [u32; ROOT_STEPS] = reciprocal_root_table();

const fn reciprocal_root_table() -> [u32; ROOT_STEPS] {
    let mut table = [0; ROOT_STEPS];
    // Arguments are normalised to at least one quarter, so the first quarter of the table is never read.
    let mut step = ROOT_STEPS / 4;
    while step < ROOT_STEPS {
        let middle = 2 * step as u128 + 1;
        table[step] = ((1u128 << 60) * (2 * ROOT_STEPS as u128) / middle).isqrt() as u32;
        step += 1;
    }
    table
}

/// Square root of a number below 2^6 with 96 fractional bits: 48 fractional bits, relative error below 2^-33.
#[inline]
pub(crate) fn sqrt_q96(value: u128) -> u64 {
    debug_assert!(value < 1 << 102);
    if value == 0 {
        return 0;
    }
    let shift = value.leading_zeros() & !1;
    let argument_q64 = ((value << shift) >> 64) as u64;
    let guess_q30 = u64::from(RECIPROCAL_ROOT_Q30[(argument_q64 >> 55) as usize]);
    // Two steps of Newton: guess * (3 - argument * guess^2) / 2. Nine good bits become 34.
    let error_q62 = mul_high(argument_q64, (guess_q30 * guess_q30) << 2);
    let better_q61 = mul_high(guess_q30 << 32, (3 << 62) - error_q62);
    let error_q62 = mul_high(argument_q64, mul_high(better_q61, better_q61)) << 4;
    let best_q61 = mul_high(better_q61 << 1, (3 << 62) - error_q62);
    mul_high(argument_q64, best_q61) >> (shift / 2 - 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reciprocal_of_the_first_cell_is_one_half_of_the_word() {
        assert_eq!(LOGARITHM.reciprocal_q63[0], 1 << 63);
        assert_eq!(ln_q32(1), 0);
    }

    #[test]
    fn small_logarithms_are_within_four_units_of_the_exact_ones() {
        for count in 1..200_000u64 {
            let exact = Fixed::ln_count_floor(count).to_raw() as u64;
            assert!(ln_q32(count).abs_diff(exact) <= 4, "count={count} {} {exact}", ln_q32(count));
        }
    }

    proptest::proptest! {
        #[test]
        fn logarithms_are_within_four_units_of_the_exact_ones(raw in 1u64.., shift in 0u32..64) {
            let count = (raw >> shift).max(1);
            let exact = Fixed::ln_count_floor(count).to_raw() as u64;
            proptest::prop_assert!(ln_q32(count).abs_diff(exact) <= 4);
        }

        #[test]
        fn roots_are_within_the_stated_relative_error(raw in 0u128..1 << 102, shift in 0u32..102) {
            let value = raw >> shift;
            // 128 bits hold the value and 26 more, so the exact root has 13 bits below ours.
            let exact = ((value << 26).isqrt() >> 13) as u64;
            let bound = (exact >> 33) + 2;
            proptest::prop_assert!(sqrt_q96(value).abs_diff(exact) <= bound, "{} {}", sqrt_q96(value), exact);
        }
    }
}
