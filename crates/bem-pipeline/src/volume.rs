//! One volume of the main machine's history: what it learns from the specialists of one cycle, and from nobody, to compare.
//!
//! A pipeline without an end begins a new volume from time to time: all settings of those before, their files and the machines that
//! were learned, and none of their histories. Clauses: PIPE-2, PIPE-3; decisions D-134, D-237.

use crate::PipelineError;
use crate::domain::unseen;
use crate::pipeline::{Pipeline, TRIES};
use bem_base::digest::{hash, hash_parts};
use bem_engine::climb::Climb;
use bem_engine::world_file::WorldFile;
use bem_engine::world_file::distilled::Distilled;
use bem_engine::worlds::Catalog;
use std::collections::BTreeSet;

/// One volume of the main machine's history: what one distillation began.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Its number, from 1 on.
    pub number: u32,
    /// Its way through the settings.
    pub climb: Climb,
    /// What it began with.
    pub distilled: Distilled,
    /// The same as the file of its worlds.
    pub file: Vec<u8>,
    /// Settings that no specialist has seen.
    pub unseen: BTreeSet<String>,
}

impl Pipeline {
    /// Begins a volume of the main machine: the settings that the new specialists have solved, and as many unseen ones as half
    /// of them; with their machines and their episodes.
    pub(crate) fn distil(&mut self) -> Result<(), PipelineError> {
        let known: BTreeSet<&str> = self
            .volumes
            .iter()
            .flat_map(|volume| volume.climb.tracks())
            .map(|track| track.family.as_str())
            .collect();
        let mut distilled = Distilled { masks: self.plan.masks, ..Distilled::default() };
        let (mut families, mut rungs, mut libraries) = (Vec::new(), Vec::new(), Vec::new());
        let mut new = BTreeSet::new();
        for specialist in &self.specialists {
            for track in
                specialist.climb.tracks().iter().filter(|track| !known.contains(track.family.as_str()))
            {
                let mut tasks = specialist.solved(track);
                if tasks.is_empty() {
                    continue;
                }
                let others = unseen(&track.family, &tasks);
                for task in &tasks {
                    let game = Catalog.game(task, specialist.mastered[task].instance)?;
                    let taught = specialist.taught(track, task, game.shape(), self.plan.distils);
                    distilled.tasks.insert(task.clone(), taught);
                }
                for (task, of) in others {
                    distilled.unseen.insert(task.clone(), distilled.tasks[&of].instance);
                    new.insert(task.clone());
                    tasks.push(task);
                }
                families.push(track.family.clone());
                rungs.push(tasks);
                libraries.push(if self.plan.distils { track.library().to_vec() } else { Vec::new() });
            }
        }
        let file = WorldFile::Distilled(distilled.clone()).to_bytes();
        let config = self.main_config(families);
        let climb = Climb::with_rungs(config, rungs.clone())?.passing_over(TRIES).with_libraries(libraries);
        let climb = climb.with_files(vec![hash(&file)]);
        // What was handed on is in the file.
        for specialist in &mut self.specialists {
            specialist.gathered.retain(|task, _| !distilled.tasks.contains_key(task));
        }
        self.begun += 1;
        self.volumes.push(Volume { number: self.begun, climb, distilled, file, unseen: new });
        if self.plan.compares {
            let tasks: Vec<String> = rungs.into_iter().flatten().collect();
            let alone = tasks.iter().map(|task| vec![task.clone()]).collect();
            let volume = &self.volumes[self.volumes.len() - 1];
            let file = hash(&scratch_file(volume));
            // The main machine's configuration, so that only what it begins with differs.
            let config = self.main_config(tasks);
            self.scratch.push(Climb::with_rungs(config, alone)?.with_files(vec![file]));
        }
        Ok(())
    }

    /// Begins one volume in place of all there are, over their settings and with their machines; its units have seeds of their own.
    /// False where there is nothing to go on with.
    pub(crate) fn renew(&mut self) -> Result<bool, PipelineError> {
        let mut distilled = Distilled { masks: self.plan.masks, ..Distilled::default() };
        let (mut families, mut rungs, mut libraries) = (Vec::new(), Vec::new(), Vec::new());
        let mut unseen = BTreeSet::new();
        for volume in &self.volumes {
            distilled.tasks.extend(volume.distilled.tasks.clone());
            distilled.unseen.extend(volume.distilled.unseen.clone());
            unseen.extend(volume.unseen.iter().cloned());
            for track in volume.climb.tracks() {
                families.push(track.family.clone());
                rungs.push(track.tasks().to_vec());
                libraries.push(track.library().to_vec());
            }
        }
        if families.is_empty() {
            return Ok(false);
        }
        self.begun += 1;
        let place = hash_parts(
            "bem/pipeline/volume",
            &[&self.plan.seed.to_le_bytes(), &u64::from(self.begun).to_le_bytes()],
        );
        let mut config = self.main_config(families);
        config.seed = u64::from_le_bytes(place.as_bytes()[..8].try_into().expect("eight of 32 bytes"));
        let file = WorldFile::Distilled(distilled.clone()).to_bytes();
        let climb = Climb::with_rungs(config, rungs)?.passing_over(TRIES).with_libraries(libraries);
        let climb = climb.with_files(vec![hash(&file)]);
        self.passed = self.volumes.iter().map(|volume| volume.number).collect();
        self.volumes = vec![Volume { number: self.begun, climb, distilled, file, unseen }];
        // Those that were there to be compared with belong to the volumes before.
        self.scratch.clear();
        Ok(true)
    }
}

/// The same instances without anything to begin with.
pub(crate) fn scratch_file(volume: &Volume) -> Vec<u8> {
    let mut distilled = volume.distilled.clone();
    for taught in distilled.tasks.values_mut() {
        taught.episodes.clear();
        taught.machine = None;
    }
    WorldFile::Distilled(distilled).to_bytes()
}
