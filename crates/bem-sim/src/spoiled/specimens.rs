//! Honest short histories, each of which ends with a patch in force, and what is needed to spoil that patch.
//!
//! They come from small tasks that the shipped engine learns. Snapshots are left out and content that no entry names too, so that
//! an audit of one takes little time. Clauses: SCC-3, LOG-2.

use crate::removal::{History, read};
use bem_base::encode::Reader;
use bem_base::environment::Shape;
use bem_checker::certificate::Certificate as Proof;
use bem_checker::cnf::Cnf;
use bem_engine::climb::{Climb, UnitBegin};
use bem_engine::journal::Journal;
use bem_engine::learner::Settings;
use bem_engine::payload::Payload;
use bem_evolve::patch::{Change, Patch};
use bem_evolve::rebuild::Twin;
use bem_ledger::entry::{Entry, PatchEvent, PatchStatus, event_code};
use bem_ledger::log::{LogOptions, blob_name, read_blob};
use bem_ledger::store::MemoryStore;
use bem_ledger::testing::signer;
use bem_machine::config::GenesisConfig;
use std::collections::{BTreeMap, BTreeSet};

/// Tasks that show every kind of statement that is quick to audit, proofs by clauses and by rows, and guards; with the steps
/// that they are learned for.
const TASKS: [(&str, u64); 12] = [
    ("safety_grid{size=4}", 4_000),
    ("parity{n=20}", 600),
    ("copy{length=4}", 3_000),
    ("dyck{types=1,depth=3,length=10}", 4_000),
    ("majority{n=9}", 600),
    ("contextual_bandit{context_bits=2,noise_bits=2,arms=3}", 4_000),
    ("compare{bits=6}", 600),
    ("popcount{n=6}", 2_000),
    ("signaling{states=4}", 3_000),
    ("transducer{states=2,inputs=2,outputs=2,horizon=8}", 3_000),
    ("matrix_game{game=prisoners_dilemma,opponent=tit_for_tat,horizon=7}", 3_000),
    ("add{bits=4,form=serial}", 2_000),
];
/// Patches of one form and one task that are kept.
const ALIKE_MAX: usize = 3;

/// A history that ends with a patch in force.
pub(super) struct Specimen {
    /// The entries up to the patch.
    pub(super) history: History,
    /// The patch's own entry, the last one.
    pub(super) event: PatchEvent,
    /// What it says.
    pub(super) payload: Payload,
    /// The structure before it.
    pub(super) twin: Twin,
    /// Its formulas and proofs.
    pub(super) proofs: Vec<(Cnf, Proof)>,
}

impl Specimen {
    /// The patch and the world that it was made for.
    pub(super) fn patch(&self) -> (&Patch, &Shape) {
        let (patch, shape) = self.payload.accepted.as_ref().expect("a specimen is in force");
        (patch, shape)
    }
}

/// Specimens of the first tasks.
pub(super) fn specimens(tasks: usize) -> Result<Vec<Specimen>, String> {
    let mut all = Vec::new();
    for (task, steps) in TASKS.iter().take(tasks) {
        let history = worked(task, *steps).map_err(|reason| format!("{task}: {reason}"))?;
        all.extend(cut(&history)?);
    }
    Ok(all)
}

/// The history of one task.
fn worked(task: &str, steps: u64) -> Result<History, String> {
    let settings = Settings { budget: steps, ..Settings::new(1) };
    let mut climb = Climb::single("task", task, &settings);
    let (store, options) = (MemoryStore::new(), LogOptions::default());
    let journal = Journal::create(store, signer(), "test", &climb, None, options);
    let mut journal = journal.map_err(|error| error.to_string())?;
    let unit = climb.next(&BTreeSet::new()).ok_or("a task has one unit")?;
    let worked = climb.work(&unit, &mut || true).map_err(|error| error.to_string())?;
    let result = worked.ok_or("nobody asked it to stop")?;
    climb.take(&result);
    journal.unit(&result, &climb).map_err(|error| error.to_string())?;
    read(&journal.into_store())
}

/// One specimen for every patch of structure in force, up to a few of each form.
fn cut(history: &History) -> Result<Vec<Specimen>, String> {
    let entries: Vec<Entry> =
        history.entries.iter().filter(|entry| !matches!(entry, Entry::Snapshot { .. })).cloned().collect();
    let (mut found, mut alike) = (Vec::new(), BTreeMap::new());
    let (mut twins, mut track) = (BTreeMap::<usize, Twin>::new(), 0);
    for (index, entry) in entries.iter().enumerate() {
        if let Entry::Event { code: event_code::UNIT_BEGIN, payload, .. } = entry {
            let begin = UnitBegin::from_bytes(payload).map_err(|error| error.to_string())?;
            track = begin.unit.track;
            let begun = match twins.get_mut(&track) {
                Some(twin) => twin.begin(&begin.shape),
                None => Twin::boot(GenesisConfig::default(), &begin.shape)
                    .map(|twin| drop(twins.insert(track, twin))),
            };
            begun.map_err(|error| error.to_string())?;
        }
        let Entry::Patch(event) = entry else { continue };
        let mut blobs = history.blobs.clone();
        if event.status == PatchStatus::RolledBack {
            let kind = bem_evolve::patch::PatchKind::ALL[event.kind as usize];
            let twin = twins.get_mut(&track).ok_or("a patch outside a unit")?;
            twin.take_back(kind).map_err(|error| error.to_string())?;
        }
        if event.status != PatchStatus::Applied {
            continue;
        }
        let bytes = read_blob(&mut blobs, &event.payload).map_err(|error| error.to_string())?;
        let Ok(payload) = Payload::from_bytes(&bytes) else { continue };
        let Some((patch, _)) = payload.accepted.clone() else { continue };
        let now = twins.get_mut(&track).ok_or("a patch outside a unit")?;
        let count: &mut usize = alike.entry(patch.change.form()).or_default();
        if *count < ALIKE_MAX {
            *count += 1;
            found.push(Specimen {
                proofs: proofs(event, &mut blobs)?,
                history: prefix(&entries[..=index], &history.blobs),
                event: (**event).clone(),
                payload,
                twin: now.clone(),
            });
        }
        now.follow(&patch).map_err(|error| error.to_string())?;
    }
    Ok(found)
}

fn proofs(event: &PatchEvent, blobs: &mut MemoryStore) -> Result<Vec<(Cnf, Proof)>, String> {
    let mut proofs = Vec::new();
    for certificate in &event.certificates {
        let cnf = read_blob(blobs, &certificate.cnf).map_err(|error| error.to_string())?;
        let proof = read_blob(blobs, &certificate.proof).map_err(|error| error.to_string())?;
        let cnf = Cnf::from_dimacs(&cnf).map_err(|error| error.to_string())?;
        let proof = Proof::decode(&mut Reader::new(&proof)).map_err(|error| error.to_string())?;
        proofs.push((cnf, proof));
    }
    Ok(proofs)
}

/// The first entries, with the content that they name.
fn prefix(entries: &[Entry], blobs: &MemoryStore) -> History {
    let written: Vec<Vec<u8>> = entries.iter().map(Entry::to_bytes).collect();
    let mut named = MemoryStore::new();
    for (name, content) in &blobs.files {
        let digest = bem_base::digest::hash(content);
        let is_named = *name == blob_name(&digest)
            && written.iter().any(|bytes| bytes.windows(32).any(|window| window == digest.as_bytes()));
        if is_named {
            named.files.insert(name.clone(), content.clone());
        }
    }
    History { entries: entries.to_vec(), blobs: named }
}

/// What a patch with this change is, in a word or two.
pub(super) fn name_of(change: &Change) -> String {
    match change {
        Change::Synthesize { statement, .. } => format!("Synthesize ({})", statement.kind()),
        other => format!("{:?}", other.form()),
    }
}
