//! SPLIT: a bucket that is blamed, divided by the bit on which the right expert depends.

use super::Proposal;
use crate::localize::{LocalizeOptions, TracedEpisode, best_division, blame, localize};
use crate::patch::{Change, ExpectedEffects};
use crate::verify::Improvement;
use bem_machine::family::Family;
use bem_machine::route::directory::RouteInput;

/// Blamed buckets that are looked at, the worst first.
const BUCKETS_MAX: usize = 4;

/// The worst bucket that some bit divides with a gain that chance does not explain; with that gain as its evidence.
pub fn propose_split(family: &Family, episodes: &[TracedEpisode]) -> Option<Proposal> {
    let suspects = localize(episodes, LocalizeOptions::default());
    let mut buckets: Vec<u16> = Vec::new();
    for ((bucket, _), _) in blame(episodes, &suspects) {
        if !buckets.contains(&bucket) {
            buckets.push(bucket);
        }
    }
    buckets.into_iter().take(BUCKETS_MAX).find_map(|bucket| {
        let division = best_division(episodes, bucket, family.shape().observation_bits)?;
        let by = vec![RouteInput::State(division.bit)];
        let mut after = family.directory().clone();
        after.split(bucket, &by).ok()?;
        let (low, high) = division.slots;
        Some(Proposal {
            change: Change::Split { bucket, by, after },
            improvement: Some(Improvement::Logged { lower_bound: division.gain, steps: division.steps }),
            effects: ExpectedEffects { return_gain: division.gain, ..ExpectedEffects::default() },
            words: format!(
                "bucket {bucket} by bit {}: slot {low} where it is 0, {high} where 1",
                division.bit
            ),
        })
    })
}
