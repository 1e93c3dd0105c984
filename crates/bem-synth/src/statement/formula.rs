//! What may be said about a row in one bit, and the words and facts that such formulas speak of.

use super::Index;
use bem_base::environment::Field;
use std::collections::BTreeMap;

/// Keys and values. A key that is not listed has the value of a listed one: from the highest bit of the key down, a bit
/// counts only where the rows that are left with it set and those with it clear, read without it, contradict each other
/// in the bit of the value that is asked for. Without any rows the value is zero.
pub type Table = BTreeMap<u64, u64>;

/// Whether something holds, as a function of the bits of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// An odd number of these bits are set, or an even one where it is inverted.
    Sum {
        /// The bits, in rising order.
        bits: Vec<Index>,
        /// Whether an even number is asked for.
        inverted: bool,
    },
    /// The weights of all set bits together exceed the bound.
    Threshold {
        /// Bits and their weights.
        weights: Vec<(Index, i32)>,
        /// What must be exceeded.
        bound: i64,
    },
    /// The entry of a table at the number of atoms that hold.
    Count {
        /// What is counted.
        atoms: Vec<Atom>,
        /// One entry for every number from zero to all.
        table: Vec<bool>,
    },
    /// A table over some bits; the lowest bit of its values is the answer.
    Rows {
        /// The bits of the key, the lowest first.
        bits: Vec<Index>,
        /// The rows.
        rows: Table,
    },
    /// The label of the first rule that holds, else another one.
    Rules {
        /// The rules in order.
        rules: Vec<Rule>,
        /// The label where no rule holds.
        otherwise: bool,
    },
    /// A tree over bits of the row; leaves are zero or one.
    Tree(Vec<Branch>),
    /// The answer of the first pair that applies, else a constant.
    Pairs {
        /// The pairs in order.
        pairs: Vec<Pair>,
        /// The answer where no pair applies.
        otherwise: bool,
    },
    /// The sum over GF(2) of products of bits; the product of none is one.
    Polynomial(Vec<Vec<Index>>),
    /// A machine of two states walks over places of the row.
    Scan {
        /// The bits that are read at each place, all places alike.
        places: Vec<Vec<Index>>,
        /// The next state at bit `2 * symbol + state`.
        machine: u32,
        /// The answer for keys `2 * symbol + state`.
        answers: Table,
        /// Where the answer is read.
        read: Read,
    },
    /// The formula at the place that a word names; past the last one nothing holds.
    Select {
        /// What chooses.
        selector: Word,
        /// One formula for every value.
        parts: Vec<Formula>,
    },
    /// A formula about another row, made of facts about this one.
    About {
        /// The bits of the other row.
        facts: Vec<Fact>,
        /// What is said about it.
        inner: Box<Formula>,
    },
}

impl Formula {
    /// What always holds, or never.
    pub fn constant(value: bool) -> Formula {
        Formula::Sum { bits: Vec::new(), inverted: value }
    }

    /// A bit, or its inverse.
    pub fn literal(bit: usize, inverted: bool) -> Formula {
        Formula::Sum { bits: vec![bit as Index], inverted }
    }

    /// A table over these bits.
    pub fn rows(bits: &[usize], table: &BTreeMap<u64, bool>) -> Formula {
        let rows = table.iter().map(|(key, value)| (*key, u64::from(*value))).collect();
        Formula::Rows { bits: bits.iter().map(|bit| *bit as Index).collect(), rows }
    }
}

/// One thing that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atom {
    /// A bit, or its inverse.
    Bit(Index, bool),
    /// Two bits joined.
    Pair(Join, Index, Index),
}

/// How two bits are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Join {
    /// They differ.
    Xor = 0,
    /// Both are set.
    And = 1,
}

/// A conjunction that a statement names, and the label it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Bits and the values they must have.
    pub literals: Vec<(Index, bool)>,
    /// The label.
    pub label: bool,
}

/// A place of a tree in preorder: a test is followed by the tree for a clear bit and the tree for a set one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// An answer.
    Leaf(u16),
    /// A bit that decides which way to go.
    Test(Index),
}

/// One pair of a list that is asked in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The bit whose value is the answer.
    pub first: Index,
    /// The bit that it is compared with.
    pub second: Index,
    /// It applies where the two differ; otherwise where they are equal.
    pub differ: bool,
    /// The answer is the first bit inverted.
    pub inverted: bool,
}

/// Where the answer of a scan is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// At this place.
    At(u16),
    /// At the place that a field names, counted from the first or from the last; where there is none nothing holds.
    Named {
        /// The field.
        field: Field,
        /// Whether places are counted from the last one.
        from_end: bool,
    },
}

/// A number that a row shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The number that a field spells, its lowest bit first.
    Plain(Field),
    /// How many bits of a field are set.
    Ones(Field),
    /// A number made of fields of one width.
    Made(Making, Vec<Field>),
}

/// How a number is made of others, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Making {
    /// All added up.
    Sum = 0,
    /// The first less the second; the last bit says that it is below zero.
    Difference = 1,
    /// The second less the first; the last bit says that it is below zero.
    Reverse = 2,
    /// How far two are apart.
    Distance = 3,
    /// The smallest.
    Smaller = 4,
    /// The largest.
    Larger = 5,
    /// Two multiplied.
    Product = 6,
}

impl Making {
    /// All of them, in order of their numbers.
    pub const ALL: [Making; 7] = [
        Making::Sum,
        Making::Difference,
        Making::Reverse,
        Making::Distance,
        Making::Smaller,
        Making::Larger,
        Making::Product,
    ];

    /// Whether just two fields are made one in this way.
    pub fn takes_two(self) -> bool {
        !matches!(self, Making::Sum | Making::Smaller | Making::Larger)
    }
}

/// How two fields of one width may be related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Relation {
    /// Some bit is set in both.
    Meets = 0,
    /// Some bit is set in the first only.
    Exceeds = 1,
    /// Some bit is set in the second only.
    Lacks = 2,
    /// The first is the smaller number.
    Below = 3,
    /// The first is the larger number.
    Above = 4,
}

impl Relation {
    /// All of them, in order of their numbers.
    pub const ALL: [Relation; 5] =
        [Relation::Meets, Relation::Exceeds, Relation::Lacks, Relation::Below, Relation::Above];
}

/// Something that a statement says of a row, which holds or not; a word stands for all its bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A bit is set.
    Bit(Index),
    /// A field has at least so many ones.
    Ones(Field, u16),
    /// A field has an odd number of ones.
    Odd(Field),
    /// The first field has fewer ones than the second.
    Fewer(Field, Field),
    /// Two fields are related so.
    Related(Relation, Field, Field),
    /// The first word is the smaller number.
    Below(Word, Word),
    /// The bits of a word, the lowest first.
    Bits(Word),
}

/// Bits of a number made of so many fields of this width.
pub fn made_bits(making: Making, count: usize, width: usize) -> usize {
    match making {
        Making::Sum => width + crate::function::choice_bits(count) as usize,
        Making::Difference | Making::Reverse => width + 1,
        Making::Product => 2 * width,
        Making::Distance | Making::Smaller | Making::Larger => width,
    }
}
