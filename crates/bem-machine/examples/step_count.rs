//! Takes a number of steps and says nothing: for counting instructions.
//!
//! ```text
//! valgrind --tool=callgrind step_count WARM STEPS [single | lanes | groups]
//! ```
//!
//! WARM steps come first, then STEPS more. The difference between two runs with the same WARM and different STEPS is
//! the cost of the steps between; comparing it at WARM = 10^4 and 10^7 shows whether cost grows (clause VM-14).
//! Without arguments it takes 1,000 and 1,000 single-lane steps; `lanes` and `groups` step 256 lanes at a time with
//! 1,024 and with 16 buckets.

use bem_machine::testing::{LaneWorkload, SingleWorkload};
use std::hint::black_box;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = |place: usize| match arguments.get(place) {
        Some(text) => text.parse::<u64>().expect("a whole number of steps"),
        None => 1_000,
    };
    let steps = count(0) + count(1);
    let mut lanes = match arguments.get(2).map(String::as_str) {
        Some("lanes") => LaneWorkload::new(15, 10, 4),
        Some("groups") => LaneWorkload::new(15, 4, 4),
        _ => {
            let mut single = SingleWorkload::new(6);
            for _ in 0..steps {
                black_box(single.step());
            }
            return;
        }
    };
    for _ in 0..steps {
        black_box(lanes.step());
    }
}
