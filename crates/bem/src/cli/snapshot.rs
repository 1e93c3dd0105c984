//! `bem snapshot`, `bem restore` and `bem replay`: a run's state as one file, and its history played again.
//!
//! A snapshot holds everything that decides what comes next; a restored run gets a key and an identity of its own
//! and says where it came from. The copy of a run over a world of one's own also holds what that world is made of, as parts
//! `file_0` and so on; the snapshots inside a run do not, because the run has it beside them. Replay starts from the configuration and compares every entry: blocks of
//! what was played, patches, table roots.
//! Clauses: LOG-4, LOG-5.

use super::Answer;
use super::fit::hanging;
use super::ledger_directory;
use super::run::history::{History, alone, put_away_in};
use super::serve;
use crate::files;
use crate::kept_world::{kept_files, worlds_of};
use anyhow::{Context, Result, bail};
use bem_base::digest::{Digest, hash};
use bem_base::words::quantity;
use bem_engine::climb::Climb;
use bem_engine::journal::{JournalError, Replay, climb_of};
use bem_ledger::LedgerError;
use bem_ledger::log::LogOptions;
use bem_ledger::snapshot::{Part, Snapshot, latest_snapshot};
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
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
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
    /// Stop after the unit in which this many steps are reached; of a server, after this many inputs
    #[arg(long)]
    to: Option<u64>,
}

/// The newest climb of a run whose snapshot its history vouches for.
pub fn newest_climb(directory: &Path) -> Result<(Climb, Snapshot)> {
    let mut store = ledger_directory::open(directory)?;
    let found = latest_snapshot(&mut store)?;
    for (name, reason) in &found.rejected {
        note!("bem: {name} cannot be used ({reason}); the one before is taken");
    }
    let snapshot = found.snapshot.context("the run has no snapshot that can be trusted")?;
    Ok((climb_of(&snapshot)?, snapshot))
}

/// `bem snapshot`
pub fn snapshot(arguments: &SnapshotArguments) -> Result<Answer> {
    let out = arguments.out.clone().unwrap_or_else(|| arguments.directory.with_extension("bem-snapshot"));
    if out.exists() && !arguments.force {
        bail!("{} is there already: name another file with --out, or replace it with --force", out.display());
    }
    let (climb, snapshot) = newest_climb(&arguments.directory)?;
    let mut snapshot = alone(&mut ledger_directory::open(&arguments.directory)?, snapshot)?;
    for (number, bytes) in kept_files(&arguments.directory, climb.files())?.into_iter().enumerate() {
        snapshot.parts.push(Part { name: file_part(number), bytes });
    }
    snapshot.parts.sort_by(|left, right| left.name.cmp(&right.name));
    let (bytes, _) = snapshot.to_bytes();
    std::fs::write(&out, bytes).with_context(|| format!("{} cannot be written", out.display()))?;
    print_state(&out, &climb);
    Ok(Answer::Yes)
}

/// Where something is, and the state of learning in it.
fn print_state(place: &Path, climb: &Climb) {
    let line = format!("{}: {}, head {}", place.display(), quantity(climb.steps(), "step"), climb.head());
    hanging(&line, 2).iter().for_each(|part| say!("{part}"));
}

/// The part of a copied snapshot that holds the file of this number.
fn file_part(number: usize) -> String {
    format!("file_{number}")
}

/// What the climb's worlds are made of, from the parts of a copied snapshot; each must have the digest that the climb names.
pub fn files_in(snapshot: &Snapshot, climb: &Climb) -> Result<Vec<Vec<u8>>> {
    let file = |(number, digest): (usize, &Digest)| {
        let bytes = snapshot.part(&file_part(number)).context(
            "it is of a run over a world's own file and does not hold it: copy it with bem snapshot DIR",
        )?;
        if hash(bytes) != *digest {
            bail!("the world's file in it is not the one that its run was played with");
        }
        Ok(bytes.to_vec())
    };
    climb.files().iter().enumerate().map(file).collect()
}

/// `bem restore`
pub fn restore(arguments: &RestoreArguments) -> Result<Answer> {
    let name = arguments.file.display();
    let bytes = files::read_bytes(&arguments.file)?;
    let (snapshot, _) = Snapshot::from_bytes(&bytes).with_context(|| format!("{name} is no snapshot"))?;
    let climb = climb_of(&snapshot)?;
    let files = files_in(&snapshot, &climb).with_context(|| name.to_string())?;
    let origin = Some(snapshot.head.digest());
    let key = arguments.key.as_deref();
    let mut history =
        History::create_with(&arguments.out, &climb, &files, key, origin, LogOptions::default())?;
    history.save(&climb, put_away_in(&snapshot.parts))?;
    print_state(&arguments.out, &climb);
    say!("go on    bem run --resume {}", arguments.out.display());
    Ok(Answer::Yes)
}

/// `bem replay`
pub fn replay(arguments: &ReplayArguments) -> Result<Answer> {
    let mut store = ledger_directory::open(&arguments.directory)?;
    if serve::is_service(&mut store) {
        return serve::replay(&mut store, arguments.to, &arguments.directory);
    }
    let mut replay = match Replay::open(store) {
        Err(error) => return differs(error),
        Ok(replay) => replay,
    };
    let worlds = worlds_of(&arguments.directory, replay.climb().files())?;
    replay = replay.in_worlds(worlds);
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
    if 0 < replay.under_way() {
        let steps = quantity(replay.under_way(), "step");
        say!("the record ends in a unit: its first {steps} were played again, every entry as recorded");
    }
    say!(
        "{} units played again, {} steps, every entry as recorded; the chain ends in\n  {}",
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
