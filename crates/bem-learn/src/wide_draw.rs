//! Rules that draw among any number of arms: softmax over the indices of a [`WideBucket`], and Tsallis-INF with sums of its
//! own.
//!
//! Both say the chance that an arm has, which is what a log needs to be weighed. Whoever asks says which arms may be drawn; if
//! none may, all may. Cost: all arms with every draw, and no allocation. Must not know what an arm stands for. Clauses: VM-9, VM-10; decisions
//! D-4, D-5, D-170.

use crate::loss::{Loss, Widening};
use crate::softmax::{Temperature, weight_q32};
use crate::tsallis_inf::{Chance, Curve, SELECTIONS_MAX, SUM_MAX, heavier};
use crate::wide::WideBucket;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::prng::Prng;

/// Of a thousand arms the gap is up to 32 times the root, which takes nine steps by half before the last ones.
const NEWTON_STEPS: u32 = 18;

/// Draws so many arms by softmax over the indices and takes the best of them; the chance that this one had.
pub fn softmax(
    bucket: &WideBucket,
    rule: (Temperature, u32),
    may: impl Fn(usize) -> bool,
    prng: &mut Prng,
) -> (usize, Chance) {
    let arms = bucket.arms().len();
    let weight = softmax_weight(bucket, rule.0, &may);
    let total = (0..arms).map(&weight).sum();
    let draws = (0..rule.1.max(1)).map(|_| draw(&weight, total, prng));
    let best = draws.min_by_key(|arm| (bucket.index(*arm), *arm)).expect("at least one is drawn");
    (best, best_of(bucket, &weight, rule.1, best))
}

/// The chance that [`softmax`] takes this arm; none where it may not be drawn.
pub fn softmax_chance(
    bucket: &WideBucket,
    rule: (Temperature, u32),
    may: impl Fn(usize) -> bool,
    arm: usize,
) -> Option<Chance> {
    let weight = softmax_weight(bucket, rule.0, &may);
    (0 < weight(arm)).then(|| best_of(bucket, &weight, rule.1, arm))
}

/// The weight of every arm: at most 2^32, zero where it may not be drawn. Never zero where it may: what may be drawn has a
/// chance that can be stated.
fn softmax_weight(
    bucket: &WideBucket,
    temperature: Temperature,
    may: &impl Fn(usize) -> bool,
) -> impl Fn(usize) -> u64 {
    let is_open = (0..bucket.arms().len()).any(may);
    let may = move |arm: usize| !is_open || may(arm);
    let open = (0..bucket.arms().len()).filter(|arm| may(*arm));
    let least = open.map(|arm| bucket.index(arm)).min().unwrap_or(0);
    let temperature = temperature.after(bucket.selections_total());
    move |arm| match may(arm) {
        true => weight_q32(bucket.index(arm).abs_diff(least), temperature).max(1),
        false => 0,
    }
}

/// The chance that an arm is the best of so many draws: that none is better, less that all are worse.
fn best_of(bucket: &WideBucket, weight: &impl Fn(usize) -> u64, count: u32, arm: usize) -> Chance {
    let rank = |arm: usize| (bucket.index(arm), arm);
    let (own, mut total, mut behind) = (weight(arm), 0u64, 0u64);
    for other in 0..bucket.arms().len() {
        let weight = weight(other);
        total += weight;
        behind += if rank(arm) < rank(other) { weight } else { 0 };
    }
    if count <= 1 {
        return Chance::of(own, total);
    }
    let power = |part: u64| {
        let share = (u128::from(part) << 32) / u128::from(total);
        (0..count).fold(1u128 << 32, |product, _| (product * share) >> 32) as u64
    };
    Chance::of(power(behind + own) - power(behind), 1 << 32)
}

/// An arm with a chance in proportion to its weight; all weights add up to `total`, which is not zero.
fn draw(weight: &impl Fn(usize) -> u64, total: u64, prng: &mut Prng) -> usize {
    let mut place = prng.below(total);
    let mut arm = 0;
    loop {
        let weight = weight(arm);
        if place < weight {
            return arm;
        }
        place -= weight;
        arm += 1;
    }
}

/// Tsallis-INF over any number of arms. Invariants: there is at least one arm; sums are not negative, and the least is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WideTsallisInf {
    /// Estimated losses, less the lowest of them, 32 fractional bits.
    sums: Vec<i64>,
    /// Chances times 2^32, not quite normalised.
    weights: Vec<u64>,
    selections_total: u64,
}

impl WideTsallisInf {
    /// All arms equally likely.
    pub fn new(arms: usize) -> WideTsallisInf {
        assert!(0 < arms);
        let mut rule = WideTsallisInf { sums: vec![0; arms], weights: vec![0; arms], selections_total: 0 };
        rule.reweigh();
        rule
    }

    /// Draws an arm, and says the chance that it had among those that may be drawn.
    pub fn draw(&self, may: impl Fn(usize) -> bool, prng: &mut Prng) -> (usize, Chance) {
        let weight = self.weight_among(&may);
        let total = (0..self.weights.len()).map(&weight).sum();
        let arm = draw(&weight, total, prng);
        (arm, Chance::of(weight(arm), total))
    }

    /// The chance that [`WideTsallisInf::draw`] draws this arm; none where it may not be drawn.
    pub fn chance(&self, may: impl Fn(usize) -> bool, arm: usize) -> Option<Chance> {
        let weight = self.weight_among(&may);
        let total = (0..self.weights.len()).map(&weight).sum();
        (0 < weight(arm)).then(|| Chance::of(weight(arm), total))
    }

    fn weight_among(&self, may: &impl Fn(usize) -> bool) -> impl Fn(usize) -> u64 {
        let is_open = (0..self.weights.len()).any(may);
        move |arm| if !is_open || may(arm) { self.weights[arm] } else { 0 }
    }

    /// Books the loss of an arm that was drawn with this chance.
    pub fn update(&mut self, arm: usize, loss: Loss, chance: Chance) {
        self.record(arm, loss, chance);
        self.refresh();
    }

    /// The same without new chances; a later [`WideTsallisInf::refresh`] makes it count.
    pub fn record(&mut self, arm: usize, loss: Loss, chance: Chance) {
        self.sums[arm] = heavier(self.sums[arm], loss, chance);
        // Past this the learning rate stays where it is.
        self.selections_total = (self.selections_total + 1).min(SELECTIONS_MAX);
    }

    /// Computes the chances that follow from what has been booked.
    pub fn refresh(&mut self) {
        let least = self.sums.iter().copied().min().unwrap_or(0);
        self.sums.iter_mut().for_each(|sum| *sum -= least);
        self.reweigh();
    }

    /// Losses are measured on a wider range from now on. What is added to every loss adds the same to every arm's estimate on
    /// average, each choice being divided by its chance, and sums are relative to the least: the part alone counts.
    pub fn rescale(&mut self, widening: Widening) {
        self.sums.iter_mut().for_each(|sum| *sum = widening.scale((*sum).max(0) as u64) as i64);
        self.refresh();
    }

    /// Choices booked.
    pub fn selections_total(&self) -> u64 {
        self.selections_total
    }

    fn reweigh(&mut self) {
        let sums = self.sums.iter().map(|sum| *sum as u64);
        let curve = Curve::fit(sums.clone(), self.selections_total, NEWTON_STEPS);
        self.weights.iter_mut().zip(sums).for_each(|(weight, sum)| *weight = curve.weight(sum));
    }

    /// Writes the whole state; the chances follow from it.
    pub fn encode(&self, writer: &mut Writer) {
        self.sums.iter().for_each(|sum| writer.i64(*sum));
        writer.u64(self.selections_total);
    }

    /// Reads the state of a rule over this many arms back.
    pub fn decode(arms: usize, reader: &mut Reader<'_>) -> Result<WideTsallisInf, DecodeError> {
        let broken = reader.error("importance-weighted sums that break their invariants");
        let mut rule = WideTsallisInf::new(arms);
        for sum in &mut rule.sums {
            *sum = reader.i64()?;
        }
        rule.selections_total = reader.u64()?;
        let is_in_range = rule.sums.iter().all(|sum| (0..=SUM_MAX).contains(sum));
        if !is_in_range || rule.sums.iter().min() != Some(&0) || SELECTIONS_MAX < rule.selections_total {
            return Err(broken);
        }
        rule.reweigh();
        Ok(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Parameters;
    use bem_base::fixed::Fixed;

    const PLAIN: Parameters = Parameters { change: None, ..Parameters::DEFAULT };

    #[test]
    fn chances_add_up_to_one_whatever_the_number_of_arms() {
        for arms in [1, 2, 3, 17, 200, 1_024] {
            let (mut rule, mut prng) = (WideTsallisInf::new(arms), Prng::quick(arms as u64));
            for _ in 0..500 {
                let (arm, chance) = rule.draw(|_| true, &mut prng);
                assert_eq!(rule.chance(|_| true, arm), Some(chance));
                rule.update(arm, Loss::from_bit(arm % 3 != 0), chance);
                let total: u64 = rule.weights.iter().sum();
                assert!(total.abs_diff(1 << 32) < 1 << 20, "{arms}: {total}");
            }
        }
    }

    #[test]
    fn what_may_not_be_drawn_is_left_out_unless_nothing_else_is_there() {
        let (mut rule, mut prng) = (WideTsallisInf::new(5), Prng::quick(3));
        let mut bucket = WideBucket::new(&PLAIN, 5);
        (0..50).for_each(|visit| bucket.update(&PLAIN, visit % 5, Loss::from_bit(visit % 5 == 1)));
        (0..20).for_each(|_| rule.update(3, Loss::ONE, Chance::CERTAIN));
        let warm = (Temperature::Fixed(Fixed::ONE), 2);
        for _ in 0..200 {
            let odd = |arm: usize| arm % 2 == 1;
            assert!(odd(rule.draw(odd, &mut prng).0) && odd(softmax(&bucket, warm, odd, &mut prng).0));
            assert_eq!(rule.chance(odd, 2), None);
            assert_eq!(softmax_chance(&bucket, warm, odd, 2), None);
            assert!(rule.draw(|_| false, &mut prng).0 < 5);
        }
    }

    #[test]
    fn stated_chances_are_how_often_arms_are_taken() {
        let mut bucket = WideBucket::new(&PLAIN, 4);
        for visit in 0..400 {
            bucket.update(&PLAIN, visit % 4, Loss::from_bit(visit % 4 != 2 && visit % 8 < 6));
        }
        let mut prng = Prng::quick(4);
        for count in 1..=4 {
            let rule = (Temperature::Fixed(Fixed::from_ratio(1, 4)), count);
            let mut taken = [0u64; 4];
            (0..40_000).for_each(|_| taken[softmax(&bucket, rule, |_| true, &mut prng).0] += 1);
            let stated = [0, 1, 2, 3].map(|arm| {
                u64::from(softmax_chance(&bucket, rule, |_| true, arm).expect("all may be drawn").to_raw())
            });
            assert!(stated.iter().sum::<u64>().abs_diff(1 << 32) < 64, "{count}: {stated:?}");
            for (taken, stated) in taken.iter().zip(stated) {
                assert!((taken << 32).abs_diff(40_000 * stated) < 600 << 32, "{count}: {taken} {stated}");
            }
        }
    }

    #[test]
    fn a_saved_rule_goes_on_as_if_never_saved_and_damage_is_refused() {
        let (mut rule, mut prng) = (WideTsallisInf::new(9), Prng::quick(7));
        for round in 0..300u32 {
            let (arm, chance) = rule.draw(|_| true, &mut prng);
            rule.update(arm, Loss::from_bit(round % 3 == 0), chance);
        }
        rule.rescale(Widening::new(2, 3, 0));
        let mut writer = Writer::new();
        rule.encode(&mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(WideTsallisInf::decode(9, &mut Reader::new(&bytes)), Ok(rule));
        assert!(WideTsallisInf::decode(9, &mut Reader::new(&bytes[1..])).is_err());
        assert!(WideTsallisInf::decode(9, &mut Reader::new(&[0xFF; 80])).is_err());
    }
}
