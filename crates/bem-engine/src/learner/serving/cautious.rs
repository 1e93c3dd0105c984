//! The floor of a served world: whatever is tried is paid from what was gained, with many episodes open at once.
//!
//! An episode that is not the baseline's and has not brought its outcomes counts as if it had brought the least, so that late and
//! lost rewards never cost more than was allowed. Clauses: VM-16; decisions D-90, D-113.

use crate::learner::floor::{Advice, Floor};
use crate::start::Baseline;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_machine::turn::Turn;
use bem_synth::experience::Step;

/// The floor, and who is under way above it.
#[derive(Clone, Debug)]
pub(super) struct Cautious {
    floor: Floor,
    /// Episodes that are not the baseline's and are not complete.
    open: u64,
}

impl Cautious {
    pub(super) fn new(baseline: Baseline) -> Cautious {
        Cautious { floor: Floor::new(baseline), open: 0 }
    }

    /// Whether another episode may begin that is not the baseline's.
    pub(super) fn affords(&self, shape: &Shape) -> bool {
        self.floor.affords(shape, self.open)
    }

    /// An episode of this turn begins.
    pub(super) fn begin(&mut self, turn: Turn) {
        self.open += u64::from(turn != Turn::BASELINE);
    }

    /// An episode of this turn is complete.
    pub(super) fn book(&mut self, shape: &Shape, turn: Turn, total: i64) {
        let is_baseline = turn == Turn::BASELINE;
        self.open = self.open.saturating_sub(u64::from(!is_baseline));
        self.floor.book(shape, is_baseline, total);
    }

    /// What the baseline does for what is seen, with these steps behind it.
    pub(super) fn follow(&mut self, past: &[Step], observation: &Bits) -> Advice {
        self.floor.follow_anew(past, observation)
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        self.floor.encode(writer);
        writer.u64(self.open);
    }

    /// Reads canonical bytes back, for worlds of this shape.
    pub(super) fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<Cautious, DecodeError> {
        let malformed = reader.error("more episodes than anybody can have begun");
        let (floor, open) = (Floor::decode(shape, reader)?, reader.u64()?);
        if open < 1 << 48 { Ok(Cautious { floor, open }) } else { Err(malformed) }
    }
}
