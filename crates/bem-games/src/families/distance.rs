//! How far apart are two words, up to a cap: Hamming, edit or absolute distance.
//!
//! The distance is drawn first and the second word made from the first, so that small and large answers occur.
//! Clauses: GLE-1.

use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use std::sync::Arc;

/// The family `distance`.
pub struct Distance;

impl Family for Distance {
    fn name(&self) -> &'static str {
        "distance"
    }

    fn about(&self) -> &'static str {
        "Say how far apart two words are, or that they are at least as far as the cap."
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter {
                name: "n",
                about: "bits of each word",
                range: Range::Number { min: 1, max: 32, default: 6 },
            },
            Parameter {
                name: "cap",
                about: "the largest answer",
                range: Range::Number { min: 1, max: 31, default: 3 },
            },
            Parameter {
                name: "kind",
                about: "places that differ, single edits, or difference of numbers",
                range: Range::Choice { words: &["hamming", "edit", "absolute"] },
            },
        ];
        PARAMETERS
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let bits = settings.number("n") as u16;
        let cap = settings.number("cap") as u16;
        let kind = [Metric::Hamming, Metric::Edit, Metric::Absolute][settings.choice("kind")];
        let shape = rules::answer_shape(&[usize::from(bits); 2], usize::from(cap) + 1, 1, 1);
        Ok(Arc::new(RuleGame::new(Words { bits, cap, kind, shape })))
    }
}

/// What is counted between two words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Metric {
    Hamming,
    Edit,
    Absolute,
}

/// The rules: how wide the words are, and what is counted up to which cap.
struct Words {
    bits: u16,
    cap: u16,
    kind: Metric,
    shape: Shape,
}

/// The two words, and how far apart they are.
#[derive(Clone)]
struct State {
    first: u64,
    second: u64,
    answer: u16,
}

impl Words {
    fn second<D: Draw>(&self, first: u64, draw: &mut D) -> u64 {
        let bits = u32::from(self.bits);
        let mask = (1u64 << bits) - 1;
        match self.kind {
            Metric::Hamming => {
                let weight = draw.below(bits + 1);
                let mut change = 0u64;
                while change.count_ones() < weight {
                    change |= 1 << draw.below(bits);
                }
                first ^ change
            }
            Metric::Edit => {
                let edits = draw.below(u32::from(self.cap) + 2);
                (0..edits).fold(first, |word, _| edit(word, bits, draw)) & mask
            }
            Metric::Absolute => {
                let step = u64::from(draw.below(u32::from(self.cap) + 2)).min(mask);
                let down = draw.bit();
                match (first.checked_sub(step), first + step <= mask) {
                    (Some(lower), upper_fits) if down || !upper_fits => lower,
                    _ => (first + step).min(mask),
                }
            }
        }
    }

    fn measure(&self, first: u64, second: u64) -> u64 {
        match self.kind {
            Metric::Hamming => u64::from((first ^ second).count_ones()),
            Metric::Edit => edit_distance(first, second, usize::from(self.bits)),
            Metric::Absolute => first.abs_diff(second),
        }
    }
}

/// Flips a bit, or takes one out here and puts a random one in there: the length stays.
fn edit<D: Draw>(word: u64, bits: u32, draw: &mut D) -> u64 {
    if draw.bit() {
        return word ^ 1 << draw.below(bits);
    }
    let out = draw.below(bits);
    let low = word & ((1 << out) - 1);
    let shorter = low | word >> (out + 1) << out;
    let place = draw.below(bits);
    let low = shorter & ((1 << place) - 1);
    low | u64::from(draw.bit()) << place | shorter >> place << (place + 1)
}

/// Levenshtein's distance of two words of the same length.
fn edit_distance(first: u64, second: u64, bits: usize) -> u64 {
    let mut row = [0u64; 33];
    for (place, cell) in row.iter_mut().enumerate() {
        *cell = place as u64;
    }
    for left in 0..bits {
        let mut diagonal = row[0];
        row[0] = left as u64 + 1;
        for right in 0..bits {
            let differ = u64::from((first >> left ^ second >> right) & 1 == 1);
            let cell = (diagonal + differ).min(row[right] + 1).min(row[right + 1] + 1);
            diagonal = row[right + 1];
            row[right + 1] = cell;
        }
    }
    row[bits]
}

impl Rules for Words {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let first = draw.bits(u32::from(self.bits));
        let second = self.second(first, draw);
        State { first, second, answer: self.measure(first, second).min(u64::from(self.cap)) as u16 }
    }

    fn observe(&self, state: &State) -> Bits {
        let bits = usize::from(self.bits);
        let mut observation = Bits::ZERO;
        observation.set_field(0, bits, state.first);
        observation.set_field(bits, bits, state.second);
        observation
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, _draw: &mut D) -> Outcome {
        rules::answer(action == state.answer, true)
    }

    fn best(&self, state: &State) -> u16 {
        state.answer
    }

    fn optimum(&self) -> Value {
        Expectation::from_int(i64::from(RIGHT)).to_value()
    }

    fn random(&self) -> Value {
        Expectation::from_ratio(i128::from(RIGHT), i128::from(self.cap) + 1).to_value()
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::draw::Dice;

    #[test]
    fn stated_values_are_what_play_gives_for_every_kind() {
        for kind in ["hamming", "edit", "absolute"] {
            testing::check_values(&*testing::build(&Distance, &[("n", "8"), ("kind", kind)], 1), 12);
        }
    }

    #[test]
    fn edit_distance_knows_that_a_shift_takes_two_edits() {
        assert_eq!(edit_distance(0b0101_0101, 0b1010_1010, 8), 2);
        assert_eq!(edit_distance(0b1111, 0b0000, 4), 4);
        assert_eq!(edit_distance(0b1011, 0b1011, 4), 0);
    }

    #[test]
    fn every_answer_occurs() {
        for kind in [Metric::Hamming, Metric::Edit, Metric::Absolute] {
            let words = Words { bits: 8, cap: 3, kind, shape: rules::answer_shape(&[8, 8], 4, 1, 1) };
            let mut dice = Dice::new(1);
            let mut counts = [0; 4];
            for _ in 0..2_000 {
                counts[usize::from(words.begin(&mut dice).answer)] += 1;
            }
            assert!(counts.iter().all(|count| 100 < *count), "{counts:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn edits_keep_the_length(word in 0u64..1 << 32, seed in 0u64..) {
            proptest::prop_assert!(edit(word, 32, &mut Dice::new(seed)) < 1 << 32);
        }
    }
}
