//! What is learned from logs: a rule is found again, chance is not mistaken for one, and the gate says so.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_data::Table;
use bem_logs::learn::Verdict;
use bem_logs::{Log, Options, Roles, episodes, learn};
use bem_synth::policy::Player;
use std::fmt::Write as _;

fn roles(label: bool, episode: bool) -> Roles {
    let some = |word: &str, is: bool| is.then(|| word.to_string());
    Roles {
        features: vec!["x".to_string(), "y".to_string(), "c".to_string()],
        action: some("a", !label),
        reward: some("r", !label),
        propensity: some("p", !label),
        episode: some("e", episode),
        label: some("a", label),
    }
}

/// Rows with a right action: by x and y where it is a rule, by a coin where it is not.
fn table(rows: usize, is_rule: bool, logged: bool, seed: u64) -> Table {
    let mut prng = Prng::stream(seed, "logs/tests");
    let mut text = "x,y,c,a,r,p,e\n".to_string();
    for row in 0..rows {
        let (x, y, colour) =
            (prng.below(1_000), prng.below(100), ["red", "green", "blue"][prng.below(3) as usize]);
        let right = match is_rule {
            true if colour == "red" => 2,
            true => u64::from(333 <= x && y < 60),
            false => prng.below(3),
        };
        let action = if logged { prng.below(3) } else { right };
        let noise = prng.below(10) == 0;
        let reward = u64::from((action == right) != (logged && noise));
        let _ = writeln!(text, "{}.{:03},{y},{colour},{action},{reward},0.3333,{row}", x / 1_000, x % 1_000);
    }
    Table::from_csv(&text).unwrap()
}

#[test]
fn a_rule_is_found_in_labels_and_its_circuit_follows_it() {
    let table = table(600, true, false, 1);
    let log = Log::new(&table, &roles(true, false), None).unwrap();
    let learned = learn(&log, &Options::default(), &mut |_| {}).unwrap();
    assert_eq!(learned.verdict, Verdict::Supported);
    let mut player = Player::new(&learned.policy);
    let right = log.rows.iter().zip(&log.outcomes);
    let right = right
        .filter(|(row, outcome)| player.act(&learned.encoder.encode_values(row)) == outcome.action)
        .count();
    assert!(590 <= right, "{right} of 600: {}", learned.words);
    // Only comparisons that the circuit reads are encoded, and they are named.
    assert_eq!(learned.encoder.bits(), learned.policy.reads().len());
    let names: Vec<String> =
        (0..learned.encoder.bits()).filter_map(|bit| learned.encoder.fact(bit, true)).collect();
    assert!(names.iter().any(|name| name == "c = red"), "{names:?}");
}

#[test]
fn a_rule_is_found_in_logged_decisions_and_the_gate_lets_it_through() {
    let table = table(3_000, true, true, 2);
    let log = Log::new(&table, &roles(false, false), None).unwrap();
    let learned = learn(&log, &Options::default(), &mut |_| {}).unwrap();
    assert_eq!(learned.verdict, Verdict::Supported, "{:?}", learned.gain);
    let estimate = learned.estimate.unwrap();
    // The best policy earns 0.9, the log a third of that and of the noise.
    assert!(Fixed::from_ratio(85, 100) < estimate.dr.unwrap().mean, "{:?}", estimate.dr);
    assert!(learned.warnings.is_empty(), "{:?}", learned.warnings);
}

/// Controls: where rewards are coins nothing is supported, whatever the seed.
#[test]
fn coins_teach_nothing() {
    let mut supported = 0;
    for seed in 0..12 {
        for logged in [false, true] {
            let table = table(400, false, logged, 100 + seed);
            let log = Log::new(&table, &roles(!logged, false), None).unwrap();
            let learned = learn(&log, &Options { seed, ..Options::default() }, &mut |_| {}).unwrap();
            supported += u32::from(learned.verdict == Verdict::Supported);
        }
    }
    assert!(supported <= 2, "{supported} of 24");
}

#[test]
fn episodes_are_learned_from_and_judged_by_those_set_aside() {
    let mut prng = Prng::stream(5, "logs/episodes");
    let mut text = "x,y,c,a,r,p,e\n".to_string();
    // Two steps; the second pays if its action repeats what x showed in the first.
    for episode in 0..1_500 {
        let shown = prng.below(2);
        for step in 0..2 {
            let (x, action) = (if step == 0 { shown } else { 0 }, prng.below(2));
            let reward = u64::from(step == 1 && action == shown);
            let _ = writeln!(text, "{x},{step},only,{action},{reward},0.5,{episode}");
        }
    }
    let log = Log::new(&Table::from_csv(&text).unwrap(), &roles(false, true), None).unwrap();
    let learned = episodes::learn(&log, &Options::default(), &mut |_| {}).unwrap();
    assert_eq!(learned.verdict, Verdict::Supported, "{} {:?}", learned.words, learned.estimate);
    assert!(0 < learned.policy.memory_bits(), "{}", learned.words);
}

#[test]
fn the_accuracy_of_the_winner_is_not_that_of_the_luckiest_candidate() {
    // Labels by a coin of three sides: nothing is right more often than one time in three.
    let (mut said, mut luckiest) = (Fixed::ZERO, Fixed::ZERO);
    let tables = 40;
    for seed in 0..tables {
        let log = Log::new(&table(80, false, false, 1_000 + seed), &roles(true, false), None).unwrap();
        let learned = learn(&log, &Options::default(), &mut |_| {}).unwrap();
        said = said.plus(learned.value.mean);
        luckiest = luckiest.plus(learned.candidates[0].1);
    }
    let count = Fixed::from_int(tables as i32);
    let (said, luckiest) = (said.div_floor(count), luckiest.div_floor(count));
    let third = Fixed::from_ratio(1, 3);
    // Of 3,200 rows one standard error is 0.008. The candidate that did best did so because it was chosen for it.
    assert!(said < third.plus(Fixed::from_ratio(3, 100)), "{said:?} is more than chance");
    assert!(third.plus(Fixed::from_ratio(5, 100)) < luckiest, "{luckiest:?}: nothing to be misled by");
}
