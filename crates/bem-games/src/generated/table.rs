//! A table of bits is shown once; after a pause, bits of it are asked for by their number.
//!
//! The observation has a field for the table, one for the number, and a bit that says that something is asked. Each is zero
//! when it is not shown. Clauses: GLE-1, VM-16.

use super::one_of;
use crate::draw::Draw;
use crate::game::{Steps, Value};
use crate::rules::{RIGHT, Rules, answer, answer_shape, bits_for, pass};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;

/// One world.
pub(super) struct ShownTable {
    /// Bits of the table; a power of two.
    size: u32,
    /// Steps between the table and the first question.
    pause: u32,
    questions: u32,
    /// The answer to a bit is this action when the bit is zero.
    zero: u16,
}

/// An episode under way in which a shown table is asked for.
#[derive(Clone)]
pub(super) struct State {
    time: u32,
    table: u64,
    asked: u32,
}

impl ShownTable {
    pub(super) fn draw(prng: &mut Prng) -> ShownTable {
        let size = one_of(prng, &[4, 8, 16, 32, 64]);
        let pause = one_of(prng, &[0, 1, 4, 10]);
        let questions = one_of(prng, &[1, 2, 4, 8]);
        ShownTable { size, pause, questions, zero: prng.below(2) as u16 }
    }

    fn number_bits(&self) -> usize {
        bits_for(u64::from(self.size))
    }

    fn is_asking(&self, state: &State) -> bool {
        self.pause < state.time
    }

    fn horizon(&self) -> u32 {
        1 + self.pause + self.questions
    }
}

impl Rules for ShownTable {
    type State = State;

    fn shape(&self) -> Shape {
        answer_shape(&[self.size as usize, self.number_bits(), 1], 2, self.horizon(), self.questions)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        State { time: 0, table: draw.bits(self.size), asked: 0 }
    }

    fn observe(&self, state: &State) -> Bits {
        let mut seen = Bits::ZERO;
        if state.time == 0 {
            seen.set_field(0, self.size as usize, state.table);
        }
        if self.is_asking(state) {
            seen.set_field(self.size as usize, self.number_bits(), u64::from(state.asked));
            seen.set(self.size as usize + self.number_bits(), true);
        }
        seen
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let (asking, right) = (self.is_asking(state), self.best(state));
        state.time += 1;
        let done = state.time == self.horizon();
        if !done && self.is_asking(state) {
            state.asked = draw.bits(self.number_bits() as u32) as u32;
        }
        if asking { answer(action == right, done) } else { pass(done) }
    }

    fn best(&self, state: &State) -> u16 {
        if !self.is_asking(state) {
            return 0;
        }
        self.zero ^ (state.table >> state.asked & 1) as u16
    }

    fn matters(&self, state: &State) -> bool {
        self.is_asking(state)
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT * self.questions as i32))
    }

    fn random(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT / 2 * self.questions as i32))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_int(self.horizon() as i32))
    }
}
