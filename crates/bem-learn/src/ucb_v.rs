//! UCB-V: the arm whose loss could plausibly be lowest, given the spread it has shown.
//!
//! `mean - weight * (sqrt(2 var ln(1+N) / n) + 3 ln(1+N) / n)`, where the weight is alpha times a factor
//! between 0.707 and 1 that the prior sets: a distrusted arm gets a narrower benefit of the doubt, never a worse
//! estimate, so a wrong prior costs a constant factor and not the guarantee. One division an arm; every
//! intermediate is wide, and the only rounding that matters is the last one. Clauses: VM-9, VM-10, D-1 to D-3.

use crate::index::{ArmStatistics, PRIOR_FRACTION_BITS, Parameters};
use crate::numeric::{mul_high, mul_wide_high, sqrt_q96};

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
    let mean_q44 = ((arm.loss_sum as u128 * reciprocal_q64 as u128) >> 52) as u64;

    // n * Q - L^2 is exact, so that nothing cancels; two reciprocals then give the variance.
    let square_q64 = arm.loss_sum as u128 * arm.loss_sum as u128;
    let spread_q64 = ((arm.loss_sq_sum as u128 * arm.visits as u128) << 32).saturating_sub(square_q64);
    let variance_q64 = mul_wide_high(mul_wide_high(spread_q64, reciprocal_q64), reciprocal_q64) as u64;

    let doubled_q96 = variance_q64 as u128 * (2 * ln_total) as u128;
    let root_q48 = sqrt_q96(mul_wide_high(doubled_q96, reciprocal_q64));
    let range_q44 = ((3 * ln_total) as u128 * reciprocal_q64 as u128) >> 52;
    Estimate { mean_q44, bonus_q44: (root_q48 >> 4) + range_q44 as u64 }
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
