//! The history of a run on disk: the engine's journal over real files, signed with a key that is kept elsewhere.

use crate::file_store::FileStore;
use crate::keys;
use anyhow::{Context, Result, bail};
use bem_base::digest::Digest;
use bem_base::encode::{Reader, Writer};
use bem_engine::chronicle::Chronicle;
use bem_engine::climb::{Climb, Unit, UnitResult};
use bem_engine::journal::{Journal, Opened, UnderWay, whole_lesson};
use bem_ledger::entry::Entry;
use bem_ledger::log::{LogOptions, store_blob};
use bem_ledger::play::PlayBlock;
use bem_ledger::reader::EntryReader;
use bem_ledger::snapshot::{Part, Snapshot};
use bem_ledger::store::Store;
use bem_tables::beside::{with_losses, without_losses};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

/// Units that were put away in the middle: by family, the unit's place in its chain and the bytes to go on from.
pub type PutAway = BTreeMap<usize, (u32, Vec<u8>)>;

/// A run's ledger, open for writing.
pub struct History {
    journal: Journal<FileStore>,
}

fn store(directory: &Path) -> Result<FileStore> {
    let ledger = directory.join("ledger");
    std::fs::create_dir_all(&ledger).with_context(|| format!("{} cannot be made", ledger.display()))?;
    FileStore::open_locked(&ledger).with_context(|| ledger.display().to_string())
}

/// The key that genesis names.
fn public_key(store: &mut FileStore) -> Result<[u8; 32]> {
    let mut reader = EntryReader::open(store)?;
    match reader.next(store)?.map(Entry::from_bytes) {
        Some(Ok(Entry::Genesis(genesis))) => Ok(genesis.public_key),
        _ => bail!("the first entry of the ledger is not genesis"),
    }
}

/// Units that were put away, as parts of a snapshot: `unit_` and the family's number, holding the unit's number and
/// its bytes.
fn parts_of(put_away: PutAway) -> Vec<Part> {
    let part = |(track, (number, bytes)): (usize, (u32, Vec<u8>))| {
        let mut writer = Writer::new();
        writer.u32(number);
        writer.raw(&bytes);
        Part { name: format!("unit_{track}"), bytes: writer.into_bytes() }
    };
    put_away.into_iter().map(part).collect()
}

/// The units that a snapshot's parts hold; what is none of them is left out.
pub fn put_away_in(parts: &[Part]) -> PutAway {
    let unit = |part: &Part| {
        let track = part.name.strip_prefix("unit_")?.parse().ok()?;
        let mut reader = Reader::new(&part.bytes);
        let number = reader.u32().ok()?;
        Some((track, (number, part.bytes[reader.position()..].to_vec())))
    };
    parts.iter().filter_map(unit).collect()
}

/// The units that a snapshot of this history holds, with what the history holds of them put back: another history can go on
/// with these. One that does not fit begins anew, which leads to the same end.
pub fn whole_units<S: Store>(store: &mut S, snapshot: &Snapshot) -> Result<PutAway> {
    let mut units = PutAway::new();
    for (track, (number, bytes)) in put_away_in(&snapshot.parts) {
        let (lesson, losses) = match without_losses(bytes.clone()) {
            (lesson, _) if lesson == bytes => (lesson, None),
            (lesson, losses) => (lesson, Some(losses)),
        };
        if let Some(lesson) = whole_lesson(store, snapshot.entries, &lesson)? {
            let bytes = losses.map_or_else(|| lesson.clone(), |losses| with_losses(&lesson, &losses));
            units.insert(track, (number, bytes));
        }
    }
    Ok(units)
}

/// A snapshot as it stands alone: its units have with them what its history holds of them.
pub fn alone<S: Store>(store: &mut S, mut snapshot: Snapshot) -> Result<Snapshot> {
    let units = parts_of(whole_units(store, &snapshot)?);
    let names: Vec<String> =
        put_away_in(&snapshot.parts).into_keys().map(|track| format!("unit_{track}")).collect();
    snapshot.parts.retain(|part| !names.contains(&part.name));
    snapshot.parts.extend(units);
    snapshot.parts.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(snapshot)
}

impl History {
    /// Starts a history in an empty folder, with the files that the climb's worlds are made of: they are there before anything
    /// names them. `origin` is the history that the climb comes from, if any.
    pub fn create_with(
        directory: &Path,
        climb: &Climb,
        files: &[Vec<u8>],
        key: Option<&Path>,
        origin: Option<Digest>,
        options: LogOptions,
    ) -> Result<History> {
        if directory.join("ledger/checkpoint").exists() {
            bail!("{} holds a run already: go on with --resume, or name another folder", directory.display());
        }
        let signer = keys::for_new_run(key, directory)?;
        let code = env!("CARGO_PKG_VERSION");
        let mut store = store(directory)?;
        for file in files {
            store_blob(&mut store, file)?;
        }
        let journal = Journal::create(store, signer, code, climb, origin, options)?;
        Ok(History { journal })
    }

    /// Opens a history to go on with, from its newest sound snapshot.
    pub fn resume(
        directory: &Path,
        key: Option<&Path>,
        options: LogOptions,
    ) -> Result<(History, Climb, PutAway)> {
        if !directory.join("ledger/checkpoint").exists() {
            bail!("{} is no run: it has no ledger/checkpoint", directory.display());
        }
        let mut files = store(directory)?;
        let signer = keys::for_known_run(key, directory, &public_key(&mut files)?)?;
        let Opened { journal, climb, suspended, rejected } = Journal::open(files, signer, options)?;
        for (name, reason) in rejected {
            note!("bem: {name} cannot be used ({reason}); the one before is taken");
        }
        Ok((History { journal }, climb, put_away_in(&suspended)))
    }

    /// A unit that is recorded after the snapshot: it is worked on again before any other, and compared.
    pub fn recorded_unit(&mut self, climb: &Climb) -> Result<Option<Unit>> {
        Ok(self.journal.recorded_unit(climb)?)
    }

    /// Writes and acknowledges what a unit did; the climb has taken it in. A snapshot is written when one is due.
    pub fn unit(&mut self, result: &UnitResult, climb: &Climb) -> Result<()> {
        Ok(self.journal.unit(result, climb)?)
    }

    /// Writes a snapshot, with what was put away in the middle, and returns the head of the chain there.
    pub fn save(&mut self, climb: &Climb, put_away: PutAway) -> Result<Digest> {
        self.journal.save(climb, parts_of(put_away))?;
        Ok(self.journal.saved_head()?)
    }

    /// Writes what has happened so far in the one unit of a climb, then a snapshot with what goes on from there.
    pub fn under_way(
        &mut self,
        climb: &Climb,
        under_way: UnderWay<'_>,
        chronicle: &Chronicle,
        put_away: PutAway,
    ) -> Result<()> {
        self.journal.so_far(under_way, chronicle, climb)?;
        Ok(self.journal.save(climb, parts_of(put_away))?)
    }

    /// Happenings that are written of the unit that is under way.
    pub fn written(&self) -> u64 {
        self.journal.written()
    }

    /// What was played of the unit under way, as far as it is written, before this step of the learner.
    pub fn played(&mut self, before: u64, take: impl FnMut(&PlayBlock)) -> Result<()> {
        Ok(self.journal.played(before, take)?)
    }

    /// Puts a file into the run's folder whose digest the history names; returns the head after that.
    ///
    /// The file lies beside its place, durable, before it is named, and takes its place afterwards: whatever is cut off in
    /// between, an audit finds the named content in one of the two.
    pub fn publish(&mut self, directory: &Path, name: &str, content: &[u8]) -> Result<Digest> {
        let (place, aside) = (directory.join(name), directory.join(format!("{name}.tmp")));
        let failed = || place.display().to_string();
        let mut file = std::fs::File::create(&aside).with_context(failed)?;
        file.write_all(content).and_then(|()| file.sync_all()).with_context(failed)?;
        std::fs::File::open(directory).and_then(|folder| folder.sync_all()).with_context(failed)?;
        self.journal.name_artefact(name, content)?;
        std::fs::rename(&aside, &place).with_context(failed)?;
        std::fs::File::open(directory).and_then(|folder| folder.sync_all()).with_context(failed)?;
        Ok(self.journal.head())
    }
}
