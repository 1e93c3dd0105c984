//! Add or subtract two numbers: bit after bit, one bit on request, or the whole word at once.
//!
//! `serial` shows one bit of each number per step, lowest first, and asks for that bit of the result; the
//! length varies from one to `bits`. `indexed` shows both numbers and which bit it wants. `word` wants the
//! whole result, right or wrong: the sum with its carry, or the difference modulo two to the `bits`.
//! Clauses: GLE-1.

use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules, bits_for};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use std::sync::Arc;

/// The family `add`.
pub struct Add;

/// What is done with the two numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Add,
    Subtract,
}

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "bits",
        about: "bits of each number; at most 9 in the form word",
        range: Range::Number { min: 1, max: 63, default: 4 },
    },
    Parameter {
        name: "form",
        about: "how the result is asked for",
        range: Range::Choice { words: &["serial", "indexed", "word"] },
    },
];

impl Family for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn about(&self) -> &'static str {
        "Add two numbers, bit after bit or as a word."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        build(Operation::Add, settings)
    }
}

pub(super) fn build(operation: Operation, settings: &Settings) -> Result<Arc<dyn Game>, GameError> {
    const WORD_BITS_MAX: u16 = 9;
    let bits = settings.number("bits") as u16;
    let form = [Form::Serial, Form::Indexed, Form::Word][settings.choice("form")];
    if form == Form::Word && WORD_BITS_MAX < bits {
        return Err(GameError::Impossible(format!(
            "bits={bits} is too many for form=word: at most {WORD_BITS_MAX}, because every result is an action"
        )));
    }
    let width = usize::from(bits);
    let shape = match form {
        Form::Serial => rules::answer_shape(&[1, 1], 2, u32::from(bits), u32::from(bits)),
        Form::Indexed => rules::answer_shape(&[width, width, bits_for(width as u64)], 2, 1, 1),
        Form::Word => rules::answer_shape(&[width, width], 1 << (bits + operation.carry_bits()), 1, 1),
    };
    Ok(Arc::new(RuleGame::new(Arithmetic { operation, form, bits, shape })))
}

impl Operation {
    const fn carry_bits(self) -> u16 {
        match self {
            Operation::Add => 1,
            Operation::Subtract => 0,
        }
    }
}

/// How the result is asked for: bit after bit, one bit on request, or the whole word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Serial,
    Indexed,
    Word,
}

/// The rules: which operation, how it is asked for, and how wide the numbers are.
struct Arithmetic {
    operation: Operation,
    form: Form,
    bits: u16,
    shape: Shape,
}

/// The two numbers, and the bit that is asked for.
#[derive(Clone)]
struct State {
    first: u64,
    second: u64,
    /// The bit asked for; the current step in the serial form.
    position: u16,
    length: u16,
}

impl Arithmetic {
    fn result(&self, state: &State) -> u64 {
        match self.operation {
            Operation::Add => state.first + state.second,
            Operation::Subtract => state.first.wrapping_sub(state.second) & ((1 << self.bits) - 1),
        }
    }
}

impl Rules for Arithmetic {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let first = draw.bits(u32::from(self.bits));
        let second = draw.bits(u32::from(self.bits));
        let any = draw.below(u32::from(self.bits)) as u16;
        match self.form {
            Form::Serial => State { first, second, position: 0, length: any + 1 },
            _ => State { first, second, position: any, length: 1 },
        }
    }

    fn observe(&self, state: &State) -> Bits {
        let bits = usize::from(self.bits);
        let mut observation = Bits::ZERO;
        if self.form == Form::Serial {
            observation.set(0, state.first >> state.position & 1 == 1);
            observation.set(1, state.second >> state.position & 1 == 1);
            return observation;
        }
        observation.set_field(0, bits, state.first);
        observation.set_field(bits, bits, state.second);
        if self.form == Form::Indexed {
            let index_bits = usize::from(self.shape.observation_bits) - 2 * bits;
            observation.set_field(2 * bits, index_bits, u64::from(state.position));
        }
        observation
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, _draw: &mut D) -> Outcome {
        let right = action == self.best(state);
        state.position += 1;
        let done = self.form != Form::Serial || state.position == state.length;
        rules::answer(right, done)
    }

    fn best(&self, state: &State) -> u16 {
        let result = self.result(state);
        match self.form {
            Form::Word => result as u16,
            _ => (result >> state.position & 1) as u16,
        }
    }

    fn optimum(&self) -> Value {
        let steps = match self.form {
            Form::Serial => i128::from(self.bits) + 1,
            _ => 2,
        };
        Expectation::from_ratio(i128::from(RIGHT) * steps, 2).to_value()
    }

    fn random(&self) -> Value {
        let best = Expectation::from_fixed(self.optimum().mean);
        best.over(u64::from(self.shape.actions)).to_value()
    }

    fn steps(&self) -> Steps {
        match self.form {
            Form::Serial => Steps::Drawn(Fixed::from_ratio(i64::from(self.bits) + 1, 2)),
            _ => Steps::Drawn(Fixed::ONE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::subtract::Subtract;
    use super::super::testing;
    use super::*;

    #[test]
    fn stated_values_are_what_play_gives_in_every_form() {
        for form in ["serial", "indexed", "word"] {
            for family in [&Add as &dyn Family, &Subtract] {
                testing::check_values(&*testing::build(family, &[("bits", "4"), ("form", form)], 1), 15);
            }
        }
    }

    #[test]
    fn a_serial_sum_is_the_sum_of_what_was_shown() {
        let game = testing::build(&Add, &[("bits", "8"), ("form", "serial")], 1);
        let (mut world, mut oracle) = (game.start(), game.oracle());
        for seed in 0..50 {
            world.reset(seed).unwrap();
            oracle.begin(seed);
            let (mut first, mut second, mut sum) = (0u64, 0u64, 0u64);
            for step in 0.. {
                first |= u64::from(world.observation().get(0)) << step;
                second |= u64::from(world.observation().get(1)) << step;
                let action = oracle.act(world.observation());
                sum |= u64::from(action) << step;
                let outcome = world.step(action).unwrap();
                oracle.see(action, &outcome);
                assert_eq!(outcome.reward, RIGHT);
                if outcome.done {
                    assert_eq!(sum, (first + second) & ((2 << step) - 1));
                    break;
                }
            }
        }
    }

    #[test]
    fn words_too_wide_for_the_actions_are_refused() {
        let texts = [("bits".to_string(), "10".to_string()), ("form".to_string(), "word".to_string())];
        let settings = Settings::parse(PARAMETERS, &texts.into_iter().collect()).unwrap();
        assert!(Add.build(&settings, 1).is_err());
    }
}
