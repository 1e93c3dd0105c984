//! Bounded stacks in all lanes; the scalar twin is [`crate::families::stack_machine`]. Clauses: GLE-1, VM-15.

use crate::families::stack_machine::StackMachineRules;
use crate::rules::Rules;
use crate::sliced::planes::Planes;
use crate::sliced::{SlicedRules, answers, arithmetic};
use bem_base::environment::Shape;
use bem_base::lanes::{LaneOutcome, LaneWord};

/// Episodes have at most 256 steps, so 255 are left after the first.
const LEFT_PLANES: usize = 8;
/// Stacks hold at most 32 values.
const SIZE_PLANES: usize = 6;
/// Values have at most four bits.
const VALUE_PLANES: usize = 4;

/// Stacks at work.
pub struct State {
    /// Steps after this one.
    left: [LaneWord; LEFT_PLANES],
    /// Values on the stack after what is seen now.
    size: [LaneWord; SIZE_PLANES],
    /// Those values, the top first.
    stack: Vec<[LaneWord; VALUE_PLANES]>,
    /// Something is pushed now; else something is popped.
    pushes: LaneWord,
    /// What is pushed or popped now.
    value: [LaneWord; VALUE_PLANES],
}

impl StackMachineRules {
    fn operate_planes<P: Planes>(&self, state: &mut State, mask: LaneWord, planes: &mut P) {
        let bits = self.value_bits as usize;
        let mut coins = [LaneWord::ZERO; 1 + VALUE_PLANES];
        planes.bits(&mut coins[..=bits]);
        let full = arithmetic::is_equal(&state.size, u64::from(self.depth));
        let pushes = arithmetic::is_zero(&state.size) | coins[0] & !full;
        let (push, pop) = (mask & pushes, mask & !pushes);
        arithmetic::increment(&mut state.size, push);
        arithmetic::decrement(&mut state.size, pop);
        state.pushes = state.pushes.replace(pushes, mask);
        for (bit, coin) in coins[1..=bits].iter().enumerate() {
            let value = pushes.select(*coin, state.stack[0][bit]);
            state.value[bit] = state.value[bit].replace(value, mask);
            let mut above = value;
            for place in 0..state.stack.len() {
                let old = state.stack[place][bit];
                let below = state.stack.get(place + 1).map_or(LaneWord::ZERO, |value| value[bit]);
                state.stack[place][bit] = old.replace(above, push).replace(below, pop);
                above = old;
            }
        }
    }
}

impl SlicedRules for StackMachineRules {
    type State = State;

    fn shape(&self) -> Shape {
        Rules::shape(self)
    }

    fn empty(&self) -> State {
        State {
            left: [LaneWord::ZERO; LEFT_PLANES],
            size: [LaneWord::ZERO; SIZE_PLANES],
            stack: vec![[LaneWord::ZERO; VALUE_PLANES]; self.depth as usize],
            pushes: LaneWord::ZERO,
            value: [LaneWord::ZERO; VALUE_PLANES],
        }
    }

    fn begin<P: Planes>(&self, state: &mut State, mask: LaneWord, planes: &mut P) {
        let left = planes.below(self.horizon, mask);
        arithmetic::assign(&mut state.left, &left, mask);
        arithmetic::assign(&mut state.size, &[], mask);
        self.operate_planes(state, mask, planes);
    }

    fn observe(&self, state: &State, observation: &mut [LaneWord]) {
        observation[0] = state.pushes;
        observation[1] = !state.pushes;
        for (plane, bit) in observation[2..].iter_mut().zip(state.value) {
            *plane = bit & state.pushes;
        }
    }

    fn play<P: Planes>(
        &self,
        state: &mut State,
        action: &[LaneWord],
        mask: LaneWord,
        planes: &mut P,
    ) -> LaneOutcome {
        let popped = &state.value[..self.value_bits as usize];
        let right = mask & !state.pushes & arithmetic::are_equal(action, popped);
        let done = mask & arithmetic::is_zero(&state.left);
        let going_on = mask & !done;
        arithmetic::decrement(&mut state.left, going_on);
        self.operate_planes(state, going_on, planes);
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
            depth in 1u32..=32, horizon in 2u32..=256, value_bits in 1u32..=4, seed: u64,
        ) {
            let rules = || StackMachineRules { depth, horizon, value_bits };
            check_lanes(&rules(), rules(), seed, (2 * horizon as usize).min(120));
        }
    }
}
