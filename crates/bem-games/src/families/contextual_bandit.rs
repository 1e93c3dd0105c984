//! A bandit whose best arm depends on some of the bits seen. Clause: GLE-1.

use crate::draw::Draw;
use crate::families::bandit::Pay;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RuleGame, Rules};
use crate::sliced::Sliced;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;

use bem_base::prng::Prng;
use std::sync::Arc;

/// How many percent more often the best arm pays than the others.
const GAP: u64 = 40;

/// The family.
pub struct ContextualBandit;

impl Family for ContextualBandit {
    fn name(&self) -> &'static str {
        "contextual_bandit"
    }

    fn about(&self) -> &'static str {
        "See context bits among noise bits and pull an arm; the context decides which arm pays most often."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "context_bits",
                about: "Bits that decide; where they are is hidden.",
                range: Range::Number { min: 1, max: 8, default: 2 },
            },
            Parameter {
                name: "noise_bits",
                about: "Bits that mean nothing.",
                range: Range::Number { min: 0, max: 56, default: 2 },
            },
            Parameter {
                name: "arms",
                about: "How many arms there are.",
                range: Range::Number { min: 2, max: 64, default: 4 },
            },
        ]
    }

    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let (context, noise) =
            (settings.number("context_bits") as usize, settings.number("noise_bits") as usize);
        let arms = settings.number("arms") as u16;
        let mut prng = Prng::stream(instance_seed, "contextual_bandit");
        let mut places: Vec<u32> = (0..(context + noise) as u32).collect();
        prng.shuffle(&mut places);
        places.truncate(context);
        // Every arm is the best one of about as many contexts, so that no arm is good everywhere.
        let mut slots: Vec<u16> = (0..arms).collect();
        prng.shuffle(&mut slots);
        let mut best: Vec<u16> = (0..1usize << context).map(|index| slots[index % slots.len()]).collect();
        prng.shuffle(&mut best);
        let bits = (context + noise) as u32;
        Ok(Arc::new(RuleGame::new(ContextualBanditRules {
            bits,
            places,
            arms,
            best,
            pay: Pay::with_gap(GAP),
        })))
    }
}

/// One contextual bandit.
#[derive(Clone)]
pub struct ContextualBanditRules {
    /// Bits seen.
    pub bits: u32,
    /// Where the context bits are, the lowest first.
    pub places: Vec<u32>,
    /// How many arms there are.
    pub arms: u16,
    /// The best arm of every context.
    pub best: Vec<u16>,
    /// How often arms pay.
    pub pay: Pay,
}

impl Rules for ContextualBanditRules {
    /// The bits seen.
    type State = u64;

    fn shape(&self) -> Shape {
        rules::answer_shape(&vec![1; self.bits as usize], usize::from(self.arms), 1, 1)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> u64 {
        draw.bits(self.bits)
    }

    fn observe(&self, seen: &u64) -> Bits {
        Bits([*seen, 0, 0, 0])
    }

    fn play<D: Draw>(&self, seen: &mut u64, action: u16, draw: &mut D) -> Outcome {
        let chance = if action == self.best(seen) { self.pay.best } else { self.pay.other };
        rules::answer(draw.chance(chance), true)
    }

    fn best(&self, seen: &u64) -> u16 {
        let context = self.places.iter().rev().fold(0, |context, place| context << 1 | seen >> place & 1);
        self.best[context as usize]
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
        let rules = ContextualBanditRules {
            bits: 3,
            places: vec![2, 0],
            arms: 3,
            best: vec![0, 2, 1, 0],
            pay: Pay::with_gap(GAP),
        };
        check_exactly(&RuleGame::new(rules), 10_000).unwrap();
    }
}
