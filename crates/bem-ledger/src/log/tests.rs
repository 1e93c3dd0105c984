//! What comes back after a crash, and what is refused.

use super::*;
use crate::recover::RecoveryReport;
use crate::segment::{Frame, SegmentReader};
use crate::store::MemoryStore;
use crate::testing;
use bem_base::prng::Prng;

const SMALL: LogOptions = LogOptions { segment_bytes: 2_000, ring_bytes: ENTRY_BYTES_MAX + LENGTH_BYTES };

fn filled(count: u64) -> (Log<MemoryStore>, Vec<Vec<u8>>) {
    let genesis = testing::genesis(1);
    let mut log = Log::create(MemoryStore::new(), testing::signer(), &genesis, SMALL).unwrap();
    let mut entries = vec![Entry::Genesis(genesis).to_bytes()];
    let mut prng = Prng::stream(4, "filled");
    for _ in 0..count {
        let entry = testing::entry(&mut prng);
        log.append(&entry).unwrap();
        entries.push(entry.to_bytes());
    }
    (log, entries)
}

fn read_back(store: &mut MemoryStore) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    for number in list_segments(store).unwrap() {
        let mut reader = SegmentReader::open(store, number).unwrap();
        assert_eq!(reader.header().frontier.size(), entries.len() as u64);
        while let Frame::Entry(entry) = reader.next(store).unwrap() {
            entries.push(entry.to_vec());
        }
    }
    entries
}

#[test]
fn entries_come_back_in_order_over_many_segments() {
    let (mut log, entries) = filled(300);
    log.commit().unwrap();
    assert_eq!(log.acknowledged(), 301);
    let mut store = log.into_store();
    assert!(10 < list_segments(&mut store).unwrap().len());
    assert_eq!(read_back(&mut store), entries);
}

#[test]
fn what_was_not_committed_is_cut_off_and_the_rest_continues_the_same_history() {
    let (mut log, entries) = filled(100);
    log.commit().unwrap();
    let (size, root, head) = (log.size(), log.root(), log.head());
    let mut prng = Prng::stream(9, "tail");
    for _ in 0..40 {
        log.append(&testing::entry(&mut prng)).unwrap();
    }
    log.offload().unwrap();
    let (log, report) = Log::open(log.into_store(), testing::signer(), SMALL).unwrap();
    assert_eq!((log.size(), log.root(), log.head()), (size, root, head));
    assert!(0 < report.bytes_dropped || !report.files_removed.is_empty(), "{report:?}");
    let mut store = log.into_store();
    assert_eq!(read_back(&mut store), entries);
    let (_, again) = Log::open(store, testing::signer(), SMALL).unwrap();
    assert_eq!(again, RecoveryReport { entries: size, ..RecoveryReport::default() });
}

#[test]
fn a_missing_checkpoint_is_never_taken_for_a_new_ledger() {
    let (mut log, _) = filled(100);
    log.commit().unwrap();
    let mut store = log.into_store();
    store.files.remove(CHECKPOINT_NAME);
    let error = Log::open(store.clone(), testing::signer(), SMALL).unwrap_err();
    assert!(matches!(error, LedgerError::NotALedger(_)), "{error}");
    let error = Log::create(store, testing::signer(), &testing::genesis(1), SMALL).unwrap_err();
    assert!(error.to_string().contains("it was removed"), "{error}");
}

#[test]
fn a_lost_acknowledged_entry_is_an_error_and_not_a_shorter_history() {
    let (mut log, _) = filled(30);
    log.commit().unwrap();
    let mut store = log.into_store();
    let last = segment_name(*list_segments(&mut store).unwrap().last().unwrap());
    store.files.get_mut(&last).unwrap().pop();
    let error = Log::open(store, testing::signer(), SMALL).unwrap_err();
    assert!(matches!(error, LedgerError::Broken { .. }), "{error}");
}

#[test]
fn an_entry_over_the_limit_is_refused_and_changes_nothing() {
    let (mut log, _) = filled(3);
    let head = log.head();
    let error = log.append_bytes(&vec![0; ENTRY_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(error.to_string(), "an entry of 1048577 bytes: at most 1048576 are allowed");
    assert_eq!(log.head(), head);
}

#[test]
fn a_blob_is_found_by_its_digest_and_a_changed_one_is_refused() {
    let (mut log, _) = filled(1);
    let digest = log.put_blob(b"content").unwrap();
    assert_eq!(log.put_blob(b"content"), Ok(digest));
    assert_eq!(read_blob(log.store_mut(), &digest).unwrap(), b"content");
    log.store_mut().files.get_mut(&blob_name(&digest)).unwrap()[0] ^= 1;
    assert!(read_blob(log.store_mut(), &digest).is_err());
    // A process that did not write it itself does not believe that it is there.
    log.commit().unwrap();
    let (mut log, _) = Log::open(log.into_store(), testing::signer(), SMALL).unwrap();
    assert_eq!(log.put_blob(b"content"), Ok(digest));
    assert_eq!(read_blob(log.store_mut(), &digest).unwrap(), b"content");
}
