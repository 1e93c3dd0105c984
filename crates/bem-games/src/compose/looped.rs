//! LOOP: the same part again and again, for a number of rounds that is drawn and not shown.
//!
//! The number of rounds is uniform from one to `rounds`. Horizon: `rounds` times that of the part. Observation:
//! one bit that is set from the second round on, then the part's bits. Reward: as the part pays. Done: after the
//! last round. BAD: when the part raises it. Values: those of the part times the mean number of rounds.
//! Clauses: GLE-3.

use super::operator::{Operator, Plays};
use super::relay::{self, Order, Plan};
use crate::draw::{Dice, Draw};
use crate::game::{Game, GameError, Parameter, Range, Settings};
use std::sync::Arc;

/// The operator `loop`.
pub struct Loop;

impl Operator for Loop {
    fn name(&self) -> &'static str {
        "loop"
    }

    fn about(&self) -> &'static str {
        "Plays the part for a number of rounds that only chance knows."
    }

    fn arity(&self) -> usize {
        1
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "rounds",
            about: "the most rounds there can be",
            range: Range::Number { min: 1, max: 64, default: 4 },
        }]
    }

    fn build(&self, parts: Vec<Arc<dyn Game>>, settings: &Settings) -> Result<Arc<dyn Game>, GameError> {
        let rounds = settings.number("rounds") as u64;
        let (once, most) = (relay::returns_of(&parts, 1), relay::returns_of(&parts, rounds as i64));
        relay::build(Plan {
            name: self.name(),
            order: Drawn { rounds: rounds as u32 },
            runs: vec![0; rounds as usize],
            label_bits: 1,
            plays: vec![Plays { numerator: rounds + 1, denominator: 2 }],
            horizon: relay::horizon_of(&parts) * rounds,
            returns: (once.0.min(most.0), once.1.max(most.1)),
            parts,
        })
    }
}

/// The order of play: one part, a number of rounds drawn up to this.
#[derive(Clone)]
struct Drawn {
    rounds: u32,
}

/// The round that is played, of those that were drawn.
#[derive(Clone)]
struct State {
    round: usize,
    rounds: usize,
}

impl Order for Drawn {
    type State = State;

    fn begin(&self, dice: &mut Dice) -> State {
        State { round: 0, rounds: dice.below(self.rounds) as usize + 1 }
    }

    fn turn(&self, state: &State) -> Option<usize> {
        (state.round < state.rounds).then_some(state.round)
    }

    fn advance(&self, state: &mut State, ended: bool, _dice: &mut Dice) {
        state.round += usize::from(ended);
    }

    fn label(&self, state: &State) -> u64 {
        u64::from(0 < state.round)
    }
}

#[cfg(test)]
mod tests {
    use crate::compose::tree::tests::{check, play};
    use expect_test::expect;

    #[test]
    fn values_and_contract_follow_from_the_part() {
        check("loop{rounds=5}(distance{n=4})");
        check("loop{rounds=2}(safety_grid{size=3,bad=1})");
    }

    #[test]
    fn the_number_of_rounds_is_drawn() {
        let want = expect![[r#"
            0 10 10 -> 0: 1000
            1 00 00 -> 0: 1000
            1 11 11 -> 0: 1000
            1 00 10 -> 1: 1000 done
        "#]];
        want.assert_eq(&play("loop{rounds=4}(compare{bits=2})", 1));
    }
}
