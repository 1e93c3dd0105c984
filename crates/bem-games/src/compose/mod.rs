//! Games made of games: the operators, the tree that names a composition, and its text form.
//!
//! One file per operator; its first lines say what horizon, observation, reward, done and BAD of the whole are in
//! terms of the parts. What holds for all of them:
//!
//! - The observation is the operator's own field (which part or round this is), then one region of bits per part.
//!   A part that is not on turn shows zeros.
//! - Actions are numbered up to the least common multiple of the parts' counts and taken modulo the count of the
//!   part on turn, so that uniform play of the whole is uniform play of every part. [`par`] alone takes products.
//! - Rewards are paid as the parts pay them, BAD is raised when a part raises it, and the seeds of the parts
//!   are derived from the seed of the whole.
//! - Optimum, random value and steps of the whole follow exactly from those of the parts.
//!
//! Clauses: GLE-3.

pub mod branch;
pub mod interleave;
pub mod looped;
pub mod mask;
pub mod nest;
pub mod operator;
pub mod par;
mod parse;
mod relay;
pub mod repeat;
pub mod seq;
pub mod tree;

pub use operator::{Operator, operator, operators};
pub use tree::{NoPrograms, NodeKind, Programs, TaskTree};
