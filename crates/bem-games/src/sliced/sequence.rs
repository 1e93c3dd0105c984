//! Copy, reverse and permute in all lanes; the scalar twin is [`crate::families::sequence`].
//! Clauses: GLE-1, VM-15.

use crate::families::sequence::{Order, SequenceRules};
use crate::rules::Rules;
use crate::sliced::planes::Planes;
use crate::sliced::{SlicedRules, answers, arithmetic};
use bem_base::environment::Shape;
use bem_base::lanes::{LaneOutcome, LaneWord};

/// Lengths are at most 64.
const PLACE_PLANES: usize = 7;
/// Values have at most four bits.
const VALUE_PLANES: usize = 4;

/// A symbol in all lanes, bit by bit.
type Value = [LaneWord; VALUE_PLANES];

/// Sequences on their way.
pub struct State {
    length: [LaneWord; PLACE_PLANES],
    /// Values that came in, then values that went out.
    place: [LaneWord; PLACE_PLANES],
    answering: LaneWord,
    values: Vec<Value>,
    /// The value that came in last.
    shown: Value,
}

impl SequenceRules {
    /// Takes a value in at the place of each lane of `mask`.
    fn take_in_planes<P: Planes>(&self, state: &mut State, mask: LaneWord, planes: &mut P) {
        let bits = self.value_bits as usize;
        let mut drawn = [LaneWord::ZERO; VALUE_PLANES];
        planes.bits(&mut drawn[..bits]);
        arithmetic::assign(&mut state.shown, &drawn, mask);
        for (slot, value) in state.values.iter_mut().enumerate() {
            let here = mask & arithmetic::is_equal(&state.place, slot as u64);
            arithmetic::assign(&mut value[..bits], &drawn, here);
        }
    }

    /// The value that is due at the place of each lane.
    fn due(&self, state: &State) -> Value {
        let mut due = [LaneWord::ZERO; VALUE_PLANES];
        let mut add = |here: LaneWord, value: &Value| {
            for (plane, bit) in due.iter_mut().zip(value) {
                *plane |= here & *bit;
            }
        };
        for (slot, value) in state.values.iter().enumerate() {
            match &self.order {
                Order::Same => add(arithmetic::is_equal(&state.place, slot as u64), value),
                Order::Hidden(order) => {
                    let here = arithmetic::is_equal(&state.place, slot as u64);
                    add(here, &state.values[usize::from(order[slot])]);
                }
                Order::Backward => {
                    // The slot is due where place + slot + 1 is the length.
                    let mut sum = state.place;
                    let offset: [LaneWord; PLACE_PLANES] =
                        core::array::from_fn(|bit| LaneWord::splat((slot + 1) >> bit & 1 == 1));
                    arithmetic::add(&state.place, &offset, &mut sum);
                    add(arithmetic::are_equal(&sum, &state.length), value);
                }
            }
        }
        due
    }
}

impl SlicedRules for SequenceRules {
    type State = State;

    fn shape(&self) -> Shape {
        Rules::shape(self)
    }

    fn empty(&self) -> State {
        State {
            length: [LaneWord::ZERO; PLACE_PLANES],
            place: [LaneWord::ZERO; PLACE_PLANES],
            answering: LaneWord::ZERO,
            values: vec![[LaneWord::ZERO; VALUE_PLANES]; self.length as usize],
            shown: [LaneWord::ZERO; VALUE_PLANES],
        }
    }

    fn begin<P: Planes>(&self, state: &mut State, mask: LaneWord, planes: &mut P) {
        match self.order {
            Order::Same | Order::Backward => {
                let longer = planes.below(self.length, mask);
                arithmetic::assign(&mut state.length, &longer, mask);
                arithmetic::increment(&mut state.length, mask);
            }
            Order::Hidden(_) => {
                for (bit, plane) in state.length.iter_mut().enumerate() {
                    *plane = LaneWord::splat(self.length >> bit & 1 == 1);
                }
            }
        }
        arithmetic::assign(&mut state.place, &[], mask);
        state.answering &= !mask;
        self.take_in_planes(state, mask, planes);
    }

    fn observe(&self, state: &State, observation: &mut [LaneWord]) {
        observation[0] = !state.answering;
        observation[1] = state.answering;
        for (plane, bit) in observation[2..].iter_mut().zip(state.shown) {
            *plane = bit & !state.answering;
        }
    }

    fn play<P: Planes>(
        &self,
        state: &mut State,
        action: &[LaneWord],
        mask: LaneWord,
        planes: &mut P,
    ) -> LaneOutcome {
        let due = self.due(state);
        let right = mask & state.answering & arithmetic::are_equal(action, &due[..self.value_bits as usize]);
        arithmetic::increment(&mut state.place, mask);
        let at_end = mask & arithmetic::are_equal(&state.place, &state.length);
        let done = at_end & state.answering;
        let going_on = mask & !at_end & !state.answering;
        arithmetic::assign(&mut state.place, &[], at_end);
        state.answering |= at_end;
        self.take_in_planes(state, going_on, planes);
        answers(right, done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sliced::testing::check_lanes;
    use bem_base::prng::Prng;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]
        #[test]
        fn every_lane_plays_like_the_scalar_game(
            length in 1u32..=64, value_bits in 1u32..=4, kind in 0..3, seed: u64,
        ) {
            let rules = || {
                let mut hidden: Vec<u8> = (0..length as u8).collect();
                Prng::stream(seed, "test").shuffle(&mut hidden);
                let order = match kind {
                    0 => Order::Same,
                    1 => Order::Backward,
                    _ => Order::Hidden(hidden),
                };
                SequenceRules { length, value_bits, order }
            };
            check_lanes(&rules(), rules(), seed, 3 * length as usize);
        }
    }
}
