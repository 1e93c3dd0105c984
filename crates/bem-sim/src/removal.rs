//! Everything that a run's history names, taken away piece by piece, and histories forged by somebody who has the key.
//!
//! Without the key an entry, a blob or a snapshot is removed and the rest is left. With the key the whole history is written
//! anew: chain, tree, table roots and snapshots fit, so that only what entries *mean* can give the forgery away. Every
//! one of them must be refused, and the honest history, written anew in the same way, accepted.
//! Clauses: SCC-3, SCC-4, LOG-2, LOG-3, LOG-4.

use bem_base::digest::hash;
use bem_base::encode::Writer;
use bem_base::environment::Shape;
use bem_checker::certificate::Certificate as Proof;
use bem_checker::cnf::Cnf;
use bem_engine::journal::RunConditions;
use bem_engine::payload::Payload;
use bem_evolve::patch::{Change, Patch};
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::checkpoint::{SignedCheckpoint, Signer};
use bem_ledger::entry::{
    Certificate, Entry, PatchEvent, PatchStatus, Table, TableEdit, UnitEnd, Verdict, event_code,
};
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

/// A history as its entries, with what they name.
#[derive(Clone)]
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
    pub(crate) blobs: MemoryStore,
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
    let mut court = Court { signer, anchor, stride, seen: BTreeMap::new(), refused: Refused::new() };
    without_key(honest, &mut court)?;
    forge_patches(&history, &mut court)?;
    forge_tables(&history, &mut court)?;
    forge_units(&history, &mut court)?;
    cut_tails(&history, &mut court)?;
    Ok(court.refused)
}

/// Judges attempts one at a time, and counts.
struct Court<'a> {
    signer: &'a Signer,
    anchor: SignedCheckpoint,
    stride: usize,
    seen: BTreeMap<&'static str, usize>,
    refused: Refused,
}

impl Court<'_> {
    /// Files that must be refused; only those whose turn it is are made.
    fn files(
        &mut self,
        name: &'static str,
        what: &str,
        make: impl FnOnce(&Signer) -> Result<MemoryStore, String>,
    ) -> Result<(), String> {
        // Counted by name, so that a sample has some of each.
        let seen = self.seen.entry(name).or_default();
        *seen += 1;
        if !(*seen - 1).is_multiple_of(self.stride) {
            return Ok(());
        }
        // A history that ends early is sound in itself: only a checkpoint from outside shows it.
        let anchor = Some(&self.anchor).filter(|_| name == "cut tail");
        let found = verdict(&make(self.signer)?, anchor)?;
        if !matches!(found, AuditVerdict::Broken { .. }) {
            return Err(format!("{name}, {what}: {found:?}"));
        }
        *self.refused.entry(name).or_default() += 1;
        Ok(())
    }

    /// The same for a history that is written anew after a change.
    fn history(
        &mut self,
        name: &'static str,
        what: &str,
        honest: &History,
        change: impl FnOnce(&mut History),
    ) -> Result<(), String> {
        self.files(name, what, |signer| {
            let mut forged = honest.clone();
            change(&mut forged);
            write(&forged, signer)
        })
    }
}

fn verdict(store: &MemoryStore, anchor: Option<&SignedCheckpoint>) -> Result<AuditVerdict, String> {
    let report = audit(&mut store.clone(), anchor, &mut RunConditions::new());
    report.map(|report| report.verdict).map_err(|error| error.to_string())
}

/// Every file, and every entry, removed on its own.
fn without_key(honest: &MemoryStore, court: &mut Court<'_>) -> Result<(), String> {
    for (name, content) in &honest.files {
        let kind = match name.split('-').next() {
            Some("blob") => "blob removed",
            Some("snapshot") => "snapshot removed",
            Some("segment") => "segment removed",
            _ => "checkpoint removed",
        };
        court.files(kind, name, |_| {
            let mut store = honest.clone();
            store.files.remove(name);
            Ok(store)
        })?;
        let Some((_, mut start)) = segment_number(name).and_then(|_| SegmentHeader::decode(content).ok())
        else {
            continue;
        };
        while let Some(length) = content.get(start..start + 4) {
            let end = start + 4 + u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
            court.files("entry removed", &format!("{name} at byte {start}"), |_| {
                let mut store = honest.clone();
                store.files.insert(name.clone(), [&content[..start], &content[end..]].concat());
                Ok(store)
            })?;
            start = end;
        }
    }
    court.files("snapshot removed", "all of them", |_| {
        let mut store = honest.clone();
        store.files.retain(|name, _| !name.starts_with("snapshot"));
        Ok(store)
    })
}

pub(crate) fn read(store: &MemoryStore) -> Result<History, String> {
    let mut blobs = store.clone();
    let mut reader = EntryReader::open(&mut blobs).map_err(|error| error.to_string())?;
    let mut entries = Vec::new();
    while let Some(bytes) = reader.next(&mut blobs).map_err(|error| error.to_string())? {
        entries.push(Entry::from_bytes(bytes).map_err(|error| error.to_string())?);
    }
    Ok(History { entries, blobs })
}

/// Writes a history anew with the run's own key: roots follow from edits, snapshots are taken at the new heads.
pub(crate) fn write(history: &History, signer: &Signer) -> Result<MemoryStore, String> {
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

/// Histories that end early, at every entry after the first snapshot.
fn cut_tails(history: &History, court: &mut Court<'_>) -> Result<(), String> {
    (3..history.entries.len()).try_for_each(|length| {
        let what = format!("after {length} entries");
        court.history("cut tail", &what, history, |forged| forged.entries.truncate(length))
    })
}

/// One patch of a history, and where it stands.
struct Place<'a> {
    history: &'a History,
    index: usize,
    patch: &'a PatchEvent,
}

impl Place<'_> {
    /// The history with another patch in this place, and with these blobs.
    fn forge(
        &self,
        court: &mut Court<'_>,
        name: &'static str,
        what: &str,
        blobs: &[Vec<u8>],
        change: impl FnOnce(&mut PatchEvent),
    ) -> Result<(), String> {
        court.history(name, &format!("entry {}, {what}", self.index), self.history, |forged| {
            let named = blobs.iter().map(|blob| (blob_name(&hash(blob)), blob.clone()));
            forged.blobs.files.extend(named);
            let mut patch = self.patch.clone();
            change(&mut patch);
            forged.entries[self.index] = Entry::Patch(Box::new(patch));
        })
    }

    fn certificates(&self, others: &[&PatchEvent], court: &mut Court<'_>) -> Result<(), String> {
        let (trivial, blobs) = trivial_certificate();
        for (number, certificate) in self.patch.certificates.iter().enumerate() {
            let what = format!("number {number}");
            self.forge(court, "certificate forged away", &what, &[], |patch| {
                patch.certificates.remove(number);
            })?;
            self.forge(court, "certificate of something trivial", &what, &blobs, |patch| {
                patch.certificates[number] = trivial;
            })?;
            let mut others = others.iter().flat_map(|other| &other.certificates);
            if let Some(other) = others.find(|other| other.cnf != certificate.cnf) {
                self.forge(court, "certificate of another patch", &what, &[], |patch| {
                    patch.certificates[number] = *other;
                })?;
            }
        }
        self.forge(court, "certificate too many", "", &blobs, |patch| patch.certificates.push(trivial))
    }

    fn leaves(&self, court: &mut Court<'_>) -> Result<(), String> {
        for (number, edit) in self.patch.edits.iter().enumerate() {
            let what = format!("{:?} slot {}", edit.table, edit.slot);
            self.forge(court, "leaf of another circuit", &what, &[], |patch| {
                patch.edits[number].leaf = hash(edit.leaf.as_bytes());
            })?;
        }
        if self.patch.edits.is_empty() {
            return Ok(());
        }
        self.forge(court, "leaf left as it was", "", &[], |patch| patch.edits.clear())
    }

    fn payloads(&self, others: &[&PatchEvent], court: &mut Court<'_>) -> Result<(), String> {
        let payload = read_blob(&mut self.history.blobs.clone(), &self.patch.payload);
        for (what, payload) in other_payloads(&payload.map_err(|error| error.to_string())?) {
            let digest = hash(&payload);
            self.forge(court, "payload changed", what, &[payload], |patch| patch.payload = digest)?;
        }
        let mut others = others.iter().map(|other| other.payload);
        if let Some(other) = others.find(|other| *other != self.patch.payload) {
            self.forge(court, "payload changed", "another patch's", &[], |patch| patch.payload = other)?;
        }
        self.forge(court, "payload changed", "nothing", &[], |patch| patch.payload = hash(b"nothing"))
    }
}

/// Every patch but the last left out, and every one in force changed in what it rests on.
fn forge_patches(history: &History, court: &mut Court<'_>) -> Result<(), String> {
    let patch = |entry: &'_ Entry| match entry {
        Entry::Patch(patch) => Some((**patch).clone()),
        _ => None,
    };
    let patches: Vec<(usize, PatchEvent)> = history
        .entries
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| Some((index, patch(entry)?)))
        .collect();
    let is_applied = |patch: &&PatchEvent| patch.status == PatchStatus::Applied;
    let applied: Vec<&PatchEvent> = patches.iter().map(|(_, patch)| patch).filter(is_applied).collect();
    for (place, (index, patch)) in patches.iter().enumerate() {
        if place + 1 < patches.len() {
            court.history("patch forged away", &format!("entry {index}"), history, |forged| {
                forged.entries.remove(*index);
            })?;
        }
        if is_applied(&patch) {
            let place = Place { history, index: *index, patch };
            place.certificates(&applied, court)?;
            place.leaves(court)?;
            place.payloads(&applied, court)?;
        }
    }
    Ok(())
}

/// Payloads that say something else about structure than the honest one.
fn other_payloads(payload: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let Ok(honest) = Payload::from_bytes(payload) else { return Vec::new() };
    let mut others = Vec::new();
    let Some((patch, shape)) = &honest.accepted else { return others };
    let mut with = |what, patch: Patch, shape: &Shape| {
        let changed = Payload { accepted: Some((patch, shape.clone())), ..honest.clone() };
        others.push((what, changed.to_bytes()));
    };
    let changed = |change: Change| Patch { change, ..patch.clone() };
    with("its parent", Patch { parent: hash(patch.parent.as_bytes()), ..patch.clone() }, shape);
    with("its kind", changed(Change::Retire { slot: 1 }), shape);
    let wider = Shape { actions: shape.actions + 1, ..shape.clone() };
    with("its world", patch.clone(), &wider);
    match &patch.change {
        Change::Synthesize { policy, statement, examples, exceptions } => {
            let exceptions = *exceptions;
            let synthesize = |policy: Policy, exceptions: u32| {
                let (statement, examples) = (statement.clone(), examples.clone());
                changed(Change::Synthesize { policy, statement, examples, exceptions })
            };
            let constant = Policy::constant(policy.actions(), 0);
            if constant != *policy {
                with("its circuit", synthesize(constant, exceptions), shape);
            }
            // Which rows the log had is for a replay to show; in how many of them the circuit does something else is not.
            with("its exceptions", synthesize(policy.clone(), exceptions + 1), shape);
        }
        Change::Split { .. } => with("its contexts", changed(Change::Reset { bucket: 0, before: 1 }), shape),
        _ => {}
    }
    others
}

/// Tables that change without a patch, and tables at the start that the configuration does not say.
fn forge_tables(history: &History, court: &mut Court<'_>) -> Result<(), String> {
    let leaf = hash(b"another");
    for (index, entry) in history.entries.iter().enumerate() {
        let Entry::Tables { edits, .. } = entry else { continue };
        let number = |table| edits.iter().position(|edit| edit.table == table);
        court.history("tables without a patch", &format!("entry {index}, EXPERT"), history, |forged| {
            let Entry::Tables { edits, .. } = &mut forged.entries[index] else { return };
            match number(Table::Expert) {
                Some(number) => edits[number].leaf = leaf,
                None => edits.insert(0, TableEdit { table: Table::Expert, slot: 1, leaf }),
            }
        })?;
        // What a teacher takes up as it begins is not derived again without playing; the tables at the start are.
        if let Some(number) = number(Table::Teach).filter(|_| index == 1) {
            court.history("tables without a patch", &format!("entry {index}, TEACH"), history, |forged| {
                let Entry::Tables { edits, .. } = &mut forged.entries[index] else { return };
                edits[number].leaf = leaf;
            })?;
        }
    }
    Ok(())
}

/// Units that are left out although their family goes on.
fn forge_units(history: &History, court: &mut Court<'_>) -> Result<(), String> {
    let bounds = |wanted: u16| {
        let entries = history.entries.iter().enumerate();
        let bounds = entries.filter_map(move |(index, entry)| match entry {
            Entry::Event { code, values, .. } if *code == wanted => Some((index, values.first().copied())),
            _ => None,
        });
        bounds.collect::<Vec<_>>()
    };
    let (begins, ends) = (bounds(event_code::UNIT_BEGIN), bounds(event_code::UNIT_END));
    for ((begin, family), (end, _)) in begins.iter().zip(&ends) {
        if begins.iter().any(|(index, other)| begin < index && other == family) {
            let what = format!("entries {begin} to {end}");
            court.history("unit forged away", &what, history, |forged| {
                forged.entries.drain(*begin..=*end);
            })?;
        }
    }
    exchange_circuits(history, &ends.iter().map(|(end, _)| *end).collect::<Vec<_>>(), court)
}

/// Every unit is said to have ended with the circuit of the next one, whose gates are told as well.
fn exchange_circuits(history: &History, ends: &[usize], court: &mut Court<'_>) -> Result<(), String> {
    let end_of = |index: usize| match &history.entries[index] {
        Entry::Event { values, payload, .. } => Some((values.clone(), UnitEnd::from_bytes(payload).ok()?)),
        _ => None,
    };
    for (here, there) in ends.iter().zip(ends.iter().cycle().skip(1)) {
        let (Some((own, end)), Some((other, next))) = (end_of(*here), end_of(*there)) else { continue };
        if end.circuit == next.circuit {
            continue;
        }
        court.history("circuit of a unit forged", &format!("entry {here}"), history, |forged| {
            if let Entry::Event { values, payload, .. } = &mut forged.entries[*here] {
                // The last four are: solved, score, gates, steps.
                let gates = |values: &[i64]| values.len() - 2;
                values[gates(&own)] = other[gates(&other)];
                *payload = UnitEnd { circuit: next.circuit, ..end }.to_bytes();
            }
        })?;
    }
    Ok(())
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
