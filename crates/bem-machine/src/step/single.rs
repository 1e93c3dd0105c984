//! One lane as fast as it goes: cached choice, compiled circuit, constant work, no allocation, no recursion.
//!
//! The lane is lane 0 of a block of its own, so that the same compiled code serves one lane and 256. Families that stand
//! for a world choose by turns ([`super::turns`]). Must not know
//! worlds: observation bits come in, an action goes out, an outcome comes back. Clauses: VM-13, VM-14, D-32, D-41.

use super::pending::{Choice, PendingRing};
use super::turns::Chosen;
use super::{StepNumber, Workspace, action_of, execute};
use crate::family::{ALL_ARMS, Family, Pick, STEP_BY_STEP};
use crate::held::Adapting;
use crate::machine::{EpisodeLog, Mode, PastStep};
use crate::memory::context::{ContextHash, FamilyIndex, TaskSerial};
use crate::memory::segment::{Caller, Segment};
use crate::memory::shared::{SharedMemory, env_word, trace_word, work_word};
use crate::route::Candidates;
use crate::route::directory::RouteInput;
use crate::trace::{TraceBuffer, TraceEvent};
use crate::turn::{Actor, Odds, Plan, Turn};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS, Outcome};
use bem_base::lanes::{LaneMask, LaneWord};
use bem_base::limits::{ARMS_MAX, STATE_BITS_MAX};
use bem_base::prng::Prng;
use bem_learn::tsallis_inf::Chance;

/// The only lane in use.
pub(super) const LANE: LaneMask = LaneWord::single(0);

/// Where an episode stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The family that plays.
    pub family: FamilyIndex,
    /// The task that plays.
    pub task: TaskSerial,
    /// Whether an episode is running.
    pub running: bool,
    /// The arm chosen for the whole episode; [`STEP_BY_STEP`] when there is none.
    pub episode_arm: u8,
    /// The chance that it had.
    pub episode_chance: Chance,
    /// Whose turn the episode is.
    pub turn: Turn,
    /// Some action of this episode was drawn, so that its return is no credit to the episode's arm.
    pub mixed: bool,
    /// Steps of this episode.
    pub steps: u32,
    /// The bucket of its first context.
    pub first_bucket: u16,
    /// The slots that acted in it, one bit each.
    pub arms_used: u16,
    /// Sum of rewards.
    pub episode_return: i64,
    /// Sum of payoffs: rewards less penalties.
    pub payoff_sum: i64,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            family: FamilyIndex::default(),
            task: TaskSerial::default(),
            running: false,
            episode_arm: STEP_BY_STEP as u8,
            episode_chance: Chance::default(),
            turn: Turn::INDEX,
            mixed: false,
            steps: 0,
            first_bucket: 0,
            arms_used: 0,
            episode_return: 0,
            payoff_sum: 0,
        }
    }
}

/// Everything about the one lane that outlives a step.
#[derive(Clone, Debug)]
pub struct SingleLane {
    pub(super) planes: Vec<LaneWord>,
    observation: Bits,
    pub(super) action: u16,
    /// The rule by which what is held adapts within the episode.
    pub(crate) adapting: Option<Adapting>,
    /// How chance took part in the last action.
    pub(crate) odds: Odds,
    context: ContextHash,
    pub(crate) progress: Progress,
    pub(crate) pending: PendingRing,
    pub(super) workspace: Workspace,
}

/// What the step borrows from the machine around it.
pub(crate) struct Surroundings<'a> {
    pub(crate) family: &'a mut Family,
    pub(crate) shared: &'a mut SharedMemory,
    pub(crate) trace: &'a mut TraceBuffer,
    pub(crate) episodes: &'a mut EpisodeLog,
    pub(crate) prng: &'a mut Prng,
    pub(crate) steps: &'a mut u64,
    pub(crate) mode: Mode,
}

impl SingleLane {
    /// An idle lane.
    pub(crate) fn new(window: u32, pending_max: usize) -> SingleLane {
        SingleLane {
            planes: vec![LaneWord::ZERO; STATE_BITS_MAX],
            observation: Bits::ZERO,
            action: 0,
            adapting: None,
            odds: Odds::CERTAIN,
            context: ContextHash::new(window),
            progress: Progress::default(),
            pending: PendingRing::new(pending_max),
            workspace: Workspace::default(),
        }
    }

    /// The planes; only lane 0 is in use.
    pub fn planes(&self) -> &[LaneWord] {
        &self.planes
    }

    /// The rolling hash of the recent past.
    pub fn context_hash(&self) -> u64 {
        self.context.value()
    }

    /// Starts an episode: clears action, outcome and memory, and chooses an expert for the whole of it or none.
    ///
    /// Choices of the episode before that still wait for a reward are given up. An expert that the turn names acts at
    /// every step.
    pub(crate) fn begin(
        &mut self,
        around: &mut Surroundings<'_>,
        family: FamilyIndex,
        task: TaskSerial,
        turn: Turn,
    ) {
        let layout = around.family.layout();
        let first = layout.action().start;
        let last = layout.memory().start + around.family.memory_used();
        self.planes[first..last].fill(LaneWord::ZERO);
        self.context.reset();
        self.pending.clear();
        let Pick { arm, chance } = match (turn.actor, around.family.is_world()) {
            (Actor::Member(slot), _) => Pick::certain(usize::from(slot)),
            (_, true) => Pick::certain(around.family.proposer(turn).unwrap_or(STEP_BY_STEP)),
            (_, false) => around.family.choose_episode(around.prng),
        };
        self.odds = Odds::CERTAIN;
        self.adapting = around.family.adapting_in(turn);
        self.progress = Progress {
            family,
            task,
            running: true,
            episode_arm: arm,
            episode_chance: chance,
            turn,
            ..Progress::default()
        };
        let mut view = around.shared.view_mut(Caller::FastPath);
        let work = view.segment_mut(Segment::Work).expect("the step writes WORK");
        work[work_word::FAMILY as usize] = u64::from(family.0);
        work[work_word::TASK as usize] = task.0;
        work[work_word::CONTEXT_HASH as usize] = 0;
        work[work_word::EPISODES as usize] += 1;
    }

    /// Steps 1 to 4 and the step record: from observation bits to an action.
    #[inline]
    pub(crate) fn act(&mut self, around: &mut Surroundings<'_>, observation: &Bits, plan: &dyn Plan) -> u16 {
        let family = &mut *around.family;
        self.see(family, observation);

        let Chosen { bucket, pick, sticky } = if family.is_world() {
            self.choose_in_world(around, observation, plan)
        } else {
            self.choose_in_pool(around)
        };
        self.publish_step(around.shared, *around.steps);

        let step = StepNumber(*around.steps);
        *around.steps += 1;
        self.progress.steps += 1;
        let facts = around.family.facts_of(pick.arm);
        self.pending.push(Choice {
            step,
            bucket,
            arm: pick.arm,
            action: self.action,
            generation: facts.generation,
            sticky,
            chance: pick.chance,
        });
        if around.mode == Mode::Learning {
            around.trace.append(TraceEvent::Step {
                family: self.progress.family.0,
                bucket,
                arm: pick.arm,
                action: self.action,
                step: step.0 as u32,
                cost: facts.cost,
            });
        }
        self.action
    }

    /// What is seen enters STATE.
    #[inline]
    fn see(&mut self, family: &Family, observation: &Bits) {
        let width = family.layout().observation().len();
        for (planes, word) in self.planes[..width].chunks_mut(64).zip(observation.0) {
            let mut word = word;
            for plane in planes {
                plane.0[0] = word & 1;
                word >>= 1;
            }
        }
        self.observation = *observation;
    }

    /// Brings the lane in step with a step that was taken before: circuits see what was seen and remember it, and what was
    /// done and brought stands in STATE. Nothing is drawn, credited or recorded.
    pub(crate) fn live_again(&mut self, around: &mut Surroundings<'_>, step: &PastStep) {
        self.see(around.family, &step.observation);
        self.relive(around, step.action);
        self.progress.steps += 1;
        let Some(outcome) = &step.outcome else { return };
        self.enter_outcome(around.family, outcome);
        if let Some(adapting) = &mut self.adapting {
            adapting.see(step.action, outcome.reward);
        }
    }

    /// An outcome enters STATE.
    #[inline]
    fn enter_outcome(&mut self, family: &Family, outcome: &Outcome) {
        let (layout, shape) = (family.layout(), family.shape());
        let upper =
            2 * i64::from(outcome.reward) >= i64::from(shape.reward_min) + i64::from(shape.reward_max);
        let (reward, bad) = (layout.reward(), layout.bad());
        self.planes[reward].0[0] = u64::from(upper);
        self.planes[bad].0[0] = u64::from(outcome.bad);
        let words = layout.observation().len().div_ceil(64);
        self.context.push(&self.observation.0[..words], self.action, outcome.reward);
    }

    /// Steps 2 to 4 in a family without plain actions: the pool's experts are all there is.
    #[inline]
    fn choose_in_pool(&mut self, around: &mut Surroundings<'_>) -> Chosen {
        let family = &mut *around.family;
        let is_named = matches!(self.progress.turn.actor, Actor::Member(_));
        let (bucket, pick, sticky) = match usize::from(self.progress.episode_arm) {
            arm if is_named && !family.is_sticky(arm) => {
                (self.bucket(family, around.shared), Pick::certain(arm), false)
            }
            STEP_BY_STEP => {
                let bucket = self.bucket(family, around.shared);
                let pick = if family.is_plain() {
                    Pick::certain(family.statistics.buckets[usize::from(bucket)].choose())
                } else {
                    let candidates = self.candidates(family, around.shared);
                    family.choose(bucket, candidates, around.prng)
                };
                (bucket, pick, false)
            }
            arm => (0, Pick::certain(arm), true),
        };
        let arm = usize::from(pick.arm);
        if self.progress.steps == 0 {
            self.progress.first_bucket = if sticky { self.bucket(family, around.shared) } else { bucket };
        }
        self.progress.arms_used |= 1 << (arm % ARMS_MAX);
        execute(family, arm, &mut self.planes, &LANE, around.shared, &mut self.workspace);
        self.action = self.proposed(family);
        Chosen { bucket, pick, sticky }
    }

    /// The action that stands in the planes.
    #[inline]
    pub(super) fn proposed(&self, family: &Family) -> u16 {
        let planes = self.planes[family.layout().action()].iter().enumerate();
        let number = planes.fold(0, |number, (bit, plane)| number | (plane.0[0] & 1) << bit);
        action_of(number, family.shape().actions)
    }

    #[inline]
    pub(super) fn bucket(&self, family: &Family, shared: &SharedMemory) -> u16 {
        let signature = family.signatures.signature(&self.observation, |input| match input {
            RouteInput::State(bit) => self.planes[usize::from(bit)].0[0] & 1 == 1,
            RouteInput::Shared { address, bit } => {
                let view = shared.view(Caller::FastPath);
                view.read_address(address).is_ok_and(|word| word >> bit & 1 == 1)
            }
        });
        family.directory.bucket(signature)
    }

    /// The arms that the Hamming router finds, or all; the work of the search is kept where it can be seen.
    fn candidates(&self, family: &Family, shared: &mut SharedMemory) -> u16 {
        let Some(search) = &family.search else { return ALL_ARMS };
        let mut found = Candidates::EMPTY;
        search.nearest(&search.fold(&self.observation), &mut found);
        let mut view = shared.view_mut(Caller::FastPath);
        let work = view.segment_mut(Segment::Work).expect("the step writes WORK");
        let most = &mut work[work_word::ROUTE_WORK_MAX as usize];
        *most = (*most).max(u64::from(found.work));
        found.arms()
    }

    #[inline]
    fn publish_step(&self, shared: &mut SharedMemory, step: u64) {
        let mut view = shared.view_mut(Caller::FastPath);
        let env = view.segment_mut(Segment::Env).expect("the step writes ENV");
        env[env_word::ACTION as usize] = u64::from(self.action);
        let first = env_word::OBSERVATION as usize;
        env[first..first + OBSERVATION_WORDS].copy_from_slice(&self.observation.0);
        let work = view.segment_mut(Segment::Work).expect("the step writes WORK");
        work[work_word::STEP_GLOBAL as usize] = step;
        work[work_word::CONTEXT_HASH as usize] = self.context.value();
    }

    /// Steps 5 to 7 for the action taken last: the outcome enters STATE, and is credited.
    #[inline]
    pub(crate) fn learn(&mut self, around: &mut Surroundings<'_>, outcome: &Outcome) {
        self.take_in(around, outcome);
        self.settle(around, StepNumber(*around.steps - 1), outcome);
        if outcome.done {
            self.finish(around);
        }
    }

    /// The outcome of the action taken last, whose reward is still to come: it enters STATE, and nothing is credited.
    pub(crate) fn defer(&mut self, around: &mut Surroundings<'_>, outcome: &Outcome) {
        self.take_in(around, outcome);
        if outcome.done {
            self.finish(around);
        }
    }

    /// Gives the running episode up: nobody is credited with it.
    pub(crate) fn abandon(&mut self) {
        self.pending.clear();
        self.progress.running = false;
        self.adapting = None;
    }

    /// The outcome enters STATE.
    #[inline]
    fn take_in(&mut self, around: &mut Surroundings<'_>, outcome: &Outcome) {
        self.enter_outcome(around.family, outcome);

        let mut view = around.shared.view_mut(Caller::FastPath);
        let env = view.segment_mut(Segment::Env).expect("the step writes ENV");
        env[env_word::REWARD as usize] = i64::from(outcome.reward) as u64;
        env[env_word::DONE as usize] = u64::from(outcome.done);
        env[env_word::BAD as usize] = u64::from(outcome.bad);
        let work = view.segment_mut(Segment::Work).expect("the step writes WORK");
        work[work_word::BAD_COUNT as usize] += u64::from(outcome.bad);

        if around.family.is_world() && around.mode == Mode::Learning {
            around.family.suspect(&self.observation, self.action, outcome.bad);
        }
    }

    /// Credits the outcome of one step, now or later; nothing happens if it has been settled before.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        around: &mut Surroundings<'_>,
        step: StepNumber,
        outcome: &Outcome,
    ) -> bool {
        let Some(choice) = self.pending.settle(step) else { return false };
        let arm = usize::from(choice.arm);
        self.progress.episode_return += i64::from(outcome.reward);
        let penalty = around.family.facts_of(choice.arm).penalty;
        self.progress.payoff_sum += around.family.statistics.payoff.payoff(outcome, penalty);
        if around.mode == Mode::Frozen {
            return true;
        }
        let delay = *around.steps - 1 - step.0;
        around.trace.append(TraceEvent::Reward {
            family: self.progress.family.0,
            arm: choice.arm,
            step: step.0 as u32,
            reward: outcome.reward,
            done: outcome.done,
            bad: outcome.bad,
            delay: delay.min(u64::from(u16::MAX)) as u16,
        });
        around.family.notice(outcome);
        if around.family.is_world() {
            around.family.credit_plain(choice.bucket, choice.action, outcome.reward, choice.drawn_with());
            if let Some(adapting) = &mut self.adapting {
                adapting.see(choice.action, outcome.reward);
            }
        }
        let is_member = arm < ARMS_MAX;
        if choice.sticky || !is_member || choice.generation != around.family.facts[arm].generation {
            return true;
        }
        let pick = Pick { arm: choice.arm, chance: choice.chance };
        if let Some(way) = around.family.credit_pick(choice.bucket, pick, outcome) {
            around.trace.append(TraceEvent::Reset {
                family: self.progress.family.0,
                bucket: choice.bucket,
                way,
                step: step.0 as u32,
            });
        }
        true
    }

    /// Ends the episode and credits it to the arm that was chosen at its start.
    pub(crate) fn finish(&mut self, around: &mut Surroundings<'_>) {
        self.progress.running = false;
        if around.mode == Mode::Frozen {
            return;
        }
        let progress = &self.progress;
        // A named arm says nothing about choosing step by step, and drawn actions nothing about any arm.
        let arm = usize::from(progress.episode_arm);
        let is_named = matches!(progress.turn.actor, Actor::Member(_));
        let is_choice = around.family.is_sticky(arm) || arm == STEP_BY_STEP && !is_named;
        if around.family.has_sticky() && is_choice && !progress.mixed {
            let pick = Pick { arm: progress.episode_arm, chance: progress.episode_chance };
            around.family.credit_episode(pick, progress.payoff_sum);
        }
        if !progress.mixed {
            around.episodes.push(around.family, progress);
        }
        around.trace.append(TraceEvent::Episode {
            family: progress.family.0,
            arm: progress.episode_arm,
            steps: progress.steps.min(u32::from(u16::MAX)) as u16,
            step: (*around.steps - 1) as u32,
            episode_return: progress.episode_return.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
        });
        let mut view = around.shared.view_mut(Caller::FastPath);
        let meta = view.segment_mut(Segment::TraceMeta).expect("the step writes TRACE_META");
        meta[trace_word::RECORDS as usize] = around.trace.appended();
    }

    /// Writes the canonical bytes: lane 0 of every plane, and the episode in flight.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        for planes in self.planes.chunks(64) {
            let word = planes.iter().enumerate().fold(0, |word, (bit, plane)| word | (plane.0[0] & 1) << bit);
            writer.u64(word);
        }
        self.observation.0.iter().for_each(|word| writer.u64(*word));
        writer.u16(self.action);
        self.context.encode(writer);
        let progress = &self.progress;
        writer.u16(progress.family.0);
        writer.u64(progress.task.0);
        writer.bool(progress.running);
        writer.u8(progress.episode_arm);
        progress.episode_chance.encode(writer);
        progress.turn.encode(writer);
        writer.bool(progress.mixed);
        writer.u32(progress.steps);
        writer.u16(progress.first_bucket);
        writer.u16(progress.arms_used);
        writer.i64(progress.episode_return);
        writer.i64(progress.payoff_sum);
        self.pending.encode(writer);
    }

    /// Reads canonical bytes.
    pub(crate) fn decode(pending_max: usize, reader: &mut Reader<'_>) -> Result<SingleLane, DecodeError> {
        let mut planes = vec![LaneWord::ZERO; STATE_BITS_MAX];
        for planes in planes.chunks_mut(64) {
            let word = reader.u64()?;
            for (bit, plane) in planes.iter_mut().enumerate() {
                plane.0[0] = word >> bit & 1;
            }
        }
        let observation = Bits([reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?]);
        let action = reader.u16()?;
        let context = ContextHash::decode(reader)?;
        let progress = Progress {
            family: FamilyIndex(reader.u16()?),
            task: TaskSerial(reader.u64()?),
            running: reader.bool()?,
            episode_arm: reader.u8()?,
            episode_chance: Chance::decode(reader)?,
            turn: Turn::decode(reader)?,
            mixed: reader.bool()?,
            steps: reader.u32()?,
            first_bucket: reader.u16()?,
            arms_used: reader.u16()?,
            episode_return: reader.i64()?,
            payoff_sum: reader.i64()?,
        };
        let pending = PendingRing::decode(pending_max, reader)?;
        Ok(SingleLane {
            planes,
            observation,
            action,
            adapting: None,
            odds: Odds::CERTAIN,
            context,
            progress,
            pending,
            workspace: Workspace::default(),
        })
    }
}
