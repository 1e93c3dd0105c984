//! Exclusive or of one function per field, each of how many of the field's bits are set.
//!
//! Parities of majorities and the like: every field answers by its own count, and the answers are added without carry.
//! Which answer belongs to which count is one unknown bit each, so that elimination over GF(2) finds all of them.

use super::FunctionClass;
use super::affine::Affine;
use crate::function::{Function, build_count, build_table};
use crate::samples::{ROW_BITS_MAX, Row, Samples, Work};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};
use std::collections::BTreeMap;

/// One table over a count for each field, joined by exclusive or.
pub struct CountedXor;

impl FunctionClass for CountedXor {
    fn name(&self) -> &'static str {
        "counted xor"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        let fields: Vec<Field> = samples.groups.iter().filter(|field| 2 <= field.width).copied().collect();
        // The row that elimination sees: for each field and each count whether the field has it.
        let width: usize = fields.iter().map(|field| usize::from(field.width) + 1).sum();
        let cost = samples.len() * (samples.width + width);
        if fields.len() < 2 || ROW_BITS_MAX < width + 2 || !work.spend(cost as u64) {
            return None;
        }
        let counted = samples.seen_as(width, Vec::new(), |row| {
            let (mut shown, mut low) = (Row::default(), 0);
            for field in &fields {
                let count = bits(field).filter(|index| row.get(*index)).count();
                shown.set(low + count, true);
                low += usize::from(field.width) + 1;
            }
            shown
        });
        let sum = Affine.fit(&counted, work)?;
        let mut builder = Builder::new(samples.width);
        let mut row = Vec::new();
        for field in &fields {
            let signals: Vec<Signal> = bits(field).map(Signal::input).collect();
            let count = build_count(&mut builder, &signals);
            for value in 0..=u64::from(field.width) {
                let others = (0..=u64::from(field.width)).map(|other| (other, other == value));
                row.push(build_table(&mut builder, &count, &others.collect::<BTreeMap<_, _>>()));
            }
        }
        let output = sum.embed(&mut builder, &row);
        let words = format!("xor of counts over {} fields", fields.len());
        let function = Function::close(builder, output, sum.description_length, words)?;
        function.explains(samples).then_some(function)
    }
}

fn bits(field: &Field) -> core::ops::Range<usize> {
    usize::from(field.low)..usize::from(field.low + field.width)
}
