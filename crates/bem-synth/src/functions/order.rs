//! Words compared by their first difference, wherever their bits lie.
//!
//! A list of pairs of bits: in the first pair whose bits differ, or in the first whose bits are equal, one of them is
//! the answer. Which word is the larger one is of this kind, with every bit in any place and of any polarity. Pairs
//! are found greedily: the pair that settles most of the rows that are left without one mistake comes next.

use super::{FunctionClass, is_short};
use crate::function::{Function, choice_bits};
use crate::samples::{Samples, Work};
use crate::statement::{self, Formula};
use bem_circuit::netlist::{Builder, Op, Signal};

/// Bits of a row for which pairs are sought.
const WIDTH_MAX: usize = 96;
/// Rows that a pair must settle while there are bits that no pair has used.
const SETTLED_MIN: u32 = 2;
/// Rows that the first pair must settle: so many are not all right by chance, whichever pair it is.
const FIRST_MIN: u32 = 16;

/// A list of pairs of bits.
pub struct Order;

/// One pair of the list: where it applies, and what it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    first: usize,
    second: usize,
    /// It applies where the two differ; otherwise where they are equal.
    differ: bool,
    /// The answer is the first bit inverted.
    inverted: bool,
}

impl FunctionClass for Order {
    fn name(&self) -> &'static str {
        "order"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if !samples.accepts(0) || 0 < samples.tolerance || !(4..=WIDTH_MAX).contains(&samples.width) {
            return None;
        }
        let labels = samples.label_words();
        let mut left: Vec<u64> = (0..labels.len()).map(|word| samples.mask(word)).collect();
        let all: Vec<usize> = (0..samples.width).collect();
        let mut free = all.clone();
        let mut list: Vec<Pair> = Vec::new();
        let pair_bits = 2 * choice_bits(samples.width) + 2;
        loop {
            let positive: u32 =
                left.iter().zip(labels).map(|(left, label)| (left & label).count_ones()).sum();
            let size: u32 = left.iter().map(|left| left.count_ones()).sum();
            if positive == 0 || positive == size {
                let otherwise = positive != 0;
                return if list.is_empty() { None } else { close(samples, &list, otherwise, pair_bits) };
            }
            let length = (list.len() as u32 + 1) * pair_bits;
            if !is_short(length, samples.observations) {
                return None;
            }
            if !work.spend((2 * all.len() * all.len() * labels.len()) as u64) {
                return None;
            }
            // Among the last few rows many pairs are right by chance, and may have used up what others need.
            let unused = best(samples, &left, &free).filter(|(settled, _)| SETTLED_MIN <= *settled);
            let (settled, pair) = unused.or_else(|| best(samples, &left, &all))?;
            if settled == 0 || list.is_empty() && settled < FIRST_MIN {
                return None;
            }
            for (word, left) in left.iter_mut().enumerate() {
                *left &= !pair.applies(samples, word);
            }
            free.retain(|bit| *bit != pair.first && *bit != pair.second);
            list.push(pair);
        }
    }
}

impl Pair {
    fn applies(&self, samples: &Samples, word: usize) -> u64 {
        let differ = samples.column(self.first)[word] ^ samples.column(self.second)[word];
        if self.differ { differ } else { !differ }
    }
}

/// The pair that settles most of these rows, all of them rightly.
fn best(samples: &Samples, left: &[u64], free: &[usize]) -> Option<(u32, Pair)> {
    let labels = samples.label_words();
    let mut best: Option<(u32, Pair)> = None;
    for (place, first) in free.iter().enumerate() {
        let one = samples.column(*first);
        for second in &free[place + 1..] {
            let other = samples.column(*second);
            for differ in [true, false] {
                // Rows where the pair applies, and those of them where the first bit is the label.
                let (mut settled, mut agree) = (0, 0);
                for (word, left) in left.iter().enumerate() {
                    let apart = one[word] ^ other[word];
                    let here = left & if differ { apart } else { !apart };
                    settled += here.count_ones();
                    agree += (here & !(one[word] ^ labels[word])).count_ones();
                    if agree != 0 && agree != settled {
                        break;
                    }
                }
                let pure = agree == 0 || agree == settled;
                if pure && best.is_none_or(|held| held.0 < settled) {
                    let pair = Pair { first: *first, second: *second, differ, inverted: agree == 0 };
                    best = Some((settled, pair));
                }
            }
        }
    }
    best
}

fn close(samples: &Samples, list: &[Pair], otherwise: bool, pair_bits: u32) -> Option<Function> {
    let mut builder = Builder::new(samples.width);
    let mut output = Signal::constant(otherwise);
    for pair in list.iter().rev() {
        let (first, second) = (Signal::input(pair.first), Signal::input(pair.second));
        let applies = builder.gate(if pair.differ { Op::Xor } else { Op::Xnor }, first, second);
        let answer = builder.gate(Op::Xor, first, Signal::constant(pair.inverted));
        output = builder.mux(applies, answer, output);
    }
    let length = 4 + list.len() as u32 * pair_bits;
    let said = |pair: &Pair| statement::Pair {
        first: pair.first as u16,
        second: pair.second as u16,
        differ: pair.differ,
        inverted: pair.inverted,
    };
    let statement = Formula::Pairs { pairs: list.iter().map(said).collect(), otherwise };
    let words = format!("first difference of {} pairs of bits", list.len());
    let function = Function::close(builder, output, statement, length, words)?;
    function.explains(samples).then_some(function)
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;
    use crate::samples::Row;
    use bem_base::environment::Field;
    use bem_base::prng::Prng;

    #[test]
    fn two_words_are_compared_wherever_their_bits_lie() {
        let place = |bit: usize| (bit * 7 + 3) % 16;
        // Some bits are inverted.
        let number = move |row: &Row, low: usize| {
            (0..8).fold(0u32, |sum, bit| sum | u32::from(row.get(place(low + bit)) ^ (bit % 3 == 1)) << bit)
        };
        let wanted = |row: &Row| number(row, 0) < number(row, 8);
        let function = Order.fit(&sample(&[1; 16], 800, 1, wanted), &mut Work::new(1 << 32)).unwrap();
        let errors = function.errors(&sample(&[1; 16], 1_000, 2, wanted));
        assert!(errors <= 5, "{errors} errors, {}", function.words);
    }

    #[test]
    fn words_hidden_among_other_bits_are_compared_too() {
        let (one, other) = ([3, 8, 1, 15, 22], [0, 9, 10, 5, 17]);
        let wanted = |row: &Row| row.gather(&one) <= row.gather(&other);
        let function = Order.fit(&sample(&[24], 400, 1, wanted), &mut Work::new(1 << 32)).unwrap();
        assert_eq!(function.errors(&sample(&[24], 1_000, 2, wanted)), 0, "{}", function.words);
    }

    #[test]
    fn words_that_mostly_begin_alike_are_compared_too() {
        let mut prng = Prng::stream(3, "order");
        let mut draw = |count: usize| -> Samples {
            let list: Vec<(Row, bool)> = (0..count)
                .map(|_| {
                    let first = prng.below(256);
                    // The two differ first at a place that was drawn, and then anyhow.
                    let place = prng.below(8);
                    let second = first ^ (1 << place | prng.below(1 << place));
                    let mut row = Row::default();
                    row.0[0] = first | second << 8;
                    (row, first < second)
                })
                .collect();
            Samples::new(16, vec![Field { low: 0, width: 16 }], list, 0)
        };
        let function = Order.fit(&draw(300), &mut Work::new(1 << 32)).unwrap();
        assert_eq!(function.errors(&draw(1_000)), 0, "{}", function.words);
    }
}
