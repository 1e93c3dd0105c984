//! The static cost of a circuit in work units, known before it ever runs (decision D-13).
//!
//! Units are counted, not timed: one per gate, one per word of 256 lanes read, two per word written back under the
//! mask (the old word is read too). Must not know how fast a machine is. Clauses: VM-5.

/// What one evaluation of a circuit over one block of lanes costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost {
    /// Gates evaluated.
    pub gates: u32,
    /// Words of lanes read.
    pub words_read: u32,
    /// Words of lanes written.
    pub words_written: u32,
}

/// A circuit that costs more than its bound; it cannot be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the circuit costs {found} work units, which exceeds the bound of {bound} (C_expert_max)")]
pub struct CostError {
    /// Its static cost.
    pub found: u32,
    /// The bound it was built under.
    pub bound: u32,
}

impl Cost {
    /// The whole cost in work units.
    pub const fn work_units(self) -> u32 {
        self.gates + self.words_read + 2 * self.words_written
    }

    /// Refuses a cost over the bound.
    #[doc(alias = "C_expert_max")]
    pub const fn check(self, bound: u32) -> Result<(), CostError> {
        let found = self.work_units();
        if bound < found { Err(CostError { found, bound }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_allowed_up_to_its_bound_and_not_above() {
        let cost = Cost { gates: 10, words_read: 3, words_written: 2 };
        assert_eq!(cost.work_units(), 17);
        assert_eq!(cost.check(17), Ok(()));
        assert_eq!(cost.check(16), Err(CostError { found: 17, bound: 16 }));
    }
}
