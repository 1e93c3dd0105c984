//! Removes from a proof the hints that it does not need, for checkers that allow none.
//!
//! Not trusted: the result is a proof like any other and is checked like any other. Clauses: SCC-4.

use crate::cnf::Cnf;
use crate::lrat::{CheckError, Checker};
use crate::lrat_reader::{StepKind, StepReader, StepWriter};

/// The same proof in binary form, without superfluous hints.
pub fn tidy(cnf: &Cnf, proof: &[u8]) -> Result<Vec<u8>, CheckError> {
    let mut reader = StepReader::new(proof);
    let mut writer = StepWriter::new();
    let start = reader.place();
    let refused = |place, reason| CheckError::Step { place, reason };
    let mut checker = Checker::new(cnf, proof.len().max(1 << 16)).map_err(|reason| refused(start, reason))?;
    loop {
        let place = reader.place();
        match reader.next()? {
            None => return Ok(writer.into_bytes()),
            Some(StepKind::Add { id }) => {
                checker
                    .add(id, reader.clause(), reader.numbers())
                    .map_err(|reason| refused(place, reason))?;
                let needed = |position: &usize| checker.superfluous().binary_search(position).is_err();
                let hints = (0..reader.numbers().len()).filter(needed);
                writer.add(id, reader.clause(), hints.map(|position| reader.numbers()[position] as u64));
            }
            Some(StepKind::Delete) => {
                for id in reader.numbers() {
                    checker.delete(*id).map_err(|reason| refused(place, reason))?;
                }
                writer.delete(reader.numbers().iter().map(|id| *id as u64));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{lrat, lrat_reader};

    #[test]
    fn repeated_and_late_hints_go() {
        let cnf = Cnf::from_dimacs(b"p cnf 2 4\n1 2 0\n1 -2 0\n-1 2 0\n-1 -2 0\n").unwrap();
        let proof = b"5 1 0 1 1 2 3 0\n5 d 1 2 0\n6 0 5 3 4 0\n";
        assert_eq!(lrat::check(&cnf, proof).unwrap().superfluous, 2);
        let tidied = tidy(&cnf, proof).unwrap();
        assert_eq!(lrat_reader::to_text(&tidied).unwrap(), "5 1 0 1 2 0\n5 d 1 2 0\n6 0 5 3 4 0\n");
        assert_eq!(lrat::check(&cnf, &tidied).unwrap().superfluous, 0);
    }
}
