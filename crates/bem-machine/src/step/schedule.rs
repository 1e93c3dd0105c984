//! When lanes share statistics: which arm each group of lanes plays, what is counted meanwhile, when it is booked.
//!
//! Choices are read from a plan with one arm per bucket and word of 64 lanes. Outcomes are counted where the choice
//! was read, and a bucket's counts are booked once they reach a thirty-second of its visits. The next plan imagines
//! the visits that will come before the next booking, word by word, at each arm's mean (virtual visits), so that 256
//! lanes do not all try the same arm. Counts are whole numbers, so their order never matters. Must not know planes.
//! Clauses: VM-8, VM-14.

use crate::family::{Family, Pick};
use crate::route::directory::Subcube;
use bem_base::environment::Outcome;
use bem_base::lanes::LANE_WORDS;
use bem_base::limits::BUCKETS_MAX;
use bem_learn::bucket::{Batch, Bucket};
use bem_learn::index::Parameters;

/// Rows there can be: a bucket each while lanes are grouped, a signature each above.
pub const ROWS_MAX: usize = BUCKETS_MAX;
/// Places of the plan: row by row, one for each word of lanes.
pub const PLACES: usize = ROWS_MAX * LANE_WORDS;
/// Counters: for every place, choices that won and choices that lost.
pub const COUNTERS: usize = 2 * PLACES;
/// Up to here lanes are grouped by bucket; above, every lane looks its bucket up.
pub const GROUPS_MAX: usize = 16;
/// Counters of one row.
const ROW: usize = 2 * LANE_WORDS;
/// A row is looked at again after this many block steps.
const CHECK_PERIOD: usize = 64;
/// How many rows are looked at per block step at least, if there are so many.
const LOOKS_MIN: usize = 4;
/// Bookings wait for the visits to grow by this share.
const PENDING_SHARE: u64 = 32;
/// The largest number of counted outcomes that may wait; with what comes before the next look it fits 16 bits.
const PENDING_MAX: u64 = 1 << 15;
/// From this many visits between bookings on, they are imagined in advance.
const VIRTUAL_MIN: u64 = 64;

const _: () = assert!(PENDING_MAX + (CHECK_PERIOD as u64 + 1) * 256 < 1 << 16);

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

    /// How many there are.
    fn count(self) -> usize {
        1 << self.free.count_ones()
    }
}

/// The plan and the counts of one family's lanes.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// For every row and word of lanes, the arm to play.
    plan: Box<[u8; PLACES]>,
    /// For every place of the plan, outcomes won and lost; the upper half takes those of lanes that are not booked
    /// here.
    counts: Box<[u16; 2 * COUNTERS]>,
    /// The same for BAD steps only, which are counted in both.
    bad_counts: Box<[u16; COUNTERS]>,
    buckets: Vec<(RowSet, u16)>,
    rows_total: usize,
    /// The bucket to be looked at next, and how many rows may be looked at by now.
    cursor: usize,
    looks_owed: usize,
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

/// The arms for the next `due` visits, word by word.
fn plan_bucket(parameters: &Parameters, bucket: &Bucket, due: u64) -> [u8; LANE_WORDS] {
    if due < VIRTUAL_MIN {
        return [bucket.choose() as u8; LANE_WORDS];
    }
    bucket.share_groups(parameters, (due / LANE_WORDS as u64) as u32)
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
            rows_total: 0,
            cursor: 0,
            looks_owed: 0,
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
        (self.cursor, self.looks_owed) = (0, 0);
        self.buckets.clear();
        let low = directory.entries().len() - 1;
        for bucket in 0..directory.bucket_count() as u16 {
            let Subcube { depends_on, pattern } = family.subcubes[usize::from(bucket)];
            let rows = if self.grouped {
                RowSet { first: usize::from(bucket), free: 0 }
            } else {
                RowSet { first: pattern as usize, free: low & !(depends_on as usize) }
            };
            self.buckets.push((rows, 1));
            self.plan_rows(family, usize::from(bucket));
        }
        self.rows_total = self.buckets.iter().map(|(rows, _)| rows.count()).sum();
        self.episode_batch = Batch::default();
        self.plan_episodes(family);
        self.revision = family.revision();
    }

    fn plan_rows(&mut self, family: &Family, bucket: usize) {
        let statistics = &family.statistics.buckets[bucket];
        let due = due_after(statistics);
        let arms = plan_bucket(&family.parameters, statistics, due);
        let (rows, waits) = &mut self.buckets[bucket];
        *waits = due as u16;
        for row in rows.rows() {
            self.plan[row * LANE_WORDS..(row + 1) * LANE_WORDS].copy_from_slice(&arms);
        }
    }

    fn plan_episodes(&mut self, family: &Family) {
        self.episode_due = due_after(&family.statistics.episode);
        self.episode_plan = plan_bucket(&family.parameters, &family.statistics.episode, self.episode_due);
    }

    /// Whether the family has changed under this schedule.
    #[inline]
    pub fn is_stale(&self, family: &Family) -> bool {
        self.revision != family.revision()
    }

    /// Takes over statistics that were reset while the structure stayed.
    ///
    /// What was counted belongs to the plan it was read from and still holds, so the plan stays until the counts are
    /// booked, which is now due everywhere.
    pub fn follow(&mut self, family: &Family) {
        self.buckets.iter_mut().for_each(|(_, due)| *due = 1);
        self.episode_due = 1;
        self.revision = family.revision();
    }

    /// Whether rows are buckets (few of them) or signatures.
    #[inline]
    pub fn is_grouped(&self) -> bool {
        self.grouped
    }

    /// The plan: the arm of every row, word by word.
    #[inline]
    pub fn plan(&self) -> &[u8; PLACES] {
        &self.plan
    }

    /// The arms of one row, word by word.
    #[inline]
    pub fn row(&self, row: usize) -> [u8; LANE_WORDS] {
        core::array::from_fn(|word| self.plan[row * LANE_WORDS + word])
    }

    /// All counters: that of place `p` with loss `l` is `2 * p + l`, and the upper half is never booked.
    #[inline]
    pub fn counts_mut(&mut self) -> &mut [u16; 2 * COUNTERS] {
        &mut self.counts
    }

    /// The arm to play for a whole episode in this word of lanes.
    #[inline]
    pub fn episode_arm(&self, word: usize) -> u8 {
        self.episode_plan[word]
    }

    /// Counts one outcome of a lane in this row and word.
    pub fn count(&mut self, row: usize, word: usize, lost: bool) {
        let count = &mut self.counts[row * ROW + 2 * word + usize::from(lost)];
        *count = count.wrapping_add(1);
    }

    /// Marks one counted outcome as BAD.
    pub fn count_bad(&mut self, row: usize, word: usize, lost: bool) {
        self.bad_counts[row * ROW + 2 * word + usize::from(lost)] += 1;
        self.any_bad = true;
    }

    /// Counts a finished episode.
    pub fn count_episode(&mut self, family: &mut Family, pick: Pick, payoff_sum: i64) {
        let loss = family.statistics.payoff.episode_loss(payoff_sum);
        family.record_episode(pick, loss);
        self.episode_batch.record(usize::from(pick.arm), loss);
    }

    /// After one step of one block: looks at some rows, and books the buckets that are due.
    ///
    /// As many rows as make a round in [`CHECK_PERIOD`] steps; a bucket of many rows waits until they are owed.
    #[inline]
    pub fn advance(&mut self, family: &mut Family) {
        let fair = self.rows_total.div_ceil(CHECK_PERIOD).max(LOOKS_MIN);
        self.looks_owed += fair.min(self.rows_total);
        loop {
            let (rows, due) = self.buckets[self.cursor];
            let Some(owed) = self.looks_owed.checked_sub(rows.count()) else { break };
            let pending = match rows.free {
                0 => self.pending(rows.first),
                _ => rows.rows().fold(0u16, |sum, row| sum.wrapping_add(self.pending(row))),
            };
            if due <= pending {
                self.book(family, self.cursor);
            }
            self.looks_owed = owed;
            self.cursor = if self.cursor + 1 == self.buckets.len() { 0 } else { self.cursor + 1 };
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
        let (shape, payoff) = (family.shape(), &family.statistics.payoff);
        for row in self.buckets[bucket].0.rows() {
            for place in row * ROW..(row + 1) * ROW {
                let all = core::mem::take(&mut self.counts[place]);
                if all == 0 {
                    continue;
                }
                let (arm, lost) = (usize::from(self.plan[place / 2]), place % 2 == 1);
                let bad = if self.any_bad { core::mem::take(&mut self.bad_counts[place]) } else { 0 };
                let reward = if lost { shape.reward_min } else { shape.reward_max };
                for (is_bad, times) in [(false, all - bad), (true, bad)] {
                    let outcome = Outcome { reward, done: false, bad: is_bad };
                    let loss = payoff.step_loss(&outcome, family.facts[arm].penalty);
                    batch.record_many(arm, u32::from(times), loss);
                }
            }
        }
        family.credit_batch(bucket, &batch);
        self.plan_rows(family, bucket);
    }

    #[cold]
    fn book_episodes(&mut self, family: &mut Family) {
        let batch = core::mem::take(&mut self.episode_batch);
        family.credit_episodes(&batch);
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
