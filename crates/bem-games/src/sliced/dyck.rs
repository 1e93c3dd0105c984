//! Words of brackets in all lanes; the scalar twin is [`crate::families::dyck`]. Clauses: GLE-1, VM-15.

use crate::families::dyck::DyckRules;
use crate::rules::Rules;
use crate::sliced::planes::Planes;
use crate::sliced::{SlicedRules, answers, arithmetic};
use bem_base::environment::Shape;
use bem_base::lanes::{LaneOutcome, LaneWord};

/// Words have at most 256 brackets.
const LENGTH_PLANES: usize = 9;
/// Depths are at most 32.
const DEPTH_PLANES: usize = 6;

/// Words on their way.
pub struct State {
    /// Brackets after the one seen now.
    left: [LaneWord; LENGTH_PLANES],
    ended: LaneWord,
    /// Open brackets of the word without its error, after the one seen now.
    depth: [LaneWord; DEPTH_PLANES],
    /// Their types, the innermost first; empty when there is one type.
    stack: Vec<LaneWord>,
    /// How many brackets after this one the error comes, where one is still to come.
    error_in: [LaneWord; LENGTH_PLANES],
    error_to_come: LaneWord,
    balanced: LaneWord,
    error_of_type: LaneWord,
    opens: LaneWord,
    closes: LaneWord,
    kind: LaneWord,
}

impl DyckRules {
    /// Grows the words of `mask` by one bracket; `left` already counts those after it.
    fn grow_planes<P: Planes>(&self, state: &mut State, mask: LaneWord, planes: &mut P) {
        let mut coins = [LaneWord::ZERO; 2];
        planes.bits(&mut coins[..self.types as usize]);
        let mut rest = state.left;
        arithmetic::increment(&mut rest, LaneWord::ONES);
        let must_close = arithmetic::are_equal(&state.depth, &rest)
            | arithmetic::is_equal(&state.depth, u64::from(self.depth));
        let opens = arithmetic::is_zero(&state.depth) | coins[0] & !must_close;
        let (push, pop) = (mask & opens, mask & !opens);
        arithmetic::increment(&mut state.depth, push);
        arithmetic::decrement(&mut state.depth, pop);

        let mut kind = LaneWord::ZERO;
        if self.types == 2 {
            kind = opens.select(coins[1], state.stack[0]);
            let mut above = kind;
            for place in 0..state.stack.len() {
                let old = state.stack[place];
                let below = state.stack.get(place + 1).copied().unwrap_or(LaneWord::ZERO);
                state.stack[place] = old.replace(above, push).replace(below, pop);
                above = old;
            }
        }
        let error = mask & state.error_to_come & arithmetic::is_zero(&state.error_in);
        let turned = error & !state.error_of_type;
        state.opens = state.opens.replace(opens ^ turned, mask);
        state.closes = state.closes.replace(!opens ^ turned, mask);
        state.kind = state.kind.replace(kind ^ (error & state.error_of_type), mask);
    }
}

impl SlicedRules for DyckRules {
    type State = State;

    fn shape(&self) -> Shape {
        Rules::shape(self)
    }

    fn empty(&self) -> State {
        let zero = LaneWord::ZERO;
        State {
            left: [zero; LENGTH_PLANES],
            ended: zero,
            depth: [zero; DEPTH_PLANES],
            stack: if self.types == 2 { vec![zero; self.depth as usize] } else { Vec::new() },
            error_in: [zero; LENGTH_PLANES],
            error_to_come: zero,
            balanced: zero,
            error_of_type: zero,
            opens: zero,
            closes: zero,
            kind: zero,
        }
    }

    fn begin<P: Planes>(&self, state: &mut State, mask: LaneWord, planes: &mut P) {
        let pairs = planes.below(self.pairs, mask);
        let mut coins = [LaneWord::ZERO; 2];
        planes.bits(&mut coins[..self.types as usize]);
        // One more pair than drawn, less the first bracket: twice the number drawn, plus one.
        let mut left = [LaneWord::ONES; LENGTH_PLANES];
        left[1..].copy_from_slice(&pairs[..LENGTH_PLANES - 1]);
        let place = planes.pick(2 * self.pairs, mask, |place| !arithmetic::is_less(&left, place));
        arithmetic::assign(&mut state.left, &left, mask);
        arithmetic::assign(&mut state.depth, &[], mask);
        arithmetic::assign(&mut state.error_in, &place, mask);
        state.ended &= !mask;
        state.balanced = state.balanced.replace(coins[0], mask);
        state.error_to_come = state.error_to_come.replace(!coins[0], mask);
        state.error_of_type = state.error_of_type.replace(coins[1], mask);
        self.grow_planes(state, mask, planes);
    }

    fn observe(&self, state: &State, observation: &mut [LaneWord]) {
        observation[0] = state.opens & !state.ended;
        observation[1] = state.closes & !state.ended;
        observation[2] = state.ended;
        if let Some(kind) = observation.get_mut(3) {
            *kind = state.kind & !state.ended;
        }
    }

    fn play<P: Planes>(
        &self,
        state: &mut State,
        action: &[LaneWord],
        mask: LaneWord,
        planes: &mut P,
    ) -> LaneOutcome {
        let done = mask & state.ended;
        let right = done & !(action[0] ^ state.balanced);
        let ending = mask & !state.ended & arithmetic::is_zero(&state.left);
        let going_on = mask & !state.ended & !ending;
        state.ended |= ending;
        arithmetic::decrement(&mut state.left, going_on);
        state.error_to_come &= !(going_on & arithmetic::is_zero(&state.error_in));
        arithmetic::decrement(&mut state.error_in, going_on & state.error_to_come);
        self.grow_planes(state, going_on, planes);
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
            types in 1u32..=2, depth in 1u32..=32, pairs in 1u32..=128, seed: u64,
        ) {
            let rules = || DyckRules { types, depth, pairs };
            check_lanes(&rules(), rules(), seed, 3 * pairs as usize);
        }
    }
}
