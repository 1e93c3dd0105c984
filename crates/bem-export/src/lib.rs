//! A learned policy as a program for use elsewhere: C, Rust, Python, JavaScript and Verilog, each with a self-test.
//!
//! Every program takes *all* observation bits of the world, in the world's own order, keeps the policy's memory itself
//! and has a reset for the start of an episode. Its first lines say where it comes from. The self-test beside it plays
//! [`vectors`] that the circuit itself has answered, and [`rows()`] of named values where features have names. Must not know runs, files or learning: who calls says where a policy
//! comes from. Clauses: GLE-9, VM-1.

mod c;
mod expression;
mod javascript;
mod named;
mod python;
mod rows;
mod rust;
mod vectors;
mod verilog;

pub use rows::rows;
pub use vectors::{VECTORS_DEFAULT, VECTORS_MAX, vectors};

use bem_data::Encoder;
use bem_synth::policy::Policy;

/// A language that programs are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// A C99 header that needs no other file.
    C,
    /// A Rust module without dependencies, fit for `no_std`.
    Rust,
    /// A Python module; a function over many rows at once where numpy is installed.
    Python,
    /// An ECMAScript module.
    JavaScript,
    /// A Verilog-2001 module.
    Verilog,
}

impl Language {
    /// All languages.
    pub const ALL: [Language; 5] =
        [Language::C, Language::Rust, Language::Python, Language::JavaScript, Language::Verilog];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Language::C => "c",
            Language::Rust => "rust",
            Language::Python => "python",
            Language::JavaScript => "javascript",
            Language::Verilog => "verilog",
        }
    }

    /// The language with this name.
    pub fn from_name(name: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|language| language.name() == name)
    }

    /// The usual ending of its files.
    pub const fn extension(self) -> &'static str {
        match self {
            Language::C => "h",
            Language::Rust => "rs",
            Language::Python => "py",
            Language::JavaScript => "mjs",
            Language::Verilog => "v",
        }
    }

    /// The usual ending of the self-test.
    pub const fn test_extension(self) -> &'static str {
        match self {
            Language::C => "c",
            other => other.extension(),
        }
    }

    /// Whether its programs take named values; a module of Verilog takes bits.
    pub const fn takes_names(self) -> bool {
        !matches!(self, Language::Verilog)
    }

    /// How a line of comment starts.
    const fn comment(self) -> &'static str {
        match self {
            Language::C | Language::JavaScript | Language::Verilog => "// ",
            Language::Rust => "//! ",
            Language::Python => "# ",
        }
    }
}

/// A policy that becomes a program.
#[derive(Clone, Copy, Debug)]
pub struct Program<'p> {
    /// What it does.
    pub policy: &'p Policy,
    /// Bits that the world shows; the policy may read fewer.
    pub observation_bits: usize,
    /// No episode of the world takes more steps; unknown for a circuit without its world.
    pub horizon: Option<u32>,
    /// What the program is called.
    pub name: &'p str,
    /// How named features become observation bits, where they are named.
    pub encoder: Option<&'p Encoder>,
    /// The first lines: where it comes from, what was measured, what to look out for.
    pub provenance: &'p [String],
}

/// The names of the files that belong together, as they refer to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileNames {
    /// The program.
    pub program: String,
    /// Its self-test.
    pub test: String,
    /// The vectors that the self-test plays.
    pub vectors: String,
    /// The rows of named values that it plays too, where features have names and the language compares numbers.
    pub rows: String,
}

impl FileNames {
    /// The names that go with a program's file.
    pub fn of(language: Language, program: &str) -> FileNames {
        let stem = program.rsplit_once('.').map_or(program, |(stem, _)| stem);
        FileNames {
            program: program.to_string(),
            test: format!("{stem}_test.{}", language.test_extension()),
            vectors: format!("{stem}_vectors.txt"),
            rows: format!("{stem}_rows.txt"),
        }
    }

    /// The command that runs the self-test in the folder of the files.
    pub fn command(&self, language: Language) -> String {
        let FileNames { test, program, .. } = self;
        let stem = test.rsplit_once('.').map_or(test.as_str(), |(stem, _)| stem);
        match language {
            Language::C => format!("cc -std=c99 {test} -o {stem} && ./{stem}"),
            Language::Rust => format!("rustc --edition 2021 {test} -o {stem} && ./{stem}"),
            Language::Python => format!("python3 {test}"),
            Language::JavaScript => format!("node {test}"),
            Language::Verilog => format!("iverilog -o {stem} {program} {test} && ./{stem}"),
        }
    }
}

/// The program.
pub fn write(language: Language, program: &Program<'_>) -> String {
    match language {
        Language::C => c::program(program),
        Language::Rust => rust::program(program),
        Language::Python => python::program(program),
        Language::JavaScript => javascript::program(program),
        Language::Verilog => verilog::program(program),
    }
}

/// The self-test: it plays the vectors, and rows of named values where there are some, prints one line that ends in `ok`, or names the first difference and fails.
pub fn self_test(language: Language, program: &Program<'_>, files: &FileNames) -> String {
    match language {
        Language::C => c::self_test(program, files),
        Language::Rust => rust::self_test(program, files),
        Language::Python => python::self_test(program, files),
        Language::JavaScript => javascript::self_test(program, files),
        Language::Verilog => verilog::self_test(program, files),
    }
}

/// The lines of provenance as comments of a text format that takes `#` or `//`.
pub fn comments(lines: &[String], sign: &str) -> String {
    lines.iter().map(|line| format!("{sign}{}\n", plain(line))).collect()
}

fn header(language: Language, program: &Program<'_>) -> String {
    let features = program.encoder.map_or_else(Vec::new, Encoder::lines);
    comments(program.provenance, language.comment()) + &comments(&features, language.comment())
}

/// A line that ends no comment early and goes on in no other line, whatever a task is called.
fn plain(line: &str) -> String {
    let visible = line.chars().map(|sign| if sign.is_control() { ' ' } else { sign });
    visible.collect::<String>().replace('\\', "/").replace("*/", "* /").replace("??", "? ?")
}

/// The name as an identifier: letters, digits and underscores, not starting with a digit.
fn identifier(name: &str) -> String {
    let clean: String =
        name.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '_' }).collect();
    if clean.starts_with(|sign: char| sign.is_ascii_alphabetic()) { clean } else { format!("policy_{clean}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_cannot_break_out_of_its_comment() {
        let lines = ["task: evil */ int x; \\".to_string(), "a\nb ??/".to_string()];
        assert_eq!(comments(&lines, "// "), "// task: evil * / int x; /\n// a b ? ?/\n");
        assert_eq!(identifier("7 up"), "policy_7_up");
        assert_eq!(identifier("parity/0"), "parity_0");
    }

    #[test]
    fn files_are_named_after_the_program() {
        let names = FileNames::of(Language::C, "thermostat.h");
        assert_eq!(
            (names.test.as_str(), names.vectors.as_str()),
            ("thermostat_test.c", "thermostat_vectors.txt")
        );
        for language in Language::ALL {
            assert_eq!(Language::from_name(language.name()), Some(language));
        }
    }
}
