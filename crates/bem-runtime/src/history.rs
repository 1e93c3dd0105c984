//! A service's history in a ledger: begun, gone on with from its newest snapshot, and played again from its inputs.
//!
//! Played again, every input takes effect as it did, rounds are worked on where they took effect, and every entry that follows
//! is compared with the one that is recorded. Must not know files, keys on disk, clocks or threads.
//! Clauses: LOG-1, LOG-2, LOG-4, LOG-5; decisions D-17, D-20, D-67, D-68.

use crate::book::{Book, Line, Sink};
use crate::input::{Input, decode_all};
use crate::round::Job;
use crate::service::{Service, ServiceConfig};
use bem_base::digest::{Digest, hash, hash_parts};
use bem_engine::state::RestoreError;
use bem_ledger::LedgerError;
use bem_ledger::checkpoint::Signer;
use bem_ledger::entry::{Entry, Genesis};
use bem_ledger::log::{Log, LogOptions, read_blob, store_blob};
use bem_ledger::reader::{Comparison, EntryReader};
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
        /// Why.
        reason: String,
    },
    /// An input does not fit those before it.
    #[error("input {number} does not fit those before it: {reason}")]
    Input {
        /// Its number.
        number: u64,
        /// Why.
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
    let config = configuration(&mut store)?;
    let found = latest_snapshot(&mut store)?;
    let mut rejected = found.rejected;
    let mut player = Player::new(config);
    let mut first = 1;
    if let Some(snapshot) = found.snapshot {
        match Service::decode(snapshot.part(SERVICE_PART).unwrap_or_default()) {
            Ok(service) => {
                player.service = service;
                first = snapshot.entries + 1;
                follow(&mut store, &mut player.book, first)?;
            }
            // Played from the start, the state is the same; it takes longer.
            Err(error) => rejected.push(("the newest snapshot".to_string(), reason_of(&error))),
        }
    }
    play(&mut store, &mut player, first, None, &mut |_, _| {})?;
    let (log, _) = Log::open(store, signer, options)?;
    Ok(Opened { log, player, rejected })
}

fn reason_of(error: &RestoreError) -> String {
    error.to_string()
}

/// Takes in the entries before `next` without playing them.
fn follow<S: Store>(store: &mut S, book: &mut Book, next: u64) -> Result<(), HistoryError> {
    let mut reader = EntryReader::open(store)?;
    while reader.position() < next {
        let index = reader.position();
        let Some(bytes) = reader.next(store)? else { break };
        let entry = Entry::from_bytes(bytes).map_err(|source| LedgerError::Entry { index, source })?;
        book.follow(&entry, &mut |digest| read_blob(store, digest).map_err(LedgerError::from))?;
    }
    Ok(())
}

/// Plays what is recorded from entry `first` on and compares everything that follows from it.
fn play<S: Store>(
    store: &mut S,
    player: &mut Player,
    first: u64,
    to: Option<u64>,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<(), HistoryError> {
    let mut recorded = Comparison::open(store, first)?;
    let mut reader = EntryReader::open(store)?;
    if first == 1 {
        player.book.boot(&mut RecordSink { store, recorded: &mut recorded })?;
    }
    loop {
        let index = reader.position();
        let Some(bytes) = reader.next(store)? else { break };
        if index < first {
            continue;
        }
        let entry = Entry::from_bytes(bytes).map_err(|source| LedgerError::Entry { index, source })?;
        let Entry::Input { payload, .. } = entry else { continue };
        on_progress(reader.position(), reader.size());
        if to.is_some_and(|to| to <= player.service.last()) {
            return Ok(());
        }
        let inputs = decode_all(&payload).map_err(|source| LedgerError::Entry { index, source })?;
        let mut sink = RecordSink { store, recorded: &mut recorded };
        for input in inputs {
            player.take(&mut sink, input)?;
        }
        player.book.close_block(&mut sink)?;
    }
    // Nothing may be recorded that does not follow.
    let left = recorded.position();
    match recorded.peek_derived(store)? {
        None => Ok(()),
        Some(_) => {
            let reason = "this does not follow from the inputs".to_string();
            Err(LedgerError::Diverged { entry: left, reason }.into())
        }
    }
}

/// Plays a history again from its configuration and compares every entry; the service as far as it was played.
pub fn replay<S: Store>(
    store: &mut S,
    to: Option<u64>,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<Service, HistoryError> {
    let mut player = Player::new(configuration(store)?);
    play(store, &mut player, 1, to, on_progress)?;
    Ok(player.service)
}

/// The parts of a snapshot of this service; no round may be under way.
pub fn parts(service: &Service) -> Vec<Part> {
    vec![Part { name: SERVICE_PART.to_string(), bytes: service.encode() }]
}

#[cfg(test)]
mod tests;
