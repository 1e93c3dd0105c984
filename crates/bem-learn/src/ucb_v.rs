//! UCB-V: the arm whose loss could plausibly be lowest, given the spread it has shown.
//!
//! `mean - weight * (sqrt(2 var ln(1+N) / n) + 3 ln(1+N) / n)`, where the weight is alpha times a factor
//! between 0.707 and 1 that the prior sets: a distrusted arm gets a narrower benefit of the doubt, never a worse
//! estimate, so a wrong prior costs a constant factor and not the guarantee. One division an arm; every
//! intermediate is wide, and the only rounding that matters is the last one. Clauses: VM-9, VM-10, D-1 to D-3.

use crate::index::{ArmStatistics, PRIOR_FRACTION_BITS, Parameters};
use crate::numeric::{mul_high, sqrt_q44};

/// Mean and unweighted bonus of one arm, with 44 fractional bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Mean loss.
    pub mean_q44: u64,
    /// `sqrt(2 var ln / n) + 3 ln / n`.
    pub bonus_q44: u64,
}

/// sqrt(1/2) with 32 fractional bits: the most that a prior may shrink the bonus.
const SHRINK_MIN: i64 = 3_037_000_499;
const SHRINK_NONE: i64 = 1 << 32;

/// Mean and bonus of one arm; `ln_total` has 32 fractional bits and is at most ln 2^64.
///
/// Cost: one division, about twenty multiplications, no loop.
#[inline]
pub fn estimate(arm: &ArmStatistics, ln_total: u64) -> Estimate {
    // Off by less than n / 2^64 in relative terms, which is 2^-34 at the most visits a bucket keeps.
    let reciprocal_q64 = u64::MAX / u64::from(arm.visits);
    let mean_q44 = ((u128::from(arm.loss_sum) * u128::from(reciprocal_q64)) >> 52) as u64;

    // n * Q - L^2 is n^2 times the variance, exactly, so that nothing cancels. As a mantissa of 64 bits and a
    // power of two it is multiplied by the logarithm while the division is still under way.
    let square_q64 = u128::from(arm.loss_sum) * u128::from(arm.loss_sum);
    let product_q64 = (u128::from(arm.loss_sq_sum) * u128::from(arm.visits)) << 32;
    let spread_q64 = product_q64.saturating_sub(square_q64);
    let zeros = spread_q64.leading_zeros().min(127);
    let spread = ((spread_q64 << zeros) >> 64) as u64;
    let scaled = mul_high(spread, ln_total << 25);
    // 2^(64 + whole) / n, with the top bit set; cubed it takes spread * ln to variance * ln / n.
    let whole = arm.visits.ilog2();
    let reciprocal = reciprocal_q64 << whole;
    let mantissa = mul_high(mul_high(scaled, reciprocal), mul_high(reciprocal, reciprocal));
    let root_q44 = sqrt_q44(mantissa, 8 - zeros as i32 - 3 * whole as i32);

    let range_q44 = (u128::from(3 * ln_total) * u128::from(reciprocal_q64)) >> 52;
    Estimate { mean_q44, bonus_q44: root_q44 + range_q44 as u64 }
}

/// The mean less the bonus, weighted by alpha and by what the prior leaves of it; 44 fractional bits.
#[inline]
#[doc(alias = "index_i")]
pub(crate) fn optimistic_loss(parameters: &Parameters, estimate: &Estimate, prior: i32) -> i64 {
    let shrink = SHRINK_NONE + ((prior as i64) << (32 - PRIOR_FRACTION_BITS - 2));
    let weight = mul_high(
        (shrink.clamp(SHRINK_MIN, SHRINK_NONE) as u64) << 16,
        (parameters.exploration.to_raw() as u64) << 16,
    );
    estimate.mean_q44 as i64 - ((estimate.bonus_q44 as u128 * weight as u128) >> 32) as i64
}
