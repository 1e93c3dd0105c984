//! Do a program's invariants hold? Each node's invariant must imply the next one's along every way out.
//!
//! For a node with invariant P and a way out to a node with invariant Q, the formula says: P holds on entry, the
//! instructions run, this way is taken, and Q fails. If it has no model, P implies the weakest precondition of Q
//! along that edge (decision D-22), with a certificate. A model is run through the interpreter: only if it really
//! breaks Q (or traps) is the invariant called wrong. Loops need an invariant at their head; memory is modelled
//! up to a bound. Clauses: SCC-6, ISA-6.

pub mod condition;
pub mod symbolic;
pub mod word;

use crate::instruction::{Format, Instruction, Opcode};
use crate::interpreter::{Core, NoCoprocessor, SegmentStarts};
use crate::memory::Memory;
use crate::program::{Node, Program};
use crate::trap::Cause;
use bem_circuit::netlist::Op;
use bem_prover::encode::{Wire, require_any};
use bem_prover::{Budget, Certificate, Cnf, Outcome, solve};
use condition::{Condition, ConditionError};
use symbolic::SymbolicState;
use word::gate;

/// Words of SHARED in the bounded model of memory, at least.
pub const MEMORY_WORDS_DEFAULT: usize = 8;
/// Why a call or a return is not followed.
const CALLED: &str = "a call or a return has no fixed way out; put what is called in its place, as a .macro";

/// Why a program cannot be checked at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HoareError {
    /// Nothing to check.
    #[error("the program has no nodes: mark them with .node NAME \"invariant\"")]
    NoNodes,
    /// An invariant that cannot be read.
    #[error("the invariant of node {node}: {error}")]
    Condition {
        /// Whose invariant.
        node: String,
        /// What is wrong with it.
        error: ConditionError,
    },
    /// A jump into the middle of a node, or to an instruction that belongs to none.
    #[error("instruction {from} leads to instruction {target}, where no node starts")]
    NoNodeAt {
        /// The instruction that leads there.
        from: u32,
        /// Where it leads.
        target: u32,
    },
    /// An instruction outside the checker's reach.
    #[error("instruction {position} cannot be checked: {reason}")]
    Unsupported {
        /// Where it is.
        position: u32,
        /// Why.
        reason: &'static str,
    },
}

/// A state that breaks an invariant, reproduced by the interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// Registers on entry of the node.
    pub before: Core,
    /// The modelled memory on entry.
    pub memory: Vec<u64>,
    /// Registers after the way out, or where it trapped.
    pub after: Core,
}

/// What became of one way out of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds, with an accepted certificate of this many proof bytes.
    Holds(Certificate),
    /// It does not: here is a state.
    Refuted(Box<Counterexample>),
    /// The node's own invariant can never hold, so that everything would follow from it.
    Vacuous,
    /// Neither was shown.
    Undecided(String),
}

/// One way out of a node, or one access that must not trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The node that is left.
    pub from: String,
    /// The node that is entered, `end`, or the access.
    pub to: String,
    /// What became of it.
    pub verdict: Verdict,
    /// The clauses that have no model where it holds.
    pub formula: Cnf,
}

/// Options of a check.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Words of SHARED that exist; any other address traps.
    pub memory_words: usize,
    /// Conflicts the solver may spend on each way out.
    pub budget: Budget,
}

impl Default for Options {
    fn default() -> Options {
        Options { memory_words: MEMORY_WORDS_DEFAULT, budget: Budget::DEFAULT }
    }
}

/// As many words of memory as the offsets of a program's own accesses reach, from a base of zero.
pub fn memory_words(program: &Program) -> usize {
    let reached = |instruction: &Instruction| match instruction.opcode {
        Opcode::Load | Opcode::Store => usize::try_from(instruction.immediate).unwrap_or(0) / 8 + 1,
        Opcode::VectorLoad | Opcode::VectorStore => {
            usize::try_from(instruction.immediate).unwrap_or(0) / 8 + 4
        }
        _ => 0,
    };
    let words = program.instructions().iter().flatten().map(reached).max().unwrap_or(0);
    words.max(MEMORY_WORDS_DEFAULT)
}

/// Checks every node of a program.
#[doc(alias = "HOARE_CHECK")]
pub fn check(program: &Program, options: Options) -> Result<Vec<Checked>, HoareError> {
    if program.nodes().is_empty() {
        return Err(HoareError::NoNodes);
    }
    // Said before anything else: no node and no invariant helps against a call.
    let is_call =
        |instruction: &Instruction| matches!(instruction.opcode, Opcode::Return | Opcode::JumpAndLink);
    if let Some(position) = program.instructions().iter().position(|one| one.as_ref().is_some_and(is_call)) {
        return Err(HoareError::Unsupported { position: position as u32, reason: CALLED });
    }
    let mut checked = Vec::new();
    for node in program.nodes() {
        NodeCheck::new(program, node, options)?.walk(&mut checked)?;
    }
    Ok(checked)
}

/// Whether every way out was proven.
pub fn all_hold(checked: &[Checked]) -> bool {
    checked.iter().all(|edge| matches!(edge.verdict, Verdict::Holds(_)))
}

fn condition_of(node: &Node) -> Result<Condition, HoareError> {
    Condition::parse(&node.invariant)
        .map_err(|error| HoareError::Condition { node: node.name.clone(), error })
}

/// The symbolic execution of one node.
struct NodeCheck<'a> {
    program: &'a Program,
    node: &'a Node,
    options: Options,
    starts: Core,
    entry: SymbolicState,
    state: SymbolicState,
    cnf: Cnf,
    /// True while control has left by no earlier way out.
    path: Wire,
    vacuous: bool,
}

impl<'a> NodeCheck<'a> {
    fn new(program: &'a Program, node: &'a Node, options: Options) -> Result<NodeCheck<'a>, HoareError> {
        let mut cnf = Cnf::new(0);
        let mut entry = SymbolicState::unknown(&mut cnf, options.memory_words);
        let holds = condition_of(node)?.encode(&mut cnf, &mut entry);
        require_any(&mut cnf, &[holds]);
        let vacuous = matches!(solve(&cnf, &[], options.budget), Outcome::Unsatisfiable { .. });
        let starts = Core::new(program, 1, SegmentStarts::default());
        let state = entry.clone();
        Ok(NodeCheck {
            program,
            node,
            options,
            starts,
            entry,
            state,
            cnf,
            path: Wire::Constant(true),
            vacuous,
        })
    }

    fn walk(mut self, checked: &mut Vec<Checked>) -> Result<(), HoareError> {
        for position in self.node.start..self.node.end {
            let Some(instruction) = self.program.instructions()[position as usize] else {
                return Err(HoareError::Unsupported { position, reason: "the bytes are no instruction" });
            };
            match instruction.opcode.format() {
                Format::Branch => {
                    let taken = self.state.branch(&mut self.cnf, &instruction);
                    let way = gate(&mut self.cnf, Op::And, self.path, taken);
                    checked.push(self.edge(position, instruction.immediate as u32, way)?);
                    self.path = gate(&mut self.cnf, Op::AndNot, self.path, taken);
                }
                Format::Jump => {
                    checked.push(self.edge(position, instruction.immediate as u32, self.path)?);
                    return Ok(());
                }
                _ if matches!(instruction.opcode, Opcode::Return | Opcode::JumpAndLink) => {
                    return Err(HoareError::Unsupported { position, reason: CALLED });
                }
                _ => {
                    let fault = self.state.execute(&mut self.cnf, &instruction, &self.starts);
                    if fault != Wire::Constant(false) {
                        let way = gate(&mut self.cnf, Op::And, self.path, fault);
                        let to = format!("no trap at instruction {position}");
                        let (verdict, formula) = self.decide(way, None, position);
                        checked.push(Checked { from: self.node.name.clone(), to, verdict, formula });
                        self.path = gate(&mut self.cnf, Op::AndNot, self.path, fault);
                    }
                }
            }
        }
        checked.push(self.edge(self.node.end - 1, self.node.end, self.path)?);
        Ok(())
    }

    fn edge(&mut self, from: u32, target: u32, way: Wire) -> Result<Checked, HoareError> {
        let (to, condition) = match self.program.node_at(target) {
            Some(node) => (node.name.clone(), Some(condition_of(node)?)),
            None if target as usize == self.program.words().len() => ("end".to_string(), None),
            None => return Err(HoareError::NoNodeAt { from, target }),
        };
        let mut state = self.state.clone();
        let clauses = self.cnf.clone();
        let holds = match &condition {
            Some(condition) => condition.encode(&mut self.cnf, &mut state),
            None => Wire::Constant(true),
        };
        let broken = gate(&mut self.cnf, Op::AndNot, way, holds);
        let (verdict, formula) = self.decide(broken, condition.as_ref(), target);
        // The condition's own gates are not needed by what follows.
        self.cnf = clauses;
        Ok(Checked { from: self.node.name.clone(), to, verdict, formula })
    }

    /// Looks for a state in which `broken` is true; what was found, and the clauses.
    fn decide(&self, broken: Wire, condition: Option<&Condition>, target: u32) -> (Verdict, Cnf) {
        let mut formula = self.cnf.clone();
        require_any(&mut formula, &[broken]);
        if self.vacuous {
            return (Verdict::Vacuous, formula);
        }
        let verdict = match solve(&formula, &[], self.options.budget) {
            Outcome::Unsatisfiable { certificate, .. } => Verdict::Holds(certificate),
            Outcome::Undecided(why) => Verdict::Undecided(format!("{why:?}")),
            Outcome::Satisfiable { model } => self.reproduce(&model, condition, target),
        };
        (verdict, formula)
    }

    /// Runs the interpreter from the model's state: only what really happens counts.
    fn reproduce(&self, model: &[bool], condition: Option<&Condition>, target: u32) -> Verdict {
        let mut core = self.starts.clone();
        let memory = self.entry.concrete(model, &mut core);
        core.pc = self.node.start;
        let before = core.clone();
        let mut words = memory.clone();
        let mut trapped = false;
        for _ in self.node.start..self.node.end {
            let mut window = Memory::open(&mut words, &mut []);
            match core.run(self.program, &mut window, &mut NoCoprocessor, 1) {
                Err(trap) if trap.cause != Cause::OutOfSteps => trapped = true,
                _ => {}
            }
            if trapped || core.pc == target && condition.is_some() {
                break;
            }
        }
        let counterexample = Counterexample { before, memory, after: core.clone() };
        let confirmed = match condition {
            None => trapped,
            Some(condition) => {
                let mut state = SymbolicState::known(&core, &words);
                let holds = condition.encode(&mut Cnf::new(0), &mut state);
                !trapped && core.pc == target && holds == Wire::Constant(false)
            }
        };
        match confirmed {
            true => Verdict::Refuted(Box::new(counterexample)),
            false => Verdict::Undecided(format!(
                "a counterexample was found but does not happen: it hangs on {}",
                self.state.abstracted.first().unwrap_or(&"the bounded model")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::assemble;
    use bem_base::prng::Prng;

    fn verdicts(text: &str) -> Vec<Checked> {
        check(&assemble(text).unwrap(), Options::default()).unwrap()
    }

    /// A loop that counts x1 down from at most 10 and x2 up.
    fn loop_with(invariant: &str) -> String {
        format!(
            ".node start\nli x1, 10\nli x2, 0\n.node loop \"{invariant}\"\nagain: beq x1, x0, done\naddi x1, x1, -1\n\
             addi x2, x2, 1\njmp again\n.node finish \"x2 == 10\"\ndone: add x3, x2, x0"
        )
    }

    #[test]
    fn a_right_invariant_is_proven_along_every_edge() {
        let checked = verdicts(&loop_with("x1 + x2 == 10"));
        assert!(all_hold(&checked), "{checked:?}");
        assert_eq!(checked.len(), 4);
    }

    #[test]
    fn a_wrong_invariant_gives_a_state_that_the_interpreter_reproduces() {
        let checked = verdicts(&loop_with("x1 <=u 10 && x2 <=u 10"));
        let refuted: Vec<&Checked> =
            checked.iter().filter(|edge| matches!(edge.verdict, Verdict::Refuted(_))).collect();
        assert!(!refuted.is_empty());
        for edge in refuted {
            let Verdict::Refuted(example) = &edge.verdict else { unreachable!() };
            assert!(example.before.x[1] <= 10 && example.before.x[2] <= 10);
            let broken = match edge.to.as_str() {
                "finish" => example.after.x[2] != 10,
                _ => 10 < example.after.x[1] || 10 < example.after.x[2],
            };
            assert!(broken, "{edge:?}");
        }
    }

    #[test]
    fn an_impossible_invariant_is_vacuous_and_not_proven() {
        let checked = verdicts(".node n \"x1 == 1 && x1 == 2\"\nli x1, 5");
        assert!(!all_hold(&checked));
        assert!(checked.iter().all(|edge| edge.verdict == Verdict::Vacuous));
    }

    #[test]
    fn memory_accesses_are_proven_not_to_trap_or_refuted() {
        let good = verdicts(
            ".node n \"x1 <u 8\"\nshl x2, x1, 3\nld x3, [x2]\n.node m \"x2 <u 64 && x2 & 7 == 0\"\nst x3, [x2]",
        );
        assert!(all_hold(&good), "{good:?}");
        let bad = verdicts(".node n \"x1 <=u 8\"\nshl x2, x1, 3\nld x3, [x2]");
        let Verdict::Refuted(example) = &bad[0].verdict else { panic!("{bad:?}") };
        assert_eq!(example.before.x[1], 8);
        let stored = verdicts(
            ".node n\nli x1, 7\nst x1, [x0 + 16]\nld x2, [x0 + 16]\n.node m \"x2 == 7\"\nadd x0, x0, x0",
        );
        assert!(all_hold(&stored), "{stored:?}");
    }

    #[test]
    fn what_hangs_on_an_abstraction_is_undecided_not_refuted() {
        let checked = verdicts(
            ".node n\nrand x1\nmulhu x2, x1, x1\n.node m \"x2 <=u 0xfffffffffffffffe\"\nadd x0, x0, x0",
        );
        assert!(checked.iter().any(|edge| matches!(edge.verdict, Verdict::Undecided(_))), "{checked:?}");
        assert!(!checked.iter().any(|edge| matches!(edge.verdict, Verdict::Refuted(_))), "{checked:?}");
    }

    #[test]
    fn jumps_into_the_middle_and_calls_are_named() {
        let error = |text: &str| check(&assemble(text).unwrap(), Options::default()).unwrap_err().to_string();
        assert_eq!(error("li x1, 1"), "the program has no nodes: mark them with .node NAME \"invariant\"");
        assert_eq!(
            error(".node n\nli x1, 1\na: jmp a"),
            "instruction 1 leads to instruction 1, where no node starts"
        );
        // A call is said before a missing node, which would not help.
        for called in [".node n\nret x31", ".node n\na: jmp a\nret x31"] {
            let said = error(called);
            assert!(said.contains("cannot be checked: a call or a return has no fixed way out"), "{said}");
            assert!(said.ends_with("as a .macro"), "{said}");
        }
        assert!(error(".node n \"x1 =\"\nli x1, 1").starts_with("the invariant of node n: at letter"));
    }

    #[test]
    fn memory_reaches_as_far_as_the_offsets_of_a_program() {
        let words = |text: &str| memory_words(&assemble(text).unwrap());
        assert_eq!(words(".node n\nld x1, [x0 + 8]"), MEMORY_WORDS_DEFAULT);
        assert_eq!(words(".node n\nst x1, [x0 + 312]"), 40);
        assert_eq!(words(".node n\nld x1, [x2 - 8]\nst x1, [x2 + 72]"), 10);
    }

    /// The bit-blaster and the interpreter are two definitions of the instruction set; here they meet.
    #[test]
    fn symbolic_execution_agrees_with_the_interpreter_on_random_instructions() {
        let mut prng = Prng::stream(11, "blast");
        let mut compared = 0;
        while compared < 3_000 {
            let opcode = Opcode::ALL[prng.below(Opcode::ALL.len() as u64) as usize];
            let mut small = |bound| prng.below(bound) as u8;
            let (a, b, c) = (small(16), small(16), small(16));
            let immediate = [0, 1, -1, 8, 32, 63, i32::MIN][small(7) as usize];
            let candidates = [
                Instruction { opcode, a, b, c, immediate },
                Instruction { opcode, a, b, c: 0, immediate },
                Instruction { opcode, a, b, c, immediate: 0 },
                Instruction { opcode, a, b: 0, c: 0, immediate },
                Instruction { opcode, a, b, c: 0, immediate: 0 },
            ];
            let Some(instruction) = candidates.into_iter().find(Instruction::is_valid) else { continue };
            let jumps = matches!(opcode.format(), Format::Branch | Format::Jump | Format::JumpAndLink);
            if jumps || matches!(opcode, Opcode::Return | Opcode::Random | Opcode::Coprocessor) {
                continue;
            }
            let program = Program::from_instructions(&[instruction]);
            let mut core = Core::new(&program, 1, SegmentStarts::default());
            for register in 1..32 {
                core.x[register] = if prng.bit() { 8 * prng.below(10) } else { prng.next_u64() };
                core.b[register].0 = core::array::from_fn(|_| prng.next_u64());
                core.p[register % 16] = prng.bit();
            }
            let mut memory: Vec<u64> = (0..8).map(|_| prng.next_u64()).collect();
            let mut state = SymbolicState::known(&core, &memory);
            let fault = state.execute(&mut Cnf::new(0), &instruction, &core);
            let mut window = Memory::open(&mut memory, &mut []);
            let result = core.run(&program, &mut window, &mut NoCoprocessor, 1);
            assert_eq!(fault, Wire::Constant(result.is_err()), "{instruction:?}");
            if result.is_ok() && state.abstracted.is_empty() {
                let want = SymbolicState::known(&core, &memory);
                assert_eq!(
                    (state.x, state.b, state.p, state.memory),
                    (want.x, want.b, want.p, want.memory),
                    "{instruction:?}"
                );
            }
            compared += 1;
        }
    }
}
