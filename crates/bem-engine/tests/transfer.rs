//! What was learned at one size is tried first at twice that size: ten families, steps against from scratch.
//!
//! The battery `transfer` runs the same with more seeds: BEM_TRANSFER_SEEDS=5. Clauses: SCC-2, GLE-10, PIPE-3.

use bem_engine::learner::Settings;
use bem_engine::solve::{Lesson, Solution, teach};
use bem_engine::worlds::Catalog;
use bem_machine::config::GenesisConfig;
use bem_synth::library::Machine;
use std::sync::Arc;

/// A family at one size and at twice that size.
const PAIRS: [(&str, &str); 10] = [
    ("parity{n=8}", "parity{n=16}"),
    ("majority{n=9}", "majority{n=18}"),
    ("popcount{n=7}", "popcount{n=14}"),
    ("compare{bits=4}", "compare{bits=8}"),
    ("add{bits=3,form=word}", "add{bits=6,form=word}"),
    ("add{bits=4,form=indexed}", "add{bits=8,form=indexed}"),
    ("distance{n=4,kind=hamming}", "distance{n=8,kind=hamming}"),
    ("subtract{bits=4,form=indexed}", "subtract{bits=8,form=indexed}"),
    ("reverse{length=4}", "reverse{length=8}"),
    ("parity_stream{n=8}", "parity_stream{n=16}"),
];

fn learn(task: &str, seed: u64, library: Vec<Machine>) -> Solution {
    let game = Catalog.game(task, seed).unwrap();
    let settings = Settings { seed, budget: 60_000, config: Arc::new(GenesisConfig::default()) };
    let lesson = Lesson { library, until_solved: true, ..Lesson::alone(settings) };
    teach(game.as_ref(), lesson, &mut |_| true).unwrap()
}

#[test]
fn ten_families_at_twice_the_size_take_less_than_a_third_of_the_steps() {
    let seeds = std::env::var("BEM_TRANSFER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1u64);
    let mut shares = Vec::new();
    for (small, large) in PAIRS {
        for seed in 1..=seeds {
            let first = learn(small, seed, Vec::new());
            let machine = first.learned.machine.clone();
            let known = learn(large, seed + 100, machine.into_iter().collect());
            let alone = learn(large, seed + 100, Vec::new());
            let steps = |solution: &Solution| solution.steps_to_99.unwrap_or(60_000);
            let share = steps(&known) as f64 / steps(&alone) as f64;
            println!(
                "{large:<36} {:>7} against {:>7}: {share:.3}  ({})",
                steps(&known),
                steps(&alone),
                first.learned.words
            );
            shares.push(share);
        }
    }
    shares.sort_by(f64::total_cmp);
    let median = shares[shares.len() / 2];
    println!("median {median:.3}, at most {:.3}", shares[shares.len() - 1]);
    assert!(median <= 0.30, "{shares:?}");
    assert!(shares[shares.len() - 1] <= 1.10, "{shares:?}");
}
