//! The canonical bytes of statements: a kind, then what it needs.
//!
//! Reading is bounded: counts are held against the bytes that are left, sizes and depths against the bounds below, before
//! anything is built from them. Whether a statement fits a world is for its reader to say. The numbers of kinds are
//! stored and never change. Clauses: SCC-1, LOG-1.

use super::{
    Atom, Branch, Choice, Fact, Formula, Index, Join, Literal, Making, Memory, Number, Pair, Plan, Read,
    Relation, Rule, Statement, Table, Wiring, Word,
};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Field;
use bem_base::limits::STATE_BITS_MAX;

/// Formulas, structures and statements inside each other at most.
const DEPTH_MAX: u8 = 8;
/// Memory structures around what they are made of; a table of 64 bits is 64 bits side by side, two by two.
const MEMORY_DEPTH_MAX: u8 = 7;
/// Cells, digits and steps of a structure at most.
const SIZE_MAX: u8 = 64;
/// Bits of an address, and of the number of a tape's cells.
const ADDRESS_BITS_MAX: u16 = 8;
/// Bits that one place of a scan reads at most: a machine has one bit for each of its symbols and states.
const PLACE_BITS_MAX: usize = 4;

type Decoded<T> = Result<T, DecodeError>;

impl Statement {
    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Statement::Acts { memory, choice } => {
                writer.u8(0);
                writer.bool(memory.is_some());
                if let Some(memory) = memory {
                    memory.encode(writer);
                }
                choice.encode(writer);
            }
            Statement::Machine { state_bits, seen, rows } => {
                writer.u8(1);
                writer.u8(*state_bits);
                write_bits(writer, seen);
                write_table(writer, rows);
            }
            Statement::Plan(plan) => {
                writer.u8(2);
                write_bits(writer, &plan.seen);
                writer.u8(plan.clock_bits);
                writer.u8(plan.recall_bits);
                writer.u8(plan.history);
                write_table(writer, &plan.rows);
                write_table(writer, &plan.recalls);
            }
            Statement::Through { bits, echo, inner } => {
                writer.u8(3);
                write_literals(writer, bits);
                writer.bool(*echo);
                inner.encode(writer);
            }
            Statement::Gates(wiring) => {
                writer.u8(4);
                wiring.encode(writer);
            }
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Decoded<Statement> {
        Decoder { reader }.statement(2)
    }
}

impl Formula {
    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Formula::Sum { bits, inverted } => {
                writer.u8(0);
                write_bits(writer, bits);
                writer.bool(*inverted);
            }
            Formula::Threshold { weights, bound } => {
                writer.u8(1);
                write_all(writer, weights, |(bit, weight), writer| {
                    writer.u16(*bit);
                    writer.i32(*weight);
                });
                writer.i64(*bound);
            }
            Formula::Count { atoms, table } => {
                writer.u8(2);
                write_all(writer, atoms, |atom, writer| {
                    let (kind, one, other) = match atom {
                        Atom::Bit(bit, inverted) => (u8::from(*inverted), *bit, 0),
                        Atom::Pair(join, one, other) => (2 + *join as u8, *one, *other),
                    };
                    writer.u8(kind);
                    writer.u16(one);
                    writer.u16(other);
                });
                write_all(writer, table, |label, writer| writer.bool(*label));
            }
            Formula::Rows { bits, rows } => {
                writer.u8(3);
                write_bits(writer, bits);
                write_table(writer, rows);
            }
            Formula::Rules { rules, otherwise } => {
                writer.u8(4);
                write_all(writer, rules, |rule, writer| {
                    write_literals(writer, &rule.literals);
                    writer.bool(rule.label);
                });
                writer.bool(*otherwise);
            }
            Formula::Tree(tree) => {
                writer.u8(5);
                write_tree(writer, tree);
            }
            Formula::Pairs { pairs, otherwise } => {
                writer.u8(6);
                write_all(writer, pairs, |pair, writer| {
                    writer.u16(pair.first);
                    writer.u16(pair.second);
                    writer.bool(pair.differ);
                    writer.bool(pair.inverted);
                });
                writer.bool(*otherwise);
            }
            Formula::Polynomial(terms) => {
                writer.u8(7);
                write_all(writer, terms, |term, writer| write_bits(writer, term));
            }
            Formula::Scan { places, machine, answers, read } => {
                writer.u8(8);
                write_all(writer, places, |place, writer| write_bits(writer, place));
                writer.u32(*machine);
                write_table(writer, answers);
                match read {
                    Read::At(place) => {
                        writer.u8(0);
                        writer.u16(*place);
                    }
                    Read::Named { field, from_end } => {
                        writer.u8(1);
                        write_field(writer, field);
                        writer.bool(*from_end);
                    }
                }
            }
            Formula::Select { selector, parts } => {
                writer.u8(9);
                write_word(writer, selector);
                write_all(writer, parts, Formula::encode);
            }
            Formula::About { facts, inner } => {
                writer.u8(10);
                write_all(writer, facts, write_fact);
                inner.encode(writer);
            }
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Decoded<Formula> {
        Decoder { reader }.formula(DEPTH_MAX)
    }
}

impl Choice {
    fn encode(&self, writer: &mut Writer) {
        match self {
            Choice::Bits(formulas) => {
                writer.u8(0);
                write_all(writer, formulas, Formula::encode);
            }
            Choice::FirstOf { models, otherwise } => {
                writer.u8(1);
                write_all(writer, models, |(action, model), writer| {
                    writer.u16(*action);
                    model.encode(writer);
                });
                writer.u16(*otherwise);
            }
            Choice::FirstThatPays { model, order } => {
                writer.u8(2);
                model.encode(writer);
                write_bits(writer, order);
            }
            Choice::Highest(numbers) => {
                writer.u8(3);
                write_all(writer, numbers, |number, writer| match number {
                    Number::Digits(formulas) => {
                        writer.u8(0);
                        write_all(writer, formulas, Formula::encode);
                    }
                    Number::Weighted { base, weights } => {
                        writer.u8(1);
                        writer.u64(*base);
                        write_all(writer, weights, |(bit, value, weight), writer| {
                            writer.u16(*bit);
                            writer.bool(*value);
                            writer.u64(*weight);
                        });
                    }
                });
            }
            Choice::Rows { bits, rows } => {
                writer.u8(4);
                write_bits(writer, bits);
                write_table(writer, rows);
            }
            Choice::Tree(tree) => {
                writer.u8(5);
                write_tree(writer, tree);
            }
        }
    }
}

impl Memory {
    fn encode(&self, writer: &mut Writer) {
        match self {
            Memory::Toggle(condition) => {
                writer.u8(0);
                write_literals(writer, condition);
            }
            Memory::Latch { set, clear } => {
                writer.u8(1);
                write_literals(writer, set);
                write_option(writer, clear);
            }
            Memory::Counter { up, down, bits, digits } => {
                writer.u8(2);
                write_literals(writer, up);
                write_option(writer, down);
                writer.u8(*bits);
                writer.bool(*digits);
            }
            Memory::Delay(length) => {
                writer.u8(3);
                writer.u8(*length);
            }
            Memory::Echo(field, length) => {
                writer.u8(4);
                write_field(writer, field);
                writer.u8(*length);
            }
            Memory::Stack { push, pop, field, cells } => {
                writer.u8(5);
                write_literals(writer, push);
                write_literals(writer, pop);
                writer.bool(field.is_some());
                if let Some(field) = field {
                    write_field(writer, field);
                }
                writer.u8(*cells);
            }
            Memory::Queue { push, pop, field, cells } => {
                writer.u8(6);
                write_literals(writer, push);
                write_literals(writer, pop);
                write_field(writer, field);
                writer.u8(*cells);
            }
            Memory::Registers { write, address, data, delayed } => {
                writer.u8(7);
                write_literals(writer, write);
                write_field(writer, address);
                write_field(writer, data);
                writer.bool(*delayed);
            }
            Memory::Tape { write, read, field, cell_bits } => {
                writer.u8(8);
                write_literals(writer, write);
                write_literals(writer, read);
                write_field(writer, field);
                writer.u8(*cell_bits);
            }
            Memory::Sticky { inner, raises } => {
                writer.u8(9);
                inner.encode(writer);
                write_table(writer, raises);
            }
            Memory::Both(first, second) => {
                writer.u8(10);
                first.encode(writer);
                second.encode(writer);
            }
            Memory::After(inner) => {
                writer.u8(11);
                inner.encode(writer);
            }
        }
    }
}

fn write_all<T>(writer: &mut Writer, list: &[T], mut write: impl FnMut(&T, &mut Writer)) {
    writer.length(list.len());
    list.iter().for_each(|item| write(item, writer));
}

fn write_bits(writer: &mut Writer, bits: &[Index]) {
    write_all(writer, bits, |bit, writer| writer.u16(*bit));
}

fn write_literals(writer: &mut Writer, literals: &[Literal]) {
    write_all(writer, literals, |(bit, value), writer| {
        writer.u16(*bit);
        writer.bool(*value);
    });
}

fn write_option(writer: &mut Writer, condition: &Option<Vec<Literal>>) {
    writer.bool(condition.is_some());
    if let Some(condition) = condition {
        write_literals(writer, condition);
    }
}

fn write_table(writer: &mut Writer, table: &Table) {
    writer.length(table.len());
    for (key, value) in table {
        writer.u64(*key);
        writer.u64(*value);
    }
}

fn write_field(writer: &mut Writer, field: &Field) {
    writer.u16(field.low);
    writer.u16(field.width);
}

fn write_tree(writer: &mut Writer, tree: &[Branch]) {
    write_all(writer, tree, |branch, writer| {
        let (tests, number) = match branch {
            Branch::Leaf(answer) => (false, *answer),
            Branch::Test(bit) => (true, *bit),
        };
        writer.bool(tests);
        writer.u16(number);
    });
}

fn write_word(writer: &mut Writer, word: &Word) {
    match word {
        Word::Plain(field) => {
            writer.u8(0);
            write_field(writer, field);
        }
        Word::Ones(field) => {
            writer.u8(1);
            write_field(writer, field);
        }
        Word::Made(making, fields) => {
            writer.u8(2 + *making as u8);
            write_all(writer, fields, |field, writer| write_field(writer, field));
        }
    }
}

fn write_fact(fact: &Fact, writer: &mut Writer) {
    match fact {
        Fact::Bit(bit) => {
            writer.u8(0);
            writer.u16(*bit);
        }
        Fact::Ones(field, least) => {
            writer.u8(1);
            write_field(writer, field);
            writer.u16(*least);
        }
        Fact::Odd(field) => {
            writer.u8(2);
            write_field(writer, field);
        }
        Fact::Fewer(first, second) => {
            writer.u8(3);
            write_field(writer, first);
            write_field(writer, second);
        }
        Fact::Below(first, second) => {
            writer.u8(4);
            write_word(writer, first);
            write_word(writer, second);
        }
        Fact::Bits(word) => {
            writer.u8(5);
            write_word(writer, word);
        }
        Fact::Related(relation, first, second) => {
            writer.u8(6 + *relation as u8);
            write_field(writer, first);
            write_field(writer, second);
        }
    }
}

/// Reads all kinds; what is not a statement is an error at the byte where that is seen.
struct Decoder<'r, 'b> {
    reader: &'r mut Reader<'b>,
}

impl Decoder<'_, '_> {
    fn malformed<T>(&self, reason: &'static str) -> Decoded<T> {
        Err(self.reader.error(reason))
    }

    fn all<T>(&mut self, size_min: usize, mut read: impl FnMut(&mut Self) -> Decoded<T>) -> Decoded<Vec<T>> {
        let count = self.reader.length(size_min)?;
        (0..count).map(|_| read(self)).collect()
    }

    fn statement(&mut self, depth: u8) -> Decoded<Statement> {
        Ok(match self.reader.u8()? {
            0 => {
                let memory = if self.reader.bool()? { Some(self.memory(MEMORY_DEPTH_MAX)?) } else { None };
                Statement::Acts { memory, choice: self.choice()? }
            }
            1 => Statement::Machine { state_bits: self.size()?, seen: self.bits()?, rows: self.table()? },
            2 => Statement::Plan(Plan {
                seen: self.bits()?,
                clock_bits: self.size()?,
                recall_bits: self.size()?,
                history: self.size()?,
                rows: self.table()?,
                recalls: self.table()?,
            }),
            3 if 0 < depth => Statement::Through {
                bits: self.literals()?,
                echo: self.reader.bool()?,
                inner: Box::new(self.statement(depth - 1)?),
            },
            4 => Statement::Gates(Wiring::decode(self.reader)?),
            _ => return self.malformed("an unknown statement"),
        })
    }

    fn choice(&mut self) -> Decoded<Choice> {
        Ok(match self.reader.u8()? {
            0 => Choice::Bits(self.formulas(DEPTH_MAX)?),
            1 => Choice::FirstOf {
                models: self.all(3, |this| Ok((this.reader.u16()?, this.formula(DEPTH_MAX)?)))?,
                otherwise: self.reader.u16()?,
            },
            2 => Choice::FirstThatPays { model: self.formula(DEPTH_MAX)?, order: self.bits()? },
            3 => Choice::Highest(self.all(5, |this| {
                Ok(match this.reader.u8()? {
                    0 => Number::Digits(this.formulas(DEPTH_MAX)?),
                    1 => Number::Weighted {
                        base: this.reader.u64()?,
                        weights: this.all(11, |this| {
                            Ok((this.reader.u16()?, this.reader.bool()?, this.reader.u64()?))
                        })?,
                    },
                    _ => return this.malformed("an unknown number"),
                })
            })?),
            4 => Choice::Rows { bits: self.bits()?, rows: self.table()? },
            5 => Choice::Tree(self.tree()?),
            _ => return self.malformed("an unknown choice"),
        })
    }

    fn formulas(&mut self, depth: u8) -> Decoded<Vec<Formula>> {
        self.all(2, |this| this.formula(depth))
    }

    fn formula(&mut self, depth: u8) -> Decoded<Formula> {
        Ok(match self.reader.u8()? {
            0 => Formula::Sum { bits: self.bits()?, inverted: self.reader.bool()? },
            1 => Formula::Threshold {
                weights: self.all(6, |this| Ok((this.reader.u16()?, this.reader.i32()?)))?,
                bound: self.reader.i64()?,
            },
            2 => Formula::Count {
                atoms: self.all(5, Self::atom)?,
                table: self.all(1, |this| this.reader.bool())?,
            },
            3 => Formula::Rows { bits: self.bits()?, rows: self.table()? },
            4 => Formula::Rules {
                rules: self
                    .all(5, |this| Ok(Rule { literals: this.literals()?, label: this.reader.bool()? }))?,
                otherwise: self.reader.bool()?,
            },
            5 => Formula::Tree(self.tree()?),
            6 => Formula::Pairs {
                pairs: self.all(6, |this| {
                    Ok(Pair {
                        first: this.reader.u16()?,
                        second: this.reader.u16()?,
                        differ: this.reader.bool()?,
                        inverted: this.reader.bool()?,
                    })
                })?,
                otherwise: self.reader.bool()?,
            },
            7 => Formula::Polynomial(self.all(4, Self::bits)?),
            8 => self.scan()?,
            9 if 0 < depth => Formula::Select { selector: self.word()?, parts: self.formulas(depth - 1)? },
            10 if 0 < depth => {
                Formula::About { facts: self.all(3, Self::fact)?, inner: Box::new(self.formula(depth - 1)?) }
            }
            _ => return self.malformed("an unknown formula"),
        })
    }

    fn scan(&mut self) -> Decoded<Formula> {
        let places = self.all(4, Self::bits)?;
        let width = places.first().map_or(0, Vec::len);
        if PLACE_BITS_MAX < width || places.iter().any(|place| place.len() != width) {
            return self.malformed("places of a scan that are not alike");
        }
        let (machine, answers) = (self.reader.u32()?, self.table()?);
        let read = match self.reader.u8()? {
            0 => Read::At(self.reader.u16()?),
            1 => Read::Named { field: self.field()?, from_end: self.reader.bool()? },
            _ => return self.malformed("an unknown place of a scan"),
        };
        Ok(Formula::Scan { places, machine, answers, read })
    }

    fn atom(&mut self) -> Decoded<Atom> {
        Ok(match (self.reader.u8()?, self.reader.u16()?, self.reader.u16()?) {
            (kind @ 0..=1, bit, 0) => Atom::Bit(bit, kind == 1),
            (2, one, other) => Atom::Pair(Join::Xor, one, other),
            (3, one, other) => Atom::Pair(Join::And, one, other),
            _ => return self.malformed("an unknown atom"),
        })
    }

    fn memory(&mut self, depth: u8) -> Decoded<Memory> {
        Ok(match self.reader.u8()? {
            0 => Memory::Toggle(self.literals()?),
            1 => Memory::Latch { set: self.literals()?, clear: self.option()? },
            2 => Memory::Counter {
                up: self.literals()?,
                down: self.option()?,
                bits: self.size()?,
                digits: self.reader.bool()?,
            },
            3 => Memory::Delay(self.size()?),
            4 => Memory::Echo(self.field()?, self.size()?),
            5 => Memory::Stack {
                push: self.literals()?,
                pop: self.literals()?,
                field: if self.reader.bool()? { Some(self.field()?) } else { None },
                cells: self.size()?,
            },
            6 => Memory::Queue {
                push: self.literals()?,
                pop: self.literals()?,
                field: self.field()?,
                cells: self.size()?,
            },
            7 => Memory::Registers {
                write: self.literals()?,
                address: self.address()?,
                data: self.field()?,
                delayed: self.reader.bool()?,
            },
            8 => Memory::Tape {
                write: self.literals()?,
                read: self.literals()?,
                field: self.field()?,
                cell_bits: self.cell_bits()?,
            },
            9 if 0 < depth => {
                Memory::Sticky { inner: Box::new(self.memory(depth - 1)?), raises: self.table()? }
            }
            10 if 0 < depth => {
                Memory::Both(Box::new(self.memory(depth - 1)?), Box::new(self.memory(depth - 1)?))
            }
            11 if 0 < depth => Memory::After(Box::new(self.memory(depth - 1)?)),
            _ => return self.malformed("an unknown memory structure"),
        })
    }

    fn bits(&mut self) -> Decoded<Vec<Index>> {
        self.all(2, |this| this.reader.u16())
    }

    fn literals(&mut self) -> Decoded<Vec<Literal>> {
        self.all(3, |this| Ok((this.reader.u16()?, this.reader.bool()?)))
    }

    fn option(&mut self) -> Decoded<Option<Vec<Literal>>> {
        if self.reader.bool()? { self.literals().map(Some) } else { Ok(None) }
    }

    fn size(&mut self) -> Decoded<u8> {
        let size = self.reader.u8()?;
        if size <= SIZE_MAX { Ok(size) } else { self.malformed("a size outside the grammar") }
    }

    fn cell_bits(&mut self) -> Decoded<u8> {
        let bits = self.reader.u8()?;
        if u16::from(bits) <= ADDRESS_BITS_MAX {
            Ok(bits)
        } else {
            self.malformed("a tape outside the grammar")
        }
    }

    fn address(&mut self) -> Decoded<Field> {
        let field = self.field()?;
        if field.width <= ADDRESS_BITS_MAX {
            Ok(field)
        } else {
            self.malformed("an address outside the grammar")
        }
    }

    fn field(&mut self) -> Decoded<Field> {
        let (low, width) = (self.reader.u16()?, self.reader.u16()?);
        let fits = 0 < width && usize::from(low) + usize::from(width) <= STATE_BITS_MAX;
        if fits { Ok(Field { low, width }) } else { self.malformed("a field outside every row") }
    }

    /// Ascending keys only: a table has one spelling.
    fn table(&mut self) -> Decoded<Table> {
        let mut table = Table::new();
        for _ in 0..self.reader.length(16)? {
            let (key, value) = (self.reader.u64()?, self.reader.u64()?);
            if table.last_key_value().is_some_and(|(last, _)| key <= *last) {
                return self.malformed("rows that are not in order");
            }
            table.insert(key, value);
        }
        Ok(table)
    }

    /// A tree in preorder, whole and with nothing behind it, and of bounded depth.
    fn tree(&mut self) -> Decoded<Vec<Branch>> {
        let tree = self.all(3, |this| {
            let (tests, number) = (this.reader.bool()?, this.reader.u16()?);
            Ok(if tests { Branch::Test(number) } else { Branch::Leaf(number) })
        })?;
        let mut open = 1usize;
        for (place, branch) in tree.iter().enumerate() {
            open = if matches!(branch, Branch::Test(_)) { open + 1 } else { open - 1 };
            if (open == 0) != (place + 1 == tree.len()) {
                return self.malformed("a tree that is not whole");
            }
        }
        if tree.is_empty() { self.malformed("a tree that is not whole") } else { Ok(tree) }
    }

    fn word(&mut self) -> Decoded<Word> {
        let kind = self.reader.u8()?;
        Ok(match kind {
            0 => Word::Plain(self.field()?),
            1 => Word::Ones(self.field()?),
            _ => match Making::ALL.get(usize::from(kind) - 2) {
                Some(making) => Word::Made(*making, self.all(4, Self::field)?),
                None => return self.malformed("an unknown word"),
            },
        })
    }

    fn fact(&mut self) -> Decoded<Fact> {
        let kind = self.reader.u8()?;
        Ok(match kind {
            0 => Fact::Bit(self.reader.u16()?),
            1 => Fact::Ones(self.field()?, self.reader.u16()?),
            2 => Fact::Odd(self.field()?),
            3 => Fact::Fewer(self.field()?, self.field()?),
            4 => Fact::Below(self.word()?, self.word()?),
            5 => Fact::Bits(self.word()?),
            _ => match Relation::ALL.get(usize::from(kind) - 6) {
                Some(relation) => Fact::Related(*relation, self.field()?, self.field()?),
                None => return self.malformed("an unknown fact"),
            },
        })
    }
}
