//! Plain tables: what was seen for each row; unseen rows follow their neighbours in the circuit.

use super::FunctionClass;
use crate::function::{Function, build_table};
use crate::samples::{Samples, Work};
use crate::statement::Formula;
use bem_circuit::netlist::{Builder, Signal};

/// Distinct rows at most.
const ROWS_MAX: usize = 4_096;

/// One bit per row seen.
pub struct Table;

impl FunctionClass for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        let bits: Vec<usize> = (0..samples.width)
            .filter(|index| {
                let ones =
                    samples.column(*index).iter().map(|word| word.count_ones() as usize).sum::<usize>();
                0 < ones && ones < samples.len()
            })
            .collect();
        if ROWS_MAX < samples.len() || 16 < bits.len() || !work.spend((samples.len() * bits.len() * 8) as u64)
        {
            return None;
        }
        let table = samples.rows.iter().zip(&samples.labels).map(|(row, label)| (row.gather(&bits), *label));
        let table = table.collect();
        let statement = Formula::rows(&bits, &table);
        let mut builder = Builder::new(samples.width);
        let signals: Vec<Signal> = bits.iter().map(|index| Signal::input(*index)).collect();
        let output = build_table(&mut builder, &signals, &table);
        let words = format!("table of {} rows", samples.len());
        Function::close(builder, output, statement, samples.len() as u32, words)
    }
}
