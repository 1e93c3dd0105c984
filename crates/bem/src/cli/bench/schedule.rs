//! What each scheduler gets where synthesis pays only through the verification that follows it.

use super::{Benchmark, Measurement};
use bem_base::fixed::Fixed;
use bem_learn::index::Parameters;
use bem_learn::laboratory::play_schedule;
use bem_learn::linear_scheduler::LinearParameters;
use bem_learn::schedule::Scheduler;

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "scheduler_reward",
    area: "schedule",
    about: "mean reward of cyclic schedules, of single activities and of Algorithm D",
    run: scheduler_reward,
}];

const UNITS: u64 = 1_000_000;

fn scheduler_reward() -> anyhow::Result<Measurement> {
    let plain = Parameters { change: None, ..Parameters::DEFAULT };
    let reward = |mut scheduler: Scheduler| {
        play_schedule(&mut scheduler, 1, UNITS).to_raw() as f64 / Fixed::ONE.to_raw() as f64
    };
    let schedules = reward(Scheduler::schedules(plain, 16));
    Ok(Measurement::new(
        "scheduler_reward",
        schedules,
        "reward/unit",
        0.5,
        "the best cycle: synthesise, verify",
    )
    .with("activities", reward(Scheduler::activities(plain)))
    .with("linear", reward(Scheduler::linear(LinearParameters::DEFAULT))))
}
