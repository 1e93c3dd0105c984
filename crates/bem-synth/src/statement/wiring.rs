//! A circuit said gate by gate, for one that came from elsewhere and has too many inputs for a table.
//!
//! Such a statement is no shorter than its circuit: held against it, a circuit is shown to be the one that was named, however
//! it was put together, simplified or placed. Must not know circuits, nor who made one. Clauses: SCC-1, SCC-2; decision D-227.

use super::{Index, World};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::limits::{CIRCUIT_GATES_MAX, CIRCUIT_OUTPUTS_MAX, OBSERVATION_BITS_MAX, STATE_BITS_MAX};

/// Gates over signals. The signals are, in order, false, true, what is seen, the memory, and what every gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// The bits of the observation that count.
    pub seen: Vec<Index>,
    /// Bits of the memory.
    pub memory_bits: u16,
    /// The gates; each looks at signals before it.
    pub gates: Vec<Wire>,
    /// The signals of the action's code and then of the next memory.
    pub outputs: Vec<u32>,
}

/// One gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// What it says where neither, only the first, only the second and both signals are set: a bit each, the lowest first.
    pub says: u8,
    /// The two signals.
    pub of: [u32; 2],
}

impl Wiring {
    /// What is done and kept for one observation and one content of memory; codes past the last action are not looked at.
    pub(super) fn step(
        &self,
        world: &World,
        observation: &[bool],
        memory: &[bool],
    ) -> Option<(Vec<bool>, Vec<bool>)> {
        if memory.len() != usize::from(self.memory_bits) {
            return None;
        }
        let mut signals = vec![false, true];
        for bit in &self.seen {
            signals.push(*observation.get(usize::from(*bit))?);
        }
        signals.extend_from_slice(memory);
        for Wire { says, of: [first, second] } in &self.gates {
            let (first, second) = (*signals.get(*first as usize)?, *signals.get(*second as usize)?);
            signals.push(says >> (u8::from(first) + 2 * u8::from(second)) & 1 == 1);
        }
        let outputs: Option<Vec<bool>> =
            self.outputs.iter().map(|output| signals.get(*output as usize).copied()).collect();
        let mut code = outputs.filter(|outputs| outputs.len() == world.code_bits() + memory.len())?;
        let next = code.split_off(world.code_bits());
        Some((code, next))
    }

    /// Bits it takes to say: four for what a gate says, and the places of its signals.
    pub fn description_length(&self) -> u32 {
        let signals = 2 + self.seen.len() + usize::from(self.memory_bits) + self.gates.len();
        let place = signals.next_power_of_two().ilog2() as usize;
        (self.gates.len() * (4 + 2 * place) + self.outputs.len() * place) as u32
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.length(self.seen.len());
        self.seen.iter().for_each(|bit| writer.u16(*bit));
        writer.u16(self.memory_bits);
        writer.length(self.gates.len());
        for Wire { says, of } in &self.gates {
            writer.u8(*says);
            of.iter().for_each(|signal| writer.u32(*signal));
        }
        writer.length(self.outputs.len());
        self.outputs.iter().for_each(|signal| writer.u32(*signal));
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Wiring, DecodeError> {
        let malformed = reader.error("gates outside the grammar");
        let seen = (0..reader.length(2)?).map(|_| reader.u16()).collect::<Result<Vec<_>, _>>()?;
        let memory_bits = reader.u16()?;
        let gate =
            |reader: &mut Reader<'_>| Ok(Wire { says: reader.u8()?, of: [reader.u32()?, reader.u32()?] });
        let gates = (0..reader.length(9)?).map(|_| gate(reader)).collect::<Result<Vec<Wire>, _>>()?;
        let outputs = (0..reader.length(4)?).map(|_| reader.u32()).collect::<Result<Vec<_>, _>>()?;
        let first = (2 + seen.len() + usize::from(memory_bits)) as u32;
        let looks_back =
            |(wire, own): (&Wire, u32)| wire.says < 16 && wire.of.iter().all(|signal| *signal < own);
        let is_sound = seen.len() <= OBSERVATION_BITS_MAX
            && usize::from(memory_bits) <= STATE_BITS_MAX
            && gates.len() <= CIRCUIT_GATES_MAX
            && outputs.len() <= CIRCUIT_OUTPUTS_MAX
            && gates.iter().zip(first..).all(looks_back)
            && outputs.iter().all(|signal| *signal < first + gates.len() as u32);
        if is_sound { Ok(Wiring { seen, memory_bits, gates, outputs }) } else { Err(malformed) }
    }
}
