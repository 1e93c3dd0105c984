//! A server that nobody asks works on a pipeline: the engine of `bem pipeline run`, one unit at a time and without end.
//!
//! The folder `pipeline` below the state is a pipeline's like any other, with histories of its own beside that of the service: `bem
//! verify` audits it, and `bem pipeline run --resume` goes on with it while no server does. A unit waits while somebody asks the
//! server, is put away where the server stops, and is followed by a pause, so that there are no more steps a second than allowed.
//! Domains come in over HTTP. Must not know how anything is learned. Clauses: PIPE-1, PIPE-2, IMG-1; decisions D-237, D-238.

use crate::beside_thread::BesideThread;
use crate::cli::pipeline::engine::{PipelineFolder, RoundEnd, SharedPlan, lock};
use crate::cli::pipeline::{phase_words, plan};
use crate::climb_beside::Quiet;
use anyhow::Result;
use bem_engine::climb::message;
use bem_pipeline::PipelineError;
use bem_pipeline::pipeline::{Phase, Pipeline};
use bem_serve::core::{Gauges, Handle};
use bem_serve::domains::{DomainDesk, DomainRefusal};
use bem_serve::priority;
use bem_tables::figures::to_float;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The folder below the state.
pub const FOLDER: &str = "pipeline";
/// How often it is looked at whether something has changed, where there is nothing to do.
const TICK: Duration = Duration::from_millis(100);
/// A unit that takes longer is put away and gone on with: a server that is killed loses no more of it.
const PUT_AWAY_AFTER: Duration = Duration::from_secs(30);

/// A pipeline that is ready to work.
pub struct PipelineBeside {
    engine: PipelineFolder,
    desk: Arc<PipelineDesk>,
    rate: u32,
}

/// What requests see of a pipeline.
pub struct PipelineDesk {
    directory: PathBuf,
    plan: SharedPlan,
    /// How it stood after the latest round.
    shown: Mutex<Value>,
}

impl PipelineBeside {
    /// Opens the pipeline of a state folder, or begins it with these domains.
    pub fn open(
        state: &Path,
        rate: u32,
        domains: &[String],
        seed: u64,
        key: Option<&Path>,
    ) -> Result<PipelineBeside> {
        let directory = state.join(FOLDER);
        let kept = plan::of_server(&directory, domains, seed)?;
        let engine = PipelineFolder::open(&directory, kept, key)?;
        let shown = Mutex::new(shown(engine.pipeline(), rate, None));
        let desk = Arc::new(PipelineDesk { directory, plan: engine.plan(), shown });
        Ok(PipelineBeside { engine, desk, rate })
    }

    /// What requests see of it.
    pub fn desk(&self) -> Arc<PipelineDesk> {
        Arc::clone(&self.desk)
    }
}

/// How a pipeline stands, as JSON.
fn shown(pipeline: &Pipeline, rate: u32, error: Option<&str>) -> Value {
    let is_first = pipeline.cycle() == 0 && !pipeline.is_beyond_its_plan();
    let phase = match pipeline.phase() {
        Phase::Specialists if is_first => 1,
        Phase::Distillation if is_first => 2,
        Phase::Mixed if is_first => 3,
        _ => 4,
    };
    let domain = |standing: bem_pipeline::report::DomainStanding| {
        json!({
            "name": standing.domain, "state": if standing.is_learned { "learned" } else { "learning" },
            "settings": standing.settings, "solved": standing.solved, "score": standing.score.map(to_float),
            "kept": standing.kept.map(to_float),
        })
    };
    json!({
        "phase": phase, "doing": phase_words(pipeline.phase()), "rate": rate, "units": pipeline.units(), "steps": pipeline.steps(),
        "volumes": pipeline.volumes_kept(), "head": pipeline.head().to_hex(), "error": error,
        "domains": pipeline.standings().into_iter().map(domain).collect::<Vec<_>>(), "waiting": waiting(pipeline),
    })
}

/// Domains that are named and have no specialist yet.
fn waiting(pipeline: &Pipeline) -> Vec<String> {
    pipeline.plan().late.iter().skip(pipeline.cycle()).cloned().collect()
}

impl DomainDesk for PipelineDesk {
    fn show(&self) -> Value {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let kept = lock(&self.plan);
        if let Some(waiting) = shown["waiting"].as_array_mut() {
            waiting.extend(kept.asked().iter().map(|name| json!(name)));
        }
        shown["allowed"] = json!(kept.unnamed());
        shown
    }

    fn take_in(&self, name: &str) -> Result<Value, DomainRefusal> {
        {
            let mut kept = lock(&self.plan);
            let mut with = kept.clone();
            with.ask_for(name).map_err(|error| match error {
                PipelineError::Twice { .. } => DomainRefusal::Known(format!(
                    "domain {name:?} is there already; allowed are {}",
                    allowed(&kept.unnamed())
                )),
                other => DomainRefusal::Unknown(format!("name: {other}")),
            })?;
            plan::keep_file(&self.directory, &with)
                .map_err(|error| DomainRefusal::Failed(format!("the plan cannot be kept: {error:#}")))?;
            *kept = with;
        }
        Ok(self.show())
    }
}

fn allowed(names: &[&str]) -> String {
    if names.is_empty() { "no more: all are named".to_string() } else { names.join(", ") }
}

/// Starts to work; asked to stop, it puts away what it works on.
pub fn start(beside: PipelineBeside, handle: &Handle) -> BesideThread {
    let handle = handle.clone();
    BesideThread::start("bem-pipeline", move |stop| Worker { beside, handle, stop }.run())
}

/// The thread that works on units, and how it is stopped.
struct Worker {
    beside: PipelineBeside,
    handle: Handle,
    stop: Arc<AtomicBool>,
}

impl Worker {
    fn run(mut self) {
        priority::give_way(priority::SAVING);
        // The service goes on whatever becomes of its pipeline.
        let worked = self.work().and_then(|()| self.beside.engine.save(false).map(drop));
        if let Err(error) = worked {
            let words = format!("{error:#}");
            crate::cli::remark(format_args!("bem: the pipeline has stopped: {words}\n"));
            self.show(Some(&words));
        }
    }

    fn show(&self, error: Option<&str>) {
        let shown = shown(self.beside.engine.pipeline(), self.beside.rate, error);
        *self.beside.desk.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    fn work(&mut self) -> Result<()> {
        let (stop, mut quiet) = (Arc::clone(&self.stop), Quiet::new(&self.handle));
        let is_over = || stop.load(Ordering::Relaxed);
        while !is_over() {
            quiet.wait(is_over);
            let (began, learned) = (Instant::now(), self.beside.engine.pipeline().learned());
            let round = self.beside.engine.round(
                &mut |orders, answered| {
                    for (number, order) in orders.iter().enumerate().filter(|_| !is_over()) {
                        let mut go_on = || {
                            quiet.wait(is_over);
                            !is_over() && began.elapsed() < PUT_AWAY_AFTER
                        };
                        answered(number, message::work(order, &mut go_on))?;
                    }
                    Ok(())
                },
                Some(1),
            )?;
            self.count(round, learned);
            if round.is_taken {
                self.show(None);
                if self.beside.engine.is_due() {
                    self.beside.engine.save(false)?;
                }
            }
            let pause = match round.is_over {
                true => TICK,
                false => Duration::from_secs(1).mul_f64(round.steps as f64 / f64::from(self.beside.rate)),
            };
            while began.elapsed() < pause && !is_over() {
                std::thread::sleep(TICK.min(pause.saturating_sub(began.elapsed())));
            }
        }
        Ok(())
    }

    fn count(&self, round: RoundEnd, learned: usize) {
        let gauges: &Gauges = &self.handle.gauges;
        let more = self.beside.engine.pipeline().learned().saturating_sub(learned);
        gauges.pipeline_units.fetch_add(u64::from(round.worked), Ordering::Relaxed);
        gauges.pipeline_steps.fetch_add(round.steps, Ordering::Relaxed);
        gauges.domains_learned.fetch_add(more as u64, Ordering::Relaxed);
    }
}
