//! Questions to people: what is asked, of whom, for how long, and what an answer says.
//!
//! [`kinds`] has the enumerations, [`control`] HINL_CONTROL and HINL_STATS, [`table`] the HINL_TASK table with leases and
//! deadlines, [`payload`] the five contexts and the five answers as deterministic CBOR ([`cbor`]), [`group`] several people
//! who are asked the same, [`windows`] how often may be asked. Nothing here changes what is learned: whoever owns the learner applies an answer.
//! Must not know HTTP, files, clocks, worlds or learners: time is the number of the input, and that a lease has run out is
//! said from outside. Clauses: HUM-1 to HUM-4; decisions D-29, D-76.

pub mod cbor;
pub mod control;
pub mod group;
pub mod kinds;
pub mod payload;
pub mod table;
pub mod windows;

/// Questions that may be open at once.
#[doc(alias = "H")]
pub const OPEN_MAX: usize = 256;
/// Bytes of what is shown with a question.
pub const CONTEXT_BYTES_MAX: usize = 16 << 10;
/// Bytes of an answer.
#[doc(alias = "answer_cap")]
pub const ANSWER_BYTES_MAX: usize = 1 << 10;
/// People who may be asked the same.
pub const QUORUM_MAX: u8 = 9;
/// People whose agreement is kept; those who answered least recently make room.
pub const PEOPLE_MAX: usize = 256;
/// Items of one ranking.
pub const RANKED_MAX: usize = 16;
