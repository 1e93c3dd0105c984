//! The proof checker: is every clause of this proof a consequence of the formula and of the clauses before it?
//!
//! Read this file if you want to know what "proven" means here. A proof is a list of steps. A step adds a clause
//! `C` and names earlier clauses, its hints. It is accepted by reverse unit propagation: suppose every literal
//! of `C` is false; each hint must then have exactly one literal that is not yet false, which therefore has to
//! be true; and some hint must end up with none, a contradiction. So `C` follows. A hint that holds already is
//! passed over, because solvers repeat themselves now and then and nothing wrong can come of it. A proof that
//! reaches the empty clause shows that the formula has no model; one that reaches a clause of negated assumptions
//! shows that those assumptions cannot all hold.
//!
//! Only this one rule is accepted. RAT steps (negative hints) are rejected: they keep satisfiability but are no
//! consequences, which would be wrong for assumptions, and the solver is configured never to use them.
//! Must not know any solver. Clauses: SCC-4. Decision: D-21.

use crate::cnf::{Cnf, FormatError, Literal, Place, VARIABLES_MAX};
use crate::lrat_reader::{StepKind, StepReader};

/// Why a proof is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// Identifiers must grow from step to step.
    #[error("clause {id} comes after clause {last}: identifiers must grow")]
    IdNotGrowing {
        /// The identifier of the step.
        id: u64,
        /// The highest identifier before it.
        last: u64,
    },
    /// The identifier is far beyond what a proof of this length needs.
    #[error("clause {id} is beyond the highest identifier this proof may use, {limit}")]
    IdTooLarge {
        /// The identifier of the step.
        id: u64,
        /// The highest one allowed.
        limit: u64,
    },
    /// A hint or deletion names a clause that does not exist (any more).
    #[error("clause {id} does not exist, or no longer")]
    Missing {
        /// The identifier named.
        id: i64,
    },
    /// A negative hint: a RAT step.
    #[error("hint {hint} asks for a RAT check; only unit propagation is accepted")]
    Rat {
        /// The hint.
        hint: i64,
    },
    /// A hint has two or more literals that are not false.
    #[error("hint {hint} has more than one literal left, so nothing follows from it")]
    NotUnit {
        /// The hint.
        hint: u64,
    },
    /// All hints were used and no contradiction was reached.
    #[error("the hints end without a contradiction")]
    NoContradiction,
    /// The proof needs more memory than the checker allows itself.
    #[error("the clauses of this proof exceed the checker's memory")]
    TooLarge,
    /// The proof ends without the clause it is meant to show.
    #[error("the proof never reaches {0}")]
    NoConclusion(&'static str),
}

/// A proof that is not accepted: where, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The proof cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A step does not follow.
    #[error("{place}: {reason}")]
    Step {
        /// The line or byte of the step.
        place: Place,
        /// What is wrong with it.
        reason: Rejection,
    },
}

/// What an accepted proof showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The concluding clause, a subset of the negated assumptions; empty if the formula alone has no model.
    pub conclusion: Vec<Literal>,
    /// Clauses that were checked.
    pub steps: u64,
    /// Hints that were followed.
    pub hints: u64,
    /// Hints that were not needed; a proof without any satisfies the strictest checkers, see [`crate::tidy`].
    pub superfluous: u64,
}

/// The clauses that are known to follow from a formula.
///
/// Every clause in here is one of the formula's or was accepted by [`Checker::add`].
#[derive(Clone, Debug)]
pub struct Checker {
    /// By literal code: whether the literal is false under the current supposition. All false between steps.
    falsified: Vec<bool>,
    /// The literals that are marked in `falsified`, to unmark them afterwards.
    trail: Vec<Literal>,
    /// All clauses one after another, each behind its length.
    arena: Vec<u32>,
    /// By identifier: where the clause starts in the arena, or 0 if there is none.
    places: Vec<u32>,
    id_limit: u64,
    hints_followed: u64,
    /// Positions of the hints of the last step that were not needed for it.
    superfluous: Vec<usize>,
}

/// What one hint yields under the current supposition.
enum Follow {
    /// All its literals are false.
    Contradiction,
    /// This literal has to be true.
    Unit(Literal),
    /// It holds already.
    Nothing,
}

impl Checker {
    /// Starts from the formula: its clauses have the identifiers 1, 2, 3 and so on. `steps_max` bounds how far
    /// beyond that the identifiers of a proof may go, and so the memory it may take.
    pub fn new(cnf: &Cnf, steps_max: usize) -> Result<Checker, Rejection> {
        let mut checker = Checker {
            falsified: vec![false; 2 * (cnf.variables() as usize + 1)],
            trail: Vec::new(),
            arena: vec![0],
            places: vec![0],
            id_limit: (cnf.clause_count() + steps_max) as u64,
            hints_followed: 0,
            superfluous: Vec::new(),
        };
        for (position, clause) in cnf.clauses().enumerate() {
            checker.store(position as u64 + 1, clause)?;
        }
        Ok(checker)
    }

    /// Accepts the clause if it follows by unit propagation through the hints, in their order.
    pub fn add(&mut self, id: u64, clause: &[Literal], hints: &[i64]) -> Result<(), Rejection> {
        let last = self.places.len() as u64 - 1;
        if id <= last {
            return Err(Rejection::IdNotGrowing { id, last });
        }
        if self.id_limit < id {
            return Err(Rejection::IdTooLarge { id, limit: self.id_limit });
        }
        self.make_room(clause);
        for literal in clause {
            self.falsify(*literal);
        }
        // Supposing that both a variable and its negation are false is a contradiction by itself.
        self.superfluous.clear();
        let valid = clause.iter().any(|literal| self.falsified[(!*literal).code()]);
        let outcome = if valid { Ok(()) } else { self.propagate(hints) };
        for literal in self.trail.drain(..) {
            self.falsified[literal.code()] = false;
        }
        outcome?;
        self.store(id, clause)
    }

    /// Forgets a clause.
    pub fn delete(&mut self, id: i64) -> Result<(), Rejection> {
        self.place(id)?;
        self.places[id as usize] = 0;
        Ok(())
    }

    /// Hints followed so far.
    pub fn hints_followed(&self) -> u64 {
        self.hints_followed
    }

    /// Positions of the last step's hints that it did not need: they held already or came after the contradiction.
    pub fn superfluous(&self) -> &[usize] {
        &self.superfluous
    }

    /// Follows the hints until one is contradicted.
    fn propagate(&mut self, hints: &[i64]) -> Result<(), Rejection> {
        for (position, hint) in hints.iter().enumerate() {
            if *hint < 0 {
                return Err(Rejection::Rat { hint: *hint });
            }
            self.hints_followed += 1;
            match self.follow(*hint)? {
                Follow::Unit(literal) => self.falsify(!literal),
                Follow::Nothing => self.superfluous.push(position),
                Follow::Contradiction => {
                    self.superfluous.extend(position + 1..hints.len());
                    return Ok(());
                }
            }
        }
        Err(Rejection::NoContradiction)
    }

    fn follow(&self, hint: i64) -> Result<Follow, Rejection> {
        let place = self.place(hint)?;
        let length = self.arena[place] as usize;
        let mut open: Option<u32> = None;
        for code in &self.arena[place + 1..place + 1 + length] {
            if !self.falsified[*code as usize] {
                match open {
                    None => open = Some(*code),
                    // A clause may name a literal twice; it is still one literal.
                    Some(other) if other == *code => {}
                    Some(_) => return Err(Rejection::NotUnit { hint: hint as u64 }),
                }
            }
        }
        Ok(match open {
            None => Follow::Contradiction,
            Some(code) if self.falsified[code as usize ^ 1] => Follow::Nothing,
            Some(code) => Follow::Unit(Literal::from_code(code)),
        })
    }

    fn place(&self, id: i64) -> Result<usize, Rejection> {
        let place = usize::try_from(id).ok().and_then(|id| self.places.get(id)).copied().unwrap_or(0);
        if place == 0 { Err(Rejection::Missing { id }) } else { Ok(place as usize) }
    }

    fn falsify(&mut self, literal: Literal) {
        let mark = &mut self.falsified[literal.code()];
        if !*mark {
            *mark = true;
            self.trail.push(literal);
        }
    }

    /// A proof may name variables that the formula does not have.
    fn make_room(&mut self, clause: &[Literal]) {
        let highest = clause.iter().map(|literal| literal.variable()).max().unwrap_or(0);
        let size = 2 * (highest.min(VARIABLES_MAX) as usize + 1);
        if self.falsified.len() < size {
            self.falsified.resize(size, false);
        }
    }

    fn store(&mut self, id: u64, clause: &[Literal]) -> Result<(), Rejection> {
        let place = u32::try_from(self.arena.len()).map_err(|_| Rejection::TooLarge)?;
        self.arena.push(clause.len() as u32);
        self.arena.extend(clause.iter().map(|literal| literal.code() as u32));
        self.places.resize(id as usize, 0);
        self.places.push(place);
        Ok(())
    }
}

/// Checks that the formula has no model.
pub fn check(cnf: &Cnf, proof: &[u8]) -> Result<Accepted, CheckError> {
    check_under(cnf, &[], proof)
}

/// Checks that the formula has no model in which all assumptions hold: the proof must reach a clause whose
/// literals are all negated assumptions. Text and binary proofs are told apart by their first byte.
pub fn check_under(cnf: &Cnf, assumptions: &[Literal], proof: &[u8]) -> Result<Accepted, CheckError> {
    let mut reader = StepReader::new(proof);
    let mut conclusion = cnf.clauses().find(|clause| clause.is_empty()).map(<[Literal]>::to_vec);
    let refused = |place, reason| CheckError::Step { place, reason };
    // A step takes at least four bytes, but solvers leave gaps in their numbering.
    let steps_max = proof.len().max(1 << 16);
    let mut checker = Checker::new(cnf, steps_max).map_err(|reason| refused(reader.place(), reason))?;
    let (mut steps, mut superfluous) = (0, 0);
    loop {
        let place = reader.place();
        match reader.next()? {
            None => break,
            Some(StepKind::Add { id }) => {
                checker
                    .add(id, reader.clause(), reader.numbers())
                    .map_err(|reason| refused(place, reason))?;
                steps += 1;
                superfluous += checker.superfluous().len() as u64;
                if conclusion.is_none()
                    && reader.clause().iter().all(|literal| assumptions.contains(&!*literal))
                {
                    conclusion = Some(reader.clause().to_vec());
                }
            }
            Some(StepKind::Delete) => {
                for id in reader.numbers() {
                    checker.delete(*id).map_err(|reason| refused(place, reason))?;
                }
            }
        }
    }
    let goal = if assumptions.is_empty() { "the empty clause" } else { "a clause of negated assumptions" };
    let conclusion = conclusion.ok_or_else(|| refused(reader.place(), Rejection::NoConclusion(goal)))?;
    Ok(Accepted { conclusion, steps, hints: checker.hints_followed(), superfluous })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(a | b) & (a | !b) & (!a | b) & (!a | !b)`
    fn square() -> Cnf {
        Cnf::from_dimacs(b"p cnf 2 4\n1 2 0\n1 -2 0\n-1 2 0\n-1 -2 0\n").unwrap()
    }

    fn verdict(proof: &str) -> String {
        match check(&square(), proof.as_bytes()) {
            Ok(accepted) => format!("accepted after {} hints", accepted.hints),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_proof_by_unit_propagation_is_accepted() {
        assert_eq!(verdict("5 1 0 1 2 0\n5 d 1 2 0\n6 0 5 3 4 0\n"), "accepted after 5 hints");
    }

    #[test]
    fn each_way_to_cheat_has_its_own_answer() {
        let cases = [
            ("", "line 1: the proof never reaches the empty clause"),
            ("5 1 0 1 2 0\n", "line 2: the proof never reaches the empty clause"),
            ("5 0 1 2 0\n", "line 1: hint 1 has more than one literal left, so nothing follows from it"),
            ("5 1 0 1 0\n", "line 1: the hints end without a contradiction"),
            ("5 1 0 0\n", "line 1: the hints end without a contradiction"),
            // A variable that the formula does not have is as open as any other.
            ("5 3 0 0\n", "line 1: the hints end without a contradiction"),
            ("5 -9 0 0\n", "line 1: the hints end without a contradiction"),
            ("5 1 0 1 1 0\n", "line 1: the hints end without a contradiction"),
            ("4 1 0 1 2 0\n", "line 1: clause 4 comes after clause 4: identifiers must grow"),
            ("5 1 0 1 9 0\n", "line 1: clause 9 does not exist, or no longer"),
            ("5 d 1 0\n5 1 0 1 2 0\n", "line 2: clause 1 does not exist, or no longer"),
            ("5 d 1 1 0\n", "line 1: clause 1 does not exist, or no longer"),
            ("5 d 0 0\n", "line 1: numbers after the end of the step"),
            ("5 1 0 -1 2 0\n", "line 1: hint -1 asks for a RAT check; only unit propagation is accepted"),
            (
                "99999999 0 1 0\n",
                "line 1: clause 99999999 is beyond the highest identifier this proof may use, 65540",
            ),
            ("5 1 0 1 2\n", "line 1: the step does not end with 0"),
            ("5 x 0 1 2 0\n", "line 1: \"x\" is not a number"),
        ];
        for (proof, want) in cases {
            assert_eq!(verdict(proof), want, "{proof:?}");
        }
    }

    #[test]
    fn a_core_must_consist_of_negated_assumptions() {
        let cnf = Cnf::from_dimacs(b"p cnf 3 2\n-1 2 0\n-2 -3 0\n").unwrap();
        let literal = |value| Literal::from_dimacs(value).unwrap();
        let proof = b"3 -1 -3 0 1 2 0\n";
        let accepted = check_under(&cnf, &[literal(1), literal(3)], proof).unwrap();
        assert_eq!(accepted.conclusion, [literal(-1), literal(-3)]);
        assert!(check_under(&cnf, &[literal(1)], proof).is_err());
        assert!(check_under(&cnf, &[literal(1), literal(-3)], proof).is_err());
        assert!(check(&cnf, proof).is_err());
    }

    #[test]
    fn a_formula_with_the_empty_clause_needs_no_step() {
        let cnf = Cnf::from_dimacs(b"p cnf 1 1\n0\n").unwrap();
        assert_eq!(check(&cnf, b""), Ok(Accepted { conclusion: vec![], steps: 0, hints: 0, superfluous: 0 }));
    }

    #[test]
    fn tautologies_and_repeated_literals_do_not_confuse_the_propagation() {
        let cnf = Cnf::from_dimacs(b"p cnf 1 3\n1 1 0\n-1 -1 0\n1 -1 0\n").unwrap();
        assert!(check(&cnf, b"4 0 1 2 0\n").is_ok());
        assert!(check(&cnf, b"4 0 3 0\n").is_err());
        // A clause that always holds needs no hints and helps nobody.
        assert!(check(&cnf, b"4 1 -1 0 0\n5 0 4 0\n").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_checker_panic(bytes in proptest::collection::vec(0u8.., 0..80), first in 0usize..3) {
            let mut bytes = bytes;
            bytes.insert(0, [b'a', b'd', b'5'][first]);
            let _ = check(&square(), &bytes);
        }

        #[test]
        fn a_satisfiable_formula_is_never_refuted(text in "(5 [-12 ]{0,6}0 [-1234 ]{0,8}0\n){1,4}") {
            let cnf = Cnf::from_dimacs(b"p cnf 2 3\n1 2 0\n1 -2 0\n-1 2 0\n").unwrap();
            proptest::prop_assert!(check(&cnf, text.as_bytes()).is_err());
        }
    }
}
