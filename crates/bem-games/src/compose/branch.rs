//! BRANCH: a coin decides which of two parts the episode plays.
//!
//! Horizon: the greater. Observation: one bit that says which part, then both regions. Reward, done, BAD: those
//! of the part that was drawn. Values: the mean of the parts' values, weighed by `percent`. Clauses: GLE-3.

use super::operator::{Operator, Plays};
use super::relay::{self, Order, Plan};
use crate::draw::{Dice, Draw};
use crate::game::{Game, GameError, Parameter, Range, Settings};
use std::sync::Arc;

/// The operator `branch`.
pub struct Branch;

impl Operator for Branch {
    fn name(&self) -> &'static str {
        "branch"
    }

    fn about(&self) -> &'static str {
        "Draws one of two parts for each episode and plays only that."
    }

    fn arity(&self) -> usize {
        2
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "percent",
            about: "how often the first part is drawn",
            range: Range::Number { min: 1, max: 99, default: 50 },
        }]
    }

    fn build(&self, parts: Vec<Arc<dyn Game>>, settings: &Settings) -> Result<Arc<dyn Game>, GameError> {
        let percent = settings.number("percent") as u64;
        let shapes: Vec<_> = parts.iter().map(|part| part.shape()).collect();
        let return_min = shapes.iter().map(|shape| shape.return_min).min().unwrap_or(0);
        let return_max = shapes.iter().map(|shape| shape.return_max).max().unwrap_or(0);
        let horizon = shapes.iter().map(|shape| u64::from(shape.horizon)).max().unwrap_or(1);
        let plays = [percent, 100 - percent].map(|numerator| Plays { numerator, denominator: 100 });
        relay::build(Plan {
            name: self.name(),
            order: Either { percent: percent as u32 },
            runs: vec![0, 1],
            label_bits: 1,
            plays: plays.to_vec(),
            horizon,
            returns: (return_min, return_max),
            parts,
        })
    }
}

#[derive(Clone)]
struct Either {
    percent: u32,
}

impl Order for Either {
    /// The part that was drawn, until it has ended.
    type State = Option<usize>;

    fn begin(&self, dice: &mut Dice) -> Option<usize> {
        Some(usize::from(self.percent <= dice.below(100)))
    }

    fn turn(&self, state: &Option<usize>) -> Option<usize> {
        *state
    }

    fn advance(&self, state: &mut Option<usize>, ended: bool, _dice: &mut Dice) {
        if ended {
            *state = None;
        }
    }

    fn label(&self, state: &Option<usize>) -> u64 {
        state.unwrap_or(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::compose::tree::tests::{check, play};
    use expect_test::expect;

    #[test]
    fn values_and_contract_follow_from_the_parts() {
        check("branch{percent=30}(add{bits=5},compare{bits=2})");
    }

    #[test]
    fn each_episode_plays_one_of_the_parts() {
        let want = expect![[r#"
            1 00 00 00 -> 0: 500 done

            0 00 00 00 -> 0: 1000 done
        "#]];
        let game = "branch{percent=50}(compare{bits=2},auction{bits=2})";
        want.assert_eq(&format!("{}\n{}", play(game, 1), play(game, 2)));
    }
}
