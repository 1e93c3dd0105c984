//! What is claimed where a log never took an action: nothing of it, and something useful beside it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_data::Table;
use bem_data::feature::Value;
use bem_logs::estimate::Missing;
use bem_logs::learn::{Verdict, evaluate};
use bem_logs::{Log, Options, Roles, episodes, learn};
use bem_synth::policy::Player;
use std::fmt::Write as _;

/// Rows of a log. Every tenth of x has its own logging policy.
const ROWS: usize = 6_000;
/// Of a hundred rewards of action 2 and of the others how many are one.
const PAYS: (u64, u64) = (90, 41);

fn roles(propensity: bool, episode: bool) -> Roles {
    Roles {
        features: vec!["x".to_string()],
        action: Some("a".to_string()),
        reward: Some("r".to_string()),
        propensity: propensity.then(|| "p".to_string()),
        episode: episode.then(|| "e".to_string()),
        label: None,
    }
}

/// A log whose logger takes action 2 with so many chances of a hundred where x is above 5, and with a third elsewhere. Where it
/// has none, what the action would have paid there leaves no trace.
fn hole(seed: u64, above: u64) -> Log {
    let mut prng = Prng::stream(seed, "logs/hole");
    let mut text = "x,a,r,p,e\n".to_string();
    for row in 0..ROWS {
        let x = prng.below(10);
        let third = if x <= 5 { 33 } else { above };
        let drawn = prng.below(100);
        let (action, hundredths) = match drawn {
            _ if drawn < third => (2, third),
            _ => (prng.below(2), (100 - third) / 2),
        };
        // Half of an odd rest is told to the half.
        let chance = if action == 2 { 10 * hundredths } else { 5 * (100 - third) };
        let pays = prng.below(100) < if action == 2 { PAYS.0 } else { PAYS.1 };
        let _ = writeln!(text, "{x},{action},{},0.{chance:03},{row}", u8::from(pays));
    }
    Log::new(&Table::from_csv(&text).unwrap(), &roles(true, false), None).unwrap()
}

fn x(row: &[Value]) -> i64 {
    match row[0] {
        Value::Number(number) => number.to_int().unwrap(),
        _ => unreachable!("x is a number"),
    }
}

#[test]
fn where_an_action_was_never_taken_another_one_is_learned_and_the_claim_is_true_whatever_it_would_have_paid()
{
    for seed in 0..8 {
        let log = hole(seed, 0);
        let learned = learn(&log, &Options::default(), &mut |_| {}).unwrap();
        assert_eq!(learned.verdict, Verdict::Supported, "{} {:?}", learned.words, learned.gain);
        let mut player = Player::new(&learned.policy);
        let mut truths = [0; 2];
        for row in &log.rows {
            player.begin();
            let action = player.act(&learned.encoder.encode_values(row));
            // Two worlds that write the same log: above 5 action 2 pays nothing, or what it pays elsewhere.
            for (truth, there) in truths.iter_mut().zip([0, PAYS.0]) {
                *truth += match action {
                    2 if 5 < x(row) => there,
                    2 => PAYS.0,
                    _ => PAYS.1,
                };
            }
            assert!(action != 2 || x(row) <= 5, "seed {seed}: nobody knows what action 2 pays at {}", x(row));
        }
        // Always the best action below and another one above: 0.6 * 0.9 + 0.4 * 0.41 = 0.704.
        for truth in truths {
            let truth = Fixed::from_ratio(truth as i64, 100 * ROWS as i64);
            assert!(Fixed::from_ratio(68, 100) < truth, "seed {seed}: {truth:?} is too little");
            let slack = Fixed::from_ratio(2, 100);
            let (low, high) = (learned.value.low.minus(slack), learned.value.high.plus(slack));
            assert!(low < truth && truth < high, "seed {seed}: {truth:?} in {:?}", learned.value);
        }
    }
}

#[test]
fn a_policy_that_does_what_the_log_never_did_is_not_valued() {
    let always = vec![2; ROWS];
    let (holed, warnings) = evaluate(&hole(1, 0), &always, &Options::default()).unwrap();
    assert_eq!(holed.missing(), Some(Missing::Beyond));
    assert!((2_200..2_600).contains(&holed.beyond), "{}", holed.beyond);
    assert!(warnings.iter().any(|warning| warning.contains("what the log never did")), "{warnings:?}");
    // The control: with four chances of a hundred there, all of it is known.
    let (rare, warnings) = evaluate(&hole(1, 4), &always, &Options::default()).unwrap();
    assert_eq!((rare.missing(), rare.beyond), (None, 0), "{warnings:?}");
    let truth = Fixed::from_ratio(9, 10);
    assert!(rare.ips.low < truth && truth < rare.ips.high, "{:?}", rare.ips);
    // A policy that stays away from the hole is valued by the log that has it.
    let careful: Vec<u16> = hole(1, 0).rows.iter().map(|row| if x(row) <= 5 { 2 } else { 0 }).collect();
    let (careful, warnings) = evaluate(&hole(1, 0), &careful, &Options::default()).unwrap();
    assert_eq!((careful.missing(), careful.beyond), (None, 0), "{warnings:?}");
}

#[test]
fn a_logger_that_always_did_the_same_in_the_same_case_supports_nothing_else() {
    for propensity in [false, true] {
        let mut prng = Prng::stream(3, "logs/hole");
        let mut text = "x,a,r,p,e\n".to_string();
        for row in 0..2_000 {
            let x = prng.below(10);
            let _ = writeln!(text, "{x},{},{},0.5,{row}", u8::from(5 < x), u8::from(x < 3));
        }
        let log = Log::new(&Table::from_csv(&text).unwrap(), &roles(propensity, false), None).unwrap();
        let learned = learn(&log, &Options::default(), &mut |_| {}).unwrap();
        assert_eq!(learned.verdict, Verdict::NotSupported, "{} {:?}", learned.words, learned.gain);
        let other: Vec<u16> = log.outcomes.iter().map(|outcome| 1 - outcome.action).collect();
        let (estimate, _) = evaluate(&log, &other, &Options::default()).unwrap();
        assert_eq!(estimate.missing(), Some(Missing::Beyond), "propensity {propensity}");
    }
}

#[test]
fn an_episode_in_which_the_log_never_did_what_the_policy_does_supports_no_value() {
    let mut prng = Prng::stream(4, "logs/hole");
    let mut text = "x,a,r,p,e\n".to_string();
    // The second action pays in the first step; the log never took it in the second one where x is above 5.
    for episode in 0..1_500 {
        for step in 0..2 {
            let (x, coin) = (prng.below(10), prng.below(2));
            let is_barred = step == 1 && 5 < x;
            let (action, chance) = if is_barred { (0, "1") } else { (coin, "0.5") };
            let _ = writeln!(text, "{}{x},{action},{action},{chance},{episode}", step + 1);
        }
    }
    let log = Log::new(&Table::from_csv(&text).unwrap(), &roles(true, true), None).unwrap();
    let learned = episodes::learn(&log, &Options::default(), &mut |_| {}).unwrap();
    let mut player = Player::new(&learned.policy);
    let rows: Vec<_> = log.rows.iter().map(|row| learned.encoder.encode_values(row)).collect();
    for (row, bits) in rows.iter().enumerate() {
        if log.outcomes[row].episode as usize * 2 == row {
            player.begin();
        }
        let action = player.act(bits);
        let is_claimed = learned.verdict == Verdict::Supported;
        assert!(!is_claimed || action == 0 || x(&log.rows[row]) <= 25, "{} {row}", learned.words);
    }
    let always = bem_synth::policy::Policy::constant(2, 1);
    let (estimate, warnings) = episodes::evaluate(&log, &always, &rows, &Options::default()).unwrap();
    assert_eq!(estimate.missing(), Some(Missing::Beyond), "{warnings:?}");
    // Four episodes in ten have such a step, and half of these get as far with what the policy does.
    assert!((200..400).contains(&estimate.beyond), "{}", estimate.beyond);
    let never = bem_synth::policy::Policy::constant(2, 0);
    let (estimate, warnings) = episodes::evaluate(&log, &never, &rows, &Options::default()).unwrap();
    assert_eq!((estimate.missing(), estimate.beyond), (None, 0), "{warnings:?}");
}

/// A log without propensities, whose logger looks at both features: it takes action 1 with 15 or 30 chances of a hundred where x is
/// below 5 and with 50 or 70 elsewhere, by the word, and action 2 with 20 everywhere. Action 1 pays below 5, action 2 elsewhere.
fn unsaid(seed: u64) -> Log {
    let mut prng = Prng::stream(seed, "logs/unsaid");
    let mut text = "x,d,a,r\n".to_string();
    for _ in 0..4_000 {
        let (x, second) = (prng.below(10), prng.below(2));
        let one = [[15, 30], [50, 70]][usize::from(5 <= x)][second as usize];
        let action = match prng.below(100) {
            drawn if drawn < 20 => 2,
            drawn if drawn < 20 + one => 1,
            _ => 0,
        };
        let best = if x < 5 { 1 } else { 2 };
        let pays = prng.below(100) < if action == best { 70 } else { 30 };
        let _ = writeln!(text, "{x},{},{action},{}", ["u", "v"][second as usize], u8::from(pays));
    }
    let roles = Roles { features: vec!["x".to_string(), "d".to_string()], ..roles(false, false) };
    Log::new(&Table::from_csv(&text).unwrap(), &roles, None).unwrap()
}

#[test]
fn a_log_without_propensities_whose_logger_looks_at_features_supports_what_is_learned_from_it() {
    for seed in 0..4 {
        let log = unsaid(seed);
        let learned = learn(&log, &Options::default(), &mut |_| {}).unwrap();
        assert_eq!(learned.verdict, Verdict::Supported, "{} {:?}", learned.words, learned.gain);
        assert!(learned.warnings.iter().any(|warning| warning.contains("they are modelled")));
        let estimate = learned.estimate.unwrap();
        assert_eq!((estimate.missing(), estimate.beyond), (None, 0), "seed {seed}: {:?}", estimate.weight);
        let mut player = Player::new(&learned.policy);
        let mut act = |row: &Vec<Value>| {
            player.begin();
            player.act(&learned.encoder.encode_values(row))
        };
        let chosen: Vec<u16> = log.rows.iter().map(&mut act).collect();
        let best = |row: &[Value]| if x(row) < 5 { 1 } else { 2 };
        let right = log.rows.iter().zip(&chosen).filter(|(row, action)| best(row) == **action).count();
        assert!(3_800 < right, "seed {seed}: {right} of 4000, {}", learned.words);
        // The same policy judged by the whole log, and one that always does what the logger does rarely.
        for (chosen, hundredths) in [(chosen, 70), (vec![2; log.rows.len()], 50)] {
            let (estimate, warnings) = evaluate(&log, &chosen, &Options::default()).unwrap();
            assert_eq!((estimate.missing(), estimate.beyond), (None, 0), "seed {seed}: {warnings:?}");
            let (truth, slack) = (Fixed::from_ratio(hundredths, 100), Fixed::from_ratio(5, 100));
            let told = estimate.dr.unwrap();
            let (low, high) = (told.low.minus(slack), told.high.plus(slack));
            assert!(low < truth && truth < high, "seed {seed}: {told:?}");
        }
    }
    // The control: chances that the log says and that are wrong support nothing.
    let mut wrong = unsaid(1);
    wrong.outcomes.iter_mut().for_each(|outcome| outcome.propensity = Some(Fixed::from_ratio(3, 4)));
    let learned = learn(&wrong, &Options::default(), &mut |_| {}).unwrap();
    assert_eq!(learned.verdict, Verdict::NotSupported, "{} {:?}", learned.words, learned.gain);
    assert_eq!(learned.estimate.unwrap().missing(), Some(Missing::Weights));
}

/// A log without propensities, whose logger takes one action of three with 60 chances of a hundred: which, is a matter of both
/// features together.
fn joint(seed: u64) -> Log {
    let mut prng = Prng::stream(seed, "logs/joint");
    let mut text = "x,d,a,r\n".to_string();
    for _ in 0..3_000 {
        let (x, second) = (prng.below(24), prng.below(2));
        let usual = if (8..18).contains(&x) { 1 + second } else { 2 * (1 - second) };
        let action = if prng.below(10) < 6 { usual } else { (usual + 1 + prng.below(2)) % 3 };
        let pays = prng.below(100) < if action == 1 { 60 } else { 20 };
        let _ = writeln!(text, "{x},{},{action},{}", ["u", "v"][second as usize], u8::from(pays));
    }
    let roles = Roles { features: vec!["x".to_string(), "d".to_string()], ..roles(false, false) };
    Log::new(&Table::from_csv(&text).unwrap(), &roles, None).unwrap()
}

#[test]
fn a_logger_that_looks_at_two_features_together_is_modelled_well_enough_to_support_what_is_learned() {
    for seed in 0..4 {
        let learned = learn(&joint(seed), &Options::default(), &mut |_| {}).unwrap();
        assert_eq!(learned.verdict, Verdict::Supported, "{} {:?}", learned.words, learned.gain);
        let estimate = learned.estimate.unwrap();
        assert_eq!(estimate.missing(), None, "seed {seed}: {:?}", estimate.weight);
        let (truth, told) = (Fixed::from_ratio(60, 100), estimate.dr.unwrap());
        let slack = Fixed::from_ratio(3, 100);
        assert!(told.low.minus(slack) < truth && truth < told.high.plus(slack), "seed {seed}: {told:?}");
    }
}
