//! Circuits as clauses: the Tseitin encoding of what some outputs depend on, and nothing else.
//!
//! Must not decide anything. Clauses: SCC-3, VM-2. Decision: D-21.

use bem_checker::{Cnf, Literal};
use bem_circuit::netlist::{Netlist, Op};

/// A wire of a circuit as it appears in a formula: known, or a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// A constant.
    Constant(bool),
    /// A literal of the formula.
    Literal(Literal),
}

impl Wire {
    /// The wire's complement.
    #[must_use]
    pub fn complement(self) -> Wire {
        match self {
            Wire::Constant(value) => Wire::Constant(!value),
            Wire::Literal(literal) => Wire::Literal(!literal),
        }
    }

    /// Its value under a model.
    pub fn value(self, model: &[bool]) -> bool {
        match self {
            Wire::Constant(value) => value,
            Wire::Literal(literal) => model[literal.variable() as usize - 1] != literal.is_negative(),
        }
    }
}

/// Adds the gates that the outputs depend on, driven by these inputs, and returns the output wires.
///
/// Inverters and complemented gates cost nothing, constants are folded away.
pub fn encode_circuit(cnf: &mut Cnf, circuit: &Netlist, inputs: &[Wire]) -> Vec<Wire> {
    assert!(inputs.len() == circuit.inputs());
    let first_gate = 2 + circuit.inputs();
    let mut needed = vec![false; first_gate + circuit.gates().len()];
    for output in circuit.outputs() {
        needed[output.index()] = true;
    }
    for (position, gate) in circuit.gates().iter().enumerate().rev() {
        if needed[first_gate + position] {
            needed[gate.a.index()] = true;
            needed[gate.b.index()] = true;
        }
    }
    let wires = encode_signals(cnf, circuit, inputs, |position| needed[first_gate + position]);
    circuit.outputs().iter().map(|output| wires[output.index()]).collect()
}

/// Adds the gates that are wanted, each after its inputs, and returns the wires of all signals; a gate that is not
/// wanted counts as false, so no wanted gate may read it.
pub fn encode_signals(
    cnf: &mut Cnf,
    circuit: &Netlist,
    inputs: &[Wire],
    wanted: impl Fn(usize) -> bool,
) -> Vec<Wire> {
    let mut wires = vec![Wire::Constant(false), Wire::Constant(true)];
    wires.extend_from_slice(inputs);
    for (position, gate) in circuit.gates().iter().enumerate() {
        wires.push(if wanted(position) {
            encode_gate(cnf, gate.op, wires[gate.a.index()], wires[gate.b.index()])
        } else {
            Wire::Constant(false)
        });
    }
    wires
}

/// Adds one gate and returns its output wire.
pub fn encode_gate(cnf: &mut Cnf, op: Op, a: Wire, b: Wire) -> Wire {
    // Every operation is an exclusive or or a conjunction, up to complements of its inputs and output.
    match op {
        Op::Xor => encode_xor(cnf, a, b),
        Op::Xnor => encode_xor(cnf, a, b).complement(),
        Op::And => encode_and(cnf, a, b),
        Op::Nand => encode_and(cnf, a, b).complement(),
        Op::AndNot => encode_and(cnf, a, b.complement()),
        Op::Implies => encode_and(cnf, a, b.complement()).complement(),
        Op::Nor => encode_and(cnf, a.complement(), b.complement()),
        Op::Or => encode_and(cnf, a.complement(), b.complement()).complement(),
    }
}

fn encode_and(cnf: &mut Cnf, a: Wire, b: Wire) -> Wire {
    match (a, b) {
        (Wire::Constant(false), _) | (_, Wire::Constant(false)) => Wire::Constant(false),
        (Wire::Constant(true), other) | (other, Wire::Constant(true)) => other,
        (Wire::Literal(a), Wire::Literal(b)) if a == b => Wire::Literal(a),
        (Wire::Literal(a), Wire::Literal(b)) if a == !b => Wire::Constant(false),
        (Wire::Literal(a), Wire::Literal(b)) => {
            let out = cnf.fresh();
            cnf.add(&[!out, a]);
            cnf.add(&[!out, b]);
            cnf.add(&[out, !a, !b]);
            Wire::Literal(out)
        }
    }
}

fn encode_xor(cnf: &mut Cnf, a: Wire, b: Wire) -> Wire {
    match (a, b) {
        (Wire::Constant(false), other) | (other, Wire::Constant(false)) => other,
        (Wire::Constant(true), other) | (other, Wire::Constant(true)) => other.complement(),
        (Wire::Literal(a), Wire::Literal(b)) if a == b => Wire::Constant(false),
        (Wire::Literal(a), Wire::Literal(b)) if a == !b => Wire::Constant(true),
        (Wire::Literal(a), Wire::Literal(b)) => {
            let out = cnf.fresh();
            cnf.add(&[!out, a, b]);
            cnf.add(&[!out, !a, !b]);
            cnf.add(&[out, !a, b]);
            cnf.add(&[out, a, !b]);
            Wire::Literal(out)
        }
    }
}

/// Demands that at least one of the wires is true.
pub fn require_any(cnf: &mut Cnf, wires: &[Wire]) {
    if wires.contains(&Wire::Constant(true)) {
        return;
    }
    let clause: Vec<Literal> = wires
        .iter()
        .filter_map(|wire| match wire {
            Wire::Literal(literal) => Some(*literal),
            Wire::Constant(_) => None,
        })
        .collect();
    cnf.add(&clause);
}

/// Inputs as the first variables of an empty formula.
pub fn fresh_inputs(cnf: &mut Cnf, count: usize) -> Vec<Wire> {
    (0..count).map(|_| Wire::Literal(cnf.fresh())).collect()
}

/// The formula that says: on some input, the two circuits differ in some output. Variable `i + 1` is input `i`.
///
/// Both circuits must have the same numbers of inputs and outputs.
pub fn miter(left: &Netlist, right: &Netlist) -> Cnf {
    assert!(left.inputs() == right.inputs() && left.outputs().len() == right.outputs().len());
    let mut cnf = Cnf::new(0);
    let inputs = fresh_inputs(&mut cnf, left.inputs());
    let left = encode_circuit(&mut cnf, left, &inputs);
    let right = encode_circuit(&mut cnf, right, &inputs);
    require_difference(&mut cnf, &left, &right);
    cnf
}

/// Demands that two lists of wires differ somewhere.
pub fn require_difference(cnf: &mut Cnf, left: &[Wire], right: &[Wire]) {
    assert!(left.len() == right.len());
    let differences: Vec<Wire> = left.iter().zip(right).map(|(a, b)| encode_xor(cnf, *a, *b)).collect();
    require_any(cnf, &differences);
}
