//! From text to a program. Every error names its line and what would be right there.
//!
//! One statement a line; `;` starts a comment. `name:` is a label. Directives: `.equ NAME, value`,
//! `.node NAME ["invariant"]`, `.macro NAME a, b` up to `.endm`, `.word 0x...` for eight raw bytes. Numbers are
//! decimal or `0x`; a value may add, subtract or multiply constants. `li64` is short for `li` and `lih`.
//! A macro's use becomes a node of its own. Clauses: ISA-3, ISA-6.

use crate::instruction::{
    BASES, Format, Instruction, Opcode, Operation, PREDICATES, SCALARS, SegmentBase, VECTORS,
};
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

    /// A constant expression: terms joined by `+`, `-` and `*`, from left to right with `*` first.
    fn value(&self, text: &str) -> Result<i64, String> {
        let overflow = || format!("{text} does not fit 64 bits");
        let mut total: i64 = 0;
        let mut rest = text.trim();
        let mut negative = false;
        loop {
            let end = rest
                .char_indices()
                .skip(1)
                .find(|(_, letter)| matches!(letter, '+' | '-'))
                .map_or(rest.len(), |(index, _)| index);
            let mut product: i64 = 1;
            for factor in rest[..end].split('*') {
                product = product.checked_mul(self.atom(factor.trim())?).ok_or_else(overflow)?;
            }
            total = if negative { total.checked_sub(product) } else { total.checked_add(product) }
                .ok_or_else(overflow)?;
            if end == rest.len() {
                return Ok(total);
            }
            negative = rest[end..].starts_with('-');
            rest = rest[end + 1..].trim();
        }
    }

    fn atom(&self, text: &str) -> Result<i64, String> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest.trim()));
        let magnitude = match digits.strip_prefix("0x") {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok().map(|value| value as i64),
            None => digits.parse::<i64>().ok(),
        };
        let value = magnitude
            .or_else(|| self.constants.get(digits).copied())
            .or_else(|| self.labels.get(digits).map(|label| i64::from(*label)))
            .ok_or_else(|| format!("{text:?} is no number, constant or label"))?;
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    fn encode(&self, code: &str) -> Result<[u8; 8], String> {
        let (word, rest) = split_word(code);
        if word == ".word" {
            return Ok((self.value(rest)? as u64).to_le_bytes());
        }
        let opcode = opcode(word).ok_or_else(|| format!("there is no instruction {word}"))?;
        let words = operands(rest);
        let shape = operand_names(opcode.format());
        if words.len() != shape.len() {
            return Err(format!("{word} takes {}, {} operands given", shape.join(", "), words.len()));
        }
        let mut instruction = Instruction { opcode, a: 0, b: 0, c: 0, immediate: 0 };
        let i = &mut instruction;
        let scalar = |word| register(word, 'x', SCALARS);
        let vector = |word| register(word, 'b', VECTORS);
        let predicate = |word| register(word, 'p', PREDICATES);
        match opcode.format() {
            Format::ThreeScalars => {
                (i.a, i.b, i.c) = (scalar(words[0])?, scalar(words[1])?, scalar(words[2])?)
            }
            Format::TwoScalars => (i.a, i.b) = (scalar(words[0])?, scalar(words[1])?),
            Format::ScalarShift => {
                (i.a, i.b, i.immediate) = (scalar(words[0])?, scalar(words[1])?, self.immediate(words[2])?);
            }
            Format::ScalarImmediate => (i.a, i.immediate) = (scalar(words[0])?, self.immediate(words[1])?),
            Format::OneScalar => i.a = scalar(words[0])?,
            Format::ScalarMemory => {
                i.a = scalar(words[0])?;
                (i.b, i.immediate) = self.address(words[1])?;
            }
            Format::VectorMemory => {
                i.a = vector(words[0])?;
                (i.b, i.immediate) = self.address(words[1])?;
            }
            Format::ThreeVectors => {
                (i.a, i.b, i.c) = (vector(words[0])?, vector(words[1])?, vector(words[2])?)
            }
            Format::TwoVectors => (i.a, i.b) = (vector(words[0])?, vector(words[1])?),
            Format::VectorShift => {
                (i.a, i.b, i.immediate) = (vector(words[0])?, vector(words[1])?, self.immediate(words[2])?);
            }
            Format::Blend => {
                (i.a, i.b, i.c) = (vector(words[0])?, vector(words[1])?, vector(words[2])?);
                i.immediate = i32::from(vector(words[3])?);
            }
            Format::ScalarFromVector => (i.a, i.b) = (scalar(words[0])?, vector(words[1])?),
            Format::Branch => {
                (i.a, i.b, i.immediate) = (scalar(words[0])?, scalar(words[1])?, self.immediate(words[2])?);
            }
            Format::Jump => i.immediate = self.immediate(words[0])?,
            Format::JumpAndLink => (i.a, i.immediate) = (scalar(words[0])?, self.immediate(words[1])?),
            Format::Predicate => {
                (i.a, i.b, i.c) = (predicate(words[0])?, scalar(words[1])?, scalar(words[2])?)
            }
            Format::Select => {
                (i.a, i.b, i.c) = (scalar(words[0])?, scalar(words[1])?, scalar(words[2])?);
                i.immediate = i32::from(predicate(words[3])?);
            }
            Format::Coprocessor => {
                let known = Operation::ALL.iter().find(|(_, name)| *name == words[0]);
                let names = || Operation::ALL.map(|(_, name)| name).join(", ");
                i.a = known
                    .ok_or_else(|| format!("there is no operation {}; known are {}", words[0], names()))?
                    .0 as u8;
                (i.b, i.c) = (scalar(words[1])?, scalar(words[2])?);
            }
        }
        if !instruction.is_valid() {
            let (low, high) = Instruction::immediate_range(opcode);
            return Err(format!("{} is out of range: {word} takes {low} to {high}", instruction.immediate));
        }
        Ok(instruction.encode())
    }

    fn immediate(&self, text: &str) -> Result<i32, String> {
        let value = self.value(text)?;
        // The upper half of an address reads as unsigned; both spellings name the same 32 bits.
        i32::try_from(value)
            .or_else(|_| u32::try_from(value).map(|word| word as i32))
            .map_err(|_| format!("{text} does not fit 32 bits"))
    }

    /// `[base + offset]`, `[base - offset]` or `[base]`.
    fn address(&self, text: &str) -> Result<(u8, i32), String> {
        let inside = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .ok_or_else(|| format!("{text:?} is no address: write [base + offset]"))?
            .trim();
        let end = inside.find(['+', '-']).unwrap_or(inside.len());
        let base = inside[..end].trim();
        let number = SegmentBase::ALL
            .iter()
            .find(|(_, name)| *name == base)
            .map_or_else(|| register(base, 'x', SCALARS), |(segment, _)| Ok(*segment as u8))?;
        assert!(number < BASES);
        let offset = if end == inside.len() { 0 } else { self.immediate(&format!("0 {}", &inside[end..]))? };
        Ok((number, offset))
    }
}

/// What the operands of a format are called in messages.
fn operand_names(format: Format) -> &'static [&'static str] {
    match format {
        Format::ThreeScalars => &["x", "x", "x"],
        Format::TwoScalars => &["x", "x"],
        Format::ScalarShift => &["x", "x", "number"],
        Format::ScalarImmediate => &["x", "number"],
        Format::OneScalar => &["x"],
        Format::ScalarMemory => &["x", "[base + offset]"],
        Format::VectorMemory => &["b", "[base + offset]"],
        Format::ThreeVectors => &["b", "b", "b"],
        Format::TwoVectors => &["b", "b"],
        Format::VectorShift => &["b", "b", "number"],
        Format::Blend => &["b", "b (mask)", "b", "b"],
        Format::ScalarFromVector => &["x", "b"],
        Format::Branch => &["x", "x", "label"],
        Format::Jump => &["label"],
        Format::JumpAndLink => &["x", "label"],
        Format::Predicate => &["p", "x", "x"],
        Format::Select => &["x", "x", "x", "p"],
        Format::Coprocessor => &["operation", "x (descriptor)", "x (result)"],
    }
}

fn without_comment(line: &str) -> &str {
    line.split(';').next().unwrap_or_default()
}

fn split_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

fn operands(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split(',').map(str::trim).collect() }
}

fn opcode(word: &str) -> Option<Opcode> {
    Opcode::ALL.iter().copied().find(|opcode| opcode.mnemonic() == word)
}

fn check_name(name: &str) -> Result<(), String> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'@';
    let fine = !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(letter);
    if fine {
        Ok(())
    } else {
        Err(format!("{name:?} is no name: letters, digits and _ only, no digit first"))
    }
}

fn register(word: &str, kind: char, count: u8) -> Result<u8, String> {
    word.strip_prefix(kind)
        .filter(|digits| *digits == "0" || !digits.starts_with('0'))
        .and_then(|digits| digits.parse::<u8>().ok())
        .filter(|number| *number < count)
        .ok_or_else(|| format!("{word:?} is no register: expected {kind}0 to {kind}{}", count - 1))
}

/// Replaces a name where it stands alone.
fn replace_word(text: &str, from: &str, to: &str) -> String {
    let mut result = String::new();
    let mut word = String::new();
    for letter in text.chars().chain(core::iter::once('\n')) {
        if letter.is_ascii_alphanumeric() || letter == '_' {
            word.push(letter);
        } else {
            result.push_str(if word == from { to } else { &word });
            word.clear();
            result.push(letter);
        }
    }
    result.pop();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        assemble(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_line_and_what_would_be_right() {
        assert_eq!(error("nop"), "line 1: there is no instruction or macro nop");
        assert_eq!(error("\nadd x1, x2"), "line 2: add takes x, x, x, 2 operands given");
        assert_eq!(error("add x1, x2, x32"), "line 1: \"x32\" is no register: expected x0 to x31");
        assert_eq!(error("shl x1, x1, 64"), "line 1: 64 is out of range: shl takes 0 to 63");
        assert_eq!(error("jmp nowhere"), "line 1: \"nowhere\" is no number, constant or label");
        assert_eq!(error("ld x1, x2"), "line 1: \"x2\" is no address: write [base + offset]");
        assert_eq!(error("a: a:"), "line 1: label a stands twice");
        assert_eq!(error(".macro m\nadd x1, x1, x1"), "line 1: macro m has no .endm");
        assert!(
            error("cop DANCE, x1, x2")
                .starts_with("line 1: there is no operation DANCE; known are ANN_QUERY")
        );
        assert_eq!(
            error(".equ A, 9223372036854775807 + 1"),
            "line 1: 9223372036854775807 + 1 does not fit 64 bits"
        );
    }

    #[test]
    fn a_macro_that_uses_itself_ends() {
        let text = ".macro m\nm\n.endm\nm";
        assert!(error(text).contains("macros are nested deeper than 8"));
    }

    #[test]
    fn macros_become_nodes_with_labels_of_their_own() {
        let text = ".node main \"x1 == 0\"\nli x1, 3\n.macro count r\n@_again: addi r, r, -1\nbne r, x0, @_again\n.endm\n\
                    count x1\ncount x2\nadd x0, x0, x0";
        let program = assemble(text).unwrap();
        let names: Vec<(&str, bool)> =
            program.nodes().iter().map(|node| (node.name.as_str(), node.is_macro)).collect();
        assert_eq!(names[0], ("main", false));
        assert_eq!(names[1], ("count_1", true));
        assert!(names.contains(&("count_2", true)));
        assert_eq!(program.nodes()[0].invariant, "x1 == 0");
        assert_eq!(program.words().len(), 6);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_assembler_panic(text in "[ -~\n]{0,200}") {
            let _ = assemble(&text);
        }

        #[test]
        fn no_likely_text_makes_the_assembler_panic(
            words in proptest::collection::vec("add|ld|x1|x2|,|\\[x1 \\+ 8\\]|\n|a:|jmp a|.equ|.node|-|0x|li64 x1, 5|.macro m|.endm|m", 0..40)
        ) {
            let _ = assemble(&words.join(" "));
        }
    }
}
