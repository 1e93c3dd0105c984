//! The frozen family as one circuit: the guard behind what is held.
//!
//! The same object is evaluated, exported, hashed and proven about. What adapts within an episode freezes into what it does
//! before it has learned anything. Must not know who asks. Clauses: VM-16, D-41.

use super::Family;
use crate::expert::OutputUse;
use crate::guard::Rule;
use crate::route::directory::RouteInput;
use bem_circuit::netlist::{Builder, Netlist, NetlistError, Signal};

/// Bits that are read and left free by a rule, over which it is tried whether the rule can fire.
const FREE_MAX: usize = 12;

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

    /// The guard behind a circuit. Without memory it is known which rules can fire: those whose action the circuit takes. What
    /// comes out reads what the circuit reads, and the bits that these rules look at.
    fn freeze_guarded(&self, frozen: &FrozenCircuit) -> Result<FrozenCircuit, NetlistError> {
        let FrozenCircuit { circuit, reads, memory_bits } = frozen;
        let width = self.layout.action().len();
        let rules = self.guard.rules().iter();
        let needed: Vec<&Rule> = rules.filter(|rule| 0 < *memory_bits || fires(frozen, rule)).collect();
        if needed.is_empty() {
            return Ok(frozen.clone());
        }
        let seen = self.layout.observation().len();
        let is_read = |bit: &u16| {
            reads.binary_search(bit).is_ok()
                || needed.iter().any(|rule| rule.seen.bit(usize::from(*bit)).is_some())
        };
        let all: Vec<u16> = (0..seen as u16).filter(is_read).collect();
        let place = |bit: u16| all.binary_search(&bit).ok().map(Signal::input);
        let mut builder = Builder::new(all.len() + memory_bits);
        // A bit that nobody looks at has no signal, and none is asked for.
        let observation: Vec<Signal> =
            (0..seen as u16).map(|bit| place(bit).unwrap_or(Signal::FALSE)).collect();
        let inputs: Vec<Signal> = reads
            .iter()
            .map(|bit| observation[usize::from(*bit)])
            .chain((0..*memory_bits).map(|bit| Signal::input(all.len() + bit)))
            .collect();
        let outputs = builder.embed(circuit, &inputs);
        let is_needed = |rule: &Rule| needed.binary_search(&rule).is_ok();
        let mut passed = self.guard.build(&mut builder, &observation, &outputs[..width], is_needed);
        passed.extend_from_slice(&outputs[width..]);
        let circuit = builder.finish(&passed)?;
        Ok(FrozenCircuit { circuit, reads: all, memory_bits: *memory_bits })
    }
}

/// Whether a circuit without memory takes the forbidden action somewhere where the rule holds, by every value of the bits that
/// it reads and the rule leaves free; where these are many it may.
fn fires(frozen: &FrozenCircuit, rule: &Rule) -> bool {
    let FrozenCircuit { circuit, reads, .. } = frozen;
    let asked: Vec<Option<bool>> = reads.iter().map(|bit| rule.seen.bit(usize::from(*bit))).collect();
    let free = asked.iter().filter(|bit| bit.is_none()).count();
    if FREE_MAX < free {
        return true;
    }
    // Sixty-four cases at a time, one in every bit of a word.
    let (mut values, mut outputs) = (Vec::new(), Vec::new());
    (0..1u64 << free.saturating_sub(6)).any(|block| {
        let mut place = 0;
        let word = |bit: &Option<bool>| match bit {
            Some(value) => {
                if *value {
                    u64::MAX
                } else {
                    0
                }
            }
            None => {
                place += 1;
                let is_set = |case: &u64| (64 * block + case) >> (place - 1) & 1 == 1;
                (0..64).filter(is_set).fold(0, |word, case| word | 1 << case)
            }
        };
        let inputs: Vec<u64> = asked.iter().map(word).collect();
        circuit.evaluate_words(&inputs, &mut values, &mut outputs);
        let agrees = |(bit, word): (usize, &u64)| if rule.forbidden >> bit & 1 == 1 { *word } else { !word };
        outputs.iter().enumerate().map(agrees).fold(u64::MAX, |all, word| all & word) != 0
    })
}
