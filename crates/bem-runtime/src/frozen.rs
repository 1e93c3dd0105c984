//! The bytes of a service at one moment, taken without copying what is large and does not change.
//!
//! Whoever decides must not wait while a state is written. The learner's log is most of a state, and lies there as bytes already:
//! it is shared, not copied; everything is put together by whoever writes it. Must not know files or threads.
//! Clause: LOG-4; decision D-121.

use bem_base::encode::Writer;
use std::sync::Arc;

/// The learning half of a world as bytes, shared by all who keep it.
pub type Shared = Arc<Vec<u8>>;

/// Canonical bytes with gaps, and what belongs into them.
#[derive(Debug, Default)]
pub struct Frozen {
    /// Everything that is copied.
    pub(crate) writer: Writer,
    /// Where in it shared bytes belong, in order.
    gaps: Vec<(usize, Shared)>,
}

impl Frozen {
    /// Bytes with their length, as [`Writer::bytes`] writes them, without a copy.
    pub(crate) fn share(&mut self, bytes: &Shared) {
        self.writer.length(bytes.len());
        self.gaps.push((self.writer.as_bytes().len(), Arc::clone(bytes)));
    }

    /// How many bytes these are.
    pub fn length(&self) -> usize {
        self.writer.as_bytes().len() + self.gaps.iter().map(|(_, shared)| shared.len()).sum::<usize>()
    }

    /// Bytes that were copied to take them.
    pub fn copied(&self) -> usize {
        self.writer.as_bytes().len()
    }

    /// The canonical bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        if self.gaps.is_empty() {
            return self.writer.into_bytes();
        }
        let mut bytes = Vec::with_capacity(self.length());
        let (own, mut written) = (self.writer.as_bytes(), 0);
        for (place, shared) in &self.gaps {
            bytes.extend_from_slice(&own[written..*place]);
            bytes.extend_from_slice(shared);
            written = *place;
        }
        bytes.extend_from_slice(&own[written..]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_bytes_stand_where_copied_ones_would() {
        let (large, other): (Shared, Shared) = (Arc::new(vec![7; 1_000]), Arc::new(vec![8; 3]));
        let mut frozen = Frozen::default();
        let mut copied = Writer::new();
        frozen.writer.u64(1);
        copied.u64(1);
        for shared in [&large, &other] {
            frozen.share(shared);
            copied.bytes(shared);
        }
        frozen.writer.text("end");
        copied.text("end");
        assert_eq!(frozen.length(), copied.as_bytes().len());
        assert!(frozen.copied() < 40, "{} bytes were copied", frozen.copied());
        assert_eq!(frozen.into_bytes(), copied.into_bytes());
    }
}
