//! What was learned on a lower rung, kept as an abstract machine, so that it can be built again for a higher one.
//!
//! A structure refers to fields and conditions, not to its size; built for a world with longer episodes it gets
//! more cells and keeps its control and its functions. Tried on the next rung before anything is fitted.
//! A machine is kept as canonical bytes in a run's snapshot; reading them back accepts only what can be built.
//! Must not know games. Clauses: SCC-2, GLE-10, LOG-5.

use crate::function::Function;
use crate::hypothesis::{Hypothesis, Stated, assemble};
use crate::memory::resize;
use crate::memory::search::cells_for;
use crate::memory::{Device, codec};
use crate::policy::{Policy, action_bits};
use crate::statement::Statement;
use crate::transfer;
use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Field, Shape};
use bem_base::limits::OBSERVATION_BITS_MAX;
use std::sync::Arc;

/// What is said of a machine that comes from a world that looked different.
const CARRIED: &str = ", carried over";

/// A fitted machine apart from any world's size.
#[derive(Clone, Debug)]
pub struct Machine {
    observation_bits: u16,
    actions: u16,
    fields: Vec<Field>,
    words: String,
    description_length: u32,
    body: Body,
}

/// What is kept of a machine: how to build it for another size, or the circuit itself.
#[derive(Clone, Debug)]
enum Body {
    /// A structure and one function per action bit over what it shows.
    Structure { device: Arc<dyn Device>, bits: Vec<Function> },
    /// A circuit that has no size to change, and what it says.
    Circuit(Stated),
}

impl Machine {
    /// The machine of a structure with its functions.
    pub fn structure(
        shape: &Shape,
        device: Arc<dyn Device>,
        bits: Vec<Function>,
        about: (String, u32),
    ) -> Machine {
        Machine::new(shape, Body::Structure { device, bits }, about)
    }

    /// The machine of a circuit as it is.
    pub fn circuit(shape: &Shape, stated: Stated, about: (String, u32)) -> Machine {
        Machine::new(shape, Body::Circuit(stated), about)
    }

    fn new(shape: &Shape, body: Body, (words, description_length): (String, u32)) -> Machine {
        Machine {
            observation_bits: shape.observation_bits,
            actions: shape.actions,
            fields: shape.fields.clone(),
            words,
            description_length,
            body,
        }
    }

    /// The machine built for this world. Where the world looks different, what it says is said of that world, if it can be.
    pub fn instantiate(&self, shape: &Shape) -> Option<Hypothesis> {
        if !self.fits(shape) {
            return self.carried_over(shape)?.instantiate(shape);
        }
        let Stated { policy, statement } = match &self.body {
            Body::Structure { device, bits } => {
                let device = resize(device, cells_for(shape));
                assemble(shape, Some(device.as_ref()), bits)?
            }
            Body::Circuit(stated) => stated.clone(),
        };
        Some(Hypothesis {
            policy,
            statement: Some(statement),
            words: self.words.clone(),
            description_length: self.description_length,
            exact: true,
            predicted: None,
            provenance: Digest::default(),
            machine: Some(self.clone()),
        })
    }

    /// The same machine for worlds that look different; none where what it says has no counterpart there.
    fn carried_over(&self, shape: &Shape) -> Option<Machine> {
        let words = self.words.strip_suffix(CARRIED).unwrap_or(&self.words);
        let about = (format!("{words}{CARRIED}"), self.description_length);
        match &self.body {
            Body::Structure { device, bits } => {
                let own = (self.observation_bits, self.fields.as_slice());
                let (device, bits) = transfer::carried_structure(device, bits, own, shape, cells_for(shape))?;
                Some(Machine::structure(shape, device, bits, about))
            }
            Body::Circuit(stated) => {
                let own = (self.observation_bits, self.fields.as_slice());
                Some(Machine::circuit(shape, transfer::carried(&stated.statement, own, shape)?, about))
            }
        }
    }

    /// Whether a world looks as this machine's own did: the same observation, fields and actions.
    pub fn fits(&self, shape: &Shape) -> bool {
        self.observation_bits == shape.observation_bits
            && self.actions == shape.actions
            && self.fields == shape.fields
    }

    /// The fields of the worlds that it speaks of, in their order there.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Bits it takes to say.
    pub fn description_length(&self) -> u32 {
        self.description_length
    }

    /// What it is, in words.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u16(self.observation_bits);
        writer.u16(self.actions);
        codec::encode_fields(writer, &self.fields);
        writer.text(&self.words);
        writer.u32(self.description_length);
        match &self.body {
            Body::Circuit(stated) => {
                writer.u8(0);
                stated.policy.encode(writer);
                stated.statement.encode(writer);
            }
            Body::Structure { device, bits } => {
                writer.u8(1);
                device.encode(writer);
                bits.iter().for_each(|function| function.encode(writer));
            }
        }
    }

    /// Reads canonical bytes back; a machine that could not be built is refused.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Machine, DecodeError> {
        let misfit = reader.error("a machine whose parts do not fit");
        let (observation_bits, actions) = (reader.u16()?, reader.u16()?);
        if OBSERVATION_BITS_MAX < usize::from(observation_bits) || actions == 0 {
            return Err(misfit);
        }
        let fields = codec::decode_fields(reader, observation_bits, usize::from(observation_bits))?;
        let (words, description_length) = (reader.text()?.to_string(), reader.u32()?);
        let body = match reader.u8()? {
            0 => {
                let policy = Policy::decode(reader)?;
                let known = policy.reads().iter().all(|bit| *bit < observation_bits);
                if policy.actions() != actions || !known {
                    return Err(misfit);
                }
                Body::Circuit(Stated { policy, statement: Statement::decode(reader)? })
            }
            1 => {
                let device = codec::decode(reader, observation_bits)?;
                let width = usize::from(observation_bits) + device.shows().iter().sum::<usize>();
                let bits = (0..action_bits(actions)).map(|_| Function::decode(reader, width));
                Body::Structure { bits: bits.collect::<Result<_, _>>()?, device }
            }
            _ => return Err(misfit),
        };
        Ok(Machine { observation_bits, actions, fields, words, description_length, body })
    }

    /// The digest of the canonical bytes: its identity.
    pub fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        digest::hash_parts("bem/machine", &[writer.as_bytes()])
    }
}

/// Two machines are equal when their bytes are.
impl PartialEq for Machine {
    fn eq(&self, other: &Machine) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for Machine {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::after::After;
    use crate::memory::both::Both;
    use crate::memory::condition::Condition;
    use crate::memory::counter::Counter;
    use crate::memory::delay::Delay;
    use crate::memory::echo::Echo;
    use crate::memory::flag::{Latch, Toggle};
    use crate::memory::queue::Queue;
    use crate::memory::registers::Registers;
    use crate::memory::stack::Stack;
    use crate::memory::sticky::Sticky;
    use crate::memory::tape::Tape;
    use crate::statement::{Formula, World};
    use bem_circuit::netlist::{Builder, Signal};
    use proptest::prelude::*;

    fn shape() -> Shape {
        let fields = vec![Field { low: 0, width: 2 }, Field { low: 2, width: 1 }];
        shape_of(3, 3, fields)
    }

    fn shape_of(observation_bits: u16, actions: u16, fields: Vec<Field>) -> Shape {
        let (reward_min, reward_max, return_min, return_max) = (0, 1_000, 0, 9_000);
        Shape {
            observation_bits,
            actions,
            fields,
            horizon: 9,
            reward_min,
            reward_max,
            return_min,
            return_max,
        }
    }

    /// Builds it for a world it fits; what cannot be built within the bounds is none.
    fn build(machine: &Machine) -> Option<Policy> {
        let shape = shape_of(machine.observation_bits, machine.actions, machine.fields.clone());
        machine.instantiate(&shape).map(|built| built.policy)
    }

    /// One machine of every kind of structure, and a plain circuit.
    fn machines() -> Vec<Machine> {
        let [one, other] = [vec![(0, true)], vec![(1, false), (2, true)]].map(|list| Condition::new(list, 3));
        let field = Field { low: 0, width: 2 };
        let pair = || (one.clone(), other.clone());
        let stack = |field| {
            let (push, pop) = pair();
            Stack { push, pop, field, cells: 5 }
        };
        let devices: Vec<Arc<dyn Device>> = vec![
            Arc::new(Toggle { condition: one.clone() }),
            Arc::new(Latch { set: one.clone(), clear: None }),
            Arc::new(Latch { set: one.clone(), clear: Some(other.clone()) }),
            Arc::new(Counter { up: one.clone(), down: Some(other.clone()), bits: 3, digits: true }),
            Arc::new(Delay { fields: shape().fields, length: 2 }),
            Arc::new(Echo { field, length: 4 }),
            Arc::new(After { inner: Arc::new(stack(Some(field))) }),
            Arc::new(stack(None)),
            Arc::new(stack(Some(field))),
            Arc::new(Queue { push: one.clone(), pop: other.clone(), field, cells: 5 }),
            Arc::new(Both {
                first: Arc::new(After { inner: Arc::new(stack(None)) }),
                second: Arc::new(Toggle { condition: one.clone() }),
            }),
            Arc::new(Registers {
                write: one.clone(),
                address: field,
                data: Field { low: 2, width: 1 },
                delayed: true,
            }),
            Arc::new(Tape { write: one.clone(), read: other.clone(), field, cells: 4 }),
            Arc::new(Sticky { inner: Arc::new(stack(None)), raises: [(1, true), (6, false)].into() }),
        ];
        let machine = |device: Arc<dyn Device>| {
            let width = 3 + device.shows().iter().sum::<usize>();
            let bit = |index| Function {
                circuit: Builder::new(width).finish(&[Signal::input(index)]).unwrap(),
                statement: Formula::literal(index, false),
                description_length: 4,
                words: format!("bit {index}"),
            };
            let words = device.words();
            Machine::structure(&shape(), device, vec![bit(width - 1), bit(0)], (words, 9))
        };
        let always = Stated { policy: Policy::constant(3, 2), statement: Statement::constant(2) };
        let circuit = Machine::circuit(&shape(), always, ("always 2".to_string(), 1));
        devices.into_iter().map(machine).chain([circuit]).collect()
    }

    fn bytes_of(machine: &Machine) -> Vec<u8> {
        let mut writer = Writer::new();
        machine.encode(&mut writer);
        writer.into_bytes()
    }

    #[test]
    fn every_kind_of_machine_comes_back_from_its_bytes_and_builds_the_same_circuit() {
        for machine in machines() {
            let bytes = bytes_of(&machine);
            let mut reader = Reader::new(&bytes);
            let again = Machine::decode(&mut reader).unwrap();
            reader.finish().unwrap();
            assert_eq!(again, machine);
            assert_eq!(bytes_of(&again), bytes);
            assert!(build(&machine).is_some(), "{}", machine.words());
            assert_eq!(build(&machine), build(&again), "{}", machine.words());
        }
    }

    #[test]
    fn every_kind_of_machine_does_what_it_says_whatever_it_remembers() {
        let mut prng = bem_base::prng::Prng::stream(3, "library/statements");
        let world = World { observation_bits: 3, actions: 3 };
        for machine in machines() {
            let built = machine.instantiate(&shape()).unwrap();
            let (policy, statement) = (built.policy, built.statement.unwrap());
            assert_eq!(statement.memory_bits(&world), policy.memory_bits(), "{}", machine.words());
            for _ in 0..300 {
                let seen: Vec<bool> = (0..3).map(|_| prng.bit()).collect();
                let kept: Vec<bool> = (0..policy.memory_bits()).map(|_| prng.bit()).collect();
                let read: Vec<bool> = policy.reads().iter().map(|bit| seen[usize::from(*bit)]).collect();
                let done = policy.circuit().evaluate(&[read, kept.clone()].concat());
                let (code, next) = statement.step(&world, &seen, &kept).unwrap();
                assert_eq!(done, [code, next].concat(), "{}", machine.words());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn damaged_bytes_are_refused_or_build_and_never_panic(
            which in 0usize..12,
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<Option<prop::sample::Index>>(),
        ) {
            let mut bytes = bytes_of(&machines()[which]);
            for (place, value) in &edits {
                let place = place.index(bytes.len());
                bytes[place] = *value;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            let mut reader = Reader::new(&bytes);
            if let Ok(machine) = Machine::decode(&mut reader) {
                let read = reader.position();
                prop_assert_eq!(bytes_of(&machine), &bytes[..read]);
                build(&machine);
            }
        }

        #[test]
        fn random_bytes_are_refused_or_build(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(machine) = Machine::decode(&mut Reader::new(&bytes)) {
                build(&machine);
            }
        }
    }
}
