//! The policy machine as its owner sees it: families, one lane that acts, and everything saved in one piece.
//!
//! ```text
//! machine.begin(family, task)?;
//! loop {
//!     let action = machine.act(world.observation())?;
//!     let outcome = world.step(action)?;
//!     machine.learn(&outcome)?;
//!     if outcome.done { break }
//! }
//! ```
//!
//! The owner drains the trace between steps and calls [`Machine::barrier`] between episodes. What may change structure is
//! the machine's type parameter ([`edit`]): a machine that takes accepted patches takes nothing else. Must not know
//! worlds, provers or files. Clauses: VM-13, VM-15, D-41.

mod apart;
mod barrier;
mod edit;
mod encode;
mod worlds;

pub use apart::PastStep;
pub(crate) use barrier::EpisodeLog;
pub use edit::{Edit, Open, Permit, Undo, edited};
pub use worlds::WORLDS_KEPT;

use crate::boot::{self, BootExpert};
use crate::config::GenesisConfig;
use crate::expert::ExpertParts;
use crate::family::{Counted, Family, FamilyError};
use crate::memory::context::{FamilyIndex, TaskSerial};
use crate::memory::shared::SharedMemory;
use crate::route::directory::RouteInput;
use crate::step::StepNumber;
use crate::step::single::{Progress, SingleLane, Surroundings};
use crate::trace::{RECORDS_PER_STEP, TraceBuffer};
use crate::turn::{Actor, Odds, Plan, Turn};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::ids::{ObjectClass, ObjectId};
use bem_base::prng::Prng;
use core::marker::PhantomData;

/// Records that the trace holds before it must be drained: 64 KiB.
pub const TRACE_RECORDS: usize = 4_096;
/// Choices that may wait for their reward at once.
pub const PENDING_MAX: usize = 4_096;

/// Whether outcomes change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Choices explore, outcomes are booked and recorded.
    Learning,
    /// Choices are those the machine trusts most; nothing is booked or recorded.
    Frozen,
}

/// Why the machine refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// No such family.
    #[error("family {family} is out of range: there are {count}")]
    UnknownFamily {
        /// The family asked for.
        family: u16,
        /// Families there are.
        count: usize,
    },
    /// All families are in use.
    #[error("all {maximum} families are in use (T_tasks_max)")]
    TooManyFamilies {
        /// Families there may be.
        maximum: u32,
    },
    /// All expert identifiers or places are in use.
    #[error("all {maximum} experts are in use (S)")]
    TooManyExperts {
        /// Experts there may be.
        maximum: u32,
    },
    /// A step outside an episode.
    #[error("no episode is running: begin one first")]
    NoEpisode,
    /// The trace must be drained first.
    #[error("the trace is full: drain it before the next step")]
    TraceFull,
    /// Too many choices wait for their reward.
    #[error("{PENDING_MAX} choices wait for their reward: settle some before the next step")]
    PendingFull,
    /// A reward for a step that is unknown or has been rewarded.
    #[error("step {step} does not wait for a reward")]
    NotPending {
        /// The step named.
        step: u64,
    },
    /// A change that does not apply to the family as it is.
    #[error("the change does not apply to the family as it is")]
    NotApplicable,
    /// A turn of the trial seat where nobody sits.
    #[error("nobody is in the trial seat")]
    NobodySeated,
    /// A change to a family was refused.
    #[error(transparent)]
    Family(#[from] FamilyError),
}

/// The machine; `P` is what changes its structure.
#[derive(Clone, Debug)]
pub struct Machine<P = Open> {
    config: GenesisConfig,
    mode: Mode,
    families: Vec<Family>,
    shared: SharedMemory,
    trace: TraceBuffer,
    lane: SingleLane,
    episodes: EpisodeLog,
    prng: Prng,
    steps: u64,
    expert_next: u32,
    permits: PhantomData<fn(&P)>,
}

impl Machine<Open> {
    /// A machine without families that anyone may change: for benchmarks, tests and programs of the control core. The
    /// configuration must have been checked.
    pub fn new(config: GenesisConfig, seed: u64) -> Machine<Open> {
        Machine::sealed(config, seed)
    }

    /// A family, to be changed by whoever may change structure.
    pub fn family_mut(&mut self, family: FamilyIndex) -> Result<&mut Family, MachineError> {
        let count = self.families.len();
        let unknown = MachineError::UnknownFamily { family: family.0, count };
        self.families.get_mut(usize::from(family.0)).ok_or(unknown)
    }

    /// A family, SHARED and the trace at once: what a step over lanes borrows.
    pub fn parts(
        &mut self,
        family: FamilyIndex,
    ) -> Result<(&mut Family, &mut SharedMemory, &mut TraceBuffer), MachineError> {
        self.family(family)?;
        Ok((&mut self.families[usize::from(family.0)], &mut self.shared, &mut self.trace))
    }

    /// Installs boot experts; those that do not fit any more are left out. Returns how many were installed.
    pub fn install_boot_experts(
        &mut self,
        family: FamilyIndex,
        experts: &[BootExpert],
    ) -> Result<usize, MachineError> {
        let mut installed = 0;
        for expert in experts {
            if *expert == BootExpert::Noop {
                continue;
            }
            let parts = boot::parts(self.family(family)?.layout(), *expert);
            let Ok(parts) = parts else { continue };
            match self.install(family, parts) {
                Ok(_) => installed += 1,
                Err(MachineError::Family(FamilyError::PoolFull { .. })) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(installed)
    }

    /// Installs an expert in a family's pool; returns its slot.
    pub fn install(&mut self, family: FamilyIndex, parts: ExpertParts) -> Result<usize, MachineError> {
        self.family(family)?;
        let id = self.next_expert_id()?;
        Ok(self.families[usize::from(family.0)].install(&self.config, id, parts)?)
    }

    /// Puts another expert into a slot and keeps its statistics.
    pub fn replace(
        &mut self,
        family: FamilyIndex,
        slot: usize,
        parts: ExpertParts,
    ) -> Result<(), MachineError> {
        self.family(family)?;
        let id = self.next_expert_id()?;
        Ok(self.families[usize::from(family.0)].replace(&self.config, slot, id, parts)?)
    }

    /// Takes an expert out of a family's pool.
    pub fn retire(&mut self, family: FamilyIndex, slot: usize) -> Result<(), MachineError> {
        Ok(self.family_mut(family)?.retire(slot)?)
    }

    /// Splits a bucket by the parity of some bits; returns the new bucket.
    pub fn split(
        &mut self,
        family: FamilyIndex,
        bucket: u16,
        by: &[RouteInput],
    ) -> Result<u16, MachineError> {
        Ok(self.family_mut(family)?.split(bucket, by)?)
    }

    /// A copy that trusts what it has seen most and learns nothing: for evaluation.
    #[must_use]
    pub fn frozen(&self) -> Machine<Open> {
        let mut copy = self.clone();
        copy.mode = Mode::Frozen;
        copy.lane.pending.clear();
        copy.families.iter_mut().for_each(Family::make_pessimistic);
        copy
    }
}

impl<P> Machine<P> {
    /// A machine without families whose structure only a `P` changes. The configuration must have been checked.
    pub fn sealed(config: GenesisConfig, seed: u64) -> Machine<P> {
        config.check().expect("a machine starts from a checked configuration");
        Machine {
            mode: Mode::Learning,
            families: Vec::new(),
            shared: SharedMemory::new(&config),
            trace: TraceBuffer::new(TRACE_RECORDS),
            lane: SingleLane::new(config.context_window, PENDING_MAX),
            episodes: EpisodeLog::new(config.group_period as usize),
            prng: Prng::stream(seed, "machine/choice"),
            steps: 0,
            expert_next: 1,
            permits: PhantomData,
            config,
        }
    }

    /// The configuration.
    pub fn config(&self) -> &GenesisConfig {
        &self.config
    }

    /// SHARED; callers reach it through views.
    pub fn shared(&self) -> &SharedMemory {
        &self.shared
    }

    /// SHARED, to be written through views.
    pub fn shared_mut(&mut self) -> &mut SharedMemory {
        &mut self.shared
    }

    /// The records that wait to be drained.
    pub fn trace(&self) -> &TraceBuffer {
        &self.trace
    }

    /// The trace, to be drained.
    pub fn trace_mut(&mut self) -> &mut TraceBuffer {
        &mut self.trace
    }

    /// The one lane.
    pub fn lane(&self) -> &SingleLane {
        &self.lane
    }

    /// The register that rules which draw take their randomness from.
    #[doc(alias = "seed")]
    pub fn prng(&self) -> &Prng {
        &self.prng
    }

    /// Where the episode stands.
    pub fn progress(&self) -> &Progress {
        &self.lane.progress
    }

    /// Steps since the start of the machine.
    pub fn steps(&self) -> StepNumber {
        StepNumber(self.steps)
    }

    /// How many families there are.
    pub fn family_count(&self) -> usize {
        self.families.len()
    }

    /// A family.
    pub fn family(&self, family: FamilyIndex) -> Result<&Family, MachineError> {
        let count = self.families.len();
        let unknown = MachineError::UnknownFamily { family: family.0, count };
        self.families.get(usize::from(family.0)).ok_or(unknown)
    }

    /// Adds a family for worlds of this shape, with NOOP alone in its pool.
    pub fn add_family(&mut self, shape: Shape) -> Result<FamilyIndex, MachineError> {
        let maximum = self.config.families_max;
        if maximum as usize <= self.families.len() {
            return Err(MachineError::TooManyFamilies { maximum });
        }
        self.families.push(Family::new(&self.config, shape)?);
        Ok(FamilyIndex(self.families.len() as u16 - 1))
    }

    fn next_expert_id(&mut self) -> Result<ObjectId, MachineError> {
        let in_use: usize = self.families.iter().map(|family| family.occupied().count()).sum();
        let maximum = self.config.experts_max;
        if maximum as usize <= in_use || 1 << 20 <= self.expert_next {
            return Err(MachineError::TooManyExperts { maximum });
        }
        let id = ObjectId::new(ObjectClass::Expert, self.expert_next);
        self.expert_next += 1;
        Ok(id)
    }

    /// Whether outcomes change anything.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    fn surroundings(&mut self, family: usize) -> (&mut SingleLane, Surroundings<'_>) {
        let around = Surroundings {
            family: &mut self.families[family],
            shared: &mut self.shared,
            trace: &mut self.trace,
            episodes: &mut self.episodes,
            prng: &mut self.prng,
            steps: &mut self.steps,
            mode: self.mode,
        };
        (&mut self.lane, around)
    }

    /// Starts an episode in which the index chooses. One that is still running is given up without credit.
    pub fn begin(&mut self, family: FamilyIndex, task: TaskSerial) -> Result<(), MachineError> {
        self.begin_turn(family, task, Turn::INDEX)
    }

    /// Starts an episode of this turn. An expert that the turn names is credited as if it had been chosen.
    pub fn begin_turn(
        &mut self,
        family: FamilyIndex,
        task: TaskSerial,
        turn: Turn,
    ) -> Result<(), MachineError> {
        let known = self.family(family)?;
        match turn.actor {
            Actor::Member(slot) if known.expert(usize::from(slot)).is_none() => {
                return Err(FamilyError::EmptySlot { slot: usize::from(slot) }.into());
            }
            Actor::Seat if known.seat.is_none() => return Err(MachineError::NobodySeated),
            _ => {}
        }
        let (lane, mut around) = self.surroundings(usize::from(family.0));
        lane.begin(&mut around, family, task, turn);
        Ok(())
    }

    /// How chance took part in the action of [`Machine::act`].
    pub fn odds(&self) -> Odds {
        self.lane.odds
    }

    /// The register, for whoever decides whose turn comes next: turns and draws are one stream.
    pub fn prng_mut(&mut self) -> &mut Prng {
        &mut self.prng
    }

    /// Seats a circuit that is measured: between episodes, or in one of its own that is restored. It can be named by a turn
    /// and is chosen by nobody.
    pub fn try_on(&mut self, family: FamilyIndex, parts: ExpertParts) -> Result<(), MachineError> {
        self.family(family)?;
        Ok(self.families[usize::from(family.0)].try_on(&self.config, parts)?)
    }

    /// Empties the trial seat.
    pub fn vacate(&mut self, family: FamilyIndex) -> Result<(), MachineError> {
        self.family(family)?;
        self.families[usize::from(family.0)].vacate();
        Ok(())
    }

    /// Replaces the statistics of plain actions by those that were counted in the log, bucket by bucket.
    pub fn count_anew<'s>(
        &mut self,
        family: FamilyIndex,
        counted: impl Iterator<Item = &'s [Counted]>,
    ) -> Result<(), MachineError> {
        self.family(family)?;
        self.families[usize::from(family.0)].count_anew(counted);
        Ok(())
    }

    /// The world of a family has paid beyond its range: losses so far are brought onto the wider one.
    pub fn cover(&mut self, family: FamilyIndex, shape: &Shape) -> Result<(), MachineError> {
        self.family(family)?;
        self.families[usize::from(family.0)].cover(shape);
        Ok(())
    }

    /// Brings the rule by which what is held adapts in step with an episode that is played again: actions and rewards.
    pub fn adapt_again(&mut self, played: impl Iterator<Item = (u16, i32)>) {
        let Ok(family) = self.family(self.lane.progress.family) else { return };
        let is_running = self.lane.progress.running;
        let mut adapting = family.adapting_in(self.lane.progress.turn).filter(|_| is_running);
        if let Some(rule) = &mut adapting {
            played.for_each(|(action, reward)| rule.see(action, reward));
        }
        self.lane.adapting = adapting;
    }

    /// Chooses an expert for what is seen and lets it act; the action is within the world's range.
    #[inline]
    #[doc(alias = "STEP_FAST")]
    pub fn act(&mut self, observation: &Bits) -> Result<u16, MachineError> {
        self.act_with(observation, &())
    }

    /// The same in an episode for which the owner lends a plan.
    #[inline]
    pub fn act_with(&mut self, observation: &Bits, plan: &dyn Plan) -> Result<u16, MachineError> {
        if !self.lane.progress.running {
            return Err(MachineError::NoEpisode);
        }
        if self.trace.room() < RECORDS_PER_STEP {
            return Err(MachineError::TraceFull);
        }
        if !self.lane.pending.has_room() {
            return Err(MachineError::PendingFull);
        }
        let family = usize::from(self.lane.progress.family.0);
        let (lane, mut around) = self.surroundings(family);
        Ok(lane.act(&mut around, observation, plan))
    }

    /// The family of the running episode, in which an action was taken; the trace has room for what it brings.
    #[inline]
    fn acting_family(&self) -> Result<usize, MachineError> {
        if !self.lane.progress.running || self.lane.progress.steps == 0 {
            return Err(MachineError::NoEpisode);
        }
        if self.trace.room() < RECORDS_PER_STEP {
            return Err(MachineError::TraceFull);
        }
        Ok(usize::from(self.lane.progress.family.0))
    }

    /// The outcome of the action taken last.
    #[inline]
    pub fn learn(&mut self, outcome: &Outcome) -> Result<(), MachineError> {
        let family = self.acting_family()?;
        let (lane, mut around) = self.surroundings(family);
        lane.learn(&mut around, outcome);
        Ok(())
    }

    /// The outcome of the action taken last, whose reward is still to come.
    pub fn defer(&mut self, outcome: &Outcome) -> Result<(), MachineError> {
        let family = self.acting_family()?;
        let (lane, mut around) = self.surroundings(family);
        lane.defer(&mut around, outcome);
        Ok(())
    }

    /// Whether another choice may wait for its reward.
    pub fn has_room_to_wait(&self) -> bool {
        self.lane.pending.has_room()
    }

    /// Gives the running episode up, with all choices that wait for a reward: nobody is credited with it.
    pub fn abandon(&mut self) {
        self.lane.abandon();
    }

    /// The outcome of an earlier step of this episode, which came late.
    pub fn learn_late(&mut self, step: StepNumber, outcome: &Outcome) -> Result<(), MachineError> {
        if self.trace.room() < RECORDS_PER_STEP {
            return Err(MachineError::TraceFull);
        }
        let family = usize::from(self.lane.progress.family.0);
        self.family(self.lane.progress.family)?;
        let (lane, mut around) = self.surroundings(family);
        if lane.settle(&mut around, step, outcome) {
            Ok(())
        } else {
            Err(MachineError::NotPending { step: step.0 })
        }
    }

    /// Ends an episode whose last outcome came late or whose world stopped without saying so.
    pub fn finish(&mut self) -> Result<(), MachineError> {
        let family = self.acting_family()?;
        let (lane, mut around) = self.surroundings(family);
        lane.finish(&mut around);
        Ok(())
    }
}
