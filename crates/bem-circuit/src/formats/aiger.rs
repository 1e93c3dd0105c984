//! AIGER: and-inverter graphs in the ASCII (`aag`) and binary (`aig`) encodings of version 1.9.
//!
//! Read and written are inputs, latches that start at 0, outputs, gates and symbols; properties and constraints are
//! refused. An exclusive or takes three gates there and becomes one again when it is read.
//! Reference: A. Biere, "AIGER 1.9 and beyond", 2011.

use super::model::Model;
use super::{FormatError, check_length, sort_definitions};
use crate::netlist::{Op, Signal};
use crate::simplify::Simplifier;
use bem_base::limits::{CIRCUIT_GATES_MAX, CIRCUIT_INPUTS_MAX, CIRCUIT_OUTPUTS_MAX};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Variables of one file.
const VARIABLES_MAX: usize = 1 << 18;
/// Gates of one file: a netlist within its bound takes three for each of its gates at most.
const ANDS_MAX: usize = 4 * CIRCUIT_GATES_MAX;

/// A literal: twice the variable, plus one if complemented.
type Literal = u32;

/// An and-inverter graph with consecutive variables: inputs, then gates.
struct Graph {
    variables: u32,
    ands: Vec<[Literal; 2]>,
    known: BTreeMap<[Literal; 2], Literal>,
}

impl Graph {
    fn and(&mut self, a: Literal, b: Literal) -> Literal {
        let operands = [a.max(b), a.min(b)];
        match operands {
            [_, 0] => 0,
            [a, 1] => a,
            [a, b] if a == b => a,
            [a, b] if a == b ^ 1 => 0,
            _ => *self.known.entry(operands).or_insert_with(|| {
                self.variables += 1;
                self.ands.push(operands);
                2 * self.variables
            }),
        }
    }

    /// The graph of a model and the literals of its outputs.
    fn of(model: &Model) -> (Graph, Vec<Literal>) {
        let circuit = model.circuit();
        let inputs = circuit.inputs() as u32;
        let mut graph = Graph { variables: inputs, ands: Vec::new(), known: BTreeMap::new() };
        let mut literals: Vec<Literal> = vec![0, 1];
        literals.extend((1..=inputs).map(|variable| 2 * variable));
        for gate in circuit.gates() {
            let (a, b) = (literals[gate.a.index()], literals[gate.b.index()]);
            let literal = match gate.op {
                Op::And => graph.and(a, b),
                Op::Nand => graph.and(a, b) ^ 1,
                Op::AndNot => graph.and(a, b ^ 1),
                Op::Implies => graph.and(a, b ^ 1) ^ 1,
                Op::Nor => graph.and(a ^ 1, b ^ 1),
                Op::Or => graph.and(a ^ 1, b ^ 1) ^ 1,
                Op::Xor | Op::Xnor => {
                    let (left, right) = (graph.and(a, b ^ 1), graph.and(a ^ 1, b));
                    graph.and(left ^ 1, right ^ 1) ^ u32::from(gate.op == Op::Xor)
                }
            };
            literals.push(literal);
        }
        let outputs = circuit.outputs().iter().map(|output| literals[output.index()]).collect();
        (graph, outputs)
    }

    fn header(&self, kind: &str, model: &Model) -> String {
        let (inputs, latches, outputs) = (model.free_inputs(), model.memory(), model.free_outputs());
        format!("{kind} {} {inputs} {latches} {outputs} {}\n", self.variables, self.ands.len())
    }
}

/// Writes the ASCII encoding.
pub fn write_ascii(model: &Model) -> String {
    let (graph, outputs) = Graph::of(model);
    let mut text = graph.header("aag", model);
    for input in 0..model.free_inputs() {
        let _ = writeln!(text, "{}", 2 * (input + 1));
    }
    let (outputs, next) = outputs.split_at(model.free_outputs());
    for (bit, next) in next.iter().enumerate() {
        let _ = writeln!(text, "{} {next}", 2 * (model.free_inputs() + bit + 1));
    }
    for output in outputs {
        let _ = writeln!(text, "{output}");
    }
    for (position, [a, b]) in graph.ands.iter().enumerate() {
        let _ = writeln!(text, "{} {a} {b}", 2 * (model.circuit().inputs() + position + 1));
    }
    text + &symbols(model)
}

/// Writes the binary encoding.
pub fn write_binary(model: &Model) -> Vec<u8> {
    let (graph, outputs) = Graph::of(model);
    let mut text = graph.header("aig", model);
    let (outputs, next) = outputs.split_at(model.free_outputs());
    for literal in next.iter().chain(outputs) {
        let _ = writeln!(text, "{literal}");
    }
    let mut bytes = text.into_bytes();
    for (position, [a, b]) in graph.ands.iter().enumerate() {
        let own = 2 * (model.circuit().inputs() + position + 1) as u32;
        for mut delta in [own - a, a - b] {
            while 0x80 <= delta {
                bytes.push(delta as u8 | 0x80);
                delta >>= 7;
            }
            bytes.push(delta as u8);
        }
    }
    bytes.extend(symbols(model).into_bytes());
    bytes
}

fn symbols(model: &Model) -> String {
    let (inputs, memory) = model.input_names().split_at(model.free_inputs());
    let mut text = String::new();
    for (kind, names) in [("i", inputs), ("l", memory), ("o", model.output_names())] {
        for (position, name) in names.iter().enumerate() {
            let _ = writeln!(text, "{kind}{position} {name}");
        }
    }
    let _ = writeln!(text, "c\n{}", model.name());
    text
}

/// Lines of the text parts and bytes of the binary part.
struct Lines<'a> {
    bytes: &'a [u8],
    position: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    fn error(&self, reason: impl Into<String>) -> FormatError {
        FormatError::at(self.line, reason)
    }

    fn next(&mut self) -> Result<Option<&'a str>, FormatError> {
        let rest = &self.bytes[self.position..];
        if rest.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        self.position = (self.position + length + 1).min(self.bytes.len());
        let line = core::str::from_utf8(&rest[..length]).map_err(|_| self.error("the line is not text"))?;
        Ok(Some(line.trim_end()))
    }

    /// The numbers of the next line, as many as `counts` allows.
    fn numbers(
        &mut self,
        counts: core::ops::RangeInclusive<usize>,
        what: &str,
    ) -> Result<Vec<u32>, FormatError> {
        let line =
            self.next()?.ok_or_else(|| FormatError::at(self.line + 1, format!("{what} is missing")))?;
        let numbers = line.split(' ').map(str::parse).collect::<Result<Vec<u32>, _>>();
        match numbers {
            Ok(numbers) if counts.contains(&numbers.len()) => Ok(numbers),
            _ => Err(self.error(format!("{what} is not {} to {} numbers", counts.start(), counts.end()))),
        }
    }

    /// A number of the binary part: seven bits a byte, the lowest first.
    fn delta(&mut self) -> Result<u32, FormatError> {
        let mut value = 0u32;
        for shift in (0..32).step_by(7) {
            let byte = *self.bytes.get(self.position).ok_or_else(|| self.error("the gates end too early"))?;
            self.position += 1;
            let bits = u32::from(byte & 0x7F);
            if bits != bits << shift >> shift {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(format!("the number before byte {} is too large", self.position)))
    }
}

/// A file taken apart, not yet checked for sense.
struct Draft {
    /// Variable of each input, then of each latch.
    sources: Vec<(u32, usize)>,
    inputs: usize,
    next: Vec<(Literal, usize)>,
    outputs: Vec<(Literal, usize)>,
    ands: Vec<([Literal; 3], usize)>,
    variables: u32,
}

/// Reads either encoding.
pub fn read(bytes: &[u8]) -> Result<Model, FormatError> {
    check_length(bytes)?;
    let mut lines = Lines { bytes, position: 0, line: 0 };
    let header = lines.next()?.unwrap_or("");
    let (binary, header) = match header.split_once(' ') {
        Some(("aag", header)) => (false, header),
        Some(("aig", header)) => (true, header),
        _ => return Err(FormatError::at(1, "an AIGER file begins with aag or aig")),
    };
    let draft = read_body(&mut lines, binary, header)?;
    let (input_names, output_names, name) = read_symbols(&mut lines, &draft)?;
    let model = build(&draft, &name)?;
    Ok(model.named(&input_names, &output_names))
}

fn read_body(lines: &mut Lines<'_>, binary: bool, header: &str) -> Result<Draft, FormatError> {
    let numbers = header.split(' ').map(str::parse).collect::<Result<Vec<u32>, _>>();
    let numbers = numbers.map_err(|_| lines.error("the header is not a list of numbers"))?;
    let [variables, inputs, latches, outputs, ands, rest @ ..] = numbers.as_slice() else {
        return Err(lines.error("the header has fewer than five numbers"));
    };
    if rest.iter().any(|count| *count != 0) {
        return Err(lines.error("properties and constraints are not supported"));
    }
    let count = |count: &u32, bound: usize, what: &str| {
        let count = *count as usize;
        if count <= bound {
            Ok(count)
        } else {
            Err(lines.error(format!("{count} {what} exceed the bound of {bound}")))
        }
    };
    count(variables, VARIABLES_MAX, "variables")?;
    let inputs = count(inputs, CIRCUIT_INPUTS_MAX, "inputs")?;
    let latches = count(latches, CIRCUIT_INPUTS_MAX - inputs, "latches beside the inputs")?;
    let outputs = count(outputs, CIRCUIT_OUTPUTS_MAX, "outputs")?;
    let ands = count(ands, ANDS_MAX, "gates")?;
    if binary && *variables as usize != inputs + latches + ands {
        return Err(lines.error("the number of variables is not that of inputs, latches and gates"));
    }
    let mut draft = Draft {
        sources: Vec::new(),
        inputs,
        next: Vec::new(),
        outputs: Vec::new(),
        ands: Vec::new(),
        variables: *variables,
    };
    for input in 0..inputs {
        let literal = if binary { 2 * (input as u32 + 1) } else { lines.numbers(1..=1, "an input")?[0] };
        draft.source(literal, lines)?;
    }
    for latch in 0..latches {
        let mut numbers = lines.numbers(if binary { 1..=2 } else { 2..=3 }, "a latch")?;
        if binary {
            numbers.insert(0, 2 * (inputs + latch + 1) as u32);
        }
        if numbers.get(2).is_some_and(|reset| *reset != 0) {
            return Err(lines.error("only latches that start at 0 are supported"));
        }
        draft.source(numbers[0], lines)?;
        draft.next.push((numbers[1], lines.line));
    }
    for _ in 0..outputs {
        draft.outputs.push((lines.numbers(1..=1, "an output")?[0], lines.line));
    }
    for and in 0..ands {
        let gate = if binary {
            let own = 2 * (inputs + latches + and + 1) as u32;
            let a = own.checked_sub(lines.delta()?).filter(|a| *a < own);
            let a = a.ok_or_else(|| lines.error(format!("gate {and} refers to what comes after it")))?;
            let b = a.checked_sub(lines.delta()?);
            [own, a, b.ok_or_else(|| lines.error(format!("gate {and} has operands out of order")))?]
        } else {
            let numbers = lines.numbers(3..=3, "a gate")?;
            [numbers[0], numbers[1], numbers[2]]
        };
        draft.ands.push((gate, lines.line));
    }
    Ok(draft)
}

impl Draft {
    fn source(&mut self, literal: Literal, lines: &Lines<'_>) -> Result<(), FormatError> {
        if literal % 2 == 1 {
            return Err(lines.error(format!("{literal} is complemented and cannot be defined")));
        }
        self.sources.push((literal / 2, lines.line));
        Ok(())
    }
}

/// Names of inputs (latches last) and outputs, and the first line of the comment as the name of the whole.
type Symbols = (Vec<String>, Vec<String>, String);

fn read_symbols(lines: &mut Lines<'_>, draft: &Draft) -> Result<Symbols, FormatError> {
    let mut inputs = vec![String::new(); draft.sources.len()];
    let mut outputs = vec![String::new(); draft.outputs.len()];
    while let Some(line) = lines.next()? {
        if line == "c" {
            // What follows is free text; the first line of it is taken as a name if it can be read at all.
            let name = lines.next().ok().flatten().unwrap_or("");
            return Ok((inputs, outputs, name.to_owned()));
        }
        let malformed = || lines.error(format!("{line:?} is neither a symbol nor the start of the comment"));
        let (place, name) = line.split_once(' ').ok_or_else(malformed)?;
        let (kind, index) = place.split_at_checked(1).ok_or_else(malformed)?;
        let index: usize = index.parse().map_err(|_| malformed())?;
        let slot = match kind {
            "i" if index < draft.inputs => inputs.get_mut(index),
            "l" => index.checked_add(draft.inputs).and_then(|index| inputs.get_mut(index)),
            "o" => outputs.get_mut(index),
            _ => None,
        };
        *slot.ok_or_else(|| lines.error(format!("symbol {place} names nothing in the file")))? =
            name.to_owned();
    }
    Ok((inputs, outputs, String::new()))
}

/// What defines a variable.
#[derive(Clone, Copy)]
enum Definition {
    None,
    Source,
    And(usize),
}

fn build(draft: &Draft, name: &str) -> Result<Model, FormatError> {
    let mut definitions = vec![Definition::None; draft.variables as usize + 1];
    let sources = draft.sources.iter().map(|(variable, line)| (*variable, Definition::Source, *line));
    let ands = draft.ands.iter().enumerate().map(|(place, ([own, _, _], line))| {
        (if own % 2 == 0 { own / 2 } else { u32::MAX }, Definition::And(place), *line)
    });
    for (variable, definition, line) in sources.chain(ands) {
        match definitions.get_mut(variable as usize) {
            Some(free @ Definition::None) if variable != 0 => *free = definition,
            Some(_) => return Err(FormatError::at(line, format!("variable {variable} is defined twice"))),
            None => {
                return Err(FormatError::at(line, "the variable defined is out of range or complemented"));
            }
        }
    }
    let used = draft.ands.iter().flat_map(|([_, a, b], line)| [(*a, *line), (*b, *line)]);
    for (literal, line) in used.chain(draft.next.iter().copied()).chain(draft.outputs.iter().copied()) {
        if 2 <= literal
            && !matches!(definitions.get(literal as usize / 2), Some(Definition::Source | Definition::And(_)))
        {
            return Err(FormatError::at(line, format!("literal {literal} has no definition")));
        }
    }
    let references: Vec<Vec<usize>> = draft
        .ands
        .iter()
        .map(|([_, a, b], _)| {
            let and = |literal: &Literal| match definitions[*literal as usize / 2] {
                Definition::And(place) => Some(place),
                _ => None,
            };
            [a, b].into_iter().filter_map(and).collect()
        })
        .collect();
    let order = sort_definitions(references.len(), |and| references[and].as_slice())
        .map_err(|and| FormatError::at(draft.ands[and].1, "the gate depends on itself"))?;

    let mut simplifier = Simplifier::new(draft.sources.len());
    let mut signals = vec![Signal::FALSE; draft.variables as usize + 1];
    for (place, (variable, _)) in draft.sources.iter().enumerate() {
        signals[*variable as usize] = Signal::input(place);
    }
    for and in order {
        let [own, a, b] = draft.ands[and].0;
        let (left, right) = (signals[a as usize / 2], signals[b as usize / 2]);
        signals[own as usize / 2] = match (a % 2, b % 2) {
            (0, 0) => simplifier.gate(Op::And, left, right),
            (0, _) => simplifier.gate(Op::AndNot, left, right),
            (_, 0) => simplifier.gate(Op::AndNot, right, left),
            _ => simplifier.gate(Op::Nor, left, right),
        };
    }
    let mut outputs = Vec::with_capacity(draft.outputs.len() + draft.next.len());
    for (literal, _) in draft.outputs.iter().chain(&draft.next) {
        let signal = signals[*literal as usize / 2];
        outputs.push(if literal % 2 == 0 { signal } else { simplifier.not(signal) });
    }
    let circuit = simplifier.finish(&outputs).map_err(|error| FormatError::at(1, error.to_string()))?;
    Model::with_memory(name, circuit, draft.next.len()).map_err(|error| FormatError::at(1, error.to_string()))
}
