//! The edges of the tool bus: sealed mappings and the socket that passes them, the catalog's file, and the tools themselves.
//!
//! [`host`] puts a bus, its workers and the socket together; [`files`], [`database`] and their like do the work of one kind
//! each. This crate sees files, processes, clocks and threads; nothing of them reaches the machine but answers. Must not know
//! how anything is learned. Clauses: TOOL-1, TOOL-3 to TOOL-8; decisions D-28, D-71 to D-75.

pub mod cache;
pub mod catalog_file;
pub mod database;
pub mod files;
pub mod host;
pub mod http;
pub mod json;
pub mod mapping;
pub mod model;
pub mod people;
pub mod process;
pub mod prover;
pub mod redact;
pub mod resolve;
pub mod sandbox;
pub mod schema;
pub mod simulator;
pub mod socket;
pub mod work;
