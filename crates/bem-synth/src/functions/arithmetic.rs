//! Words made of words: sum, product, difference either way, how far two are apart, the smaller and the larger.
//!
//! Such words are made for pairs of fields of one width, and of all fields of one width where there are more than two.
//! A bit of the word, an exclusive or of its bits, a short list of rules over them or a table of its values is sought: a
//! capped distance is a few rules over the bits of the distance.

use super::affine::Affine;
use super::decision::Decision;
use super::literal::Literal;
use super::table::Table;
use super::{FunctionClass, is_short};
use crate::function::{Function, build_sum, choice_bits};
use crate::samples::{Row, Samples, Work};
use crate::statement::{Fact, Formula, Making, Word};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};

/// Pairs of fields at most.
const PAIRS_MAX: usize = 6;
/// Fields from two bits up to as many are words, and those whose product is looked at.
const WIDTH_MAX: u16 = 32;
const FACTOR_WIDTH_MAX: u16 = 6;
/// Fields that are made one word at most.
const FIELDS_MAX: usize = 16;

/// Few rules over a word made of others.
pub struct Arithmetic;

/// How a word is made of two, or of more where the order does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordOperation {
    Sum,
    Difference,
    Reverse,
    Distance,
    Smaller,
    Larger,
    Product,
}

pub(super) const KINDS: [WordOperation; 7] = [
    WordOperation::Sum,
    WordOperation::Difference,
    WordOperation::Reverse,
    WordOperation::Distance,
    WordOperation::Smaller,
    WordOperation::Larger,
    WordOperation::Product,
];

/// A word made of fields of one width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) kind: WordOperation,
    pub(super) fields: Vec<Field>,
}

impl FunctionClass for Arithmetic {
    fn name(&self) -> &'static str {
        "arithmetic"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if !samples.accepts(0) || 0 < samples.tolerance {
            return None;
        }
        let all = all_made(&samples.groups);
        let choice = choice_bits(all.len()) + 2;
        let mut best: Option<(Function, &Made)> = None;
        for made in &all {
            if !work.spend((samples.len() * made.fields.len() * usize::from(made.fields[0].width)) as u64) {
                break;
            }
            let Some(found) = fit_word(samples, made, work) else { continue };
            if best.as_ref().is_none_or(|held| found.description_length < held.0.description_length) {
                best = Some((found, made));
            }
        }
        let (found, made) = best?;
        let mut builder = Builder::new(samples.width);
        let word = made.build(&mut builder);
        let output = found.embed(&mut builder, &word);
        let words = format!("{}, {}", made.words(), found.words);
        let length = found.description_length + choice;
        let statement =
            Formula::About { facts: vec![Fact::Bits(made.statement())], inner: Box::new(found.statement) };
        let function = Function::close(builder, output, statement, length, words)?;
        function.explains(samples).then_some(function)
    }
}

/// The shortest simple function of the word that explains the labels.
fn fit_word(samples: &Samples, made: &Made, work: &mut Work) -> Option<Function> {
    let width = made.width();
    let groups = (0..width as u16).map(|low| Field { low, width: 1 }).collect();
    let shown = samples.seen_as(width, groups, |row| {
        let mut shown = Row::default();
        shown.0[0] = made.value(row);
        shown
    });
    // Equal words with different labels: it is something else.
    if 0 < shown.contradictions {
        return None;
    }
    let classes: [&dyn FunctionClass; 4] = [&Literal, &Affine, &Decision, &Table];
    let found = classes.iter().filter_map(|class| class.fit(&shown, work));
    found
        .filter(|function| is_short(function.description_length, samples.observations))
        .min_by_key(|function| function.description_length)
}

/// Pairs of fields of one width.
pub(super) fn pairs(groups: &[Field]) -> Vec<(Field, Field)> {
    let words: Vec<&Field> = groups.iter().filter(|field| (2..=WIDTH_MAX).contains(&field.width)).collect();
    let mut pairs = Vec::new();
    for (position, first) in words.iter().enumerate() {
        let others = words[position + 1..].iter().filter(|second| second.width == first.width);
        pairs.extend(others.map(|second| (**first, **second)));
    }
    pairs.truncate(PAIRS_MAX);
    pairs
}

fn all_made(groups: &[Field]) -> Vec<Made> {
    let mut all: Vec<Made> = Vec::new();
    for (first, second) in pairs(groups) {
        let kinds = KINDS.iter().filter(|kind| kind.fits(first.width));
        all.extend(kinds.map(|kind| Made { kind: *kind, fields: vec![first, second] }));
    }
    for width in 2..=WIDTH_MAX {
        let fields: Vec<Field> = groups.iter().filter(|field| field.width == width).copied().collect();
        if (3..=FIELDS_MAX).contains(&fields.len()) {
            let kinds = [WordOperation::Sum, WordOperation::Smaller, WordOperation::Larger];
            all.extend(kinds.map(|kind| Made { kind, fields: fields.clone() }));
        }
    }
    all
}

impl WordOperation {
    /// Whether words of this width are made one in this way.
    pub(super) fn fits(self, width: u16) -> bool {
        self != WordOperation::Product || width <= FACTOR_WIDTH_MAX
    }

    fn words(self) -> &'static str {
        match self {
            WordOperation::Sum => "sum",
            WordOperation::Difference => "difference",
            WordOperation::Reverse => "reverse difference",
            WordOperation::Distance => "distance",
            WordOperation::Smaller => "smaller",
            WordOperation::Larger => "larger",
            WordOperation::Product => "product",
        }
    }
}

impl Made {
    /// What it is, in words.
    pub(super) fn words(&self) -> String {
        let (first, last) = (self.fields[0].low, self.fields[self.fields.len() - 1].low);
        match self.fields.len() {
            2 => format!("{} of fields at {first} and {last}", self.kind.words()),
            count => format!("{} of {count} fields from {first} to {last}", self.kind.words()),
        }
    }

    /// The same, said as data.
    pub(super) fn statement(&self) -> Word {
        let making = match self.kind {
            WordOperation::Sum => Making::Sum,
            WordOperation::Difference => Making::Difference,
            WordOperation::Reverse => Making::Reverse,
            WordOperation::Distance => Making::Distance,
            WordOperation::Smaller => Making::Smaller,
            WordOperation::Larger => Making::Larger,
            WordOperation::Product => Making::Product,
        };
        Word::Made(making, self.fields.clone())
    }

    /// Bits of the word.
    pub(super) fn width(&self) -> usize {
        let width = usize::from(self.fields[0].width);
        match self.kind {
            WordOperation::Sum => width + choice_bits(self.fields.len()) as usize,
            // The last bit says that it is below zero.
            WordOperation::Difference | WordOperation::Reverse => width + 1,
            WordOperation::Product => 2 * width,
            WordOperation::Distance | WordOperation::Smaller | WordOperation::Larger => width,
        }
    }

    /// The number it shows.
    pub(super) fn value(&self, row: &Row) -> u64 {
        let mut values = self.fields.iter().map(|field| row.word(field));
        let first = values.next().unwrap_or(0);
        let made = values.fold(first, |held, other| match self.kind {
            WordOperation::Sum => held + other,
            WordOperation::Difference => held.wrapping_sub(other),
            WordOperation::Reverse => other.wrapping_sub(held),
            WordOperation::Distance => held.abs_diff(other),
            WordOperation::Smaller => held.min(other),
            WordOperation::Larger => held.max(other),
            WordOperation::Product => held * other,
        });
        made & ((1 << self.width()) - 1)
    }

    /// The same as a circuit, lowest bit first.
    pub(super) fn build(&self, builder: &mut Builder) -> Vec<Signal> {
        let bits = |field: &Field| -> Vec<Signal> {
            (field.low..field.low + field.width).map(|index| Signal::input(usize::from(index))).collect()
        };
        let words: Vec<Vec<Signal>> = self.fields.iter().map(bits).collect();
        let mut made = match self.kind {
            WordOperation::Sum => {
                let rank = |rank: usize| words.iter().map(|word| word[rank]).collect();
                build_sum(builder, (0..words[0].len()).map(rank).collect())
            }
            WordOperation::Product => {
                let mut ranks = vec![Vec::new(); 2 * words[0].len()];
                for (place, one) in words[0].iter().enumerate() {
                    for (rank, other) in words[1].iter().enumerate() {
                        ranks[place + rank].push(builder.and(*one, *other));
                    }
                }
                build_sum(builder, ranks)
            }
            _ => {
                let (first, rest) = words.split_first().expect("a word is made of others");
                rest.iter().fold(first.clone(), |held, other| self.kind.build_two(builder, &held, other))
            }
        };
        made.resize(self.width(), Signal::FALSE);
        made
    }
}

impl WordOperation {
    fn build_two(self, builder: &mut Builder, first: &[Signal], second: &[Signal]) -> Vec<Signal> {
        match self {
            WordOperation::Difference => subtract(builder, first, second),
            WordOperation::Reverse => subtract(builder, second, first),
            WordOperation::Distance => {
                // Below zero, the other difference is the distance.
                let mut forward = subtract(builder, first, second);
                let backward = subtract(builder, second, first);
                let below = forward.pop().unwrap_or(Signal::FALSE);
                forward.iter().zip(&backward).map(|(one, other)| builder.mux(below, *other, *one)).collect()
            }
            _ => {
                let below = subtract(builder, first, second).pop().unwrap_or(Signal::FALSE);
                let (then, other) =
                    if self == WordOperation::Smaller { (first, second) } else { (second, first) };
                then.iter().zip(other).map(|(then, other)| builder.mux(below, *then, *other)).collect()
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
        let fields = [0, 3, 6].map(|low| Field { low, width: 3 });
        for made in all_made(&fields) {
            let mut builder = Builder::new(9);
            let word = made.build(&mut builder);
            assert_eq!(word.len(), made.width());
            let circuit = builder.finish(&word).unwrap();
            for value in 0..512u64 {
                let mut row = Row::default();
                row.0[0] = value;
                let inputs: Vec<bool> = (0..9).map(|bit| row.get(bit)).collect();
                let expected: Vec<bool> =
                    (0..word.len()).map(|bit| made.value(&row) >> bit & 1 == 1).collect();
                assert_eq!(circuit.evaluate(&inputs), expected, "{made:?} of {value}");
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

    #[test]
    fn what_depends_on_a_word_made_of_several_is_found_from_few_rows() {
        let check = |widths: &[u16], count: usize, words: &str, wanted: fn(&Row) -> bool| {
            let function = Arithmetic.fit(&sample(widths, count, 1, wanted), &mut Work::new(1 << 32));
            let function = function.expect(words);
            assert!(function.words.starts_with(words), "{}", function.words);
            assert_eq!(function.errors(&sample(widths, 1_000, 2, wanted)), 0, "{}", function.words);
        };
        check(&[4, 4, 4], 60, "larger of 3 fields", |row| {
            let largest = (0..3).map(|field| word(row, 4 * field, 4)).max();
            largest.is_some_and(|largest| largest.count_ones() % 2 == 1)
        });
        check(&[4, 4], 60, "sum", |row| (word(row, 0, 4) + word(row, 4, 4)).count_ones() % 2 == 1);
        check(&[4, 4], 400, "sum", |row| (word(row, 0, 4) + word(row, 4, 4)) % 7 == 2);
        check(&[3, 3], 200, "product", |row| 12 < word(row, 0, 3) * word(row, 3, 3));
    }
}
