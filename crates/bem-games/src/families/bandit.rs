//! K arms that pay by chance, one of them more often than the others. Clause: GLE-1.

use crate::draw::{Chance, Draw};
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use crate::sliced::Sliced;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;
use bem_base::prng::Prng;
use std::sync::Arc;

/// The family.
pub struct Bandit;

impl Family for Bandit {
    fn name(&self) -> &'static str {
        "bandit"
    }

    fn about(&self) -> &'static str {
        "See nothing, pull one of the arms; one of them pays more often than the others."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "arms",
                about: "How many arms there are.",
                range: Range::Number { min: 2, max: 256, default: 8 },
            },
            Parameter {
                name: "gap",
                about: "How many percent more often the best arm pays than the others.",
                range: Range::Number { min: 1, max: 100, default: 20 },
            },
        ]
    }

    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let arms = settings.number("arms") as u16;
        let best = Prng::stream(instance_seed, "bandit").below(u64::from(arms)) as u16;
        let pay = Pay::with_gap(settings.number("gap") as u64);
        Ok(Arc::new(RuleGame::new(BanditRules { arms, best, pay })))
    }
}

/// How often arms pay: symmetric around one half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pay {
    /// The best arm's chance.
    pub best: Chance,
    /// Every other arm's chance.
    pub other: Chance,
}

impl Pay {
    /// Chances that lie `gap` percent apart.
    pub fn with_gap(gap: u64) -> Pay {
        Pay { best: Chance::ratio(100 + gap, 200), other: Chance::ratio(100 - gap, 200) }
    }

    /// Expected reward of the best arm.
    pub fn optimum(self) -> Fixed {
        self.best.to_fixed().mul_int(i64::from(RIGHT))
    }

    /// Expected reward of an arm chosen with equal chance.
    pub fn random(self, arms: u16) -> Fixed {
        let others = self.other.to_fixed().mul_int(i64::from(arms) - 1);
        self.best.to_fixed().plus(others).mul_int(i64::from(RIGHT)).div_count_floor(u64::from(arms))
    }
}

/// One bandit.
#[derive(Clone)]
pub struct BanditRules {
    /// How many arms there are.
    pub arms: u16,
    /// The one that pays most often.
    pub best: u16,
    /// How often arms pay.
    pub pay: Pay,
}

impl Rules for BanditRules {
    type State = ();

    fn shape(&self) -> Shape {
        rules::answer_shape(&[], usize::from(self.arms), 1, 1)
    }

    fn begin<D: Draw>(&self, _draw: &mut D) {}

    fn observe(&self, (): &()) -> Bits {
        Bits::ZERO
    }

    fn play<D: Draw>(&self, (): &mut (), action: u16, draw: &mut D) -> Outcome {
        let chance = if action == self.best { self.pay.best } else { self.pay.other };
        rules::answer(draw.chance(chance), true)
    }

    fn best(&self, (): &()) -> u16 {
        self.best
    }

    fn optimum(&self) -> Value {
        Value::exact(self.pay.optimum())
    }

    fn random(&self) -> Value {
        Value::exact(self.pay.random(self.arms))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::ONE)
    }

    fn start_sliced(&self) -> Option<Box<dyn LaneEnvironment + Send>> {
        Some(Box::new(Sliced::new(self.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::check_exactly;

    #[test]
    fn enumeration_agrees_with_the_stated_values() {
        for (arms, best, gap) in [(2, 1, 1), (3, 0, 20), (8, 7, 100)] {
            let rules = BanditRules { arms, best, pay: Pay::with_gap(gap) };
            check_exactly(&RuleGame::new(rules), 10_000).unwrap();
        }
    }
}
