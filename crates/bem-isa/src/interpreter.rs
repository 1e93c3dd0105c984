//! The interpreter: registers and one loop over decoded instructions.
//!
//! A program ends when control reaches the position past its last instruction; `x31` holds that position at the
//! start, so `ret x31` ends it too. Everything that can go wrong is a [`Trap`]. Clauses: ISA-1, ISA-2.

use crate::instruction::{Opcode, PREDICATES, SCALARS, SegmentBase, VECTORS};
use crate::memory::Memory;
use crate::program::Program;
use crate::trap::{Cause, Trap};
use bem_base::lanes::LaneWord;
use bem_base::prng;

/// Answers co-processor calls. The argument is the address of a descriptor; the result goes to a register.
#[doc(alias = "COP")]
pub trait Coprocessor {
    /// Performs an operation by its number.
    fn call(&mut self, operation: u8, argument: u64, memory: &mut Memory<'_>) -> Result<u64, Cause>;
}

/// No co-processor at all: every call traps.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCoprocessor;

impl Coprocessor for NoCoprocessor {
    fn call(&mut self, _operation: u8, _argument: u64, _memory: &mut Memory<'_>) -> Result<u64, Cause> {
        Err(Cause::NoCoprocessor)
    }
}

/// Where the named segments start, as byte addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SegmentStarts([u64; SegmentBase::ALL.len()]);

impl SegmentStarts {
    /// Sets the start of one segment.
    #[must_use]
    pub fn with(mut self, base: SegmentBase, address: u64) -> SegmentStarts {
        self.0[base as usize - SCALARS as usize] = address;
        self
    }

    /// The start of a segment.
    pub fn get(&self, base: SegmentBase) -> u64 {
        self.0[base as usize - SCALARS as usize]
    }
}

/// All registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// Scalars; `x[0]` is always zero.
    pub x: [u64; SCALARS as usize],
    /// Vectors of 256 lanes.
    pub b: [LaneWord; VECTORS as usize],
    /// Predicates.
    pub p: [bool; PREDICATES as usize],
    /// The next instruction.
    pub pc: u32,
    /// State of the random generator.
    pub seed: u64,
    /// Segment bases.
    pub starts: SegmentStarts,
    /// Instructions executed so far.
    pub executed: u64,
}

/// Called before every instruction; the empty one costs nothing.
pub trait Observer {
    /// Sees the registers before the instruction at `core.pc`.
    fn before(&mut self, core: &Core);
}

impl Observer for () {
    #[inline(always)]
    fn before(&mut self, _core: &Core) {}
}

impl Core {
    /// Registers at the start of a program.
    pub fn new(program: &Program, seed: u64, starts: SegmentStarts) -> Core {
        let mut x = [0; SCALARS as usize];
        x[31] = program.words().len() as u64;
        let (b, p) = ([LaneWord::ZERO; VECTORS as usize], [false; PREDICATES as usize]);
        Core { x, b, p, pc: 0, seed, starts, executed: 0 }
    }

    /// The value of a base register by its number: a scalar, or from 32 on the start of a segment.
    pub fn base_value(&self, number: u8) -> u64 {
        let number = usize::from(number);
        if number < self.x.len() { self.x[number] } else { self.starts.0[number - self.x.len()] }
    }

    /// Runs to the end of the program, a trap, or `steps` more instructions (which is a trap too).
    pub fn run(
        &mut self,
        program: &Program,
        memory: &mut Memory<'_>,
        coprocessor: &mut dyn Coprocessor,
        steps: u64,
    ) -> Result<(), Trap> {
        self.run_observed(program, memory, coprocessor, steps, &mut ())
    }

    /// Like [`Core::run`], with somebody watching.
    pub fn run_observed(
        &mut self,
        program: &Program,
        memory: &mut Memory<'_>,
        coprocessor: &mut dyn Coprocessor,
        steps: u64,
        observer: &mut impl Observer,
    ) -> Result<(), Trap> {
        let code = program.instructions();
        let mut left = steps;
        let mut pc = self.pc;
        let stopped = loop {
            let Some(slot) = code.get(pc as usize) else {
                break if pc as usize == code.len() { Ok(()) } else { Err(Cause::BadTarget) };
            };
            if left == 0 {
                break Err(Cause::OutOfSteps);
            }
            let Some(instruction) = slot else { break Err(Cause::BadInstruction) };
            self.pc = pc;
            observer.before(self);
            left -= 1;
            let (a, b, c) =
                (usize::from(instruction.a), usize::from(instruction.b), usize::from(instruction.c));
            let immediate = instruction.immediate;
            let mut next = pc + 1;
            // Register numbers were checked when decoding; the masks tell the compiler so.
            macro_rules! x {
                ($register:expr) => {
                    self.x[$register & 31]
                };
            }
            macro_rules! v {
                ($register:expr) => {
                    self.b[$register & 31]
                };
            }
            macro_rules! address {
                () => {{
                    let base = if b < 32 { x!(b) } else { self.starts.0[b - 32] };
                    base.wrapping_add_signed(i64::from(immediate))
                }};
            }
            macro_rules! attempt {
                ($result:expr) => {
                    match $result {
                        Ok(value) => value,
                        Err(cause) => break Err(cause),
                    }
                };
            }
            match instruction.opcode {
                Opcode::Add => x!(a) = x!(b).wrapping_add(x!(c)),
                Opcode::Sub => x!(a) = x!(b).wrapping_sub(x!(c)),
                Opcode::MulLo => x!(a) = x!(b).wrapping_mul(x!(c)),
                Opcode::MulHu => x!(a) = ((u128::from(x!(b)) * u128::from(x!(c))) >> 64) as u64,
                Opcode::DivU => x!(a) = x!(b).checked_div(x!(c)).unwrap_or(u64::MAX),
                Opcode::And => x!(a) = x!(b) & x!(c),
                Opcode::Or => x!(a) = x!(b) | x!(c),
                Opcode::Xor => x!(a) = x!(b) ^ x!(c),
                Opcode::Not => x!(a) = !x!(b),
                Opcode::Shl => x!(a) = x!(b) << (immediate & 63),
                Opcode::Shr => x!(a) = x!(b) >> (immediate & 63),
                Opcode::Sar => x!(a) = ((x!(b) as i64) >> (immediate & 63)) as u64,
                Opcode::ShlV => x!(a) = x!(b) << (x!(c) & 63),
                Opcode::ShrV => x!(a) = x!(b) >> (x!(c) & 63),
                Opcode::Clz => x!(a) = u64::from(x!(b).leading_zeros()),
                Opcode::LoadImmediate => x!(a) = i64::from(immediate) as u64,
                Opcode::LoadUpper => x!(a) = x!(a) & 0xFFFF_FFFF | u64::from(immediate as u32) << 32,
                Opcode::AddImmediate => x!(a) = x!(b).wrapping_add_signed(i64::from(immediate)),
                Opcode::Load => x!(a) = attempt!(memory.load(address!())),
                Opcode::Store => attempt!(memory.store(address!(), x!(a))),
                Opcode::VectorLoad => v!(a) = attempt!(memory.load_vector(address!())),
                Opcode::VectorStore => attempt!(memory.store_vector(address!(), v!(a))),
                Opcode::VectorAnd => v!(a) = v!(b) & v!(c),
                Opcode::VectorOr => v!(a) = v!(b) | v!(c),
                Opcode::VectorXor => v!(a) = v!(b) ^ v!(c),
                Opcode::VectorNot => v!(a) = !v!(b),
                Opcode::VectorShl => v!(a) = shifted_up(v!(b), immediate as u32),
                Opcode::VectorShr => v!(a) = shifted_down(v!(b), immediate as u32),
                Opcode::VectorRol => v!(a) = rotated_up(v!(b), immediate as u32),
                Opcode::VectorRor => v!(a) = rotated_up(v!(b), (256 - immediate as u32) % 256),
                Opcode::VectorBlend => v!(a) = v!(b).select(v!(c), v!(immediate as usize)),
                Opcode::VectorPopcount => x!(a) = u64::from(v!(b).count_ones()),
                Opcode::VectorParity => x!(a) = u64::from(v!(b).count_ones() & 1),
                Opcode::BranchEqual => next = if x!(a) == x!(b) { immediate as u32 } else { next },
                Opcode::BranchNotEqual => next = if x!(a) != x!(b) { immediate as u32 } else { next },
                Opcode::BranchLess => {
                    next = if (x!(a) as i64) < x!(b) as i64 { immediate as u32 } else { next }
                }
                Opcode::BranchNotLess => {
                    next = if (x!(a) as i64) < x!(b) as i64 { next } else { immediate as u32 }
                }
                Opcode::Jump => next = immediate as u32,
                Opcode::JumpAndLink => {
                    x!(a) = u64::from(next);
                    next = immediate as u32;
                }
                Opcode::Return => next = u32::try_from(x!(a)).unwrap_or(u32::MAX),
                Opcode::PredicateEqual => self.p[a & 15] = x!(b) == x!(c),
                Opcode::PredicateLess => self.p[a & 15] = (x!(b) as i64) < x!(c) as i64,
                Opcode::PredicateBelow => self.p[a & 15] = x!(b) < x!(c),
                Opcode::Select => x!(a) = if self.p[immediate as usize & 15] { x!(b) } else { x!(c) },
                Opcode::Random => {
                    self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
                    x!(a) = prng::mix(self.seed);
                }
                Opcode::Status => {
                    let bits = self.p.iter().enumerate();
                    x!(a) = bits.fold(0, |word, (place, set)| word | u64::from(*set) << place);
                }
                Opcode::Coprocessor => x!(c) = attempt!(coprocessor.call(instruction.a, x!(b), memory)),
            }
            self.x[0] = 0;
            pc = next;
        };
        self.pc = pc;
        self.executed = self.executed.wrapping_add(steps - left);
        stopped.map_err(|cause| Trap { pc, cause })
    }
}

/// Moves every lane up by `amount` places; zeros come in.
fn shifted_up(value: LaneWord, amount: u32) -> LaneWord {
    let (words, bits) = (amount as usize / 64, amount % 64);
    LaneWord(core::array::from_fn(|index| {
        let word = |distance: usize| index.checked_sub(distance).map_or(0, |source| value.0[source]);
        let low = if bits == 0 { 0 } else { word(words + 1) >> (64 - bits) };
        word(words) << bits | low
    }))
}

/// Moves every lane down by `amount` places; zeros come in.
fn shifted_down(value: LaneWord, amount: u32) -> LaneWord {
    let (words, bits) = (amount as usize / 64, amount % 64);
    LaneWord(core::array::from_fn(|index| {
        let word = |distance: usize| value.0.get(index + distance).copied().unwrap_or(0);
        let high = if bits == 0 { 0 } else { word(words + 1) << (64 - bits) };
        word(words) >> bits | high
    }))
}

fn rotated_up(value: LaneWord, amount: u32) -> LaneWord {
    if amount == 0 { value } else { shifted_up(value, amount) | shifted_down(value, 256 - amount) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::Instruction;
    use bem_base::prng::Prng;

    fn run(instructions: &[Instruction], steps: u64) -> (Core, Result<(), Trap>) {
        let program = Program::from_instructions(instructions);
        let (mut shared, mut state) = (vec![0; 128], vec![0; 64]);
        let mut core = Core::new(&program, 1, SegmentStarts::default());
        let result =
            core.run(&program, &mut Memory::open(&mut shared, &mut state), &mut NoCoprocessor, steps);
        (core, result)
    }

    fn instruction(opcode: Opcode, a: u8, b: u8, c: u8, immediate: i32) -> Instruction {
        let instruction = Instruction { opcode, a, b, c, immediate };
        assert!(instruction.is_valid(), "{instruction:?}");
        instruction
    }

    #[test]
    fn register_zero_stays_zero() {
        let (core, result) = run(&[instruction(Opcode::LoadImmediate, 0, 0, 0, 7)], 10);
        assert_eq!((core.x[0], result), (0, Ok(())));
    }

    #[test]
    fn the_edges_of_arithmetic_are_defined() {
        let (core, result) = run(
            &[
                instruction(Opcode::LoadImmediate, 1, 0, 0, -1),
                instruction(Opcode::DivU, 2, 1, 0, 0),
                instruction(Opcode::Clz, 3, 0, 0, 0),
                instruction(Opcode::MulHu, 4, 1, 1, 0),
                instruction(Opcode::Sar, 5, 1, 0, 63),
                instruction(Opcode::LoadImmediate, 6, 0, 0, 64),
                instruction(Opcode::ShlV, 7, 1, 6, 0),
                instruction(Opcode::LoadUpper, 8, 0, 0, 5),
            ],
            100,
        );
        assert_eq!(result, Ok(()));
        assert_eq!(core.x[2..9], [u64::MAX, 64, u64::MAX - 1, u64::MAX, 64, u64::MAX, 5 << 32]);
    }

    #[test]
    fn every_trap_names_its_place_and_cause() {
        let trap = |instructions: &[Instruction], steps| run(instructions, steps).1.unwrap_err();
        let nothing = instruction(Opcode::Add, 0, 0, 0, 0);
        let jump = |target| instruction(Opcode::Jump, 0, 0, 0, target);
        assert_eq!(trap(&[jump(0)], 5), Trap { pc: 0, cause: Cause::OutOfSteps });
        assert_eq!(trap(&[nothing, jump(9)], 5), Trap { pc: 9, cause: Cause::BadTarget });
        let crooked = instruction(Opcode::Load, 1, 0, 0, 4);
        assert_eq!(trap(&[nothing, crooked], 5), Trap { pc: 1, cause: Cause::Misaligned });
        let far = instruction(Opcode::Store, 1, 0, 0, 128 * 8);
        assert_eq!(trap(&[far], 5), Trap { pc: 0, cause: Cause::OutOfSegment });
        let call = instruction(Opcode::Coprocessor, 6, 0, 0, 0);
        assert_eq!(trap(&[call], 5), Trap { pc: 0, cause: Cause::NoCoprocessor });
    }

    #[test]
    fn vector_shifts_agree_with_lane_by_lane_moves() {
        let mut prng = Prng::stream(5, "shift");
        for amount in 0..256u32 {
            let value = LaneWord(core::array::from_fn(|_| prng.next_u64()));
            for lane in 0..256usize {
                let moved = lane as i64 - i64::from(amount);
                let up = 0 <= moved && value.get(moved.max(0) as usize);
                let down = lane + (amount as usize) < 256 && value.get((lane + amount as usize) % 256);
                assert_eq!(shifted_up(value, amount).get(lane), up);
                assert_eq!(shifted_down(value, amount).get(lane), down);
                let around = value.get((lane + 256 - amount as usize) % 256);
                assert_eq!(rotated_up(value, amount).get(lane), around);
            }
        }
    }

    #[test]
    fn random_bytes_never_panic() {
        run_random_programs(20_000);
    }

    /// Half a minute; `cargo test --release -p bem-isa -- --ignored ten_million`.
    #[test]
    #[ignore = "long: the battery's share of the test above"]
    fn ten_million_random_programs_never_panic() {
        run_random_programs(10_000_000);
    }

    fn run_random_programs(count: u32) {
        let mut prng = Prng::stream(6, "fuzz");
        for _ in 0..count {
            let words = (0..16)
                .map(|_| {
                    let mut bytes = prng.next_u64().to_le_bytes();
                    // Half of the words get a real opcode and small fields, so that they reach the interpreter.
                    if bytes[7] & 1 == 0 {
                        bytes[0] = Opcode::ALL[prng.below(Opcode::ALL.len() as u64) as usize] as u8;
                        bytes[1..4].iter_mut().for_each(|field| *field %= 16);
                        bytes[4] %= 32;
                        bytes[5..].fill(0);
                    }
                    bytes
                })
                .collect();
            let program = Program::new(words, Vec::new()).unwrap();
            let (mut shared, mut state) = (vec![0; 64], vec![0; 16]);
            let mut core = Core::new(&program, 1, SegmentStarts::default());
            let mut memory = Memory::open(&mut shared, &mut state);
            let _ = core.run(&program, &mut memory, &mut NoCoprocessor, 200);
            assert_eq!(core.x[0], 0);
        }
    }
}
