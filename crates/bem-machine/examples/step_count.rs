//! Takes a number of single-lane steps and says nothing: for counting instructions.
//!
//! ```text
//! valgrind --tool=callgrind step_count WARM STEPS
//! ```
//!
//! WARM steps come first, then STEPS more. The difference between two runs with the same WARM and different STEPS is
//! the cost of the steps between; comparing it at WARM = 10^4 and 10^7 shows whether cost grows (clause VM-14).
//! Without arguments it takes 1,000 and 1,000.

use bem_machine::testing::SingleWorkload;
use std::hint::black_box;

fn main() {
    let mut counts =
        std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a whole number of steps"));
    let (warm, steps) = (counts.next().unwrap_or(1_000), counts.next().unwrap_or(1_000));
    let mut workload = SingleWorkload::new(6);
    for _ in 0..warm + steps {
        black_box(workload.step());
    }
}
