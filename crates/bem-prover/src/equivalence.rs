//! Do two circuits compute the same? Never sampled: every input is tried, or a proof covers them all.
//!
//! Up to [`EXHAUSTIVE_INPUTS_DEFAULT`] inputs the whole truth table is compared, 256 rows at a time, which beats
//! every solver; above, the miter of both goes to the solver. Clauses: SCC-3, SCC-4, VM-2. Decisions: D-21, D-36.

use crate::encode::{encode_circuit, fresh_inputs, miter, require_difference};
use crate::solver::{Budget, Outcome, Why, solve};
use bem_base::prng::Prng;
use bem_checker::{Certificate, Cnf};
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_circuit::simplify::Simplifier;
use bem_circuit::truth_table::{Inequality, TABLE_INPUTS_MAX, equal_exhaustive};

/// Up to this many inputs the whole table is compared.
pub const EXHAUSTIVE_INPUTS_DEFAULT: usize = 16;
/// The most inputs that a caller may ask to compare exhaustively.
pub const EXHAUSTIVE_INPUTS_MAX: usize = TABLE_INPUTS_MAX;

/// Why two circuits are known to be equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// All rows of the truth table agree.
    Exhaustive {
        /// How many rows there are.
        rows: u64,
    },
    /// The miter has no model; the checker accepted the certificate.
    Proof {
        /// The miter.
        formula: Cnf,
        /// The proof.
        certificate: Certificate,
    },
}

/// The answer of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Equivalence {
    /// They agree on every input.
    Equal(Evidence),
    /// They differ on this input; both were evaluated on it.
    Different {
        /// One value per input.
        input: Vec<bool>,
    },
    /// They have different numbers of inputs or outputs.
    Mismatch,
    /// Neither was shown within the budget.
    Undecided(Why),
}

impl Equivalence {
    /// Whether equality was shown.
    pub fn is_equal(&self) -> bool {
        matches!(self, Equivalence::Equal(_))
    }
}

/// How to compare.
#[derive(Clone, Copy, Debug)]
pub struct EquivalenceOptions {
    /// Up to this many inputs every row is tried; at most [`EXHAUSTIVE_INPUTS_MAX`].
    pub exhaustive_inputs: usize,
    /// What the solver may spend above that.
    pub budget: Budget,
}

impl Default for EquivalenceOptions {
    fn default() -> EquivalenceOptions {
        EquivalenceOptions { exhaustive_inputs: EXHAUSTIVE_INPUTS_DEFAULT, budget: Budget::DEFAULT }
    }
}

/// Compares two circuits with the default options.
pub fn check_equivalence(left: &Netlist, right: &Netlist) -> Equivalence {
    check_equivalence_with(left, right, EquivalenceOptions::default())
}

/// Compares two circuits.
pub fn check_equivalence_with(left: &Netlist, right: &Netlist, options: EquivalenceOptions) -> Equivalence {
    if left.inputs() != right.inputs() || left.outputs().len() != right.outputs().len() {
        return Equivalence::Mismatch;
    }
    // Only inputs that some gate or output reads can make a difference.
    let mut support = left.support();
    support.extend(right.support());
    support.sort_unstable();
    support.dedup();
    if support.len() <= options.exhaustive_inputs.min(EXHAUSTIVE_INPUTS_MAX) {
        return compare_tables(left, right, &support);
    }
    prove_equal(left, right, options.budget)
}

fn compare_tables(left: &Netlist, right: &Netlist, support: &[usize]) -> Equivalence {
    match equal_exhaustive(&restrict(left, support), &restrict(right, support)) {
        Ok(()) => Equivalence::Equal(Evidence::Exhaustive { rows: 1 << support.len() }),
        Err(Inequality::Differ(counterexample)) => {
            let mut input = vec![false; left.inputs()];
            for (position, value) in support.iter().zip(counterexample.inputs) {
                input[*position] = value;
            }
            Equivalence::Different { input }
        }
        Err(error) => unreachable!("the circuits have one shape and few inputs: {error}"),
    }
}

/// The circuit over these inputs alone; all others are false.
fn restrict(circuit: &Netlist, support: &[usize]) -> Netlist {
    let mut builder = Builder::new(support.len());
    let mut inputs = vec![Signal::FALSE; circuit.inputs()];
    for (position, input) in support.iter().enumerate() {
        inputs[*input] = Signal::input(position);
    }
    let outputs = builder.embed(circuit, &inputs);
    builder.finish(&outputs).expect("a restricted circuit is no larger than the whole")
}

/// Asks the solver, whatever the number of inputs. Both circuits must have the same shape.
pub fn prove_equal(left: &Netlist, right: &Netlist, budget: Budget) -> Equivalence {
    let formula = simplified_miter(left, right);
    match solve(&formula, &[], budget) {
        Outcome::Unsatisfiable { certificate, .. } => {
            Equivalence::Equal(Evidence::Proof { formula, certificate })
        }
        Outcome::Satisfiable { model } => {
            let input = model[..left.inputs()].to_vec();
            // The model satisfies the miter; that the miter means what it should is confirmed here.
            assert!(left.evaluate(&input) != right.evaluate(&input), "a counterexample shows a difference");
            Equivalence::Different { input }
        }
        Outcome::Undecided(why) => Equivalence::Undecided(why),
    }
}

/// The miter of both circuits after putting them into one simplifier, which merges sums over GF(2) in any order:
/// a solver would need exponential time to see that reordered exclusive ors are equal.
///
/// The certificate is about this formula, so the simplifier is part of what is trusted here, as the encoding is;
/// a simulation on random rows guards against a mistake in it.
pub fn simplified_miter(left: &Netlist, right: &Netlist) -> Cnf {
    let inputs: Vec<Signal> = (0..left.inputs()).map(Signal::input).collect();
    let mut simplifier = Simplifier::new(left.inputs());
    let mut outputs = simplifier.embed(left, &inputs);
    outputs.extend(simplifier.embed(right, &inputs));
    // Two circuits of the largest size may not fit into one; they are compared as they are.
    let Ok(joint) = simplifier.finish(&outputs) else { return miter(left, right) };
    assert_same_on_random_rows(left, right, &joint);
    let mut cnf = Cnf::new(0);
    let wires = fresh_inputs(&mut cnf, left.inputs());
    let wires = encode_circuit(&mut cnf, &joint, &wires);
    let (left, right) = wires.split_at(left.outputs().len());
    require_difference(&mut cnf, left, right);
    cnf
}

fn assert_same_on_random_rows(left: &Netlist, right: &Netlist, joint: &Netlist) {
    let mut prng = Prng::quick(left.gates().len() as u64);
    let (mut values, mut want, mut rest, mut got) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..4 {
        let words: Vec<u64> = (0..left.inputs()).map(|_| prng.next_u64()).collect();
        left.evaluate_words(&words, &mut values, &mut want);
        right.evaluate_words(&words, &mut values, &mut rest);
        want.append(&mut rest);
        joint.evaluate_words(&words, &mut values, &mut got);
        assert!(got == want, "simplification keeps the meaning");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ripple_adder;
    use bem_circuit::netlist::Op;
    use bem_circuit::testing::random_dense_netlist;

    #[test]
    fn a_circuit_equals_itself_by_table_and_by_proof() {
        for bits in [1, 3, 8, 12] {
            let adder = ripple_adder(bits);
            assert!(check_equivalence(&adder, &adder).is_equal());
            let answer = prove_equal(&adder, &adder, Budget::DEFAULT);
            let Equivalence::Equal(Evidence::Proof { formula, certificate }) = answer else {
                panic!("{answer:?}")
            };
            assert!(certificate.check(&formula).is_ok());
        }
    }

    #[test]
    fn exclusive_ors_in_another_order_are_equal_without_search() {
        let mut prng = Prng::stream(1, "order");
        let mut chain = |inputs: usize| {
            let mut order: Vec<usize> = (0..inputs).collect();
            prng.shuffle(&mut order);
            let mut builder = Builder::new(inputs);
            let sum = order.iter().fold(Signal::FALSE, |sum, input| builder.xor(sum, Signal::input(*input)));
            builder.finish(&[sum]).unwrap()
        };
        for inputs in [20, 40, 200] {
            let answer = prove_equal(&chain(inputs), &chain(inputs), Budget::conflicts(0));
            assert!(answer.is_equal(), "{inputs} inputs: {answer:?}");
        }
    }

    #[test]
    fn inputs_that_nobody_reads_do_not_count() {
        let circuit = |inputs: usize, input: usize| {
            Netlist::new(inputs, vec![], vec![Signal::input(3), Signal::input(input)]).unwrap()
        };
        let equal = check_equivalence(&circuit(500, 400), &circuit(500, 400));
        assert_eq!(equal, Equivalence::Equal(Evidence::Exhaustive { rows: 4 }));
        let Equivalence::Different { input } = check_equivalence(&circuit(500, 400), &circuit(500, 401))
        else {
            panic!("they differ")
        };
        assert_eq!(input.len(), 500);
        assert_ne!(input[400], input[401]);
        assert_eq!(check_equivalence(&circuit(500, 400), &circuit(499, 400)), Equivalence::Mismatch);
    }

    #[test]
    fn verdicts_equal_exhaustive_tables_on_ten_thousand_random_circuits() {
        let mut prng = Prng::stream(2, "verdicts");
        let (mut equal, mut different) = (0, 0);
        for round in 0..10_000 {
            let inputs = 2 + round % 11;
            let left = random_dense_netlist(&mut prng, inputs, 20, 2);
            let right = near_copy(&mut prng, &left);
            let truth = equal_exhaustive(&left, &right).is_ok();
            // Without the simplifier's help the solver has more to do.
            assert_eq!(solve(&miter(&left, &right), &[], Budget::DEFAULT).is_unsatisfiable(), truth);
            match prove_equal(&left, &right, Budget::DEFAULT) {
                Equivalence::Equal(Evidence::Proof { formula, certificate }) => {
                    assert!(truth && certificate.check(&formula).is_ok());
                    equal += 1;
                }
                Equivalence::Different { .. } => {
                    assert!(!truth);
                    different += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(1_000 < equal && 1_000 < different, "{equal} equal, {different} different");
    }

    /// The same circuit with every gate written in another way, and in half of the cases one gate changed.
    fn near_copy(prng: &mut Prng, circuit: &Netlist) -> Netlist {
        let changed = prng.below(2 * circuit.gates().len() as u64) as usize;
        let mut gates = circuit.gates().to_vec();
        if let Some(gate) = gates.get_mut(changed) {
            gate.op = Op::ALL[prng.below(8) as usize];
        }
        let mut builder = Builder::new(circuit.inputs());
        let mut map: Vec<Signal> = (0..2 + circuit.inputs()).map(Signal::from_index).collect();
        for gate in gates {
            // Any operation as a choice by its first input between two functions of the second.
            let (a, b) = (map[gate.a.index()], map[gate.b.index()]);
            let [low, high] = [Signal::FALSE, Signal::TRUE].map(|a| builder.gate(gate.op, a, b));
            map.push(builder.mux(a, high, low));
        }
        let outputs: Vec<Signal> = circuit.outputs().iter().map(|output| map[output.index()]).collect();
        builder.finish(&outputs).unwrap()
    }
}
