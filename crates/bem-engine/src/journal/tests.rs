//! Histories cut off anywhere, damaged, replayed and audited.

use super::*;
use crate::climb::ClimbConfig;
use bem_base::encode::Writer;
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::entry::{Table, TableEdit};
use bem_ledger::store::MemoryStore;
use bem_machine::config::GenesisConfig;
use std::collections::BTreeSet;
use std::sync::Arc;

fn signer() -> Signer {
    Signer::from_seed(&[5; 32])
}

fn climb(seed: u64) -> Climb {
    let families = ["parity", "majority"].map(str::to_string).to_vec();
    Climb::new(ClimbConfig { seed, stages: 3, unit_steps: 20_000, families, parameters: Arc::default() })
        .unwrap()
}

fn create(climb: &Climb) -> Journal<MemoryStore> {
    Journal::create(MemoryStore::new(), signer(), "test", climb, None, LogOptions::default()).unwrap()
}

/// Works to the end of the climb; returns the store after every unit, and the last head.
fn finish(mut journal: Journal<MemoryStore>, mut climb: Climb) -> (Vec<MemoryStore>, Digest) {
    let mut stores = Vec::new();
    loop {
        let recorded = journal.recorded_unit(&climb).unwrap();
        let next = || climb.next(&BTreeSet::new()).filter(|_| climb.is_climbing());
        let Some(unit) = recorded.or_else(next) else { break };
        let result = climb.work(&unit, &mut || true).unwrap().unwrap();
        climb.take(&result);
        journal.unit(&result, &climb).unwrap();
        stores.push(journal.sink.log.store_mut().clone());
    }
    journal.save(&climb, Vec::new()).unwrap();
    let head = journal.head();
    stores.push(journal.into_store());
    (stores, head)
}

#[test]
fn a_run_that_is_cut_off_anywhere_ends_in_the_same_head() {
    let (stores, head) = finish(create(&climb(3)), climb(3));
    assert!(4 < stores.len());
    for (cut, store) in stores.iter().enumerate() {
        let opened = Journal::open(store.clone(), signer(), LogOptions::default()).unwrap();
        assert_eq!(opened.rejected, []);
        assert_eq!(finish(opened.journal, opened.climb).1, head, "cut after unit {cut}");
    }
}

#[test]
fn a_damaged_snapshot_is_passed_over_and_mended_on_the_way() {
    let (stores, head) = finish(create(&climb(3)), climb(3));
    let mut store = stores.last().unwrap().clone();
    let newest = store.files.keys().rfind(|name| name.starts_with("snapshot")).unwrap().clone();
    let honest = store.clone();
    *store.files.get_mut(&newest).unwrap().last_mut().unwrap() ^= 1;
    let opened = Journal::open(store, signer(), LogOptions::default()).unwrap();
    assert_eq!(opened.rejected.len(), 1);
    let (mended, again) = finish(opened.journal, opened.climb);
    assert_eq!(again, head);
    assert_eq!(mended.last().unwrap().files[&newest], honest.files[&newest]);
}

#[test]
fn without_any_snapshot_a_run_begins_at_its_configuration() {
    let (stores, head) = finish(create(&climb(3)), climb(3));
    let mut store = stores.last().unwrap().clone();
    store.files.retain(|name, _| !name.starts_with("snapshot"));
    let opened = Journal::open(store, signer(), LogOptions::default()).unwrap();
    assert_eq!(opened.climb, climb(3));
    assert_eq!(finish(opened.journal, opened.climb).1, head);
}

#[test]
fn an_audit_accepts_a_run_and_counts_its_steps() {
    let (mut stores, head) = finish(create(&climb(3)), climb(3));
    let report = audit(stores.last_mut().unwrap(), None, &mut RunConditions::new()).unwrap();
    assert_eq!((report.verdict, report.head), (AuditVerdict::Unanchored, head));
    assert!(0 < report.steps && 0 < report.certificates, "{} steps", report.steps);
}

#[test]
fn a_replay_agrees_with_an_honest_record_and_names_the_first_entry_of_another() {
    let (mut stores, _) = finish(create(&climb(3)), climb(3));
    let mut replay = Replay::open(stores.pop().unwrap()).unwrap();
    while replay.advance().unwrap().is_some() {}
    assert_eq!(replay.progress().0, replay.progress().1);
    assert_eq!(replay.units(), stores.len() as u64);
    // A record that is well formed and signed, of a unit that was played with another seed.
    let (mut honest, other) = (climb(3), climb(4));
    let mut journal = create(&honest);
    let unit = honest.next(&BTreeSet::new()).unwrap();
    let result = other.work(&unit, &mut || true).unwrap().unwrap();
    honest.take(&result);
    journal.unit(&result, &honest).unwrap();
    let mut store = journal.into_store();
    assert_eq!(audit(&mut store, None, &mut RunConditions::new()).unwrap().verdict, AuditVerdict::Unanchored);
    let error = Replay::open(store).unwrap().advance().unwrap_err().to_string();
    assert!(error.starts_with("replay differs at entry 6: recorded is episode"), "{error}");
}

#[test]
fn cfg_holds_the_configuration_and_a_changed_missing_or_other_one_is_broken() {
    let (mut stores, _) = finish(create(&climb(3)), climb(3));
    let honest = stores.pop().unwrap();
    let configuration = hash(&climb(3).snapshot());
    let name = format!("blob-{configuration}");
    let broken =
        |store: &mut MemoryStore| match audit(store, None, &mut RunConditions::new()).unwrap().verdict {
            AuditVerdict::Broken { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
    let mut changed = honest.clone();
    changed.files.get_mut(&name).unwrap()[20] ^= 1;
    assert!(broken(&mut changed).starts_with("CFG: "), "{}", broken(&mut changed));
    let mut missing = honest;
    missing.files.remove(&name).unwrap();
    assert!(broken(&mut missing).starts_with("CFG: "), "{}", broken(&mut missing));
    // Somebody who has the key writes another one into a history that goes on.
    let mut journal = create(&climb(3));
    assert!(journal.book.tables.tree(Table::Program).size() == 1);
    let leaf = journal.sink.log.put_blob(&climb(4).snapshot()).unwrap();
    let edits = vec![TableEdit { table: Table::Program, slot: 0, leaf }];
    edits.iter().for_each(|edit| journal.book.tables.set(edit));
    let roots = journal.book.tables.roots();
    journal.sink.log.append(&Entry::Tables { step: 0, edits, roots }).unwrap();
    journal.sink.log.commit().unwrap();
    assert_eq!(broken(&mut journal.into_store()), "CFG holds another configuration than genesis names");
}

#[test]
fn work_holds_the_parameters_in_force_and_cfg_commits_to_them() {
    let parameters = GenesisConfig { synth_patches: 7, ..GenesisConfig::default() };
    let config = ClimbConfig { parameters: Arc::new(parameters.clone()), ..climb(3).config().clone() };
    let climb = Climb::new(config).unwrap();
    let mut store = create(&climb).into_store();
    let mut reader = EntryReader::open(&mut store).unwrap();
    let mut next = || Entry::from_bytes(reader.next(&mut store).unwrap().unwrap()).unwrap();
    let (Entry::Genesis(genesis), Entry::Tables { edits, .. }) = (next(), next()) else { panic!() };
    let leaves = |table| edits.iter().filter(move |edit| edit.table == table).map(|edit| edit.leaf);
    let words: Vec<Digest> = parameters.words().iter().map(|word| hash(&word.to_le_bytes())).collect();
    assert_eq!(leaves(Table::Work).collect::<Vec<_>>(), words);
    // The blob that genesis and CFG name begins with the parameters and is all that a replay starts from.
    assert_eq!(leaves(Table::Program).collect::<Vec<_>>(), [genesis.configuration]);
    let mut bytes = Writer::new();
    parameters.encode(&mut bytes);
    let blob = &store.files[&format!("blob-{}", genesis.configuration)];
    assert!(blob.windows(bytes.as_bytes().len()).any(|part| part == bytes.as_bytes()));
    assert_eq!(*Replay::open(store).unwrap().climb().config().parameters, parameters);
}
