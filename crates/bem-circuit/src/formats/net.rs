//! Our own text form, `.net`: one gate a line, made to be read.
//!
//! ```text
//! # A full adder that keeps its carry.
//! circuit adder
//! input a b
//! memory carry
//! n0 = xor a b
//! n1 = xor n0 carry
//! n2 = and a b
//! n3 = and n0 carry
//! n4 = or n2 n3
//! output sum = n1
//! next carry = n4
//! ```
//!
//! * `circuit NAME` may be left out. `input` and `memory` list names; each may be given several times or not at all, before
//!   the first gate.
//! * A gate is `NAME = OPERATION A B` with one of `and or xor andnot nand nor xnor implies`; `andnot` is `a & !b`. `A` and
//!   `B` are names given before, or the constants `0` and `1`.
//! * `output NAME = A` names an output; `next NAME = A` gives the next value of a bit of memory. Every bit of memory has
//!   exactly one. Memory is 0 at the start.
//! * `#` starts a comment. An output may have the name of a gate but not of an input or a bit of memory.
//!
//! Reading a written circuit gives the same circuit, gate for gate.

use super::model::Model;
use super::names::{Identifiers, clean_name};
use super::{FormatError, check_length};
use crate::netlist::{Gate, Netlist, Op, Signal};
use bem_base::limits::{CIRCUIT_GATES_MAX, CIRCUIT_INPUTS_MAX, CIRCUIT_OUTPUTS_MAX};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const OPERATIONS: [&str; 8] = ["and", "or", "xor", "andnot", "nand", "nor", "xnor", "implies"];

/// Writes a model.
pub fn write(model: &Model) -> String {
    let circuit = model.circuit();
    let mut names: Vec<String> = vec!["0".to_owned(), "1".to_owned()];
    names.extend(model.input_names().iter().cloned());
    let mut identifiers = Identifiers::new(&model.input_names().join(" "));
    let mut text = format!("circuit {}\n", model.name());
    for (keyword, listed) in [
        ("input", &model.input_names()[..model.free_inputs()]),
        ("memory", &model.input_names()[model.free_inputs()..]),
    ] {
        for some in listed.chunks(16) {
            let _ = writeln!(text, "{keyword} {}", some.join(" "));
        }
    }
    for (position, gate) in circuit.gates().iter().enumerate() {
        let name = identifiers.take(&format!("n{position}"));
        let operation = OPERATIONS[gate.op as usize];
        let _ = writeln!(text, "{name} = {operation} {} {}", names[gate.a.index()], names[gate.b.index()]);
        names.push(name);
    }
    let next_names = &model.input_names()[model.free_inputs()..];
    for (position, output) in circuit.outputs().iter().enumerate() {
        let (keyword, name) = match position.checked_sub(model.free_outputs()) {
            None => ("output", &model.output_names()[position]),
            Some(bit) => ("next", &next_names[bit]),
        };
        let _ = writeln!(text, "{keyword} {name} = {}", names[output.index()]);
    }
    text
}

/// What has been read so far.
#[derive(Default)]
struct Draft {
    name: String,
    inputs: Vec<String>,
    memory: Vec<String>,
    /// Every name that an operand may use; inputs and memory get their numbers with the first gate or output.
    signals: BTreeMap<String, Option<Signal>>,
    sealed: bool,
    gates: Vec<Gate>,
    outputs: Vec<(String, Signal)>,
    next: Vec<Option<Signal>>,
}

/// Reads a model.
pub fn read(text: &str) -> Result<Model, FormatError> {
    check_length(text.as_bytes())?;
    let mut draft = Draft::default();
    let mut lines = 0;
    for (index, line) in text.lines().enumerate() {
        lines = index + 1;
        let line = line.split('#').next().unwrap_or("");
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() {
            draft.line(&words).map_err(|reason| FormatError::at(lines, reason))?;
        }
    }
    draft.finish().map_err(|reason| FormatError::at(lines.max(1), reason))
}

impl Draft {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["output", name, "=", value] => {
                let value = self.operand(value)?;
                if self.outputs.iter().any(|(known, _)| known == name) {
                    return Err(format!("output {name} is given twice"));
                }
                if self.inputs.iter().chain(&self.memory).any(|known| known == name) {
                    return Err(format!("output {name} has the name of an input"));
                }
                bounded(self.outputs.len() + self.memory.len(), CIRCUIT_OUTPUTS_MAX, "outputs")?;
                self.outputs.push((checked(name)?, value));
            }
            ["next", name, "=", value] => {
                let value = self.operand(value)?;
                let bit = self.memory.iter().position(|known| known == name);
                let bit = bit.ok_or_else(|| format!("{name} is not a bit of memory"))?;
                if self.next[bit].replace(value).is_some() {
                    return Err(format!("the next value of {name} is given twice"));
                }
            }
            [name, "=", operation, a, b] => {
                let op = OPERATIONS.iter().position(|known| known == operation);
                let op = op.ok_or_else(|| {
                    format!("unknown operation {operation}: known are {}", OPERATIONS.join(", "))
                })?;
                let gate = Gate { op: Op::ALL[op], a: self.operand(a)?, b: self.operand(b)? };
                bounded(self.gates.len(), CIRCUIT_GATES_MAX, "gates")?;
                let signal = Signal::from_index(2 + self.inputs.len() + self.memory.len() + self.gates.len());
                self.define(name, Some(signal))?;
                self.gates.push(gate);
            }
            ["circuit", name] => self.name = checked(name)?,
            ["input" | "memory", ..] if self.sealed => {
                return Err(format!("{} comes after the first gate or output", words[0]));
            }
            ["input", names @ ..] => {
                for name in names {
                    bounded(self.inputs.len() + self.memory.len(), CIRCUIT_INPUTS_MAX, "inputs")?;
                    self.define(name, None)?;
                    self.inputs.push((*name).to_owned());
                }
            }
            ["memory", names @ ..] => {
                for name in names {
                    bounded(self.inputs.len() + self.memory.len(), CIRCUIT_INPUTS_MAX, "inputs")?;
                    bounded(self.memory.len(), CIRCUIT_OUTPUTS_MAX, "bits of memory")?;
                    self.define(name, None)?;
                    self.memory.push((*name).to_owned());
                    self.next.push(None);
                }
            }
            _ => {
                return Err(format!(
                    "expected circuit, input, memory, NAME = OPERATION A B, output NAME = A or next NAME = A, found {:?}",
                    words[0]
                ));
            }
        }
        Ok(())
    }

    fn define(&mut self, name: &str, signal: Option<Signal>) -> Result<(), String> {
        if self.signals.insert(checked(name)?, signal).is_some() {
            return Err(format!("{name} is defined twice"));
        }
        Ok(())
    }

    fn operand(&mut self, name: &str) -> Result<Signal, String> {
        if !self.sealed {
            self.sealed = true;
            for (place, input) in self.inputs.iter().chain(&self.memory).enumerate() {
                self.signals.insert(input.clone(), Some(Signal::input(place)));
            }
        }
        match name {
            "0" => Ok(Signal::FALSE),
            "1" => Ok(Signal::TRUE),
            _ => self
                .signals
                .get(name)
                .copied()
                .flatten()
                .ok_or_else(|| format!("{name} is not defined before")),
        }
    }

    fn finish(self) -> Result<Model, String> {
        let mut outputs: Vec<Signal> = self.outputs.iter().map(|(_, signal)| *signal).collect();
        for (name, next) in self.memory.iter().zip(&self.next) {
            outputs.push(next.ok_or_else(|| format!("the next value of {name} is not given"))?);
        }
        let memory = self.memory.len();
        let names: Vec<String> = self.inputs.into_iter().chain(self.memory).collect();
        let circuit = Netlist::new(names.len(), self.gates, outputs).map_err(|error| error.to_string())?;
        let model = Model::with_memory(&self.name, circuit, memory).map_err(|error| error.to_string())?;
        let output_names: Vec<String> = self.outputs.into_iter().map(|(name, _)| name).collect();
        Ok(model.named(&names, &output_names))
    }
}

/// A name as it stands, if it is one.
fn checked(name: &str) -> Result<String, String> {
    if clean_name(name, "") == name && !name.is_empty() {
        Ok(name.to_owned())
    } else {
        Err(format!("{name:?} is not a name: printable ASCII, at most 128 signs, not 0 or 1"))
    }
}

fn bounded(count: usize, bound: usize, what: &str) -> Result<(), String> {
    if count < bound { Ok(()) } else { Err(format!("more than {bound} {what}")) }
}
