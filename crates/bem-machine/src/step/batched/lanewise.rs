//! Lane by lane: for rules that draw and for the Hamming router, where every lane asks on its own.
//!
//! Lanes ask in rising order, so the register gives each the same draw as in the reference. What they won is booked
//! at the end of the block step, bucket by bucket. Must not know worlds. Clauses: VM-7, VM-8, VM-9, VM-10.

use super::decision::Decision;
use crate::family::{ALL_ARMS, Family, Pick};
use crate::route::Candidates;
use bem_base::environment::{Bits, Outcome};
use bem_base::lanes::{LaneMask, LaneOutcome, LaneWord};
use bem_base::limits::{ARMS_MAX, LANES};
use bem_base::prng::Prng;
use bem_learn::bucket::Batch;

/// The picks of one block step, and what waits to be booked within it.
#[derive(Clone, Debug)]
pub(super) struct Lanewise {
    picks: Box<[(u16, Pick); LANES]>,
    /// One batch per bucket; empty between steps.
    batches: Vec<Batch>,
    /// The most work that one lane's search has taken.
    work_max: u32,
}

impl Lanewise {
    /// Room for a family's buckets; none if the family's choices are plain.
    pub(super) fn new(family: &Family) -> Lanewise {
        let buckets = if family.is_plain() { 0 } else { family.statistics.buckets.len() };
        Lanewise {
            picks: Box::new([(0, Pick::certain(0)); LANES]),
            batches: vec![Batch::default(); buckets],
            work_max: 0,
        }
    }

    /// The most work that one lane's search has taken.
    pub(super) fn work_max(&self) -> u32 {
        self.work_max
    }

    /// Asks for every lane that chooses step by step; the signature and those lanes are in the decision.
    pub(super) fn choose(
        &mut self,
        family: &Family,
        planes: &[LaneWord],
        decision: &mut Decision,
        prng: &mut Prng,
    ) {
        decision.masks = [LaneWord::ZERO; ARMS_MAX];
        for lane in decision.stepwise.lanes() {
            let signature = column(&decision.signature, lane).0[0];
            let bucket = family.directory.bucket(signature);
            let candidates = match &family.search {
                None => ALL_ARMS,
                Some(search) => {
                    let mut found = Candidates::EMPTY;
                    let seen = column(&planes[family.layout().observation()], lane);
                    search.nearest(&search.fold(&seen), &mut found);
                    self.work_max = self.work_max.max(found.work);
                    found.arms()
                }
            };
            let pick = family.choose(bucket, candidates, prng);
            self.picks[lane] = (bucket, pick);
            decision.masks[usize::from(pick.arm)].set(lane, true);
        }
        decision.number();
    }

    /// Books what these lanes won or lost.
    pub(super) fn book(&mut self, family: &mut Family, stepwise: LaneMask, outcome: &LaneOutcome) {
        for lane in stepwise.lanes() {
            let (bucket, pick) = self.picks[lane];
            let (bucket, arm) = (usize::from(bucket), usize::from(pick.arm));
            let shape = family.shape();
            let reward = if outcome.reward.get(lane) { shape.reward_max } else { shape.reward_min };
            let outcome = Outcome { reward, done: false, bad: outcome.bad.get(lane) };
            let loss = family.statistics.payoff.step_loss(&outcome, family.facts[arm].penalty);
            self.batches[bucket].record(arm, loss);
            family.record_pick(bucket, pick, loss);
        }
        for lane in stepwise.lanes() {
            let bucket = usize::from(self.picks[lane].0);
            // The first lane of a bucket books for all of them.
            if 0 < self.batches[bucket].visits_total() {
                family.credit_batch(bucket, &core::mem::take(&mut self.batches[bucket]));
            }
        }
    }
}

/// One lane of some planes as bits.
fn column(planes: &[LaneWord], lane: usize) -> Bits {
    let mut bits = Bits::ZERO;
    for (bit, plane) in planes.iter().enumerate() {
        bits.set(bit, plane.get(lane));
    }
    bits
}
