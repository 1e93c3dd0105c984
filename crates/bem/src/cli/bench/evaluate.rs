//! Evaluations: a policy in 256 lanes, beside one episode after the other as the floor.
//!
//! Random circuits of 0 to 2,000 gates, in a world of one step (parity of 16 bits) and in one of 64 (a stream, where the
//! circuit has four bits of memory). A whole evaluation is timed, from the policy to its mean, as a run makes it
//! for each new incumbent: worlds have been started, and what the oracle earns is known from the evaluation before;
//! one after the other, the oracle plays every time. `first` is the rate of a run's first evaluation, and `first_ratio`
//! compares it with a first one on the other side: worlds and oracle are started and the game is asked for its optimum.
//!
//! One evaluation of 2,000 gates takes up to half a second one after the other: on a machine that does other work too, its
//! floor comes out too low and its ratio too high.

use super::{Benchmark, Measurement, minimum_nanoseconds};
use anyhow::Context;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Netlist, Signal};
use bem_circuit::testing::random_dense_netlist;
use bem_engine::agent::Agent;
use bem_engine::evaluate::{Judge, Yardstick, evaluate};
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::game::Game;
use bem_synth::policy::{Policy, action_bits};
use std::hint::black_box;

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[
    entry("evaluate_step_0", "one step, no gates", || one_step("evaluate_step_0", 0)),
    entry("evaluate_step_100", "one step, 100 gates", || one_step("evaluate_step_100", 100)),
    entry("evaluate_step_400", "one step, 400 gates", || one_step("evaluate_step_400", 400)),
    entry("evaluate_step_2000", "one step, 2,000 gates", || one_step("evaluate_step_2000", 2_000)),
    entry("evaluate_stream_0", "64 steps, no gates", || stream("evaluate_stream_0", 0)),
    entry("evaluate_stream_100", "64 steps, 100 gates", || stream("evaluate_stream_100", 100)),
    entry("evaluate_stream_400", "64 steps, 400 gates", || stream("evaluate_stream_400", 400)),
    entry("evaluate_stream_2000", "64 steps, 2,000 gates", || stream("evaluate_stream_2000", 2_000)),
];

/// Both sides of the ratio take turns this often.
const ROUNDS: usize = 5;
/// About how long one side is measured in a round.
const ROUND_NANOSECONDS: f64 = 2e7;
const RUN_SEED: u64 = 1;

const fn entry(
    name: &'static str,
    about: &'static str,
    run: fn() -> anyhow::Result<Measurement>,
) -> Benchmark {
    Benchmark { name, area: "evaluate", about, run }
}

fn one_step(name: &'static str, gates: usize) -> anyhow::Result<Measurement> {
    measure(name, "parity{n=16}", gates, 0)
}

fn stream(name: &'static str, gates: usize) -> anyhow::Result<Measurement> {
    measure(name, "parity_stream{n=64}", gates, 4)
}

fn measure(name: &'static str, task: &str, gates: usize, memory: usize) -> anyhow::Result<Measurement> {
    let game = TaskTree::parse(task)?.build(1, &NoPrograms)?;
    let agent = Agent::circuit(policy(game.as_ref(), gates, memory)?);
    let mut judge = Judge::new(game.as_ref());
    let (mut world, mut oracle) = (game.start(), game.oracle());
    let yardstick = Some(judge.yardstick());
    let episodes = f64::from(judge.evaluate(&agent, RUN_SEED)?.episodes);
    let [mut lanes, mut first, mut scalar, mut scalar_first] = [f64::INFINITY; 4];
    for _ in 0..ROUNDS {
        lanes = lanes.min(least(|| black_box(judge.evaluate(black_box(&agent), RUN_SEED)).is_ok()));
        first = first.min(least(|| {
            black_box(Judge::new(game.as_ref()).evaluate(black_box(&agent), RUN_SEED)).is_ok()
        }));
        scalar = scalar.min(least(|| {
            let world = world.as_mut();
            black_box(evaluate(world, black_box(&agent), RUN_SEED, yardstick, Some(oracle.as_mut()))).is_ok()
        }));
        scalar_first = scalar_first.min(least(|| {
            let (mut world, mut oracle, game) = (game.start(), game.oracle(), game.as_ref());
            let (world, yardstick) = (world.as_mut(), Some(Yardstick::of(game)));
            black_box(evaluate(world, black_box(&agent), RUN_SEED, yardstick, Some(oracle.as_mut()))).is_ok()
        }));
    }
    let rate = |nanoseconds: f64| episodes / nanoseconds * 1e9;
    let floor_name = "one episode after the other";
    Ok(Measurement::new(name, rate(lanes), "episodes/s", rate(scalar), floor_name)
        .with("first", rate(first))
        .with("first_ratio", scalar_first / first))
}

/// The least time that one call of the work takes, over as many calls as a round has time for.
fn least(mut work: impl FnMut() -> bool) -> f64 {
    let mut call = || assert!(work(), "the world of a game does not fail");
    let once = minimum_nanoseconds(1, 1, &mut call);
    let trials = (ROUND_NANOSECONDS / once) as u32;
    once.min(minimum_nanoseconds(trials.min(1_000), 1, call))
}

/// A random policy that reads all bits.
fn policy(game: &dyn Game, gates: usize, memory: usize) -> anyhow::Result<Policy> {
    let shape = game.shape();
    let (seen, outputs) = (shape.observation_bits, action_bits(shape.actions) + memory);
    let inputs = usize::from(seen) + memory;
    let circuit = match gates {
        0 => Netlist::new(
            inputs,
            Vec::new(),
            (0..outputs).map(|place| Signal::input(place % inputs)).collect(),
        )?,
        _ => random_dense_netlist(&mut Prng::stream(1, "bench/evaluate"), inputs, gates, outputs),
    };
    Policy::new(circuit, (0..seen).collect(), memory, shape.actions).context("the parts fit")
}
