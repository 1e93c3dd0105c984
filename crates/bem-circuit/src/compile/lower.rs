//! From a placed circuit to straight-line steps over words of 256 lanes.
//!
//! Every gate becomes one step at most: complements travel as a sign on the value and are absorbed by the next
//! operation, constants fold away, and the masked write-back is expressed with the same steps. A write is scheduled as
//! early as the reads of its plane allow, which keeps registers free. Must not know registers or instructions.

use crate::netlist::{Gate, Op};
use crate::placed::{PlacedCircuit, Target};

/// A word in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A plane of the state.
    Plane(u16),
    /// The lane mask given by the caller.
    Mask,
    /// A word of the results.
    Result(u16),
    /// A word of working memory.
    Spill(u32),
}

/// A word read or computed during one evaluation.
pub(super) type Value = u32;

/// What one step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// `value := a op b`, with `a != b`.
    Combine { op: Operation, value: Value, a: Value, b: Value },
    /// `value := [place]`, read exactly here because the place is overwritten later.
    Load { value: Value, place: Place },
    /// `value := 0`.
    Zero { value: Value },
    /// `[place] := value`.
    Store { value: Value, place: Place },
}

/// The logic operations that AVX2 has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// `a & b`
    And,
    /// `!a & b`
    NotAnd,
    /// `a | b`
    Or,
    /// `a ^ b`
    Xor,
}

/// The steps of one circuit.
pub(super) struct Program {
    /// In order of execution.
    pub steps: Vec<Step>,
    /// Where a value can be read from memory at any time up to its last use, if it can.
    pub homes: Vec<Option<Place>>,
}

/// A value or its complement. Value 0 stands for the constant false and never reaches a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Literal {
    value: Value,
    negated: bool,
}

const FALSE: Literal = Literal { value: 0, negated: false };
const TRUE: Literal = Literal { value: 0, negated: true };

impl Literal {
    fn plain(value: Value) -> Literal {
        Literal { value, negated: false }
    }

    fn complement_if(self, condition: bool) -> Literal {
        Literal { negated: self.negated ^ condition, ..self }
    }
}

/// One output on its way to memory, after the step before `after`.
struct Write {
    after: u32,
    literal: Literal,
    target: Target,
}

struct Lowering {
    steps: Vec<Step>,
    homes: Vec<Option<Place>>,
    /// Steps after which the value exists; 0 for what is in memory from the start.
    ready: Vec<u32>,
    /// Steps after which no gate and no guard uses the value.
    done: Vec<u32>,
    /// The value whose home is the plane, 0 if there is none yet.
    plane_values: Vec<Value>,
}

/// Lowers a circuit; the gates keep their order.
pub(super) fn lower(placed: &PlacedCircuit) -> Program {
    let circuit = placed.circuit();
    let capacity = circuit.gates().len() + circuit.inputs() + 4 * circuit.outputs().len() + 2;
    let mut lowering = Lowering {
        steps: Vec::with_capacity(capacity),
        homes: Vec::with_capacity(capacity),
        ready: Vec::with_capacity(capacity),
        done: Vec::with_capacity(capacity),
        plane_values: vec![0; placed.planes()],
    };
    lowering.new_value(None);
    let mut literals = Vec::with_capacity(2 + circuit.inputs() + circuit.gates().len());
    literals.extend([FALSE, TRUE]);
    for plane in &placed.placement().reads {
        literals.push(Literal::plain(lowering.plane_value(*plane)));
    }
    for gate in circuit.gates() {
        literals.push(lowering.gate(*gate, &literals));
    }
    let outputs = circuit.outputs().iter().map(|output| literals[output.index()]);
    let outputs: Vec<(Literal, Target)> = outputs.zip(placed.placement().targets.iter().copied()).collect();
    let mut mask = Literal::plain(lowering.new_value(Some(Place::Mask)));
    for (guard, _) in outputs.iter().filter(|(_, target)| *target == Target::Guard) {
        mask = lowering.and(mask, *guard);
    }
    lowering.finish(&outputs, mask)
}

impl Lowering {
    fn new_value(&mut self, home: Option<Place>) -> Value {
        self.homes.push(home);
        self.ready.push(0);
        self.done.push(0);
        self.homes.len() as Value - 1
    }

    fn plane_value(&mut self, plane: u16) -> Value {
        if self.plane_values[usize::from(plane)] == 0 {
            self.plane_values[usize::from(plane)] = self.new_value(Some(Place::Plane(plane)));
        }
        self.plane_values[usize::from(plane)]
    }

    fn gate(&mut self, gate: Gate, literals: &[Literal]) -> Literal {
        let (a, b) = (literals[gate.a.index()], literals[gate.b.index()]);
        let inverted = |literal: Literal| literal.complement_if(true);
        match gate.op {
            Op::And => self.and(a, b),
            Op::Nand => inverted(self.and(a, b)),
            Op::AndNot => self.and(a, inverted(b)),
            Op::Implies => inverted(self.and(a, inverted(b))),
            Op::Nor => self.and(inverted(a), inverted(b)),
            Op::Or => inverted(self.and(inverted(a), inverted(b))),
            Op::Xor => self.xor(a, b),
            Op::Xnor => inverted(self.xor(a, b)),
        }
    }

    fn and(&mut self, a: Literal, b: Literal) -> Literal {
        if a.value == b.value {
            return if a.negated == b.negated { a } else { FALSE };
        }
        match (a, b) {
            (FALSE, _) | (_, FALSE) => FALSE,
            (TRUE, other) | (other, TRUE) => other,
            _ => match (a.negated, b.negated) {
                (false, false) => self.combine(Operation::And, a.value, b.value),
                (true, false) => self.combine(Operation::NotAnd, a.value, b.value),
                (false, true) => self.combine(Operation::NotAnd, b.value, a.value),
                (true, true) => self.combine(Operation::Or, a.value, b.value).complement_if(true),
            },
        }
    }

    fn xor(&mut self, a: Literal, b: Literal) -> Literal {
        let negated = a.negated ^ b.negated;
        if a.value == b.value {
            return FALSE.complement_if(negated);
        }
        let plain = match (a.value, b.value) {
            (0, other) | (other, 0) => Literal::plain(other),
            (a, b) => self.combine(Operation::Xor, a, b),
        };
        plain.complement_if(negated)
    }

    fn combine(&mut self, op: Operation, a: Value, b: Value) -> Literal {
        let value = self.new_value(None);
        self.steps.push(Step::Combine { op, value, a, b });
        let position = self.steps.len() as u32;
        self.ready[value as usize] = position;
        self.done[a as usize] = position;
        self.done[b as usize] = position;
        Literal::plain(value)
    }

    /// Puts the writes between the steps that compute, each as early as it is safe.
    fn finish(mut self, outputs: &[(Literal, Target)], mask: Literal) -> Program {
        let mut written = vec![false; self.plane_values.len()];
        for (_, target) in outputs {
            if let Target::Plane(plane) = target {
                written[usize::from(*plane)] = true;
            }
        }
        let computed = core::mem::take(&mut self.steps);
        let mut writes = Vec::with_capacity(outputs.len());
        for (literal, target) in outputs.iter().filter(|(_, target)| *target != Target::Guard) {
            let literal = self.safe_source(*literal, *target, &written);
            let mut after = self.ready[literal.value as usize].max(self.ready[mask.value as usize]);
            if let Target::Plane(plane) = target {
                let old = self.plane_value(*plane);
                after = after.max(self.done[old as usize]);
            }
            writes.push(Write { after, literal, target: *target });
        }
        writes.sort_by_key(|write| write.after);
        let mut writes = writes.into_iter().peekable();
        for position in 0..=computed.len() {
            while let Some(write) = writes.next_if(|write| write.after as usize == position) {
                self.write(&write, mask);
            }
            self.steps.extend(computed.get(position));
        }
        Program { steps: self.steps, homes: self.homes }
    }

    /// An output that is a plane unchanged (or its complement) would be read while writing; when another output
    /// overwrites that plane, it is read at the very start instead.
    fn safe_source(&mut self, literal: Literal, target: Target, written: &[bool]) -> Literal {
        match self.homes[literal.value as usize] {
            Some(Place::Plane(plane)) if written[usize::from(plane)] && target != Target::Plane(plane) => {
                let value = self.new_value(None);
                self.steps.push(Step::Load { value, place: Place::Plane(plane) });
                Literal { value, ..literal }
            }
            _ => literal,
        }
    }

    /// The masked write-back of one output: `old ^ ((old ^ y) & mask)`, or less where something is constant.
    fn write(&mut self, write: &Write, mask: Literal) {
        let Write { literal, target, .. } = *write;
        let masked = if mask == FALSE { FALSE } else { literal };
        let (new, place) = match target {
            Target::Guard => return,
            Target::Result(result) => (self.and(masked, mask), Place::Result(result)),
            Target::Plane(_) if mask == FALSE => return,
            Target::Plane(plane) => {
                let old = Literal::plain(self.plane_value(plane));
                if literal == old {
                    return;
                }
                let new = match literal {
                    FALSE => self.and(mask.complement_if(true), old),
                    TRUE => self.combine(Operation::Or, mask.value, old.value),
                    _ => {
                        let differs = self.xor(old, literal);
                        let taken = self.and(differs, mask);
                        self.xor(old, taken)
                    }
                };
                (new, Place::Plane(plane))
            }
        };
        assert!(!new.negated, "no form of write-back leaves a complement");
        let value = match new.value {
            0 => {
                let value = self.new_value(None);
                self.steps.push(Step::Zero { value });
                value
            }
            value => value,
        };
        self.steps.push(Step::Store { value, place });
    }
}
