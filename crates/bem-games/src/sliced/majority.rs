//! Majority in all lanes; the scalar twin is [`crate::families::majority`]. Clauses: GLE-1, VM-15.

use crate::draw::Chance;
use crate::families::majority::MajorityRules;
use crate::rules::Rules;
use crate::sliced::planes::Planes;
use crate::sliced::{SlicedRules, answers, arithmetic};
use bem_base::environment::Shape;
use bem_base::lanes::{LaneOutcome, LaneWord};

/// A weight is at most 64.
const WEIGHT_PLANES: usize = 7;

impl SlicedRules for MajorityRules {
    /// The strings.
    type State = Vec<LaneWord>;

    fn shape(&self) -> Shape {
        Rules::shape(self)
    }

    fn empty(&self) -> Vec<LaneWord> {
        vec![LaneWord::ZERO; self.bits as usize]
    }

    fn begin<P: Planes>(&self, strings: &mut Vec<LaneWord>, mask: LaneWord, planes: &mut P) {
        let density = self.density();
        let even = density == Chance::ratio(1, 2);
        if even {
            planes.begin_draw();
        }
        for plane in strings {
            let new =
                if even { planes.plane() } else { planes.chance(LaneWord::ONES, density, density, mask) };
            *plane = plane.replace(new, mask);
        }
    }

    fn observe(&self, strings: &Vec<LaneWord>, observation: &mut [LaneWord]) {
        observation.copy_from_slice(strings);
    }

    fn play<P: Planes>(
        &self,
        strings: &mut Vec<LaneWord>,
        action: &[LaneWord],
        mask: LaneWord,
        _planes: &mut P,
    ) -> LaneOutcome {
        let mut weight = [LaneWord::ZERO; WEIGHT_PLANES];
        for (bit, plane) in strings.iter().enumerate() {
            if self.mask >> bit & 1 == 1 {
                arithmetic::increment(&mut weight, *plane);
            }
        }
        let no = arithmetic::is_below(&weight, u64::from(self.threshold));
        answers(mask & (action[0] ^ no), mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sliced::testing::check_lanes;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]
        #[test]
        fn every_lane_plays_like_the_scalar_game(bits in 1u32..=64, mask: u64, threshold in 1u32..=64, seed: u64) {
            let mask = (mask | 1) & (u64::MAX >> (64 - bits));
            let rules = || MajorityRules { bits, mask, threshold: threshold.min(mask.count_ones()) };
            check_lanes(&rules(), rules(), seed, 8);
        }
    }
}
