//! A register file: one field says where, another says what; shown is what is kept where the address points.

use super::codec::{self, StructureKind};
use super::condition::Condition;
use super::{Device, field_signals};
use crate::function::choice_bits;
use crate::functions::multiplexer::select;
use crate::statement::Memory;
use crate::transfer::Moves;
use bem_base::encode::Writer;
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Op, Signal};
use std::sync::Arc;

/// Cells addressed by a field.
#[derive(Clone, Debug)]
pub struct Registers {
    /// When a cell is written.
    pub write: Condition,
    /// The field that names a cell.
    pub address: Field,
    /// The field that is written.
    pub data: Field,
    /// The address of a write is the one seen a step before.
    pub delayed: bool,
}

impl Registers {
    fn cells(&self) -> usize {
        1 << self.address.width
    }

    fn width(&self) -> usize {
        usize::from(self.data.width)
    }
}

impl Device for Registers {
    fn moved(&self, moves: &Moves) -> Option<Arc<dyn Device>> {
        let (address, data) = (moves.field(self.address)?, moves.field(self.data)?);
        let is_bounded = address.width <= codec::ADDRESS_BITS_MAX;
        let write = self.write.moved(moves)?;
        is_bounded
            .then(|| Arc::new(Registers { write, address, data, delayed: self.delayed }) as Arc<dyn Device>)
    }

    fn statement(&self) -> Memory {
        Memory::Registers {
            write: self.write.literals.clone(),
            address: self.address,
            data: self.data,
            delayed: self.delayed,
        }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Registers as u8);
        self.write.encode(writer);
        codec::encode_fields(writer, &[self.address, self.data]);
        writer.bool(self.delayed);
    }

    fn words(&self) -> String {
        let when = if self.delayed { "the last" } else { "the" };
        format!(
            "registers for the field at {} under {when} field at {}, written on {}",
            self.data.low,
            self.address.low,
            self.write.words()
        )
    }

    fn description_length(&self) -> u32 {
        6 + 2 * choice_bits(8) + self.write.description_length()
    }

    fn memory_bits(&self) -> usize {
        self.cells() * self.width() + if self.delayed { usize::from(self.address.width) } else { 0 }
    }

    fn shows(&self) -> Vec<usize> {
        vec![self.width()]
    }

    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let (now, data) = (field_signals(observation, self.address), field_signals(observation, self.data));
        let (cells, last) = memory.split_at(self.cells() * self.width());
        let target = if self.delayed { last } else { now };
        let write = self.write.build(builder, observation);
        let mut next = Vec::new();
        for place in 0..self.cells() {
            let hits: Vec<Signal> = target
                .iter()
                .enumerate()
                .map(|(bit, signal)| builder.gate(Op::Xor, *signal, Signal::constant(place >> bit & 1 == 0)))
                .collect();
            let hit = builder.and_all(&hits);
            let taken = builder.and(write, hit);
            for bit in 0..self.width() {
                next.push(builder.mux(taken, data[bit], cells[place * self.width() + bit]));
            }
        }
        if self.delayed {
            next.extend_from_slice(now);
        }
        let shown = (0..self.width())
            .map(|bit| {
                let column: Vec<Signal> = cells.iter().skip(bit).step_by(self.width()).copied().collect();
                select(builder, now, &column)
            })
            .collect();
        (shown, next)
    }
}
