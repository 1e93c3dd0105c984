//! Circuits as files: read and written in public formats and in one of our own.
//!
//! | format | read | write | with memory |
//! |---|---|---|---|
//! | AIGER, ASCII and binary ([`aiger`]) | yes | yes | latches |
//! | BLIF ([`blif`]) | yes | yes | latches |
//! | our own text form `.net` ([`net`]) | yes | yes | `memory` and `next` |
//! | Verilog ([`verilog`]) | | yes | registers |
//! | C and Rust functions on 64 lanes ([`source`]) | | yes | a state structure |
//! | DOT ([`dot`]) | | yes | drawn as boxes |
//!
//! Readers are bounded and never panic; an error names the line and the reason. Must not know what a circuit is for.

pub mod aiger;
pub mod blif;
pub mod dot;
mod model;
mod names;
pub mod net;
pub mod source;
pub mod verilog;

pub use model::{Model, ModelError};

/// The longest text that any reader takes.
pub const TEXT_BYTES_MAX: usize = 1 << 22;

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct FormatError {
    /// The line, counted from 1.
    pub line: usize,
    /// What was wrong with it.
    pub reason: String,
}

impl FormatError {
    pub(crate) fn at(line: usize, reason: impl Into<String>) -> FormatError {
        FormatError { line, reason: reason.into() }
    }
}

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Binary AIGER.
    Aiger,
    /// ASCII AIGER.
    AigerAscii,
    /// Berkeley logic interchange format.
    Blif,
    /// A C function.
    C,
    /// A picture for Graphviz.
    Dot,
    /// Our own text form.
    Net,
    /// A Rust function.
    Rust,
    /// A Verilog module.
    Verilog,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 8] = [
        Format::Aiger,
        Format::AigerAscii,
        Format::Blif,
        Format::C,
        Format::Dot,
        Format::Net,
        Format::Rust,
        Format::Verilog,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Aiger => "aiger",
            Format::AigerAscii => "aiger-ascii",
            Format::Blif => "blif",
            Format::C => "c",
            Format::Dot => "dot",
            Format::Net => "net",
            Format::Rust => "rust",
            Format::Verilog => "verilog",
        }
    }

    /// The usual extension of its files.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Aiger => "aig",
            Format::AigerAscii => "aag",
            Format::Blif => "blif",
            Format::C => "c",
            Format::Dot => "dot",
            Format::Net => "net",
            Format::Rust => "rs",
            Format::Verilog => "v",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Writes a model in this format.
    pub fn write(self, model: &Model) -> Vec<u8> {
        match self {
            Format::Aiger => aiger::write_binary(model),
            Format::AigerAscii => aiger::write_ascii(model).into_bytes(),
            Format::Blif => blif::write(model).into_bytes(),
            Format::C => source::write_c(model).into_bytes(),
            Format::Dot => dot::write(model).into_bytes(),
            Format::Net => net::write(model).into_bytes(),
            Format::Rust => source::write_rust(model).into_bytes(),
            Format::Verilog => verilog::write(model).into_bytes(),
        }
    }
}

/// Reads a circuit in any readable format, told apart by how the file begins.
pub fn read(bytes: &[u8]) -> Result<Model, FormatError> {
    if bytes.starts_with(b"aag ") || bytes.starts_with(b"aig ") {
        return aiger::read(bytes);
    }
    let text = text(bytes)?;
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    if first.is_some_and(|line| line.starts_with('.')) { blif::read(text) } else { net::read(text) }
}

/// The bytes as text of bounded length.
fn text(bytes: &[u8]) -> Result<&str, FormatError> {
    check_length(bytes)?;
    core::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        FormatError::at(line, "the file is neither text nor binary AIGER")
    })
}

fn check_length(bytes: &[u8]) -> Result<(), FormatError> {
    if TEXT_BYTES_MAX < bytes.len() {
        let reason = format!("the file has {} bytes, more than the bound of {TEXT_BYTES_MAX}", bytes.len());
        return Err(FormatError::at(1, reason));
    }
    Ok(())
}

/// Orders definitions so that each comes after those it refers to. `references(i)` are the definitions that `i` uses.
/// The error is a definition that depends on itself.
fn sort_definitions<'a>(
    count: usize,
    references: impl Fn(usize) -> &'a [usize],
) -> Result<Vec<usize>, usize> {
    /// How far the walk from the outputs has come with a gate.
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; count];
    let mut order = Vec::with_capacity(count);
    for root in 0..count {
        // Each entry: a definition and how many of its references have been followed.
        let mut stack = vec![(root, 0)];
        while let Some((definition, followed)) = stack.pop() {
            if followed == 0 {
                if marks[definition] != Mark::New {
                    continue;
                }
                marks[definition] = Mark::Open;
            }
            match references(definition).get(followed) {
                None => {
                    marks[definition] = Mark::Done;
                    order.push(definition);
                }
                Some(next) => {
                    stack.push((definition, followed + 1));
                    match marks[*next] {
                        Mark::New => stack.push((*next, 0)),
                        Mark::Open => return Err(*next),
                        Mark::Done => {}
                    }
                }
            }
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests;
