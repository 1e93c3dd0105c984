//! A delay line: the last observations, the latest first.

use super::Device;
use super::codec::{self, StructureKind};
use crate::statement::Memory;
use bem_base::encode::Writer;
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};

/// Shows the observations of the last `length` steps.
#[derive(Clone, Debug)]
pub struct Delay {
    /// The observation's fields.
    pub fields: Vec<Field>,
    /// How many steps back.
    pub length: usize,
}

impl Delay {
    fn width(&self) -> usize {
        self.fields.iter().map(|field| usize::from(field.width)).sum()
    }
}

impl Device for Delay {
    fn statement(&self) -> Memory {
        Memory::Delay(self.length as u8)
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Delay as u8);
        codec::encode_fields(writer, &self.fields);
        writer.length(self.length);
    }

    fn words(&self) -> String {
        format!("delay of {}", self.length)
    }

    fn description_length(&self) -> u32 {
        1 + self.length as u32
    }

    fn memory_bits(&self) -> usize {
        self.length * self.width()
    }

    fn shows(&self) -> Vec<usize> {
        let widths: Vec<usize> = self.fields.iter().map(|field| usize::from(field.width)).collect();
        widths.repeat(self.length)
    }

    fn build(
        &self,
        _builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let mut next = observation.to_vec();
        next.extend_from_slice(&memory[..memory.len() - self.width()]);
        (memory.to_vec(), next)
    }
}
