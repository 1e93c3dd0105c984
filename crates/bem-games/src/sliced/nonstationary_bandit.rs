//! A bandit with change points in all lanes; the scalar twin is [`crate::families::nonstationary_bandit`].
//! Clauses: GLE-1, VM-15.

use crate::families::nonstationary_bandit::{NonstationaryBanditRules, SEGMENTS};
use crate::rules::Rules;
use crate::sliced::planes::Planes;
use crate::sliced::{SlicedRules, answers, arithmetic};
use bem_base::environment::Shape;
use bem_base::lanes::{LaneOutcome, LaneWord};

/// There are at most 64 arms.
const ARM_PLANES: usize = 6;
/// Segments have at most 16,384 steps.
const TIME_PLANES: usize = 15;
/// There are four segments.
const SEGMENT_PLANES: usize = 3;

const _: () = assert!(SEGMENTS < 1 << SEGMENT_PLANES);

/// Episodes under way.
pub struct State {
    best: [LaneWord; ARM_PLANES],
    /// Steps taken in this segment.
    time: [LaneWord; TIME_PLANES],
    /// Segments that are over.
    segment: [LaneWord; SEGMENT_PLANES],
}

impl SlicedRules for NonstationaryBanditRules {
    type State = State;

    fn shape(&self) -> Shape {
        Rules::shape(self)
    }

    fn empty(&self) -> State {
        State {
            best: [LaneWord::ZERO; ARM_PLANES],
            time: [LaneWord::ZERO; TIME_PLANES],
            segment: [LaneWord::ZERO; SEGMENT_PLANES],
        }
    }

    fn begin<P: Planes>(&self, state: &mut State, mask: LaneWord, planes: &mut P) {
        let best = planes.below(u32::from(self.arms), mask);
        arithmetic::assign(&mut state.best, &best, mask);
        arithmetic::assign(&mut state.time, &[], mask);
        arithmetic::assign(&mut state.segment, &[], mask);
    }

    fn observe(&self, _state: &State, _observation: &mut [LaneWord]) {}

    fn play<P: Planes>(
        &self,
        state: &mut State,
        action: &[LaneWord],
        mask: LaneWord,
        planes: &mut P,
    ) -> LaneOutcome {
        let best = arithmetic::are_equal(action, &state.best);
        let paid = planes.chance(best, self.pay.best, self.pay.other, mask);
        arithmetic::increment(&mut state.time, mask);
        let border = mask & arithmetic::is_equal(&state.time, u64::from(self.segment));
        let now = state.best;
        let next = planes.pick(u32::from(self.arms), border, |arm| !arithmetic::are_equal(arm, &now));
        arithmetic::assign(&mut state.best, &next, border);
        arithmetic::assign(&mut state.time, &[], border);
        arithmetic::increment(&mut state.segment, border);
        let done = border & arithmetic::is_equal(&state.segment, u64::from(SEGMENTS));
        answers(mask & paid, done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::bandit::Pay;
    use crate::sliced::testing::check_lanes;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]
        #[test]
        fn every_lane_plays_like_the_scalar_game(
            arms in 2u16..=64, gap in 1u64..=100, segment in 1u32..=20, seed: u64,
        ) {
            let rules = || NonstationaryBanditRules { arms, pay: Pay::with_gap(gap), segment };
            check_lanes(&rules(), rules(), seed, 10 * segment as usize);
        }
    }
}
