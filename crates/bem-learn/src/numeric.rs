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

const LN_STEPS: usize = 256;

/// ln 2 with 56 fractional bits.
const LN_2_Q56: u64 = 0xB1_7217_F7D1_CF79;

/// One 256th of an octave: the reciprocal of its lower end, and the logarithm of that end.
#[derive(Clone, Copy)]
struct LogarithmCell {
    reciprocal_q63: u64,
    ln_q56: u64,
}

static LOGARITHM: [LogarithmCell; LN_STEPS] = logarithm_table();

const fn logarithm_table() -> [LogarithmCell; LN_STEPS] {
    let mut table = [LogarithmCell { reciprocal_q63: 0, ln_q56: 0 }; LN_STEPS];
    let mut step = 0;
    while step < LN_STEPS {
        let end = LN_STEPS + step;
        let ln = Fixed::ln_count_floor(end as u64).to_raw() - Fixed::ln_count_floor(LN_STEPS as u64).to_raw();
        table[step].reciprocal_q63 = (((LN_STEPS as u128) << 63) / end as u128) as u64;
        table[step].ln_q56 = (ln as u64) << 24;
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
    let cell = &LOGARITHM[(mantissa_q63 >> 55) as usize % LN_STEPS];
    // What is left over the cell's lower end, below 1/256, goes through three terms of the series.
    let over_q62 = mul_high(mantissa_q63, cell.reciprocal_q63).saturating_sub(1 << 62);
    let second_q60 = mul_high(over_q62, over_q62);
    let third_q58 = mul_high(over_q62, second_q60);
    let series_q56 = (over_q62 >> 6) + third_q58 / 12 - (second_q60 >> 5);
    (u64::from(63 - zeros) * LN_2_Q56 + cell.ln_q56 + series_q56) >> 24
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

/// Square root of `mantissa * 2^exponent` with 44 fractional bits, relative error below 2^-33.
///
/// The root must be below 2^19. One look-up and three terms of a series that do not wait for each other,
/// because the index waits for this.
#[inline]
pub(crate) fn sqrt_q44(mantissa: u64, exponent: i32) -> u64 {
    if mantissa == 0 {
        return 0;
    }
    // The argument as a fraction of at least one quarter with 64 bits, times an even power of two.
    let zeros = mantissa.leading_zeros() as i32;
    let power = exponent + 64 - zeros;
    let argument_q64 = (mantissa << zeros) >> (power & 1);
    let half_power = (power + 1) >> 1;
    let guess_q30 = u64::from(RECIPROCAL_ROOT_Q30[(argument_q64 >> 55) as usize]);
    // With e = 1 - argument * guess^2, below 2^-8: root = argument * guess * (1 + e/2 + 3e^2/8 + 5e^3/16 + ..).
    let product_q60 = mul_high(argument_q64, guess_q30 * guess_q30);
    let error_q60 = (1i64 << 60) - product_q60 as i64;
    let error_q38 = error_q60 >> 22;
    let second_q76 = error_q38 * error_q38;
    let third_q76 = (second_q76 >> 38) * error_q38;
    let factor_q62 = (1i64 << 62) + (error_q60 << 1) + ((3 * second_q76) >> 17) + ((5 * third_q76) >> 18);
    let root_q60 = mul_high(mul_high(argument_q64, guess_q30 << 32), factor_q62 as u64);
    root_q60 >> (16 - half_power).clamp(0, 63)
}

/// Both tables as words, for a core that computes the index from memory: 256 pairs of reciprocal (63 fractional
/// bits) and logarithm (56), then 512 reciprocal roots (30).
pub fn table_words() -> Vec<u64> {
    let cells = LOGARITHM.iter().flat_map(|cell| [cell.reciprocal_q63, cell.ln_q56]);
    cells.chain(RECIPROCAL_ROOT_Q30.iter().map(|root| u64::from(*root))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reciprocal_of_the_first_cell_is_one_half_of_the_word() {
        assert_eq!(LOGARITHM[0].reciprocal_q63, 1 << 63);
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
        fn roots_are_within_the_stated_relative_error(raw in 0u64.., shift in 0u32..64, exponent in -90i32..=-32) {
            let mantissa = raw >> shift;
            // The exact root of mantissa * 2^(exponent + 88), which is ours, with up to 16 bits more.
            let wide = u128::from(mantissa) << 64;
            let exact = match exponent + 88 - 64 {
                left @ 0.. => (wide << left.min(wide.leading_zeros() as i32 & !1)).isqrt(),
                right => (wide >> -right).isqrt(),
            } as u64;
            proptest::prop_assume!(exponent + 88 - 64 <= wide.leading_zeros() as i32 & !1);
            let got = sqrt_q44(mantissa, exponent);
            proptest::prop_assert!(got.abs_diff(exact) <= (exact >> 33) + 2, "{} {}", got, exact);
        }
    }
}
