//! The learner's own history: the head of a digest chain over everything that happened, and the number of the last episode.
//! Clauses: LOG-1.

use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};

/// Chain and numbers.
#[derive(Clone, Debug)]
pub(super) struct History {
    chain: Digest,
    /// Episodes that are numbered, those brought along included.
    serial: u64,
}

impl History {
    /// Of a run that has this seed and has not begun.
    pub(super) fn new(seed: u64) -> History {
        History { chain: digest::hash_parts("bem/run", &[&seed.to_le_bytes()]), serial: 0 }
    }

    /// The head of the chain.
    pub(super) fn head(&self) -> &Digest {
        &self.chain
    }

    /// Adds a link to the chain.
    pub(super) fn link(&mut self, domain: &str, bytes: &[u8]) {
        self.chain = digest::hash_parts(domain, &[self.chain.as_bytes(), bytes]);
    }

    /// The number of the next episode that ends.
    pub(super) fn next_serial(&self) -> u64 {
        self.serial + 1
    }

    /// An episode has ended; its number.
    pub(super) fn count(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Numbers episodes on from those of another history; the chain goes on.
    pub(super) fn number_like(&mut self, other: &History) {
        self.serial = other.serial;
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.raw(self.chain.as_bytes());
        writer.u64(self.serial);
    }

    /// Reads canonical bytes back.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<History, DecodeError> {
        let chain = Digest::decode(reader)?;
        let malformed = reader.error("more episodes than any run can have played");
        let serial = reader.u64()?;
        if serial < 1 << 48 { Ok(History { chain, serial }) } else { Err(malformed) }
    }
}
