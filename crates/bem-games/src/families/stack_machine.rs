//! A bounded stack that is pushed and popped: say what comes off. Clause: GLE-1.

use crate::draw::Draw;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use crate::sliced::Sliced;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;
use std::sync::Arc;

/// The family.
pub struct StackMachine;

impl Family for StackMachine {
    fn name(&self) -> &'static str {
        "stack_machine"
    }

    fn about(&self) -> &'static str {
        "See pushes with their values and pops without; at every pop answer the popped value."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "depth",
                about: "Values the stack can hold.",
                range: Range::Number { min: 1, max: 32, default: 4 },
            },
            Parameter {
                name: "horizon",
                about: "Steps of the longest episode.",
                range: Range::Number { min: 2, max: 256, default: 16 },
            },
            Parameter {
                name: "value_bits",
                about: "Bits of a value.",
                range: Range::Number { min: 1, max: 4, default: 1 },
            },
        ]
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        Ok(Arc::new(RuleGame::new(StackMachineRules {
            depth: settings.number("depth") as u32,
            horizon: settings.number("horizon") as u32,
            value_bits: settings.number("value_bits") as u32,
        })))
    }
}

/// One stack machine.
#[derive(Clone)]
pub struct StackMachineRules {
    /// Values the stack can hold.
    pub depth: u32,
    /// Steps of the longest episode.
    pub horizon: u32,
    /// Bits of a value.
    pub value_bits: u32,
}

/// A stack at work.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Steps after this one.
    left: u32,
    /// Values on the stack after what is seen now.
    size: u32,
    /// Those values, the top in the lowest bits.
    stack: u128,
    /// What is pushed now, or nothing when something is popped.
    pushed: Option<u16>,
    /// What is popped now.
    popped: u16,
}

impl StackMachineRules {
    fn operate<D: Draw>(&self, state: &mut State, draw: &mut D) {
        let coins = draw.bits(1 + self.value_bits);
        let value = (coins >> 1) as u16;
        if state.size == 0 || state.size < self.depth && coins & 1 == 1 {
            state.stack = state.stack << self.value_bits | u128::from(value);
            state.size += 1;
            state.pushed = Some(value);
        } else {
            state.popped = (state.stack & ((1 << self.value_bits) - 1)) as u16;
            state.stack >>= self.value_bits;
            state.size -= 1;
            state.pushed = None;
        }
    }

    /// The expected reward of answering every pop: a walk over the sizes, step by step, with 96 fractional bits.
    fn pops_rewarded(&self) -> Fixed {
        let one = 1u128 << 96;
        let depth = self.depth as usize;
        let mut chance = vec![0u128; depth + 1];
        chance[0] = one;
        let mut pops = 0u128;
        for step in 0..self.horizon {
            // An episode has this step with a chance of (horizon - step) / horizon.
            let mut next = vec![0u128; depth + 1];
            for size in 0..=depth {
                let (up, down) = match size {
                    0 => (chance[size], 0),
                    _ if size == depth => (0, chance[size]),
                    _ => (chance[size] / 2, chance[size] - chance[size] / 2),
                };
                if 0 < size {
                    next[size - 1] += down;
                    pops += down / u128::from(self.horizon) * u128::from(self.horizon - step);
                }
                if size < depth {
                    next[size + 1] += up;
                }
            }
            chance = next;
        }
        // Cutting has lost some of the lowest bits; adding more than those keeps round values round.
        Fixed::from_raw(((pops * RIGHT as u128 + (1 << 40)) >> 64) as i64)
    }
}

impl Rules for StackMachineRules {
    type State = State;

    fn shape(&self) -> Shape {
        let widths = [1, 1, self.value_bits as usize];
        rules::answer_shape(&widths, 1 << self.value_bits, self.horizon, self.horizon / 2)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let left = draw.below(self.horizon);
        let mut state = State { left, size: 0, stack: 0, pushed: None, popped: 0 };
        self.operate(&mut state, draw);
        state
    }

    fn observe(&self, state: &State) -> Bits {
        let seen = match state.pushed {
            Some(value) => 1 | u64::from(value) << 2,
            None => 2,
        };
        Bits([seen, 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let right = state.pushed.is_none() && action == state.popped;
        if state.left == 0 {
            return rules::answer(right, true);
        }
        state.left -= 1;
        self.operate(state, draw);
        rules::answer(right, false)
    }

    fn best(&self, state: &State) -> u16 {
        if state.pushed.is_none() { state.popped } else { 0 }
    }

    fn optimum(&self) -> Value {
        Value::exact(self.pops_rewarded())
    }

    fn random(&self) -> Value {
        Value::exact(self.optimum().mean.div_count_floor(1 << self.value_bits))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_ratio(i64::from(self.horizon) + 1, 2))
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
        for (depth, horizon, value_bits) in [(1, 2, 1), (2, 3, 1), (2, 4, 1), (1, 3, 2)] {
            let rules = StackMachineRules { depth, horizon, value_bits };
            check_exactly(&RuleGame::new(rules), 1_000_000).unwrap();
        }
    }
}
