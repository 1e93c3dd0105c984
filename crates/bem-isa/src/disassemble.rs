//! From a program to text that assembles to the same bytes. Clause: ISA-3.

use crate::instruction::{Instruction, Operation, SCALARS, SegmentBase};
use crate::operand::{Operand, OperandKind, operands};
use crate::program::Program;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The whole program as text: nodes, labels where something jumps to, one instruction a line.
pub fn disassemble(program: &Program) -> String {
    let targets: BTreeSet<u32> =
        program.instructions().iter().flatten().filter_map(Instruction::target).collect();
    let inside = |target: &u32| (*target as usize) <= program.words().len();
    let mut text = String::new();
    for (position, (word, instruction)) in program.words().iter().zip(program.instructions()).enumerate() {
        let position = position as u32;
        if let Some(node) = program.node_at(position) {
            let quoted =
                if node.invariant.is_empty() { String::new() } else { format!(" \"{}\"", node.invariant) };
            let _ = writeln!(text, ".node {}{quoted}", node.name);
        }
        if targets.contains(&position) {
            let _ = writeln!(text, "L{position}:");
        }
        let _ = match instruction {
            Some(instruction) => writeln!(text, "    {}", line(instruction, inside)),
            None => writeln!(text, "    .word {:#018x}", u64::from_le_bytes(*word)),
        };
    }
    let end = program.words().len() as u32;
    if targets.contains(&end) {
        let _ = writeln!(text, "L{end}:");
    }
    text
}

/// One instruction as text; targets outside the program are written as numbers.
pub fn line(instruction: &Instruction, inside: impl Fn(&u32) -> bool) -> String {
    let write = |operand: &Operand| {
        let value = operand.part.of(instruction);
        match operand.kind {
            OperandKind::Scalar => format!("x{value}"),
            OperandKind::Vector => format!("b{value}"),
            OperandKind::Predicate => format!("p{value}"),
            OperandKind::Number => value.to_string(),
            OperandKind::Label if inside(&(value as u32)) => format!("L{value}"),
            OperandKind::Label => value.to_string(),
            OperandKind::Address => address(instruction),
            OperandKind::Operation => Operation::ALL[value as usize - 1].1.to_string(),
        }
    };
    let words: Vec<String> = operands(instruction.opcode.format()).iter().map(write).collect();
    format!("{} {}", instruction.opcode.mnemonic(), words.join(", "))
}

/// The base, a register or a segment, and the offset if there is one.
fn address(instruction: &Instruction) -> String {
    let base = match instruction.b {
        register if register < SCALARS => format!("x{register}"),
        segment => SegmentBase::ALL[usize::from(segment - SCALARS)].1.to_string(),
    };
    match instruction.immediate {
        0 => format!("[{base}]"),
        offset if offset < 0 => format!("[{base} - {}]", offset.unsigned_abs()),
        offset => format!("[{base} + {offset}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::assemble;
    use crate::instruction::{Format, Opcode};
    use bem_base::prng::Prng;

    /// A random valid instruction: fields are drawn until they fit.
    fn random(prng: &mut Prng, length: u64) -> Instruction {
        loop {
            let opcode = Opcode::ALL[prng.below(Opcode::ALL.len() as u64) as usize];
            let mut field = || prng.below(42) as u8;
            let (a, b, c) = (field(), field(), field());
            let immediate = match opcode.format() {
                Format::Branch | Format::Jump | Format::JumpAndLink => prng.below(length + 3) as i32,
                _ => [0, 1, -1, 63, 200, i32::MIN, i32::MAX][prng.below(7) as usize],
            };
            let mut instruction = Instruction { opcode, a, b, c, immediate };
            for _ in 0..4 {
                if instruction.is_valid() {
                    return instruction;
                }
                instruction = Instruction { c: 0, ..instruction };
                if !instruction.is_valid() {
                    instruction = Instruction { immediate: 0, ..instruction };
                }
                if !instruction.is_valid() {
                    instruction = Instruction { b: 0, ..instruction };
                }
            }
        }
    }

    #[test]
    fn random_programs_round_trip_through_text() {
        let mut prng = Prng::stream(8, "round trip");
        for _ in 0..2_000 {
            let length = 1 + prng.below(40);
            let words: Vec<[u8; 8]> = (0..length)
                .map(|_| {
                    if prng.below(20) == 0 {
                        prng.next_u64().to_le_bytes()
                    } else {
                        random(&mut prng, length).encode()
                    }
                })
                .collect();
            let program = Program::new(words, Vec::new()).unwrap();
            let text = disassemble(&program);
            let again = assemble(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(again.words(), program.words(), "{text}");
        }
    }

    #[test]
    fn every_instruction_has_a_line() {
        let mut prng = Prng::stream(9, "lines");
        let mut seen = BTreeSet::new();
        for _ in 0..10_000 {
            seen.insert(random(&mut prng, 10).opcode as u8);
        }
        assert_eq!(seen.len(), Opcode::ALL.len());
    }
}
