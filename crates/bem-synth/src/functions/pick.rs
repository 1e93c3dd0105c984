//! One bit of a run of neighbouring bits, picked by the number that a field spells, plain or inverted.
//!
//! A multiplexer whose parts are in order: said in one breath, it is learned from some dozen samples where spelling out the part
//! of every number takes hundreds. Together with bits that remember a table it answers questions about it.

use super::FunctionClass;
use super::multiplexer::select;
use crate::function::{Function, choice_bits};
use crate::samples::{Samples, Work};
use crate::statement::{Formula, Word};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};

/// Bits of the number, at least and at most.
const NUMBER_BITS: core::ops::RangeInclusive<u16> = 2..=6;

/// The bit at the place that a field names.
pub struct Pick;

impl FunctionClass for Pick {
    fn name(&self) -> &'static str {
        "pick"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        let numbers = samples.groups.iter().filter(|field| NUMBER_BITS.contains(&field.width));
        for number in numbers.copied() {
            let (low, size) = (usize::from(number.low), 1usize << number.width);
            let overlaps = |base: usize| base < low + usize::from(number.width) && low < base + size;
            for base in (0..(samples.width + 1).saturating_sub(size)).filter(|base| !overlaps(*base)) {
                if !work.spend(samples.len().min(64) as u64) {
                    return None;
                }
                for inverted in [false, true] {
                    if is_right(samples, number, base, inverted) {
                        return close(samples, number, base, inverted);
                    }
                }
            }
        }
        None
    }
}

/// Whether the picked bits are the labels, within what is allowed; most that are wrong are so within a few rows.
fn is_right(samples: &Samples, number: Field, base: usize, inverted: bool) -> bool {
    let Some(allowed) = samples.errors_allowed() else { return false };
    let mut errors = 0;
    for (row, label) in samples.rows.iter().zip(&samples.labels) {
        let picked = row.get(base + row.word(&number) as usize) ^ inverted;
        errors += usize::from(picked != *label);
        if allowed < errors {
            return false;
        }
    }
    true
}

fn close(samples: &Samples, number: Field, base: usize, inverted: bool) -> Option<Function> {
    let mut builder = Builder::new(samples.width);
    let low = usize::from(number.low);
    let bits: Vec<Signal> = (low..low + usize::from(number.width)).map(Signal::input).collect();
    let places = base..base + (1usize << number.width);
    let parts: Vec<Signal> = places
        .clone()
        .map(|place| {
            let bit = Signal::input(place);
            if inverted { builder.not(bit) } else { bit }
        })
        .collect();
    let output = select(&mut builder, &bits, &parts);
    let statement = Formula::Select {
        selector: Word::Plain(number),
        parts: places.map(|place| Formula::literal(place, inverted)).collect(),
    };
    let length = 4 + choice_bits(samples.groups.len()) + choice_bits(samples.width);
    let not = if inverted { "not " } else { "" };
    let words =
        format!("{not}the bit from {base} on that bits {low}..{} name", low + usize::from(number.width));
    Function::close(builder, output, statement, length, words)
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;
    use crate::samples::Row;

    #[test]
    fn a_bit_that_is_asked_for_by_number_is_picked_from_few_samples() {
        let number = Field { low: 64, width: 6 };
        let wanted = |row: &Row| !row.get(row.word(&number) as usize);
        let samples = sample(&[64, 6, 1], 60, 3, wanted);
        let function = Pick.fit(&samples, &mut Work::new(1 << 30)).expect("it is picked");
        assert!(function.explains(&sample(&[64, 6, 1], 500, 4, wanted)), "{}", function.words);
        assert!(function.description_length < 20);
        let coins = sample(&[64, 6, 1], 60, 5, |row| row.0[0].count_ones() & 4 == 4);
        assert!(Pick.fit(&coins, &mut Work::new(1 << 30)).is_none());
    }
}
