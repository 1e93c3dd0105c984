//! RESET: statistics that the steps of late contradict.
//!
//! The machine's own detector looks at every step and is quick on large changes; this one looks at the log, so that it
//! also sees small ones. Decision: D-4.

use super::Proposal;
use crate::localize::{TracedEpisode, doubt};
use crate::patch::{Change, ExpectedEffects};
use crate::verify::Improvement;
use bem_base::fixed::Fixed;
use bem_machine::family::Family;
use std::collections::BTreeMap;

/// The newest steps of an arm that count as late: one in this many of those logged.
const LATE_ONE_IN: usize = 4;
/// Late steps before they count.
const LATE_MIN: usize = 64;

/// The bucket whose statistics are farthest from what its arms cost of late, beyond what chance explains.
pub fn propose_reset(family: &Family, episodes: &[TracedEpisode]) -> Option<Proposal> {
    let mut logged: BTreeMap<(u16, u8), Vec<Fixed>> = BTreeMap::new();
    for step in episodes.iter().flatten() {
        logged.entry((step.bucket, step.slot)).or_default().push(step.loss);
    }
    let comparisons = 2 * logged.len() as u64;
    let mut worst: Option<(Fixed, u16, u32)> = None;
    for ((bucket, slot), losses) in logged {
        let late = &losses[losses.len() - losses.len() / LATE_ONE_IN..];
        let Some(statistics) = family.buckets().get(usize::from(bucket)) else { continue };
        let (slot, late_count) = (usize::from(slot), late.len() as u32);
        let visits = statistics.statistics(slot).visits;
        // Statistics younger than the late steps have nothing to forget.
        if late.len() < LATE_MIN || statistics.live() >> slot & 1 == 0 || visits < 2 * late_count {
            continue;
        }
        let sum: i64 = late.iter().map(|loss| loss.to_raw()).sum();
        let shift = Fixed::from_raw(sum / late.len() as i64).minus(statistics.mean_loss(slot));
        let sure = shift
            .max(shift.negated())
            .minus(doubt(late_count, comparisons))
            .minus(doubt(visits, comparisons));
        if Fixed::ZERO < sure && worst.is_none_or(|(most, _, _)| most < sure) {
            worst = Some((sure, bucket, late_count));
        }
    }
    let (shift, bucket, steps) = worst?;
    Some(Proposal {
        change: Change::Reset { bucket },
        improvement: Some(Improvement::Logged { lower_bound: shift, steps }),
        effects: ExpectedEffects { return_gain: shift, ..ExpectedEffects::default() },
        words: format!("bucket {bucket}, whose losses of late are off by at least {shift}"),
    })
}
