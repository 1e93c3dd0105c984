//! What a run uses: entries of every kind that a run without tools and people has, the scheduler, the barrier, the control core,
//! and a teacher whose own templates are practised: compositions across families, what the trace showed, and what verification
//! found to contradict the log.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_engine::climb::{Climb, ClimbConfig};
use bem_engine::journal::{Journal, Replay, RunConditions};
use bem_ledger::audit::{AuditReport, AuditVerdict, audit};
use bem_ledger::checkpoint::Signer;
use bem_ledger::entry::KIND_NAMES;
use bem_ledger::log::LogOptions;
use bem_ledger::store::MemoryStore;
use bem_machine::config::{ChoiceRule, GenesisConfig, SchedulerKind, Word};
use bem_teacher::mutate::Transformation;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Climbs until this many steps are taken; audits the history and plays it again.
fn run(config: ClimbConfig, steps: u64) -> (Climb, AuditReport) {
    let mut climb = Climb::new(config).unwrap();
    let signer = Signer::from_seed(&[5; 32]);
    let journal = Journal::create(MemoryStore::new(), signer, "test", &climb, None, LogOptions::default());
    let mut journal = journal.unwrap();
    while climb.steps() < steps {
        let unit = climb.next(&BTreeSet::new()).unwrap();
        let result = climb.work(&unit, &mut || true).unwrap().unwrap();
        climb.take(&result);
        journal.unit(&result, &climb).unwrap();
        assert!(Climb::restore(&climb.snapshot()).unwrap() == climb);
    }
    journal.save(&climb, Vec::new()).unwrap();
    let mut store = journal.into_store();
    let report = audit(&mut store, None, &mut RunConditions::new()).unwrap();
    assert_eq!(report.verdict, AuditVerdict::Unanchored);
    let mut replay = Replay::open(store).unwrap();
    while replay.advance().unwrap().is_some() {}
    assert_eq!(replay.climb().head(), climb.head());
    (climb, report)
}

fn config(families: &[&str], stages: usize, unit_steps: u64, scheduler: SchedulerKind) -> ClimbConfig {
    let families = families.iter().map(|family| family.to_string()).collect();
    let parameters = Arc::new(GenesisConfig { scheduler, ..GenesisConfig::default() });
    ClimbConfig { seed: 1, stages, unit_steps, families, parameters }
}

#[test]
fn a_small_run_uses_what_the_specification_names() {
    let (climb, report) = run(config(&["parity", "compare"], 4, 2_000, SchedulerKind::Paced), 12_000);
    for (name, count) in KIND_NAMES.iter().zip(report.kinds) {
        // Nothing changes in these two families (tests/resets.rs has a world that does, and `nonstationary_bandit` is another), and there are neither tools nor people.
        let is_absent = ["reset", "tool_call", "human_task", "input"].contains(name);
        assert_eq!(0 < count, !is_absent, "{name}: {count}");
    }
    let acting = climb.acting();
    assert!(acting.scheduled.units.iter().all(|units| 0 < *units), "{acting:?}");
    assert!(0 < acting.barriers.passed && 0 < acting.barriers.moved, "{acting:?}");
    let tracks = || climb.tracks().iter();
    // Programs of the control core have asked for what was practised.
    assert!(tracks().all(|track| track.is_at_top() && 0 < track.requests()));
    assert!(tracks().any(|track| track.practised.iter().any(|practised| practised.asked.is_some())));
    let by = |change| tracks().map(|track| track.practised_by(change)).sum::<usize>();
    for change in [Transformation::Compose, Transformation::Extract, Transformation::Contradict] {
        assert!(0 < by(change), "{change:?}");
    }
    let mut practised = tracks().flat_map(|track| &track.practised);
    assert!(practised.any(|practised| practised.solved && practised.is_across_families()));
}

/// Every rung was solved at the first try, so that no failure asked for anything: difficulties move all the same, and mutations
/// of what was climbed are practised.
#[test]
fn a_climb_without_failures_moves_difficulties_and_practises_mutations() {
    let mut config = config(&["parity", "compare", "copy"], 4, 4_000, SchedulerKind::Paced);
    Arc::make_mut(&mut config.parameters).mutation_chance = bem_base::fixed::Fixed::ONE;
    let (climb, _) = run(config, 16_000);
    let tracks = || climb.tracks().iter();
    assert!(tracks().all(|track| track.climbed.iter().all(|climbed| climbed.solved && climbed.attempt == 0)));
    assert!(tracks().all(|track| 0 < track.re_estimated()));
    let mutated = |track: &bem_engine::climb::Track| {
        Transformation::ALL.into_iter().map(|change| track.practised_by(change)).sum::<usize>()
    };
    assert!(0 < tracks().map(mutated).sum::<usize>());
}

/// A rung tells the teacher before anything was practised.
#[test]
fn what_a_rung_took_moves_its_difficulty_before_anything_is_practised() {
    let mut climb = Climb::new(config(&["parity_stream"], 4, 20_000, SchedulerKind::Paced)).unwrap();
    for _ in 0..2 {
        let unit = climb.next(&BTreeSet::new()).unwrap();
        assert!(unit.climbs());
        let result = climb.work(&unit, &mut || true).unwrap().unwrap();
        climb.take(&result);
    }
    let track = &climb.tracks()[0];
    assert!(track.practised.is_empty() && 0 < track.re_estimated());
}

#[test]
fn every_choice_rule_completes_a_run() {
    for choice_rule in ChoiceRule::ALL.iter().copied() {
        let mut config = config(&["bandit"], 2, 2_000, SchedulerKind::Paced);
        Arc::make_mut(&mut config.parameters).choice_rule = choice_rule;
        let (climb, _) = run(config, 600);
        assert!(climb.tracks().iter().all(|track| 0 < track.solved()), "{}", choice_rule.name());
    }
}

#[test]
fn every_scheduler_completes_a_run() {
    for scheduler in SchedulerKind::ALL.iter().copied() {
        let (climb, _) = run(config(&["parity", "compare"], 3, 20_000, scheduler), 2_500);
        let units = climb.acting().scheduled.units;
        assert!(units.iter().all(|units| 0 < *units), "{}: {units:?}", scheduler.name());
    }
}
