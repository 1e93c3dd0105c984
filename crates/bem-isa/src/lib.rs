//! The control core: instructions, assembler, interpreter and programs.
