//! A tape: values are written one after the other and stay; shown are all cells and how many reads there were.

use super::codec::{self, StructureKind};
use super::condition::Condition;
use super::{Device, field_signals};
use crate::function::choice_bits;
use crate::statement::Memory;
use crate::transfer::Moves;
use bem_base::encode::Writer;
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};
use std::sync::Arc;

/// Cells filled in order, and a counter of reads.
#[derive(Clone, Debug)]
pub struct Tape {
    /// When the field is written to the next cell.
    pub write: Condition,
    /// When the counter goes up.
    pub read: Condition,
    /// What is written.
    pub field: Field,
    /// How many values fit; a power of two.
    pub cells: usize,
}

impl Tape {
    fn counter_bits(&self) -> usize {
        self.cells.ilog2() as usize
    }

    fn width(&self) -> usize {
        usize::from(self.field.width)
    }
}

impl Device for Tape {
    fn moved(&self, moves: &Moves) -> Option<Arc<dyn Device>> {
        let (write, read) = (self.write.moved(moves)?, self.read.moved(moves)?);
        Some(Arc::new(Tape { write, read, field: moves.field(self.field)?, cells: self.cells }))
    }

    fn statement(&self) -> Memory {
        Memory::Tape {
            write: self.write.literals.clone(),
            read: self.read.literals.clone(),
            field: self.field,
            cell_bits: self.counter_bits() as u8,
        }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Tape as u8);
        self.write.encode(writer);
        self.read.encode(writer);
        codec::encode_fields(writer, &[self.field]);
        writer.length(self.cells);
    }

    fn words(&self) -> String {
        format!(
            "tape of the field at {}, written on {}, read on {}",
            self.field.low,
            self.write.words(),
            self.read.words()
        )
    }

    fn description_length(&self) -> u32 {
        8 + choice_bits(8) + self.write.description_length() + self.read.description_length()
    }

    fn memory_bits(&self) -> usize {
        self.cells * (self.width() + 1) + self.counter_bits()
    }

    fn shows(&self) -> Vec<usize> {
        let mut groups = vec![self.counter_bits()];
        // One group per bit of the value, so that the cells of one bit can be chosen among.
        groups.extend(vec![self.cells; self.width()]);
        groups
    }

    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let seen = field_signals(observation, self.field);
        let write = self.write.build(builder, observation);
        let read = self.read.build(builder, observation);
        let (used, rest) = memory.split_at(self.cells);
        let (values, counter) = rest.split_at(self.cells * self.width());
        let mut next_used = Vec::new();
        let mut next_values = vec![Signal::FALSE; values.len()];
        for place in 0..self.cells {
            let before = if place == 0 { Signal::TRUE } else { used[place - 1] };
            let free = builder.and_not(before, used[place]);
            let taken = builder.and(write, free);
            next_used.push(builder.or(used[place], taken));
            for (bit, seen) in seen.iter().enumerate() {
                let index = bit * self.cells + place;
                next_values[index] = builder.mux(taken, *seen, values[index]);
            }
        }
        let mut carry = read;
        let mut next_counter = Vec::new();
        for digit in counter {
            next_counter.push(builder.xor(*digit, carry));
            carry = builder.and(carry, *digit);
        }
        let mut shown = counter.to_vec();
        shown.extend_from_slice(values);
        let mut next = next_used;
        next.extend(next_values);
        next.extend(next_counter);
        (shown, next)
    }
}
