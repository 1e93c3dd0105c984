//! When lanes share statistics: which arm each group of lanes plays, what is counted meanwhile, when it is booked.
//!
//! Choices are read from a plan with one arm per bucket and word of 64 lanes. Outcomes are counted, and a bucket's
//! counts are booked once they reach a thirty-second of its visits. The next plan imagines the visits that will come
//! before the next booking, word by word, at each arm's mean (virtual visits), so that 256 lanes do not all try the
//! same arm. Counts are whole numbers, so their order never matters. Must not know planes. Clauses: VM-8, VM-14.

use crate::family::Family;
use bem_base::environment::Outcome;
use bem_base::lanes::LANE_WORDS;
use bem_base::limits::{ARMS_MAX, BUCKETS_MAX};
use bem_learn::bucket::{Batch, Bucket};
use bem_learn::index::Parameters;

/// Counters of one row: arms without loss, then arms with loss.
pub const ROW: usize = 2 * ARMS_MAX;
/// Rows there can be; as many again take what must not be booked.
pub const ROWS_MAX: usize = BUCKETS_MAX;
/// Up to here lanes are grouped by bucket; above, every lane looks its bucket up.
pub const GROUPS_MAX: usize = 16;
/// A bucket is looked at again after at most this many block steps.
const CHECK_PERIOD: usize = 16;
/// How many buckets are looked at per block step at least, if there are so many.
const LOOKS_MIN: usize = 4;
/// Bookings wait for the visits to grow by this share.
const PENDING_SHARE: u64 = 32;
/// The largest number of counted outcomes that may wait; with what comes before the next look it fits 16 bits.
const PENDING_MAX: u64 = 1 << 15;
/// From this many visits between bookings on, they are imagined in advance.
const VIRTUAL_MIN: u64 = 64;

const _: () = assert!(PENDING_MAX + (CHECK_PERIOD as u64) * 256 < 1 << 16);

/// Where one bucket's rows are: a subcube of signatures, or one row of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowSet {
    first: usize,
    /// Signature bits that are free within the bucket.
    free: usize,
}

impl RowSet {
    /// All rows of the bucket: `first` with every subset of the free bits.
    fn rows(self) -> impl Iterator<Item = usize> {
        let mut subset = Some(0usize);
        core::iter::from_fn(move || {
            let now = subset?;
            let next = now.wrapping_sub(self.free) & self.free;
            subset = (next != 0).then_some(next);
            Some(self.first | now)
        })
    }
}

/// The plan and the counts of one family's lanes.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// For every row and word of lanes, the arm to play.
    plan: Box<[[u8; LANE_WORDS]; ROWS_MAX]>,
    /// For every row, arm and loss, how often; the upper half takes outcomes of lanes that are not booked here.
    counts: Box<[u16; 2 * ROWS_MAX * ROW]>,
    /// The same for BAD steps only, which are counted in both.
    bad_counts: Box<[u16; ROWS_MAX * ROW]>,
    buckets: Vec<(RowSet, u16)>,
    cursor: usize,
    grouped: bool,
    any_bad: bool,
    /// The arm to play for whole episodes, by word of lanes, and what is not booked yet.
    episode_plan: [u8; LANE_WORDS],
    episode_batch: Batch,
    episode_due: u64,
    revision: u64,
}

/// An array too large for the stack, on the heap.
fn boxed<T: Clone + Default, const N: usize>() -> Box<[T; N]> {
    vec![T::default(); N].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("the length is N"))
}

/// The arms for the next `due` visits: the best, and after imagined visits at its mean the next best, word by word.
fn plan_bucket(parameters: &Parameters, bucket: &Bucket, due: u64) -> [u8; LANE_WORDS] {
    if due < VIRTUAL_MIN || bucket.live().is_power_of_two() {
        return [bucket.choose() as u8; LANE_WORDS];
    }
    let mut imagined = bucket.clone();
    let visits = (due / LANE_WORDS as u64) as u32;
    core::array::from_fn(|_| {
        let arm = imagined.choose();
        let statistics = imagined.statistics(arm);
        let share = |sum: u64| (u128::from(sum) * u128::from(visits) / u128::from(statistics.visits)) as u64;
        let (loss_sum, loss_sq_sum) = (share(statistics.loss_sum), share(statistics.loss_sq_sum));
        imagined.add_batch(arm, visits, loss_sum, loss_sq_sum);
        imagined.refresh(parameters);
        arm as u8
    })
}

/// How many outcomes of a bucket may wait before they are booked.
fn due_after(bucket: &Bucket) -> u64 {
    (bucket.selections_total() / PENDING_SHARE).clamp(1, PENDING_MAX)
}

impl Schedule {
    /// A schedule for the family as it is now.
    pub fn new(family: &Family) -> Schedule {
        let mut schedule = Schedule {
            plan: boxed(),
            counts: boxed(),
            bad_counts: boxed(),
            buckets: Vec::new(),
            cursor: 0,
            grouped: true,
            any_bad: false,
            episode_plan: [0; LANE_WORDS],
            episode_batch: Batch::default(),
            episode_due: 1,
            revision: 0,
        };
        schedule.rebuild(family);
        schedule
    }

    /// Derives everything from the family again; what was counted and not booked is dropped.
    pub fn rebuild(&mut self, family: &Family) {
        self.counts.fill(0);
        self.bad_counts.fill(0);
        self.any_bad = false;
        let directory = family.directory();
        self.grouped = directory.bucket_count() <= GROUPS_MAX;
        self.cursor = 0;
        self.buckets.clear();
        let low = directory.entries().len() - 1;
        for bucket in 0..directory.bucket_count() as u16 {
            let (depends_on, pattern) = family.subcubes[usize::from(bucket)];
            let rows = if self.grouped {
                RowSet { first: usize::from(bucket), free: 0 }
            } else {
                RowSet { first: pattern as usize, free: low & !(depends_on as usize) }
            };
            self.buckets.push((rows, 1));
            self.plan_rows(family, usize::from(bucket));
        }
        self.episode_batch = Batch::default();
        self.plan_episodes(family);
        self.revision = family.revision();
    }

    fn plan_rows(&mut self, family: &Family, bucket: usize) {
        let statistics = &family.buckets[bucket];
        let due = due_after(statistics);
        let arms = plan_bucket(&family.parameters, statistics, due);
        let (rows, waits) = &mut self.buckets[bucket];
        *waits = due as u16;
        for row in rows.rows() {
            self.plan[row] = arms;
        }
    }

    fn plan_episodes(&mut self, family: &Family) {
        self.episode_due = due_after(&family.episode);
        self.episode_plan = plan_bucket(&family.parameters, &family.episode, self.episode_due);
    }

    /// Whether the family has changed under this schedule.
    #[inline]
    pub fn is_stale(&self, family: &Family) -> bool {
        self.revision != family.revision()
    }

    /// Takes over statistics that were reset while the structure stayed: plans anew and keeps the counts.
    pub fn follow(&mut self, family: &Family) {
        for bucket in 0..self.buckets.len() {
            self.plan_rows(family, bucket);
        }
        self.plan_episodes(family);
        self.revision = family.revision();
    }

    /// Whether rows are buckets (few of them) or signatures.
    #[inline]
    pub fn is_grouped(&self) -> bool {
        self.grouped
    }

    /// The plan, by row and word of lanes.
    #[inline]
    pub fn plan(&self) -> &[[u8; LANE_WORDS]; ROWS_MAX] {
        &self.plan
    }

    /// All counters; see [`Schedule::count`] for their order.
    #[inline]
    pub fn counts_mut(&mut self) -> &mut [u16; 2 * ROWS_MAX * ROW] {
        &mut self.counts
    }

    /// The arm to play for a whole episode in this word of lanes.
    #[inline]
    pub fn episode_arm(&self, word: usize) -> u8 {
        self.episode_plan[word]
    }

    /// Counts outcomes without BAD steps.
    #[inline]
    pub fn count(&mut self, row: usize, arm: usize, lost: bool, times: u16) {
        let place = row * ROW + usize::from(lost) * ARMS_MAX + arm;
        self.counts[place] = self.counts[place].wrapping_add(times);
    }

    /// Marks one counted outcome as BAD.
    pub fn count_bad(&mut self, row: usize, arm: usize, lost: bool) {
        self.bad_counts[row * ROW + usize::from(lost) * ARMS_MAX + arm] += 1;
        self.any_bad = true;
    }

    /// Counts a finished episode.
    pub fn count_episode(&mut self, family: &Family, arm: usize, payoff_sum: i64) {
        self.episode_batch.record(arm, family.payoff.episode_loss(payoff_sum));
    }

    /// After one step of one block: looks at some buckets, and books those that are due.
    #[inline]
    pub fn advance(&mut self, family: &mut Family) {
        let count = self.buckets.len();
        let looks = count.div_ceil(CHECK_PERIOD).max(LOOKS_MIN).min(count);
        for _ in 0..looks {
            let bucket = self.cursor;
            self.cursor = if bucket + 1 == count { 0 } else { bucket + 1 };
            let (rows, due) = self.buckets[bucket];
            let pending = match rows.free {
                0 => self.pending(rows.first),
                _ => rows.rows().fold(0u16, |sum, row| sum.wrapping_add(self.pending(row))),
            };
            if due <= pending {
                self.book(family, bucket);
            }
        }
        if self.episode_due <= self.episode_batch.visits_total() {
            self.book_episodes(family);
        }
    }

    /// Books everything that waits: before structure changes, and at the end.
    pub fn flush(&mut self, family: &mut Family) {
        for bucket in 0..self.buckets.len() {
            let (rows, _) = self.buckets[bucket];
            if rows.rows().any(|row| 0 < self.pending(row)) {
                self.book(family, bucket);
            }
        }
        if 0 < self.episode_batch.visits_total() {
            self.book_episodes(family);
        }
    }

    #[inline]
    fn pending(&self, row: usize) -> u16 {
        let counts: &[u16; ROW] =
            self.counts[row * ROW..(row + 1) * ROW].try_into().expect("a row has ROW counters");
        counts.iter().fold(0u16, |sum, count| sum.wrapping_add(*count))
    }

    #[cold]
    fn book(&mut self, family: &mut Family, bucket: usize) {
        let mut batch = Batch::default();
        let (shape, payoff) = (family.shape(), &family.payoff);
        for row in self.buckets[bucket].0.rows() {
            for place in 0..ROW {
                let (arm, lost) = (place % ARMS_MAX, ARMS_MAX <= place);
                let all = core::mem::take(&mut self.counts[row * ROW + place]);
                if all == 0 {
                    continue;
                }
                let bad =
                    if self.any_bad { core::mem::take(&mut self.bad_counts[row * ROW + place]) } else { 0 };
                let reward = if lost { shape.reward_min } else { shape.reward_max };
                for (is_bad, times) in [(false, all - bad), (true, bad)] {
                    let outcome = Outcome { reward, done: false, bad: is_bad };
                    let loss = payoff.step_loss(&outcome, family.facts[arm].penalty);
                    batch.record_many(arm, u32::from(times), loss);
                }
            }
        }
        family.buckets[bucket].apply(&family.parameters, &batch);
        self.plan_rows(family, bucket);
    }

    #[cold]
    fn book_episodes(&mut self, family: &mut Family) {
        let batch = core::mem::take(&mut self.episode_batch);
        family.episode.apply(&family.parameters, &batch);
        self.plan_episodes(family);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_set_names_every_signature_of_its_subcube_once() {
        let rows: Vec<usize> = RowSet { first: 0b0100, free: 0b1011 }.rows().collect();
        let mut want: Vec<usize> = (0..16).filter(|row| row & 0b0100 != 0).collect();
        want.sort_unstable();
        assert_eq!(rows, want);
        assert_eq!(RowSet { first: 7, free: 0 }.rows().collect::<Vec<_>>(), [7]);
    }
}
