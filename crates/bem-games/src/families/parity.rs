//! Parity of a whole string, or of a hidden subset of its bits. Clause: GLE-1.

use crate::draw::Draw;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use crate::sliced::Sliced;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;
use bem_base::prng::Prng;
use std::sync::Arc;

/// The family.
pub struct Parity;

impl Family for Parity {
    fn name(&self) -> &'static str {
        "parity"
    }

    fn about(&self) -> &'static str {
        "See n bits once and answer whether an odd number of the relevant ones is set."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "n",
                about: "Bits of the string.",
                range: Range::Number { min: 1, max: 64, default: 8 },
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
        let mut prng = Prng::stream(instance_seed, "parity");
        Ok(Arc::new(RuleGame::new(ParityRules { bits, mask: hidden_subset(bits, relevant, &mut prng) })))
    }
}

/// `relevant` of the low `bits` bits, every subset equally likely.
pub(crate) fn hidden_subset(bits: u32, relevant: u32, prng: &mut Prng) -> u64 {
    let mut places: Vec<u32> = (0..bits).collect();
    prng.shuffle(&mut places);
    places[..relevant as usize].iter().fold(0, |mask, place| mask | 1 << place)
}

/// One game of parity.
#[derive(Clone)]
pub struct ParityRules {
    /// Bits of the string.
    pub bits: u32,
    /// The bits that count.
    pub mask: u64,
}

impl Rules for ParityRules {
    /// The string.
    type State = u64;

    fn shape(&self) -> Shape {
        rules::answer_shape(&[self.bits as usize], 2, 1, 1)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> u64 {
        draw.bits(self.bits)
    }

    fn observe(&self, string: &u64) -> Bits {
        Bits([*string, 0, 0, 0])
    }

    fn play<D: Draw>(&self, string: &mut u64, action: u16, _draw: &mut D) -> Outcome {
        rules::answer(action == self.best(string), true)
    }

    fn best(&self, string: &u64) -> u16 {
        (string & self.mask).count_ones() as u16 & 1
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
        for (bits, mask) in [(1, 1), (3, 0b101), (5, 0b11111)] {
            check_exactly(&RuleGame::new(ParityRules { bits, mask }), 10_000).unwrap();
        }
    }

    #[test]
    fn a_hidden_subset_has_its_size_and_depends_on_the_instance() {
        let subset = |seed| hidden_subset(48, 13, &mut Prng::stream(seed, "test"));
        assert_eq!((subset(1).count_ones(), subset(1) >> 48), (13, 0));
        assert_ne!(subset(1), subset(2));
        assert_eq!(hidden_subset(8, 8, &mut Prng::stream(1, "test")), 0xFF);
    }
}
