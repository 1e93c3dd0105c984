//! What was tried before and need not be tried again: refused changes, and experts that cannot be made smaller.

use crate::patch::Change;
use crate::verify::EvidenceKind;
use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use std::collections::BTreeSet;

/// Notes of each sort; when there are more, all are forgotten, which costs work and nothing else.
pub const NOTES_MAX: usize = 1_024;

/// Notes of one family's proposers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notebook {
    /// Changes that were refused. They are part of every saved state; no proposer reads them.
    refused: BTreeSet<Digest>,
    smallest: BTreeSet<u32>,
}

impl Notebook {
    /// Notes that a change was refused. One that rests on statistics may come again, because these grow.
    pub fn note_refused(&mut self, change: &Change) {
        if EvidenceKind::of_change(change) == EvidenceKind::Statistics {
            return;
        }
        if NOTES_MAX <= self.refused.len() {
            self.refused.clear();
        }
        self.refused.insert(digest_of(change));
    }

    /// Notes that nothing smaller was found for the expert with this identifier.
    pub fn note_smallest(&mut self, expert: u32) {
        if NOTES_MAX <= self.smallest.len() {
            self.smallest.clear();
        }
        self.smallest.insert(expert);
    }

    /// Whether nothing smaller was found for this expert.
    pub fn is_smallest(&self, expert: u32) -> bool {
        self.smallest.contains(&expert)
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.refused.len());
        self.refused.iter().for_each(|digest| writer.raw(digest.as_bytes()));
        writer.length(self.smallest.len());
        self.smallest.iter().for_each(|expert| writer.u32(*expert));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Notebook, DecodeError> {
        let start = reader.clone();
        let mut notebook = Notebook::default();
        let count = reader.length(32)?;
        for _ in 0..count {
            let digest = Digest::decode(reader)?;
            if notebook.refused.last().is_some_and(|last| digest <= *last) || NOTES_MAX < count {
                return Err(start.error("notes out of order or too many"));
            }
            notebook.refused.insert(digest);
        }
        let count = reader.length(4)?;
        for _ in 0..count {
            let expert = reader.u32()?;
            if notebook.smallest.last().is_some_and(|last| expert <= *last) || NOTES_MAX < count {
                return Err(start.error("notes out of order or too many"));
            }
            notebook.smallest.insert(expert);
        }
        Ok(notebook)
    }
}

fn digest_of(change: &Change) -> Digest {
    let mut writer = Writer::new();
    change.encode(&mut writer);
    digest::hash_parts("bem/change", &[writer.as_bytes()])
}
