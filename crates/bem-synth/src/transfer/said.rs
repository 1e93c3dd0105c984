//! A formula about one row said of another.

use super::Moves;
use crate::statement::{Atom, Fact, Formula, Index, Join, Read, Rule, Word};
use bem_base::environment::Field;

/// The formula about the other row; none where it speaks of something that has no counterpart there.
pub(super) fn elsewhere(formula: &Formula, moves: &Moves) -> Option<Formula> {
    Some(match formula {
        Formula::Sum { bits, inverted } => Formula::Sum { bits: moves.bits(bits)?, inverted: *inverted },
        Formula::Count { atoms, table } => {
            let atoms = moved_atoms(atoms, moves)?;
            Formula::Count { table: longer(table, atoms.len())?, atoms }
        }
        Formula::Rules { rules, otherwise } => {
            let literal = |(bit, value): &(Index, bool)| Some((moves.bit(*bit)?, *value));
            let rule = |rule: &Rule| {
                let literals = rule.literals.iter().map(literal).collect::<Option<_>>()?;
                Some(Rule { literals, label: rule.label })
            };
            Formula::Rules { rules: rules.iter().map(rule).collect::<Option<_>>()?, otherwise: *otherwise }
        }
        Formula::Rows { bits, rows } => {
            let bits = bits.iter().map(|bit| moves.bit(*bit)).collect::<Option<_>>()?;
            Formula::Rows { bits, rows: rows.clone() }
        }
        Formula::About { facts, inner } => {
            let facts = facts.iter().map(|fact| moved_fact(fact, moves)).collect::<Option<_>>()?;
            Formula::About { facts, inner: inner.clone() }
        }
        Formula::Scan { places, machine, answers, read } => {
            let there = moved_places(places, moves)?;
            let read = match read {
                Read::At(place) if usize::from(*place) + 1 == places.len() => {
                    Read::At(there.len() as u16 - 1)
                }
                Read::At(0) => Read::At(0),
                Read::At(_) => return None,
                Read::Named { field, from_end } => {
                    Read::Named { field: moves.field(*field)?, from_end: *from_end }
                }
            };
            Formula::Scan { places: there, machine: *machine, answers: answers.clone(), read }
        }
        _ => return None,
    })
}

/// What is counted: whole groups, or two groups joined bit by bit, or the halves of one.
pub(super) fn moved_atoms(atoms: &[Atom], moves: &Moves) -> Option<Vec<Atom>> {
    match atoms.first()? {
        Atom::Bit(_, inverted) => {
            let bit = |atom: &Atom| match atom {
                Atom::Bit(bit, other) if other == inverted => Some(*bit),
                _ => None,
            };
            let bits: Vec<Index> = atoms.iter().map(bit).collect::<Option<_>>()?;
            Some(moves.bits(&bits)?.into_iter().map(|bit| Atom::Bit(bit, *inverted)).collect())
        }
        Atom::Pair(join, first, second) => {
            let is_pair = |(place, atom): (usize, &Atom)| {
                matches!(atom, Atom::Pair(other, one, two) if other == join
                    && usize::from(*one) == usize::from(*first) + place && usize::from(*two) == usize::from(*second) + place)
            };
            if !atoms.iter().enumerate().all(is_pair) {
                return None;
            }
            let width = atoms.len() as u16;
            let (one, two) = (Field { low: *first, width }, Field { low: *second, width });
            let (one, two) = match (moves.field(one), moves.field(two)) {
                (Some(one), Some(two)) if one.width == two.width => (one, two),
                _ => {
                    let both = moves
                        .field(Field { low: *first, width: 2 * width })
                        .filter(|_| *second == *first + width)?;
                    let half = both.width / 2;
                    (Field { low: both.low, width: half }, Field { low: both.low + half, width: half })
                }
            };
            Some(joined(*join, one, two))
        }
    }
}

/// Two fields joined bit by bit.
pub(super) fn joined(join: Join, one: Field, two: Field) -> Vec<Atom> {
    (0..one.width.min(two.width)).map(|place| Atom::Pair(join, one.low + place, two.low + place)).collect()
}

/// A table over counts up to another number: as it is, with its period, or with its one change where it belongs: at the first,
/// at the last, or in the middle.
fn longer(table: &[bool], count: usize) -> Option<Vec<bool>> {
    let last = table.len() - 1;
    if last == count {
        return Some(table.to_vec());
    }
    let is_periodic =
        |period: &usize| (*period..table.len()).all(|place| table[place] == table[place - period]);
    if let Some(period) = (1..=4).filter(|period| 2 * period <= last).find(is_periodic) {
        return Some((0..=count).map(|place| table[place % period]).collect());
    }
    let changes: Vec<usize> = (1..table.len()).filter(|place| table[*place] != table[place - 1]).collect();
    let [change] = changes[..] else { return None };
    let there = match change {
        1 => 1,
        change if change == last => count,
        change if change == last / 2 + 1 => count / 2 + 1,
        change if change == last.div_ceil(2) => count.div_ceil(2),
        _ => return None,
    };
    Some((0..=count).map(|place| (place < there) == (table[0])).collect())
}

fn moved_fact(fact: &Fact, moves: &Moves) -> Option<Fact> {
    let field = |field: &Field| moves.field(*field);
    Some(match fact {
        Fact::Bit(bit) => Fact::Bit(moves.bit(*bit)?),
        Fact::Ones(of, ones) => {
            let there = field(of)?;
            let ones = match *ones {
                1 => 1,
                ones if ones == of.width => there.width,
                ones if ones == of.width / 2 + 1 => there.width / 2 + 1,
                ones => ones,
            };
            Fact::Ones(there, ones)
        }
        Fact::Odd(of) => Fact::Odd(field(of)?),
        Fact::Fewer(one, two) => Fact::Fewer(field(one)?, field(two)?),
        Fact::Related(relation, one, two) => Fact::Related(*relation, field(one)?, field(two)?),
        Fact::Below(one, two) => Fact::Below(moved_word(one, moves)?, moved_word(two, moves)?),
        // Its bits would be others.
        Fact::Bits(word) => {
            let there = moved_word(word, moves)?;
            return (super::numbers::width(&there) == super::numbers::width(word))
                .then_some(Fact::Bits(there));
        }
    })
}

pub(super) fn moved_word(word: &Word, moves: &Moves) -> Option<Word> {
    Some(match word {
        Word::Plain(field) => Word::Plain(moves.field(*field)?),
        Word::Ones(field) => Word::Ones(moves.field(*field)?),
        Word::Made(making, fields) => {
            let fields: Vec<Field> = fields.iter().map(|field| moves.field(*field)).collect::<Option<_>>()?;
            let width = fields.first()?.width;
            fields.iter().all(|field| field.width == width).then_some(Word::Made(*making, fields))?
        }
    })
}

/// A walk over the groups that take the places of those it went over, in the same direction.
fn moved_places(places: &[Vec<Index>], moves: &Moves) -> Option<Vec<Vec<Index>>> {
    let columns = places.first()?.len();
    let column = |column: usize| -> Option<Vec<Index>> {
        let bits: Vec<Index> =
            places.iter().map(|place| place.get(column).copied()).collect::<Option<_>>()?;
        let (low, high) = (*bits.iter().min()?, *bits.iter().max()?);
        let there = moves.field(Field { low, width: high - low + 1 })?;
        let upward = bits.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let downward = bits.windows(2).all(|pair| pair[0] == pair[1] + 1);
        match (upward, downward) {
            (true, _) => Some((there.low..there.low + there.width).collect()),
            (_, true) => Some((there.low..there.low + there.width).rev().collect()),
            _ => None,
        }
    };
    let columns: Vec<Vec<Index>> = (0..columns).map(column).collect::<Option<_>>()?;
    let length = columns.first()?.len();
    if !columns.iter().all(|column| column.len() == length) {
        return None;
    }
    Some((0..length).map(|place| columns.iter().map(|column| column[place]).collect()).collect())
}
