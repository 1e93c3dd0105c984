//! A structure that is looked at after the step instead of before it.
//!
//! Where a world asks for the top of a stack once the step's own push or pop is done, what the structure shows before
//! tells too little: below a value that leaves there is another one.

use super::codec::StructureKind;
use super::{Device, resize};
use crate::statement::Memory;
use crate::transfer::Moves;
use bem_base::encode::Writer;
use bem_circuit::netlist::{Builder, Signal};
use std::sync::Arc;

/// Shows what the structure will show of its next memory.
#[derive(Clone, Debug)]
pub struct After {
    /// The structure looked at.
    pub inner: Arc<dyn Device>,
}

impl Device for After {
    fn moved(&self, moves: &Moves) -> Option<Arc<dyn Device>> {
        Some(Arc::new(After { inner: self.inner.moved(moves)? }))
    }

    fn resized(&self, cells: usize) -> Option<Arc<dyn Device>> {
        Some(Arc::new(After { inner: resize(&self.inner, cells) }))
    }

    fn statement(&self) -> Memory {
        Memory::After(Box::new(self.inner.statement()))
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::After as u8);
        self.inner.encode(writer);
    }

    fn words(&self) -> String {
        format!("{}, after the step", self.inner.words())
    }

    fn description_length(&self) -> u32 {
        1 + self.inner.description_length()
    }

    fn memory_bits(&self) -> usize {
        self.inner.memory_bits()
    }

    fn shows(&self) -> Vec<usize> {
        self.inner.shows()
    }

    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let (_, next) = self.inner.build(builder, observation, memory);
        let (shown, _) = self.inner.build(builder, observation, &next);
        (shown, next)
    }
}
