//! NEST: the part inside itself, to a depth.
//!
//! After its first step, every level waits until the next deeper level has been played to its end. Horizon:
//! `depth` times that of the part. Observation: the level, then the bits of the level on turn. Reward: as the level
//! on turn pays. Done: when the outermost level is over, or all are if it ended at once. BAD: when the level on turn
//! raises it. Values: `depth` times those of the part. Clauses: GLE-3.

use super::operator::Operator;
use super::relay::{self, Order, Plan};
use crate::draw::Dice;
use crate::game::{Game, GameError, Parameter, Range, Settings};
use std::sync::Arc;

/// The operator `nest`.
pub struct Nest;

impl Operator for Nest {
    fn name(&self) -> &'static str {
        "nest"
    }

    fn about(&self) -> &'static str {
        "Interrupts the part after its first step to play it again inside, to a given depth."
    }

    fn arity(&self) -> usize {
        1
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "depth",
            about: "how many levels",
            range: Range::Number { min: 1, max: 16, default: 2 },
        }]
    }

    fn build(&self, parts: Vec<Arc<dyn Game>>, settings: &Settings) -> Result<Arc<dyn Game>, GameError> {
        let depth = settings.number("depth") as u64;
        relay::build(Plan::again(self.name(), Levels { depth: depth as usize }, parts, depth))
    }
}

/// The order of play: the part within itself, to this depth.
#[derive(Clone)]
struct Levels {
    depth: usize,
}

/// The level that is played, and those that were opened and ended.
#[derive(Clone)]
struct State {
    level: Option<usize>,
    /// Levels opened so far.
    opened: usize,
    /// Levels that are over, one bit each.
    over: u32,
}

impl Order for Levels {
    type State = State;

    fn begin(&self, _dice: &mut Dice) -> State {
        State { level: Some(0), opened: 1, over: 0 }
    }

    fn turn(&self, state: &State) -> Option<usize> {
        state.level
    }

    fn advance(&self, state: &mut State, ended: bool, _dice: &mut Dice) {
        let Some(level) = state.level else { return };
        state.over |= u32::from(ended) << level;
        // The innermost level has no deeper one to wait for; all others go deeper after their first step.
        if level + 1 == state.opened && state.opened < self.depth {
            state.level = Some(state.opened);
            state.opened += 1;
        } else if ended {
            state.level = (0..level).rev().find(|outer| state.over >> outer & 1 == 0);
        }
    }

    fn label(&self, state: &State) -> u64 {
        state.level.unwrap_or(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::compose::tree::tests::{check, play};
    use expect_test::expect;

    #[test]
    fn values_and_contract_follow_from_the_part() {
        check("nest{depth=3}(add{bits=4})");
        check("nest{depth=4}(compare{bits=2})");
        check("nest{depth=1}(matrix_game{horizon=3})");
    }

    #[test]
    fn levels_open_inward_and_close_outward() {
        let want = expect![[r#"
            00 0 0 1 00 -> 1: 1000
            10 0 0 1 00 -> 1: 1000
            01 0 0 1 00 -> 1: 1000
            01 1 1 0 10 -> 1: 1000
            01 1 1 0 01 -> 1: 1000
            10 1 1 0 10 -> 1: 1000
            10 1 1 0 01 -> 1: 1000
            00 1 1 0 10 -> 1: 1000
            00 1 1 0 01 -> 1: 1000 done
        "#]];
        want.assert_eq(&play("nest{depth=3}(matrix_game{horizon=3})", 1));
    }
}
