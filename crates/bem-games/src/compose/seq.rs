//! SEQ: the first part to its end, then the second.
//!
//! Horizon: the sum. Observation: one bit that says which part, then both regions. Reward: as the part on turn
//! pays. Done: when the second part is. BAD: when the part on turn raises it. Values: sums. Clauses: GLE-3.

use super::operator::Operator;
use super::relay::{self, Order, Plan};
use crate::draw::Dice;
use crate::game::{Game, GameError, Parameter, Settings};
use std::sync::Arc;

/// The operator `seq`.
pub struct Seq;

impl Operator for Seq {
    fn name(&self) -> &'static str {
        "seq"
    }

    fn about(&self) -> &'static str {
        "Plays the first part to its end, then the second."
    }

    fn arity(&self) -> usize {
        2
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn build(&self, parts: Vec<Arc<dyn Game>>, _settings: &Settings) -> Result<Arc<dyn Game>, GameError> {
        relay::build(Plan::each_once(self.name(), InTurn { runs: 2 }, parts))
    }
}

/// One run after another.
#[derive(Clone)]
pub(super) struct InTurn {
    pub runs: usize,
}

impl Order for InTurn {
    /// The run on turn.
    type State = usize;

    fn begin(&self, _dice: &mut Dice) -> usize {
        0
    }

    fn turn(&self, run: &usize) -> Option<usize> {
        (*run < self.runs).then_some(*run)
    }

    fn advance(&self, run: &mut usize, ended: bool, _dice: &mut Dice) {
        *run += usize::from(ended);
    }

    fn label(&self, run: &usize) -> u64 {
        *run as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::compose::tree::tests::{check, play};
    use expect_test::expect;

    #[test]
    fn values_and_contract_follow_from_the_parts() {
        check("seq(compare{bits=3},add{bits=4})");
        check("seq(auction{bits=2},matrix_game{horizon=3})");
    }

    #[test]
    fn the_second_part_begins_where_the_first_ends() {
        let want = expect![[r#"
            0 10 10 0 0 -> 0: 1000
            1 00 00 0 1 -> 1: 1000
            1 00 00 0 0 -> 0: 1000
            1 00 00 1 1 -> 0: 1000 done
        "#]];
        want.assert_eq(&play("seq(compare{bits=2},add{bits=3})", 1));
    }
}
