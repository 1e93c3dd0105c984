//! What a hypothesis says, as data and not as a circuit.
//!
//! Whoever builds a circuit hands back one of these besides: weights and a threshold, the rows of a table, rules in
//! order, the choices of a memory structure. A statement says what is done for *every* observation and *every* content of
//! memory, so that a circuit can be held against it. The condition of SYNTH does that with code of its own; nothing here
//! builds a circuit. [`interpret`] is the plain reading of a statement, one row at a time; [`codec`] its canonical bytes.
//! Must not know circuits, games, or how the hypothesis was found. Clauses: SCC-2, SCC-3; decision D-45.

mod codec;
mod formula;
pub mod interpret;
mod memory;
mod wiring;

pub use formula::{Atom, Branch, Fact, Formula, Join, Making, Pair, Read, Relation, Rule, Table, Word};
pub use memory::{Literal, Memory};
pub use wiring::{Wire, Wiring};

/// Bits of the row: the observation's, then what a memory structure shows.
pub type Index = u16;

/// What a policy does and keeps. Action codes past the last action mean action zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// What a memory structure shows beside the observation, and what is done then.
    Acts {
        /// The structure, if there is one.
        memory: Option<Memory>,
        /// The action.
        choice: Choice,
    },
    /// A state machine: the state and some bits of the observation say the action and the next state.
    Machine {
        /// Bits of the state, which are the memory.
        state_bits: u8,
        /// The bits of the observation that count.
        seen: Vec<Index>,
        /// Keys are the state, above it what is seen; values are the action's code, above it the next state.
        rows: Table,
    },
    /// A plan: a table over what is seen and what is carried along.
    Plan(Plan),
    /// Another statement about the world as a lens shows it.
    Through {
        /// For every bit seen through the lens: which bit it is, and whether it is inverted.
        bits: Vec<(Index, bool)>,
        /// The last action's code is seen behind them, and kept behind the memory of the other statement.
        echo: bool,
        /// What is done in the world that the lens shows.
        inner: Box<Statement>,
    },
    /// Gates one by one, of a circuit that came from elsewhere.
    Gates(Wiring),
}

/// A table over a clock, a recalled state or the last steps, and what is seen.
///
/// The memory holds, lowest first, the clock, the recalled state, and for every step back whether there was one, its
/// action's code and what was seen; a key is the memory and above it what is seen now. Carried along is the code as the
/// table says it, before codes past the last action become zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The bits of the observation that count.
    pub seen: Vec<Index>,
    /// Bits of the clock, which counts steps and begins anew after the last number.
    pub clock_bits: u8,
    /// Bits of the recalled state.
    pub recall_bits: u8,
    /// Steps back that are kept.
    pub history: u8,
    /// The action for every key.
    pub rows: Table,
    /// The next recalled state: keys are the state, above it the action's code, above it what is seen.
    pub recalls: Table,
}

/// The action as a function of the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One formula for every bit of the action's code, the lowest first.
    Bits(Vec<Formula>),
    /// The first action whose formula holds, else another one.
    FirstOf {
        /// Actions in the order in which they are asked.
        models: Vec<(u16, Formula)>,
        /// The action where no formula holds.
        otherwise: u16,
    },
    /// The first action for which the formula holds; the last one is not asked. The action's code follows the row.
    FirstThatPays {
        /// Over the row and behind it the action's code.
        model: Formula,
        /// Actions in the order in which they are asked.
        order: Vec<u16>,
    },
    /// The action of the highest number, the lowest of those that tie.
    Highest(Vec<Number>),
    /// A table over some bits of the row whose values are action codes.
    Rows {
        /// The bits of the key, the lowest first.
        bits: Vec<Index>,
        /// The rows.
        rows: Table,
    },
    /// A tree over bits of the row whose leaves are actions.
    Tree(Vec<Branch>),
}

/// A number that is larger for better actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Number {
    /// Its binary digits, the lowest first.
    Digits(Vec<Formula>),
    /// A constant and the weights of all literals that hold.
    Weighted {
        /// The constant.
        base: u64,
        /// A bit, the value with which it counts, and for how much.
        weights: Vec<(Index, bool, u64)>,
    },
}

/// The observation and the actions of the world that a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    /// Bits of an observation.
    pub observation_bits: usize,
    /// How many actions there are.
    pub actions: u16,
}

impl World {
    /// Bits of an action's code.
    pub fn code_bits(&self) -> usize {
        crate::policy::action_bits(self.actions)
    }

    /// The world as a lens shows it.
    #[must_use]
    pub fn through(&self, bits: usize, echo: bool) -> World {
        World { observation_bits: bits + if echo { self.code_bits() } else { 0 }, ..*self }
    }
}

impl Plan {
    /// Bits of one remembered step.
    pub fn step_bits(&self, world: &World) -> usize {
        1 + world.code_bits() + self.seen.len()
    }

    /// Bits of its memory.
    pub fn memory_bits(&self, world: &World) -> usize {
        usize::from(self.clock_bits)
            + usize::from(self.recall_bits)
            + usize::from(self.history) * self.step_bits(world)
    }
}

impl Statement {
    /// The statement without memory.
    pub fn of(choice: Choice) -> Statement {
        Statement::Acts { memory: None, choice }
    }

    /// The statement that one action is always taken.
    pub fn constant(action: u16) -> Statement {
        Statement::of(Choice::Tree(vec![Branch::Leaf(action)]))
    }

    /// Bits of memory that it speaks about.
    pub fn memory_bits(&self, world: &World) -> usize {
        match self {
            Statement::Acts { memory, .. } => {
                memory.as_ref().map_or(0, |memory| memory.bits(world.observation_bits))
            }
            Statement::Machine { state_bits, .. } => usize::from(*state_bits),
            Statement::Plan(plan) => plan.memory_bits(world),
            Statement::Gates(wiring) => usize::from(wiring.memory_bits),
            Statement::Through { bits, echo, inner } => {
                let kept = if *echo { world.code_bits() } else { 0 };
                inner.memory_bits(&world.through(bits.len(), *echo)) + kept
            }
        }
    }

    /// Its kind in a word, for reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Statement::Acts { memory, choice } => match (memory, choice) {
                (Some(_), _) => "memory structure",
                (None, Choice::Bits(_)) => "formulas",
                (None, Choice::FirstOf { .. }) => "reward models",
                (None, Choice::FirstThatPays { .. }) => "joint reward model",
                (None, Choice::Highest(_)) => "highest number",
                (None, Choice::Rows { .. }) => "rows",
                (None, Choice::Tree(_)) => "tree of actions",
            },
            Statement::Machine { .. } => "state machine",
            Statement::Plan(_) => "plan",
            Statement::Through { .. } => "lens",
            Statement::Gates(_) => "gates",
        }
    }
}
