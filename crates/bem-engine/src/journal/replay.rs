//! A recorded history played again, unit by unit, every entry compared with what is recorded.
//!
//! It begins at the configuration that genesis names, and writes nothing. Clauses: LOG-2, LOG-5; decision D-17.

use super::book::Book;
use super::entries::Sink;
use super::{JournalError, configured_climb, next_unit};
use crate::climb::{Climb, ClimbError, Unit, UnitResult, Worked};
use crate::worlds::{Catalog, Worlds};
use bem_base::digest::{Digest, hash};
use bem_ledger::LedgerError;
use bem_ledger::entry::Entry;
use bem_ledger::reader::Comparison;
use bem_ledger::store::Store;

/// A recorded history that is played again, from its configuration on. Nothing is written.
pub struct Replay<S> {
    sink: RecordSink<S>,
    book: Book,
    climb: Climb,
    worlds: Box<dyn Worlds>,
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
        let (book, worlds) = (Book::default(), Box::new(Catalog));
        let mut replay = Replay { sink: RecordSink { store, recorded }, book, climb, worlds };
        replay.book.boot(&mut replay.sink, &replay.climb)?;
        replay.book.programs(&mut replay.sink, &replay.climb)?;
        Ok(replay)
    }

    /// Plays in these worlds instead of the catalog's.
    #[must_use]
    pub fn in_worlds(mut self, worlds: Box<dyn Worlds>) -> Replay<S> {
        self.worlds = worlds;
        self
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
        let result = self.play(&unit)?;
        self.climb.take(&result);
        self.book.unit(&mut self.sink, &result, &self.climb)?;
        Ok(Some(unit))
    }

    fn play(&self, unit: &Unit) -> Result<UnitResult, ClimbError> {
        match self.climb.assign(unit).go_on_in(self.worlds.as_ref(), None, &mut || true)? {
            Worked::Done(result) => Ok(*result),
            Worked::PutAway(_) => unreachable!("nobody asks it to stop"),
        }
    }
}
