//! A sample of the battery, small enough for every test run.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use bem_sim::counters::Counters;
use bem_sim::engine::{EngineGolden, run_engine};
use bem_sim::golden::Golden;
use bem_sim::removal::removal;
use bem_sim::restore::restore_points;
use bem_sim::run::{Script, run, run_with_lie};
use bem_sim::store::{Mutant, Plan, SimStore};

#[test]
fn seeded_runs_with_crashes_and_failures_end_with_the_undisturbed_head() {
    let mut counters = Counters::default();
    let golden = Golden::rich(1, 60);
    for seed in 0..300 {
        run(&golden, seed, Script::Random, None, &mut counters)
            .unwrap_or_else(|reason| panic!("{seed}: {reason}"));
    }
    let ignored = ["lies", "lies_found", "lies_harmless"];
    for (name, count) in counters.all() {
        assert!(10 <= count || ignored.contains(&name), "{name} fired {count} times");
    }
}

#[test]
fn a_power_loss_at_every_operation_of_the_disk_loses_nothing_acknowledged() {
    let golden = Golden::rich(2, 30);
    let mut counters = Counters::default();
    let operations = undisturbed_operations(&golden);
    assert!(100 < operations, "{operations}");
    for index in 0..operations {
        for salt in 0..4 {
            run(&golden, index * 1_000 + salt, Script::CrashAt(index), None, &mut counters)
                .unwrap_or_else(|reason| panic!("operation {index}, salt {salt}: {reason}"));
        }
    }
}

fn undisturbed_operations(golden: &Golden) -> u64 {
    let store =
        SimStore::new(bem_sim::disk::Disk::new(), Plan::default(), bem_base::prng::Prng::stream(1, "count"));
    bem_sim::run::run_undisturbed(golden, store.clone());
    store.happened().operations
}

#[test]
fn every_sync_left_out_is_noticed() {
    let golden = Golden::rich(3, 40);
    for mutant in Mutant::ALL {
        let mut counters = Counters::default();
        let found =
            (0..400).find_map(|seed| run(&golden, seed, Script::Random, Some(mutant), &mut counters).err());
        assert!(found.is_some(), "{mutant:?} was not noticed\n{counters}");
    }
}

#[test]
fn a_disk_that_lies_is_found_out_or_did_no_harm() {
    let golden = Golden::rich(4, 60);
    let mut counters = Counters::default();
    for seed in 0..400 {
        run_with_lie(&golden, seed, &mut counters).unwrap_or_else(|reason| panic!("{seed}: {reason}"));
    }
    assert!(50 < counters.lies_found, "{counters}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let golden = Golden::rich(5, 40);
    for seed in 0..20 {
        let (mut first, mut second) = (Counters::default(), Counters::default());
        run(&golden, seed, Script::Random, None, &mut first).unwrap();
        run(&golden, seed, Script::Random, None, &mut second).unwrap();
        assert_eq!(first, second);
    }
}

#[test]
fn a_climb_on_a_failing_disk_ends_with_the_undisturbed_head() {
    let golden = EngineGolden::new();
    let mut counters = Counters::default();
    for seed in 1..200 {
        run_engine(&golden, seed, &mut counters).unwrap_or_else(|reason| panic!("{seed}: {reason}"));
    }
    for (name, count) in counters.all() {
        let fires = ["power_losses", "kills", "failures", "sync_failures", "names_lost", "changes_lost"];
        assert!(10 <= count || !fires.contains(&name), "{name} fired {count} times");
    }
}

#[test]
fn learners_that_are_put_away_anywhere_go_on_bit_for_bit() {
    let restored = restore_points(60, 2).unwrap();
    assert!(10 < restored.in_episode && 10 < restored.with_patch, "{restored:?}");
}

#[test]
fn what_a_history_names_cannot_be_removed_and_forgeries_with_the_key_are_refused() {
    let golden = EngineGolden::new();
    let refused = removal(&golden.store, &bem_ledger::testing::signer(), 3).unwrap();
    for name in [
        "blob removed",
        "certificate forged away",
        "certificate of another patch",
        "certificate of something trivial",
        "certificate too many",
        "cut tail",
        "entry removed",
        "leaf of another circuit",
        "patch forged away",
        "payload changed",
        "unit forged away",
    ] {
        assert!(refused.contains_key(name), "{name}: {refused:?}");
    }
}
