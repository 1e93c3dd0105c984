//! A graph of conjunctions and sums over GF(2), in which two things that are built alike are one.
//!
//! Conditions put a circuit and what it is said to do into one graph. A conjunction is a set of signals, a sum is a set
//! of signals and a constant, so that neither knows an order (decision D-36: clause learning needs exponential time on
//! reordered sums). What is still two signals goes to the solver as clauses. The graph shares no code with the builder of
//! circuits; with the encoding into clauses it is part of what is trusted. Clauses: SCC-3, SCC-4, VM-2.

use crate::encode::{Wire, encode_gate, require_difference};
use crate::solver::{Budget, Outcome, Why, solve};
use bem_checker::{Certificate, Cnf, Literal};
use bem_circuit::netlist::{Netlist, Op};
use std::collections::BTreeMap;

/// Signals in one conjunction; a longer one is nested.
const CONJUNCTION_MAX: usize = 64;
/// Nodes at most: what needs more is not compared.
pub const NODES_MAX: usize = 1 << 20;

/// A signal of the graph: a node or its complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bit(u32);

impl Bit {
    /// The constant false.
    pub const FALSE: Bit = Bit(0);
    /// The constant true.
    pub const TRUE: Bit = Bit(1);

    /// A constant.
    pub const fn constant(value: bool) -> Bit {
        Bit(value as u32)
    }

    const fn node(self) -> usize {
        (self.0 >> 1) as usize
    }

    const fn is_complement(self) -> bool {
        self.0 & 1 == 1
    }

    const fn xor(self, value: bool) -> Bit {
        Bit(self.0 ^ value as u32)
    }
}

impl core::ops::Not for Bit {
    type Output = Bit;

    fn not(self) -> Bit {
        self.xor(true)
    }
}

/// What a place of the graph stands for; alike nodes are one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    /// The constant false; only the first node.
    False,
    Input(u32),
    /// All of these, in rising order, at least two.
    And(Vec<Bit>),
    /// An odd number of these nodes, in rising order, at least two; none of them is a sum.
    Sum(Vec<u32>),
}

/// Whether two lists of signals are the same functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sameness {
    /// They are; the formula says that they differ somewhere and has no model.
    Same {
        /// That some pair differs.
        formula: Cnf,
        /// The proof that none does.
        certificate: Certificate,
    },
    /// They differ for these inputs.
    Different(Vec<bool>),
    /// Neither was shown within the budget.
    Undecided(Why),
}

/// Signals over some inputs.
#[derive(Clone, Debug)]
pub struct Graph {
    inputs: usize,
    nodes: Vec<Node>,
    known: BTreeMap<Node, u32>,
}

impl Graph {
    /// A graph of so many inputs.
    pub fn new(inputs: usize) -> Graph {
        let mut graph = Graph { inputs, nodes: Vec::new(), known: BTreeMap::new() };
        graph.add(Node::False);
        (0..inputs as u32).for_each(|input| {
            graph.add(Node::Input(input));
        });
        graph
    }

    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// An input.
    pub fn input(&self, index: usize) -> Bit {
        assert!(index < self.inputs, "input {index} of {}", self.inputs);
        Bit(2 * (1 + index as u32))
    }

    /// Whether there are more nodes than are compared.
    pub fn is_full(&self) -> bool {
        NODES_MAX < self.nodes.len()
    }

    fn add(&mut self, node: Node) -> Bit {
        if let Some(index) = self.known.get(&node) {
            return Bit(2 * index);
        }
        let index = self.nodes.len() as u32;
        self.known.insert(node.clone(), index);
        self.nodes.push(node);
        Bit(2 * index)
    }

    /// Both hold.
    pub fn and(&mut self, a: Bit, b: Bit) -> Bit {
        self.all(&[a, b])
    }

    /// One of the two holds, or both.
    pub fn or(&mut self, a: Bit, b: Bit) -> Bit {
        !self.and(!a, !b)
    }

    /// All hold; of none it is true.
    pub fn all(&mut self, bits: &[Bit]) -> Bit {
        let mut parts: Vec<Bit> = Vec::new();
        for bit in bits {
            match &self.nodes[bit.node()] {
                Node::And(inner) if !bit.is_complement() && parts.len() + inner.len() <= CONJUNCTION_MAX => {
                    parts.extend_from_slice(inner);
                }
                _ => parts.push(*bit),
            }
        }
        parts.retain(|bit| *bit != Bit::TRUE);
        parts.sort_unstable();
        parts.dedup();
        // A signal and its complement are neighbours.
        if parts.first() == Some(&Bit::FALSE) || parts.windows(2).any(|pair| pair[0] == !pair[1]) {
            return Bit::FALSE;
        }
        match parts[..] {
            [] => Bit::TRUE,
            [one] => one,
            _ => self.add(Node::And(parts)),
        }
    }

    /// One of them holds, or more; of none it is false.
    pub fn any(&mut self, bits: &[Bit]) -> Bit {
        let inverted: Vec<Bit> = bits.iter().map(|bit| !*bit).collect();
        !self.all(&inverted)
    }

    /// The two differ.
    pub fn xor(&mut self, a: Bit, b: Bit) -> Bit {
        let complement = a.is_complement() ^ b.is_complement();
        let (left, right) = (self.leaves(a.node()), self.leaves(b.node()));
        let mut sum = Vec::with_capacity(left.len() + right.len());
        let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
        loop {
            match (left.peek(), right.peek()) {
                (Some(one), Some(other)) if one == other => {
                    left.next();
                    right.next();
                }
                (Some(one), Some(other)) if one < other => sum.extend(left.next()),
                (_, Some(_)) => sum.extend(right.next()),
                (Some(_), None) => sum.extend(left.next()),
                (None, None) => break,
            }
        }
        match sum[..] {
            [] => Bit::constant(complement),
            [one] => Bit(2 * one).xor(complement),
            _ => self.add(Node::Sum(sum)).xor(complement),
        }
    }

    /// The nodes that a node adds up, in rising order.
    fn leaves(&self, node: usize) -> Vec<u32> {
        match &self.nodes[node] {
            Node::False => Vec::new(),
            Node::Sum(leaves) => leaves.clone(),
            _ => vec![node as u32],
        }
    }

    /// An odd number of them hold.
    pub fn odd(&mut self, bits: &[Bit]) -> Bit {
        bits.iter().fold(Bit::FALSE, |sum, bit| self.xor(sum, *bit))
    }

    /// One signal or the other, as a third one says.
    pub fn choose(&mut self, which: Bit, then: Bit, otherwise: Bit) -> Bit {
        let differ = self.xor(then, otherwise);
        let taken = self.and(which, differ);
        self.xor(otherwise, taken)
    }

    /// A circuit driven by these signals; returns its outputs.
    pub fn circuit(&mut self, circuit: &Netlist, inputs: &[Bit]) -> Vec<Bit> {
        assert!(inputs.len() == circuit.inputs());
        let mut signals = vec![Bit::FALSE, Bit::TRUE];
        signals.extend_from_slice(inputs);
        for gate in circuit.gates() {
            let (a, b) = (signals[gate.a.index()], signals[gate.b.index()]);
            signals.push(match gate.op {
                Op::And => self.and(a, b),
                Op::Or => self.or(a, b),
                Op::Xor => self.xor(a, b),
                Op::AndNot => self.and(a, !b),
                Op::Nand => !self.and(a, b),
                Op::Nor => !self.or(a, b),
                Op::Xnor => !self.xor(a, b),
                Op::Implies => self.or(!a, b),
            });
        }
        circuit.outputs().iter().map(|output| signals[output.index()]).collect()
    }

    /// Which nodes these signals depend on.
    fn cone(&self, bits: &[Bit]) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        bits.iter().for_each(|bit| needed[bit.node()] = true);
        for index in (0..self.nodes.len()).rev() {
            if needed[index] {
                self.mark_below(index, &mut needed);
            }
        }
        needed
    }

    fn mark_below(&self, index: usize, needed: &mut [bool]) {
        match &self.nodes[index] {
            Node::And(parts) => parts.iter().for_each(|part| needed[part.node()] = true),
            Node::Sum(leaves) => leaves.iter().for_each(|leaf| needed[*leaf as usize] = true),
            Node::False | Node::Input(_) => {}
        }
    }

    /// The inputs that these signals may depend on, in rising order.
    pub fn support(&self, bits: &[Bit]) -> Vec<usize> {
        let needed = self.cone(bits);
        (0..self.inputs).filter(|input| needed[1 + input]).collect()
    }

    /// The values of these signals, 64 rows side by side.
    pub fn evaluate(&self, inputs: &[u64], bits: &[Bit], values: &mut Vec<u64>) -> Vec<u64> {
        assert!(inputs.len() == self.inputs);
        values.clear();
        for node in &self.nodes {
            let value = match node {
                Node::False => 0,
                Node::Input(input) => inputs[*input as usize],
                Node::And(parts) => parts.iter().fold(u64::MAX, |all, part| all & value_of(values, *part)),
                Node::Sum(leaves) => leaves.iter().fold(0, |sum, leaf| sum ^ values[*leaf as usize]),
            };
            values.push(value);
        }
        bits.iter().map(|bit| value_of(values, *bit)).collect()
    }

    /// The clauses that two lists of signals differ somewhere: over the inputs first, then what the signals depend on.
    pub fn difference(&self, left: &[Bit], right: &[Bit]) -> Cnf {
        assert!(left.len() == right.len());
        let pairs: Vec<(Bit, Bit)> =
            left.iter().copied().zip(right.iter().copied()).filter(|(one, other)| one != other).collect();
        let bits: Vec<Bit> = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
        let mut formula = Cnf::new(0);
        let wires = self.clauses(&mut formula, &bits);
        let [left, right] = [0, 1].map(|first| {
            let every_other = bits.iter().skip(first).step_by(2);
            every_other.map(|bit| wire_of(&wires, *bit)).collect::<Vec<Wire>>()
        });
        require_difference(&mut formula, &left, &right);
        formula
    }

    /// Shows that two lists of signals are the same functions, or where they differ.
    pub fn compare(&self, left: &[Bit], right: &[Bit], budget: Budget) -> Sameness {
        self.decide(self.difference(left, right), budget)
    }

    /// Asks the solver whether a formula over the inputs has a model.
    fn decide(&self, formula: Cnf, budget: Budget) -> Sameness {
        match solve(&formula, &[], budget) {
            Outcome::Unsatisfiable { certificate, .. } => Sameness::Same { formula, certificate },
            Outcome::Satisfiable { model } => Sameness::Different(model[..self.inputs].to_vec()),
            Outcome::Undecided(why) => Sameness::Undecided(why),
        }
    }

    /// Adds clauses for all that these signals depend on; the first variables are the inputs. Returns the wires of all
    /// nodes; what was not needed is false.
    fn clauses(&self, formula: &mut Cnf, bits: &[Bit]) -> Vec<Wire> {
        let needed = self.cone(bits);
        let mut wires: Vec<Wire> = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let wire = match node {
                Node::Input(_) => Wire::Literal(formula.fresh()),
                Node::And(parts) if needed[index] => {
                    let parts: Vec<Wire> = parts.iter().map(|part| wire_of(&wires, *part)).collect();
                    all_of(formula, &parts)
                }
                Node::Sum(leaves) if needed[index] => {
                    let leaves: Vec<Wire> = leaves.iter().map(|leaf| wires[*leaf as usize]).collect();
                    odd_of(formula, &leaves)
                }
                _ => Wire::Constant(false),
            };
            wires.push(wire);
        }
        wires
    }
}

fn value_of(values: &[u64], bit: Bit) -> u64 {
    values[bit.node()] ^ if bit.is_complement() { u64::MAX } else { 0 }
}

fn wire_of(wires: &[Wire], bit: Bit) -> Wire {
    let wire = wires[bit.node()];
    if bit.is_complement() { wire.complement() } else { wire }
}

/// A wire that is true just when all of these are.
fn all_of(formula: &mut Cnf, wires: &[Wire]) -> Wire {
    let literals: Vec<Literal> = wires.iter().filter_map(literal).collect();
    let out = formula.fresh();
    let mut clause = vec![out];
    for part in literals {
        formula.add(&[!out, part]);
        clause.push(!part);
    }
    formula.add(&clause);
    Wire::Literal(out)
}

/// A wire that is true just when an odd number of these are.
fn odd_of(formula: &mut Cnf, wires: &[Wire]) -> Wire {
    wires.iter().fold(Wire::Constant(false), |sum, wire| encode_gate(formula, Op::Xor, sum, *wire))
}

/// Parts of a conjunction are literals: constants were left out when it was made.
fn literal(wire: &Wire) -> Option<Literal> {
    match wire {
        Wire::Literal(literal) => Some(*literal),
        Wire::Constant(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;
    use bem_circuit::testing::random_dense_netlist;

    #[test]
    fn a_graph_computes_what_its_circuits_do() {
        for seed in 0..60 {
            let mut prng = Prng::stream(seed, "graph");
            let circuit = random_dense_netlist(&mut prng, 8, 60, 4);
            let mut graph = Graph::new(8);
            let inputs: Vec<Bit> = (0..8).map(|input| graph.input(input)).collect();
            let outputs = graph.circuit(&circuit, &inputs);
            let words: Vec<u64> = (0..8).map(|_| prng.next_u64()).collect();
            let (mut values, mut want) = (Vec::new(), Vec::new());
            circuit.evaluate_words(&words, &mut values, &mut want);
            assert_eq!(graph.evaluate(&words, &outputs, &mut values), want);
        }
    }

    #[test]
    fn two_circuits_are_told_apart_or_proven_alike_as_their_tables_say() {
        let (mut alike, mut apart) = (0, 0);
        for seed in 0..80 {
            let mut prng = Prng::stream(seed, "graph/compare");
            let circuits = [0, 1].map(|_| random_dense_netlist(&mut prng, 3, 6, 1));
            let mut graph = Graph::new(3);
            let inputs: Vec<Bit> = (0..3).map(|input| graph.input(input)).collect();
            let [one, other] = circuits.each_ref().map(|circuit| graph.circuit(circuit, &inputs));
            let rows = (0..8u32).map(|row| [0, 1, 2].map(|bit| row >> bit & 1 == 1));
            let equal = rows.into_iter().all(|row| circuits[0].evaluate(&row) == circuits[1].evaluate(&row));
            match graph.compare(&one, &other, Budget::DEFAULT) {
                Sameness::Same { formula, certificate } => {
                    assert!(equal && certificate.check(&formula).is_ok());
                    alike += 1;
                }
                Sameness::Different(row) => {
                    assert_ne!(circuits[0].evaluate(&row), circuits[1].evaluate(&row));
                    apart += 1;
                }
                Sameness::Undecided(why) => panic!("{why}"),
            }
        }
        assert!(0 < alike && 0 < apart, "{alike} {apart}");
    }
}
