//! The user's own games: Gambit's normal and extensive forms, tabular decision processes, programs over pipes.
//!
//! Everything here reads text from outside: bounded, no panic, and errors name the line or the entry, the value and
//! what is allowed. Must not know files or processes; the application reads them. Clauses: GLE-9.

mod discount;
pub mod extensive;
mod hidden;
mod lexer;
pub mod mdp;
pub mod normal;
pub mod opponent;
pub mod pipe;
mod play_tree;

pub use opponent::Opponent;

use crate::game::Game;
use std::sync::Arc;

/// Size of a reward of one step, in milli-units: what a machine can be configured for. A world that pays more has to count
/// in larger units.
pub const REWARD_MAX: i32 = 250_000_000;
/// Bytes of a game file.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// Why a file is no game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Something is wrong at this line.
    #[error("line {line}: {reason}")]
    Line {
        /// Counted from one.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file reads well but says something impossible.
    #[error("{0}")]
    Content(String),
}

impl ImportError {
    fn line(line: usize, reason: impl Into<String>) -> ImportError {
        ImportError::Line { line, reason: reason.into() }
    }

    fn content(reason: impl Into<String>) -> ImportError {
        ImportError::Content(reason.into())
    }
}

/// What is wrong with a JSON text and at which column; the line is named by whoever asks, in the words of its own.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(reason) if 0 < error.column() => format!("column {}: {reason}", error.column()),
        Some(reason) => reason.to_string(),
        None => text,
    }
}

/// How a reward with a decimal point is written in milli-units.
fn milli_hint(reward: &serde_json::Value) -> Option<String> {
    let text = reward.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, part) = digits.split_once('.')?;
    let whole: i64 = whole.parse().ok()?;
    let part: i64 = format!("{part:0<3}").get(..3)?.parse().ok()?;
    let milli = whole.checked_mul(1_000)?.checked_add(part)?;
    Some(format!("{text} is written {}{milli}", if milli == 0 { "" } else { sign }))
}

/// The formats that are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Gambit's normal form.
    Normal,
    /// Gambit's extensive form.
    Extensive,
    /// A tabular decision process in JSON.
    Table,
}

impl Format {
    /// The format of a file with this name, by its ending.
    pub fn from_file_name(name: &str) -> Result<Format, ImportError> {
        match name.rsplit('.').next() {
            Some("nfg") => Ok(Format::Normal),
            Some("efg") => Ok(Format::Extensive),
            Some("json") => Ok(Format::Table),
            _ => {
                let text =
                    format!("{name:?} is no known game file: the name must end in .nfg, .efg or .json");
                Err(ImportError::Content(text))
            }
        }
    }
}

/// How a game of several players becomes a game for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The player that learns, counted from one.
    pub player: usize,
    /// How all others play.
    pub opponent: Opponent,
}

impl Default for Seat {
    fn default() -> Seat {
        Seat { player: 1, opponent: Opponent::default() }
    }
}

/// How named features of a game become bits, where the file names them.
pub fn encoder(format: Format, text: &str) -> Option<bem_data::Encoder> {
    match format {
        Format::Table => mdp::encoder(text),
        Format::Normal | Format::Extensive => None,
    }
}

/// Reads a game.
pub fn read(format: Format, text: &str, seat: &Seat) -> Result<Arc<dyn Game>, ImportError> {
    if FILE_BYTES_MAX < text.len() {
        let size = text.len();
        return Err(ImportError::Content(format!(
            "the file has {size} bytes; at most {FILE_BYTES_MAX} are allowed"
        )));
    }
    match format {
        Format::Normal => normal::read(text, seat),
        Format::Extensive => extensive::read(text, seat),
        Format::Table => mdp::read(text),
    }
}
