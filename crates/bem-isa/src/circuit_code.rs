//! From a circuit on its planes to straight-line vector code: the expert as a program sees it.
//!
//! 256 lanes at a time, in `b0` to `b30`; the lanes that act are in `b31`, which guards narrow. A value that finds
//! no register goes to scratch memory and comes back when it is needed; the value needed last goes first. Planes
//! are written only after everything is computed, so a circuit may write what it reads. Must not know what the
//! planes mean. Clauses: ISA-5, ISA-6, VM-1.

use bem_circuit::netlist::{Op, Signal};
use bem_circuit::placed::{PlacedCircuit, Target};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Registers that values may occupy; the one after them is the mask.
const REGISTERS: usize = 31;
const MASK: usize = REGISTERS;
/// Bytes of one plane.
const PLANE_BYTES: usize = 32;

/// A circuit with outputs that go neither to planes nor to the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("output {output} is counted: only outputs that go to planes or guard them become code")]
pub struct CountedOutput {
    /// Which output.
    pub output: usize,
}

/// Assembly of one circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitCode {
    /// Instructions, one a line, without label or return.
    pub text: String,
    /// Vectors of scratch memory it uses from the given place on.
    pub scratch_vectors: usize,
}

/// Lays a circuit down. Planes are at `sb_state`, scratch memory `scratch` bytes behind `sb_work`.
pub fn circuit_code(placed: &PlacedCircuit, scratch: usize) -> Result<CircuitCode, CountedOutput> {
    let targets = &placed.placement().targets;
    if let Some(output) = targets.iter().position(|target| matches!(target, Target::Result(_))) {
        return Err(CountedOutput { output });
    }
    let mut generator = Generator::new(placed, scratch);
    for position in 0..placed.circuit().gates().len() {
        generator.gate(position);
    }
    generator.write();
    Ok(CircuitCode { text: generator.text, scratch_vectors: generator.spilled })
}

/// The code so far and where every value is.
struct Generator<'a> {
    placed: &'a PlacedCircuit,
    scratch: usize,
    text: String,
    registers: [Option<Signal>; REGISTERS],
    /// Byte offset in scratch memory of every value that was put there.
    homes: BTreeMap<usize, usize>,
    /// For every signal the gates that need it, in order; outputs count as one gate past the last.
    uses: Vec<Vec<usize>>,
    spilled: usize,
}

impl<'a> Generator<'a> {
    fn new(placed: &'a PlacedCircuit, scratch: usize) -> Generator<'a> {
        let circuit = placed.circuit();
        let mut uses = vec![Vec::new(); 2 + circuit.inputs() + circuit.gates().len()];
        for (position, gate) in circuit.gates().iter().enumerate() {
            uses[gate.a.index()].push(position);
            uses[gate.b.index()].push(position);
        }
        for output in circuit.outputs() {
            uses[output.index()].push(circuit.gates().len());
        }
        let registers = [None; REGISTERS];
        Generator {
            placed,
            scratch,
            text: String::new(),
            registers,
            homes: BTreeMap::new(),
            uses,
            spilled: 0,
        }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        writeln!(self.text, "    {text}").expect("writing to a text cannot fail");
    }

    /// When a value is needed next, from `position` on; nothing if never.
    fn next_use(&self, signal: Signal, position: usize) -> Option<usize> {
        let uses = &self.uses[signal.index()];
        uses.get(uses.partition_point(|place| *place < position)).copied()
    }

    /// A register to overwrite, none of `pinned`: a free one, else the one whose value is needed last.
    fn allocate(&mut self, position: usize, pinned: &[usize]) -> usize {
        let distance = |register: &usize| match self.registers[*register] {
            None => usize::MAX,
            Some(signal) => self.next_use(signal, position).unwrap_or(usize::MAX - 1),
        };
        let free = (0..REGISTERS).filter(|register| !pinned.contains(register));
        let register = free.rev().max_by_key(distance).expect("there are more registers than pinned ones");
        if let Some(signal) = self.registers[register].take()
            && self.next_use(signal, position).is_some()
            && self.placed.circuit().gate_position(signal).is_some()
            && !self.homes.contains_key(&signal.index())
        {
            self.save(register, signal);
        }
        register
    }

    /// Puts a value into scratch memory.
    fn save(&mut self, register: usize, signal: Signal) {
        let home = self.scratch + self.spilled * PLANE_BYTES;
        self.spilled += 1;
        self.homes.insert(signal.index(), home);
        self.line(format_args!("bst b{register}, [sb_work + {home}]"));
    }

    /// Brings a value into a register.
    fn hold(&mut self, signal: Signal, position: usize, pinned: &[usize]) -> usize {
        if let Some(register) = self.registers.iter().position(|held| *held == Some(signal)) {
            return register;
        }
        let register = self.allocate(position, pinned);
        if let Some(home) = self.homes.get(&signal.index()).copied() {
            self.line(format_args!("bld b{register}, [sb_work + {home}]"));
        } else if signal.index() < 2 {
            self.line(format_args!("b_xor b{register}, b{register}, b{register}"));
            if signal == Signal::TRUE {
                self.line(format_args!("b_not b{register}, b{register}"));
            }
        } else {
            let plane = usize::from(self.placed.placement().reads[signal.index() - 2]);
            self.line(format_args!("bld b{register}, [sb_state + {}]", plane * PLANE_BYTES));
        }
        self.registers[register] = Some(signal);
        register
    }

    fn gate(&mut self, position: usize) {
        let gate = self.placed.circuit().gates()[position];
        let a = self.hold(gate.a, position, &[]);
        let b = self.hold(gate.b, position, &[a]);
        let d = self.allocate(position + 1, &[a, b]);
        let (name, first, second) = match gate.op {
            Op::And | Op::Nand => ("b_and", a, b),
            Op::Or | Op::Nor => ("b_or", a, b),
            Op::Xor | Op::Xnor => ("b_xor", a, b),
            Op::AndNot => {
                self.line(format_args!("b_not b{d}, b{b}"));
                ("b_and", a, d)
            }
            Op::Implies => {
                self.line(format_args!("b_not b{d}, b{a}"));
                ("b_or", d, b)
            }
        };
        self.line(format_args!("{name} b{d}, b{first}, b{second}"));
        if matches!(gate.op, Op::Nand | Op::Nor | Op::Xnor) {
            self.line(format_args!("b_not b{d}, b{d}"));
        }
        self.registers[d] = Some(self.placed.circuit().gate_signal(position));
    }

    /// Guards, then planes; inputs that are outputs are saved first, because their planes may change under them.
    fn write(&mut self) {
        let (circuit, targets) = (self.placed.circuit(), &self.placed.placement().targets);
        let end = circuit.gates().len();
        for output in circuit.outputs() {
            let is_input = 2 <= output.index() && circuit.gate_position(*output).is_none();
            if is_input && !self.homes.contains_key(&output.index()) {
                let register = self.hold(*output, end, &[]);
                self.save(register, *output);
            }
        }
        for (output, target) in circuit.outputs().iter().zip(targets) {
            if *target == Target::Guard {
                let register = self.hold(*output, end, &[]);
                self.line(format_args!("b_and b{MASK}, b{MASK}, b{register}"));
            }
        }
        for (output, target) in circuit.outputs().iter().zip(targets) {
            let Target::Plane(plane) = target else { continue };
            let offset = usize::from(*plane) * PLANE_BYTES;
            let value = self.hold(*output, end, &[]);
            let old = self.allocate(end, &[value]);
            self.line(format_args!("bld b{old}, [sb_state + {offset}]"));
            self.line(format_args!("b_blend b{old}, b{MASK}, b{value}, b{old}"));
            self.line(format_args!("bst b{old}, [sb_state + {offset}]"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::assemble;
    use crate::instruction::SegmentBase;
    use crate::interpreter::{Core, NoCoprocessor, SegmentStarts};
    use crate::memory::{Memory, STATE_START};
    use bem_base::lanes::LaneWord;
    use bem_base::prng::Prng;
    use bem_circuit::interpret::Interpreted;
    use bem_circuit::placed::{Evaluate, Placement, Scratch};
    use bem_circuit::testing::{random_dense_netlist, random_lanes, random_netlist};

    const PLANES: usize = 48;

    /// A circuit on random planes, with a guard among its outputs.
    fn random_circuit(prng: &mut Prng, dense: bool) -> PlacedCircuit {
        let (inputs, outputs) = (2 + prng.below(40) as usize, 1 + prng.below(40) as usize);
        let gates = prng.below(150) as usize;
        let circuit = if dense && 0 < gates {
            random_dense_netlist(prng, inputs, gates, outputs.min(gates))
        } else {
            random_netlist(prng, inputs, gates, outputs)
        };
        let mut planes: Vec<u16> = (0..PLANES as u16).collect();
        prng.shuffle(&mut planes);
        let reads = (0..circuit.inputs()).map(|_| prng.below(PLANES as u64) as u16).collect();
        let targets = (0..circuit.outputs().len())
            .map(|output| if output % 9 == 8 { Target::Guard } else { Target::Plane(planes[output]) })
            .collect();
        PlacedCircuit::new(circuit, Placement { reads, targets }, u32::MAX).unwrap()
    }

    #[test]
    fn the_code_of_a_circuit_does_what_the_circuit_does_in_every_lane() {
        let mut prng = Prng::stream(11, "circuit code");
        let mut spilled = 0;
        for round in 0..300 {
            let placed = random_circuit(&mut prng, round % 2 == 0);
            let code = circuit_code(&placed, 64).unwrap();
            spilled += usize::from(0 < code.scratch_vectors);
            let program = assemble(&code.text).unwrap();
            let mut planes: Vec<LaneWord> = (0..PLANES).map(|_| random_lanes(&mut prng)).collect();
            let mask = random_lanes(&mut prng);
            let mut state: Vec<u64> = planes.iter().flat_map(|plane| plane.0).collect();
            let mut shared = vec![0; 8 + 4 * code.scratch_vectors];
            let starts = SegmentStarts::default().with(SegmentBase::State, STATE_START);
            let mut core = Core::new(&program, 0, starts);
            core.b[MASK] = mask;
            let mut memory = Memory::open(&mut shared, &mut state);
            core.run(&program, &mut memory, &mut NoCoprocessor, 100_000).unwrap();
            Interpreted::new(placed.clone()).evaluate(&mut planes, &mask, &mut [], &mut Scratch::new());
            let expected: Vec<u64> = planes.iter().flat_map(|plane| plane.0).collect();
            assert_eq!(state, expected, "{}", code.text);
        }
        assert!(50 < spilled, "the circuits are large enough to spill: {spilled}");
    }

    #[test]
    fn counted_outputs_are_refused_by_number() {
        let mut prng = Prng::stream(1, "counted");
        let circuit = random_netlist(&mut prng, 2, 3, 2);
        let placement = Placement { reads: vec![0, 1], targets: vec![Target::Plane(3), Target::Result(0)] };
        let placed = PlacedCircuit::new(circuit, placement, u32::MAX).unwrap();
        assert_eq!(circuit_code(&placed, 0), Err(CountedOutput { output: 1 }));
    }
}
