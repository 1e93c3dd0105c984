//! The one who knows the function: a list of wanted rows, or a circuit. Clause: SCC-7.

use crate::equivalence::{Equivalence, EquivalenceOptions, check_equivalence_with};
use crate::solver::Why;
use crate::specification::{Answers, Specification};
use bem_circuit::netlist::Netlist;

/// What an oracle says about a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is right everywhere.
    Right,
    /// It is wrong in this row (input `i` is bit `i`).
    Wrong {
        /// The row.
        row: u64,
    },
    /// The oracle could not tell.
    Undecided(Why),
}

/// Someone who knows the function. It has at most 64 inputs.
pub trait Oracle {
    /// How many inputs the function has.
    fn inputs(&self) -> usize;
    /// How many outputs the function has.
    fn outputs(&self) -> usize;
    /// What is wanted in a row.
    fn answers(&self, row: u64) -> Answers;
    /// Judges a candidate for some of the outputs, in this order.
    fn judge(&self, outputs: &[usize], candidate: &Netlist) -> Judgement;
    /// The whole function as rows, if there are few enough; from it follow symmetries and lower bounds.
    fn specification(&self) -> Option<&Specification> {
        None
    }
}

impl Oracle for Specification {
    fn inputs(&self) -> usize {
        Specification::inputs(self)
    }

    fn outputs(&self) -> usize {
        Specification::outputs(self)
    }

    fn answers(&self, row: u64) -> Answers {
        Specification::answers(self, row)
    }

    fn judge(&self, outputs: &[usize], candidate: &Netlist) -> Judgement {
        match self.project(outputs).first_violated(candidate) {
            None => Judgement::Right,
            Some(row) => Judgement::Wrong { row },
        }
    }

    fn specification(&self) -> Option<&Specification> {
        Some(self)
    }
}

/// Up to this many inputs a circuit is turned into its whole table.
const TABLE_INPUTS_MAX: usize = 10;

/// A circuit as the oracle: candidates are judged by equivalence, never by samples.
#[derive(Clone, Debug)]
pub struct CircuitOracle {
    circuit: Netlist,
    options: EquivalenceOptions,
    table: Option<Specification>,
}

impl CircuitOracle {
    /// The function of this circuit, which has at most 64 inputs and outputs.
    pub fn new(circuit: Netlist, options: EquivalenceOptions) -> CircuitOracle {
        assert!(circuit.inputs() <= 64 && circuit.outputs().len() <= 64);
        let table = (circuit.inputs() <= TABLE_INPUTS_MAX).then(|| {
            Specification::from_function(circuit.inputs(), circuit.outputs().len(), |row| {
                answers_of(&circuit, row)
            })
        });
        CircuitOracle { circuit, options, table }
    }
}

fn answers_of(circuit: &Netlist, row: u64) -> Answers {
    circuit.evaluate(&row_bits(row, circuit.inputs())).into_iter().map(Some).collect()
}

fn row_bits(row: u64, inputs: usize) -> Vec<bool> {
    (0..inputs).map(|input| row >> input & 1 == 1).collect()
}

impl Oracle for CircuitOracle {
    fn inputs(&self) -> usize {
        self.circuit.inputs()
    }

    fn outputs(&self) -> usize {
        self.circuit.outputs().len()
    }

    fn answers(&self, row: u64) -> Answers {
        answers_of(&self.circuit, row)
    }

    fn judge(&self, outputs: &[usize], candidate: &Netlist) -> Judgement {
        if let Some(table) = &self.table {
            return table.judge(outputs, candidate);
        }
        let chosen = outputs.iter().map(|output| self.circuit.outputs()[*output]).collect();
        let part = Netlist::new(self.circuit.inputs(), self.circuit.gates().to_vec(), chosen)
            .expect("a part of a circuit keeps within the bounds of the whole");
        match check_equivalence_with(&part, candidate, self.options) {
            Equivalence::Equal(_) => Judgement::Right,
            Equivalence::Different { input } => Judgement::Wrong {
                row: input.iter().enumerate().fold(0, |row, (index, bit)| row | u64::from(*bit) << index),
            },
            Equivalence::Undecided(why) => Judgement::Undecided(why),
            Equivalence::Mismatch => {
                unreachable!("candidates have the oracle's inputs and the chosen outputs")
            }
        }
    }

    fn specification(&self) -> Option<&Specification> {
        self.table.as_ref()
    }
}
