//! A ring of bytes between whoever appends and whoever writes to disk.
//!
//! Room is given back only by [`Ring::release`], which is called once the store has taken the bytes: an entry can
//! never be overwritten before it is on disk, and a full ring is back-pressure, not loss. Clause: LOG-1.

/// Bytes that wait to be written. Invariant: `length <= bytes.len()`.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: Box<[u8]>,
    start: usize,
    length: usize,
}

impl Ring {
    /// An empty ring of this capacity.
    pub(crate) fn new(capacity: usize) -> Ring {
        Ring { bytes: vec![0; capacity].into_boxed_slice(), start: 0, length: 0 }
    }

    /// Bytes that wait.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Whether this many more bytes fit.
    pub(crate) fn has_room(&self, count: usize) -> bool {
        count <= self.bytes.len() - self.length
    }

    /// Appends; the caller has made sure of the room.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        assert!(self.has_room(bytes.len()));
        let mut end = self.start + self.length;
        if self.bytes.len() <= end {
            end -= self.bytes.len();
        }
        let first = bytes.len().min(self.bytes.len() - end);
        self.bytes[end..end + first].copy_from_slice(&bytes[..first]);
        self.bytes[..bytes.len() - first].copy_from_slice(&bytes[first..]);
        self.length += bytes.len();
    }

    /// The longest run of waiting bytes that is contiguous, oldest first.
    pub(crate) fn oldest(&self) -> &[u8] {
        let end = (self.start + self.length).min(self.bytes.len());
        &self.bytes[self.start..end]
    }

    /// Gives back the room of the oldest bytes, which the store has taken.
    pub(crate) fn release(&mut self, count: usize) {
        assert!(count <= self.length);
        self.start = (self.start + count) % self.bytes.len();
        self.length -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn bytes_come_out_in_order_and_only_a_release_makes_room() {
        let mut prng = bem_base::prng::Prng::stream(5, "ring");
        let (mut ring, mut model) = (Ring::new(37), VecDeque::new());
        let mut next = 0u8;
        for _ in 0..5_000 {
            let count = prng.below(20) as usize;
            if prng.bit() {
                assert_eq!(ring.has_room(count), model.len() + count <= 37);
                if ring.has_room(count) {
                    let bytes: Vec<u8> = (0..count).map(|index| next.wrapping_add(index as u8)).collect();
                    next = next.wrapping_add(count as u8);
                    ring.push(&bytes);
                    model.extend(bytes);
                }
            } else {
                let run = ring.oldest().to_vec();
                assert!(run.iter().eq(model.iter().take(run.len())));
                assert!(!run.is_empty() || model.is_empty());
                let count = count.min(run.len());
                ring.release(count);
                model.drain(..count);
            }
            assert_eq!(ring.length(), model.len());
        }
    }
}
