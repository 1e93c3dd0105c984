//! A service's history in a ledger: begun, gone on with from its newest snapshot, and played again from its inputs.
//!
//! Played again, every input takes effect as it did, rounds are worked on where they took effect, and every entry that follows
//! is compared with the one that is recorded. Must not know files, keys on disk, clocks or threads.
//! Clauses: LOG-1, LOG-2, LOG-4, LOG-5; decisions D-17, D-20, D-67, D-68.

use crate::base::{BaseState, restored_state, restored_text};
use crate::book::{Book, Line, Sink};
use crate::frozen::Frozen;
use crate::input::{Input, decode_all};
use crate::round::Job;
use crate::service::{Service, ServiceConfig};
use bem_base::digest::{Digest, hash, hash_parts};
use bem_base::encode::Writer;
use bem_engine::journal::entries::Kept;
use bem_engine::state::RestoreError;
use bem_ledger::LedgerError;
use bem_ledger::archive::Archived;
use bem_ledger::checkpoint::Signer;
use bem_ledger::entry::{Entry, Genesis, event_code};
use bem_ledger::log::{Log, LogOptions, read_blob, store_blob};
use bem_ledger::reader::{Comparison, EntryReader};
use bem_ledger::recover::read_checkpoint;
use bem_ledger::snapshot::{Part, latest_snapshot};
use bem_ledger::store::Store;
use std::collections::BTreeMap;

/// The part of a snapshot that holds the service.
pub const SERVICE_PART: &str = "service";
/// Snapshots that are kept: the newest, and those to fall back to.
pub const SNAPSHOTS_KEPT: u8 = 2;

/// Why a history cannot be begun, gone on with or played again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The ledger refuses.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A snapshot or the configuration cannot be read.
    #[error("{what} cannot be read: {reason}")]
    State {
        /// Which of them.
        what: &'static str,
        /// RefusalKind.
        reason: String,
    },
    /// An input does not fit those before it.
    #[error("input {number} does not fit those before it: {reason}")]
    Input {
        /// Its number.
        number: u64,
        /// RefusalKind.
        reason: &'static str,
    },
}

/// A log as the place where entries go.
pub struct LogSink<'l, S>(pub &'l mut Log<S>);

impl<S: Store> Sink for LogSink<'_, S> {
    fn append(&mut self, entry: &Entry) -> Result<(), LedgerError> {
        self.0.append(entry).map(drop)
    }

    fn put_blob(&mut self, bytes: &[u8]) -> Result<Digest, LedgerError> {
        self.0.put_blob(bytes)
    }
}

/// A record as the place where entries are compared.
struct RecordSink<'s, S> {
    store: &'s mut S,
    recorded: &'s mut Comparison,
}

impl<S: Store> Sink for RecordSink<'_, S> {
    fn append(&mut self, entry: &Entry) -> Result<(), LedgerError> {
        // Inputs are where these come from: they are not compared with themselves.
        if matches!(entry, Entry::Input { .. }) {
            return Ok(());
        }
        self.recorded.peek_derived(self.store)?;
        self.recorded.expect(self.store, &entry.to_bytes())
    }

    fn put_blob(&mut self, bytes: &[u8]) -> Result<Digest, LedgerError> {
        Ok(hash(bytes))
    }
}

/// A service with its book and the rounds that have begun.
pub struct Player {
    /// What is served.
    pub service: Service,
    /// What the entries amount to.
    pub book: Book,
    jobs: BTreeMap<u16, Box<Job>>,
}

impl Player {
    fn new(config: ServiceConfig) -> Player {
        let (service, book) = (Service::new(config.clone()), Book::new(config));
        Player { service, book, jobs: BTreeMap::new() }
    }

    /// Where a saved state was taken.
    fn of(state: &BaseState, config: ServiceConfig) -> Result<Player, HistoryError> {
        let service = state.service().map_err(|error| unreadable(&error.to_string()))?;
        let mut book = state.book(config).map_err(|error| unreadable(&error.to_string()))?;
        book.specs = service.specs();
        Ok(Player { service, book, jobs: BTreeMap::new() })
    }

    /// The rounds that have begun and are to be worked on.
    pub fn into_parts(self) -> (Service, Book, Vec<Box<Job>>) {
        (self.service, self.book, self.jobs.into_values().collect())
    }

    /// Lets an input take effect again; a round is worked on here where it takes effect.
    pub fn take(&mut self, sink: &mut dyn Sink, input: Input) -> Result<(), HistoryError> {
        let number = self.service.last() + 1;
        let done = match &input {
            Input::Publish { world } => self.jobs.remove(&world.0).map(|job| job.work()),
            _ => None,
        };
        let effect = self.service.apply(&input, done);
        let effect = effect.map_err(|reason| HistoryError::Input { number, reason })?;
        let (line, job) = Line::of(input, effect, &self.service);
        if let Some(job) = job {
            self.jobs.insert(job.world.0, job);
        }
        Ok(self.book.take(sink, &line)?)
    }
}

/// A history that is open for writing, with everything needed to go on.
pub struct Opened<S> {
    /// The log.
    pub log: Log<S>,
    /// The service where the log ends.
    pub player: Player,
    /// Snapshots that were passed over, with the reason.
    pub rejected: Vec<(String, String)>,
}

/// Begins a history.
pub fn create<S: Store>(
    mut store: S,
    signer: Signer,
    code: &str,
    config: ServiceConfig,
    options: LogOptions,
) -> Result<Opened<S>, HistoryError> {
    let configuration = config.to_bytes();
    let genesis = Genesis {
        instance: hash_parts("bem/instance", &[&signer.public_key(), &config.seed.to_le_bytes()]),
        configuration: hash(&configuration),
        code: code.to_string(),
        public_key: signer.public_key(),
    };
    // The configuration is durable before anything names it.
    store_blob(&mut store, &configuration).map_err(LedgerError::from)?;
    let mut log = Log::create(store, signer, &genesis, options)?;
    let mut player = Player::new(config);
    player.book.boot(&mut LogSink(&mut log))?;
    log.commit()?;
    Ok(Opened { log, player, rejected: Vec::new() })
}

/// The configuration that genesis names; an error where the history is no service's.
pub fn configuration<S: Store>(store: &mut S) -> Result<ServiceConfig, HistoryError> {
    let mut reader = EntryReader::open(store)?;
    let genesis = match reader.next(store)?.map(Entry::from_bytes) {
        Some(Ok(Entry::Genesis(genesis))) => genesis,
        _ => return Err(LedgerError::NotALedger("the first entry is not genesis".to_string()).into()),
    };
    let bytes = read_blob(store, &genesis.configuration).map_err(LedgerError::from)?;
    let state = |error: bem_base::encode::DecodeError| HistoryError::State {
        what: "the configuration",
        reason: error.to_string(),
    };
    ServiceConfig::from_bytes(&bytes).map_err(state)
}

/// Opens a history to go on with: its newest sound snapshot, and what came after it played again.
pub fn open<S: Store>(mut store: S, signer: Signer, options: LogOptions) -> Result<Opened<S>, HistoryError> {
    let (player, rejected) = load(&mut store)?;
    let (log, _) = Log::open(store, signer, options)?;
    Ok(Opened { log, player, rejected })
}

/// Whether a history can be gone on with: an error says why not. It is played from where it begins, whatever was saved on the way: a
/// state of another learner may be readable and yet be another than this one would have come to.
pub fn goes_on<S: Store>(store: &mut S) -> Result<(), HistoryError> {
    let (mut player, first) = beginning(store)?;
    play(store, &mut player, first, None, &mut |_, _| None, &mut |_, _| {})?;
    load(store).map(drop)
}

/// What is served where the acknowledged history ends, for whoever only looks.
pub fn served<S: Store>(store: &mut S) -> Result<Service, HistoryError> {
    Ok(load(store)?.0.service)
}

/// Snapshots that were passed over, with the reason.
type Rejected = Vec<(String, String)>;

/// The service where the acknowledged history ends, from its newest sound snapshot and what came after it.
fn load<S: Store>(store: &mut S) -> Result<(Player, Rejected), HistoryError> {
    let (mut player, first, rejected) = newest(store)?;
    play(store, &mut player, first, None, &mut |_, _| None, &mut |_, _| {})?;
    Ok((player, rejected))
}

/// The service at its newest sound snapshot, and the entry that comes next.
fn newest<S: Store>(store: &mut S) -> Result<(Player, Start, Rejected), HistoryError> {
    let found = latest_snapshot(store)?;
    let mut rejected = found.rejected;
    let (mut player, start) = beginning(store)?;
    if let Some(snapshot) = found.snapshot.filter(|snapshot| start.entry() <= snapshot.entries) {
        match Service::decode(snapshot.part(SERVICE_PART).unwrap_or_default()) {
            Ok(service) => {
                player.service = service;
                follow(store, &mut player.book, start.entry(), snapshot.entries + 1)?;
                return Ok((player, Start::At(snapshot.entries + 1), rejected));
            }
            // Played from the start, the state is the same; it takes longer.
            Err(error) => rejected.push(("the newest snapshot".to_string(), reason_of(&error))),
        }
    }
    Ok((player, start, rejected))
}

/// Where a history is taken up.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Start {
    /// At genesis.
    Genesis,
    /// At genesis, with a state that an entry RESTORED names: its tables follow.
    Restored(Box<BaseState>),
    /// Behind this entry.
    At(u64),
}

impl Start {
    /// The first entry that is not part of it.
    fn entry(&self) -> u64 {
        match self {
            Start::Genesis => 1,
            Start::Restored(_) => 3,
            Start::At(entry) => *entry,
        }
    }
}

/// The earliest state that a history can be played from: that of genesis, one that it was restored with, or where the entries
/// before are archived the one that is saved with that.
fn beginning<S: Store>(store: &mut S) -> Result<(Player, Start), HistoryError> {
    let config = configuration(store)?;
    let mut reader = EntryReader::open(store)?;
    let mut restored = None;
    loop {
        let index = reader.position();
        let Some(bytes) = reader.next(store)? else { break };
        let entry = Entry::from_bytes(bytes).map_err(|source| LedgerError::Entry { index, source })?;
        let gap = reader.gap();
        if index == 2 {
            restored = restored_state(&entry);
        }
        let archived = gap.and_then(|gap| Archived::of(&entry).filter(|archived| archived.covers(gap)));
        if let Some(archived) = archived {
            let state = base_state(store, &archived.state)?;
            let player = Player::of(&state, config)?;
            return Ok((player, Start::At(reader.position())));
        }
    }
    if let Some(gap) = reader.gap() {
        return Err(gap.unnamed().into());
    }
    match restored {
        None => Ok((Player::new(config), Start::Genesis)),
        Some(digest) => {
            let state = base_state(store, &digest)?;
            Ok((Player::of(&state, config)?, Start::Restored(Box::new(state))))
        }
    }
}

fn base_state<S: Store>(store: &mut S, digest: &Digest) -> Result<BaseState, HistoryError> {
    let bytes = read_blob(store, digest).map_err(LedgerError::from)?;
    BaseState::from_bytes(&bytes).map_err(|error| unreadable(&error.to_string()))
}

fn unreadable(reason: &str) -> HistoryError {
    HistoryError::State { what: "the saved state", reason: reason.to_string() }
}

/// Begins a history in another store that goes on from this one under another key, and names its head. Its state is that of the
/// newest snapshot; what came after it is played again into the new history.
pub fn continued<O: Store, S: Store>(
    old: &mut O,
    mut store: S,
    signer: Signer,
    code: &str,
    options: LogOptions,
) -> Result<Opened<S>, HistoryError> {
    let config = configuration(old)?;
    let (mut player, start, rejected) = newest(old)?;
    if start == Start::Genesis {
        // Without a snapshot the saved state is that of the start, and everything is played again.
        player.book.boot(&mut Kept::default())?;
    }
    let origin = read_checkpoint(old)?.checkpoint.head.digest();
    let state = base_of(&player.service, &player.book).to_bytes();
    let configuration = config.to_bytes();
    let genesis = Genesis {
        instance: hash_parts("bem/instance", &[&signer.public_key(), &config.seed.to_le_bytes()]),
        configuration: hash(&configuration),
        code: code.to_string(),
        public_key: signer.public_key(),
    };
    store_blob(&mut store, &configuration).map_err(LedgerError::from)?;
    let digest = store_blob(&mut store, &state).map_err(LedgerError::from)?;
    let mut log = Log::create(store, signer, &genesis, options)?;
    Book::new(config).boot(&mut LogSink(&mut log))?;
    let step = player.service.last();
    let payload = restored_text(&origin, &digest).into_bytes();
    log.append(&Entry::Event { step, code: event_code::RESTORED, values: Vec::new(), payload })?;
    tables_again(&mut player, &mut LogSink(&mut log))?;
    // From genesis on the tables at the start are the first entry, and no input.
    for payload in inputs_from(old, start.entry())? {
        let inputs = decode_all(&payload).map_err(|error| unreadable(&error.to_string()))?;
        for input in inputs {
            player.take(&mut LogSink(&mut log), input)?;
        }
        player.book.close_block(&mut LogSink(&mut log))?;
    }
    log.commit()?;
    if !player.service.is_searching() {
        log.write_snapshot(player.service.last(), parts(&player.service), SNAPSHOTS_KEPT)?;
    }
    Ok(Opened { log, player, rejected })
}

/// The blocks of inputs from this entry on.
fn inputs_from<S: Store>(store: &mut S, first: u64) -> Result<Vec<Vec<u8>>, HistoryError> {
    let mut reader = EntryReader::open(store)?;
    let mut blocks = Vec::new();
    loop {
        let index = reader.position();
        let Some(bytes) = reader.next(store)? else { return Ok(blocks) };
        let entry = Entry::from_bytes(bytes).map_err(|source| LedgerError::Entry { index, source })?;
        if let Entry::Input { payload, .. } = entry
            && first <= index
        {
            blocks.push(payload);
        }
    }
}

/// The entries that follow RESTORED: every table as the saved state has it.
fn tables_again(player: &mut Player, sink: &mut dyn Sink) -> Result<(), HistoryError> {
    // The tables grow entry by entry from those that every history begins with.
    let mut boot = Book::new(player.book.config.clone());
    boot.boot(&mut Kept::default())?;
    player.book.tables = boot.tables;
    for edits in player.book.edits_in_parts() {
        player.book.change_tables(sink, player.book.last, edits)?;
    }
    Ok(())
}

/// Everything that a history can go on from; no round may be under way, and the book's block must be closed.
pub fn base_of(service: &Service, book: &Book) -> BaseState {
    base_from(service.encode(), book)
}

/// The same with a service that is encoded already.
pub fn base_from(service: Vec<u8>, book: &Book) -> BaseState {
    let mut writer = Writer::new();
    book.encode_state(&mut writer);
    BaseState { service, book: writer.into_bytes(), worlds: Some(book.specs.clone()) }
}

fn reason_of(error: &RestoreError) -> String {
    error.to_string()
}

/// Takes in the entries from `first` to before `next` without playing them.
fn follow<S: Store>(store: &mut S, book: &mut Book, first: u64, next: u64) -> Result<(), HistoryError> {
    let mut reader = EntryReader::open(store)?;
    while reader.position() < next {
        let Some(bytes) = reader.next(store)? else { break };
        let bytes = bytes.to_vec();
        let index = reader.position() - 1;
        if index < first {
            continue;
        }
        let entry = Entry::from_bytes(&bytes).map_err(|source| LedgerError::Entry { index, source })?;
        book.follow(&entry, &mut |digest| read_blob(store, digest).map_err(LedgerError::from))?;
    }
    Ok(())
}

/// Looks at an input before it takes effect; words where it cannot be played, because what it stands for is not there.
type IsMissing<'a> = dyn FnMut(&Service, &Input) -> Option<String> + 'a;

/// Plays what is recorded from entry `first` on and compares everything that follows from it. An input that cannot be played
/// ends it: in words, which one that is.
fn play<S: Store>(
    store: &mut S,
    player: &mut Player,
    start: Start,
    to: Option<u64>,
    is_missing: &mut IsMissing<'_>,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<Option<String>, HistoryError> {
    let first = if let Start::At(entry) = start { entry } else { 1 };
    let mut recorded = Comparison::open(store, first)?;
    let mut reader = EntryReader::open(store)?;
    match &start {
        Start::Genesis => player.book.boot(&mut RecordSink { store, recorded: &mut recorded })?,
        Start::Restored(_) => {
            let mut sink = RecordSink { store, recorded: &mut recorded };
            Book::new(player.book.config.clone()).boot(&mut sink)?;
            tables_again(player, &mut sink)?;
        }
        Start::At(_) => {}
    }
    while let Some(bytes) = reader.next(store)? {
        let bytes = bytes.to_vec();
        let index = reader.position() - 1;
        if index < first {
            continue;
        }
        let entry = Entry::from_bytes(&bytes).map_err(|source| LedgerError::Entry { index, source })?;
        let Entry::Input { payload, .. } = entry else { continue };
        on_progress(reader.position(), reader.size());
        let inputs = decode_all(&payload).map_err(|source| LedgerError::Entry { index, source })?;
        let mut sink = RecordSink { store, recorded: &mut recorded };
        for input in inputs {
            if to.is_some_and(|to| to <= player.service.last()) {
                return Ok(None);
            }
            if let Some(words) = is_missing(&player.service, &input) {
                return Ok(Some(words));
            }
            player.take(&mut sink, input)?;
        }
        player.book.close_block(&mut sink)?;
    }
    // Nothing may be recorded that does not follow.
    let left = recorded.position();
    match recorded.peek_derived(store)? {
        None => Ok(None),
        Some(_) => {
            let reason = "this does not follow from the inputs".to_string();
            Err(LedgerError::Diverged { entry: left, reason }.into())
        }
    }
}

/// A history as far as it was played again.
#[derive(Debug)]
pub struct Replayed {
    /// What is served there.
    pub service: Service,
    /// The input that it ended at, in words, where that one cannot be played.
    pub missing: Option<String>,
}

/// Plays a history again from its configuration and compares every entry; the service as far as it was played.
pub fn replay<S: Store>(
    store: &mut S,
    to: Option<u64>,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<Service, HistoryError> {
    Ok(replay_until(store, to, &mut |_, _| None, on_progress)?.service)
}

/// The same up to the first input that `is_missing` names.
pub fn replay_until<S: Store>(
    store: &mut S,
    to: Option<u64>,
    is_missing: &mut IsMissing<'_>,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<Replayed, HistoryError> {
    let (mut player, start) = beginning(store)?;
    let missing = play(store, &mut player, start, to, is_missing, on_progress)?;
    Ok(Replayed { service: player.service, missing })
}

/// The parts of a snapshot of this service; no round may be under way.
pub fn parts(service: &Service) -> Vec<Part> {
    parts_of(service.freeze())
}

/// The parts of a snapshot of a service as it was at one moment.
pub fn parts_of(frozen: Frozen) -> Vec<Part> {
    vec![Part { name: SERVICE_PART.to_string(), bytes: frozen.into_bytes() }]
}

pub mod played;
pub mod renewed;

#[cfg(test)]
mod archive_tests;
#[cfg(test)]
mod tests;
