//! Predict the next token of a Markov chain of order one to three. Clause: GLE-1.
//!
//! In every context one token, hidden in the instance, comes with the chance `peak`; the others share the rest.

use crate::draw::{Chance, Draw};
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::planes_for;
use bem_base::prng::Prng;
use std::sync::Arc;

/// Predictions of the longest episode.
const HORIZON: u32 = 32;

/// The family.
pub struct NextToken;

impl Family for NextToken {
    fn name(&self) -> &'static str {
        "next_token"
    }

    fn about(&self) -> &'static str {
        "See one token per step and predict the next; it depends on the last few tokens."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "vocab",
                about: "How many tokens there are.",
                range: Range::Number { min: 2, max: 16, default: 4 },
            },
            Parameter {
                name: "order",
                about: "How many tokens the next one depends on.",
                range: Range::Number { min: 1, max: 3, default: 1 },
            },
            Parameter {
                name: "peak",
                about: "Percent of the time that the likeliest token comes.",
                range: Range::Number { min: 55, max: 100, default: 85 },
            },
        ]
    }

    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let (vocab, order) = (settings.number("vocab") as u32, settings.number("order") as u32);
        let mut prng = Prng::stream(instance_seed, "next_token");
        let likely = (0..vocab.pow(order)).map(|_| prng.below(u64::from(vocab)) as u8).collect();
        let peak = Chance::ratio(settings.number("peak") as u64, 100);
        Ok(Arc::new(RuleGame::new(NextTokenRules { vocab, order, peak, likely, horizon: HORIZON })))
    }
}

/// One chain.
pub struct NextTokenRules {
    vocab: u32,
    order: u32,
    peak: Chance,
    /// The likeliest token after every context; the last token is the lowest digit.
    likely: Vec<u8>,
    horizon: u32,
}

/// A text on its way.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// The last tokens as digits of a number, the one seen now lowest.
    context: u32,
    /// Tokens seen, as far as they matter.
    seen: u32,
    /// Predictions after this one.
    left: u32,
}

impl Rules for NextTokenRules {
    type State = State;

    fn shape(&self) -> Shape {
        let answers = self.horizon - (self.order - 1);
        rules::answer_shape(&[planes_for(self.vocab as usize)], self.vocab as usize, self.horizon, answers)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let length = self.order + draw.below(self.horizon - self.order + 1);
        State { context: draw.below(self.vocab), seen: 1, left: length - 1 }
    }

    fn observe(&self, state: &State) -> Bits {
        Bits([u64::from(state.context % self.vocab), 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let asked = state.seen == self.order;
        let token = if !asked {
            draw.below(self.vocab)
        } else if draw.chance(self.peak) {
            u32::from(self.best(state))
        } else {
            let likely = u32::from(self.best(state));
            draw.pick(self.vocab, |token| token != likely)
        };
        let outcome = rules::answer(asked && u32::from(action) == token, state.left == 0);
        state.context = (state.context * self.vocab + token) % self.vocab.pow(self.order);
        state.seen = (state.seen + 1).min(self.order);
        state.left = state.left.saturating_sub(1);
        outcome
    }

    fn best(&self, state: &State) -> u16 {
        if state.seen == self.order { u16::from(self.likely[state.context as usize]) } else { 0 }
    }

    fn optimum(&self) -> Value {
        // The mean number of answers is a half of a whole number; the peak is above every other chance.
        let twice = i64::from(self.horizon + self.order - 2 * (self.order - 1));
        Value::exact(self.peak.to_fixed().mul_int(i64::from(RIGHT) * twice).div_count_floor(2))
    }

    fn random(&self) -> Value {
        let twice = i64::from(self.horizon + self.order - 2 * (self.order - 1));
        Value::exact(Fixed::from_ratio(i64::from(RIGHT) * twice, 2 * i64::from(self.vocab)))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_ratio(i64::from(self.horizon + self.order), 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::check_exactly;

    #[test]
    fn enumeration_agrees_with_the_stated_values() {
        let small = |order: u32, likely: Vec<u8>| NextTokenRules {
            vocab: 2,
            order,
            peak: Chance::ratio(3, 4),
            likely,
            horizon: 3,
        };
        check_exactly(&RuleGame::new(small(1, vec![1, 0])), 1_000_000).unwrap();
        check_exactly(&RuleGame::new(small(2, vec![1, 0, 0, 1])), 1_000_000).unwrap();
    }
}
