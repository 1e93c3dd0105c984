//! The second pass: constant expressions, registers, addresses, and with them the word of an instruction.
//!
//! Clause: ISA-3.

use super::Assembler;
use super::text::{opcode, operands, split_word};
use crate::instruction::{BASES, Format, Instruction, Operation, PREDICATES, SCALARS, SegmentBase, VECTORS};

impl Assembler {
    /// A constant expression: terms joined by `+`, `-` and `*`, from left to right with `*` first.
    pub(super) fn value(&self, text: &str) -> Result<i64, String> {
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

    pub(super) fn encode(&self, code: &str) -> Result<[u8; 8], String> {
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

fn register(word: &str, kind: char, count: u8) -> Result<u8, String> {
    word.strip_prefix(kind)
        .filter(|digits| *digits == "0" || !digits.starts_with('0'))
        .and_then(|digits| digits.parse::<u8>().ok())
        .filter(|number| *number < count)
        .ok_or_else(|| format!("{word:?} is no register: expected {kind}0 to {kind}{}", count - 1))
}
