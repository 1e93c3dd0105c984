//! Which files, and how much of each, the acknowledged history consists of: for copies of a ledger that may be written meanwhile.
//!
//! A copy of exactly these bytes with the checkpoint beside them is a ledger that ends where the checkpoint says, whatever its
//! writer appends while they are read. Clauses: LOG-4, IMG-2.

use crate::checkpoint::SignedCheckpoint;
use crate::error::LedgerError;
use crate::recover::{find_end, read_checkpoint};
use crate::segment::segment_number;
use crate::snapshot::snapshot_entries;
use crate::store::Store;

/// The acknowledged part of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The checkpoint that covers it.
    pub signed: SignedCheckpoint,
    /// Files and the bytes of each, by name; the checkpoint's own is not among them.
    pub files: Vec<(String, u64)>,
}

/// Finds the acknowledged part. The end is derived from the last segment and compared with the checkpoint, whose signature is
/// not checked here. Cost: one pass over the last segment.
pub fn committed<S: Store>(store: &mut S) -> Result<Committed, LedgerError> {
    let signed = read_checkpoint(store)?;
    let (end, _) = find_end(store, &signed)?;
    let mut files = Vec::new();
    for name in store.list()? {
        let length = match segment_number(&name) {
            Some(number) if end.segment.number < number => continue,
            Some(number) if end.segment.number == number => end.segment.written_bytes,
            Some(_) => store.length(&name)?,
            None if snapshot_entries(&name).is_some_and(|entries| entries < signed.checkpoint.size) => {
                store.length(&name)?
            }
            None if name.starts_with("blob-") && !name.ends_with(".tmp") => store.length(&name)?,
            None => continue,
        };
        files.push((name, length));
    }
    Ok(Committed { signed, files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ENTRY_BYTES_MAX;
    use crate::log::{CHECKPOINT_NAME, Log, LogOptions};
    use crate::store::MemoryStore;
    use crate::testing::{self, Workload};

    #[test]
    fn a_copy_of_what_is_acknowledged_is_the_ledger_at_its_checkpoint() {
        let options = LogOptions { segment_bytes: 1_000, ring_bytes: ENTRY_BYTES_MAX + 4 };
        let mut log =
            Log::create(MemoryStore::new(), testing::signer(), &testing::genesis(1), options).unwrap();
        let mut workload = Workload::new(1);
        for round in 0..60 {
            Workload::apply(&workload.next_operation(), &mut log).unwrap();
            if round % 7 == 0 {
                log.commit().unwrap();
            }
            if round % 5 == 0 {
                log.offload().unwrap();
            }
            // What was written and never acknowledged stays out of the copy.
            let mut store = log.store_mut().clone();
            let found = committed(&mut store).unwrap();
            let mut copy = MemoryStore::new();
            for (name, length) in &found.files {
                copy.files.insert(name.clone(), store.files[name][..*length as usize].to_vec());
            }
            copy.files.insert(CHECKPOINT_NAME.to_string(), found.signed.to_text().into_bytes());
            let (opened, report) = Log::open(copy, testing::signer(), options).unwrap();
            assert_eq!(opened.head(), found.signed.checkpoint.head);
            assert_eq!((report.bytes_dropped, report.files_removed.len()), (0, 0));
        }
    }
}
