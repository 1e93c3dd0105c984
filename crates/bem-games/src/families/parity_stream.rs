//! Parity of a string that comes bit by bit; the answer is due at its end. Clause: GLE-1.

use crate::draw::Draw;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use crate::sliced::Sliced;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;
use std::sync::Arc;

/// The family.
pub struct ParityStream;

impl Family for ParityStream {
    fn name(&self) -> &'static str {
        "parity_stream"
    }

    fn about(&self) -> &'static str {
        "See one bit per step and answer at the end whether an odd number of them was set."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "n",
            about: "Bits of the longest string.",
            range: Range::Number { min: 1, max: 256, default: 8 },
        }]
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        Ok(Arc::new(RuleGame::new(ParityStreamRules { bits: settings.number("n") as u32 })))
    }
}

/// One game of streamed parity.
#[derive(Clone)]
pub struct ParityStreamRules {
    /// Bits of the longest string.
    pub bits: u32,
}

/// One string on its way.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Bits still to come, the one seen now included; zero at the end.
    left: u32,
    bit: bool,
    /// Parity of all bits seen so far.
    odd: bool,
}

impl Rules for ParityStreamRules {
    type State = State;

    fn shape(&self) -> Shape {
        rules::answer_shape(&[1, 1], 2, self.bits + 1, 1)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let left = 1 + draw.below(self.bits);
        let bit = draw.bit();
        State { left, bit, odd: bit }
    }

    fn observe(&self, state: &State) -> Bits {
        Bits([u64::from(state.bit) | u64::from(state.left == 0) << 1, 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        if state.left == 0 {
            return rules::answer(action == self.best(state), true);
        }
        state.left -= 1;
        state.bit = draw.bit() && 0 < state.left;
        state.odd ^= state.bit;
        rules::pass(false)
    }

    fn best(&self, state: &State) -> u16 {
        u16::from(state.left == 0 && state.odd)
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT))
    }

    fn random(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT / 2))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_ratio(i64::from(self.bits) + 3, 2))
    }

    fn start_sliced(&self) -> Option<Box<dyn LaneEnvironment + Send>> {
        Some(Box::new(Sliced::new(self.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::check_exactly;

    #[test]
    fn enumeration_agrees_with_the_stated_values() {
        for bits in 1..=4 {
            check_exactly(&RuleGame::new(ParityStreamRules { bits }), 100_000).unwrap();
        }
    }
}
