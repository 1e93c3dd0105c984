//! The audit against an enemy: every bit flipped, and histories rewritten by somebody who knows the format.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use bem_base::digest::hash;
use bem_base::encode::Writer;
use bem_ledger::audit::{AuditReport, AuditVerdict, Conditions, Rebuilt, audit};
use bem_ledger::checkpoint::{Checkpoint, SignedCheckpoint, Signer};
use bem_ledger::entry::{Entry, PatchEvent, PatchStatus, Verdict};
use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::log::{CHECKPOINT_NAME, Log, LogOptions, blob_name};
use bem_ledger::snapshot::Part;
use bem_ledger::store::MemoryStore;
use bem_ledger::testing::{self, AsCertified, Operation, Workload};

const OPTIONS: LogOptions = LogOptions { segment_bytes: 1_500, ring_bytes: ENTRY_BYTES_MAX + 4 };

fn ledger(seed: u64, operations: u64) -> MemoryStore {
    let mut log =
        Log::create(MemoryStore::new(), testing::signer(), &testing::genesis(seed), OPTIONS).unwrap();
    let mut workload = Workload::new(seed);
    for _ in 0..operations {
        Workload::apply(&workload.next_operation(), &mut log).unwrap();
    }
    log.commit().unwrap();
    log.into_store()
}

/// The log of a history that is written entry by entry, whatever it says.
fn ledger_of(entries: &[Entry], blobs: &[Vec<u8>]) -> MemoryStore {
    let mut log = Log::create(MemoryStore::new(), testing::signer(), &testing::genesis(1), OPTIONS).unwrap();
    for blob in blobs {
        log.put_blob(blob).unwrap();
    }
    for entry in entries {
        log.append(entry).unwrap();
    }
    log.commit().unwrap();
    log.into_store()
}

fn report(store: &mut MemoryStore, anchor: Option<&[u8]>) -> AuditReport {
    let anchor = anchor.map(|bytes| SignedCheckpoint::parse(bytes).unwrap());
    audit(store, anchor.as_ref(), &mut AsCertified).unwrap()
}

fn verdict(store: &mut MemoryStore, anchor: Option<&[u8]>) -> AuditVerdict {
    report(store, anchor).verdict
}

fn checkpoint_of(store: &MemoryStore) -> Vec<u8> {
    store.files[CHECKPOINT_NAME].clone()
}

fn broken_because(store: &mut MemoryStore, anchor: Option<&[u8]>) -> String {
    match verdict(store, anchor) {
        AuditVerdict::Broken { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_honest_history_is_unanchored_alone_and_ok_with_its_own_older_checkpoint() {
    let older = checkpoint_of(&ledger(1, 60));
    let mut store = ledger(1, 120);
    let found = report(&mut store, None);
    assert_eq!(found.verdict, AuditVerdict::Unanchored);
    assert_eq!((found.entries, found.tail_bytes), (121, 0));
    assert!(0 < found.certificates && 0 < found.snapshots && 0 < found.blobs, "{found:?}");
    let found = report(&mut store, Some(&older));
    assert_eq!((found.verdict, found.anchored_entries), (AuditVerdict::Ok, 61));
}

/// A ledger of few bytes that still has a snapshot, a patch with its evidence, and two segments.
fn small_ledger() -> MemoryStore {
    let complete = |store: &MemoryStore| {
        let count = |prefix| store.files.keys().filter(|name| name.starts_with(prefix)).count();
        1 <= count("snapshot") && 2 <= count("blob") && 2 <= count("segment")
    };
    let stores = (0..200).map(|seed| ledger(seed, 7)).filter(complete);
    stores.min_by_key(|store| store.files.values().map(Vec::len).sum::<usize>()).unwrap()
}

#[test]
fn every_single_bit_flip_of_every_file_is_found() {
    let honest = small_ledger();
    let mut store = honest.clone();
    let mut counts = std::collections::BTreeMap::new();
    for (name, content) in &honest.files {
        let kind = name.split(['-', '.']).next().unwrap();
        for bit in 0..content.len() * 8 {
            let mask = 1 << (bit % 8);
            store.files.get_mut(name).unwrap()[bit / 8] ^= mask;
            let verdict = verdict(&mut store, None);
            assert!(matches!(verdict, AuditVerdict::Broken { .. }), "{name} bit {bit}: {verdict:?}");
            store.files.get_mut(name).unwrap()[bit / 8] ^= mask;
            *counts.entry(kind).or_insert(0u32) += 1;
        }
    }
    assert_eq!(store, honest);
    assert_eq!(verdict(&mut store, None), AuditVerdict::Unanchored);
    for kind in ["blob", "checkpoint", "segment", "snapshot"] {
        assert!(100 < counts[kind], "{counts:?}");
    }
}

#[test]
fn truncation_of_any_file_at_any_byte_is_found() {
    let store = small_ledger();
    for (name, content) in &store.files {
        for length in 0..content.len() {
            let mut cut = store.clone();
            cut.files.get_mut(name).unwrap().truncate(length);
            let verdict = verdict(&mut cut, None);
            assert!(matches!(verdict, AuditVerdict::Broken { .. }), "{name} cut to {length}: {verdict:?}");
        }
    }
}

#[test]
fn a_rollback_of_everything_is_found_with_a_checkpoint_and_unanchored_without() {
    let newest = checkpoint_of(&ledger(5, 50));
    let mut rolled_back = ledger(5, 30);
    assert_eq!(verdict(&mut rolled_back, None), AuditVerdict::Unanchored);
    let reason = broken_because(&mut rolled_back, Some(&newest));
    assert!(reason.starts_with("the history was rolled back: 31 entries here, 51 under"), "{reason}");
}

#[test]
fn a_fork_signed_with_the_right_key_is_found_by_the_outside_checkpoint() {
    let honest = ledger_of(&[event(1), event(2), event(3)], &[]);
    let mut fork = ledger_of(&[event(1), event(9), event(3), event(4)], &[]);
    assert_eq!(verdict(&mut fork, None), AuditVerdict::Unanchored);
    let reason = broken_because(&mut fork, Some(&checkpoint_of(&honest)));
    assert!(reason.contains("not the one under the outside checkpoint"), "{reason}");
}

#[test]
fn a_history_rewritten_with_another_key_is_found() {
    let honest = ledger_of(&[event(1)], &[]);
    let thief = Signer::from_seed(&[66; 32]);
    let mut genesis = testing::genesis(1);
    genesis.public_key = thief.public_key();
    let mut log = Log::create(MemoryStore::new(), thief, &genesis, OPTIONS).unwrap();
    log.append(&event(1)).unwrap();
    log.commit().unwrap();
    let mut forged = log.into_store();
    let reason = broken_because(&mut forged, Some(&checkpoint_of(&honest)));
    assert!(reason.contains("no signature by the key of this log"), "{reason}");
}

#[test]
fn a_checkpoint_that_fits_the_entries_but_is_not_signed_is_found() {
    let mut store = ledger_of(&[event(1), event(2)], &[]);
    let mut signed = SignedCheckpoint::parse(&checkpoint_of(&store)).unwrap();
    let found = report(&mut ledger_of(&[event(1)], &[]), None);
    signed.checkpoint = Checkpoint {
        size: found.entries,
        root: found.root,
        head: bem_ledger::chain::ChainHead::from_digest(found.head),
        ..signed.checkpoint
    };
    store.files.insert(CHECKPOINT_NAME.to_owned(), signed.to_text().into_bytes());
    assert!(broken_because(&mut store, None).contains("the signature does not hold"));
}

#[test]
fn an_old_snapshot_beside_a_new_trace_is_found() {
    let mut store = ledger(7, 60);
    let names: Vec<String> =
        store.files.keys().filter(|name| name.starts_with("snapshot")).cloned().collect();
    let [older, newer, ..] = names.as_slice() else { panic!("{names:?}") };
    let content = store.files[older].clone();
    store.files.insert(newer.clone(), content);
    assert!(matches!(verdict(&mut store, None), AuditVerdict::Broken { .. }));
    // A file from another history under a name that fits.
    let mut store = ledger(7, 60);
    let other = ledger(8, 60);
    let foreign = other.files.iter().find(|(name, _)| name.starts_with("snapshot")).unwrap();
    store.files.insert(foreign.0.clone(), foreign.1.clone());
    assert!(matches!(verdict(&mut store, None), AuditVerdict::Broken { .. }));
}

#[test]
fn segments_swapped_dropped_or_spliced_from_another_instance_are_found() {
    let store = ledger(9, 80);
    let segments: Vec<String> =
        store.files.keys().filter(|name| name.starts_with("segment")).cloned().collect();
    assert!(4 < segments.len());
    let other = ledger(10, 200);
    for (position, name) in segments.iter().enumerate() {
        let mut dropped = store.clone();
        dropped.files.remove(name);
        assert!(matches!(verdict(&mut dropped, None), AuditVerdict::Broken { .. }), "{name} dropped");
        let mut swapped = store.clone();
        let next = &segments[(position + 1) % segments.len()];
        swapped.files.insert(name.clone(), store.files[next].clone());
        swapped.files.insert(next.clone(), store.files[name].clone());
        assert!(matches!(verdict(&mut swapped, None), AuditVerdict::Broken { .. }), "{name} swapped");
        let mut spliced = store.clone();
        spliced.files.insert(name.clone(), other.files[&segments[position]].clone());
        assert!(matches!(verdict(&mut spliced, None), AuditVerdict::Broken { .. }), "{name} spliced");
    }
}

#[test]
fn table_roots_that_do_not_follow_from_the_edits_are_found_although_all_hashes_fit() {
    let roots = [hash(b"wrong"); 4];
    let mut store = ledger_of(&[Entry::Tables { step: 1, edits: Vec::new(), roots }], &[]);
    assert_eq!(broken_because(&mut store, None), "the table roots do not follow from the edits");
}

fn first_patch(seed: u64, wanted: PatchStatus) -> (Vec<Entry>, Vec<Vec<u8>>, Box<PatchEvent>) {
    let mut workload = Workload::new(seed);
    let mut before = Vec::new();
    loop {
        match workload.next_operation() {
            Operation::Patch(blobs, Entry::Patch(patch)) if patch.status == wanted => {
                return (before, blobs, patch);
            }
            Operation::Append(entry) => before.push(entry),
            // A patch of the other kind may change tables, so the search starts over with another seed.
            _ => return first_patch(seed + 1, wanted),
        }
    }
}

#[test]
fn a_patch_let_in_without_proof_is_found_although_all_hashes_fit() {
    let (mut entries, mut blobs, mut patch) = first_patch(1, PatchStatus::Applied);
    // A certificate whose proof is about another formula.
    let cnf = b"p cnf 9 1\n1 0\n".to_vec();
    patch.certificates[0].cnf = hash(&cnf);
    blobs.push(cnf);
    entries.push(Entry::Patch(patch.clone()));
    let reason = broken_because(&mut ledger_of(&entries, &blobs), None);
    assert!(reason.contains("the certificate is for the formula"), "{reason}");
    // A refuted condition.
    let (_, model_blobs, rejected) = first_patch(1, PatchStatus::Rejected);
    patch.certificates = rejected.certificates.clone();
    *entries.last_mut().unwrap() = Entry::Patch(patch.clone());
    blobs.extend(model_blobs);
    let reason = broken_because(&mut ledger_of(&entries, &blobs), None);
    assert!(reason.contains("although its condition was not proven"), "{reason}");
}

#[test]
fn a_model_that_refuted_one_patch_is_no_proof_for_the_next() {
    let (mut entries, mut blobs, mut patch) = first_patch(1, PatchStatus::Applied);
    let (_, model_blobs, rejected) = first_patch(1, PatchStatus::Rejected);
    blobs.extend(model_blobs);
    let refused = PatchEvent {
        status: PatchStatus::Rejected,
        certificates: rejected.certificates.clone(),
        edits: Vec::new(),
        roots_after: patch.roots_before,
        ..(*patch).clone()
    };
    entries.push(Entry::Patch(Box::new(refused)));
    assert_eq!(verdict(&mut ledger_of(&entries, &blobs), None), AuditVerdict::Unanchored);
    // The same formula and the same model, now said to be a proof.
    patch.certificates = rejected.certificates.clone();
    patch.certificates[0].verdict = Verdict::Holds;
    entries.push(Entry::Patch(patch));
    let reason = broken_because(&mut ledger_of(&entries, &blobs), None);
    assert!(reason.starts_with("certificate "), "{reason}");
}

#[test]
fn a_proof_under_assumptions_is_no_proof_of_a_condition() {
    let (mut entries, mut blobs, mut patch) = first_patch(1, PatchStatus::Applied);
    // The formula has a model; only together with the assumption it has none.
    let cnf = b"p cnf 1 1\n-1 0\n".to_vec();
    let certificate = bem_checker::Certificate {
        formula: bem_checker::Cnf::from_dimacs(&cnf).unwrap().digest(),
        assumptions: vec![bem_checker::Literal::positive(1)],
        proof: b"2 -1 0 1 0\n".to_vec(),
    };
    let mut writer = Writer::new();
    certificate.encode(&mut writer);
    let proof = writer.into_bytes();
    (patch.certificates[0].cnf, patch.certificates[0].proof) = (hash(&cnf), hash(&proof));
    blobs.extend([cnf, proof]);
    entries.push(Entry::Patch(patch));
    let reason = broken_because(&mut ledger_of(&entries, &blobs), None);
    assert!(reason.ends_with("a proof under assumptions proves less than the condition"), "{reason}");
}

#[test]
fn missing_evidence_and_a_false_model_are_found() {
    let (mut entries, blobs, mut patch) = first_patch(1, PatchStatus::Rejected);
    let position = entries.len();
    entries.push(Entry::Patch(patch.clone()));
    let mut store = ledger_of(&entries, &blobs);
    assert_eq!(verdict(&mut store, None), AuditVerdict::Unanchored);
    store.files.remove(&blob_name(&patch.certificates[0].proof));
    assert!(broken_because(&mut store, None).contains("no such file"));
    let model = b"-1 -2 -3 -4 -5 -6 -7 -8 -9 0".to_vec();
    patch.certificates[0].proof = hash(&model);
    assert_eq!(patch.certificates[0].verdict, Verdict::Refuted);
    entries[position] = Entry::Patch(patch);
    let reason = broken_because(&mut ledger_of(&entries, &[blobs[0].clone(), model]), None);
    assert!(reason.contains("the model leaves clause 1 false"), "{reason}");
}

#[test]
fn a_second_genesis_and_a_missing_one_are_found() {
    let genesis = Entry::Genesis(testing::genesis(1));
    assert_eq!(broken_because(&mut ledger_of(&[genesis], &[]), None), "a second genesis");
}

#[test]
fn bytes_after_the_checkpoint_are_counted_and_vouched_for_by_nobody() {
    let mut log = Log::create(MemoryStore::new(), testing::signer(), &testing::genesis(1), OPTIONS).unwrap();
    log.append(&event(1)).unwrap();
    log.offload().unwrap();
    let found = report(log.store_mut(), None);
    assert_eq!((found.verdict, found.entries), (AuditVerdict::Unanchored, 1));
    assert!(0 < found.tail_bytes);
}

fn event(code: u16) -> Entry {
    Entry::Event { step: 1, code, values: Vec::new(), payload: Vec::new() }
}

#[test]
fn a_snapshot_that_is_kept_is_missed_and_one_that_was_thinned_out_is_not() {
    let mut log = Log::create(MemoryStore::new(), testing::signer(), &testing::genesis(1), OPTIONS).unwrap();
    let part = |byte| Part { name: "state".to_owned(), bytes: vec![byte; 20] };
    let names: Vec<String> =
        (0..5).map(|byte| log.write_snapshot(u64::from(byte), vec![part(byte)], 2).unwrap()).collect();
    let mut store = log.into_store();
    let there =
        |store: &MemoryStore| names.iter().map(|name| store.files.contains_key(name)).collect::<Vec<_>>();
    assert_eq!(there(&store), [false, false, false, true, true]);
    assert_eq!(verdict(&mut store, None), AuditVerdict::Unanchored);
    for name in &names[3..] {
        let mut without = store.clone();
        without.files.remove(name);
        let reason = broken_because(&mut without, None);
        assert_eq!(reason, format!("{name} is missing, and the history says that it is kept"));
    }
}

/// Demands this formula of every patch in force.
struct Demands(Option<bem_base::digest::Digest>);

impl Conditions for Demands {
    fn rebuild(
        &mut self,
        entry: &Entry,
        _: &mut dyn FnMut(&bem_base::digest::Digest) -> Result<Vec<u8>, String>,
    ) -> Result<Rebuilt, String> {
        let is_patch = matches!(entry, Entry::Patch(_));
        Ok(Rebuilt { formulas: self.0.filter(|_| is_patch).into_iter().collect(), checks: 0 })
    }
}

#[test]
fn a_certificate_counts_only_for_the_condition_that_the_patch_has() {
    let (mut entries, blobs, patch) = first_patch(1, PatchStatus::Applied);
    let proven = patch.certificates[0].cnf;
    entries.push(Entry::Patch(patch.clone()));
    let reason = |demanded: Option<bem_base::digest::Digest>, entries: &[Entry]| match audit(
        &mut ledger_of(entries, &blobs),
        None,
        &mut Demands(demanded),
    )
    .unwrap()
    .verdict
    {
        AuditVerdict::Broken { reason, .. } => reason,
        AuditVerdict::Ok | AuditVerdict::Unanchored => String::new(),
    };
    assert_eq!(reason(Some(proven), &entries), "");
    assert!(reason(None, &entries).starts_with("a certificate that the patch has no condition for"));
    assert!(reason(Some(hash(b"another")), &entries).starts_with("certificate 0 is not about the patch"));
    let bare = PatchEvent { certificates: Vec::new(), ..*patch };
    *entries.last_mut().unwrap() = Entry::Patch(Box::new(bare));
    assert_eq!(reason(Some(proven), &entries), "condition 0 of the patch has no certificate");
}
