//! Rows of bits with one wanted bit each: what every function class learns from.
//!
//! A row is the observation followed by what a memory structure shows. Equal rows are one sample with the
//! majority's label. Columns are kept beside the rows, so that a whole circuit is tested 64 samples at a time.
//! Must not know where rows come from.

use bem_base::environment::{Bits, Field, OBSERVATION_WORDS};
use std::collections::{BTreeMap, BTreeSet};

/// Words of a row.
pub const ROW_WORDS: usize = 6;
/// Bits of a row: the widest observation and 128 bits of memory view.
pub const ROW_BITS_MAX: usize = ROW_WORDS * 64;

/// Different rows that a function is fitted to at most, and samples that may stand behind them.
pub const ROWS_FITTED_MAX: usize = 3_000;
const SAMPLES_FITTED_MAX: usize = 16_000;
/// Bits that one exception takes to say.
const EXCEPTION_BITS: u32 = 4;

/// The first samples of a list whose latest come first, as far as functions are fitted to them. Where rows come again
/// and again, more samples are let in: a table is complete only when its rarest row was seen.
pub fn latest(list: impl Iterator<Item = (Row, bool)>) -> impl Iterator<Item = (Row, bool)> {
    let mut rows = BTreeSet::new();
    list.take(SAMPLES_FITTED_MAX).take_while(move |(row, _)| {
        rows.insert(*row);
        rows.len() <= ROWS_FITTED_MAX
    })
}

/// The bits a function may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(pub [u64; ROW_WORDS]);

impl Row {
    /// The row that shows only an observation.
    pub fn from_observation(observation: &Bits) -> Row {
        let mut row = Row::default();
        row.0[..observation.0.len()].copy_from_slice(&observation.0);
        row
    }

    /// The observation at its beginning.
    pub fn to_observation(&self) -> Bits {
        let mut observation = Bits::ZERO;
        observation.0.copy_from_slice(&self.0[..OBSERVATION_WORDS]);
        observation
    }

    /// The bit at this index.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    /// Sets the bit at this index.
    #[inline]
    pub fn set(&mut self, index: usize, value: bool) {
        let word = &mut self.0[index / 64];
        *word = *word & !(1 << (index % 64)) | u64::from(value) << (index % 64);
    }

    /// The chosen bits as a number, the first lowest; at most 64.
    pub fn gather(&self, indices: &[usize]) -> u64 {
        indices.iter().enumerate().fold(0, |key, (place, index)| key | u64::from(self.get(*index)) << place)
    }

    /// The number that a field of at most 64 bits shows.
    pub fn word(&self, field: &Field) -> u64 {
        let bits = field.low..field.low + field.width;
        bits.zip(0..).fold(0, |word, (index, place)| word | u64::from(self.get(usize::from(index))) << place)
    }
}

/// Distinct rows with their labels.
#[derive(Clone, Debug)]
pub struct Samples {
    /// Bits of a row.
    pub width: usize,
    /// A grouping of the row's bits, without names.
    pub groups: Vec<Field>,
    /// The distinct rows, ascending.
    pub rows: Vec<Row>,
    /// The label of each row.
    pub labels: Vec<bool>,
    /// How many samples stood behind all rows.
    pub observations: usize,
    /// Samples that a function may get wrong; zero means that it must explain all.
    pub tolerance: usize,
    /// Samples that contradict the majority of their own row: no function of the row explains them.
    pub contradictions: usize,
    columns: Vec<Vec<u64>>,
    label_words: Vec<u64>,
}

impl Samples {
    /// Gathers equal rows; `tolerance_percent` of the samples may stay unexplained.
    pub fn new(
        width: usize,
        groups: Vec<Field>,
        list: impl IntoIterator<Item = (Row, bool)>,
        tolerance_percent: usize,
    ) -> Samples {
        let mut votes: BTreeMap<Row, [usize; 2]> = BTreeMap::new();
        for (row, label) in list {
            votes.entry(row).or_default()[usize::from(label)] += 1;
        }
        let observations: usize = votes.values().map(|vote| vote[0] + vote[1]).sum();
        let contradictions = votes.values().map(|vote| vote[0].min(vote[1])).sum();
        let rows: Vec<Row> = votes.keys().copied().collect();
        let labels: Vec<bool> = votes.values().map(|vote| vote[0] < vote[1]).collect();
        let words = rows.len().div_ceil(64);
        let mut columns = vec![vec![0u64; words]; width];
        let mut label_words = vec![0u64; words];
        for (position, row) in rows.iter().enumerate() {
            let bit = 1u64 << (position % 64);
            for (index, column) in columns.iter_mut().enumerate() {
                if row.get(index) {
                    column[position / 64] |= bit;
                }
            }
            if labels[position] {
                label_words[position / 64] |= bit;
            }
        }
        // Exceptions must stay few against the rarer label too, or "always the other" would explain anything.
        let ones = votes.values().map(|vote| vote[1]).sum::<usize>();
        let tolerance = (observations * tolerance_percent / 100).min(ones.min(observations - ones) / 3);
        Samples { width, groups, rows, labels, observations, tolerance, contradictions, columns, label_words }
    }

    /// The same labels for rows that are seen in another way. What becomes equal votes, row by row; exceptions are allowed
    /// as before, and as many observations stand behind all rows.
    pub fn seen_as(&self, width: usize, groups: Vec<Field>, see: impl Fn(&Row) -> Row) -> Samples {
        let list = self.rows.iter().zip(&self.labels).map(|(row, label)| (see(row), *label));
        let seen = Samples::new(width, groups, list, 0);
        Samples { observations: self.observations, tolerance: self.tolerance, ..seen }
    }

    /// How many distinct rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One bit of every row, 64 rows a word.
    pub fn column(&self, index: usize) -> &[u64] {
        &self.columns[index]
    }

    /// The labels, 64 a word.
    pub fn label_words(&self) -> &[u64] {
        &self.label_words
    }

    /// The rows that exist in this word of a column.
    pub fn mask(&self, word: usize) -> u64 {
        match self.len() - word * 64 {
            rest if rest < 64 => (1 << rest) - 1,
            _ => u64::MAX,
        }
    }

    /// How many rows a column of answers gets wrong.
    pub fn errors(&self, answers: &[u64]) -> usize {
        let wrong = |(word, answer): (usize, &u64)| {
            ((answer ^ self.label_words[word]) & self.mask(word)).count_ones() as usize
        };
        answers.iter().enumerate().map(wrong).sum()
    }

    /// Errors that may still be made on the rows after the contradictions within them.
    pub fn errors_allowed(&self) -> Option<usize> {
        self.tolerance.checked_sub(self.contradictions)
    }

    /// Bits that saying so many exceptions takes: about as many as saying which of the rows they are, where one in twenty is
    /// one. Of two functions that explain the rows within the tolerance, this tells the right one from its neighbour.
    pub fn exception_bits(&self, errors: usize) -> u32 {
        EXCEPTION_BITS.saturating_mul(u32::try_from(errors).unwrap_or(u32::MAX))
    }

    /// Whether `errors` on rows can be lived with.
    pub fn accepts(&self, errors: usize) -> bool {
        self.errors_allowed().is_some_and(|allowed| errors <= allowed)
    }

    /// The same rows with the labels of the chosen ones only.
    pub fn restrict(&self, keep: impl Fn(&Row) -> bool) -> Samples {
        let kept = self.rows.iter().zip(&self.labels).filter(|(row, _)| keep(row));
        let mut part =
            Samples::new(self.width, self.groups.clone(), kept.map(|(row, label)| (*row, *label)), 0);
        // Weights are gone, so a part is judged by rows; it gets the whole's share of errors.
        part.tolerance = part.observations * self.tolerance / self.observations.max(1);
        part
    }
}

/// Counted work: hypothesis search stops when it is used up, at the same point on every machine.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    left: u64,
    queries: Queries,
}

/// What one query for a smallest circuit may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queries {
    /// Conflicts for each size.
    pub conflicts: u32,
    /// Counterexamples over all sizes.
    pub rounds: u32,
}

impl Queries {
    /// What small circuits need.
    pub const DEFAULT: Queries = Queries { conflicts: 1_500, rounds: 1_000_000 };
}

impl Work {
    /// This many units; one is about one word operation.
    pub const fn new(units: u64) -> Work {
        Work::with_queries(units, Queries::DEFAULT)
    }

    /// The same with other means for queries.
    pub const fn with_queries(units: u64, queries: Queries) -> Work {
        Work { left: units, queries }
    }

    /// What one query for a smallest circuit may take.
    pub const fn queries(&self) -> Queries {
        self.queries
    }

    /// One part in as many of what is left, for one who must not take it all; what it spends is still to be taken.
    pub const fn share(&self, parts: u64) -> Work {
        Work { left: self.left / parts, queries: self.queries }
    }

    /// Takes units; false when there are not enough, and then nothing is left.
    pub fn spend(&mut self, units: u64) -> bool {
        match self.left.checked_sub(units) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.left = 0;
                false
            }
        }
    }

    /// Takes a share of at most this many units out of what is left.
    pub fn take(&mut self, units: u64) -> Work {
        let left = units.min(self.left);
        self.left -= left;
        Work { left, queries: self.queries }
    }

    /// Puts back what is left of a share.
    pub fn put_back(&mut self, share: Work) {
        self.left += share.left;
    }

    /// Units left.
    pub fn left(&self) -> u64 {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_vote_and_the_minority_is_counted() {
        let mut one = Row::default();
        one.set(70, true);
        let zero = Row::default();
        let list = [(one, true), (one, true), (one, true), (one, false), (zero, false), (zero, false)];
        let samples = Samples::new(80, vec![Field { low: 0, width: 80 }], list, 30);
        assert_eq!((samples.len(), samples.observations, samples.contradictions), (2, 6, 1));
        assert_eq!(samples.labels, [false, true]);
        assert_eq!(samples.column(70), [2]);
        assert_eq!(samples.errors(&[2]), 0);
        assert_eq!(samples.errors(&[1]), 2);
        assert!(samples.accepts(0) && !samples.accepts(1));
    }

    #[test]
    fn rows_that_come_again_let_more_samples_in() {
        let numbered = |number: u64| (Row([number, 0, 0, 0, 0, 0]), false);
        assert_eq!(latest((0..20_000).map(numbered)).count(), ROWS_FITTED_MAX);
        assert_eq!(latest((0..20_000).map(|number| numbered(number % 1_000))).count(), SAMPLES_FITTED_MAX);
    }

    #[test]
    fn work_runs_out_once_and_for_all() {
        let mut work = Work::new(10);
        assert!(work.spend(10));
        assert!(!work.spend(1));
        assert_eq!(work.left(), 0);
    }
}
