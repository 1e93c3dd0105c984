//! What was learned at one size is tried first at twice that size: eleven settings of ten families, steps against from scratch.
//!
//! The battery `transfer` runs the same with more seeds: BEM_TRANSFER_SEEDS=5. Clauses: SCC-2, GLE-10, PIPE-3.

use bem_engine::learner::Settings;
use bem_engine::solve::{Lesson, Solution, teach};
use bem_engine::worlds::Catalog;
use bem_machine::config::GenesisConfig;
use bem_synth::library::Machine;
use std::sync::Arc;

/// A family at one size and at twice that size.
const PAIRS: [(&str, &str); 11] = [
    ("parity{n=8}", "parity{n=16}"),
    ("majority{n=9}", "majority{n=18}"),
    ("popcount{n=7}", "popcount{n=14}"),
    ("compare{bits=4}", "compare{bits=8}"),
    ("add{bits=3,form=word}", "add{bits=6,form=word}"),
    ("add{bits=4,form=indexed}", "add{bits=8,form=indexed}"),
    ("distance{n=4,kind=hamming}", "distance{n=8,kind=hamming}"),
    ("subtract{bits=4,form=indexed}", "subtract{bits=8,form=indexed}"),
    ("reverse{length=4}", "reverse{length=8}"),
    ("copy{length=4}", "copy{length=8}"),
    ("parity_stream{n=8}", "parity_stream{n=16}"),
];
/// Steps at most, and what a task counts for that was not learned in them.
const BUDGET: u64 = 60_000;

fn learn(task: &str, seed: u64, library: Vec<Machine>) -> Solution {
    let game = Catalog.game(task, seed).expect("a task of the catalog");
    let settings = Settings { seed, budget: BUDGET, config: Arc::new(GenesisConfig::default()) };
    let lesson = Lesson { library, until_solved: true, ..Lesson::alone(settings) };
    teach(game.as_ref(), lesson, &mut |_| true).expect("games do not fail")
}

#[allow(
    clippy::disallowed_methods,
    reason = "the battery asks for more seeds from outside, and only in this test"
)]
fn seeds() -> u64 {
    std::env::var("BEM_TRANSFER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
#[allow(clippy::print_stdout, reason = "the battery shows the table")]
fn ten_families_at_twice_the_size_take_less_than_a_third_of_the_steps() {
    let mut shares = Vec::new();
    for (small, large) in PAIRS {
        for seed in 1..=seeds() {
            let first = learn(small, seed, Vec::new());
            let known = learn(large, seed + 100, first.learned.machine.clone().into_iter().collect());
            let alone = learn(large, seed + 100, Vec::new());
            let steps = |solution: &Solution| solution.steps_to_99.unwrap_or(BUDGET);
            let share = 1_000 * steps(&known) / steps(&alone);
            println!("{large:<36} {:>6} of {:>6} steps: {share:>5} per mille", steps(&known), steps(&alone));
            shares.push(share);
        }
    }
    shares.sort_unstable();
    let (median, most) = (shares[shares.len() / 2], shares[shares.len() - 1]);
    println!("median {median}, at most {most} per mille");
    assert!(median <= 300 && most <= 1_100, "{shares:?}");
}
