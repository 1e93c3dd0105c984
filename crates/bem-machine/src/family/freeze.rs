//! The frozen family as one circuit: the guard behind what is held.
//!
//! The same object is evaluated, exported, hashed and proven about. What adapts within an episode freezes into what it does
//! before it has learned anything. Must not know who asks. Clauses: VM-16, D-41.

use super::Family;
use crate::expert::OutputUse;
use crate::guard::Rule;
use crate::route::directory::RouteInput;
use bem_circuit::netlist::{Builder, Netlist, NetlistError, Signal};

/// A family as one circuit: inputs are the observation bits that it reads and then its memory bits, outputs the action's
/// bits and then the next memory bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenCircuit {
    /// The circuit.
    pub circuit: Netlist,
    /// The observation bits that its first inputs are, rising.
    pub reads: Vec<u16>,
    /// Bits that it keeps from step to step; all zero at the start of an episode.
    pub memory_bits: usize,
}

impl Family {
    /// What acts when nothing is explored, as one circuit; nothing where it depends on more than what is seen and
    /// remembered, or exceeds a bound.
    pub fn freeze(&self) -> Option<FrozenCircuit> {
        let frozen = match self.held.member() {
            Some(slot) => self.freeze_member(slot)?,
            None if self.is_world() => self.freeze_actions(&self.held.actions)?,
            None => return None,
        };
        if self.guard.is_empty() { Some(frozen) } else { self.freeze_guarded(&frozen).ok() }
    }

    /// Plain actions, one for every bucket, as one circuit without a guard; nothing where buckets depend on more than what is
    /// seen.
    pub fn freeze_actions(&self, actions: &[u16]) -> Option<FrozenCircuit> {
        let circuit = self.directory.freeze(actions, self.layout.action().len())?.ok()?;
        let bit_of = |input: &RouteInput| match input {
            RouteInput::State(bit) if self.layout.observation().contains(&usize::from(*bit)) => Some(*bit),
            _ => None,
        };
        let bits: Vec<u16> = self.directory.inputs().iter().map(bit_of).collect::<Option<_>>()?;
        let mut reads = bits.clone();
        reads.sort_unstable();
        let mut builder = Builder::new(reads.len());
        let place = |bit: &u16| Signal::input(reads.binary_search(bit).expect("every declared bit is read"));
        let inputs: Vec<Signal> = bits.iter().map(place).collect();
        let outputs = builder.embed(&circuit, &inputs);
        Some(FrozenCircuit { circuit: builder.finish(&outputs).ok()?, reads, memory_bits: 0 })
    }

    /// An expert that reads what is seen and its own memory, and writes its action and its own memory.
    fn freeze_member(&self, slot: usize) -> Option<FrozenCircuit> {
        let expert = self.expert(slot)?;
        let reads = &expert.read().state_bits;
        let seen =
            reads.iter().take_while(|bit| self.layout.observation().contains(&usize::from(**bit))).count();
        let memory = reads[seen..].iter().map(|bit| usize::from(*bit));
        let memory_bits = reads.len() - seen;
        let writes = expert.write().outputs.iter().map(|output| match output {
            OutputUse::State(bit) => Some(usize::from(*bit)),
            OutputUse::Mask | OutputUse::Count => None,
        });
        let wanted = self.layout.action().chain(self.layout.memory().take(memory_bits)).map(Some);
        let is_plain = expert.read().shared.is_empty()
            && expert.write().integers.is_empty()
            && memory.eq(self.layout.memory().take(memory_bits))
            && writes.eq(wanted)
            && reads[..seen].windows(2).all(|pair| pair[0] < pair[1]);
        is_plain.then(|| FrozenCircuit {
            circuit: expert.placed().circuit().clone(),
            reads: reads[..seen].to_vec(),
            memory_bits,
        })
    }

    /// The guard behind a circuit. Without memory it is known which rules can fire: those whose action the circuit takes.
    fn freeze_guarded(&self, frozen: &FrozenCircuit) -> Result<FrozenCircuit, NetlistError> {
        let FrozenCircuit { circuit, reads, memory_bits } = frozen;
        let width = self.layout.action().len();
        let fires = |rule: &Rule| {
            let inputs: Vec<bool> = reads.iter().map(|bit| rule.observation.get(usize::from(*bit))).collect();
            let outputs = circuit.evaluate(&inputs);
            let action = outputs.iter().rev().fold(0u16, |code, bit| code << 1 | u16::from(*bit));
            action == rule.forbidden
        };
        let needed = |rule: &Rule| 0 < *memory_bits || fires(rule);
        if !self.guard.rules().iter().any(needed) {
            return Ok(frozen.clone());
        }
        let seen = self.layout.observation().len();
        let mut builder = Builder::new(seen + memory_bits);
        let observation: Vec<Signal> = (0..seen).map(Signal::input).collect();
        let inputs: Vec<Signal> = reads
            .iter()
            .map(|bit| Signal::input(usize::from(*bit)))
            .chain((0..*memory_bits).map(|bit| Signal::input(seen + bit)))
            .collect();
        let outputs = builder.embed(circuit, &inputs);
        let mut passed = self.guard.build(&mut builder, &observation, &outputs[..width], needed);
        passed.extend_from_slice(&outputs[width..]);
        let circuit = builder.finish(&passed)?;
        Ok(FrozenCircuit { circuit, reads: (0..seen as u16).collect(), memory_bits: *memory_bits })
    }
}
