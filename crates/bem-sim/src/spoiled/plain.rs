//! A second reading of proofs, as plain as it can be put: clauses are lists, a supposition is a set, nothing is reused.
//!
//! It decides whether a changed proof is still one, so that a spoiled certificate is known to be wrong without the checker
//! under test. Each [`Leniency`] turns it into a checker with one deliberate mistake: the battery must hand over
//! certificates that such a checker accepts, or it could not notice the mistake. Must not use the checker. Clauses: SCC-4.

use bem_checker::cnf::{Cnf, Literal};
use std::collections::{BTreeMap, BTreeSet};

/// One step of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A clause, and the clauses that it follows from.
    Add {
        /// Its identifier.
        id: u64,
        /// Its literals.
        clause: Vec<Literal>,
        /// Identifiers; negative ones ask for a rule that is not accepted.
        hints: Vec<i64>,
    },
    /// Clauses that are forgotten.
    Delete(Vec<i64>),
}

/// A mistake that a checker could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leniency {
    /// Clauses are taken without a look at their hints.
    NoPropagation,
    /// The proof need not reach the empty clause.
    AnyConclusion,
    /// A hint with several open literals is passed over.
    SeveralOpen,
    /// The hints may end without a contradiction, if there are any.
    NoContradiction,
    /// A hint that does not exist is passed over.
    MissingHints,
    /// What was deleted may still be used.
    Undead,
    /// Identifiers may come in any order.
    AnyOrder,
    /// Of a hint with several open literals the first is taken to be true.
    FirstOpen,
}

impl Leniency {
    /// All of them.
    pub const ALL: [Leniency; 8] = [
        Leniency::NoPropagation,
        Leniency::AnyConclusion,
        Leniency::SeveralOpen,
        Leniency::NoContradiction,
        Leniency::MissingHints,
        Leniency::Undead,
        Leniency::AnyOrder,
        Leniency::FirstOpen,
    ];
}

/// Whether the steps show that the formula has no model; with a mistake, whether a checker that makes it would say so.
pub fn accepts(cnf: &Cnf, steps: &[Step], mistake: Option<Leniency>) -> bool {
    let is = |leniency: Leniency| mistake == Some(leniency);
    let mut known: BTreeMap<i64, Vec<Literal>> = (1..).zip(cnf.clauses().map(<[Literal]>::to_vec)).collect();
    let mut highest = known.len() as i64;
    let mut concluded = known.values().any(Vec::is_empty) || is(Leniency::AnyConclusion);
    for step in steps {
        match step {
            Step::Add { id, clause, hints } => {
                let Ok(id) = i64::try_from(*id) else { return false };
                if id <= highest && !is(Leniency::AnyOrder) {
                    return false;
                }
                if !is(Leniency::NoPropagation) && !follows(&known, clause, hints, mistake) {
                    return false;
                }
                highest = highest.max(id);
                concluded |= clause.is_empty();
                known.insert(id, clause.clone());
            }
            Step::Delete(ids) => {
                for id in ids {
                    if !known.contains_key(id) {
                        return false;
                    }
                    if !is(Leniency::Undead) {
                        known.remove(id);
                    }
                }
            }
        }
    }
    concluded
}

fn follows(
    known: &BTreeMap<i64, Vec<Literal>>,
    clause: &[Literal],
    hints: &[i64],
    mistake: Option<Leniency>,
) -> bool {
    let is = |leniency: Leniency| mistake == Some(leniency);
    // The literals that are true when the clause is false.
    let mut holds: BTreeSet<Literal> = clause.iter().map(|literal| !*literal).collect();
    if clause.iter().any(|literal| clause.contains(&!*literal)) {
        return true;
    }
    for hint in hints {
        let Some(clause) = known.get(hint) else {
            if is(Leniency::MissingHints) {
                continue;
            }
            return false;
        };
        let open: BTreeSet<Literal> =
            clause.iter().filter(|literal| !holds.contains(&!**literal)).copied().collect();
        match (open.first(), open.len()) {
            (None, _) => return true,
            (Some(literal), open) if open == 1 || is(Leniency::FirstOpen) => drop(holds.insert(*literal)),
            _ if is(Leniency::SeveralOpen) => {}
            _ => return false,
        }
    }
    is(Leniency::NoContradiction) && !hints.is_empty()
}
