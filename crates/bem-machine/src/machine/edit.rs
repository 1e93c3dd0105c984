//! Changes of structure in force: who may ask for one, what it does, and how it is taken back.
//!
//! A machine is made for one kind of permit, its type parameter; nothing else changes the structure of its families. Whoever
//! owns a machine for accepted patches can therefore not change it without one:
//!
//! ```compile_fail,E0599
//! # use bem_machine::machine::{Edit, Machine, Permit};
//! # use bem_machine::memory::context::FamilyIndex;
//! # use bem_machine::family::Family;
//! struct Accepted;
//! impl Permit for Accepted {
//!     fn family(&self) -> FamilyIndex { FamilyIndex(0) }
//!     fn edit(&self, _: &Family) -> Option<Edit> { None }
//! }
//! fn change(machine: &mut Machine<Accepted>) {
//!     machine.retire(FamilyIndex(0), 3);
//! }
//! ```
//!
//! An edit is applied to a copy of the structure's parts that it names and takes effect all at once, between episodes.
//! Taking one back displaces what it brought and leaves what was learned elsewhere. Must not know why structure changes.
//! Clauses: SCC-1, SCC-9; decisions D-41, D-44.

use super::{Machine, MachineError};
use crate::config::GenesisConfig;
use crate::expert::{Expert, ExpertParts};
use crate::family::Family;
use crate::guard::Guard;
use crate::held::{Adaptation, Held};
use crate::memory::context::FamilyIndex;
use crate::route::directory::RouteInput;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::ids::ObjectId;
use bem_base::limits::ARMS_MAX;

/// Anyone may change the structure: benchmarks, tests and programs of the control core.
#[derive(Clone, Copy, Debug)]
pub struct Open;

/// What entitles its holder to one change of structure.
pub trait Permit {
    /// The family that it is about.
    fn family(&self) -> FamilyIndex;
    /// The change, for the family as it is; nothing where it does not apply to it.
    fn edit(&self, family: &Family) -> Option<Edit>;
}

/// One change of a family's structure.
#[derive(Clone, Debug)]
pub enum Edit {
    /// An expert comes and is held.
    Install(Box<ExpertParts>),
    /// Experts go, one comes in their place and is held.
    Merge {
        /// Who goes.
        slots: Vec<u8>,
        /// Who comes.
        parts: Box<ExpertParts>,
    },
    /// Another circuit of the same behaviour.
    Replace {
        /// Whose.
        slot: u8,
        /// The expert with the other circuit.
        parts: Box<ExpertParts>,
    },
    /// An expert goes; it must not be the one that is held.
    Retire {
        /// Who goes.
        slot: u8,
    },
    /// Buckets are divided, one after the other.
    Split {
        /// The bucket and the bits whose parity divides it.
        cuts: Vec<(u16, Vec<RouteInput>)>,
    },
    /// Buckets are joined, one pair after the other; what is held must agree.
    Join {
        /// The two sides of one test.
        pairs: Vec<(u16, u16)>,
    },
    /// What came before a moment no longer counts in a bucket.
    Forget {
        /// The bucket.
        bucket: u16,
        /// The moment.
        moment: u64,
    },
    /// Plain actions act, these and by this rule.
    Hold {
        /// The action of every bucket.
        actions: Vec<u16>,
        /// How they adapt within an episode.
        rule: Adaptation,
    },
    /// Other rules are masked.
    Guard(Guard),
}

/// What an edit displaced, so that it can be taken back.
#[derive(Clone, Debug)]
pub struct Undo {
    family: FamilyIndex,
    slot: u8,
    /// Counts the experts that the slot has held: another one in it cannot be taken back by this.
    generation: u32,
    /// The slot that was held before; nothing where plain actions acted.
    held: Option<u8>,
    displaced: Vec<(u8, Expert)>,
}

impl<P: Permit> Machine<P> {
    /// Puts a permitted change into force: all of it, or nothing and a reason. Where it brings an expert, what it takes
    /// to take it back.
    pub fn apply(&mut self, permit: &P) -> Result<Option<Undo>, MachineError> {
        let index = permit.family();
        let refused = MachineError::NotApplicable;
        let edit = permit.edit(self.family(index)?).ok_or(refused)?;
        self.put_into_force(index, edit)
    }
}

impl Machine<Open> {
    /// Puts a change into force.
    pub fn edit(&mut self, family: FamilyIndex, edit: Edit) -> Result<Option<Undo>, MachineError> {
        self.family(family)?;
        self.put_into_force(family, edit)
    }
}

impl<P> Machine<P> {
    fn put_into_force(&mut self, index: FamilyIndex, edit: Edit) -> Result<Option<Undo>, MachineError> {
        assert!(!self.lane.progress.running, "structure changes between episodes");
        let place = usize::from(index.0);
        // An edit that fails half-way leaves everything as it was.
        let mut family = self.families[place].clone();
        let config = self.config.clone();
        let next = self.expert_next;
        let edited = edit_family(&config, &mut family, edit, index, &mut || self.next_expert_id());
        match edited {
            Ok(undo) => {
                self.families[place] = family;
                Ok(undo)
            }
            Err(error) => {
                // A number that was given to nobody is given again: whoever follows the history counts alike.
                self.expert_next = next;
                Err(error)
            }
        }
    }

    /// Takes back what an edit brought: its expert goes, those that it displaced come back, and what was held before is
    /// held again. What was learned elsewhere stays.
    pub fn undo(&mut self, undo: Undo) -> Result<(), MachineError> {
        assert!(!self.lane.progress.running, "structure changes between episodes");
        let Undo { family: index, slot, generation, held, displaced } = undo;
        let mut family = self.family(index)?.clone();
        if family.expert(usize::from(slot)).is_none() || family.generation(usize::from(slot)) != generation {
            return Err(MachineError::NotApplicable);
        }
        let config = &self.config;
        // What was held before may be one of those that come back.
        family.hold_member(None)?;
        family.retire(usize::from(slot))?;
        for (slot, expert) in displaced {
            family.readmit(config, usize::from(slot), expert)?;
        }
        family.hold_member(held)?;
        self.families[usize::from(index.0)] = family;
        Ok(())
    }
}

/// The family as an edit would leave it; nothing is put into force.
pub fn edited(config: &GenesisConfig, family: &Family, edit: Edit) -> Result<Family, MachineError> {
    let mut copy = family.clone();
    let mut any_id = || Ok(ObjectId::expert(0, 1));
    edit_family(config, &mut copy, edit, FamilyIndex(0), &mut any_id)?;
    Ok(copy)
}

fn edit_family(
    config: &GenesisConfig,
    family: &mut Family,
    edit: Edit,
    index: FamilyIndex,
    next_id: &mut dyn FnMut() -> Result<ObjectId, MachineError>,
) -> Result<Option<Undo>, MachineError> {
    match edit {
        Edit::Install(parts) => {
            let held = family.held().member;
            let slot = family.install(config, next_id()?, *parts)?;
            family.hold_member(Some(slot as u8))?;
            let generation = family.generation(slot);
            return Ok(Some(Undo {
                family: index,
                slot: slot as u8,
                generation,
                held,
                displaced: Vec::new(),
            }));
        }
        Edit::Merge { slots, parts } => {
            let held = family.held().member;
            let gone = |slot: &u8| Some((*slot, family.expert(usize::from(*slot))?.clone()));
            let displaced = slots.iter().map(gone).collect::<Option<Vec<_>>>();
            let displaced = displaced.ok_or(MachineError::NotApplicable)?;
            family.hold_member(None)?;
            for slot in &slots {
                family.retire(usize::from(*slot))?;
            }
            let slot = family.install(config, next_id()?, *parts)?;
            family.hold_member(Some(slot as u8))?;
            let generation = family.generation(slot);
            return Ok(Some(Undo { family: index, slot: slot as u8, generation, held, displaced }));
        }
        Edit::Replace { slot, parts } => family.replace(config, usize::from(slot), next_id()?, *parts)?,
        Edit::Retire { slot } if family.held().member() == Some(usize::from(slot)) => {
            return Err(MachineError::NotApplicable);
        }
        Edit::Retire { slot } => family.retire(usize::from(slot))?,
        Edit::Split { cuts } => {
            for (bucket, by) in cuts {
                family.split(bucket, &by)?;
            }
        }
        Edit::Join { pairs } => {
            for (one, other) in pairs {
                family.join(one, other)?;
            }
        }
        Edit::Forget { bucket, moment } => family.forget(bucket, moment)?,
        Edit::Hold { actions, rule } => family.hold(Held { member: None, actions, rule })?,
        Edit::Guard(guard) => family.guard_with(guard),
    }
    Ok(None)
}

impl Undo {
    /// The slot that the edit filled.
    pub fn slot(&self) -> usize {
        usize::from(self.slot)
    }

    /// The slot that was held before; nothing where plain actions acted.
    pub fn held(&self) -> Option<usize> {
        self.held.map(usize::from)
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u16(self.family.0);
        writer.u8(self.slot);
        writer.u32(self.generation);
        writer.u8(self.held.unwrap_or(u8::MAX));
        writer.length(self.displaced.len());
        for (slot, expert) in &self.displaced {
            writer.u8(*slot);
            expert.encode(writer);
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(config: &GenesisConfig, reader: &mut Reader<'_>) -> Result<Undo, DecodeError> {
        let stray = reader.error("a displaced expert where none can have been");
        let (family, slot, generation) = (FamilyIndex(reader.u16()?), reader.u8()?, reader.u32()?);
        let held = Some(reader.u8()?).filter(|slot| *slot != u8::MAX);
        let displaced = (0..reader.length(16)?)
            .map(|_| Ok((reader.u8()?, Expert::decode(config, reader)?)))
            .collect::<Result<Vec<_>, DecodeError>>()?;
        let in_range = |slot: u8| (1..ARMS_MAX).contains(&usize::from(slot));
        if !in_range(slot) || !displaced.iter().map(|(slot, _)| slot).chain(&held).all(|slot| in_range(*slot))
        {
            return Err(stray);
        }
        Ok(Undo { family, slot, generation, held, displaced })
    }
}
