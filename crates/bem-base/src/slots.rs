//! Slot tables: which place in memory an identifier has, and back.
//!
//! Identifiers are handed out once per class and never again; places are reused and may be moved. A reference
//! is always an identifier, so moving an object changes no reference's meaning. Clauses: ID-4.

use crate::ids::{ObjectClass, ObjectId};
use std::collections::BTreeMap;

/// Why a table refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    /// Every place is taken.
    #[error("no free slot: all {capacity} are taken")]
    Full {
        /// How many places there are.
        capacity: u32,
    },
    /// The class has no identifier left.
    #[error("class {class:?} has used all of its identifiers")]
    IdentifiersUsedUp {
        /// The exhausted class.
        class: ObjectClass,
    },
    /// The identifier has no place here.
    #[error("{id:?} is not in this table")]
    Unknown {
        /// The identifier asked for.
        id: ObjectId,
    },
    /// The place to move to is taken or does not exist.
    #[error("slot {slot} cannot be moved to: it is taken or past the end")]
    Occupied {
        /// The place asked for.
        slot: u32,
    },
}

/// Places for the objects of one class. Invariant: the two maps are inverse to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotTable {
    class: ObjectClass,
    slot_of: BTreeMap<ObjectId, u32>,
    id_at: Vec<Option<ObjectId>>,
    next_payload: u32,
}

impl SlotTable {
    /// An empty table of this many places.
    pub fn new(class: ObjectClass, capacity: u32) -> SlotTable {
        SlotTable { class, slot_of: BTreeMap::new(), id_at: vec![None; capacity as usize], next_payload: 0 }
    }

    /// A fresh identifier in the lowest free place.
    pub fn allocate(&mut self) -> Result<(ObjectId, u32), SlotError> {
        let capacity = self.id_at.len() as u32;
        let slot = self.id_at.iter().position(Option::is_none).ok_or(SlotError::Full { capacity })? as u32;
        if 1 << 20 <= self.next_payload {
            return Err(SlotError::IdentifiersUsedUp { class: self.class });
        }
        let id = ObjectId::new(self.class, self.next_payload);
        self.next_payload += 1;
        self.slot_of.insert(id, slot);
        self.id_at[slot as usize] = Some(id);
        Ok((id, slot))
    }

    /// Where an object is.
    pub fn slot(&self, id: ObjectId) -> Result<u32, SlotError> {
        self.slot_of.get(&id).copied().ok_or(SlotError::Unknown { id })
    }

    /// What is in a place.
    pub fn id_at(&self, slot: u32) -> Option<ObjectId> {
        self.id_at.get(slot as usize).copied().flatten()
    }

    /// Gives a place back. The identifier is not used again.
    pub fn release(&mut self, id: ObjectId) -> Result<(), SlotError> {
        let slot = self.slot_of.remove(&id).ok_or(SlotError::Unknown { id })?;
        self.id_at[slot as usize] = None;
        Ok(())
    }

    /// Moves an object to a free place.
    pub fn rebalance(&mut self, id: ObjectId, target: u32) -> Result<(), SlotError> {
        let source = self.slot(id)?;
        match self.id_at.get(target as usize) {
            Some(None) => {}
            _ => return Err(SlotError::Occupied { slot: target }),
        }
        self.id_at[source as usize] = None;
        self.id_at[target as usize] = Some(id);
        self.slot_of.insert(id, target);
        Ok(())
    }

    /// How many places are taken.
    pub fn count(&self) -> u32 {
        self.slot_of.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_never_handed_out_twice() {
        let mut table = SlotTable::new(ObjectClass::Macro, 2);
        let (first, slot) = table.allocate().unwrap();
        table.release(first).unwrap();
        let (second, reused) = table.allocate().unwrap();
        assert_ne!(first, second);
        assert_eq!(slot, reused);
        assert_eq!(table.slot(first), Err(SlotError::Unknown { id: first }));
    }

    #[test]
    fn moving_an_object_keeps_its_identifier() {
        let mut table = SlotTable::new(ObjectClass::Macro, 3);
        let (a, _) = table.allocate().unwrap();
        let (b, _) = table.allocate().unwrap();
        table.rebalance(a, 2).unwrap();
        assert_eq!((table.slot(a), table.slot(b)), (Ok(2), Ok(1)));
        assert_eq!((table.id_at(0), table.id_at(2)), (None, Some(a)));
        assert_eq!(table.rebalance(a, 1), Err(SlotError::Occupied { slot: 1 }));
        assert_eq!(table.rebalance(a, 9), Err(SlotError::Occupied { slot: 9 }));
    }

    #[test]
    fn a_full_table_says_so() {
        let mut table = SlotTable::new(ObjectClass::Macro, 1);
        table.allocate().unwrap();
        assert_eq!(table.allocate(), Err(SlotError::Full { capacity: 1 }));
    }
}
