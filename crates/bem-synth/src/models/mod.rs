//! Models of what happens: rewards per action, hidden states, and what follows what; policies are compiled
//! from them.

pub mod control;
pub mod graded;
pub mod joint;
pub mod levels;
pub mod linear;
pub mod mealy;
pub mod means;
pub mod reward;
