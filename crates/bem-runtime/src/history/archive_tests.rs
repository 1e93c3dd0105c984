//! Histories that begin at a saved state: restored under another key, and with archived segments. Clauses: LOG-2, LOG-4, IMG-4.

use super::tests::{Driver, spec};
use super::*;
use crate::conditions::ServiceConditions;
use bem_ledger::archive::Archived;
use bem_ledger::audit::{AuditReport, AuditVerdict, audit};
use bem_ledger::checkpoint::Signer;
use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::segment::{list_segments, segment_name};
use bem_ledger::store::MemoryStore;
use bem_ledger::testing;

/// Small segments, so that there are many.
fn options() -> LogOptions {
    LogOptions { segment_bytes: 6_000, ring_bytes: ENTRY_BYTES_MAX + 4 }
}

fn audited(store: &mut MemoryStore) -> AuditReport {
    audit(store, None, &mut ServiceConditions::new()).unwrap()
}

fn steps(driver: &mut Driver, count: u64) {
    for number in 0..count {
        driver.step();
        if number % 40 == 0 {
            driver.commit();
        }
    }
}

/// A service in the middle of its life: worlds, patches, a snapshot, and more after it.
fn lived() -> Driver {
    let mut driver = Driver::with(options());
    driver.create(spec("ads", 1));
    driver.create(spec("gone", 1));
    driver.create(spec("visits", 3));
    steps(&mut driver, 1_500);
    driver.settle_rounds();
    driver.take(Input::Forget { world: crate::input::WorldIndex(1) });
    driver.commit();
    save(&mut driver);
    driver
}

fn save(driver: &mut Driver) {
    driver.log.write_snapshot(driver.player.service.last(), parts(&driver.player.service), 2).unwrap();
}

/// Archives what the newest image would hold, as the server does it: right after a snapshot.
fn archive(driver: &mut Driver) -> Option<Archived> {
    driver.settle_rounds();
    driver.commit();
    save(driver);
    let state = base_of(&driver.player.service, &driver.player.book).to_bytes();
    let (step, limit) = (driver.player.service.last(), driver.log.size());
    driver.log.archive(step, limit, &state, "sha256:image").unwrap()
}

#[test]
fn a_history_goes_on_under_another_key_from_the_same_state_and_names_the_old_head() {
    let mut driver = lived();
    steps(&mut driver, 400);
    // A round is under way, as it is when a server is killed: it goes on in both.
    driver.commit();
    let mut old = driver.log.store_mut().clone();
    let signer = || Signer::from_seed(&[9; 32]);
    let new = continued(&mut old, MemoryStore::new(), signer(), "test", options()).unwrap();
    assert_eq!(new.player.book.tables.roots(), driver.player.book.tables.roots());
    assert_eq!(new.player.service.last(), driver.player.service.last());
    let head = driver.log.head().digest().to_hex();
    let mut store = new.log.into_store();
    let named = store.files.values().any(|file| file.windows(64).any(|window| window == head.as_bytes()));
    assert!(named, "the old head is in the new history");
    let report = audited(&mut store);
    assert_eq!(report.verdict, AuditVerdict::Unanchored);
    replay(&mut store, None, &mut |_, _| {}).unwrap();
    // Both go on alike.
    let mut again = open(store, signer(), options()).unwrap();
    let mut other = Driver::with(options());
    (other.log, other.player, other.lag) = (again.log, again.player, driver.lag);
    driver.settle_rounds();
    other.settle_rounds();
    other.commit();
    assert_eq!(other.player.service.encode(), driver.player.service.encode());
    again = open(other.log.into_store(), signer(), options()).unwrap();
    assert!(again.rejected.is_empty());
}

#[test]
fn a_history_without_a_snapshot_goes_on_under_another_key() {
    let mut driver = Driver::with(options());
    driver.create(spec("ads", 1));
    steps(&mut driver, 300);
    driver.settle_rounds();
    driver.commit();
    let mut old = driver.log.store_mut().clone();
    let signer = || Signer::from_seed(&[9; 32]);
    let new = continued(&mut old, MemoryStore::new(), signer(), "test", options()).unwrap();
    assert_eq!(new.player.service.encode(), driver.player.service.encode());
    let mut store = new.log.into_store();
    assert_eq!(audited(&mut store).verdict, AuditVerdict::Unanchored);
    replay(&mut store, None, &mut |_, _| {}).unwrap();
    let opened = open(store, signer(), options()).unwrap();
    assert_eq!(opened.player.service.encode(), driver.player.service.encode());
}

#[test]
fn archived_segments_are_named_and_the_history_goes_on_behind_them() {
    let mut driver = lived();
    let mut disk = Vec::new();
    for _ in 0..5 {
        steps(&mut driver, 400);
        driver.settle_rounds();
        driver.commit();
        save(&mut driver);
        let whole = driver.log.store_mut().clone();
        let archived = archive(&mut driver).expect("something to archive");
        assert!(archived.first < archived.end);
        let mut store = driver.log.store_mut().clone();
        let report = audited(&mut store);
        assert_eq!(
            (report.verdict, report.archived),
            (AuditVerdict::Unanchored, Some((archived.first, archived.end)))
        );
        // With the archived segments put back everything is there again, and the saved state is what they amount to.
        let mut put_back = whole.clone();
        for (name, content) in &store.files {
            if !name.starts_with("segment-")
                || !whole.files.contains_key(name)
                || whole.files[name].len() < content.len()
            {
                put_back.files.insert(name.clone(), content.clone());
            }
        }
        if disk.is_empty() {
            let report = audited(&mut put_back);
            assert_eq!((report.verdict, report.archived), (AuditVerdict::Unanchored, None));
        }
        let played = replay(&mut store, None, &mut |_, _| {}).unwrap();
        assert_eq!(played.encode(), driver.player.service.encode());
        let opened = open(store.clone(), testing::signer(), options()).unwrap();
        assert_eq!(opened.player.service.encode(), driver.player.service.encode());
        assert_eq!(opened.player.book.tables.roots(), driver.player.book.tables.roots());
        disk.push(store.files.values().map(Vec::len).sum::<usize>());
    }
    assert!(disk[4] < 2 * disk[0], "{disk:?}");
}

#[test]
fn a_gap_that_no_entry_names_is_broken() {
    let mut driver = lived();
    steps(&mut driver, 400);
    driver.commit();
    let mut store = driver.log.store_mut().clone();
    let segments = list_segments(&mut store).unwrap();
    store.files.remove(&segment_name(segments[1]));
    let AuditVerdict::Broken { reason, .. } = audited(&mut store).verdict else {
        panic!("a gap is accepted")
    };
    assert!(reason.contains("no entry says that they are archived"), "{reason}");
    assert!(open(store.clone(), testing::signer(), options()).is_err());
    assert!(replay(&mut store, None, &mut |_, _| {}).is_err());
    // A gap beyond the one that is named is none either, and neither is a second one.
    driver.settle_rounds();
    save(&mut driver);
    steps(&mut driver, 300);
    let archived = archive(&mut driver).expect("something to archive");
    let store = driver.log.store_mut().clone();
    let present = list_segments(&mut store.clone()).unwrap();
    assert_eq!(audited(&mut store.clone()).archived, Some((archived.first, archived.end)));
    for number in &present[1..present.len() - 1] {
        let mut damaged = store.clone();
        damaged.files.remove(&segment_name(*number));
        assert!(matches!(audited(&mut damaged).verdict, AuditVerdict::Broken { .. }), "segment {number}");
    }
    // The first segment stays for ever.
    let mut headless = store.clone();
    headless.files.remove(&segment_name(0));
    assert!(matches!(audited(&mut headless).verdict, AuditVerdict::Broken { .. }));
    // The saved state must be the one that the entry names.
    let mut forged = store;
    let name = bem_ledger::log::blob_name(&archived.state);
    forged.files.get_mut(&name).unwrap()[40] ^= 1;
    assert!(matches!(audited(&mut forged).verdict, AuditVerdict::Broken { .. }));
}
