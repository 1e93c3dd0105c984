//! A learned Boolean function of a row: a circuit, what it says as data, how long that is, and in which words.
//!
//! Every class of functions is one file in [`crate::functions`] and hands back one of these; nothing else needs
//! to know how it was found. Must not know what the row's bits mean.

use crate::samples::{Row, Samples};
use crate::statement::Formula;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_circuit::netlist::{Builder, Netlist, Signal};
use std::collections::BTreeMap;

/// A circuit with one output over all bits of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// As many inputs as a row has bits, one output.
    pub circuit: Netlist,
    /// What the circuit computes, said without one.
    pub statement: Formula,
    /// Bits it takes to say which function of its class it is.
    pub description_length: u32,
    /// The class and what was chosen within it, in words.
    pub words: String,
}

impl Function {
    /// Closes a circuit over a row of this many bits; none if a bound of the machine is exceeded.
    pub fn close(
        builder: Builder,
        output: Signal,
        statement: Formula,
        description_length: u32,
        words: String,
    ) -> Option<Function> {
        let circuit = builder.finish(&[output]).ok()?;
        Some(Function { circuit, statement, description_length, words })
    }

    /// The answers to all rows, 64 a word.
    pub fn answers(&self, samples: &Samples) -> Vec<u64> {
        let (mut values, mut outputs, mut inputs) = (Vec::new(), Vec::new(), vec![0; samples.width]);
        (0..samples.len().div_ceil(64))
            .map(|word| {
                for (index, input) in inputs.iter_mut().enumerate() {
                    *input = samples.column(index)[word];
                }
                self.circuit.evaluate_words(&inputs, &mut values, &mut outputs);
                outputs[0]
            })
            .collect()
    }

    /// How many rows it gets wrong.
    pub fn errors(&self, samples: &Samples) -> usize {
        samples.errors(&self.answers(samples))
    }

    /// Bits that say it and its exceptions.
    pub fn length_with_exceptions(&self, samples: &Samples) -> u32 {
        // Without a tolerance there are none, and nothing to count.
        let errors = if samples.tolerance == 0 { 0 } else { self.errors(samples) };
        self.description_length.saturating_add(samples.exception_bits(errors))
    }

    /// Whether it explains the samples within their tolerance.
    pub fn explains(&self, samples: &Samples) -> bool {
        samples.accepts(self.errors(samples))
    }

    /// Whether it is right on samples kept from fitting, as far as there are enough to tell: all but a few, or all but
    /// a share beyond what `noise_percent` explains.
    pub fn holds_up(&self, kept: &Samples, noise_percent: usize) -> bool {
        are_few(self.errors(kept), kept.len(), noise_percent)
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.circuit.encode(writer);
        self.statement.encode(writer);
        writer.u32(self.description_length);
        writer.text(&self.words);
    }

    /// Reads a function of rows with this many bits back.
    pub fn decode(reader: &mut Reader<'_>, width: usize) -> Result<Function, DecodeError> {
        let misfit = reader.error("a function of other rows");
        let circuit = Netlist::decode(reader)?;
        if circuit.inputs() != width || circuit.outputs().len() != 1 {
            return Err(misfit);
        }
        Ok(Function {
            circuit,
            statement: Formula::decode(reader)?,
            description_length: reader.u32()?,
            words: reader.text()?.to_string(),
        })
    }

    /// Puts a copy into a larger circuit.
    pub fn embed(&self, builder: &mut Builder, row: &[Signal]) -> Signal {
        builder.embed(&self.circuit, row)[0]
    }

    /// The answer to one row.
    pub fn answer(&self, row: &Row) -> bool {
        let inputs: Vec<bool> = (0..self.circuit.inputs()).map(|index| row.get(index)).collect();
        self.circuit.evaluate(&inputs)[0]
    }
}

/// What was kept from fitting that an explanation may get wrong: this many, or this share beyond what noise explains.
const KEPT_WRONG_MIN: usize = 4;
const KEPT_WRONG_PERCENT: usize = 10;

/// Whether so many that were kept from fitting and are wrong say nothing against an explanation.
pub fn are_few(wrong: usize, kept: usize, noise_percent: usize) -> bool {
    wrong < KEPT_WRONG_MIN || 100 * wrong <= (noise_percent + KEPT_WRONG_PERCENT) * kept
}

/// Bits needed to name one of `count` things.
pub fn choice_bits(count: usize) -> u32 {
    count.max(1).next_power_of_two().ilog2()
}

/// Builds a partial function given as key and value pairs, keys over these signals (the first is the lowest
/// bit). What no pair says may become either; whole branches without a pair take their sibling's circuit.
pub fn build_table(builder: &mut Builder, bits: &[Signal], table: &BTreeMap<u64, bool>) -> Signal {
    let pairs: Vec<(u64, bool)> = table.iter().map(|(key, value)| (*key, *value)).collect();
    build_pairs(builder, bits, &pairs)
}

/// The same for several outputs at once; each pair gives all of them.
pub fn build_word_table(
    builder: &mut Builder,
    bits: &[Signal],
    table: &BTreeMap<u64, u64>,
    outputs: usize,
) -> Vec<Signal> {
    (0..outputs)
        .map(|output| {
            let pairs: Vec<(u64, bool)> =
                table.iter().map(|(key, value)| (*key, value >> output & 1 == 1)).collect();
            build_pairs(builder, bits, &pairs)
        })
        .collect()
}

fn build_pairs(builder: &mut Builder, bits: &[Signal], pairs: &[(u64, bool)]) -> Signal {
    let Some((_, first)) = pairs.first() else { return Signal::FALSE };
    if pairs.iter().all(|(_, value)| value == first) {
        return Signal::constant(*first);
    }
    let (top, rest) = bits.split_last().expect("equal keys have equal values");
    let border = pairs.partition_point(|(key, _)| key >> rest.len() & 1 == 0);
    let (low, high) = pairs.split_at(border);
    let mask = (1u64 << rest.len()) - 1;
    let strip = |part: &[(u64, bool)]| -> Vec<(u64, bool)> {
        part.iter().map(|(key, value)| (key & mask, *value)).collect()
    };
    if low.is_empty() || high.is_empty() {
        return build_pairs(builder, rest, &strip(pairs));
    }
    let (low, high) = (strip(low), strip(high));
    // Halves that nowhere disagree are one function of fewer bits.
    if let Some(both) = union(&low, &high) {
        return build_pairs(builder, rest, &both);
    }
    let otherwise = build_pairs(builder, rest, &low);
    let then = build_pairs(builder, rest, &high);
    // A branch that is the other one inverted takes one gate.
    if then == builder.not(otherwise) {
        builder.xor(*top, otherwise)
    } else {
        builder.mux(*top, then, otherwise)
    }
}

/// Both lists in one, ascending, or none where they disagree.
fn union(low: &[(u64, bool)], high: &[(u64, bool)]) -> Option<Vec<(u64, bool)>> {
    let mut both: BTreeMap<u64, bool> = low.iter().copied().collect();
    for (key, value) in high {
        if *both.entry(*key).or_insert(*value) != *value {
            return None;
        }
    }
    Some(both.into_iter().collect())
}

/// The number of set signals as binary signals, lowest first, by full adders.
pub fn build_count(builder: &mut Builder, signals: &[Signal]) -> Vec<Signal> {
    build_sum(builder, vec![signals.to_vec()])
}

/// Puts a bit into the ranks of a sum as often as its weight says.
pub fn add_weighted(ranks: &mut Vec<Vec<Signal>>, weight: u64, bit: Signal) {
    for rank in (0..64).filter(|rank| weight >> rank & 1 == 1) {
        ranks.resize(ranks.len().max(rank + 1), Vec::new());
        ranks[rank].push(bit);
    }
}

/// The sum of signals that count one, two, four and so on, rank by rank.
pub fn build_sum(builder: &mut Builder, mut ranks: Vec<Vec<Signal>>) -> Vec<Signal> {
    let mut sum = Vec::new();
    let mut rank = 0;
    while rank < ranks.len() {
        while 1 < ranks[rank].len() {
            let carry = if 3 <= ranks[rank].len() {
                let (a, b, c) = (ranks[rank].remove(0), ranks[rank].remove(0), ranks[rank].remove(0));
                let half = builder.xor(a, b);
                let total = builder.xor(half, c);
                ranks[rank].push(total);
                builder.mux(half, c, a)
            } else {
                let (a, b) = (ranks[rank].remove(0), ranks[rank].remove(0));
                let total = builder.xor(a, b);
                ranks[rank].push(total);
                builder.and(a, b)
            };
            if ranks.len() == rank + 1 {
                ranks.push(Vec::new());
            }
            ranks[rank + 1].push(carry);
        }
        sum.push(ranks[rank].first().copied().unwrap_or(Signal::FALSE));
        rank += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    #[test]
    fn a_table_agrees_with_its_pairs_and_needs_no_gate_for_what_it_does_not_say() {
        let mut prng = Prng::stream(1, "table");
        for _ in 0..200 {
            let table: BTreeMap<u64, bool> = (0..20).map(|_| (prng.below(64), prng.bit())).collect();
            let mut builder = Builder::new(6);
            let bits: Vec<Signal> = (0..6).map(Signal::input).collect();
            let output = build_table(&mut builder, &bits, &table);
            let circuit = builder.finish(&[output]).unwrap();
            for (key, value) in &table {
                let inputs: Vec<bool> = (0..6).map(|bit| key >> bit & 1 == 1).collect();
                assert_eq!(circuit.evaluate(&inputs), [*value]);
            }
        }
        let one_sided: BTreeMap<u64, bool> = [(0, false), (1, true), (7, true)].into();
        let mut builder = Builder::new(3);
        let bits: Vec<Signal> = (0..3).map(Signal::input).collect();
        assert_eq!(build_table(&mut builder, &bits, &one_sided), Signal::input(0));
    }

    #[test]
    fn counting_circuits_count() {
        for width in 0..10usize {
            let mut builder = Builder::new(width);
            let bits: Vec<Signal> = (0..width).map(Signal::input).collect();
            let sum = build_count(&mut builder, &bits);
            let circuit = builder.finish(&sum).unwrap();
            for key in 0..1u64 << width {
                let inputs: Vec<bool> = (0..width).map(|bit| key >> bit & 1 == 1).collect();
                let got =
                    circuit.evaluate(&inputs).iter().rev().fold(0, |sum, bit| sum * 2 + u32::from(*bit));
                assert_eq!(got, key.count_ones());
            }
        }
    }
}
