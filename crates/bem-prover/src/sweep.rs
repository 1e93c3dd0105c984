//! SAT sweeping: signals that always have the same value, or always opposite values, become one.
//!
//! Simulation proposes pairs, the solver decides; a counterexample sharpens the simulation. What stays undecided
//! within the budget stays apart. Must not restructure anything else. Clauses: SCC-7.

use crate::encode::{Wire, encode_signals, fresh_inputs};
use crate::solver::{Budget, Outcome, Profile, Solver};
use bem_base::prng::Prng;
use bem_checker::{Cnf, Literal};
use bem_circuit::netlist::{Netlist, Signal};
use bem_circuit::simplify::Simplifier;
use std::collections::BTreeMap;

/// Words of random patterns that tell signals apart at the start.
const WORDS: usize = 16;
/// Earlier signals that one signal is compared with at most.
const ATTEMPTS_MAX: usize = 4;

/// Values of every signal under many inputs, 64 to a word.
struct Patterns<'a> {
    circuit: &'a Netlist,
    words: Vec<Vec<u64>>,
    prng: Prng,
}

impl Patterns<'_> {
    fn simulate(&mut self, inputs: &[u64]) {
        let (mut values, mut outputs) = (Vec::new(), Vec::new());
        self.circuit.evaluate_words(inputs, &mut values, &mut outputs);
        for (words, value) in self.words.iter_mut().zip(values) {
            words.push(value);
        }
    }

    /// Adds an input that told two signals apart, and 63 others near it.
    fn learn(&mut self, input: &[bool]) {
        let words: Vec<u64> = input
            .iter()
            .map(|bit| {
                // Each lane but the first flips this bit with a chance of one in eight.
                let flips = self.prng.next_u64() & self.prng.next_u64() & self.prng.next_u64() & !1;
                u64::from(*bit).wrapping_neg() ^ flips
            })
            .collect();
        self.simulate(&words);
    }

    /// Whether the two have agreed (or, if `opposite`, disagreed) in every pattern so far.
    fn related(&self, one: usize, other: usize, opposite: bool) -> bool {
        let flip = u64::from(opposite).wrapping_neg();
        self.words[one].iter().zip(&self.words[other]).all(|(a, b)| *a == *b ^ flip)
    }
}

/// The same circuit in which signals that were proven equal or opposite are one.
pub(crate) fn sweep(circuit: &Netlist, budget: Budget) -> Netlist {
    let signals = 2 + circuit.inputs() + circuit.gates().len();
    let mut patterns =
        Patterns { circuit, words: vec![Vec::new(); signals], prng: Prng::stream(0, "prover/sweep") };
    for _ in 0..WORDS {
        let inputs: Vec<u64> = (0..circuit.inputs()).map(|_| patterns.prng.next_u64()).collect();
        patterns.simulate(&inputs);
    }
    let mut cnf = Cnf::new(0);
    let inputs = fresh_inputs(&mut cnf, circuit.inputs());
    let wires = encode_signals(&mut cnf, circuit, &inputs, |_| true);
    let mut solver = Solver::new(Profile::Thorough);
    solver.add_all(&cnf);

    // By signature, with its first bit made false: the signals that have it and are still themselves.
    let mut classes: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
    let mut simplifier = Simplifier::new(circuit.inputs());
    let mut map: Vec<Signal> = (0..2 + circuit.inputs()).map(Signal::from_index).collect();
    for signal in 0..signals {
        if let Some(position) = circuit.gate_position(Signal::from_index(signal)) {
            let gate = circuit.gates()[position];
            map.push(simplifier.gate(gate.op, map[gate.a.index()], map[gate.b.index()]));
        }
        if signal == Signal::TRUE.index() {
            continue;
        }
        let flip = (patterns.words[signal][0] & 1).wrapping_neg();
        let signature: Vec<u64> = patterns.words[signal][..WORDS].iter().map(|word| word ^ flip).collect();
        let class = classes.entry(signature).or_default();
        let mut merged = false;
        for earlier in class.iter().take(ATTEMPTS_MAX) {
            let opposite = (patterns.words[signal][0] ^ patterns.words[*earlier][0]) & 1 == 1;
            if patterns.related(signal, *earlier, opposite)
                && prove_related(
                    &mut solver,
                    [wires[signal], wires[*earlier]],
                    opposite,
                    budget,
                    &mut patterns,
                )
            {
                let same = map[*earlier];
                map[signal] = if opposite { simplifier.not(same) } else { same };
                merged = true;
                break;
            }
        }
        if !merged {
            class.push(signal);
        }
    }
    let outputs: Vec<Signal> = circuit.outputs().iter().map(|output| map[output.index()]).collect();
    simplifier.finish(&outputs).unwrap_or_else(|_| circuit.clone())
}

fn prove_related(
    solver: &mut Solver,
    wires: [Wire; 2],
    opposite: bool,
    budget: Budget,
    patterns: &mut Patterns<'_>,
) -> bool {
    // The two ways in which they could fail to be equal (or opposite).
    let ways = [[true, opposite], [false, !opposite]];
    for way in ways {
        let mut assumptions: Vec<Literal> = Vec::new();
        let mut possible = true;
        for (wire, value) in wires.iter().zip(way) {
            match wire {
                Wire::Constant(constant) => possible &= *constant == value,
                Wire::Literal(literal) => assumptions.push(literal.xor(!value)),
            }
        }
        if !possible {
            continue;
        }
        match solver.solve(&assumptions, budget) {
            Outcome::Unsatisfiable { .. } => {}
            Outcome::Satisfiable { model } => {
                patterns.learn(&model[..patterns.circuit.inputs()]);
                return false;
            }
            Outcome::Undecided(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_circuit::netlist::Builder;
    use bem_circuit::testing::random_dense_netlist;
    use bem_circuit::truth_table::equal_exhaustive;

    #[test]
    fn equal_signals_of_different_structure_are_merged() {
        // (a & b) | (a & c) and a & (b | c), each an output.
        let mut builder = Builder::new(3);
        let [a, b, c] = [0, 1, 2].map(|input| builder.input(input));
        let (left, right) = (builder.and(a, b), builder.and(a, c));
        let first = builder.or(left, right);
        let either = builder.or(b, c);
        let second = builder.and(a, either);
        let third = builder.not(second);
        let circuit = builder.finish(&[first, second, third]).unwrap();
        let swept = sweep(&circuit, Budget::conflicts(100));
        assert_eq!(equal_exhaustive(&circuit, &swept), Ok(()));
        assert_eq!(swept.outputs()[0], swept.outputs()[1]);
    }

    #[test]
    fn sweeping_keeps_the_meaning() {
        let mut prng = Prng::stream(1, "sweep");
        for _ in 0..100 {
            let circuit = random_dense_netlist(&mut prng, 5, 40, 3);
            let swept = sweep(&circuit, Budget::conflicts(100));
            assert_eq!(equal_exhaustive(&circuit, &swept), Ok(()));
            assert!(swept.gates().len() <= circuit.gates().len() + circuit.outputs().len());
        }
    }
}
