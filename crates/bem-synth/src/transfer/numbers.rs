//! An action that is a number of the row: how many bits of a group are set, in how many places two groups differ, their sum, what
//! a group spells. Recognised by what the formulas answer to many rows, and said of another row with as many digits as needed.

use super::Moves;
use super::said::{joined, moved_atoms, moved_word};
use crate::statement::{Atom, Fact, Formula, Join, Making, Word};
use bem_base::environment::Field;
use bem_base::prng::Prng;

/// Rows on which a number is recognised.
const ROWS: usize = 256;
/// Fields wider than this are no words.
const WIDTH_MAX: u16 = 24;

/// A number that a row shows.
enum Number {
    Of(Word),
    Counted(Vec<Atom>),
}

/// The digits of the number that the formulas spell, said of the other row; none where they spell none of those looked at.
pub(super) fn as_a_number(formulas: &[Formula], moves: &Moves, digits: usize) -> Option<Vec<Formula>> {
    let width = moves.pairs().iter().map(|(from, _)| usize::from(from.low + from.width)).max()?;
    let mut prng = Prng::stream(0, "transfer/rows");
    let rows: Vec<Vec<bool>> = (0..ROWS).map(|_| (0..width).map(|_| prng.bit()).collect()).collect();
    let spelled =
        |row: &[bool]| formulas.iter().map(|formula| formula.holds(row)).collect::<Option<Vec<bool>>>();
    let spelled: Vec<Vec<bool>> = rows.iter().map(|row| spelled(row)).collect::<Option<_>>()?;
    let is_it = |number: &Number| {
        let digit = number.digits(formulas.len());
        rows.iter().zip(&spelled).all(|(row, spelled)| {
            digit.iter().zip(spelled).all(|(digit, spelled)| digit.holds(row) == Some(*spelled))
        })
    };
    let number = numbers(moves).into_iter().find(is_it)?;
    let there = match number {
        Number::Of(word) => Number::Of(moved_word(&word, moves)?),
        Number::Counted(atoms) => Number::Counted(moved_atoms(&atoms, moves)?),
    };
    Some(there.digits(digits))
}

impl Number {
    /// One formula for every digit.
    fn digits(&self, count: usize) -> Vec<Formula> {
        let digit = |place: usize| match self {
            Number::Of(word) if place < width(word) => Formula::About {
                facts: vec![Fact::Bits(word.clone())],
                inner: Box::new(Formula::literal(place, false)),
            },
            Number::Of(_) => Formula::constant(false),
            Number::Counted(atoms) => {
                let table = (0..=atoms.len()).map(|count| count >> place & 1 == 1).collect();
                Formula::Count { atoms: atoms.clone(), table }
            }
        };
        (0..count).map(digit).collect()
    }
}

/// Bits of a word.
pub(super) fn width(word: &Word) -> usize {
    match word {
        Word::Plain(field) => usize::from(field.width),
        Word::Ones(field) => (usize::from(field.width) + 1).next_power_of_two().ilog2() as usize,
        Word::Made(making, fields) => {
            let width = fields.first().map_or(0, |field| usize::from(field.width));
            match making {
                Making::Sum => width + crate::function::choice_bits(fields.len()) as usize,
                Making::Difference | Making::Reverse => width + 1,
                Making::Product => 2 * width,
                Making::Distance | Making::Smaller | Making::Larger => width,
            }
        }
    }
}

/// The numbers that are looked at.
fn numbers(moves: &Moves) -> Vec<Number> {
    let groups: Vec<Field> =
        moves.pairs().iter().map(|(from, _)| *from).filter(|field| field.width <= WIDTH_MAX).collect();
    let all = |field: &Field| (field.low..field.low + field.width).map(|bit| Atom::Bit(bit, false)).collect();
    let mut numbers: Vec<Number> = groups.iter().map(|field| Number::Of(Word::Plain(*field))).collect();
    numbers.extend(
        moves.pairs().iter().filter(|(from, _)| 1 < from.width).map(|(from, _)| Number::Counted(all(from))),
    );
    for (place, one) in groups.iter().enumerate() {
        for two in groups[place + 1..].iter().filter(|two| two.width == one.width && 1 < one.width) {
            numbers.extend([Join::Xor, Join::And].map(|join| Number::Counted(joined(join, *one, *two))));
            let made = Making::ALL.iter().filter(|making| **making != Making::Product || one.width <= 6);
            numbers.extend(made.map(|making| Number::Of(Word::Made(*making, vec![*one, *two]))));
        }
    }
    for (from, _) in moves.pairs().iter().filter(|(from, _)| from.width.is_multiple_of(2) && 4 <= from.width)
    {
        let half = from.width / 2;
        let halves = [from.low, from.low + half].map(|low| Field { low, width: half });
        numbers
            .extend([Join::Xor, Join::And].map(|join| Number::Counted(joined(join, halves[0], halves[1]))));
    }
    numbers
}
