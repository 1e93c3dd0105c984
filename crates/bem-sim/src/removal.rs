//! Everything that a run's history names, taken away piece by piece, and histories forged by somebody who has the key.
//!
//! Without the key an entry, a blob or a snapshot is removed and the rest is left. With the key the whole history is written
//! anew: chain, tree, table roots and snapshots fit, so that only what entries *mean* can give the forgery away. Every
//! one of them must be refused, and the honest history, written anew in the same way, accepted.
//! Clauses: SCC-3, SCC-4, LOG-2, LOG-3, LOG-4.

use bem_base::digest::hash;
use bem_base::encode::Writer;
use bem_checker::certificate::Certificate as Proof;
use bem_checker::cnf::Cnf;
use bem_engine::journal::RunConditions;
use bem_engine::payload::Payload;
use bem_evolve::patch::{Change, Patch};
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::checkpoint::{SignedCheckpoint, Signer};
use bem_ledger::entry::{Certificate, Entry, PatchEvent, PatchStatus, Table, Verdict, event_code};
use bem_ledger::log::{Log, LogOptions, blob_name, read_blob};
use bem_ledger::reader::EntryReader;
use bem_ledger::segment::{SegmentHeader, segment_number};
use bem_ledger::snapshot::Snapshot;
use bem_ledger::store::MemoryStore;
use bem_ledger::tables::Tables;
use bem_synth::policy::Policy;
use std::collections::BTreeMap;

/// How often each attempt was made, by name; all of them were refused.
pub type Refused = BTreeMap<&'static str, u64>;

/// Files of a ledger, or of entries that are to become one.
struct Attempt {
    name: &'static str,
    what: String,
    store: MemoryStore,
    /// Only a checkpoint from outside shows it.
    needs_anchor: bool,
}

/// A history as its entries, with what they name.
#[derive(Clone)]
struct History {
    entries: Vec<Entry>,
    blobs: MemoryStore,
}

/// Makes every attempt on a sound ledger, or every `stride`-th; the first that is accepted is an error.
pub fn removal(honest: &MemoryStore, signer: &Signer, stride: usize) -> Result<Refused, String> {
    let anchor = honest.files.get("checkpoint").ok_or("the run has no checkpoint")?;
    let anchor = SignedCheckpoint::parse(anchor).map_err(|error| error.to_string())?;
    let history = read(honest)?;
    if verdict(honest, Some(&anchor))? != AuditVerdict::Ok {
        return Err(format!("the run is not sound to begin with: {:?}", verdict(honest, Some(&anchor))?));
    }
    let again = write(&history, signer)?;
    if verdict(&again, None)? != AuditVerdict::Unanchored {
        return Err(format!("the honest history, written anew: {:?}", verdict(&again, None)?));
    }
    let mut refused = Refused::new();
    let mut try_one = |attempt: Attempt| -> Result<(), String> {
        let found = verdict(&attempt.store, Some(&anchor).filter(|_| attempt.needs_anchor))?;
        if !matches!(found, AuditVerdict::Broken { .. }) {
            return Err(format!("{}, {}: {found:?}", attempt.name, attempt.what));
        }
        *refused.entry(attempt.name).or_default() += 1;
        Ok(())
    };
    for attempt in without_key(honest).into_iter().step_by(stride) {
        try_one(attempt)?;
    }
    let mut forged = forgeries(&history)?;
    forged.extend(cut_tails(&history));
    for (name, what, forged) in forged.into_iter().step_by(stride) {
        let needs_anchor = name == "cut tail";
        try_one(Attempt { name, what, store: write(&forged, signer)?, needs_anchor })?;
    }
    Ok(refused)
}

fn verdict(store: &MemoryStore, anchor: Option<&SignedCheckpoint>) -> Result<AuditVerdict, String> {
    let report = audit(&mut store.clone(), anchor, &mut RunConditions::new());
    report.map(|report| report.verdict).map_err(|error| error.to_string())
}

/// Every file but the lock, and every entry, removed on its own.
fn without_key(honest: &MemoryStore) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    let newest = |prefix: &str| honest.files.keys().rfind(|name| name.starts_with(prefix)).cloned();
    for (name, content) in &honest.files {
        let mut store = honest.clone();
        store.files.remove(name);
        let kind = match name.split('-').next() {
            Some("blob") => "blob removed",
            Some("snapshot") => "snapshot removed",
            Some("segment") => "segment removed",
            _ => "checkpoint removed",
        };
        attempts.push(Attempt { name: kind, what: name.clone(), store, needs_anchor: false });
        if segment_number(name).is_none() {
            continue;
        }
        let Ok((_, mut start)) = SegmentHeader::decode(content) else { continue };
        while let Some(length) = content.get(start..start + 4) {
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
            let mut store = honest.clone();
            if let Some(content) = store.files.get_mut(name) {
                content.drain(start..start + 4 + length);
            }
            let what = format!("{name} at byte {start}");
            attempts.push(Attempt { name: "entry removed", what, store, needs_anchor: false });
            start += 4 + length;
        }
    }
    // Two files at once: the newest snapshot together with the one before leaves nothing to notice by accident.
    if let Some(name) = newest("snapshot") {
        let mut store = honest.clone();
        store.files.retain(|other, _| !other.starts_with("snapshot"));
        attempts.push(Attempt {
            name: "snapshot removed",
            what: format!("all up to {name}"),
            store,
            needs_anchor: false,
        });
    }
    attempts
}

fn read(store: &MemoryStore) -> Result<History, String> {
    let mut blobs = store.clone();
    let mut reader = EntryReader::open(&mut blobs).map_err(|error| error.to_string())?;
    let mut entries = Vec::new();
    while let Some(bytes) = reader.next(&mut blobs).map_err(|error| error.to_string())? {
        entries.push(Entry::from_bytes(bytes).map_err(|error| error.to_string())?);
    }
    Ok(History { entries, blobs })
}

/// Writes a history anew with the run's own key: roots follow from edits, snapshots are taken at the new heads.
fn write(history: &History, signer: &Signer) -> Result<MemoryStore, String> {
    let text = |error: bem_ledger::LedgerError| error.to_string();
    let Some(Entry::Genesis(genesis)) = history.entries.first() else { return Err("no genesis".to_owned()) };
    let mut store = MemoryStore::new();
    let blobs = history.blobs.files.iter().filter(|(name, _)| name.starts_with("blob-"));
    store.files.extend(blobs.map(|(name, content)| (name.clone(), content.clone())));
    let mut log = Log::create(store, signer.clone(), genesis, LogOptions::default()).map_err(text)?;
    let mut tables = Tables::new();
    for entry in &history.entries[1..] {
        let mut entry = entry.clone();
        match &mut entry {
            Entry::Patch(patch) => {
                patch.roots_before = tables.roots();
                patch.edits.iter().for_each(|edit| tables.set(edit));
                patch.roots_after = tables.roots();
            }
            Entry::Tables { edits, roots, .. } => {
                edits.iter().for_each(|edit| tables.set(edit));
                *roots = tables.roots();
            }
            Entry::Snapshot { step, manifest, kept, .. } => {
                let names = history.blobs.files.iter().filter(|(name, _)| name.starts_with("snapshot-"));
                let snapshots = names.filter_map(|(_, content)| Snapshot::from_bytes(content).ok());
                let parts = snapshots.into_iter().find(|(_, digest)| digest == manifest);
                if let Some((snapshot, _)) = parts {
                    log.write_snapshot(*step, snapshot.parts, *kept).map_err(text)?;
                    continue;
                }
            }
            _ => {}
        }
        log.append(&entry).map_err(text)?;
    }
    log.commit().map_err(text)?;
    let mut store = log.into_store();
    // What is not kept any more was not there before either.
    store.files.retain(|name, _| !name.ends_with(".tmp"));
    Ok(store)
}

type Forged = Vec<(&'static str, String, History)>;

/// Histories that end early, at every entry after the first snapshot.
fn cut_tails(history: &History) -> Forged {
    let lengths = 3..history.entries.len();
    let cut = |length: usize| {
        let mut cut = history.clone();
        cut.entries.truncate(length);
        ("cut tail", format!("after {length} entries"), cut)
    };
    lengths.map(cut).collect()
}

/// Histories that a forger with the key would like to pass.
fn forgeries(history: &History) -> Result<Forged, String> {
    let mut forged = Forged::new();
    let (trivial, trivial_blobs) = trivial_certificate();
    let patches: Vec<(usize, PatchEvent)> = history
        .entries
        .iter()
        .enumerate()
        .filter_map(|(place, entry)| match entry {
            Entry::Patch(patch) => Some((place, (**patch).clone())),
            _ => None,
        })
        .collect();
    let last = patches.last().map_or(0, |(place, _)| *place);
    for (place, patch) in &patches {
        let place = *place;
        if place != last {
            let mut without = history.clone();
            without.entries.remove(place);
            forged.push(("patch forged away", format!("entry {place}"), without));
        }
        if patch.status != PatchStatus::Applied {
            continue;
        }
        let mut change = |name, what: String, new: PatchEvent, blobs: &[Vec<u8>]| {
            let mut changed = history.clone();
            blobs
                .iter()
                .for_each(|blob| drop(changed.blobs.files.insert(blob_name(&hash(blob)), blob.clone())));
            changed.entries[place] = Entry::Patch(Box::new(new));
            forged.push((name, format!("entry {place}, {what}"), changed));
        };
        for number in 0..patch.certificates.len() {
            let mut new = patch.clone();
            new.certificates.remove(number);
            change("certificate forged away", format!("number {number}"), new, &[]);
            let mut new = patch.clone();
            new.certificates[number] = trivial;
            change("certificate of something trivial", format!("number {number}"), new, &trivial_blobs);
            let others = patches.iter().flat_map(|(_, other)| &other.certificates);
            if let Some(other) = others.into_iter().find(|other| other.cnf != patch.certificates[number].cnf)
            {
                let mut new = patch.clone();
                new.certificates[number] = *other;
                change("certificate of another patch", format!("number {number}"), new, &[]);
            }
        }
        let mut new = patch.clone();
        new.certificates.push(trivial);
        change("certificate too many", String::new(), new, &trivial_blobs);
        for (number, edit) in patch.edits.iter().enumerate() {
            let mut new = patch.clone();
            new.edits[number].leaf = hash(edit.leaf.as_bytes());
            change("leaf of another circuit", format!("{:?} slot {}", edit.table, edit.slot), new, &[]);
        }
        if !patch.edits.is_empty() {
            let mut new = patch.clone();
            new.edits.clear();
            change("leaf left as it was", String::new(), new, &[]);
        }
        let payload =
            read_blob(&mut history.blobs.clone(), &patch.payload).map_err(|error| error.to_string())?;
        for (what, payload) in other_payloads(&payload) {
            let new = PatchEvent { payload: hash(&payload), ..patch.clone() };
            change("payload changed", what.to_owned(), new, &[payload]);
        }
        if let Some((_, other)) = patches
            .iter()
            .find(|(_, other)| other.status == PatchStatus::Applied && other.payload != patch.payload)
        {
            let new = PatchEvent { payload: other.payload, ..patch.clone() };
            change("payload changed", "another patch's".to_owned(), new, &[]);
        }
        let new = PatchEvent { payload: hash(b"nothing"), ..patch.clone() };
        change("payload changed", "nothing".to_owned(), new, &[]);
    }
    forged.extend(forged_tables(history));
    forged.extend(forged_units(history));
    Ok(forged)
}

/// Payloads that say something else about structure than the honest one.
fn other_payloads(payload: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let Ok(honest) = Payload::from_bytes(payload) else { return Vec::new() };
    let mut others = Vec::new();
    let Some((patch, grounds)) = &honest.accepted else { return others };
    let mut with = |what, patch: Patch, grounds| {
        let changed = Payload { accepted: Some((patch, grounds)), ..honest.clone() };
        others.push((what, changed.to_bytes()));
    };
    let changed = |change: Change| Patch { change, ..patch.clone() };
    with("its parent", Patch { parent: hash(patch.parent.as_bytes()), ..patch.clone() }, grounds.clone());
    with("its kind", changed(Change::Retire { slot: 1 }), grounds.clone());
    let mut shape = grounds.clone();
    if let Some(shape) = &mut shape.shape {
        shape.actions += 1;
    }
    with("its world", patch.clone(), shape);
    match &patch.change {
        Change::Synthesize { policy, safe, examples } => {
            let (safe, examples) = (*safe, examples.clone());
            let constant = Policy::constant(policy.actions(), 0);
            if constant != *policy {
                with(
                    "its circuit",
                    changed(Change::Synthesize { policy: constant, safe, examples: examples.clone() }),
                    grounds.clone(),
                );
            }
            if examples.iter().flat_map(|example| &example.steps).any(|step| step.wanted.is_some()) {
                let policy = policy.clone();
                with(
                    "its claims",
                    changed(Change::Synthesize { policy, safe, examples: Vec::new() }),
                    grounds.clone(),
                );
            }
            with(
                "its safety tag",
                changed(Change::Synthesize { policy: policy.clone(), safe: !safe, examples }),
                grounds.clone(),
            );
        }
        Change::Divide { .. } => {
            with("its contexts", changed(Change::Forget { context: 0, before: 1 }), grounds.clone())
        }
        _ => {}
    }
    others
}

/// Tables that change without a patch, and tables at the start that the configuration does not say.
fn forged_tables(history: &History) -> Forged {
    let mut forged = Forged::new();
    for (place, entry) in history.entries.iter().enumerate() {
        let Entry::Tables { edits, .. } = entry else { continue };
        for table in [Table::Expert, Table::Teach] {
            let mut changed = history.clone();
            let Entry::Tables { edits: new, .. } = &mut changed.entries[place] else { continue };
            match edits.iter().position(|edit| edit.table == table) {
                Some(number) => new[number].leaf = hash(b"another"),
                None if table == Table::Expert => {
                    new.insert(0, bem_ledger::entry::TableEdit { table, slot: 1, leaf: hash(b"another") });
                }
                None => continue,
            }
            // What a teacher takes up as it begins is not derived again without playing.
            if table == Table::Expert || place == 1 {
                forged.push(("tables without a patch", format!("entry {place}, {table:?}"), changed));
            }
        }
    }
    forged
}

/// Units that are left out although their family goes on.
fn forged_units(history: &History) -> Forged {
    let bounds = |wanted: u16| {
        history.entries.iter().enumerate().filter_map(move |(place, entry)| match entry {
            Entry::Event { code, values, .. } if *code == wanted => Some((place, values.first().copied())),
            _ => None,
        })
    };
    let begins: Vec<_> = bounds(event_code::UNIT_BEGIN).collect();
    let mut forged = Forged::new();
    for ((begin, family), (end, _)) in begins.iter().zip(bounds(event_code::UNIT_END)) {
        if begins.iter().any(|(place, other)| begin < place && other == family) {
            let mut without = history.clone();
            without.entries.drain(*begin..=end);
            forged.push(("unit forged away", format!("entries {begin} to {end}"), without));
        }
    }
    forged
}

/// A certificate that holds, of a formula that says nothing.
fn trivial_certificate() -> (Certificate, Vec<Vec<u8>>) {
    let cnf = b"p cnf 1 2\n1 0\n-1 0\n".to_vec();
    let formula = Cnf::from_dimacs(&cnf).expect("the text above is DIMACS").digest();
    let mut writer = Writer::new();
    Proof { formula, assumptions: Vec::new(), proof: b"3 0 1 2 0\n".to_vec() }.encode(&mut writer);
    let proof = writer.into_bytes();
    let certificate = Certificate { verdict: Verdict::Holds, cnf: hash(&cnf), proof: hash(&proof) };
    (certificate, vec![cnf, proof])
}
