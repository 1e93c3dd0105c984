//! Is this change safe: conditions as clauses, solving with certificates, exact synthesis.
//!
//! The solver ([`solver`]) guesses; what leaves this crate as a fact is a [`bem_checker::Certificate`] that the
//! independent checker accepted, or a model that was evaluated. Must not know games or learning.
//! Clauses: SCC-3, SCC-4, SCC-5, SCC-7, VM-2.

pub mod cegis;
pub mod encode;
pub mod equivalence;
pub mod exact;
pub mod graph;
pub mod obligation;
pub mod outside;
mod proof_log;
pub mod solver;
pub mod specification;
pub mod superoptimize;
mod sweep;
pub mod testing;

pub use bem_checker::{Certificate, Cnf, Literal};
pub use cegis::{CircuitOracle, Oracle, Synthesis, SynthesisOptions, synthesize};
pub use equivalence::{Equivalence, check_equivalence};
pub use obligation::{Verdict, prove_obligation};
pub use solver::{Budget, Outcome, Profile, Solver, solve};
pub use specification::Specification;
pub use superoptimize::{Superoptimized, superoptimize};
