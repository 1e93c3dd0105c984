//! Two structures side by side: what a composition of two streams needs.

use super::codec::StructureKind;
use super::{Device, resize};
use crate::statement::Memory;
use crate::transfer::Moves;
use bem_base::encode::Writer;
use bem_circuit::netlist::{Builder, Signal};
use std::sync::Arc;

/// More of them side by side than this are not spelled out in words.
const WORDS_MAX: usize = 12;

/// Two structures that do not know of each other.
#[derive(Clone, Debug)]
pub struct Both {
    /// Shown first.
    pub first: Arc<dyn Device>,
    /// Shown second.
    pub second: Arc<dyn Device>,
}

impl Device for Both {
    fn moved(&self, moves: &Moves) -> Option<Arc<dyn Device>> {
        Some(Arc::new(Both { first: self.first.moved(moves)?, second: self.second.moved(moves)? }))
    }

    fn resized(&self, cells: usize) -> Option<Arc<dyn Device>> {
        Some(Arc::new(Both { first: resize(&self.first, cells), second: resize(&self.second, cells) }))
    }

    fn statement(&self) -> Memory {
        Memory::Both(Box::new(self.first.statement()), Box::new(self.second.statement()))
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Both as u8);
        self.first.encode(writer);
        self.second.encode(writer);
    }

    fn words(&self) -> String {
        match self.shows().len() {
            many if WORDS_MAX < many => format!("{many} memories side by side"),
            _ => format!("{} beside {}", self.first.words(), self.second.words()),
        }
    }

    fn description_length(&self) -> u32 {
        1 + self.first.description_length() + self.second.description_length()
    }

    fn memory_bits(&self) -> usize {
        self.first.memory_bits() + self.second.memory_bits()
    }

    fn shows(&self) -> Vec<usize> {
        [self.first.shows(), self.second.shows()].concat()
    }

    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let (first, second) = memory.split_at(self.first.memory_bits());
        let (mut shown, mut next) = self.first.build(builder, observation, first);
        let (also_shown, also_next) = self.second.build(builder, observation, second);
        shown.extend(also_shown);
        next.extend(also_next);
        (shown, next)
    }
}
