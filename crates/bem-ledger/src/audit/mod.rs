//! The audit: everything is derived again from the entries and compared with everything that is stored.
//!
//! Nothing read is compared with itself: heads, roots, segment headers and table roots are recomputed from the entries,
//! the checkpoint's signature is checked against the key in genesis, every certificate is checked again by the proof
//! checker, every snapshot against its marker. What a patch in force had to prove is rebuilt from the patch by
//! [`Conditions`]: its certificates must be about those formulas and no others. Everything that the history names must be
//! there. Without a checkpoint from outside the answer is never better than `unanchored`, because a rollback to an older
//! valid state leaves no trace inside. Must not know the engine: what entries mean to it stands behind the trait.
//! Clauses: LOG-2, LOG-3, LOG-4, SCC-3, SCC-4; decisions D-17, D-20.

mod evidence;
mod files;
mod meaning;

use crate::archive::Archived;
use crate::chain::ChainHead;
use crate::checkpoint::{Checkpoint, SignedCheckpoint};
use crate::entry::{Entry, Genesis, KINDS, TableEdit};
use crate::error::{LedgerError, StoreError};
use crate::limits::CHECKPOINT_BYTES_MAX;
use crate::log::{CHECKPOINT_NAME, read_blob};

use crate::merkle::{Frontier, leaf_hash};
use crate::reader::Gap;
use crate::segment::{Frame, LENGTH_BYTES, SegmentHeader, SegmentReader, list_segments, segment_name};
use crate::store::Store;
use crate::tables::Tables;
use bem_base::digest::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// What entries mean to the machine that wrote them, as far as it can be worked out again from the history alone.
///
/// The audit hands over every entry in order, genesis first. `read` gives the blob with a digest, or says why not; what it
/// has given counts as present.
pub trait Conditions {
    /// What must have been shown for this entry; a reason if it cannot be what it says.
    fn rebuild(
        &mut self,
        entry: &Entry,
        read: &mut dyn FnMut(&Digest) -> Result<Vec<u8>, String>,
    ) -> Result<Rebuilt, String>;

    /// Takes up the state that was saved when the entries before this one were archived; the content of every table there. By
    /// default no history may lack entries.
    fn resume(&mut self, state: &[u8]) -> Result<Vec<TableEdit>, String> {
        let _ = state;
        Err("entries are missing, and a history of this kind is not archived".to_string())
    }
}

/// The conditions of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Digests of the clauses (DIMACS) that must be proven to have no model, in order: one certificate each.
    pub formulas: Vec<Digest>,
    /// Conditions that were settled by trying every case, or by comparing, and were so again.
    pub checks: u64,
}

/// The answer of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditVerdict {
    /// Everything fits, and the history extends a checkpoint from outside.
    Ok,
    /// Everything fits, but nothing from outside says that it is the newest history.
    Unanchored,
    /// Something does not fit.
    Broken {
        /// The entry at which it shows.
        entry: u64,
        /// What does not fit.
        reason: String,
    },
}

/// What an audit saw. After `Broken` the counts end where it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// The answer.
    pub verdict: AuditVerdict,
    /// Entries derived and compared.
    pub entries: u64,
    /// Entries of each kind.
    pub kinds: [u64; KINDS],
    /// Head of the chain over them.
    pub head: Digest,
    /// Root of the tree over them.
    pub root: Digest,
    /// Who this is.
    pub genesis: Option<Genesis>,
    /// Entries under the checkpoint from outside.
    pub anchored_entries: u64,
    /// Certificates checked again.
    pub certificates: u64,
    /// Conditions of patches in force that were rebuilt from the patch.
    pub conditions: u64,
    /// Snapshot files checked.
    pub snapshots: u64,
    /// Content files checked.
    pub blobs: u64,
    /// Bytes after the newest checkpoint: never acknowledged, not vouched for, dropped by recovery.
    pub tail_bytes: u64,
    /// Steps in the blocks of what was played.
    pub steps: u64,
    /// Files beside the ledger that the history names: the newest digest of each.
    pub artefacts: BTreeMap<String, Digest>,
    /// Bytes that all of this takes.
    pub sizes: Sizes,
    /// Entries that are archived, first and end; what they meant was audited before, and follows from none that are here.
    pub archived: Option<(u64, u64)>,
}

/// Bytes of a ledger, by what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Entries of each kind, with their frames in the segments.
    pub entries: [u64; KINDS],
    /// Payloads of patches in force.
    pub payloads: u64,
    /// Formulas and the evidence about them, each once.
    pub certificates: u64,
    /// Content files, payloads and certificates included.
    pub blobs: u64,
    /// Snapshot files that are there.
    pub snapshots: u64,
}

impl Sizes {
    /// What grows with the history: entries and content. Of snapshots a fixed number is kept.
    pub fn history(&self) -> u64 {
        self.entries.iter().sum::<u64>() + self.blobs
    }
}

/// Audits a ledger. An error means that the store could not be read; everything else is a verdict.
///
/// `anchor` is a checkpoint kept outside, which whoever calls has read: one that is none is bad input, not a broken history.
pub fn audit<S: Store>(
    store: &mut S,
    anchor: Option<&SignedCheckpoint>,
    conditions: &mut dyn Conditions,
) -> Result<AuditReport, StoreError> {
    let mut auditor = Auditor::new(store, conditions);
    let verdict = match auditor.run(anchor) {
        Ok(verdict) => verdict,
        Err(LedgerError::Store(error @ StoreError::Failed { .. })) => return Err(error),
        Err(LedgerError::Broken { entry, reason }) => AuditVerdict::Broken { entry, reason },
        Err(other) => AuditVerdict::Broken { entry: auditor.frontier.size(), reason: other.to_string() },
    };
    Ok(auditor.report(verdict))
}

struct Marker {
    manifest: Digest,
    size_bytes: u64,
    head: ChainHead,
    kept: u8,
}

struct Auditor<'a, S> {
    store: &'a mut S,
    conditions: &'a mut dyn Conditions,
    frontier: Frontier,
    head: ChainHead,
    kinds: [u64; KINDS],
    genesis: Option<Genesis>,
    tables: Tables,
    markers: BTreeMap<u64, Marker>,
    certificates_accepted: BTreeSet<(u8, Digest, Digest)>,
    certificates: u64,
    rebuilt: u64,
    snapshots: u64,
    blobs: u64,
    artefacts: BTreeMap<String, Digest>,
    sizes: Sizes,
    /// Blobs that are in the sizes of certificates or payloads.
    sized: BTreeSet<Digest>,
    tail_bytes: u64,
    anchored_entries: u64,
    /// Steps that the learner at work has taken.
    played: u64,
    steps: u64,
    gap: Option<Gap>,
    /// Entries behind a gap are only chained until one says that the gap is archived, and what the state was.
    is_blind: bool,
}

impl<'a, S: Store> Auditor<'a, S> {
    fn new(store: &'a mut S, conditions: &'a mut dyn Conditions) -> Auditor<'a, S> {
        Auditor {
            store,
            conditions,
            frontier: Frontier::new(),
            head: ChainHead::start(),
            kinds: [0; KINDS],
            genesis: None,
            tables: Tables::new(),
            markers: BTreeMap::new(),
            certificates_accepted: BTreeSet::new(),
            certificates: 0,
            rebuilt: 0,
            snapshots: 0,
            blobs: 0,
            artefacts: BTreeMap::new(),
            sizes: Sizes::default(),
            sized: BTreeSet::new(),
            tail_bytes: 0,
            anchored_entries: 0,
            played: 0,
            steps: 0,
            gap: None,
            is_blind: false,
        }
    }

    fn report(self, verdict: AuditVerdict) -> AuditReport {
        AuditReport {
            verdict,
            entries: self.frontier.size(),
            kinds: self.kinds,
            head: self.head.digest(),
            root: self.frontier.root(),
            genesis: self.genesis,
            anchored_entries: self.anchored_entries,
            certificates: self.certificates,
            conditions: self.rebuilt,
            snapshots: self.snapshots,
            blobs: self.blobs,
            tail_bytes: self.tail_bytes,
            steps: self.steps,
            artefacts: self.artefacts,
            sizes: self.sizes,
            archived: self.gap.map(|gap| (gap.first, gap.end)),
        }
    }

    fn run(&mut self, anchor: Option<&SignedCheckpoint>) -> Result<AuditVerdict, LedgerError> {
        let bytes = match self.store.read_all(CHECKPOINT_NAME, CHECKPOINT_BYTES_MAX as u64) {
            Err(StoreError::Missing { .. }) => return Err(self.broken("the checkpoint is missing")),
            other => other?,
        };
        let signed = SignedCheckpoint::parse(&bytes)?;
        if signed.signatures.len() != 1 {
            return Err(self.broken("the checkpoint does not have exactly one signature"));
        }
        if signed.checkpoint.size == 0 {
            return Err(self.broken("a checkpoint of no entries"));
        }
        self.walk(&signed, anchor)?;
        if let Some(gap) = self.gap.filter(|_| self.is_blind) {
            return Err(gap.unnamed());
        }
        self.check_snapshots()?;
        self.check_blobs()?;
        match anchor {
            None => Ok(AuditVerdict::Unanchored),
            // What is archived cannot be held against a checkpoint of its time.
            Some(anchor)
                if self
                    .gap
                    .is_some_and(|gap| (gap.first + 1..=gap.end).contains(&anchor.checkpoint.size)) =>
            {
                Ok(AuditVerdict::Unanchored)
            }
            Some(anchor) => {
                self.anchored_entries = anchor.checkpoint.size;
                Ok(AuditVerdict::Ok)
            }
        }
    }

    /// Derives the whole acknowledged history and compares it with both checkpoints on the way.
    fn walk(
        &mut self,
        signed: &SignedCheckpoint,
        anchor: Option<&SignedCheckpoint>,
    ) -> Result<(), LedgerError> {
        let size = signed.checkpoint.size;
        if let Some(anchor) = anchor {
            self.check_anchor_fits(&anchor.checkpoint, &signed.checkpoint)?;
        }
        let segments = list_segments(self.store)?;
        let mut number = 0;
        while self.frontier.size() < size {
            if !segments.contains(&number) {
                number = self.pass_gap(number, &segments)?;
            }
            self.walk_segment(number, signed, anchor)?;
            number += 1;
        }
        if self.frontier.root() != signed.checkpoint.root || self.head != signed.checkpoint.head {
            return Err(LedgerError::broken(size - 1, "the entries do not hash to the signed checkpoint"));
        }
        let later = segments.into_iter().filter(|later| number <= *later);
        for later in later {
            self.tail_bytes += self.store.length(&segment_name(later))?;
        }
        Ok(())
    }

    /// Goes on behind segments that are not there, as the first one behind them says. That it says the truth shows at the end:
    /// its head and its tree must lead to the signed checkpoint.
    fn pass_gap(&mut self, number: u32, segments: &[u32]) -> Result<u32, LedgerError> {
        let later = segments.iter().copied().find(|later| number < *later);
        let missing =
            || LedgerError::broken(self.frontier.size(), format!("{} is missing", segment_name(number)));
        let later = later.filter(|_| self.gap.is_none() && 0 < number).ok_or_else(missing)?;
        let reader = SegmentReader::open(self.store, later)?;
        let SegmentHeader { head, frontier, .. } = reader.header().clone();
        if frontier.size() <= self.frontier.size() {
            return Err(missing());
        }
        self.gap = Some(Gap { first: self.frontier.size(), end: frontier.size(), head });
        (self.head, self.frontier, self.is_blind) = (head, frontier, true);
        Ok(later)
    }

    /// An entry behind a gap: the one that names the gap ends the blindness.
    fn take_blind(&mut self, entry: &Entry) -> Result<(), LedgerError> {
        if let Entry::Snapshot { .. } = entry {
            return self.take_meaning(entry, &Rebuilt::default());
        }
        let (Some(archived), Some(gap)) = (Archived::of(entry), self.gap) else { return Ok(()) };
        if !archived.covers(gap) {
            return Ok(());
        }
        let state = read_blob(self.store, &archived.state);
        let state = state.map_err(|error| self.broken(format!("the state at the archive: {error}")))?;
        let edits = self.conditions.resume(&state).map_err(|reason| self.broken(reason))?;
        self.tables = Tables::new();
        edits.iter().for_each(|edit| self.tables.set(edit));
        self.is_blind = false;
        Ok(())
    }

    fn check_anchor_fits(&self, anchor: &Checkpoint, signed: &Checkpoint) -> Result<(), LedgerError> {
        if anchor.instance != signed.instance {
            return Err(self.broken("the outside checkpoint is of another instance"));
        }
        if signed.size < anchor.size {
            let reason = format!(
                "the history was rolled back: {} entries here, {} under the outside checkpoint",
                signed.size, anchor.size
            );
            return Err(LedgerError::broken(signed.size, reason));
        }
        Ok(())
    }

    fn walk_segment(
        &mut self,
        number: u32,
        signed: &SignedCheckpoint,
        anchor: Option<&SignedCheckpoint>,
    ) -> Result<(), LedgerError> {
        let mut reader = SegmentReader::open(self.store, number)?;
        let (head, frontier) = (self.head, self.frontier.clone());
        let instance = signed.checkpoint.instance;
        if *reader.header() != (SegmentHeader { number, instance, head, frontier }) {
            return Err(self.broken(format!("the header of {} does not fit", segment_name(number))));
        }
        while self.frontier.size() < signed.checkpoint.size {
            match reader.next(self.store)? {
                Frame::Entry(bytes) => self.take_entry(bytes, signed, anchor)?,
                Frame::End => return Ok(()),
                Frame::Torn(reason) => {
                    return Err(self.broken(format!("{}: {reason}", segment_name(number))));
                }
            }
        }
        self.tail_bytes += reader.length() - reader.position();
        Ok(())
    }

    fn take_entry(
        &mut self,
        bytes: &[u8],
        signed: &SignedCheckpoint,
        anchor: Option<&SignedCheckpoint>,
    ) -> Result<(), LedgerError> {
        let index = self.frontier.size();
        let entry =
            Entry::from_bytes(bytes).map_err(|error| self.broken(format!("it cannot be read: {error}")))?;
        match (&entry, index) {
            (Entry::Genesis(genesis), 0) => self.take_genesis(genesis, signed, anchor)?,
            (_, 0) => return Err(self.broken("the first entry is not genesis")),
            (Entry::Genesis(_), _) => return Err(self.broken("a second genesis")),
            _ => {}
        }
        if self.is_blind {
            self.take_blind(&entry)?;
        } else {
            let rebuilt = self.rebuild(&entry)?;
            self.take_meaning(&entry, &rebuilt)?;
        }
        self.kinds[usize::from(entry.kind())] += 1;
        self.sizes.entries[usize::from(entry.kind())] += (LENGTH_BYTES + bytes.len()) as u64;
        let leaf = leaf_hash(bytes);
        self.head = self.head.link(&leaf);
        self.frontier.push(leaf);
        if let Some(anchor) = anchor.filter(|anchor| anchor.checkpoint.size == index + 1)
            && (self.frontier.root() != anchor.checkpoint.root || self.head != anchor.checkpoint.head)
        {
            let reason = "the history up to here is not the one under the outside checkpoint";
            return Err(LedgerError::broken(index, reason));
        }
        Ok(())
    }

    fn take_genesis(
        &mut self,
        genesis: &Genesis,
        signed: &SignedCheckpoint,
        anchor: Option<&SignedCheckpoint>,
    ) -> Result<(), LedgerError> {
        if genesis.instance != signed.checkpoint.instance {
            return Err(self.broken("genesis is of another instance than the checkpoint"));
        }
        signed.verify(&genesis.public_key)?;
        if let Some(anchor) = anchor {
            anchor
                .verify(&genesis.public_key)
                .map_err(|error| self.broken(format!("the outside checkpoint: {error}")))?;
        }
        self.genesis = Some(genesis.clone());
        Ok(())
    }

    fn broken(&self, reason: impl Into<String>) -> LedgerError {
        LedgerError::broken(self.frontier.size(), reason)
    }
}
