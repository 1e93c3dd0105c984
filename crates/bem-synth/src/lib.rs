//! From experience to circuits: a general grammar of hypotheses, blind to which game is played.
//!
//! What comes in is bits, own actions, rewards, dones, BAD flags and unnamed field widths; what goes out is
//! sequential circuits with a description length and a provenance. Must not know games, teacher or optima:
//! the crate cannot name them. Clauses: SCC-2; decisions D-34, D-35; the grammar is in `docs/grammar.md`.

pub mod credit;
pub mod experience;
pub mod function;
pub mod functions;
pub mod hypothesis;
pub mod labels;
pub mod lens;
pub mod library;
pub mod memory;
pub mod models;
pub mod policy;
pub mod propose;
pub mod samples;
pub mod screen;
pub mod statement;
pub mod surprise;
pub mod told;
pub mod transfer;
pub mod view;
