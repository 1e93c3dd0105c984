//! Circuits: how fast they run, compiled and interpreted, and how long compiling takes.
//!
//! The subject is a random circuit of 64 gates, 16 inputs and eight outputs with masked write-back; the yardstick is
//! machine code of nothing but vector logic, run beside it.

use super::{Benchmark, Measurement, minimum_nanoseconds};
use anyhow::{Context, bail};
use bem_base::limits::LANES;
use bem_base::prng::Prng;
use bem_circuit::compile::{Evaluator, logic_peak};
use bem_circuit::interpret::Interpreted;
use bem_circuit::lanes::LaneWord;
use bem_circuit::placed::{Evaluate, PlacedCircuit, Placement, Scratch};
use bem_circuit::testing::random_dense_netlist;
use std::hint::black_box;

/// Benchmarks of this area.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "jit_peak_fraction",
        area: "circuits",
        about: "compiled gates as a share of the peak rate of vector logic; 64 gates, masked write-back",
        run: jit_peak_fraction,
    },
    Benchmark {
        name: "jit_compile",
        area: "circuits",
        about: "time to compile a circuit of 64 gates, executable memory included",
        run: jit_compile,
    },
    Benchmark {
        name: "interpreter_lane_gates",
        area: "circuits",
        about: "gates times lanes a second, interpreted, 256 lanes",
        run: interpreter_lane_gates,
    },
];

const GATES: usize = 64;
/// Circuits measured; the mean over them is reported, so that one lucky circuit does not count.
const CIRCUITS: usize = 8;
/// Blocks of lanes taken in turn, as a batched run does.
const BLOCKS: usize = 8;
const PLANES: usize = 32;
/// Times that both sides of a ratio are measured in turn.
const ROUNDS: usize = 40;

fn circuits() -> anyhow::Result<Vec<PlacedCircuit>> {
    let mut prng = Prng::stream(1, "bench circuits");
    let reads: Vec<u16> = (0..16).collect();
    let writes: Vec<u16> = (16..24).collect();
    (0..CIRCUITS)
        .map(|_| {
            let circuit = random_dense_netlist(&mut prng, 16, GATES, 8);
            Ok(PlacedCircuit::new(circuit, Placement::on_planes(&reads, &writes), 1_000)?)
        })
        .collect()
}

/// The least time of one evaluation over one block, in nanoseconds.
fn evaluation(evaluator: &impl Evaluate, trials: u32) -> f64 {
    let mut state = vec![LaneWord::ONES; BLOCKS * PLANES];
    let mask = black_box(LaneWord::first(200));
    let mut scratch = Scratch::new();
    let all = minimum_nanoseconds(trials, 10, || {
        for block in state.chunks_exact_mut(PLANES) {
            evaluator.evaluate(block, &mask, &mut [], &mut scratch);
        }
        black_box(&mut state);
    });
    all / BLOCKS as f64
}

/// The least time of one vector logic operation, in nanoseconds.
fn logic_operation() -> anyhow::Result<f64> {
    const OPERATIONS: usize = 2_048;
    let peak = logic_peak(OPERATIONS).context("this machine has no AVX2: nothing is compiled here")?;
    let mut scratch = Scratch::new();
    let all =
        minimum_nanoseconds(3_000, 4, || peak.evaluate(&mut [], &LaneWord::ONES, &mut [], &mut scratch));
    Ok(all / OPERATIONS as f64)
}

fn jit_peak_fraction() -> anyhow::Result<Measurement> {
    let mut compiled = Vec::new();
    for circuit in circuits()? {
        let evaluator = Evaluator::new(&circuit);
        let Evaluator::Compiled(code) = evaluator else { bail!("the system gives no executable memory") };
        compiled.push(code);
    }
    // A few milliseconds each, in turn: a slow spell of the machine must not fall on one side of the ratio alone.
    let mut operation = f64::INFINITY;
    let mut least = [f64::INFINITY; CIRCUITS];
    for _ in 0..ROUNDS {
        operation = operation.min(logic_operation()?);
        for (least, code) in least.iter_mut().zip(&compiled) {
            *least = least.min(evaluation(code, 1_000));
        }
    }
    let nanoseconds = least.iter().sum::<f64>() / CIRCUITS as f64;
    let lane_rate = |count: usize, nanoseconds: f64| (count * LANES) as f64 / nanoseconds * 1e9;
    let (rate, peak) = (lane_rate(GATES, nanoseconds), lane_rate(1, operation));
    let floor_name = "peak rate of AVX2 logic";
    Ok(Measurement::new("jit_peak_fraction", rate / peak, "of the peak", 1.0, floor_name)
        .with("nanoseconds", nanoseconds)
        .with("lane_gates_per_second", rate)
        .with("peak_lane_operations_per_second", peak))
}

fn jit_compile() -> anyhow::Result<Measurement> {
    let circuits = circuits()?;
    let compile = minimum_nanoseconds(300, 1, || {
        for circuit in &circuits {
            black_box(Evaluator::new(black_box(circuit)));
        }
    });
    // Packed into one piece of memory, as a pool of experts is, the calls to the system are shared.
    let packed = minimum_nanoseconds(300, 1, || {
        black_box(Evaluator::for_all(black_box(&circuits)));
    });
    let assemble = minimum_nanoseconds(300, 1, || {
        for circuit in &circuits {
            black_box(bem_circuit::compile::assemble(black_box(circuit)));
        }
    });
    let microseconds = |nanoseconds: f64| nanoseconds / 1e3 / CIRCUITS as f64;
    let floor_name = "making the code, without executable memory";
    Ok(Measurement::new("jit_compile", microseconds(compile), "us", microseconds(assemble), floor_name)
        .with("packed", microseconds(packed)))
}

fn interpreter_lane_gates() -> anyhow::Result<Measurement> {
    let mut total = 0.0;
    for circuit in circuits()? {
        total += evaluation(&Interpreted::new(circuit), 400);
    }
    let rate = (GATES * LANES) as f64 / (total / CIRCUITS as f64) * 1e9;
    let (peak, floor_name) = match logic_operation() {
        Ok(operation) => (LANES as f64 / operation * 1e9, "peak rate of AVX2 logic"),
        Err(_) => (rate, "itself, for want of AVX2"),
    };
    Ok(Measurement::new("interpreter_lane_gates", rate, "lane-gates/s", peak, floor_name))
}
