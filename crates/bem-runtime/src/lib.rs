//! The long-lived process without its edges: what comes in, the worlds that are served, and their history.
//!
//! Everything from outside is one [`input::Input`] with a number of its own; [`service::Service`] is a function of the inputs
//! so far, and [`book`] says which entries of the ledger follow from them. Rounds of learning are worked on elsewhere
//! ([`round::Job`]); that one begins and that its result takes effect are inputs too, so that a history is played again from its
//! inputs alone ([`history`]). Must not know HTTP, files, clocks or threads. Clauses: VM-13, LOG-1, LOG-4, LOG-5, IMG-1.

pub mod base;
pub mod book;
pub mod conditions;
mod delays;
pub mod frozen;
pub mod history;
pub mod input;
mod known;
pub mod limits;
pub mod offers;
pub mod people;
pub mod round;
pub mod service;
pub mod statistics;
pub mod tools;
pub mod world;
