//! A log as bits: thresholds from its own quantiles, one bit for every comparison, word and flag.
//!
//! The grid is as fine as the bits of an observation allow; which of its comparisons matter is for the learners to find. Cuts that
//! were found by what rows brought ([`crate::cuts`]) stand beside it, or alone.

use crate::cuts::{Cut, Test};
use crate::log::Log;
use bem_base::environment::Bits;
use bem_base::limits::OBSERVATION_BITS_MAX;
use bem_data::feature::Value;
use bem_data::grid::quantiles;
use bem_data::{Code, DataError, Decimal, Encoder, Feature, FeatureKind};

/// Thresholds of one number at most.
const THRESHOLDS_MAX: usize = 31;
/// Words of a choice that get a bit of their own at most; the most frequent ones.
const WORDS_MAX: usize = 32;

/// A log as bits.
#[derive(Clone, Debug)]
pub struct Design {
    /// How rows become bits.
    pub encoder: Encoder,
    /// The rows.
    pub rows: Vec<Bits>,
    /// For every bit the rows in which it is set.
    pub columns: Vec<Vec<u32>>,
}

impl Design {
    /// Finds thresholds in these rows of the log and encodes all of it; these cuts are among its comparisons.
    pub fn new(log: &Log, grid_rows: &[u32], cuts: &[Cut]) -> Result<Design, DataError> {
        for thresholds in (1..=THRESHOLDS_MAX).rev() {
            let code = |(place, feature): (usize, &Feature)| {
                let code = code(log, grid_rows, place, feature, thresholds);
                (feature.clone(), with_cuts(code, place, cuts))
            };
            if let Ok(encoder) = Encoder::new(log.features.iter().enumerate().map(code).collect()) {
                return Design::with(log, encoder);
            }
        }
        Err(DataError::new(format!(
            "{} features do not fit into {OBSERVATION_BITS_MAX} bits even with one comparison each: name fewer",
            log.features.len()
        )))
    }

    /// Encodes a log by these cuts alone.
    pub fn of(log: &Log, cuts: &[Cut]) -> Result<Design, DataError> {
        let code = |(place, feature): (usize, &Feature)| {
            let code = match &feature.kind {
                _ if cuts.iter().all(|cut| cut.feature != place) => Code::Unread,
                FeatureKind::Bit => Code::Bit,
                FeatureKind::Number { .. } => Code::Steps(Vec::new()),
                FeatureKind::Choice(_) => Code::Words(Vec::new()),
            };
            (feature.clone(), with_cuts(code, place, cuts))
        };
        Design::with(log, Encoder::new(log.features.iter().enumerate().map(code).collect())?)
    }

    /// The bit that answers a cut, which is among the comparisons.
    pub fn bit_of(&self, cut: &Cut) -> usize {
        let column = &self.encoder.columns()[cut.feature];
        let place = match (&column.code, cut.test) {
            (Code::Steps(thresholds), Test::AtLeast(threshold)) => {
                thresholds.iter().position(|own| *own == threshold)
            }
            (Code::Words(words), Test::Is(word)) => words.iter().position(|own| *own == word),
            _ => Some(0),
        };
        usize::from(column.low) + place.expect("a design has the cuts that it was made with")
    }

    /// Encodes a log with an encoder that is there already.
    pub fn with(log: &Log, encoder: Encoder) -> Result<Design, DataError> {
        let rows: Vec<Bits> = log.rows.iter().map(|values| encoder.encode_values(values)).collect();
        let set = |bit: usize| (0..rows.len() as u32).filter(|row| rows[*row as usize].get(bit)).collect();
        let columns = (0..encoder.bits()).map(set).collect();
        Ok(Design { encoder, rows, columns })
    }
}

/// A code with these cuts among its comparisons.
fn with_cuts(mut code: Code, place: usize, cuts: &[Cut]) -> Code {
    for cut in cuts.iter().filter(|cut| cut.feature == place) {
        match (&mut code, cut.test) {
            (Code::Steps(thresholds), Test::AtLeast(threshold)) => thresholds.push(threshold),
            (Code::Words(words), Test::Is(word)) => words.push(word),
            _ => {}
        }
    }
    match &mut code {
        Code::Steps(thresholds) => {
            thresholds.sort_unstable();
            thresholds.dedup();
        }
        Code::Words(words) => {
            words.sort_unstable();
            words.dedup();
        }
        _ => {}
    }
    code
}

fn code(log: &Log, grid_rows: &[u32], place: usize, feature: &Feature, thresholds: usize) -> Code {
    let values = || grid_rows.iter().map(|row| log.rows[*row as usize][place]);
    match &feature.kind {
        FeatureKind::Bit => Code::Bit,
        FeatureKind::Number { .. } => {
            let numbers: Vec<Decimal> = values()
                .filter_map(|value| match value {
                    Value::Number(number) => Some(number),
                    _ => None,
                })
                .collect();
            Code::Steps(quantiles(&numbers, thresholds))
        }
        FeatureKind::Choice(words) => {
            let mut counts: Vec<(usize, u16)> = (0..words.len() as u16).map(|word| (0, word)).collect();
            for value in values() {
                if let Value::Choice(word) = value {
                    counts[usize::from(word)].0 += 1;
                }
            }
            counts.sort_by_key(|(count, word)| (usize::MAX - count, *word));
            let most = WORDS_MAX.min(thresholds.max(2) + 1);
            let mut kept: Vec<u16> =
                counts.iter().filter(|(count, _)| 0 < *count).take(most).map(|(_, word)| *word).collect();
            kept.sort_unstable();
            // Of two words one bit says both.
            if words.len() == 2 {
                kept.truncate(1);
            }
            Code::Words(kept)
        }
    }
}
