//! Do two circuits compute the same? Never sampled: every input is tried, or a proof covers them all.
//!
//! Up to [`EXHAUSTIVE_INPUTS_DEFAULT`] inputs the whole truth table is compared, 256 rows at a time, which beats
//! every solver; above, the miter of both goes to the solver. Clauses: SCC-3, SCC-4, VM-2. Decisions: D-21, D-36.

use crate::encode::miter;
use crate::solver::{Budget, Outcome, Why, solve};
use bem_checker::{Certificate, Cnf};
use bem_circuit::netlist::{Gate, Netlist};

/// Up to this many inputs the whole table is compared.
pub const EXHAUSTIVE_INPUTS_DEFAULT: usize = 16;
/// The most inputs that a caller may ask to compare exhaustively.
pub const EXHAUSTIVE_INPUTS_MAX: usize = 24;

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
    if left.inputs() <= options.exhaustive_inputs.min(EXHAUSTIVE_INPUTS_MAX) {
        return compare_tables(left, right);
    }
    prove_equal(left, right, options.budget)
}

/// Asks the solver, whatever the number of inputs.
pub fn prove_equal(left: &Netlist, right: &Netlist, budget: Budget) -> Equivalence {
    let formula = miter(left, right);
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

/// Words of one pass: four of 64 rows each.
const WORDS: usize = 4;
/// Rows of one pass.
const ROWS: u64 = 64 * WORDS as u64;
/// The value of input `i < 6` in the 64 rows of a word.
const LOW_INPUTS: [u64; 6] = [
    0xAAAA_AAAA_AAAA_AAAA,
    0xCCCC_CCCC_CCCC_CCCC,
    0xF0F0_F0F0_F0F0_F0F0,
    0xFF00_FF00_FF00_FF00,
    0xFFFF_0000_FFFF_0000,
    0xFFFF_FFFF_0000_0000,
];

fn compare_tables(left: &Netlist, right: &Netlist) -> Equivalence {
    let inputs = left.inputs();
    let rows = 1u64 << inputs;
    let mut left_values = values_for(left);
    let mut right_values = values_for(right);
    for start in (0..rows).step_by(ROWS as usize) {
        for input in 0..inputs {
            let row = |word: usize| start + 64 * word as u64;
            let value: [u64; WORDS] = core::array::from_fn(|word| match LOW_INPUTS.get(input) {
                Some(pattern) => *pattern,
                None => (row(word) >> input & 1).wrapping_neg(),
            });
            left_values[2 + input] = value;
            right_values[2 + input] = value;
        }
        evaluate_rows(left.gates(), 2 + inputs, &mut left_values);
        evaluate_rows(right.gates(), 2 + inputs, &mut right_values);
        for (a, b) in left.outputs().iter().zip(right.outputs()) {
            for word in 0..WORDS {
                let mut difference = left_values[a.index()][word] ^ right_values[b.index()][word];
                let first = start + 64 * word as u64;
                if rows < first + 64 {
                    difference &= if rows <= first { 0 } else { (1 << (rows - first)) - 1 };
                }
                if difference != 0 {
                    let row = first + u64::from(difference.trailing_zeros());
                    return Equivalence::Different {
                        input: (0..inputs).map(|input| row >> input & 1 == 1).collect(),
                    };
                }
            }
        }
    }
    Equivalence::Equal(Evidence::Exhaustive { rows })
}

fn values_for(circuit: &Netlist) -> Vec<[u64; WORDS]> {
    let mut values = vec![[0; WORDS]; 2 + circuit.inputs() + circuit.gates().len()];
    values[1] = [u64::MAX; WORDS];
    values
}

fn evaluate_rows(gates: &[Gate], first_gate: usize, values: &mut [[u64; WORDS]]) {
    for (position, gate) in gates.iter().enumerate() {
        let (a, b) = (values[gate.a.index()], values[gate.b.index()]);
        values[first_gate + position] = core::array::from_fn(|word| gate.op.apply(a[word], b[word]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_circuit::netlist::{Builder, Signal};

    fn ripple_adder(bits: usize) -> Netlist {
        let mut builder = Builder::new(2 * bits);
        let mut carry = Signal::FALSE;
        let mut outputs = Vec::new();
        for bit in 0..bits {
            let (a, b) = (builder.input(bit), builder.input(bits + bit));
            let half = builder.xor(a, b);
            outputs.push(builder.xor(half, carry));
            let generate = builder.and(a, b);
            let propagate = builder.and(half, carry);
            carry = builder.or(generate, propagate);
        }
        outputs.push(carry);
        builder.finish(&outputs).unwrap()
    }

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
}
