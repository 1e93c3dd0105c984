//! Choice rules over arms, in integers only.
//!
//! A rule sees visits, losses and a prior; it never learns what an arm stands for. Experts in a bucket,
//! templates in a band and schedules of activities are all chosen here. No floats, no clocks, no threads.
//! Clauses: VM-9, VM-10, VM-11, VM-12, VM-16.

mod as_printed;
pub mod bucket;
pub mod change;
pub mod group_advantage;
pub mod index;
pub mod laboratory;
pub mod linear_scheduler;
pub mod loss;
pub mod numeric;
pub mod rule;
pub mod schedule;
pub mod softmax;
pub mod switching;
pub mod tsallis_inf;
pub mod ucb_v;
pub mod wide;
pub mod wide_draw;
