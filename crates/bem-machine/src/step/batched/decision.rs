//! Which lane plays which arm in one step of a block, and where its outcome is counted.
//!
//! With few buckets the masks come from logic on signature planes; with many, signatures are transposed into one
//! place of the plan per lane, looked up, and transposed back. Must not know worlds. Clauses: VM-8, VM-14.

use super::planes::{bytes_of, lanes_of, split_lanes, spread, transpose};
use crate::family::{Family, STEP_BY_STEP};
use crate::route::directory::TABLE_DEPTH_MAX;
use crate::step::schedule::{COUNTERS, GROUPS_MAX, PLACES, Schedule};
use bem_base::lanes::{LANE_WORDS, LaneMask, LaneWord};
use bem_base::limits::{ARMS_MAX, LANES};

/// Planes of an arm's number.
pub(super) const ARM_PLANES: usize = ARMS_MAX.ilog2() as usize;
/// The number of each lane's word, as planes: the low bits of its place in the plan.
const WORD_PLANES: [LaneWord; 2] =
    [LaneWord([0, u64::MAX, 0, u64::MAX]), LaneWord([0, 0, u64::MAX, u64::MAX])];

const _: () = assert!(ARMS_MAX == 16 && GROUPS_MAX == 16 && LANE_WORDS == 1 << WORD_PLANES.len());
const _: () = assert!(PLACES == 1 << (TABLE_DEPTH_MAX + WORD_PLANES.len()));
const _: () = assert!(2 * COUNTERS == 1 << 14, "the fourteenth bit of a counter's place says: not booked");

/// The choices of one step of 256 lanes.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    /// The lanes of every arm, and the arm's number as planes.
    pub(super) masks: [LaneMask; ARMS_MAX],
    pub(super) planes: [LaneWord; ARM_PLANES],
    /// The lanes that chose step by step, whose outcomes are counted in the schedule.
    pub(super) stepwise: LaneMask,
    pub(super) signature: [LaneWord; TABLE_DEPTH_MAX],
    groups: [LaneMask; GROUPS_MAX],
    /// The place of every lane in the plan, in the order of transposed planes.
    places: [u16; LANES],
}

impl Decision {
    /// Nothing decided yet.
    pub(super) const NONE: Decision = Decision {
        masks: [LaneWord::ZERO; ARMS_MAX],
        planes: [LaneWord::ZERO; ARM_PLANES],
        stepwise: LaneWord::ZERO,
        signature: [LaneWord::ZERO; TABLE_DEPTH_MAX],
        groups: [LaneWord::ZERO; GROUPS_MAX],
        places: [0; LANES],
    };

    /// Reads the plan for every lane; the signature and the lanes that choose step by step are in place.
    pub(super) fn choose(&mut self, family: &Family, schedule: &Schedule) {
        if schedule.is_grouped() {
            self.group_lanes(family);
            self.take_groups(schedule, family.statistics.buckets.len());
        } else {
            self.find_places();
            self.take_places(schedule);
        }
    }

    /// The lanes of each bucket: the conjunction of the signature bits it depends on.
    fn group_lanes(&mut self, family: &Family) {
        let (entries, depth) = (family.directory.entries(), family.directory.depth());
        if entries.len() == family.statistics.buckets.len() && entries.len() <= GROUPS_MAX {
            let mut lanes = [LaneWord::ZERO; GROUPS_MAX];
            split_lanes(&self.signature[..depth], &mut lanes);
            for (entry, lanes) in entries.iter().zip(&lanes) {
                self.groups[usize::from(*entry) % GROUPS_MAX] = *lanes;
            }
            return;
        }
        for (group, subcube) in self.groups.iter_mut().zip(&family.subcubes) {
            let mut rest = subcube.depends_on;
            *group = LaneWord::ONES;
            while rest != 0 {
                let bit = rest.trailing_zeros() as usize;
                let plane = self.signature[bit];
                *group &= if subcube.pattern >> bit & 1 == 1 { plane } else { !plane };
                rest &= rest - 1;
            }
        }
    }

    /// From the lanes of each bucket to the lanes of each arm.
    fn take_groups(&mut self, schedule: &Schedule, buckets: usize) {
        self.masks = [LaneWord::ZERO; ARMS_MAX];
        for (bucket, group) in self.groups.iter().enumerate().take(buckets) {
            let group = *group & self.stepwise;
            let arms = schedule.row(bucket);
            if arms == [arms[0]; LANE_WORDS] {
                self.masks[usize::from(arms[0]) % ARMS_MAX] |= group;
            } else {
                for (word, arm) in arms.into_iter().enumerate() {
                    self.masks[usize::from(arm) % ARMS_MAX].0[word] |= group.0[word];
                }
            }
        }
        self.number();
    }

    /// From signature planes to one place per lane.
    fn find_places(&mut self) {
        let [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9] = self.signature;
        let mut low = [WORD_PLANES[0], WORD_PLANES[1], s0, s1, s2, s3, s4, s5];
        let mut high = [s6, s7, s8, s9, LaneWord::ZERO, LaneWord::ZERO, LaneWord::ZERO, LaneWord::ZERO];
        transpose(&mut low);
        transpose(&mut high);
        let (low, high) = (bytes_of(&low), bytes_of(&high));
        for ((place, low), high) in self.places.iter_mut().zip(low).zip(high) {
            *place = u16::from(low) | u16::from(high) << 8;
        }
    }

    /// From the places of lanes to the lanes of each arm.
    fn take_places(&mut self, schedule: &Schedule) {
        let plan = schedule.plan();
        let mut arms = [0u8; LANES];
        for (arm, place) in arms.iter_mut().zip(&self.places) {
            *arm = plan[usize::from(*place) % PLACES];
        }
        let mut planes = lanes_of(&arms);
        transpose(&mut planes);
        self.planes.copy_from_slice(&planes[..ARM_PLANES]);
        split_lanes(&self.planes, &mut self.masks);
    }

    /// Lanes that an arm holds for their whole episode play it; the others play what was chosen step by step.
    pub(super) fn hold(&mut self, held: &[LaneMask; ARMS_MAX]) {
        for (arm, (mask, held)) in self.masks.iter_mut().zip(held).enumerate() {
            *mask &= self.stepwise;
            if arm != STEP_BY_STEP {
                *mask |= *held;
            }
        }
        self.number();
    }

    /// Planes of the numbers from the masks.
    pub(super) fn number(&mut self) {
        for (bit, plane) in self.planes.iter_mut().enumerate() {
            *plane = LaneWord::ZERO;
            for arm in 0..ARMS_MAX {
                if arm >> bit & 1 == 1 {
                    *plane |= self.masks[arm];
                }
            }
        }
    }

    /// Counts what every lane won or lost, where it read its choice.
    pub(super) fn count(&self, schedule: &mut Schedule, lost: LaneWord, buckets: usize) {
        if schedule.is_grouped() {
            self.count_groups(schedule, lost, buckets);
        } else {
            self.count_places(schedule, lost);
        }
    }

    /// Bucket by bucket: two population counts per word of lanes.
    fn count_groups(&self, schedule: &mut Schedule, lost: LaneWord, buckets: usize) {
        let counts = schedule.counts_mut().chunks_exact_mut(2 * LANE_WORDS);
        for (group, counts) in self.groups.iter().zip(counts).take(buckets) {
            let won = (*group & self.stepwise).and_not(lost);
            let lost = *group & self.stepwise & lost;
            for word in 0..LANE_WORDS {
                counts[2 * word] = counts[2 * word].wrapping_add(won.0[word].count_ones() as u16);
                counts[2 * word + 1] = counts[2 * word + 1].wrapping_add(lost.0[word].count_ones() as u16);
            }
        }
    }

    /// Lane by lane: place and loss together name the counter.
    fn count_places(&self, schedule: &mut Schedule, lost: LaneWord) {
        let outcomes = bytes_of(&spread(lost, !self.stepwise));
        let mut counters = [0u16; LANES];
        for ((counter, place), outcome) in counters.iter_mut().zip(&self.places).zip(outcomes) {
            let outcome = u16::from(outcome);
            // The second bit sends lanes that are credited by the episode to counters that nobody books.
            *counter = place << 1 | outcome & 1 | (outcome & 2) << 12;
        }
        let counts = schedule.counts_mut();
        for counter in counters {
            let count = &mut counts[usize::from(counter) % (2 * COUNTERS)];
            *count = count.wrapping_add(1);
        }
    }

    /// Marks the BAD lanes among the counted outcomes, one by one: they are rare.
    #[cold]
    pub(super) fn count_bads(&self, schedule: &mut Schedule, lost: LaneWord, bad: LaneWord) {
        for lane in (bad & self.stepwise).lanes() {
            let row = if schedule.is_grouped() {
                self.groups.iter().position(|group| group.get(lane)).expect("every lane has a bucket")
            } else {
                let bits = self.signature.iter().enumerate();
                bits.fold(0, |row, (bit, plane)| row | usize::from(plane.get(lane)) << bit)
            };
            schedule.count_bad(row, lane / 64, lost.get(lane));
        }
    }
}
