//! The policy machine at work in one world: it plays the incumbent, credits its experts, and writes everything down.
//!
//! One family stands for the world. Accepted circuits are experts of its pool, put there between episodes. Who acts:
//!
//! | who | when | credit |
//! |---|---|---|
//! | the machine's own choice | episodes of the incumbent for experience | to the expert that acted |
//! | the incumbent's expert, by name | its half of a pair, episodes with uniform steps, and where the machine has turned away from it while its patch is watched | to it, but not for overruled steps and their episodes |
//! | a guest: plain actions, the choice over them, the curious policy, a candidate | all other episodes | to nobody |
//!
//! A guest has no slot, because slots are for what was accepted: NOOP stands in for it and is overruled at every step.
//! So every step of the run has its records, whoever chose its action. The choice over plain actions is such a guest
//! too: it knows more contexts and more actions than a pool has arms (decision D-33).
//!
//! [`Machine::barrier`] is called between episodes where the configuration asks for groups (`group_period`); by default it
//! does not. Group advantages compare experts on the same task and first bucket; a learner plays one task, in which nearly
//! all episodes are the incumbent's, so that a group says of the others what their statistics say already, a second time
//! and with less care for how often they were tried. Must not know what a step is played for.
//! Clauses: VM-13, VM-16, LOG-1; decisions D-18, D-32.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_circuit::netlist::Netlist;
use bem_evolve::apply::structure_digest;
use bem_evolve::condition::{BadPair, SafetyDemand};
use bem_evolve::contexts::Choice;
use bem_evolve::evolution::{self as patches, Advance, Claim, Evolution, Surroundings, Verdict};
use bem_evolve::improvement::Evidence;
use bem_evolve::patch::{Change, ExpectedEffects, PatchKind};
use bem_evolve::propose::{Notebook, Proposal};
use bem_evolve::rollout::{Rollout, RolloutStep};
use bem_evolve::verify::Improvement;
use bem_machine::config::GenesisConfig;
use bem_machine::family::{Family, STEP_BY_STEP};
use bem_machine::machine::{Machine, Mode};
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::route::directory::RouteInput;
use bem_machine::trace::{Record, TraceEvent};
use bem_synth::experience::{Episode, Step};
use core::cmp::Reverse;

/// The one family.
const FAMILY: FamilyIndex = FamilyIndex(0);
/// Records of one block: 64 KiB.
pub(crate) const BLOCK_RECORDS: usize = 4_096;

/// Slots that are kept free for what will be found.
const FREE_SLOTS_MIN: usize = 2;

/// Who acts in an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hand {
    /// The expert that the machine chooses.
    Machine,
    /// The expert of the incumbent.
    Incumbent,
    /// Somebody without a slot.
    Guest,
}

/// The machine with one family, and the way of patches about it. Invariants: its trace is empty between steps; the
/// incumbent's slot holds an expert; family and tables have the same structure.
#[derive(Clone, Debug)]
pub(crate) struct Machinery {
    machine: Machine,
    evolution: Evolution,
    slot: Option<usize>,
    /// The slot of the incumbent before, while the latest patch may be taken back.
    slot_before: Option<usize>,
    /// Experts that others have replaced as the incumbent, with what was measured then.
    pub(crate) superseded: Vec<(u8, Evidence)>,
    /// Records that no block holds yet.
    records: Vec<Record>,
}

impl Machinery {
    /// A machine for worlds of this shape; none if it cannot hold them.
    pub(crate) fn new(config: GenesisConfig, seed: u64, shape: &Shape) -> Option<Machinery> {
        config.check().ok()?;
        let mut machine = Machine::new(config.clone(), seed);
        machine.add_family(shape.clone()).ok()?;
        let evolution = Evolution::new(config, vec![machine.family(FAMILY).ok()?.clone()]);
        let (superseded, records) = (Vec::new(), Vec::new());
        Some(Machinery { machine, evolution, slot: None, slot_before: None, superseded, records })
    }

    /// The family with its experts and statistics.
    pub(crate) fn family(&self) -> &Family {
        self.machine.family(FAMILY).expect("the family is added at the start")
    }

    /// The circuit of the incumbent's expert, if a circuit is the incumbent.
    pub(crate) fn incumbent_circuit(&self) -> Option<&Netlist> {
        Some(self.family().expert(self.slot?)?.placed().circuit())
    }

    /// The circuit of the expert that acts again if the latest patch is taken back.
    pub(crate) fn previous_circuit(&self) -> Option<&Netlist> {
        Some(self.family().expert(self.slot_before?)?.placed().circuit())
    }

    /// The slot of the incumbent's expert, if a circuit is the incumbent.
    pub(crate) fn incumbent_slot(&self) -> Option<usize> {
        self.slot
    }

    /// What proposers have written down.
    pub(crate) fn notebook_mut(&mut self) -> &mut Notebook {
        self.evolution.notebook_mut()
    }

    /// The way of patches.
    pub(crate) fn evolution(&self) -> &Evolution {
        &self.evolution
    }

    /// The contexts of the choice over plain actions.
    pub(crate) fn choice(&self) -> &Choice {
        self.evolution.tables().choice(FAMILY.0).expect("every family has a choice")
    }

    /// Decides a change of contexts on the evidence that it brings; nothing where the queue is full, which is counted.
    pub(crate) fn decide_at_once(&mut self, proposal: Proposal, step: u64) -> Option<patches::Record> {
        let surroundings = Surroundings { bad: &[], safety: SafetyDemand::Optional, step, span: None };
        self.evolution.decide_at_once(FAMILY.0, proposal, &surroundings).ok()
    }

    /// Takes a proposal in as PENDING; its serial, or nothing where the queue is full, which is counted.
    pub(crate) fn submit(&mut self, proposal: Proposal) -> Option<u64> {
        self.evolution.submit(FAMILY.0, proposal).ok()
    }

    /// Decides the next waiting patch on the evidence at hand, or opens its trial, whose differences are weighed by the
    /// range of returns seen so far. Only between episodes.
    pub(crate) fn decide_next(&mut self, bad: &[BadPair], span: i64, step: u64) -> Advance {
        self.renew();
        let surroundings = Surroundings { bad, safety: SafetyDemand::Optional, step, span: Some(span) };
        let advance = self.evolution.advance(&surroundings);
        if let Advance::Decided(record) = &advance {
            self.adopt(record);
        }
        advance
    }

    /// Books a pair of the open trial; a record when it is decided. Only between episodes.
    pub(crate) fn book_pair(&mut self, new: &Rollout, old: &Rollout, step: u64) -> Option<patches::Record> {
        self.renew();
        let record = self.evolution.book_pair(new, old, step)?;
        self.adopt(&record);
        Some(record)
    }

    /// Gives the open trial up.
    pub(crate) fn abandon_trial(&mut self, step: u64, reason: &str) -> Option<patches::Record> {
        self.evolution.abandon_trial(step, reason)
    }

    /// Books a pair of the watch; a record if the latest patch is taken back. Only between episodes.
    pub(crate) fn book_watch(&mut self, new: &Rollout, old: &Rollout, step: u64) -> Option<patches::Record> {
        self.renew();
        let record = self.evolution.book_watch(new, old, step)?;
        self.adopt(&record);
        Some(record)
    }

    /// An episode as the way of patches looks at it.
    pub(crate) fn rollout(&self, episode: &Episode) -> Rollout {
        let (family, directory) = (self.family(), self.family().directory());
        let width = family.layout().observation().len();
        let steps = episode.steps.iter().map(|step| {
            let is_set = |input| match input {
                RouteInput::State(bit) => usize::from(bit) < width && step.observation.get(usize::from(bit)),
                RouteInput::Shared { .. } => false,
            };
            let bucket = directory.bucket(directory.signature(is_set));
            let Step { observation, reward, done, bad, .. } = *step;
            RolloutStep { bucket, slot: 0, observation, outcome: Outcome { reward, done, bad } }
        });
        Rollout { steps: steps.collect() }
    }

    /// The tables take over what the machine has booked since.
    fn renew(&mut self) {
        let family = self.machine.family(FAMILY).expect("the family is added at the start");
        self.evolution.renew(FAMILY.0, family).expect("structure changes through the tables alone");
    }

    /// Keeps the list of replaced experts; called before the slots change.
    fn note_superseded(&mut self, record: &patches::Record) {
        let change = match &record.verdict {
            Verdict::Applied { accepted, .. } => Some(&accepted.patch().change),
            _ => None,
        };
        match (change, record.improvement(), self.slot, self.slot_before) {
            (Some(Change::Synthesize { .. }), Some(Improvement::Rollouts(evidence)), Some(slot), _) => {
                self.superseded.push((slot as u8, *evidence));
            }
            (Some(Change::Retire { slot }), ..) => self.superseded.retain(|(held, _)| held != slot),
            (Some(Change::Merge { members, .. }), ..) => {
                self.superseded.retain(|(held, _)| members.iter().all(|member| member.slot != *held));
            }
            (None, None, _, Some(before)) => {
                self.superseded.retain(|(held, _)| usize::from(*held) != before);
            }
            _ => {}
        }
    }

    /// Where the pool is nearly full: a RETIRE of the replaced expert that its successor beat most clearly. The pairs of
    /// that time are its evidence.
    pub(crate) fn propose_room(&self) -> Option<Proposal> {
        let free = self.evolution.config().expert_slots as usize - self.family().occupied().count();
        let kept = [self.slot, self.slot_before];
        let replaced = self.superseded.iter().filter(|(slot, _)| !kept.contains(&Some(usize::from(*slot))));
        let (slot, evidence) =
            replaced.max_by_key(|(slot, evidence)| (evidence.lower_bound, Reverse(*slot)))?;
        (free < FREE_SLOTS_MIN).then(|| Proposal {
            change: Change::Retire { slot: *slot },
            improvement: Some(Improvement::Rollouts(*evidence)),
            effects: ExpectedEffects { return_gain: evidence.lower_bound, ..ExpectedEffects::default() },
            words: format!("slot {slot}, which another expert has replaced, to make room"),
        })
    }

    /// The barrier: what was decided is in force from the next step on.
    fn adopt(&mut self, record: &patches::Record) {
        if matches!(record.verdict, Verdict::Refused { .. }) {
            return;
        }
        assert!(!self.machine.progress().running, "structure changes between episodes");
        let family = self.evolution.family(FAMILY.0).expect("the family is there from the start").clone();
        let id_of = |family: &Family, slot: usize| family.expert(slot).map(|expert| expert.id());
        let is_new = |slot: &usize| id_of(&family, *slot) != id_of(self.family(), *slot);
        let new = family.occupied().map(|(slot, _)| slot).find(is_new);
        self.note_superseded(record);
        (self.slot, self.slot_before) = match &record.verdict {
            Verdict::Applied { .. } if matches!(record.kind, PatchKind::Synthesize | PatchKind::Macro) => {
                (new, self.slot)
            }
            // The experts that it is made of are gone.
            Verdict::Applied { .. } if record.kind == PatchKind::Merge => (new, None),
            Verdict::RolledBack { .. } if matches!(record.kind, PatchKind::Synthesize | PatchKind::Macro) => {
                (self.slot_before, None)
            }
            // A smaller circuit that does the same is the same incumbent, and is taken back together with it.
            Verdict::Applied { .. } if record.kind == PatchKind::Superoptimize => {
                (self.slot, self.slot_before)
            }
            // Only the latest patch can be taken back, and this one brings no incumbent.
            _ => (self.slot, None),
        };
        *self.machine.family_mut(FAMILY).expect("the family is added at the start") = family;
    }

    /// An episode begins.
    pub(crate) fn begin(&mut self, serial: u64, hand: Hand) {
        let slot = match hand {
            Hand::Machine => None,
            Hand::Incumbent => Some(self.slot.expect("an incumbent with a hand has a slot")),
            Hand::Guest => Some(STEP_BY_STEP),
        };
        // Groups compare episodes of one task, and a learner has one.
        let is_grouped = 0 < self.machine.config().group_period;
        let task = TaskSerial(if is_grouped { 0 } else { serial });
        let begun = match slot {
            None => self.machine.begin(FAMILY, task),
            Some(slot) => self.machine.begin_named(FAMILY, task, slot),
        };
        begun.expect("the family exists and the slot is taken");
    }

    /// What the expert at work would do.
    #[inline]
    pub(crate) fn act(&mut self, observation: &Bits) -> u16 {
        self.machine.act(observation).expect("an episode runs and the trace is empty")
    }

    /// Something else is done.
    #[inline]
    pub(crate) fn overrule(&mut self, action: u16) {
        self.machine.overrule(action).expect("the expert has just acted");
    }

    /// What the action brought.
    #[inline]
    pub(crate) fn learn(&mut self, outcome: &Outcome) {
        self.machine.learn(outcome).expect("an action has just been taken");
        let records = &mut self.records;
        self.machine.trace_mut().drain(|new| records.extend_from_slice(new));
        if self.machine.is_barrier_due() && !self.machine.progress().running {
            self.machine.barrier();
        }
    }

    /// Whether there are records for a whole block.
    #[inline]
    pub(crate) fn has_block(&self) -> bool {
        BLOCK_RECORDS <= self.records.len()
    }

    /// Takes the records that wait, to be sealed as a block.
    pub(crate) fn take_records(&mut self) -> Vec<Record> {
        core::mem::take(&mut self.records)
    }

    /// Steps of the episode that runs; none if none does.
    pub(crate) fn steps_in_flight(&self) -> Option<usize> {
        let progress = self.machine.progress();
        progress.running.then_some(progress.steps as usize)
    }

    /// Writes the canonical bytes.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.machine.encode(writer);
        self.evolution.encode(writer);
        for slot in [self.slot, self.slot_before] {
            writer.u8(slot.map_or(u8::MAX, |slot| slot as u8));
        }
        writer.length(self.superseded.len());
        for (slot, evidence) in &self.superseded {
            writer.u8(*slot);
            evidence.encode(writer);
        }
        writer.length(self.records.len());
        self.records.iter().flat_map(|record| record.0).for_each(|word| writer.u64(word));
    }

    /// Reads a machine with one family for worlds of this shape, and what is claimed of a patch under trial.
    pub(crate) fn decode(
        config: &GenesisConfig,
        shape: &Shape,
        reader: &mut Reader<'_>,
    ) -> Result<(Machinery, Option<Claim>), DecodeError> {
        let foreign = reader.error("a machine for another world");
        let machine = Machine::decode(reader)?;
        let family = machine.family(FAMILY).map_err(|_| foreign.clone())?;
        let fits = machine.family_count() == 1 && machine.config() == config && family.shape() == shape;
        if !fits || machine.mode() != Mode::Learning {
            return Err(foreign);
        }
        let (evolution, claim) = Evolution::parse(config.clone(), reader)?;
        let tables = evolution.family(FAMILY.0).map_err(|_| foreign.clone())?;
        if structure_digest(tables) != structure_digest(family) || evolution.tables().family_count() != 1 {
            return Err(foreign);
        }
        let mut slots = [None; 2];
        for slot in &mut slots {
            *slot = Some(usize::from(reader.u8()?)).filter(|slot| *slot != usize::from(u8::MAX));
        }
        let [slot, slot_before] = slots;
        let is_taken = |slot: usize| slot != STEP_BY_STEP && family.expert(slot).is_some();
        if slots.iter().flatten().any(|slot| !is_taken(*slot)) {
            return Err(foreign);
        }
        let superseded = (0..reader.length(33)?)
            .map(|_| Ok((reader.u8()?, Evidence::decode(reader)?)))
            .collect::<Result<Vec<_>, DecodeError>>()?;
        if superseded.iter().any(|(slot, _)| !is_taken(usize::from(*slot))) {
            return Err(foreign);
        }
        let count = reader.length(16)?;
        let records = (0..count)
            .map(|_| Ok(Record([reader.u64()?, reader.u64()?])))
            .collect::<Result<Vec<_>, DecodeError>>()?;
        let known = |record: &Record| TraceEvent::from_record(*record).is_some();
        if BLOCK_RECORDS <= count || !records.iter().all(known) {
            return Err(foreign);
        }
        Ok((Machinery { machine, evolution, slot, slot_before, superseded, records }, claim))
    }

    /// Shows again what was claimed of a patch under trial.
    pub(crate) fn prove(&mut self, claim: Claim) -> Result<(), DecodeError> {
        self.evolution.prove(claim)
    }
}
