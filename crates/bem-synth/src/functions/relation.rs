//! Relations between words: rules over whether two fields of one width meet, contain each other, or are in order.
//!
//! For every pair of fields it asks: have they a bit in common, has the first a bit that the second lacks, has the
//! second one that the first lacks, which is the smaller number. A short list of rules over the answers is sought.

use super::FunctionClass;
use super::decision::Decision;
use crate::function::Function;
use crate::samples::{ROW_BITS_MAX, Row, Samples, Work};
use crate::statement::{self, Fact, Formula};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};

/// Pairs of fields at most, the last fields first.
const PAIRS_MAX: usize = 64;
/// Fields wider than this are not words.
const WIDTH_MAX: u16 = 16;

/// Rules over relations between fields.
pub struct Relation;

/// What may hold between two fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelationKind {
    /// Some bit is set in both.
    Meets,
    /// Some bit is set in the first only.
    Exceeds,
    /// Some bit is set in the second only.
    Lacks,
    /// The first is the smaller number.
    Below,
    /// The first is the larger number.
    Above,
}

pub(super) const KINDS: [RelationKind; 5] = [
    RelationKind::Meets,
    RelationKind::Exceeds,
    RelationKind::Lacks,
    RelationKind::Below,
    RelationKind::Above,
];

impl FunctionClass for Relation {
    fn name(&self) -> &'static str {
        "relation"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if !samples.accepts(0) || 0 < samples.tolerance {
            return None;
        }
        let pairs = pairs(&samples.groups);
        if pairs.is_empty() || !work.spend((samples.len() * pairs.len() * 8) as u64) {
            return None;
        }
        let width = pairs.len() * KINDS.len();
        let groups = (0..width as u16).map(|low| Field { low, width: 1 }).collect();
        let derived = samples.seen_as(width, groups, |row| answers(row, &pairs));
        // Rows that no relation tells apart, with different labels: it is something else.
        if 0 < derived.contradictions {
            return None;
        }
        let rules = Decision.fit(&derived, work)?;
        let mut builder = Builder::new(samples.width);
        let signals: Vec<Signal> =
            pairs.iter().flat_map(|pair| KINDS.map(|kind| kind.build(&mut builder, pair))).collect();
        let output = rules.embed(&mut builder, &signals);
        let words = format!("relations of fields, {}", rules.words);
        let fact =
            |pair: &(Field, Field), kind: RelationKind| Fact::Related(kind.statement(), pair.0, pair.1);
        let facts = pairs.iter().flat_map(|pair| KINDS.map(|kind| fact(pair, kind))).collect();
        let statement = Formula::About { facts, inner: Box::new(rules.statement) };
        Function::close(builder, output, statement, rules.description_length + 4, words)
    }
}

/// Pairs of different fields of one width, those with a later field first.
pub(super) fn pairs(groups: &[Field]) -> Vec<(Field, Field)> {
    let words = || groups.iter().filter(|field| 2 <= field.width && field.width <= WIDTH_MAX);
    let mut pairs: Vec<(Field, Field)> = Vec::new();
    for second in words().rev() {
        let first = words().filter(|first| first.low < second.low && first.width == second.width);
        pairs.extend(first.map(|first| (*first, *second)));
    }
    pairs.truncate(PAIRS_MAX.min(ROW_BITS_MAX / KINDS.len()));
    pairs
}

/// Whether each relation holds in each pair.
fn answers(row: &Row, pairs: &[(Field, Field)]) -> Row {
    let mut answers = Row::default();
    for (place, (first, second)) in pairs.iter().enumerate() {
        let (first, second) = (row.word(first), row.word(second));
        for (offset, kind) in KINDS.iter().enumerate() {
            answers.set(place * KINDS.len() + offset, kind.holds(first, second));
        }
    }
    answers
}

impl RelationKind {
    /// The same, said as data.
    pub(super) fn statement(self) -> statement::Relation {
        match self {
            RelationKind::Meets => statement::Relation::Meets,
            RelationKind::Exceeds => statement::Relation::Exceeds,
            RelationKind::Lacks => statement::Relation::Lacks,
            RelationKind::Below => statement::Relation::Below,
            RelationKind::Above => statement::Relation::Above,
        }
    }

    pub(super) fn holds(self, first: u64, second: u64) -> bool {
        match self {
            RelationKind::Meets => first & second != 0,
            RelationKind::Exceeds => first & !second != 0,
            RelationKind::Lacks => second & !first != 0,
            RelationKind::Below => first < second,
            RelationKind::Above => second < first,
        }
    }

    pub(super) fn build(self, builder: &mut Builder, (first, second): &(Field, Field)) -> Signal {
        let bits: Vec<(Signal, Signal)> = (0..first.width)
            .map(|bit| (usize::from(first.low + bit), usize::from(second.low + bit)))
            .map(|(first, second)| (Signal::input(first), Signal::input(second)))
            .collect();
        let each: Vec<Signal> = match self {
            RelationKind::Meets => bits.iter().map(|(first, second)| builder.and(*first, *second)).collect(),
            RelationKind::Exceeds => {
                bits.iter().map(|(first, second)| builder.and_not(*first, *second)).collect()
            }
            RelationKind::Lacks => {
                bits.iter().map(|(first, second)| builder.and_not(*second, *first)).collect()
            }
            RelationKind::Below | RelationKind::Above => {
                // From the lowest bit up: where the bits differ they decide, else what was decided before.
                return bits.iter().fold(Signal::FALSE, |decided, (first, second)| {
                    let differ = builder.xor(*first, *second);
                    builder.mux(differ, if self == RelationKind::Below { *second } else { *first }, decided)
                });
            }
        };
        builder.or_all(&each)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;

    #[test]
    fn rules_over_relations_are_found_from_few_rows() {
        let word = |row: &Row, field: usize| row.0[0] >> (4 * field) & 15;
        // Every one of three pairs of words meets the last word or its complement.
        let wanted = |row: &Row| {
            let last = word(row, 6);
            (0..3).all(|pair| word(row, 2 * pair) & last != 0 || word(row, 2 * pair + 1) & !last != 0)
        };
        let function = Relation.fit(&sample(&[4; 7], 150, 1, wanted), &mut Work::new(1 << 32)).unwrap();
        assert_eq!(function.errors(&sample(&[4; 7], 1_000, 2, wanted)), 0, "{}", function.words);
        let equal_or_ordered = |row: &Row| word(row, 0) < word(row, 1) || word(row, 2) == word(row, 1);
        let train = sample(&[4; 3], 200, 3, equal_or_ordered);
        let function = Relation.fit(&train, &mut Work::new(1 << 32)).unwrap();
        assert_eq!(function.errors(&sample(&[4; 3], 1_000, 4, equal_or_ordered)), 0, "{}", function.words);
    }
}
