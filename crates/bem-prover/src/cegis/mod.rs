//! Counterexample-guided synthesis: propose a circuit, ask for a row where it is wrong, learn that row, repeat.
//!
//! The one who knows the function is an [`Oracle`]: a list of wanted rows, or a circuit. Sizes are tried from the
//! smallest possible upwards, and each size that is left behind was refuted with a certificate or is reported as
//! undecided, so "smallest" is either proven or not claimed. Every step is visible to an observer.
//! Clauses: SCC-7. Decisions: D-20, D-21.

mod oracle;

pub use oracle::{CircuitOracle, Judgement, Oracle};

use crate::exact::{Candidate, CircuitSearch, Question};
use crate::solver::{Budget, Why};
use crate::specification::{Answers, Specification};
use bem_checker::{Certificate, Cnf};
use bem_circuit::netlist::{Builder, Netlist, Signal};

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
    /// Counterexamples at most, over all sizes; the size at which they run out is undecided.
    pub rounds_max: usize,
}

impl Default for SynthesisOptions {
    fn default() -> SynthesisOptions {
        SynthesisOptions { gates_max: 12, budget: Budget::conflicts(200_000), rounds_max: usize::MAX }
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
        match search_size(oracle, &open, question, &mut rows, options, observe) {
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
    options: SynthesisOptions,
    observe: &mut dyn FnMut(&Event<'_>),
) -> Candidate {
    let gates = question.gates;
    let mut search = CircuitSearch::new(question);
    for row in rows.iter() {
        search.add_row(*row, &select(&oracle.answers(*row), open));
    }
    loop {
        let candidate = search.attempt(options.budget);
        let Candidate::Circuit(circuit) = &candidate else { return candidate };
        observe(&Event::Proposed { gates, circuit });
        match oracle.judge(open, circuit) {
            Judgement::Right => return candidate,
            Judgement::Undecided(why) => return Candidate::Undecided(why),
            Judgement::Wrong { row } => {
                observe(&Event::Counterexample { row });
                if options.rounds_max <= rows.len() {
                    return Candidate::Undecided(Why::Budget);
                }
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
mod tests;
