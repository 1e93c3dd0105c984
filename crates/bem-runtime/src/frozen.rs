//! The bytes of a service at one moment, taken without copying what is large and does not change.
//!
//! Whoever decides must not wait while a state is written. The learner's log is most of a state, and lies there as bytes already:
//! it is shared, not copied, and so are the decisions that are known; everything is put together by whoever writes it. Must not know
//! files or threads. Clause: LOG-4; decisions D-121, D-140.

use bem_base::encode::Writer;
use std::sync::Arc;

/// The learning half of a world as bytes, shared by all who keep it.
pub type Shared = Arc<Vec<u8>>;

/// Something that stays as it is and is turned into bytes later.
pub(crate) trait Later: core::fmt::Debug + Send {
    /// Writes the canonical bytes.
    fn write(&self, writer: &mut Writer);
}

/// What belongs into a gap.
#[derive(Debug)]
enum Gap {
    Shared(Shared),
    Later(Box<dyn Later>),
}

/// Canonical bytes with gaps, and what belongs into them.
#[derive(Debug, Default)]
pub struct Frozen {
    /// Everything that is copied.
    pub(crate) writer: Writer,
    /// Where in it something else belongs, in order.
    gaps: Vec<(usize, Gap)>,
}

impl Frozen {
    /// Bytes with their length, as [`Writer::bytes`] writes them, without a copy.
    pub(crate) fn share(&mut self, bytes: &Shared) {
        self.writer.length(bytes.len());
        self.gaps.push((self.writer.as_bytes().len(), Gap::Shared(Arc::clone(bytes))));
    }

    /// Something that is written when the bytes are put together.
    pub(crate) fn later(&mut self, part: Box<dyn Later>) {
        self.gaps.push((self.writer.as_bytes().len(), Gap::Later(part)));
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
        let (own, mut written) = (self.writer.as_bytes(), 0);
        let mut writer = Writer::new();
        for (place, gap) in &self.gaps {
            writer.raw(&own[written..*place]);
            match gap {
                Gap::Shared(shared) => writer.raw(shared),
                Gap::Later(part) => part.write(&mut writer),
            }
            written = *place;
        }
        writer.raw(&own[written..]);
        writer.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nine;

    impl Later for Nine {
        fn write(&self, writer: &mut Writer) {
            (0..9).for_each(|byte| writer.u8(byte));
        }
    }

    #[test]
    fn shared_bytes_stand_where_copied_ones_would() {
        let (large, other): (Shared, Shared) = (Arc::new(vec![7; 1_000]), Arc::new(vec![8; 3]));
        let mut frozen = Frozen::default();
        let mut copied = Writer::new();
        frozen.writer.u64(1);
        copied.u64(1);
        for shared in [&large, &other] {
            frozen.share(shared);
            frozen.later(Box::new(Nine));
            copied.bytes(shared);
            Nine.write(&mut copied);
        }
        frozen.writer.text("end");
        copied.text("end");
        assert!(frozen.copied() < 40, "{} bytes were copied", frozen.copied());
        assert_eq!(frozen.into_bytes(), copied.into_bytes());
    }
}
