//! The small proof checker that users must trust; it cannot see the solver.
//!
//! A solver that says "unsatisfiable" is a guesser. It must hand over a [`Certificate`]: a list of clauses, each
//! of which follows from the ones before it by unit propagation, down to the empty clause. [`lrat`] is the whole
//! argument, in one short file; [`drat`] only finds the hints that a proof leaves out, and then asks [`lrat`].
//! Clauses: SCC-4. Decisions: D-20, D-21.

pub mod certificate;
pub mod cnf;
pub mod drat;
pub mod lrat;
pub mod lrat_reader;
pub mod tidy;

pub use certificate::Certificate;
pub use cnf::{Cnf, Literal};
