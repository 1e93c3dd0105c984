//! A shard: the part of a run's machine that one family of tasks works with, as it moves from unit to unit.
//!
//! Whoever works on a unit takes the shard of its family and returns it: pool, contexts, what is held and statistics go on
//! where a unit has the shape of one before, and nothing of it is shared with another family, so that a history does not
//! depend on who worked on what. Must not know units, ladders or threads. Clauses: VM-13, VM-16, LOG-4; decision D-49.

use crate::learner::standing::Incumbent;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_evolve::apply::Live;
use bem_machine::config::GenesisConfig;
use bem_machine::machine::{Machine, Mode, WORLDS_KEPT};
use bem_machine::memory::context::FamilyIndex;

/// A machine between two units. Invariant: every family stands for a world and has its incumbent.
#[derive(Clone, Debug)]
pub struct Shard {
    pub(crate) machine: Live,
    /// What is known of what each family holds, in the order of the families.
    pub(crate) incumbents: Vec<Incumbent>,
}

impl Shard {
    /// The machine; its structure is sealed.
    pub fn machine(&self) -> &Live {
        &self.machine
    }

    /// The shape of the worlds that it worked in last.
    pub fn shape(&self) -> Option<&Shape> {
        let last = self.machine.family_count().checked_sub(1)?;
        Some(self.machine.family(FamilyIndex(last as u16)).ok()?.shape())
    }

    /// Writes the canonical bytes.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.machine.encode(writer);
        self.incumbents.iter().for_each(|incumbent| incumbent.encode(writer));
    }

    /// Reads canonical bytes back.
    pub(crate) fn decode(config: &GenesisConfig, reader: &mut Reader<'_>) -> Result<Shard, DecodeError> {
        let foreign = reader.error("a machine that no unit can have left");
        let machine: Live = Machine::decode(reader)?;
        let count = machine.family_count();
        let mut families = (0..count).map(|index| machine.family(FamilyIndex(index as u16)));
        let fits = machine.config() == config
            && machine.mode() == Mode::Learning
            && (1..=WORLDS_KEPT).contains(&count)
            && families.all(|family| family.is_ok_and(|family| family.is_world()));
        if !fits {
            return Err(foreign);
        }
        let incumbents = (0..count).map(|_| Incumbent::decode(reader)).collect::<Result<Vec<_>, _>>()?;
        Ok(Shard { machine, incumbents })
    }
}
