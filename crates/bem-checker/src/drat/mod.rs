//! Proofs without hints (DRUP, DRAT): finds the hints by its own unit propagation and writes an LRAT proof.
//!
//! Nothing here is trusted: [`check`] hands the LRAT proof to [`crate::lrat`], and that decides. A step must follow
//! by unit propagation; one that needs the RAT rule is rejected. Clauses are deleted by their literals; as in
//! drat-trim, deleting a clause that currently forces a literal, or one that does not exist, is passed over,
//! which only leaves more to propagate with. Clauses: SCC-4.

mod elaborator;
mod reader;

use self::elaborator::Elaborator;
use self::reader::{DratReader, DratStepKind};
use crate::cnf::Cnf;
use crate::lrat::{self, Accepted, CheckError, Rejection};

/// Checks that the formula has no model.
pub fn check(cnf: &Cnf, proof: &[u8]) -> Result<Accepted, CheckError> {
    lrat::check(cnf, &elaborate(cnf, proof)?)
}

/// The same proof with hints, in binary LRAT.
pub fn elaborate(cnf: &Cnf, proof: &[u8]) -> Result<Vec<u8>, CheckError> {
    let mut reader = DratReader::new(proof);
    let mut elaborator = Elaborator::new(cnf);
    loop {
        let place = reader.place();
        if elaborator.refuted {
            return Ok(elaborator.writer.into_bytes());
        }
        match reader.next()? {
            None => {
                let reason = Rejection::NoConclusion("the empty clause");
                return Err(CheckError::Step { place, reason });
            }
            Some(DratStepKind::Add) => {
                let hints = elaborator.refute_negation(&reader.clause);
                let reason = Rejection::NoContradiction;
                let hints = hints.ok_or(CheckError::Step { place, reason })?;
                elaborator.learn(&reader.clause, &hints);
            }
            Some(DratStepKind::Delete) => elaborator.delete(&reader.clause),
        }
    }
}

#[cfg(test)]
mod tests;
