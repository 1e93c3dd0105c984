//! Brute force, and how to call outside tools.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

pub use bem_prover::testing::*;
use bem_prover::{Cnf, Literal};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub fn literal(value: i64) -> Literal {
    Literal::from_dimacs(value).unwrap()
}

/// Whether a formula of at most 24 variables has a model, by trying all assignments.
pub fn has_model(cnf: &Cnf) -> bool {
    assert!(cnf.variables() <= 24);
    let clauses: Vec<(u32, u32)> = cnf
        .clauses()
        .map(|clause| {
            let bits = |negative: bool| {
                let chosen = clause.iter().filter(|literal| literal.is_negative() == negative);
                chosen.fold(0, |bits, literal| bits | 1 << (literal.variable() - 1))
            };
            (bits(false), bits(true))
        })
        .collect();
    let holds = |model: u32| {
        clauses.iter().all(|(positive, negative)| model & positive != 0 || !model & negative != 0)
    };
    (0..1u32 << cnf.variables()).any(holds)
}

/// Runs a tool of the system; a missing one is a failure that says what to do.
pub fn run_tool(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap_or_else(|error| {
        panic!("{program} cannot be started ({error}): run `cargo xtask test`, which installs it")
    })
}

/// A file of the repository.
pub fn repository_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
