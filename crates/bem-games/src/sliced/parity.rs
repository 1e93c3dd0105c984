//! Parity in all lanes; the scalar twin is [`crate::families::parity`]. Clauses: GLE-1, VM-15.

use crate::families::parity::ParityRules;
use crate::rules::Rules;
use crate::sliced::planes::Planes;
use crate::sliced::{SlicedRules, answers};
use bem_base::environment::Shape;
use bem_base::lanes::{LaneOutcome, LaneWord};

impl SlicedRules for ParityRules {
    /// The strings.
    type State = Vec<LaneWord>;

    fn shape(&self) -> Shape {
        Rules::shape(self)
    }

    fn empty(&self) -> Vec<LaneWord> {
        vec![LaneWord::ZERO; self.bits as usize]
    }

    #[inline]
    fn begin<P: Planes>(&self, strings: &mut Vec<LaneWord>, mask: LaneWord, planes: &mut P) {
        planes.begin_draw();
        for plane in strings {
            *plane = plane.replace(planes.plane(), mask);
        }
    }

    #[inline]
    fn observe(&self, strings: &Vec<LaneWord>, observation: &mut [LaneWord]) {
        observation.copy_from_slice(strings);
    }

    #[inline]
    fn play<P: Planes>(
        &self,
        strings: &mut Vec<LaneWord>,
        action: &[LaneWord],
        mask: LaneWord,
        _planes: &mut P,
    ) -> LaneOutcome {
        let mut wrong = action[0];
        for (bit, plane) in strings.iter().enumerate() {
            if self.mask >> bit & 1 == 1 {
                wrong ^= *plane;
            }
        }
        answers(mask & !wrong, mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sliced::testing::check_lanes;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]
        #[test]
        fn every_lane_plays_like_the_scalar_game(bits in 1u32..=64, mask: u64, seed: u64) {
            let rules = || ParityRules { bits, mask: (mask | 1) & (u64::MAX >> (64 - bits)) };
            check_lanes(&rules(), rules(), seed, 12);
        }
    }
}
