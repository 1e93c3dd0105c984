//! The circuit of a formula that was carried over. The gate's condition holds it against the formula, row by row.

use crate::function::{Function, build_count, build_sum, build_table};
use crate::functions::multiplexer::select;
use crate::statement::{Atom, Fact, Formula, Index, Join, Making, Read, Relation, Rule, Word};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Op, Signal};
use std::collections::BTreeMap;

/// Bits that it takes to say that something known holds here too.
const LENGTH: u32 = 8;

/// The formula as a function of rows of this width; none where a bound is exceeded or nobody builds such a formula.
pub(super) fn function(formula: Formula, width: usize) -> Option<Function> {
    let mut builder = Builder::new(width);
    let row: Vec<Signal> = (0..width).map(Signal::input).collect();
    let output = build(&mut builder, &formula, &row)?;
    Function::close(builder, output, formula, LENGTH, "carried over".to_string())
}

fn bit(row: &[Signal], index: Index) -> Option<Signal> {
    row.get(usize::from(index)).copied()
}

fn bits(row: &[Signal], indices: &[Index]) -> Option<Vec<Signal>> {
    indices.iter().map(|index| bit(row, *index)).collect()
}

fn field(row: &[Signal], field: &Field) -> Option<Vec<Signal>> {
    row.get(usize::from(field.low)..usize::from(field.low + field.width)).map(<[Signal]>::to_vec)
}

fn truth(rows: &BTreeMap<u64, u64>) -> BTreeMap<u64, bool> {
    rows.iter().map(|(key, value)| (*key, value & 1 == 1)).collect()
}

fn build(builder: &mut Builder, formula: &Formula, row: &[Signal]) -> Option<Signal> {
    Some(match formula {
        Formula::Sum { bits: indices, inverted } => {
            let sum = builder.xor_all(&bits(row, indices)?);
            builder.gate(Op::Xor, sum, Signal::constant(*inverted))
        }
        Formula::Count { atoms, table } => {
            let mut signals = Vec::new();
            for atom in atoms {
                signals.push(match atom {
                    Atom::Bit(index, inverted) => {
                        builder.gate(Op::Xor, bit(row, *index)?, Signal::constant(*inverted))
                    }
                    Atom::Pair(join, one, two) => {
                        let op = if *join == Join::And { Op::And } else { Op::Xor };
                        builder.gate(op, bit(row, *one)?, bit(row, *two)?)
                    }
                });
            }
            let count = build_count(builder, &signals);
            let table = table.iter().enumerate().map(|(count, label)| (count as u64, *label)).collect();
            build_table(builder, &count, &table)
        }
        Formula::Rules { rules, otherwise } => {
            let mut answer = Signal::constant(*otherwise);
            for Rule { literals, label } in rules.iter().rev() {
                let mut each = Vec::new();
                for (index, value) in literals {
                    each.push(builder.gate(Op::Xor, bit(row, *index)?, Signal::constant(!*value)));
                }
                let holds = builder.and_all(&each);
                answer = builder.mux(holds, Signal::constant(*label), answer);
            }
            answer
        }
        Formula::Rows { bits: indices, rows } => build_table(builder, &bits(row, indices)?, &truth(rows)),
        Formula::About { facts, inner } => {
            let mut other = Vec::new();
            for fact in facts {
                build_fact(builder, fact, row, &mut other)?;
            }
            build(builder, inner, &other)?
        }
        Formula::Scan { places, machine, answers, read } => {
            build_scan(builder, row, (places, *machine, &truth(answers), read))?
        }
        _ => return None,
    })
}

fn build_scan(
    builder: &mut Builder,
    row: &[Signal],
    (places, machine, answers, read): (&[Vec<Index>], u32, &BTreeMap<u64, bool>, &Read),
) -> Option<Signal> {
    let last = match read {
        Read::At(place) => usize::from(*place),
        Read::Named { .. } => places.len().checked_sub(1)?,
    };
    let (mut state, mut outputs) = (Signal::FALSE, Vec::new());
    for place in places.get(..=last)? {
        let mut key = vec![state];
        key.extend(bits(row, place)?);
        outputs.push(build_table(builder, &key, answers));
        let next = (0..2u64 << place.len()).map(|key| (key, machine >> key & 1 == 1)).collect();
        state = build_table(builder, &key, &next);
    }
    match read {
        Read::At(_) => outputs.pop(),
        Read::Named { field: named, from_end } => {
            if *from_end {
                outputs.reverse();
            }
            outputs.resize(1 << named.width, Signal::FALSE);
            Some(select(builder, &field(row, named)?, &outputs))
        }
    }
}

/// Appends the bits of a fact.
fn build_fact(builder: &mut Builder, fact: &Fact, row: &[Signal], facts: &mut Vec<Signal>) -> Option<()> {
    let holds = match fact {
        Fact::Bit(index) => bit(row, *index)?,
        Fact::Ones(of, ones) => {
            let count = build_count(builder, &field(row, of)?);
            let bound: Vec<Signal> =
                (0..count.len().max(16)).map(|bit| Signal::constant(ones >> bit & 1 == 1)).collect();
            let below = below(builder, &count, &bound);
            builder.not(below)
        }
        Fact::Odd(of) => builder.xor_all(&field(row, of)?),
        Fact::Fewer(one, two) => {
            let (one, two) = (field(row, one)?, field(row, two)?);
            let counts = [one, two].map(|field| build_count(builder, &field));
            below(builder, &counts[0], &counts[1])
        }
        Fact::Related(relation, one, two) => {
            related(builder, *relation, &field(row, one)?, &field(row, two)?)
        }
        Fact::Below(one, two) => {
            let (one, two) = (word(builder, one, row)?, word(builder, two, row)?);
            below(builder, &one, &two)
        }
        Fact::Bits(of) => {
            facts.extend(word(builder, of, row)?);
            return Some(());
        }
    };
    facts.push(holds);
    Some(())
}

fn related(builder: &mut Builder, relation: Relation, one: &[Signal], two: &[Signal]) -> Signal {
    let pairs = one.iter().zip(two);
    let each: Vec<Signal> = match relation {
        Relation::Meets => pairs.map(|(one, two)| builder.and(*one, *two)).collect(),
        Relation::Exceeds => pairs.map(|(one, two)| builder.and_not(*one, *two)).collect(),
        Relation::Lacks => pairs.map(|(one, two)| builder.and_not(*two, *one)).collect(),
        Relation::Below => return below(builder, one, two),
        Relation::Above => return below(builder, two, one),
    };
    builder.or_all(&each)
}

/// Whether the first is the smaller number: from the lowest bit up, where the bits differ they decide.
fn below(builder: &mut Builder, one: &[Signal], two: &[Signal]) -> Signal {
    let at = |word: &[Signal], place: usize| word.get(place).copied().unwrap_or(Signal::FALSE);
    (0..one.len().max(two.len())).fold(Signal::FALSE, |decided, place| {
        let (one, two) = (at(one, place), at(two, place));
        let differ = builder.xor(one, two);
        builder.mux(differ, two, decided)
    })
}

/// The bits of a word, the lowest first.
fn word(builder: &mut Builder, word: &Word, row: &[Signal]) -> Option<Vec<Signal>> {
    let width = super::numbers::width(word);
    let mut bits = match word {
        Word::Plain(of) => field(row, of)?,
        Word::Ones(of) => build_count(builder, &field(row, of)?),
        Word::Made(making, fields) => {
            let words: Vec<Vec<Signal>> = fields.iter().map(|of| field(row, of)).collect::<Option<_>>()?;
            made(builder, *making, &words)?
        }
    };
    bits.resize(width, Signal::FALSE);
    Some(bits)
}

fn made(builder: &mut Builder, making: Making, words: &[Vec<Signal>]) -> Option<Vec<Signal>> {
    let (first, rest) = words.split_first()?;
    Some(match making {
        Making::Sum => {
            let rank = |rank: usize| words.iter().filter_map(|word| word.get(rank).copied()).collect();
            build_sum(builder, (0..first.len()).map(rank).collect())
        }
        Making::Product => {
            let mut ranks = vec![Vec::new(); 2 * first.len()];
            for (place, one) in first.iter().enumerate() {
                for (rank, other) in rest.first()?.iter().enumerate() {
                    ranks[place + rank].push(builder.and(*one, *other));
                }
            }
            build_sum(builder, ranks)
        }
        _ => rest.iter().fold(first.clone(), |held, other| two(builder, making, &held, other)),
    })
}

fn two(builder: &mut Builder, making: Making, one: &[Signal], other: &[Signal]) -> Vec<Signal> {
    match making {
        Making::Difference => subtract(builder, one, other),
        Making::Reverse => subtract(builder, other, one),
        Making::Distance => {
            let mut forward = subtract(builder, one, other);
            let backward = subtract(builder, other, one);
            let below = forward.pop().unwrap_or(Signal::FALSE);
            forward.iter().zip(&backward).map(|(one, other)| builder.mux(below, *other, *one)).collect()
        }
        _ => {
            let below = subtract(builder, one, other).pop().unwrap_or(Signal::FALSE);
            let (then, rest) = if making == Making::Smaller { (one, other) } else { (other, one) };
            then.iter().zip(rest).map(|(then, rest)| builder.mux(below, *then, *rest)).collect()
        }
    }
}

/// The difference, lowest bit first, and last whether it is below zero.
fn subtract(builder: &mut Builder, one: &[Signal], other: &[Signal]) -> Vec<Signal> {
    let (mut borrow, mut difference) = (Signal::FALSE, Vec::new());
    for (one, other) in one.iter().zip(other) {
        let half = builder.xor(*one, *other);
        difference.push(builder.xor(half, borrow));
        borrow = builder.mux(half, *other, borrow);
    }
    difference.push(borrow);
    difference
}
