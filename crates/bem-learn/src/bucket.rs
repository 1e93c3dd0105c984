//! One bucket: up to sixteen arms, their statistics, and the cached index that makes a choice one load.
//!
//! `choose` reads the cached best arm. `update` books a loss, recomputes the index of that arm and of one more
//! in turn, and takes the lowest of sixteen: constant work, whatever has happened before, and no allocation.
//! Must not know what an arm stands for. Clauses: VM-9, VM-11, VM-14, D-3, D-6, D-7.

mod encode;
mod lanes;

pub use encode::BUCKET_WORDS;

use crate::change::{Change, ChangeDetector};
use crate::index::{ArmStatistics, INDEX_MASKED, PRIOR_FRACTION_BITS, Parameters, index_of};
use crate::loss::{Loss, Widening};
use crate::numeric::ln_q32;
use crate::ucb_v;
use bem_base::fixed::Fixed;
use bem_base::limits::{ARMS_MAX, VISITS_HALVE_AT};

/// Choices of one arm that a batch may add before the next refresh.
pub const BATCH_VISITS_MAX: u32 = 1 << 30;

// Between refreshes an arm has fewer than VISITS_HALVE_AT visits plus one batch; a sum of as many losses of
// one, with 32 fractional bits, fits 63 bits, and the product of visits and squares fits 128.
const _: () = assert!(((VISITS_HALVE_AT as u128 + BATCH_VISITS_MAX as u128) << 32) <= 1 << 63);
const _: () = assert!((VISITS_HALVE_AT as u128 - 1) * ((VISITS_HALVE_AT as u128) << 32) < 1 << (128 - 32));
const _: () = assert!(ARMS_MAX == 16 && size_of::<Bucket>() == 512);

/// Statistics and cached indices of the arms of one (family, bucket).
///
/// Invariants: at least one arm is live; for every arm `1 <= visits` and `loss_sq_sum <= loss_sum <= visits`;
/// `best` is the lowest position with the lowest cached index, and a masked arm's index is above all others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
#[doc(alias = "BANDIT")]
pub struct Bucket {
    index: [i32; ARMS_MAX],
    visits: [u32; ARMS_MAX],
    loss_sum: [u64; ARMS_MAX],
    loss_sq_sum: [u64; ARMS_MAX],
    prior: [i32; ARMS_MAX],
    selections_total: u64,
    detector: ChangeDetector,
    live: u16,
    best: u8,
    cursor: u8,
}

impl Bucket {
    /// A bucket whose live arms are the set bits of `live` (at least one), each with one imagined visit.
    pub fn new(parameters: &Parameters, live: u16) -> Bucket {
        assert!(live != 0);
        let reference = parameters.loss_reference.to_raw() as u64;
        let mut bucket = Bucket {
            index: [INDEX_MASKED; ARMS_MAX],
            visits: [1; ARMS_MAX],
            loss_sum: [reference; ARMS_MAX],
            loss_sq_sum: [reference; ARMS_MAX],
            prior: [0; ARMS_MAX],
            selections_total: 0,
            detector: ChangeDetector::default(),
            live,
            best: 0,
            cursor: 0,
        };
        bucket.refresh(parameters);
        bucket
    }

    /// The arm to choose now: one load.
    #[inline]
    #[doc(alias = "BANDIT_CHOOSE")]
    pub fn choose(&self) -> usize {
        usize::from(self.best)
    }

    /// Books the loss of one choice; says if the detector raised the alarm and the statistics were reset.
    ///
    /// Cost: two indices and one minimum of sixteen. Every 2^30 visits, once, sixteen halvings and indices.
    #[inline]
    #[doc(alias = "BANDIT_UPDATE_STEP")]
    pub fn update(&mut self, parameters: &Parameters, arm: usize, loss: Loss) -> Option<Change> {
        self.add(arm, 1, loss.to_raw(), loss.squared_raw());
        if VISITS_HALVE_AT <= self.visits[arm] {
            self.halve();
        }
        if parameters.prior_rate != Fixed::ZERO {
            self.drive_prior(parameters, arm);
        }
        // The lowest of the fourteen indices that stay is found while the other two are computed.
        let turn = usize::from(self.cursor) % ARMS_MAX;
        self.cursor = (turn as u8 + 1) % ARMS_MAX as u8;
        self.index[arm] = INDEX_MASKED;
        self.index[turn] = INDEX_MASKED;
        let staying = lowest(&self.index);
        let ln_total = ln_q32(1 + self.selections_total);
        let mean_q44 = self.recompute(parameters, arm, ln_total);
        self.recompute(parameters, turn, ln_total);
        let renewed = Rank::new(self.index[arm], arm).min(Rank::new(self.index[turn], turn));
        self.best = staying.min(renewed).arm();

        let change = parameters.change.as_ref()?;
        let excess = loss.to_raw() as i64 - (mean_q44 >> 12) as i64;
        let alarm = self.detector.observe(change, excess, 1)?;
        self.reset(parameters);
        Some(alarm)
    }

    /// Books one loss without touching the cached indices; a later [`Bucket::refresh`] makes it count.
    #[inline]
    pub fn record(&mut self, arm: usize, loss: Loss) {
        self.add(arm, 1, loss.to_raw(), loss.squared_raw());
    }

    /// Books many choices of one arm at once, without touching the cached indices.
    ///
    /// Sums have 32 fractional bits. Only additions: any order of batches before a refresh gives the same
    /// bucket.
    #[inline]
    pub fn add_batch(&mut self, arm: usize, visits: u32, loss_sum: u64, loss_sq_sum: u64) {
        assert!(visits <= BATCH_VISITS_MAX);
        assert!(loss_sq_sum <= loss_sum && loss_sum <= u64::from(visits) << 32);
        self.add(arm, visits, loss_sum, loss_sq_sum);
    }

    /// Books a merged batch, looks for a change and refreshes every index.
    pub fn apply(&mut self, parameters: &Parameters, batch: &Batch) -> Option<Change> {
        for arm in 0..ARMS_MAX {
            self.add_batch(arm, batch.visits[arm], batch.loss_sum[arm], batch.loss_sq_sum[arm]);
        }
        for arm in 0..ARMS_MAX {
            if 0 < batch.visits[arm]
                && let Some(change) = self.detect(parameters, arm, batch.visits[arm], batch.loss_sum[arm])
            {
                self.reset(parameters);
                return Some(change);
            }
        }
        self.refresh(parameters);
        None
    }

    /// Halves the counts if one of them is due, recomputes every index and the best arm.
    pub fn refresh(&mut self, parameters: &Parameters) {
        while self.visits.iter().any(|visits| VISITS_HALVE_AT <= *visits) {
            self.halve();
        }
        let ln_total = ln_q32(1 + self.selections_total);
        for arm in 0..ARMS_MAX {
            self.recompute(parameters, arm, ln_total);
        }
        self.best = lowest(&self.index).arm();
    }

    /// Forgets all statistics but keeps priors and live arms: the answer to a change of the world.
    #[doc(alias = "RESET")]
    pub fn reset(&mut self, parameters: &Parameters) {
        *self = Bucket { prior: self.prior, ..Bucket::new(parameters, self.live) };
        self.refresh(parameters);
    }

    /// Losses are measured on a wider range from now on: sums and sums of squares follow, and nothing is forgotten. The imagined
    /// visit moves with the others, because arms that were halved or discounted keep only a part of it. A prior is a log-weight
    /// and no loss: it stays, and weighs the bonus as before.
    pub fn rescale(&mut self, parameters: &Parameters, widening: Widening) {
        for arm in 0..ARMS_MAX {
            let (sum, ones) = (self.loss_sum[arm], u64::from(self.visits[arm]) << 32);
            self.loss_sq_sum[arm] = widening.apply_squares(self.loss_sq_sum[arm], sum, ones);
            self.loss_sum[arm] = widening.apply(sum, ones);
        }
        self.detector = ChangeDetector::default();
        self.refresh(parameters);
    }

    /// Brings an arm to life with neutral statistics, as new: its slot holds another circuit now.
    pub fn admit(&mut self, parameters: &Parameters, arm: usize) {
        let reference = parameters.loss_reference.to_raw() as u64;
        self.selections_total -= u64::from(self.visits[arm] - 1).min(self.selections_total);
        self.visits[arm] = 1;
        self.loss_sum[arm] = reference;
        self.loss_sq_sum[arm] = reference;
        self.prior[arm] = 0;
        self.live |= 1 << arm;
        self.refresh(parameters);
    }

    /// Masks an arm so that it is never chosen; refuses to mask the last live one.
    #[must_use]
    pub fn retire(&mut self, parameters: &Parameters, arm: usize) -> bool {
        let remaining = self.live & !(1 << arm);
        if remaining == 0 {
            return false;
        }
        self.live = remaining;
        self.refresh(parameters);
        true
    }

    /// Moves an arm's prior by `change` and holds it within the parameters' bounds.
    pub fn adjust_prior(&mut self, parameters: &Parameters, arm: usize, change: Fixed) {
        let moved = self.prior(arm).plus_saturating(change).clamp(parameters.prior_min, parameters.prior_max);
        self.prior[arm] = (moved.to_raw() >> (32 - PRIOR_FRACTION_BITS)) as i32;
        self.refresh(parameters);
    }

    /// Caps every arm's visits, means kept: for the children of a split and for moved statistics.
    pub fn discount(&mut self, parameters: &Parameters, visits_max: u32) {
        assert!(0 < visits_max);
        for arm in 0..ARMS_MAX {
            self.scale_to(arm, self.visits[arm].min(visits_max));
        }
        self.selections_total = self.visits.iter().map(|visits| u64::from(visits - 1)).sum();
        self.detector = ChangeDetector::default();
        self.refresh(parameters);
    }

    /// An arm's prior.
    pub fn prior(&self, arm: usize) -> Fixed {
        Fixed::from_raw(i64::from(self.prior[arm]) << (32 - PRIOR_FRACTION_BITS))
    }

    /// What an arm has shown so far.
    pub fn statistics(&self, arm: usize) -> ArmStatistics {
        ArmStatistics {
            visits: self.visits[arm],
            loss_sum: self.loss_sum[arm],
            loss_sq_sum: self.loss_sq_sum[arm],
            prior: self.prior[arm],
        }
    }

    /// An arm's mean loss, rounded down.
    pub fn mean_loss(&self, arm: usize) -> Fixed {
        Fixed::from_raw((self.loss_sum[arm] / u64::from(self.visits[arm])) as i64)
    }

    /// Choices booked since boot, reset or halving.
    #[doc(alias = "N_b")]
    pub fn selections_total(&self) -> u64 {
        self.selections_total
    }

    /// The live arms, one bit each.
    pub fn live(&self) -> u16 {
        self.live
    }

    /// The cached indices; a masked arm has [`INDEX_MASKED`].
    pub fn indices(&self) -> &[i32; ARMS_MAX] {
        &self.index
    }

    #[inline]
    fn add(&mut self, arm: usize, visits: u32, loss_sum: u64, loss_sq_sum: u64) {
        self.visits[arm] += visits;
        self.loss_sum[arm] += loss_sum;
        self.loss_sq_sum[arm] += loss_sq_sum;
        self.selections_total += u64::from(visits);
    }

    fn detect(&mut self, parameters: &Parameters, arm: usize, visits: u32, loss_sum: u64) -> Option<Change> {
        let change = parameters.change.as_ref()?;
        let expected = u128::from(self.loss_sum[arm]) * u128::from(visits) / u128::from(self.visits[arm]);
        let excess = loss_sum as i64 - expected as i64;
        self.detector.observe(change, excess, visits)
    }

    /// Renews the cached index of one arm and returns its mean, with 44 fractional bits.
    #[inline(always)]
    fn recompute(&mut self, parameters: &Parameters, arm: usize, ln_total: u64) -> u64 {
        let statistics = self.statistics(arm);
        let estimate = ucb_v::estimate(&statistics, ln_total);
        let index = index_of(parameters, &estimate, statistics.prior);
        self.index[arm] = if self.live >> arm & 1 == 1 { index } else { INDEX_MASKED };
        estimate.mean_q44
    }

    fn drive_prior(&mut self, parameters: &Parameters, arm: usize) {
        let excess = self.mean_loss(arm).minus(parameters.loss_reference);
        let change = parameters.prior_rate.mul_floor(excess).negated();
        let moved = self.prior(arm).plus(change).clamp(parameters.prior_min, parameters.prior_max);
        self.prior[arm] = (moved.to_raw() >> (32 - PRIOR_FRACTION_BITS)) as i32;
    }

    #[cold]
    fn halve(&mut self) {
        for arm in 0..ARMS_MAX {
            self.scale_to(arm, self.visits[arm].div_ceil(2));
        }
        self.selections_total = self.selections_total.div_ceil(2);
    }

    fn scale_to(&mut self, arm: usize, visits: u32) {
        let scaled = |sum: u64| (u128::from(sum) * u128::from(visits) / u128::from(self.visits[arm])) as u64;
        (self.loss_sum[arm], self.loss_sq_sum[arm]) =
            (scaled(self.loss_sum[arm]), scaled(self.loss_sq_sum[arm]));
        self.visits[arm] = visits;
    }
}

/// Choices and losses gathered outside a bucket, to be booked at once; merging is addition, so order is free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    visits: [u32; ARMS_MAX],
    loss_sum: [u64; ARMS_MAX],
    loss_sq_sum: [u64; ARMS_MAX],
}

impl Batch {
    /// Adds one choice and its loss.
    #[inline]
    pub fn record(&mut self, arm: usize, loss: Loss) {
        self.visits[arm] += 1;
        self.loss_sum[arm] += loss.to_raw();
        self.loss_sq_sum[arm] += loss.squared_raw();
    }

    /// Adds `visits` choices of which `lost` had a loss of one and the others of zero.
    #[inline]
    pub fn record_bits(&mut self, arm: usize, visits: u32, lost: u32) {
        assert!(lost <= visits);
        self.visits[arm] += visits;
        self.loss_sum[arm] += u64::from(lost) << 32;
        self.loss_sq_sum[arm] += u64::from(lost) << 32;
    }

    /// Adds `visits` choices that all had the same loss.
    #[inline]
    pub fn record_many(&mut self, arm: usize, visits: u32, loss: Loss) {
        self.visits[arm] += visits;
        self.loss_sum[arm] += u64::from(visits) * loss.to_raw();
        self.loss_sq_sum[arm] += u64::from(visits) * loss.squared_raw();
    }

    /// Adds another batch to this one.
    pub fn merge(&mut self, other: &Batch) {
        for arm in 0..ARMS_MAX {
            self.visits[arm] += other.visits[arm];
            self.loss_sum[arm] += other.loss_sum[arm];
            self.loss_sq_sum[arm] += other.loss_sq_sum[arm];
        }
    }

    /// Choices gathered, all arms together.
    pub fn visits_total(&self) -> u64 {
        self.visits.iter().map(|visits| u64::from(*visits)).sum()
    }
}

/// An index and its position in one number: the order is by index, ties by position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(i64);

impl Rank {
    #[inline]
    fn new(index: i32, arm: usize) -> Rank {
        Rank(i64::from(index) << 4 | arm as i64)
    }

    #[inline]
    fn arm(self) -> u8 {
        (self.0 & (ARMS_MAX as i64 - 1)) as u8
    }
}

/// The least index, then the least of the positions that have it.
///
/// Written as loops over arrays, and not inlined, because in this shape the compiler uses vector instructions
/// (25 in all) where the obvious iterator chain becomes sixteen dependent comparisons.
#[inline(never)]
fn lowest(index: &[i32; ARMS_MAX]) -> Rank {
    let minimum = least(index);
    let mut positions = [ARMS_MAX as i32; ARMS_MAX];
    for (arm, position) in positions.iter_mut().enumerate() {
        *position = if index[arm] == minimum { arm as i32 } else { ARMS_MAX as i32 };
    }
    Rank::new(minimum, least(&positions) as usize)
}

#[inline(always)]
fn least(values: &[i32; ARMS_MAX]) -> i32 {
    let (low, high) = values.split_at(ARMS_MAX / 2);
    let mut pairs = [0; ARMS_MAX / 2];
    for ((pair, low), high) in pairs.iter_mut().zip(low).zip(high) {
        *pair = *low.min(high);
    }
    pairs.iter().fold(i32::MAX, |least, value| least.min(*value))
}

#[cfg(test)]
mod tests;
