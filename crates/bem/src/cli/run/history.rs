//! The history of a run on disk: ledger entries, circuits as blobs, and a snapshot after every round.

use crate::file_store::FileStore;
use anyhow::{Context, Result, bail};
use bem_base::digest::{Digest, hash_parts};
use bem_base::encode::Writer;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_engine::climb::{Climb, Track, UnitResult};
use bem_engine::learner::Decision;
use bem_ledger::checkpoint::Signer;
use bem_ledger::entry::{
    Certificate, Entry, Genesis, PatchEvent, PatchKind, PatchStatus, Table, TableEdit, Verdict,
};
use bem_ledger::log::{Log, LogOptions};
use bem_ledger::snapshot::{Part, latest_snapshot};
use bem_ledger::tables::Tables;
use std::path::{Path, PathBuf};

/// Name of the snapshot's part that holds the climb.
pub const PART: &str = "climb";
/// Event code of a finished unit.
const UNIT_EVENT: u16 = 64;
/// Event code of a history that goes on from another.
const RESTORED_EVENT: u16 = 65;

/// A run's ledger, open for writing.
pub struct History {
    log: Log<FileStore>,
    tables: Tables,
    serial: u64,
}

/// The private key lies beside the ledger, readable by the owner only; it never enters the ledger.
fn key_path(directory: &Path) -> PathBuf {
    directory.join("signing.key")
}

fn store(directory: &Path) -> Result<FileStore> {
    let ledger = directory.join("ledger");
    std::fs::create_dir_all(&ledger).with_context(|| format!("{} cannot be made", ledger.display()))?;
    FileStore::open_locked(&ledger).with_context(|| ledger.display().to_string())
}

impl History {
    /// Starts a history in an empty folder.
    pub fn create(directory: &Path, climb: &Climb) -> Result<History> {
        if directory.join("ledger").exists() {
            bail!("{} holds a run already: go on with --resume, or name another folder", directory.display());
        }
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{} cannot be made", directory.display()))?;
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).context("no randomness for a signing key")?;
        write_private(&key_path(directory), &secret)?;
        let signer = Signer::from_seed(&secret);
        let configuration = climb.snapshot();
        let genesis = Genesis {
            instance: hash_parts("bem/instance", &[&signer.public_key(), &climb.config().seed.to_le_bytes()]),
            configuration: hash_parts("bem/configuration", &[&configuration]),
            code: env!("CARGO_PKG_VERSION").to_string(),
            public_key: signer.public_key(),
        };
        let mut log = Log::create(store(directory)?, signer, &genesis, LogOptions::default())?;
        log.put_blob(&configuration)?;
        let mut history = History { log, tables: Tables::new(), serial: 0 };
        history.save(climb)?;
        Ok(history)
    }

    /// Starts a history that goes on from another run's snapshot; where it came from is its first event.
    pub fn create_from(directory: &Path, climb: &Climb, origin: &Digest) -> Result<History> {
        let mut history = History::create(directory, climb)?;
        history.adopt(climb);
        let text = format!("restored from a snapshot of history {origin}");
        history.log.append(&Entry::Event {
            step: climb.steps(),
            code: RESTORED_EVENT,
            values: Vec::new(),
            payload: text.into_bytes(),
        })?;
        let edits: Vec<TableEdit> = solved_experts(climb);
        history.log.append(&Entry::Tables { step: climb.steps(), edits, roots: history.tables.roots() })?;
        history.save(climb)?;
        Ok(history)
    }

    /// Opens a history to go on with.
    pub fn resume(directory: &Path) -> Result<(History, Climb)> {
        let key = key_path(directory);
        let secret = std::fs::read(&key)
            .with_context(|| format!("{} is no run: {}", directory.display(), key.display()))?;
        let secret: [u8; 32] =
            secret.try_into().ok().context("the signing key is damaged: it must have 32 bytes")?;
        let mut files = store(directory)?;
        let found =
            latest_snapshot(&mut files)?.snapshot.context("the run has no snapshot that can be trusted")?;
        let bytes = found.part(PART).context("the snapshot holds no climb")?;
        let climb = Climb::restore(bytes).context("the snapshot cannot be read")?;
        let (log, _) = Log::open(files, Signer::from_seed(&secret), LogOptions::default())?;
        let mut history = History { log, tables: Tables::new(), serial: 0 };
        history.adopt(&climb);
        Ok((history, climb))
    }

    /// The tables are what the patches of the climb so far made them.
    fn adopt(&mut self, climb: &Climb) {
        solved_experts(climb).iter().for_each(|edit| self.tables.set(edit));
        let climbed = climb.tracks().iter().flat_map(|track| &track.climbed);
        self.serial = climbed.map(|climbed| u64::from(climbed.applied + climbed.rejected)).sum();
    }

    /// A unit's patches, its circuit and its outcome.
    pub fn unit(&mut self, result: &UnitResult, climb: &Climb) -> Result<()> {
        let solution = &result.solution;
        let mut writer = Writer::new();
        let policy = solution.learned.agent.policy();
        policy.encode(&mut writer);
        self.log.put_blob(writer.as_bytes())?;
        let family = ObjectId::sharded(ObjectClass::TaskFamily, 0, result.unit.track as u16);
        let last_accepted = solution.decisions.iter().rposition(|decision| decision.accepted);
        for (place, decision) in solution.decisions.iter().enumerate() {
            self.serial += 1;
            let installs = Some(place) == last_accepted && solution.is_solved();
            let edits = if installs { vec![edit(result.unit.track, policy.digest())] } else { Vec::new() };
            let roots_before = self.tables.roots();
            edits.iter().for_each(|edit| self.tables.set(edit));
            let certificates = self.certificates(decision)?;
            let mut evidence = Writer::new();
            evidence.text(&decision.words);
            decision.evidence.encode(&mut evidence);
            self.log.append(&Entry::Patch(Box::new(PatchEvent {
                serial: self.serial,
                step: decision.steps,
                kind: PatchKind::Synthesize,
                status: if decision.accepted { PatchStatus::Applied } else { PatchStatus::Rejected },
                target: family,
                score: decision.evidence.lower_bound.to_raw(),
                payload: hash_parts("bem/patch", &[evidence.as_bytes()]),
                certificates,
                roots_before,
                roots_after: self.tables.roots(),
                edits,
            })))?;
        }
        let values = [
            result.unit.track as i64,
            result.unit.stage as i64,
            i64::from(result.unit.attempt),
            i64::from(solution.is_solved()),
            solution.score().map_or(0, |score| score.to_raw()),
            policy.gates() as i64,
        ];
        let text = format!("{}: {}", result.unit.task, solution.learned.words);
        let step = climb.steps();
        self.log.append(&Entry::Event {
            step,
            code: UNIT_EVENT,
            values: values.to_vec(),
            payload: text.into_bytes(),
        })?;
        Ok(())
    }

    /// Stores what was proven about a patch: formulas and certificates as blobs.
    fn certificates(&mut self, decision: &Decision) -> Result<Vec<Certificate>> {
        let mut certificates = Vec::new();
        for finding in decision.patch.iter().flat_map(|patch| patch.verified().findings()) {
            if let Some((formula, certificate)) = finding.proof() {
                let mut proof = Writer::new();
                certificate.encode(&mut proof);
                certificates.push(Certificate {
                    verdict: Verdict::Holds,
                    cnf: self.log.put_blob(formula.to_dimacs().as_bytes())?,
                    proof: self.log.put_blob(proof.as_bytes())?,
                });
            }
        }
        Ok(certificates)
    }

    /// Acknowledges everything so far and writes a snapshot.
    pub fn save(&mut self, climb: &Climb) -> Result<()> {
        let part = Part { name: PART.to_string(), bytes: climb.snapshot() };
        self.log.write_snapshot(climb.steps(), vec![part])?;
        Ok(())
    }

    /// The head of the chain, acknowledged.
    pub fn finish(mut self) -> Result<Digest> {
        self.log.commit()?;
        Ok(self.log.head().digest())
    }
}

/// The expert table as the solved rungs leave it: the highest of each family stands in its slot.
fn solved_experts(climb: &Climb) -> Vec<TableEdit> {
    let highest = |track: &Track| {
        track.climbed.iter().rev().find(|climbed| climbed.solved && 0 < climbed.applied).cloned()
    };
    let tracks = climb.tracks().iter().enumerate();
    tracks
        .filter_map(|(place, track)| highest(track).map(|climbed| edit(place, climbed.policy.digest())))
        .collect()
}

fn edit(track: usize, leaf: Digest) -> TableEdit {
    TableEdit { table: Table::Expert, slot: track as u32, leaf }
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).with_context(|| format!("{} cannot be made", path.display()))?;
    file.write_all(bytes).with_context(|| path.display().to_string())
}
