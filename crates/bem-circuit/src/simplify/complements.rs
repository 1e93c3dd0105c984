//! One gate for a function and its complement: every user can take the complement into its own operation.
//!
//! Gates become nodes (a conjunction or an exclusive or of literals), and each node is written once, in the polarity
//! that an output asks for. Only outputs that ask for both polarities, or for a complemented input, cost another gate.

use crate::netlist::{Gate, Op, Signal};
use std::collections::BTreeMap;

/// A signal of the new circuit as if all gates were uncomplemented, and whether it is complemented.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Literal {
    signal: Signal,
    complemented: bool,
}

impl Literal {
    fn complement_if(self, condition: bool) -> Literal {
        Literal { complemented: self.complemented ^ condition, ..self }
    }
}

/// What a gate computes, up to a complement of its result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    And(Literal, Literal),
    Xor(Signal, Signal),
}

impl Node {
    /// The node of a gate, and whether the gate is its complement.
    fn of(op: Op, a: Literal, b: Literal) -> (Node, bool) {
        let and = |a: Literal, b: Literal| Node::And(a.min(b), a.max(b));
        let (not_a, not_b) = (a.complement_if(true), b.complement_if(true));
        match op {
            Op::And => (and(a, b), false),
            Op::Nand => (and(a, b), true),
            Op::AndNot => (and(a, not_b), false),
            Op::Implies => (and(a, not_b), true),
            Op::Nor => (and(not_a, not_b), false),
            Op::Or => (and(not_a, not_b), true),
            Op::Xor | Op::Xnor => {
                let signals = (a.signal.min(b.signal), a.signal.max(b.signal));
                (Node::Xor(signals.0, signals.1), a.complemented ^ b.complemented ^ (op == Op::Xnor))
            }
        }
    }

    /// The gate, given which signals are written complemented.
    fn gate(self, written_complemented: &[bool], complemented: bool) -> Gate {
        let flipped = |literal: Literal| literal.complemented ^ written_complemented[literal.signal.index()];
        let (op, a, b) = match self {
            Node::And(a, b) => match (flipped(a), flipped(b)) {
                (false, false) => (Op::And, a.signal, b.signal),
                (false, true) => (Op::AndNot, a.signal, b.signal),
                (true, false) => (Op::AndNot, b.signal, a.signal),
                (true, true) => (Op::Nor, a.signal, b.signal),
            },
            Node::Xor(a, b) => {
                let parity = written_complemented[a.index()] ^ written_complemented[b.index()];
                (if parity { Op::Xnor } else { Op::Xor }, a, b)
            }
        };
        Gate { op: if complemented { op.complement() } else { op }, a, b }
    }
}

/// Rewrites gates that are all needed and have no constant operands, but for inverters `xor x, 1`.
pub(super) fn share(inputs: usize, gates: &[Gate], outputs: &[Signal]) -> (Vec<Gate>, Vec<Signal>) {
    let plain = |index: usize| Literal { signal: Signal::from_index(index), complemented: false };
    let first_gate = 2 + inputs;
    let mut literals: Vec<Literal> = (0..first_gate).map(plain).collect();
    let mut nodes: Vec<Node> = Vec::with_capacity(gates.len());
    let mut known: BTreeMap<Node, Literal> = BTreeMap::new();
    for gate in gates {
        let a = literals[gate.a.index()];
        if gate.b == Signal::TRUE {
            literals.push(a.complement_if(true));
            continue;
        }
        let (node, complemented) = Node::of(gate.op, a, literals[gate.b.index()]);
        let literal = *known.entry(node).or_insert_with(|| {
            nodes.push(node);
            plain(first_gate + nodes.len() - 1)
        });
        literals.push(literal.complement_if(complemented));
    }

    // A node is written complemented if the first output that it drives asks for that.
    let outputs: Vec<Literal> = outputs.iter().map(|output| literals[output.index()]).collect();
    let mut written_complemented = vec![false; first_gate + nodes.len()];
    for output in outputs.iter().rev().filter(|output| first_gate <= output.signal.index()) {
        written_complemented[output.signal.index()] = output.complemented;
    }
    let mut gates: Vec<Gate> = Vec::with_capacity(nodes.len());
    for (position, node) in nodes.iter().enumerate() {
        gates.push(node.gate(&written_complemented, written_complemented[first_gate + position]));
    }
    let mut inverted: BTreeMap<Signal, Signal> = BTreeMap::new();
    let mut finished = Vec::with_capacity(outputs.len());
    for output in outputs {
        let signal = output.signal;
        finished.push(match signal {
            _ if output.complemented == written_complemented[signal.index()] => signal,
            Signal::FALSE => Signal::TRUE,
            Signal::TRUE => Signal::FALSE,
            _ => *inverted.entry(signal).or_insert_with(|| {
                gates.push(match signal.index().checked_sub(first_gate) {
                    Some(position) => Gate { op: gates[position].op.complement(), ..gates[position] },
                    None => Gate { op: Op::Xor, a: signal, b: Signal::TRUE },
                });
                Signal::from_index(first_gate + gates.len() - 1)
            }),
        });
    }
    (gates, finished)
}
