//! Cheap simplification that is always safe: the meaning stays, the number of gates never grows.
//!
//! Gates are rebuilt one by one. Beyond what [`Builder`] does (sharing, constants, inverters), two rules apply:
//!
//! * A gate that depends on two signals only, through one level of drivers, becomes one gate on those two.
//! * Gates of exclusive or are told apart by their row over GF(2), the set of leaves that they add up (decision D-36):
//!   two chains that add the same leaves in another order are one signal. A solver would need exponential time there.
//!
//! At the end a gate and its complement become one gate where they can; see [`complements`].
//!
//! Must not know what the circuit is for. Clauses: VM-2.

mod complements;

use crate::netlist::{Builder, Gate, Netlist, NetlistError, Op, Signal};
use std::collections::BTreeMap;

/// Leaves of one row; a longer exclusive or is treated as a leaf itself.
const ROW_LEAVES_MAX: usize = 512;

/// What a signal adds up: leaves in rising order, and whether the sum is complemented.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    leaves: Vec<Signal>,
    complemented: bool,
}

impl Row {
    /// The symmetric difference of the leaves: what two rows add up to.
    fn plus(&self, other: &Row) -> Row {
        let mut leaves = Vec::with_capacity(self.leaves.len() + other.leaves.len());
        let (mut left, mut right) = (self.leaves.iter().peekable(), other.leaves.iter().peekable());
        loop {
            let leaf = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(a), Some(b)) if a == b => {
                    left.next();
                    right.next();
                    continue;
                }
                (Some(a), Some(b)) if b < a => right.next(),
                (Some(_), _) => left.next(),
                (None, Some(_)) => right.next(),
            };
            leaves.extend(leaf);
        }
        Row { leaves, complemented: self.complemented ^ other.complemented }
    }
}

/// A builder that also merges equal sums over GF(2) and rewrites locally. Put two circuits into one to compare them:
/// what they have in common becomes one signal.
#[derive(Clone, Debug)]
pub struct Simplifier {
    inputs: usize,
    builder: Builder,
    /// The rows of signals that are sums; every other signal is a leaf.
    rows: BTreeMap<Signal, Row>,
    /// For each set of leaves the signal that adds it up, and whether that signal is complemented.
    sums: BTreeMap<Vec<Signal>, (Signal, bool)>,
}

/// A signal seen either as it is or through the gate that drives it.
#[derive(Clone, Copy)]
enum View {
    Plain(Signal),
    Driver(Gate),
}

impl View {
    fn signals(self) -> [Signal; 2] {
        match self {
            View::Plain(signal) => [signal, signal],
            View::Driver(gate) => [gate.a, gate.b],
        }
    }

    /// Its value for all four values of the two base signals.
    fn table(self, first: Signal) -> u64 {
        const FIRST: u64 = 0b1010;
        const SECOND: u64 = 0b1100;
        let of = |signal: Signal| if signal == first { FIRST } else { SECOND };
        match self {
            View::Plain(signal) => of(signal),
            View::Driver(gate) => gate.op.apply(of(gate.a), of(gate.b)),
        }
    }
}

impl Simplifier {
    /// For a circuit with this many inputs.
    pub fn new(inputs: usize) -> Simplifier {
        Simplifier { inputs, builder: Builder::new(inputs), rows: BTreeMap::new(), sums: BTreeMap::new() }
    }

    /// Any operation on two signals, simplified; at most one gate is made.
    pub fn gate(&mut self, op: Op, a: Signal, b: Signal) -> Signal {
        let Gate { op, a, b } = self.absorb_complements(Gate { op, a, b });
        if let Some((first, second, table)) = self.on_two_signals(op, a, b) {
            return self.signal_of_table(first, second, table);
        }
        match op {
            Op::Xor | Op::Xnor => self.sum(op, a, b),
            _ => self.builder.gate(op, a, b),
        }
    }

    /// `!a`
    pub fn not(&mut self, a: Signal) -> Signal {
        self.gate(Op::Xor, a, Signal::TRUE)
    }

    /// The operation over all signals as a balanced tree; `empty` for none.
    pub fn tree(&mut self, op: Op, signals: &[Signal], empty: Signal) -> Signal {
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

    /// How many gates there are so far, needed or not.
    pub fn gate_count(&self) -> usize {
        self.builder.gate_count()
    }

    /// Puts a copy of a circuit in, driven by `inputs`; returns its outputs.
    pub fn embed(&mut self, circuit: &Netlist, inputs: &[Signal]) -> Vec<Signal> {
        assert!(
            inputs.len() == circuit.inputs(),
            "{} inputs given, {} expected",
            inputs.len(),
            circuit.inputs()
        );
        let mut map = vec![Signal::FALSE, Signal::TRUE];
        map.extend_from_slice(inputs);
        for gate in circuit.gates() {
            let signal = self.gate(gate.op, map[gate.a.index()], map[gate.b.index()]);
            map.push(signal);
        }
        circuit.outputs().iter().map(|output| map[output.index()]).collect()
    }

    /// The finished circuit, without the gates that no output needs.
    pub fn finish(self, outputs: &[Signal]) -> Result<Netlist, NetlistError> {
        let inputs = self.inputs;
        let (gates, outputs) = self.builder.into_parts(outputs);
        let (gates, outputs) = complements::share(inputs, &gates, &outputs);
        Netlist::new(inputs, gates, outputs)
    }

    /// The older signal that this one is the complement of, if there is one.
    fn complement_of(&self, signal: Signal) -> Option<Signal> {
        self.builder.inverted(signal).or_else(|| {
            let gate = self.builder.driver(signal)?;
            self.builder.find(Gate { op: gate.op.complement(), ..gate }).filter(|twin| *twin < signal)
        })
    }

    /// The same gate over the older of each signal and its complement.
    fn absorb_complements(&self, mut gate: Gate) -> Gate {
        loop {
            if let Some(older) = self.complement_of(gate.a) {
                gate = Gate { a: older, ..gate }.with_first_complemented();
            } else if let Some(older) = self.complement_of(gate.b) {
                gate = Gate { b: older, ..gate }.with_second_complemented();
            } else {
                return gate;
            }
        }
    }

    /// Looks through the drivers of `a` and `b` for two signals that decide the gate, and its table over them.
    fn on_two_signals(&self, op: Op, a: Signal, b: Signal) -> Option<(Signal, Signal, u64)> {
        let driver = |signal: Signal| match self.builder.driver(signal) {
            Some(gate) if Signal::TRUE < gate.b => Some(View::Driver(gate)),
            _ => None,
        };
        if a <= Signal::TRUE || b <= Signal::TRUE {
            return None;
        }
        let views =
            [(driver(a), driver(b)), (Some(View::Plain(a)), driver(b)), (driver(a), Some(View::Plain(b)))];
        for (left, right) in views {
            let (Some(left), Some(right)) = (left, right) else { continue };
            let [p, q] = left.signals();
            let [r, s] = right.signals();
            let first = p;
            let mut others = [q, r, s].into_iter().filter(|signal| *signal != first);
            let second = others.next().unwrap_or(first);
            if others.all(|signal| signal == second) {
                return Some((first, second, op.apply(left.table(first), right.table(first)) & 0b1111));
            }
        }
        None
    }

    /// The signal with this table over two earlier signals. Both are older than what they replace, so this ends.
    fn signal_of_table(&mut self, first: Signal, second: Signal, table: u64) -> Signal {
        match table {
            0b0000 => Signal::FALSE,
            0b1111 => Signal::TRUE,
            0b1010 => first,
            0b0101 => self.builder.not(first),
            0b1100 => second,
            0b0011 => self.builder.not(second),
            0b1000 => self.gate(Op::And, first, second),
            0b1110 => self.gate(Op::Or, first, second),
            0b0110 => self.gate(Op::Xor, first, second),
            0b0010 => self.gate(Op::AndNot, first, second),
            0b0100 => self.gate(Op::AndNot, second, first),
            0b0111 => self.gate(Op::Nand, first, second),
            0b0001 => self.gate(Op::Nor, first, second),
            0b1001 => self.gate(Op::Xnor, first, second),
            0b1101 => self.gate(Op::Implies, first, second),
            _ => self.gate(Op::Implies, second, first),
        }
    }

    /// The row of a signal; a signal that is no sum is its own leaf, or the complement of an older one.
    fn row(&self, signal: Signal) -> Row {
        if let Some(row) = self.rows.get(&signal) {
            return row.clone();
        }
        if signal <= Signal::TRUE {
            return Row { leaves: vec![], complemented: signal == Signal::TRUE };
        }
        let older = self.complement_of(signal);
        Row { leaves: vec![older.unwrap_or(signal)], complemented: older.is_some() }
    }

    /// An exclusive or, found by what it adds up.
    fn sum(&mut self, op: Op, a: Signal, b: Signal) -> Signal {
        let mut row = self.row(a).plus(&self.row(b));
        row.complemented ^= op == Op::Xnor;
        let known = match row.leaves.as_slice() {
            [] => Some((Signal::FALSE, false)),
            [leaf] => Some((*leaf, false)),
            leaves => self.sums.get(leaves).copied(),
        };
        let signal = match known {
            Some((signal, complemented)) if complemented == row.complemented => signal,
            Some((signal, _)) => self.builder.not(signal),
            None => {
                let signal = self.builder.gate(op, a, b);
                if row.leaves.len() <= ROW_LEAVES_MAX {
                    self.sums.insert(row.leaves.clone(), (signal, row.complemented));
                }
                signal
            }
        };
        if 1 < row.leaves.len() && row.leaves.len() <= ROW_LEAVES_MAX {
            self.rows.insert(signal, row);
        }
        signal
    }
}

/// The same circuit with at most as many gates, simplified until nothing more is gained.
pub fn simplify(circuit: &Netlist) -> Netlist {
    let mut best = circuit.clone();
    loop {
        let mut simplifier = Simplifier::new(best.inputs());
        let inputs: Vec<Signal> = (0..best.inputs()).map(Signal::input).collect();
        let outputs = simplifier.embed(&best, &inputs);
        let simpler = simplifier.finish(&outputs).expect("one gate at most is made for each that was there");
        let gained = simpler.gates().len() < best.gates().len();
        best = simpler;
        if !gained {
            return best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{random_dense_netlist, random_netlist};
    use crate::truth_table::equal_exhaustive;
    use bem_base::prng::Prng;

    #[test]
    fn the_meaning_stays_and_no_gate_is_added() {
        let mut prng = Prng::stream(1, "simplify");
        let mut saved = 0;
        for round in 0..if cfg!(miri) { 5 } else { 3_000 } {
            let circuit = if round % 2 == 0 {
                random_netlist(&mut prng, 5, 40, 4)
            } else {
                random_dense_netlist(&mut prng, 4, 30, 4)
            };
            let simpler = simplify(&circuit);
            assert_eq!(equal_exhaustive(&circuit, &simpler), Ok(()));
            assert!(simpler.gates().len() <= circuit.gates().len());
            assert_eq!(simplify(&simpler), simpler, "a second time changes nothing");
            let rebuilt = {
                let mut builder = Builder::new(circuit.inputs());
                let inputs: Vec<Signal> = (0..circuit.inputs()).map(Signal::input).collect();
                let outputs = builder.embed(&circuit, &inputs);
                builder.finish(&outputs).unwrap()
            };
            saved += rebuilt.gates().len() as i64 - simpler.gates().len() as i64;
        }
        assert!(0 < saved, "{saved} gates fewer than by sharing alone");
    }

    #[test]
    fn sums_in_any_order_become_one_signal() {
        let mut prng = Prng::stream(2, "sums");
        for _ in 0..if cfg!(miri) { 2 } else { 100 } {
            let mut simplifier = Simplifier::new(60);
            // Twenty of the leaves are products, one is complemented by hand.
            let mut leaves: Vec<Signal> = (0..20).map(Signal::input).collect();
            for product in 0..20 {
                let (a, b) = (Signal::input(20 + 2 * product), Signal::input(21 + 2 * product));
                leaves.push(simplifier.gate(Op::And, a, b));
            }
            let mut chain = |leaves: &mut Vec<Signal>, prng: &mut Prng| {
                prng.shuffle(leaves);
                let mut sum = Signal::FALSE;
                for (position, leaf) in leaves.iter().enumerate() {
                    let op = if position % 7 < 2 { Op::Xnor } else { Op::Xor };
                    sum = simplifier.gate(op, sum, *leaf);
                }
                sum
            };
            let first = chain(&mut leaves, &mut prng);
            let second = chain(&mut leaves, &mut prng);
            assert_eq!(first, second);
        }
    }

    #[test]
    fn a_leaf_and_its_complement_are_the_same_leaf() {
        for complement_first in [false, true] {
            let mut simplifier = Simplifier::new(3);
            let inputs = [Signal::input(0), Signal::input(1), Signal::input(2)];
            let ops = if complement_first { [Op::Nand, Op::And] } else { [Op::And, Op::Nand] };
            let [first, second] = ops.map(|op| simplifier.gate(op, inputs[0], inputs[1]));
            let left = simplifier.gate(Op::Xor, first, inputs[2]);
            let right = simplifier.gate(Op::Xnor, inputs[2], second);
            assert_eq!(left, right);
        }
    }

    #[test]
    fn gates_over_two_signals_collapse() {
        // (x | y) & !(x & y) is an exclusive or; x & (x | y) is x.
        let mut simplifier = Simplifier::new(2);
        let (x, y) = (Signal::input(0), Signal::input(1));
        let either = simplifier.gate(Op::Or, x, y);
        let both = simplifier.gate(Op::And, x, y);
        let one = simplifier.gate(Op::AndNot, either, both);
        assert_eq!(one, simplifier.gate(Op::Xor, y, x));
        assert_eq!(simplifier.gate(Op::And, either, x), x);
        let inverted = simplifier.gate(Op::Nand, x, x);
        assert_eq!(simplifier.gate(Op::And, inverted, both), Signal::FALSE);
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much work for Miri")]
    fn sums_over_more_leaves_than_a_row_holds_keep_their_meaning() {
        let mut simplifier = Simplifier::new(512);
        let mut leaves: Vec<Signal> = (0..512).map(Signal::input).collect();
        leaves.extend((0..200).map(|k| simplifier.gate(Op::And, Signal::input(k), Signal::input(k + 1))));
        let sum = leaves.iter().fold(Signal::FALSE, |sum, leaf| simplifier.gate(Op::Xor, sum, *leaf));
        let circuit = simplifier.finish(&[sum]).unwrap();
        let mut prng = Prng::stream(3, "long sums");
        let words: Vec<u64> = (0..512).map(|_| prng.next_u64()).collect();
        let products = (0..200).map(|k| words[k] & words[k + 1]);
        let expected = words.iter().copied().chain(products).fold(0, |sum, word| sum ^ word);
        let (mut values, mut outputs) = (Vec::new(), Vec::new());
        circuit.evaluate_words(&words, &mut values, &mut outputs);
        assert_eq!(outputs, [expected]);
    }
}
