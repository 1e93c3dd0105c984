//! A newcomer that would cost an old setting is blocked in a run of a pipeline, whatever its own lesson came to. Clauses: PIPE-3.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its pipeline has failed")]

mod kit;

use bem_engine::agent::Agent;
use bem_engine::climb::UnitResult;
use bem_engine::start::machine_of;
use bem_engine::worlds::Catalog;
use bem_pipeline::pipeline::{Phase, Pipeline};
use bem_pipeline::pool::KEPT;
use bem_synth::policy::Policy;
use kit::{small_plan, work};

/// One small domain up to its first round of practice.
fn before_practice() -> Pipeline {
    let mut pipeline = Pipeline::new(small_plan("stack")).unwrap();
    while pipeline.phase() != Phase::Mixed {
        assert!(pipeline.phase() != Phase::Over, "it ended without practice");
        let jobs = pipeline.jobs();
        let results: Vec<UnitResult> = jobs.iter().map(|job| work(&pipeline, job)).collect();
        pipeline.take(&jobs, &results).unwrap();
    }
    pipeline
}

/// The same result, but for what was learned: an agent that is said to have solved its task, with a machine that plays the same
/// action in every world that looks like this setting.
fn spoilt(result: &UnitResult, setting: &str) -> UnitResult {
    let shape = |task: &str| Catalog.game(task, 1).unwrap().shape().clone();
    let same = |task: &str| Policy::constant(shape(task).actions, 0);
    let mut spoilt = result.clone();
    spoilt.solution.learned.machine = machine_of(&same(setting), &shape(setting));
    spoilt.solution.learned.agent = Agent::circuit(same(&result.unit.task));
    spoilt.solution.evaluation.mean = spoilt.solution.yardstick.unwrap().optimum;
    assert!(spoilt.solution.is_solved() && spoilt.solution.learned.machine.is_some());
    spoilt
}

#[test]
fn a_newcomer_that_would_cost_an_old_setting_is_blocked_and_every_setting_keeps_what_it_had() {
    let mut pipeline = before_practice();
    let before = pipeline.summary(false).unwrap();
    let setting = before.rows.iter().find(|row| row.expert.is_some()).unwrap().task.clone();
    let jobs = pipeline.jobs();
    assert!(!jobs.is_empty(), "the domain has something to practise");
    let results: Vec<UnitResult> = jobs.iter().map(|job| spoilt(&work(&pipeline, job), &setting)).collect();
    pipeline.take(&jobs, &results).unwrap();
    let after = pipeline.summary(false).unwrap();
    // It came in, could act in the setting, and left again.
    assert!(before.pool.installed < after.pool.installed, "{:?}", after.pool);
    assert!(before.pool.blocked < after.pool.blocked, "{:?}", after.pool);
    assert!(after.experts <= before.experts);
    for (old, new) in before.rows.iter().zip(&after.rows) {
        assert!(old.task == new.task && KEPT.mul_floor(old.main) <= new.main, "{old:?} {new:?}");
    }
    assert!(after.kept.values().all(|share| KEPT <= *share), "{:?}", after.kept);
    assert!(after.kept_least.is_some_and(|least| KEPT <= least));
    // Control: on fresh seeds too, what acts in that setting is not the newcomer.
    let judged = pipeline.summary(true).unwrap();
    assert!(judged.rows.iter().find(|row| row.task == setting).is_some_and(|row| KEPT <= row.main));
}
