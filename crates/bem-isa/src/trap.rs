//! Why a program stopped before its end: numbered causes, never a panic. Clause: ISA-2.

/// The cause of a trap. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[repr(u8)]
pub enum Cause {
    /// The bytes at this place are no instruction.
    #[error("the bytes are no instruction")]
    BadInstruction = 1,
    /// The program counter left the program.
    #[error("the program counter left the program")]
    BadTarget = 2,
    /// A scalar address that is no multiple of 8, or a vector address that is no multiple of 32.
    #[error("the address is not aligned")]
    Misaligned = 3,
    /// The address lies in no segment this program may touch.
    #[error("the address is outside the segments this program may touch")]
    OutOfSegment = 4,
    /// The segment may be read but not written.
    #[error("the segment is read-only for this program")]
    ReadOnly = 5,
    /// The step budget is used up.
    #[error("the step budget is used up")]
    OutOfSteps = 6,
    /// No co-processor answers this operation here.
    #[error("no co-processor answers this operation")]
    NoCoprocessor = 7,
    /// The descriptor given to a co-processor makes no sense.
    #[error("the co-processor's descriptor makes no sense")]
    BadDescriptor = 8,
}

impl Cause {
    /// Every cause, in order of its number.
    pub const ALL: [Cause; 8] = [
        Cause::BadInstruction,
        Cause::BadTarget,
        Cause::Misaligned,
        Cause::OutOfSegment,
        Cause::ReadOnly,
        Cause::OutOfSteps,
        Cause::NoCoprocessor,
        Cause::BadDescriptor,
    ];

    /// The cause with this number.
    pub fn from_code(code: u8) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| *cause as u8 == code)
    }
}

/// A trap: what happened and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("trap {} at instruction {pc}: {cause}", *cause as u8)]
pub struct Trap {
    /// Position of the instruction that trapped.
    pub pc: u32,
    /// Why.
    pub cause: Cause,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_come_back_from_their_numbers() {
        for (position, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, position + 1);
            assert_eq!(Cause::from_code(cause as u8), Some(cause));
        }
        assert_eq!(Cause::from_code(0), None);
    }
}
