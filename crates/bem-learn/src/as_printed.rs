//! The index exactly as the seeds print it: mean plus bonus plus `beta * z`, and still the lowest is chosen.
//!
//! A negative control. The bonus repels where it should attract: the first arm pulled lowers its own bonus and
//! is pulled for ever, so regret is linear; `laboratory` has the test that shows it. Clauses: VM-10, D-1.

use crate::index::{Parameters, scale, weighted_prior_q44};
use crate::ucb_v::Estimate;

/// `mean - prior + bonus` with `prior = -beta * z`, 44 fractional bits.
pub(crate) fn index_q44(parameters: &Parameters, estimate: &Estimate, prior: i32) -> i64 {
    let prior_term = -weighted_prior_q44(parameters, prior);
    estimate.mean_q44 as i64 - prior_term + scale(estimate.bonus_q44, parameters.exploration)
}
