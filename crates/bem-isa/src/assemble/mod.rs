//! From text to a program. Every error names its line and what would be right there.
//!
//! One statement a line; `;` starts a comment. `name:` is a label. Directives: `.equ NAME, value`,
//! `.node NAME ["invariant"]`, `.macro NAME a, b` up to `.endm`, `.word 0x...` for eight raw bytes. Numbers are
//! decimal or `0x`; a value may add, subtract or multiply constants. `li64` is short for `li` and `lih`.
//! A macro's use becomes a node of its own. Clauses: ISA-3, ISA-6.

mod operands;
mod text;

use self::text::{check_name, opcode, operands, replace_word, split_word, without_comment};
use crate::program::{INSTRUCTIONS_MAX, Node, Program};
use std::collections::BTreeMap;

/// Why a text is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct AssembleError {
    /// Counted from one.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub reason: String,
}

/// Macro uses inside macro uses.
const MACRO_DEPTH_MAX: usize = 8;

/// A statement that becomes one instruction, with its line.
struct Statement {
    line: usize,
    text: String,
}

struct Macro {
    parameters: Vec<String>,
    body: Vec<Statement>,
}

/// First pass: what stands where. Second pass: operands, now that every label is known.
#[derive(Default)]
struct Assembler {
    constants: BTreeMap<String, i64>,
    labels: BTreeMap<String, u32>,
    macros: BTreeMap<String, Macro>,
    statements: Vec<Statement>,
    nodes: Vec<Node>,
    macro_uses: usize,
}

/// Assembles a text.
pub fn assemble(text: &str) -> Result<Program, AssembleError> {
    let mut assembler = Assembler::default();
    assembler.collect(text)?;
    assembler.close_node();
    let mut words = Vec::with_capacity(assembler.statements.len());
    for statement in &assembler.statements {
        let word = assembler.encode(&statement.text);
        words.push(word.map_err(|reason| AssembleError { line: statement.line, reason })?);
    }
    let nodes =
        std::mem::take(&mut assembler.nodes).into_iter().filter(|node| node.start < node.end).collect();
    Program::new(words, nodes).ok_or_else(|| AssembleError {
        line: text.lines().count(),
        reason: format!("the program has more than {INSTRUCTIONS_MAX} instructions"),
    })
}

impl Assembler {
    fn here(&self) -> u32 {
        self.statements.len() as u32
    }

    fn close_node(&mut self) {
        let here = self.here();
        if let Some(node) = self.nodes.last_mut() {
            node.end = here;
        }
    }

    fn open_node(&mut self, name: String, invariant: String, is_macro: bool) {
        self.close_node();
        let start = self.here();
        self.nodes.push(Node { name, start, end: start, invariant, is_macro });
    }

    fn collect(&mut self, text: &str) -> Result<(), AssembleError> {
        let mut open: Option<(usize, String, Macro)> = None;
        for (position, raw) in text.lines().enumerate() {
            let line = position + 1;
            let fail = |reason: String| AssembleError { line, reason };
            let code = without_comment(raw).trim();
            if let Some((_, _, body)) = &mut open {
                if code == ".endm" {
                    let (_, name, body) = open.take().expect("a macro is open");
                    self.macros.insert(name, body);
                } else if !code.is_empty() {
                    body.body.push(Statement { line, text: code.to_string() });
                }
                continue;
            }
            if let Some(rest) = code.strip_prefix(".macro") {
                let (name, parameters) = split_word(rest.trim());
                check_name(name).map_err(fail)?;
                if self.macros.contains_key(name) || opcode(name).is_some() {
                    return Err(fail(format!("{name} is already an instruction or a macro")));
                }
                let parameters = operands(parameters).iter().map(|word| (*word).to_string()).collect();
                open = Some((line, name.to_string(), Macro { parameters, body: Vec::new() }));
                continue;
            }
            self.statement(line, code, 0).map_err(|reason| AssembleError { line, reason })?;
        }
        match open {
            Some((line, name, _)) => {
                Err(AssembleError { line, reason: format!("macro {name} has no .endm") })
            }
            None => Ok(()),
        }
    }

    fn statement(&mut self, line: usize, code: &str, depth: usize) -> Result<(), String> {
        let mut code = code;
        while let Some((label, rest)) =
            code.split_once(':').filter(|(label, _)| check_name(label.trim()).is_ok())
        {
            let label = label.trim();
            if self.labels.insert(label.to_string(), self.here()).is_some() {
                return Err(format!("label {label} stands twice"));
            }
            code = rest.trim();
        }
        if code.is_empty() {
            return Ok(());
        }
        let (word, rest) = split_word(code);
        match word {
            ".equ" => {
                let (name, value) = rest.split_once(',').ok_or(".equ takes a name, a comma and a value")?;
                check_name(name.trim())?;
                let value = self.value(value.trim())?;
                self.constants.insert(name.trim().to_string(), value);
            }
            ".node" => {
                let (name, invariant) = split_word(rest);
                check_name(name)?;
                let invariant = match invariant.trim() {
                    "" => "",
                    quoted => quoted
                        .strip_prefix('"')
                        .and_then(|text| text.strip_suffix('"'))
                        .ok_or("an invariant stands in double quotes")?,
                };
                self.open_node(name.to_string(), invariant.to_string(), false);
            }
            "li64" => {
                let (register, value) = rest.split_once(',').ok_or("li64 takes a register and a value")?;
                let value = self.value(value.trim())?;
                for half in
                    [format!("li {register}, {}", value as i32), format!("lih {register}, {}", value >> 32)]
                {
                    self.push(line, half)?;
                }
            }
            ".word" => self.push(line, code.to_string())?,
            _ if word.starts_with('.') => {
                return Err(format!("there is no directive {word}; known are .equ, .node, .macro, .word"));
            }
            _ if opcode(word).is_some() => self.push(line, code.to_string())?,
            _ => self.expand(line, word, rest, depth)?,
        }
        Ok(())
    }

    fn push(&mut self, line: usize, text: String) -> Result<(), String> {
        if INSTRUCTIONS_MAX <= self.statements.len() {
            return Err(format!("the program has more than {INSTRUCTIONS_MAX} instructions"));
        }
        self.statements.push(Statement { line, text });
        Ok(())
    }

    /// Lays a macro's body down, with its parameters replaced and its labels made its own.
    fn expand(&mut self, line: usize, name: &str, rest: &str, depth: usize) -> Result<(), String> {
        let body = self.macros.get(name).ok_or_else(|| format!("there is no instruction or macro {name}"))?;
        if MACRO_DEPTH_MAX <= depth {
            return Err(format!("macros are nested deeper than {MACRO_DEPTH_MAX}"));
        }
        let given = operands(rest);
        if given.len() != body.parameters.len() {
            return Err(format!("{name} takes {} operands, {} given", body.parameters.len(), given.len()));
        }
        self.macro_uses += 1;
        let own = format!("{name}_{}", self.macro_uses);
        let lines: Vec<String> = body
            .body
            .iter()
            .map(|statement| {
                let pairs = body.parameters.iter().map(String::as_str).zip(given.iter().copied());
                pairs
                    .fold(statement.text.replace('@', &own), |text, (from, to)| replace_word(&text, from, to))
            })
            .collect();
        let outer = self.nodes.last().map(|node| (node.name.clone(), node.is_macro));
        if depth == 0 {
            self.open_node(own.clone(), String::new(), true);
        }
        for text in lines {
            self.statement(line, &text, depth + 1).map_err(|reason| format!("in macro {name}: {reason}"))?;
        }
        if depth == 0 {
            match outer {
                Some((outer, false)) => self.open_node(format!("{outer}_after_{own}"), String::new(), false),
                _ => self.close_node(),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
