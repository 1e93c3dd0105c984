//! The live machine in one world, and the way of patches about it.
//!
//! One family, the machine's last, stands for the world; the others rest. Whatever reaches the world is chosen by the machine, in the turn that the learner names;
//! what acts frozen is what the family holds, as one circuit, which is kept here until the structure changes. Must not know
//! what an episode is played for. Clauses: VM-13, VM-16, LOG-1; decisions D-18, D-41, D-42.

use crate::learner::standing::Incumbent;
use crate::shard::Shard;
use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, EnvironmentError, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_evolve::apply::Live;
use bem_evolve::evolution::{self as patches, Advance, Claim, Evolution, Surroundings};
use bem_evolve::improvement::Account;
use bem_evolve::improvement::interleaved::{Earlier, Played};
use bem_evolve::patch::{Change, ExpectedEffects};
use bem_evolve::propose::{Notebook, Proposal};
use bem_evolve::rebuild::frozen;
use bem_evolve::rollout::Rollout;
use bem_evolve::verify::Improvement;
use bem_learn::wide::Advice;
use bem_machine::config::GenesisConfig;
use bem_machine::family::{Counted, Family, STEP_BY_STEP};
use bem_machine::machine::{Machine, Mode, PastStep, WORLDS_KEPT};
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::step::StepNumber;
use bem_machine::trace::{Record, TraceEvent};
use bem_machine::turn::{Actor, Odds, Plan, Turn};
use bem_synth::experience::{Episode, Step};
use bem_synth::policy::Policy;
use std::sync::Arc;

/// Records of one block: 64 KiB.
pub(super) const BLOCK_RECORDS: usize = 4_096;
/// Slots that are kept free for what will be found.
const FREE_SLOTS_MIN: usize = 2;

/// Barriers that a unit has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Barriers {
    /// How many.
    pub passed: u64,
    /// Priors of experts that group advantages have moved.
    pub moved: u64,
}

impl Barriers {
    fn encode(self, writer: &mut Writer) {
        writer.u64(self.passed);
        writer.u64(self.moved);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Barriers, DecodeError> {
        Ok(Barriers { passed: reader.u64()?, moved: reader.u64()? })
    }
}

/// The machine at work in one world, and the way of patches about it. Invariants: its trace is empty between steps; the frozen
/// policy is that of the family.
#[derive(Clone, Debug)]
pub(super) struct Machinery {
    machine: Live,
    /// The family of the world that is played, the last of the machine's.
    index: FamilyIndex,
    /// What is known of what the other families hold.
    resting: Vec<Incumbent>,
    /// Steps that the machine had chosen when the unit began.
    steps_before: u64,
    evolution: Evolution,
    frozen: Arc<Policy>,
    /// What acted when it was last looked at: the revision of the structure, and the digest.
    looked_at: (u64, Digest),
    /// Records that no block holds yet.
    records: Vec<Record>,
    barriers: Barriers,
}

impl Machinery {
    /// A machine for worlds of this shape, with what is known of what it holds; a world that it cannot hold is refused with
    /// the reason. A machine that has worked before is taken up.
    pub(super) fn take_up(
        shard: Option<Shard>,
        config: &GenesisConfig,
        seed: u64,
        shape: &Shape,
    ) -> Result<(Machinery, Incumbent), EnvironmentError> {
        let refused =
            |reason: String| EnvironmentError::External(format!("this world does not fit: {reason}"));
        config.check().map_err(|error| refused(error.to_string()))?;
        let (mut machine, incumbents) = match shard {
            Some(Shard { machine, incumbents }) if machine.config() == config => (machine, incumbents),
            _ => (Machine::sealed(config.clone(), seed), Vec::new()),
        };
        // Whose turn it is and what is drawn in it come from one stream of the unit.
        *machine.prng_mut() = Prng::stream(seed, "engine/explore");
        let mut known: Vec<(Shape, Incumbent)> = (0..machine.family_count() as u16)
            .filter_map(|index| Some(machine.family(FamilyIndex(index)).ok()?.shape().clone()))
            .zip(incumbents)
            .collect();
        let index = machine.take_up(shape).map_err(|error| refused(error.to_string()))?;
        let mut incumbent_of = |index: u16| {
            let shape = machine.family(FamilyIndex(index)).ok()?.shape();
            let place = known.iter().position(|(known, _)| known == shape)?;
            Some(known.swap_remove(place).1)
        };
        let incumbent = incumbent_of(index.0).unwrap_or_else(Incumbent::at_boot);
        let resting = (0..index.0).filter_map(incumbent_of).collect();
        let family = machine.family(index).expect("just taken up");
        let frozen = frozen(family).ok_or_else(|| refused("plain actions are no circuit".to_string()))?;
        let looked_at = (family.revision(), acting_digest(family));
        let (evolution, frozen) = (Evolution::new(config.clone()), Arc::new(frozen));
        let (steps_before, records) = (machine.steps().0, Vec::new());
        let barriers = Barriers::default();
        let machinery = Machinery {
            machine,
            index,
            resting,
            steps_before,
            evolution,
            frozen,
            looked_at,
            records,
            barriers,
        };
        Ok((machinery, incumbent))
    }

    /// The machine, for the next unit; who was measured leaves the trial seat.
    pub(super) fn into_shard(self, incumbent: Incumbent) -> Shard {
        let Machinery { mut machine, index, resting: mut incumbents, .. } = self;
        machine.vacate(index).expect("the family is there");
        // A world that failed in the middle of a step leaves a choice without an outcome.
        machine.trace_mut().drain(|_| {});
        incumbents.push(incumbent);
        Shard { machine, incumbents }
    }

    /// The family with its structure and statistics.
    pub(super) fn family(&self) -> &Family {
        self.machine.family(self.index).expect("the family is added at the start")
    }

    /// What acts frozen, as one circuit.
    pub(super) fn frozen(&self) -> &Arc<Policy> {
        &self.frozen
    }

    /// Names what acts frozen, how it adapts within an episode included. It is asked for with every pair, and derived again
    /// only where the structure has been touched since it was last looked at.
    pub(super) fn acting_digest(&self) -> Digest {
        let (revision, digest) = self.looked_at;
        if revision == self.family().revision() { digest } else { acting_digest(self.family()) }
    }

    /// Whether what acts frozen has changed since this was last asked. It is derived from the structure each time that has
    /// been touched, whoever touched it.
    pub(super) fn has_changed(&mut self) -> bool {
        let revision = self.family().revision();
        if self.looked_at.0 == revision {
            return false;
        }
        let digest = self.acting_digest();
        let before = core::mem::replace(&mut self.looked_at, (revision, digest));
        before.1 != digest
    }

    /// The slot of the expert that is held, if one is.
    pub(super) fn held_slot(&self) -> Option<usize> {
        self.family().held().member()
    }

    /// What acted before the latest patch, if that can still be taken back.
    pub(super) fn turn_before(&self) -> Option<Turn> {
        let undo = self.evolution.watched_undo()?;
        Some(undo.held().map_or(Turn::PLAIN, |slot| Turn::member(slot as u8)))
    }

    /// What proposers have written down.
    pub(super) fn notebook_mut(&mut self) -> &mut Notebook {
        self.evolution.notebook_mut()
    }

    /// Enters a test that is made on the log; the chance of error that it is granted is one over this.
    pub(super) fn enter_test(&mut self, account: Account) -> u128 {
        self.evolution.enter_test(account)
    }

    /// The way of patches.
    pub(super) fn evolution(&self) -> &Evolution {
        &self.evolution
    }

    /// What an approval may add to the score of a patch from now on.
    pub(super) fn lend_approval(&mut self, approval: Fixed) {
        self.evolution.lend_approval(approval);
    }

    /// Patches are numbered behind those of another machine.
    pub(super) fn number_after(&mut self, other: &Machinery) {
        self.evolution.number_after(other.evolution.latest());
    }

    /// The register that turns and draws come from.
    pub(super) fn prng_mut(&mut self) -> &mut Prng {
        self.machine.prng_mut()
    }

    /// Steps that the machine has chosen in this unit.
    pub(super) fn steps(&self) -> u64 {
        self.machine.steps().0 - self.steps_before
    }

    /// Decides a change on the evidence that it brings; nothing where the queue is full, which is counted. Only between
    /// episodes.
    pub(super) fn decide_at_once(
        &mut self,
        proposal: Proposal,
        span: i64,
        step: u64,
    ) -> Option<patches::Record> {
        let surroundings = Surroundings { step, span: Some(span), unpaired: None };
        let record =
            self.evolution.decide_at_once(&mut self.machine, self.index, proposal, &surroundings).ok()?;
        self.adopt();
        Some(record)
    }

    /// Takes a proposal in as PENDING; its serial, or nothing where the queue is full, which is counted.
    pub(super) fn submit(&mut self, proposal: Proposal) -> Option<u64> {
        self.evolution.submit(&self.machine, self.index, proposal).ok()
    }

    /// Decides the next waiting patch on the evidence at hand, or opens its trial, whose differences are weighed by the
    /// range of returns seen so far. Only between episodes.
    pub(super) fn decide_next(&mut self, span: i64, unpaired: Option<Earlier>, step: u64) -> Advance {
        let surroundings = Surroundings { step, span: Some(span), unpaired };
        let advance = self.evolution.advance(&mut self.machine, &surroundings);
        self.adopt();
        advance
    }

    /// Books a pair of the open trial; a record when it is decided. Only between episodes.
    pub(super) fn book_pair(&mut self, new: &Rollout, old: &Rollout, step: u64) -> Option<patches::Record> {
        let record = self.evolution.book_pair(&mut self.machine, new, old, step)?;
        self.adopt();
        Some(record)
    }

    /// Books an episode of the open trial where there are no pairs; a record when it is decided. Only between episodes.
    pub(super) fn book_episode(&mut self, played: &Played, step: u64) -> Option<patches::Record> {
        let record = self.evolution.book_episode(&mut self.machine, played, step)?;
        self.adopt();
        Some(record)
    }

    /// Books an episode of the open trial in which both would have done the same; a record when it is decided. Only between
    /// episodes.
    pub(super) fn pass_episode(&mut self, step: u64) -> Option<patches::Record> {
        let record = self.evolution.pass_episode(&mut self.machine, step)?;
        self.adopt();
        Some(record)
    }

    /// Books an episode of the watch where there are no pairs; a record if the latest patch is taken back. Only between
    /// episodes.
    pub(super) fn book_watch_episode(
        &mut self,
        played: &Played,
        earlier: Earlier,
        step: u64,
    ) -> Option<patches::Record> {
        let record = self.evolution.book_watch_episode(&mut self.machine, played, earlier, step)?;
        self.adopt();
        Some(record)
    }

    /// Gives the open trial up.
    pub(super) fn abandon_trial(&mut self, step: u64, reason: &str) -> Option<patches::Record> {
        self.evolution.abandon_trial(&mut self.machine, step, reason)
    }

    /// Withdraws every patch that waits.
    pub(super) fn withdraw(&mut self) {
        self.evolution.withdraw();
    }

    /// Books a pair of the watch; a record if the latest patch is taken back. Only between episodes.
    pub(super) fn book_watch(&mut self, new: &Rollout, old: &Rollout, step: u64) -> Option<patches::Record> {
        let record = self.evolution.book_watch(&mut self.machine, new, old, step)?;
        self.adopt();
        Some(record)
    }

    /// The structure may have changed: what acts frozen is derived from it again.
    fn adopt(&mut self) {
        let frozen =
            frozen(self.family()).expect("what may be held is a circuit of what is seen and remembered");
        if frozen != *self.frozen {
            self.frozen = Arc::new(frozen);
        }
    }

    /// Where the pool is nearly full: a RETIRE of an expert that is neither held nor the one before.
    pub(super) fn propose_room(&self) -> Option<Proposal> {
        let family = self.family();
        let free = self.evolution.config().expert_slots as usize - family.occupied().count();
        let before = self.evolution.watched_undo().and_then(|undo| undo.held());
        let kept = [Some(STEP_BY_STEP), self.held_slot(), before];
        let (slot, _) = family.occupied().find(|(slot, _)| !kept.contains(&Some(*slot)))?;
        (free < FREE_SLOTS_MIN).then(|| Proposal {
            change: Change::Retire { slot: slot as u8 },
            improvement: Some(Improvement::Static),
            effects: ExpectedEffects::default(),
            words: format!("retire slot {slot}, which is not held, to make room"),
        })
    }

    /// The statistics of plain actions become those of these steps, bucket by bucket.
    pub(super) fn count_anew(&mut self, counted: &[Vec<Counted>]) {
        let steps = counted.iter().map(Vec::as_slice);
        self.machine.count_anew(self.index, steps).expect("the family is added at the start");
    }

    /// The world has paid beyond its range.
    pub(super) fn cover(&mut self, shape: &Shape) {
        self.machine.cover(self.index, shape).expect("the family is added at the start");
    }

    /// An episode of this task begins.
    pub(super) fn begin(&mut self, task: TaskSerial, turn: Turn) {
        let begun = self.machine.begin_turn(self.index, task, turn);
        begun.expect("a turn is begun where its actor is");
    }

    /// The machine's action for what is seen.
    #[inline]
    pub(super) fn act(&mut self, observation: &Bits, plan: &dyn Plan) -> u16 {
        self.machine.act_with(observation, plan).expect("an episode runs and the trace is empty")
    }

    /// The machine's action in one of many episodes, which lies behind in these steps, and how chance took part in it.
    pub(super) fn act_apart(
        &mut self,
        turn: Turn,
        past: &[PastStep],
        observation: &Bits,
        plan: &dyn Plan,
    ) -> (u16, Odds) {
        // Who sat on trial may have left since the episode began: what is held goes on in its place.
        let is_vacant = turn.actor == Actor::Seat && !self.family().is_seat_taken();
        let turn = if is_vacant { Turn { actor: Actor::Held, ..turn } } else { turn };
        let acted = self.machine.act_apart(self.index, turn, past, observation, plan);
        acted.expect("the family is there, and a seat is empty or taken")
    }

    /// What an action brought that was chosen apart.
    pub(super) fn book_apart(&mut self, observation: &Bits, acted: (u16, Odds), outcome: &Outcome) {
        let booked = self.machine.book_apart(self.index, observation, acted, outcome);
        booked.expect("the family is added at the start");
    }

    /// What people said of a plain action where this is seen, added or taken back; whether it fits.
    pub(super) fn advise(
        &mut self,
        seen: (&Bits, u16),
        advice: &Advice,
        adds: bool,
        index: Option<i32>,
    ) -> bool {
        let advised = self.machine.advise_apart(self.index, seen, advice, adds, index);
        advised.expect("the family is added at the start")
    }

    /// Forgets everything that people said.
    pub(super) fn clear_advice(&mut self) {
        self.machine.clear_advice(self.index).expect("the family is added at the start");
    }

    /// How chance took part in the last action.
    #[inline]
    pub(super) fn odds(&self) -> Odds {
        self.machine.odds()
    }

    /// What the action brought.
    #[inline]
    pub(super) fn learn(&mut self, outcome: &Outcome) {
        self.machine.learn(outcome).expect("an action has just been taken");
        let records = &mut self.records;
        self.machine.trace_mut().drain(|new| records.extend_from_slice(new));
        if self.machine.is_barrier_due() && !self.machine.progress().running {
            self.pass_barrier();
        }
    }

    /// What is done between episodes: group advantages move the priors of experts, and the tables are published.
    fn pass_barrier(&mut self) {
        self.barriers.moved += self.machine.barrier().len() as u64;
        self.barriers.passed += 1;
    }

    /// Barriers of this unit.
    pub(super) fn barriers(&self) -> Barriers {
        self.barriers
    }

    /// The unit ends: what was played since the last barrier is compared, and the tables show what it leaves.
    pub(super) fn end_unit(&mut self) {
        if !self.machine.progress().running {
            self.pass_barrier();
        }
    }

    /// Whether another choice may wait for its reward.
    pub(super) fn has_room_to_wait(&self) -> bool {
        self.machine.has_room_to_wait()
    }

    /// What the action brought whose reward is still to come.
    pub(super) fn defer(&mut self, outcome: &Outcome) {
        self.machine.defer(outcome).expect("an action has just been taken");
        self.drain();
    }

    /// The outcome of the step so many steps before the last one; whether it still waited for its reward.
    pub(super) fn learn_late(&mut self, steps_ago: u64, outcome: &Outcome) -> bool {
        let Some(step) = self.machine.steps().0.checked_sub(1 + steps_ago) else { return false };
        let is_credited = self.machine.learn_late(StepNumber(step), outcome).is_ok();
        self.drain();
        is_credited
    }

    /// Gives the running episode up.
    pub(super) fn abandon(&mut self) {
        self.machine.abandon();
        self.drain();
    }

    fn drain(&mut self) {
        let records = &mut self.records;
        self.machine.trace_mut().drain(|new| records.extend_from_slice(new));
    }

    /// Brings what adapts within an episode in step with the steps of one that is played again.
    pub(super) fn adapt_again(&mut self, steps: &[Step]) {
        self.machine.adapt_again(steps.iter().map(|step| (step.action, step.reward)));
    }

    /// Whether there are records for a whole block.
    #[inline]
    pub(super) fn has_block(&self) -> bool {
        BLOCK_RECORDS <= self.records.len()
    }

    /// Takes the records that wait, to be sealed as a block.
    pub(super) fn take_records(&mut self) -> Vec<Record> {
        core::mem::take(&mut self.records)
    }

    /// The episode that runs: whose turn it is, and how many steps were taken; none if none does.
    pub(super) fn in_flight(&self) -> Option<(Turn, usize)> {
        let progress = self.machine.progress();
        progress.running.then_some((progress.turn, progress.steps as usize))
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        self.machine.encode(writer);
        self.resting.iter().for_each(|incumbent| incumbent.encode(writer));
        writer.u64(self.steps_before);
        self.evolution.encode(writer);
        writer.length(self.records.len());
        self.records.iter().flat_map(|record| record.0).for_each(|word| writer.u64(word));
        self.barriers.encode(writer);
    }

    /// Reads a machine whose last family is for worlds of this shape, and what is claimed of a patch under trial.
    pub(super) fn decode(
        config: &GenesisConfig,
        shape: &Shape,
        reader: &mut Reader<'_>,
    ) -> Result<(Machinery, Option<Claim>), DecodeError> {
        let foreign = reader.error("a machine for another world");
        let machine: Live = Machine::decode(reader)?;
        let count = machine.family_count();
        let families = (0..count as u16).map_while(|index| machine.family(FamilyIndex(index)).ok());
        let are_worlds = families.clone().all(Family::is_world) && (1..=WORLDS_KEPT).contains(&count);
        let family =
            families.last().filter(|family| family.shape() == shape).ok_or_else(|| foreign.clone())?;
        if !are_worlds || machine.config() != config || machine.mode() != Mode::Learning {
            return Err(foreign);
        }
        let index = FamilyIndex(count as u16 - 1);
        let resting = (1..count).map(|_| Incumbent::decode(reader)).collect::<Result<Vec<_>, _>>()?;
        let steps_before = reader.u64()?;
        if machine.steps().0 < steps_before {
            return Err(foreign);
        }
        let frozen = Arc::new(frozen(family).ok_or_else(|| foreign.clone())?);
        let looked_at = (family.revision(), acting_digest(family));
        let (evolution, claim) = Evolution::parse(config.clone(), reader)?;
        let count = reader.length(16)?;
        let records = (0..count)
            .map(|_| Ok(Record([reader.u64()?, reader.u64()?])))
            .collect::<Result<Vec<_>, DecodeError>>()?;
        let known = |record: &Record| TraceEvent::from_record(*record).is_some();
        if BLOCK_RECORDS <= count || !records.iter().all(known) {
            return Err(foreign);
        }
        let barriers = Barriers::decode(reader)?;
        let machinery = Machinery {
            machine,
            index,
            resting,
            steps_before,
            evolution,
            frozen,
            looked_at,
            records,
            barriers,
        };
        Ok((machinery, claim))
    }

    /// Shows again what was claimed of a patch under trial; its expert takes the seat again.
    pub(super) fn prove(&mut self, claim: Claim) -> Result<(), DecodeError> {
        self.evolution.prove(&mut self.machine, claim)
    }
}

/// Names what a family does when frozen, how it adapts within an episode included.
fn acting_digest(family: &Family) -> Digest {
    let mut rule = Writer::new();
    family.held().acting_rule().encode(&mut rule);
    let frozen = frozen(family).map_or_else(Digest::default, |policy| policy.digest());
    digest::hash_parts("bem/acting", &[frozen.as_bytes(), rule.as_bytes()])
}

/// An episode as the way of patches looks at it.
pub(super) fn rollout(episode: &Episode) -> Rollout {
    Rollout {
        total: episode.total(),
        is_bad: episode.steps.iter().any(|step| step.bad),
        steps: episode.steps.len() as u32,
    }
}
