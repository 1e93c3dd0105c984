//! `bem bench regret`: the laboratory's rules and their peers on stochastic, changing and adversarial arms.
//!
//! Each seed is a world of its own, and the table is the same on any machine.

use super::peers::{Peer, PeerPlayer, divergence};
use super::statistics::{growth_exponent, mean_with_half_width, over_seeds};
use super::{Benchmark, Measurement, measure, progress_bar};
use crate::cli::Answer;
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_learn::index::{IndexRule, Parameters};
use bem_learn::laboratory::{Outcome, Setting, World, play};
use bem_learn::rule::{Rule, RuleKind};
use bem_learn::softmax::Temperature;
use serde_json::json;

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "regret_default",
        area: "regret",
        about: "the rule the machine uses",
        run: || single(0),
    },
    Benchmark { name: "regret_ucb1", area: "regret", about: "UCB1", run: || single(1) },
    Benchmark { name: "regret_thompson", area: "regret", about: "Thompson sampling", run: || single(2) },
    Benchmark { name: "regret_as_printed", area: "regret", about: "the seeds' formula", run: || single(3) },
];

const STEPS: u64 = 1_000_000;
/// Exponents are fitted between these.
const CHECKPOINTS: [u64; 2] = [STEPS / 10, STEPS];
const SEEDS: u64 = 100;

/// Who plays.
#[derive(Clone, Copy)]
enum Contestant {
    Ours(RuleKind, Parameters),
    Theirs(Peer),
}

/// One row of the table.
struct Entry {
    /// Name of the benchmark or of the row.
    name: &'static str,
    contestant: Contestant,
    setting: Setting,
    seeds: u64,
}

/// The four rows that are benchmarks of their own come first.
fn entries() -> Vec<Entry> {
    let plain = Parameters { change: None, ..Parameters::DEFAULT };
    let lowest = |rule, parameters| Contestant::Ours(RuleKind::Lowest(rule), parameters);
    let default = Contestant::Ours(RuleKind::DEFAULT, Parameters::DEFAULT);
    let tsallis = Contestant::Ours(RuleKind::TsallisInf, plain);
    let softmax = |temperature| Contestant::Ours(RuleKind::Softmax(temperature), plain);
    let stochastic = Setting::REFERENCE;
    let world = World::Changing { change_points: 10 };
    let changing = Setting { world, gap: Fixed::from_ratio(3, 10), ..Setting::REFERENCE };
    let adversarial = Setting { world: World::Adversarial, ..Setting::REFERENCE };
    let entry = |name, contestant, setting, seeds| Entry { name, contestant, setting, seeds };
    vec![
        entry("regret_default", default, stochastic, SEEDS),
        entry("regret_ucb1", Contestant::Theirs(Peer::Ucb1), stochastic, SEEDS),
        entry("regret_thompson", Contestant::Theirs(Peer::Thompson), stochastic, SEEDS),
        entry("regret_as_printed", lowest(IndexRule::AsPrinted, plain), stochastic, SEEDS),
        entry("imed", Contestant::Theirs(Peer::Imed), stochastic, SEEDS),
        entry("tsallis_inf", tsallis, stochastic, 20),
        entry("softmax_cooling", softmax(Temperature::Falling(Fixed::ONE)), stochastic, 20),
        entry("softmax_fixed", softmax(Temperature::Fixed(Fixed::from_ratio(1, 10))), stochastic, 20),
        entry("greedy", lowest(IndexRule::Greedy, plain), stochastic, 20),
        entry("default", default, changing, 40),
        entry("default_no_detector", Contestant::Ours(RuleKind::DEFAULT, plain), changing, 20),
        entry("thompson", Contestant::Theirs(Peer::Thompson), changing, 20),
        entry("as_printed", lowest(IndexRule::AsPrinted, plain), changing, 20),
        entry("default", default, adversarial, 1),
        entry("thompson", Contestant::Theirs(Peer::Thompson), adversarial, 8),
        entry("tsallis_inf", tsallis, adversarial, 8),
    ]
}

/// What the seeds of one row say together.
struct Summary {
    mean: f64,
    /// Half the width of the 95 % confidence interval of the mean.
    half_width: f64,
    worst: f64,
    /// Mean regret as a share of what the worst arm would cost.
    share: f64,
    /// Fitted between a tenth of the steps and all of them: 1 is linear. With its 95 % interval.
    /// Only where every step is alike: not where the world changes, nor for losses fixed in advance.
    exponent: Option<[f64; 3]>,
    alarms: u32,
}

fn single(position: usize) -> anyhow::Result<Measurement> {
    let entry = &entries()[position];
    let summary = summarise(entry, &run_entry(entry, || ()));
    Ok(measurement(entry, &summary))
}

/// Runs every row and prints the table, or the benchmarks with the rows as `laboratory` in one JSON object.
pub fn laboratory(json: bool) -> anyhow::Result<Answer> {
    let entries = entries();
    let progress = progress_bar(entries.iter().map(|entry| entry.seeds).sum(), json);
    let mut summaries = Vec::new();
    for entry in &entries {
        progress.set_message(entry.name);
        summaries.push(summarise(entry, &run_entry(entry, || progress.inc(1))));
    }
    progress.finish_and_clear();
    let rows = || entries.iter().zip(&summaries);
    if json {
        let is_bench = |entry: &Entry| BENCHMARKS.iter().any(|bench| bench.name == entry.name);
        let benches: Vec<_> = rows()
            .filter(|(entry, _)| is_bench(entry))
            .map(|(entry, summary)| measurement(entry, summary).to_json())
            .collect();
        let table: Vec<_> = rows().map(|(entry, summary)| row_json(entry, summary)).collect();
        say!("{}", json!({ "machine": measure::machine(), "benches": benches, "laboratory": table }));
        return Ok(Answer::Yes);
    }
    say!(
        "Pseudo-regret after {STEPS} steps, 16 arms; 95 % intervals; share of gap * steps; exponent 1 is linear."
    );
    say!(
        "{:<12} {:<20} {:>5} {:>10} {:>8} {:>10} {:>8}  {:<22} {:>6}",
        "world",
        "rule",
        "seeds",
        "mean",
        "+-",
        "worst",
        "share",
        "exponent",
        "alarms"
    );
    for (entry, summary) in rows() {
        let exponent = summary
            .exponent
            .map_or("-".into(), |[middle, low, high]| format!("{middle:.3} [{low:.3}, {high:.3}]"));
        say!(
            "{:<12} {:<20} {:>5} {:>10.1} {:>8.1} {:>10.1} {:>6.2} %  {exponent:<22} {:>6}",
            world_name(entry),
            entry.name.trim_start_matches("regret_"),
            entry.seeds,
            summary.mean,
            summary.half_width,
            summary.worst,
            100.0 * summary.share,
            summary.alarms
        );
    }
    Ok(Answer::Yes)
}

fn world_name(entry: &Entry) -> &'static str {
    match entry.setting.world {
        World::Stochastic => "stochastic",
        World::Changing { .. } => "changing",
        World::Adversarial => "adversarial",
    }
}

fn row_json(entry: &Entry, summary: &Summary) -> serde_json::Value {
    json!({
        "world": world_name(entry), "rule": entry.name, "steps": STEPS, "seeds": entry.seeds,
        "mean": summary.mean, "half_width_95": summary.half_width, "worst": summary.worst,
        "share": summary.share, "exponent_middle_low_high": summary.exponent, "alarms": summary.alarms,
    })
}

fn measurement(entry: &Entry, summary: &Summary) -> Measurement {
    let floor_name = "Lai-Robbins bound, asymptotic: a finite run may lie below";
    let floor = lai_robbins(&entry.setting);
    let measurement = Measurement::new(entry.name, summary.mean, "losses", floor, floor_name)
        .with("worst", summary.worst)
        .with("half_width_95", summary.half_width)
        .with("seeds", entry.seeds as f64);
    match summary.exponent {
        None => measurement,
        Some([exponent, low, high]) => {
            measurement.with("exponent", exponent).with("exponent_low", low).with("exponent_high", high)
        }
    }
}

/// `sum over worse arms of gap / KL(worse, best)` times the logarithm of the steps.
fn lai_robbins(setting: &Setting) -> f64 {
    let as_float = |value: Fixed| value.to_raw() as f64 / Fixed::ONE.to_raw() as f64;
    let (best, gap) = (as_float(setting.best_mean), as_float(setting.gap));
    (setting.arms - 1) as f64 * gap / divergence(best + gap, best) * (STEPS as f64).ln()
}

/// Plays all seeds of one row.
fn run_entry(entry: &Entry, done: impl Fn() + Sync) -> Vec<Outcome> {
    over_seeds(entry.seeds, |seed| {
        let outcome = run_seed(entry, seed);
        done();
        outcome
    })
}

fn run_seed(entry: &Entry, seed: u64) -> Outcome {
    let prng = Prng::stream(seed, "laboratory/rule");
    match entry.contestant {
        Contestant::Ours(kind, parameters) => {
            let mut rule = Rule::new(kind, parameters, entry.setting.live(), prng);
            play(&entry.setting, seed, &mut rule, &CHECKPOINTS)
        }
        Contestant::Theirs(peer) => {
            let mut player = PeerPlayer::new(peer, entry.setting.arms, prng);
            play(&entry.setting, seed, &mut player, &CHECKPOINTS)
        }
    }
}

fn summarise(entry: &Entry, outcomes: &[Outcome]) -> Summary {
    let as_float = |value: Fixed| value.to_raw() as f64 / Fixed::ONE.to_raw() as f64;
    let runs: Vec<Vec<f64>> =
        outcomes.iter().map(|outcome| outcome.regret.iter().copied().map(as_float).collect()).collect();
    let last: Vec<f64> = runs.iter().map(|run| run[1]).collect();
    let (mean, half_width) = mean_with_half_width(&last);
    let dearest = if entry.setting.world == World::Adversarial { 1.0 } else { as_float(entry.setting.gap) };
    Summary {
        mean,
        share: mean / (dearest * STEPS as f64),
        half_width,
        worst: last.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        exponent: (entry.setting.world == World::Stochastic).then(|| growth_exponent(&CHECKPOINTS, &runs)),
        alarms: outcomes.iter().map(|outcome| outcome.alarms).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmarks_are_the_first_rows_in_their_order() {
        for (entry, benchmark) in entries().iter().zip(BENCHMARKS) {
            assert_eq!(entry.name, benchmark.name);
            assert_eq!(entry.seeds, SEEDS);
        }
    }

    #[test]
    fn the_lower_bound_of_the_reference_setting_is_about_a_thousand() {
        let bound = lai_robbins(&Setting::REFERENCE);
        assert!((1_010.0..1_020.0).contains(&bound), "{bound}");
    }
}
