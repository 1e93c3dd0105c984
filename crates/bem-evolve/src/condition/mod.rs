//! What must hold before a patch may be considered at all: one verification condition a kind, one file a topic.
//!
//! A condition is stated as clauses of its *negation* over a base that is shown satisfiable first; it holds when
//! both together have no model and the independent checker accepts the proof. A model, an exhausted budget and a
//! base that nothing satisfies all mean rejection (decision D-21). Budgets count conflicts. What is settled by
//! comparing two numbers is compared, not solved. Each file says what its condition promises and what it does not.
//! Must not know whether the change is an improvement. Clauses: SCC-2, SCC-3, SCC-4, SCC-5.

pub mod circuits;
pub mod guard;
pub mod play;
pub mod routing;
pub mod statement;
pub mod synthesize;

use crate::apply::{Tables, TablesError};
use bem_checker::certificate::CertificateError;
use bem_checker::{Certificate, Cnf};
use bem_circuit::netlist::Netlist;
use bem_machine::config::GenesisConfig;
use bem_machine::family::{Family, FamilyError};
use bem_machine::machine::MachineError;
use bem_prover::equivalence::{EquivalenceOptions, Evidence, check_equivalence_with, simplified_miter};
use bem_prover::solver::{Outcome, Why, solve};
use bem_prover::{Budget, Equivalence, Verdict, prove_obligation};

/// What a patch is judged against.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The bounds.
    pub config: &'a GenesisConfig,
    /// Templates, and which serials were used.
    pub tables: &'a Tables,
    /// The family as it is now; none where the patch is about templates.
    pub family: Option<&'a Family>,
}

/// One thing that was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A proof that the checker accepted.
    Proven {
        /// Which condition.
        condition: &'static str,
        /// Base and negated condition.
        formula: Cnf,
        /// That they have no model.
        certificate: Certificate,
    },
    /// Every case was tried.
    Exhausted {
        /// Which condition.
        condition: &'static str,
        /// How many cases.
        rows: u64,
    },
    /// Numbers were compared.
    Compared {
        /// Which condition.
        condition: &'static str,
    },
    /// Nothing was solved, because no conflicts were granted: this is what would have to be proven.
    Stated {
        /// Which condition.
        condition: &'static str,
        /// Base and negated condition.
        formula: Cnf,
    },
}

impl Finding {
    /// The proof to be stored, if there is one.
    pub fn proof(&self) -> Option<(&Cnf, &Certificate)> {
        match self {
            Finding::Proven { formula, certificate, .. } => Some((formula, certificate)),
            _ => None,
        }
    }
}

/// Why a patch is not let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// It was made against something that no longer is.
    #[error("obsolete: the tables have changed since the patch was made")]
    Obsolete,
    /// Its serial was applied before, or a later one was.
    #[error("serial {serial} is not new: {last} was applied")]
    Replayed {
        /// The serial given.
        serial: u64,
        /// The highest serial applied.
        last: u64,
    },
    /// It names something that does not exist.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// A bound of the machine or its write set is broken.
    #[error(transparent)]
    Bound(#[from] FamilyError),
    /// The machine would refuse it.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// It is not what its kind must be.
    #[error("{reason}")]
    Misfit {
        /// What is wrong.
        reason: String,
    },
    /// The condition fails: here.
    #[error("{condition} fails for inputs {}", bits_text(counterexample))]
    Refuted {
        /// Which condition.
        condition: &'static str,
        /// One value for each input of the condition.
        counterexample: Vec<bool>,
    },
    /// The base has no model, so that the condition would say nothing.
    #[error("{condition} rests on a base that nothing satisfies")]
    Vacuous {
        /// Which condition.
        condition: &'static str,
    },
    /// Neither was shown within the budget.
    #[error("{condition}{undecided}{why}", undecided = Rejection::UNDECIDED)]
    Undecided {
        /// Which condition.
        condition: &'static str,
        /// Why.
        why: Why,
    },
    /// The checker does not accept the proof.
    #[error("the proof of {condition} is not accepted: {error}")]
    Certificate {
        /// Which condition.
        condition: &'static str,
        /// What the checker says.
        error: CertificateError,
    },
}

impl Rejection {
    /// What the reason of every undecided patch contains, and no other.
    pub const UNDECIDED: &'static str = " is undecided: ";
}

fn bits_text(bits: &[bool]) -> String {
    bits.iter().map(|bit| if *bit { '1' } else { '0' }).collect()
}

/// A misfit with this reason.
pub(crate) fn misfit(reason: impl Into<String>) -> Rejection {
    Rejection::Misfit { reason: reason.into() }
}

/// Proves one condition over a base whose first `inputs` variables are what a counterexample consists of.
pub(crate) fn prove(
    condition: &'static str,
    base: &Cnf,
    negation: &Cnf,
    inputs: usize,
    budget: Budget,
) -> Result<Finding, Rejection> {
    if budget == NONE {
        return state(condition, base, negation);
    }
    match prove_obligation(base, negation, budget) {
        Verdict::Holds { formula, certificate } => accept_proof(condition, formula, certificate),
        Verdict::Refuted { model } => {
            Err(Rejection::Refuted { condition, counterexample: model[..inputs].to_vec() })
        }
        Verdict::Vacuous { .. } => Err(Rejection::Vacuous { condition }),
        Verdict::Undecided(why) => Err(Rejection::Undecided { condition, why }),
    }
}

/// No conflicts: conditions are stated for whoever has their proofs, and not solved.
pub(crate) const NONE: Budget = Budget::conflicts(0);

/// What would have to be proven. That the base has a model is shown all the same: a proof would not show it.
fn state(condition: &'static str, base: &Cnf, negation: &Cnf) -> Result<Finding, Rejection> {
    match solve(base, &[], Budget::DEFAULT) {
        Outcome::Satisfiable { .. } => {
            let mut formula = base.clone();
            formula.extend(negation);
            Ok(Finding::Stated { condition, formula })
        }
        Outcome::Unsatisfiable { .. } => Err(Rejection::Vacuous { condition }),
        Outcome::Undecided(why) => Err(Rejection::Undecided { condition, why }),
    }
}

/// The only way to a proven finding: through the checker, whoever made the proof.
fn accept_proof(
    condition: &'static str,
    formula: Cnf,
    certificate: Certificate,
) -> Result<Finding, Rejection> {
    match certificate.check(&formula) {
        Ok(_) if certificate.assumptions.is_empty() => {
            Ok(Finding::Proven { condition, formula, certificate })
        }
        Ok(_) => Err(misfit("a proof under assumptions proves less than the condition")),
        Err(error) => Err(Rejection::Certificate { condition, error }),
    }
}

/// Shows that two circuits are one function: all rows up to 16 inputs, a proof above (D-21, D-36).
pub(crate) fn prove_same(
    condition: &'static str,
    left: &Netlist,
    right: &Netlist,
    budget: Budget,
) -> Result<Finding, Rejection> {
    let options = EquivalenceOptions { budget, ..EquivalenceOptions::default() };
    match check_equivalence_with(left, right, options) {
        Equivalence::Equal(Evidence::Exhaustive { rows }) => Ok(Finding::Exhausted { condition, rows }),
        Equivalence::Equal(Evidence::Proof { .. }) | Equivalence::Undecided(_) if budget == NONE => {
            Ok(Finding::Stated { condition, formula: simplified_miter(left, right) })
        }
        Equivalence::Equal(Evidence::Proof { formula, certificate }) => {
            accept_proof(condition, formula, certificate)
        }
        Equivalence::Different { input } => Err(Rejection::Refuted { condition, counterexample: input }),
        Equivalence::Mismatch => Err(misfit(format!("{condition}: the circuits have different shapes"))),
        Equivalence::Undecided(why) => Err(Rejection::Undecided { condition, why }),
    }
}

/// The budget that the configuration grants to one condition.
pub(crate) fn budget(config: &GenesisConfig) -> Budget {
    Budget::conflicts(config.verify_conflicts_max)
}

#[cfg(test)]
mod tests;
