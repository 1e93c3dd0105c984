//! Straight-line execution on unknown values: each instruction turns one symbolic state into the next.
//!
//! Memory is a bounded model: its first words of SHARED, everything else faults. What has no exact clauses (wide
//! products and quotients, random numbers, co-processors) becomes an unknown value and is noted, so that a
//! counterexample that hangs on it is never called a refutation. Clause: SCC-6.

use super::word::{
    FALSE, TRUE, Word, add, any, below, bitwise, complement, count, equal, gate, leading_zeros, less,
    multiply, mux_word, shift_by_word, subtract,
};
use crate::instruction::{Instruction, Opcode};
use crate::interpreter::Core;
use bem_circuit::netlist::Op;
use bem_prover::Cnf;
use bem_prover::encode::{Wire, fresh_inputs};

/// Products of two unknown factors are exact up to this width.
const PRODUCT_BITS_MAX: usize = 8;

/// Registers and the modelled memory as wires.
#[derive(Clone, Debug)]
pub struct SymbolicState {
    /// Scalars; `x[0]` is the constant zero.
    pub x: Vec<Word>,
    /// Vectors, 256 wires each, the lowest lane first.
    pub b: Vec<Vec<Wire>>,
    /// Predicates.
    pub p: Vec<Wire>,
    /// The modelled words of SHARED.
    pub memory: Vec<Word>,
    /// What was replaced by an unknown value on the way.
    pub abstracted: Vec<&'static str>,
}

impl SymbolicState {
    /// Nothing is known but that `x0` is zero.
    pub fn unknown(cnf: &mut Cnf, memory_words: usize) -> SymbolicState {
        let x =
            (0..32).map(|number| if number == 0 { Word::constant(0) } else { Word::fresh(cnf) }).collect();
        let b = (0..32).map(|_| fresh_inputs(cnf, 256)).collect();
        let p = fresh_inputs(cnf, 16);
        let memory = (0..memory_words).map(|_| Word::fresh(cnf)).collect();
        SymbolicState { x, b, p, memory, abstracted: Vec::new() }
    }

    /// Everything is known.
    pub fn known(core: &Core, memory: &[u64]) -> SymbolicState {
        let lanes = |lanes: &bem_base::lanes::LaneWord| {
            (0..256).map(|lane| Wire::Constant(lanes.get(lane))).collect()
        };
        SymbolicState {
            x: core.x.iter().map(|word| Word::constant(*word)).collect(),
            b: core.b.iter().map(lanes).collect(),
            p: core.p.iter().map(|set| Wire::Constant(*set)).collect(),
            memory: memory.iter().map(|word| Word::constant(*word)).collect(),
            abstracted: Vec::new(),
        }
    }

    /// The registers and memory words of a model of the formula this state was made in.
    pub fn concrete(&self, model: &[bool], core: &mut Core) -> Vec<u64> {
        for (register, word) in core.x.iter_mut().zip(&self.x) {
            *register = word.value(model);
        }
        for (register, lanes) in core.b.iter_mut().zip(&self.b) {
            for (lane, wire) in lanes.iter().enumerate() {
                register.set(lane, wire.value(model));
            }
        }
        for (register, wire) in core.p.iter_mut().zip(&self.p) {
            *register = wire.value(model);
        }
        self.memory.iter().map(|word| word.value(model)).collect()
    }

    /// For each place where `count` words may start, whether the address means it; and whether it means none.
    fn places(&self, cnf: &mut Cnf, address: &Word, count: usize) -> (Vec<(usize, Wire)>, Wire) {
        let mut places = Vec::new();
        for start in (0..=self.memory.len().saturating_sub(count)).step_by(count) {
            if start + count <= self.memory.len() {
                let here = equal(cnf, address, &Word::constant(8 * start as u64));
                places.push((start, here));
            }
        }
        let wires: Vec<Wire> = places.iter().map(|(_, wire)| *wire).collect();
        let fault = any(cnf, &wires).complement();
        (places, fault)
    }

    /// Loads `count` neighbouring words; the wire says whether the access faults.
    pub fn load(&self, cnf: &mut Cnf, address: &Word, count: usize) -> (Vec<Word>, Wire) {
        let (places, fault) = self.places(cnf, address, count);
        let mut words = vec![Word::constant(0); count];
        for (start, here) in places {
            for (offset, word) in words.iter_mut().enumerate() {
                *word = mux_word(cnf, here, &self.memory[start + offset], word);
            }
        }
        (words, fault)
    }

    fn store(&mut self, cnf: &mut Cnf, address: &Word, words: &[Word]) -> Wire {
        let (places, fault) = self.places(cnf, address, words.len());
        for (start, here) in places {
            for (offset, word) in words.iter().enumerate() {
                self.memory[start + offset] = mux_word(cnf, here, word, &self.memory[start + offset]);
            }
        }
        fault
    }

    fn forget(&mut self, cnf: &mut Cnf, why: &'static str) -> Word {
        self.abstracted.push(why);
        Word::fresh(cnf)
    }

    /// The condition under which a branch is taken.
    pub fn branch(&self, cnf: &mut Cnf, instruction: &Instruction) -> Wire {
        let (a, b) = (&self.x[usize::from(instruction.a)], &self.x[usize::from(instruction.b)]);
        match instruction.opcode {
            Opcode::BranchEqual => equal(cnf, a, b),
            Opcode::BranchNotEqual => equal(cnf, a, b).complement(),
            Opcode::BranchLess => less(cnf, a, b),
            Opcode::BranchNotLess => less(cnf, a, b).complement(),
            _ => TRUE,
        }
    }

    /// Executes one instruction that is no jump. The wire says whether it faults.
    pub fn execute(&mut self, cnf: &mut Cnf, instruction: &Instruction, starts: &Core) -> Wire {
        let (a, b, c) = (usize::from(instruction.a), usize::from(instruction.b), usize::from(instruction.c));
        let immediate = instruction.immediate;
        let constant = Word::constant(i64::from(immediate) as u64);
        let amount = immediate.clamp(0, 255) as usize;
        let mut fault = FALSE;
        let x = |state: &SymbolicState, register: usize| state.x[register & 31].clone();
        match instruction.opcode {
            Opcode::Add => self.x[a] = add(cnf, &x(self, b), &x(self, c), FALSE).0,
            Opcode::Sub => self.x[a] = subtract(cnf, &x(self, b), &x(self, c)),
            Opcode::MulLo => {
                let product = multiply(cnf, &x(self, b), &x(self, c), PRODUCT_BITS_MAX);
                self.x[a] =
                    product.unwrap_or_else(|| self.forget(cnf, "a product of two unknown wide factors"));
            }
            Opcode::MulHu | Opcode::DivU => {
                let result = match (x(self, b).known(), x(self, c).known()) {
                    (Some(left), Some(right)) if instruction.opcode == Opcode::DivU => {
                        Word::constant(left.checked_div(right).unwrap_or(u64::MAX))
                    }
                    (Some(left), Some(right)) => {
                        Word::constant(((u128::from(left) * u128::from(right)) >> 64) as u64)
                    }
                    _ => self.forget(cnf, "a high product or quotient of unknown values"),
                };
                self.x[a] = result;
            }
            Opcode::And => self.x[a] = bitwise(cnf, Op::And, &x(self, b), &x(self, c)),
            Opcode::Or => self.x[a] = bitwise(cnf, Op::Or, &x(self, b), &x(self, c)),
            Opcode::Xor => self.x[a] = bitwise(cnf, Op::Xor, &x(self, b), &x(self, c)),
            Opcode::Not => self.x[a] = complement(&x(self, b)),
            Opcode::Shl => self.x[a] = x(self, b).shifted_left(amount),
            Opcode::Shr => self.x[a] = x(self, b).shifted_right(amount, FALSE),
            Opcode::Sar => {
                let word = x(self, b);
                self.x[a] = word.shifted_right(amount, word.0[63]);
            }
            Opcode::ShlV => self.x[a] = shift_by_word(cnf, &x(self, b), &x(self, c), true),
            Opcode::ShrV => self.x[a] = shift_by_word(cnf, &x(self, b), &x(self, c), false),
            Opcode::Clz => self.x[a] = leading_zeros(cnf, &x(self, b)),
            Opcode::LoadImmediate => self.x[a] = constant,
            Opcode::LoadUpper => {
                let low = x(self, a);
                let high = Word::constant(u64::from(immediate as u32) << 32);
                self.x[a] =
                    Word((0..64).map(|bit| if bit < 32 { low.0[bit] } else { high.0[bit] }).collect());
            }
            Opcode::AddImmediate => self.x[a] = add(cnf, &x(self, b), &constant, FALSE).0,
            Opcode::Load | Opcode::Store | Opcode::VectorLoad | Opcode::VectorStore => {
                fault = self.access(cnf, instruction, starts);
            }
            Opcode::VectorAnd => self.b[a] = self.lanes(cnf, Op::And, b, c),
            Opcode::VectorOr => self.b[a] = self.lanes(cnf, Op::Or, b, c),
            Opcode::VectorXor => self.b[a] = self.lanes(cnf, Op::Xor, b, c),
            Opcode::VectorNot => self.b[a] = self.b[b].iter().map(|wire| wire.complement()).collect(),
            Opcode::VectorShl => self.b[a] = moved(&self.b[b], |lane| lane.checked_sub(amount)),
            Opcode::VectorShr => self.b[a] = moved(&self.b[b], |lane| Some(lane + amount)),
            Opcode::VectorRol => self.b[a] = moved(&self.b[b], |lane| Some((lane + 256 - amount) % 256)),
            Opcode::VectorRor => self.b[a] = moved(&self.b[b], |lane| Some((lane + amount) % 256)),
            Opcode::VectorBlend => {
                let lanes = |lane: usize| (self.b[b][lane], self.b[c][lane], self.b[amount & 31][lane]);
                let blended = (0..256).map(lanes).collect::<Vec<_>>();
                self.b[a] = blended
                    .into_iter()
                    .map(|(mask, then, other)| super::word::mux(cnf, mask, then, other))
                    .collect();
            }
            Opcode::VectorPopcount => self.x[a] = count(cnf, &self.b[b].clone()),
            Opcode::VectorParity => {
                let odd = self.b[b].clone().iter().fold(FALSE, |sum, wire| gate(cnf, Op::Xor, sum, *wire));
                self.x[a] = Word::from_wire(odd);
            }
            Opcode::PredicateEqual => self.p[a] = equal(cnf, &x(self, b), &x(self, c)),
            Opcode::PredicateLess => self.p[a] = less(cnf, &x(self, b), &x(self, c)),
            Opcode::PredicateBelow => self.p[a] = below(cnf, &x(self, b), &x(self, c)),
            Opcode::Select => self.x[a] = mux_word(cnf, self.p[amount & 15], &x(self, b), &x(self, c)),
            Opcode::Random => self.x[a] = self.forget(cnf, "a random number"),
            Opcode::Status => {
                let mut word = Word::constant(0);
                word.0[..16].copy_from_slice(&self.p);
                self.x[a] = word;
            }
            Opcode::Coprocessor => {
                self.x[c] = self.forget(cnf, "a co-processor's answer");
                self.memory = (0..self.memory.len()).map(|_| Word::fresh(cnf)).collect();
            }
            Opcode::BranchEqual
            | Opcode::BranchNotEqual
            | Opcode::BranchLess
            | Opcode::BranchNotLess
            | Opcode::Jump
            | Opcode::JumpAndLink
            | Opcode::Return => unreachable!("jumps end a path and are handled by its walker"),
        }
        self.x[0] = Word::constant(0);
        fault
    }

    fn access(&mut self, cnf: &mut Cnf, instruction: &Instruction, starts: &Core) -> Wire {
        let (a, b) = (usize::from(instruction.a), instruction.b);
        let base = if b < 32 { self.x[usize::from(b)].clone() } else { Word::constant(starts.base_value(b)) };
        let offset = Word::constant(i64::from(instruction.immediate) as u64);
        let address = add(cnf, &base, &offset, FALSE).0;
        match instruction.opcode {
            Opcode::Load => {
                let (words, fault) = self.load(cnf, &address, 1);
                self.x[a] = words[0].clone();
                fault
            }
            Opcode::Store => {
                let word = self.x[a].clone();
                self.store(cnf, &address, &[word])
            }
            Opcode::VectorLoad => {
                let (words, fault) = self.load(cnf, &address, 4);
                self.b[a] = words.iter().flat_map(|word| word.0.iter().copied()).collect();
                fault
            }
            _ => {
                let words: Vec<Word> = self.b[a].chunks(64).map(|lanes| Word(lanes.to_vec())).collect();
                self.store(cnf, &address, &words)
            }
        }
    }

    fn lanes(&self, cnf: &mut Cnf, op: Op, a: usize, b: usize) -> Vec<Wire> {
        self.b[a].iter().zip(&self.b[b]).map(|(a, b)| gate(cnf, op, *a, *b)).collect()
    }
}

fn moved(lanes: &[Wire], source: impl Fn(usize) -> Option<usize>) -> Vec<Wire> {
    (0..256).map(|lane| source(lane).and_then(|from| lanes.get(from).copied()).unwrap_or(FALSE)).collect()
}
