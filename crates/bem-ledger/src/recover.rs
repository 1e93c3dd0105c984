//! Opening a log again after a clean end, a crash, or a crash during this very opening.
//!
//! The signed checkpoint says how many entries were acknowledged and what they hash to. Recovery replays the last
//! segment that can reach that size, compares root and head, cuts off what follows, and publishes the checkpoint once
//! more. It repairs nothing by guessing: if the acknowledged entries do not hash to the signed root, it says so.
//! Clauses: LOG-1, LOG-2, SCC-9.

use crate::checkpoint::{Checkpoint, SignedCheckpoint, Signer};
use crate::error::{LedgerError, StoreError};
use crate::limits::CHECKPOINT_BYTES_MAX;
use crate::log::{CHECKPOINT_NAME, Log, LogOptions, OpenSegment, Recovered};
use crate::merkle::leaf_hash;
use crate::segment::{Frame, SegmentReader, list_segments, segment_name};
use crate::snapshot::snapshot_entries;
use crate::store::Store;

/// What recovery found and cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Acknowledged entries, all present.
    pub entries: u64,
    /// Bytes after them in the same segment, never acknowledged.
    pub bytes_dropped: u64,
    /// Files that belonged to nothing acknowledged.
    pub files_removed: Vec<String>,
}

impl<S: Store> Log<S> {
    /// Opens an existing history for writing.
    pub fn open(
        mut store: S,
        signer: Signer,
        options: LogOptions,
    ) -> Result<(Log<S>, RecoveryReport), LedgerError> {
        let signed = read_checkpoint(&mut store)?;
        signed.verify(&signer.public_key())?;
        let (found, reader_length) = find_end(&mut store, &signed)?;
        let OpenSegment { number, written_bytes, .. } = found.segment;
        let mut report = RecoveryReport {
            entries: signed.checkpoint.size,
            bytes_dropped: reader_length - written_bytes,
            files_removed: Vec::new(),
        };
        if written_bytes < reader_length {
            store.truncate(&segment_name(number), written_bytes)?;
        }
        report.files_removed = remove_leftovers(&mut store, number, signed.checkpoint.size)?;
        let mut log = Log::resume(store, signer, found, options);
        // A checkpoint that is seen may still be one whose rename was never made durable.
        log.publish(&signed)?;
        Ok((log, report))
    }
}

/// Reads the newest checkpoint of a ledger; its signature is not checked here.
pub fn read_checkpoint<S: Store>(store: &mut S) -> Result<SignedCheckpoint, LedgerError> {
    let bytes = match store.read_all(CHECKPOINT_NAME, CHECKPOINT_BYTES_MAX as u64) {
        Err(StoreError::Missing { .. }) => {
            let segments = list_segments(store)?.len();
            let reason = format!("there is no checkpoint, and {segments} segment files");
            return Err(LedgerError::NotALedger(reason));
        }
        other => other?,
    };
    SignedCheckpoint::parse(&bytes)
}

/// Finds the segment in which the acknowledged history ends, and the state there.
pub(crate) fn find_end<S: Store>(
    store: &mut S,
    signed: &SignedCheckpoint,
) -> Result<(Recovered, u64), LedgerError> {
    let mut reason = "there is no segment file".to_owned();
    // A segment with no acknowledged entry is never the end; it is dropped and begun anew. A later segment that does
    // not lead to the signed root is a leftover of an earlier crash, and the one before it is tried.
    for number in list_segments(store)?.into_iter().rev() {
        match replay_segment(store, number, &signed.checkpoint) {
            Ok(Some((recovered, length))) => {
                return Ok((Recovered { checkpoint: signed.clone(), ..recovered }, length));
            }
            Ok(None) => {}
            Err(LedgerError::Store(error)) => return Err(error.into()),
            Err(error) => reason = error.to_string(),
        }
    }
    let entry = signed.checkpoint.size.saturating_sub(1);
    Err(LedgerError::broken(entry, format!("no segment leads to the signed checkpoint: {reason}")))
}

/// Replays one segment up to the checkpoint's size. `None` if the segment starts at or after it.
fn replay_segment<S: Store>(
    store: &mut S,
    number: u32,
    checkpoint: &Checkpoint,
) -> Result<Option<(Recovered, u64)>, LedgerError> {
    let mut reader = SegmentReader::open(store, number)?;
    let first_entry = reader.header().frontier.size();
    if checkpoint.size <= first_entry {
        return Ok(None);
    }
    let mut head = reader.header().head;
    let mut frontier = reader.header().frontier.clone();
    while frontier.size() < checkpoint.size {
        match reader.next(store)? {
            Frame::Entry(entry) => {
                let leaf = leaf_hash(entry);
                head = head.link(&leaf);
                frontier.push(leaf);
            }
            Frame::End => {
                return Err(LedgerError::broken(frontier.size(), format!("{} ends", segment_name(number))));
            }
            Frame::Torn(reason) => return Err(LedgerError::broken(frontier.size(), reason)),
        }
    }
    if frontier.root() != checkpoint.root || head != checkpoint.head {
        let reason = format!("{} does not hash to it", segment_name(number));
        return Err(LedgerError::broken(checkpoint.size - 1, reason));
    }
    let segment = OpenSegment { number, first_entry, written_bytes: reader.position() };
    let signed = SignedCheckpoint { checkpoint: *checkpoint, signatures: Vec::new() };
    Ok(Some((Recovered { checkpoint: signed, frontier, segment }, reader.length())))
}

/// Removes what belongs to nothing acknowledged: later segments, snapshots without a marker, half-written files.
fn remove_leftovers<S: Store>(store: &mut S, last: u32, size: u64) -> Result<Vec<String>, LedgerError> {
    let mut removed = Vec::new();
    for name in store.list()? {
        let later_segment = crate::segment::segment_number(&name).is_some_and(|number| last < number);
        let later_snapshot = snapshot_entries(&name).is_some_and(|entries| size <= entries);
        if later_segment || later_snapshot || name.ends_with(".tmp") {
            store.remove(&name)?;
            removed.push(name);
        }
    }
    Ok(removed)
}
