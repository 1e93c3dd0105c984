//! The canonical form of a circuit: a list of two-input gates in topological order (decision D-14).
//!
//! A netlist is a value: it is built once by [`Builder`], checked, and never changed. Must not know how it is
//! evaluated fast or what its wires mean. Clauses: VM-1, VM-2.

mod builder;
mod known;

pub use builder::Builder;

use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::limits::{CIRCUIT_GATES_MAX, CIRCUIT_INPUTS_MAX, CIRCUIT_OUTPUTS_MAX};

/// A wire: 0 is false, 1 is true, then come the inputs, then the gates in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(u32);

impl Signal {
    /// The constant false.
    pub const FALSE: Signal = Signal(0);
    /// The constant true.
    pub const TRUE: Signal = Signal(1);

    /// The input with this index.
    pub const fn input(index: usize) -> Signal {
        Signal(index as u32 + 2)
    }

    /// The signal with this number: constants, then inputs, then gates. [`Netlist::new`] checks that it exists.
    pub const fn from_index(index: usize) -> Signal {
        assert!(index <= u32::MAX as usize);
        Signal(index as u32)
    }

    /// A constant.
    pub const fn constant(value: bool) -> Signal {
        Signal(value as u32)
    }

    /// Its number: constants, then inputs, then gates.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a gate computes from its two inputs. The numbers are stored and never change.
///
/// These eight are all two-input functions that need both inputs, up to swapping the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Op {
    /// `a & b`
    And = 0,
    /// `a | b`
    Or = 1,
    /// `a ^ b`
    Xor = 2,
    /// `a & !b`
    AndNot = 3,
    /// `!(a & b)`
    Nand = 4,
    /// `!(a | b)`
    Nor = 5,
    /// `!(a ^ b)`
    Xnor = 6,
    /// `!(a & !b)`, which is `!a | b`
    Implies = 7,
}

impl Op {
    /// All operations, in order of their numbers; each of the last four is the complement of one of the first.
    pub const ALL: [Op; 8] = [Op::And, Op::Or, Op::Xor, Op::AndNot, Op::Nand, Op::Nor, Op::Xnor, Op::Implies];

    /// The operation with the complemented result.
    #[must_use]
    pub const fn complement(self) -> Op {
        Op::ALL[(self as usize + 4) % 8]
    }

    /// Applied to every bit of two words.
    #[inline]
    pub const fn apply(self, a: u64, b: u64) -> u64 {
        match self {
            Op::And => a & b,
            Op::Or => a | b,
            Op::Xor => a ^ b,
            Op::AndNot => a & !b,
            Op::Nand => !(a & b),
            Op::Nor => !(a | b),
            Op::Xnor => !(a ^ b),
            Op::Implies => !a | b,
        }
    }

    /// Whether swapping the inputs changes nothing.
    pub const fn is_symmetric(self) -> bool {
        !matches!(self, Op::AndNot | Op::Implies)
    }
}

/// One gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gate {
    /// What it computes.
    pub op: Op,
    /// Its first input.
    pub a: Signal,
    /// Its second input.
    pub b: Signal,
}

impl Gate {
    /// The gate that computes from `a` and `b` what this one computes from `!a` and `b`.
    #[must_use]
    pub const fn with_first_complemented(self) -> Gate {
        let Gate { op, a, b } = self;
        match op {
            Op::And => Gate { op: Op::AndNot, a: b, b: a },
            Op::Or => Gate { op: Op::Implies, a, b },
            Op::Xor => Gate { op: Op::Xnor, a, b },
            Op::AndNot => Gate { op: Op::Nor, a, b },
            Op::Nand => Gate { op: Op::Implies, a: b, b: a },
            Op::Nor => Gate { op: Op::AndNot, a, b },
            Op::Xnor => Gate { op: Op::Xor, a, b },
            Op::Implies => Gate { op: Op::Or, a, b },
        }
    }

    /// The gate that computes from `a` and `b` what this one computes from `a` and `!b`.
    #[must_use]
    pub const fn with_second_complemented(self) -> Gate {
        let Gate { op, a, b } = self;
        match op {
            Op::And => Gate { op: Op::AndNot, a, b },
            Op::Or => Gate { op: Op::Implies, a: b, b: a },
            Op::Xor => Gate { op: Op::Xnor, a, b },
            Op::AndNot => Gate { op: Op::And, a, b },
            Op::Nand => Gate { op: Op::Implies, a, b },
            Op::Nor => Gate { op: Op::AndNot, a: b, b: a },
            Op::Xnor => Gate { op: Op::Xor, a, b },
            Op::Implies => Gate { op: Op::Nand, a, b },
        }
    }
}

/// Why a circuit cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetlistError {
    /// More inputs than any expert may have.
    #[error("{count} inputs exceed the bound of {CIRCUIT_INPUTS_MAX} (N_in_max)")]
    TooManyInputs {
        /// How many were asked for.
        count: usize,
    },
    /// More outputs than any expert may have.
    #[error("{count} outputs exceed the bound of {CIRCUIT_OUTPUTS_MAX} (N_out_max)")]
    TooManyOutputs {
        /// How many were asked for.
        count: usize,
    },
    /// More gates than any expert may have.
    #[error("{count} gates exceed the bound of {CIRCUIT_GATES_MAX} (G_gate_max)")]
    TooManyGates {
        /// How many were asked for.
        count: usize,
    },
    /// A gate or output refers to a signal that does not exist yet.
    #[error("{place} refers to signal {signal}, which is not defined before it")]
    UndefinedSignal {
        /// Which gate or output.
        place: String,
        /// The signal number.
        signal: usize,
    },
}

/// A circuit of two-input gates. Invariants: gates refer only to earlier signals; all bounds of
/// [`bem_base::limits`] hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Netlist {
    inputs: u32,
    gates: Vec<Gate>,
    outputs: Vec<Signal>,
}

impl Netlist {
    /// Checks all bounds and references.
    pub fn new(inputs: usize, gates: Vec<Gate>, outputs: Vec<Signal>) -> Result<Netlist, NetlistError> {
        if CIRCUIT_INPUTS_MAX < inputs {
            return Err(NetlistError::TooManyInputs { count: inputs });
        }
        if CIRCUIT_OUTPUTS_MAX < outputs.len() {
            return Err(NetlistError::TooManyOutputs { count: outputs.len() });
        }
        if CIRCUIT_GATES_MAX < gates.len() {
            return Err(NetlistError::TooManyGates { count: gates.len() });
        }
        let undefined = |place: String, signal: Signal| {
            Err(NetlistError::UndefinedSignal { place, signal: signal.index() })
        };
        for (position, gate) in gates.iter().enumerate() {
            for signal in [gate.a, gate.b] {
                if 2 + inputs + position <= signal.index() {
                    return undefined(format!("gate {position}"), signal);
                }
            }
        }
        for (position, output) in outputs.iter().enumerate() {
            if 2 + inputs + gates.len() <= output.index() {
                return undefined(format!("output {position}"), *output);
            }
        }
        Ok(Netlist { inputs: inputs as u32, gates, outputs })
    }

    /// How many inputs.
    pub fn inputs(&self) -> usize {
        self.inputs as usize
    }

    /// The gates, in topological order.
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// The output wires.
    pub fn outputs(&self) -> &[Signal] {
        &self.outputs
    }

    /// The signal of the gate at this position.
    pub fn gate_signal(&self, position: usize) -> Signal {
        Signal(2 + self.inputs + position as u32)
    }

    /// The position of the gate that drives this signal, if it is a gate.
    pub fn gate_position(&self, signal: Signal) -> Option<usize> {
        signal.index().checked_sub(2 + self.inputs())
    }

    /// The circuit of these outputs alone, over the same inputs: the gates that they do not need are left out.
    pub fn cone(&self, outputs: &[usize]) -> Netlist {
        let outputs: Vec<Signal> = outputs.iter().map(|output| self.outputs[*output]).collect();
        let (gates, outputs) = without_unused(self.inputs(), &self.gates, &outputs);
        Netlist { inputs: self.inputs, gates, outputs }
    }

    /// The inputs that some gate or output refers to, in rising order.
    pub fn support(&self) -> Vec<usize> {
        let mut used = vec![false; 2 + self.inputs() + self.gates.len()];
        for signal in self.gates.iter().flat_map(|gate| [gate.a, gate.b]).chain(self.outputs.iter().copied())
        {
            used[signal.index()] = true;
        }
        (0..self.inputs()).filter(|input| used[Signal::input(*input).index()]).collect()
    }

    /// The same circuit over only those inputs that it refers to, and which these are.
    pub fn compact(&self) -> (Netlist, Vec<usize>) {
        let support = self.support();
        let mut map = vec![Signal::FALSE; 2 + self.inputs()];
        map[1] = Signal::TRUE;
        for (place, input) in support.iter().enumerate() {
            map[Signal::input(*input).index()] = Signal::input(place);
        }
        let dropped = self.inputs() - support.len();
        map.extend(
            (0..self.gates.len()).map(|position| Signal(self.gate_signal(position).0 - dropped as u32)),
        );
        let gate = |gate: &Gate| Gate { op: gate.op, a: map[gate.a.index()], b: map[gate.b.index()] };
        let gates = self.gates.iter().map(gate).collect();
        let outputs = self.outputs.iter().map(|output| map[output.index()]).collect();
        (Netlist { inputs: support.len() as u32, gates, outputs }, support)
    }

    /// The longest path from an input to an output, in gates.
    pub fn depth(&self) -> usize {
        let mut depths = vec![0; 2 + self.inputs()];
        for gate in &self.gates {
            depths.push(1 + depths[gate.a.index()].max(depths[gate.b.index()]));
        }
        self.outputs.iter().map(|output| depths[output.index()]).max().unwrap_or(0)
    }

    /// Evaluates 64 lanes at once: the plainest definition, the reference for every faster one.
    ///
    /// `values` is scratch space and may be reused between calls.
    pub fn evaluate_words(&self, inputs: &[u64], values: &mut Vec<u64>, outputs: &mut Vec<u64>) {
        assert!(inputs.len() == self.inputs(), "{} inputs given, {} expected", inputs.len(), self.inputs());
        values.clear();
        values.extend_from_slice(&[0, u64::MAX]);
        values.extend_from_slice(inputs);
        for gate in &self.gates {
            values.push(gate.op.apply(values[gate.a.index()], values[gate.b.index()]));
        }
        outputs.clear();
        outputs.extend(self.outputs.iter().map(|output| values[output.index()]));
    }

    /// Evaluates one assignment.
    pub fn evaluate(&self, inputs: &[bool]) -> Vec<bool> {
        let words: Vec<u64> = inputs.iter().map(|bit| u64::from(*bit)).collect();
        let (mut values, mut outputs) = (Vec::new(), Vec::new());
        self.evaluate_words(&words, &mut values, &mut outputs);
        outputs.iter().map(|word| word & 1 == 1).collect()
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u32(self.inputs);
        writer.length(self.gates.len());
        for gate in &self.gates {
            writer.u8(gate.op as u8);
            writer.u32(gate.a.0);
            writer.u32(gate.b.0);
        }
        writer.length(self.outputs.len());
        for output in &self.outputs {
            writer.u32(output.0);
        }
    }

    /// Reads canonical bytes and checks every bound.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Netlist, DecodeError> {
        let start = reader.clone();
        let inputs = reader.u32()? as usize;
        let gate_count = reader.length(9)?;
        let mut gates = Vec::with_capacity(gate_count);
        for _ in 0..gate_count {
            let unknown = reader.error("an unknown gate operation");
            let op = *Op::ALL.get(usize::from(reader.u8()?)).ok_or(unknown)?;
            gates.push(Gate { op, a: Signal(reader.u32()?), b: Signal(reader.u32()?) });
        }
        let output_count = reader.length(4)?;
        let outputs = (0..output_count).map(|_| reader.u32().map(Signal)).collect::<Result<Vec<_>, _>>()?;
        Netlist::new(inputs, gates, outputs).map_err(|_| start.error("a circuit that breaks its bounds"))
    }

    /// The digest of the canonical bytes.
    pub fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        digest::hash_parts("bem/netlist", &[writer.as_bytes()])
    }
}

/// The gates that some output needs, renumbered, and the outputs in the new numbers.
fn without_unused(inputs: usize, gates: &[Gate], outputs: &[Signal]) -> (Vec<Gate>, Vec<Signal>) {
    let first_gate = 2 + inputs;
    let mut needed = vec![false; first_gate + gates.len()];
    for output in outputs {
        needed[output.index()] = true;
    }
    for (position, gate) in gates.iter().enumerate().rev() {
        if needed[first_gate + position] {
            needed[gate.a.index()] = true;
            needed[gate.b.index()] = true;
        }
    }
    let mut map: Vec<Signal> = (0..first_gate).map(Signal::from_index).collect();
    let mut kept = Vec::new();
    for (position, gate) in gates.iter().enumerate() {
        if needed[first_gate + position] {
            map.push(Signal::from_index(first_gate + kept.len()));
            kept.push(Gate { op: gate.op, a: map[gate.a.index()], b: map[gate.b.index()] });
        } else {
            map.push(Signal::FALSE);
        }
    }
    (kept, outputs.iter().map(|output| map[output.index()]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random_netlist;
    use bem_base::prng::Prng;

    #[test]
    #[cfg_attr(miri, ignore = "too much work for Miri")]
    fn rebuilding_a_circuit_keeps_its_meaning() {
        let mut prng = Prng::stream(1, "netlist");
        for _ in 0..500 {
            let circuit = random_netlist(&mut prng, 6, 20, 4);
            let mut builder = Builder::new(6);
            let inputs: Vec<Signal> = (0..6).map(Signal::input).collect();
            let outputs = builder.embed(&circuit, &inputs);
            let smaller = builder.finish(&outputs).unwrap();
            let words: Vec<u64> = (0..6)
                .map(|input| (0..64).fold(0, |word, lane: u64| word | (lane >> input & 1) << lane))
                .collect();
            let (mut values, mut want, mut got) = (Vec::new(), Vec::new(), Vec::new());
            circuit.evaluate_words(&words, &mut values, &mut want);
            smaller.evaluate_words(&words, &mut values, &mut got);
            assert_eq!(want, got);
            circuit.cone(&[2, 0]).evaluate_words(&words, &mut values, &mut got);
            assert_eq!([want[2], want[0]], got[..]);
        }
    }

    #[test]
    fn canonical_bytes_come_back_and_damage_is_refused() {
        let circuit = random_netlist(&mut Prng::stream(2, "bytes"), 3, 9, 4);
        let mut writer = Writer::new();
        circuit.encode(&mut writer);
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes);
        assert_eq!(Netlist::decode(&mut reader), Ok(circuit));
        assert!(Netlist::decode(&mut Reader::new(&bytes[..bytes.len() - 1])).is_err());
        let mut malformed = bytes.clone();
        malformed[8] = 8;
        assert!(Netlist::decode(&mut Reader::new(&malformed)).is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much work for Miri")]
    fn every_bound_is_enforced() {
        let count = CIRCUIT_INPUTS_MAX + 1;
        assert_eq!(Netlist::new(count, vec![], vec![]), Err(NetlistError::TooManyInputs { count }));
        let count = CIRCUIT_OUTPUTS_MAX + 1;
        let outputs = vec![Signal::FALSE; count];
        assert_eq!(Netlist::new(0, vec![], outputs), Err(NetlistError::TooManyOutputs { count }));
        let count = CIRCUIT_GATES_MAX + 1;
        let gates = vec![Gate { op: Op::And, a: Signal::FALSE, b: Signal::TRUE }; count];
        assert_eq!(Netlist::new(0, gates, vec![]), Err(NetlistError::TooManyGates { count }));
        let ahead = vec![Gate { op: Op::And, a: Signal(2), b: Signal(0) }];
        assert!(matches!(Netlist::new(0, ahead, vec![]), Err(NetlistError::UndefinedSignal { .. })));
    }

    #[test]
    fn a_multiplexer_takes_three_gates() {
        let mut builder = Builder::new(3);
        let (choose, then, otherwise) = (builder.input(0), builder.input(1), builder.input(2));
        let output = builder.mux(choose, then, otherwise);
        let circuit = builder.finish(&[output]).unwrap();
        assert_eq!(circuit.gates().len(), 3);
        assert_eq!(circuit.evaluate(&[true, true, false]), [true]);
        assert_eq!(circuit.evaluate(&[false, true, false]), [false]);
    }
}
