//! The operands of every format, in the order of the text: the one table that assembler and disassembler read.
//!
//! Must not know text: it says what stands where, not how it is written. Clause: ISA-3.

use crate::instruction::{Format, Instruction};

/// What kind of thing an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandKind {
    Scalar,
    Vector,
    Predicate,
    Number,
    Label,
    /// A base and an offset: fills two parts, `B` and the immediate.
    Address,
    /// An operation of the co-processor.
    Operation,
}

/// Which part of the instruction an operand fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    A,
    B,
    C,
    Immediate,
}

/// One operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(crate) kind: OperandKind,
    pub(crate) part: Part,
    /// What it is called in messages.
    pub(crate) name: &'static str,
}

const fn scalar(part: Part) -> Operand {
    Operand { kind: OperandKind::Scalar, part, name: "x" }
}

const fn vector(part: Part) -> Operand {
    Operand { kind: OperandKind::Vector, part, name: "b" }
}

const fn predicate(part: Part) -> Operand {
    Operand { kind: OperandKind::Predicate, part, name: "p" }
}

const NUMBER: Operand = Operand { kind: OperandKind::Number, part: Part::Immediate, name: "number" };
const LABEL: Operand = Operand { kind: OperandKind::Label, part: Part::Immediate, name: "label" };
const ADDRESS: Operand = Operand { kind: OperandKind::Address, part: Part::B, name: "[base + offset]" };
const OPERATION: Operand = Operand { kind: OperandKind::Operation, part: Part::A, name: "operation" };

/// The operands of a format.
pub(crate) const fn operands(format: Format) -> &'static [Operand] {
    use Part::{A, B, C, Immediate};
    match format {
        Format::ThreeScalars => const { &[scalar(A), scalar(B), scalar(C)] },
        Format::TwoScalars => const { &[scalar(A), scalar(B)] },
        Format::ScalarShift => const { &[scalar(A), scalar(B), NUMBER] },
        Format::ScalarImmediate => const { &[scalar(A), NUMBER] },
        Format::OneScalar => const { &[scalar(A)] },
        Format::ScalarMemory => const { &[scalar(A), ADDRESS] },
        Format::VectorMemory => const { &[vector(A), ADDRESS] },
        Format::ThreeVectors => const { &[vector(A), vector(B), vector(C)] },
        Format::TwoVectors => const { &[vector(A), vector(B)] },
        Format::VectorShift => const { &[vector(A), vector(B), NUMBER] },
        Format::Blend => {
            const { &[vector(A), Operand { name: "b (mask)", ..vector(B) }, vector(C), vector(Immediate)] }
        }
        Format::ScalarFromVector => const { &[scalar(A), vector(B)] },
        Format::Branch => const { &[scalar(A), scalar(B), LABEL] },
        Format::Jump => const { &[LABEL] },
        Format::JumpAndLink => const { &[scalar(A), LABEL] },
        Format::Predicate => const { &[predicate(A), scalar(B), scalar(C)] },
        Format::Select => const { &[scalar(A), scalar(B), scalar(C), predicate(Immediate)] },
        Format::Coprocessor => {
            const {
                &[
                    OPERATION,
                    Operand { name: "x (descriptor)", ..scalar(B) },
                    Operand { name: "x (result)", ..scalar(C) },
                ]
            }
        }
    }
}

impl Part {
    /// The part's value.
    pub(crate) const fn of(self, instruction: &Instruction) -> i32 {
        match self {
            Part::A => instruction.a as i32,
            Part::B => instruction.b as i32,
            Part::C => instruction.c as i32,
            Part::Immediate => instruction.immediate,
        }
    }

    /// Fills the part with the number of a register.
    pub(crate) const fn fill(self, instruction: &mut Instruction, register: u8) {
        match self {
            Part::A => instruction.a = register,
            Part::B => instruction.b = register,
            Part::C => instruction.c = register,
            Part::Immediate => instruction.immediate = register as i32,
        }
    }
}
