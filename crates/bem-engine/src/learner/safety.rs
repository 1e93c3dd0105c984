//! The safety override of a scheduler: where the incumbent does what must not happen more often than before, patches wait.
//!
//! Counted are episodes of the incumbent alone, because whoever explores meets BAD anyway. What it was before the latest
//! patch, or before the latest one was taken back, is compared with what it is since. While the alarm stands, nothing but
//! acting is allowed and the incumbent acts alone, so that the watch sees quickly whether the latest patch must be taken
//! back. An alarm ends when the share has fallen again, and after a while in any case: a world that has become dangerous
//! for everybody needs new patches. Clauses: SCC-11, SCC-15.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::{FRACTION_BITS, Fixed};

/// Episodes since the latest patch before they count.
const EPISODES_MIN: u32 = 16;
/// Episodes that are counted at most.
const EPISODES_MAX: u32 = u32::MAX / 8;
/// Units that one alarm may last.
const ALARM_UNITS_MAX: u32 = 32;

/// BAD episodes of the incumbent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    bad: u32,
    episodes: u32,
}

/// What is known about BAD since the latest patch and before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Safety {
    before: Share,
    since: Share,
    /// Units that the present alarm has lasted.
    alarmed: u32,
}

impl Safety {
    /// Books an episode of the incumbent.
    pub(super) fn book(&mut self, is_bad: bool) {
        if self.since.episodes == EPISODES_MAX {
            self.since = Share::default();
        }
        self.since = Share { bad: self.since.bad + u32::from(is_bad), episodes: self.since.episodes + 1 };
    }

    /// Another incumbent acts from now on.
    pub(super) fn begin_anew(&mut self) {
        // What was never seen to be safe or unsafe stays what it was.
        if EPISODES_MIN <= self.since.episodes {
            self.before = self.since;
        }
        (self.since, self.alarmed) = (Share::default(), 0);
    }

    /// A unit begins; whether the alarm stands. A share of BAD episodes that has risen by no more than this is none. What was
    /// before the first patch counts as safe where nothing is known of it, unless somebody wants to have seen it.
    #[doc(alias = "safety_violation_rate")]
    pub(super) fn begin_unit(&mut self, rise_max: Fixed, wants_before: bool) -> bool {
        let is_known = !wants_before || 0 < self.before.episodes;
        let is_risen = is_known && EPISODES_MIN <= self.since.episodes && {
            // bad / episodes > bad before / episodes before + rise_max
            let (before, since) = (self.before, self.since);
            let count = i128::from(before.episodes.max(1));
            let (now, then) =
                (i128::from(since.bad) * count, i128::from(before.bad) * i128::from(since.episodes));
            i128::from(rise_max.to_raw()) * count * i128::from(since.episodes) < (now - then) << FRACTION_BITS
        };
        self.alarmed = if is_risen { (self.alarmed + 1).min(ALARM_UNITS_MAX + 1) } else { 0 };
        self.is_alarmed()
    }

    /// Whether the alarm stands.
    pub(super) fn is_alarmed(&self) -> bool {
        (1..=ALARM_UNITS_MAX).contains(&self.alarmed)
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        let Safety { before, since, alarmed } = *self;
        let counts = [before.bad, before.episodes, since.bad, since.episodes, alarmed];
        counts.into_iter().for_each(|count| writer.u32(count));
    }

    /// Reads canonical bytes back.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Safety, DecodeError> {
        let malformed = reader.error("more BAD episodes than episodes");
        let mut share = || Ok(Share { bad: reader.u32()?, episodes: reader.u32()? });
        let safety = Safety { before: share()?, since: share()?, alarmed: reader.u32()? };
        let fits = |share: Share| share.bad <= share.episodes && share.episodes <= EPISODES_MAX;
        if fits(safety.before) && fits(safety.since) && safety.alarmed <= ALARM_UNITS_MAX + 1 {
            Ok(safety)
        } else {
            Err(malformed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::{Event, Learner, Settings};
    use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Outcome, Shape};
    use bem_base::prng::mix;
    use bem_machine::config::SchedulerKind;
    use bem_machine::turn::Turn;

    /// Four steps an episode; the right action is the parity of the three bits that are seen. From some episode on it is the
    /// opposite, and what is wrong is BAD.
    struct Turncoat {
        shape: Shape,
        faithful: u32,
        episodes: u32,
        seed: u64,
        time: u32,
        observation: Bits,
    }

    impl Turncoat {
        fn show(&mut self) {
            self.observation = Bits([mix(self.seed ^ u64::from(self.time)) & 7, 0, 0, 0]);
        }
    }

    impl Environment for Turncoat {
        fn shape(&self) -> &Shape {
            &self.shape
        }

        fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
            self.episodes += 1;
            (self.seed, self.time) = (seed, 0);
            self.show();
            Ok(())
        }

        fn observation(&self) -> &Bits {
            &self.observation
        }

        fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
            let is_faithful = self.episodes <= self.faithful;
            let is_odd = self.observation.0[0].count_ones() % 2 == 1;
            let is_right = action == u16::from(is_odd == is_faithful);
            self.time += 1;
            self.show();
            Ok(Outcome {
                reward: 1_000 * i32::from(is_right),
                done: self.time == 4,
                bad: !is_right && !is_faithful,
            })
        }
    }

    #[test]
    fn where_bad_is_on_the_rise_nothing_is_put_into_force_and_the_latest_patch_goes() {
        let shape = Shape {
            observation_bits: 3,
            actions: 2,
            horizon: 4,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 4_000,
            fields: vec![Field { low: 0, width: 3 }],
        };
        let settings = Settings { budget: 8_000, ..Settings::new(3) }
            .with(|config| config.scheduler = SchedulerKind::Activities);
        let mut learner = Learner::new(&shape, settings).unwrap();
        let (seed, time, observation) = (0, 0, Bits::ZERO);
        let mut world = Turncoat { shape, faithful: 120, episodes: 0, seed, time, observation };
        let (mut units, mut applied) = (0, None);
        while learner.advance(&mut world, &mut ()).unwrap() != Event::Over {
            if !learner.workload.is_alarmed() {
                applied = None;
                continue;
            }
            units += 1;
            // Whoever acts is what is held, or what was held before and is compared with it.
            if let Some(flight) = learner.flight.as_ref().filter(|flight| flight.steps.is_empty()) {
                let is_before = learner.machinery.turn_before() == Some(flight.turn);
                assert!(flight.turn == Turn::HELD || is_before, "{:?}", flight.turn);
            }
            assert_eq!(*applied.get_or_insert(learner.tally.applied), learner.tally.applied);
        }
        assert!(0 < units, "the alarm was never raised");
        assert_eq!(learner.tally.rolled_back, 1);
    }

    #[test]
    fn an_alarm_stands_while_bad_is_more_frequent_than_before_and_not_for_ever() {
        let mut safety = Safety::default();
        let book = |safety: &mut Safety, bad: u32, episodes: u32| {
            (0..episodes).for_each(|episode| safety.book(episode < bad));
        };
        // One in ten is what this world is like.
        book(&mut safety, 4, 40);
        assert!(!safety.begin_unit(Fixed::from_ratio(1, 8), false));
        safety.begin_anew();
        book(&mut safety, 8, 15);
        assert!(!safety.begin_unit(Fixed::from_ratio(1, 8), false), "fifteen episodes are too few");
        book(&mut safety, 1, 1);
        assert!(safety.begin_unit(Fixed::from_ratio(1, 8), false) && safety.is_alarmed());
        let mut writer = Writer::new();
        safety.encode(&mut writer);
        assert_eq!(Safety::decode(&mut Reader::new(writer.as_bytes())), Ok(safety));
        let lasted = 1 + (0..1_000).take_while(|_| safety.begin_unit(Fixed::from_ratio(1, 8), false)).count();
        assert_eq!(lasted as u32, ALARM_UNITS_MAX);
        // It ends as well when the share falls, and when another incumbent acts.
        book(&mut safety, 0, 400);
        assert!(!safety.begin_unit(Fixed::from_ratio(1, 8), false));
        safety.begin_anew();
        assert!(!safety.begin_unit(Fixed::from_ratio(1, 8), false));
    }
}
