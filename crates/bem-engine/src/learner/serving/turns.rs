//! Whose turn an episode of a served world may be, and how likely each is: a short list that lies where it is made.
//!
//! It is made with every decision, which must cost the same whatever else the server keeps in memory. Must not know why a turn is
//! likely. Clauses: VM-13, HUM-10; decision D-214.

use bem_machine::turn::Turn;

/// Turns with their weights, none of which is zero. Deciding takes no memory.
pub(super) struct Turns {
    list: [(Turn, u64); Turns::MAX],
    count: usize,
}

impl Turns {
    /// Four that explore and two that act.
    const MAX: usize = 6;

    /// These.
    pub(super) fn of(turns: &[(Turn, u64)]) -> Turns {
        let mut all = Turns { list: [(Turn::HELD, 0); Turns::MAX], count: 0 };
        turns.iter().for_each(|(turn, weight)| all.push(*turn, *weight));
        all
    }

    /// Adds one, unless it has no weight.
    pub(super) fn push(&mut self, turn: Turn, weight: u64) {
        if 0 < weight {
            self.list[self.count] = (turn, weight);
            self.count += 1;
        }
    }

    /// All of them, in the order in which they came.
    pub(super) fn list(&self) -> &[(Turn, u64)] {
        &self.list[..self.count]
    }
}
