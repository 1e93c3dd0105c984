//! Words made of two words: their sum, their difference either way, how far they are apart, the smaller and the larger.
//!
//! For every pair of fields of one width such a word is made, and a bit of it or a short list of rules over its bits
//! is sought: a capped distance is a few rules over the bits of the distance.

use super::decision::Decision;
use super::literal::Literal;
use super::{FunctionClass, is_short};
use crate::function::{Function, choice_bits};
use crate::samples::{Row, Samples, Work};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};

/// Pairs of fields at most.
const PAIRS_MAX: usize = 6;
/// Fields from two bits up to as many are words.
const WIDTH_MAX: u16 = 32;

/// Few rules over a word made of two.
pub struct Arithmetic;

/// How a word is made of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Difference,
    Reverse,
    Distance,
    Smaller,
    Larger,
}

const KINDS: [Kind; 6] =
    [Kind::Sum, Kind::Difference, Kind::Reverse, Kind::Distance, Kind::Smaller, Kind::Larger];

impl FunctionClass for Arithmetic {
    fn name(&self) -> &'static str {
        "arithmetic"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if !samples.accepts(0) || 0 < samples.tolerance {
            return None;
        }
        let pairs = pairs(&samples.groups);
        let choice = choice_bits(pairs.len() * KINDS.len()) + 2;
        let mut best: Option<(Function, (Field, Field), Kind)> = None;
        for pair in &pairs {
            for kind in KINDS {
                if !work.spend((samples.len() * usize::from(pair.0.width)) as u64) {
                    break;
                }
                let Some(found) = fit_word(samples, pair, kind, work) else { continue };
                if best.as_ref().is_none_or(|held| found.description_length < held.0.description_length) {
                    best = Some((found, *pair, kind));
                }
            }
        }
        let (found, pair, kind) = best?;
        let mut builder = Builder::new(samples.width);
        let word = kind.build(&mut builder, &pair);
        let output = found.embed(&mut builder, &word);
        let words =
            format!("{} of fields at {} and {}, {}", kind.words(), pair.0.low, pair.1.low, found.words);
        let function = Function::close(builder, output, found.description_length + choice, words)?;
        function.explains(samples).then_some(function)
    }
}

/// A bit of the word or few rules over its bits, if they explain the labels.
fn fit_word(samples: &Samples, pair: &(Field, Field), kind: Kind, work: &mut Work) -> Option<Function> {
    let width = kind.width(pair);
    let groups = (0..width as u16).map(|low| Field { low, width: 1 }).collect();
    let made = samples.seen_as(width, groups, |row| kind.make(row, pair));
    // Equal words with different labels: it is something else.
    if 0 < made.contradictions {
        return None;
    }
    let found = Literal.fit(&made, work).or_else(|| Decision.fit(&made, work))?;
    is_short(found.description_length, samples.observations).then_some(found)
}

fn pairs(groups: &[Field]) -> Vec<(Field, Field)> {
    let words: Vec<&Field> = groups.iter().filter(|field| (2..=WIDTH_MAX).contains(&field.width)).collect();
    let mut pairs = Vec::new();
    for (position, first) in words.iter().enumerate() {
        let others = words[position + 1..].iter().filter(|second| second.width == first.width);
        pairs.extend(others.map(|second| (**first, **second)));
    }
    pairs.truncate(PAIRS_MAX);
    pairs
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Sum => "sum",
            Kind::Difference => "difference",
            Kind::Reverse => "reverse difference",
            Kind::Distance => "distance",
            Kind::Smaller => "smaller",
            Kind::Larger => "larger",
        }
    }

    /// Bits of the word; sum and difference have one for the carry.
    fn width(self, pair: &(Field, Field)) -> usize {
        usize::from(pair.0.width) + usize::from(matches!(self, Kind::Sum | Kind::Difference | Kind::Reverse))
    }

    fn make(self, row: &Row, pair: &(Field, Field)) -> Row {
        let (first, second) = (row.word(&pair.0), row.word(&pair.1));
        let made = match self {
            Kind::Sum => first + second,
            Kind::Difference => first.wrapping_sub(second),
            Kind::Reverse => second.wrapping_sub(first),
            Kind::Distance => first.abs_diff(second),
            Kind::Smaller => first.min(second),
            Kind::Larger => first.max(second),
        };
        let mut row = Row::default();
        row.0[0] = made & ((1 << self.width(pair)) - 1);
        row
    }

    fn build(self, builder: &mut Builder, pair: &(Field, Field)) -> Vec<Signal> {
        let bits = |field: &Field| -> Vec<Signal> {
            (field.low..field.low + field.width).map(|index| Signal::input(usize::from(index))).collect()
        };
        let (first, second) = (bits(&pair.0), bits(&pair.1));
        match self {
            Kind::Sum => {
                let mut carry = Signal::FALSE;
                let mut sum = Vec::new();
                for (one, other) in first.iter().zip(&second) {
                    let half = builder.xor(*one, *other);
                    sum.push(builder.xor(half, carry));
                    carry = builder.mux(half, carry, *one);
                }
                sum.push(carry);
                sum
            }
            Kind::Difference => subtract(builder, &first, &second),
            Kind::Reverse => subtract(builder, &second, &first),
            Kind::Distance => {
                // Below zero, the other difference is the distance.
                let mut forward = subtract(builder, &first, &second);
                let backward = subtract(builder, &second, &first);
                let below = forward.pop().unwrap_or(Signal::FALSE);
                forward.iter().zip(&backward).map(|(one, other)| builder.mux(below, *other, *one)).collect()
            }
            Kind::Smaller | Kind::Larger => {
                let below = subtract(builder, &first, &second).pop().unwrap_or(Signal::FALSE);
                let (then, otherwise) = if self == Kind::Smaller { (first, second) } else { (second, first) };
                then.iter().zip(&otherwise).map(|(then, other)| builder.mux(below, *then, *other)).collect()
            }
        }
    }
}

/// The difference, lowest bit first, and last whether it is below zero.
fn subtract(builder: &mut Builder, first: &[Signal], second: &[Signal]) -> Vec<Signal> {
    let mut borrow = Signal::FALSE;
    let mut difference = Vec::new();
    for (one, other) in first.iter().zip(second) {
        let half = builder.xor(*one, *other);
        difference.push(builder.xor(half, borrow));
        borrow = builder.mux(half, *other, borrow);
    }
    difference.push(borrow);
    difference
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;

    fn word(row: &Row, low: usize, width: usize) -> u64 {
        row.0[0] >> low & ((1 << width) - 1)
    }

    #[test]
    fn every_word_is_what_its_circuit_says() {
        let pair = (Field { low: 0, width: 3 }, Field { low: 3, width: 3 });
        for kind in KINDS {
            let mut builder = Builder::new(6);
            let word = kind.build(&mut builder, &pair);
            assert_eq!(word.len(), kind.width(&pair));
            let circuit = builder.finish(&word).unwrap();
            for value in 0..64u64 {
                let mut row = Row::default();
                row.0[0] = value;
                let inputs: Vec<bool> = (0..6).map(|bit| row.get(bit)).collect();
                let made = circuit.evaluate(&inputs);
                let expected: Vec<bool> =
                    (0..word.len()).map(|bit| kind.make(&row, &pair).get(bit)).collect();
                assert_eq!(made, expected, "{kind:?} of {value}");
            }
        }
    }

    #[test]
    fn a_capped_distance_and_a_bit_of_the_larger_word_are_found() {
        for (bit, count) in [(0, 400), (1, 400), (2, 400)] {
            // The second word is near the first, as in games that draw the distance first.
            let near = |row: &Row| {
                let (first, near) = (word(row, 0, 12), word(row, 12, 4));
                (first, (first + near).saturating_sub(8).min(4_095))
            };
            let capped = |row: &Row| near(row).0.abs_diff(near(row).1).min(5) >> bit & 1 == 1;
            let drawn = sample(&[12, 12], count, 1, |_| true);
            let rows = drawn.rows.iter().map(|row| {
                let mut made = *row;
                made.0[0] = near(row).0 | near(row).1 << 12;
                (made, capped(row))
            });
            let train = Samples::new(24, drawn.groups.clone(), rows, 0);
            let function = Arithmetic.fit(&train, &mut Work::new(1 << 32)).expect("a capped distance");
            assert!(function.words.starts_with("distance"), "{}", function.words);
        }
        let larger = |row: &Row| word(row, 0, 6).max(word(row, 6, 6)) >> 3 & 1 == 1;
        let function = Arithmetic.fit(&sample(&[6, 6], 120, 1, larger), &mut Work::new(1 << 32)).unwrap();
        assert_eq!(function.errors(&sample(&[6, 6], 1_000, 2, larger)), 0, "{}", function.words);
    }
}
