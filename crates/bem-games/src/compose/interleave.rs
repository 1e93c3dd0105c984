//! INTERLEAVE: two parts whose steps are mixed by chance.
//!
//! Before every step a fair coin says which of the parts that are not over is on turn. Horizon: the sum.
//! Observation: one bit that says which part, then both regions. Reward: as the part on turn pays. Done: when both
//! are over. BAD: when the part on turn raises it. Values: sums. Clauses: GLE-3.

use super::operator::Operator;
use super::relay::{self, Order, Plan};
use crate::draw::{Dice, Draw};
use crate::game::{Game, GameError, Parameter, Settings};
use std::sync::Arc;

/// The operator `interleave`.
pub struct Interleave;

impl Operator for Interleave {
    fn name(&self) -> &'static str {
        "interleave"
    }

    fn about(&self) -> &'static str {
        "Mixes the steps of two parts by chance and shows whose turn it is."
    }

    fn arity(&self) -> usize {
        2
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn build(&self, parts: Vec<Arc<dyn Game>>, _settings: &Settings) -> Result<Arc<dyn Game>, GameError> {
        relay::build(Plan::each_once(self.name(), Mixed, parts))
    }
}

#[derive(Clone)]
struct Mixed;

/// Whose step it is, and which parts are over.
#[derive(Clone)]
struct State {
    turn: usize,
    over: [bool; 2],
}

impl State {
    fn draw(&mut self, dice: &mut Dice) {
        self.turn = match self.over {
            [false, false] => usize::from(dice.bit()),
            [true, _] => 1,
            [_, true] => 0,
        };
    }
}

impl Order for Mixed {
    type State = State;

    fn begin(&self, dice: &mut Dice) -> State {
        let mut state = State { turn: 0, over: [false; 2] };
        state.draw(dice);
        state
    }

    fn turn(&self, state: &State) -> Option<usize> {
        (state.over != [true; 2]).then_some(state.turn)
    }

    fn advance(&self, state: &mut State, ended: bool, dice: &mut Dice) {
        state.over[state.turn] |= ended;
        state.draw(dice);
    }

    fn label(&self, state: &State) -> u64 {
        state.turn as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::compose::tree::tests::{check, play};
    use expect_test::expect;

    #[test]
    fn values_and_contract_follow_from_the_parts() {
        check("interleave(add{bits=5},matrix_game{horizon=4})");
    }

    #[test]
    fn both_parts_are_played_to_their_ends() {
        let want = expect![[r#"
            1 0 0 0 0 1 00 -> 1: 1000
            1 0 0 1 1 0 10 -> 1: 1000
            0 1 0 0 0 0 00 -> 1: 1000
            0 0 0 0 0 0 00 -> 0: 1000
            1 0 0 1 1 0 01 -> 1: 1000
            0 0 0 0 0 0 00 -> 0: 1000
            0 0 0 0 0 0 00 -> 0: 1000 done
        "#]];
        want.assert_eq(&play("interleave(add{bits=4},matrix_game{horizon=3})", 1));
    }
}
