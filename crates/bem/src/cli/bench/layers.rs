//! `bem bench regret_layers`: pseudo-regret of the three layers that choose, at several lengths, with exponents.
//!
//! Experts: the machine's own family with several buckets, each with a best expert of its own. Templates: the
//! teacher's choice within a band. Activities: the scheduler over cyclic schedules. Two controls stand beside them: the
//! experts with the formula as the specification prints it, and a bandit over single activities.

use super::statistics::{growth_exponent, mean_with_half_width, over_seeds};
use super::{Benchmark, Measurement, measure, progress_bar};
use crate::cli::Answer;
use bem_base::environment::{Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_base::prng::Prng;
use bem_learn::index::Parameters;
use bem_learn::laboratory::schedule_regret;
use bem_learn::schedule::Scheduler;
use bem_machine::boot;
use bem_machine::config::{ChoiceRule, GenesisConfig};
use bem_machine::family::{ALL_ARMS, Family};
use bem_machine::machine::Machine;
use bem_machine::memory::context::FamilyIndex;
use bem_machine::route::directory::{Directory, RouteInput};
use bem_teacher::laboratory::template_regret;
use serde_json::json;

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "regret_layers",
    area: "layers",
    about: "regret of experts, templates and schedules: the largest of the three exponents",
    run: || Ok(measurement(&LAYERS.map(|layer| measure_layer(&layer, &STEPS, SEEDS)))),
}];

/// Lengths at which regret is read; the exponent is fitted over the last four, one decade.
const STEPS: [u64; 6] = [1_000, 10_000, 100_000, 200_000, 500_000, 1_000_000];
/// Lengths that the fit looks at.
const FITTED: usize = 4;
const SEEDS: u64 = 10;
/// Buckets of the expert layer, as signature bits.
const DEPTH: usize = 2;
/// Chances of a loss, in percent: with the best expert of the bucket, and with any other.
const LOSSES: [u64; 2] = [40, 60];
/// Units that one schedule is played for.
const BLOCK_UNITS: u32 = 16;
/// The schedulers' worlds do not change.
const PLAIN: Parameters = Parameters { change: None, ..Parameters::DEFAULT };

/// One row: a layer with a rule.
#[derive(Clone, Copy)]
struct Layer {
    name: &'static str,
    rule: &'static str,
    /// The rule that the machine uses, or a control.
    is_default: bool,
    play: fn(u64, &[u64]) -> Vec<Fixed>,
}

const LAYERS: [Layer; 5] = [
    Layer {
        name: "expert",
        rule: "ucb_v",
        is_default: true,
        play: |seed, steps| expert_regret(ChoiceRule::UcbV, seed, steps),
    },
    Layer {
        name: "template",
        rule: "ucb_v",
        is_default: true,
        play: |seed, steps| template_regret(seed, steps).into_iter().map(|point| point.regret).collect(),
    },
    Layer {
        name: "meta",
        rule: "schedules",
        is_default: true,
        play: |seed, steps| schedule_regret(&mut Scheduler::schedules(PLAIN, BLOCK_UNITS), seed, steps),
    },
    Layer {
        name: "expert",
        rule: "as_printed",
        is_default: false,
        play: |seed, steps| expert_regret(ChoiceRule::AsPrinted, seed, steps),
    },
    Layer {
        name: "meta",
        rule: "activities",
        is_default: false,
        play: |seed, steps| schedule_regret(&mut Scheduler::activities(PLAIN), seed, steps),
    },
];

/// What the seeds of one row say together.
struct Row {
    layer: Layer,
    /// Steps, mean regret and half the width of its 95 % interval.
    points: Vec<(u64, f64, f64)>,
    /// With its 95 % interval.
    exponent: [f64; 3],
}

/// A family whose pool is full of memoryless experts, routed to `2^DEPTH` buckets.
fn expert_family(choice_rule: ChoiceRule, seed: u64) -> Family {
    let config = GenesisConfig { choice_rule, ..GenesisConfig::default() };
    let shape = Shape {
        observation_bits: DEPTH as u16,
        actions: ARMS_MAX as u16,
        horizon: 1,
        reward_min: 0,
        reward_max: 1,
        return_min: 0,
        return_max: 1,
        fields: Vec::new(),
    };
    let mut machine = Machine::new(config, seed);
    let family = machine.add_family(shape).expect("the world fits the defaults");
    let constants: Vec<_> = (0..ARMS_MAX as u16 - 1).map(boot::BootExpert::Constant).collect();
    machine.install_boot_experts(family, &constants).expect("constants fit every bound");
    let inputs: Vec<RouteInput> = (0..DEPTH as u16).map(RouteInput::State).collect();
    let directory = Directory::hashed(&inputs, DEPTH, 1).expect("two bits and four buckets");
    let mut family = machine.family(FamilyIndex(0)).expect("just added").clone();
    family.reroute(directory);
    family
}

/// Every bucket has its own best expert; which bucket a step falls into is random.
fn expert_regret(choice_rule: ChoiceRule, seed: u64, checkpoints: &[u64]) -> Vec<Fixed> {
    let mut family = expert_family(choice_rule, seed);
    let mut world = Prng::stream(seed, "layers/experts");
    let mut register = Prng::stream(seed, "layers/choice");
    let arms = u64::from(family.buckets()[0].live().count_ones());
    let best: Vec<u64> = family.buckets().iter().map(|_| world.below(arms)).collect();
    let (mut worse, mut regret) = (0i64, Vec::new());
    for step in 1..=checkpoints.last().copied().unwrap_or(0) {
        let bucket = world.below(best.len() as u64) as u16;
        let pick = family.choose(bucket, ALL_ARMS, &mut register);
        let is_best = u64::from(pick.arm) == best[usize::from(bucket)];
        let lost = world.below(100) < LOSSES[usize::from(!is_best)];
        worse += i64::from(!is_best);
        let outcome = Outcome { reward: i32::from(!lost), done: true, bad: false };
        family.credit_pick(bucket, pick, &outcome);
        if checkpoints[regret.len()] == step {
            regret.push(Fixed::from_ratio(worse * (LOSSES[1] - LOSSES[0]) as i64, 100));
        }
    }
    regret
}

fn measure_layer(layer: &Layer, steps: &[u64], seeds: u64) -> Row {
    let as_float = |value: Fixed| value.to_raw() as f64 / Fixed::ONE.to_raw() as f64;
    let runs: Vec<Vec<f64>> =
        over_seeds(seeds, |seed| (layer.play)(seed, steps).into_iter().map(as_float).collect());
    let points = steps.iter().enumerate().map(|(place, steps)| {
        let values: Vec<f64> = runs.iter().map(|run| run[place]).collect();
        let (mean, half_width) = mean_with_half_width(&values);
        (*steps, mean, half_width)
    });
    let first = steps.len().saturating_sub(FITTED);
    let fitted: Vec<Vec<f64>> = runs.iter().map(|run| run[first..].to_vec()).collect();
    Row { layer: *layer, points: points.collect(), exponent: growth_exponent(&steps[first..], &fitted) }
}

/// Measures every row and prints the table, or the benchmark with the rows as `layers` in one JSON object.
pub fn report(json: bool) -> anyhow::Result<Answer> {
    let progress = progress_bar(LAYERS.len() as u64, json);
    let rows = LAYERS.map(|layer| {
        progress.set_message(layer.name);
        let row = measure_layer(&layer, &STEPS, SEEDS);
        progress.inc(1);
        row
    });
    progress.finish_and_clear();
    if json {
        let layers: Vec<_> = rows.iter().map(row_json).collect();
        let bench = measurement(&rows).to_json();
        say!("{}", json!({ "machine": measure::machine(), "benches": [bench], "layers": layers }));
        return Ok(Answer::Yes);
    }
    say!(
        "Pseudo-regret against the best fixed choice, {SEEDS} seeds, 95 % intervals; exponent from {} to {} steps, \
         1 is linear.",
        STEPS[STEPS.len() - FITTED],
        STEPS[STEPS.len() - 1]
    );
    say_text!("{:<9} {:<11}", "layer", "rule");
    STEPS.iter().for_each(|steps| say_text!(" {steps:>17}"));
    say!("  exponent");
    for row in &rows {
        say_text!("{:<9} {:<11}", row.layer.name, row.layer.rule);
        row.points.iter().for_each(|(_, mean, half_width)| say_text!(" {mean:>9.1} +-{half_width:>5.1}"));
        let [middle, low, high] = row.exponent;
        say!("  {middle:.3} [{low:.3}, {high:.3}]");
    }
    Ok(Answer::Yes)
}

fn row_json(row: &Row) -> serde_json::Value {
    let [exponent, low, high] = row.exponent;
    let points: Vec<_> = row
        .points
        .iter()
        .map(|(steps, mean, half)| json!({ "steps": steps, "mean": mean, "half_width_95": half }))
        .collect();
    json!({
        "layer": row.layer.name, "rule": row.layer.rule, "default": row.layer.is_default, "seeds": SEEDS,
        "points": points, "exponent": exponent, "exponent_low": low, "exponent_high": high,
    })
}

/// The exponent of the layer that grows fastest under its default rule, and all three with their intervals.
fn measurement(rows: &[Row; LAYERS.len()]) -> Measurement {
    const KEYS: [[&str; 3]; 3] = [
        ["expert", "expert_low", "expert_high"],
        ["template", "template_low", "template_high"],
        ["meta", "meta_low", "meta_high"],
    ];
    let defaults = || rows.iter().filter(|row| row.layer.is_default);
    let largest = defaults().map(|row| row.exponent[0]).fold(f64::NEG_INFINITY, f64::max);
    let mut measurement = Measurement::new("regret_layers", largest, "exponent", 1.0, "linear growth");
    for (row, keys) in defaults().zip(KEYS) {
        for (key, value) in keys.into_iter().zip(row.exponent) {
            measurement = measurement.with(key, value);
        }
    }
    measurement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_is_sublinear_by_a_margin_and_the_controls_are_linear() {
        for layer in LAYERS {
            let row = measure_layer(&layer, &[5_000, 10_000, 20_000, 40_000], 4);
            let [exponent, low, high] = row.exponent;
            assert!(low <= exponent && exponent <= high);
            if layer.is_default {
                assert!(high < 0.8, "{} {}: {:?}", layer.name, layer.rule, row.exponent);
            } else {
                assert!(0.95 < low, "{} {}: {:?}", layer.name, layer.rule, row.exponent);
            }
        }
    }
}
