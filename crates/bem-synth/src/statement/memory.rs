//! Memory structures as data: what each keeps and shows.

use super::formula::Table;
use bem_base::environment::Field;

/// A bit of the observation and the value that it must have.
pub type Literal = (u16, bool);

/// A memory structure. Conditions are conjunctions of literals of the observation; without any they always hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// A bit that flips whenever the condition holds; shown before and after.
    Toggle(Vec<Literal>),
    /// A bit that one condition sets and another clears; setting wins. Shown is the bit as it was.
    Latch {
        /// When it becomes one.
        set: Vec<Literal>,
        /// When it becomes zero.
        clear: Option<Vec<Literal>>,
    },
    /// A number that goes up on one condition, else down on another, and stays at its ends. Shown is whether it is zero,
    /// and its binary digits where that is asked for.
    Counter {
        /// When it goes up.
        up: Vec<Literal>,
        /// When it goes down.
        down: Option<Vec<Literal>>,
        /// Its binary digits.
        bits: u8,
        /// Whether the digits are shown.
        digits: bool,
    },
    /// The observations of the last steps, the latest first; all are shown.
    Delay(u8),
    /// The values of a field in the last steps, the latest first; the oldest is shown.
    Echo(Field, u8),
    /// A stack of values, each behind a mark that it is one; shown is the top cell.
    Stack {
        /// When a value is put on top; where both conditions hold, this one counts.
        push: Vec<Literal>,
        /// When the top is taken away.
        pop: Vec<Literal>,
        /// What is put on top; without a field the mark alone.
        field: Option<Field>,
        /// How many values fit; what is pushed beyond falls out.
        cells: u8,
    },
    /// A queue of values, each behind a mark that it is one; shown is the first cell.
    Queue {
        /// When a value is put into the first free cell, after the other condition took effect.
        push: Vec<Literal>,
        /// When the first value leaves.
        pop: Vec<Literal>,
        /// What is put in.
        field: Field,
        /// How many values fit; what comes beyond is lost.
        cells: u8,
    },
    /// Cells that a field names; shown is the cell that is named now.
    Registers {
        /// When the named cell is written.
        write: Vec<Literal>,
        /// The field that names a cell.
        address: Field,
        /// What is written.
        data: Field,
        /// The cell that is written is the one that was named a step before, which is kept behind the cells.
        delayed: bool,
    },
    /// Cells that are filled in order, and a counter. Kept are the marks of all cells, then the cells bit by bit, then
    /// the counter; shown are the counter and the cells bit by bit.
    Tape {
        /// When the next cell is written.
        write: Vec<Literal>,
        /// When the counter goes up; it begins anew after the last number.
        read: Vec<Literal>,
        /// What is written.
        field: Field,
        /// The binary logarithm of the number of cells.
        cell_bits: u8,
    },
    /// A structure and a flag that stays up once the table raises it, shown and kept behind it. Keys are the
    /// observation and above it what the structure shows.
    Sticky {
        /// The structure.
        inner: Box<Memory>,
        /// Whether a pair raises the flag.
        raises: Table,
    },
    /// Two structures side by side.
    Both(Box<Memory>, Box<Memory>),
    /// What the structure shows of its next memory.
    After(Box<Memory>),
}

impl Memory {
    /// Bits that it keeps over observations of this width.
    pub fn bits(&self, observation_bits: usize) -> usize {
        let width = |field: &Field| usize::from(field.width);
        match self {
            Memory::Toggle(_) | Memory::Latch { .. } => 1,
            Memory::Counter { bits, .. } => usize::from(*bits),
            Memory::Delay(length) => usize::from(*length) * observation_bits,
            Memory::Echo(field, length) => usize::from(*length) * width(field),
            Memory::Stack { field, cells, .. } => usize::from(*cells) * (1 + field.as_ref().map_or(0, width)),
            Memory::Queue { field, cells, .. } => usize::from(*cells) * (1 + width(field)),
            Memory::Registers { address, data, delayed, .. } => {
                (width(data) << address.width) + if *delayed { width(address) } else { 0 }
            }
            Memory::Tape { field, cell_bits, .. } => {
                ((1 + width(field)) << cell_bits) + usize::from(*cell_bits)
            }
            Memory::Sticky { inner, .. } => inner.bits(observation_bits) + 1,
            Memory::Both(first, second) => first.bits(observation_bits) + second.bits(observation_bits),
            Memory::After(inner) => inner.bits(observation_bits),
        }
    }
}
