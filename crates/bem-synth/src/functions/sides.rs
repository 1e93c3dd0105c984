//! A bit that stands alone chooses between two functions of any other class: what a composition draws, or an exception
//! to a rule, is mostly said by such a bit.
//!
//! [`super::multiplexer`] takes more selectors and asks simple classes only. Here both sides are whole searches of their
//! own, which is why this class comes last and looks at fields of one bit alone.

use super::{FunctionClass, PORTFOLIO, fit_tiers};
use crate::function::{Function, choice_bits};
use crate::samples::{Samples, Work};
use crate::statement::{Formula, Word};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};

/// Bits that are tried, the first ones.
const BITS_MAX: usize = 4;
/// Rows on a side before it is worth a search.
const ROWS_MIN: usize = 32;

/// Two functions and the bit that chooses.
pub struct Sides;

impl FunctionClass for Sides {
    fn name(&self) -> &'static str {
        "sides"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // Among exceptions nearly every bit has sides that are explained.
        if 0 < samples.tolerance || samples.groups.len() < 2 {
            return None;
        }
        let alone = samples.groups.iter().filter(|field| field.width == 1);
        let found = alone.take(BITS_MAX).filter_map(|field| fit_bit(samples, usize::from(field.low), work));
        found.min_by_key(|function| function.description_length)
    }
}

fn fit_bit(samples: &Samples, bit: usize, work: &mut Work) -> Option<Function> {
    let earlier = &PORTFOLIO[..PORTFOLIO.len() - 1];
    let side = |value: bool, work: &mut Work| {
        let part = samples.restrict(|row| row.get(bit) == value);
        if part.len() < ROWS_MIN { None } else { Some(fit_tiers(earlier, &part, work)?.function) }
    };
    let otherwise = side(false, work)?;
    let then = side(true, work)?;
    let description_length =
        choice_bits(samples.width) + 3 + otherwise.description_length + then.description_length;
    let mut builder = Builder::new(samples.width);
    let row: Vec<Signal> = (0..samples.width).map(Signal::input).collect();
    let (low, high) = (otherwise.embed(&mut builder, &row), then.embed(&mut builder, &row));
    let output = builder.mux(Signal::input(bit), high, low);
    let words = format!("by bit {bit}: {}, else {}", then.words, otherwise.words);
    let selector = Word::Plain(Field { low: bit as u16, width: 1 });
    let statement = Formula::Select { selector, parts: vec![otherwise.statement, then.statement] };
    let function = Function::close(builder, output, statement, description_length, words)?;
    function.explains(samples).then_some(function)
}
