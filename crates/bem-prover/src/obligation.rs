//! Verification conditions: does a condition hold wherever its base holds?
//!
//! The base says what may be taken for granted, the negation says how the condition could fail. If both together
//! have no model, the condition holds, with a certificate; but only if the base has a model by itself, because a
//! base that nothing satisfies would let everything in. Clauses: SCC-3, SCC-4, SCC-5. Decision: D-21.

use crate::solver::{Budget, Outcome, Profile, Solver, Why, solve};
use bem_checker::{Certificate, Cnf};

/// What became of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The condition holds; the checker accepted the certificate for `formula`, the base with the negation.
    #[doc(alias = "UNSAT")]
    Holds {
        /// Base and negated condition.
        formula: Cnf,
        /// Proof that they have no common model.
        certificate: Certificate,
    },
    /// The condition fails here: a model of the base and the negated condition, evaluated.
    #[doc(alias = "SAT")]
    Refuted {
        /// `model[v - 1]` is the value of variable `v`.
        model: Vec<bool>,
    },
    /// The base has no model, so the condition says nothing. A rejection.
    Vacuous {
        /// Proof that the base has no model.
        certificate: Certificate,
    },
    /// Neither was shown within the budget. A rejection.
    #[doc(alias = "UNKNOWN")]
    Undecided(Why),
}

impl Verdict {
    /// Whether the condition was proven.
    pub fn holds(&self) -> bool {
        matches!(self, Verdict::Holds { .. })
    }
}

/// Proves that the condition, given as its negation over the same variables, holds wherever the base does.
#[doc(alias = "VC")]
pub fn prove_obligation(base: &Cnf, negated_condition: &Cnf, budget: Budget) -> Verdict {
    match solve(base, &[], budget) {
        Outcome::Unsatisfiable { certificate, .. } => return Verdict::Vacuous { certificate },
        Outcome::Undecided(why) => return Verdict::Undecided(why),
        Outcome::Satisfiable { .. } => {}
    }
    let mut formula = base.clone();
    formula.extend(negated_condition);
    match solve(&formula, &[], budget) {
        Outcome::Unsatisfiable { certificate, .. } => Verdict::Holds { formula, certificate },
        Outcome::Satisfiable { model } => Verdict::Refuted { model },
        Outcome::Undecided(why) => Verdict::Undecided(why),
    }
}

/// Many conditions over one base: the base is shown satisfiable once and its clauses are kept in the solver.
#[derive(Debug)]
pub struct ObligationBase {
    solver: Solver,
    /// Variables of the base itself.
    variables: u32,
    vacuous: Option<Verdict>,
}

impl ObligationBase {
    /// Loads the base and looks for a model of it.
    pub fn new(base: &Cnf, budget: Budget) -> ObligationBase {
        let mut solver = Solver::new(Profile::Thorough);
        solver.add_all(base);
        let vacuous = match solver.solve(&[], budget) {
            Outcome::Satisfiable { .. } => None,
            Outcome::Unsatisfiable { certificate, .. } => Some(Verdict::Vacuous { certificate }),
            Outcome::Undecided(why) => Some(Verdict::Undecided(why)),
        };
        ObligationBase { solver, variables: base.variables(), vacuous }
    }

    /// Proves one condition. The negation may use variables of the base and, above those of all conditions so
    /// far, new ones of its own; its clauses are switched off again afterwards.
    ///
    /// Panics if it uses a variable of a condition before it: the switches of those are false for good, so that a clause
    /// that demands one would prove anything.
    pub fn prove(&mut self, negated_condition: &Cnf, budget: Budget) -> Verdict {
        if let Some(verdict) = &self.vacuous {
            return verdict.clone();
        }
        let own = self.variables + 1..=self.variables();
        for literal in negated_condition.clauses().flatten() {
            assert!(!own.contains(&literal.variable()), "{literal:?} belongs to a condition before this one");
        }
        self.solver.declare(negated_condition.variables());
        let active = self.solver.fresh();
        for clause in negated_condition.clauses() {
            let mut clause = clause.to_vec();
            clause.push(!active);
            self.solver.add(&clause);
        }
        let outcome = self.solver.solve(&[active], budget);
        let formula = self.solver.formula().clone();
        self.solver.add(&[!active]);
        match outcome {
            Outcome::Unsatisfiable { certificate, .. } => Verdict::Holds { formula, certificate },
            Outcome::Satisfiable { model } => Verdict::Refuted { model },
            Outcome::Undecided(why) => Verdict::Undecided(why),
        }
    }

    /// How many variables are taken; a condition's own variables start above.
    pub fn variables(&self) -> u32 {
        self.solver.formula().variables()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cnf(text: &str) -> Cnf {
        Cnf::from_dimacs(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_condition_that_follows_from_its_base_holds() {
        // From a -> b and a follows b.
        let base = cnf("p cnf 2 2\n-1 2 0\n1 0\n");
        let verdict = prove_obligation(&base, &cnf("p cnf 2 1\n-2 0\n"), Budget::DEFAULT);
        let Verdict::Holds { formula, certificate } = verdict else { panic!("{verdict:?}") };
        assert!(certificate.check(&formula).is_ok());
    }

    #[test]
    fn a_condition_that_does_not_follow_is_refuted_with_a_model() {
        let base = cnf("p cnf 2 1\n-1 2 0\n");
        let verdict = prove_obligation(&base, &cnf("p cnf 2 1\n-2 0\n"), Budget::DEFAULT);
        assert_eq!(verdict, Verdict::Refuted { model: vec![false, false] });
    }

    #[test]
    fn a_base_without_models_proves_nothing() {
        let base = cnf("p cnf 2 2\n1 0\n-1 0\n");
        let condition = cnf("p cnf 2 1\n-2 0\n");
        assert!(matches!(prove_obligation(&base, &condition, Budget::DEFAULT), Verdict::Vacuous { .. }));
        let mut kept = ObligationBase::new(&base, Budget::DEFAULT);
        assert!(matches!(kept.prove(&condition, Budget::DEFAULT), Verdict::Vacuous { .. }));
    }

    #[test]
    #[should_panic(expected = "2 belongs to a condition before this one")]
    fn the_switch_of_one_condition_cannot_prove_the_next() {
        let mut kept = ObligationBase::new(&cnf("p cnf 1 0\n"), Budget::DEFAULT);
        assert!(matches!(kept.prove(&cnf("p cnf 1 1\n1 0\n"), Budget::DEFAULT), Verdict::Refuted { .. }));
        // Nothing is known of variable 1, but variable 2 has been switched off.
        kept.prove(&cnf("p cnf 2 2\n1 0\n2 0\n"), Budget::DEFAULT);
    }

    #[test]
    fn conditions_over_one_base_do_not_disturb_each_other() {
        let mut kept = ObligationBase::new(&cnf("p cnf 3 2\n-1 2 0\n1 0\n"), Budget::DEFAULT);
        for _ in 0..3 {
            let verdict = kept.prove(&cnf("p cnf 3 1\n-2 0\n"), Budget::DEFAULT);
            let Verdict::Holds { formula, certificate } = verdict else { panic!("{verdict:?}") };
            assert!(certificate.check(&formula).is_ok());
            assert!(matches!(
                kept.prove(&cnf("p cnf 3 1\n-3 0\n"), Budget::DEFAULT),
                Verdict::Refuted { .. }
            ));
            assert!(matches!(kept.prove(&cnf("p cnf 3 1\n3 0\n"), Budget::DEFAULT), Verdict::Refuted { .. }));
        }
    }
}
