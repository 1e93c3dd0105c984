//! Which task comes next: templates, mutation, bands and the ladder.
//!
//! The [`teacher::Teacher`] keeps templates in cells of (domain, band), chooses among them with the bandit core
//! of `bem-learn`, and learns from what came of each task. [`ladder`] says what is easy and what is hard. Nothing
//! here knows circuits. Clauses: GLE-2, GLE-4, GLE-5, GLE-6, GLE-7, GLE-8, GLE-10, LOG-6.

mod candidates;
mod chosen;
pub mod controller;
pub mod difficulty;
mod encode;
pub mod extract;
pub mod fit;
pub mod focus;
pub mod laboratory;
pub mod ladder;
pub mod mutate;
pub mod order;
pub mod teacher;
pub mod template;
