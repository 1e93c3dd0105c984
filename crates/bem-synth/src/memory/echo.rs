//! A shift register: the value that one field had a fixed number of steps ago, and nothing of what came since.
//!
//! A delay line shows all that it keeps, which is more than can be judged when it is long.

use super::codec::{self, StructureKind};
use super::{Device, field_signals};
use crate::function::choice_bits;
use crate::statement::Memory;
use bem_base::encode::Writer;
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};

/// Shows what a field was `length` steps ago.
#[derive(Clone, Debug)]
pub struct Echo {
    /// What is kept.
    pub field: Field,
    /// For how many steps.
    pub length: usize,
}

impl Device for Echo {
    fn statement(&self) -> Memory {
        Memory::Echo(self.field, self.length as u8)
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Echo as u8);
        codec::encode_fields(writer, &[self.field]);
        writer.length(self.length);
    }

    fn words(&self) -> String {
        format!("the field at {}, {} steps ago", self.field.low, self.length)
    }

    fn description_length(&self) -> u32 {
        3 + choice_bits(self.length + 1)
    }

    fn memory_bits(&self) -> usize {
        self.length * usize::from(self.field.width)
    }

    fn shows(&self) -> Vec<usize> {
        vec![usize::from(self.field.width)]
    }

    fn build(
        &self,
        _builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let (newer, oldest) = memory.split_at(memory.len() - usize::from(self.field.width));
        let next = [field_signals(observation, self.field), newer].concat();
        (oldest.to_vec(), next)
    }
}
