//! A bandit whose best arm changes from time to time. Clause: GLE-1.
//!
//! An episode has [`SEGMENTS`] segments of equal length; at each border another arm becomes the best. The stated
//! optimum is the clairvoyant one, which always pulls the best arm: nobody beats it, and one who has to find the
//! new best arm falls short of it by the steps that takes.

use crate::draw::Draw;
use crate::families::bandit::Pay;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use crate::sliced::Sliced;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;

use bem_base::limits::EPISODE_STEPS_MAX;
use std::sync::Arc;

/// Segments of an episode.
pub const SEGMENTS: u32 = 4;

const SEGMENT_MAX: u32 = EPISODE_STEPS_MAX / SEGMENTS;

/// The family.
pub struct NonstationaryBandit;

impl Family for NonstationaryBandit {
    fn name(&self) -> &'static str {
        "nonstationary_bandit"
    }

    fn about(&self) -> &'static str {
        "See nothing, pull an arm at every step; which arm pays most often changes three times in an episode."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "arms",
                about: "How many arms there are.",
                range: Range::Number { min: 2, max: 64, default: 4 },
            },
            Parameter {
                name: "gap",
                about: "How many percent more often the best arm pays than the others.",
                range: Range::Number { min: 1, max: 100, default: 20 },
            },
            Parameter {
                name: "segment",
                about: "Steps between two changes; an episode has four segments.",
                range: Range::Number { min: 1, max: SEGMENT_MAX as i64, default: 16_000 },
            },
        ]
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        Ok(Arc::new(RuleGame::new(NonstationaryBanditRules {
            arms: settings.number("arms") as u16,
            pay: Pay::with_gap(settings.number("gap") as u64),
            segment: settings.number("segment") as u32,
        })))
    }
}

/// One bandit with change points.
#[derive(Clone)]
pub struct NonstationaryBanditRules {
    /// How many arms there are.
    pub arms: u16,
    /// How often arms pay.
    pub pay: Pay,
    /// Steps between two changes.
    pub segment: u32,
}

/// An episode.
#[derive(Clone, Copy, Debug)]
pub struct State {
    best: u16,
    /// Steps taken.
    time: u32,
}

impl NonstationaryBanditRules {
    fn horizon(&self) -> u32 {
        SEGMENTS * self.segment
    }
}

impl Rules for NonstationaryBanditRules {
    type State = State;

    fn shape(&self) -> Shape {
        rules::answer_shape(&[], usize::from(self.arms), self.horizon(), self.horizon())
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        State { best: draw.below(u32::from(self.arms)) as u16, time: 0 }
    }

    fn observe(&self, _state: &State) -> Bits {
        Bits::ZERO
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let paid = draw.chance(if action == state.best { self.pay.best } else { self.pay.other });
        state.time += 1;
        if state.time.is_multiple_of(self.segment) {
            let now = u32::from(state.best);
            state.best = draw.pick(u32::from(self.arms), |arm| arm != now) as u16;
        }
        rules::answer(paid, state.time == self.horizon())
    }

    fn best(&self, state: &State) -> u16 {
        state.best
    }

    fn optimum(&self) -> Value {
        Value::exact(self.pay.optimum().mul_int(i64::from(self.horizon())))
    }

    fn random(&self) -> Value {
        // Rounded once, after the product: the horizon is long.
        let others = self.pay.other.to_fixed().mul_int(i64::from(self.arms) - 1);
        let sum = self.pay.best.to_fixed().plus(others).to_raw();
        let product = i128::from(sum) * i128::from(RIGHT) * i128::from(self.horizon());
        Value::exact(Fixed::from_raw((product / i128::from(self.arms)) as i64))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_int(self.horizon() as i32))
    }

    fn start_sliced(&self) -> Option<Box<dyn LaneEnvironment + Send>> {
        Some(Box::new(Sliced::new(self.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enumerate::exact_values;

    #[test]
    fn no_policy_beats_the_clairvoyant_and_the_random_value_is_exact() {
        let rules = NonstationaryBanditRules { arms: 2, pay: Pay::with_gap(100), segment: 1 };
        let exact = exact_values(&rules, 1_000_000).unwrap();
        assert!(exact.optimum.to_fixed_floor() < rules.optimum().mean);
        assert_eq!(exact.random.to_fixed_floor(), rules.random().mean);
    }
}
