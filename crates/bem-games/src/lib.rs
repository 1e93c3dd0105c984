//! Finite games with a known optimum; nothing here knows about learning.
//!
//! A [`game::Family`] is a kind of game with parameters, a [`game::Game`] is one of them with its hidden
//! choices made, and a running world is a [`bem_base::environment::Environment`], which is all that a learner
//! ever sees. Most families are written as [`rules::Rules`]. Clauses: GLE-1, GLE-2.

pub mod base_problem;
pub mod catalog;
pub mod compose;
pub mod conformance;
pub mod draw;
pub mod enumerate;
pub mod exact;
pub mod families;
pub mod game;
pub mod generated;
pub mod import;
pub mod playthrough;
pub mod rulegrid;
pub mod rules;
pub mod sliced;
pub mod wrappers;
