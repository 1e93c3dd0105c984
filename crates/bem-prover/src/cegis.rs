//! Counterexample-guided synthesis: propose a circuit, ask for a row where it is wrong, learn that row, repeat.
//!
//! The one who knows the function is an [`Oracle`]: a list of wanted rows, or a circuit. Sizes are tried from the
//! smallest possible upwards, and each size that is left behind was refuted with a certificate or is reported as
//! undecided, so "smallest" is either proven or not claimed. Every step is visible to an observer.
//! Clauses: SCC-7. Decisions: D-20, D-21.

use crate::equivalence::{Equivalence, EquivalenceOptions, check_equivalence_with};
use crate::exact::{Candidate, Question, Search};
use crate::solver::{Budget, Why};
use crate::specification::{Answers, Specification};
use bem_checker::{Certificate, Cnf};
use bem_circuit::netlist::{Builder, Netlist, Signal};

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

/// What happened in the loop.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A circuit of this size was proposed.
    Proposed {
        /// Its gates.
        gates: usize,
        /// The circuit.
        circuit: &'a Netlist,
    },
    /// The oracle found a row where it is wrong.
    Counterexample {
        /// The row; input `i` is bit `i`.
        row: u64,
    },
    /// No circuit of this size exists.
    Refuted {
        /// The size.
        gates: usize,
    },
    /// The budget ran out at this size.
    Undecided {
        /// The size.
        gates: usize,
    },
}

/// How far to search.
#[derive(Clone, Copy, Debug)]
pub struct SynthesisOptions {
    /// The most gates to try.
    pub gates_max: usize,
    /// What the solver may spend on each attempt.
    pub budget: Budget,
}

impl Default for SynthesisOptions {
    fn default() -> SynthesisOptions {
        SynthesisOptions { gates_max: 12, budget: Budget::conflicts(200_000) }
    }
}

/// The proof that no circuit of one size meets the specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refutation {
    /// The size.
    pub gates: usize,
    /// The formula whose models are the circuits of this size.
    pub formula: Cnf,
    /// The proof that it has none, accepted by the checker.
    pub certificate: Certificate,
}

/// What is known about smaller circuits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerBound {
    /// Sizes below this cannot even read all the inputs that the outputs depend on.
    pub by_counting: usize,
    /// Proofs for sizes from there on.
    pub refutations: Vec<Refutation>,
    /// Sizes on which the budget ran out.
    pub undecided: Vec<usize>,
}

impl LowerBound {
    /// Whether every size below the one reached was excluded.
    pub fn is_complete(&self) -> bool {
        self.undecided.is_empty()
    }
}

/// The end of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synthesis {
    /// A circuit that the oracle found right.
    Found {
        /// The circuit.
        circuit: Netlist,
        /// Its two-input gates; inverters at outputs that no gate can absorb are not counted.
        gates: usize,
        /// It is a smallest one if this is complete.
        smaller: LowerBound,
    },
    /// No circuit within the bound was found; there is none if the bound is complete.
    NotFound {
        /// What is known about the sizes tried.
        smaller: LowerBound,
    },
}

/// Searches for a smallest circuit.
#[doc(alias = "CEGIS")]
pub fn synthesize(
    oracle: &dyn Oracle,
    options: SynthesisOptions,
    observe: &mut dyn FnMut(&Event<'_>),
) -> Synthesis {
    assert!(oracle.inputs() <= 64);
    let trivial: Vec<Option<Netlist>> =
        (0..oracle.outputs()).map(|output| gateless(oracle, output)).collect();
    let open: Vec<usize> = (0..oracle.outputs()).filter(|output| trivial[*output].is_none()).collect();
    let specification = oracle.specification().map(|table| table.project(&open));
    let by_counting = specification.as_ref().map_or(1, lower_bound_by_counting);
    let mut smaller = LowerBound { by_counting, refutations: Vec::new(), undecided: Vec::new() };
    if open.is_empty() {
        smaller.by_counting = 0;
        return Synthesis::Found { circuit: join(oracle.inputs(), &trivial, None), gates: 0, smaller };
    }
    let mut rows: Vec<u64> = Vec::new();
    for gates in by_counting..=options.gates_max {
        let question = match &specification {
            Some(specification) => Question::new(specification, gates),
            None => Question {
                inputs: oracle.inputs(),
                gates,
                origin: select(&oracle.answers(0), &open),
                symmetric: Vec::new(),
                essential: Vec::new(),
            },
        };
        match search_size(oracle, &open, question, &mut rows, options.budget, observe) {
            Candidate::Circuit(part) => {
                let circuit = join(oracle.inputs(), &trivial, Some(&part));
                return Synthesis::Found { circuit, gates, smaller };
            }
            Candidate::None { formula, certificate } => {
                observe(&Event::Refuted { gates });
                smaller.refutations.push(Refutation { gates, formula, certificate });
            }
            Candidate::Undecided(_) => {
                observe(&Event::Undecided { gates });
                smaller.undecided.push(gates);
            }
        }
    }
    Synthesis::NotFound { smaller }
}

/// The loop for one size: ends with a circuit that is right, or without one.
fn search_size(
    oracle: &dyn Oracle,
    open: &[usize],
    question: Question,
    rows: &mut Vec<u64>,
    budget: Budget,
    observe: &mut dyn FnMut(&Event<'_>),
) -> Candidate {
    let gates = question.gates;
    let mut search = Search::new(question);
    for row in rows.iter() {
        search.add_row(*row, &select(&oracle.answers(*row), open));
    }
    loop {
        let candidate = search.attempt(budget);
        let Candidate::Circuit(circuit) = &candidate else { return candidate };
        observe(&Event::Proposed { gates, circuit });
        match oracle.judge(open, circuit) {
            Judgement::Right => return candidate,
            Judgement::Undecided(why) => return Candidate::Undecided(why),
            Judgement::Wrong { row } => {
                observe(&Event::Counterexample { row });
                // A row that was already demanded cannot be wrong again, so the loop ends.
                assert!(!rows.contains(&row), "row {row} was demanded and is wrong");
                rows.push(row);
                search.add_row(row, &select(&oracle.answers(row), open));
            }
        }
    }
}

fn select(answers: &[Option<bool>], outputs: &[usize]) -> Answers {
    outputs.iter().map(|output| answers[*output]).collect()
}

/// A circuit without two-input gates for an output: a constant, an input, or an inverted input.
fn gateless(oracle: &dyn Oracle, output: usize) -> Option<Netlist> {
    let inputs = oracle.inputs();
    let mut choices = vec![(Signal::FALSE, false), (Signal::TRUE, false)];
    for input in 0..inputs {
        choices.extend([(Signal::input(input), false), (Signal::input(input), true)]);
    }
    choices.into_iter().find_map(|(signal, inverted)| {
        let mut builder = Builder::new(inputs);
        let wire = if inverted { builder.not(signal) } else { signal };
        let circuit = builder.finish(&[wire]).expect("a wire is within every bound");
        (oracle.judge(&[output], &circuit) == Judgement::Right).then_some(circuit)
    })
}

/// Gates that are needed only to read every input that one output depends on.
fn lower_bound_by_counting(specification: &Specification) -> usize {
    let reads = |output: usize| {
        (0..specification.inputs()).filter(|input| specification.is_essential(*input, output)).count()
    };
    (0..specification.outputs()).map(|output| reads(output).saturating_sub(1)).max().unwrap_or(0).max(1)
}

/// Puts the outputs without gates and the synthesized part together, in the order of the outputs.
fn join(inputs: usize, trivial: &[Option<Netlist>], part: Option<&Netlist>) -> Netlist {
    let gates_part = part.map_or(&[][..], |part| part.gates());
    let mut gates = gates_part.to_vec();
    let mut wires_part = part.map_or(&[][..], |part| part.outputs()).iter();
    let mut outputs = Vec::new();
    for choice in trivial {
        match choice {
            None => outputs.push(*wires_part.next().expect("one wire for every open output")),
            Some(circuit) => {
                let first = gates.len();
                gates.extend_from_slice(circuit.gates());
                let wire = circuit.outputs()[0];
                let moved =
                    circuit.gate_position(wire).map(|gate| Signal::from_index(2 + inputs + first + gate));
                outputs.push(moved.unwrap_or(wire));
            }
        }
    }
    Netlist::new(inputs, gates, outputs).expect("an exact circuit is far below every bound")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smallest(specification: &Specification) -> (Netlist, usize) {
        let found = synthesize(specification, SynthesisOptions::default(), &mut |_| {});
        let Synthesis::Found { circuit, gates, smaller } = found else { panic!("{found:?}") };
        assert_eq!(specification.first_violated(&circuit), None);
        assert!(smaller.is_complete());
        assert_eq!(smaller.refutations.len(), gates.saturating_sub(smaller.by_counting));
        for refutation in &smaller.refutations {
            assert!(refutation.certificate.check(&refutation.formula).is_ok());
        }
        (circuit, gates)
    }

    fn symmetric(inputs: usize, outputs: usize, value: impl Fn(u32) -> u32) -> Specification {
        Specification::from_function(inputs, outputs, |row| {
            let value = value(row.count_ones());
            (0..outputs).map(|output| Some(value >> output & 1 == 1)).collect()
        })
    }

    #[test]
    fn known_minimum_sizes_are_found_and_proven() {
        assert_eq!(smallest(&symmetric(3, 2, |ones| ones)).1, 5, "full adder");
        assert_eq!(smallest(&symmetric(3, 1, |ones| u32::from(2 <= ones))).1, 4, "majority of three");
        assert_eq!(smallest(&symmetric(4, 1, |ones| u32::from(ones == 2))).1, 6, "two of four");
        assert_eq!(
            smallest(&symmetric(4, 1, |ones| u32::from(ones % 3 == 0))).1,
            7,
            "multiple of three of four"
        );
        for inputs in 1..=7 {
            assert_eq!(smallest(&symmetric(inputs, 1, |ones| ones & 1)).1, inputs - 1, "parity of {inputs}");
        }
    }

    #[test]
    fn outputs_without_gates_and_complements_cost_nothing() {
        // Constant, input, inverted input, conjunction and its complement.
        let specification = Specification::from_function(2, 5, |row| {
            let (a, b) = (row & 1 == 1, row >> 1 == 1);
            [true, a, !b, a && b, !(a && b)].map(Some).to_vec()
        });
        let (circuit, gates) = smallest(&specification);
        assert_eq!(gates, 1);
        assert_eq!(circuit.gates().len(), 3, "and two inverters");
    }

    #[test]
    fn open_rows_make_circuits_smaller() {
        // Exclusive or of three where the rows with more than one true input do not matter: a disjunction.
        let specification = Specification::from_function(3, 1, |row| {
            vec![(row.count_ones() < 2).then_some(row.count_ones() == 1)]
        });
        assert_eq!(smallest(&specification).1, 2);
        // Nothing is wanted in row 0, so either polarity will do: `!(a & b)` from three rows.
        let specification = Specification::parse("10 1\n01 1\n11 0").unwrap();
        assert_eq!(smallest(&specification).1, 1);
    }

    #[test]
    fn the_loop_shows_its_candidates_and_counterexamples() {
        let (mut proposed, mut rows, mut refuted) = (0, Vec::new(), Vec::new());
        let majority = symmetric(3, 1, |ones| u32::from(2 <= ones));
        synthesize(&majority, SynthesisOptions::default(), &mut |event| match event {
            Event::Proposed { .. } => proposed += 1,
            Event::Counterexample { row } => rows.push(*row),
            Event::Refuted { gates } => refuted.push(*gates),
            Event::Undecided { .. } => panic!("the budget is ample"),
        });
        assert_eq!(refuted, [2, 3]);
        assert_eq!(proposed, rows.len() + 1, "all candidates but the last were refuted by a row");
        assert!(rows.len() < 8, "{rows:?}");
    }

    #[test]
    fn a_circuit_can_be_the_oracle_beyond_any_table() {
        // Twelve inputs, of which the function reads four.
        let mut builder = Builder::new(12);
        let wires = [3, 5, 8, 11].map(|input| builder.input(input));
        let left = builder.and(wires[0], wires[1]);
        let right = builder.and(wires[2], wires[3]);
        let output = builder.xor(left, right);
        let circuit = builder.finish(&[output, wires[0]]).unwrap();
        let options = EquivalenceOptions { exhaustive_inputs: 0, budget: Budget::DEFAULT };
        let oracle = CircuitOracle::new(circuit.clone(), options);
        let found = synthesize(&oracle, SynthesisOptions::default(), &mut |_| {});
        let Synthesis::Found { circuit: smaller, gates, .. } = found else { panic!("{found:?}") };
        assert_eq!(gates, 3);
        assert!(check_equivalence_with(&circuit, &smaller, options).is_equal());
    }

    #[test]
    fn without_budget_minimality_is_not_claimed() {
        let options = SynthesisOptions { gates_max: 7, budget: Budget::conflicts(30) };
        let found = synthesize(&symmetric(4, 1, |ones| u32::from(ones % 3 == 0)), options, &mut |_| {});
        let (Synthesis::Found { smaller, .. } | Synthesis::NotFound { smaller }) = found;
        assert!(!smaller.is_complete());
    }

    #[test]
    fn too_few_gates_are_a_proven_no() {
        let options = SynthesisOptions { gates_max: 3, ..SynthesisOptions::default() };
        let found = synthesize(&symmetric(3, 1, |ones| u32::from(2 <= ones)), options, &mut |_| {});
        assert!(matches!(found, Synthesis::NotFound { smaller } if smaller.is_complete()));
    }
}
