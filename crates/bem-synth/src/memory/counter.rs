//! A counter that goes up on one condition and down on another, and stays at its ends.

use super::Device;
use super::codec::{self, StructureKind};
use super::condition::Condition;
use crate::statement::Memory;
use crate::transfer::Moves;
use bem_base::encode::Writer;
use bem_circuit::netlist::{Builder, Signal};
use std::sync::Arc;

/// Counts from zero to `2^bits - 1`; shown are whether it is zero and its binary digits.
#[derive(Clone, Debug)]
pub struct Counter {
    /// When it goes up.
    pub up: Condition,
    /// When it goes down.
    pub down: Option<Condition>,
    /// Its binary digits.
    pub bits: usize,
    /// Whether the digits are shown, or only whether it is zero.
    pub digits: bool,
}

impl Device for Counter {
    fn moved(&self, moves: &Moves) -> Option<Arc<dyn Device>> {
        let down = match &self.down {
            Some(down) => Some(down.moved(moves)?),
            None => None,
        };
        Some(Arc::new(Counter { up: self.up.moved(moves)?, down, bits: self.bits, digits: self.digits }))
    }

    fn statement(&self) -> Memory {
        Memory::Counter {
            up: self.up.literals.clone(),
            down: self.down.as_ref().map(|down| down.literals.clone()),
            bits: self.bits as u8,
            digits: self.digits,
        }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Counter as u8);
        self.up.encode(writer);
        codec::encode_option(writer, self.down.as_ref());
        writer.length(self.bits);
        writer.bool(self.digits);
    }

    fn words(&self) -> String {
        let down = self.down.as_ref().map_or("nothing".to_string(), Condition::words);
        format!("counter up on {}, down on {down}", self.up.words())
    }

    fn description_length(&self) -> u32 {
        4 + self.up.description_length() + self.down.as_ref().map_or(0, Condition::description_length)
    }

    fn memory_bits(&self) -> usize {
        self.bits
    }

    fn shows(&self) -> Vec<usize> {
        if self.digits { vec![1, self.bits] } else { vec![1] }
    }

    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let up = self.up.build(builder, observation);
        let down = self.down.as_ref().map_or(Signal::FALSE, |down| down.build(builder, observation));
        let down = builder.and_not(down, up);
        let some = builder.or_all(memory);
        let full = builder.and_all(memory);
        let up = builder.and_not(up, full);
        let down = builder.and(down, some);
        // Ripple: a digit flips while all lower ones are at their end.
        let (mut carry, mut borrow) = (up, down);
        let mut next = Vec::new();
        for digit in memory {
            let flips = builder.or(carry, borrow);
            next.push(builder.xor(*digit, flips));
            carry = builder.and(carry, *digit);
            borrow = builder.and_not(borrow, *digit);
        }
        let zero = builder.not(some);
        let mut shown = vec![zero];
        if self.digits {
            shown.extend_from_slice(memory);
        }
        (shown, next)
    }
}
