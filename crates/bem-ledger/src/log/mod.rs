//! The writer: appends entries, offloads them to segment files, and acknowledges by a signed checkpoint.
//!
//! Order is everything here. An entry is acknowledged when [`Log::commit`] has returned: its bytes are in the segment
//! and synced, every name it needs is synced, and only then a checkpoint that covers it was written aside, synced,
//! renamed over the old one and the directory synced again. A failed write changes nothing and may be tried again; after
//! a failed sync the log stops, because the system may have thrown the bytes away and would not say so twice.
//! Clauses: LOG-1, LOG-2, SCC-9; decisions D-16, D-17.

mod blob;

pub use blob::{blob_name, read_blob, store_blob};

use crate::chain::ChainHead;
use crate::checkpoint::{Checkpoint, SignedCheckpoint, Signer};
use crate::entry::{Entry, Genesis};
use crate::error::{LedgerError, StoreError};
use crate::limits::{ENTRY_BYTES_MAX, RING_BYTES_DEFAULT, SEGMENT_BYTES_DEFAULT};
use crate::merkle::{Frontier, leaf_hash};
use crate::ring::Ring;
use crate::segment::{LENGTH_BYTES, SegmentHeader, list_segments, segment_name};
use crate::store::Store;
use bem_base::digest::{Digest, hash};
use std::collections::BTreeSet;

/// The file of the newest checkpoint.
pub const CHECKPOINT_NAME: &str = "checkpoint";
const CHECKPOINT_NEW: &str = "checkpoint.tmp";
/// A first segment longer than this holds more than a creation that was cut off.
const GENESIS_SEGMENT_BYTES_MAX: u64 = 1_024;

/// Sizes that may differ from run to run without changing the history.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// A segment is closed before it would grow past this.
    pub segment_bytes: u64,
    /// Bytes of entries that may wait in memory.
    pub ring_bytes: usize,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions { segment_bytes: SEGMENT_BYTES_DEFAULT, ring_bytes: RING_BYTES_DEFAULT }
    }
}

/// The segment being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenSegment {
    pub(crate) number: u32,
    /// Index of its first entry.
    pub(crate) first_entry: u64,
    /// Bytes the store has taken.
    pub(crate) written_bytes: u64,
}

/// A log open for writing. One process at a time; the application holds the lock.
#[derive(Debug)]
pub struct Log<S> {
    store: S,
    signer: Signer,
    instance: Digest,
    options: LogOptions,
    ring: Ring,
    frontier: Frontier,
    head: ChainHead,
    segment: OpenSegment,
    checkpoint: SignedCheckpoint,
    /// Names were created, renamed or removed and not synced; the next checkpoint may need them.
    directory_dirty: bool,
    stopped: Option<String>,
    blobs_written: BTreeSet<Digest>,
}

/// What recovery hands to the writer.
pub(crate) struct Recovered {
    pub(crate) checkpoint: SignedCheckpoint,
    pub(crate) frontier: Frontier,
    pub(crate) segment: OpenSegment,
}

impl<S: Store> Log<S> {
    /// Starts a new history. Returns when genesis is acknowledged.
    ///
    /// A directory in which an earlier creation was cut off is taken over; one with more in it is refused.
    pub fn create(
        mut store: S,
        signer: Signer,
        genesis: &Genesis,
        options: LogOptions,
    ) -> Result<Log<S>, LedgerError> {
        assert!(genesis.public_key == signer.public_key(), "genesis must name the key that signs");
        refuse_occupied(&mut store)?;
        let nothing = Checkpoint {
            instance: genesis.instance,
            size: 0,
            root: Frontier::new().root(),
            head: ChainHead::start(),
        };
        let recovered = Recovered {
            checkpoint: SignedCheckpoint { checkpoint: nothing, signatures: Vec::new() },
            frontier: Frontier::new(),
            segment: OpenSegment { number: 0, first_entry: 0, written_bytes: 0 },
        };
        let mut log = Log::resume(store, signer, recovered, options);
        log.begin_segment(0)?;
        log.append(&Entry::Genesis(genesis.clone()))?;
        log.commit()?;
        Ok(log)
    }

    /// A writer that continues where recovery ended.
    pub(crate) fn resume(store: S, signer: Signer, recovered: Recovered, options: LogOptions) -> Log<S> {
        assert!(ENTRY_BYTES_MAX + LENGTH_BYTES <= options.ring_bytes, "the largest entry must fit the ring");
        Log {
            store,
            signer,
            instance: recovered.checkpoint.checkpoint.instance,
            options,
            ring: Ring::new(options.ring_bytes),
            frontier: recovered.frontier,
            head: recovered.checkpoint.checkpoint.head,
            segment: recovered.segment,
            checkpoint: recovered.checkpoint,
            directory_dirty: true,
            stopped: None,
            blobs_written: BTreeSet::new(),
        }
    }

    /// Appends an entry and returns its index. It is acknowledged by the next [`Log::commit`].
    pub fn append(&mut self, entry: &Entry) -> Result<u64, LedgerError> {
        self.append_bytes(&entry.to_bytes())
    }

    /// Appends an entry that is encoded already, for the fast path (see [`crate::entry::step_block_bytes`]).
    ///
    /// Cost: one hash of the entry, two blocks for the chain, one node on average, one copy. When the ring is full or
    /// the segment is, the store is written to first; if that fails the entry is not taken.
    pub fn append_bytes(&mut self, entry: &[u8]) -> Result<u64, LedgerError> {
        self.check_running()?;
        if ENTRY_BYTES_MAX < entry.len() {
            return Err(LedgerError::EntryTooLarge { size: entry.len(), limit: ENTRY_BYTES_MAX });
        }
        let frame_bytes = LENGTH_BYTES + entry.len();
        let segment_end = self.segment.written_bytes + self.ring.length() as u64;
        let has_entries = self.segment.first_entry < self.frontier.size();
        if has_entries && self.options.segment_bytes < segment_end + frame_bytes as u64 {
            self.rotate()?;
        }
        if !self.ring.has_room(frame_bytes) {
            self.offload()?;
        }
        let length = u32::try_from(entry.len()).expect("an entry is at most a mebibyte");
        self.ring.push(&length.to_le_bytes());
        self.ring.push(entry);
        let leaf = leaf_hash(entry);
        let index = self.frontier.size();
        self.head = self.head.link(&leaf);
        self.frontier.push(leaf);
        Ok(index)
    }

    /// Hands everything that waits in memory to the store. Nothing is durable by that.
    pub fn offload(&mut self) -> Result<(), LedgerError> {
        self.check_running()?;
        while 0 < self.ring.length() {
            let run = self.ring.oldest();
            let count = run.len();
            self.store.write(&segment_name(self.segment.number), self.segment.written_bytes, run)?;
            self.segment.written_bytes += count as u64;
            self.ring.release(count);
        }
        Ok(())
    }

    /// Acknowledges everything appended so far and returns the checkpoint that covers it.
    pub fn commit(&mut self) -> Result<&SignedCheckpoint, LedgerError> {
        self.check_running()?;
        let size = self.frontier.size();
        if self.checkpoint.checkpoint.size == size {
            return Ok(&self.checkpoint);
        }
        self.offload()?;
        self.sync_file(&segment_name(self.segment.number))?;
        let checkpoint =
            Checkpoint { instance: self.instance, size, root: self.frontier.root(), head: self.head };
        let signed = self.signer.sign(checkpoint);
        self.publish(&signed)?;
        self.checkpoint = signed;
        Ok(&self.checkpoint)
    }

    /// Replaces the checkpoint file. Every name and byte the checkpoint speaks of is durable before the rename.
    pub(crate) fn publish(&mut self, signed: &SignedCheckpoint) -> Result<(), LedgerError> {
        if self.directory_dirty {
            self.sync_directory()?;
        }
        self.write_aside(CHECKPOINT_NEW, signed.to_text().as_bytes(), CHECKPOINT_NAME)?;
        self.sync_directory()
    }

    /// Closes the segment and begins the next one. Fails without effect unless a sync failed.
    fn rotate(&mut self) -> Result<(), LedgerError> {
        self.offload()?;
        self.sync_file(&segment_name(self.segment.number))?;
        self.begin_segment(self.segment.number + 1)
    }

    fn begin_segment(&mut self, number: u32) -> Result<(), LedgerError> {
        let header = SegmentHeader {
            number,
            instance: self.instance,
            head: self.head,
            frontier: self.frontier.clone(),
        };
        let bytes = header.to_bytes();
        let name = segment_name(number);
        self.directory_dirty = true;
        self.store.create(&name)?;
        self.store.write(&name, 0, &bytes)?;
        self.segment =
            OpenSegment { number, first_entry: self.frontier.size(), written_bytes: bytes.len() as u64 };
        Ok(())
    }

    /// Stores content under its digest; it is durable no later than the next checkpoint.
    pub fn put_blob(&mut self, bytes: &[u8]) -> Result<Digest, LedgerError> {
        self.check_running()?;
        let digest = hash(bytes);
        let name = blob_name(&digest);
        // A file that an earlier process left may be seen and yet not be durable, if its sync had failed: it is
        // written again, and only what this process has written is taken to be there.
        if !self.blobs_written.contains(&digest) {
            self.write_aside(&format!("{name}.tmp"), bytes, &name)?;
            self.blobs_written.insert(digest);
        }
        Ok(digest)
    }

    /// A blob is removed: what is put under its digest again is written again.
    pub(crate) fn forget_blob(&mut self, digest: &Digest) {
        self.blobs_written.remove(digest);
    }

    /// Writes a file beside its place, syncs it and renames it there. The directory is left to be synced.
    pub(crate) fn write_aside(&mut self, aside: &str, bytes: &[u8], name: &str) -> Result<(), LedgerError> {
        self.store.create(aside)?;
        self.store.write(aside, 0, bytes)?;
        self.sync_file(aside)?;
        self.directory_dirty = true;
        self.store.rename(aside, name).map_err(|error| self.stop(error))
    }

    fn sync_file(&mut self, name: &str) -> Result<(), LedgerError> {
        self.store.sync_file(name).map_err(|error| self.stop(error))
    }

    fn sync_directory(&mut self) -> Result<(), LedgerError> {
        self.store.sync_directory().map_err(|error| self.stop(error))?;
        self.directory_dirty = false;
        Ok(())
    }

    fn stop(&mut self, error: StoreError) -> LedgerError {
        let reason = error.to_string();
        self.stopped = Some(reason.clone());
        LedgerError::Stopped { reason }
    }

    pub(crate) fn check_running(&self) -> Result<(), LedgerError> {
        match &self.stopped {
            None => Ok(()),
            Some(reason) => Err(LedgerError::Stopped { reason: reason.clone() }),
        }
    }

    /// Entries appended.
    pub fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// Entries acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.checkpoint.checkpoint.size
    }

    /// Head of the chain over all appended entries.
    pub fn head(&self) -> ChainHead {
        self.head
    }

    /// Root of the tree over all appended entries.
    pub fn root(&self) -> Digest {
        self.frontier.root()
    }

    /// Whose history this is.
    pub fn instance(&self) -> Digest {
        self.instance
    }

    /// The newest checkpoint.
    pub fn checkpoint(&self) -> &SignedCheckpoint {
        &self.checkpoint
    }

    /// The store underneath, for reading.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Gives the store back. What was not committed is lost, as in a crash.
    pub fn into_store(self) -> S {
        self.store
    }
}

/// A directory may be taken for a new ledger if it has no checkpoint and at most the beginning of genesis, which is
/// removed.
fn refuse_occupied<S: Store>(store: &mut S) -> Result<(), LedgerError> {
    if store.list()?.iter().any(|name| name == CHECKPOINT_NAME) {
        return Err(LedgerError::NotALedger("a ledger is here already".to_owned()));
    }
    for number in list_segments(store)? {
        let name = segment_name(number);
        if 0 < number || GENESIS_SEGMENT_BYTES_MAX < store.length(&name)? {
            let reason = "entries without a checkpoint: it was removed; put it back".to_owned();
            return Err(LedgerError::NotALedger(reason));
        }
        // Not just emptied: its name may be seen and yet not be durable, if an earlier sync had failed.
        store.remove(&name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
