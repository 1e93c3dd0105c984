//! Histories cut off anywhere, damaged, replayed and audited.

use super::*;
use crate::climb::{ClimbConfig, Worked};
use crate::learner::Settings;
use crate::suspend::{Seen, write_off, written};
use crate::worlds::Catalog;
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

/// A climb of one unit that goes on until its budget is spent.
fn lone() -> Climb {
    let settings = Settings { budget: 60_000, ..Settings::new(1) };
    let settings = settings.with(|config| config.until_budget = true);
    Climb::single("bandit", "contextual_bandit{context_bits=2,noise_bits=2,arms=4}", &settings)
}

/// Works on the one unit from these bytes on and writes it piece by piece: the store and the lesson after every piece, and the
/// store at the end. Where nothing is written off, the lesson holds everything.
fn in_pieces(
    mut journal: Journal<MemoryStore>,
    mut lesson: Option<Vec<u8>>,
    writes_off: bool,
) -> (Vec<(MemoryStore, Vec<u8>)>, MemoryStore) {
    let (mut climb, mut pieces) = (lone(), Vec::new());
    let unit = climb.next(&BTreeSet::new()).unwrap();
    let game = Catalog.game(&unit.task, climb.assign(&unit).seed).unwrap();
    loop {
        let mut looks = 0;
        let mut go_on = || {
            looks += 1;
            looks < 120
        };
        match climb.assign(&unit).go_on(lesson.as_deref(), &mut go_on).unwrap() {
            Worked::Done(result) => {
                climb.take(&result);
                journal.unit(&result, &climb).unwrap();
                journal.save(&climb, Vec::new()).unwrap();
                return (pieces, journal.into_store());
            }
            Worked::PutAway(bytes) if writes_off => {
                let (chronicle, bytes) = write_off(&bytes).unwrap();
                let under_way = UnderWay { unit: &unit, seed: climb.config().seed, shape: game.shape() };
                journal.so_far(under_way, &chronicle, &climb).unwrap();
                let part = Part { name: "unit_0".to_string(), bytes: bytes.clone() };
                journal.save(&climb, vec![part]).unwrap();
                assert_eq!(written(&bytes), Some(journal.written()));
                pieces.push((journal.sink.log.store_mut().clone(), bytes.clone()));
                lesson = Some(bytes);
            }
            Worked::PutAway(bytes) => {
                pieces.push((journal.sink.log.store_mut().clone(), bytes.clone()));
                lesson = Some(bytes);
            }
        }
    }
}

/// Entries without the markers of snapshots.
fn derived(mut store: MemoryStore) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut reader = EntryReader::open(&mut store).unwrap();
    while let Some(bytes) = reader.next(&mut store).unwrap() {
        let entry = Entry::from_bytes(bytes).unwrap();
        if !matches!(entry, Entry::Snapshot { .. }) {
            entries.push(entry);
        }
    }
    entries
}

#[test]
fn a_unit_that_is_written_as_it_goes_on_makes_the_same_entries_and_stays_small() {
    let (whole, at_once) = in_pieces(create(&lone()), None, false);
    let (pieces, in_parts) = in_pieces(create(&lone()), None, true);
    assert!(4 < pieces.len() && pieces.len() == whole.len(), "{}", pieces.len());
    let want = derived(at_once);
    assert!(derived(in_parts.clone()) == want);
    // What is put away beside the learner, whose own log may still be filling, does not grow with the steps, as it would if it
    // held what was played.
    let beside = |lesson: &[u8]| (lesson.len() - Seen::take_up(lesson).unwrap().1.len()) as i64;
    let grown = |pieces: &[(MemoryStore, Vec<u8>)]| {
        beside(&pieces[pieces.len() - 1].1) - beside(&pieces[pieces.len() / 2].1)
    };
    assert!(50_000 < grown(&whole), "{}", grown(&whole));
    assert!(grown(&pieces) < 20_000, "{}", grown(&pieces));
    let mut replay = Replay::open(in_parts).unwrap();
    while replay.advance().unwrap().is_some() {}
    assert_eq!((replay.units(), replay.under_way()), (1, 0));
    for ((store, lesson), (_, wanted)) in pieces.iter().zip(&whole) {
        let mut store = store.clone();
        // Another history can go on with it.
        let entries = latest_snapshot(&mut store).unwrap().snapshot.unwrap().entries;
        assert!(whole_lesson(&mut store, entries, lesson).unwrap().as_ref() == Some(wanted));
        let report = audit(&mut store, None, &mut RunConditions::new()).unwrap();
        assert_eq!(report.verdict, AuditVerdict::Unanchored);
        let mut replay = Replay::open(store).unwrap();
        assert_eq!(replay.advance().unwrap(), None);
        assert_eq!(replay.progress().0, replay.progress().1);
        assert!(0 < replay.under_way());
    }
}

#[test]
fn a_unit_that_was_cut_off_goes_on_from_any_of_its_snapshots_or_anew() {
    let (pieces, whole) = in_pieces(create(&lone()), None, true);
    let want = derived(whole);
    for (place, (store, _)) in pieces.iter().enumerate().skip(1).step_by(2) {
        let open = |store: MemoryStore| Journal::open(store, signer(), LogOptions::default()).unwrap();
        let taken_up = open(store.clone());
        let lesson = taken_up.suspended[0].bytes.clone();
        assert_eq!(written(&lesson), Some(taken_up.journal.written()));
        assert!(derived(in_pieces(taken_up.journal, Some(lesson), true).1) == want, "piece {place}");
        // A learner that begins its unit anew is compared with what is written of it.
        assert!(derived(in_pieces(open(store.clone()).journal, None, true).1) == want, "piece {place}");
        // The newest snapshot is damaged: what is written after the one before is compared.
        let mut damaged = store.clone();
        let newest = damaged.files.keys().rfind(|name| name.starts_with("snapshot")).unwrap().clone();
        *damaged.files.get_mut(&newest).unwrap().last_mut().unwrap() ^= 1;
        let before = open(damaged);
        assert_eq!(before.rejected.len(), 1);
        let lesson = before.suspended[0].bytes.clone();
        assert!(derived(in_pieces(before.journal, Some(lesson), true).1) == want, "piece {place}");
    }
}
