//! Whether the world behind a context has changed, noticed while acting.
//!
//! In worlds of one step every reward is compared with the mean of the action that earned it, in its context: sums of what
//! exceeds it, both ways, cut at zero, at two scales of change. A sum beyond its threshold is an alarm, with an error chance
//! of about one in e^12 a step at first, and less the more rewards have told the mean, so that in a world that does not change
//! all false alarms together stay few, however long it is played. It matters where what acts has become worse, or something else better; then the context, and
//! no other, forgets what came before the sum began to grow, and the look at the log comes at once instead of at its turn.
//! Must not know episodes, turns or the machine. Clauses: VM-16, SCC-13; decisions D-4, D-91.

use crate::codec::{decode_list, encode_list};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_learn::index::ArmStatistics;
use bem_learn::loss::Widening;
use std::collections::BTreeMap;

/// Rewards of an action in a context before its mean is compared with.
const VISITS_MIN: u64 = 16;
/// The logarithm of how rarely chance alone raises an alarm while a mean is young.
const RARELY: i64 = 12;
/// After so many rewards the chance has fallen to a quarter, and from there on with the square of their number.
const YOUNG_VISITS: u64 = 1 << 12;
/// What is forgiven at every step, in quarters of the standard deviation: slow changes, and large ones at once.
const FORGIVEN: [i64; 2] = [1, 3];
/// Changes below this part of the range of losses are not looked for.
const FORGIVEN_MIN: Fixed = Fixed::from_ratio(1, 64);
/// Pairs of context and action that are followed.
const FOLLOWED_MAX: usize = 1 << 16;
/// Alarms that wait for a look.
const ALARMS_MAX: usize = 64;

/// An action in a context.
type Place = (u16, u16);

/// A context whose world has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alarm {
    /// Which context.
    pub(super) bucket: u16,
    /// From which moment on.
    pub(super) since: u64,
    /// By how much an action's loss has moved at least, as a part of the range of losses.
    pub(super) moved: Fixed,
    /// Rewards that show it.
    pub(super) rewards: u32,
}

/// What exceeds the mean in one direction, since when, and how many rewards have told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Excess {
    sum: i64,
    since: u64,
    rewards: u32,
}

impl Excess {
    /// Books what a loss exceeds by, less what is forgiven.
    fn book(&mut self, excess: i64, moment: u64) {
        if self.sum == 0 {
            *self = Excess { sum: 0, since: moment, rewards: 0 };
        }
        (self.sum, self.rewards) = ((self.sum + excess).max(0), self.rewards.saturating_add(1));
    }
}

/// Both directions at both scales.
type Excesses = [[Excess; 2]; 2];

/// Everything that is followed.
#[derive(Clone, Debug, Default)]
pub(super) struct Drift {
    followed: BTreeMap<Place, Excesses>,
    /// Contexts when they were followed: others have other numbers.
    buckets: u16,
    alarms: Vec<Alarm>,
}

impl Drift {
    /// Takes in a loss of an action in a context, one of so many, that acts there or not; whether it raises an alarm. Losses of the
    /// context are taken to differ by a range.
    pub(super) fn observe(
        &mut self,
        (bucket, action): Place,
        buckets: u16,
        acts: bool,
        (loss, arm, range): (i64, &ArmStatistics, Fixed),
        moment: u64,
    ) -> bool {
        if self.buckets != buckets {
            *self = Drift { buckets, ..Drift::default() };
        }
        let is_full = FOLLOWED_MAX <= self.followed.len() && !self.followed.contains_key(&(bucket, action));
        if u64::from(arm.visits) < VISITS_MIN || is_full || ALARMS_MAX <= self.alarms.len() {
            return false;
        }
        let visits = i128::from(arm.visits);
        let mean = (i128::from(arm.loss_sum) / visits) as i64;
        let square = (i128::from(mean) * i128::from(mean)) >> FRACTION_BITS;
        let variance = (i128::from(arm.loss_sq_sum) / visits - square).max(0);
        let deviation = ((variance << FRACTION_BITS) as u128).isqrt() as i64;
        // The mean itself is known to a standard error; twice that is forgiven besides.
        let unsure = 2 * deviation / (u64::from(arm.visits).isqrt() as i64).max(1);
        let excess = loss - mean;
        let followed = self.followed.entry((bucket, action)).or_default();
        // Twice the natural logarithm, nearly.
        let rarely = RARELY + i64::from((1 + u64::from(arm.visits) / YOUNG_VISITS).ilog2()) * 7 / 5;
        let mut alarm = None;
        for (scale, quarters) in followed.iter_mut().zip(FORGIVEN) {
            let forgiven = (quarters * deviation / 4 + unsure).max(FORGIVEN_MIN.mul_floor(range).to_raw());
            // The chance of a sum beyond h is about e^(-2 h forgiven / variance), and a little more where losses are skewed.
            let threshold =
                ((i128::from(rarely) * variance) << FRACTION_BITS) / (2 * i128::from(forgiven.max(1)));
            let threshold = threshold as i64 + rarely * range.to_raw() / 4;
            for (is_worse, sum) in [true, false].into_iter().zip(scale) {
                sum.book(if is_worse { excess } else { -excess } - forgiven, moment);
                // What acts has become worse, or something else better.
                if threshold < sum.sum && is_worse == acts {
                    let (since, moved, rewards) = (sum.since, Fixed::from_raw(forgiven), sum.rewards);
                    alarm = Some(Alarm { bucket, since, moved, rewards });
                }
            }
        }
        let Some(alarm) = alarm else { return false };
        self.followed.retain(|(followed, _), _| *followed != bucket);
        self.alarms.retain(|earlier| earlier.bucket != bucket);
        self.alarms.push(alarm);
        true
    }

    /// Losses are measured on a wider range from now on: what exceeds a mean shrinks with them, and so does what is forgiven.
    pub(super) fn rescale(&mut self, widening: Widening) {
        for excess in self.followed.values_mut().flatten().flatten() {
            excess.sum = widening.scale(excess.sum as u64) as i64;
        }
        for alarm in &mut self.alarms {
            alarm.moved = Fixed::from_raw((widening.scale(alarm.moved.to_raw() as u64) as i64).max(1));
        }
    }

    /// Takes the oldest alarm among so many contexts, if there is one.
    pub(super) fn take(&mut self, buckets: u16) -> Option<Alarm> {
        if self.buckets != buckets {
            *self = Drift { buckets, ..Drift::default() };
        }
        (!self.alarms.is_empty()).then(|| self.alarms.remove(0))
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.u16(self.buckets);
        writer.length(self.followed.len());
        for ((bucket, action), excesses) in &self.followed {
            writer.u16(*bucket);
            writer.u16(*action);
            for Excess { sum, since, rewards } in excesses.iter().flatten() {
                writer.i64(*sum);
                writer.u64(*since);
                writer.u32(*rewards);
            }
        }
        encode_list(writer, self.alarms.iter(), |alarm, writer| {
            writer.u16(alarm.bucket);
            writer.u64(alarm.since);
            writer.i64(alarm.moved.to_raw());
            writer.u32(alarm.rewards);
        });
    }

    /// Reads canonical bytes back.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Drift, DecodeError> {
        let malformed = reader.error("changes that nobody can have noticed");
        let buckets = reader.u16()?;
        let mut followed = BTreeMap::new();
        for _ in 0..reader.length(84)? {
            let place = (reader.u16()?, reader.u16()?);
            let mut excesses = Excesses::default();
            for excess in excesses.iter_mut().flatten() {
                *excess = Excess { sum: reader.i64()?, since: reader.u64()?, rewards: reader.u32()? };
                if !(0..1 << 60).contains(&excess.sum) {
                    return Err(malformed);
                }
            }
            let is_next = followed.last_key_value().is_none_or(|(last, _)| *last < place);
            if !is_next || buckets <= place.0 || FOLLOWED_MAX <= followed.len() {
                return Err(malformed);
            }
            followed.insert(place, excesses);
        }
        let alarms = decode_list(reader, |reader| {
            let (bucket, since) = (reader.u16()?, reader.u64()?);
            let moved = Fixed::from_raw(reader.i64()?);
            Ok(Alarm { bucket, since, moved, rewards: reader.u32()? })
        })?;
        let possible =
            |alarm: &Alarm| alarm.bucket < buckets && Fixed::ZERO < alarm.moved && alarm.moved <= Fixed::ONE;
        let fits = alarms.len() <= ALARMS_MAX && alarms.iter().all(possible);
        if fits { Ok(Drift { followed, buckets, alarms }) } else { Err(malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    /// Rewards of one action, with these chances to lose in turn; the step of the first alarm and what it says.
    fn first_alarm(seed: u64, acts: bool, chances: &[(u64, u64)]) -> Option<(u64, Alarm)> {
        let (mut drift, mut prng) = (Drift::default(), Prng::stream(seed, "drift"));
        let mut arm = ArmStatistics { visits: 1, loss_sum: 1 << 31, loss_sq_sum: 1 << 30, prior: 0 };
        let mut step = 0;
        for (percent, steps) in chances {
            for _ in 0..*steps {
                step += 1;
                let loss = if prng.below(100) < *percent { Fixed::ONE.to_raw() } else { 0 };
                if drift.observe((3, 1), 8, acts, (loss, &arm, Fixed::ONE), step) {
                    return Some((step, drift.take(8).unwrap()));
                }
                arm.visits += 1;
                arm.loss_sum += loss as u64;
                arm.loss_sq_sum += loss as u64;
            }
        }
        None
    }

    #[test]
    fn what_acts_and_becomes_worse_is_noticed_within_some_hundred_rewards() {
        for seed in 0..50 {
            let (step, alarm) = first_alarm(seed, true, &[(40, 4_000), (70, 1_000)]).unwrap();
            assert!((4_001..4_300).contains(&step), "{step}");
            assert_eq!(alarm.bucket, 3);
            assert!((3_800..=4_300).contains(&alarm.since), "{}", alarm.since);
        }
    }

    #[test]
    fn an_idle_action_that_becomes_much_better_is_noticed_within_tens_of_rewards() {
        let steps: u64 =
            (0..50).map(|seed| first_alarm(seed, false, &[(80, 200), (10, 200)]).unwrap().0 - 200).sum();
        assert!(steps / 50 < 35, "{}", steps / 50);
    }

    #[test]
    fn nothing_changed_or_nothing_that_matters_is_no_alarm() {
        let false_alarms =
            (0..100).filter(|seed| first_alarm(*seed, true, &[(40, 10_000)]).is_some()).count();
        assert!(false_alarms <= 5, "{false_alarms} of 100 runs of 10,000 steps");
        assert_eq!(first_alarm(1, true, &[(40, 1_000), (10, 1_000)]), None);
        assert_eq!(first_alarm(1, false, &[(40, 1_000), (90, 1_000)]), None);
    }

    #[test]
    fn in_a_world_that_does_not_change_false_alarms_do_not_go_on() {
        let false_alarms =
            (0..40).filter(|seed| first_alarm(*seed, true, &[(40, 200_000)]).is_some()).count();
        assert!(false_alarms <= 4, "{false_alarms} of 40 runs of 200,000 steps");
    }

    #[test]
    fn a_wider_range_raises_no_alarm_and_hides_no_change() {
        // Four times the range from the middle on, with the change a little later or never.
        let alarm = |seed: u64, change: u64| {
            let (mut drift, mut prng) = (Drift::default(), Prng::stream(seed, "drift"));
            let mut arm = ArmStatistics { visits: 1, loss_sum: 1 << 31, loss_sq_sum: 1 << 30, prior: 0 };
            let (widening, mut whole) = (Widening::new(1, 4, 3), (0, Fixed::ONE.to_raw()));
            for step in 0..4_000 {
                if step == 2_000 {
                    let ones = u64::from(arm.visits) << 32;
                    arm.loss_sq_sum = widening.apply_squares(arm.loss_sq_sum, arm.loss_sum, ones);
                    arm.loss_sum = widening.apply(arm.loss_sum, ones);
                    drift.rescale(widening);
                    whole = (3 * (Fixed::ONE.to_raw() / 4), Fixed::ONE.to_raw());
                }
                let is_lost = prng.below(100) < if step < change { 40 } else { 70 };
                let loss = if is_lost { whole.1 } else { whole.0 };
                let range = Fixed::from_raw(whole.1 - whole.0);
                if drift.observe((3, 1), 8, true, (loss, &arm, range), step) {
                    return Some(step);
                }
                arm.visits += 1;
                arm.loss_sum += loss as u64;
                arm.loss_sq_sum += ((loss as u128 * loss as u128) >> 32) as u64;
            }
            None
        };
        let noticed = |seed: &u64| alarm(*seed, 2_050).is_some_and(|step| (2_051..2_400).contains(&step));
        assert!(19 <= (0..20).filter(noticed).count());
        assert!((0..20).filter(|seed| alarm(*seed, 4_000).is_some()).count() <= 1);
    }

    #[test]
    fn bytes_come_back_and_other_contexts_are_followed_anew() {
        let mut drift = Drift::default();
        let arm = ArmStatistics { visits: 100, loss_sum: 50 << 32, loss_sq_sum: 50 << 32, prior: 0 };
        for step in 0..40 {
            drift.observe((step % 5, 1), 8, true, (1 << 32, &arm, Fixed::ONE), step.into());
        }
        let mut writer = Writer::new();
        drift.encode(&mut writer);
        let bytes = writer.into_bytes();
        let mut again = Writer::new();
        Drift::decode(&mut Reader::new(&bytes)).unwrap().encode(&mut again);
        assert_eq!(again.into_bytes(), bytes);
        (0..bytes.len()).for_each(|cut| assert!(Drift::decode(&mut Reader::new(&bytes[..cut])).is_err()));
        assert_eq!(drift.followed.len(), 5);
        drift.observe((1, 1), 9, true, (1 << 32, &arm, Fixed::ONE), 50);
        assert_eq!(drift.followed.len(), 1);
    }
}
