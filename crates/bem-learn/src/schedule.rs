//! How the machine divides its time among acting, synthesising and verifying: four schedulers, one interface.
//!
//! The paced order (act until a search is due, search, decide everything that waits), a bandit over the three activities (000/5.6), the contextual linear scheduler (001/17.4, in
//! `linear_scheduler`), and a bandit over cyclic schedules played in blocks. Only the last can express "first
//! synthesise, then verify" when synthesis alone pays nothing. Must not know what the activities do. Clauses:
//! SCC-10, SCC-11, D-26.

use crate::bucket::Bucket;
use crate::index::Parameters;
use crate::linear_scheduler::{LinearParameters, LinearScheduler};
use crate::loss::Loss;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::limits::ARMS_MAX;

/// What one unit of work is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Activity {
    /// Play episodes.
    #[doc(alias = "ACT")]
    Act = 0,
    /// Propose changes.
    #[doc(alias = "SYNTH")]
    Synthesize = 1,
    /// Check and apply what was proposed.
    #[doc(alias = "VERIFY")]
    Verify = 2,
}

impl Activity {
    /// All activities, in order of their numbers.
    pub const ALL: [Activity; 3] = [Activity::Act, Activity::Synthesize, Activity::Verify];
}

/// What a scheduler may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation<'a> {
    /// Numbers from zero to one that describe the moment: backlog, yield, novelty and such. The linear scheduler
    /// alone reads them.
    pub features: &'a [Loss],
    /// Too many safety violations: nothing but acting is allowed.
    pub safety_alarm: bool,
    /// Which activities make sense now, in order of their numbers. Acting always does.
    pub possible: [bool; 3],
}

/// Cyclic schedules; every length divides a block of sixteen units. Those that do a little of everything come first, because
/// ties go to the lowest number.
pub const SCHEDULES: [&[Activity]; 8] = {
    use Activity::{Act as A, Synthesize as S, Verify as V};
    [&[S, V], &[A, S, A, V], &[A, A, S, V], &[S, S, V, V], &[A, A, A, A, A, A, S, V], &[A], &[S], &[V]]
};
const _: () = assert!(SCHEDULES.len() <= ARMS_MAX);

/// Decides what the next unit of work is spent on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "META_STEP")]
pub enum Scheduler {
    /// The paced order: whatever is due is done at once, searching before deciding, and otherwise it acts. It learns nothing.
    Paced,
    /// A bandit over the three activities.
    Activities(Box<ActivityBandit>),
    /// Algorithm D.
    Linear(Box<LinearScheduler>),
    /// A bandit over cyclic schedules.
    Schedules(Box<ScheduleBandit>),
}

impl Scheduler {
    /// The bandit over activities.
    pub fn activities(parameters: Parameters) -> Scheduler {
        let bucket = Bucket::new(&parameters, 0b111);
        Scheduler::Activities(Box::new(ActivityBandit { bucket, parameters }))
    }

    /// Algorithm D.
    pub fn linear(parameters: LinearParameters) -> Scheduler {
        Scheduler::Linear(Box::new(LinearScheduler::new(parameters)))
    }

    /// The bandit over schedules, each played for `block_units` (positive) at a time.
    pub fn schedules(parameters: Parameters, block_units: u32) -> Scheduler {
        assert!(0 < block_units);
        let bucket = Bucket::new(&parameters, (1 << SCHEDULES.len()) - 1);
        let unit = 0;
        Scheduler::Schedules(Box::new(ScheduleBandit {
            bucket,
            parameters,
            block_units,
            unit,
            reward_sum: 0,
        }))
    }

    /// The activity of the next unit. A safety alarm overrides every scheduler.
    pub fn choose(&mut self, situation: &Situation<'_>) -> Activity {
        if situation.safety_alarm {
            return Activity::Act;
        }
        match self {
            Scheduler::Paced => match situation.possible {
                [_, true, _] => Activity::Synthesize,
                [_, _, true] => Activity::Verify,
                _ => Activity::Act,
            },
            // An activity that cannot be done must not be chosen: it would never be tried, so that it would look the most
            // promising for ever.
            Scheduler::Activities(bandit) => {
                let places = situation.possible.iter().enumerate();
                let mask = places.fold(0, |mask, (place, possible)| mask | u16::from(*possible) << place);
                Activity::ALL[bandit.bucket.choose_among(mask | 1)]
            }
            Scheduler::Linear(scheduler) => scheduler.choose_among(situation.features, situation.possible),
            // A schedule that asks for what cannot be done lets act instead.
            Scheduler::Schedules(bandit) => Some(bandit.activity())
                .filter(|unit| situation.possible[*unit as usize])
                .unwrap_or(Activity::Act),
        }
    }

    /// Books the reward, from zero to one, of the unit that was chosen in this situation.
    ///
    /// What the safety override chose teaches nothing about schedules, so it is not booked.
    pub fn learn(&mut self, situation: &Situation<'_>, activity: Activity, reward: Loss) {
        if situation.safety_alarm {
            return;
        }
        match self {
            Scheduler::Paced => {}
            Scheduler::Activities(bandit) => {
                bandit.bucket.update(&bandit.parameters, activity as usize, complement(reward));
            }
            Scheduler::Linear(scheduler) => scheduler.learn(situation.features, activity, reward),
            Scheduler::Schedules(bandit) => bandit.learn(reward),
        }
    }
}

impl Scheduler {
    /// Books a reward that comes late, for a unit that was paid before: a patch that a search found is in force. The bandit
    /// over schedules needs none, because a block's mean holds both units.
    pub fn credit(&mut self, situation: &Situation<'_>, activity: Activity, reward: Loss) {
        if !matches!(self, Scheduler::Schedules(_)) {
            self.learn(situation, activity, reward);
        }
    }

    /// Writes what was learned, for a snapshot; settings come from the configuration.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u8(self.tag());
        match self {
            Scheduler::Paced => {}
            Scheduler::Activities(bandit) => bandit.bucket.encode(writer),
            Scheduler::Linear(scheduler) => scheduler.encode(writer),
            Scheduler::Schedules(bandit) => {
                bandit.bucket.encode(writer);
                writer.u32(bandit.unit);
                writer.u64(bandit.reward_sum);
            }
        }
    }

    /// Reads what was learned into a scheduler made from the same configuration; on an error it is unchanged.
    pub fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let start = reader.clone();
        if reader.u8()? != self.tag() {
            return Err(start.error("the state of another kind of scheduler"));
        }
        match self {
            Scheduler::Paced => {}
            Scheduler::Activities(bandit) => bandit.bucket = decode_bucket(reader, bandit.bucket.live())?,
            Scheduler::Linear(scheduler) => scheduler.restore(reader)?,
            Scheduler::Schedules(bandit) => {
                let bucket = decode_bucket(reader, bandit.bucket.live())?;
                let (unit, reward_sum) = (reader.u32()?, reader.u64()?);
                if bandit.block_units <= unit || u64::from(unit) << 32 < reward_sum {
                    return Err(start.error("a block that is longer or paid more than it can"));
                }
                (bandit.bucket, bandit.unit, bandit.reward_sum) = (bucket, unit, reward_sum);
            }
        }
        Ok(())
    }

    fn tag(&self) -> u8 {
        match self {
            Scheduler::Activities(_) => 0,
            Scheduler::Linear(_) => 1,
            Scheduler::Schedules(_) => 2,
            Scheduler::Paced => 3,
        }
    }
}

fn decode_bucket(reader: &mut Reader<'_>, live: u16) -> Result<Bucket, DecodeError> {
    let start = reader.clone();
    let bucket = Bucket::decode(reader)?;
    if bucket.live() == live { Ok(bucket) } else { Err(start.error("a bucket with other live arms")) }
}

/// UCB-V over the three activities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityBandit {
    bucket: Bucket,
    parameters: Parameters,
}

/// UCB-V over cyclic schedules; a block's mean reward is one observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleBandit {
    bucket: Bucket,
    parameters: Parameters,
    block_units: u32,
    unit: u32,
    reward_sum: u64,
}

impl ScheduleBandit {
    fn activity(&self) -> Activity {
        let schedule = SCHEDULES[self.bucket.choose()];
        schedule[self.unit as usize % schedule.len()]
    }

    fn learn(&mut self, reward: Loss) {
        self.reward_sum += reward.to_raw();
        self.unit += 1;
        if self.unit == self.block_units {
            let mean = Loss::from_raw(self.reward_sum / u64::from(self.block_units));
            let schedule = self.bucket.choose();
            self.bucket.update(&self.parameters, schedule, complement(mean));
            self.unit = 0;
            self.reward_sum = 0;
        }
    }
}

fn complement(reward: Loss) -> Loss {
    Loss::from_raw(Loss::ONE.to_raw() - reward.to_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::play_schedule;
    use bem_base::fixed::Fixed;

    const PLAIN: Parameters = Parameters { change: None, ..Parameters::DEFAULT };
    const LINEAR: LinearParameters = LinearParameters::DEFAULT;

    #[test]
    fn single_activities_get_three_tenths_and_schedules_almost_one_half() {
        let units = 400_000;
        let single = play_schedule(&mut Scheduler::activities(PLAIN), 1, units);
        assert!(Fixed::from_ratio(29, 100) < single && single < Fixed::from_ratio(31, 100), "{single}");
        let schedules = play_schedule(&mut Scheduler::schedules(PLAIN, 16), 1, units);
        assert!(Fixed::from_ratio(494, 1_000) < schedules && schedules <= Fixed::HALF, "{schedules}");
    }

    #[test]
    fn algorithm_d_sees_the_backlog_but_not_what_synthesis_will_pay_later() {
        let linear = play_schedule(&mut Scheduler::linear(LINEAR), 1, 20_000);
        assert!(Fixed::from_ratio(27, 100) < linear && linear < Fixed::from_ratio(36, 100), "{linear}");
    }

    #[test]
    fn a_safety_alarm_allows_acting_only_and_teaches_nothing() {
        let features = [Loss::ONE, Loss::ONE];
        let alarm = Situation { features: &features, safety_alarm: true, possible: [true; 3] };
        for mut scheduler in [
            Scheduler::Paced,
            Scheduler::activities(PLAIN),
            Scheduler::linear(LINEAR),
            Scheduler::schedules(PLAIN, 16),
        ] {
            let before = scheduler.clone();
            for _ in 0..50 {
                assert_eq!(scheduler.choose(&alarm), Activity::Act);
                scheduler.learn(&alarm, Activity::Act, Loss::ONE);
            }
            assert_eq!(scheduler, before);
        }
    }

    #[test]
    fn the_paced_order_searches_when_that_is_due_then_decides_and_otherwise_acts() {
        let mut paced = Scheduler::Paced;
        let mut chosen = |possible| paced.choose(&Situation { features: &[], safety_alarm: false, possible });
        assert_eq!(chosen([true, true, true]), Activity::Synthesize);
        assert_eq!(chosen([true, false, true]), Activity::Verify);
        assert_eq!(chosen([true, false, false]), Activity::Act);
    }

    #[test]
    fn what_cannot_be_done_is_never_chosen_however_promising() {
        let features = [Loss::ONE, Loss::ZERO];
        for mut scheduler in
            [Scheduler::activities(PLAIN), Scheduler::linear(LINEAR), Scheduler::schedules(PLAIN, 16)]
        {
            let mut searches = 0;
            for unit in 0..64 {
                // Nothing ever waits, so that there is nothing to verify.
                let possible = [true, unit % 2 == 0, false];
                let situation = Situation { features: &features, safety_alarm: false, possible };
                let activity = scheduler.choose(&situation);
                assert!(possible[activity as usize]);
                searches += u32::from(activity == Activity::Synthesize);
                let paid = if activity == Activity::Synthesize { Loss::ONE } else { Loss::ZERO };
                scheduler.learn(&situation, activity, paid);
            }
            assert!(8 <= searches, "{searches}");
        }
    }

    #[test]
    fn a_restored_scheduler_continues_as_if_never_saved() {
        let fresh =
            [Scheduler::activities(PLAIN), Scheduler::linear(LINEAR), Scheduler::schedules(PLAIN, 16)];
        for (position, scheduler) in fresh.iter().enumerate() {
            let mut lived = scheduler.clone();
            play_schedule(&mut lived, 3, 1_003);
            let mut writer = Writer::new();
            lived.encode(&mut writer);
            let bytes = writer.into_bytes();
            let mut restored = scheduler.clone();
            restored.restore(&mut Reader::new(&bytes)).unwrap();
            assert_eq!(restored, lived);
            let mut other = fresh[(position + 1) % 3].clone();
            let error = other.restore(&mut Reader::new(&bytes)).unwrap_err();
            assert_eq!(error.reason, "the state of another kind of scheduler");
            assert!(restored.restore(&mut Reader::new(&bytes[..bytes.len() - 1])).is_err());
            assert_eq!(restored, lived);
        }
    }

    proptest::proptest! {
        #[test]
        fn mutated_bytes_are_refused_or_give_a_scheduler_that_runs(
            kind in 0usize..3, place in 0usize..1_000, value in proptest::num::u8::ANY
        ) {
            let mut scheduler =
                [Scheduler::activities(PLAIN), Scheduler::linear(LINEAR), Scheduler::schedules(PLAIN, 16)][kind].clone();
            play_schedule(&mut scheduler, 4, 200);
            let mut writer = Writer::new();
            scheduler.encode(&mut writer);
            let mut bytes = writer.into_bytes();
            let place = place % bytes.len();
            bytes[place] = value;
            if scheduler.restore(&mut Reader::new(&bytes)).is_ok() {
                play_schedule(&mut scheduler, 5, 50);
            }
        }
    }

    #[test]
    fn every_schedule_fits_a_block_of_sixteen() {
        assert!(SCHEDULES.iter().all(|schedule| 16 % schedule.len() == 0));
    }
}
