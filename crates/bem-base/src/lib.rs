//! Numbers, identifiers, random streams, canonical bytes and the contract between a learner and a world.
//!
//! The ground floor: every other crate stands on it and it stands on none of them. It must not know what a
//! circuit, a game or a bandit is. No floats, no clocks, no unordered maps.

pub mod calendar;
pub mod digest;
pub mod encode;
pub mod environment;
pub mod fixed;
pub mod forbidden;
pub mod ids;
pub mod lanes;
pub mod limits;
pub mod plain;
pub mod prng;
pub mod slots;
pub mod words;
