//! A run in a world whose best action changes: what is forgotten is a `reset` of its history, which is audited and played again.
//!
//! Resets come of change detection in worlds of one step, and of experts that act. Of the families of the catalog
//! `nonstationary_bandit` changes, within episodes that last 64,000 steps: this world does so in 12,000. Clauses: VM-16, SCC-13,
//! LOG-1.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::prng::Prng;
use bem_engine::climb::{Climb, Worked};
use bem_engine::journal::{Journal, Replay, RunConditions};
use bem_engine::learner::Settings;
use bem_engine::worlds::{World, Worlds};
use bem_games::game::GameError;
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::checkpoint::Signer;
use bem_ledger::entry::KIND_NAMES;
use bem_ledger::log::{LogOptions, store_blob};
use bem_ledger::store::MemoryStore;
use std::collections::BTreeSet;

/// Steps of the run; the change comes in the middle, if it comes.
const STEPS: u64 = 12_000;

/// Two contexts, three actions; the action that pays nine times of ten is another one after the change.
struct Changing {
    shape: Shape,
    prng: Prng,
    seen: Bits,
    steps: u64,
    changes: bool,
}

impl Environment for Changing {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn repeats(&self) -> bool {
        false
    }

    fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
        self.seen = Bits([self.prng.below(2), 0, 0, 0]);
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.seen
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let is_changed = self.changes && STEPS / 2 <= self.steps;
        let best = u16::from(self.seen.get(0)) + u16::from(is_changed);
        self.steps += 1;
        let chance = if action == best { 90 } else { 10 };
        Ok(Outcome { reward: 1_000 * i32::from(self.prng.below(100) < chance), done: true, bad: false })
    }
}

/// Opens that world.
#[derive(Clone, Copy)]
struct Own {
    changes: bool,
}

impl Worlds for Own {
    fn open(&self, _task: &str, seed: u64) -> Result<World, GameError> {
        let shape = Shape {
            observation_bits: 1,
            actions: 3,
            fields: Vec::new(),
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
        };
        let prng = Prng::stream(seed, "changing");
        Ok(World::Outside(Box::new(Changing {
            shape,
            prng,
            seen: Bits::ZERO,
            steps: 0,
            changes: self.changes,
        })))
    }
}

/// Resets in the history of a run, which is audited and played again.
fn resets(changes: bool) -> u64 {
    let worlds = Own { changes };
    let settings = Settings { budget: STEPS, ..Settings::new(1) }.with(|config| config.until_budget = true);
    // The world is no text of the catalog: a file stands for it.
    let mut store = MemoryStore::new();
    let files = vec![store_blob(&mut store, b"a world that changes").unwrap()];
    let mut climb = Climb::single("changing", "changing", &settings).with_files(files);
    let signer = Signer::from_seed(&[5; 32]);
    let journal = Journal::create(store, signer, "test", &climb, None, LogOptions::default());
    let mut journal = journal.unwrap();
    let unit = climb.next(&BTreeSet::new()).unwrap();
    let Worked::Done(result) = climb.assign(&unit).go_on_in(&worlds, None, &mut || true).unwrap() else {
        panic!("nobody asked to stop");
    };
    climb.take(&result);
    journal.unit(&result, &climb).unwrap();
    journal.save(&climb, Vec::new()).unwrap();
    let mut store = journal.into_store();
    let report = audit(&mut store, None, &mut RunConditions::new()).unwrap();
    assert_eq!(report.verdict, AuditVerdict::Unanchored);
    let mut replay = Replay::open(store).unwrap().in_worlds(Box::new(worlds));
    while replay.advance().unwrap().is_some() {}
    assert_eq!(replay.climb().head(), climb.head());
    KIND_NAMES.iter().zip(report.kinds).find(|(kind, _)| **kind == "reset").unwrap().1
}

#[test]
fn a_run_in_a_world_that_changes_writes_resets_and_reads_them_back() {
    assert!(0 < resets(true));
    // The control: the same world without the change.
    assert_eq!(resets(false), 0);
}
