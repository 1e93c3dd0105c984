//! A pipeline in its folder, one round after the other: the engine of `bem pipeline run` and of a server's pipeline.
//!
//! A round is worked on, its answers are on disk, then it is taken in. Saving writes the histories of the machines, then the
//! pipeline itself, and only then removes the answers that it has taken in, so that whatever is cut off goes on: answers that are
//! still there are not worked on again, what a history has already is compared with it. Histories of volumes that nobody goes on
//! with are removed, but for those that the present ones came from. Must not know who works. Clauses: PIPE-2, LOG-4; decision D-237.

use super::histories::{Histories, MAIN};
use super::plan::{Kept, keep_file, replace};
use super::results;
use super::units::{RoundAnswers, Units, Work};
use crate::file_store::{FileStore, PIPELINE};
use anyhow::{Context as _, Result};
use bem_pipeline::pipeline::{Phase, Pipeline, Plan};
use bem_pipeline::report::Summary;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pipeline as it was saved last.
pub const STATE: &str = "state";
/// Units that are taken in before a round ends with saving, where nobody stops.
const UNITS_A_SAVE: u32 = 16;
/// Where a folder lies while it is removed.
const DROPPED: &str = "dropped";

/// A plan that somebody else may add domains to.
pub type SharedPlan = Arc<Mutex<Kept>>;

/// Locks a plan.
pub fn lock(plan: &SharedPlan) -> MutexGuard<'_, Kept> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the pipeline that was saved in a folder can be gone on with by its plan; nothing may have been saved yet.
pub fn check(directory: &Path) -> Result<()> {
    read_pipeline(directory, super::plan::read(directory)?.plan()?).map(drop)
}

/// The pipeline as it was saved last, or at its beginning.
fn read_pipeline(directory: &Path, plan: Plan) -> Result<Pipeline> {
    let path = directory.join(STATE);
    match std::fs::read(&path) {
        Ok(bytes) => Pipeline::from_bytes(plan, &bytes).with_context(|| {
            format!("{} cannot be read: move {} aside to begin anew", path.display(), directory.display())
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Pipeline::new(plan)?),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// A pipeline in its folder.
pub struct PipelineFolder {
    directory: PathBuf,
    plan: SharedPlan,
    pipeline: Pipeline,
    units: Units,
    histories: Histories,
    /// Whether units of the present round were worked on.
    is_begun: bool,
    /// Where it stood when it was saved.
    saved: (Phase, u32),
    /// Held as long as the folder may be written.
    _lock: FileStore,
}

/// What came of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundEnd {
    /// Nothing is left to do.
    pub is_over: bool,
    /// All its units have an answer, and it was taken in.
    pub is_taken: bool,
    /// Units that were worked on, not just read.
    pub worked: u32,
    /// Steps of these.
    pub steps: u64,
}

impl PipelineFolder {
    /// Opens a folder with this plan.
    pub fn open(directory: &Path, kept: Kept, key: Option<&Path>) -> Result<PipelineFolder> {
        let said = || directory.display().to_string();
        let lock = FileStore::open_locked_for(&PIPELINE, directory).with_context(said)?;
        let plan = kept.plan()?;
        let endless = plan.endless;
        let mut pipeline = read_pipeline(directory, plan)?;
        if endless && !pipeline.plan().endless {
            pipeline.go_on_without_end()?;
        }
        Ok(PipelineFolder {
            units: Units::open(directory)?,
            histories: Histories::new(directory, key),
            directory: directory.to_path_buf(),
            plan: Arc::new(Mutex::new(kept)),
            is_begun: false,
            saved: (pipeline.phase(), pipeline.units()),
            pipeline,
            _lock: lock,
        })
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Its plan, for whoever names domains later.
    pub fn plan(&self) -> SharedPlan {
        Arc::clone(&self.plan)
    }

    /// Domains that were named later come in between two rounds; where they did is in the plan before they have.
    fn take_in(&mut self) -> Result<()> {
        let number = self.pipeline.units();
        let mut kept = lock(&self.plan);
        if !self.is_begun && kept.let_in(number) {
            keep_file(&self.directory, &kept)?;
        }
        for domain in kept.taken_in_at(number) {
            if !self.pipeline.plan().late.contains(&domain) {
                self.pipeline.take_in(&domain)?;
            }
        }
        Ok(())
    }

    /// Works on what the present round lacks, on so many units at most, and takes it in when nothing is lacking.
    pub fn round(&mut self, work: &mut Work<'_>, left: Option<u32>) -> Result<RoundEnd> {
        self.take_in()?;
        let jobs = self.pipeline.jobs();
        if jobs.is_empty() {
            return Ok(RoundEnd { is_over: true, ..RoundEnd::default() });
        }
        let first = self.pipeline.units();
        let RoundAnswers { results, worked, steps } =
            self.units.round(&self.pipeline, &jobs, first, work, left)?;
        self.is_begun |= 0 < worked;
        if let Some(results) = &results {
            self.histories.round(&self.pipeline, &jobs, first);
            self.pipeline.take(&jobs, results)?;
            self.is_begun = false;
        }
        Ok(RoundEnd { is_over: false, is_taken: results.is_some(), worked, steps })
    }

    /// Whether enough has happened to be saved.
    pub fn is_due(&self) -> bool {
        let (phase, units) = self.saved;
        phase != self.pipeline.phase() || units + UNITS_A_SAVE <= self.pipeline.units()
    }

    /// Saves everything and removes what nobody needs any more; what there is to report, which is judged where it is finished.
    pub fn save(&mut self, finished: bool) -> Result<(Value, Summary)> {
        let heads = self.histories.write(&self.units)?;
        replace(&self.directory, STATE, &self.pipeline.to_bytes())?;
        self.units.drop_before(self.pipeline.units())?;
        self.drop_volumes()?;
        self.saved = (self.pipeline.phase(), self.pipeline.units());
        let summary = self.pipeline.summary(finished)?;
        let report = results::to_json(&self.pipeline, &summary, &heads, &self.directory, finished);
        replace(&self.directory, "pipeline.json", format!("{report:#}\n").as_bytes())?;
        Ok((report, summary))
    }

    /// Removes the histories of volumes that are not kept. A folder leaves its place whole.
    fn drop_volumes(&mut self) -> Result<()> {
        let (kept, dropped) = (self.pipeline.volumes_kept(), self.directory.join(DROPPED));
        let remove = |path: &Path| match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        remove(&dropped).with_context(|| dropped.display().to_string())?;
        for entry in std::fs::read_dir(self.directory.join(MAIN)).into_iter().flatten().flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            if number.is_some_and(|number| !kept.contains(&number)) {
                let path = entry.path();
                std::fs::rename(&path, &dropped).with_context(|| path.display().to_string())?;
                remove(&dropped).with_context(|| dropped.display().to_string())?;
                self.histories.forget(&path);
            }
        }
        Ok(())
    }
}
