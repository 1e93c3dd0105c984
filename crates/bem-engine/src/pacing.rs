//! What the next unit of work is spent on: the paced order, or one of three schedulers.
//!
//! Paced, the learner plays until a search is due, searches, and decides everything that waits. Scheduled, units of
//! three kinds follow as a [`Scheduler`] says: ACT plays a block of steps, SYNTH searches once, VERIFY decides the head
//! of the queue with all its rollouts. What makes no sense is overridden: no search without new data, no deciding where
//! nothing waits, and nothing else while the queue is full. A unit that puts a patch into force pays one, one that makes
//! a patch wait a quarter, acting an eighth of the mean return over its range, all else nothing. Work is counted in units
//! and steps, never in time.
//! Clauses: SCC-10, SCC-11, SCC-15; decision D-26.

use crate::learner::{Event, Learner, Phase, Witness};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::FRACTION_BITS;
use bem_learn::index::Parameters;
use bem_learn::linear_scheduler::LinearParameters;
use bem_learn::loss::Loss;
use bem_learn::schedule::{Activity, Scheduler, Situation};

/// How the order of work is decided. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Pacing {
    /// Play, search, decide all, and again, with growing pauses between searches.
    #[default]
    Paced = 0,
    /// A bandit over the three activities.
    Activities = 1,
    /// The contextual linear scheduler.
    #[doc(alias = "Algorithm D")]
    Linear = 2,
    /// A bandit over cyclic schedules.
    Schedules = 3,
}

impl Pacing {
    /// All of them, in order of their numbers.
    pub const ALL: [Pacing; 4] = [Pacing::Paced, Pacing::Activities, Pacing::Linear, Pacing::Schedules];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Pacing::Paced => "paced",
            Pacing::Activities => "activities",
            Pacing::Linear => "linear",
            Pacing::Schedules => "schedules",
        }
    }

    fn scheduler(self) -> Option<Scheduler> {
        const PLAIN: Parameters = Parameters { change: None, ..Parameters::DEFAULT };
        const LINEAR: LinearParameters = LinearParameters { features: FEATURES, ..LinearParameters::DEFAULT };
        match self {
            Pacing::Paced => None,
            Pacing::Activities => Some(Scheduler::activities(PLAIN)),
            Pacing::Linear => Some(Scheduler::linear(LINEAR)),
            Pacing::Schedules => Some(Scheduler::schedules(PLAIN, BLOCK_UNITS)),
        }
    }
}

/// What the linear scheduler looks at: a constant, whether patches wait, how new the log is, and the yield of late.
const FEATURES: usize = 4;
/// Units that one cyclic schedule is played for.
const BLOCK_UNITS: u32 = 16;
/// Steps of an ACT unit: at least these, and one in this many of those taken so far.
const ACT_STEPS_MIN: u64 = 32;
const ACT_STEPS_SHARE: u64 = 8;

/// A scheduler and the unit it has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    scheduler: Scheduler,
    /// The unit that runs, and what was seen when it was chosen; none before the first.
    unit: Option<(Activity, [Loss; FEATURES])>,
    /// An ACT unit ends at this step.
    pub(crate) act_until: u64,
    /// Steps taken when the log was last searched.
    searched_at: u64,
    /// Patches applied and patches waiting when the unit began.
    applied: u32,
    backlog: u32,
    /// Whether the unit has decided a patch.
    pub(crate) decided: bool,
    /// Returns of the unit, each as a share of its range, and how many.
    returns: (u64, u32),
}

impl Workload {
    /// The workload for a way of pacing; none where no scheduler is asked.
    pub(crate) fn new(pacing: Pacing) -> Option<Workload> {
        let scheduler = pacing.scheduler()?;
        Some(Workload {
            scheduler,
            unit: None,
            act_until: 0,
            searched_at: 0,
            applied: 0,
            backlog: 0,
            decided: false,
            returns: (0, 0),
        })
    }

    /// Books the return of an episode as a share of its range.
    pub(crate) fn book_return(&mut self, total: i64, (low, high): (i64, i64)) {
        let (gained, span) = (i128::from(total.clamp(low, high) - low), i128::from((high - low).max(1)));
        let share = ((gained << FRACTION_BITS) / span) as u64;
        // A unit is bounded by its steps, so that neither sum can overflow.
        self.returns = (self.returns.0 + share, self.returns.1 + 1);
    }

    /// Ends the unit that ran: the scheduler learns what it has paid.
    fn finish_unit(&mut self, applied: u32, backlog: u32) {
        let Some((activity, features)) = self.unit.take() else { return };
        let paid = if self.applied < applied {
            Loss::ONE
        } else if activity == Activity::Synthesize && self.backlog < backlog {
            Loss::from_raw(Loss::ONE.to_raw() / 4)
        } else if activity == Activity::Act && 0 < self.returns.1 {
            Loss::from_raw(self.returns.0 / u64::from(self.returns.1) / 8)
        } else {
            Loss::ZERO
        };
        let situation = Situation { features: &features, safety_alarm: false };
        self.scheduler.learn(&situation, activity, paid);
    }

    /// Writes the canonical bytes.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.scheduler.encode(writer);
        writer.u8(self.unit.map_or(u8::MAX, |(activity, _)| activity as u8));
        let features = self.unit.map_or([Loss::ZERO; FEATURES], |(_, features)| features);
        features.iter().for_each(|feature| writer.u64(feature.to_raw()));
        writer.u64(self.act_until);
        writer.u64(self.searched_at);
        writer.u32(self.applied);
        writer.u32(self.backlog);
        writer.bool(self.decided);
        writer.u64(self.returns.0);
        writer.u32(self.returns.1);
    }

    /// Reads canonical bytes into a fresh workload of the same pacing.
    pub(crate) fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let wild = reader.error("a unit of work that no scheduler can have chosen");
        self.scheduler.restore(reader)?;
        let number = usize::from(reader.u8()?);
        let mut features = [Loss::ZERO; FEATURES];
        for feature in &mut features {
            let raw = reader.u64()?;
            if Loss::ONE.to_raw() < raw {
                return Err(wild);
            }
            *feature = Loss::from_raw(raw);
        }
        self.unit = match number {
            255 if features == [Loss::ZERO; FEATURES] => None,
            number => Some((*Activity::ALL.get(number).ok_or(wild.clone())?, features)),
        };
        (self.act_until, self.searched_at) = (reader.u64()?, reader.u64()?);
        (self.applied, self.backlog, self.decided) = (reader.u32()?, reader.u32()?, reader.bool()?);
        self.returns = (reader.u64()?, reader.u32()?);
        let fits = self.act_until < 1 << 48
            && self.searched_at < 1 << 48
            && self.returns.0 <= u64::from(self.returns.1) << FRACTION_BITS
            && self.returns.1 < u32::MAX;
        if fits { Ok(()) } else { Err(wild) }
    }
}

impl Learner {
    /// Ends the unit that ran and begins the one that the scheduler chooses.
    pub(crate) fn next_unit(&mut self, witness: &mut dyn Witness) -> Event {
        let (steps, applied) = (self.tally.steps, self.tally.applied);
        let evolution = self.machinery.as_ref().map(|machinery| machinery.evolution());
        let backlog = evolution.map_or(0, |evolution| evolution.backlog());
        let capacity = evolution.map_or(1, |evolution| evolution.config().patches_pending_max as usize);
        let yield_share = evolution.and_then(|evolution| Loss::from_fixed(evolution.pox().yield_average()));
        let workload = self.workload.as_mut().expect("only a scheduler chooses units");
        workload.finish_unit(applied, backlog as u32);
        if self.settings.budget <= steps || self.is_done() {
            // Contexts grow when the log is searched; what acts at the end should know all of it.
            self.settle(witness);
            self.end_round();
            return Event::RoundEnded;
        }
        let workload = self.workload.as_mut().expect("only a scheduler chooses units");
        let fresh = steps - workload.searched_at.min(steps);
        let newness = Loss::from_raw((fresh << 32) / steps.max(1));
        let features = [Loss::ONE, Loss::from_bit(0 < backlog), newness, yield_share.unwrap_or(Loss::ZERO)];
        let situation = Situation { features: &features, safety_alarm: false };
        let activity = match workload.scheduler.choose(&situation) {
            _ if capacity <= backlog => Activity::Verify,
            Activity::Synthesize if fresh == 0 || !self.settings.synthesis => Activity::Act,
            Activity::Verify if backlog == 0 => Activity::Act,
            activity => activity,
        };
        workload.unit = Some((activity, features));
        (workload.applied, workload.backlog) = (applied, backlog as u32);
        (workload.decided, workload.returns) = (false, (0, 0));
        match activity {
            Activity::Act => {
                workload.act_until = steps + (steps / ACT_STEPS_SHARE).max(ACT_STEPS_MIN);
                Event::RoundEnded
            }
            Activity::Synthesize => {
                workload.searched_at = steps;
                self.search(witness)
            }
            Activity::Verify => {
                self.tested_before = Some(self.tested.len() as u64);
                self.phase = Phase::Judge;
                Event::RoundEnded
            }
        }
    }
}
