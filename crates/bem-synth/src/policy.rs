//! A learned policy: one sequential circuit from observation and private memory to action and next memory.
//!
//! Inputs are the observation bits it reads and then its memory bits; outputs are the action's bits and then
//! the next memory bits. Memory is zero at the start of an episode (decision D-32). Must not know how it was
//! found. Clauses: VM-1, SCC-2.

use crate::experience::Episode;
use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_circuit::netlist::{Builder, Netlist, NetlistError, Op, Signal};

/// Steps in which a clock is watched.
const COUNTED_STEPS: usize = 64;

/// A sequential circuit that acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    circuit: Netlist,
    reads: Vec<u16>,
    memory_bits: usize,
    actions: u16,
}

/// Bits of an action code.
pub fn action_bits(actions: u16) -> usize {
    usize::from(actions.max(1)).next_power_of_two().ilog2() as usize
}

impl Policy {
    /// Closes a circuit whose inputs are all observation bits and then the memory bits.
    ///
    /// Observation bits that no output needs are dropped from the inputs. Action codes past the last action
    /// become action zero, so that the circuit is in range for every input.
    pub fn close(
        mut builder: Builder,
        observation_bits: usize,
        actions: u16,
        action: &[Signal],
        next_memory: &[Signal],
    ) -> Result<Policy, NetlistError> {
        assert!(action.len() == action_bits(actions));
        let mut outputs = clamp(&mut builder, action, actions);
        outputs.extend_from_slice(next_memory);
        let whole = builder.finish(&outputs)?;
        let used = |signal: Signal| {
            whole.gates().iter().any(|gate| gate.a == signal || gate.b == signal)
                || whole.outputs().contains(&signal)
        };
        let reads: Vec<u16> = (0..observation_bits)
            .filter(|index| used(Signal::input(*index)))
            .map(|index| index as u16)
            .collect();
        let mut builder = Builder::new(reads.len() + next_memory.len());
        let mut inputs = vec![Signal::FALSE; observation_bits];
        for (place, index) in reads.iter().enumerate() {
            inputs[usize::from(*index)] = Signal::input(place);
        }
        inputs.extend((0..next_memory.len()).map(|place| Signal::input(reads.len() + place)));
        let outputs = builder.embed(&whole, &inputs);
        let circuit = builder.finish(&outputs)?;
        Ok(Policy { circuit, reads, memory_bits: next_memory.len(), actions })
    }

    /// The policy that always does the same.
    pub fn constant(actions: u16, action: u16) -> Policy {
        assert!(action < actions);
        let code: Vec<Signal> =
            (0..action_bits(actions)).map(|bit| Signal::constant(action >> bit & 1 == 1)).collect();
        Policy::close(Builder::new(0), 0, actions, &code, &[]).expect("a constant is within all bounds")
    }

    /// Checks that a circuit has the inputs and outputs that a policy needs.
    pub fn new(circuit: Netlist, reads: Vec<u16>, memory_bits: usize, actions: u16) -> Option<Policy> {
        let inputs = reads.len() + memory_bits;
        let outputs = action_bits(actions) + memory_bits;
        let ascending = reads.windows(2).all(|pair| pair[0] < pair[1]);
        let fits =
            circuit.inputs() == inputs && circuit.outputs().len() == outputs && ascending && 0 < actions;
        fits.then_some(Policy { circuit, reads, memory_bits, actions })
    }

    /// The circuit.
    pub fn circuit(&self) -> &Netlist {
        &self.circuit
    }

    /// The observation bits that its first inputs are.
    pub fn reads(&self) -> &[u16] {
        &self.reads
    }

    /// How many bits it keeps from step to step.
    pub fn memory_bits(&self) -> usize {
        self.memory_bits
    }

    /// Actions are below this.
    pub fn actions(&self) -> u16 {
        self.actions
    }

    /// Gates of the circuit: its static cost.
    pub fn gates(&self) -> usize {
        self.circuit.gates().len()
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u16(self.actions);
        writer.length(self.memory_bits);
        writer.length(self.reads.len());
        for index in &self.reads {
            writer.u16(*index);
        }
        self.circuit.encode(writer);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Policy, DecodeError> {
        let start = reader.clone();
        let actions = reader.u16()?;
        let memory_bits = reader.u32()? as usize;
        let count = reader.length(2)?;
        let reads = (0..count).map(|_| reader.u16()).collect::<Result<Vec<_>, _>>()?;
        let circuit = Netlist::decode(reader)?;
        Policy::new(circuit, reads, memory_bits, actions)
            .ok_or_else(|| start.error("a policy whose parts do not fit"))
    }

    /// The digest of the canonical bytes: its identity.
    pub fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        digest::hash_parts("bem/policy", &[writer.as_bytes()])
    }

    /// What it would have done at every step of these episodes, had it seen what was seen.
    pub fn replay<'e>(&self, episodes: impl IntoIterator<Item = &'e Episode>) -> Vec<Vec<u16>> {
        let episodes: Vec<&Episode> = episodes.into_iter().collect();
        let mut all = Vec::with_capacity(episodes.len());
        for block in episodes.chunks(64) {
            let mut actions: Vec<Vec<u16>> = block.iter().map(|_| Vec::new()).collect();
            self.replay_block(block, |lane, _, action| actions[lane].push(action));
            all.extend(actions);
        }
        all
    }

    /// What it would have told apart at every step of these episodes, and done: the bits that it reads and those of its memory,
    /// in words. Where both are equal, it does the same and goes on alike.
    pub fn situations(&self, episodes: &[&Episode]) -> Vec<Vec<(Vec<u64>, u16)>> {
        let mut all = Vec::with_capacity(episodes.len());
        for block in episodes.chunks(64) {
            let mut situations: Vec<Vec<(Vec<u64>, u16)>> = block.iter().map(|_| Vec::new()).collect();
            self.replay_block(block, |lane, inputs, action| {
                let mut words = vec![0; inputs.len().div_ceil(64)];
                for (place, input) in inputs.iter().enumerate() {
                    words[place / 64] |= (input >> lane & 1) << (place % 64);
                }
                situations[lane].push((words, action));
            });
            all.extend(situations);
        }
        all
    }

    /// How many memory bits move without looking at anything but each other: a clock inside the self. A policy that counts
    /// steps does something else late in an episode than early, whatever it sees.
    pub fn counts_steps(&self) -> usize {
        let (observed, code) = (self.reads().len(), action_bits(self.actions()));
        let reads: Vec<Vec<usize>> =
            (0..self.memory_bits()).map(|bit| self.circuit().cone(&[code + bit]).support()).collect();
        let mut own = vec![true; self.memory_bits()];
        loop {
            let sees_more = |bit: &usize| {
                reads[*bit].iter().any(|place| place.checked_sub(observed).is_none_or(|bit| !own[bit]))
            };
            let Some(bit) = (0..own.len()).filter(|bit| own[*bit]).find(sees_more) else { break };
            own[bit] = false;
        }
        // A clock that stands still after the second step tells the start from the rest, and counts no steps.
        let mut input = vec![false; self.circuit().inputs()];
        let mut has_moved = vec![false; own.len()];
        let mut is_running = false;
        for time in 0..COUNTED_STEPS {
            let outputs = self.circuit().evaluate(&input);
            for bit in 0..own.len() {
                let moves = outputs[code + bit] != input[observed + bit];
                has_moved[bit] |= moves;
                is_running |= moves && own[bit] && 2 <= time;
                input[observed + bit] = outputs[code + bit];
            }
        }
        if is_running { (0..own.len()).filter(|bit| own[*bit] && has_moved[*bit]).count() } else { 0 }
    }

    /// Up to 64 episodes side by side, one a lane; every step is told with what goes into the circuit, and the action.
    fn replay_block(&self, block: &[&Episode], mut tell: impl FnMut(usize, &[u64], u16)) {
        let longest = block.iter().map(|episode| episode.steps.len()).max().unwrap_or(0);
        let mut inputs = vec![0u64; self.circuit.inputs()];
        let (mut values, mut outputs) = (Vec::new(), Vec::new());
        let code_bits = action_bits(self.actions);
        for time in 0..longest {
            for (input, index) in inputs.iter_mut().zip(&self.reads) {
                *input = block.iter().enumerate().fold(0, |word, (lane, episode)| {
                    let bit =
                        episode.steps.get(time).is_some_and(|step| step.observation.get(usize::from(*index)));
                    word | u64::from(bit) << lane
                });
            }
            self.circuit.evaluate_words(&inputs, &mut values, &mut outputs);
            for (lane, episode) in block.iter().enumerate() {
                if time < episode.steps.len() {
                    let code = (0..code_bits).fold(0, |code, bit| code | (outputs[bit] >> lane & 1) << bit);
                    tell(lane, &inputs, code as u16);
                }
            }
            inputs[self.reads.len()..].copy_from_slice(&outputs[code_bits..]);
        }
    }
}

/// Codes past the last action become zero.
fn clamp(builder: &mut Builder, action: &[Signal], actions: u16) -> Vec<Signal> {
    if usize::from(actions).is_power_of_two() {
        return action.to_vec();
    }
    // Whether the code exceeds the last action, from the lowest bit up.
    let last = actions - 1;
    let mut exceeds = Signal::FALSE;
    for (place, bit) in action.iter().enumerate() {
        let op = if last >> place & 1 == 1 { Op::And } else { Op::Or };
        exceeds = builder.gate(op, *bit, exceeds);
    }
    action.iter().map(|bit| builder.and_not(*bit, exceeds)).collect()
}

/// What a policy at work keeps between steps, and the room it computes in.
#[derive(Clone, Debug)]
pub struct PolicyState {
    inputs: Vec<u64>,
    values: Vec<u64>,
    outputs: Vec<u64>,
}

impl PolicyState {
    /// The state at the start of an episode.
    pub fn new(policy: &Policy) -> PolicyState {
        PolicyState { inputs: vec![0; policy.circuit.inputs()], values: Vec::new(), outputs: Vec::new() }
    }

    /// Clears the private memory: an episode starts.
    pub fn begin(&mut self) {
        self.inputs.fill(0);
    }

    /// The action of the policy that this is the state of, and one step of memory.
    #[inline]
    pub fn act(&mut self, policy: &Policy, observation: &Bits) -> u16 {
        for (input, index) in self.inputs.iter_mut().zip(&policy.reads) {
            *input = u64::from(observation.get(usize::from(*index)));
        }
        policy.circuit.evaluate_words(&self.inputs, &mut self.values, &mut self.outputs);
        let (code, memory) = self.outputs.split_at(action_bits(policy.actions));
        self.inputs[policy.reads.len()..].copy_from_slice(memory);
        code.iter().enumerate().fold(0, |action, (bit, word)| action | (*word as u16 & 1) << bit)
    }
}

/// A policy at work in one episode after the other.
#[derive(Clone, Debug)]
pub struct Player<'p> {
    policy: &'p Policy,
    state: PolicyState,
}

impl<'p> Player<'p> {
    /// Ready for its first episode.
    pub fn new(policy: &'p Policy) -> Player<'p> {
        Player { policy, state: PolicyState::new(policy) }
    }

    /// Clears the private memory: an episode starts.
    pub fn begin(&mut self) {
        self.state.begin();
    }

    /// The action for what is seen, and one step of memory.
    pub fn act(&mut self, observation: &Bits) -> u16 {
        self.state.act(self.policy, observation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acts with what it saw one step before, in three actions.
    fn delayed() -> Policy {
        let builder = Builder::new(5 + 2);
        let action = [Signal::input(5), Signal::input(6)];
        let next = [Signal::input(1), Signal::input(4)];
        Policy::close(builder, 5, 3, &action, &next).unwrap()
    }

    #[test]
    fn only_bits_that_matter_are_read_and_actions_stay_in_range() {
        let policy = delayed();
        assert_eq!(policy.reads(), [1, 4]);
        let mut player = Player::new(&policy);
        let seen = ["01000", "00001", "01001", "00000", "00000"].map(|text| Bits::from_text(text).unwrap());
        let acted: Vec<u16> = seen.iter().map(|bits| player.act(bits)).collect();
        assert_eq!(acted, [0, 1, 2, 0, 0]);
        player.begin();
        assert_eq!(player.act(&seen[0]), 0);
    }

    #[test]
    fn bytes_come_back_and_misfits_are_refused() {
        let policy = delayed();
        let mut writer = Writer::new();
        policy.encode(&mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(Policy::decode(&mut Reader::new(&bytes)), Ok(policy.clone()));
        for position in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[position] ^= 0x55;
            if let Ok(other) = Policy::decode(&mut Reader::new(&damaged)) {
                assert_ne!(other.digest(), policy.digest());
            }
        }
    }
}
