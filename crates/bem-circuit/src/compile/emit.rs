//! The few AVX2 instructions that circuits need, in their VEX encoding.
//!
//! All operate on 256-bit registers. Memory is addressed as base register plus displacement, one base for each kind
//! of [`Place`]. Must not know which value is where. Reference: Intel SDM volume 2, section 2.3 (VEX prefix).

use super::lower::{Operation, Place};

/// A vector register, 0 to 15.
pub(super) type Register = u8;

/// How many vector registers there are.
pub(super) const REGISTERS: usize = 16;

/// The second source of an instruction.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A vector register.
    Register(Register),
    /// A word in memory.
    Memory(Place),
}

/// Machine code under construction.
#[derive(Default)]
pub(super) struct Code {
    bytes: Vec<u8>,
}

impl Code {
    /// An empty function with room for about this many instructions.
    pub fn with_capacity(instructions: usize) -> Code {
        Code { bytes: Vec::with_capacity(9 * instructions + 16) }
    }

    /// `destination := first op second`; for [`Operation::NotAnd`] it is the first source that is inverted.
    pub fn combine(&mut self, op: Operation, destination: Register, first: Register, second: Source) {
        let opcode = match op {
            Operation::And => 0xDB,
            Operation::NotAnd => 0xDF,
            Operation::Or => 0xEB,
            Operation::Xor => 0xEF,
        };
        // The short prefix cannot name a high register as second source, so the high one goes first if it may.
        let (first, second) = match second {
            Source::Register(other) if 8 <= other && first < 8 && op != Operation::NotAnd => {
                (other, Source::Register(first))
            }
            _ => (first, second),
        };
        self.instruction(opcode, destination, first, second);
    }

    /// `destination := [place]` (vmovdqa; every word is 32-byte aligned).
    pub fn load(&mut self, destination: Register, place: Place) {
        self.instruction(0x6F, destination, 0, Source::Memory(place));
    }

    /// `[place] := source` (vmovdqa).
    pub fn store(&mut self, source: Register, place: Place) {
        self.instruction(0x7F, source, 0, Source::Memory(place));
    }

    /// The end of the function: clear the upper halves, so that code after it runs at full speed, and return.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend([0xC5, 0xF8, 0x77, 0xC3]);
        self.bytes
    }

    /// `VEX.256.66.0F opcode /r`: `register` is the ModRM register, `first` the VEX operand.
    fn instruction(&mut self, opcode: u8, register: Register, first: Register, second: Source) {
        let low = u8::from(register < 8) << 7;
        // Inverted first source, 256 bits, prefix 66.
        let operand = (!first & 15) << 3 | 0b101;
        let modrm_register = (register & 7) << 3;
        match second {
            Source::Register(other) => {
                if other < 8 {
                    self.bytes.extend([0xC5, low | operand]);
                } else {
                    self.bytes.extend([0xC4, low | 0b0100_0001, operand]);
                }
                self.bytes.extend([opcode, 0xC0 | modrm_register | other & 7]);
            }
            Source::Memory(place) => {
                let (base, index) = address(place);
                let displacement = 32 * index;
                self.bytes.extend([0xC5, low | operand, opcode]);
                match displacement {
                    0 => self.bytes.push(modrm_register | base),
                    1..128 => self.bytes.extend([0x40 | modrm_register | base, displacement as u8]),
                    _ => {
                        self.bytes.push(0x80 | modrm_register | base);
                        self.bytes.extend(displacement.to_le_bytes());
                    }
                }
            }
        }
    }
}

/// Base register and word index of a place. The function's arguments are `rdi` (state), `rsi` (mask), `rdx`
/// (results) and `rcx` (working memory), as the System V calling convention has them.
fn address(place: Place) -> (u8, u32) {
    const RCX: u8 = 1;
    const RDX: u8 = 2;
    const RSI: u8 = 6;
    const RDI: u8 = 7;
    match place {
        Place::Plane(plane) => (RDI, u32::from(plane)),
        Place::Mask => (RSI, 0),
        Place::Result(result) => (RDX, u32::from(result)),
        Place::Spill(slot) => (RCX, slot),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_match_the_assembler() {
        // Each line was assembled and disassembled with GNU binutils.
        let mut code = Code::default();
        code.combine(Operation::And, 1, 2, Source::Register(3)); // vpand ymm1, ymm2, ymm3
        code.combine(Operation::NotAnd, 9, 2, Source::Register(12)); // vpandn ymm9, ymm2, ymm12
        code.combine(Operation::Xor, 9, 2, Source::Register(12)); // vpxor ymm9, ymm12, ymm2
        code.combine(Operation::Or, 0, 15, Source::Memory(Place::Plane(2))); // vpor ymm0, ymm15, [rdi+64]
        code.load(8, Place::Mask); // vmovdqa ymm8, [rsi]
        code.store(3, Place::Result(4)); // vmovdqa [rdx+128], ymm3
        code.store(14, Place::Spill(1)); // vmovdqa [rcx+32], ymm14
        let expected = [
            &[0xC5, 0xED, 0xDB, 0xCB][..],
            &[0xC4, 0x41, 0x6D, 0xDF, 0xCC],
            &[0xC5, 0x1D, 0xEF, 0xCA],
            &[0xC5, 0x85, 0xEB, 0x47, 0x40],
            &[0xC5, 0x7D, 0x6F, 0x06],
            &[0xC5, 0xFD, 0x7F, 0x9A, 0x80, 0, 0, 0],
            &[0xC5, 0x7D, 0x7F, 0x71, 0x20],
            &[0xC5, 0xF8, 0x77, 0xC3],
        ];
        assert_eq!(code.finish(), expected.concat());
    }
}
