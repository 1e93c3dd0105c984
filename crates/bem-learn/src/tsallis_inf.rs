//! Tsallis-INF: sampling that holds against any sequence of losses fixed in advance.
//!
//! It keeps importance-weighted sums of its own, and draws arm `i` with chance `t / (sum_i - x)^2`, where `x`
//! makes the chances add up to one; a fixed number of Newton steps finds it. Zimmert and Seldin, "An optimal
//! algorithm for stochastic and adversarial bandits", with learning rate `2 / sqrt(t)`. Clauses: VM-10, D-4.

use crate::loss::{Loss, Widening};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_base::prng::Prng;

/// From a start on the right of the root Newton falls monotonically, and twelve steps end within rounding.
const NEWTON_STEPS: u32 = 12;
/// Sums are held here; at 2^30 visits an arm this bad has a chance below one in a billion.
pub(crate) const SUM_MAX: i64 = 1 << 62;

/// Choices that the learning rate counts; its square root, with 32 fractional bits, then fits 57.
pub(crate) const SELECTIONS_MAX: u64 = 1 << 50;

/// The chance that an arm had when it was drawn, times 2^32; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[doc(alias = "propensity")]
pub struct Chance(u32);

impl Chance {
    /// Not drawn but chosen; as near to one as the type goes.
    pub const CERTAIN: Chance = Chance(u32::MAX);

    /// The raw bits.
    pub const fn to_raw(self) -> u32 {
        self.0
    }

    /// Writes the canonical bytes.
    pub fn encode(self, writer: &mut Writer) {
        writer.u32(self.0);
    }

    /// Reads canonical bytes; a chance of zero is refused.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Chance, DecodeError> {
        let zero = reader.error("a chance of zero");
        match reader.u32()? {
            0 => Err(zero),
            raw => Ok(Chance(raw)),
        }
    }

    /// One of so many, all alike.
    pub fn one_of(count: u16) -> Chance {
        Chance::of(1, u64::from(count.max(1)))
    }

    /// The chance with these raw bits, zero counting as the least there is.
    pub fn from_raw(raw: u32) -> Chance {
        Chance(raw.max(1))
    }

    /// The chance nearest to a number between zero and one.
    pub fn from_fixed(value: Fixed) -> Chance {
        Chance(value.to_raw().clamp(1, i64::from(u32::MAX)) as u32)
    }

    /// `part / whole`, rounded down but not to zero; the part must not exceed the whole.
    pub(crate) fn of(part: u64, whole: u64) -> Chance {
        let raw = (u128::from(part) << 32) / u128::from(whole);
        Chance(raw.clamp(1, u128::from(u32::MAX)) as u32)
    }
}

impl Default for Chance {
    fn default() -> Chance {
        Chance::CERTAIN
    }
}

/// Importance-weighted sums of losses. Where the draws come from is the caller's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TsallisInf {
    /// Estimated losses, less the lowest of them, 32 fractional bits.
    sums: [i64; ARMS_MAX],
    /// Chances times 2^32, not quite normalised; zero for masked arms.
    weights: [u64; ARMS_MAX],
    live: u16,
    selections_total: u64,
}

impl TsallisInf {
    /// All live arms equally likely; at least one must live.
    pub fn new(live: u16) -> TsallisInf {
        assert!(live != 0);
        let (sums, weights) = ([0; ARMS_MAX], [0; ARMS_MAX]);
        let mut rule = TsallisInf { sums, weights, live, selections_total: 0 };
        rule.reweigh();
        rule
    }

    /// Draws an arm among the candidates, one bit each, with the chance it has among them.
    ///
    /// Candidates that do not live are left out; if none lives, all live arms are candidates.
    pub fn draw(&self, candidates: u16, prng: &mut Prng) -> (usize, Chance) {
        let candidates = if candidates & self.live == 0 { self.live } else { candidates & self.live };
        let total = live_arms(candidates).map(|arm| self.weights[arm]).sum();
        let mut draw = prng.below(total);
        for arm in live_arms(candidates) {
            let weight = self.weights[arm];
            if draw < weight {
                return (arm, Chance::of(weight, total));
            }
            draw -= weight;
        }
        unreachable!("the draw is below the sum of all weights");
    }

    /// Books the loss of an arm that was drawn with this chance.
    pub fn update(&mut self, arm: usize, loss: Loss, chance: Chance) {
        self.record(arm, loss, chance);
        self.refresh();
    }

    /// The same without new chances; a later [`TsallisInf::refresh`] makes it count. Order does not matter until the
    /// sums are held at their maximum.
    pub fn record(&mut self, arm: usize, loss: Loss, chance: Chance) {
        self.sums[arm] = heavier(self.sums[arm], loss, chance);
        // Past this the learning rate stays where it is.
        self.selections_total = (self.selections_total + 1).min(SELECTIONS_MAX);
    }

    /// Computes the chances that follow from what has been booked.
    pub fn refresh(&mut self) {
        let least = live_arms(self.live).map(|arm| self.sums[arm]).min().unwrap_or(0);
        live_arms(self.live).for_each(|arm| self.sums[arm] -= least);
        self.reweigh();
    }

    /// Brings an arm to life, as likely as the best: its slot holds another circuit now.
    pub fn admit(&mut self, arm: usize) {
        self.live |= 1 << arm;
        self.sums[arm] = 0;
        self.refresh();
    }

    /// Masks an arm; refuses to mask the last live one.
    #[must_use]
    pub fn retire(&mut self, arm: usize) -> bool {
        let remaining = self.live & !(1 << arm);
        if remaining == 0 {
            return false;
        }
        self.live = remaining;
        self.sums[arm] = 0;
        self.refresh();
        true
    }

    /// Losses are measured on a wider range from now on. What is added to every loss adds the same to every arm's estimate on
    /// average, each choice being divided by its chance, and sums are relative to the least: the part alone counts.
    pub fn rescale(&mut self, widening: Widening) {
        self.sums.iter_mut().for_each(|sum| *sum = widening.scale((*sum).max(0) as u64) as i64);
        self.refresh();
    }

    /// Forgets everything but which arms live.
    pub fn reset(&mut self) {
        *self = TsallisInf::new(self.live);
    }

    /// The live arms, one bit each.
    pub fn live(&self) -> u16 {
        self.live
    }

    /// The chance of an arm times 2^32, rounded down.
    pub fn chance_q32(&self, arm: usize) -> u64 {
        ((u128::from(self.weights[arm]) << 32) / u128::from(self.weights.iter().sum::<u64>())) as u64
    }

    /// Writes the whole state, for a snapshot; the chances follow from it.
    pub fn encode(&self, writer: &mut Writer) {
        self.sums.iter().for_each(|sum| writer.i64(*sum));
        writer.u16(self.live);
        writer.u64(self.selections_total);
    }

    /// Reads a state back; sums out of range and a state without live arms are refused.
    pub fn decode(reader: &mut Reader<'_>) -> Result<TsallisInf, DecodeError> {
        let start = reader.clone();
        let mut sums = [0; ARMS_MAX];
        for sum in &mut sums {
            *sum = reader.i64()?;
        }
        let (live, selections_total) = (reader.u16()?, reader.u64()?);
        let in_range = sums.iter().all(|sum| (0..=SUM_MAX).contains(sum));
        let least = live_arms(live).map(|arm| sums[arm]).min();
        if !in_range || least != Some(0) || SELECTIONS_MAX < selections_total {
            return Err(start.error("importance-weighted sums that break their invariants"));
        }
        let mut rule = TsallisInf { sums, weights: [0; ARMS_MAX], live, selections_total };
        rule.reweigh();
        Ok(rule)
    }

    fn reweigh(&mut self) {
        let sums = live_arms(self.live).map(|arm| self.sums[arm] as u64);
        let curve = Curve::fit(sums, self.selections_total, NEWTON_STEPS);
        self.weights = [0; ARMS_MAX];
        for arm in live_arms(self.live) {
            self.weights[arm] = curve.weight(self.sums[arm] as u64);
        }
    }
}

/// A sum with the estimate of one more loss, which had this chance to be seen.
pub(crate) fn heavier(sum: i64, loss: Loss, chance: Chance) -> i64 {
    let estimate = (u128::from(loss.to_raw()) << 32) / u128::from(chance.0);
    sum.saturating_add(estimate.min(SUM_MAX as u128) as i64).min(SUM_MAX)
}

/// The chance of an arm as a function of its sum, so that all chances add up to one.
#[derive(Clone, Copy)]
pub(crate) struct Curve {
    scale: u64,
    shift: u32,
    /// The distance of the best arm to x.
    gap: u64,
}

impl Curve {
    /// The curve for these sums, the lowest of which is zero, after so many choices.
    pub(crate) fn fit(
        sums: impl Iterator<Item = u64> + Clone,
        selections_total: u64,
        newton_steps: u32,
    ) -> Curve {
        let root_q32 = (u128::from(selections_total + 1) << 64).isqrt() as u64;
        // Both sides of each quotient lose the same low bits, so that 64-bit division does.
        let shift = 32u32.saturating_sub(root_q32.leading_zeros());
        // The best arm has distance `gap` to x; its chance is at most one, so the gap is at least the root.
        let mut curve = Curve { scale: root_q32 >> shift, shift, gap: root_q32 };
        for _ in 0..newton_steps {
            let (mut sum_q32, mut cubes_q32) = (0u64, 0u64);
            for sum in sums.clone() {
                let ratio = curve.ratio(sum);
                let square = (ratio * ratio) >> 32;
                sum_q32 += square;
                cubes_q32 += (square * ratio) >> 32;
            }
            let excess = sum_q32.saturating_sub(1 << 32);
            curve.gap +=
                (u128::from(excess) * u128::from(root_q32) / (2 * u128::from(cubes_q32.max(1)))) as u64;
        }
        curve
    }

    /// The root over the distance of a sum to x, with 32 fractional bits, at most one.
    #[inline]
    fn ratio(&self, sum: u64) -> u64 {
        ((self.scale << 32) / ((sum + self.gap) >> self.shift)).min((1 << 32) - 1)
    }

    /// The chance times 2^32. Never zero: an arm that can be drawn must have a finite importance weight.
    #[inline]
    pub(crate) fn weight(&self, sum: u64) -> u64 {
        let ratio = self.ratio(sum);
        ((ratio * ratio) >> 32).max(1)
    }
}

fn live_arms(live: u16) -> impl Iterator<Item = usize> + Clone {
    (0..ARMS_MAX).filter(move |arm| live >> arm & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_arms_are_equally_likely_and_masked_ones_never_drawn() {
        let (mut rule, mut prng) = (TsallisInf::new(0b1011), Prng::quick(1));
        assert!([0, 1, 3].iter().all(|arm| rule.chance_q32(*arm).abs_diff((1 << 32) / 3) < 16));
        for _ in 0..1_000 {
            let (arm, chance) = rule.draw(u16::MAX, &mut prng);
            assert!(0b1011 >> arm & 1 == 1);
            rule.update(arm, Loss::ONE, chance);
        }
    }

    #[test]
    fn before_normalising_the_chances_already_add_up_to_one() {
        let (mut rule, mut prng) = (TsallisInf::new(u16::MAX), Prng::quick(2));
        let mut world = Prng::quick(3);
        for _ in 0..20_000 {
            let (arm, chance) = rule.draw(u16::MAX, &mut prng);
            rule.update(arm, Loss::from_bit(world.below(100) < 30 + 4 * arm as u64), chance);
            let total: u64 = rule.weights.iter().sum();
            assert!(total.abs_diff(1 << 32) < 1 << 16, "{total}");
        }
        assert!(rule.chance_q32(15) < rule.chance_q32(0));
    }

    #[test]
    fn among_candidates_the_chances_are_in_the_same_proportion_and_add_up() {
        let (mut rule, mut prng) = (TsallisInf::new(0b0111), Prng::quick(5));
        (0..40).for_each(|_| rule.update(2, Loss::ONE, Chance::CERTAIN));
        let mut draws = [0u64; ARMS_MAX];
        let mut chances = [0u64; ARMS_MAX];
        for _ in 0..20_000 {
            let (arm, chance) = rule.draw(0b1110, &mut prng);
            draws[arm] += 1;
            chances[arm] = u64::from(chance.to_raw());
        }
        assert_eq!(draws[0] + draws[3], 0);
        assert!((chances[1] + chances[2]).abs_diff(1 << 32) < 4);
        assert!((draws[2] << 32).abs_diff(20_000 * chances[2]) < 400 << 32, "{draws:?} {chances:?}");
        // Nothing that may be drawn lives: all live arms are candidates.
        assert!(rule.draw(0b1000, &mut prng).0 < 3);
        assert!(rule.retire(1) && rule.retire(0) && !rule.retire(2));
        assert_eq!(rule.draw(u16::MAX, &mut prng), (2, Chance::CERTAIN));
    }

    #[test]
    fn a_saved_state_continues_as_if_never_saved() {
        let (mut rule, mut prng) = (TsallisInf::new(0b1110_0111), Prng::quick(7));
        for round in 0..500u32 {
            let (arm, chance) = rule.draw(u16::MAX, &mut prng);
            rule.update(arm, Loss::from_bit(round % 3 == 0), chance);
        }
        let mut writer = Writer::new();
        rule.encode(&mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(TsallisInf::decode(&mut Reader::new(&bytes)), Ok(rule));
        assert!(TsallisInf::decode(&mut Reader::new(&bytes[1..])).is_err());
    }

    proptest::proptest! {
        #[test]
        fn random_states_are_refused_or_can_be_played(
            sums in proptest::array::uniform16(0i64..=SUM_MAX), live in proptest::num::u16::ANY,
            selections in 0..=SELECTIONS_MAX, zeroed in 0usize..ARMS_MAX
        ) {
            let mut writer = Writer::new();
            for (arm, sum) in sums.into_iter().enumerate() {
                writer.i64(if arm == zeroed { 0 } else { sum });
            }
            writer.u16(live);
            writer.u64(selections);
            let mut prng = Prng::quick(1);
            if let Ok(mut rule) = TsallisInf::decode(&mut Reader::new(writer.as_bytes())) {
                for _ in 0..20 {
                    let (arm, chance) = rule.draw(u16::MAX, &mut prng);
                    proptest::prop_assert!(live >> arm & 1 == 1);
                    rule.update(arm, Loss::ONE, chance);
                }
            }
        }
    }

    #[test]
    fn losses_at_the_limit_do_not_overflow() {
        let mut rule = TsallisInf::new(0b11);
        rule.selections_total = u64::from(u32::MAX);
        rule.sums = [SUM_MAX; ARMS_MAX];
        rule.sums[0] = 0;
        rule.reweigh();
        rule.update(1, Loss::ONE, Chance(1));
        assert!(rule.draw(u16::MAX, &mut Prng::quick(4)).0 < 2);
    }
}
