//! Exhaustive simulation: the complete truth table of a circuit, 256 assignments at a time.
//!
//! The last word on meaning for circuits of few inputs: it decides equality without a solver. Must not know how a
//! circuit was made. Clauses: VM-2.

use crate::compile::Evaluator;
use crate::interpret::Interpreted;
use crate::lanes::LaneWord;
use crate::netlist::Netlist;
use crate::placed::{Evaluate, PlacedCircuit, Placement, Scratch};
use bem_base::limits::LANES;

/// Inputs of the largest circuit that is simulated on all assignments: 2^20 of them.
pub const TABLE_INPUTS_MAX: usize = 20;

/// Inputs that are told apart by the lane; the others by the block.
const LANE_INPUTS: usize = LANES.ilog2() as usize;

/// The value of every output for every assignment.
///
/// Assignment `i` gives input `k` the value of bit `k` of `i`. Unused bits of the last word are zero.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TruthTable {
    inputs: usize,
    outputs: Vec<Vec<u64>>,
}

/// Two circuits that do not mean the same, or too large a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Inequality {
    /// Different numbers of inputs or outputs.
    #[error("one circuit has {} inputs and {} outputs, the other {} and {}", left.0, left.1, right.0, right.1)]
    Shape {
        /// Inputs and outputs of the first.
        left: (usize, usize),
        /// Inputs and outputs of the second.
        right: (usize, usize),
    },
    /// Too many inputs to try all assignments.
    #[error(transparent)]
    TooManyInputs(#[from] TooManyInputs),
    /// An assignment on which they differ.
    #[error("output {} differs for inputs {}", .0.output, .0.bits())]
    Differ(Counterexample),
}

/// A circuit with more inputs than [`TABLE_INPUTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{inputs} inputs are too many to try all assignments: at most {TABLE_INPUTS_MAX}")]
pub struct TooManyInputs {
    /// How many there are.
    pub inputs: usize,
}

/// The lowest assignment on which two circuits differ, and the lowest output that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// One value per input.
    pub inputs: Vec<bool>,
    /// The output that differs.
    pub output: usize,
}

impl Counterexample {
    /// The assignment as digits, input 0 first.
    pub fn bits(&self) -> String {
        self.inputs.iter().map(|bit| if *bit { '1' } else { '0' }).collect()
    }
}

impl TruthTable {
    /// Simulates a circuit on all assignments.
    pub fn new(circuit: &Netlist) -> Result<TruthTable, TooManyInputs> {
        let mut simulation = Simulation::new(circuit)?;
        let words = (1usize << circuit.inputs()).div_ceil(64);
        let mut outputs = vec![Vec::with_capacity(words.next_multiple_of(4)); circuit.outputs().len()];
        for block in 0..simulation.blocks() {
            for (table, result) in outputs.iter_mut().zip(simulation.run(block)) {
                table.extend(result.0);
            }
        }
        outputs.iter_mut().for_each(|table| table.truncate(words));
        Ok(TruthTable { inputs: circuit.inputs(), outputs })
    }

    /// How many inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// How many outputs.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The column of one output, 64 assignments to a word.
    pub fn words(&self, output: usize) -> &[u64] {
        &self.outputs[output]
    }

    /// The value of an output for an assignment.
    pub fn get(&self, output: usize, assignment: usize) -> bool {
        assert!(assignment < 1 << self.inputs, "assignment {assignment} of {} inputs", self.inputs);
        self.outputs[output][assignment / 64] >> (assignment % 64) & 1 == 1
    }
}

/// Whether two circuits have the same outputs for all assignments; the answer is exact.
///
/// Cost: both circuits once per 256 assignments.
pub fn equal_exhaustive(left: &Netlist, right: &Netlist) -> Result<(), Inequality> {
    let shape = |circuit: &Netlist| (circuit.inputs(), circuit.outputs().len());
    if shape(left) != shape(right) {
        return Err(Inequality::Shape { left: shape(left), right: shape(right) });
    }
    let (mut left, mut right) = (Simulation::new(left)?, Simulation::new(right)?);
    for block in 0..left.blocks() {
        let differences = left.run(block).iter().zip(right.run(block)).map(|(a, b)| *a ^ *b);
        let lowest =
            differences.enumerate().filter_map(|(output, word)| Some((word.first_lane()?, output))).min();
        if let Some((lane, output)) = lowest {
            let assignment = block * LANES + lane;
            let inputs = (0..left.inputs).map(|input| assignment >> input & 1 == 1).collect();
            return Err(Inequality::Differ(Counterexample { inputs, output }));
        }
    }
    Ok(())
}

/// A circuit prepared for all its assignments.
struct Simulation {
    inputs: usize,
    evaluator: Evaluator,
    planes: Vec<LaneWord>,
    results: Vec<LaneWord>,
    mask: LaneWord,
    scratch: Scratch,
}

impl Simulation {
    fn new(circuit: &Netlist) -> Result<Simulation, TooManyInputs> {
        let inputs = circuit.inputs();
        if TABLE_INPUTS_MAX < inputs {
            return Err(TooManyInputs { inputs });
        }
        let placed = PlacedCircuit::new(circuit.clone(), Placement::simulation(circuit), u32::MAX)
            .expect("a simulation uses each place once and has no cost bound");
        // Compiling costs about as much as a hundred interpreted blocks.
        let evaluator = if inputs < LANE_INPUTS + 7 {
            Evaluator::Interpreted(Interpreted::new(placed))
        } else {
            Evaluator::new(&placed)
        };
        let mut planes = vec![LaneWord::ZERO; inputs];
        for (input, plane) in planes.iter_mut().enumerate().take(LANE_INPUTS) {
            for lane in 0..LANES {
                plane.set(lane, lane >> input & 1 == 1);
            }
        }
        Ok(Simulation {
            inputs,
            evaluator,
            planes,
            results: vec![LaneWord::ZERO; circuit.outputs().len()],
            mask: LaneWord::first(LANES.min(1 << inputs)),
            scratch: Scratch::new(),
        })
    }

    fn blocks(&self) -> usize {
        (1usize << self.inputs).div_ceil(LANES)
    }

    /// The outputs for the assignments of this block; lanes without an assignment are false.
    fn run(&mut self, block: usize) -> &[LaneWord] {
        for (bit, plane) in self.planes.iter_mut().skip(LANE_INPUTS).enumerate() {
            *plane = LaneWord::splat(block >> bit & 1 == 1);
        }
        self.evaluator.evaluate(&mut self.planes, &self.mask, &mut self.results, &mut self.scratch);
        &self.results
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlist::{Builder, Gate, Op, Signal};
    use crate::testing::random_netlist;
    use bem_base::prng::Prng;

    #[test]
    fn tables_hold_what_the_circuit_computes_for_every_number_of_inputs() {
        let mut prng = Prng::stream(1, "tables");
        let largest = if cfg!(miri) { 9 } else { 13 };
        for inputs in 0..=largest {
            let circuit = random_netlist(&mut prng, inputs, 30, 3);
            let table = TruthTable::new(&circuit).unwrap();
            for assignment in (0..1usize << inputs).step_by(if cfg!(miri) { 37 } else { 1 }) {
                let bits: Vec<bool> = (0..inputs).map(|input| assignment >> input & 1 == 1).collect();
                let expected = circuit.evaluate(&bits);
                assert!((0..3).all(|output| table.get(output, assignment) == expected[output]));
            }
        }
    }

    #[test]
    fn equal_circuits_are_equal_and_a_changed_gate_is_found() {
        let mut prng = Prng::stream(2, "equal");
        let mut found = 0;
        for _ in 0..if cfg!(miri) { 4 } else { 300 } {
            let circuit = random_netlist(&mut prng, 10, 40, 4);
            assert_eq!(equal_exhaustive(&circuit, &circuit.cone(&[0, 1, 2, 3])), Ok(()));
            let mut gates = circuit.gates().to_vec();
            let changed = prng.below(40) as usize;
            gates[changed].op = gates[changed].op.complement();
            let other = Netlist::new(10, gates, circuit.outputs().to_vec()).unwrap();
            match equal_exhaustive(&circuit, &other) {
                Ok(()) => {}
                Err(Inequality::Differ(example)) => {
                    found += 1;
                    let (left, right) = (circuit.evaluate(&example.inputs), other.evaluate(&example.inputs));
                    assert_ne!(left[example.output], right[example.output]);
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(0 < found);
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much work for Miri")]
    fn the_one_assignment_that_differs_is_found_among_a_million() {
        // The conjunction of twenty inputs against the constant false: only the last assignment differs.
        let mut builder = Builder::new(20);
        let inputs: Vec<Signal> = (0..20).map(Signal::input).collect();
        let all = builder.and_all(&inputs);
        let conjunction = builder.finish(&[Signal::TRUE, all]).unwrap();
        let constant = Netlist::new(20, vec![], vec![Signal::TRUE, Signal::FALSE]).unwrap();
        let Err(Inequality::Differ(example)) = equal_exhaustive(&conjunction, &constant) else { panic!() };
        assert_eq!((example.bits(), example.output), ("1".repeat(20), 1));
    }

    #[test]
    fn questions_that_cannot_be_answered_say_why() {
        let circuit = |inputs, outputs| Netlist::new(inputs, vec![], vec![Signal::TRUE; outputs]).unwrap();
        let error = equal_exhaustive(&circuit(1, 2), &circuit(2, 2)).unwrap_err();
        assert_eq!(error.to_string(), "one circuit has 1 inputs and 2 outputs, the other 2 and 2");
        let error = equal_exhaustive(&circuit(21, 1), &circuit(21, 1)).unwrap_err();
        assert_eq!(error.to_string(), "21 inputs are too many to try all assignments: at most 20");
        let inverter = Gate { op: Op::Nand, a: Signal::input(0), b: Signal::TRUE };
        let inverted = Netlist::new(1, vec![inverter], vec![Signal::from_index(3)]).unwrap();
        let error = equal_exhaustive(&inverted, &circuit(1, 1)).unwrap_err();
        assert_eq!(error.to_string(), "output 0 differs for inputs 1");
    }
}
