//! The tool bus without its edges: the catalog of resources, requests and their states, and what travels in them.
//!
//! A request is a descriptor and a payload in a mapping that the machine shares with the workers of one kind and with nobody
//! else ([`layout`]). Its state is one atomic word ([`word`]); the machine's side is [`bus`], the workers' side [`worker`].
//! Payloads are deterministic CBOR ([`cbor`], [`payload`]), resources are identifiers of the [`catalog`]. Everything that a
//! worker wrote is copied once and then checked. Must not know files, networks, clocks or threads: time is a number that the
//! caller gives. Clauses: TOOL-1 to TOOL-4, TOOL-9 to TOOL-13; decisions D-28, D-71 to D-73.

pub mod bus;
pub mod catalog;
pub mod cbor;
pub mod error;
pub mod layout;
pub mod limits;
pub mod mirror;
pub mod operation;
pub mod payload;
pub mod tables;
pub mod word;
pub mod worker;

/// The version of the layer, as the specification counts it; it stands in mappings, snapshots and on the socket.
pub const VERSION: (u16, u16, u16) = (0, 0, 1);

/// The version as one number: 16 bits each, the first highest.
pub const VERSION_WORD: u64 = (VERSION.0 as u64) << 32 | (VERSION.1 as u64) << 16 | VERSION.2 as u64;

/// The version in words.
pub const VERSION_TEXT: &str = "0.0.1";
