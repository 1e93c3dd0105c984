//! The control core: how many instructions a second its interpreter runs.

use super::{Benchmark, Measurement, minimum_nanoseconds};
use bem_isa::assemble::assemble;
use bem_isa::interpreter::{Core, NoCoprocessor, SegmentStarts};
use bem_isa::memory::Memory;
use std::hint::black_box;

/// Benchmarks of this area.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "isa_interpreter",
    area: "isa",
    about: "instructions a second, mixed arithmetic, memory and branches",
    run: interpreter,
}];

/// A loop of sixteen instructions: arithmetic, shifts, loads, stores, a predicate and a branch.
const LOOP: &str = "
    li x1, 20000
    li x2, 64
    li x3, 12345
again:
    add x4, x3, x1
    xor x3, x4, x3
    shl x5, x3, 7
    xor x3, x3, x5
    shr x5, x3, 9
    xor x3, x3, x5
    mullo x6, x3, x2
    and x7, x6, x2
    st x3, [x2 + 8]
    ld x8, [x2 + 8]
    sub x9, x8, x3
    pltu p1, x6, x3
    sel x10, x6, x3, p1
    or x11, x10, x7
    addi x1, x1, -1
    bne x1, x0, again
";

fn interpreter() -> anyhow::Result<Measurement> {
    let program = assemble(LOOP)?;
    let mut executed = 0;
    let nanoseconds = minimum_nanoseconds(20, 1, || {
        let (mut shared, mut state) = (vec![0; 64], vec![0; 4]);
        let mut core = Core::new(&program, 1, SegmentStarts::default());
        let mut memory = Memory::open(&mut shared, &mut state);
        core.run(&program, &mut memory, &mut NoCoprocessor, 1_000_000).expect("the loop ends");
        executed = core.executed;
        black_box(core.x[3]);
    });
    // The floor is the same loop as the compiler lays it down: what no interpreter can reach.
    let native = minimum_nanoseconds(20, 1, || {
        let (mut x1, x2, mut x3) = (black_box(20_000u64), black_box(64u64), black_box(12_345u64));
        let (mut x9, mut x11) = (0, 0);
        let mut memory = [0u64; 64];
        while x1 != 0 {
            x3 ^= x3.wrapping_add(x1);
            x3 ^= x3 << 7;
            x3 ^= x3 >> 9;
            let x6 = x3.wrapping_mul(x2);
            // The place is opaque, so that the compiler really stores and really loads.
            memory[black_box(9)] = x3;
            x9 = memory[black_box(9)].wrapping_sub(x3);
            x11 = if x6 < x3 { x6 } else { x3 } | (x6 & x2);
            x1 -= 1;
        }
        black_box((x3, x9, x11));
    });
    let rate = executed as f64 / nanoseconds * 1e9;
    let floor = executed as f64 / native * 1e9;
    Ok(Measurement::new("isa_interpreter", rate, "instructions/s", floor, "the same loop compiled"))
}
