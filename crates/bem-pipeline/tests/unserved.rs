//! A setting whose lesson failed gets the expert of the pool that serves it, in a run of a pipeline. Clauses: PIPE-3.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its pipeline has failed")]

mod kit;

use bem_base::fixed::Fixed;
use bem_engine::climb::UnitResult;
use bem_engine::solve::SOLVED;
use bem_pipeline::pipeline::{Phase, Pipeline};
use bem_pipeline::report::Row;
use kit::{small_plan, work};

/// A size of the stack machine that no specialist sees.
const UNSEEN: &str = "stack_machine{depth=14,horizon=56,value_bits=2}";

/// The same result, but for what its lesson came to.
fn failed(mut result: UnitResult) -> UnitResult {
    result.solution.evaluation.mean = result.solution.yardstick.unwrap().random;
    result.solution.steps_to_99 = None;
    assert!(!result.solution.is_solved());
    result
}

/// What became of that setting, and how many have an expert without a lesson, where lessons fail in the settings that this says.
fn outcome(fails: impl Fn(&str) -> bool) -> (Row, usize) {
    let mut pipeline = Pipeline::new(small_plan("stack")).unwrap();
    while pipeline.phase() != Phase::Over {
        let jobs = pipeline.jobs();
        let is_main = pipeline.phase() != Phase::Specialists;
        let fails = |result: &UnitResult| is_main && fails(&result.unit.task);
        let results = jobs.iter().map(|job| work(&pipeline, job));
        let results: Vec<UnitResult> =
            results.map(|result| if fails(&result) { failed(result) } else { result }).collect();
        pipeline.take(&jobs, &results).unwrap();
        // What was saved goes on with the same.
        let bytes = pipeline.to_bytes();
        pipeline = Pipeline::from_bytes(small_plan("stack"), &bytes).unwrap();
        assert_eq!(pipeline.to_bytes(), bytes);
    }
    let summary = pipeline.summary(true).unwrap();
    let row = summary.rows.iter().find(|row| row.task == UNSEEN).unwrap().clone();
    (row, summary.shared().1)
}

#[test]
fn a_setting_whose_lesson_failed_is_served_by_an_expert_that_was_learned_in_another_size() {
    let (served, without_lesson) = outcome(|task| task == UNSEEN);
    assert!(served.unseen && served.lesson.is_some_and(|done| done.steps_to_99.is_none()));
    assert!(SOLVED <= served.main && served.expert.is_some(), "{}", served.main);
    assert_eq!(without_lesson, 1);
    // Control: where nothing of its family was learned, nobody solves it, and it earns nothing without an expert.
    let (unserved, _) = outcome(|task| task.starts_with("stack_machine"));
    assert!(unserved.main < SOLVED, "{unserved:?}");
    assert!(unserved.expert.is_some() || unserved.main == Fixed::ZERO);
}
