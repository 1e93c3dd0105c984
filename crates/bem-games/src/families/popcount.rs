//! The number of set bits, as a number. Clause: GLE-1.
//!
//! The weight is drawn first and then the places, so that every answer is equally likely.

use crate::draw::Draw;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use std::sync::Arc;

/// The family.
pub struct Popcount;

impl Family for Popcount {
    fn name(&self) -> &'static str {
        "popcount"
    }

    fn about(&self) -> &'static str {
        "See n bits once and answer how many of them are set."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "n",
            about: "Bits of the string.",
            range: Range::Number { min: 1, max: 64, default: 7 },
        }]
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        Ok(Arc::new(RuleGame::new(PopcountRules { bits: settings.number("n") as u32 })))
    }
}

/// One game of popcount.
pub struct PopcountRules {
    /// Bits of the string.
    pub bits: u32,
}

impl Rules for PopcountRules {
    /// The string.
    type State = u64;

    fn shape(&self) -> Shape {
        rules::answer_shape(&[self.bits as usize], self.bits as usize + 1, 1, 1)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> u64 {
        let mut weight = draw.below(self.bits + 1);
        let mut string = 0;
        for place in 0..self.bits {
            // Among the places left, each is as likely as the others to get one of the bits left.
            if draw.below(self.bits - place) < weight {
                weight -= 1;
                string |= 1 << place;
            }
        }
        string
    }

    fn observe(&self, string: &u64) -> Bits {
        Bits([*string, 0, 0, 0])
    }

    fn play<D: Draw>(&self, string: &mut u64, action: u16, _draw: &mut D) -> Outcome {
        rules::answer(action == self.best(string), true)
    }

    fn best(&self, string: &u64) -> u16 {
        string.count_ones() as u16
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT))
    }

    fn random(&self) -> Value {
        Value::exact(Fixed::from_ratio(i64::from(RIGHT), i64::from(self.bits) + 1))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::check_exactly;
    use crate::draw::Dice;

    #[test]
    fn enumeration_agrees_with_the_stated_values() {
        for bits in 1..=5 {
            check_exactly(&RuleGame::new(PopcountRules { bits }), 100_000).unwrap();
        }
    }

    #[test]
    fn every_weight_is_as_likely_as_the_others() {
        let rules = PopcountRules { bits: 9 };
        let mut counts = [0u32; 10];
        let mut dice = Dice::new(1);
        for _ in 0..50_000 {
            counts[rules.begin(&mut dice).count_ones() as usize] += 1;
        }
        assert!(counts.iter().all(|count| (4_600..5_400).contains(count)), "{counts:?}");
    }
}
