//! `bem snapshot`, `bem restore` and `bem replay`: a run's state as one file, and its history played again.
//!
//! A snapshot holds everything that decides what comes next; a restored run gets a key and an identity of its own
//! and says where it came from. Replay starts from the configuration and compares every entry: blocks of
//! what was played, patches, table roots.
//! Clauses: LOG-4, LOG-5.

use super::Answer;
use super::ledger_directory;
use super::run::history::{History, put_away_in};
use crate::files;
use crate::world_file::{WorldFile, only_file};
use anyhow::{Context, Result, bail};
use bem_engine::climb::Climb;
use bem_engine::journal::{JournalError, Replay, climb_of};
use bem_ledger::LedgerError;
use bem_ledger::log::{LogOptions, read_blob};
use bem_ledger::snapshot::{Snapshot, latest_snapshot, snapshot_name};
use bem_ledger::store::Store;
use clap::Args;
use std::path::{Path, PathBuf};

/// Copy the newest snapshot of a run that its history vouches for.
#[derive(Args)]
#[command(after_help = "Example: bem snapshot runs/1 --out saved.bem-snapshot")]
pub struct SnapshotArguments {
    /// A run
    directory: PathBuf,
    /// Where it goes [default: the run's name with the ending .bem-snapshot]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Start a run from a snapshot file.
#[derive(Args)]
#[command(after_help = "Example: bem restore saved.bem-snapshot --out elsewhere\n\
    Then go on with: bem run --resume elsewhere")]
pub struct RestoreArguments {
    /// The snapshot file
    file: PathBuf,
    /// The new run
    #[arg(long)]
    out: PathBuf,
    /// The file of the key that signs the new history; made if it is not there
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// Play a run again from its configuration and compare every entry.
#[derive(Args)]
#[command(after_help = "Example: bem replay runs/1 --to 100000\n\
    Exit code 1 when an entry differs; the first one is named.")]
pub struct ReplayArguments {
    /// A run
    directory: PathBuf,
    /// Stop after the unit in which this many steps are reached
    #[arg(long)]
    to: Option<u64>,
}

/// The newest climb of a run whose snapshot its history vouches for.
pub fn newest_climb(directory: &Path) -> Result<(Climb, Snapshot)> {
    let mut store = ledger_directory::open(directory)?;
    let found = latest_snapshot(&mut store)?;
    for (name, reason) in &found.rejected {
        eprintln!("bem: {name} cannot be used ({reason}); the one before is taken");
    }
    let snapshot = found.snapshot.context("the run has no snapshot that can be trusted")?;
    Ok((climb_of(&snapshot)?, snapshot))
}

/// `bem snapshot`
pub fn snapshot(arguments: &SnapshotArguments) -> Result<Answer> {
    let (climb, snapshot) = newest_climb(&arguments.directory)?;
    let mut store = ledger_directory::open(&arguments.directory)?;
    let bytes = store.read_all(&snapshot_name(snapshot.entries), u64::MAX)?;
    let out = arguments.out.clone().unwrap_or_else(|| arguments.directory.with_extension("bem-snapshot"));
    std::fs::write(&out, bytes).with_context(|| format!("{} cannot be written", out.display()))?;
    say!("{}: {} steps, head {}", out.display(), climb.steps(), climb.head());
    Ok(Answer::Yes)
}

/// `bem restore`
pub fn restore(arguments: &RestoreArguments) -> Result<Answer> {
    let name = arguments.file.display();
    let bytes = files::read_bytes(&arguments.file)?;
    let (snapshot, _) = Snapshot::from_bytes(&bytes).with_context(|| format!("{name} is no snapshot"))?;
    let climb = climb_of(&snapshot)?;
    if !climb.files().is_empty() {
        bail!(
            "{name} is of a run over a world's own file, which a snapshot does not hold: copy the run's folder"
        );
    }
    let origin = Some(snapshot.head.digest());
    let key = arguments.key.as_deref();
    let history = History::create(&arguments.out, &climb, key, origin, LogOptions::default())?;
    history.finish(&climb, put_away_in(&snapshot.parts))?;
    say!("{}: {} steps, head {}", arguments.out.display(), climb.steps(), climb.head());
    say!("go on    bem run --resume {}", arguments.out.display());
    Ok(Answer::Yes)
}

/// `bem replay`
pub fn replay(arguments: &ReplayArguments) -> Result<Answer> {
    let store = ledger_directory::open(&arguments.directory)?;
    let mut replay = match Replay::open(store) {
        Err(error) => return differs(error),
        Ok(replay) => replay,
    };
    if let Some(file) = only_file(replay.climb().files())? {
        let bytes = read_blob(&mut ledger_directory::open(&arguments.directory)?, file)?;
        let world = WorldFile::from_bytes(&bytes).with_context(|| format!("the world's file {file}"))?;
        replay = replay.in_worlds(Box::new(world));
    }
    let progress = super::bench::progress_bar(replay.progress().1, false);
    while arguments.to.is_none_or(|to| replay.climb().steps() < to) {
        match replay.advance() {
            Ok(None) => break,
            Ok(Some(_)) => progress.set_position(replay.progress().0),
            Err(error) => {
                progress.finish_and_clear();
                return differs(error);
            }
        }
    }
    progress.finish_and_clear();
    say!(
        "{} units played again, {} steps, every entry as recorded; the climb's own chain ends in {}",
        replay.units(),
        replay.climb().steps(),
        replay.climb().head()
    );
    Ok(Answer::Yes)
}

/// A history that differs is an answer; one that cannot be read is an error.
fn differs(error: JournalError) -> Result<Answer> {
    match error {
        JournalError::Ledger(LedgerError::Diverged { .. }) => {
            say!("{error}");
            Ok(Answer::No)
        }
        other => Err(other.into()),
    }
}
