//! What tests of pipelines share: a worker, and a small plan.

use bem_engine::climb::{UnitResult, Worked};
use bem_engine::world_file::WorldFile;
use bem_engine::worlds::{Catalog, Worlds};
use bem_pipeline::pipeline::{Job, Pipeline, Plan};
use std::sync::Arc;

/// Works on a job to its end.
pub fn work(pipeline: &Pipeline, job: &Job) -> UnitResult {
    let order = pipeline.order(job);
    let file = order.files.first().map(|file| WorldFile::from_bytes(file).unwrap());
    let worlds: Box<dyn Worlds> = match file {
        Some(WorldFile::Distilled(distilled)) => Box::new(distilled),
        _ => Box::new(Catalog),
    };
    match order.assignment.go_on_in(worlds.as_ref(), None, &mut || true).unwrap() {
        Worked::Done(result) => *result,
        Worked::PutAway(_) => unreachable!("nobody asks it to stop"),
    }
}

/// One domain, learned in short tries.
pub fn small_plan(domain: &str) -> Plan {
    Plan {
        seed: 1,
        domains: vec![domain.to_string()],
        late: Vec::new(),
        stages: 2,
        unit_steps: 2_000,
        mixed_rounds: 1,
        distils: true,
        masks: true,
        compares: false,
        endless: false,
        parameters: Arc::default(),
        main: Arc::default(),
    }
}
