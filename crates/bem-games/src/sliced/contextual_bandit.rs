//! A contextual bandit in all lanes; the scalar twin is [`crate::families::contextual_bandit`].
//! Clauses: GLE-1, VM-15.

use crate::families::contextual_bandit::ContextualBanditRules;
use crate::rules::Rules;
use crate::sliced::planes::Planes;
use crate::sliced::{SlicedRules, answers, arithmetic};
use bem_base::environment::Shape;
use bem_base::lanes::{LaneOutcome, LaneWord};

impl ContextualBanditRules {
    /// In which lanes the action is the best one of the context.
    fn action_is_best(&self, seen: &[LaneWord], action: &[LaneWord]) -> LaneWord {
        let context: Vec<LaneWord> = self.places.iter().map(|place| seen[*place as usize]).collect();
        self.best.iter().enumerate().fold(LaneWord::ZERO, |any, (number, arm)| {
            let here = arithmetic::is_equal(&context, number as u64);
            any | here & arithmetic::is_equal(action, u64::from(*arm))
        })
    }
}

impl SlicedRules for ContextualBanditRules {
    /// The bits seen.
    type State = Vec<LaneWord>;

    fn shape(&self) -> Shape {
        Rules::shape(self)
    }

    fn empty(&self) -> Vec<LaneWord> {
        vec![LaneWord::ZERO; self.bits as usize]
    }

    fn begin<P: Planes>(&self, seen: &mut Vec<LaneWord>, mask: LaneWord, planes: &mut P) {
        planes.begin_draw();
        for plane in seen {
            *plane = plane.replace(planes.plane(), mask);
        }
    }

    fn observe(&self, seen: &Vec<LaneWord>, observation: &mut [LaneWord]) {
        observation.copy_from_slice(seen);
    }

    fn play<P: Planes>(
        &self,
        seen: &mut Vec<LaneWord>,
        action: &[LaneWord],
        mask: LaneWord,
        planes: &mut P,
    ) -> LaneOutcome {
        let best = self.action_is_best(seen, action);
        let paid = planes.chance(best, self.pay.best, self.pay.other, mask);
        answers(mask & paid, mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::bandit::Pay;
    use crate::sliced::testing::check_lanes;
    use bem_base::prng::Prng;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]
        #[test]
        fn every_lane_plays_like_the_scalar_game(
            context in 1usize..=6, noise in 0usize..=20, arms in 2u16..=64, gap in 1u64..=100, seed: u64,
        ) {
            let rules = || {
                let mut prng = Prng::stream(seed, "test");
                let mut places: Vec<u32> = (0..(context + noise) as u32).collect();
                prng.shuffle(&mut places);
                places.truncate(context);
                let best = (0..1 << context).map(|_| prng.below(u64::from(arms)) as u16).collect();
                let bits = (context + noise) as u32;
                ContextualBanditRules { bits, places, arms, best, pay: Pay::with_gap(gap) }
            };
            check_lanes(&rules(), rules(), seed, 16);
        }
    }
}
