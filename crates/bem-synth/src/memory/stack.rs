//! A stack: a shift register that moves both ways; shown are its top and whether there is one.

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

/// A stack of values of one field.
#[derive(Clone, Debug)]
pub struct Stack {
    /// When the field is put on top.
    pub push: Condition,
    /// When the top is taken away.
    pub pop: Condition,
    /// What is put on top; without a field only the height counts.
    pub field: Option<Field>,
    /// How many values fit; what is pushed beyond falls out at the bottom.
    pub cells: usize,
}

impl Stack {
    fn value_bits(&self) -> usize {
        self.field.map_or(0, |field| usize::from(field.width))
    }
}

impl Device for Stack {
    fn moved(&self, moves: &Moves) -> Option<Arc<dyn Device>> {
        let field = match self.field {
            Some(field) => Some(moves.field(field)?),
            None => None,
        };
        let (push, pop) = (self.push.moved(moves)?, self.pop.moved(moves)?);
        Some(Arc::new(Stack { push, pop, field, cells: self.cells }))
    }

    fn statement(&self) -> Memory {
        Memory::Stack {
            push: self.push.literals.clone(),
            pop: self.pop.literals.clone(),
            field: self.field,
            cells: self.cells as u8,
        }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Stack as u8);
        self.push.encode(writer);
        self.pop.encode(writer);
        codec::encode_fields(writer, self.field.as_slice());
        writer.length(self.cells);
    }

    fn resized(&self, cells: usize) -> Option<Arc<dyn Device>> {
        Some(Arc::new(Stack { cells, ..self.clone() }))
    }

    fn words(&self) -> String {
        let field = self.field.map_or("marks".to_string(), |field| format!("the field at {}", field.low));
        format!("stack of {field}, pushed on {}, popped on {}", self.push.words(), self.pop.words())
    }

    fn description_length(&self) -> u32 {
        6 + choice_bits(8) + self.push.description_length() + self.pop.description_length()
    }

    fn memory_bits(&self) -> usize {
        self.cells * (self.value_bits() + 1)
    }

    fn shows(&self) -> Vec<usize> {
        match self.value_bits() {
            0 => vec![1],
            width => vec![1, width],
        }
    }

    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let push = self.push.build(builder, observation);
        let pop = self.pop.build(builder, observation);
        // A cell is a mark that it is in use, then the value.
        let mut value = vec![Signal::TRUE];
        if let Some(field) = self.field {
            value.extend_from_slice(field_signals(observation, field));
        }
        let width = value.len();
        let cell = |place: usize| &memory[place * width..(place + 1) * width];
        let empty = vec![Signal::FALSE; width];
        let mut next = Vec::new();
        for place in 0..self.cells {
            let above = if place == 0 { value.as_slice() } else { cell(place - 1) };
            let below = if place + 1 == self.cells { empty.as_slice() } else { cell(place + 1) };
            for bit in 0..width {
                let kept = builder.mux(pop, below[bit], cell(place)[bit]);
                next.push(builder.mux(push, above[bit], kept));
            }
        }
        (cell(0).to_vec(), next)
    }
}
