//! RULEGRID: a grid with ordered waypoints, hazards that drift, and rewards that may be delayed.
//!
//! The world of the phased commitment curriculum, usable on its own. `config` says what a grid is made of,
//! `world` runs it, `view` is all that an agent may see of it, `reference` plays it as well as anybody here can. Clause: CUR-3.

pub mod config;
pub mod reference;
pub mod view;
pub mod world;
