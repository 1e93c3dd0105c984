//! Pairs of tokens are shown one after the other; asked for the first, say the second. Clause: GLE-1.

use crate::draw::Draw;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::planes_for;
use std::sync::Arc;

/// The family.
pub struct AssociativeRecall;

impl Family for AssociativeRecall {
    fn name(&self) -> &'static str {
        "associative_recall"
    }

    fn about(&self) -> &'static str {
        "See pairs of tokens, key then value; at the end answer the value that followed the key asked for."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "tokens",
                about: "How many tokens there are.",
                range: Range::Number { min: 2, max: 32, default: 4 },
            },
            Parameter {
                name: "pairs",
                about: "Most pairs of an episode; keys do not repeat, so at most as many as tokens.",
                range: Range::Number { min: 1, max: 32, default: 2 },
            },
        ]
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let (tokens, pairs) = (settings.number("tokens") as u32, settings.number("pairs") as u32);
        if tokens < pairs {
            let why = format!("{pairs} pairs need as many different keys, but there are {tokens} tokens");
            return Err(GameError::Impossible(why));
        }
        Ok(Arc::new(RuleGame::new(AssociativeRecallRules { tokens, pairs })))
    }
}

/// One game of recall.
pub struct AssociativeRecallRules {
    /// How many tokens there are.
    pub tokens: u32,
    /// Most pairs of an episode.
    pub pairs: u32,
}

/// What a step shows. The numbers are the codes seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SymbolKind {
    /// A key; its value is next.
    Key = 1,
    /// The value of the key before.
    Value = 2,
    /// Which value followed this key?
    Question = 3,
}

/// An episode of recall.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Pairs after the one seen now.
    pairs_left: u32,
    kind: SymbolKind,
    token: u32,
    /// The last key.
    key: u32,
    /// Keys shown so far.
    shown: u32,
    values: [u8; 32],
}

impl Rules for AssociativeRecallRules {
    type State = State;

    fn shape(&self) -> Shape {
        let widths = [2, planes_for(self.tokens as usize)];
        rules::answer_shape(&widths, self.tokens as usize, 2 * self.pairs + 1, 1)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let pairs_left = draw.below(self.pairs);
        let key = draw.below(self.tokens);
        State { pairs_left, kind: SymbolKind::Key, token: key, key, shown: 1 << key, values: [0; 32] }
    }

    fn observe(&self, state: &State) -> Bits {
        Bits([state.kind as u64 | u64::from(state.token) << 2, 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        match state.kind {
            SymbolKind::Key => {
                state.token = draw.below(self.tokens);
                state.values[state.key as usize] = state.token as u8;
                state.kind = SymbolKind::Value;
            }
            SymbolKind::Value if 0 < state.pairs_left => {
                state.pairs_left -= 1;
                state.key = draw.pick(self.tokens, |token| state.shown >> token & 1 == 0);
                state.shown |= 1 << state.key;
                (state.kind, state.token) = (SymbolKind::Key, state.key);
            }
            SymbolKind::Value => {
                state.token = draw.pick(self.tokens, |token| state.shown >> token & 1 == 1);
                state.kind = SymbolKind::Question;
            }
            SymbolKind::Question => return rules::answer(action == self.best(state), true),
        }
        rules::pass(false)
    }

    fn best(&self, state: &State) -> u16 {
        match state.kind {
            SymbolKind::Question => u16::from(state.values[state.token as usize]),
            SymbolKind::Key | SymbolKind::Value => 0,
        }
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT))
    }

    fn random(&self) -> Value {
        Value::exact(Fixed::from_ratio(i64::from(RIGHT), i64::from(self.tokens)))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_int(self.pairs as i32 + 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::check_exactly;

    #[test]
    fn enumeration_agrees_with_the_stated_values() {
        for (tokens, pairs) in [(2, 1), (3, 1), (2, 2)] {
            let rules = AssociativeRecallRules { tokens, pairs };
            check_exactly(&RuleGame::new(rules), 2_000_000).unwrap();
        }
    }
}
