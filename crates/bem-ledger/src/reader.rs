//! Reading the acknowledged history from the start, and comparing a history that is played again with it.
//!
//! Reading checks form, not truth: the audit is for that. Clauses: LOG-4, LOG-5; decision D-20.

use crate::chain::ChainHead;
use crate::entry::{Entry, event_code};
use crate::error::{LedgerError, StoreError};
use crate::recover::read_checkpoint;
use crate::segment::{Frame, SegmentReader, list_segments, segment_name};
use crate::store::Store;

/// Walks over the acknowledged entries in order.
#[derive(Debug)]
pub struct EntryReader {
    segment: SegmentReader,
    number: u32,
    next: u64,
    size: u64,
    gap: Option<Gap>,
}

/// Entries that are not there: archived, or missing. Which of the two an entry behind them says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first entry that is not there.
    pub first: u64,
    /// The first entry behind them.
    pub end: u64,
    /// The chain's head before that entry, as its segment says.
    pub head: ChainHead,
}

impl Gap {
    /// The error where no entry says that these are archived.
    pub fn unnamed(&self) -> LedgerError {
        let reason = format!(
            "entries {} to {} are missing, and no entry says that they are archived",
            self.first,
            self.end - 1
        );
        LedgerError::broken(self.first, reason)
    }
}

impl EntryReader {
    /// A reader at genesis; it ends where the newest checkpoint does.
    pub fn open<S: Store>(store: &mut S) -> Result<EntryReader, LedgerError> {
        let size = read_checkpoint(store)?.checkpoint.size;
        Ok(EntryReader { segment: SegmentReader::open(store, 0)?, number: 0, next: 0, size, gap: None })
    }

    /// Index of the next entry.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Number of acknowledged entries.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The gap that was passed, if there was one.
    pub fn gap(&self) -> Option<Gap> {
        self.gap
    }

    /// Opens the next segment; where it is not there and a later one is, that one, once.
    fn open_next<S: Store>(&mut self, store: &mut S) -> Result<(), LedgerError> {
        self.number += 1;
        let missing = match SegmentReader::open(store, self.number) {
            Ok(segment) => {
                self.segment = segment;
                return Ok(());
            }
            Err(error @ LedgerError::Store(StoreError::Missing { .. })) => error,
            Err(error) => return Err(error),
        };
        let later = list_segments(store)?.into_iter().find(|later| self.number < *later);
        let Some(later) = later.filter(|_| self.gap.is_none()) else { return Err(missing) };
        let segment = SegmentReader::open(store, later)?;
        let (end, head) = (segment.header().frontier.size(), segment.header().head);
        if end <= self.next || self.size < end {
            return Err(missing);
        }
        self.gap = Some(Gap { first: self.next, end, head });
        (self.number, self.next, self.segment) = (later, end, segment);
        Ok(())
    }

    /// The next entry's bytes, or nothing at the end.
    pub fn next<S: Store>(&mut self, store: &mut S) -> Result<Option<&[u8]>, LedgerError> {
        if self.next == self.size {
            return Ok(None);
        }
        while self.segment.position() == self.segment.length() {
            self.open_next(store)?;
        }
        match self.segment.next(store)? {
            Frame::Entry(bytes) => {
                self.next += 1;
                Ok(Some(bytes))
            }
            Frame::End => unreachable!("the loop above left the segment with bytes to read"),
            Frame::Torn(reason) => {
                Err(LedgerError::broken(self.next, format!("{}: {reason}", segment_name(self.number))))
            }
        }
    }
}

/// Compares a history that is played again with the recorded one, entry by entry.
#[derive(Debug)]
pub struct Comparison {
    reader: EntryReader,
    /// The next entry, if somebody has looked at it.
    peeked: Option<Vec<u8>>,
}

/// Whether an entry says what came from outside, or that somebody saved: what is played again does not write it.
fn comes_from_outside(bytes: &[u8]) -> bool {
    match Entry::from_bytes(bytes) {
        Ok(Entry::Snapshot { .. } | Entry::Input { .. }) => true,
        Ok(Entry::Event { code, .. }) => {
            matches!(code, event_code::RESTORED | event_code::ARTEFACT | event_code::ARCHIVED)
        }
        _ => false,
    }
}

impl Comparison {
    /// A comparison that starts at this entry: 0 for a replay from genesis, a snapshot's `entries` after a restore.
    pub fn open<S: Store>(store: &mut S, first: u64) -> Result<Comparison, LedgerError> {
        let mut reader = EntryReader::open(store)?;
        if reader.size() < first {
            return Err(LedgerError::broken(reader.size(), format!("the history ends before entry {first}")));
        }
        while reader.position() < first {
            reader.next(store)?;
        }
        Ok(Comparison { reader, peeked: None })
    }

    /// Index of the next entry to compare.
    pub fn position(&self) -> u64 {
        self.reader.position() - u64::from(self.peeked.is_some())
    }

    /// Number of recorded entries.
    pub fn size(&self) -> u64 {
        self.reader.size()
    }

    /// Whether the whole recorded history has been matched.
    pub fn is_complete(&self) -> bool {
        self.position() == self.size()
    }

    /// The next entry that follows from those before it, or nothing at the end. Snapshot markers and what came from
    /// outside are passed over.
    pub fn peek_derived<S: Store>(&mut self, store: &mut S) -> Result<Option<&[u8]>, LedgerError> {
        while self.peeked.is_none() {
            let Some(bytes) = self.reader.next(store)? else { return Ok(None) };
            self.peeked = (!comes_from_outside(bytes)).then(|| bytes.to_vec());
        }
        Ok(self.peeked.as_deref())
    }

    /// The next recorded entry must be this one.
    pub fn expect<S: Store>(&mut self, store: &mut S, entry: &[u8]) -> Result<(), LedgerError> {
        let index = self.position();
        let diverged = |reason: String| LedgerError::Diverged { entry: index, reason };
        let peeked = self.peeked.take();
        let recorded = match &peeked {
            Some(bytes) => bytes,
            None => self
                .reader
                .next(store)?
                .ok_or_else(|| diverged("the recorded history ends here".to_owned()))?,
        };
        if recorded == entry {
            return Ok(());
        }
        let name = |bytes| Entry::from_bytes(bytes).map_or("an unreadable entry", |entry| entry.kind_name());
        let byte = recorded.iter().zip(entry).position(|(left, right)| left != right);
        let byte = byte.unwrap_or(recorded.len().min(entry.len()));
        Err(diverged(format!(
            "recorded is {}, played is {}, from byte {byte} on",
            name(recorded),
            name(entry)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ENTRY_BYTES_MAX;
    use crate::log::{Log, LogOptions};
    use crate::store::MemoryStore;
    use crate::testing::{self, Workload};

    fn ledger() -> MemoryStore {
        let options = LogOptions { segment_bytes: 1_000, ring_bytes: ENTRY_BYTES_MAX + 4 };
        let mut log =
            Log::create(MemoryStore::new(), testing::signer(), &testing::genesis(1), options).unwrap();
        let mut workload = Workload::new(1);
        for _ in 0..50 {
            Workload::apply(&workload.next_operation(), &mut log).unwrap();
        }
        log.commit().unwrap();
        log.into_store()
    }

    fn entries(store: &mut MemoryStore) -> Vec<Vec<u8>> {
        let mut reader = EntryReader::open(store).unwrap();
        let mut entries = Vec::new();
        while let Some(entry) = reader.next(store).unwrap() {
            entries.push(entry.to_vec());
        }
        entries
    }

    #[test]
    fn the_same_history_matches_from_any_entry_on() {
        let mut store = ledger();
        let entries = entries(&mut store);
        assert_eq!(entries.len(), 51);
        for first in 0..=entries.len() {
            let mut comparison = Comparison::open(&mut store, first as u64).unwrap();
            for entry in &entries[first..] {
                comparison.expect(&mut store, entry).unwrap();
            }
            assert!(comparison.is_complete());
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let mut store = ledger();
        let entries = entries(&mut store);
        let mut comparison = Comparison::open(&mut store, 0).unwrap();
        comparison.expect(&mut store, &entries[0]).unwrap();
        let mut changed = entries[1].clone();
        *changed.last_mut().unwrap() ^= 1;
        let error = comparison.expect(&mut store, &changed).unwrap_err();
        assert!(error.to_string().starts_with("replay differs at entry 1: recorded is "), "{error}");
    }
}
