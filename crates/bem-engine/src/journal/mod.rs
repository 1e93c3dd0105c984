//! A climb's history in a ledger: tables at the start, then every unit with what was played, proven and installed.
//!
//! A unit's entries are written together when it has been taken in, so that the order of units is the order of the
//! ledger, whatever the threads did; where there is one unit alone, what has happened is written as it goes on (`under_way`). What a climb writes follows from its configuration and the order of units alone:
//! [`Replay`] plays the units again in the recorded order and compares every entry. After a crash the newest sound
//! snapshot is taken, and units that are recorded after it are played again and compared, not written twice.
//! Must not know files, keys on disk or clocks. Clauses: LOG-1 to LOG-5, SCC-9; decisions D-16, D-17, D-20, D-308.

mod book;
mod conditions;
pub mod entries;
mod replay;
#[cfg(test)]
mod tests;
mod under_way;

pub use book::UnderWay;
pub use conditions::RunConditions;
pub use replay::Replay;
pub use under_way::whole_lesson;

use crate::climb::{Climb, ClimbError, Unit, UnitResult};
use bem_base::digest::{Digest, hash, hash_parts};
use bem_base::encode::DecodeError;
use bem_ledger::LedgerError;
use bem_ledger::chain::ChainHead;
use bem_ledger::checkpoint::Signer;
use bem_ledger::entry::{Artefact, Entry, Genesis, event_code};
use bem_ledger::log::{Log, LogOptions, read_blob, store_blob};
use bem_ledger::merkle::leaf_hash;
use bem_ledger::reader::{Comparison, EntryReader};
use bem_ledger::snapshot::{Part, Snapshot, latest_snapshot};
use bem_ledger::store::Store;
use book::Book;
use entries::Sink;
use under_way::Begun;

/// Name of the snapshot's part that holds the climb; every other part is a unit that was put away in the middle.
pub const CLIMB_PART: &str = "climb";
/// A snapshot is due when the number of units is a multiple of this.
const UNITS_A_SNAPSHOT: u64 = 16;
/// A snapshot is due when a multiple of this many steps was passed.
const STEPS_A_SNAPSHOT: u64 = 1 << 20;
/// Snapshots that are kept: the newest, and those to fall back to.
const SNAPSHOTS_KEPT: u8 = 3;

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
    /// Where the unit under way begins.
    begun: Option<Begun>,
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
        let mut journal =
            Journal { sink, book: Book::default(), saved: 0, steps: climb.steps(), begun: None };
        journal.book.boot(&mut journal.sink, climb)?;
        journal.book.programs(&mut journal.sink, climb)?;
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
            journal.book.programs(&mut journal.sink, &climb)?;
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
        let (book, begun) = under_way::read(log.store_mut(), next, climb)?;
        let recorded = Some(Comparison::open(log.store_mut(), next)?);
        let mut sink = LogSink { log, recorded };
        // What comes from outside after the snapshot does not make it older.
        let saved = if sink.is_recorded()? { next } else { sink.log.size() };
        Ok(Journal { sink, book, saved, steps: climb.steps(), begun })
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
        self.agree_with(&result.solution.chronicle)?;
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
        self.sink.log.write_snapshot(climb.steps(), parts(climb, suspended), SNAPSHOTS_KEPT)?;
        self.saved = self.sink.log.size();
        Ok(())
    }

    /// Head of the chain at the newest snapshot's marker, which files made of the history show: naming them comes after it,
    /// and so does not change it. Cost: one pass over the log.
    pub fn saved_head(&mut self) -> Result<Digest, JournalError> {
        let store = self.sink.log.store_mut();
        let (mut reader, mut head, mut saved) =
            (EntryReader::open(store)?, ChainHead::start(), ChainHead::start());
        while let Some(bytes) = reader.next(store)? {
            head = head.link(&leaf_hash(bytes));
            if matches!(Entry::from_bytes(bytes), Ok(Entry::Snapshot { .. })) {
                saved = head;
            }
        }
        Ok(saved.digest())
    }

    /// Names a file that is about to be put beside the ledger, and acknowledges that. One that is named as it is already
    /// is not named again. Cost: one pass over the log.
    pub fn name_artefact(&mut self, name: &str, content: &[u8]) -> Result<(), JournalError> {
        let artefact = Artefact { digest: hash(content), name: name.to_string() };
        let (payload, mut known) = (artefact.to_bytes(), None);
        let mut reader = EntryReader::open(self.sink.log.store_mut())?;
        while let Some(bytes) = reader.next(self.sink.log.store_mut())? {
            if let Ok(Entry::Event { code: event_code::ARTEFACT, payload, .. }) = Entry::from_bytes(bytes)
                && Artefact::from_bytes(&payload).is_ok_and(|other| other.name == name)
            {
                known = Some(payload);
            }
        }
        if known.as_ref() != Some(&payload) {
            let (step, values) = (self.steps, vec![content.len() as i64]);
            self.sink.log.append(&Entry::Event { step, code: event_code::ARTEFACT, values, payload })?;
        }
        self.sink.log.commit()?;
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
