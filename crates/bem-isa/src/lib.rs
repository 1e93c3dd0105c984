//! The control core: instructions, assembler, interpreter and programs.
//!
//! Must not know games or learning; what it computes is in its memory. [`programs`] lays a family's words down for
//! the core, [`coprocessor`] answers its calls, [`tool_memory`] is what it sees of a tool bus, and [`world`] lets a program be a world.

pub mod assemble;
pub mod circuit_code;
pub mod coprocessor;
pub mod disassemble;
pub mod hoare;
pub mod instruction;
pub mod interpreter;
pub mod memory;
mod operand;
pub mod program;
pub mod programs;
pub mod tool_memory;
pub mod trap;
pub mod world;
