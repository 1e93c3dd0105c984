//! Reduced ordered binary decision diagrams with one canonical order: input 0 is decided first.
//!
//! One diagram holds all outputs and shares their nodes. Nodes are numbered in one fixed way, so two circuits mean the
//! same exactly if their diagrams are equal as values. The number of nodes is bounded while building. The diagram is
//! our own: shared roots, a bound that counts nodes, and canonical numbering are what the machine needs, and the
//! crate it is tested against offers one root per diagram. Must not know what the inputs mean. Clauses: VM-2.

use crate::lanes::LaneWord;
use crate::netlist::{Builder, Netlist, NetlistError, Op, Signal};
use std::collections::BTreeMap;

/// Nodes of one diagram, those that only intermediate results need included.
pub const DIAGRAM_NODES_MAX: usize = 65_536;

/// A node's number: 0 is false, 1 is true, then the decisions.
pub type NodeIndex = u32;

/// A decision on one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decision {
    /// The input asked.
    pub input: u16,
    /// Where to go if it is false.
    pub low: NodeIndex,
    /// Where to go if it is true.
    pub high: NodeIndex,
}

/// Why a diagram cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the diagram needs more than {nodes_max} nodes")]
pub struct TooManyNodes {
    /// The bound that was passed.
    pub nodes_max: usize,
}

/// A circuit as a decision diagram.
///
/// Invariants: decisions come after their successors, ask inputs in rising order, differ in both branches and from each
/// other, are all needed, and are numbered in the order of a depth-first walk from the outputs, low branch first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bdd {
    inputs: usize,
    decisions: Vec<Decision>,
    outputs: Vec<NodeIndex>,
}

impl Bdd {
    /// The diagram of a circuit, with at most [`DIAGRAM_NODES_MAX`] nodes.
    pub fn from_netlist(circuit: &Netlist) -> Result<Bdd, TooManyNodes> {
        Bdd::from_netlist_within(circuit, DIAGRAM_NODES_MAX)
    }

    /// The diagram of a circuit, with at most this many nodes while it is built.
    pub fn from_netlist_within(circuit: &Netlist, nodes_max: usize) -> Result<Bdd, TooManyNodes> {
        let mut workshop = Workshop { nodes_max, ..Workshop::default() };
        let mut nodes: Vec<NodeIndex> = vec![0, 1];
        for input in 0..circuit.inputs() {
            nodes.push(workshop.node(Decision { input: input as u16, low: 0, high: 1 })?);
        }
        for gate in circuit.gates() {
            nodes.push(workshop.apply(gate.op, nodes[gate.a.index()], nodes[gate.b.index()])?);
        }
        let outputs: Vec<NodeIndex> = circuit.outputs().iter().map(|output| nodes[output.index()]).collect();
        Ok(renumber(circuit.inputs(), &workshop.decisions, &outputs))
    }

    /// A circuit that computes the same: one multiplexer or less per decision.
    pub fn to_netlist(&self) -> Result<Netlist, NetlistError> {
        let mut builder = Builder::new(self.inputs);
        let mut signals = vec![Signal::FALSE, Signal::TRUE];
        for decision in &self.decisions {
            let input = Signal::input(usize::from(decision.input));
            let (low, high) = (signals[decision.low as usize], signals[decision.high as usize]);
            signals.push(match (low, high) {
                (Signal::FALSE, high) => builder.and(input, high),
                (low, Signal::FALSE) => builder.and_not(low, input),
                (Signal::TRUE, high) => builder.gate(Op::Implies, input, high),
                (low, Signal::TRUE) => builder.or(input, low),
                _ => builder.mux(input, high, low),
            });
        }
        let outputs: Vec<Signal> = self.outputs.iter().map(|output| signals[*output as usize]).collect();
        builder.finish(&outputs)
    }

    /// How many inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The decisions; the first has node number 2.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// The node of each output.
    pub fn outputs(&self) -> &[NodeIndex] {
        &self.outputs
    }

    /// Evaluates all lanes at once; `values` is working memory and may be reused between calls.
    pub fn evaluate(&self, inputs: &[LaneWord], values: &mut Vec<LaneWord>, outputs: &mut [LaneWord]) {
        assert!(inputs.len() == self.inputs, "{} inputs given, {} expected", inputs.len(), self.inputs);
        assert!(
            outputs.len() == self.outputs.len(),
            "{} outputs, {} expected",
            outputs.len(),
            self.outputs.len()
        );
        values.clear();
        values.extend([LaneWord::ZERO, LaneWord::ONES]);
        for decision in &self.decisions {
            let (low, high) = (values[decision.low as usize], values[decision.high as usize]);
            values.push(inputs[usize::from(decision.input)].select(high, low));
        }
        for (value, output) in outputs.iter_mut().zip(&self.outputs) {
            *value = values[*output as usize];
        }
    }
}

/// A diagram under construction: nodes made once, results of operations remembered.
#[derive(Default)]
struct Workshop {
    nodes_max: usize,
    decisions: Vec<Decision>,
    known: BTreeMap<Decision, NodeIndex>,
    applied: BTreeMap<(Op, NodeIndex, NodeIndex), NodeIndex>,
}

impl Workshop {
    fn node(&mut self, decision: Decision) -> Result<NodeIndex, TooManyNodes> {
        if decision.low == decision.high {
            return Ok(decision.low);
        }
        if let Some(node) = self.known.get(&decision) {
            return Ok(*node);
        }
        if self.nodes_max <= self.decisions.len() {
            return Err(TooManyNodes { nodes_max: self.nodes_max });
        }
        let node = self.decisions.len() as NodeIndex + 2;
        self.decisions.push(decision);
        self.known.insert(decision, node);
        Ok(node)
    }

    /// The node of `a op b`. The depth of recursion is at most the number of inputs.
    fn apply(&mut self, op: Op, a: NodeIndex, b: NodeIndex) -> Result<NodeIndex, TooManyNodes> {
        if a < 2 && b < 2 {
            let all = |node: NodeIndex| if node == 1 { u64::MAX } else { 0 };
            return Ok((op.apply(all(a), all(b)) & 1) as NodeIndex);
        }
        let (a, b) = if op.is_symmetric() && b < a { (b, a) } else { (a, b) };
        if let Some(node) = self.applied.get(&(op, a, b)) {
            return Ok(*node);
        }
        // A leaf counts as deciding after every input.
        let asks =
            |node: NodeIndex| node.checked_sub(2).map_or(u16::MAX, |at| self.decisions[at as usize].input);
        let input = asks(a).min(asks(b));
        let branches = |node: NodeIndex| {
            if asks(node) == input {
                let decision = self.decisions[node as usize - 2];
                (decision.low, decision.high)
            } else {
                (node, node)
            }
        };
        let ((a_low, a_high), (b_low, b_high)) = (branches(a), branches(b));
        let low = self.apply(op, a_low, b_low)?;
        let high = self.apply(op, a_high, b_high)?;
        let node = self.node(Decision { input, low, high })?;
        self.applied.insert((op, a, b), node);
        Ok(node)
    }
}

/// Keeps the decisions that the outputs need and numbers them canonically.
fn renumber(inputs: usize, decisions: &[Decision], outputs: &[NodeIndex]) -> Bdd {
    const UNSEEN: NodeIndex = NodeIndex::MAX;
    let mut numbers = vec![UNSEEN; decisions.len() + 2];
    (numbers[0], numbers[1]) = (0, 1);
    let mut kept: Vec<Decision> = Vec::new();
    for output in outputs {
        let mut stack = vec![*output];
        while let Some(node) = stack.last().copied() {
            if numbers[node as usize] != UNSEEN {
                stack.pop();
                continue;
            }
            let decision = decisions[node as usize - 2];
            let (low, high) = (numbers[decision.low as usize], numbers[decision.high as usize]);
            if low == UNSEEN {
                stack.push(decision.low);
            } else if high == UNSEEN {
                stack.push(decision.high);
            } else {
                numbers[node as usize] = kept.len() as NodeIndex + 2;
                kept.push(Decision { input: decision.input, low, high });
                stack.pop();
            }
        }
    }
    let outputs = outputs.iter().map(|output| numbers[*output as usize]).collect();
    Bdd { inputs, decisions: kept, outputs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{random_lanes, random_netlist};
    use crate::truth_table::equal_exhaustive;
    use bem_base::prng::Prng;
    use biodivine_lib_bdd::BddVariableSet;

    #[test]
    fn conversion_there_and_back_keeps_the_meaning_and_the_diagram() {
        let mut prng = Prng::stream(1, "bdd");
        for round in 0..if cfg!(miri) { 3 } else { 300 } {
            let circuit = random_netlist(&mut prng, round % 11, 25, 3);
            let diagram = Bdd::from_netlist(&circuit).unwrap();
            let back = diagram.to_netlist().unwrap();
            assert_eq!(equal_exhaustive(&circuit, &back), Ok(()));
            assert_eq!(Bdd::from_netlist(&back), Ok(diagram));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much work for Miri")]
    fn diagrams_are_equal_exactly_if_the_functions_are() {
        // Two inputs and one output: all pairs of operations.
        let single = |op, a, b| {
            let gate = crate::netlist::Gate { op, a: Signal::input(a), b: Signal::input(b) };
            Netlist::new(2, vec![gate], vec![Signal::from_index(4)]).unwrap()
        };
        let circuits: Vec<Netlist> = Op::ALL
            .into_iter()
            .flat_map(|op| [single(op, 0, 1), single(op, 1, 0), single(op, 1, 1)])
            .collect();
        for left in &circuits {
            for right in &circuits {
                let diagrams = (Bdd::from_netlist(left), Bdd::from_netlist(right));
                assert_eq!(diagrams.0 == diagrams.1, equal_exhaustive(left, right).is_ok());
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much work for Miri")]
    fn single_outputs_have_as_many_nodes_as_in_an_independent_package() {
        let mut prng = Prng::stream(2, "independent");
        for _ in 0..if cfg!(miri) { 2 } else { 200 } {
            let circuit = random_netlist(&mut prng, 8, 40, 1);
            let variables = BddVariableSet::new_anonymous(8);
            let mut theirs = vec![variables.mk_false(), variables.mk_true()];
            theirs.extend(variables.variables().into_iter().map(|variable| variables.mk_var(variable)));
            for gate in circuit.gates() {
                let (a, b) = (&theirs[gate.a.index()], &theirs[gate.b.index()]);
                let result = match gate.op {
                    Op::And => a.and(b),
                    Op::Or => a.or(b),
                    Op::Xor => a.xor(b),
                    Op::AndNot => a.and_not(b),
                    Op::Nand => a.and(b).not(),
                    Op::Nor => a.or(b).not(),
                    Op::Xnor => a.iff(b),
                    Op::Implies => a.imp(b),
                };
                theirs.push(result);
            }
            let output = &theirs[circuit.outputs()[0].index()];
            let decisions = output.size().saturating_sub(2);
            assert_eq!(Bdd::from_netlist(&circuit).unwrap().decisions().len(), decisions);
        }
    }

    #[test]
    fn lanes_agree_with_the_circuit() {
        let mut prng = Prng::stream(3, "bdd lanes");
        let mut values = Vec::new();
        for _ in 0..if cfg!(miri) { 2 } else { 100 } {
            let circuit = random_netlist(&mut prng, 9, 30, 4);
            let inputs: Vec<LaneWord> = (0..9).map(|_| random_lanes(&mut prng)).collect();
            let mut outputs = [LaneWord::ZERO; 4];
            Bdd::from_netlist(&circuit).unwrap().evaluate(&inputs, &mut values, &mut outputs);
            for word in 0..crate::lanes::WORDS {
                let words: Vec<u64> = inputs.iter().map(|input| input.0[word]).collect();
                let (mut values, mut expected) = (Vec::new(), Vec::new());
                circuit.evaluate_words(&words, &mut values, &mut expected);
                assert!(outputs.iter().map(|output| output.0[word]).eq(expected));
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much work for Miri")]
    fn the_bound_on_nodes_is_enforced() {
        // The inner product of two vectors, one after the other in the order, doubles with every pair.
        let inner_product = |pairs: usize| {
            let mut builder = Builder::new(2 * pairs);
            let products: Vec<Signal> = (0..pairs)
                .map(|pair| builder.and(Signal::input(pair), Signal::input(pairs + pair)))
                .collect();
            let output = builder.or_all(&products);
            builder.finish(&[output]).unwrap()
        };
        assert!(Bdd::from_netlist(&inner_product(4)).is_ok());
        assert_eq!(
            Bdd::from_netlist_within(&inner_product(12), 1_000),
            Err(TooManyNodes { nodes_max: 1_000 })
        );
    }
}
