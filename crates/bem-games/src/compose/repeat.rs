//! REPEAT: the same part several times, with a fresh deal each time.
//!
//! Horizon: `times` that of the part. Observation: the number of the round, then the part's bits. Reward: as the
//! part pays. Done: after the last round. BAD: when the part raises it. Values: `times` those of the part.
//! Clauses: GLE-3.

use super::operator::Operator;
use super::relay::{self, Plan};
use super::seq::InTurn;
use crate::game::{Game, GameError, Parameter, Range, Settings};
use std::sync::Arc;

/// The operator `repeat`.
pub struct Repeat;

impl Operator for Repeat {
    fn name(&self) -> &'static str {
        "repeat"
    }

    fn about(&self) -> &'static str {
        "Plays the part a fixed number of times and shows the number of the round."
    }

    fn arity(&self) -> usize {
        1
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "times",
            about: "how many rounds",
            range: Range::Number { min: 1, max: 64, default: 2 },
        }]
    }

    fn build(&self, parts: Vec<Arc<dyn Game>>, settings: &Settings) -> Result<Arc<dyn Game>, GameError> {
        let times = settings.number("times") as u64;
        relay::build(Plan::again(self.name(), InTurn { runs: times as usize }, parts, times))
    }
}

#[cfg(test)]
mod tests {
    use crate::compose::tree::tests::{check, play};
    use expect_test::expect;

    #[test]
    fn values_and_contract_follow_from_the_part() {
        check("repeat{times=5}(signaling{states=3,noise=20})");
        check("repeat{times=1}(sorting{keys=3})");
    }

    #[test]
    fn every_round_is_a_fresh_deal() {
        let want = expect![[r#"
            00 10 10 -> 0: 1000
            10 00 00 -> 0: 1000
            01 11 11 -> 0: 1000 done
        "#]];
        want.assert_eq(&play("repeat{times=3}(compare{bits=2})", 1));
    }
}
