//! Registers for values: one pass over the steps that emits the machine code.
//!
//! When registers run out, the value whose next use is furthest away leaves (Belady's rule). A value that memory
//! already holds leaves for free; any other is stored to working memory once. Must not know how instructions are
//! encoded or what the steps mean.

use super::emit::{Code, REGISTERS, Register, Source};
use super::lower::{Operation, Place, Program, Step, Value};

/// No further use.
const NEVER: u32 = u32::MAX;

/// What is known about the uses of the operands of one step.
#[derive(Clone, Copy)]
struct Uses {
    /// Whether anybody needs the result.
    live: bool,
    /// When the result, or the value stored, is used next after this step.
    next_result: u32,
    /// When the first operand is used next after this step.
    next_a: u32,
    /// When the second operand is used next after this step.
    next_b: u32,
}

struct Allocator<'a> {
    code: Code,
    homes: &'a mut [Option<Place>],
    /// Where each value is, if in a register.
    registers: Vec<Option<Register>>,
    /// When each value is used next; the current step while its operands are being fetched.
    next_use: Vec<u32>,
    /// What each register holds.
    holds: [Option<Value>; REGISTERS],
    free_slots: Vec<u32>,
    slots: u32,
}

/// The machine code of a program and how many words of working memory it needs.
pub(super) fn allocate(mut program: Program) -> (Vec<u8>, usize) {
    let (uses, first_use) = uses(&program);
    let mut allocator = Allocator {
        code: Code::with_capacity(program.steps.len()),
        registers: vec![None; program.homes.len()],
        next_use: first_use,
        homes: &mut program.homes,
        holds: [None; REGISTERS],
        free_slots: Vec::new(),
        slots: 0,
    };
    for (step, uses) in program.steps.iter().zip(&uses) {
        if uses.live {
            allocator.step(*step, *uses);
        }
    }
    (allocator.code.finish(), allocator.slots as usize)
}

/// Per step the next uses after it, and per value its first use. Results that nobody needs are found on the way.
fn uses(program: &Program) -> (Vec<Uses>, Vec<u32>) {
    let mut next = vec![NEVER; program.homes.len()];
    let mut all =
        vec![Uses { live: true, next_result: NEVER, next_a: NEVER, next_b: NEVER }; program.steps.len()];
    for (position, step) in program.steps.iter().enumerate().rev() {
        let now = position as u32;
        let uses = &mut all[position];
        match *step {
            Step::Combine { value, a, b, .. } => {
                uses.next_result = next[value as usize];
                uses.live = uses.next_result != NEVER;
                if uses.live {
                    uses.next_a = core::mem::replace(&mut next[a as usize], now);
                    uses.next_b = core::mem::replace(&mut next[b as usize], now);
                }
            }
            Step::Load { value, .. } | Step::Zero { value } => {
                uses.next_result = next[value as usize];
                uses.live = uses.next_result != NEVER;
            }
            Step::Store { value, .. } => uses.next_a = core::mem::replace(&mut next[value as usize], now),
        }
    }
    (all, next)
}

impl Allocator<'_> {
    fn step(&mut self, step: Step, uses: Uses) {
        match step {
            Step::Combine { op, value, a, b } => {
                let swappable = op != Operation::NotAnd;
                let (first, second, next_first, next_second) =
                    if swappable && self.registers[a as usize].is_none() && self.prefers_second(b, uses) {
                        (b, a, uses.next_b, uses.next_a)
                    } else {
                        (a, b, uses.next_a, uses.next_b)
                    };
                let left = self.fetch(first);
                let right = self.source(second, next_second);
                self.used(first, next_first);
                self.used(second, next_second);
                let destination = self.take_register();
                self.code.combine(op, destination, left, right);
                self.free_slot(first);
                self.free_slot(second);
                self.hold(destination, value, uses.next_result);
            }
            Step::Load { value, place } => {
                let destination = self.take_register();
                self.code.load(destination, place);
                self.hold(destination, value, uses.next_result);
            }
            Step::Zero { value } => {
                let destination = self.take_register();
                let same = Source::Register(destination);
                self.code.combine(Operation::Xor, destination, destination, same);
                self.hold(destination, value, uses.next_result);
            }
            Step::Store { value, place } => {
                let register = self.fetch(value);
                self.code.store(register, place);
                self.used(value, uses.next_a);
                self.free_slot(value);
            }
        }
    }

    /// Of two exchangeable operands the first in memory, whether the second should be the one in a register.
    fn prefers_second(&self, b: Value, uses: Uses) -> bool {
        self.registers[b as usize].is_some() || uses.next_b < uses.next_a
    }

    /// The value in a register, loaded if it is not in one.
    fn fetch(&mut self, value: Value) -> Register {
        if let Some(register) = self.registers[value as usize] {
            return register;
        }
        let register = self.take_register();
        let place = self.homes[value as usize].expect("a value is in a register or in memory");
        self.code.load(register, place);
        self.holds[register as usize] = Some(value);
        self.registers[value as usize] = Some(register);
        register
    }

    /// The value as second source: from memory unless it is used again before what would leave for it.
    fn source(&mut self, value: Value, next: u32) -> Source {
        let in_register = self.registers[value as usize].is_some();
        if in_register || (next != NEVER && next < self.victim().0) {
            return Source::Register(self.fetch(value));
        }
        Source::Memory(self.homes[value as usize].expect("a value is in a register or in memory"))
    }

    /// Notes when a value is used next; one that is not used again gives its register back.
    fn used(&mut self, value: Value, next: u32) {
        self.next_use[value as usize] = next;
        if next == NEVER
            && let Some(register) = self.registers[value as usize].take()
        {
            self.holds[register as usize] = None;
        }
    }

    /// Gives the word of working memory back if the value has one and is not used again. This comes after the
    /// instruction that may read it, because making room for the result may store to a free word before that.
    fn free_slot(&mut self, value: Value) {
        if let (NEVER, Some(Place::Spill(slot))) = (self.next_use[value as usize], self.homes[value as usize])
        {
            self.free_slots.push(slot);
        }
    }

    fn hold(&mut self, register: Register, value: Value, next: u32) {
        self.holds[register as usize] = Some(value);
        self.registers[value as usize] = Some(register);
        self.next_use[value as usize] = next;
    }

    /// The register to give away first and when what it holds is used next: a free one counts as never.
    fn victim(&self) -> (u32, Register) {
        let mut best = (0, 0);
        for (register, held) in self.holds.iter().enumerate() {
            let next = held.map_or(NEVER, |value| self.next_use[value as usize]);
            if best.0 < next {
                best = (next, register as Register);
            }
        }
        best
    }

    /// A register without a value; the one used furthest in the future leaves if there is none.
    fn take_register(&mut self) -> Register {
        let (_, register) = self.victim();
        if let Some(value) = self.holds[register as usize].take() {
            self.registers[value as usize] = None;
            if self.homes[value as usize].is_none() {
                let slot = self.free_slots.pop().unwrap_or_else(|| {
                    self.slots += 1;
                    self.slots - 1
                });
                self.code.store(register, Place::Spill(slot));
                self.homes[value as usize] = Some(Place::Spill(slot));
            }
        }
        register
    }
}
