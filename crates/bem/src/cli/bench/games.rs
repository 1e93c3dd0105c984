//! How many steps games take in a second, one by one and 256 at a time.

use super::{Benchmark, Measurement, minimum_nanoseconds};
use anyhow::Context;
use bem_base::lanes::LaneWord;
use bem_base::limits::LANES;
use bem_base::prng::Prng;
use bem_games::catalog;
use bem_games::game::Game;
use bem_games::sliced::planes::{PlaneDice, Planes};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "env_parity_sliced",
        area: "games",
        about: "lane-steps of 16-bit parity, 256 lanes at a time",
        run: || sliced("env_parity_sliced", "parity", &[("n", "16")], 16, 1),
    },
    Benchmark {
        name: "env_bandit_sliced",
        area: "games",
        about: "lane-steps of a bandit with 8 arms, 256 lanes at a time",
        run: || sliced("env_bandit_sliced", "bandit", &[("arms", "8"), ("gap", "10")], 2, 3),
    },
    Benchmark {
        name: "env_parity_scalar",
        area: "games",
        about: "steps of 16-bit parity, resets included",
        run: || scalar("env_parity_scalar", "parity", &[("n", "16")]),
    },
    Benchmark {
        name: "env_bandit_scalar",
        area: "games",
        about: "steps of a bandit with 8 arms, resets included",
        run: || scalar("env_bandit_scalar", "bandit", &[("arms", "8"), ("gap", "10")]),
    },
    Benchmark {
        name: "env_dyck_scalar",
        area: "games",
        about: "steps of bracket words of up to 16, resets included",
        run: || scalar("env_dyck_scalar", "dyck", &[("depth", "4"), ("length", "16")]),
    },
];

fn build(family: &str, params: &[(&str, &str)]) -> anyhow::Result<Arc<dyn Game>> {
    let texts: BTreeMap<String, String> =
        params.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let family = catalog::family(family)?;
    Ok(catalog::build(family, &catalog::settings(family, &texts)?, 1)?)
}

/// Steps in all lanes with actions that change; the peak is drawing the planes that a step needs at least.
fn sliced(
    name: &'static str,
    family: &str,
    params: &[(&str, &str)],
    planes_needed: u32,
    action_planes: usize,
) -> anyhow::Result<Measurement> {
    let game = build(family, params)?;
    let mut world = game.start_sliced().context("the family has a sliced form")?;
    let mut observation = vec![LaneWord::ZERO; usize::from(game.shape().observation_bits)];
    world.reset(1, &mut observation);
    let mut dice = PlaneDice::new(2);
    let actions: Vec<LaneWord> = (0..action_planes + 64).map(|_| dice.plane()).collect();
    let mut step = 0;
    let nanoseconds = minimum_nanoseconds(400, 500, || {
        step = (step + 1) % 64;
        let action = &actions[step..step + action_planes];
        black_box(world.step(black_box(action), LaneWord::ONES, black_box(&mut observation)));
    });
    let floor = minimum_nanoseconds(400, 500, || {
        let all = (0..planes_needed).fold(LaneWord::ZERO, |all, _| all ^ dice.plane());
        black_box(all);
    });
    let rate = |nanoseconds: f64| LANES as f64 * 1e9 / nanoseconds;
    let floor_name = format!("drawing {planes_needed} random planes");
    Ok(Measurement::new(name, rate(nanoseconds), "lane-steps/s", rate(floor), &floor_name))
}

/// Steps through the contract that learners use, episode after episode; the peak is one random word a step.
fn scalar(name: &'static str, family: &str, params: &[(&str, &str)]) -> anyhow::Result<Measurement> {
    let game = build(family, params)?;
    let mut world = game.start();
    let mut seed = 0;
    world.reset(seed)?;
    let nanoseconds = minimum_nanoseconds(400, 2_000, || {
        let action = world.observation().get(0);
        let outcome = world.step(u16::from(black_box(action))).expect("the action is in range");
        if black_box(outcome).done {
            seed += 1;
            world.reset(seed).expect("games always reset");
        }
    });
    let mut prng = Prng::stream(1, "bench/games");
    let floor = minimum_nanoseconds(400, 2_000, || {
        black_box(prng.next_u64());
    });
    Ok(Measurement::new(name, 1e9 / nanoseconds, "steps/s", 1e9 / floor, "one random word a step"))
}
