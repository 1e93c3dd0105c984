//! `bem snapshot`, `bem restore` and `bem replay`: a run's state as one file, and its history played again.
//!
//! A snapshot holds everything that decides what comes next; a restored run gets a key and an identity of its own
//! and says where it came from. Replay starts from the configuration and compares every unit's head.
//! Clauses: LOG-4, LOG-5.

use super::Answer;
use super::ledger_directory;
use super::run::history::{History, PART};
use anyhow::{Context, Result};
use bem_engine::climb::{Climb, Unit};
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
}

/// Play a run again from its configuration and compare heads.
#[derive(Args)]
#[command(after_help = "Example: bem replay runs/1 --to 100000\n\
    Exit code 1 when a head differs; the first one is named.")]
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

fn climb_of(snapshot: &Snapshot) -> Result<Climb> {
    let bytes = snapshot.part(PART).context("the snapshot holds no climb")?;
    Climb::restore(bytes).context("the snapshot cannot be read")
}

/// `bem snapshot`
pub fn snapshot(arguments: &SnapshotArguments) -> Result<Answer> {
    let (climb, snapshot) = newest_climb(&arguments.directory)?;
    let mut store = ledger_directory::open(&arguments.directory)?;
    let bytes = store.read_all(&snapshot_name(snapshot.entries), u64::MAX)?;
    let out = arguments.out.clone().unwrap_or_else(|| arguments.directory.with_extension("bem-snapshot"));
    std::fs::write(&out, bytes).with_context(|| format!("{} cannot be written", out.display()))?;
    println!("{}: {} steps, head {}", out.display(), climb.steps(), climb.head());
    Ok(Answer::Yes)
}

/// `bem restore`
pub fn restore(arguments: &RestoreArguments) -> Result<Answer> {
    let name = arguments.file.display();
    let bytes = std::fs::read(&arguments.file).with_context(|| format!("{name} cannot be read"))?;
    let (snapshot, _) = Snapshot::from_bytes(&bytes).with_context(|| format!("{name} is no snapshot"))?;
    let climb = climb_of(&snapshot)?;
    History::create_from(&arguments.out, &climb, &snapshot.head.digest())?;
    println!("{}: {} steps, head {}", arguments.out.display(), climb.steps(), climb.head());
    println!("go on    bem run --resume {}", arguments.out.display());
    Ok(Answer::Yes)
}

/// `bem replay`
pub fn replay(arguments: &ReplayArguments) -> Result<Answer> {
    let (recorded, _) = newest_climb(&arguments.directory)?;
    let mut again = Climb::new(recorded.config().clone())?;
    let total: usize = recorded.tracks().iter().map(|track| track.climbed.len()).sum();
    let progress = super::bench::progress_bar(total as u64, false);
    let mut compared = 0;
    while arguments.to.is_none_or(|to| again.steps() < to) {
        let round = again.round();
        let recorded_units: Vec<_> =
            round.iter().filter_map(|unit| recorded_head(&recorded, unit).map(|head| (unit, head))).collect();
        if recorded_units.is_empty() {
            break;
        }
        for (unit, expected) in recorded_units {
            let result = again.work(unit, &mut || true)?.context("nobody asked to stop")?;
            let head = result.solution.learned.chain_head;
            if head != expected {
                progress.finish_and_clear();
                println!(
                    "differs at {}, try {}: {head} now, {expected} in the record",
                    unit.task,
                    unit.attempt + 1
                );
                return Ok(Answer::No);
            }
            again.take(&result);
            compared += 1;
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    println!(
        "{compared} units played again, {} steps, every head as recorded: {}",
        again.steps(),
        again.head()
    );
    Ok(Answer::Yes)
}

fn recorded_head(recorded: &Climb, unit: &Unit) -> Option<bem_base::digest::Digest> {
    let climbed = &recorded.tracks()[unit.track].climbed;
    climbed
        .iter()
        .find(|climbed| climbed.stage == unit.stage && climbed.attempt == unit.attempt)
        .map(|climbed| climbed.head)
}
