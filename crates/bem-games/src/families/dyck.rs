//! Words of brackets, of one or two types: is the word balanced? Clause: GLE-1.
//!
//! A balanced word is grown symbol by symbol within the depth; in half of the words one symbol, anywhere, is
//! turned around or gets the other type. One such error always leaves the word unbalanced: turning moves the
//! final depth by two, a changed type no longer fits its partner.

use crate::draw::Draw;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use crate::sliced::Sliced;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;
use std::sync::Arc;

/// The family.
pub struct Dyck;

impl Family for Dyck {
    fn name(&self) -> &'static str {
        "dyck"
    }

    fn about(&self) -> &'static str {
        "See one bracket per step and answer at the end whether the word was balanced."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "types",
                about: "Types of brackets.",
                range: Range::Number { min: 1, max: 2, default: 1 },
            },
            Parameter {
                name: "depth",
                about: "Brackets that are open at once, at most.",
                range: Range::Number { min: 1, max: 32, default: 4 },
            },
            Parameter {
                name: "length",
                about: "Brackets of the longest word; an odd one counts as one less.",
                range: Range::Number { min: 2, max: 256, default: 16 },
            },
        ]
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        Ok(Arc::new(RuleGame::new(DyckRules {
            types: settings.number("types") as u32,
            depth: settings.number("depth") as u32,
            pairs: settings.number("length") as u32 / 2,
        })))
    }
}

/// One game of brackets.
#[derive(Clone)]
pub struct DyckRules {
    /// One or two types of brackets.
    pub types: u32,
    /// Brackets that are open at once, at most.
    pub depth: u32,
    /// Pairs of the longest word.
    pub pairs: u32,
}

/// A word on its way.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Brackets after the one seen now; [`END`] once the word has ended.
    left: u32,
    /// Open brackets of the word without its error, after the one seen now.
    depth: u32,
    /// Their types, the innermost in the lowest bit.
    stack: u64,
    /// How many brackets after this one the error comes, if the word has one to come.
    error_in: Option<u32>,
    balanced: bool,
    /// The error changes the type instead of the direction.
    error_of_type: bool,
    /// What is seen: the bits of `OPEN`, `CLOSE`, `STOP` and `TYPE`.
    symbol: u64,
}

const END: u32 = u32::MAX;
const OPEN: u64 = 1;
const CLOSE: u64 = 2;
const STOP: u64 = 4;
const TYPE: u64 = 8;

impl DyckRules {
    /// Grows the word by one bracket; `left` already counts those after it.
    fn grow<D: Draw>(&self, state: &mut State, draw: &mut D) {
        let coins = draw.bits(self.types);
        let must_close = state.depth == state.left + 1 || state.depth == self.depth;
        let opens = state.depth == 0 || !must_close && coins & 1 == 1;
        let mut symbol = if opens {
            let kind = coins >> 1;
            state.depth += 1;
            state.stack = state.stack << 1 | kind;
            OPEN | (kind * TYPE)
        } else {
            let kind = state.stack & 1;
            state.depth -= 1;
            state.stack >>= 1;
            CLOSE | (kind * TYPE)
        };
        if state.error_in == Some(0) {
            symbol ^= if state.error_of_type { TYPE } else { OPEN | CLOSE };
        }
        state.symbol = symbol;
    }
}

impl Rules for DyckRules {
    type State = State;

    fn shape(&self) -> Shape {
        let type_bits = self.types as usize - 1;
        rules::answer_shape(&[1, 1, 1, type_bits], 2, 2 * self.pairs + 1, 1)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let length = 2 * (1 + draw.below(self.pairs));
        let coins = draw.bits(self.types);
        let place = draw.pick(2 * self.pairs, |place| place < length);
        let balanced = coins & 1 == 1;
        let mut state = State {
            left: length - 1,
            depth: 0,
            stack: 0,
            error_in: (!balanced).then_some(place),
            balanced,
            error_of_type: coins >> 1 == 1,
            symbol: 0,
        };
        self.grow(&mut state, draw);
        state
    }

    fn observe(&self, state: &State) -> Bits {
        Bits([state.symbol, 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        if state.left == END {
            return rules::answer(action == self.best(state), true);
        }
        if state.left == 0 {
            state.left = END;
            state.symbol = STOP;
        } else {
            state.left -= 1;
            state.error_in = state.error_in.and_then(|steps| steps.checked_sub(1));
            self.grow(state, draw);
        }
        rules::pass(false)
    }

    fn best(&self, state: &State) -> u16 {
        u16::from(state.left == END && state.balanced)
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT))
    }

    fn random(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT / 2))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_int(self.pairs as i32 + 2))
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
        for (types, depth, pairs) in [(1, 1, 1), (1, 2, 2), (2, 1, 1), (2, 2, 2)] {
            check_exactly(&RuleGame::new(DyckRules { types, depth, pairs }), 1_000_000).unwrap();
        }
    }

    /// Whether the brackets of one episode match, told by a stack.
    fn word_is_balanced(symbols: &[Bits]) -> bool {
        let mut stack = Vec::new();
        for symbol in symbols {
            if symbol.get(0) {
                stack.push(symbol.get(3));
            } else if stack.pop() != Some(symbol.get(3)) {
                return false;
            }
        }
        stack.is_empty()
    }

    #[test]
    fn the_rewarded_answer_is_what_a_stack_says_and_depth_holds() {
        for (types, depth, pairs) in [(1, 4, 8), (2, 3, 8), (2, 32, 64)] {
            let mut world = RuleGame::new(DyckRules { types, depth, pairs }).start();
            let mut balanced_count = 0;
            for seed in 0..1_000 {
                world.reset(seed).unwrap();
                let mut word = Vec::new();
                while !world.observation().get(2) {
                    word.push(*world.observation());
                    world.step(0).unwrap();
                }
                let balanced = word_is_balanced(&word);
                balanced_count += u32::from(balanced);
                if balanced {
                    let mut open = 0;
                    for symbol in &word {
                        open += if symbol.get(0) { 1 } else { -1 };
                        assert!(open <= depth as i32);
                    }
                }
                assert_eq!(world.step(u16::from(balanced)).unwrap().reward, RIGHT, "seed {seed}");
            }
            assert!((400..600).contains(&balanced_count), "{balanced_count} of 1000 balanced");
        }
    }
}
