//! Majority and other thresholds over a whole string, or over a hidden subset of its bits. Clause: GLE-1.
//!
//! Every bit is set with a chance that puts the mean weight half a bit below the threshold, so that neither
//! answer is rare; for the majority of an odd number of bits that is one half.

use crate::draw::{Chance, Draw};
use crate::families::parity::hidden_subset;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use crate::sliced::Sliced;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;
use bem_base::prng::Prng;
use std::sync::Arc;

/// The family.
pub struct Majority;

impl Family for Majority {
    fn name(&self) -> &'static str {
        "majority"
    }

    fn about(&self) -> &'static str {
        "See n bits once and answer whether at least the threshold of the relevant ones are set."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "n",
                about: "Bits of the string.",
                range: Range::Number { min: 1, max: 64, default: 9 },
            },
            Parameter {
                name: "threshold",
                about: "How many set bits make the answer yes; 0 means more than half of those that count.",
                range: Range::Number { min: 0, max: 64, default: 0 },
            },
            Parameter {
                name: "relevant",
                about: "How many bits count; the subset is hidden. From n on, all do.",
                range: Range::Number { min: 1, max: 64, default: 64 },
            },
        ]
    }

    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let bits = settings.number("n") as u32;
        let relevant = (settings.number("relevant") as u32).min(bits);
        let threshold = match settings.number("threshold") as u32 {
            0 => relevant / 2 + 1,
            given => given,
        };
        if relevant < threshold {
            let why = format!("threshold {threshold} is never reached: only {relevant} bits count");
            return Err(GameError::Impossible(why));
        }
        let mut prng = Prng::stream(instance_seed, "majority");
        let mask = hidden_subset(bits, relevant, &mut prng);
        Ok(Arc::new(RuleGame::new(MajorityRules { bits, mask, threshold })))
    }
}

/// One game of majority.
#[derive(Clone)]
pub struct MajorityRules {
    /// Bits of the string.
    pub bits: u32,
    /// The bits that count.
    pub mask: u64,
    /// How many of them make the answer yes.
    pub threshold: u32,
}

impl MajorityRules {
    /// The chance of each bit to be set.
    pub fn density(&self) -> Chance {
        Chance::ratio(u64::from(2 * self.threshold - 1), u64::from(2 * self.mask.count_ones()))
    }
}

impl Rules for MajorityRules {
    /// The string.
    type State = u64;

    fn shape(&self) -> Shape {
        rules::answer_shape(&[self.bits as usize], 2, 1, 1)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> u64 {
        let density = self.density();
        if density == Chance::ratio(1, 2) {
            return draw.bits(self.bits);
        }
        (0..self.bits).fold(0, |string, place| string | u64::from(draw.chance(density)) << place)
    }

    fn observe(&self, string: &u64) -> Bits {
        Bits([*string, 0, 0, 0])
    }

    fn play<D: Draw>(&self, string: &mut u64, action: u16, _draw: &mut D) -> Outcome {
        rules::answer(action == self.best(string), true)
    }

    fn best(&self, string: &u64) -> u16 {
        u16::from(self.threshold <= (string & self.mask).count_ones())
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT))
    }

    fn random(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT / 2))
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
        for (bits, mask, threshold) in [(1, 1, 1), (3, 0b111, 2), (4, 0b1010, 1), (4, 0b1111, 3)] {
            check_exactly(&RuleGame::new(MajorityRules { bits, mask, threshold }), 10_000).unwrap();
        }
    }
}
