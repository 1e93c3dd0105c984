//! CaDiCaL behind an interface that returns only what was checked.
//!
//! "Unsatisfiable" comes with a certificate that [`bem_checker`] has accepted for exactly the formula that was
//! given; "satisfiable" comes with a model that was evaluated on every clause; everything else is "undecided",
//! a reproducible outcome because budgets count conflicts. Clauses: SCC-3, SCC-4, SCC-5. Decisions: D-20, D-21.

use crate::proof_log::ProofLog;
use bem_checker::certificate::CertificateError;
use bem_checker::tidy::tidy;
use bem_checker::{Certificate, Cnf, Literal};
use cadical_sys::{CaDiCal, Status};
use std::cell::RefCell;
use std::rc::Rc;

/// How much work a question may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Conflicts of the search; at most 2^31 - 1 count.
    pub conflicts: u32,
}

impl Budget {
    /// Enough for every condition of an expert of usual size.
    pub const DEFAULT: Budget = Budget { conflicts: 1_000_000 };

    /// A budget of this many conflicts.
    pub const fn conflicts(conflicts: u32) -> Budget {
        Budget { conflicts }
    }
}

/// How the solver searches. All profiles are deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// No preprocessing: quickest on conditions of a few hundred clauses.
    Fast,
    /// The solver's own default.
    Thorough,
    /// Tuned for formulas that probably have a model.
    Satisfiable,
    /// Tuned for formulas that probably have none.
    Unsatisfiable,
}

/// Why a question stayed undecided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// The budget ran out.
    #[error("the budget of conflicts ran out")]
    Budget,
    /// The solver said "unsatisfiable" without a proof over our own clauses.
    #[error("the solver gave no proof over the clauses of the formula")]
    NoProof,
    /// The solver said "unsatisfiable" and the checker does not believe it.
    #[error("the solver's proof was rejected: {0}")]
    Proof(#[from] CertificateError),
    /// The solver said "satisfiable" with a model that violates a clause or an assumption.
    #[error("the solver's model violates the formula")]
    Model,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No model exists in which the assumptions hold. The checker has accepted the certificate.
    Unsatisfiable {
        /// The proof.
        certificate: Certificate,
        /// Assumptions that cannot hold together; empty if the formula alone has no model.
        core: Vec<Literal>,
    },
    /// This is a model: `model[v - 1]` is the value of variable `v`. It was evaluated.
    Satisfiable {
        /// The values.
        model: Vec<bool>,
    },
    /// Neither was shown.
    #[doc(alias = "UNKNOWN")]
    Undecided(Why),
}

impl Outcome {
    /// Whether it was shown that there is no model.
    pub fn is_unsatisfiable(&self) -> bool {
        matches!(self, Outcome::Unsatisfiable { .. })
    }
}

/// The conflicts that the fast profile gets before the thorough one takes over.
const FAST_CONFLICTS: u32 = 300;
/// Formulas with more clauses go to the thorough profile at once: there the first attempt is mostly lost.
const FAST_CLAUSES_MAX: usize = 500;

/// Answers one question. Small formulas get the fast profile first and then, if that does not decide, the thorough
/// one with what is left of the budget; large ones the thorough one at once. Within [`crate::outside::through`] somebody else
/// is asked first.
#[doc(alias = "SAT_CHECK")]
pub fn solve(cnf: &Cnf, assumptions: &[Literal], budget: Budget) -> Outcome {
    if assumptions.is_empty()
        && let Some(outcome) = crate::outside::ask(cnf, budget)
    {
        return outcome;
    }
    if FAST_CLAUSES_MAX < cnf.clause_count() {
        return solve_with(Profile::Thorough, cnf, assumptions, budget);
    }
    let first = Budget::conflicts(budget.conflicts.min(FAST_CONFLICTS));
    let outcome = solve_with(Profile::Fast, cnf, assumptions, first);
    if outcome != Outcome::Undecided(Why::Budget) || budget.conflicts <= FAST_CONFLICTS {
        return outcome;
    }
    solve_with(Profile::Thorough, cnf, assumptions, Budget::conflicts(budget.conflicts - FAST_CONFLICTS))
}

/// Answers one question with one profile.
pub fn solve_with(profile: Profile, cnf: &Cnf, assumptions: &[Literal], budget: Budget) -> Outcome {
    let mut solver = Solver::new(profile);
    solver.add_all(cnf);
    solver.solve(assumptions, budget)
}

/// What the bare solver says, without proof or check: the floor that certified answers are measured against.
/// Nothing may be accepted on such an answer.
pub fn guess(profile: Profile, cnf: &Cnf, budget: Budget) -> Option<bool> {
    let mut engine = configured(profile);
    for clause in cnf.clauses() {
        clause.iter().for_each(|literal| engine.add(literal.to_dimacs()));
        engine.add(0);
    }
    assert!(engine.limit("conflicts", i32::try_from(budget.conflicts).unwrap_or(i32::MAX)));
    match engine.solve() {
        Status::SATISFIABLE => Some(true),
        Status::UNSATISFIABLE => Some(false),
        Status::UNKNOWN => None,
    }
}

fn configured(profile: Profile) -> CaDiCal {
    let mut engine = CaDiCal::new();
    let profile = match profile {
        Profile::Fast => "plain",
        Profile::Thorough => "default",
        Profile::Satisfiable => "sat",
        Profile::Unsatisfiable => "unsat",
    };
    // Going back to the built-in defaults first makes the search independent of the process's environment, which
    // the solver would otherwise take options from.
    for name in ["default", profile] {
        assert!(engine.configure(name), "the solver has the configuration {name:?}");
    }
    engine
}

/// A solver that keeps what it learned from question to question: a base to which more clauses can be added.
pub struct Solver {
    engine: CaDiCal,
    log: Rc<RefCell<ProofLog>>,
    formula: Cnf,
}

impl Solver {
    /// A solver without clauses.
    pub fn new(profile: Profile) -> Solver {
        let mut engine = configured(profile);
        let log = Rc::new(RefCell::new(ProofLog::default()));
        engine.connect_proof_tracer1(Rc::clone(&log), true, false);
        Solver { engine, log, formula: Cnf::default() }
    }

    /// Everything that was added so far; certificates are about this formula.
    pub fn formula(&self) -> &Cnf {
        &self.formula
    }

    /// A variable that is new to the formula.
    pub fn fresh(&mut self) -> Literal {
        self.formula.fresh()
    }

    /// Makes sure that the formula has at least this many variables.
    pub fn declare(&mut self, variables: u32) {
        self.formula.declare(variables);
    }

    /// Adds a clause for this question and all later ones.
    pub fn add(&mut self, clause: &[Literal]) {
        self.log.borrow_mut().expect(self.formula.clause_count(), clause);
        self.formula.add(clause);
        for literal in clause {
            self.engine.add(literal.to_dimacs());
        }
        self.engine.add(0);
    }

    /// Adds every clause of a formula over the same variables.
    pub fn add_all(&mut self, cnf: &Cnf) {
        self.formula.declare(cnf.variables());
        for clause in cnf.clauses() {
            self.add(clause);
        }
    }

    /// Is there a model of everything added so far in which the assumptions hold?
    pub fn solve(&mut self, assumptions: &[Literal], budget: Budget) -> Outcome {
        self.log.borrow_mut().begin();
        for literal in assumptions {
            // An assumption may be about a variable that no clause has: the model must still say its value.
            self.formula.declare(literal.variable());
            self.engine.assume(literal.to_dimacs());
        }
        let conflicts = i32::try_from(budget.conflicts).unwrap_or(i32::MAX);
        assert!(self.engine.limit("conflicts", conflicts), "the solver can limit its conflicts");
        match self.engine.solve() {
            Status::SATISFIABLE => self.model(assumptions),
            Status::UNSATISFIABLE => self.refutation(assumptions),
            Status::UNKNOWN => Outcome::Undecided(Why::Budget),
        }
    }

    fn model(&mut self, assumptions: &[Literal]) -> Outcome {
        let variables = self.formula.variables() as i32;
        let model: Vec<bool> = (1..=variables).map(|variable| 0 < self.engine.val(variable)).collect();
        let holds = |literal: &Literal| model[literal.variable() as usize - 1] != literal.is_negative();
        if self.formula.first_violated(&model).is_some() || !assumptions.iter().all(holds) {
            return Outcome::Undecided(Why::Model);
        }
        Outcome::Satisfiable { model }
    }

    fn refutation(&mut self, assumptions: &[Literal]) -> Outcome {
        self.engine.conclude();
        let Some(proof) = self.log.borrow().proof(self.formula.clause_count()) else {
            return Outcome::Undecided(Why::NoProof);
        };
        let mut certificate =
            Certificate { formula: self.formula.digest(), assumptions: assumptions.to_vec(), proof };
        match accept(&mut certificate, &self.formula) {
            Ok(core) => Outcome::Unsatisfiable { certificate, core },
            Err(error) => Outcome::Undecided(Why::Proof(error)),
        }
    }
}

/// Has the checker accept the certificate, and returns the assumptions that clash. The solver sometimes gives a
/// hint twice; such proofs are tidied, so that stricter checkers accept them too, and checked again.
fn accept(certificate: &mut Certificate, formula: &Cnf) -> Result<Vec<Literal>, CertificateError> {
    let mut accepted = certificate.check(formula)?;
    if 0 < accepted.superfluous {
        certificate.proof = tidy(formula, &certificate.proof)?;
        accepted = certificate.check(formula)?;
    }
    Ok(accepted.conclusion.iter().map(|literal| !*literal).collect())
}

impl core::fmt::Debug for Solver {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_struct("Solver")
            .field("clauses", &self.formula.clause_count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pigeonhole;

    fn cnf(text: &str) -> Cnf {
        Cnf::from_dimacs(text.as_bytes()).unwrap()
    }

    fn literal(value: i64) -> Literal {
        Literal::from_dimacs(value).unwrap()
    }

    #[test]
    fn every_profile_refutes_the_pigeonhole_formulas_with_an_accepted_certificate() {
        for holes in 1..=6 {
            let formula = pigeonhole(holes);
            for profile in [Profile::Fast, Profile::Thorough, Profile::Satisfiable, Profile::Unsatisfiable] {
                let outcome = solve_with(profile, &formula, &[], Budget::DEFAULT);
                let Outcome::Unsatisfiable { certificate, core } = outcome else { panic!("{outcome:?}") };
                assert!(core.is_empty());
                assert!(certificate.check(&formula).is_ok());
                assert!(certificate.check(&pigeonhole(holes + 1)).is_err());
            }
        }
    }

    #[test]
    fn an_exhausted_budget_is_undecided_and_never_a_refutation() {
        for conflicts in [0, 1, 10, 100] {
            let outcome = solve(&pigeonhole(8), &[], Budget::conflicts(conflicts));
            assert_eq!(outcome, Outcome::Undecided(Why::Budget));
        }
    }

    #[test]
    fn trivial_formulas_are_decided() {
        assert!(solve(&cnf("p cnf 1 1\n0\n"), &[], Budget::DEFAULT).is_unsatisfiable());
        assert!(solve(&cnf("p cnf 1 2\n1 0\n-1 0\n"), &[], Budget::DEFAULT).is_unsatisfiable());
        assert!(
            solve(&cnf("p cnf 1 3\n1 1 -1 0\n1 1 0\n-1 -1 0\n"), &[], Budget::DEFAULT).is_unsatisfiable()
        );
        let outcome = solve(&cnf("p cnf 2 1\n-1 1 0\n"), &[], Budget::DEFAULT);
        assert!(matches!(outcome, Outcome::Satisfiable { model } if model.len() == 2));
        assert!(matches!(solve(&cnf("p cnf 0 0\n"), &[], Budget::DEFAULT), Outcome::Satisfiable { .. }));
    }

    #[test]
    fn a_core_names_only_the_assumptions_that_clash() {
        let formula = cnf("p cnf 5 3\n-1 2 0\n-2 3 0\n-3 -4 0\n");
        let assumptions = [literal(5), literal(1), literal(4)];
        let outcome = solve(&formula, &assumptions, Budget::DEFAULT);
        let Outcome::Unsatisfiable { certificate, mut core } = outcome else { panic!("{outcome:?}") };
        core.sort();
        assert_eq!(core, [literal(1), literal(4)]);
        assert!(certificate.check(&formula).is_ok());
        // Contradictory assumptions, and one that the formula alone refutes.
        assert!(solve(&formula, &[literal(5), literal(-5)], Budget::DEFAULT).is_unsatisfiable());
        assert!(solve(&cnf("p cnf 1 1\n-1 0\n"), &[literal(1)], Budget::DEFAULT).is_unsatisfiable());
        let outcome = solve(&formula, &[literal(1)], Budget::DEFAULT);
        assert!(matches!(outcome, Outcome::Satisfiable { model } if model[0] && model[2] && !model[3]));
    }

    #[test]
    fn clauses_and_questions_may_alternate_on_one_base() {
        let base = pigeonhole(5);
        let mut solver = Solver::new(Profile::Thorough);
        // All but the last pigeon's clause: satisfiable.
        solver.add_all(&{
            let mut most = Cnf::new(base.variables());
            base.clauses()
                .enumerate()
                .filter(|(position, _)| *position != 5)
                .for_each(|(_, clause)| most.add(clause));
            most
        });
        assert!(matches!(solver.solve(&[], Budget::DEFAULT), Outcome::Satisfiable { .. }));
        for hole in 0..5 {
            let here = literal(5 * 5 + hole + 1);
            let outcome = solver.solve(&[here], Budget::DEFAULT);
            let Outcome::Unsatisfiable { certificate, core } = outcome else { panic!("{outcome:?}") };
            assert_eq!(core, [here]);
            assert!(certificate.check(solver.formula()).is_ok());
            solver.add(&[!here]);
        }
        assert!(matches!(solver.solve(&[], Budget::DEFAULT), Outcome::Satisfiable { .. }));
        solver.add(base.clause(5));
        let outcome = solver.solve(&[], Budget::DEFAULT);
        let Outcome::Unsatisfiable { certificate, .. } = outcome else { panic!("{outcome:?}") };
        assert!(certificate.check(solver.formula()).is_ok());
    }

    #[test]
    fn the_same_question_gives_the_same_bytes() {
        let formula = pigeonhole(6);
        assert_eq!(solve(&formula, &[], Budget::DEFAULT), solve(&formula, &[], Budget::DEFAULT));
    }
}
