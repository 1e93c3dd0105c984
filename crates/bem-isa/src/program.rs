//! A program: instructions, the nodes of its control flow, and its versioned binary form.
//!
//! Binary form, little-endian: `"BEMP"`, version (u16), flags (u16, zero), instruction count (u32), eight bytes
//! each; node count (u32), then per node its first and past-the-last instruction (u32 each), a name and an
//! invariant as texts behind their lengths; macro nodes are marked. Bytes that are no instruction are kept: they
//! trap when reached, they do not prevent loading. Clauses: ISA-3, ISA-6.

use crate::instruction::{Format, Instruction};
use bem_base::encode::{DecodeError, Reader, Writer};

/// The version this crate writes and the only one it reads.
pub const VERSION: u16 = 1;
/// Instructions of one program.
pub const INSTRUCTIONS_MAX: usize = 1 << 20;
const MAGIC: &[u8; 4] = b"BEMP";

/// A stretch of instructions with an optional invariant that holds whenever it is entered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "cfg_node")]
pub struct Node {
    /// The label it starts with.
    pub name: String,
    /// Its first instruction.
    pub start: u32,
    /// The instruction past its last.
    pub end: u32,
    /// What holds on entry, in the language of the Hoare checker; empty for nothing claimed.
    pub invariant: String,
    /// Whether it was laid down by a macro.
    pub is_macro: bool,
}

/// Instructions and the nodes they form. Invariant: nodes are in order, disjoint and within the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    words: Vec<[u8; 8]>,
    decoded: Vec<Option<Instruction>>,
    nodes: Vec<Node>,
}

impl Program {
    /// A program from instructions and nodes; `None` when the nodes overlap or leave the program.
    pub fn new(words: Vec<[u8; 8]>, nodes: Vec<Node>) -> Option<Program> {
        if INSTRUCTIONS_MAX < words.len() {
            return None;
        }
        let mut border = 0;
        for node in &nodes {
            if node.start < border || node.end < node.start || words.len() < node.end as usize {
                return None;
            }
            border = node.end;
        }
        let decoded = words.iter().map(|word| Instruction::decode(*word)).collect();
        Some(Program { words, decoded, nodes })
    }

    /// A program of valid instructions without nodes.
    pub fn from_instructions(instructions: &[Instruction]) -> Program {
        let words = instructions.iter().map(Instruction::encode).collect();
        Program::new(words, Vec::new()).expect("no nodes to be wrong, and a bounded list")
    }

    /// The eight bytes of every instruction.
    pub fn words(&self) -> &[[u8; 8]] {
        &self.words
    }

    /// Every instruction, `None` where the bytes are none.
    pub fn instructions(&self) -> &[Option<Instruction>] {
        &self.decoded
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node that starts at this instruction.
    pub fn node_at(&self, position: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.start == position && node.start < node.end)
    }

    /// Where control may go from the instruction at `position`. A return has no fixed successor.
    pub fn successors(&self, position: u32) -> Vec<u32> {
        let Some(Some(instruction)) = self.decoded.get(position as usize) else { return Vec::new() };
        let next = position + 1;
        match (instruction.opcode.format(), instruction.target()) {
            (Format::Branch, Some(target)) => vec![next, target],
            (_, Some(target)) => vec![target],
            (Format::OneScalar, None) if instruction.opcode == crate::instruction::Opcode::Return => {
                Vec::new()
            }
            _ => vec![next],
        }
    }

    /// The binary form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.raw(MAGIC);
        writer.u16(VERSION);
        writer.u16(0);
        writer.length(self.words.len());
        for word in &self.words {
            writer.raw(word);
        }
        writer.length(self.nodes.len());
        for node in &self.nodes {
            writer.u32(node.start);
            writer.u32(node.end);
            writer.bool(node.is_macro);
            writer.text(&node.name);
            writer.text(&node.invariant);
        }
        writer.into_bytes()
    }

    /// Reads the binary form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Program, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a BEM program: the first four bytes are not BEMP");
        if reader.raw(4)? != MAGIC {
            return Err(foreign);
        }
        let unknown = reader.error("a program version other than 1");
        if reader.u16()? != VERSION {
            return Err(unknown);
        }
        let flagged = reader.error("flags that are not zero");
        if reader.u16()? != 0 {
            return Err(flagged);
        }
        let count = reader.length(8)?;
        let mut words = Vec::with_capacity(count);
        for _ in 0..count {
            words.push(reader.raw(8)?.try_into().expect("eight bytes were read"));
        }
        let count = reader.length(17)?;
        let mut nodes = Vec::with_capacity(count);
        for _ in 0..count {
            let (start, end, is_macro) = (reader.u32()?, reader.u32()?, reader.bool()?);
            let (name, invariant) = (reader.text()?.to_string(), reader.text()?.to_string());
            nodes.push(Node { name, start, end, invariant, is_macro });
        }
        let crooked = reader.error("nodes that overlap or leave the program, or too many instructions");
        reader.finish()?;
        Program::new(words, nodes).ok_or(crooked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Program {
        let node = |name: &str, start, end| Node {
            name: name.into(),
            start,
            end,
            invariant: "x1 == 0".into(),
            is_macro: false,
        };
        Program::new(vec![[0x34, 0, 0, 0, 0, 0, 0, 0]; 3], vec![node("a", 0, 1), node("b", 1, 3)]).unwrap()
    }

    #[test]
    fn the_binary_form_comes_back() {
        let program = sample();
        assert_eq!(Program::from_bytes(&program.to_bytes()), Ok(program));
    }

    #[test]
    fn damaged_binaries_are_refused_without_panic() {
        let bytes = sample().to_bytes();
        assert!(Program::from_bytes(b"ELF").is_err());
        for length in 0..bytes.len() {
            assert!(Program::from_bytes(&bytes[..length]).is_err());
        }
        for position in 0..12 {
            let mut malformed = bytes.clone();
            malformed[position] ^= 0x80;
            assert!(Program::from_bytes(&malformed).is_err(), "byte {position}");
        }
    }
}
