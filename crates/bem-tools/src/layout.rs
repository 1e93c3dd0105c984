//! Where everything is in a mapping: header, TOOL_REQ, a side table, and windows for payloads.
//!
//! A mapping is a slice of atomic words; both sides touch it by atomic loads and stores only, so that a worker that writes
//! where it should not changes bytes and breaks nothing. Pointers are byte offsets from the start of the mapping.
//!
//! ```text
//! header, 64 words    0 magic   1 version   2 kind   3 slots   4 first window (byte)   5 bytes of the mapping
//!                     6 doorbell of requests   7 doorbell of answers   8 stop   9 workers asleep   10 machine asleep
//! TOOL_REQ[q], 8      0 tool_kind_id 32 | op 16 | flags 16     1 resource_id 32 | in_len 32     2 in_ptr    3 out_ptr
//!                     4 out_cap 32 | zero                       5 state   6 request number       7 zero
//! TOOL_SIDE[q], 8     0 claim    1 used_bytes 32 | crc32 32     2 lease, in milliseconds         3 attempt
//!                     4..8 idempotence key
//! windows             small ones, then large ones
//! ```
//!
//! Clauses: TOOL-2, TOOL-3; decisions D-28, D-71.

use crate::limits::{PAYLOAD_FAST_MAX, PAYLOAD_MAX, SLOTS, WINDOWS_LARGE, WINDOWS_SMALL};
use crate::word::{AtomicU64, Ordering};

/// The first word of a mapping.
pub const MAGIC: u64 = u64::from_le_bytes(*b"BEMTOOL1");
/// Words of the header.
pub const HEADER_WORDS: usize = 64;
/// Words of a request, and of its side entry.
pub const REQUEST_WORDS: usize = 8;
/// The first request.
pub const REQUESTS_AT: usize = HEADER_WORDS;
/// The first side entry.
pub const SIDES_AT: usize = REQUESTS_AT + SLOTS * REQUEST_WORDS;
/// The first window.
pub const WINDOWS_AT: usize = SIDES_AT + SLOTS * REQUEST_WORDS;
/// Words of a small and of a large window.
pub const SMALL_WORDS: usize = PAYLOAD_FAST_MAX / 8;
/// See [`SMALL_WORDS`].
pub const LARGE_WORDS: usize = PAYLOAD_MAX / 8;
/// Words of a mapping.
pub const MAPPING_WORDS: usize = WINDOWS_AT + WINDOWS_SMALL * SMALL_WORDS + WINDOWS_LARGE * LARGE_WORDS;

/// Words of the header.
pub mod header {
    /// What it is.
    pub const MAGIC: usize = 0;
    /// Which version.
    pub const VERSION: usize = 1;
    /// The tool kind's identifier.
    pub const KIND: usize = 2;
    /// How many slots.
    pub const SLOTS: usize = 3;
    /// Where windows begin, in bytes.
    pub const WINDOWS: usize = 4;
    /// Bytes of the mapping.
    pub const BYTES: usize = 5;
    /// Counts requests; its low half is what workers sleep on.
    pub const REQUEST_BELL: usize = 6;
    /// Counts answers; its low half is what the machine sleeps on.
    pub const ANSWER_BELL: usize = 7;
    /// Not zero when workers shall leave.
    pub const STOP: usize = 8;
    /// How many workers sleep.
    pub const WORKERS_ASLEEP: usize = 9;
    /// Whether somebody waits for answers.
    pub const MACHINE_ASLEEP: usize = 10;
}

/// Words of a request.
pub mod request {
    /// Kind, operation, flags.
    pub const KIND: usize = 0;
    /// Resource, length of the payload.
    pub const RESOURCE: usize = 1;
    /// Where the payload is.
    pub const IN_POINTER: usize = 2;
    /// Where the response goes.
    pub const OUT_POINTER: usize = 3;
    /// Room for it.
    pub const OUT_CAPACITY: usize = 4;
    /// Status, error, generation.
    pub const STATE: usize = 5;
    /// The request's number.
    pub const NUMBER: usize = 6;
}

/// Words of a side entry.
pub mod side {
    /// Who works on it.
    pub const CLAIM: usize = 0;
    /// Length and checksum of the response.
    pub const USED: usize = 1;
    /// Milliseconds that a worker may take.
    pub const LEASE: usize = 2;
    /// How often it was tried before.
    pub const ATTEMPT: usize = 3;
    /// Four words of key.
    pub const KEY: usize = 4;
}

/// The place of a word of a request.
pub const fn request_word(slot: usize, word: usize) -> usize {
    REQUESTS_AT + slot * REQUEST_WORDS + word
}

/// The place of a word of a side entry.
pub const fn side_word(slot: usize, word: usize) -> usize {
    SIDES_AT + slot * REQUEST_WORDS + word
}

/// A window: its first word, and whether it is a large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first word.
    pub word: u32,
    /// Whether it is a large one.
    pub is_large: bool,
}

impl Window {
    /// The small window of this number.
    pub const fn small(index: usize) -> Window {
        Window { word: (WINDOWS_AT + index * SMALL_WORDS) as u32, is_large: false }
    }

    /// The large window of this number.
    pub const fn large(index: usize) -> Window {
        let first = WINDOWS_AT + WINDOWS_SMALL * SMALL_WORDS;
        Window { word: (first + index * LARGE_WORDS) as u32, is_large: true }
    }

    /// The byte where it begins.
    pub const fn pointer(self) -> u64 {
        self.word as u64 * 8
    }
}

/// Copies bytes into the mapping. The place must be within it and a multiple of 8.
pub fn write_bytes(words: &[AtomicU64], pointer: u64, bytes: &[u8]) {
    let first = pointer as usize / 8;
    let mut chunks = bytes.chunks_exact(8);
    let mut place = first;
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("chunks have eight bytes"));
        words[place].store(word, Ordering::Relaxed);
        place += 1;
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words[place].store(u64::from_le_bytes(last), Ordering::Relaxed);
    }
}

/// Copies bytes out of the mapping; nothing if the place is not within it or no multiple of 8.
pub fn read_bytes(words: &[AtomicU64], pointer: u64, length: usize, into: &mut Vec<u8>) -> bool {
    into.clear();
    let Ok(first) = usize::try_from(pointer / 8) else { return false };
    let end = first.checked_add(length.div_ceil(8));
    if !pointer.is_multiple_of(8) || PAYLOAD_MAX < length || end.is_none_or(|end| words.len() < end) {
        return false;
    }
    into.reserve(length.next_multiple_of(8));
    for word in &words[first..first + length.div_ceil(8)] {
        into.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    into.truncate(length);
    true
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

/// The checksum of a response: CRC-32 as zlib computes it. It finds accidents; digests in the ledger name contents.
pub fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| CRC_TABLE[((crc ^ u32::from(*byte)) & 0xFF) as usize] ^ crc >> 8;
    !bytes.iter().fold(!0, step)
}

/// Memory that the machine and the workers of one kind share.
pub trait Mapping {
    /// The words.
    fn words(&self) -> &[AtomicU64];

    /// Wakes whoever sleeps on one of the bells; the word of the bell was changed before.
    fn wake(&self, _bell: usize) {}
}

impl Mapping for Vec<AtomicU64> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

impl<M: Mapping + ?Sized> Mapping for std::sync::Arc<M> {
    fn words(&self) -> &[AtomicU64] {
        (**self).words()
    }

    fn wake(&self, bell: usize) {
        (**self).wake(bell);
    }
}

/// Rings a bell, and wakes if somebody sleeps.
pub fn ring(mapping: &impl Mapping, bell: usize, asleep: usize) {
    let words = mapping.words();
    words[bell].fetch_add(1, Ordering::SeqCst);
    if words[asleep].load(Ordering::SeqCst) != 0 {
        mapping.wake(bell);
    }
}

/// A mapping in this process's own memory, for tests and for buses that nobody else sees.
pub fn private() -> Vec<AtomicU64> {
    (0..MAPPING_WORDS).map(|_| AtomicU64::new(0)).collect()
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_zlib() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn bytes_come_back_and_places_outside_are_refused() {
        let words = private();
        let bytes: Vec<u8> = (0..=250).collect();
        let pointer = Window::small(3).pointer();
        write_bytes(&words, pointer, &bytes);
        let mut back = Vec::new();
        assert!(read_bytes(&words, pointer, bytes.len(), &mut back));
        assert_eq!(back, bytes);
        let end = 8 * MAPPING_WORDS as u64;
        for (pointer, length) in
            [(pointer + 1, 8), (end, 8), (end - 8, 9), (u64::MAX - 7, 8), (0, PAYLOAD_MAX + 1)]
        {
            assert!(!read_bytes(&words, pointer, length, &mut back), "{pointer} {length}");
        }
        assert_eq!(Window::large(WINDOWS_LARGE - 1).word as usize + LARGE_WORDS, MAPPING_WORDS);
    }
}
