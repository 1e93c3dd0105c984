//! A unit that is written while it goes on, so that neither memory nor what is put away grows with its steps.
//!
//! Its entries are those that would be written at its end, in the same order, with snapshot markers between them. That is for a
//! climb of one unit: where several are under way at once, a unit's entries are written together. A learner that begins its
//! unit anew is compared with the record from the unit's begin on. Clauses: LOG-1, LOG-4, LOG-5; decision D-308.

use super::book::{Book, UnderWay, entries_of, is_happening};
use super::{Journal, JournalError};
use crate::chronicle::{Chronicle, EpisodeNote, Happening, ResetNote, StepSample};
use crate::climb::Climb;
use crate::suspend;
use bem_ledger::LedgerError;
use bem_ledger::entry::{Entry, ResetCause, event_code};
use bem_ledger::play::PlayBlock;
use bem_ledger::reader::Comparison;
use bem_ledger::store::Store;

/// The entry with which a unit begins, and what the entries before it amount to.
pub(super) type Begun = (u64, Book);

impl<S: Store> Journal<S> {
    /// Writes what has happened so far in the one unit of a climb, as far as it is not written; nothing of it is acknowledged
    /// before the next snapshot.
    pub fn so_far(
        &mut self,
        under_way: UnderWay<'_>,
        chronicle: &Chronicle,
        climb: &Climb,
    ) -> Result<(), JournalError> {
        assert_eq!(climb.config().stages, 1, "no other unit is written before this one has ended");
        self.agree_with(chronicle)?;
        if self.book.open.is_none() {
            let is_recorded = self.sink.is_recorded()?;
            let recorded = self.sink.recorded.as_ref().filter(|_| is_recorded);
            let next = recorded.map_or_else(|| self.sink.log.size(), Comparison::position);
            self.begun = Some((next, self.book.clone()));
        }
        Ok(self.book.so_far(&mut self.sink, under_way, chronicle, (climb, climb.steps()))?)
    }

    /// Happenings of the unit under way that are written.
    pub fn written(&self) -> u64 {
        self.book.open.unwrap_or(0)
    }

    /// A learner that was taken up goes on where the journal is. One that began anew is compared from the unit's begin on.
    pub(super) fn agree_with(&mut self, chronicle: &Chronicle) -> Result<(), JournalError> {
        if chronicle.written() == self.written() {
            return Ok(());
        }
        assert_eq!(chronicle.written(), 0, "whoever takes a learner up compares what is written");
        let (begin, book) = self.begun.take().expect("a unit that is written has begun");
        self.sink.log.commit()?;
        self.sink.recorded = Some(Comparison::open(self.sink.log.store_mut(), begin)?);
        self.book = book;
        Ok(())
    }

    /// What was played of the unit under way, as far as it is written, up to this step of the learner.
    pub fn played(&mut self, before: u64, mut take: impl FnMut(&PlayBlock)) -> Result<(), JournalError> {
        let size = self.sink.log.acknowledged();
        let store = self.sink.log.store_mut();
        let Some(begin) = open_unit(store, size)? else { return Ok(()) };
        entries_of(store, begin..size, |_, entry| {
            if let Entry::Play(block) = &entry
                && block.first_step < before
            {
                take(block);
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Where the unit begins that goes on after so many entries, if one does.
pub(super) fn open_unit<S: Store>(store: &mut S, entries: u64) -> Result<Option<u64>, LedgerError> {
    let mut open = None;
    entries_of(store, 0..entries, |index, entry| {
        match entry {
            Entry::Event { code: event_code::UNIT_BEGIN, .. } => open = Some(index),
            Entry::Event { code: event_code::UNIT_END, .. } => open = None,
            _ => {}
        }
        Ok(())
    })?;
    Ok(open)
}

/// What the entries up to this one amount to, and where the unit begins that goes on there.
pub(super) fn read<S: Store>(
    store: &mut S,
    entries: u64,
    climb: &Climb,
) -> Result<(Book, Option<Begun>), LedgerError> {
    let Some(begin) = open_unit(store, entries)? else {
        return Ok((Book::read(store, entries, climb)?, None));
    };
    let before = Book::read(store, begin, climb)?;
    let book = before.clone().with_unit(store, begin..entries, climb)?;
    Ok((book, Some((begin, before))))
}

/// A lesson that was put away after so many entries of this history, with everything that the history holds of it: another
/// history can go on with that. Nothing where the two do not fit.
pub fn whole_lesson<S: Store>(
    store: &mut S,
    entries: u64,
    lesson: &[u8],
) -> Result<Option<Vec<u8>>, LedgerError> {
    match suspend::written(lesson) {
        None => return Ok(None),
        Some(0) => return Ok(Some(lesson.to_vec())),
        Some(_) => {}
    }
    let Some(begin) = open_unit(store, entries)? else { return Ok(None) };
    let mut held = Vec::new();
    entries_of(store, begin..entries, |_, entry| {
        if is_happening(&entry) {
            held.push(happening(entry));
        }
        Ok(())
    })?;
    Ok(suspend::whole(lesson, held))
}

/// What an entry says; nothing for a patch, which a chronicle keeps.
fn happening(entry: Entry) -> Option<Happening> {
    match entry {
        Entry::Play(block) => Some(Happening::Play(block)),
        Entry::StepBlock(block) => {
            Some(Happening::Steps(StepSample { first_step: block.first_step, records: block.records }))
        }
        Entry::Episode { episode: serial, step, length, total_return: total, regret, .. } => {
            Some(Happening::Episode(EpisodeNote { serial, step, length, total, regret }))
        }
        Entry::Reset { step, bucket, cause, .. } => {
            let rose = cause == ResetCause::LossRose;
            Some(Happening::Reset(ResetNote { step, bucket: bucket as u16, rose }))
        }
        _ => None,
    }
}
