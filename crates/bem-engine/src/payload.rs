//! What the ledger keeps of a decision about a patch: the reasons, and of a patch in force everything that its condition
//! follows from.
//!
//! `docs/formats/ledger.md` draws the bytes. Structure is not in here: it follows from the patches before. Must not know
//! where the bytes go. Clauses: LOG-1, SCC-3, SCC-4.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_evolve::improvement::Evidence;
use bem_evolve::patch::Patch;

/// The version of the encoding, first byte of every payload.
const FORMAT: u8 = 2;

/// Reasons, and what is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// What the patch is, for people.
    pub words: String,
    /// Why it was turned down or taken back; empty if it was let in.
    pub reason: String,
    /// What was measured.
    pub evidence: Evidence,
    /// The patch and the world that its condition was shown for, if it was let in.
    pub accepted: Option<(Patch, Shape)>,
}

impl Payload {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(FORMAT);
        writer.text(&self.words);
        writer.text(&self.reason);
        self.evidence.encode(&mut writer);
        writer.bool(self.accepted.is_some());
        if let Some((patch, shape)) = &self.accepted {
            patch.encode(&mut writer);
            shape.encode(&mut writer);
        }
        writer.into_bytes()
    }

    /// Reads them back.
    pub fn from_bytes(bytes: &[u8]) -> Result<Payload, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign =
            reader.error("a patch written by another version of bem: its payload's format is not 2");
        if reader.u8()? != FORMAT {
            return Err(foreign);
        }
        let (words, reason) = (reader.text()?.to_string(), reader.text()?.to_string());
        let evidence = Evidence::decode(&mut reader)?;
        let accepted = if reader.bool()? {
            Some((Patch::decode(&mut reader)?, Shape::decode(&mut reader)?))
        } else {
            None
        };
        reader.finish()?;
        Ok(Payload { words, reason, evidence, accepted })
    }
}
