//! What an entry says, against everything before it: table roots, conditions, certificates, and content that it names.
//!
//! Clauses: LOG-2, LOG-3, SCC-3, SCC-4.

use super::{Auditor, Marker, Rebuilt, evidence};
use crate::entry::{
    Artefact, Certificate, Entry, PatchEvent, PatchStatus, Proven, Table, TableEdit, TableRoots, Verdict,
    event_code,
};
use crate::error::LedgerError;
use crate::log::read_blob;
use crate::store::Store;
use bem_base::digest::Digest;

impl<S: Store> Auditor<'_, S> {
    /// Asks what must have been shown for an entry. A blob that cannot be had is a reason like every other.
    pub(super) fn rebuild(&mut self, entry: &Entry) -> Result<Rebuilt, LedgerError> {
        let store = &mut *self.store;
        let mut read = |digest: &Digest| read_blob(store, digest).map_err(|error| error.to_string());
        let rebuilt = self.conditions.rebuild(entry, &mut read);
        let rebuilt = rebuilt.map_err(|reason| LedgerError::broken(self.frontier.size(), reason))?;
        self.rebuilt += rebuilt.formulas.len() as u64 + rebuilt.checks;
        Ok(rebuilt)
    }

    pub(super) fn take_meaning(&mut self, entry: &Entry, rebuilt: &Rebuilt) -> Result<(), LedgerError> {
        match entry {
            Entry::Patch(patch) => self.take_patch(patch, rebuilt),
            Entry::Tables { edits, roots, .. } => self.replay_edits(edits, roots),
            Entry::Snapshot { manifest, size_bytes, kept, .. } => {
                let marker =
                    Marker { manifest: *manifest, size_bytes: *size_bytes, head: self.head, kept: *kept };
                self.markers.insert(self.frontier.size(), marker);
                Ok(())
            }
            Entry::ToolCall(call) => self.must_have(&[call.request_digest, call.response_digest]),
            Entry::HumanTask(task) => self.must_have(&[task.context, task.answer]),
            Entry::Event { code: event_code::ARTEFACT, payload, .. } => {
                let artefact = Artefact::from_bytes(payload);
                let artefact = artefact.map_err(|error| self.broken(format!("an artefact: {error}")))?;
                self.artefacts.insert(artefact.name, artefact.digest);
                Ok(())
            }
            Entry::Event { code: event_code::PROVEN, payload, .. } => self.take_proven(payload, rebuilt),
            Entry::Event { code: event_code::UNIT_BEGIN, .. } => {
                self.played = 0;
                Ok(())
            }
            Entry::Play(block) if block.first_step != self.played => {
                Err(self
                    .broken(format!("what was played goes on at {}, not {}", self.played, block.first_step)))
            }
            Entry::Play(block) => {
                self.played = block.end();
                self.steps += u64::from(block.steps);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Blobs that an entry names; the zero digest names none.
    fn must_have(&mut self, digests: &[Digest]) -> Result<(), LedgerError> {
        let named = digests.iter().filter(|digest| **digest != Digest::default());
        named.into_iter().try_for_each(|digest| self.evidence(digest).map(drop))
    }

    /// Programs of the control core: they are there, and each condition of them has its proof.
    fn take_proven(&mut self, payload: &[u8], rebuilt: &Rebuilt) -> Result<(), LedgerError> {
        let proven = Proven::from_bytes(payload);
        let Proven { programs, certificates } =
            proven.map_err(|error| self.broken(format!("the proof of a program: {error}")))?;
        self.must_have(&programs)?;
        let certificates: Vec<Certificate> = certificates
            .into_iter()
            .map(|(cnf, proof)| Certificate { verdict: Verdict::Holds, cnf, proof })
            .collect();
        self.compare_conditions("program", &certificates, rebuilt)?;
        certificates.iter().try_for_each(|certificate| self.check_certificate(certificate))
    }

    fn take_patch(&mut self, patch: &PatchEvent, rebuilt: &Rebuilt) -> Result<(), LedgerError> {
        if patch.roots_before != self.tables.roots() {
            return Err(self.broken("the patch starts from table roots that are not the present ones"));
        }
        self.replay_edits(&patch.edits, &patch.roots_after)?;
        let accepted = matches!(patch.status, PatchStatus::Verified | PatchStatus::Applied);
        if accepted {
            let payload = self.evidence(&patch.payload)?.len();
            self.sizes.payloads += self.once(patch.payload, payload);
            self.compare_conditions("patch", &patch.certificates, rebuilt)?;
        }
        for certificate in &patch.certificates {
            if accepted && matches!(certificate.verdict, Verdict::Refuted | Verdict::Undecided) {
                return Err(self.broken("a patch was let in although its condition was not proven"));
            }
            self.check_certificate(certificate)?;
        }
        Ok(())
    }

    /// A proof counts only if it is of a condition that follows from the patch or program, and every condition needs one.
    fn compare_conditions(
        &self,
        what: &str,
        certificates: &[Certificate],
        rebuilt: &Rebuilt,
    ) -> Result<(), LedgerError> {
        let holds = |certificate: &&Certificate| certificate.verdict == Verdict::Holds;
        let mut proven = certificates.iter().filter(holds);
        for (place, wanted) in rebuilt.formulas.iter().enumerate() {
            match proven.next() {
                None => {
                    return Err(self.broken(format!("condition {place} of the {what} has no certificate")));
                }
                Some(found) if found.cnf != *wanted => {
                    let reason = format!(
                        "certificate {place} is not about the {what}: its clauses are {}, the {what}'s {wanted}",
                        found.cnf
                    );
                    return Err(self.broken(reason));
                }
                Some(_) => {}
            }
        }
        match proven.next() {
            None => Ok(()),
            Some(extra) => {
                Err(self.broken(format!("a certificate that the {what} has no condition for: {}", extra.cnf)))
            }
        }
    }

    fn replay_edits(&mut self, edits: &[TableEdit], roots: &TableRoots) -> Result<(), LedgerError> {
        edits.iter().for_each(|edit| self.tables.set(edit));
        if self.tables.roots() != *roots {
            return Err(self.broken("the table roots do not follow from the edits"));
        }
        edits
            .iter()
            .filter(|edit| edit.table == Table::Program)
            .try_for_each(|edit| self.check_program(edit.slot, &edit.leaf))
    }

    /// What a history is played from is kept with it: CFG begins with the configuration that genesis names, and
    /// whatever it names is there.
    fn check_program(&mut self, slot: u32, leaf: &Digest) -> Result<(), LedgerError> {
        let configuration = self.genesis.as_ref().map(|genesis| genesis.configuration);
        if slot == 0 && configuration != Some(*leaf) {
            return Err(self.broken("CFG holds another configuration than genesis names"));
        }
        if *leaf != Digest::default() {
            read_blob(self.store, leaf).map_err(|error| self.broken(format!("CFG: {error}")))?;
        }
        Ok(())
    }

    fn check_certificate(&mut self, certificate: &Certificate) -> Result<(), LedgerError> {
        // What was accepted as a model has not been accepted as a proof.
        let key = (certificate.verdict as u8, certificate.cnf, certificate.proof);
        if certificate.verdict == Verdict::Undecided || self.certificates_accepted.contains(&key) {
            return Ok(());
        }
        let cnf = self.evidence(&certificate.cnf)?;
        let proof = self.evidence(&certificate.proof)?;
        let checked = evidence::check(certificate.verdict, &cnf, &proof);
        checked.map_err(|reason| self.broken(format!("certificate {}: {reason}", certificate.proof)))?;
        self.sizes.certificates += self.once(certificate.cnf, cnf.len());
        self.sizes.certificates += self.once(certificate.proof, proof.len());
        self.certificates += 1;
        self.certificates_accepted.insert(key);
        Ok(())
    }

    /// The bytes of a blob the first time it is met.
    fn once(&mut self, digest: Digest, length: usize) -> u64 {
        if self.sized.insert(digest) { length as u64 } else { 0 }
    }

    fn evidence(&mut self, digest: &Digest) -> Result<Vec<u8>, LedgerError> {
        read_blob(self.store, digest).map_err(|error| self.broken(format!("evidence: {error}")))
    }
}
