//! `bem bench regret_learner`: the whole learner on the laboratory's bandit, beside the laboratory's default rule.
//!
//! Sixteen arms, a gap of a tenth, a million steps, twenty seeds, both in one run. Pseudo-regret counts choices, so that no
//! luck of the draws is in it. The floor is the rule alone: what contexts, search and exploration for structure cost on top.
//! The answer is no where the mean is more than twice the floor.

use super::statistics::{mean_with_half_width, over_seeds};
use super::{Benchmark, Measurement};
use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_engine::learner::Settings;
use bem_engine::solve::solve_world;
use bem_learn::index::Parameters;
use bem_learn::laboratory::{Setting, play};
use bem_learn::rule::{Rule, RuleKind};

/// The benchmark of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "regret_learner",
    area: "learner_regret",
    about: "regret of the whole learner beside the rule alone",
    run: measured,
}];

const STEPS: u64 = 1_000_000;
const SEEDS: u64 = 20;
/// The mean of the whole learner is at most so many times that of the rule alone.
const TIMES_MAX: f64 = 2.0;
const SETTING: Setting = Setting::REFERENCE;

/// The laboratory's arms as a world of one step that shows nothing.
struct Arms {
    shape: Shape,
    prng: Prng,
    best: u16,
    worse: u64,
}

impl Arms {
    fn new(seed: u64) -> Arms {
        let shape = Shape {
            observation_bits: 0,
            actions: SETTING.arms as u16,
            fields: Vec::new(),
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
        };
        let mut prng = Prng::stream(seed, "bench/regret_learner");
        let best = prng.below(SETTING.arms as u64) as u16;
        Arms { shape, prng, best, worse: 0 }
    }
}

impl Environment for Arms {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn repeats(&self) -> bool {
        false
    }

    fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &Bits::ZERO
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let is_worse = action != self.best;
        self.worse += u64::from(is_worse);
        let chance = if is_worse { SETTING.best_mean.plus(SETTING.gap) } else { SETTING.best_mean };
        let lost = (self.prng.next_u64() >> 32) < chance.to_raw() as u64;
        Ok(Outcome { reward: 1_000 * i32::from(!lost), done: true, bad: false })
    }
}

fn to_float(value: Fixed) -> f64 {
    value.to_raw() as f64 / Fixed::ONE.to_raw() as f64
}

/// Pseudo-regret of the whole learner on one seed.
fn learner_regret(seed: u64) -> f64 {
    let mut world = Arms::new(seed);
    let settings = Settings { budget: STEPS, ..Settings::new(seed) };
    let settings = settings.with(|config| config.until_budget = true);
    solve_world(&mut world, settings, &mut |_| true).expect("arms do not fail");
    world.worse as f64 * to_float(SETTING.gap)
}

/// Pseudo-regret of the rule alone on one seed.
fn rule_regret(seed: u64) -> f64 {
    let prng = Prng::stream(seed, "laboratory/rule");
    let mut rule = Rule::new(RuleKind::DEFAULT, Parameters::DEFAULT, SETTING.live(), prng);
    to_float(play(&SETTING, seed, &mut rule, &[STEPS]).regret[0])
}

fn measured() -> anyhow::Result<Measurement> {
    let (whole, alone) = (over_seeds(SEEDS, learner_regret), over_seeds(SEEDS, rule_regret));
    let ((mean, half), (floor, floor_half)) = (mean_with_half_width(&whole), mean_with_half_width(&alone));
    let worst = whole.iter().copied().fold(0.0, f64::max);
    let name = "the laboratory's default rule alone, same arms, gap, steps and number of seeds";
    Ok(Measurement::new("regret_learner", mean, "losses", floor, name)
        .with("half_width_95", half)
        .with("floor_half_width_95", floor_half)
        .with("worst", worst)
        .with("seeds", SEEDS as f64)
        .at_most(TIMES_MAX))
}
