//! The first action decides what is paid at the end; what is seen and paid in between is chance.
//!
//! With a cue, one of the bits of the first observation says which action is right; it lies among bits that say nothing.
//! Later actions change nothing, so that what looks only at the present observation can be optimal. Clauses: GLE-1, VM-16.

use super::one_of;
use crate::draw::Draw;
use crate::game::{Steps, Value};
use crate::rules::{RIGHT, Rules};
use bem_base::environment::{Bits, Field, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;

/// What a wrong first action earns where rewards differ by a tenth.
const NEARLY: i32 = 900;

/// One world.
pub(super) struct Consequence {
    actions: u16,
    horizon: u32,
    /// Bits that are drawn anew for every step.
    bits: u16,
    /// The place of the bit that tells, if one does.
    cue: Option<u16>,
    /// The right first action without and with the cue.
    right: [u16; 2],
    /// What a wrong first action earns at the end; a right one earns [`RIGHT`].
    wrong: i32,
    /// Every step but the last pays this or nothing, with equal chance.
    chance: i32,
}

/// An episode under way in which the first action decides.
#[derive(Clone)]
pub(super) struct State {
    time: u32,
    seen: Bits,
    is_right: bool,
}

impl Consequence {
    /// Long delays, many distractions, large differences.
    pub(super) fn draw(prng: &mut Prng) -> Consequence {
        let horizon = one_of(prng, &[5, 10, 20, 40, 70, 100]);
        let bits = one_of(prng, &[0, 4, 16, 40, 100]);
        let actions = 2 + prng.below(3) as u16;
        let has_cue = 0 < bits && prng.bit();
        let cue = has_cue.then(|| prng.below(u64::from(bits)) as u16);
        let first = prng.below(u64::from(actions)) as u16;
        let other = (first + 1 + prng.below(u64::from(actions) - 1) as u16) % actions;
        let chance = one_of(prng, &[0, 50, 100, 200]);
        Consequence { actions, horizon, bits, cue, right: [first, other], wrong: 0, chance }
    }

    /// Small differences, few distractions.
    pub(super) fn draw_difference(prng: &mut Prng) -> Consequence {
        let horizon = one_of(prng, &[2, 5, 10, 20, 50]);
        let bits = one_of(prng, &[0, 2, 8]);
        let actions = 2 + prng.below(3) as u16;
        let first = prng.below(u64::from(actions)) as u16;
        let chance = one_of(prng, &[0, 10, 20]);
        Consequence { actions, horizon, bits, cue: None, right: [first; 2], wrong: NEARLY, chance }
    }

    fn right(&self, seen: &Bits) -> u16 {
        self.right[usize::from(self.cue.is_some_and(|place| seen.get(usize::from(place))))]
    }

    /// What chance pays on average before the last step, in twice the unit.
    fn twice_by_chance(&self) -> i64 {
        i64::from(self.horizon - 1) * i64::from(self.chance)
    }
}

fn drawn_bits<D: Draw>(count: u16, draw: &mut D) -> Bits {
    let mut bits = Bits::ZERO;
    for (word, first) in bits.0.iter_mut().zip((0..u32::from(count)).step_by(64)) {
        *word = draw.bits((u32::from(count) - first).min(64));
    }
    bits
}

impl Rules for Consequence {
    type State = State;

    fn shape(&self) -> Shape {
        Shape {
            observation_bits: self.bits,
            actions: self.actions,
            horizon: self.horizon,
            reward_min: 0,
            reward_max: RIGHT,
            return_min: 0,
            return_max: i64::from(RIGHT) + self.twice_by_chance(),
            fields: (0..self.bits).map(|low| Field { low, width: 1 }).collect(),
        }
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        State { time: 0, seen: drawn_bits(self.bits, draw), is_right: false }
    }

    fn observe(&self, state: &State) -> Bits {
        state.seen
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        if state.time == 0 {
            state.is_right = action == self.right(&state.seen);
        }
        state.time += 1;
        let done = state.time == self.horizon;
        let reward = match (done, state.is_right) {
            (true, true) => RIGHT,
            (true, false) => self.wrong,
            (false, _) => self.chance * i32::from(draw.bit()),
        };
        state.seen = drawn_bits(self.bits, draw);
        Outcome { reward, done, bad: false }
    }

    fn best(&self, state: &State) -> u16 {
        if state.time == 0 { self.right(&state.seen) } else { 0 }
    }

    fn matters(&self, state: &State) -> bool {
        state.time == 0
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_ratio(2 * i64::from(RIGHT) + self.twice_by_chance(), 2))
    }

    fn random(&self) -> Value {
        let actions = i64::from(self.actions);
        let mean = i64::from(RIGHT) + (actions - 1) * i64::from(self.wrong);
        Value::exact(Fixed::from_ratio(2 * mean + actions * self.twice_by_chance(), 2 * actions))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_int(self.horizon as i32))
    }
}
