//! A queue: values wait in the order they came; shown are the first and whether there is one.

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

/// A queue of values of one field.
#[derive(Clone, Debug)]
pub struct Queue {
    /// When the field is put at the end.
    pub push: Condition,
    /// When the first value leaves.
    pub pop: Condition,
    /// What is put in.
    pub field: Field,
    /// How many values fit; what comes beyond is lost.
    pub cells: usize,
}

impl Device for Queue {
    fn moved(&self, moves: &Moves) -> Option<Arc<dyn Device>> {
        let (push, pop) = (self.push.moved(moves)?, self.pop.moved(moves)?);
        Some(Arc::new(Queue { push, pop, field: moves.field(self.field)?, cells: self.cells }))
    }

    fn statement(&self) -> Memory {
        Memory::Queue {
            push: self.push.literals.clone(),
            pop: self.pop.literals.clone(),
            field: self.field,
            cells: self.cells as u8,
        }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Queue as u8);
        self.push.encode(writer);
        self.pop.encode(writer);
        codec::encode_fields(writer, &[self.field]);
        writer.length(self.cells);
    }

    fn resized(&self, cells: usize) -> Option<Arc<dyn Device>> {
        Some(Arc::new(Queue { cells, ..self.clone() }))
    }

    fn words(&self) -> String {
        format!(
            "queue of the field at {}, pushed on {}, popped on {}",
            self.field.low,
            self.push.words(),
            self.pop.words()
        )
    }

    fn description_length(&self) -> u32 {
        6 + choice_bits(8) + self.push.description_length() + self.pop.description_length()
    }

    fn memory_bits(&self) -> usize {
        self.cells * (usize::from(self.field.width) + 1)
    }

    fn shows(&self) -> Vec<usize> {
        vec![1, usize::from(self.field.width)]
    }

    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let push = self.push.build(builder, observation);
        let pop = self.pop.build(builder, observation);
        let mut value = vec![Signal::TRUE];
        value.extend_from_slice(field_signals(observation, self.field));
        let width = value.len();
        let cell = |place: usize| &memory[place * width..(place + 1) * width];
        // First everything moves up by one if the first leaves, then the new value takes the first free cell.
        let mut moved: Vec<Vec<Signal>> = Vec::new();
        for place in 0..self.cells {
            let bits = (0..width).map(|bit| {
                let behind = if place + 1 == self.cells { Signal::FALSE } else { cell(place + 1)[bit] };
                builder.mux(pop, behind, cell(place)[bit])
            });
            moved.push(bits.collect());
        }
        let mut next = Vec::new();
        for place in 0..self.cells {
            let before = if place == 0 { Signal::TRUE } else { moved[place - 1][0] };
            let free = builder.and_not(before, moved[place][0]);
            let taken = builder.and(push, free);
            next.extend((0..width).map(|bit| builder.mux(taken, value[bit], moved[place][bit])));
        }
        (cell(0).to_vec(), next)
    }
}
