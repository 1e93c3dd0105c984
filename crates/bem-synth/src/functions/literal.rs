//! Constants and single bits, plain or inverted: the shortest descriptions there are.

use super::FunctionClass;
use crate::function::{Function, choice_bits};
use crate::samples::{Samples, Work};
use crate::statement::Formula;
use bem_circuit::netlist::{Builder, Signal};

/// Always the same, or one bit of the row.
pub struct Literal;

impl FunctionClass for Literal {
    fn name(&self) -> &'static str {
        "literal"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        if !work.spend((samples.width * samples.label_words().len()) as u64) {
            return None;
        }
        for value in [false, true] {
            let answers = vec![if value { u64::MAX } else { 0 }; samples.label_words().len()];
            if samples.accepts(samples.errors(&answers)) {
                let output = Signal::constant(value);
                return Function::close(
                    Builder::new(samples.width),
                    output,
                    Formula::constant(value),
                    1,
                    format!("always {}", u8::from(value)),
                );
            }
        }
        let (errors, index, inverted) = (0..samples.width)
            .flat_map(|index| {
                let errors = samples.errors(samples.column(index));
                [(errors, index, false), (samples.len() - errors, index, true)]
            })
            .min()?;
        if !samples.accepts(errors) {
            return None;
        }
        let mut builder = Builder::new(samples.width);
        let bit = builder.input(index);
        let output = if inverted { builder.not(bit) } else { bit };
        let words = format!("bit {}{index}", if inverted { "not " } else { "" });
        let statement = Formula::literal(index, inverted);
        Function::close(builder, output, statement, 2 + choice_bits(samples.width), words)
    }
}
