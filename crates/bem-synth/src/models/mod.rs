//! Models of what happens: rewards per action, and what follows what; policies are compiled from them.

pub mod reward;
