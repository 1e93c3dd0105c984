//! The Merkle trees over EXPERT, TEACH, WORK and CFG, as machine and auditor both keep them.
//!
//! A slot is a digest of whatever stands there; what that is only the engine knows. Changing a slot costs one path, and
//! the root is the same as if the tree had been built anew. Clause: LOG-3, MEM-3.

use crate::entry::{TABLES, Table, TableEdit, TableRoots};
use crate::limits::TABLE_SLOTS_MAX;
use crate::merkle::{Tree, leaf_hash};
use bem_base::digest::Digest;

/// The four trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    trees: [Tree; TABLES],
}

impl Tables {
    /// Four empty tables.
    pub fn new() -> Tables {
        Tables::default()
    }

    /// Gives a slot a new content; the zero digest empties it. Cost: one path, and the slots up to it the first time.
    pub fn set(&mut self, edit: &TableEdit) {
        assert!(edit.slot < TABLE_SLOTS_MAX);
        let tree = &mut self.trees[edit.table as usize];
        let slot = u64::from(edit.slot);
        let empty = leaf_hash(Digest::default().as_bytes());
        while tree.size() < slot {
            tree.set(tree.size(), empty);
        }
        tree.set(slot, leaf_hash(edit.leaf.as_bytes()));
    }

    /// The four roots, in order.
    pub fn roots(&self) -> TableRoots {
        core::array::from_fn(|table| self.trees[table].root())
    }

    /// The tree of one table, for proofs.
    pub fn tree(&self, table: Table) -> &Tree {
        &self.trees[table as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merkle::verify_inclusion;
    use bem_base::digest::hash;
    use bem_base::prng::Prng;

    #[test]
    fn incremental_roots_equal_trees_built_from_the_slots() {
        let mut prng = Prng::stream(1, "tables");
        let (mut tables, mut slots) = (Tables::new(), vec![Vec::<Digest>::new(); TABLES]);
        for round in 0..400u64 {
            let table = Table::ALL[prng.below(4) as usize];
            let slot = prng.below(60);
            let leaf = if prng.below(5) == 0 { Digest::default() } else { hash(&round.to_le_bytes()) };
            let column = &mut slots[table as usize];
            column.resize(column.len().max(slot as usize + 1), Digest::default());
            column[slot as usize] = leaf;
            tables.set(&TableEdit { table, slot: slot as u32, leaf });
            let rebuilt = slots.iter().map(|column| {
                Tree::from_leaves(column.iter().map(|leaf| leaf_hash(leaf.as_bytes())).collect()).root()
            });
            assert!(rebuilt.eq(tables.roots()), "round {round}");
        }
    }

    #[test]
    fn a_slot_can_be_shown_to_be_under_its_root() {
        let mut tables = Tables::new();
        for slot in 0..9 {
            tables.set(&TableEdit { table: Table::Work, slot, leaf: hash(&slot.to_le_bytes()) });
        }
        let proof = tables.tree(Table::Work).prove_inclusion(4, 9);
        let leaf = leaf_hash(hash(&4u32.to_le_bytes()).as_bytes());
        assert!(verify_inclusion(&leaf, 4, 9, &tables.roots()[Table::Work as usize], &proof));
        assert!(!verify_inclusion(&leaf, 5, 9, &tables.roots()[Table::Work as usize], &proof));
    }
}
