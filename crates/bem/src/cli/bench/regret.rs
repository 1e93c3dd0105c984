//! `bem bench regret`: the laboratory's rules and their peers on stochastic, changing and adversarial arms.
//!
//! Seeds run on all cores; each is a world of its own and results are put in seed order, so the table is the
//! same on any machine.

use super::peers::{Peer, PeerPlayer, divergence};
use super::{Benchmark, Measurement, measure, progress_bar};
use crate::cli::Answer;
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_learn::index::{IndexRule, Parameters};
use bem_learn::laboratory::{Outcome, Setting, World, play};
use bem_learn::rule::{Rule, RuleKind};
use bem_learn::softmax::Temperature;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

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
        println!("{}", json!({ "machine": measure::machine(), "benches": benches, "laboratory": table }));
        return Ok(Answer::Yes);
    }
    println!(
        "Pseudo-regret after {STEPS} steps, 16 arms; 95 % intervals; share of gap * steps; exponent 1 is linear."
    );
    println!(
        "{:<12} {:<20} {:>5} {:>10} {:>8} {:>10} {:>8}  {:<22} {:>6}",
        "world", "rule", "seeds", "mean", "+-", "worst", "share", "exponent", "alarms"
    );
    for (entry, summary) in rows() {
        let exponent = summary
            .exponent
            .map_or("-".into(), |[middle, low, high]| format!("{middle:.3} [{low:.3}, {high:.3}]"));
        println!(
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

/// Plays all seeds of one row on all cores; results are in seed order.
fn run_entry(entry: &Entry, done: impl Fn() + Sync) -> Vec<Outcome> {
    let next = AtomicU64::new(0);
    let outcomes = Mutex::new(vec![None; entry.seeds as usize]);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if entry.seeds <= seed {
                        return;
                    }
                    let outcome = run_seed(entry, seed);
                    outcomes.lock().expect("no thread panics while it holds the lock")[seed as usize] =
                        Some(outcome);
                    done();
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("all threads have ended well");
    outcomes.into_iter().map(|outcome| outcome.expect("every seed was played")).collect()
}

fn run_seed(entry: &Entry, seed: u64) -> Outcome {
    let checkpoints = [STEPS / 10, STEPS];
    let prng = Prng::stream(seed, "laboratory/rule");
    match entry.contestant {
        Contestant::Ours(kind, parameters) => {
            let mut rule = Rule::new(kind, parameters, entry.setting.live(), prng);
            play(&entry.setting, seed, &mut rule, &checkpoints)
        }
        Contestant::Theirs(peer) => {
            let mut player = PeerPlayer::new(peer, entry.setting.arms, prng);
            play(&entry.setting, seed, &mut player, &checkpoints)
        }
    }
}

fn summarise(entry: &Entry, outcomes: &[Outcome]) -> Summary {
    let as_float = |value: Fixed| value.to_raw() as f64 / Fixed::ONE.to_raw() as f64;
    let pairs: Vec<[f64; 2]> =
        outcomes.iter().map(|outcome| [as_float(outcome.regret[0]), as_float(outcome.regret[1])]).collect();
    let count = pairs.len() as f64;
    let mean = pairs.iter().map(|pair| pair[1]).sum::<f64>() / count;
    let spread = pairs.iter().map(|pair| (pair[1] - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let dearest = if entry.setting.world == World::Adversarial { 1.0 } else { as_float(entry.setting.gap) };
    Summary {
        mean,
        share: mean / (dearest * STEPS as f64),
        half_width: 1.96 * (spread / count).sqrt(),
        worst: pairs.iter().map(|pair| pair[1]).fold(f64::NEG_INFINITY, f64::max),
        exponent: (entry.setting.world == World::Stochastic).then(|| exponent(&pairs)),
        alarms: outcomes.iter().map(|outcome| outcome.alarms).sum(),
    }
}

/// log10 of the growth of the mean over the last decade, with its 95 % interval by bootstrap over seeds.
fn exponent(pairs: &[[f64; 2]]) -> [f64; 3] {
    const RESAMPLES: usize = 2_000;
    let growth = |early: f64, late: f64| (late.max(1.0) / early.max(1.0)).log10();
    let sums = |pairs: &mut dyn Iterator<Item = [f64; 2]>| {
        pairs.fold([0.0, 0.0], |sum, pair| [sum[0] + pair[0], sum[1] + pair[1]])
    };
    let [early, late] = sums(&mut pairs.iter().copied());
    let mut prng = Prng::stream(0, "bench/bootstrap");
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut draws = (0..pairs.len()).map(|_| pairs[prng.below(pairs.len() as u64) as usize]);
            let [early, late] = sums(&mut draws);
            growth(early, late)
        })
        .collect();
    resampled.sort_by(f64::total_cmp);
    [growth(early, late), resampled[RESAMPLES / 40], resampled[RESAMPLES - 1 - RESAMPLES / 40]]
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
    fn linear_growth_has_exponent_one_and_none_has_zero() {
        let [linear, low, high] = exponent(&[[100.0, 1_000.0], [200.0, 2_000.0]]);
        assert!((linear - 1.0).abs() < 1e-9 && low <= linear && linear <= high);
        assert_eq!(exponent(&[[50.0, 50.0]])[0], 0.0);
    }

    #[test]
    fn the_lower_bound_of_the_reference_setting_is_about_a_thousand() {
        let bound = lai_robbins(&Setting::REFERENCE);
        assert!((1_010.0..1_020.0).contains(&bound), "{bound}");
    }
}
