//! A small store that is written among distractors and then asked. Clause: GLE-1.

use crate::draw::Draw;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use crate::sliced::Sliced;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::{LaneEnvironment, planes_for};
use std::sync::Arc;

/// The family.
pub struct KeyValue;

impl Family for KeyValue {
    fn name(&self) -> &'static str {
        "key_value"
    }

    fn about(&self) -> &'static str {
        "See keys written with values among distractors, then answer the last value of every key asked for."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "keys",
                about: "How many keys there are.",
                range: Range::Number { min: 1, max: 32, default: 4 },
            },
            Parameter {
                name: "values",
                about: "How many values there are.",
                range: Range::Number { min: 2, max: 16, default: 2 },
            },
            Parameter {
                name: "writes",
                about: "Most writes of an episode, and as many questions.",
                range: Range::Number { min: 1, max: 64, default: 4 },
            },
            Parameter {
                name: "distractors",
                about: "Most distractors of an episode.",
                range: Range::Number { min: 0, max: 64, default: 4 },
            },
        ]
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        Ok(Arc::new(RuleGame::new(KeyValueRules {
            keys: settings.number("keys") as u32,
            values: settings.number("values") as u32,
            writes: settings.number("writes") as u32,
            distractors: settings.number("distractors") as u32,
        })))
    }
}

/// One store.
#[derive(Clone)]
pub struct KeyValueRules {
    /// How many keys there are.
    pub keys: u32,
    /// How many values there are.
    pub values: u32,
    /// Most writes of an episode, and as many questions.
    pub writes: u32,
    /// Most distractors of an episode.
    pub distractors: u32,
}

/// What a step shows. The numbers are the codes seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageKind {
    /// Key and value mean nothing.
    Distractor = 0,
    /// The key now has this value.
    Write = 1,
    /// What value does the key have?
    Question = 2,
}

/// A store at work.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Writes after this step.
    writes_left: u32,
    distractors_left: u32,
    questions_left: u32,
    kind: MessageKind,
    key: u32,
    value: u32,
    /// Keys written so far.
    written: u32,
    /// Their last values.
    store: [u8; 32],
}

impl KeyValueRules {
    /// Shows the next event. All draws are made whatever comes, so that every step takes the same ones.
    fn advance<D: Draw>(&self, state: &mut State, draw: &mut D) {
        let events_left = state.writes_left + state.distractors_left;
        let place = draw.pick(self.writes + self.distractors, |place| place < events_left.max(1));
        let key = draw.below(self.keys);
        let value = draw.below(self.values);
        let asked = draw.pick(self.keys, |key| state.written == 0 || state.written >> key & 1 == 1);
        if events_left == 0 {
            state.questions_left -= 1;
            (state.kind, state.key, state.value) = (MessageKind::Question, asked, 0);
            return;
        }
        (state.key, state.value) = (key, value);
        if place < state.writes_left {
            state.writes_left -= 1;
            state.kind = MessageKind::Write;
            state.written |= 1 << key;
            state.store[key as usize] = value as u8;
        } else {
            state.distractors_left -= 1;
            state.kind = MessageKind::Distractor;
        }
    }

    fn key_bits(&self) -> usize {
        planes_for(self.keys as usize)
    }

    fn value_bits(&self) -> usize {
        planes_for(self.values as usize)
    }
}

impl Rules for KeyValueRules {
    type State = State;

    fn shape(&self) -> Shape {
        let horizon = 2 * self.writes + self.distractors;
        let widths = [2, self.key_bits(), self.value_bits()];
        rules::answer_shape(&widths, self.values as usize, horizon, self.writes)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let writes = 1 + draw.below(self.writes);
        let mut state = State {
            writes_left: writes,
            distractors_left: draw.below(self.distractors + 1),
            questions_left: writes,
            kind: MessageKind::Distractor,
            key: 0,
            value: 0,
            written: 0,
            store: [0; 32],
        };
        self.advance(&mut state, draw);
        state
    }

    fn observe(&self, state: &State) -> Bits {
        let (key, value) = (u64::from(state.key), u64::from(state.value));
        Bits([state.kind as u64 | key << 2 | value << (2 + self.key_bits()), 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let right = state.kind == MessageKind::Question && action == self.best(state);
        if state.writes_left + state.distractors_left + state.questions_left == 0 {
            return rules::answer(right, true);
        }
        self.advance(state, draw);
        rules::answer(right, false)
    }

    fn best(&self, state: &State) -> u16 {
        match state.kind {
            MessageKind::Question => u16::from(state.store[state.key as usize]),
            MessageKind::Write | MessageKind::Distractor => 0,
        }
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_ratio(i64::from(RIGHT) * (i64::from(self.writes) + 1), 2))
    }

    fn random(&self) -> Value {
        Value::exact(self.optimum().mean.div_count_floor(u64::from(self.values)))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_ratio(2 * i64::from(self.writes) + 2 + i64::from(self.distractors), 2))
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
        for (keys, values, writes, distractors) in [(2, 2, 1, 0), (2, 2, 1, 1), (1, 3, 1, 1)] {
            let rules = KeyValueRules { keys, values, writes, distractors };
            check_exactly(&RuleGame::new(rules), 2_000_000).unwrap();
        }
    }
}
