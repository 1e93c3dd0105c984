//! A ledger read whole: every entry of every segment is chained to the signed checkpoint, and everything beside them has its digest.
//!
//! This is what must hold before an image may stand for a ledger: that its newest part leads to the checkpoint says nothing of
//! segments that nobody has read for weeks. What entries mean is for the audit. Clauses: LOG-2, IMG-2, IMG-6; decision D-232.

use crate::archive::Archived;
use crate::chain::ChainHead;
use crate::checkpoint::SignedCheckpoint;
use crate::entry::Entry;
use crate::error::LedgerError;
use crate::log::read_blob;
use crate::merkle::{Frontier, leaf_hash};
use crate::reader::Gap;
use crate::recover::read_checkpoint;
use crate::segment::{Frame, SegmentReader, list_segments, segment_name};
use crate::snapshot::{load_snapshot, snapshot_entries, snapshot_name};
use crate::store::Store;
use bem_base::digest::Digest;
use std::collections::BTreeMap;

/// Reads everything; the checkpoint that it all leads to. Cost: one pass over every file.
pub fn read_whole<S: Store>(store: &mut S) -> Result<SignedCheckpoint, LedgerError> {
    let signed = read_checkpoint(store)?;
    let mut pass = Pass::new(signed.checkpoint.size);
    for number in list_segments(store)? {
        if pass.frontier.size() == pass.size {
            break;
        }
        pass.segment(store, number, &signed.checkpoint.instance)?;
    }
    let at = pass.frontier.size();
    if at != pass.size
        || pass.head != signed.checkpoint.head
        || pass.frontier.root() != signed.checkpoint.root
    {
        return Err(LedgerError::broken(at, "the entries do not lead to the checkpoint"));
    }
    if let Some(gap) = pass.gap.filter(|_| !pass.is_named) {
        return Err(gap.unnamed());
    }
    let key = pass.key.ok_or_else(|| LedgerError::broken(0, "the first entry is not genesis"))?;
    signed.verify(&key)?;
    for name in store.list()? {
        if let Some(digest) = name.strip_prefix("blob-").and_then(Digest::from_hex) {
            read_blob(store, &digest)?;
        }
        let Some((manifest, head)) = snapshot_entries(&name).and_then(|entries| pass.markers.get(&entries))
        else {
            continue;
        };
        load_snapshot(store, &name, manifest, *head)?;
    }
    // What goes on goes on from the newest of them.
    match pass.markers.last_key_value() {
        Some((entries, _)) if store.length(&snapshot_name(*entries)).is_err() => {
            Err(LedgerError::broken(*entries, "the newest snapshot is missing"))
        }
        _ => Ok(signed),
    }
}

struct Pass {
    size: u64,
    frontier: Frontier,
    head: ChainHead,
    key: Option<[u8; 32]>,
    gap: Option<Gap>,
    is_named: bool,
    /// Snapshots that entries name.
    markers: BTreeMap<u64, (Digest, ChainHead)>,
}

impl Pass {
    fn new(size: u64) -> Pass {
        Pass {
            size,
            frontier: Frontier::new(),
            head: ChainHead::start(),
            key: None,
            gap: None,
            is_named: false,
            markers: BTreeMap::new(),
        }
    }

    fn segment<S: Store>(
        &mut self,
        store: &mut S,
        number: u32,
        instance: &Digest,
    ) -> Result<(), LedgerError> {
        let mut reader = SegmentReader::open(store, number)?;
        let header = reader.header().clone();
        let at = self.frontier.size();
        let broken = |reason: &str| LedgerError::broken(at, format!("{}: {reason}", segment_name(number)));
        if header.instance != *instance {
            return Err(broken("it is of another history"));
        }
        if header.frontier != self.frontier || header.head != self.head {
            let end = header.frontier.size();
            if at == 0 || self.gap.is_some() || end <= at || self.size < end {
                return Err(broken("its header is not where the entries before it lead"));
            }
            self.gap = Some(Gap { first: at, end, head: header.head });
            (self.frontier, self.head) = (header.frontier, header.head);
        }
        while self.frontier.size() < self.size {
            match reader.next(store)? {
                Frame::Entry(bytes) => self.entry(bytes)?,
                Frame::End => break,
                Frame::Torn(reason) => return Err(broken(reason)),
            }
        }
        Ok(())
    }

    fn entry(&mut self, bytes: &[u8]) -> Result<(), LedgerError> {
        let index = self.frontier.size();
        let entry = Entry::from_bytes(bytes).map_err(|source| LedgerError::Entry { index, source })?;
        match &entry {
            Entry::Genesis(genesis) if index == 0 => self.key = Some(genesis.public_key),
            Entry::Snapshot { manifest, .. } => drop(self.markers.insert(index, (*manifest, self.head))),
            _ => {}
        }
        self.is_named |= self.gap.is_some_and(|gap| Archived::of(&entry).is_some_and(|one| one.covers(gap)));
        let leaf = leaf_hash(bytes);
        self.head = self.head.link(&leaf);
        self.frontier.push(leaf);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ENTRY_BYTES_MAX;
    use crate::log::{Log, LogOptions};
    use crate::snapshot::Part;
    use crate::store::MemoryStore;
    use crate::testing::{self, Workload};

    fn ledger() -> MemoryStore {
        let options = LogOptions { segment_bytes: 1_000, ring_bytes: ENTRY_BYTES_MAX + 4 };
        let mut log =
            Log::create(MemoryStore::new(), testing::signer(), &testing::genesis(1), options).unwrap();
        let mut workload = Workload::new(1);
        for round in 0..60 {
            Workload::apply(&workload.next_operation(), &mut log).unwrap();
            if round % 20 == 10 {
                let part = Part { name: "state".to_owned(), bytes: vec![round as u8; 50] };
                log.write_snapshot(round, vec![part], 2).unwrap();
            }
        }
        log.commit().unwrap();
        log.into_store()
    }

    #[test]
    fn every_flipped_bit_of_a_segment_that_nobody_reads_any_more_is_found() {
        let mut store = ledger();
        let signed = read_whole(&mut store).unwrap();
        let segments = list_segments(&mut store).unwrap();
        assert!(
            4 <= segments.len()
                && signed.checkpoint.size == read_checkpoint(&mut store).unwrap().checkpoint.size
        );
        // The newest segment still leads to the checkpoint, and that is all that a look at the end of a ledger sees.
        let name = segment_name(segments[1]);
        for bit in 0..store.files[&name].len() * 8 {
            let mut damaged = store.clone();
            damaged.files.get_mut(&name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            assert!(crate::view::committed(&mut damaged).is_ok());
            assert!(read_whole(&mut damaged).is_err(), "bit {bit}");
        }
        for name in
            store.files.keys().filter(|name| name.starts_with("snapshot-") || name.starts_with("blob-"))
        {
            let mut damaged = store.clone();
            let file = damaged.files.get_mut(name).unwrap();
            let last = file.len() - 1;
            file[last] ^= 1;
            assert!(read_whole(&mut damaged).is_err(), "{name}");
        }
        let mut gone = store.clone();
        gone.files.remove(&name);
        assert!(read_whole(&mut gone).is_err(), "a segment is missing");
    }

    #[test]
    fn what_is_archived_and_named_is_whole() {
        let options = LogOptions { segment_bytes: 1_000, ring_bytes: ENTRY_BYTES_MAX + 4 };
        let (mut log, _) = Log::open(ledger(), testing::signer(), options).unwrap();
        let limit = log.size();
        assert!(log.archive(1, limit, b"state", "image").unwrap().is_some());
        let mut store = log.into_store();
        assert_eq!(read_whole(&mut store).unwrap().checkpoint.size, limit + 1);
    }
}
