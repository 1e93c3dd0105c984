//! A log as bits: thresholds from its own quantiles, one bit for every comparison, word and flag.
//!
//! The grid is as fine as the bits of an observation allow; which of its comparisons matter is for the learners to find.

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
    /// Finds thresholds in these rows of the log and encodes all of it.
    pub fn new(log: &Log, grid_rows: &[u32]) -> Result<Design, DataError> {
        for thresholds in (1..=THRESHOLDS_MAX).rev() {
            let parts: Vec<(Feature, Code)> = (log.features.iter().enumerate())
                .map(|(place, feature)| (feature.clone(), code(log, grid_rows, place, feature, thresholds)))
                .collect();
            if let Ok(encoder) = Encoder::new(parts) {
                return Design::with(log, encoder);
            }
        }
        Err(DataError::new(format!(
            "{} features do not fit into {OBSERVATION_BITS_MAX} bits even with one comparison each: name fewer",
            log.features.len()
        )))
    }

    /// Encodes a log with an encoder that is there already.
    pub fn with(log: &Log, encoder: Encoder) -> Result<Design, DataError> {
        let rows: Vec<Bits> = log.rows.iter().map(|values| encoder.encode_values(values)).collect();
        let set = |bit: usize| (0..rows.len() as u32).filter(|row| rows[*row as usize].get(bit)).collect();
        let columns = (0..encoder.bits()).map(set).collect();
        Ok(Design { encoder, rows, columns })
    }
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
