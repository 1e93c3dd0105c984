//! Small stores in all lanes; the scalar twin is [`crate::families::key_value`]. Clauses: GLE-1, VM-15.

use crate::families::key_value::KeyValueRules;
use crate::rules::Rules;
use crate::sliced::planes::Planes;
use crate::sliced::{SlicedRules, answers, arithmetic};
use bem_base::environment::Shape;
use bem_base::lanes::{LaneOutcome, LaneWord, planes_for};

/// There are at most 64 events of a kind.
const COUNT_PLANES: usize = 7;
/// There are at most 32 keys.
const KEY_PLANES: usize = 5;
/// There are at most 16 values.
const VALUE_PLANES: usize = 4;

/// Stores at work.
pub struct State {
    writes_left: [LaneWord; COUNT_PLANES],
    distractors_left: [LaneWord; COUNT_PLANES],
    questions_left: [LaneWord; COUNT_PLANES],
    writes: LaneWord,
    asks: LaneWord,
    key: [LaneWord; KEY_PLANES],
    value: [LaneWord; VALUE_PLANES],
    /// Keys written so far.
    written: Vec<LaneWord>,
    /// Their last values.
    store: Vec<[LaneWord; VALUE_PLANES]>,
}

impl KeyValueRules {
    fn advance_planes<P: Planes>(&self, state: &mut State, mask: LaneWord, planes: &mut P) {
        let mut events = [LaneWord::ZERO; COUNT_PLANES + 1];
        arithmetic::add(&state.writes_left, &state.distractors_left, &mut events);
        let asks = arithmetic::is_zero(&events);
        events[0] |= asks;
        let place =
            planes.pick(self.writes + self.distractors, mask, |place| arithmetic::is_less(place, &events));
        let key = planes.below(self.keys, mask);
        let value = planes.below(self.values, mask);
        let nothing_written = arithmetic::is_zero(&state.written);
        let asked = planes.pick(self.keys, mask, |key| {
            let is_written = |any, (number, written): (usize, &LaneWord)| {
                any | *written & arithmetic::is_equal(key, number as u64)
            };
            state.written.iter().enumerate().fold(nothing_written, is_written)
        });

        let asks = mask & asks;
        let writes = mask & !asks & arithmetic::is_less(&place, &state.writes_left);
        let distracts = mask & !asks & !writes;
        arithmetic::decrement(&mut state.questions_left, asks);
        arithmetic::decrement(&mut state.writes_left, writes);
        arithmetic::decrement(&mut state.distractors_left, distracts);
        state.asks = state.asks.replace(asks, mask);
        state.writes = state.writes.replace(writes, mask);
        arithmetic::assign(&mut state.key, &key, mask);
        arithmetic::assign(&mut state.key, &asked, asks);
        arithmetic::assign(&mut state.value, &value, mask);
        arithmetic::assign(&mut state.value, &[], asks);
        for (number, stored) in state.store.iter_mut().enumerate() {
            let here = writes & arithmetic::is_equal(&state.key, number as u64);
            arithmetic::assign(stored, &value, here);
            state.written[number] |= here;
        }
    }
}

impl SlicedRules for KeyValueRules {
    type State = State;

    fn shape(&self) -> Shape {
        Rules::shape(self)
    }

    fn empty(&self) -> State {
        let zero = LaneWord::ZERO;
        State {
            writes_left: [zero; COUNT_PLANES],
            distractors_left: [zero; COUNT_PLANES],
            questions_left: [zero; COUNT_PLANES],
            writes: zero,
            asks: zero,
            key: [zero; KEY_PLANES],
            value: [zero; VALUE_PLANES],
            written: vec![zero; self.keys as usize],
            store: vec![[zero; VALUE_PLANES]; self.keys as usize],
        }
    }

    fn begin<P: Planes>(&self, state: &mut State, mask: LaneWord, planes: &mut P) {
        let writes = planes.below(self.writes, mask);
        arithmetic::assign(&mut state.writes_left, &writes, mask);
        arithmetic::increment(&mut state.writes_left, mask);
        let questions = state.writes_left;
        arithmetic::assign(&mut state.questions_left, &questions, mask);
        let distractors = planes.below(self.distractors + 1, mask);
        arithmetic::assign(&mut state.distractors_left, &distractors, mask);
        for written in &mut state.written {
            *written &= !mask;
        }
        self.advance_planes(state, mask, planes);
    }

    fn observe(&self, state: &State, observation: &mut [LaneWord]) {
        let key_planes = planes_for(self.keys as usize);
        let value_planes = planes_for(self.values as usize);
        observation[0] = state.writes;
        observation[1] = state.asks;
        observation[2..2 + key_planes].copy_from_slice(&state.key[..key_planes]);
        observation[2 + key_planes..].copy_from_slice(&state.value[..value_planes]);
    }

    fn play<P: Planes>(
        &self,
        state: &mut State,
        action: &[LaneWord],
        mask: LaneWord,
        planes: &mut P,
    ) -> LaneOutcome {
        let mut due = [LaneWord::ZERO; VALUE_PLANES];
        for (number, stored) in state.store.iter().enumerate() {
            let here = arithmetic::is_equal(&state.key, number as u64);
            for (plane, bit) in due.iter_mut().zip(stored) {
                *plane |= here & *bit;
            }
        }
        let right = mask & state.asks & arithmetic::are_equal(action, &due);
        // Questions come last, so none left means that nothing is left.
        let done = mask & arithmetic::is_zero(&state.questions_left);
        self.advance_planes(state, mask & !done, planes);
        answers(right, done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sliced::testing::check_lanes;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]
        #[test]
        fn every_lane_plays_like_the_scalar_game(
            keys in 1u32..=32, values in 2u32..=16, writes in 1u32..=64, distractors in 0u32..=64, seed: u64,
        ) {
            let rules = || KeyValueRules { keys, values, writes, distractors };
            check_lanes(&rules(), rules(), seed, (4 * writes + distractors) as usize);
        }
    }
}
