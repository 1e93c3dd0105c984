//! The cost of a step: one lane, and 256 lanes at a time.

use super::{Benchmark, Measurement, minimum_nanoseconds};
use bem_base::limits::LANES;
use bem_machine::testing::{LaneWorkload, SingleWorkload};
use std::hint::black_box;

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "step_single",
        area: "step",
        about: "one lane: choice, 64-gate expert, world, trace records, learning; 64 buckets, pool of 16",
        run: step_single,
    },
    Benchmark {
        name: "step_batched",
        area: "step",
        about: "256 lanes, each routed on its own: 1,024 buckets, pool of 16, trace and learning",
        run: step_batched,
    },
    Benchmark {
        name: "step_batched_few_buckets",
        area: "step",
        about: "256 lanes grouped by 16 buckets, pool of 16, trace and learning",
        run: step_batched_few_buckets,
    },
];

/// Steps before measuring, so that statistics, caches and branch predictors are in their working state.
const WARM_STEPS: u32 = 200_000;

fn step_single() -> anyhow::Result<Measurement> {
    let mut workload = SingleWorkload::new(6);
    for _ in 0..WARM_STEPS {
        workload.step();
    }
    let value = minimum_nanoseconds(400, 500, || {
        black_box(workload.step());
    });
    let mut world = SingleWorkload::new(6);
    let mut action = 0u16;
    let floor = minimum_nanoseconds(400, 500, || {
        world.prepare();
        action = action.wrapping_add(1);
        black_box(world.step_world(black_box(action)));
    });
    Ok(Measurement::new("step_single", value, "ns", floor, "the world alone"))
}

/// Lane-steps per second of a workload, beside those of the same lanes with one expert and one bucket.
fn lanes_per_second(name: &'static str, depth: usize, warm: u32) -> anyhow::Result<Measurement> {
    let rate = |experts: usize, depth: usize, warm: u32| {
        let mut workload = LaneWorkload::new(experts, depth, 4);
        for _ in 0..warm {
            workload.step();
        }
        let nanoseconds = minimum_nanoseconds(400, 64, || {
            black_box(workload.step());
        });
        LANES as f64 * 1e9 / nanoseconds
    };
    let value = rate(15, depth, warm);
    let peak = rate(1, 0, 2_000);
    Ok(Measurement::new(name, value, "lane-steps/s", peak, "one expert for all lanes, one bucket"))
}

fn step_batched() -> anyhow::Result<Measurement> {
    lanes_per_second("step_batched", 10, 400_000)
}

fn step_batched_few_buckets() -> anyhow::Result<Measurement> {
    lanes_per_second("step_batched_few_buckets", 4, 100_000)
}
