//! The policy machine at work in one world: it plays the incumbent, credits its experts, and writes everything down.
//!
//! One family stands for the world. Accepted circuits are experts of its pool, put there between episodes. Who acts:
//!
//! | who | when | credit |
//! |---|---|---|
//! | the machine's own choice | episodes of the incumbent for experience | to the expert that acted |
//! | the incumbent's expert, by name | its half of a pair, and episodes with uniform steps | to it, but not for overruled steps and their episodes |
//! | a guest: plain actions, the choice over them, the curious policy, a candidate | all other episodes | to nobody |
//!
//! A guest has no slot, because slots are for what was accepted: NOOP stands in for it and is overruled at every step.
//! So every step of the run has its records, whoever chose its action. The choice over plain actions is such a guest
//! too: it knows more contexts and more actions than a pool has arms (decision D-33). Must not know what a step is
//! played for. Clauses: VM-13, VM-16, LOG-1; decisions D-18, D-32.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_circuit::netlist::Netlist;
use bem_machine::config::GenesisConfig;
use bem_machine::family::{Family, STEP_BY_STEP};
use bem_machine::machine::{Machine, Mode};
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::trace::{Record, TraceEvent};

/// The one family.
const FAMILY: FamilyIndex = FamilyIndex(0);
/// Records of one block: 64 KiB.
pub(crate) const BLOCK_RECORDS: usize = 4_096;

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

/// The machine with one family. Invariants: its trace is empty between steps; the incumbent's slot holds an expert.
#[derive(Clone, Debug)]
pub(crate) struct Machinery {
    machine: Machine,
    slot: Option<usize>,
    /// Records that no block holds yet.
    records: Vec<Record>,
}

impl Machinery {
    /// A machine for worlds of this shape; none if it cannot hold them.
    pub(crate) fn new(config: &GenesisConfig, seed: u64, shape: &Shape) -> Option<Machinery> {
        config.check().ok()?;
        let mut machine = Machine::new(config.clone(), seed);
        machine.add_family(shape.clone()).ok()?;
        Some(Machinery { machine, slot: None, records: Vec::new() })
    }

    /// The family with its experts and statistics.
    pub(crate) fn family(&self) -> &Family {
        self.machine.family(FAMILY).expect("the family is added at the start")
    }

    /// The circuit of the incumbent's expert, if a circuit is the incumbent.
    pub(crate) fn incumbent_circuit(&self) -> Option<&Netlist> {
        Some(self.family().expert(self.slot?)?.placed().circuit())
    }

    /// Puts the family as an accepted patch has left it in the place of the one there was; a new expert's circuit is the
    /// incumbent's from now on. Only between episodes.
    pub(crate) fn replace_family(&mut self, family: Family) {
        assert!(!self.machine.progress().running, "structure changes between episodes");
        let id_of = |family: &Family, slot: usize| family.expert(slot).map(|expert| expert.id());
        let is_new = |slot: &usize| id_of(&family, *slot) != id_of(self.family(), *slot);
        let new = family.occupied().map(|(slot, _)| slot).find(is_new);
        self.slot = new.or(self.slot);
        *self.machine.family_mut(FAMILY).expect("the family is added at the start") = family;
    }

    /// An episode begins.
    pub(crate) fn begin(&mut self, serial: u64, hand: Hand) {
        let slot = match hand {
            Hand::Machine => None,
            Hand::Incumbent => Some(self.slot.expect("an incumbent with a hand has a slot")),
            Hand::Guest => Some(STEP_BY_STEP),
        };
        let begun = match slot {
            None => self.machine.begin(FAMILY, TaskSerial(serial)),
            Some(slot) => self.machine.begin_named(FAMILY, TaskSerial(serial), slot),
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
        writer.u8(self.slot.map_or(u8::MAX, |slot| slot as u8));
        writer.length(self.records.len());
        self.records.iter().flat_map(|record| record.0).for_each(|word| writer.u64(word));
    }

    /// Reads a machine with one family for worlds of this shape.
    pub(crate) fn decode(
        config: &GenesisConfig,
        shape: &Shape,
        reader: &mut Reader<'_>,
    ) -> Result<Machinery, DecodeError> {
        let foreign = reader.error("a machine for another world");
        let machine = Machine::decode(reader)?;
        let family = machine.family(FAMILY).map_err(|_| foreign.clone())?;
        let fits = machine.family_count() == 1 && machine.config() == config && family.shape() == shape;
        if !fits || machine.mode() != Mode::Learning {
            return Err(foreign);
        }
        let slot = Some(usize::from(reader.u8()?)).filter(|slot| *slot != usize::from(u8::MAX));
        if slot.is_some_and(|slot| slot == STEP_BY_STEP || family.expert(slot).is_none()) {
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
        Ok(Machinery { machine, slot, records })
    }
}
