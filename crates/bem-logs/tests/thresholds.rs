//! Thresholds that lie between the quantiles of a log: they are found where labels or rewards change.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_data::Table;
use bem_logs::learn::Verdict;
use bem_logs::{Learned, Log, Options, Roles, episodes, learn};
use bem_synth::policy::Player;
use std::fmt::Write as _;

const ROWS: usize = 10_000;

fn roles(label: bool) -> Roles {
    let some = |word: &str, is: bool| is.then(|| word.to_string());
    Roles {
        features: vec!["x".to_string(), "y".to_string()],
        action: some("a", !label),
        reward: some("r", !label),
        propensity: some("p", !label),
        episode: None,
        label: some("a", label),
    }
}

/// Labels by millionths of x, beside a y that says nothing; one label of so many is wrong.
fn labelled(seed: u64, is_set: impl Fn(u64) -> bool, wrong: u64) -> Log {
    let mut prng = Prng::stream(seed, "logs/thresholds");
    let mut text = "x,y,a\n".to_string();
    for _ in 0..ROWS {
        let (x, y) = (prng.below(1_000_000), prng.below(1_000_000));
        let flips = 0 < wrong && prng.below(wrong) == 0;
        let _ = writeln!(text, "0.{x:06},0.{y:06},{}", u8::from(is_set(x) != flips));
    }
    Log::new(&Table::from_csv(&text).unwrap(), &roles(true), None).unwrap()
}

/// How many of 200,000 values of x a policy decides otherwise than this.
fn misses(learned: &Learned, is_set: impl Fn(u64) -> bool) -> usize {
    let mut player = Player::new(&learned.policy);
    let mut wrong = |x: u64| {
        player.begin();
        let text = |name: &str| Some(if name == "x" { format!("0.{x:06}") } else { "0.3".to_string() });
        let cells = [text("x").unwrap(), text("y").unwrap()];
        let seen =
            learned.encoder.encode(|name| Some(if name == "x" { &cells[0] } else { &cells[1] })).unwrap();
        (player.act(&seen) == 1) != is_set(x)
    };
    (0..200_000).filter(|place| wrong(place * 5)).count()
}

#[test]
fn a_sharp_threshold_is_learned_as_it_is() {
    for seed in 0..3 {
        let is_set = |x: u64| 137_000 <= x;
        let learned = learn(&labelled(seed, is_set, 0), &Options::default(), &mut |_| {}).unwrap();
        // Neighbours among 10,000 values lie a ten-thousandth apart; the grid was wrong in up to three of a hundred.
        let wrong = misses(&learned, is_set);
        assert!(wrong < 100, "seed {seed}: {wrong} of 200000 wrong, {}", learned.words);
        assert!(Fixed::from_ratio(999, 1_000) < learned.value.mean, "{:?}", learned.value);
        assert_eq!(learned.encoder.bits(), 1, "{}", learned.words);
    }
}

#[test]
fn a_band_narrower_than_the_grid_is_found_and_noise_does_not_hide_it() {
    let is_set = |x: u64| (500_000..512_000).contains(&x);
    for (seed, noise) in [(1, 0), (2, 0), (3, 200)] {
        let learned = learn(&labelled(seed, is_set, noise), &Options::default(), &mut |_| {}).unwrap();
        assert_eq!(learned.verdict, Verdict::Supported, "seed {seed}: {}", learned.words);
        let wrong = misses(&learned, is_set);
        assert!(wrong < 300, "seed {seed}: {wrong} of 200000 wrong, {}", learned.words);
    }
}

#[test]
fn a_band_is_found_in_logged_decisions() {
    let mut prng = Prng::stream(5, "logs/thresholds");
    let mut text = "x,y,a,r,p\n".to_string();
    let is_set = |x: u64| (300_000..315_000).contains(&x);
    for _ in 0..ROWS {
        let (x, y, action) = (prng.below(1_000_000), prng.below(1_000_000), prng.below(2));
        let reward = u8::from(is_set(x) == (action == 1));
        let _ = writeln!(text, "0.{x:06},0.{y:06},{action},{reward},0.5");
    }
    let log = Log::new(&Table::from_csv(&text).unwrap(), &roles(false), None).unwrap();
    let learned = learn(&log, &Options::default(), &mut |_| {}).unwrap();
    assert_eq!(learned.verdict, Verdict::Supported);
    let wrong = misses(&learned, is_set);
    // Always the first action is wrong in 3,000.
    assert!(wrong < 300, "{wrong} of 200000 wrong, {}", learned.words);
}

#[test]
fn a_sharp_threshold_is_learned_from_episodes() {
    let mut prng = Prng::stream(6, "logs/thresholds");
    let mut text = "x,y,a,r,p,e\n".to_string();
    let is_set = |x: u64| 137_000 <= x;
    for episode in 0..4_000 {
        for _ in 0..2 {
            let (x, action) = (prng.below(1_000_000), prng.below(2));
            let reward = u8::from(is_set(x) == (action == 1));
            let _ = writeln!(text, "0.{x:06},0.3,{action},{reward},0.5,{episode}");
        }
    }
    let roles = Roles { episode: Some("e".to_string()), ..roles(false) };
    let log = Log::new(&Table::from_csv(&text).unwrap(), &roles, None).unwrap();
    let learned = episodes::learn(&log, &Options::default(), &mut |_| {}).unwrap();
    assert_eq!(learned.verdict, Verdict::Supported, "{}", learned.words);
    let wrong = misses(&learned, is_set);
    assert!(wrong < 400, "{wrong} of 200000 wrong, {}", learned.words);
}
