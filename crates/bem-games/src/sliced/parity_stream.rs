//! Streamed parity in all lanes; the scalar twin is [`crate::families::parity_stream`]. Clauses: GLE-1, VM-15.

use crate::families::parity_stream::ParityStreamRules;
use crate::rules::Rules;
use crate::sliced::planes::Planes;
use crate::sliced::{SlicedRules, answers, arithmetic};
use bem_base::environment::Shape;
use bem_base::lanes::{LaneOutcome, LaneWord};

/// Strings have at most 256 bits.
const LEFT_PLANES: usize = 9;

/// Strings on their way.
pub struct State {
    /// Bits still to come, the one seen now included; zero at the end.
    left: [LaneWord; LEFT_PLANES],
    bit: LaneWord,
    odd: LaneWord,
}

impl SlicedRules for ParityStreamRules {
    type State = State;

    fn shape(&self) -> Shape {
        Rules::shape(self)
    }

    fn empty(&self) -> State {
        State { left: [LaneWord::ZERO; LEFT_PLANES], bit: LaneWord::ZERO, odd: LaneWord::ZERO }
    }

    fn begin<P: Planes>(&self, state: &mut State, mask: LaneWord, planes: &mut P) {
        let longer = planes.below(self.bits, mask);
        arithmetic::assign(&mut state.left, &longer, mask);
        arithmetic::increment(&mut state.left, mask);
        let mut coin = [LaneWord::ZERO];
        planes.bits(&mut coin);
        state.bit = state.bit.replace(coin[0], mask);
        state.odd = state.odd.replace(coin[0], mask);
    }

    fn observe(&self, state: &State, observation: &mut [LaneWord]) {
        observation[0] = state.bit;
        observation[1] = arithmetic::is_zero(&state.left);
    }

    fn play<P: Planes>(
        &self,
        state: &mut State,
        action: &[LaneWord],
        mask: LaneWord,
        planes: &mut P,
    ) -> LaneOutcome {
        let done = mask & arithmetic::is_zero(&state.left);
        let right = done & !(action[0] ^ state.odd);
        let going_on = mask & !done;
        arithmetic::decrement(&mut state.left, going_on);
        let mut coin = [LaneWord::ZERO];
        planes.bits(&mut coin);
        let bit = coin[0] & !arithmetic::is_zero(&state.left);
        state.bit = state.bit.replace(bit, going_on);
        state.odd ^= bit & going_on;
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
        fn every_lane_plays_like_the_scalar_game(bits in 1u32..=256, seed: u64) {
            let rules = || ParityStreamRules { bits };
            check_lanes(&rules(), rules(), seed, (3 * bits as usize).min(200));
        }
    }
}
