//! The cost of choosing among sixteen arms.

use super::{Benchmark, Measurement, minimum_nanoseconds};
use bem_base::limits::ARMS_MAX;
use bem_base::prng::Prng;
use bem_learn::bucket::Bucket;
use bem_learn::index::Parameters;
use bem_learn::loss::Loss;
use std::hint::black_box;

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "index_choose_uncached",
        area: "choice",
        about: "all sixteen indices computed afresh, and the lowest taken",
        run: index_choose_uncached,
    },
    Benchmark {
        name: "index_update",
        area: "choice",
        about: "a loss booked, two indices recomputed, the cached best arm renewed",
        run: index_update,
    },
];

/// A bucket in the middle of its life: a hundred thousand Bernoulli losses, one arm better than the rest.
fn lived_in_bucket(parameters: &Parameters) -> Bucket {
    let mut bucket = Bucket::new(parameters, u16::MAX);
    let mut prng = Prng::stream(1, "bench/choice");
    for _ in 0..100_000 {
        let arm = bucket.choose();
        let percent = if arm == 11 { 40 } else { 50 };
        bucket.update(parameters, arm, Loss::from_bit(prng.below(100) < percent));
    }
    bucket
}

fn index_choose_uncached() -> anyhow::Result<Measurement> {
    let parameters = Parameters::DEFAULT;
    let mut bucket = lived_in_bucket(&parameters);
    let value = minimum_nanoseconds(400, 200, || {
        bucket.refresh(black_box(&parameters));
        black_box(bucket.choose());
    });
    let divisors: [u64; ARMS_MAX] = std::array::from_fn(|arm| 1_000 + arm as u64);
    let floor = minimum_nanoseconds(400, 200, || {
        let divisors = black_box(&divisors);
        black_box(divisors.iter().fold(0, |sum, divisor| sum ^ (u64::MAX / divisor)));
    });
    Ok(Measurement::new("index_choose_uncached", value, "ns", floor, "sixteen 64-bit divisions"))
}

fn index_update() -> anyhow::Result<Measurement> {
    let parameters = Parameters::DEFAULT;
    let mut bucket = lived_in_bucket(&parameters);
    let mut draw = 0u32;
    let value = minimum_nanoseconds(400, 200, || {
        draw = draw.wrapping_mul(0x915F_77F5).wrapping_add(1);
        let arm = bucket.choose();
        black_box(bucket.update(black_box(&parameters), arm, Loss::from_bit(draw >> 31 == 1)));
    });
    let divisors = [1_001u64, 999];
    let floor = minimum_nanoseconds(400, 200, || {
        let divisors = black_box(&divisors);
        black_box((u64::MAX / divisors[0]) ^ (u64::MAX / divisors[1]));
    });
    Ok(Measurement::new("index_update", value, "ns", floor, "two 64-bit divisions"))
}
