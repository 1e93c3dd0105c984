//! What every history of patches has in common, a run's and a service's: where entries go, and how a decision about a patch
//! becomes one. Must not know units, worlds or whether entries are written or compared. Clauses: LOG-1, SCC-4.

use crate::chronicle::PatchNote;
use bem_base::digest::{Digest, hash};
use bem_base::ids::ObjectId;
use bem_evolve::rebuild::{EXPERT_SLOTS, Twin};
use bem_ledger::LedgerError;
use bem_ledger::entry::{
    Certificate, Entry, PatchEvent, PatchKind, PatchStatus, TableEdit, TableRoots, Verdict,
};

/// Where entries go: to a log, or to a comparison with what is recorded.
pub trait Sink {
    /// Takes the next entry.
    fn append(&mut self, entry: &Entry) -> Result<(), LedgerError>;
    /// Takes content that entries name.
    fn put_blob(&mut self, bytes: &[u8]) -> Result<Digest, LedgerError>;
}

/// Keeps the one entry that a boot writes.
#[derive(Debug, Default)]
pub struct Kept(pub Option<Entry>);

impl Sink for Kept {
    fn append(&mut self, entry: &Entry) -> Result<(), LedgerError> {
        self.0 = Some(entry.clone());
        Ok(())
    }

    fn put_blob(&mut self, bytes: &[u8]) -> Result<Digest, LedgerError> {
        Ok(hash(bytes))
    }
}

/// A decision about a patch whose content is stored, before its place in the history is known.
#[derive(Debug)]
pub struct StoredPatch<'n> {
    note: &'n PatchNote,
    certificates: Vec<Certificate>,
    payload: Digest,
}

/// The place of a patch in a history, and what it does to the tables.
#[derive(Debug)]
pub struct Place {
    /// Its number.
    pub serial: u64,
    /// What it is about.
    pub target: ObjectId,
    /// Roots before it.
    pub roots_before: TableRoots,
    /// Roots after it.
    pub roots_after: TableRoots,
    /// What it changes in the tables.
    pub edits: Vec<TableEdit>,
}

impl<'n> StoredPatch<'n> {
    /// Stores what the entry will name.
    pub fn store(
        sink: &mut (impl Sink + ?Sized),
        note: &'n PatchNote,
    ) -> Result<StoredPatch<'n>, LedgerError> {
        let mut certificates = Vec::new();
        for (formula, proof) in &note.proofs {
            let (cnf, proof) = (sink.put_blob(formula)?, sink.put_blob(proof)?);
            certificates.push(Certificate { verdict: Verdict::Holds, cnf, proof });
        }
        // Of a refused patch the digest of the reasons is enough; what is in force can be read.
        let payload = if note.accepted { sink.put_blob(&note.payload)? } else { hash(&note.payload) };
        Ok(StoredPatch { note, certificates, payload })
    }

    /// The entry at this place.
    pub fn at(self, place: Place) -> Entry {
        let StoredPatch { note, certificates, payload } = self;
        let Place { serial, target, roots_before, roots_after, edits } = place;
        Entry::Patch(Box::new(PatchEvent {
            serial,
            step: note.step,
            kind: PatchKind::ALL[usize::from(note.kind)],
            status: status_of(note),
            target,
            score: note.score,
            payload,
            certificates,
            roots_before,
            roots_after,
            edits,
        }))
    }
}

/// What became of a patch.
fn status_of(note: &PatchNote) -> PatchStatus {
    match (note.accepted, note.rolled_back) {
        (true, _) => PatchStatus::Applied,
        (false, true) => PatchStatus::RolledBack,
        (false, false) => PatchStatus::Rejected,
    }
}

/// What EXPERT holds of a family after a decision; nothing if structure stays as it is.
pub fn structure_after(twin: &mut Twin, note: &PatchNote) -> Option<[Digest; EXPERT_SLOTS]> {
    match status_of(note) {
        PatchStatus::Applied => {
            let (patch, _) = note.accepted().expect("a patch in force is in its own note");
            twin.follow(&patch).expect("the learner's tables have followed it");
        }
        PatchStatus::RolledBack => {
            let kind = bem_evolve::patch::PatchKind::ALL[usize::from(note.kind)];
            let is_taken_back = twin.take_back(kind).expect("the learner has taken it back");
            assert!(is_taken_back, "only the latest patch is taken back");
        }
        PatchStatus::Pending | PatchStatus::Verified | PatchStatus::Rejected => return None,
    }
    Some(twin.leaves())
}
