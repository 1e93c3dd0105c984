//! SHARED's TOOL_BUS: the slots of all kinds as the machine's own tables have them, for whoever only looks.
//!
//! The mirror is written at a barrier, from tables that no worker reaches, and nothing is ever read back from it. Must not know
//! workers. Clauses: TOOL-2; decision D-28.

use crate::bus::Completed;
use crate::layout::{REQUEST_WORDS, request};
use crate::limits::SLOTS;
use crate::word::Status;

/// A slot that is not empty, as the mirror shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// Which of its kind.
    pub slot: u16,
    /// The identifier of the kind, as a word.
    pub kind: u32,
    /// The operation.
    pub operation: u16,
    /// Its flags.
    pub flags: u16,
    /// The identifier of the resource, as a word.
    pub resource: u32,
    /// Bytes of the request.
    pub length: u32,
    /// Bytes that the response may have.
    pub capacity: u32,
    /// Bytes that it has.
    pub used: u32,
    /// Whether it is under way, done or failed.
    pub status: Status,
    /// The error, if it failed.
    pub error: u16,
    /// The generation of the slot.
    pub generation: u32,
    /// The request's number.
    pub number: u64,
}

/// The end of a request in its slot: it is seen there until the slot is used again or the mirror is written anew. `place` is
/// that of its kind among all kinds; pointers are those of whoever asked.
pub fn write_end(words: &mut [u64], place: usize, done: &Completed, pointers: (u64, u64)) {
    let entry = (place * SLOTS + usize::from(done.slot)) * REQUEST_WORDS;
    let Some(words) = words.get_mut(entry..entry + REQUEST_WORDS) else { return };
    let status = if done.error.is_some() { Status::Error } else { Status::Done };
    let code = done.error.map_or(0, |error| u64::from(error.0));
    words[request::KIND] =
        u64::from(done.kind.to_word()) | u64::from(done.operation) << 32 | u64::from(done.flags) << 48;
    words[request::RESOURCE] = words[request::RESOURCE] >> 32 << 32 | u64::from(done.resource.to_word());
    words[request::IN_POINTER] = pointers.0;
    words[request::OUT_POINTER] = pointers.1;
    words[request::OUT_CAPACITY] = u64::from(done.capacity) | (done.response.len() as u64) << 32;
    words[request::STATE] = status as u64 | code << 16 | u64::from(done.generation) << 32;
    words[request::NUMBER] = done.number;
}

/// The slots of a mirror that are not empty.
pub fn slots(words: &[u64]) -> Vec<Mirrored> {
    let read = |(place, entry): (usize, &[u64])| {
        let state = entry[request::STATE];
        let status = match state & 0xffff {
            1 => Status::Pending,
            2 => Status::Done,
            3 => Status::Error,
            _ => return None,
        };
        Some(Mirrored {
            slot: (place % SLOTS) as u16,
            kind: entry[request::KIND] as u32,
            operation: (entry[request::KIND] >> 32) as u16,
            flags: (entry[request::KIND] >> 48) as u16,
            resource: entry[request::RESOURCE] as u32,
            length: (entry[request::RESOURCE] >> 32) as u32,
            capacity: entry[request::OUT_CAPACITY] as u32,
            used: (entry[request::OUT_CAPACITY] >> 32) as u32,
            status,
            error: (state >> 16) as u16,
            generation: (state >> 32) as u32,
            number: entry[request::NUMBER],
        })
    };
    words.chunks_exact(REQUEST_WORDS).enumerate().filter_map(read).collect()
}
