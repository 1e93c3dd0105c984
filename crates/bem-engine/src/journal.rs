//! A climb's history in a ledger: tables at the start, then every unit with what was played, proven and installed.
//!
//! A unit's entries are written together when it has been taken in, so that the order of units is the order of the
//! ledger, whatever the threads did. What a climb writes follows from its configuration and the order of units alone:
//! [`Replay`] plays the units again in the recorded order and compares every entry. After a crash the newest sound
//! snapshot is taken, and units that are recorded after it are played again and compared, not written twice.
//! Must not know files, keys on disk or clocks. Clauses: LOG-1 to LOG-5, SCC-9; decisions D-16, D-17, D-20.

use crate::chronicle::{Happening, PatchNote};
use crate::climb::{Climb, ClimbError, Purpose, Track, Unit, UnitResult};
use bem_base::digest::{Digest, hash, hash_parts};
use bem_base::encode::{DecodeError, Writer};
use bem_base::ids::{ObjectClass, ObjectId};
use bem_ledger::LedgerError;
use bem_ledger::checkpoint::Signer;
use bem_ledger::entry::{
    Certificate, Entry, Genesis, PatchEvent, PatchKind, PatchStatus, Table, TableEdit, Verdict, event_code,
};
use bem_ledger::log::{Log, LogOptions, read_blob, store_blob};
use bem_ledger::reader::{Comparison, EntryReader};
use bem_ledger::snapshot::{Part, Snapshot, latest_snapshot};
use bem_ledger::store::Store;
use bem_ledger::tables::Tables;
use bem_machine::config::GenesisConfig;
use std::collections::BTreeMap;

/// Name of the snapshot's part that holds the climb; every other part is a unit that was put away in the middle.
pub const CLIMB_PART: &str = "climb";
/// A snapshot is due when the number of units is a multiple of this.
const UNITS_A_SNAPSHOT: u64 = 16;
/// A snapshot is due when a multiple of this many steps was passed.
const STEPS_A_SNAPSHOT: u64 = 1 << 20;
/// Snapshots that are kept: the newest, and those to fall back to.
const SNAPSHOTS_KEPT: usize = 3;

/// Why a journal cannot be opened, written or played again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The ledger refuses.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The climb refuses.
    #[error(transparent)]
    Climb(#[from] ClimbError),
    /// A snapshot or the configuration cannot be read.
    #[error("{what} cannot be read: {source}")]
    State {
        /// Which of them.
        what: &'static str,
        /// Why.
        source: DecodeError,
    },
}

/// Where entries go: to a log, or to a comparison with what is recorded.
trait Sink {
    fn append(&mut self, entry: &Entry) -> Result<(), LedgerError>;
    fn put_blob(&mut self, bytes: &[u8]) -> Result<Digest, LedgerError>;
}

/// What the entries so far amount to.
#[derive(Clone, Debug, Default)]
struct Book {
    tables: Tables,
    /// Patches so far.
    serial: u64,
    /// Units so far.
    units: u64,
    /// Slots of TEACH in use.
    teach_slots: u32,
    /// Templates of each family's teacher that TEACH holds.
    templates: BTreeMap<usize, usize>,
    /// What stands in each slot of EXPERT now, and what stood there before: only the latest patch can be taken back.
    experts: BTreeMap<u32, [Digest; 2]>,
    /// What stands in each slot of WORK after the parameters: the score that a family's next patch must reach.
    thresholds: BTreeMap<u32, Digest>,
}

impl Book {
    /// Derives the state from the first `count` entries; the climb stands at the same point.
    fn read<S: Store>(store: &mut S, count: u64, climb: &Climb) -> Result<Book, LedgerError> {
        let templates = climb.tracks().iter().map(Track::templates).enumerate().collect();
        let mut book = Book { templates, ..Book::default() };
        let mut reader = EntryReader::open(store)?;
        while reader.position() < count {
            let index = reader.position();
            let Some(bytes) = reader.next(store)? else { break };
            let entry = Entry::from_bytes(bytes).map_err(|source| LedgerError::Entry { index, source })?;
            match entry {
                Entry::Patch(patch) => {
                    book.set_all(&patch.edits);
                    book.serial = patch.serial;
                }
                Entry::Tables { edits, .. } => book.set_all(&edits),
                Entry::Event { code: event_code::UNIT_END, .. } => book.units += 1,
                _ => {}
            }
        }
        Ok(book)
    }

    fn set_all(&mut self, edits: &[TableEdit]) {
        for edit in edits {
            self.tables.set(edit);
            match edit.table {
                Table::Teach => self.teach_slots = self.teach_slots.max(edit.slot + 1),
                Table::Expert => {
                    let [now, before] = self.experts.entry(edit.slot).or_default();
                    (*before, *now) = (*now, edit.leaf);
                }
                Table::Work => drop(self.thresholds.insert(edit.slot, edit.leaf)),
                Table::Program => {}
            }
        }
    }

    /// Templates that the family's teacher has and TEACH has not.
    fn new_templates(&mut self, track: usize, climb: &Climb) -> Vec<TableEdit> {
        let family = &climb.tracks()[track];
        let known = self.templates.insert(track, family.templates()).unwrap_or(0);
        let tasks = (known..family.templates()).filter_map(|index| family.template(index));
        let leaves = tasks.map(|task| hash(task.as_bytes()));
        leaves
            .zip(self.teach_slots..)
            .map(|(leaf, slot)| TableEdit { table: Table::Teach, slot, leaf })
            .collect()
    }

    /// The tables a climb begins with: parameters, tasks, and what it brings along.
    fn boot(&mut self, sink: &mut impl Sink, climb: &Climb) -> Result<(), LedgerError> {
        let mut edits = installed_experts(climb);
        for (place, track) in climb.tracks().iter().enumerate() {
            for (stage, task) in track.tasks().iter().enumerate() {
                let slot = (place * bem_teacher::ladder::STAGES_MAX + stage) as u32;
                edits.push(TableEdit { table: Table::Teach, slot, leaf: hash(task.as_bytes()) });
            }
        }
        let words = GenesisConfig::default().words();
        edits.extend(words.iter().zip(0..).map(|(word, slot)| TableEdit {
            table: Table::Work,
            slot,
            leaf: hash(&word.to_le_bytes()),
        }));
        self.set_all(&edits);
        // A climb that comes from elsewhere brings its teachers along.
        for track in 0..climb.tracks().len() {
            let brought = self.new_templates(track, climb);
            self.set_all(&brought);
            edits.extend(brought);
        }
        edits.sort_by_key(|edit| (edit.table, edit.slot));
        sink.append(&Entry::Tables { step: climb.steps(), edits, roots: self.tables.roots() })
    }

    /// Everything of one unit. The climb has taken it in already.
    fn unit(&mut self, sink: &mut impl Sink, result: &UnitResult, climb: &Climb) -> Result<(), LedgerError> {
        let (unit, solution) = (&result.unit, &result.solution);
        let taken = solution.learned.tally.steps;
        let place = place_of(unit);
        sink.append(&Entry::Event {
            step: climb.steps() - taken,
            code: event_code::UNIT_BEGIN,
            values: place.to_vec(),
            payload: unit.task.clone().into_bytes(),
        })?;
        for happening in solution.chronicle.happenings() {
            match happening {
                Happening::Play(block) => sink.append(&Entry::Play(block.clone()))?,
                Happening::Patch(note) => self.patch(sink, unit.track, note)?,
            }
        }
        let edits = self.new_templates(unit.track, climb);
        if !edits.is_empty() {
            self.set_all(&edits);
            let roots = self.tables.roots();
            sink.append(&Entry::Tables { step: climb.steps(), edits, roots })?;
        }
        let policy = solution.learned.agent.policy();
        let mut circuit = Writer::new();
        policy.encode(&mut circuit);
        let circuit = sink.put_blob(circuit.as_bytes())?;
        let score = solution.score().map_or(0, |score| score.to_raw());
        let outcome = [i64::from(solution.is_solved()), score, policy.gates() as i64, taken as i64];
        let words = &solution.learned.words;
        let text = format!("{words}; circuit {circuit}; chain {}", solution.learned.chain_head);
        self.units += 1;
        sink.append(&Entry::Event {
            step: climb.steps(),
            code: event_code::UNIT_END,
            values: [&place[..], &outcome[..]].concat(),
            payload: text.into_bytes(),
        })
    }

    fn patch(&mut self, sink: &mut impl Sink, track: usize, note: &PatchNote) -> Result<(), LedgerError> {
        let mut certificates = Vec::new();
        for (formula, proof) in &note.proofs {
            let (cnf, proof) = (sink.put_blob(formula)?, sink.put_blob(proof)?);
            certificates.push(Certificate { verdict: Verdict::Holds, cnf, proof });
        }
        // Of a refused patch the digest of the reasons is enough; what is in force can be read.
        let payload = if note.accepted { sink.put_blob(&note.payload)? } else { hash(&note.payload) };
        self.serial += 1;
        let roots_before = self.tables.roots();
        let slot = track as u32;
        let status = match (note.accepted, note.rolled_back) {
            (true, _) => PatchStatus::Applied,
            (false, true) => PatchStatus::RolledBack,
            (false, false) => PatchStatus::Rejected,
        };
        let leaf = match status {
            PatchStatus::RolledBack => self.experts.get(&slot).map(|[_, before]| *before),
            _ => note.installed,
        };
        let edits: Vec<TableEdit> = leaf.iter().map(|leaf| expert(track, *leaf)).collect();
        self.set_all(&edits);
        sink.append(&Entry::Patch(Box::new(PatchEvent {
            serial: self.serial,
            step: note.step,
            kind: PatchKind::ALL[usize::from(note.kind)],
            status,
            target: ObjectId::sharded(ObjectClass::TaskFamily, 0, track as u16),
            score: note.score,
            payload,
            certificates,
            roots_before,
            roots_after: self.tables.roots(),
            edits,
        })))?;
        self.threshold(sink, track, note)
    }

    /// The score that the next patch must reach moves with every decision; where it did, WORK says so.
    fn threshold(&mut self, sink: &mut impl Sink, track: usize, note: &PatchNote) -> Result<(), LedgerError> {
        let slot = (GenesisConfig::default().words().len() + track) as u32;
        let leaf = hash(&note.threshold.to_le_bytes());
        if self.thresholds.get(&slot) == Some(&leaf) {
            return Ok(());
        }
        let edits = vec![TableEdit { table: Table::Work, slot, leaf }];
        self.set_all(&edits);
        sink.append(&Entry::Tables { step: note.step, edits, roots: self.tables.roots() })
    }
}

/// Family, place in its chain, purpose, and which rung and try or which template.
fn place_of(unit: &Unit) -> [i64; 5] {
    let (purpose, which, attempt) = match unit.purpose {
        Purpose::Rung { stage, attempt } => (0, stage as i64, i64::from(attempt)),
        Purpose::Replay { template } => (1, i64::from(template.0), 0),
        Purpose::Practice { template } => (2, i64::from(template.0), 0),
    };
    [unit.track as i64, i64::from(unit.number), purpose, which, attempt]
}

/// The expert table as a climb that goes on from elsewhere brings it: the newest circuit of each family.
fn installed_experts(climb: &Climb) -> Vec<TableEdit> {
    let newest = |track: &Track| track.climbed.last().map(|climbed| climbed.policy.digest());
    let tracks = climb.tracks().iter().enumerate();
    tracks.filter_map(|(place, track)| newest(track).map(|leaf| expert(place, leaf))).collect()
}

fn expert(track: usize, leaf: Digest) -> TableEdit {
    TableEdit { table: Table::Expert, slot: track as u32, leaf }
}

/// Compares with the record while there is one, and appends after it.
struct LogSink<S> {
    log: Log<S>,
    recorded: Option<Comparison>,
}

impl<S: Store> LogSink<S> {
    /// Whether the record goes on; entries that only say what came from outside are passed over.
    fn is_recorded(&mut self) -> Result<bool, LedgerError> {
        let Some(recorded) = &mut self.recorded else { return Ok(false) };
        if recorded.peek_derived(self.log.store_mut())?.is_none() {
            self.recorded = None;
        }
        Ok(self.recorded.is_some())
    }
}

impl<S: Store> Sink for LogSink<S> {
    fn append(&mut self, entry: &Entry) -> Result<(), LedgerError> {
        let bytes = entry.to_bytes();
        if self.is_recorded()?
            && let Some(recorded) = &mut self.recorded
        {
            return recorded.expect(self.log.store_mut(), &bytes);
        }
        self.log.append_bytes(&bytes).map(|_| ())
    }

    fn put_blob(&mut self, bytes: &[u8]) -> Result<Digest, LedgerError> {
        // While the record is compared the blob is there, or the audit says so; writing it again mends a lost one.
        self.log.put_blob(bytes)
    }
}

/// A climb's ledger, open for writing.
pub struct Journal<S> {
    sink: LogSink<S>,
    book: Book,
    /// Entries when the last snapshot was written.
    saved: u64,
    /// Steps when the last unit was written.
    steps: u64,
}

/// A journal that was opened, with everything needed to go on.
pub struct Opened<S> {
    /// The journal.
    pub journal: Journal<S>,
    /// The climb as the snapshot has it.
    pub climb: Climb,
    /// Units that were put away in the middle: all parts of the snapshot but the climb.
    pub suspended: Vec<Part>,
    /// Snapshots that were passed over, with the reason.
    pub rejected: Vec<(String, String)>,
}

impl<S: Store> Journal<S> {
    /// Starts a history. `origin` is the head of another history from whose snapshot the climb came.
    pub fn create(
        store: S,
        signer: Signer,
        code: &str,
        climb: &Climb,
        origin: Option<Digest>,
        options: LogOptions,
    ) -> Result<Journal<S>, JournalError> {
        let configuration = climb.snapshot();
        let seed = climb.config().seed.to_le_bytes();
        let genesis = Genesis {
            instance: hash_parts("bem/instance", &[&signer.public_key(), &seed]),
            configuration: hash(&configuration),
            code: code.to_string(),
            public_key: signer.public_key(),
        };
        // The configuration is durable before anything names it: a run that is cut off here can begin again.
        let mut store = store;
        store_blob(&mut store, &configuration).map_err(LedgerError::from)?;
        let mut log = Log::create(store, signer, &genesis, options)?;
        if let Some(origin) = origin {
            let payload = format!("restored from a snapshot of history {origin}").into_bytes();
            let (step, values) = (climb.steps(), Vec::new());
            log.append(&Entry::Event { step, code: event_code::RESTORED, values, payload })?;
        }
        let sink = LogSink { log, recorded: None };
        let mut journal = Journal { sink, book: Book::default(), saved: 0, steps: climb.steps() };
        journal.book.boot(&mut journal.sink, climb)?;
        journal.save(climb, Vec::new())?;
        Ok(journal)
    }

    /// Opens a history to go on with, from its newest sound snapshot; without one, from its configuration.
    pub fn open(mut store: S, signer: Signer, options: LogOptions) -> Result<Opened<S>, JournalError> {
        let found = latest_snapshot(&mut store)?;
        let rejected = found.rejected;
        let Some(snapshot) = found.snapshot else {
            let climb = configured_climb(&mut store)?;
            let mut journal = Journal::resume(store, signer, options, &climb, 1)?;
            journal.book = Book::default();
            journal.book.boot(&mut journal.sink, &climb)?;
            journal.save(&climb, Vec::new())?;
            return Ok(Opened { journal, climb, suspended: Vec::new(), rejected });
        };
        let climb = climb_of(&snapshot)?;
        let journal = Journal::resume(store, signer, options, &climb, snapshot.entries + 1)?;
        let suspended = snapshot.parts.into_iter().filter(|part| part.name != CLIMB_PART).collect();
        Ok(Opened { journal, climb, suspended, rejected })
    }

    /// A journal whose climb stands before entry `next`.
    fn resume(
        store: S,
        signer: Signer,
        options: LogOptions,
        climb: &Climb,
        next: u64,
    ) -> Result<Journal<S>, JournalError> {
        let (mut log, _) = Log::open(store, signer, options)?;
        let book = Book::read(log.store_mut(), next, climb)?;
        let recorded = Some(Comparison::open(log.store_mut(), next)?);
        let mut sink = LogSink { log, recorded };
        sink.is_recorded()?;
        Ok(Journal { sink, book, saved: next, steps: climb.steps() })
    }

    /// The next unit that the record holds and the climb does not: it must be worked on before any other.
    pub fn recorded_unit(&mut self, climb: &Climb) -> Result<Option<Unit>, JournalError> {
        if !self.sink.is_recorded()? {
            return Ok(None);
        }
        match &mut self.sink.recorded {
            Some(recorded) => next_unit(recorded, self.sink.log.store_mut(), climb),
            None => Ok(None),
        }
    }

    /// Writes a unit that the climb has taken in, acknowledges it, and saves the climb if that is due.
    pub fn unit(&mut self, result: &UnitResult, climb: &Climb) -> Result<(), JournalError> {
        self.book.unit(&mut self.sink, result, climb)?;
        let mark = |steps: u64| steps / STEPS_A_SNAPSHOT;
        let due = self.book.units.is_multiple_of(UNITS_A_SNAPSHOT) || mark(self.steps) != mark(climb.steps());
        self.steps = climb.steps();
        let compared = self.sink.recorded.is_some();
        // Where the record goes on its snapshots are in it.
        if self.sink.is_recorded()? {
            return Ok(());
        }
        if compared && self.sink.log.mend_snapshot(climb.steps(), parts(climb, Vec::new()))? {
            self.saved = self.sink.log.size();
            return Ok(());
        }
        if due {
            return self.save(climb, Vec::new());
        }
        self.sink.log.commit()?;
        Ok(())
    }

    /// Acknowledges everything and writes a snapshot, unless the last one is as new and nothing is put away.
    pub fn save(&mut self, climb: &Climb, suspended: Vec<Part>) -> Result<(), JournalError> {
        if self.sink.is_recorded()? || self.saved == self.sink.log.size() && suspended.is_empty() {
            return Ok(());
        }
        self.sink.log.write_snapshot(climb.steps(), parts(climb, suspended))?;
        self.sink.log.thin_snapshots(SNAPSHOTS_KEPT)?;
        self.saved = self.sink.log.size();
        Ok(())
    }

    /// Entries acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sink.log.acknowledged()
    }

    /// Head of the chain over all entries.
    pub fn head(&self) -> Digest {
        self.sink.log.head().digest()
    }

    /// Gives the store back. What was not acknowledged is lost, as in a crash.
    pub fn into_store(self) -> S {
        self.sink.log.into_store()
    }
}

fn parts(climb: &Climb, suspended: Vec<Part>) -> Vec<Part> {
    let mut parts = suspended;
    parts.push(Part { name: CLIMB_PART.to_string(), bytes: climb.snapshot() });
    parts.sort_by(|left, right| left.name.cmp(&right.name));
    parts
}

/// The climb that a snapshot holds.
pub fn climb_of(snapshot: &Snapshot) -> Result<Climb, JournalError> {
    let bytes = snapshot.part(CLIMB_PART).unwrap_or_default();
    Climb::restore(bytes).map_err(|source| JournalError::State { what: "the climb in the snapshot", source })
}

/// The climb at the start, from the configuration that genesis names.
fn configured_climb<S: Store>(store: &mut S) -> Result<Climb, JournalError> {
    let mut reader = EntryReader::open(store)?;
    let genesis = match reader.next(store)?.map(Entry::from_bytes) {
        Some(Ok(Entry::Genesis(genesis))) => genesis,
        _ => return Err(LedgerError::NotALedger("the first entry is not genesis".to_string()).into()),
    };
    let configuration = read_blob(store, &genesis.configuration).map_err(LedgerError::from)?;
    let state = |source| JournalError::State { what: "the configuration", source };
    Climb::restore(&configuration).map_err(state)
}

/// Reads which unit comes next and checks that the climb could do it.
fn next_unit<S: Store>(
    recorded: &mut Comparison,
    store: &mut S,
    climb: &Climb,
) -> Result<Option<Unit>, JournalError> {
    let entry = recorded.position();
    let Some(bytes) = recorded.peek_derived(store)? else { return Ok(None) };
    let diverged = |reason: &str| LedgerError::Diverged { entry, reason: reason.to_string() };
    let source = |source| LedgerError::Entry { index: entry, source };
    let Entry::Event { code: event_code::UNIT_BEGIN, values, .. } =
        Entry::from_bytes(bytes).map_err(source)?
    else {
        return Err(diverged("a unit should begin here").into());
    };
    let unit = values.first().and_then(|track| climb.tracks().get(usize::try_from(*track).ok()?)?.next());
    Ok(Some(unit.ok_or_else(|| diverged("a family that has no unit to work on"))?))
}

/// A recorded history that is played again, from its configuration on. Nothing is written.
pub struct Replay<S> {
    sink: RecordSink<S>,
    book: Book,
    climb: Climb,
}

struct RecordSink<S> {
    store: S,
    recorded: Comparison,
}

impl<S: Store> Sink for RecordSink<S> {
    fn append(&mut self, entry: &Entry) -> Result<(), LedgerError> {
        self.recorded.peek_derived(&mut self.store)?;
        self.recorded.expect(&mut self.store, &entry.to_bytes())
    }

    fn put_blob(&mut self, bytes: &[u8]) -> Result<Digest, LedgerError> {
        Ok(hash(bytes))
    }
}

impl<S: Store> Replay<S> {
    /// Begins at the configuration that genesis names.
    pub fn open(mut store: S) -> Result<Replay<S>, JournalError> {
        let climb = configured_climb(&mut store)?;
        let recorded = Comparison::open(&mut store, 1)?;
        let mut replay = Replay { sink: RecordSink { store, recorded }, book: Book::default(), climb };
        replay.book.boot(&mut replay.sink, &replay.climb)?;
        Ok(replay)
    }

    /// The climb as far as it was played again.
    pub fn climb(&self) -> &Climb {
        &self.climb
    }

    /// Units compared so far.
    pub fn units(&self) -> u64 {
        self.book.units
    }

    /// Entries compared or passed over so far, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        (self.sink.recorded.position(), self.sink.recorded.size())
    }

    /// Plays the next recorded unit again and compares its entries; nothing at the end of the record.
    pub fn advance(&mut self) -> Result<Option<Unit>, JournalError> {
        let Some(unit) = next_unit(&mut self.sink.recorded, &mut self.sink.store, &self.climb)? else {
            return Ok(None);
        };
        let result = self.climb.work(&unit, &mut || true)?.expect("nobody asks it to stop");
        self.climb.take(&result);
        self.book.unit(&mut self.sink, &result, &self.climb)?;
        Ok(Some(unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::ClimbConfig;
    use bem_ledger::audit::{AuditVerdict, audit};
    use bem_ledger::store::MemoryStore;
    use std::collections::BTreeSet;

    fn signer() -> Signer {
        Signer::from_seed(&[5; 32])
    }

    fn climb(seed: u64) -> Climb {
        let families = ["parity", "majority"].map(str::to_string).to_vec();
        Climb::new(ClimbConfig { seed, stages: 3, unit_steps: 20_000, families }).unwrap()
    }

    fn create(climb: &Climb) -> Journal<MemoryStore> {
        Journal::create(MemoryStore::new(), signer(), "test", climb, None, LogOptions::default()).unwrap()
    }

    /// Works to the end of the climb; returns the store after every unit, and the last head.
    fn finish(mut journal: Journal<MemoryStore>, mut climb: Climb) -> (Vec<MemoryStore>, Digest) {
        let mut stores = Vec::new();
        loop {
            let recorded = journal.recorded_unit(&climb).unwrap();
            let next = || climb.next(&BTreeSet::new()).filter(|_| climb.is_climbing());
            let Some(unit) = recorded.or_else(next) else { break };
            let result = climb.work(&unit, &mut || true).unwrap().unwrap();
            climb.take(&result);
            journal.unit(&result, &climb).unwrap();
            stores.push(journal.sink.log.store_mut().clone());
        }
        journal.save(&climb, Vec::new()).unwrap();
        let head = journal.head();
        stores.push(journal.into_store());
        (stores, head)
    }

    #[test]
    fn a_run_that_is_cut_off_anywhere_ends_in_the_same_head() {
        let (stores, head) = finish(create(&climb(3)), climb(3));
        assert!(4 < stores.len());
        for (cut, store) in stores.iter().enumerate() {
            let opened = Journal::open(store.clone(), signer(), LogOptions::default()).unwrap();
            assert_eq!(opened.rejected, []);
            assert_eq!(finish(opened.journal, opened.climb).1, head, "cut after unit {cut}");
        }
    }

    #[test]
    fn a_damaged_snapshot_is_passed_over_and_mended_on_the_way() {
        let (stores, head) = finish(create(&climb(3)), climb(3));
        let mut store = stores.last().unwrap().clone();
        let newest = store.files.keys().rfind(|name| name.starts_with("snapshot")).unwrap().clone();
        let honest = store.clone();
        *store.files.get_mut(&newest).unwrap().last_mut().unwrap() ^= 1;
        let opened = Journal::open(store, signer(), LogOptions::default()).unwrap();
        assert_eq!(opened.rejected.len(), 1);
        let (mended, again) = finish(opened.journal, opened.climb);
        assert_eq!(again, head);
        assert_eq!(mended.last().unwrap().files[&newest], honest.files[&newest]);
    }

    #[test]
    fn without_any_snapshot_a_run_begins_at_its_configuration() {
        let (stores, head) = finish(create(&climb(3)), climb(3));
        let mut store = stores.last().unwrap().clone();
        store.files.retain(|name, _| !name.starts_with("snapshot"));
        let opened = Journal::open(store, signer(), LogOptions::default()).unwrap();
        assert_eq!(opened.climb, climb(3));
        assert_eq!(finish(opened.journal, opened.climb).1, head);
    }

    #[test]
    fn an_audit_accepts_a_run_and_counts_its_steps() {
        let (mut stores, head) = finish(create(&climb(3)), climb(3));
        let report = audit(stores.last_mut().unwrap(), None).unwrap();
        assert_eq!((report.verdict, report.head), (AuditVerdict::Unanchored, head));
        assert!(0 < report.steps && 0 < report.certificates, "{} steps", report.steps);
    }

    #[test]
    fn a_replay_agrees_with_an_honest_record_and_names_the_first_entry_of_another() {
        let (mut stores, _) = finish(create(&climb(3)), climb(3));
        let mut replay = Replay::open(stores.pop().unwrap()).unwrap();
        while replay.advance().unwrap().is_some() {}
        assert_eq!(replay.progress().0, replay.progress().1);
        assert_eq!(replay.units(), stores.len() as u64);
        // A record that is well formed and signed, of a unit that was played with another seed.
        let (mut honest, other) = (climb(3), climb(4));
        let mut journal = create(&honest);
        let unit = honest.next(&BTreeSet::new()).unwrap();
        let result = other.work(&unit, &mut || true).unwrap().unwrap();
        honest.take(&result);
        journal.unit(&result, &honest).unwrap();
        let mut store = journal.into_store();
        assert_eq!(audit(&mut store, None).unwrap().verdict, AuditVerdict::Unanchored);
        let error = Replay::open(store).unwrap().advance().unwrap_err().to_string();
        assert!(error.starts_with("replay differs at entry 4: recorded is play"), "{error}");
    }
}
