//! The control core: instructions, assembler, interpreter and programs.
//!
//! Must not know games or learning; what it computes is in its memory.

pub mod assemble;

pub mod disassemble;
pub mod hoare;
pub mod instruction;
pub mod interpreter;
pub mod memory;
pub mod program;
pub mod trap;
