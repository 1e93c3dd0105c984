//! Several choices from one state: the few best arms, and the shares of many lanes that choose at once.
//! Clauses: VM-8, VM-9, D-5.

use super::{Bucket, Rank, lowest};
use crate::index::{ArmStatistics, INDEX_MASKED, Parameters, index_of};
use crate::numeric::ln_q32;
use crate::ucb_v;
use bem_base::limits::ARMS_MAX;

/// Index computations that one assignment of lanes may take.
const ROUNDS_MAX: u32 = 64;

impl Bucket {
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

    /// How many of `lanes` lanes that choose at the same time should take each arm.
    ///
    /// A choice still in flight counts as a visit at the arm's present mean, so that a block of lanes explores as
    /// a sequence of single choices would, and does not put all lanes on one uncertain arm. At most 80 indices are computed.
    pub fn share_lanes(&self, parameters: &Parameters, lanes: u32) -> [u32; ARMS_MAX] {
        // The same time for all: when every lane has chosen.
        let ln_total = ln_q32(1 + self.selections_total + u64::from(lanes));
        let imagined_index = |arm: usize, more: u32| {
            let imagined = with_visits(self.statistics(arm), more);
            let index = index_of(parameters, &ucb_v::estimate(&imagined, ln_total), imagined.prior);
            if self.live >> arm & 1 == 1 { index } else { INDEX_MASKED }
        };
        let mut shares = [0; ARMS_MAX];
        let mut index = std::array::from_fn(|arm| imagined_index(arm, 0));
        let mut left = lanes;
        let grain = lanes.div_ceil(ROUNDS_MAX).max(1);
        while 0 < left {
            let arm = usize::from(lowest(&index).arm());
            let taken = grain.min(left);
            shares[arm] += taken;
            left -= taken;
            index[arm] = imagined_index(arm, shares[arm]);
        }
        shares
    }
}

/// The statistics after `more` visits that all show the present mean and mean square.
fn with_visits(arm: ArmStatistics, more: u32) -> ArmStatistics {
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
    }

    #[test]
    fn one_lane_takes_the_best_arm_and_fresh_arms_share_evenly() {
        let bucket = Bucket::new(&PLAIN, 0b1111);
        assert_eq!(bucket.share_lanes(&PLAIN, 1)[bucket.choose()], 1);
        let shares = bucket.share_lanes(&PLAIN, 256);
        assert_eq!(shares.iter().sum::<u32>(), 256);
        assert!(shares[..4].iter().all(|share| (32..=96).contains(share)), "{shares:?}");
        assert_eq!(shares[4..].iter().sum::<u32>(), 0);
    }

    /// Choices of worse arms in blocks of 256 lanes, sixteen arms, gap 0.3.
    fn worse_choices(shared: bool) -> u32 {
        let mut prng = Prng::stream(5, "lanes");
        let mut bucket = Bucket::new(&PLAIN, u16::MAX);
        let mut worse = 0;
        for _ in 0..1_000 {
            let mut shares = [0; ARMS_MAX];
            shares[bucket.choose()] = 256;
            if shared {
                shares = bucket.share_lanes(&PLAIN, 256);
            }
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
