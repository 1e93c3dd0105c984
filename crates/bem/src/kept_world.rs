//! The worlds of runs over games, programs and records of one's own, from what a run has kept of them.
//!
//! Clauses: LOG-5, GLE-9.

use crate::cli::ledger_directory;
use crate::program_game::Sources;
use crate::world_ladder::WorldLadder;
use anyhow::{Context as _, Result, anyhow, bail};
use bem_base::digest::Digest;
use bem_data::Encoder;
use bem_engine::start::Start;
use bem_engine::world_file::record::Playback;
use bem_engine::world_file::{GameFile, WorldFile};
use bem_engine::worlds::{Catalog, World, Worlds};
use bem_games::compose::TaskTree;
use bem_games::game::{Game, GameError};
use bem_games::import::{self, Format, Opponent, Seat};
use bem_ledger::log::read_blob;
use std::path::Path;
use std::sync::Arc;

/// Worlds that threads may share.
pub type SharedWorlds = Box<dyn Worlds + Sync>;

/// The worlds that are made of one file.
struct KeptWorld(WorldFile);

impl Worlds for KeptWorld {
    fn open(&self, task: &str, seed: u64) -> Result<World, GameError> {
        let impossible = |error: anyhow::Error| GameError::Impossible(format!("{error:#}"));
        match self.0.world() {
            None => Catalog.open(task, seed),
            Some(WorldFile::Game(file)) => build(file).map(World::Game).map_err(impossible),
            Some(WorldFile::Programs(sources)) => {
                TaskTree::parse(task)?.build(seed, &Sources(sources)).map(World::Game)
            }
            Some(WorldFile::Distilled(distilled)) => distilled.open(task, seed),
            Some(WorldFile::Record(record)) => Ok(World::Outside(Box::new(Playback::new(record)))),
            Some(WorldFile::Ladder { text, files }) => WorldLadder::parse(text, files.clone())
                .and_then(|ladder| ladder.open(task, seed))
                .map_err(impossible),
            Some(WorldFile::Started { .. }) => {
                Err(GameError::Impossible("a start within a start".to_string()))
            }
        }
    }

    fn start(&self) -> Start {
        self.0.start()
    }

    fn start_of(&self, task: &str, seed: u64) -> Start {
        match &self.0 {
            WorldFile::Distilled(distilled) => distilled.start_of(task, seed),
            other => other.start(),
        }
    }
}

/// Reads a game that came as a file.
pub fn build(file: &GameFile) -> Result<Arc<dyn Game>> {
    let format = Format::from_file_name(&file.name)?;
    let mut seat = Seat::default();
    if let Some(player) = &file.player {
        seat.player = player.parse().map_err(|_| anyhow!("player {player:?} is no whole number"))?;
    }
    if let Some((name, text)) = &file.opponent {
        seat.opponent = Opponent::parse(text).with_context(|| name.clone())?;
    }
    import::read(format, &file.text, &seat).with_context(|| file.name.clone())
}

/// The bytes of the files that a run's worlds are made of, in the order in which the run names them.
pub fn kept_files(directory: &Path, files: &[Digest]) -> Result<Vec<Vec<u8>>> {
    let mut store = ledger_directory::open(directory)?;
    let read =
        |file: &Digest| read_blob(&mut store, file).with_context(|| format!("the world's file {file}"));
    files.iter().map(read).collect()
}

/// How named features of the world that these files make up become bits, where they are named.
pub fn encoder_of(files: &[Vec<u8>]) -> Option<Encoder> {
    let [bytes] = files else { return None };
    match WorldFile::from_bytes(bytes).ok()?.world()? {
        WorldFile::Record(record) => Encoder::from_json(record.features()?).ok(),
        WorldFile::Game(file) => import::encoder(Format::from_file_name(&file.name).ok()?, &file.text),
        WorldFile::Programs(_)
        | WorldFile::Ladder { .. }
        | WorldFile::Distilled(_)
        | WorldFile::Started { .. } => None,
    }
}

/// The worlds of a run: the catalog's, or those of the one file that it names.
pub fn worlds_of(directory: &Path, files: &[Digest]) -> Result<SharedWorlds> {
    worlds_from(kept_files(directory, files)?)
}

/// The worlds that these files make up; without any, the catalog's.
pub fn worlds_from(files: Vec<Vec<u8>>) -> Result<SharedWorlds> {
    match files.as_slice() {
        [] => Ok(Box::new(Catalog)),
        [bytes] => {
            let world = WorldFile::from_bytes(bytes).context("the world's file")?;
            Ok(Box::new(KeptWorld(world)))
        }
        more => bail!("the run names {} files of worlds; this version knows runs with one", more.len()),
    }
}
