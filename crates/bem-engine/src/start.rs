//! What a learner begins with when it does not begin from scratch: machines to try first, and episodes that others played.
//!
//! Machines go through the gate like those of the library; episodes become experience and prove nothing by themselves. A start
//! is kept with the run's world, so that a replay begins in the same way. A circuit without a stated hypothesis becomes a
//! table, if it is small enough, and is otherwise stated gate by gate. A baseline is what the learner must not fall below while
//! it learns. Must not know files. Clauses: LOG-5, SCC-2; decisions D-90, D-227.

use crate::codec::{decode_option, encode_option};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_circuit::netlist::Gate;
pub use bem_synth::experience::{Episode, Step};
use bem_synth::hypothesis::Stated;
use bem_synth::library::Machine;
use bem_synth::policy::{Policy, action_bits};
use bem_synth::statement::{Choice, Index, Statement, Table, Wire, Wiring};

/// Inputs of a circuit that can be stated as a table.
pub const STATED_INPUTS_MAX: usize = 12;
/// Machines and episodes of one start.
pub const MACHINES_MAX: usize = 16;
/// See [`MACHINES_MAX`].
pub const EPISODES_MAX: usize = 1 << 18;

/// What a learner begins with.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Tried first, each through the gate.
    pub machines: Vec<Machine>,
    /// Taken in as experience before the first step.
    pub episodes: Vec<Episode>,
    /// What must not be fallen below, if anything.
    pub baseline: Option<Baseline>,
}

/// A policy and how far below its return the learner may fall while it learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// What acts where nothing else may.
    pub policy: Policy,
    /// Per mille of its return that may be risked.
    pub risk: u16,
}

impl Baseline {
    /// Whether it can act in worlds of this shape.
    pub fn fits(&self, shape: &Shape) -> bool {
        let reads = self.policy.reads().last();
        self.policy.actions() == shape.actions
            && reads.is_none_or(|last| *last < shape.observation_bits)
            && self.risk <= 1_000
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u16(self.risk);
        self.policy.encode(writer);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Baseline, DecodeError> {
        Ok(Baseline { risk: reader.u16()?, policy: Policy::decode(reader)? })
    }
}

/// Two starts are the same if their bytes are.
impl PartialEq for Start {
    fn eq(&self, other: &Start) -> bool {
        let bytes = |start: &Start| {
            let mut writer = Writer::new();
            start.encode(&mut writer);
            writer.into_bytes()
        };
        bytes(self) == bytes(other)
    }
}

impl Eq for Start {}

impl Start {
    /// Whether there is nothing to begin with.
    pub fn is_empty(&self) -> bool {
        self.machines.is_empty() && self.episodes.is_empty() && self.baseline.is_none()
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.machines.len());
        self.machines.iter().for_each(|machine| machine.encode(writer));
        writer.length(self.episodes.len());
        self.episodes.iter().for_each(|episode| episode.encode(writer));
        encode_option(writer, self.baseline.as_ref(), Baseline::encode);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Start, DecodeError> {
        let many = reader.error("more machines or episodes than a start may have");
        let machines = reader.length(8)?;
        if MACHINES_MAX < machines {
            return Err(many);
        }
        let machines = (0..machines).map(|_| Machine::decode(reader)).collect::<Result<_, _>>()?;
        let episodes = reader.length(12)?;
        if EPISODES_MAX < episodes {
            return Err(many);
        }
        let episodes = (0..episodes).map(|_| Episode::decode(reader)).collect::<Result<_, _>>()?;
        let baseline = decode_option(reader, Baseline::decode)?;
        Ok(Start { machines, episodes, baseline })
    }

    /// Only what fits a world: machines of its shape, and episodes whose steps it could have brought.
    #[must_use]
    pub fn fitting(mut self, shape: &Shape) -> Start {
        self.machines.retain(|machine| machine.fits(shape));
        self.baseline = self.baseline.filter(|baseline| baseline.fits(shape));
        let bits = usize::from(shape.observation_bits);
        let fits = |episode: &Episode| {
            let step_fits = |step: &Step| {
                step.action < shape.actions
                    && (shape.reward_min..=shape.reward_max).contains(&step.reward)
                    && (bits..256).all(|bit| !step.observation.get(bit))
            };
            !episode.steps.is_empty()
                && episode.steps.len() <= shape.horizon as usize
                && episode.steps.iter().all(step_fits)
        };
        self.episodes.retain(fits);
        self
    }
}

/// A circuit as a machine for worlds of this shape: its whole table is what it says, or its gates where that is too large. None
/// where it does not fit the world.
pub fn machine_of(policy: &Policy, shape: &Shape) -> Option<Machine> {
    tabled(policy, shape).or_else(|| {
        let statement = Statement::Gates(wiring(policy));
        let length = wiring(policy).description_length();
        let stated = Stated { policy: policy.clone(), statement };
        fits(policy, shape).then(|| Machine::circuit(shape, stated, (words_of(policy), length)))
    })
}

/// The same where a table can be said: a machine that may be carried over to worlds that look different.
pub fn tabled(policy: &Policy, shape: &Shape) -> Option<Machine> {
    machine_called(policy, shape, words_of(policy))
}

fn words_of(policy: &Policy) -> String {
    format!("circuit of {} gates that was started from", policy.gates())
}

fn fits(policy: &Policy, shape: &Shape) -> bool {
    let is_seen = policy.reads().last().is_none_or(|last| *last < shape.observation_bits);
    policy.actions() == shape.actions && is_seen
}

/// The gates of a circuit, as a statement says them.
fn wiring(policy: &Policy) -> Wiring {
    let circuit = policy.circuit();
    let wire = |gate: &Gate| {
        // The four rows of two signals, side by side in a word.
        let says = gate.op.apply(0b1010, 0b1100) & 0b1111;
        Wire { says: says as u8, of: [gate.a.index() as u32, gate.b.index() as u32] }
    };
    Wiring {
        seen: policy.reads().to_vec(),
        memory_bits: policy.memory_bits() as u16,
        gates: circuit.gates().iter().map(wire).collect(),
        outputs: circuit.outputs().iter().map(|output| output.index() as u32).collect(),
    }
}

/// A circuit with its table under a name of its own; none where it does not fit the world or has too many inputs.
pub(crate) fn machine_called(policy: &Policy, shape: &Shape, words: String) -> Option<Machine> {
    let (reads, memory) = (policy.reads(), policy.memory_bits());
    let inputs = reads.len() + memory;
    if !fits(policy, shape) || STATED_INPUTS_MAX < inputs {
        return None;
    }
    let code = action_bits(policy.actions());
    let seen: Vec<Index> = reads.to_vec();
    let mut rows = Table::new();
    for key in 0..1u64 << inputs {
        // Keys are what is remembered and above it what is seen; the circuit takes what is seen first.
        let remembered = |bit: usize| key >> bit & 1 == 1;
        let input: Vec<bool> =
            (0..reads.len()).map(|bit| remembered(memory + bit)).chain((0..memory).map(remembered)).collect();
        let outputs = policy.circuit().evaluate(&input);
        let value = outputs.iter().enumerate().fold(0, |sum, (bit, set)| sum | u64::from(*set) << bit);
        rows.insert(key, value);
    }
    let statement = match memory {
        0 => Statement::of(Choice::Rows { bits: seen, rows }),
        _ => Statement::Machine { state_bits: memory as u8, seen, rows },
    };
    // One bit of the answer for every row of the table.
    let length = ((1usize << inputs) * (code + memory)) as u32;
    Some(Machine::circuit(shape, Stated { policy: policy.clone(), statement }, (words, length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::environment::{Bits, Field};
    use bem_circuit::netlist::{Builder, Signal};
    use bem_synth::experience::Step;

    fn shape() -> Shape {
        Shape {
            observation_bits: 3,
            actions: 2,
            horizon: 4,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 4_000,
            fields: vec![Field { low: 0, width: 3 }],
        }
    }

    fn policy() -> Policy {
        let mut builder = Builder::new(4);
        let action = builder.xor(Signal::input(0), Signal::input(3));
        Policy::close(builder, 3, 2, &[action], &[Signal::input(2)]).unwrap()
    }

    /// A wide circuit with memory: the parity of all that is seen and of one remembered bit, and a count of what is seen.
    fn wide(bits: u16) -> (Policy, Shape) {
        let fields = (0..bits).map(|low| Field { low, width: 1 }).collect();
        let shape = Shape { observation_bits: bits, actions: 3, fields, ..shape() };
        let seen = usize::from(bits);
        let mut builder = Builder::new(seen + 2);
        let all: Vec<Signal> = (0..seen + 1).map(Signal::input).collect();
        let (odd, some) = (builder.xor_all(&all), builder.or_all(&all[..seen / 2]));
        let next = [odd, builder.and(some, Signal::input(seen + 1))];
        (Policy::close(builder, seen, 3, &[odd, some], &next).unwrap(), shape)
    }

    #[test]
    fn a_circuit_of_any_width_is_a_machine_that_does_what_its_statement_says() {
        let mut prng = bem_base::prng::Prng::stream(3, "start/wide");
        for bits in [8, 13, 40, 200, 256] {
            let (policy, shape) = wide(bits);
            assert_eq!(tabled(&policy, &shape).is_some(), bits + 2 <= STATED_INPUTS_MAX as u16);
            let machine = machine_of(&policy, &shape).unwrap();
            let mut writer = Writer::new();
            machine.encode(&mut writer);
            assert_eq!(Machine::decode(&mut Reader::new(writer.as_bytes())).unwrap(), machine);
            let built = machine.instantiate(&shape).unwrap();
            assert_eq!(built.policy, policy);
            let (said, world) = (
                built.statement.unwrap(),
                bem_synth::statement::World { observation_bits: usize::from(bits), actions: 3 },
            );
            for _ in 0..200 {
                let row: Vec<bool> = (0..usize::from(bits) + 2).map(|_| prng.below(2) == 1).collect();
                let (seen, kept) = row.split_at(usize::from(bits));
                let inputs: Vec<bool> = policy
                    .reads()
                    .iter()
                    .map(|bit| seen[usize::from(*bit)])
                    .chain(kept.iter().copied())
                    .collect();
                let (code, next) = said.step(&world, seen, kept).unwrap();
                assert_eq!(policy.circuit().evaluate(&inputs), [code, next].concat());
            }
            // Elsewhere it cannot be: it has no table to be carried over.
            assert!(machine_of(&policy, &Shape { observation_bits: bits - 1, ..shape.clone() }).is_none());
        }
    }

    #[test]
    fn a_start_comes_back_from_its_bytes_and_keeps_only_what_fits() {
        let step = |action| Step {
            observation: Bits([5, 0, 0, 0]),
            action,
            reward: 1_000,
            done: true,
            bad: false,
            uniform: true,
            propensity: 32_768,
        };
        let episode = |serial, action| Episode { serial, steps: vec![step(action)] };
        let start = Start {
            machines: vec![machine_of(&policy(), &shape()).unwrap()],
            episodes: vec![episode(0, 1), episode(1, 2)],
            baseline: Some(Baseline { policy: policy(), risk: 50 }),
        };
        let mut writer = Writer::new();
        start.encode(&mut writer);
        let bytes = writer.into_bytes();
        let back = Start::decode(&mut Reader::new(&bytes)).unwrap();
        assert_eq!((back.machines.len(), &back.episodes), (1, &start.episodes));
        assert_eq!(back.baseline, start.baseline);
        let fitting = back.fitting(&shape());
        assert_eq!((fitting.machines.len(), fitting.episodes.len()), (1, 1));
        let other = Shape { actions: 3, ..shape() };
        let misfit = start.fitting(&other);
        assert_eq!((misfit.machines.len(), misfit.baseline), (0, None));
        (0..bytes.len()).for_each(|cut| assert!(Start::decode(&mut Reader::new(&bytes[..cut])).is_err()));
    }
}
