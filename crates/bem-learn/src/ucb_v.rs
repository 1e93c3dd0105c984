//! UCB-V: the arm whose loss could plausibly be lowest, given the spread it has shown.
//!
//! `mean - weight * (sqrt(2 var ln(1+N) / n) + 3 b ln(1+N) / n)`, with b the range of losses, and
//! where the weight is alpha times a factor
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
    /// `sqrt(2 var ln / n) + 3 b ln / n`.
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
    let (mean_q44, root_q44, range_q44) = parts(arm, ln_total);
    Estimate { mean_q44, bonus_q44: root_q44 + range_q44 }
}

/// The same where losses are known to differ by this much at most, with 32 fractional bits.
#[inline]
pub fn estimate_within(arm: &ArmStatistics, ln_total: u64, range: u64) -> Estimate {
    let (mean_q44, root_q44, range_q44) = parts(arm, ln_total);
    let within = ((u128::from(range_q44) * u128::from(range)) >> 32) as u64;
    Estimate { mean_q44, bonus_q44: root_q44 + within }
}

/// Mean, the part of the bonus by the spread, and that by the range.
#[inline]
fn parts(arm: &ArmStatistics, ln_total: u64) -> (u64, u64, u64) {
    // Off by less than n / 2^64 in relative terms, which is 2^-34 at the most visits a bucket keeps.
    let reciprocal_q64 = u64::MAX / u64::from(arm.visits);
    // With the top bit set it is 2^(64 + whole) / n; sums shifted by as much as n leaves free still fit, and
    // the high half of each product is a mean with 63 fractional bits.
    let whole = arm.visits.ilog2();
    let reciprocal = reciprocal_q64 << whole;
    let mean_q63 = mul_high(arm.loss_sum << (31 - whole), reciprocal);
    let mean_sq_q63 = mul_high(arm.loss_sq_sum << (31 - whole), reciprocal);
    // At most one quarter, as losses lie between zero and one.
    let variance_q63 = mean_sq_q63.saturating_sub(mul_high(mean_q63, mean_q63) << 1);

    // 2 * variance * ln / n as a mantissa and a power of two, so that small ones keep their digits.
    let doubled_q56 = mul_high(variance_q63 << 1, ln_total << 25);
    let root_q44 = sqrt_q44(mul_high(doubled_q56, reciprocal), -56 - whole as i32);
    let range_q52 = mul_high((3 * ln_total) << 20, reciprocal_q64);
    (mean_q63 >> 19, root_q44, range_q52 >> 8)
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
    // The bonus is below 2^8 and the weight at most 4: shifted up, the high half of the product is the rest.
    estimate.mean_q44 as i64 - mul_high(estimate.bonus_q44 << 12, weight << 20) as i64
}
