//! The rules that copy, reverse and permute share: values come in one by one, then go out in some order.
//! Clause: GLE-1.

use crate::draw::Draw;
use crate::game::{Parameter, Range, Steps, Value};
use crate::rules::{self, RIGHT, Rules};
use crate::sliced::Sliced;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;

/// Most values of an episode.
pub const LENGTH_MAX: usize = 64;

/// The parameters of all three families.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "length",
        about: "Values of the longest sequence.",
        range: Range::Number { min: 1, max: LENGTH_MAX as i64, default: 4 },
    },
    Parameter {
        name: "value_bits",
        about: "Bits of a value.",
        range: Range::Number { min: 1, max: 4, default: 1 },
    },
];

/// In which order values go out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// First in, first out; the length varies.
    Same,
    /// Last in, first out; the length varies.
    Backward,
    /// The value to say at each place of the output. A permutation belongs to one length, so all sequences have it.
    Hidden(Vec<u8>),
}

/// One game of repeating values.
#[derive(Clone)]
pub struct SequenceRules {
    /// Values of the longest sequence.
    pub length: u32,
    /// Bits of a value.
    pub value_bits: u32,
    /// In which order they go out.
    pub order: Order,
}

/// A sequence on its way.
#[derive(Clone, Copy, Debug)]
pub struct State {
    length: u32,
    /// Values that came in, then values that went out.
    place: u32,
    answering: bool,
    values: [u8; LENGTH_MAX],
}

impl SequenceRules {
    fn take_in<D: Draw>(&self, state: &mut State, draw: &mut D) {
        state.values[state.place as usize] = draw.bits(self.value_bits) as u8;
    }
}

impl Rules for SequenceRules {
    type State = State;

    fn shape(&self) -> Shape {
        let widths = [1, 1, self.value_bits as usize];
        rules::answer_shape(&widths, 1 << self.value_bits, 2 * self.length, self.length)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let length = match self.order {
            Order::Same | Order::Backward => 1 + draw.below(self.length),
            Order::Hidden(_) => self.length,
        };
        let mut state = State { length, place: 0, answering: false, values: [0; LENGTH_MAX] };
        self.take_in(&mut state, draw);
        state
    }

    fn observe(&self, state: &State) -> Bits {
        if state.answering {
            return Bits([2, 0, 0, 0]);
        }
        Bits([1 | u64::from(state.values[state.place as usize]) << 2, 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let right = state.answering && action == self.best(state);
        state.place += 1;
        if state.place == state.length {
            if state.answering {
                return rules::answer(right, true);
            }
            state.answering = true;
            state.place = 0;
        } else if !state.answering {
            self.take_in(state, draw);
        }
        rules::answer(right, false)
    }

    fn best(&self, state: &State) -> u16 {
        if !state.answering {
            return 0;
        }
        let place = match &self.order {
            Order::Same => state.place,
            Order::Backward => state.length - 1 - state.place,
            Order::Hidden(order) => u32::from(order[state.place as usize]),
        };
        u16::from(state.values[place as usize])
    }

    fn optimum(&self) -> Value {
        let twice = match self.order {
            Order::Same | Order::Backward => i64::from(self.length) + 1,
            Order::Hidden(_) => 2 * i64::from(self.length),
        };
        Value::exact(Fixed::from_ratio(i64::from(RIGHT) * twice, 2))
    }

    fn random(&self) -> Value {
        Value::exact(self.optimum().mean.div_count_floor(1 << self.value_bits))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(self.optimum().mean.mul_int(2).div_count_floor(RIGHT as u64))
    }

    fn start_sliced(&self) -> Option<Box<dyn LaneEnvironment + Send>> {
        Some(Box::new(Sliced::new(self.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::check_exactly;
    use crate::rules::RuleGame;

    #[test]
    fn enumeration_agrees_with_the_stated_values() {
        for order in [Order::Same, Order::Backward, Order::Hidden(vec![1, 2, 0])] {
            let rules = SequenceRules { length: 3, value_bits: 1, order };
            check_exactly(&RuleGame::new(rules), 1_000_000).unwrap();
        }
    }
}
