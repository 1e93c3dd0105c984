//! The builder: gates are shared, folded and absorbed while a circuit is put together.
//!
//! Must not know what the circuit is for. Clauses: VM-2.

use super::known::Known;
use super::{Gate, Netlist, NetlistError, Op, Signal, without_unused};

/// Builds a netlist gate by gate: equal gates are shared, constants folded and inverters absorbed, and what no
/// output needs is left out at the end.
#[derive(Clone, Debug)]
pub struct Builder {
    inputs: u32,
    gates: Vec<Gate>,
    known: Known,
}

impl Builder {
    /// A builder for a circuit with this many inputs.
    pub fn new(inputs: usize) -> Builder {
        Builder { inputs: inputs as u32, gates: Vec::new(), known: Known::default() }
    }

    /// The input with this index.
    pub fn input(&self, index: usize) -> Signal {
        assert!(index < self.inputs as usize, "input {index} of {}", self.inputs);
        Signal::input(index)
    }

    /// How many gates there are so far, needed or not.
    pub fn gate_count(&self) -> usize {
        self.gates.len()
    }

    /// The gate that drives a signal, if one does.
    pub(crate) fn driver(&self, signal: Signal) -> Option<Gate> {
        signal.index().checked_sub(2 + self.inputs as usize).map(|position| self.gates[position])
    }

    /// The signal that `signal` is the plain inversion of, if it is one.
    pub(crate) fn inverted(&self, signal: Signal) -> Option<Signal> {
        match self.driver(signal) {
            Some(Gate { op: Op::Xor, a, b: Signal::TRUE }) => Some(a),
            _ => None,
        }
    }

    /// The signal of exactly this gate, if it has been made.
    pub(crate) fn find(&self, gate: Gate) -> Option<Signal> {
        self.known.find(&self.gates, gate).map(|position| Signal(2 + self.inputs + position as u32))
    }

    /// Any operation on two signals, simplified.
    pub fn gate(&mut self, op: Op, a: Signal, b: Signal) -> Signal {
        // Inverted inputs are absorbed first, so that the rules below see plain signals.
        if let Some(plain) = self.inverted(a) {
            let Gate { op, a, b } = Gate { op, a: plain, b }.with_first_complemented();
            return self.gate(op, a, b);
        }
        if let Some(plain) = self.inverted(b) {
            let Gate { op, a, b } = Gate { op, a, b: plain }.with_second_complemented();
            return self.gate(op, a, b);
        }
        // With a constant or with twice the same signal, four evaluations say what the gate is.
        if a == b || a.index() < 2 || b.index() < 2 {
            let free = if a.index() < 2 { b } else { a };
            let value = |signal: Signal, x: u64| match signal {
                Signal::FALSE => 0,
                Signal::TRUE => u64::MAX,
                _ => x,
            };
            let low = op.apply(value(a, 0), value(b, 0)) & 1;
            let high = op.apply(value(a, u64::MAX), value(b, u64::MAX)) & 1;
            return match (low, high) {
                (0, 0) => Signal::FALSE,
                (1, 1) => Signal::TRUE,
                (0, 1) => free,
                _ => self.not(free),
            };
        }
        let (a, b) = if op.is_symmetric() && b < a { (b, a) } else { (a, b) };
        self.shared(Gate { op, a, b })
    }

    fn shared(&mut self, gate: Gate) -> Signal {
        if let Some(signal) = self.find(gate) {
            return signal;
        }
        let signal = Signal(2 + self.inputs + self.gates.len() as u32);
        self.gates.push(gate);
        self.known.add_last(&self.gates);
        signal
    }

    /// `!a`: the gate that drives `a` with its result complemented, or an inverter on an input.
    pub fn not(&mut self, a: Signal) -> Signal {
        match a {
            Signal::FALSE => Signal::TRUE,
            Signal::TRUE => Signal::FALSE,
            _ => match (self.inverted(a), self.driver(a)) {
                (Some(plain), _) => plain,
                (None, Some(gate)) => self.shared(Gate { op: gate.op.complement(), ..gate }),
                (None, None) => self.shared(Gate { op: Op::Xor, a, b: Signal::TRUE }),
            },
        }
    }

    /// `a & b`
    pub fn and(&mut self, a: Signal, b: Signal) -> Signal {
        self.gate(Op::And, a, b)
    }

    /// `a | b`
    pub fn or(&mut self, a: Signal, b: Signal) -> Signal {
        self.gate(Op::Or, a, b)
    }

    /// `a ^ b`
    pub fn xor(&mut self, a: Signal, b: Signal) -> Signal {
        self.gate(Op::Xor, a, b)
    }

    /// `a & !b`
    pub fn and_not(&mut self, a: Signal, b: Signal) -> Signal {
        self.gate(Op::AndNot, a, b)
    }

    /// `if choose { then } else { otherwise }`, in three gates at most.
    pub fn mux(&mut self, choose: Signal, then: Signal, otherwise: Signal) -> Signal {
        if then == otherwise {
            return then;
        }
        let differs = self.xor(then, otherwise);
        let taken = self.and(choose, differs);
        self.xor(taken, otherwise)
    }

    /// The conjunction of all, as a balanced tree; true for none.
    pub fn and_all(&mut self, signals: &[Signal]) -> Signal {
        self.tree(Op::And, signals, Signal::TRUE)
    }

    /// The disjunction of all, as a balanced tree; false for none.
    pub fn or_all(&mut self, signals: &[Signal]) -> Signal {
        self.tree(Op::Or, signals, Signal::FALSE)
    }

    /// The exclusive or of all, as a balanced tree; false for none.
    pub fn xor_all(&mut self, signals: &[Signal]) -> Signal {
        self.tree(Op::Xor, signals, Signal::FALSE)
    }

    fn tree(&mut self, op: Op, signals: &[Signal], empty: Signal) -> Signal {
        match signals {
            [] => empty,
            [one] => *one,
            _ => {
                let (left, right) = signals.split_at(signals.len() / 2);
                let left = self.tree(op, left, empty);
                let right = self.tree(op, right, empty);
                self.gate(op, left, right)
            }
        }
    }

    /// Puts a copy of another circuit in, driven by `inputs`; returns its outputs.
    pub fn embed(&mut self, circuit: &Netlist, inputs: &[Signal]) -> Vec<Signal> {
        assert!(inputs.len() == circuit.inputs());
        let mut map = vec![Signal::FALSE, Signal::TRUE];
        map.extend_from_slice(inputs);
        for gate in circuit.gates() {
            let signal = self.gate(gate.op, map[gate.a.index()], map[gate.b.index()]);
            map.push(signal);
        }
        circuit.outputs().iter().map(|output| map[output.index()]).collect()
    }

    /// The gates that the outputs need, and the outputs over them; the bounds are not checked yet.
    pub(crate) fn into_parts(self, outputs: &[Signal]) -> (Vec<Gate>, Vec<Signal>) {
        without_unused(self.inputs as usize, &self.gates, outputs)
    }

    /// The finished circuit, without the gates that no output needs.
    pub fn finish(self, outputs: &[Signal]) -> Result<Netlist, NetlistError> {
        let inputs = self.inputs;
        let (gates, outputs) = self.into_parts(outputs);
        Netlist::new(inputs as usize, gates, outputs)
    }
}
