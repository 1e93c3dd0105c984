//! The policy machine: memory, configuration, experts, routing and the step.
//!
//! Given observation bits it chooses an expert, lets the expert's circuit act, and learns from the reward, in
//! constant work per step. Must not know any game, prover or file. Clauses: MEM-1 to MEM-4, VM-1 to VM-17.

pub mod boot;
pub mod config;
pub mod cost;
pub mod expert;
pub mod family;
pub mod guard;
pub mod held;
pub mod layout;
pub mod machine;
pub mod memory;
pub mod payoff;
pub mod route;
pub mod step;
pub mod testing;
pub mod trace;
pub mod turn;
