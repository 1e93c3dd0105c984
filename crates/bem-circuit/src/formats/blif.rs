//! BLIF, the Berkeley logic interchange format: one model of `.names` tables and `.latch`es that start at 0.
//!
//! Reference: "Berkeley Logic Interchange Format (BLIF)", University of California, Berkeley, 1992.

use super::model::Model;
use super::names::Identifiers;
use super::{FormatError, check_length, sort_definitions};
use crate::netlist::{Op, Signal};
use crate::simplify::Simplifier;
use bem_base::limits::{CIRCUIT_GATES_MAX, CIRCUIT_INPUTS_MAX, CIRCUIT_OUTPUTS_MAX};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Writes a model: one table a gate, and one a output.
pub fn write(model: &Model) -> String {
    let circuit = model.circuit();
    let mut identifiers = Identifiers::new("");
    let names = identifiers.signals(model, ["false", "true"]);
    // The constants are tables without inputs, under names that nobody else has.
    let constants = [identifiers.take("false"), identifiers.take("true")];
    let name =
        |signal: Signal| if signal.index() < 2 { &constants[signal.index()] } else { &names[signal.index()] };
    let outputs: Vec<String> = model.output_names().iter().map(|output| identifiers.take(output)).collect();
    let (inputs, memory) = names[2..2 + circuit.inputs()].split_at(model.free_inputs());

    let mut text = format!(".model {}\n", model.name());
    for (keyword, listed) in [(".inputs", inputs), (".outputs", &outputs)] {
        let lines: Vec<String> = listed.chunks(12).map(|some| some.join(" ")).collect();
        let _ = writeln!(text, "{keyword} {}", lines.join(" \\\n  "));
    }
    let next: Vec<String> = memory.iter().map(|bit| identifiers.take(&format!("{bit}_next"))).collect();
    for (next, bit) in next.iter().zip(memory) {
        let _ = writeln!(text, ".latch {next} {bit} 0");
    }
    let operands = circuit.gates().iter().flat_map(|gate| [gate.a, gate.b]);
    let used: Vec<Signal> = operands.chain(circuit.outputs().iter().copied()).collect();
    for (constant, row) in [(Signal::FALSE, ""), (Signal::TRUE, "1\n")] {
        if used.contains(&constant) {
            let _ = write!(text, ".names {}\n{row}", name(constant));
        }
    }
    for (position, gate) in circuit.gates().iter().enumerate() {
        let rows = match gate.op {
            Op::And => "11 1",
            Op::Or => "1- 1\n-1 1",
            Op::Xor => "10 1\n01 1",
            Op::AndNot => "10 1",
            Op::Nand => "0- 1\n-0 1",
            Op::Nor => "00 1",
            Op::Xnor => "11 1\n00 1",
            Op::Implies => "0- 1\n-1 1",
        };
        let own = name(circuit.gate_signal(position));
        let _ = writeln!(text, ".names {} {} {own}\n{rows}", name(gate.a), name(gate.b));
    }
    for (output, signal) in outputs.iter().chain(&next).zip(circuit.outputs()) {
        let _ = writeln!(text, ".names {} {output}\n1 1", name(*signal));
    }
    text + ".end\n"
}

/// A table as it stands in the file.
struct Table {
    line: usize,
    /// The signals it reads and the one it defines, as numbers of names.
    inputs: Vec<usize>,
    output: usize,
    /// Rows over `0`, `1` and `-`, all with the same output.
    rows: Vec<String>,
    value: bool,
}

/// What defines a name.
#[derive(Clone, Copy)]
enum Definition {
    None,
    Source(usize),
    Table(usize),
}

/// The model as far as it was read: names have numbers, tables may use what is defined further down.
#[derive(Default)]
struct Draft {
    name: String,
    numbers: BTreeMap<String, usize>,
    /// Each name with the line where it was first seen.
    names: Vec<(String, usize)>,
    inputs: Vec<usize>,
    outputs: Vec<(usize, usize)>,
    /// Line, next value and current value of each latch.
    latches: Vec<(usize, usize, usize)>,
    tables: Vec<Table>,
    ended: bool,
}

/// Reads a model.
pub fn read(text: &str) -> Result<Model, FormatError> {
    check_length(text.as_bytes())?;
    let mut draft = Draft::default();
    let mut joined = String::new();
    let mut first = 1;
    for (index, line) in text.lines().enumerate() {
        if joined.is_empty() {
            first = index + 1;
        }
        let line = line.split('#').next().unwrap_or("").trim_end();
        match line.strip_suffix('\\') {
            Some(line) => {
                joined.push_str(line);
                joined.push(' ');
                continue;
            }
            None => joined.push_str(line),
        }
        let words: Vec<&str> = joined.split_whitespace().collect();
        if !words.is_empty() && !draft.ended {
            draft.line(&words, first).map_err(|reason| FormatError::at(first, reason))?;
        }
        joined.clear();
    }
    if !joined.trim().is_empty() {
        return Err(FormatError::at(first, "the last line is continued but nothing follows"));
    }
    draft.build()
}

impl Draft {
    fn number(&mut self, name: &str, line: usize) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push((name.to_owned(), line));
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn line(&mut self, words: &[&str], line: usize) -> Result<(), String> {
        match words {
            [".model", rest @ ..] => {
                if !self.names.is_empty() || !self.name.is_empty() {
                    return Err("only one model is supported".to_owned());
                }
                self.name = rest.first().copied().unwrap_or("circuit").to_owned();
            }
            [".inputs", names @ ..] => {
                for name in names {
                    let number = self.number(name, line);
                    self.inputs.push(number);
                }
                bounded(self.inputs.len() + self.latches.len(), CIRCUIT_INPUTS_MAX, "inputs and latches")?;
            }
            [".outputs", names @ ..] => {
                for name in names {
                    let number = self.number(name, line);
                    self.outputs.push((number, line));
                }
                bounded(self.outputs.len() + self.latches.len(), CIRCUIT_OUTPUTS_MAX, "outputs and latches")?;
            }
            [".latch", next, current, rest @ ..] => {
                // Optional: type and clock, then the first value; 2 and 3 leave it open, so it is 0.
                let start = match rest {
                    [] | [_, _] => "0",
                    [start] | [_, _, start] => start,
                    _ => return Err(".latch has at most five fields".to_owned()),
                };
                if !matches!(start, "0" | "2" | "3") {
                    return Err(format!("the latch starts at {start}: only 0 is supported"));
                }
                let (next, current) = (self.number(next, line), self.number(current, line));
                self.latches.push((line, next, current));
                bounded(self.inputs.len() + self.latches.len(), CIRCUIT_INPUTS_MAX, "inputs and latches")?;
                bounded(self.outputs.len() + self.latches.len(), CIRCUIT_OUTPUTS_MAX, "outputs and latches")?;
            }
            [".names", names @ .., output] => {
                let inputs = names.iter().map(|name| self.number(name, line)).collect();
                let output = self.number(output, line);
                self.tables.push(Table { line, inputs, output, rows: Vec::new(), value: true });
            }
            [".end", ..] => self.ended = true,
            [keyword, ..] if keyword.starts_with('.') => {
                return Err(format!(
                    "{keyword} is not supported here: known are .model .inputs .outputs .names .latch .end"
                ));
            }
            row => self.row(row)?,
        }
        Ok(())
    }

    fn row(&mut self, words: &[&str]) -> Result<(), String> {
        let table = self.tables.last_mut().ok_or("a row without .names before it")?;
        let (row, value) = match words {
            [value] => ("", *value),
            [row, value] => (*row, *value),
            _ => return Err("a row has two fields".to_owned()),
        };
        if row.len() != table.inputs.len() || !row.bytes().all(|sign| matches!(sign, b'0' | b'1' | b'-')) {
            return Err(format!("row {row:?} is not {} signs of 0, 1 and -", table.inputs.len()));
        }
        let value = match value {
            "0" => false,
            "1" => true,
            _ => return Err(format!("the output of a row is 0 or 1, not {value:?}")),
        };
        if !table.rows.is_empty() && table.value != value {
            return Err("the rows of one table have different outputs".to_owned());
        }
        table.value = value;
        table.rows.push(row.to_owned());
        Ok(())
    }

    /// Who defines each name.
    fn definitions(&self) -> Result<Vec<Definition>, FormatError> {
        let mut definitions = vec![Definition::None; self.names.len()];
        let inputs = self.inputs.iter().map(|number| (*number, self.names[*number].1));
        let latches = self.latches.iter().map(|(line, _, current)| (*current, *line));
        let sources = inputs.chain(latches).enumerate();
        let sources = sources.map(|(place, (number, line))| (number, Definition::Source(place), line));
        let tables = self.tables.iter().enumerate();
        let tables = tables.map(|(place, table)| (table.output, Definition::Table(place), table.line));
        for (number, definition, line) in sources.chain(tables) {
            if !matches!(definitions[number], Definition::None) {
                return Err(FormatError::at(line, format!("{} is defined twice", self.names[number].0)));
            }
            definitions[number] = definition;
        }
        let missing = definitions.iter().position(|definition| matches!(definition, Definition::None));
        match missing {
            Some(number) => {
                let (name, line) = &self.names[number];
                Err(FormatError::at(*line, format!("{name} is used but not defined")))
            }
            None => Ok(definitions),
        }
    }

    fn build(&self) -> Result<Model, FormatError> {
        let definitions = self.definitions()?;
        let references: Vec<Vec<usize>> = self
            .tables
            .iter()
            .map(|table| {
                let of = |number: &usize| match definitions[*number] {
                    Definition::Table(place) => Some(place),
                    _ => None,
                };
                table.inputs.iter().filter_map(of).collect()
            })
            .collect();
        let order = sort_definitions(references.len(), |table| references[table].as_slice())
            .map_err(|table| FormatError::at(self.tables[table].line, "the table depends on itself"))?;

        let mut simplifier = Simplifier::new(self.inputs.len() + self.latches.len());
        let mut signals = vec![Signal::FALSE; self.names.len()];
        for (number, definition) in definitions.iter().enumerate() {
            if let Definition::Source(place) = definition {
                signals[number] = Signal::input(*place);
            }
        }
        for table in order.into_iter().map(|place| &self.tables[place]) {
            signals[table.output] = table.signal(&mut simplifier, &signals);
            bounded(simplifier.gate_count(), 16 * CIRCUIT_GATES_MAX, "gates")
                .map_err(|reason| FormatError::at(table.line, reason))?;
        }
        let numbers = self.outputs.iter().map(|(number, _)| *number);
        let outputs: Vec<usize> = numbers.chain(self.latches.iter().map(|(_, next, _)| *next)).collect();
        let outputs: Vec<Signal> = outputs.into_iter().map(|number| signals[number]).collect();
        let last = self.tables.last().map_or(1, |table| table.line);
        let circuit =
            simplifier.finish(&outputs).map_err(|error| FormatError::at(last, error.to_string()))?;
        let model = Model::with_memory(&self.name, circuit, self.latches.len())
            .map_err(|error| FormatError::at(last, error.to_string()))?;
        let name = |number: usize| self.names[number].0.as_str();
        let inputs = self.inputs.iter().copied().chain(self.latches.iter().map(|(_, _, current)| *current));
        let inputs: Vec<&str> = inputs.map(name).collect();
        let outputs: Vec<&str> = self.outputs.iter().map(|(number, _)| name(*number)).collect();
        Ok(model.named(&inputs, &outputs))
    }
}

impl Table {
    fn signal(&self, simplifier: &mut Simplifier, signals: &[Signal]) -> Signal {
        let mut products = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let mut factors = Vec::new();
            for (sign, input) in row.bytes().zip(&self.inputs) {
                match sign {
                    b'1' => factors.push(signals[*input]),
                    b'0' => factors.push(simplifier.not(signals[*input])),
                    _ => {}
                }
            }
            products.push(simplifier.tree(Op::And, &factors, Signal::TRUE));
        }
        let any = simplifier.tree(Op::Or, &products, Signal::FALSE);
        // Without rows the table is constant 0 whatever its kind.
        if self.value { any } else { simplifier.not(any) }
    }
}

fn bounded(count: usize, bound: usize, what: &str) -> Result<(), String> {
    if count <= bound { Ok(()) } else { Err(format!("more than {bound} {what}")) }
}
