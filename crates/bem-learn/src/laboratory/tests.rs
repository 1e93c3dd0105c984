//! Learning claims, with fixed seeds and horizons that fit a test run. `bem bench regret` has the full horizon.

use super::*;
use crate::index::IndexRule;
use crate::rule::{Rule, RuleKind};
use crate::softmax::Temperature;

const PLAIN: Parameters = Parameters { change: None, ..Parameters::DEFAULT };

/// Regret at each checkpoint, one row a seed.
fn regrets(
    setting: &Setting,
    kind: RuleKind,
    parameters: Parameters,
    seeds: u64,
    checkpoints: &[u64],
) -> Vec<Vec<Fixed>> {
    let run = |seed| {
        let mut rule = Rule::new(kind, parameters, setting.live(), Prng::stream(seed, "laboratory/rule"));
        play(setting, seed, &mut rule, checkpoints).regret
    };
    (0..seeds).map(run).collect()
}

fn mean(rows: &[Vec<Fixed>], checkpoint: usize) -> Fixed {
    let sum = rows.iter().fold(Fixed::ZERO, |sum, row| sum.plus(row[checkpoint]));
    sum.div_count_floor(rows.len() as u64)
}

fn worst(rows: &[Vec<Fixed>], checkpoint: usize) -> Fixed {
    rows.iter().map(|row| row[checkpoint]).max().unwrap()
}

#[test]
fn the_default_stays_below_its_curve_on_every_seed() {
    let rows = regrets(&Setting::REFERENCE, RuleKind::DEFAULT, Parameters::DEFAULT, 40, &[10_000, 100_000]);
    let (early, late) = (mean(&rows, 0), mean(&rows, 1));
    assert!(late < Fixed::from_int(450), "{late}");
    assert!(worst(&rows, 1) < Fixed::from_int(1_000), "{}", worst(&rows, 1));
    // Ten times the steps, less than 10^0.3 = 1.995 times the regret.
    assert!(late < early.mul_floor(Fixed::from_ratio(1_995, 1_000)), "{early} {late}");
}

#[test]
fn the_printed_rule_is_linear() {
    let kind = RuleKind::Lowest(IndexRule::AsPrinted);
    let rows = regrets(&Setting::REFERENCE, kind, PLAIN, 20, &[10_000, 100_000]);
    let (early, late) = (mean(&rows, 0), mean(&rows, 1));
    assert!(Fixed::from_int(7_000) < late, "{late}");
    assert!(early.mul_floor(Fixed::from_ratio(99, 10)) < late, "{early} {late}");
}

#[test]
fn greedy_without_a_bonus_locks_in() {
    let rows =
        regrets(&Setting::REFERENCE, RuleKind::Lowest(IndexRule::Greedy), PLAIN, 20, &[10_000, 100_000]);
    assert!(mean(&rows, 0).mul_int(5) < mean(&rows, 1));
}

#[test]
fn ten_change_points_cost_less_than_two_percent() {
    let world = World::Changing { change_points: 10 };
    let setting = Setting { world, gap: Fixed::from_ratio(3, 10), ..Setting::REFERENCE };
    let steps = 1_000_000;
    let rows = regrets(&setting, RuleKind::DEFAULT, Parameters::DEFAULT, 5, &[steps]);
    let bound = setting.gap.mul_int(steps as i64).mul_floor(Fixed::from_ratio(2, 100));
    assert!(worst(&rows, 0) < bound, "{} {bound}", worst(&rows, 0));
    let blind = regrets(&setting, RuleKind::DEFAULT, PLAIN, 5, &[steps]);
    assert!(bound < mean(&blind, 0), "without the detector: {}", mean(&blind, 0));
}

#[test]
fn softmax_settles_when_it_cools_and_never_at_a_fixed_temperature() {
    let run = |temperature| {
        let rows =
            regrets(&Setting::REFERENCE, RuleKind::Softmax(temperature), PLAIN, 10, &[10_000, 100_000]);
        (mean(&rows, 0), mean(&rows, 1))
    };
    let (early, late) = run(Temperature::Falling(Fixed::ONE));
    assert!(late < early.mul_int(2) && late < Fixed::from_int(1_000), "{early} {late}");
    let (early, late) = run(Temperature::Fixed(Fixed::from_ratio(1, 10)));
    assert!(early.mul_int(8) < late, "{early} {late}");
}

#[test]
fn against_an_adversary_every_index_is_linear_and_tsallis_inf_is_not() {
    let setting = Setting { world: World::Adversarial, ..Setting::REFERENCE };
    let steps = 50_000;
    let index = regrets(&setting, RuleKind::DEFAULT, PLAIN, 1, &[steps]);
    assert!(Fixed::from_int(steps as i32).mul_floor(Fixed::from_ratio(9, 10)) < mean(&index, 0));
    let sampled = regrets(&setting, RuleKind::TsallisInf, PLAIN, 4, &[steps]);
    assert!(worst(&sampled, 0) < Fixed::from_int(steps as i32 / 50), "{}", worst(&sampled, 0));
}

#[test]
fn tsallis_inf_is_sublinear_on_stochastic_arms_too() {
    let rows = regrets(&Setting::REFERENCE, RuleKind::TsallisInf, PLAIN, 6, &[10_000, 100_000]);
    let (early, late) = (mean(&rows, 0), mean(&rows, 1));
    assert!(late < early.mul_int(3) && late < Fixed::from_int(1_600), "{early} {late}");
}

/// A player with a prior that is as wrong as it can be: lowest on the best arm, highest elsewhere.
fn regret_with_wrong_prior(rule: IndexRule, seed: u64) -> Fixed {
    let parameters = Parameters { rule, prior_weight: Fixed::from_ratio(1, 20), ..PLAIN };
    let best = Prng::stream(seed, "laboratory").below(ARMS_MAX as u64) as usize;
    let mut bucket = Bucket::new(&parameters, u16::MAX);
    for arm in 0..ARMS_MAX {
        let prior = if arm == best { parameters.prior_min } else { parameters.prior_max };
        bucket.adjust_prior(&parameters, arm, prior);
    }
    let mut rule = Rule::Index { bucket: Box::new(bucket), parameters, softmax: None };
    play(&Setting::REFERENCE, seed, &mut rule, &[100_000]).regret[0]
}

#[test]
fn a_wrong_prior_is_harmless_as_radius_and_ruinous_as_subtraction() {
    for seed in 0..8 {
        let shrunk = regret_with_wrong_prior(IndexRule::UcbV, seed);
        assert!(shrunk < Fixed::from_int(1_500), "seed {seed}: {shrunk}");
        let subtracted = regret_with_wrong_prior(IndexRule::PriorSubtracted, seed);
        assert!(Fixed::from_int(9_000) < subtracted, "seed {seed}: {subtracted}");
    }
}

#[test]
fn a_run_depends_on_its_seed_alone() {
    let run = |seed| regrets(&Setting::REFERENCE, RuleKind::TsallisInf, PLAIN, seed, &[500]);
    assert_eq!(run(3), run(3));
    let rows = run(3);
    assert_ne!(rows[0], rows[1]);
}
