//! A recorded history played again, unit by unit, every entry compared with what is recorded.
//!
//! It begins at the configuration that genesis names, and writes nothing. Clauses: LOG-2, LOG-5; decisions D-17, D-308.

use super::book::{Book, UnderWay, entries_of, is_happening};
use super::entries::Sink;
use super::under_way::open_unit;
use super::{JournalError, configured_climb, next_unit};
use crate::climb::{Climb, ClimbError, Unit, UnitResult, Worked};
use crate::suspend;
use crate::worlds::{Catalog, World, Worlds};
use bem_base::digest::{Digest, hash};
use bem_base::environment::Shape;
use bem_ledger::LedgerError;
use bem_ledger::entry::Entry;
use bem_ledger::reader::Comparison;
use bem_ledger::store::Store;

/// Looks at a unit that the record does not end, before it is put away for the first time to see how much has happened; twice as
/// many every time after.
const LOOKS: u64 = 64;

/// A recorded history that is played again, from its configuration on. Nothing is written.
pub struct Replay<S> {
    sink: RecordSink<S>,
    book: Book,
    climb: Climb,
    worlds: Box<dyn Worlds>,
    /// Happenings that the record holds of the unit in which it ends, and where that unit begins.
    open: Option<(u64, u64)>,
    /// Steps of that unit that were compared.
    under_way: u64,
}

/// Compares what a replay writes with what is recorded, where a run would append it.
struct RecordSink<S> {
    store: S,
    recorded: Comparison,
    /// The record ends in the unit that is compared now: what follows is not recorded.
    may_end: bool,
}

impl<S: Store> Sink for RecordSink<S> {
    fn append(&mut self, entry: &Entry) -> Result<(), LedgerError> {
        if self.recorded.peek_derived(&mut self.store)?.is_none() && self.may_end {
            return Ok(());
        }
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
        let (begin, mut written) = (open_unit(&mut store, recorded.size())?, 0);
        entries_of(&mut store, begin.unwrap_or(u64::MAX)..recorded.size(), |_, entry| {
            written += u64::from(is_happening(&entry));
            Ok(())
        })?;
        let (book, worlds) = (Book::default(), Box::new(Catalog));
        let open = begin.map(|begin| (begin, written));
        let sink = RecordSink { store, recorded, may_end: false };
        let mut replay = Replay { sink, book, climb, worlds, open, under_way: 0 };
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

    /// Steps at which what was played again of a unit that the record does not end ends.
    pub fn under_way(&self) -> u64 {
        self.under_way
    }

    /// Plays the next recorded unit again and compares its entries; nothing at the end of the record, and where it ends in a
    /// unit, whose entries are compared as far as they go.
    pub fn advance(&mut self) -> Result<Option<Unit>, JournalError> {
        let Some(unit) = next_unit(&mut self.sink.recorded, &mut self.sink.store, &self.climb)? else {
            return Ok(None);
        };
        if let Some((begin, written)) = self.open
            && begin == self.sink.recorded.position()
        {
            self.open_unit(&unit, written)?;
            return Ok(None);
        }
        let result = self.play(&unit)?;
        self.climb.take(&result);
        self.book.unit(&mut self.sink, &result, &self.climb)?;
        Ok(Some(unit))
    }

    /// What the worlds of a unit look like that can be put away.
    fn shape_of(&self, unit: &Unit, seed: u64) -> Result<Shape, ClimbError> {
        match self.worlds.open(&unit.task, seed) {
            Ok(World::Game(game)) => Ok(game.shape().clone()),
            Ok(_) => unreachable!("a world outside is gone through to its end"),
            Err(error) => Err(ClimbError::Game { task: unit.task.clone(), error }),
        }
    }

    /// Plays a unit until as much has happened in it as is recorded, and compares that.
    fn open_unit(&mut self, unit: &Unit, written: u64) -> Result<(), JournalError> {
        let (mut put_away, mut looks) = (None::<Vec<u8>>, LOOKS);
        let seed = self.climb.assign(unit).seed;
        let (shape, chronicle) = loop {
            let mut left = looks;
            let mut go_on = || {
                left -= 1;
                0 < left
            };
            let assignment = self.climb.assign(unit);
            match assignment.go_on_in(self.worlds.as_ref(), put_away.as_deref(), &mut go_on)? {
                Worked::Done(result) => break (result.shape().clone(), result.solution.chronicle),
                Worked::PutAway(bytes) => {
                    let state = |source| JournalError::State { what: "a unit under way", source };
                    let (chronicle, _) = suspend::write_off(&bytes).map_err(state)?;
                    if written <= chronicle.unwritten().len() as u64 {
                        break (self.shape_of(unit, seed)?, chronicle);
                    }
                    put_away = Some(bytes);
                }
            }
            looks *= 2;
        };
        let (step, under_way) = (self.climb.steps(), UnderWay { unit, seed, shape: &shape });
        self.sink.may_end = true;
        self.book.so_far(&mut self.sink, under_way, &chronicle, (&self.climb, step))?;
        let entry = self.sink.recorded.position();
        if self.sink.recorded.peek_derived(&mut self.sink.store)?.is_some() {
            let reason = "more is recorded of a unit than happens in it".to_string();
            return Err(LedgerError::Diverged { entry, reason }.into());
        }
        self.under_way = chronicle.end();
        Ok(())
    }

    fn play(&self, unit: &Unit) -> Result<UnitResult, ClimbError> {
        match self.climb.assign(unit).go_on_in(self.worlds.as_ref(), None, &mut || true)? {
            Worked::Done(result) => Ok(*result),
            Worked::PutAway(_) => unreachable!("nobody asks it to stop"),
        }
    }
}
