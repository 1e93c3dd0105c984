//! Is there a circuit of exactly this many gates? A formula whose models are such circuits.
//!
//! The single-selection-variable encoding: for every gate and every pair of earlier signals one variable that
//! says "these two are my inputs", three variables for what the gate computes, and one for its value in each row.
//! All gates are normal, that is false when all inputs are false; a circuit can always be brought into that form
//! by complementing gates, so only the outputs need a polarity.
//!
//! Rules that only remove circuits for which another one of the same or smaller size exists make the search
//! shorter. They hold for a smallest circuit whose list of input pairs comes first in colexicographic order:
//! every gate is used; no gate reads another gate together with one of that gate's own inputs; neighbouring
//! gates that do not depend on each other are sorted; and of two inputs that may be swapped, the lower comes first.
//! So sizes must be refuted in increasing order, which [`crate::cegis`] does. Clauses: SCC-7.

use crate::solver::{Budget, Outcome, Profile, Solver, Why};
use crate::specification::Specification;
use bem_checker::{Certificate, Cnf, Literal};
use bem_circuit::netlist::{Gate, Netlist, Op, Signal};

/// Up to this many pairs, that a gate selects only one of them is said outright. It is not needed, because a gate
/// that agrees with several pairs agrees with the first, but it takes a third off the time to refute a size.
const UNIQUE_PAIRS_MAX: usize = 120;

/// The question for one size: inputs, gates, and the outputs that need a gate.
#[derive(Clone, Debug)]
pub struct Question {
    /// How many inputs the circuit has.
    pub inputs: usize,
    /// How many gates it may use; at least one.
    pub gates: usize,
    /// For each output its value when all inputs are false, if that is wanted.
    pub origin: Vec<Option<bool>>,
    /// Pairs `(p, q)` with `p < q` of inputs that may be swapped without changing what is asked.
    pub symmetric: Vec<(usize, usize)>,
    /// Inputs that some output must depend on.
    pub essential: Vec<usize>,
}

impl Question {
    /// The question whether a circuit with this many gates meets the specification.
    pub fn new(specification: &Specification, gates: usize) -> Question {
        let inputs = specification.inputs();
        let pairs = (0..inputs).flat_map(|other| (0..other).map(move |one| (one, other)));
        let essential = |input: &usize| {
            (0..specification.outputs()).any(|output| specification.is_essential(*input, output))
        };
        Question {
            inputs,
            gates,
            origin: specification.answers(0),
            symmetric: pairs.filter(|(one, other)| specification.is_symmetric(*one, *other)).collect(),
            essential: (0..inputs).filter(essential).collect(),
        }
    }
}

/// The answer for one size over the rows given so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// A circuit that is right in these rows.
    Circuit(Netlist),
    /// There is none of this size, and the checker accepted the proof.
    None {
        /// The formula that describes all circuits of this size.
        formula: Cnf,
        /// The proof that it has no model.
        certificate: Certificate,
    },
    /// Not shown within the budget.
    Undecided(Why),
}

/// The search for a circuit of one size; rows can be added between attempts.
#[derive(Debug)]
pub struct CircuitSearch {
    question: Question,
    solver: Solver,
    /// `selects[g]`: for each pair `j < k` of signals the variable that makes them the inputs of gate `g`.
    selects: Vec<Vec<(usize, usize, Literal)>>,
    /// `functions[g]`: the gate's value for inputs (1,0), (0,1) and (1,1).
    functions: Vec<[Literal; 3]>,
    /// `drives[o][g]`: output `o` is gate `g`.
    drives: Vec<Vec<Literal>>,
    /// `flips[o]`: output `o` is complemented, where the specification leaves that open.
    flips: Vec<Option<Literal>>,
}

impl CircuitSearch {
    /// A search without rows.
    pub fn new(question: Question) -> CircuitSearch {
        assert!(0 < question.gates);
        let mut solver = Solver::new(Profile::Thorough);
        let inputs = question.inputs;
        let selects = (0..question.gates)
            .map(|gate| {
                let signals = inputs + gate;
                let pairs = (0..signals).flat_map(|high| (0..high).map(move |low| (low, high)));
                pairs.map(|(low, high)| (low, high, solver.fresh())).collect()
            })
            .collect();
        let functions =
            (0..question.gates).map(|_| [solver.fresh(), solver.fresh(), solver.fresh()]).collect();
        let drives =
            question.origin.iter().map(|_| (0..question.gates).map(|_| solver.fresh()).collect()).collect();
        let flips = question.origin.iter().map(|value| value.is_none().then(|| solver.fresh())).collect();
        let mut search = CircuitSearch { question, solver, selects, functions, drives, flips };
        search.add_structure();
        search.add_order();
        search.add_symmetry();
        search
    }

    /// Every gate has inputs and a function that needs both; every output has a gate; every gate is used.
    fn add_structure(&mut self) {
        for gate in 0..self.question.gates {
            let choices: Vec<Literal> = self.selects[gate].iter().map(|(_, _, select)| *select).collect();
            self.solver.add(&choices);
            if choices.len() <= UNIQUE_PAIRS_MAX {
                for (position, one) in choices.iter().enumerate() {
                    choices[..position].iter().for_each(|other| self.solver.add(&[!*one, !*other]));
                }
            }
            let [first, second, both] = self.functions[gate];
            self.solver.add(&[first, second, both]);
            self.solver.add(&[!first, second, !both]);
            self.solver.add(&[first, !second, !both]);
            let mut users: Vec<Literal> = self.drives.iter().map(|gates| gates[gate]).collect();
            users.extend(self.readers(self.question.inputs + gate));
            self.solver.add(&users);
        }
        for output in 0..self.drives.len() {
            let gates = self.drives[output].clone();
            self.solver.add(&gates);
        }
        for input in self.question.essential.clone() {
            let readers = self.readers(input);
            self.solver.add(&readers);
        }
        if let [drives] = &self.drives[..] {
            // A single output of a smallest circuit is its last gate.
            let last = drives[self.question.gates - 1];
            self.solver.add(&[last]);
        }
    }

    /// All selections that read a signal.
    fn readers(&self, signal: usize) -> Vec<Literal> {
        let reads = |(low, high, select): &(usize, usize, Literal)| {
            (*low == signal || *high == signal).then_some(*select)
        };
        self.selects.iter().flatten().filter_map(reads).collect()
    }

    fn add_order(&mut self) {
        let mut clauses = Vec::new();
        for gate in 0..self.question.gates {
            let signal = self.question.inputs + gate;
            for (low, high, select) in &self.selects[gate] {
                // A gate over `low` (or `high`) and this gate could read `low` and `high` instead.
                for later in gate + 1..self.question.gates {
                    for (other_low, other_high, other) in &self.selects[later] {
                        if *other_high == signal && (other_low == low || other_low == high) {
                            clauses.push([!*select, !*other]);
                        }
                    }
                }
                // The next gate, if it does not read this one, comes after it in colexicographic order.
                for (next_low, next_high, next) in self.selects.get(gate + 1).into_iter().flatten() {
                    if *next_high != signal && (next_high, next_low) < (high, low) {
                        clauses.push([!*select, !*next]);
                    }
                }
            }
        }
        clauses.iter().for_each(|clause| self.solver.add(clause));
    }

    /// Of two inputs that may be swapped, the higher is read only by or after the first reader of the lower.
    fn add_symmetry(&mut self) {
        let mut clauses = Vec::new();
        for (lower, higher) in &self.question.symmetric {
            for gate in 0..self.question.gates {
                for (low, high, select) in &self.selects[gate] {
                    let reads = |signal: &usize| low == signal || high == signal;
                    if reads(higher) && !reads(lower) {
                        let mut clause = vec![!*select];
                        for (low, high, earlier) in self.selects[..gate].iter().flatten() {
                            if low == lower || high == lower {
                                clause.push(*earlier);
                            }
                        }
                        clauses.push(clause);
                    }
                }
            }
        }
        clauses.iter().for_each(|clause| self.solver.add(clause));
    }

    /// Demands the wanted outputs in a row (input `i` is bit `i`).
    pub fn add_row(&mut self, row: u64, answers: &[Option<bool>]) {
        assert!(answers.len() == self.drives.len());
        if row == 0 {
            // All gates are false there, and the polarities say the rest.
            return;
        }
        let values: Vec<Literal> = (0..self.question.gates).map(|_| self.solver.fresh()).collect();
        for gate in 0..self.question.gates {
            for (low, high, select) in self.selects[gate].clone() {
                self.add_gate_row(select, gate, [low, high], row, &values);
            }
        }
        for (output, want) in answers.iter().enumerate() {
            let Some(want) = want else { continue };
            for (gate, value) in values.iter().enumerate() {
                let drives = self.drives[output][gate];
                match self.flips[output] {
                    None => {
                        let flipped = self.question.origin[output] == Some(true);
                        self.solver.add(&[!drives, value.xor(*want == flipped)]);
                    }
                    Some(flip) => {
                        self.solver.add(&[!drives, flip, value.xor(!*want)]);
                        self.solver.add(&[!drives, !flip, value.xor(*want)]);
                    }
                }
            }
        }
    }

    /// If the gate reads these two signals, its value in the row is what its function says.
    fn add_gate_row(
        &mut self,
        select: Literal,
        gate: usize,
        signals: [usize; 2],
        row: u64,
        values: &[Literal],
    ) {
        for pattern in 0..4usize {
            let mut clause = vec![!select];
            let mut possible = true;
            for (position, signal) in signals.iter().enumerate() {
                let bit = pattern >> position & 1 == 1;
                match signal.checked_sub(self.question.inputs) {
                    None => possible &= (row >> signal & 1 == 1) == bit,
                    Some(earlier) => clause.push(values[earlier].xor(bit)),
                }
            }
            if !possible {
                continue;
            }
            let value = values[gate];
            if pattern == 0 {
                clause.push(!value);
                self.solver.add(&clause);
                continue;
            }
            let function = self.functions[gate][pattern - 1];
            clause.extend([!value, function]);
            self.solver.add(&clause);
            let length = clause.len();
            clause[length - 2..].copy_from_slice(&[value, !function]);
            self.solver.add(&clause);
        }
    }

    /// Looks for a circuit that is right in all rows so far.
    pub fn attempt(&mut self, budget: Budget) -> Candidate {
        match self.solver.solve(&[], budget) {
            Outcome::Satisfiable { model } => Candidate::Circuit(self.circuit(&model)),
            Outcome::Unsatisfiable { certificate, .. } => {
                Candidate::None { formula: self.solver.formula().clone(), certificate }
            }
            Outcome::Undecided(why) => Candidate::Undecided(why),
        }
    }

    fn circuit(&self, model: &[bool]) -> Netlist {
        let holds = |literal: &Literal| model[literal.variable() as usize - 1] != literal.is_negative();
        let gates: Vec<TableGate> = (0..self.question.gates)
            .map(|gate| {
                let chosen = self.selects[gate].iter().find(|(_, _, select)| holds(select));
                let (low, high, _) = chosen.expect("every gate selects its inputs");
                let [first, second, both] = self.functions[gate].map(|function| holds(&function));
                TableGate { inputs: [*low, *high], table: [false, first, second, both] }
            })
            .collect();
        let outputs: Vec<(usize, bool)> = (0..self.drives.len())
            .map(|output| {
                let gate = self.drives[output].iter().position(holds).expect("every output has a gate");
                let flipped = match &self.flips[output] {
                    Some(flip) => holds(flip),
                    None => self.question.origin[output] == Some(true),
                };
                (self.question.inputs + gate, flipped)
            })
            .collect();
        assemble(self.question.inputs, gates, &outputs)
    }
}

/// A gate by its table: the value for inputs (0,0), (1,0), (0,1), (1,1).
#[derive(Clone, Copy, Debug)]
struct TableGate {
    inputs: [usize; 2],
    table: [bool; 4],
}

/// Builds the netlist. Complemented outputs are absorbed into their gates; only an output wanted in both
/// polarities costs an inverter.
fn assemble(inputs: usize, mut gates: Vec<TableGate>, outputs: &[(usize, bool)]) -> Netlist {
    let mut flipped = vec![false; inputs + gates.len()];
    let mut settled = vec![false; inputs + gates.len()];
    for (signal, flip) in outputs {
        if inputs <= *signal && !settled[*signal] {
            settled[*signal] = true;
            flipped[*signal] = *flip;
        }
    }
    for (position, gate) in gates.iter_mut().enumerate() {
        let table = gate.table;
        let [low, high] = gate.inputs.map(|signal| usize::from(flipped[signal]));
        for (pattern, value) in gate.table.iter_mut().enumerate() {
            *value = table[pattern ^ low ^ high << 1] != flipped[inputs + position];
        }
    }
    let mut list: Vec<Gate> = gates.iter().map(netlist_gate).collect();
    let mut wires = Vec::new();
    for (signal, flip) in outputs {
        let plain = Signal::from_index(2 + signal);
        if *flip == flipped[*signal] {
            wires.push(plain);
        } else {
            list.push(Gate { op: Op::Xor, a: plain, b: Signal::TRUE });
            wires.push(Signal::from_index(2 + inputs + list.len() - 1));
        }
    }
    Netlist::new(inputs, list, wires).expect("an exact circuit is far below every bound")
}

fn netlist_gate(gate: &TableGate) -> Gate {
    let [low, high] = gate.inputs.map(|signal| Signal::from_index(2 + signal));
    for op in Op::ALL {
        for (a, b, swapped) in [(low, high, false), (high, low, true)] {
            let matches = (0..4u64).all(|pattern| {
                let (first, second) = (pattern & 1, pattern >> 1);
                let value = if swapped { op.apply(second, first) } else { op.apply(first, second) };
                (value & 1 == 1) == gate.table[pattern as usize]
            });
            if matches {
                return Gate { op, a, b };
            }
        }
    }
    unreachable!("a gate that needs both inputs is one of the eight operations, up to swapping them")
}
