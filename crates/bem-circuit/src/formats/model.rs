//! A circuit with names, and with memory if it has any.
//!
//! A circuit with `m` bits of memory is a netlist whose last `m` outputs are the next values of its last `m` inputs.
//! All memory is false at the start.

use super::names::clean_name;
use crate::netlist::Netlist;
use std::collections::BTreeSet;

/// A named circuit. Invariants: one name per input and per output that is not memory; all these names are distinct; every
/// name is printable ASCII without spaces and the signs `#`, `=`, `\`, `"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    name: String,
    circuit: Netlist,
    memory: usize,
    input_names: Vec<String>,
    output_names: Vec<String>,
}

/// Why a model cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{memory} bits of memory need as many inputs and outputs; the circuit has {inputs} and {outputs}")]
pub struct ModelError {
    /// Bits of memory asked for.
    pub memory: usize,
    /// Inputs of the circuit.
    pub inputs: usize,
    /// Outputs of the circuit.
    pub outputs: usize,
}

impl Model {
    /// A circuit without memory and with the names `x0`, `x1`, ... and `y0`, `y1`, ...
    pub fn new(name: &str, circuit: Netlist) -> Model {
        Model::with_memory(name, circuit, 0).unwrap_or_else(|_| unreachable!("every circuit has no memory"))
    }

    /// A circuit whose last `memory` outputs feed its last `memory` inputs, named `m0`, `m1`, ...
    pub fn with_memory(name: &str, circuit: Netlist, memory: usize) -> Result<Model, ModelError> {
        let (inputs, outputs) = (circuit.inputs(), circuit.outputs().len());
        if inputs < memory || outputs < memory {
            return Err(ModelError { memory, inputs, outputs });
        }
        let mut input_names: Vec<String> = (0..inputs - memory).map(|input| format!("x{input}")).collect();
        input_names.extend((0..memory).map(|bit| format!("m{bit}")));
        let output_names = (0..outputs - memory).map(|output| format!("y{output}")).collect();
        let name = clean_name(name, "circuit");
        Ok(Model { name, circuit, memory, input_names, output_names })
    }

    /// The same model with other names. Signs that a name may not contain become `_`, a name that is taken gets a
    /// number, and where a name is missing or empty the default stays.
    #[must_use]
    pub fn named(mut self, inputs: &[impl AsRef<str>], outputs: &[impl AsRef<str>]) -> Model {
        let mut taken = BTreeSet::new();
        rename(&mut self.input_names, inputs, &mut taken);
        rename(&mut self.output_names, outputs, &mut taken);
        self
    }

    /// The name of the whole.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The circuit.
    pub fn circuit(&self) -> &Netlist {
        &self.circuit
    }

    /// Bits of memory.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Inputs that are not memory.
    pub fn free_inputs(&self) -> usize {
        self.circuit.inputs() - self.memory
    }

    /// Outputs that are not memory.
    pub fn free_outputs(&self) -> usize {
        self.circuit.outputs().len() - self.memory
    }

    /// The names of all inputs, memory last.
    pub fn input_names(&self) -> &[String] {
        &self.input_names
    }

    /// The names of the outputs that are not memory.
    pub fn output_names(&self) -> &[String] {
        &self.output_names
    }
}

fn rename(names: &mut [String], wanted: &[impl AsRef<str>], taken: &mut BTreeSet<String>) {
    for (position, name) in names.iter_mut().enumerate() {
        let wanted = wanted.get(position).map_or("", AsRef::as_ref);
        let clean = clean_name(wanted, name);
        let numbered = (2..).map(|number| format!("{clean}_{number}"));
        let free =
            core::iter::once(clean.clone()).chain(numbered).find(|candidate| !taken.contains(candidate));
        *name = free.unwrap_or(clean);
        taken.insert(name.clone());
    }
}
