//! Histories that begin anew from what others say: worlds, circuits and logs come along, whole, archived and restored. Clause: IMG-5.

use super::super::tests::{Driver, spec};
use super::super::{base_of, continued, open, replay};
use super::*;
use crate::conditions::ServiceConditions;
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::store::MemoryStore;
use bem_ledger::testing;

fn options() -> LogOptions {
    LogOptions { segment_bytes: 6_000, ring_bytes: ENTRY_BYTES_MAX + 4 }
}

fn signer() -> Signer {
    Signer::from_seed(&[9; 32])
}

/// A service with two worlds that have learned and one that is gone.
fn lived() -> Driver {
    let mut driver = Driver::with(options());
    driver.create(spec("ads", 1));
    driver.create(spec("gone", 1));
    driver.create(spec("visits", 3));
    for number in 0..3_000 {
        driver.step();
        if number % 40 == 0 {
            driver.commit();
        }
    }
    driver.settle_rounds();
    driver.take(Input::Forget { world: WorldIndex(1) });
    driver.commit();
    driver
}

fn anew(old: &mut MemoryStore) -> (MemoryStore, Vec<Carried>) {
    let head = read_checkpoint(old).unwrap().checkpoint.head.digest();
    let (opened, carried) = renewed(old, &[], MemoryStore::new(), signer(), "test", options()).unwrap();
    let mut store = opened.log.into_store();
    let named = |file: &Vec<u8>| file.windows(64).any(|window| window == head.to_hex().as_bytes());
    assert!(store.files.values().any(named), "the old head is in the new history");
    let report = audit(&mut store, None, &mut ServiceConditions::new()).unwrap();
    assert_eq!(report.verdict, AuditVerdict::Unanchored);
    replay(&mut store, None, &mut |_, _| {}).unwrap();
    (store, carried)
}

#[test]
fn worlds_circuits_and_logs_are_carried_over_and_learned_from() {
    let mut driver = lived();
    let mut old = driver.log.store_mut().clone();
    // Nothing of the learner is looked at: snapshots may be gone.
    old.files.retain(|name, _| !name.ends_with(".snap"));
    let (store, carried) = anew(&mut old);
    let names: Vec<&str> = carried.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["ads", "visits"]);
    assert!(carried[0].has_circuit && 500 < carried[0].episodes && 100 < carried[1].episodes, "{carried:?}");
    let told = told(&mut old).unwrap();
    assert_eq!((told.len(), told[0].0.name.as_str(), told[0].1.machines.len()), (2, "ads", 1));
    let (_, old_ads) = driver.player.service.find("ads").unwrap();
    // What was told is what was played: as many rewards as the old statistics have, but for those that waited.
    let returns = old_ads.statistics().returns.count as usize;
    assert!(told[0].1.episodes.len().abs_diff(returns) <= 300, "{} of {returns}", told[0].1.episodes.len());
    // The new service acts by the old circuit after its first rounds, with few steps of its own.
    let mut other = Driver::with(options());
    let opened = open(store, signer(), options()).unwrap();
    (other.log, other.player) = (opened.log, opened.player);
    for _ in 0..1_500 {
        other.step();
    }
    other.settle_rounds();
    other.commit();
    let (_, ads) = other.player.service.find("ads").unwrap();
    assert!(0 < ads.statistics().applied, "{:?}", ads.statistics());
    assert_eq!(ads.spec(), old_ads.spec());
    replay(other.log.store_mut(), None, &mut |_, _| {}).unwrap();
}

#[test]
fn an_archived_history_and_a_restored_one_are_carried_over_by_the_worlds_that_their_states_name() {
    let mut driver = lived();
    let save = |driver: &mut Driver| {
        driver.log.write_snapshot(driver.player.service.last(), parts(&driver.player.service), 2).unwrap();
    };
    save(&mut driver);
    for number in 0..600 {
        driver.step();
        if number % 40 == 0 {
            driver.commit();
        }
    }
    driver.settle_rounds();
    driver.commit();
    save(&mut driver);
    save(&mut driver);
    let state = base_of(&driver.player.service, &driver.player.book).to_bytes();
    let (step, limit) = (driver.player.service.last(), driver.log.size());
    let archived = driver.log.archive(step, limit, &state, "sha256:image").unwrap();
    assert!(archived.is_some());
    let mut old = driver.log.store_mut().clone();
    let (_, carried) = anew(&mut old);
    let names: Vec<&str> = carried.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["ads", "visits"]);
    assert!(carried[0].has_circuit, "{carried:?}");
    // A history that was restored without its key says nothing of its worlds but in its saved state.
    let mut restored = continued(&mut old, MemoryStore::new(), testing::signer(), "test", options()).unwrap();
    let (_, carried) = anew(restored.log.store_mut());
    assert_eq!((carried.len(), carried[0].name.as_str(), carried[0].has_circuit), (2, "ads", true));
}
