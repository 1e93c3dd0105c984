//! One bit that a condition flips, or that one condition sets and another clears.

use super::Device;
use super::codec::{self, StructureKind};
use super::condition::Condition;
use crate::statement::Memory;
use crate::transfer::Moves;
use bem_base::encode::Writer;
use bem_circuit::netlist::{Builder, Signal};
use std::sync::Arc;

/// A bit that flips whenever its condition holds; shown before and after.
#[derive(Clone, Debug)]
pub struct Toggle {
    /// When it flips.
    pub condition: Condition,
}

impl Device for Toggle {
    fn moved(&self, moves: &Moves) -> Option<Arc<dyn Device>> {
        Some(Arc::new(Toggle { condition: self.condition.moved(moves)? }))
    }

    fn statement(&self) -> Memory {
        Memory::Toggle(self.condition.literals.clone())
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Toggle as u8);
        self.condition.encode(writer);
    }

    fn words(&self) -> String {
        format!("bit that flips on {}", self.condition.words())
    }

    fn description_length(&self) -> u32 {
        2 + self.condition.description_length()
    }

    fn memory_bits(&self) -> usize {
        1
    }

    fn shows(&self) -> Vec<usize> {
        vec![1, 1]
    }

    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let flips = self.condition.build(builder, observation);
        let after = builder.xor(memory[0], flips);
        (vec![memory[0], after], vec![after])
    }
}

/// A bit that one condition sets and another clears; setting wins.
#[derive(Clone, Debug)]
pub struct Latch {
    /// When it becomes one.
    pub set: Condition,
    /// When it becomes zero.
    pub clear: Option<Condition>,
}

impl Device for Latch {
    fn moved(&self, moves: &Moves) -> Option<Arc<dyn Device>> {
        let clear = match &self.clear {
            Some(clear) => Some(clear.moved(moves)?),
            None => None,
        };
        Some(Arc::new(Latch { set: self.set.moved(moves)?, clear }))
    }

    fn statement(&self) -> Memory {
        let clear = self.clear.as_ref().map(|clear| clear.literals.clone());
        Memory::Latch { set: self.set.literals.clone(), clear }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Latch as u8);
        self.set.encode(writer);
        codec::encode_option(writer, self.clear.as_ref());
    }

    fn words(&self) -> String {
        let clear = self.clear.as_ref().map_or("nothing".to_string(), Condition::words);
        format!("bit set by {}, cleared by {clear}", self.set.words())
    }

    fn description_length(&self) -> u32 {
        3 + self.set.description_length() + self.clear.as_ref().map_or(0, Condition::description_length)
    }

    fn memory_bits(&self) -> usize {
        1
    }

    fn shows(&self) -> Vec<usize> {
        vec![1]
    }

    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let set = self.set.build(builder, observation);
        let clear = self.clear.as_ref().map_or(Signal::FALSE, |clear| clear.build(builder, observation));
        let kept = builder.and_not(memory[0], clear);
        let next = builder.or(kept, set);
        (vec![memory[0]], vec![next])
    }
}
