//! The instruction set: one table that the interpreter, assembler, disassembler and Hoare checker all read.
//!
//! An instruction is eight bytes: opcode, three register numbers, and a signed 32-bit immediate, little-endian.
//! Fields that an instruction does not use are zero, so that a program has one binary spelling.
//! Must not know what programs do. Clauses: ISA-1, ISA-2, ISA-3; decisions D-15, D-37.

/// How the operands of an instruction are written, and which of its fields they fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `rd, rs1, rs2`
    ThreeScalars,
    /// `rd, rs1`
    TwoScalars,
    /// `rd, rs1, amount` with an amount from 0 to 63
    ScalarShift,
    /// `rd, value`
    ScalarImmediate,
    /// `rd`
    OneScalar,
    /// `rd, [base + offset]`
    ScalarMemory,
    /// `bd, [base + offset]`
    VectorMemory,
    /// `bd, bs1, bs2`
    ThreeVectors,
    /// `bd, bs`
    TwoVectors,
    /// `bd, bs, amount` with an amount from 0 to 255
    VectorShift,
    /// `bd, mask, a, b`: lanes of `a` where the mask is set, of `b` elsewhere
    Blend,
    /// `rd, bs`
    ScalarFromVector,
    /// `rs1, rs2, label`
    Branch,
    /// `label`
    Jump,
    /// `rd, label`
    JumpAndLink,
    /// `pd, rs1, rs2`
    Predicate,
    /// `rd, rs1, rs2, p`: the first where the predicate holds, else the second
    Select,
    /// `operation, rs, rd`
    Coprocessor,
}

macro_rules! instructions {
    ($($name:ident = $code:literal, $mnemonic:literal, $format:ident, $about:literal;)*) => {
        /// What an instruction does. The numbers are stored and never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Opcode {
            $(#[doc = $about] $name = $code,)*
        }

        impl Opcode {
            /// Every opcode, in order of the table.
            pub const ALL: &[Opcode] = &[$(Opcode::$name),*];

            /// The opcode with this number.
            pub const fn from_code(code: u8) -> Option<Opcode> {
                match code {
                    $($code => Some(Opcode::$name),)*
                    _ => None,
                }
            }

            /// Its name in assembly.
            pub const fn mnemonic(self) -> &'static str {
                match self { $(Opcode::$name => $mnemonic,)* }
            }

            /// How its operands are written.
            pub const fn format(self) -> Format {
                match self { $(Opcode::$name => Format::$format,)* }
            }

            /// What it does, in one line.
            pub const fn about(self) -> &'static str {
                match self { $(Opcode::$name => $about,)* }
            }
        }
    };
}

instructions! {
    Add = 0x01, "add", ThreeScalars, "sum modulo 2^64";
    Sub = 0x02, "sub", ThreeScalars, "difference modulo 2^64";
    MulLo = 0x03, "mullo", ThreeScalars, "low 64 bits of the product";
    MulHu = 0x04, "mulhu", ThreeScalars, "high 64 bits of the unsigned product";
    DivU = 0x05, "divu", ThreeScalars, "unsigned quotient; all ones when the divisor is zero";
    And = 0x06, "and", ThreeScalars, "bitwise and";
    Or = 0x07, "or", ThreeScalars, "bitwise or";
    Xor = 0x08, "xor", ThreeScalars, "bitwise exclusive or";
    Not = 0x09, "not", TwoScalars, "bitwise complement";
    Shl = 0x0A, "shl", ScalarShift, "shift left by a constant";
    Shr = 0x0B, "shr", ScalarShift, "shift right by a constant, zeros come in";
    Sar = 0x0C, "sar", ScalarShift, "shift right by a constant, the sign comes in";
    ShlV = 0x0D, "shlv", ThreeScalars, "shift left by the low six bits of a register";
    ShrV = 0x0E, "shrv", ThreeScalars, "shift right by the low six bits of a register";
    Clz = 0x0F, "clz", TwoScalars, "leading zeros; 64 for zero";
    LoadImmediate = 0x10, "li", ScalarImmediate, "a signed 32-bit constant";
    LoadUpper = 0x11, "lih", ScalarImmediate, "replaces the high 32 bits by a constant";
    AddImmediate = 0x12, "addi", ScalarShift, "sum with a signed 32-bit constant";
    Load = 0x18, "ld", ScalarMemory, "loads a word; the address must be a multiple of 8";
    Store = 0x19, "st", ScalarMemory, "stores a word; the address must be a multiple of 8";
    VectorLoad = 0x20, "bld", VectorMemory, "loads 256 lanes; the address must be a multiple of 32";
    VectorStore = 0x21, "bst", VectorMemory, "stores 256 lanes; the address must be a multiple of 32";
    VectorAnd = 0x22, "b_and", ThreeVectors, "lanewise and";
    VectorOr = 0x23, "b_or", ThreeVectors, "lanewise or";
    VectorXor = 0x24, "b_xor", ThreeVectors, "lanewise exclusive or";
    VectorNot = 0x25, "b_not", TwoVectors, "lanewise complement";
    VectorShl = 0x26, "b_shl", VectorShift, "moves every lane up; zeros come in";
    VectorShr = 0x27, "b_shr", VectorShift, "moves every lane down; zeros come in";
    VectorRol = 0x28, "b_rol", VectorShift, "rotates the lanes up";
    VectorRor = 0x29, "b_ror", VectorShift, "rotates the lanes down";
    VectorBlend = 0x2A, "b_blend", Blend, "chooses lane by lane between two vectors";
    VectorPopcount = 0x2B, "b_popcnt", ScalarFromVector, "how many lanes are set";
    VectorParity = 0x2C, "b_parity", ScalarFromVector, "whether an odd number of lanes is set";
    BranchEqual = 0x30, "beq", Branch, "jumps when equal";
    BranchNotEqual = 0x31, "bne", Branch, "jumps when not equal";
    BranchLess = 0x32, "blt", Branch, "jumps when the first is smaller, signed";
    BranchNotLess = 0x33, "bge", Branch, "jumps when the first is not smaller, signed";
    Jump = 0x34, "jmp", Jump, "jumps";
    JumpAndLink = 0x35, "jal", JumpAndLink, "jumps and leaves the next position in a register";
    Return = 0x36, "ret", OneScalar, "jumps to the position in a register";
    PredicateEqual = 0x40, "peq", Predicate, "sets a predicate to whether two are equal";
    PredicateLess = 0x41, "plt", Predicate, "sets a predicate to whether the first is smaller, signed";
    PredicateBelow = 0x42, "pltu", Predicate, "sets a predicate to whether the first is smaller, unsigned";
    Select = 0x43, "sel", Select, "chooses one of two by a predicate";
    Random = 0x48, "rand", OneScalar, "advances the seed and gives 64 random bits";
    Status = 0x49, "rdsr", OneScalar, "reads the status register: the predicates, lowest first";
    Coprocessor = 0x50, "cop", Coprocessor, "calls a co-processor with a descriptor in memory";
}

/// Registers of each kind.
pub const SCALARS: u8 = 32;
/// Vector registers of 256 lanes.
pub const VECTORS: u8 = 32;
/// Predicate registers.
pub const PREDICATES: u8 = 16;

/// Bases that an address can start from besides the scalar registers, as numbers from 32 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the specification's own")]
pub enum SegmentBase {
    State = 32,
    Shared = 33,
    Expert = 34,
    Cfg = 35,
    Trace = 36,
    Proof = 37,
    Work = 38,
    Teach = 39,
    Bandit = 40,
    Env = 41,
}

impl SegmentBase {
    /// Every base with its name in assembly.
    pub const ALL: [(SegmentBase, &'static str); 10] = [
        (SegmentBase::State, "sb_state"),
        (SegmentBase::Shared, "sb_shared"),
        (SegmentBase::Expert, "sb_expert"),
        (SegmentBase::Cfg, "sb_cfg"),
        (SegmentBase::Trace, "sb_trace"),
        (SegmentBase::Proof, "sb_proof"),
        (SegmentBase::Work, "sb_work"),
        (SegmentBase::Teach, "sb_teach"),
        (SegmentBase::Bandit, "sb_bandit"),
        (SegmentBase::Env, "sb_env"),
    ];
}

/// Base registers of all kinds: scalars, then segment bases.
pub const BASES: u8 = SCALARS + SegmentBase::ALL.len() as u8;

/// What a co-processor is asked for. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the specification's own")]
pub enum Operation {
    AnnQuery = 1,
    SatCheck = 2,
    ProofCheck = 3,
    HoareCheck = 4,
    Cegis = 5,
    Hash = 6,
    Log = 7,
    Teach = 8,
    ToolEnqueue = 9,
}

impl Operation {
    /// Every operation with its name in assembly.
    pub const ALL: [(Operation, &'static str); 9] = [
        (Operation::AnnQuery, "ANN_QUERY"),
        (Operation::SatCheck, "SAT_CHECK"),
        (Operation::ProofCheck, "PROOF_CHECK"),
        (Operation::HoareCheck, "HOARE_CHECK"),
        (Operation::Cegis, "CEGIS"),
        (Operation::Hash, "HASH"),
        (Operation::Log, "LOG"),
        (Operation::Teach, "TEACH"),
        (Operation::ToolEnqueue, "TOOL_ENQUEUE"),
    ];
}

/// One instruction, with fields in range for its format: only [`Instruction::decode`] and the assembler make them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub opcode: Opcode,
    /// First register.
    pub a: u8,
    /// Second register.
    pub b: u8,
    /// Third register.
    pub c: u8,
    /// Constant, offset, amount, target, or fourth register.
    pub immediate: i32,
}

/// The number of values a field may take in a format: registers a, b, c, and the range of the immediate.
const fn ranges(format: Format) -> ([u8; 3], (i32, i32)) {
    const ANY: (i32, i32) = (i32::MIN, i32::MAX);
    const NONE: (i32, i32) = (0, 0);
    const TARGET: (i32, i32) = (0, i32::MAX);
    match format {
        Format::ThreeScalars => ([SCALARS, SCALARS, SCALARS], NONE),
        Format::TwoScalars => ([SCALARS, SCALARS, 1], NONE),
        Format::ScalarShift => ([SCALARS, SCALARS, 1], ANY),
        Format::ScalarImmediate => ([SCALARS, 1, 1], ANY),
        Format::OneScalar => ([SCALARS, 1, 1], NONE),
        Format::ScalarMemory => ([SCALARS, BASES, 1], ANY),
        Format::VectorMemory => ([VECTORS, BASES, 1], ANY),
        Format::ThreeVectors => ([VECTORS, VECTORS, VECTORS], NONE),
        Format::TwoVectors => ([VECTORS, VECTORS, 1], NONE),
        Format::VectorShift => ([VECTORS, VECTORS, 1], (0, 255)),
        Format::Blend => ([VECTORS, VECTORS, VECTORS], (0, VECTORS as i32 - 1)),
        Format::ScalarFromVector => ([SCALARS, VECTORS, 1], NONE),
        Format::Branch => ([SCALARS, SCALARS, 1], TARGET),
        Format::Jump => ([1, 1, 1], TARGET),
        Format::JumpAndLink => ([SCALARS, 1, 1], TARGET),
        Format::Predicate => ([PREDICATES, SCALARS, SCALARS], NONE),
        Format::Select => ([SCALARS, SCALARS, SCALARS], (0, PREDICATES as i32 - 1)),
        Format::Coprocessor => ([10, SCALARS, SCALARS], NONE),
    }
}

impl Instruction {
    /// The range of the immediate, which for shifts is narrower than their format's.
    pub const fn immediate_range(opcode: Opcode) -> (i32, i32) {
        match opcode {
            Opcode::Shl | Opcode::Shr | Opcode::Sar => (0, 63),
            _ => ranges(opcode.format()).1,
        }
    }

    /// Whether every field is in range for the opcode.
    pub const fn is_valid(&self) -> bool {
        let ([a, b, c], _) = ranges(self.opcode.format());
        let (low, high) = Instruction::immediate_range(self.opcode);
        let named = !matches!(self.opcode, Opcode::Coprocessor) || self.a != 0;
        self.a < a && self.b < b && self.c < c && low <= self.immediate && self.immediate <= high && named
    }

    /// The eight bytes.
    pub const fn encode(&self) -> [u8; 8] {
        let i = self.immediate.to_le_bytes();
        [self.opcode as u8, self.a, self.b, self.c, i[0], i[1], i[2], i[3]]
    }

    /// Reads eight bytes; `None` for an unknown opcode or a field out of range.
    pub fn decode(bytes: [u8; 8]) -> Option<Instruction> {
        let [code, a, b, c, i0, i1, i2, i3] = bytes;
        let immediate = i32::from_le_bytes([i0, i1, i2, i3]);
        let instruction = Instruction { opcode: Opcode::from_code(code)?, a, b, c, immediate };
        instruction.is_valid().then_some(instruction)
    }

    /// The instruction it may continue at other than the next one, if it is a jump with a fixed target.
    pub const fn target(&self) -> Option<u32> {
        match self.opcode.format() {
            Format::Branch | Format::Jump | Format::JumpAndLink => Some(self.immediate as u32),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_of_the_specification_is_in_the_table() {
        let listed = "add sub mullo and or xor shl shr sar not ld st bld bst b_and b_or b_xor b_not b_shl b_shr \
                      b_rol b_ror b_blend b_popcnt b_parity beq bne blt bge jmp jal ret cop rand mulhu divu clz \
                      shlv shrv";
        for name in listed.split_whitespace() {
            assert!(Opcode::ALL.iter().any(|opcode| opcode.mnemonic() == name), "{name}");
        }
    }

    #[test]
    fn bytes_come_back_or_are_refused() {
        let mut valid = 0;
        for code in 0..=255u8 {
            for field in [0u8, 1, 9, 15, 16, 31, 32, 41, 42, 255] {
                for immediate in [0i32, 1, -1, 63, 64, 255, 256, i32::MAX, i32::MIN] {
                    let i = immediate.to_le_bytes();
                    let bytes = [code, field, 0, 0, i[0], i[1], i[2], i[3]];
                    if let Some(instruction) = Instruction::decode(bytes) {
                        assert_eq!(instruction.encode(), bytes);
                        valid += 1;
                    }
                }
            }
        }
        assert!(500 < valid);
    }
}
