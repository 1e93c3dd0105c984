//! Which gates exist already: a table from a gate to its position, by a fixed hash, so that it is the same everywhere.
//!
//! Must not know what the gates are for.

use super::Gate;

/// Slots of the smallest table; a power of two.
const SLOTS_MIN: usize = 64;

/// Positions of gates; the gates themselves stay with their owner.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// A position plus one, or zero for a free slot. At most half of the slots are taken.
    slots: Vec<u32>,
    taken: usize,
}

impl Known {
    /// The position of this gate among `gates`, if it was added.
    pub(super) fn find(&self, gates: &[Gate], gate: Gate) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash(gate) & mask;
        loop {
            match self.slots[slot] {
                0 => return None,
                position if gates[position as usize - 1] == gate => return Some(position as usize - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Adds the last of `gates`, which was not there before.
    pub(super) fn add_last(&mut self, gates: &[Gate]) {
        if self.slots.len() < 2 * (self.taken + 1) {
            self.slots = vec![0; (4 * self.taken).next_power_of_two().max(SLOTS_MIN)];
            (0..self.taken).for_each(|position| self.put(gates, position));
        }
        self.put(gates, gates.len() - 1);
        self.taken = gates.len();
    }

    fn put(&mut self, gates: &[Gate], position: usize) {
        let mask = self.slots.len() - 1;
        let mut slot = hash(gates[position]) & mask;
        while self.slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = position as u32 + 1;
    }
}

/// Multiplications by odd constants mix all three parts into the upper bits.
fn hash(gate: Gate) -> usize {
    let word = (u64::from(gate.a.0) << 32 | u64::from(gate.b.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (word ^ word >> 29 ^ gate.op as u64).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 32) as usize
}
