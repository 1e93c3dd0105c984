//! The histories of a pipeline's machines: a folder with a ledger for every specialist and every volume of the main machine.
//!
//! They are written from the units' answers when the pipeline is saved, and gone on with when it goes on: what they have already is
//! compared. A learner that is there to be compared with has none. Clauses: PIPE-2, LOG-5.

use super::units::Units;
use crate::cli::run::history::{History, PutAway};
use anyhow::{Context as _, Result, bail};
use bem_base::digest::Digest;
use bem_engine::climb::{Climb, Unit, UnitResult, Worked, message};
use bem_ledger::log::LogOptions;
use bem_pipeline::pipeline::{Job, Pipeline, Who};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The plan's file, by which a folder is known to be a pipeline's.
pub const PLAN: &str = "plan.json";
/// The folder of the main machine's volumes.
pub const MAIN: &str = "main";
const SPECIALISTS: &str = "specialists";

/// What was taken in for each machine and is not written yet.
pub struct Histories {
    directory: PathBuf,
    key: Option<PathBuf>,
    machines: BTreeMap<PathBuf, Machine>,
    /// The head of every history that was looked at, by folder.
    heads: BTreeMap<PathBuf, Digest>,
}

/// What one machine's history is written from: its climb before the units, and the units themselves.
struct Machine {
    /// Before the first of these units.
    first: Climb,
    file: Option<Vec<u8>>,
    units: Vec<(u32, Unit)>,
}

impl Histories {
    pub fn new(directory: &Path, key: Option<&Path>) -> Histories {
        let (machines, heads) = (BTreeMap::new(), BTreeMap::new());
        Histories { directory: directory.to_path_buf(), key: key.map(Path::to_path_buf), machines, heads }
    }

    /// The folder of a history was removed.
    pub fn forget(&mut self, folder: &Path) {
        self.heads.remove(folder);
    }

    /// A round is about to be taken in.
    pub fn round(&mut self, pipeline: &Pipeline, jobs: &[Job], first: u32) {
        for (job, number) in jobs.iter().zip(first..) {
            let Some(folder) = folder_of(pipeline, job.who) else { continue };
            let machine = self.machines.entry(folder).or_insert_with(|| Machine {
                first: pipeline.climb(job.who).clone(),
                file: pipeline.file(job.who),
                units: Vec::new(),
            });
            machine.units.push((number, job.unit.clone()));
        }
    }

    /// Writes what is not in the histories yet; the head of each, by folder.
    pub fn write(&mut self, units: &Units) -> Result<BTreeMap<String, Digest>> {
        for (folder, machine) in std::mem::take(&mut self.machines) {
            let path = self.directory.join(&folder);
            let head = self.write_one(&path, &machine, units);
            self.heads.insert(path, head.with_context(|| folder.display().to_string())?);
        }
        for folder in machine_folders(&self.directory) {
            if !self.heads.contains_key(&folder) {
                let (mut history, climb, _) = self.resume(&folder)?;
                let head = history.save(&climb, PutAway::new());
                self.heads.insert(folder.clone(), head.with_context(|| folder.display().to_string())?);
            }
        }
        let name =
            |folder: &Path| folder.strip_prefix(&self.directory).unwrap_or(folder).display().to_string();
        Ok(self.heads.iter().map(|(folder, head)| (name(folder), *head)).collect())
    }

    fn resume(&self, folder: &Path) -> Result<(History, Climb, PutAway)> {
        History::resume(folder, self.key.as_deref(), LogOptions::default())
            .with_context(|| folder.display().to_string())
    }

    fn write_one(&self, folder: &Path, machine: &Machine, units: &Units) -> Result<Digest> {
        let count = |climb: &Climb| climb.tracks().iter().map(|track| track.units()).sum::<u32>();
        let before = count(&machine.first);
        let (mut history, mut climb) = if folder.join("ledger/checkpoint").exists() {
            let (history, climb, _) = self.resume(folder)?;
            (history, climb)
        } else {
            if 0 < before {
                bail!("its history is not there");
            }
            let files: Vec<Vec<u8>> = machine.file.iter().cloned().collect();
            let (key, options) = (self.key.as_deref(), LogOptions::default());
            (History::create_with(folder, &machine.first, &files, key, None, options)?, machine.first.clone())
        };
        let Some(known) = count(&climb).checked_sub(before) else {
            bail!("its history ends before the pipeline that was saved");
        };
        for (number, unit) in machine.units.iter().skip(known as usize) {
            let result = units.answer(&climb, unit, *number)?;
            climb.take(&result);
            history.unit(&result, &climb)?;
        }
        history.save(&climb, PutAway::new())
    }
}

impl Units {
    fn answer(&self, climb: &Climb, unit: &Unit, number: u32) -> Result<UnitResult> {
        let path = self.path(number, "");
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        match message::read_answer(unit, &climb.config().parameters, &bytes)
            .with_context(|| path.display().to_string())??
        {
            Worked::Done(result) => Ok(*result),
            Worked::PutAway(_) => anyhow::bail!("{} is not finished", path.display()),
        }
    }
}

/// Where a machine's history is.
fn folder_of(pipeline: &Pipeline, who: Who) -> Option<PathBuf> {
    match who {
        Who::Specialist(number) => Some(Path::new(SPECIALISTS).join(&pipeline.specialists()[number].domain)),
        Who::Main(place) => Some(Path::new(MAIN).join(pipeline.volume_number(place).to_string())),
        Who::Scratch(_) => None,
    }
}

/// The folders with a history in a pipeline's folder, in order.
pub fn machine_folders(directory: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for part in [SPECIALISTS, MAIN] {
        let entries = std::fs::read_dir(directory.join(part)).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| entry.path()).filter(|path| path.join("ledger").is_dir()));
    }
    folders.sort();
    folders
}
