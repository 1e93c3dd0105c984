//! Short functions of facts about fields: what one part of a row says joined with what another part says.
//!
//! A fact is whether a field has at least so many ones, or an odd number of them, how two fields are related, which of
//! two has more ones, or which of two words made of fields is the smaller. Facts are looked at in sets: all that can be
//! said at once, the same question asked of every field, and words of one making compared. In each set an exclusive or,
//! a short list of rules, a table over the number of facts that hold, or a plain table is sought. A row without
//! declared fields is also looked at in equal pieces.

use super::affine::Affine;
use super::arithmetic::{self, Made};
use super::decision::Decision;
use super::relation;
use super::symmetric::Symmetric;
use super::table::Table;
use super::{FunctionClass, is_short};
use crate::function::{Function, build_count, choice_bits};
use crate::samples::{ROW_BITS_MAX, Row, Samples, Work};
use crate::statement::{self, Formula};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};

/// Fields wider than this are not counted in.
const WIDTH_MAX: u16 = 16;
/// Widths of the pieces of a row without fields.
const PIECES: core::ops::RangeInclusive<u16> = 2..=8;
/// Facts of one set for which a plain table is sought.
const TABLE_FACTS_MAX: usize = 10;
/// Facts of one set with which exceptions are allowed: more could explain anything.
const NOISY_FACTS_MAX: usize = 48;
/// It is a joining of parts only with as many rows to show it.
const ROWS_MIN: usize = 24;

/// A short function of facts about fields.
pub struct Facts;

/// Something that is a number for every row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Plain(Field),
    Made(Made),
}

/// Something about the fields of a row that is tried: it holds or not.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fact {
    /// The bit at this index is set.
    Bit(usize),
    /// The field has at least so many ones.
    Ones(Field, u32),
    /// The field has an odd number of ones.
    Odd(Field),
    /// The first field has fewer ones than the second.
    Fewer(Field, Field),
    /// Two fields are related so.
    Related(relation::RelationKind, Field, Field),
    /// The first word is the smaller number.
    Below(Word, Word),
}

impl FunctionClass for Facts {
    fn name(&self) -> &'static str {
        "facts"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        if !samples.accepts(0) || samples.len() < ROWS_MIN {
            return None;
        }
        let mut sets = sets(samples);
        if 0 < samples.tolerance {
            sets.retain(|facts| facts.len() <= NOISY_FACTS_MAX);
        }
        let choice = choice_bits(sets.len());
        let mut best: Option<(Function, &[Fact])> = None;
        for facts in &sets {
            let Some(found) = fit_set(samples, facts, work) else { continue };
            if best.as_ref().is_none_or(|held| found.description_length < held.0.description_length) {
                best = Some((found, facts));
            }
        }
        let (found, facts) = best?;
        let length = found.description_length + choice;
        let mut builder = Builder::new(samples.width);
        let signals: Vec<Signal> = facts.iter().map(|fact| fact.build(&mut builder)).collect();
        let output = found.embed(&mut builder, &signals);
        let words = format!("{} of facts about fields", found.words);
        let said = facts.iter().map(Fact::statement).collect();
        let statement = Formula::About { facts: said, inner: Box::new(found.statement) };
        let function = Function::close(builder, output, statement, length, words)?;
        (is_short(length, samples.observations) && function.explains(samples)).then_some(function)
    }
}

/// The shortest simple function of these facts that explains the labels.
fn fit_set(samples: &Samples, facts: &[Fact], work: &mut Work) -> Option<Function> {
    if !work.spend((samples.len() * facts.len() * 16) as u64) {
        return None;
    }
    let groups = (0..facts.len() as u16).map(|low| Field { low, width: 1 }).collect();
    let shown = samples.seen_as(facts.len(), groups, |row| {
        let mut shown = Row::default();
        facts.iter().enumerate().for_each(|(place, fact)| shown.set(place, fact.holds(row)));
        shown
    });
    // Rows that the facts do not tell apart, with different labels: it is something else.
    if !shown.accepts(0) {
        return None;
    }
    let narrow: &[&dyn FunctionClass] = &[&Affine, &Symmetric, &Decision, &Table];
    let wide: &[&dyn FunctionClass] = &[&Affine, &Decision];
    let classes = if facts.len() <= TABLE_FACTS_MAX { narrow } else { wide };
    let found = classes.iter().filter_map(|class| class.fit(&shown, work));
    found.min_by_key(|function| function.description_length)
}

/// The sets of facts that are looked at.
fn sets(samples: &Samples) -> Vec<Vec<Fact>> {
    let mut sets = Vec::new();
    let whole = |field: &&Field| field.width <= WIDTH_MAX;
    let fields: Vec<Field> = samples.groups.iter().filter(whole).copied().collect();
    if 1 < fields.len() {
        sets.push(all_at_once(&fields));
        sets.extend(one_question(&fields));
        sets.extend(arithmetic::KINDS.map(|kind| compared(&fields, kind)));
    }
    if let [row] = samples.groups[..] {
        for width in PIECES.filter(|width| row.width.is_multiple_of(*width) && *width < row.width) {
            let piece = |place: u16| Field { low: row.low + place * width, width };
            let pieces: Vec<Field> = (0..row.width / width).map(piece).collect();
            sets.extend(one_question(&pieces));
        }
    }
    sets.retain(|facts| (2..ROW_BITS_MAX - 2).contains(&facts.len()));
    sets
}

/// All that can be said about single fields and pairs of them.
fn all_at_once(fields: &[Field]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for field in fields {
        facts.extend((field.low..field.low + field.width).map(|index| Fact::Bit(usize::from(index))));
        if 2 <= field.width {
            facts.extend((1..=u32::from(field.width)).map(|ones| Fact::Ones(*field, ones)));
            facts.push(Fact::Odd(*field));
        }
    }
    for (first, second) in relation::pairs(fields) {
        facts.extend(relation::KINDS.map(|kind| Fact::Related(kind, first, second)));
        facts.push(Fact::Fewer(first, second));
        facts.push(Fact::Fewer(second, first));
    }
    facts
}

/// The same question asked of every field: has it a one, has it only ones, more ones than not, an odd number of them.
fn one_question(fields: &[Field]) -> Vec<Vec<Fact>> {
    let ask = |ask: fn(&Field) -> Fact| fields.iter().map(ask).collect();
    vec![
        ask(|field| Fact::Ones(*field, 1)),
        ask(|field| Fact::Ones(*field, u32::from(field.width))),
        ask(|field| Fact::Ones(*field, u32::from(field.width) / 2 + 1)),
        ask(|field| Fact::Odd(*field)),
    ]
}

/// Words made of two fields compared with other fields, and with such words of other fields.
fn compared(fields: &[Field], kind: arithmetic::WordOperation) -> Vec<Fact> {
    let pairs: Vec<(Field, Field)> =
        arithmetic::pairs(fields).into_iter().filter(|pair| kind.fits(pair.0.width)).collect();
    let made = |pair: &(Field, Field)| Word::Made(Made { kind, fields: vec![pair.0, pair.1] });
    let apart = |pair: &(Field, Field), field: &Field| pair.0 != *field && pair.1 != *field;
    let mut words: Vec<(Word, Word)> = Vec::new();
    for (place, pair) in pairs.iter().enumerate() {
        let others = fields.iter().filter(|field| apart(pair, field) && field.width == pair.0.width);
        words.extend(others.map(|field| (made(pair), Word::Plain(*field))));
        let others = pairs[place + 1..].iter().filter(|other| apart(pair, &other.0) && apart(pair, &other.1));
        words.extend(others.map(|other| (made(pair), made(other))));
    }
    words
        .into_iter()
        .flat_map(|(first, second)| [Fact::Below(first.clone(), second.clone()), Fact::Below(second, first)])
        .collect()
}

impl Word {
    fn value(&self, row: &Row) -> u64 {
        match self {
            Word::Plain(field) => row.word(field),
            Word::Made(made) => made.value(row),
        }
    }

    fn statement(&self) -> statement::Word {
        match self {
            Word::Plain(field) => statement::Word::Plain(*field),
            Word::Made(made) => made.statement(),
        }
    }

    fn build(&self, builder: &mut Builder) -> Vec<Signal> {
        match self {
            Word::Plain(field) => inputs(field),
            Word::Made(made) => made.build(builder),
        }
    }
}

impl Fact {
    /// The same, said as data.
    fn statement(&self) -> statement::Fact {
        match self {
            Fact::Bit(index) => statement::Fact::Bit(*index as u16),
            Fact::Ones(field, ones) => statement::Fact::Ones(*field, *ones as u16),
            Fact::Odd(field) => statement::Fact::Odd(*field),
            Fact::Fewer(first, second) => statement::Fact::Fewer(*first, *second),
            Fact::Related(kind, first, second) => statement::Fact::Related(kind.statement(), *first, *second),
            Fact::Below(first, second) => statement::Fact::Below(first.statement(), second.statement()),
        }
    }

    fn holds(&self, row: &Row) -> bool {
        match self {
            Fact::Bit(index) => row.get(*index),
            Fact::Ones(field, ones) => *ones <= row.word(field).count_ones(),
            Fact::Odd(field) => row.word(field).count_ones() % 2 == 1,
            Fact::Fewer(first, second) => row.word(first).count_ones() < row.word(second).count_ones(),
            Fact::Related(kind, first, second) => kind.holds(row.word(first), row.word(second)),
            Fact::Below(first, second) => first.value(row) < second.value(row),
        }
    }

    fn build(&self, builder: &mut Builder) -> Signal {
        match self {
            Fact::Bit(index) => Signal::input(*index),
            Fact::Ones(field, ones) => {
                let count = build_count(builder, &inputs(field));
                let bound: Vec<Signal> =
                    (0..count.len()).map(|bit| Signal::constant(ones >> bit & 1 == 1)).collect();
                let below = build_below(builder, &count, &bound);
                builder.not(below)
            }
            Fact::Odd(field) => builder.xor_all(&inputs(field)),
            Fact::Fewer(first, second) => {
                let counts = [first, second].map(|field| build_count(builder, &inputs(field)));
                build_below(builder, &counts[0], &counts[1])
            }
            Fact::Related(kind, first, second) => kind.build(builder, &(*first, *second)),
            Fact::Below(first, second) => {
                let words = [first, second].map(|word| word.build(builder));
                build_below(builder, &words[0], &words[1])
            }
        }
    }
}

fn inputs(field: &Field) -> Vec<Signal> {
    (field.low..field.low + field.width).map(|index| Signal::input(usize::from(index))).collect()
}

/// Whether the first word is the smaller number; what one has more bits than the other counts as well.
fn build_below(builder: &mut Builder, first: &[Signal], second: &[Signal]) -> Signal {
    let bit = |word: &[Signal], place: usize| word.get(place).copied().unwrap_or(Signal::FALSE);
    // From the lowest bit up: where the bits differ they decide, else what was decided before.
    (0..first.len().max(second.len())).fold(Signal::FALSE, |decided, place| {
        let (one, other) = (bit(first, place), bit(second, place));
        let differ = builder.xor(one, other);
        builder.mux(differ, other, decided)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;

    fn word(row: &Row, low: usize, width: usize) -> u64 {
        row.0[0] >> low & ((1 << width) - 1)
    }

    #[test]
    fn every_fact_is_what_its_circuit_says() {
        let samples = sample(&[3, 3, 2, 2, 2], 200, 1, |_| true);
        for facts in sets(&samples) {
            let mut builder = Builder::new(samples.width);
            let signals: Vec<Signal> = facts.iter().map(|fact| fact.build(&mut builder)).collect();
            let circuit = builder.finish(&signals).unwrap();
            for row in &samples.rows {
                let inputs: Vec<bool> = (0..samples.width).map(|index| row.get(index)).collect();
                let expected: Vec<bool> = facts.iter().map(|fact| fact.holds(row)).collect();
                assert_eq!(circuit.evaluate(&inputs), expected, "{facts:?}");
            }
        }
    }

    fn majority(row: &Row) -> bool {
        4 <= word(row, 0, 7).count_ones()
    }

    fn ordered(row: &Row) -> bool {
        word(row, 7, 4) < word(row, 11, 4)
    }

    #[test]
    fn a_majority_of_majorities_is_found_although_some_labels_are_wrong() {
        let wanted =
            |row: &Row| 3 <= (0..5).filter(|piece| 2 <= word(row, 3 * piece, 3).count_ones()).count();
        let clean = sample(&[3; 5], 600, 1, wanted);
        let mut prng = bem_base::prng::Prng::stream(4, "wrong labels");
        let list: Vec<(Row, bool)> = clean
            .rows
            .iter()
            .zip(&clean.labels)
            .map(|(row, label)| (*row, label ^ (prng.below(40) == 0)))
            .collect();
        let noisy = Samples::new(15, clean.groups.clone(), list, 4);
        let function = Facts.fit(&noisy, &mut Work::new(1 << 32)).expect("facts explain most of it");
        assert_eq!(function.errors(&sample(&[3; 5], 1_000, 2, wanted)), 0, "{}", function.words);
    }

    #[test]
    fn functions_of_two_kinds_joined_are_found_from_few_rows() {
        let check = |widths: &[u16], count: usize, wanted: fn(&Row) -> bool| {
            let found = Facts.fit(&sample(widths, count, 1, wanted), &mut Work::new(1 << 32));
            let function = found.expect("facts explain it");
            assert_eq!(function.errors(&sample(widths, 1_000, 2, wanted)), 0, "{}", function.words);
        };
        check(&[7, 4, 4], 120, |row| majority(row) != ordered(row));
        check(&[7, 4, 4], 80, |row| majority(row) && ordered(row));
        check(&[3; 4], 80, |row| word(row, 0, 3) * word(row, 3, 3) < word(row, 6, 3) * word(row, 9, 3));
        check(&[15], 120, |row| {
            3 <= (0..5).filter(|piece| 2 <= word(row, 3 * piece, 3).count_ones()).count()
        });
        check(&[2, 2, 1, 2, 2, 1], 150, |row| {
            let fields = [(0, 2), (2, 2), (4, 1), (5, 2), (7, 2), (9, 1)];
            fields.iter().filter(|(low, width)| word(row, *low, *width) == 0).count() == 2
        });
    }
}
