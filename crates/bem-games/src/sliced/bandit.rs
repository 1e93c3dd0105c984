//! A bandit in all lanes; the scalar twin is [`crate::families::bandit`]. Clauses: GLE-1, VM-15.

use crate::families::bandit::BanditRules;
use crate::rules::Rules;
use crate::sliced::planes::Planes;
use crate::sliced::{SlicedRules, answers, arithmetic};
use bem_base::environment::Shape;
use bem_base::lanes::{LaneOutcome, LaneWord};

impl SlicedRules for BanditRules {
    type State = ();

    fn shape(&self) -> Shape {
        Rules::shape(self)
    }

    fn empty(&self) {}

    #[inline]
    fn begin<P: Planes>(&self, (): &mut (), _mask: LaneWord, _planes: &mut P) {}

    #[inline]
    fn observe(&self, (): &(), _observation: &mut [LaneWord]) {}

    #[inline]
    fn play<P: Planes>(
        &self,
        (): &mut (),
        action: &[LaneWord],
        mask: LaneWord,
        planes: &mut P,
    ) -> LaneOutcome {
        let best = arithmetic::is_equal(action, u64::from(self.best));
        let paid = planes.chance(best, self.pay.best, self.pay.other, mask);
        answers(mask & paid, mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::bandit::Pay;
    use crate::sliced::testing::check_lanes;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]
        #[test]
        fn every_lane_plays_like_the_scalar_game(arms in 2u16..=256, best: u16, gap in 1u64..=100, seed: u64) {
            let rules = || BanditRules { arms, best: best % arms, pay: Pay::with_gap(gap) };
            check_lanes(&rules(), rules(), seed, 24);
        }
    }
}
