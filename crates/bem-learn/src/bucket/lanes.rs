//! Several choices from one state: the few best arms, and the arms of many lanes that choose at once.
//! Clauses: VM-8, VM-9, D-5.

use super::{Bucket, Rank, lowest};
use crate::index::{ArmStatistics, INDEX_MASKED, Parameters, index_of};
use crate::numeric::ln_q32;
use crate::ucb_v;
use bem_base::limits::ARMS_MAX;

impl Bucket {
    /// The best of the candidates, one bit each; if none of them lives, the best of all.
    #[inline]
    pub fn choose_among(&self, candidates: u16) -> usize {
        if candidates & self.live == self.live || candidates & self.live == 0 {
            return self.choose();
        }
        let index =
            std::array::from_fn(
                |arm| {
                    if candidates >> arm & 1 == 1 { self.index[arm] } else { INDEX_MASKED }
                },
            );
        usize::from(lowest(&index).arm())
    }

    /// The live arms with the lowest cached indices, best first, at most `count` of them.
    ///
    /// Several may be evaluated; the first acts, and it alone is credited (D-5).
    #[doc(alias = "k_small")]
    pub fn shortlist(&self, count: usize) -> impl Iterator<Item = usize> {
        let mut ranks: [Rank; ARMS_MAX] = std::array::from_fn(|arm| Rank::new(self.index[arm], arm));
        ranks.sort_unstable();
        let live = self.live.count_ones() as usize;
        ranks.into_iter().take(count.min(live)).map(|rank| usize::from(rank.arm()))
    }

    /// The arms for groups of lanes that choose at the same time and will each take `visits` choices with it.
    ///
    /// Choices in flight count as visits at the arm's present mean, so that many lanes explore as a sequence of
    /// single choices would and do not all try one uncertain arm. Cost: sixteen indices and one per group.
    #[doc(alias = "virtual visits")]
    pub fn share_groups<const GROUPS: usize>(&self, parameters: &Parameters, visits: u32) -> [u8; GROUPS] {
        if self.live.is_power_of_two() {
            return [self.best; GROUPS];
        }
        // The same time for all: when every lane has chosen.
        let ln_total = ln_q32(1 + self.selections_total + GROUPS as u64 * u64::from(visits));
        let imagined_index = |arm: usize, more: u32| {
            let imagined = with_visits(self.statistics(arm), more);
            let index = index_of(parameters, &ucb_v::estimate(&imagined, ln_total), imagined.prior);
            if self.live >> arm & 1 == 1 { index } else { INDEX_MASKED }
        };
        let mut index = std::array::from_fn(|arm| imagined_index(arm, 0));
        let mut taken = [0u32; ARMS_MAX];
        std::array::from_fn(|_| {
            let best = lowest(&index).arm();
            let arm = usize::from(best);
            taken[arm] += visits;
            index[arm] = imagined_index(arm, taken[arm]);
            best
        })
    }
}

/// The statistics after `more` visits that all show the present mean and mean square.
fn with_visits(arm: ArmStatistics, more: u32) -> ArmStatistics {
    if more == 0 {
        return arm;
    }
    let visits = arm.visits + more;
    let scaled = |sum: u64| (u128::from(sum) * u128::from(visits) / u128::from(arm.visits)) as u64;
    ArmStatistics { visits, loss_sum: scaled(arm.loss_sum), loss_sq_sum: scaled(arm.loss_sq_sum), ..arm }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Batch;
    use crate::loss::Loss;
    use bem_base::prng::Prng;

    const PLAIN: Parameters = Parameters { change: None, ..Parameters::DEFAULT };

    #[test]
    fn the_shortlist_is_in_order_of_index_and_leaves_masked_arms_out() {
        let mut bucket = Bucket::new(&PLAIN, 0b1101);
        for (arm, lost) in [(0, true), (2, false), (3, true)] {
            (0..400).for_each(|visit| {
                bucket.update(&PLAIN, arm, Loss::from_bit(lost && (arm == 0 || visit % 2 == 0)));
            });
        }
        bucket.refresh(&PLAIN);
        assert_eq!(bucket.shortlist(16).collect::<Vec<_>>(), [2, 3, 0]);
        assert_eq!(bucket.shortlist(1).next(), Some(bucket.choose()));
        assert_eq!(bucket.choose_among(u16::MAX), 2);
        assert_eq!(bucket.choose_among(0b1001), 3);
        // Arm 1 is masked, so nothing that was asked for lives.
        assert_eq!(bucket.choose_among(0b0010), 2);
    }

    #[test]
    fn the_first_group_takes_the_best_arm_and_fresh_arms_share_evenly() {
        let bucket = Bucket::new(&PLAIN, 0b1111);
        assert_eq!(bucket.share_groups(&PLAIN, 1), [bucket.choose() as u8]);
        assert_eq!(bucket.share_groups(&PLAIN, 64), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(Bucket::new(&PLAIN, 0b0100).share_groups(&PLAIN, 64), [2; 4]);
    }

    /// Choices of worse arms in blocks of 256 lanes, sixteen arms, gap 0.3.
    fn worse_choices(shared: bool) -> u32 {
        let mut prng = Prng::stream(5, "lanes");
        let mut bucket = Bucket::new(&PLAIN, u16::MAX);
        let mut worse = 0;
        for _ in 0..1_000 {
            let groups = if shared { bucket.share_groups(&PLAIN, 64) } else { [bucket.choose() as u8; 4] };
            let mut shares = [0; ARMS_MAX];
            groups.iter().for_each(|arm| shares[usize::from(*arm)] += 64);
            let mut batch = Batch::default();
            for (arm, lanes) in shares.into_iter().enumerate() {
                let percent = if arm == 6 { 40 } else { 70 };
                let lost = (0..lanes).filter(|_| prng.below(100) < percent).count();
                batch.record_bits(arm, lanes, lost as u32);
                worse += if arm == 6 { 0 } else { lanes };
            }
            bucket.apply(&PLAIN, &batch);
        }
        worse
    }

    #[test]
    fn imagined_visits_save_most_of_the_cost_of_choosing_in_blocks() {
        let (alone, shared) = (worse_choices(false), worse_choices(true));
        // Without them every worse arm gets a whole block at least once.
        assert!(15 * 256 <= alone, "{alone}");
        assert!(2 * shared < alone, "{shared} {alone}");
    }
}
