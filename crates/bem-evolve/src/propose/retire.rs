//! RETIRE: an expert that is not the best anywhere, beyond what chance explains.

use super::Proposal;
use crate::localize::doubt;
use crate::patch::{Change, ExpectedEffects};
use crate::verify::Improvement;
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_learn::bucket::Bucket;
use bem_machine::family::{Family, STEP_BY_STEP};

/// The expert that is dominated by the widest margin; ties go to the lowest slot.
///
/// Dominated: wherever it may be chosen it has been tried, and some other arm's loss is surely lower. What is given up
/// with it is never the best choice, and what is gained is the tries that it would still have cost.
pub fn propose_retire(family: &Family) -> Option<Proposal> {
    let comparisons = (family.buckets().len() * ARMS_MAX) as u64;
    let margin = |slot: usize| {
        let places = if family.is_sticky(slot) {
            core::slice::from_ref(family.episode_bucket())
        } else {
            family.buckets()
        };
        let live = places.iter().filter(|bucket| bucket.live() >> slot & 1 == 1);
        live.map(|bucket| dominated_by(bucket, slot, comparisons)).min().filter(|least| Fixed::ZERO < *least)
    };
    let slots = family.occupied().map(|(slot, _)| slot).filter(|slot| *slot != STEP_BY_STEP);
    let dominated = slots.filter_map(|slot| Some((margin(slot)?, slot)));
    let (margin, slot) = dominated.max_by_key(|(margin, slot)| (*margin, core::cmp::Reverse(*slot)))?;
    let visits = |bucket: &Bucket| bucket.statistics(slot).visits;
    let steps = if family.is_sticky(slot) {
        visits(family.episode_bucket())
    } else {
        family.buckets().iter().map(visits).fold(0, u32::saturating_add)
    };
    Some(Proposal {
        change: Change::Retire { slot: slot as u8 },
        improvement: Some(Improvement::Logged { lower_bound: margin, steps }),
        effects: ExpectedEffects { return_gain: margin.div_count_floor(64), ..ExpectedEffects::default() },
        words: format!("slot {slot}, which is worse than another by at least {margin} everywhere"),
    })
}

/// How much lower some other arm's mean loss surely is; below zero if none is.
fn dominated_by(bucket: &Bucket, slot: usize, comparisons: u64) -> Fixed {
    // The imagined visit is no evidence: it is taken off the count, and held against the claim.
    let seen = |arm: usize| bucket.statistics(arm).visits - 1;
    let sure = |arm: usize| doubt(seen(arm), comparisons);
    let low = bucket.mean_loss(slot).minus(sure(slot));
    let others = (0..ARMS_MAX).filter(|arm| *arm != slot && bucket.live() >> arm & 1 == 1 && 0 < seen(*arm));
    let best = others.map(|arm| bucket.mean_loss(arm).plus(sure(arm))).min();
    if seen(slot) == 0 {
        Fixed::ONE.negated()
    } else {
        best.map_or(Fixed::ONE.negated(), |best| low.minus(best))
    }
}
