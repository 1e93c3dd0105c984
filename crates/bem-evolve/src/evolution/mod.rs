//! The way of patches, driven from outside: submitted, shown, measured, applied, watched, taken back.
//!
//! It owns queue, improvement state and open questions, and takes no step in any world: whoever owns the world plays the
//! pairs that it asks for, when there is budget for them. The machine that patches change is lent to every call that may
//! change it; nothing of it is copied. All calls are bounded.
//!
//! ```text
//! submit(machine, proposal)          PENDING
//! decide_at_once(machine, proposal)  the same, and decided on the evidence that it brings
//! advance(machine, ..)  -> Decided(record)   REJECTED, or APPLIED on evidence at hand
//!                       -> Measuring         VERIFIED: the candidate is in the trial seat; book_pair() until a record comes
//!                       -> Idle              the queue is empty
//! book_watch(machine, ..)            after an alarm: a record if the latest patch is taken back
//! guards()                           mean return without and with every applied patch
//! ```
//!
//! Must not know files, clocks or which world is played. Clauses: SCC-1, SCC-8, SCC-9, SCC-12, SCC-14.

mod codec;
mod record;
mod trial;
mod watching;

pub use codec::Claim;
pub use record::{Basis, Guard, PoxReading, Record, Verdict};
pub use trial::TRIAL_PAIRS_MAX;
pub use watching::WATCH_PAIRS_MAX;

use self::trial::Trial;
use self::watching::Watched;

use crate::apply::{Live, Tables, TablesError, structure_digest};
use crate::condition::Context;
use crate::improvement::interleaved::Earlier;
use crate::improvement::{Account, AlphaLedger};
use crate::patch::{Change, Patch, Subject};
use crate::propose::{Notebook, Proposal, patch};
use crate::queue::{PatchQueue, PatchStatus, QueueError};
use crate::rollout::Rollout;
use crate::score::PoxState;
use crate::verify::{AcceptedPatch, EvidenceKind, Improvement, Refusal, Verified, accept, verify};
use crate::watch::Watch;
use bem_base::digest::Digest;
use bem_base::fixed::Fixed;
use bem_machine::config::GenesisConfig;
use bem_machine::memory::context::FamilyIndex;
use std::collections::BTreeMap;

/// Guards that are kept; the oldest go first.
pub const GUARDS_MAX: usize = 4_096;

/// Why a proposal was not taken in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The family does not exist.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// The queue is full; that is counted.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// Where the run stands when a patch is decided.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Steps taken in the run.
    pub step: u64,
    /// The range of the returns seen so far, in milli-units; without it the declared range counts.
    pub span: Option<i64>,
    /// Where the world cannot be repeated: what is known of its returns. Trials are interleaved then, not paired.
    pub unpaired: Option<Earlier>,
}

/// What [`Evolution::advance`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advance {
    /// No patch waits.
    Idle,
    /// A patch was decided.
    Decided(Box<Record>),
    /// A patch is shown and must be measured: its expert is in the trial seat.
    Measuring,
}

/// What is known of a patch that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiting {
    words: String,
    improvement: Option<Improvement>,
}

/// Everything about changing structure that outlives a call.
#[derive(Clone, Debug)]
pub struct Evolution {
    config: GenesisConfig,
    tables: Tables,
    queue: PatchQueue,
    pox: PoxState,
    notebook: Notebook,
    alpha: AlphaLedger,
    serial: u64,
    waiting: BTreeMap<u64, Waiting>,
    trial: Option<Box<Trial>>,
    watched: Option<Box<Watched>>,
    guards: Vec<Guard>,
}

impl Evolution {
    /// Nothing is proposed yet.
    pub fn new(config: GenesisConfig) -> Evolution {
        Evolution {
            tables: Tables::default(),
            queue: PatchQueue::new(config.patches_pending_max as usize),
            pox: PoxState::new(&config),
            notebook: Notebook::default(),
            alpha: AlphaLedger::default(),
            serial: 0,
            waiting: BTreeMap::new(),
            trial: None,
            watched: None,
            guards: Vec::new(),
            config,
        }
    }

    /// The configuration.
    pub fn config(&self) -> &GenesisConfig {
        &self.config
    }

    /// The tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The improvement state.
    pub fn pox(&self) -> &PoxState {
        &self.pox
    }

    /// See [`PoxState::lend_approval`].
    pub fn lend_approval(&mut self, approval: Fixed) {
        self.pox.lend_approval(approval);
    }

    /// The account of all chances of error.
    pub fn alpha(&self) -> &AlphaLedger {
        &self.alpha
    }

    /// Enters a test that is made on the log; the chance of error that it is granted is one over this.
    pub fn enter_test(&mut self, account: Account) -> u128 {
        self.alpha.enter(account)
    }

    /// What the proposers wrote down.
    pub fn notebook_mut(&mut self) -> &mut Notebook {
        &mut self.notebook
    }

    /// The number of the latest patch.
    pub fn latest(&self) -> u64 {
        self.serial
    }

    /// Numbers up to this one are used elsewhere: the next patch gets a later one.
    pub fn number_after(&mut self, latest: u64) {
        self.serial = self.serial.max(latest);
    }

    /// Patches that wait.
    pub fn backlog(&self) -> usize {
        self.queue.backlog()
    }

    /// Mean return without and with every applied patch, oldest first.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// Takes a proposal about a family of the machine in as PENDING; returns its serial.
    pub fn submit(
        &mut self,
        machine: &Live,
        family: FamilyIndex,
        proposal: Proposal,
    ) -> Result<u64, SubmitError> {
        let Proposal { change, improvement, effects, words } = proposal;
        let serial = self.serial + 1;
        let current = machine.family(family).ok();
        self.queue.submit(patch(&self.tables, current, serial, family.0, change, effects)?)?;
        self.serial = serial;
        self.waiting.insert(serial, Waiting { words, improvement });
        Ok(serial)
    }

    /// Withdraws every patch that waits, as if what it was made against were gone.
    pub fn withdraw(&mut self) {
        for serial in self.queue.reject_obsolete(|_| None) {
            self.waiting.remove(&serial);
        }
    }

    /// Decides the next waiting patch, or opens its trial.
    pub fn advance(&mut self, machine: &mut Live, surroundings: &Surroundings) -> Advance {
        if self.trial.is_some() {
            return Advance::Measuring;
        }
        let tables = &self.tables;
        let obsolete = self.queue.reject_obsolete(|patch| {
            tables.parent(patch.change.subject(), machine.family(FamilyIndex(patch.family)).ok())
        });
        obsolete.iter().for_each(|serial| {
            self.waiting.remove(serial);
        });
        let Some(patch) = self.queue.next_pending().cloned() else { return Advance::Idle };
        match self.examine(machine, patch, surroundings) {
            Some(record) => Advance::Decided(Box::new(record)),
            None => Advance::Measuring,
        }
    }

    /// Takes a proposal in and decides it on the evidence that it brings, before everything that waits. It must be of a
    /// kind that needs no rollouts.
    pub fn decide_at_once(
        &mut self,
        machine: &mut Live,
        family: FamilyIndex,
        proposal: Proposal,
        surroundings: &Surroundings,
    ) -> Result<Record, SubmitError> {
        assert!(
            proposal.improvement.is_some_and(|improvement| is_at_hand(&proposal.change, &improvement)),
            "what is decided at once brings its evidence"
        );
        let serial = self.submit(machine, family, proposal)?;
        let patch = self.queue.get(serial).cloned().expect("it has just been taken in");
        Ok(self
            .examine(machine, patch, surroundings)
            .expect("no trial is opened where the evidence is at hand"))
    }

    /// Shows the condition of a patch and decides it, or opens its trial and says nothing.
    fn examine(&mut self, machine: &mut Live, patch: Patch, surroundings: &Surroundings) -> Option<Record> {
        let kind = patch.kind();
        let Waiting { words, improvement } = self
            .waiting
            .remove(&patch.serial)
            .unwrap_or_else(|| Waiting { words: format!("{kind:?}"), improvement: None });
        let step = surroundings.step;
        let family = machine.family(FamilyIndex(patch.family)).ok();
        let context = Context { config: &self.config, tables: &self.tables, family };
        let verified = match verify(patch.clone(), &context) {
            Ok(verified) => verified,
            Err(rejection) => {
                self.pox.book_rejected(kind);
                return Some(self.refuse(&patch, words, step, rejection.to_string(), None));
            }
        };
        self.mark(patch.serial, PatchStatus::Verified);
        let needs_rollouts = EvidenceKind::of_change(&patch.change) == EvidenceKind::Rollouts;
        // Where rollouts are what counts, nothing that a proposer says beforehand replaces them, but counts for a plan.
        Some(match improvement.filter(|improvement| is_at_hand(&patch.change, improvement)) {
            Some(improvement) => {
                let span = surroundings.span.filter(|_| is_watched(&improvement));
                let measured = span.map(|span| Guard { span, ..self.guard(&patch, Basis::Watch) });
                self.decide(machine, verified, improvement, words, measured, step)
            }
            None if needs_rollouts => match self.open_trial(machine, verified, surroundings, words.clone()) {
                Ok(()) => return None,
                Err(error) => self.refuse(&patch, words, step, error.to_string(), None),
            },
            None => {
                self.refuse(&patch, words, step, format!("a {kind:?} patch comes with its evidence"), None)
            }
        })
    }

    fn guard(&self, patch: &Patch, basis: Basis) -> Guard {
        Guard {
            serial: patch.serial,
            kind: patch.kind(),
            family: patch.family,
            basis,
            pairs: 0,
            return_before: Fixed::ZERO,
            return_after: Fixed::ZERO,
            span: 1,
            rolled_back: false,
        }
    }

    fn decide(
        &mut self,
        machine: &mut Live,
        verified: Verified,
        improvement: Improvement,
        words: String,
        measured: Option<Guard>,
        step: u64,
    ) -> Record {
        let patch = verified.patch().clone();
        let novelty = patch.effects.novelty.clamp(Fixed::ZERO, Fixed::ONE);
        let accepted = match accept(verified, improvement, novelty, &self.pox) {
            Ok(accepted) => accepted,
            Err(refusal) => {
                let score = match refusal {
                    Refusal::BelowThreshold { score, .. } => score,
                    Refusal::MayBeWorse { lower_bound } => lower_bound,
                    _ => Fixed::ZERO,
                };
                self.book(&patch, score, false, step);
                return self.refuse(&patch, words, step, refusal.to_string(), Some(improvement));
            }
        };
        let score = accepted.score();
        match self.apply(machine, &accepted, &words, measured) {
            Ok(structure) => {
                self.book(&patch, score, true, step);
                let verdict = Verdict::Applied { accepted: Box::new(accepted), structure };
                self.record(&patch, words, step, verdict)
            }
            Err(error) => {
                self.book(&patch, score, false, step);
                self.refuse(&patch, words, step, error.to_string(), Some(improvement))
            }
        }
    }

    /// Books a decision. What becomes of buckets says nothing about how demanding the gate of experts should be.
    fn book(&mut self, patch: &Patch, score: Fixed, applied: bool, step: u64) {
        match patch.change.subject() {
            Subject::Routing => self.pox.book_aside(patch.kind(), applied),
            _ => self.pox.book(patch.kind(), score, applied, step),
        }
    }

    /// Puts an accepted patch into force; the structure before and after.
    fn apply(
        &mut self,
        machine: &mut Live,
        accepted: &AcceptedPatch,
        words: &str,
        measured: Option<Guard>,
    ) -> Result<(Digest, Digest), TablesError> {
        let patch = accepted.patch();
        let index = FamilyIndex(patch.family);
        self.tables.check_current(patch, machine.family(index).ok())?;
        let digest =
            |machine: &Live| machine.family(index).map_or_else(|_| Digest::default(), structure_digest);
        let before = digest(machine);
        let undo = match &patch.change {
            Change::TeachEdit { tree, .. } => {
                self.tables.add_template(&self.config, tree)?;
                None
            }
            _ => machine.apply(accepted)?,
        };
        self.tables.note_applied(patch);
        self.mark(patch.serial, PatchStatus::Applied);
        let is_proven = EvidenceKind::of_change(&patch.change) == EvidenceKind::Exact;
        let basis = if is_proven { Basis::Proven } else { Basis::Watch };
        if self.guards.len() == GUARDS_MAX {
            self.guards.remove(0);
        }
        self.guards.push(measured.unwrap_or_else(|| self.guard(patch, basis)));
        match undo {
            // Only the latest change can be taken back: the watch before it ends here.
            Some(undo) if is_watched(accepted.improvement()) => {
                let watch = Watch::new(&mut self.alpha);
                let (serial, kind) = (patch.serial, patch.kind());
                let words = words.to_string();
                self.watched =
                    Some(Box::new(Watched { serial, kind, undo, words, watch, interleaved: None }));
            }
            Some(_) => self.watched = None,
            None => {}
        }
        Ok((before, digest(machine)))
    }

    fn refuse(
        &mut self,
        patch: &Patch,
        words: String,
        step: u64,
        reason: String,
        improvement: Option<Improvement>,
    ) -> Record {
        self.mark(patch.serial, PatchStatus::Rejected);
        self.notebook.note_refused(&patch.change);
        self.record(patch, words, step, Verdict::Refused { reason, improvement })
    }

    fn record(&self, patch: &Patch, words: String, step: u64, verdict: Verdict) -> Record {
        let (kind, family) = (patch.kind(), patch.family);
        let pox = PoxReading::of(&self.pox, kind);
        Record { serial: patch.serial, kind, family, step, words, verdict, pox }
    }

    /// Moves a patch on in the queue. One that has left the ring meanwhile has nothing to be moved.
    fn mark(&mut self, serial: u64, status: PatchStatus) {
        match self.queue.advance(serial, status) {
            Ok(()) | Err(QueueError::Unknown { .. }) => {}
            Err(error) => unreachable!("patches move along their transitions: {error}"),
        }
    }
}

/// The new return less the old one, over the range of returns.
fn difference(new: &Rollout, old: &Rollout, span: i64) -> Fixed {
    Fixed::from_ratio((new.total - old.total).clamp(-span, span), span)
}

/// Whether this evidence promises a return, which episodes may contradict.
fn is_watched(improvement: &Improvement) -> bool {
    use Improvement::{Counted, Interleaved, Rollouts};
    matches!(improvement, Rollouts(_) | Interleaved(_) | Counted { .. })
}

/// Whether what speaks for a change needs no rollouts.
fn is_at_hand(change: &Change, improvement: &Improvement) -> bool {
    EvidenceKind::of_change(change) != EvidenceKind::Rollouts
        || matches!(improvement, Improvement::Counted { .. })
}

#[cfg(test)]
mod tests;
