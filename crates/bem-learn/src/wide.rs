//! A bucket with any number of arms: the same index as a [`crate::bucket::Bucket`], cached, with a tournament over it.
//!
//! `choose` reads the winner. `update` books a loss and renews the indices of a few arms; of many, that of the arm and of one
//! more in turn, and replays their matches: the logarithm of the number of arms, whatever has happened before, and no
//! allocation.
//! Must not know what an arm stands for. Clauses: VM-9, VM-11, VM-14, D-3, D-6, D-7, D-41.

use crate::index::{
    ArmStatistics, INDEX_FRACTION_BITS, PRIOR_FRACTION_BITS, PRIOR_LIMIT, Parameters, index_of,
};
use crate::loss::{Loss, Widening};
use crate::numeric::ln_q32;
use crate::ucb_v::{Estimate, estimate_within};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_base::limits::VISITS_HALVE_AT;

/// Up to this many arms every index is renewed with every choice, so that none is ever stale.
pub const RENEWED_MAX: usize = 16;

/// The part of the range, and of the standard deviation, that an arm must promise to be clearly better than one that stands.
const TRY_MIN: Fixed = Fixed::from_ratio(1, 32);
const TRY_DEVIATION: i128 = 4;
/// The standard errors by which an arm is ahead of one that stands.
const AHEAD_ERRORS: i128 = 2;
/// Choices of an arm before which it is always tried, and before which one that promises little is still tried often.
const TRIES_FEW: u32 = 16;
const TRIES_MANY: u32 = 4_096;
/// Where the index promises hardly more than what stands has brought, it is followed in one of so many choices; late is when
/// what it promises was tried often.
const SMALL_HOPE_ONE_IN: u64 = 4;
const SMALL_HOPE_ONE_IN_LATE: u64 = 64;

/// What people said of one arm, beside what was observed: a share of visits with their losses, and a prior.
///
/// Invariant: `loss_sq_sum <= loss_sum <= visits`. All counts have 32 fractional bits, so that one word of a person may count
/// for less than one visit and can be taken back exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// Visits.
    pub visits: u64,
    /// The sum of their losses.
    pub loss_sum: u64,
    /// The sum of their squares.
    pub loss_sq_sum: u64,
    /// Moves the arm's prior; with [`crate::index::PRIOR_FRACTION_BITS`] fractional bits.
    pub prior: i32,
}

impl Advice {
    /// A loss that counts for so many visits.
    pub fn of(weight: u64, loss: Loss) -> Advice {
        let part = |value: u64| ((u128::from(weight) * u128::from(value)) >> FRACTION_BITS) as u64;
        Advice {
            visits: weight,
            loss_sum: part(loss.to_raw()),
            loss_sq_sum: part(loss.squared_raw()),
            prior: 0,
        }
    }

    fn is_possible(&self) -> bool {
        self.visits < ADVICE_MAX && self.loss_sum <= self.visits && self.loss_sq_sum <= self.loss_sum
    }
}

/// Visits of advice that an arm may have, with 32 fractional bits.
pub const ADVICE_MAX: u64 = 1 << 52;
/// The mark in the encoded cursor that advice follows.
const HAS_ADVICE: u16 = 1 << 15;
/// The mark in the encoded cursor that the losses seen follow, which span less than half of what they may.
const HAS_SEEN: u16 = 1 << 14;
/// A loss of one, with 32 fractional bits.
const WHOLE: u64 = 1 << FRACTION_BITS;

/// The lowest and the highest loss of a bucket, with 32 fractional bits.
///
/// Whoever declares rewards declares what is possible, often far more than ever happens; the index hopes for twice the span that
/// was seen, and for everything while nothing differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    low: u64,
    high: u64,
}

impl Seen {
    /// Nothing was seen.
    const NOTHING: Seen = Seen { low: WHOLE, high: 0 };
    /// Everything that is possible counts.
    const EVERYTHING: Seen = Seen { low: 0, high: WHOLE };

    fn book(&mut self, loss: u64) {
        let (low, high) = (self.low.min(loss), self.high.max(loss));
        let is_wide = low < high && WHOLE <= 2 * (high - low);
        *self = if is_wide { Seen::EVERYTHING } else { Seen { low, high } };
    }

    /// The same on a wider range. Where everything counted, all of what was possible then may have been seen.
    fn rescale(self, widening: Widening) -> Seen {
        let mut seen = Seen::NOTHING;
        if self != Seen::NOTHING {
            [self.low, self.high].into_iter().for_each(|loss| seen.book(widening.apply(loss, WHOLE)));
        }
        seen
    }

    /// By how much losses are taken to differ at most.
    fn range(self) -> u64 {
        if self.low < self.high { (2 * (self.high - self.low)).min(WHOLE) } else { WHOLE }
    }

    fn is_possible(self) -> bool {
        self.low <= self.high && self.high <= WHOLE && 2 * (self.high - self.low) < WHOLE
    }
}

/// Statistics and cached indices of the arms of one bucket.
///
/// Invariants: there is at least one arm; for every arm `1 <= visits` and `loss_sq_sum <= loss_sum <= visits`;
/// `winners[0]` is the lowest position with the lowest cached index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WideBucket {
    arms: Vec<ArmStatistics>,
    index: Vec<i32>,
    /// A heap of matches: place i is won by the better of places 2i + 1 and 2i + 2; the arms stand behind all matches.
    winners: Vec<u16>,
    selections_total: u64,
    cursor: u16,
    seen: Seen,
    /// Of every arm; empty where nobody said anything.
    advice: Vec<Advice>,
}

impl WideBucket {
    /// Arms that nothing is known of, each with one imagined visit at the reference loss.
    pub fn new(parameters: &Parameters, arms: usize) -> WideBucket {
        assert!(0 < arms && arms <= usize::from(u16::MAX));
        let reference = parameters.loss_reference.to_raw() as u64;
        // The imagined visit has the mean of the reference and no variance of its own.
        let loss_sq_sum = ((u128::from(reference) * u128::from(reference)) >> FRACTION_BITS) as u64;
        let arm = ArmStatistics { visits: 1, loss_sum: reference, loss_sq_sum, prior: 0 };
        let mut bucket = WideBucket {
            arms: vec![arm; arms],
            index: vec![0; arms],
            winners: vec![0; arms - 1],
            selections_total: 0,
            cursor: 0,
            seen: Seen::NOTHING,
            advice: Vec::new(),
        };
        bucket.refresh(parameters);
        bucket
    }

    /// Arms that are imagined to cost this much: each has one imagined visit at its own loss.
    pub fn imagining(parameters: &Parameters, losses: &[Loss]) -> WideBucket {
        let mut bucket = WideBucket::new(parameters, losses.len());
        for (arm, loss) in bucket.arms.iter_mut().zip(losses) {
            (arm.loss_sum, arm.loss_sq_sum) = (loss.to_raw(), loss.squared_raw());
        }
        bucket.refresh(parameters);
        bucket
    }

    /// The mean loss of every arm over several buckets, imagined visits included.
    pub fn mean_losses(parameters: &Parameters, arms: usize, buckets: &[WideBucket]) -> Vec<Loss> {
        let reference = parameters.loss_reference.to_raw() as u64;
        let mean = |arm: usize| {
            let of_arm = buckets.iter().map(|bucket| &bucket.arms[arm]);
            let (visits, sum) = of_arm.fold((0u128, 0u128), |(visits, sum), arm| {
                (visits + u128::from(arm.visits), sum + u128::from(arm.loss_sum))
            });
            Loss::from_raw(sum.checked_div(visits).map_or(reference, |mean| mean as u64))
        };
        (0..arms).map(mean).collect()
    }

    /// The arm to choose now: one load.
    #[inline]
    #[doc(alias = "BANDIT_CHOOSE")]
    pub fn choose(&self) -> usize {
        usize::from(self.winners.first().copied().unwrap_or(0))
    }

    /// In one of so many choices the index is followed instead of an arm that stands. In all of them, if the arm to choose now
    /// promises by its index clearly less loss than the one that stands has had: by more than a part of the range, as far as it
    /// was seen, or of the standard deviation where that is less. And if it has had less by more than chance: what is small may
    /// be there all the same. Otherwise in fewer, and in few once it was tried often.
    pub fn followed_one_in(&self, held: usize) -> u64 {
        let chosen = self.choose();
        let spread = |arm: usize| {
            let ArmStatistics { visits, loss_sum, loss_sq_sum, .. } = self.arms[arm];
            let of_one = |sum: u64| i128::from(sum / u64::from(visits));
            let (mean, squares) = (of_one(loss_sum), of_one(loss_sq_sum) << FRACTION_BITS);
            (mean, squares - mean * mean, i128::from(visits))
        };
        let ((mean, variance, visits), (chosen_mean, chosen_variance, tries)) =
            (spread(held), spread(chosen));
        let lowest = i128::from(self.index[chosen]) << (FRACTION_BITS - INDEX_FRACTION_BITS);
        let (hoped, lead) = (mean - lowest, mean - chosen_mean);
        // What brings the same every time is known after a few tries.
        let is_clear = 0 < variance && variance < TRY_DEVIATION * TRY_DEVIATION * hoped * hoped;
        let error = variance / visits + chosen_variance / tries;
        let is_ahead = 0 < lead && AHEAD_ERRORS * AHEAD_ERRORS * error < lead * lead;
        let is_promising =
            i128::from(TRY_MIN.mul_floor(self.range()).to_raw()) < hoped || is_clear || is_ahead;
        match self.arms[chosen].visits {
            tries if is_promising || tries < TRIES_FEW => 1,
            tries if tries < TRIES_MANY => SMALL_HOPE_ONE_IN,
            _ => SMALL_HOPE_ONE_IN_LATE,
        }
    }

    /// By how much losses are taken to differ at most: twice the span that was seen, and one while nothing differs.
    pub fn range(&self) -> Fixed {
        Fixed::from_raw(self.seen.range() as i64)
    }

    /// Books the loss of one choice. Cost: up to [`RENEWED_MAX`] arms all indices; beyond, two indices and two paths of the
    /// tournament; every 2^30 visits, once, all arms.
    #[doc(alias = "BANDIT_UPDATE_STEP")]
    pub fn update(&mut self, parameters: &Parameters, arm: usize, loss: Loss) {
        self.record(arm, loss);
        if VISITS_HALVE_AT <= self.arms[arm].visits {
            self.halve();
        }
        if self.arms.len() <= RENEWED_MAX {
            return self.refresh(parameters);
        }
        let turn = usize::from(self.cursor) % self.arms.len();
        self.cursor = ((turn + 1) % self.arms.len()) as u16;
        let ln_total = ln_q32(1 + self.selections_total);
        for arm in [arm, turn] {
            self.index[arm] = self.index_at(parameters, arm, ln_total);
            self.replay(arm);
        }
    }

    /// Books one loss without touching the cached indices; a later [`WideBucket::refresh`] makes it count.
    pub fn record(&mut self, arm: usize, loss: Loss) {
        let statistics = &mut self.arms[arm];
        statistics.visits += 1;
        statistics.loss_sum += loss.to_raw();
        statistics.loss_sq_sum += loss.squared_raw();
        self.selections_total += 1;
        self.seen.book(loss.to_raw());
    }

    /// Renews every index.
    pub fn refresh(&mut self, parameters: &Parameters) {
        let ln_total = ln_q32(1 + self.selections_total);
        for arm in 0..self.arms.len() {
            self.index[arm] = self.index_at(parameters, arm, ln_total);
        }
        for place in (0..self.winners.len()).rev() {
            self.play(place);
        }
    }

    /// Losses are measured on a wider range from now on: sums and sums of squares follow, and nothing is forgotten. The bucket in
    /// which nothing was counted, before and after, has every arm's imagined visit, which is set anew; after a halving, 2^30
    /// choices on, a part of one visit is left of it and hidden by as many others. What people said stays as it was said, so that
    /// it can be taken back: good is the best there is on any range.
    pub fn rescale(
        &mut self,
        parameters: &Parameters,
        widening: Widening,
        (blank, blank_after): (&WideBucket, &WideBucket),
    ) {
        let imagined = blank.arms.iter().zip(&blank_after.arms);
        for (arm, (before, after)) in self.arms.iter_mut().zip(imagined) {
            let ones = u64::from(arm.visits - 1) << FRACTION_BITS;
            let sum = arm.loss_sum.saturating_sub(before.loss_sum).min(ones);
            let squares = arm.loss_sq_sum.saturating_sub(before.loss_sq_sum).min(sum);
            arm.loss_sum = after.loss_sum + widening.apply(sum, ones);
            arm.loss_sq_sum = after.loss_sq_sum + widening.apply_squares(squares, sum, ones);
        }
        self.seen = self.seen.rescale(widening);
        self.refresh(parameters);
    }

    /// Adds what people said of an arm, or takes it back; what was said so far is the sum. The index of this arm alone is
    /// renewed, or restored to `index` if that is given. Nothing happens where the sum would leave its range.
    pub fn advise(
        &mut self,
        parameters: &Parameters,
        arm: usize,
        advice: &Advice,
        adds: bool,
        index: Option<i32>,
    ) -> bool {
        let known = self.advice.get(arm).copied().unwrap_or_default();
        let sum =
            |known: u64, said: u64| if adds { known.checked_add(said) } else { known.checked_sub(said) };
        let prior =
            if adds { known.prior.checked_add(advice.prior) } else { known.prior.checked_sub(advice.prior) };
        let (Some(visits), Some(loss_sum), Some(loss_sq_sum), Some(prior)) = (
            sum(known.visits, advice.visits),
            sum(known.loss_sum, advice.loss_sum),
            sum(known.loss_sq_sum, advice.loss_sq_sum),
            prior,
        ) else {
            return false;
        };
        let total = Advice { visits, loss_sum, loss_sq_sum, prior };
        if self.arms.len() <= arm || !total.is_possible() {
            return false;
        }
        if self.advice.is_empty() {
            self.advice = vec![Advice::default(); self.arms.len()];
        }
        self.advice[arm] = total;
        if self.advice.iter().all(|advice| *advice == Advice::default()) {
            self.advice = Vec::new();
        }
        let ln_total = ln_q32(1 + self.selections_total);
        self.index[arm] = index.unwrap_or_else(|| self.index_at(parameters, arm, ln_total));
        self.replay(arm);
        true
    }

    /// Forgets everything that people said.
    pub fn clear_advice(&mut self, parameters: &Parameters) {
        if !self.advice.is_empty() {
            self.advice = Vec::new();
            self.refresh(parameters);
        }
    }

    /// What people said of each arm; empty where nobody said anything.
    pub fn advice(&self) -> &[Advice] {
        &self.advice
    }

    /// The cached index of an arm, with 28 fractional bits: the lowest is chosen.
    pub fn index(&self, arm: usize) -> i32 {
        self.index[arm]
    }

    /// What each arm has shown.
    pub fn arms(&self) -> &[ArmStatistics] {
        &self.arms
    }

    /// Choices booked, all arms together.
    pub fn selections_total(&self) -> u64 {
        self.selections_total
    }

    fn index_at(&self, parameters: &Parameters, arm: usize, ln_total: u64) -> i32 {
        let (statistics, range) = (&self.arms[arm], self.seen.range());
        match self.advice.get(arm).filter(|advice| **advice != Advice::default()) {
            None => index_of(parameters, &estimate_within(statistics, ln_total, range), statistics.prior),
            Some(advice) => {
                let limit = PRIOR_LIMIT << PRIOR_FRACTION_BITS.min(24);
                let prior = statistics.prior.saturating_add(advice.prior).clamp(-limit, limit);
                index_of(parameters, &estimate_advised(statistics, advice, ln_total, range), prior)
            }
        }
    }

    /// The winner of a place: of its match, or the arm that stands there.
    fn winner(&self, place: usize) -> u16 {
        match place.checked_sub(self.winners.len()) {
            None => self.winners[place],
            Some(arm) => arm as u16,
        }
    }

    fn play(&mut self, place: usize) {
        let rank = |arm: u16| (self.index[usize::from(arm)], arm);
        let (left, right) = (self.winner(2 * place + 1), self.winner(2 * place + 2));
        self.winners[place] = if rank(left) <= rank(right) { left } else { right };
    }

    /// Plays the matches of an arm again, from its first to the last.
    fn replay(&mut self, arm: usize) {
        let mut place = self.winners.len() + arm;
        while 0 < place {
            place = (place - 1) / 2;
            self.play(place);
        }
    }

    #[cold]
    fn halve(&mut self) {
        for arm in &mut self.arms {
            let visits = arm.visits.div_ceil(2);
            let scaled = |sum: u64| (u128::from(sum) * u128::from(visits) / u128::from(arm.visits)) as u64;
            (arm.loss_sum, arm.loss_sq_sum) = (scaled(arm.loss_sum), scaled(arm.loss_sq_sum));
            arm.visits = visits;
        }
        self.selections_total = self.selections_total.div_ceil(2);
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.selections_total);
        let has_seen = 0 < self.selections_total && self.seen != Seen::EVERYTHING;
        let marks = [(!self.advice.is_empty(), HAS_ADVICE), (has_seen, HAS_SEEN)];
        writer
            .u16(marks.iter().filter(|(is_set, _)| *is_set).fold(self.cursor, |word, (_, mark)| word | mark));
        if has_seen {
            writer.u64(self.seen.low);
            writer.u64(self.seen.high);
        }
        for (arm, index) in self.arms.iter().zip(&self.index) {
            writer.u32(arm.visits);
            writer.u64(arm.loss_sum);
            writer.u64(arm.loss_sq_sum);
            writer.u32(*index as u32);
        }
        for advice in &self.advice {
            [advice.visits, advice.loss_sum, advice.loss_sq_sum].into_iter().for_each(|sum| writer.u64(sum));
            writer.i32(advice.prior);
        }
    }

    /// Reads the canonical bytes of a bucket with this many arms.
    pub fn decode(
        parameters: &Parameters,
        arms: usize,
        reader: &mut Reader<'_>,
    ) -> Result<WideBucket, DecodeError> {
        let impossible = reader.error("statistics that no play can have left");
        let mut bucket = WideBucket::new(parameters, arms);
        (bucket.selections_total, bucket.cursor) = (reader.u64()?, reader.u16()?);
        let (has_advice, has_seen) = (bucket.cursor & HAS_ADVICE != 0, bucket.cursor & HAS_SEEN != 0);
        bucket.cursor &= !(HAS_ADVICE | HAS_SEEN);
        if has_seen {
            bucket.seen = Seen { low: reader.u64()?, high: reader.u64()? };
            if bucket.selections_total == 0 || !bucket.seen.is_possible() {
                return Err(impossible);
            }
        } else if 0 < bucket.selections_total {
            bucket.seen = Seen::EVERYTHING;
        }
        for place in 0..arms {
            let arm = &mut bucket.arms[place];
            (arm.visits, arm.loss_sum, arm.loss_sq_sum) = (reader.u32()?, reader.u64()?, reader.u64()?);
            bucket.index[place] = reader.u32()? as i32;
            let most = u64::from(arm.visits) << FRACTION_BITS;
            if arm.visits == 0
                || VISITS_HALVE_AT <= arm.visits
                || most < arm.loss_sum
                || arm.loss_sum < arm.loss_sq_sum
            {
                return Err(impossible);
            }
        }
        for _ in 0..if has_advice { arms } else { 0 } {
            let (visits, loss_sum, loss_sq_sum) = (reader.u64()?, reader.u64()?, reader.u64()?);
            let advice = Advice { visits, loss_sum, loss_sq_sum, prior: reader.i32()? };
            if !advice.is_possible() {
                return Err(impossible);
            }
            bucket.advice.push(advice);
        }
        if has_advice && bucket.advice.iter().all(|advice| *advice == Advice::default()) {
            return Err(impossible);
        }
        if 1 << 48 <= bucket.selections_total || arms <= usize::from(bucket.cursor) {
            return Err(impossible);
        }
        for place in (0..bucket.winners.len()).rev() {
            bucket.play(place);
        }
        Ok(bucket)
    }
}

/// Mean and bonus of an arm with what people said of it. A word moves the mean and leaves the certainty, which only
/// observations give, as it is: what is praised is tried sooner, never later.
fn estimate_advised(arm: &ArmStatistics, advice: &Advice, ln_total: u64, range: u64) -> Estimate {
    let visits = (u128::from(arm.visits) << FRACTION_BITS) + u128::from(advice.visits);
    let sum = u128::from(arm.loss_sum) + u128::from(advice.loss_sum);
    Estimate { mean_q44: ((sum << 44) / visits) as u64, ..estimate_within(arm, ln_total, range) }
}

#[cfg(test)]
mod tests;
