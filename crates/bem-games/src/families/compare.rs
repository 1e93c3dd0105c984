//! Is the first number smaller than the second?
//!
//! Both share a leading part of random length, so that every bit decides equally often. Clauses: GLE-1.

use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use std::sync::Arc;

/// The family `compare`.
pub struct Compare;

impl Family for Compare {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn about(&self) -> &'static str {
        "Say whether the first of two numbers is smaller."
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[Parameter {
            name: "bits",
            about: "bits of each number",
            range: Range::Number { min: 1, max: 63, default: 4 },
        }];
        PARAMETERS
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let bits = settings.number("bits") as u16;
        let shape = rules::answer_shape(&[usize::from(bits); 2], 2, 1, 1);
        Ok(Arc::new(RuleGame::new(Pair { bits, shape })))
    }
}

/// The rules: how wide the two numbers are.
struct Pair {
    bits: u16,
    shape: Shape,
}

/// The two numbers.
#[derive(Clone)]
struct State {
    first: u64,
    second: u64,
}

impl Rules for Pair {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let first = draw.bits(u32::from(self.bits));
        let shared = draw.below(u32::from(self.bits) + 1);
        let low = (1u64 << (u32::from(self.bits) - shared)) - 1;
        State { first, second: first & !low | draw.bits(64) & low }
    }

    fn observe(&self, state: &State) -> Bits {
        let bits = usize::from(self.bits);
        let mut observation = Bits::ZERO;
        observation.set_field(0, bits, state.first);
        observation.set_field(bits, bits, state.second);
        observation
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, _draw: &mut D) -> Outcome {
        rules::answer(action == self.best(state), true)
    }

    fn best(&self, state: &State) -> u16 {
        u16::from(state.first < state.second)
    }

    fn optimum(&self) -> Value {
        Expectation::from_int(i64::from(RIGHT)).to_value()
    }

    fn random(&self) -> Value {
        Expectation::from_ratio(i128::from(RIGHT), 2).to_value()
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::draw::Dice;

    #[test]
    fn stated_values_are_what_play_gives() {
        for bits in ["1", "8", "63"] {
            testing::check_values(&*testing::build(&Compare, &[("bits", bits)], 1), 12);
        }
    }

    #[test]
    fn the_lowest_bit_decides_about_as_often_as_any_other() {
        let rules = Pair { bits: 8, shape: rules::answer_shape(&[8, 8], 2, 1, 1) };
        let mut dice = Dice::new(5);
        let deals: Vec<State> = (0..10_000).map(|_| rules.begin(&mut dice)).collect();
        let decided_low = deals.iter().filter(|state| state.first ^ state.second == 1).count();
        assert!(500 < decided_low, "{decided_low}");
    }
}
