//! A bucket with any number of arms: the same index as a [`crate::bucket::Bucket`], cached, with a tournament over it.
//!
//! `choose` reads the winner. `update` books a loss and renews the indices of a few arms; of many, that of the arm and of one
//! more in turn, and replays their matches: the logarithm of the number of arms, whatever has happened before, and no
//! allocation.
//! Must not know what an arm stands for. Clauses: VM-9, VM-11, VM-14, D-3, D-6, D-7, D-41.

use crate::index::{
    ArmStatistics, INDEX_FRACTION_BITS, PRIOR_FRACTION_BITS, PRIOR_LIMIT, Parameters, index_of,
};
use crate::loss::Loss;
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
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    const PLAIN: Parameters = Parameters { change: None, ..Parameters::DEFAULT };

    #[test]
    fn the_winner_is_the_lowest_index_and_bytes_come_back() {
        let mut prng = Prng::stream(1, "wide");
        for arms in [1, 2, 3, 16, 17, 100, 1_024] {
            let mut bucket = WideBucket::new(&PLAIN, arms);
            for step in 0..2_000u64 {
                let arm = if prng.bit() { bucket.choose() } else { prng.below(arms as u64) as usize };
                bucket.update(&PLAIN, arm, Loss::from_raw(prng.below(1 << 32)));
                let ranks = bucket.index.iter().enumerate().map(|(arm, index)| (*index, arm));
                assert_eq!(ranks.min().unwrap().1, bucket.choose());
                if step % 500 == 0 {
                    let mut writer = Writer::new();
                    bucket.encode(&mut writer);
                    let read = WideBucket::decode(&PLAIN, arms, &mut Reader::new(writer.as_bytes()));
                    assert_eq!(read.as_ref(), Ok(&bucket));
                }
            }
        }
    }

    #[test]
    fn what_promises_hardly_more_than_what_stands_is_followed_in_few_choices() {
        // Three arms of which the last is worse; what stands is the first. Losses of a half now and then.
        let after = |choices: u64, best: u64, worst: u64| {
            let mut prng = Prng::stream(3, "wide");
            let mut bucket = WideBucket::new(&PLAIN, 3);
            for choice in 0..choices {
                let arm = (choice % 3) as usize;
                let often = [500, best, worst][arm];
                let loss = if prng.below(1_000) < often { 1 << 31 } else { 0 };
                bucket.update(&PLAIN, arm, Loss::from_raw(loss));
            }
            bucket.followed_one_in(0)
        };
        assert_eq!(after(30, 500, 900), 1, "little is known");
        assert_eq!(after(6_000, 500, 900), SMALL_HOPE_ONE_IN, "arms that are equal");
        assert_eq!(after(15_000, 500, 900), SMALL_HOPE_ONE_IN_LATE, "they were tried often");
        assert_eq!(after(6_000, 300, 900), 1, "one that is clearly better");
        assert_eq!(after(150_000, 480, 900), 1, "one that is hardly better, and was seen to be");
        // What brings the same every time says so soon, and nobody hopes for a small part of the range.
        assert_eq!([30, 6_000].map(|choices| after(choices, 1_000, 1_000)), [1, SMALL_HOPE_ONE_IN]);
    }

    #[test]
    fn a_range_that_is_far_too_wide_costs_hardly_more_than_the_right_one() {
        // Four arms of which the first is better; losses as they are, or in the middle of a range that is 200 times as wide.
        let others = |width: u64| {
            let mut prng = Prng::stream(5, "wide");
            let mut bucket = WideBucket::new(&PLAIN, 4);
            let mut others = 0;
            for _ in 0..20_000 {
                let arm = bucket.choose();
                let often = if arm == 0 { 400 } else { 600 };
                let part = if prng.below(1_000) < often { WHOLE / width } else { 0 };
                bucket.update(&PLAIN, arm, Loss::from_raw(WHOLE / 2 - WHOLE / width / 2 + part));
                others += u32::from(arm != 0);
            }
            others
        };
        let (right, wide) = (others(1), others(200));
        assert!(
            right < 600 && wide < 2 * right,
            "{right} choices of others, {wide} where the range is too wide"
        );
    }

    #[test]
    fn the_losses_seen_are_part_of_the_bytes_while_they_span_little() {
        let mut bucket = WideBucket::new(&PLAIN, 3);
        let encoded = |bucket: &WideBucket| {
            let mut writer = Writer::new();
            bucket.encode(&mut writer);
            writer.into_bytes()
        };
        let back = |bytes: &[u8]| WideBucket::decode(&PLAIN, 3, &mut Reader::new(bytes));
        assert_eq!(back(&encoded(&bucket)).unwrap(), bucket);
        let plain = encoded(&bucket).len();
        for (step, loss) in [WHOLE / 2, WHOLE / 2 + 1_000, WHOLE / 2 - 1_000].into_iter().enumerate() {
            bucket.update(&PLAIN, step, Loss::from_raw(loss));
            assert_eq!(
                (back(&encoded(&bucket)).unwrap(), encoded(&bucket).len()),
                (bucket.clone(), plain + 16)
            );
        }
        assert_eq!(bucket.range().to_raw(), 4_000);
        let mut crossed = encoded(&bucket);
        crossed[10..26].rotate_left(8);
        assert!(back(&crossed).is_err(), "the lowest loss is above the highest");
        bucket.update(&PLAIN, 0, Loss::from_raw(0));
        assert_eq!((back(&encoded(&bucket)).unwrap(), encoded(&bucket).len()), (bucket.clone(), plain));
        assert_eq!(bucket.range(), Fixed::ONE);
    }

    #[test]
    fn cached_indices_lose_nothing_against_a_rule_that_renews_them_all() {
        // Two hundred arms, the best 0.2 below the rest: pulls of all others over ten thousand choices.
        let pulls = |renew: bool| {
            let mut prng = Prng::stream(2, "wide");
            let mut bucket = WideBucket::new(&PLAIN, 200);
            let mut wasted = 0u32;
            for _ in 0..60_000 {
                let arm = bucket.choose();
                let lost = prng.below(10) < if arm == 77 { 3 } else { 5 };
                bucket.update(&PLAIN, arm, Loss::from_bit(lost));
                if renew {
                    bucket.refresh(&PLAIN);
                }
                wasted += u32::from(arm != 77);
            }
            wasted
        };
        let (cached, renewed) = (pulls(false), pulls(true));
        assert!(cached <= renewed + renewed / 10, "{cached} against {renewed}");
    }

    #[test]
    fn what_people_say_counts_in_fractions_and_is_taken_back_bit_for_bit() {
        let mut prng = Prng::stream(3, "wide");
        for arms in [2, 16, 100] {
            let mut bucket = WideBucket::new(&PLAIN, arms);
            (0..200).for_each(|_| {
                bucket.update(&PLAIN, prng.below(arms as u64) as usize, Loss::from_raw(prng.below(1 << 32)))
            });
            let before = bucket.clone();
            let good = Advice::of(3 << 30, Loss::from_raw(0));
            let arm = arms - 1;
            let index = bucket.index(arm);
            assert!(bucket.advise(&PLAIN, arm, &good, true, None));
            assert!(bucket.index(arm) < index, "good words make an arm look better");
            assert_eq!(bucket.advice()[arm].visits, 3 << 30);
            let mut writer = Writer::new();
            bucket.encode(&mut writer);
            assert_eq!(
                WideBucket::decode(&PLAIN, arms, &mut Reader::new(writer.as_bytes())).as_ref(),
                Ok(&bucket)
            );
            assert!(bucket.advise(&PLAIN, arm, &good, false, Some(index)));
            assert_eq!(bucket, before);
            assert!(
                !bucket.advise(&PLAIN, arm, &good, false, None),
                "more than was said cannot be taken back"
            );
            assert_eq!(bucket, before);
        }
        // Praise lowers the mean as observed visits would, and blame raises it.
        let mut bucket = WideBucket::new(&PLAIN, 3);
        bucket.update(&PLAIN, 1, Loss::from_raw(1 << 31));
        let index = bucket.index(1);
        bucket.advise(&PLAIN, 1, &Advice::of(1 << 32, Loss::ONE), true, None);
        assert!(index < bucket.index(1));
        bucket.advise(&PLAIN, 1, &Advice::of(5 << 32, Loss::from_raw(0)), true, None);
        assert!(bucket.index(1) < index);
    }

    #[test]
    fn counts_are_halved_before_they_overflow() {
        let mut bucket = WideBucket::new(&PLAIN, 3);
        bucket.arms[1] =
            ArmStatistics { visits: VISITS_HALVE_AT - 1, loss_sum: 1 << 40, loss_sq_sum: 1 << 39, prior: 0 };
        bucket.update(&PLAIN, 1, Loss::ONE);
        assert_eq!(bucket.arms()[1].visits, VISITS_HALVE_AT / 2);
    }
}
