//! `bem bench regret_learner`: the whole learner on the catalogue's bandit as `bem solve bandit --online` plays it, beside the
//! laboratory's default rule on arms that pay as often.
//!
//! Sixteen arms, a gap of a tenth, a million steps, twenty seeds, both in one run. Pseudo-regret counts choices, so that no
//! luck of the draws is in it; those of pairs at the gate count like all others. The floor is the rule alone: what contexts, search and exploration for structure cost on top.
//! The answer is no where the mean is more than twice the floor.

use super::measure::machine;
use super::statistics::{mean_with_half_width, over_seeds};
use super::{Benchmark, Measurement, answer_to};
use crate::cli::Answer;
use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_engine::learner::Settings;
use bem_engine::solve::solve_world;
use bem_games::families::bandit::{BanditRules, Pay};
use bem_games::game::Game;
use bem_games::rules::RuleGame;
use bem_learn::index::Parameters;
use bem_learn::laboratory::{Setting, World, play};
use bem_learn::rule::{Rule, RuleKind};
use serde_json::json;

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
const ARMS: u16 = 16;
const GAP_PERCENT: u64 = 10;

/// The laboratory's arms, which lose as often as those of the catalogue: symmetric around one half.
const SETTING: Setting = Setting {
    world: World::Stochastic,
    arms: ARMS as usize,
    best_mean: Fixed::from_ratio(45, 100),
    gap: Fixed::from_ratio(10, 100),
};

/// The catalogue's bandit, as `bem solve bandit --online` plays it; choices of worse arms are counted.
struct Counted {
    world: Box<dyn Environment + Send>,
    best: u16,
    worse: u64,
}

impl Counted {
    fn new(seed: u64) -> Counted {
        let best = Prng::stream(seed, "bench/regret_learner").below(u64::from(ARMS)) as u16;
        let rules = BanditRules { arms: ARMS, best, pay: Pay::with_gap(GAP_PERCENT) };
        Counted { world: RuleGame::new(rules).start(), best, worse: 0 }
    }
}

impl Environment for Counted {
    fn shape(&self) -> &Shape {
        self.world.shape()
    }

    fn repeats(&self) -> bool {
        self.world.repeats()
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.world.reset(seed)
    }

    fn observation(&self) -> &Bits {
        self.world.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        self.worse += u64::from(action != self.best);
        self.world.step(action)
    }
}

fn to_float(value: Fixed) -> f64 {
    value.to_raw() as f64 / Fixed::ONE.to_raw() as f64
}

/// Pseudo-regret of the whole learner on one seed.
fn learner_regret(seed: u64) -> f64 {
    let mut world = Counted::new(seed);
    let settings = Settings { budget: STEPS, ..Settings::new(seed) };
    let settings = settings.with(|config| config.until_budget = true);
    solve_world(&mut world, settings, &mut |_| true).expect("the catalogue's worlds do not fail");
    world.worse as f64 * to_float(SETTING.gap)
}

/// Pseudo-regret of the rule alone on one seed.
fn rule_regret(seed: u64) -> f64 {
    let prng = Prng::stream(seed, "laboratory/rule");
    let mut rule = Rule::new(RuleKind::DEFAULT, Parameters::DEFAULT, SETTING.live(), prng);
    to_float(play(&SETTING, seed, &mut rule, &[STEPS]).regret[0])
}

/// What all seeds came to.
struct RegretOfSeeds {
    mean: f64,
    half_width: f64,
    worst: f64,
}

impl RegretOfSeeds {
    /// Of all seeds of one player.
    fn over_seeds(regret: fn(u64) -> f64) -> RegretOfSeeds {
        let found = over_seeds(SEEDS, regret);
        let (mean, half_width) = mean_with_half_width(&found);
        RegretOfSeeds { mean, half_width, worst: found.iter().copied().fold(0.0, f64::max) }
    }

    fn print(&self, name: &str) {
        let RegretOfSeeds { mean, half_width, worst } = self;
        say!("| {name} | {mean:.0} ± {half_width:.0} | {worst:.0} |");
    }
}

/// The whole learner and the rule alone.
fn both() -> [RegretOfSeeds; 2] {
    [RegretOfSeeds::over_seeds(learner_regret), RegretOfSeeds::over_seeds(rule_regret)]
}

fn compared([whole, alone]: &[RegretOfSeeds; 2]) -> Measurement {
    let name = "the laboratory's default rule alone, same arms, gap, steps and number of seeds";
    Measurement::new("regret_learner", whole.mean, "losses", alone.mean, name)
        .with("half_width_95", whole.half_width)
        .with("floor_half_width_95", alone.half_width)
        .with("worst", whole.worst)
        .with("seeds", SEEDS as f64)
        .at_most(TIMES_MAX)
}

fn measured() -> anyhow::Result<Measurement> {
    Ok(compared(&both()))
}

/// Prints both beside each other.
pub fn report(as_json: bool) -> anyhow::Result<Answer> {
    let both = both();
    let measurement = compared(&both);
    let answer = answer_to(&measurement);
    if as_json {
        say!("{}", json!({ "machine": machine(), "benches": [measurement.to_json()] }));
        return Ok(answer);
    }
    say!(
        "Pseudo-regret after {STEPS} steps with {ARMS} arms and a gap of {GAP_PERCENT} percent, in losses: choices of a worse arm \
         times the gap. {SEEDS} seeds, 95 % intervals.\n"
    );
    say!("| who chooses | mean | worst seed |");
    say!("|---|---|---|");
    let [whole, alone] = &both;
    whole.print("the whole learner, as `bem solve bandit --online`");
    alone.print("the laboratory's default rule alone");
    say!(
        "\nThe learner's mean is {:.2} times that of the rule (at most {TIMES_MAX} is asked).",
        measurement.ratio()
    );
    Ok(answer)
}
