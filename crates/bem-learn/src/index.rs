//! The index as a plug: what an index rule sees of an arm, which rules there are, and their parameters.
//!
//! An index is a function of one arm's statistics and the bucket's total; the lowest index is chosen. Rules
//! that need more (sampling, importance weights) are in files of their own. Clauses: VM-9, VM-10, VM-11, D-1
//! to D-3, D-7.

use crate::as_printed;
use crate::ucb_v::{self, Estimate};
use bem_base::fixed::Fixed;

/// Fractional bits of a cached index.
pub const INDEX_FRACTION_BITS: u32 = 28;
/// Indices are held at plus or minus this, so that a masked arm can lie above every live one.
pub const INDEX_LIMIT: i32 = 7 << INDEX_FRACTION_BITS;
/// The index of a masked arm.
pub const INDEX_MASKED: i32 = i32::MAX;
/// Fractional bits of a stored prior.
pub const PRIOR_FRACTION_BITS: u32 = 24;
/// Priors must lie within plus or minus this.
pub const PRIOR_LIMIT: i32 = 64;

const _: () = assert!(INDEX_LIMIT < INDEX_MASKED);
const _: () = assert!((PRIOR_LIMIT as i64) << PRIOR_FRACTION_BITS < 1 << 31);

/// What one arm has shown so far, as an index rule sees it.
///
/// Invariants: `1 <= visits`; both sums, with 32 fractional bits, are at most `visits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmStatistics {
    /// Choices of this arm, the imagined one at boot included.
    pub visits: u32,
    /// Sum of losses, 32 fractional bits.
    pub loss_sum: u64,
    /// Sum of squared losses, 32 fractional bits.
    pub loss_sq_sum: u64,
    /// Log-weight, 24 fractional bits.
    #[doc(alias = "z")]
    pub prior: i32,
}

/// Which formula turns statistics into an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IndexRule {
    /// Mean less bonus; a low prior shrinks the bonus and nothing else (D-1, D-2).
    UcbV = 0,
    /// Mean less bonus less `beta * z`: the repaired signs with the prior still subtracted. A control.
    PriorSubtracted = 1,
    /// Mean plus bonus plus `beta * z`, exactly as the seeds print it. A control; its regret is linear.
    AsPrinted = 2,
    /// The mean alone. A control.
    Greedy = 3,
}

/// Two-sided Page-Hinkley: how far the mean may drift unnoticed and how much evidence raises the alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeParameters {
    /// Drift per visit that is forgiven.
    pub drift: Fixed,
    /// Accumulated excess that raises the alarm.
    pub threshold: Fixed,
}

/// Everything the buckets of one family share. Frozen at genesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The formula.
    pub rule: IndexRule,
    /// Weight of the exploration bonus, above 0 and at most 4.
    #[doc(alias = "alpha_bandit")]
    pub exploration: Fixed,
    /// Weight of the prior in the two controls that add or subtract it, from 0 to 4.
    #[doc(alias = "beta_bandit")]
    pub prior_weight: Fixed,
    /// Rate at which an arm's own mean moves its prior, from 0 to 1; zero switches it off (D-2).
    #[doc(alias = "eta_z")]
    pub prior_rate: Fixed,
    /// The lowest prior.
    #[doc(alias = "z_min")]
    pub prior_min: Fixed,
    /// The highest prior.
    #[doc(alias = "z_max")]
    pub prior_max: Fixed,
    /// Loss of the imagined visit at boot, from 0 to 1.
    #[doc(alias = "l_ref")]
    pub loss_reference: Fixed,
    /// Change detection, if any.
    pub change: Option<ChangeParameters>,
}

impl Parameters {
    /// What the regret laboratory found best: see `docs/decisions.md`, D-3.
    pub const DEFAULT: Parameters = Parameters {
        rule: IndexRule::UcbV,
        exploration: Fixed::from_ratio(3, 8),
        prior_weight: Fixed::ZERO,
        prior_rate: Fixed::ZERO,
        prior_min: Fixed::from_int(-8),
        prior_max: Fixed::from_int(8),
        loss_reference: Fixed::HALF,
        change: Some(ChangeParameters { drift: Fixed::from_ratio(1, 20), threshold: Fixed::from_int(50) }),
    };

    /// Refuses values outside their ranges, naming the field.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let limit = Fixed::from_int(PRIOR_LIMIT);
        let tiny = Fixed::from_raw(1);
        in_range("exploration", self.exploration, tiny, Fixed::from_int(4))?;
        in_range("prior_weight", self.prior_weight, Fixed::ZERO, Fixed::from_int(4))?;
        in_range("prior_rate", self.prior_rate, Fixed::ZERO, Fixed::ONE)?;
        in_range("prior_min", self.prior_min, limit.negated(), Fixed::ZERO)?;
        in_range("prior_max", self.prior_max, Fixed::ZERO, limit.minus(tiny))?;
        in_range("loss_reference", self.loss_reference, Fixed::ZERO, Fixed::ONE)?;
        if let Some(change) = self.change {
            in_range("change.drift", change.drift, Fixed::ZERO, Fixed::ONE)?;
            in_range("change.threshold", change.threshold, Fixed::ONE, Fixed::from_int(1 << 20))?;
        }
        Ok(())
    }
}

/// A parameter outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}, allowed: {low} to {high}")]
pub struct ParameterError {
    /// The field's name.
    pub field: &'static str,
    /// What was given.
    pub value: Fixed,
    /// The lowest allowed value.
    pub low: Fixed,
    /// The highest allowed value.
    pub high: Fixed,
}

fn in_range(field: &'static str, value: Fixed, low: Fixed, high: Fixed) -> Result<(), ParameterError> {
    if low <= value && value <= high { Ok(()) } else { Err(ParameterError { field, value, low, high }) }
}

/// The index of one arm under the parameters' rule.
#[inline]
pub fn index_of(parameters: &Parameters, estimate: &Estimate, prior: i32) -> i32 {
    saturate(if parameters.rule == IndexRule::UcbV {
        ucb_v::optimistic_loss(parameters, estimate, prior)
    } else {
        control_q44(parameters, estimate, prior)
    })
}

/// The controls, out of the way of the rule that the fast path uses.
#[cold]
fn control_q44(parameters: &Parameters, estimate: &Estimate, prior: i32) -> i64 {
    let mean = estimate.mean_q44 as i64;
    match parameters.rule {
        IndexRule::UcbV => ucb_v::optimistic_loss(parameters, estimate, prior),
        IndexRule::PriorSubtracted => {
            mean - scale(estimate.bonus_q44, parameters.exploration) - weighted_prior_q44(parameters, prior)
        }
        IndexRule::AsPrinted => as_printed::index_q44(parameters, estimate, prior),
        IndexRule::Greedy => mean,
    }
}

/// Rounds down to a cached index and holds it within the limit.
#[inline]
pub(crate) fn saturate(index_q44: i64) -> i32 {
    (index_q44 >> (44 - INDEX_FRACTION_BITS)).clamp(-(INDEX_LIMIT as i64), INDEX_LIMIT as i64) as i32
}

/// `value * factor` for a factor with 32 fractional bits, at most 4.
#[inline]
pub(crate) fn scale(value_q44: u64, factor: Fixed) -> i64 {
    ((value_q44 as u128 * factor.to_raw() as u128) >> 32) as i64
}

/// `beta * z` with 44 fractional bits.
pub(crate) fn weighted_prior_q44(parameters: &Parameters, prior: i32) -> i64 {
    let wide = prior as i128 * parameters.prior_weight.to_raw() as i128;
    (wide >> (PRIOR_FRACTION_BITS + 32 - 44)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid_and_a_bad_field_is_named_with_its_range() {
        assert_eq!(Parameters::DEFAULT.validate(), Ok(()));
        let bad = Parameters { loss_reference: Fixed::from_ratio(3, 2), ..Parameters::DEFAULT };
        let error = bad.validate().unwrap_err();
        assert_eq!(error.to_string(), "loss_reference = 1.500000, allowed: 0.000000 to 1.000000");
    }
}
