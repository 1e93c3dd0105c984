//! A candidate policy with everything the gate and the report need to know about it.
//!
//! Clauses: SCC-2, SCC-8; decision D-35.

use crate::function::Function;
use crate::library::Machine;
use crate::memory::Device;
use crate::policy::{Policy, action_bits};
use crate::statement::{Choice, Statement};
use bem_base::digest::Digest;
use bem_base::environment::Shape;
use bem_circuit::netlist::{Builder, Signal};

/// A policy that explains what was seen.
#[derive(Clone, Debug)]
pub struct Hypothesis {
    /// The circuit.
    pub policy: Policy,
    /// What the circuit does, said as data; none for a circuit that only stands for others in the pool.
    pub statement: Option<Statement>,
    /// Which classes it is made of, in words.
    pub words: String,
    /// Bits it takes to say.
    pub description_length: u32,
    /// It explains its samples without exception.
    pub exact: bool,
    /// For plans: the return that the counted model predicts, in milli-units; for explanations that read their own
    /// actions, the highest there is. What logged steps say about single actions does not apply to such a policy.
    pub predicted: Option<i64>,
    /// The digest of the experience it was derived from; zero when it came from the library.
    pub provenance: Digest,
    /// The abstract machine, to be built again for other sizes.
    pub machine: Option<Machine>,
}

/// A circuit and what it says, by the same hand; a condition holds one against the other.
#[derive(Clone, Debug)]
pub struct Stated {
    /// The circuit.
    pub policy: Policy,
    /// What it does, as data.
    pub statement: Statement,
}

/// A memory structure and one function per action bit as one circuit; none if a bound is exceeded.
pub fn assemble(shape: &Shape, device: Option<&dyn Device>, bits: &[Function]) -> Option<Stated> {
    let choice = Choice::Bits(bits.iter().map(|function| function.statement.clone()).collect());
    build(shape, device, choice, |builder, row| {
        let action: Vec<Signal> = bits.iter().map(|function| function.embed(builder, row)).collect();
        debug_assert!(action.len() == action_bits(shape.actions));
        action
    })
}

/// A memory structure and any circuit from row to action bits, which does what `choice` says; none if a bound is
/// exceeded.
pub fn build(
    shape: &Shape,
    device: Option<&dyn Device>,
    choice: Choice,
    act: impl FnOnce(&mut Builder, &[Signal]) -> Vec<Signal>,
) -> Option<Stated> {
    let observation_bits = usize::from(shape.observation_bits);
    let memory_bits = device.map_or(0, Device::memory_bits);
    let mut builder = Builder::new(observation_bits + memory_bits);
    let mut row: Vec<Signal> = (0..observation_bits).map(Signal::input).collect();
    let memory: Vec<Signal> = (0..memory_bits).map(|place| Signal::input(observation_bits + place)).collect();
    let mut next = Vec::new();
    if let Some(device) = device {
        let (shown, kept) = device.build(&mut builder, &row, &memory);
        row.extend(shown);
        next = kept;
    }
    let action = act(&mut builder, &row);
    let policy = Policy::close(builder, observation_bits, shape.actions, &action, &next).ok()?;
    Some(Stated { policy, statement: Statement::Acts { memory: device.map(Device::statement), choice } })
}
