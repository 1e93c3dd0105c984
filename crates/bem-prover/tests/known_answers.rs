//! Formulas whose answers are known: from mathematics, from brute force, or from arithmetic.
//!
//! Clauses: SCC-3, SCC-4, SCC-5.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use bem_base::prng::Prng;
use bem_prover::encode::miter;
use bem_prover::equivalence::{Equivalence, Evidence, prove_equal};
use bem_prover::{Budget, Cnf, Outcome, Solver, solve};
use common::*;

fn assert_refuted(cnf: &Cnf) {
    let outcome = solve(cnf, &[], Budget::DEFAULT);
    let Outcome::Unsatisfiable { certificate, core } = outcome else { panic!("{outcome:?}") };
    assert!(core.is_empty() && certificate.check(cnf).is_ok());
}

#[test]
fn more_pigeons_than_holes_do_not_fit() {
    (1..=7).for_each(|holes| assert_refuted(&pigeonhole(holes)));
}

#[test]
fn as_many_pigeons_as_holes_fit() {
    for holes in 1..=8 {
        let all = pigeonhole(holes);
        let mut fewer = Cnf::new(all.variables());
        all.clauses().skip(1).for_each(|clause| fewer.add(clause));
        assert!(matches!(solve(&fewer, &[], Budget::DEFAULT), Outcome::Satisfiable { .. }));
    }
}

#[test]
fn random_formulas_agree_with_brute_force() {
    let mut prng = Prng::stream(3, "brute force");
    let (mut with, mut without) = (0, 0);
    for round in 0..2_000 {
        let variables = 3 + round % 10;
        let cnf = random_3_sat(&mut prng, variables, (variables as usize * 43) / 10);
        match solve(&cnf, &[], Budget::DEFAULT) {
            Outcome::Satisfiable { model } => {
                assert_eq!(cnf.first_violated(&model), None);
                with += 1;
            }
            Outcome::Unsatisfiable { certificate, .. } => {
                assert!(!has_model(&cnf) && certificate.check(&cnf).is_ok());
                without += 1;
            }
            Outcome::Undecided(why) => panic!("{why}"),
        }
    }
    assert!(200 < with && 200 < without, "{with} with a model, {without} without");
}

#[test]
fn assumptions_and_growing_bases_agree_with_brute_force() {
    let mut prng = Prng::stream(4, "incremental");
    for _ in 0..150 {
        let all = random_3_sat(&mut prng, 9, 40);
        let mut solver = Solver::new(bem_prover::Profile::Thorough);
        for (position, clause) in all.clauses().enumerate() {
            solver.add(clause);
            if position % 4 != 3 {
                continue;
            }
            let assumptions: Vec<_> =
                (0..prng.below(4)).map(|_| literal(1 + prng.below(9) as i64).xor(prng.bit())).collect();
            let mut together = solver.formula().clone();
            assumptions.iter().for_each(|assumption| together.add(&[*assumption]));
            match solver.solve(&assumptions, Budget::DEFAULT) {
                Outcome::Satisfiable { model } => assert_eq!(together.first_violated(&model), None),
                Outcome::Unsatisfiable { certificate, core } => {
                    assert!(!has_model(&together) && certificate.check(solver.formula()).is_ok());
                    assert!(core.iter().all(|literal| assumptions.contains(literal)));
                }
                Outcome::Undecided(why) => panic!("{why}"),
            }
        }
    }
}

#[test]
fn different_adders_and_swapped_factors_are_equal_with_proof() {
    for bits in [4, 16, 32] {
        assert_refuted(&miter(&ripple_adder(bits), &prefix_adder(bits)));
    }
    let answer = prove_equal(&multiplier(5, false), &multiplier(5, true), Budget::DEFAULT);
    let Equivalence::Equal(Evidence::Proof { formula, certificate }) = answer else { panic!("{answer:?}") };
    assert!(certificate.check(&formula).is_ok());
}

#[test]
fn the_adders_and_multipliers_of_these_tests_do_arithmetic() {
    let mut prng = Prng::stream(5, "arithmetic");
    for _ in 0..200 {
        let (a, b) = (prng.below(1 << 8), prng.below(1 << 8));
        let bits: Vec<bool> = (0..16).map(|bit| (a | b << 8) >> bit & 1 == 1).collect();
        let number = |outputs: Vec<bool>| outputs.iter().rev().fold(0, |sum, bit| 2 * sum + u64::from(*bit));
        assert_eq!(number(ripple_adder(8).evaluate(&bits)), a + b);
        assert_eq!(number(prefix_adder(8).evaluate(&bits)), a + b);
        assert_eq!(number(multiplier(8, false).evaluate(&bits)), a * b);
        assert_eq!(number(multiplier(8, true).evaluate(&bits)), a * b);
    }
}

#[test]
fn a_budget_of_one_conflict_never_refutes_what_needs_more() {
    for cnf in [pigeonhole(6), miter(&multiplier(5, false), &multiplier(5, true))] {
        assert!(matches!(solve(&cnf, &[], Budget::conflicts(1)), Outcome::Undecided(_)));
    }
    let mut prng = Prng::stream(6, "budget");
    for _ in 0..300 {
        let cnf = random_3_sat(&mut prng, 12, 52);
        match solve(&cnf, &[], Budget::conflicts(1)) {
            Outcome::Unsatisfiable { .. } => assert!(!has_model(&cnf)),
            Outcome::Satisfiable { model } => assert_eq!(cnf.first_violated(&model), None),
            Outcome::Undecided(_) => {}
        }
    }
}
