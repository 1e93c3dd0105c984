//! Few bits among many: those that the label depends on are found by rows that hardly differ, and simple classes are
//! asked about these bits alone.
//!
//! Two rows with different labels differ in some bit that matters; the fewer bits they differ in, the more that says
//! about each of them. This finds the bits of functions without any structure, and of those in which no bit and no
//! pair of bits tells anything alone. Tables, counts with a period and small circuits are then sought over these bits.

use super::minimal::Minimal;
use super::symmetric::{Atom, fit_count};
use super::{FunctionClass, is_short};
use crate::function::{Function, build_table, choice_bits};
use crate::samples::{Row, Samples, Work};
use crate::statement::{Fact, Formula};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};
use std::collections::BTreeMap;

/// Bits that may matter.
const BITS_MAX: usize = 12;
/// Rows that differ in more bits than this say too little.
const DISTANCE_MAX: u32 = 10;

/// A function of few bits.
pub struct Focus;

impl FunctionClass for Focus {
    fn name(&self) -> &'static str {
        "focus"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if !samples.accepts(0) || 0 < samples.tolerance {
            return None;
        }
        let bits = support(samples, work)?;
        let choice = bits.len() as u32 * choice_bits(samples.width);
        let found = [
            count(samples, &bits, choice, work),
            smallest(samples, &bits, choice, work),
            table(samples, &bits, choice),
        ];
        found.into_iter().flatten().min_by_key(|function| function.description_length)
    }
}

/// The values of some bits that were seen, with their labels.
fn seen(samples: &Samples, bits: &[usize]) -> BTreeMap<u64, bool> {
    samples.rows.iter().zip(&samples.labels).map(|(row, label)| (row.gather(bits), *label)).collect()
}

/// Whether rows that agree in these bits have the same label.
fn tells(samples: &Samples, bits: &[usize]) -> bool {
    let mut seen: BTreeMap<u64, bool> = BTreeMap::new();
    let mut rows = samples.rows.iter().zip(&samples.labels);
    rows.all(|(row, label)| *seen.entry(row.gather(bits)).or_insert(*label) == *label)
}

/// Few bits that tell all labels; none when many are needed, or when the rows are too far from each other to tell.
fn support(samples: &Samples, work: &mut Work) -> Option<Vec<usize>> {
    let mut kept: Vec<usize> = Vec::new();
    while !tells(samples, &kept) {
        if BITS_MAX <= kept.len() {
            return None;
        }
        kept.push(most_doubted(samples, &kept, work)?);
    }
    for place in (0..kept.len()).rev() {
        let mut without = kept.clone();
        without.remove(place);
        if tells(samples, &without) {
            kept = without;
        }
    }
    // A circuit is no shorter for reading all bits there are.
    (2..samples.width).contains(&kept.len()).then_some(kept)
}

/// The bit that most rows with different labels differ in, among those that agree in the bits already chosen. A pair
/// of rows counts an eighth for every bit in which it differs.
fn most_doubted(samples: &Samples, chosen: &[usize], work: &mut Work) -> Option<usize> {
    let mut parts: BTreeMap<u64, [Vec<&Row>; 2]> = BTreeMap::new();
    for (row, label) in samples.rows.iter().zip(&samples.labels) {
        parts.entry(row.gather(chosen)).or_default()[usize::from(*label)].push(row);
    }
    let words = samples.width.div_ceil(64);
    let mut doubts = vec![0u64; samples.width];
    for [zeros, ones] in parts.values() {
        if !work.spend((zeros.len() * ones.len() * words) as u64) {
            return None;
        }
        for one in ones {
            for zero in zeros {
                let apart = |word: usize| one.0[word] ^ zero.0[word];
                let distance: u32 = (0..words).map(|word| apart(word).count_ones()).sum();
                if DISTANCE_MAX < distance {
                    continue;
                }
                let weight = 1 << (3 * (DISTANCE_MAX - distance));
                for word in 0..words {
                    let mut left = apart(word);
                    while left != 0 {
                        doubts[word * 64 + left.trailing_zeros() as usize] += weight;
                        left &= left - 1;
                    }
                }
            }
        }
    }
    let (bit, doubt) =
        doubts.iter().enumerate().max_by_key(|(bit, doubt)| (**doubt, core::cmp::Reverse(*bit)))?;
    (0 < *doubt).then_some(bit)
}

/// A table over the count of the bits, each of either polarity: all polarities are tried.
fn count(samples: &Samples, bits: &[usize], choice: u32, work: &mut Work) -> Option<Function> {
    let seen = seen(samples, bits);
    // Turning all bits over counts the others; half of the polarities are enough.
    let polarities = 1u64 << (bits.len() - 1);
    if !work.spend(polarities * seen.len() as u64) {
        return None;
    }
    let changes = |polarity: &u64| -> Option<(usize, u64)> {
        let mut labels: Vec<Option<bool>> = vec![None; bits.len() + 1];
        for (key, label) in &seen {
            if *labels[(key ^ polarity).count_ones() as usize].get_or_insert(*label) != *label {
                return None;
            }
        }
        let known: Vec<bool> = labels.into_iter().flatten().collect();
        Some((known.windows(2).filter(|pair| pair[0] != pair[1]).count(), *polarity))
    };
    let (_, polarity) = (0..polarities).filter_map(|polarity| changes(&polarity)).min()?;
    let atoms: Vec<Atom> =
        bits.iter().enumerate().map(|(place, bit)| Atom::Bit(*bit, polarity >> place & 1 == 1)).collect();
    fit_count(samples, &atoms, choice + bits.len() as u32, &format!("{} found bits", bits.len()))
}

/// The smallest circuit over the bits, where there is a small one and the bits were not seen with all their values: a
/// table that is complete needs no other.
fn smallest(samples: &Samples, bits: &[usize], choice: u32, work: &mut Work) -> Option<Function> {
    let groups = vec![Field { low: 0, width: bits.len() as u16 }];
    let narrow = samples.seen_as(bits.len(), groups, |row| Row([row.gather(bits), 0, 0, 0, 0, 0]));
    if narrow.len() == 1 << bits.len() {
        return None;
    }
    let found = Minimal.fit(&narrow, work)?;
    let mut builder = Builder::new(samples.width);
    let inputs: Vec<Signal> = bits.iter().map(|bit| Signal::input(*bit)).collect();
    let output = found.embed(&mut builder, &inputs);
    let facts = bits.iter().map(|bit| Fact::Bit(*bit as u16)).collect();
    let statement = Formula::About { facts, inner: Box::new(found.statement) };
    Function::close(builder, output, statement, found.description_length + choice, found.words)
}

/// The plain table over the bits; it takes one bit for every row of it that was seen.
fn table(samples: &Samples, bits: &[usize], choice: u32) -> Option<Function> {
    let table = seen(samples, bits);
    let length = table.len() as u32 + choice;
    if !is_short(length, samples.observations) {
        return None;
    }
    let mut builder = Builder::new(samples.width);
    let signals: Vec<Signal> = bits.iter().map(|bit| Signal::input(*bit)).collect();
    let output = build_table(&mut builder, &signals, &table);
    let words = format!("table over {} of the bits", bits.len());
    let function = Function::close(builder, output, Formula::rows(bits, &table), length, words)?;
    function.explains(samples).then_some(function)
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;
    use bem_base::prng::Prng;

    fn check(count: usize, words: &str, errors_max: usize, wanted: impl Fn(&Row) -> bool + Copy) {
        let train = sample(&[24], count, 3, wanted);
        let function = Focus.fit(&train, &mut Work::new(1 << 32)).expect(words);
        assert!(function.words.starts_with(words), "{words}: {}", function.words);
        let errors = function.errors(&sample(&[24], 1_000, 4, wanted));
        assert!(errors <= errors_max, "{words}: {errors} errors in 1,000, {}", function.words);
    }

    #[test]
    fn tables_and_counts_of_few_bits_are_found_among_many() {
        let mut prng = Prng::stream(5, "focus");
        let table: Vec<bool> = (0..64).map(|_| prng.bit()).collect();
        let larger: Vec<bool> = (0..256).map(|_| prng.bit()).collect();
        check(1_500, "table", 10, |row| larger[row.gather(&[1, 4, 9, 13, 17, 18, 20, 23]) as usize]);
        check(600, "table", 0, |row| table[row.gather(&[2, 3, 11, 12, 19, 23]) as usize]);
        let counted = |row: &Row| row.gather(&[0, 4, 7, 8, 13, 14, 20, 22]).count_ones().is_multiple_of(3);
        check(1_200, "count", 0, counted);
        // Some of the counted bits are inverted.
        check(1_200, "count", 0, |row| {
            (row.gather(&[1, 5, 6, 9, 16, 17, 18, 21]) ^ 0b0110_0101).count_ones().is_multiple_of(3)
        });
        check(300, "table", 0, |row| (row.get(3) ^ row.get(9)) && (row.get(14) || row.get(22)));
    }
}
