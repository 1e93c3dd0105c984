//! Data of one's own: named features, exact decimals, tables as text, and their encoding as observation bits.
//!
//! A world or a log declares features ([`feature`]): numbers, choices and bits, each with a name. An [`encoder`] turns one
//! row of values into observation bits: a number becomes comparisons with thresholds ([`grid`] finds them, [`seen`] anew where
//! values crowd in a few), a choice a field. The encoder is data: it is stored with what was learned over it, and it names every
//! bit (`temp >= 21.5`). Rules over
//! features say what is BAD and what must never be done ([`declared`]).
//! Must not know learning, games or files. Clauses: GLE-9.

pub mod decimal;
pub mod declared;
pub mod encoder;
pub mod feature;
pub mod grid;
pub mod rule;
pub mod seen;
pub mod table;
pub mod values;

pub use decimal::Decimal;
pub use declared::Declared;
pub use encoder::{Code, Column, Encoder, NumberCode};
pub use feature::{Feature, FeatureKind};
pub use rule::Rule;
pub use table::Table;

/// Why data cannot be taken. Every message names the field, the value and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DataError(String);

impl DataError {
    /// An error with these words.
    pub fn new(words: impl Into<String>) -> DataError {
        DataError(words.into())
    }
}
