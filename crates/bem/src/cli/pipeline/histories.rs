//! The histories of a pipeline's machines: a folder with a ledger for every specialist and every volume of the main machine.
//!
//! They are written from the units' answers when the work stops, and gone on with when it goes on. A learner that is there to be
//! compared with has none.

use super::Units;
use crate::cli::run::history::{History, PutAway};
use anyhow::{Context as _, Result};
use bem_base::digest::Digest;
use bem_engine::climb::{Climb, Unit, UnitResult, Worked, message};
use bem_ledger::log::LogOptions;
use bem_pipeline::pipeline::{Job, Pipeline, Who};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The plan's file, by which a folder is known to be a pipeline's.
pub const PLAN: &str = "plan.json";

/// What was taken in for each machine.
pub struct Histories<'a> {
    directory: PathBuf,
    key: Option<&'a Path>,
    machines: BTreeMap<PathBuf, Machine>,
}

struct Machine {
    /// Before its first unit.
    first: Climb,
    file: Option<Vec<u8>>,
    units: Vec<(u32, Unit)>,
}

impl<'a> Histories<'a> {
    pub fn new(directory: &Path, key: Option<&'a Path>) -> Histories<'a> {
        Histories { directory: directory.to_path_buf(), key, machines: BTreeMap::new() }
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
    pub fn write(&self, units: &Units) -> Result<BTreeMap<String, Digest>> {
        let mut heads = BTreeMap::new();
        for (folder, machine) in &self.machines {
            let head = self.write_one(&self.directory.join(folder), machine, units);
            heads.insert(folder.display().to_string(), head.with_context(|| folder.display().to_string())?);
        }
        Ok(heads)
    }

    fn write_one(&self, folder: &Path, machine: &Machine, units: &Units) -> Result<Digest> {
        let options = LogOptions::default();
        let (mut history, mut climb) = if folder.join("ledger/checkpoint").exists() {
            let (history, climb, _) = History::resume(folder, self.key, options)?;
            (history, climb)
        } else {
            let files: Vec<Vec<u8>> = machine.file.iter().cloned().collect();
            let history = History::create_with(folder, &machine.first, &files, self.key, None, options)?;
            (history, machine.first.clone())
        };
        let known: u32 = climb.tracks().iter().map(|track| track.units()).sum();
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
        Who::Specialist(number) => {
            Some(Path::new("specialists").join(&pipeline.specialists()[number].domain))
        }
        Who::Main(cycle) => Some(Path::new("main").join((cycle + 1).to_string())),
        Who::Scratch(_) => None,
    }
}

/// The folders with a history in a pipeline's folder, in order.
pub fn machine_folders(directory: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for part in ["specialists", "main"] {
        let entries = std::fs::read_dir(directory.join(part)).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| entry.path()).filter(|path| path.join("ledger").is_dir()));
    }
    folders.sort();
    folders
}
