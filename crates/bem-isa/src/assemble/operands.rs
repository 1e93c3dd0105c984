//! The second pass: constant expressions, registers, addresses, and with them the word of an instruction.
//!
//! Clause: ISA-3.

use super::Assembler;
use super::text::{opcode, operands, split_word};
use crate::instruction::{BASES, Instruction, Operation, PREDICATES, SCALARS, SegmentBase, VECTORS};
use crate::operand::{self, Operand, OperandKind};

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
        let wanted = operand::operands(opcode.format());
        if words.len() != wanted.len() {
            let names: Vec<&str> = wanted.iter().map(|operand| operand.name).collect();
            return Err(format!("{word} takes {}, {} operands given", names.join(", "), words.len()));
        }
        let mut instruction = Instruction { opcode, a: 0, b: 0, c: 0, immediate: 0 };
        for (operand, word) in wanted.iter().zip(words) {
            self.fill(&mut instruction, *operand, word)?;
        }
        if !instruction.is_valid() {
            let (low, high) = Instruction::immediate_range(opcode);
            return Err(format!("{} is out of range: {word} takes {low} to {high}", instruction.immediate));
        }
        Ok(instruction.encode())
    }

    fn fill(&self, instruction: &mut Instruction, operand: Operand, word: &str) -> Result<(), String> {
        match operand.kind {
            OperandKind::Scalar => operand.part.fill(instruction, register(word, 'x', SCALARS)?),
            OperandKind::Vector => operand.part.fill(instruction, register(word, 'b', VECTORS)?),
            OperandKind::Predicate => operand.part.fill(instruction, register(word, 'p', PREDICATES)?),
            OperandKind::Number | OperandKind::Label => instruction.immediate = self.immediate(word)?,
            OperandKind::Address => (instruction.b, instruction.immediate) = self.address(word)?,
            OperandKind::Operation => operand.part.fill(instruction, operation(word)?),
        }
        Ok(())
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

/// The number of a co-processor operation.
fn operation(word: &str) -> Result<u8, String> {
    let known = Operation::ALL.iter().find(|(_, name)| *name == word);
    let names = || Operation::ALL.map(|(_, name)| name).join(", ");
    known
        .map(|(operation, _)| *operation as u8)
        .ok_or_else(|| format!("there is no operation {word}; known are {}", names()))
}

fn register(word: &str, kind: char, count: u8) -> Result<u8, String> {
    word.strip_prefix(kind)
        .filter(|digits| *digits == "0" || !digits.starts_with('0'))
        .and_then(|digits| digits.parse::<u8>().ok())
        .filter(|number| *number < count)
        .ok_or_else(|| format!("{word:?} is no register: expected {kind}0 to {kind}{}", count - 1))
}
