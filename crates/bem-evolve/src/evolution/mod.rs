//! The way of patches, driven from outside: submitted, shown, measured, applied, watched, taken back.
//!
//! It owns tables, queue, improvement state and open questions, and takes no step in any world: whoever owns the world
//! plays the pairs that it asks for, when there is budget for them. All calls are bounded.
//!
//! ```text
//! submit(family, proposal)          PENDING
//! advance(..)  -> Decided(record)   REJECTED, or APPLIED on evidence at hand
//!              -> Measuring         VERIFIED: play the two performers of duel() and book_pair() until a record comes
//!              -> Idle              the queue is empty
//! watch_duel(), book_watch(..)      now and then, after an application: a record if it is taken back
//! guards()                          mean return without and with every applied patch
//! ```
//!
//! Statistics that a machine gathers meanwhile come in through [`Evolution::renew`]; after an application the machine takes
//! the family from [`Evolution::family`]. Must not know files, clocks or which world is played.
//! Clauses: SCC-1, SCC-8, SCC-9, SCC-12, SCC-14.

mod codec;
mod record;

pub use codec::Claim;
pub use record::{Basis, Guard, PoxReading, Record, Verdict};

use crate::apply::{Receipt, Tables, TablesError};
use crate::condition::{BadPair, Context, SafetyDemand};
use crate::improvement::{AlphaLedger, ImprovementTest, Progress};
use crate::patch::{Patch, PatchKind};
use crate::propose::{Notebook, Proposal, patch};
use crate::queue::{PatchQueue, PatchStatus, QueueCounts, QueueError};
use crate::rollout::{Performer, Rollout};
use crate::score::PoxState;
use crate::verify::{
    AcceptedPatch, EvidenceKind, Improvement, RETURN_TOLERANCE, Refusal, Verified, accept, verify,
};
use crate::watch::Watch;
use bem_base::digest::Digest;
use bem_base::fixed::Fixed;
use bem_learn::bucket::Bucket;
use bem_machine::config::GenesisConfig;
use bem_machine::family::{Family, Pick};
use std::collections::BTreeMap;

/// Pairs of one trial at most.
pub const TRIAL_PAIRS_MAX: u32 = 1_024;
/// Pairs after which a watch ends and the patch stays.
pub const WATCH_PAIRS_MAX: u32 = 64;
/// Guards that are kept; the oldest go first.
pub const GUARDS_MAX: usize = 4_096;
/// Choices after a RESET before its effect can be seen.
const RESET_GRACE: u64 = 64;
/// How often a trial without a winner is asked whether equality is shown.
const EQUALITY_EVERY: u32 = 64;

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

/// What the condition of a patch is shown against, beside the tables.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Observations and actions that were BAD.
    pub bad: &'a [BadPair],
    /// Whether a synthesised expert must avoid them.
    pub safety: SafetyDemand,
    /// Steps taken in the run.
    pub step: u64,
    /// The range of the returns seen so far, in milli-units; without it the declared range counts.
    pub span: Option<i64>,
}

/// What [`Evolution::advance`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advance {
    /// No patch waits.
    Idle,
    /// A patch was decided.
    Decided(Box<Record>),
    /// A patch is shown and must be measured: see [`Evolution::duel`].
    Measuring,
}

/// What is known of a patch that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiting {
    words: String,
    improvement: Option<Improvement>,
}

/// A patch that is measured.
#[derive(Clone, Debug)]
struct Trial {
    verified: Verified,
    /// What it was shown against, to show it again when it is read from bytes.
    bad: Vec<BadPair>,
    safety: SafetyDemand,
    words: String,
    test: ImprovementTest,
    /// The family with the patch.
    candidate: Family,
    /// The expert that the patch brings, if it brings one.
    slot: Option<u8>,
    guard: Guard,
    /// What the new expert's rollouts brought, to be booked for it when it is applied.
    credits: Vec<Rollout>,
}

/// An applied patch that may still be taken back.
#[derive(Clone, Debug)]
struct Watched {
    receipt: Receipt,
    words: String,
    watch: Watch,
}

/// Two who play the same seed.
#[derive(Clone, Debug)]
pub struct Duel {
    /// With the patch.
    pub new: Performer,
    /// Without it.
    pub old: Performer,
}

/// Everything about changing structure that outlives a call.
#[derive(Clone, Debug)]
pub struct Evolution {
    config: GenesisConfig,
    tables: Tables,
    queue: PatchQueue,
    pox: PoxState,
    notebook: Notebook,
    trials: AlphaLedger,
    watches: AlphaLedger,
    serial: u64,
    waiting: BTreeMap<u64, Waiting>,
    trial: Option<Box<Trial>>,
    watched: Option<Box<Watched>>,
    guards: Vec<Guard>,
}

impl Evolution {
    /// With these families and nothing proposed yet.
    pub fn new(config: GenesisConfig, families: Vec<Family>) -> Evolution {
        Evolution {
            tables: Tables::new(families),
            queue: PatchQueue::new(config.patches_pending_max as usize),
            pox: PoxState::new(&config),
            notebook: Notebook::default(),
            trials: AlphaLedger::default(),
            watches: AlphaLedger::default(),
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

    /// A family as it is now.
    pub fn family(&self, family: u16) -> Result<&Family, TablesError> {
        self.tables.family(family)
    }

    /// The improvement state.
    pub fn pox(&self) -> &PoxState {
        &self.pox
    }

    /// What the proposers wrote down.
    pub fn notebook_mut(&mut self) -> &mut Notebook {
        &mut self.notebook
    }

    /// What has happened in the queue.
    pub fn queue_counts(&self) -> QueueCounts {
        self.queue.counts()
    }

    /// Patches that wait.
    pub fn backlog(&self) -> usize {
        self.queue.backlog()
    }

    /// Mean return without and with every applied patch, oldest first.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// Takes over statistics that a machine has gathered since; its structure must be the one here.
    pub fn renew(&mut self, family: u16, current: &Family) -> Result<(), TablesError> {
        self.tables.renew(family, current)
    }

    /// Takes a proposal in as PENDING; returns its serial.
    pub fn submit(&mut self, family: u16, proposal: Proposal) -> Result<u64, SubmitError> {
        let Proposal { change, improvement, effects, words } = proposal;
        let serial = self.serial + 1;
        self.queue.submit(patch(&self.tables, serial, family, change, effects)?)?;
        self.serial = serial;
        self.waiting.insert(serial, Waiting { words, improvement });
        Ok(serial)
    }

    /// Decides the next waiting patch, or opens its trial.
    pub fn advance(&mut self, surroundings: &Surroundings<'_>) -> Advance {
        if self.trial.is_some() {
            return Advance::Measuring;
        }
        let tables = &self.tables;
        let obsolete = self.queue.reject_obsolete(|patch| tables.parent(patch.kind(), patch.family).ok());
        obsolete.iter().for_each(|serial| {
            self.waiting.remove(serial);
        });
        let Some(patch) = self.queue.next_pending().cloned() else { return Advance::Idle };
        let Waiting { words, improvement } = self
            .waiting
            .remove(&patch.serial)
            .unwrap_or_else(|| Waiting { words: format!("{:?}", patch.kind()), improvement: None });
        let Surroundings { bad, safety, step, .. } = *surroundings;
        let context = Context { config: &self.config, tables: &self.tables, bad, safety };
        let verified = match verify(patch.clone(), &context) {
            Ok(verified) => verified,
            Err(rejection) => {
                self.pox.book_rejected(patch.kind());
                return Advance::Decided(Box::new(self.refuse(
                    &patch,
                    words,
                    step,
                    rejection.to_string(),
                    None,
                )));
            }
        };
        self.mark(patch.serial, PatchStatus::Verified);
        let kind = patch.kind();
        let is_measurable = EvidenceKind::of(kind) == EvidenceKind::Rollouts
            || matches!(kind, PatchKind::Split | PatchKind::Retire);
        // Where rollouts are what counts, nothing that a proposer says beforehand replaces them.
        let at_hand = improvement.filter(|_| EvidenceKind::of(kind) != EvidenceKind::Rollouts);
        let record = match at_hand {
            Some(improvement) => self.decide(verified, improvement, words, None, step),
            None if is_measurable => match self.open_trial(verified, surroundings, words.clone()) {
                Ok(()) => return Advance::Measuring,
                Err(error) => self.refuse(&patch, words, step, error.to_string(), None),
            },
            None => {
                self.refuse(&patch, words, step, format!("a {kind:?} patch comes with its evidence"), None)
            }
        };
        Advance::Decided(Box::new(record))
    }

    fn open_trial(
        &mut self,
        verified: Verified,
        surroundings: &Surroundings<'_>,
        words: String,
    ) -> Result<(), TablesError> {
        let (candidate, slot) = self.preview(verified.patch())?;
        let mut guard = self.guard(verified.patch(), Basis::Gate);
        guard.span = surroundings.span.map_or(guard.span, |seen| seen.clamp(1, guard.span));
        let (bad, safety) = (surroundings.bad.to_vec(), surroundings.safety);
        // What a synthesised expert promises decides how long pairs that show nothing are endured.
        let is_synthesized = verified.patch().kind() == PatchKind::Synthesize;
        let promise = if is_synthesized { verified.patch().effects.return_gain } else { Fixed::ZERO };
        let test = self.trials.open_with_promise(promise.clamp(Fixed::ZERO, Fixed::ONE));
        let credits = Vec::new();
        self.trial =
            Some(Box::new(Trial { verified, bad, safety, words, test, candidate, slot, guard, credits }));
        Ok(())
    }

    /// The family with a patch, and the slot of the expert that it brings, if it brings one.
    fn preview(&self, patch: &Patch) -> Result<(Family, Option<u8>), TablesError> {
        let old = self.tables.family(patch.family)?;
        let candidate = self.tables.preview(&self.config, patch)?;
        let id_of = |family: &Family, slot: usize| family.expert(slot).map(|expert| expert.id());
        let is_new = |slot: &usize| id_of(&candidate, *slot) != id_of(old, *slot);
        let slot = candidate.occupied().map(|(slot, _)| slot).find(is_new).map(|slot| slot as u8);
        Ok((candidate, slot))
    }

    /// The patch that is measured now, with what was shown of it.
    pub fn trial(&self) -> Option<&Verified> {
        self.trial.as_ref().map(|trial| &trial.verified)
    }

    /// About how many pairs the next trial takes to show a mean difference with this variance.
    pub fn pairs_expected(&self, mean: Fixed, variance: Fixed) -> Option<u64> {
        self.trials.pairs_expected(mean, variance)
    }

    /// Whether at least this many pairs of the open trial were played and none made a difference.
    pub fn trial_never_differed(&self, pairs: usize) -> bool {
        self.trial.as_ref().is_some_and(|trial| trial.test.never_differed(pairs))
    }

    /// The applied patch that may still be taken back.
    pub fn watched(&self) -> Option<u64> {
        self.watched.as_ref().map(|watched| watched.receipt.serial())
    }

    fn guard(&self, patch: &Patch, basis: Basis) -> Guard {
        let shape = self.tables.family(patch.family).ok().map(Family::shape);
        Guard {
            serial: patch.serial,
            kind: patch.kind(),
            family: patch.family,
            basis,
            pairs: 0,
            return_before: Fixed::ZERO,
            return_after: Fixed::ZERO,
            span: shape.map_or(1, |shape| (shape.return_max - shape.return_min).max(1)),
            rolled_back: false,
        }
    }

    /// The two whose rollouts the open trial waits for.
    pub fn duel(&self) -> Option<Duel> {
        let trial = self.trial.as_ref()?;
        let old = self.tables.family(trial.verified.patch().family).ok()?;
        let new = match trial.slot {
            Some(slot) => Performer::only(&self.config, &trial.candidate, slot),
            None => Performer::frozen(&self.config, &trial.candidate),
        };
        Some(Duel { new, old: Performer::frozen(&self.config, old) })
    }

    /// Books a pair of the open trial: both played the same fresh seed. A record comes when the trial is over.
    ///
    /// A pair that cannot differ need not be played: two empty rollouts stand for it.
    pub fn book_pair(&mut self, new: &Rollout, old: &Rollout, step: u64) -> Option<Record> {
        let trial = self.trial.as_mut()?;
        let loss = old.total() - new.total();
        if trial.guard.span < loss {
            // The test holds for losses within the range seen so far. This one is beyond it: another test begins, with
            // the wider range and the share of error that the next candidate would have had.
            let promise = trial.test.promise().mul_floor(Fixed::from_ratio(trial.guard.span, loss));
            trial.test = self.trials.open_with_promise(promise);
            trial.guard.span = loss;
        }
        let difference = difference(new, old, trial.guard.span);
        if !new.steps.is_empty() {
            trial.guard.observe(old.total(), new.total());
        }
        let progress = trial.test.observe(difference, new.is_bad(), old.is_bad());
        if trial.slot.is_some() && !new.steps.is_empty() {
            trial.credits.push(new.clone());
        }
        let pairs = trial.guard.pairs;
        // A synthesised expert is what the pool lives by: its novelty makes up for a gain that is small, and its test
        // has a patience of its own.
        let is_synthesized = trial.verified.patch().kind() == PatchKind::Synthesize;
        let bound = |reached: Fixed| reached <= trial.test.evidence().lower_bound;
        let over = match progress {
            // What is surely better may still be worth less than the threshold; more pairs raise the bound.
            Progress::Better => is_synthesized || bound(self.pox.threshold()),
            // Equality within the tolerance is enough for what makes the machine smaller.
            Progress::Open => {
                pairs.is_multiple_of(EQUALITY_EVERY)
                    && !matches!(trial.verified.patch().kind(), PatchKind::Synthesize | PatchKind::Macro)
                    && 0 < trial.verified.gates_saved()
                    && bound(RETURN_TOLERANCE.negated())
            }
            Progress::Futile | Progress::Unsafe => true,
        };
        if !over && (is_synthesized || pairs < TRIAL_PAIRS_MAX) {
            return None;
        }
        let trial = *self.trial.take()?;
        let improvement = Improvement::Rollouts(trial.test.evidence());
        Some(self.decide(
            trial.verified,
            improvement,
            trial.words,
            Some((trial.guard, trial.slot, trial.credits)),
            step,
        ))
    }

    /// Gives the open trial up, because the budget is gone or it leads nowhere. Its patch is rejected and may be proposed
    /// again.
    pub fn abandon_trial(&mut self, step: u64, reason: &str) -> Option<Record> {
        let trial = self.trial.take()?;
        let patch = trial.verified.patch();
        self.mark(patch.serial, PatchStatus::Rejected);
        let improvement = Some(Improvement::Rollouts(trial.test.evidence()));
        let verdict = Verdict::Refused { reason: reason.to_string(), improvement };
        Some(self.record(patch, trial.words.clone(), step, verdict))
    }

    fn decide(
        &mut self,
        verified: Verified,
        improvement: Improvement,
        words: String,
        measured: Option<(Guard, Option<u8>, Vec<Rollout>)>,
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
                self.pox.book(patch.kind(), score, false, step);
                return self.refuse(&patch, words, step, refusal.to_string(), Some(improvement));
            }
        };
        let score = accepted.score();
        match self.apply(accepted, &words, measured) {
            Ok((accepted, structure)) => {
                self.pox.book(patch.kind(), score, true, step);
                let verdict = Verdict::Applied { accepted: Box::new(accepted), structure };
                self.record(&patch, words, step, verdict)
            }
            Err(error) => {
                self.pox.book(patch.kind(), score, false, step);
                self.refuse(&patch, words, step, error.to_string(), Some(improvement))
            }
        }
    }

    fn apply(
        &mut self,
        accepted: AcceptedPatch,
        words: &str,
        measured: Option<(Guard, Option<u8>, Vec<Rollout>)>,
    ) -> Result<(AcceptedPatch, (Digest, Digest)), TablesError> {
        let patch = accepted.patch().clone();
        let applied = self.tables.apply(&self.config, accepted)?;
        self.mark(patch.serial, PatchStatus::Applied);
        let (accepted, structure) = (applied.accepted().clone(), applied.digests());
        let is_proven = EvidenceKind::of(patch.kind()) == EvidenceKind::Exact;
        let guard = match measured {
            Some((guard, slot, credits)) => {
                if let (Some(slot), Some(family)) = (slot, self.tables.statistics_mut(patch.family)) {
                    credits.iter().for_each(|rollout| credit(family, slot, rollout));
                }
                guard
            }
            None => self.guard(&patch, if is_proven { Basis::Proven } else { Basis::Watch }),
        };
        if self.guards.len() == GUARDS_MAX {
            self.guards.remove(0);
        }
        self.guards.push(guard);
        if !is_proven {
            // Only the latest change can be taken back: the watch before it ends here.
            let watch = Watch::new(&mut self.watches);
            let receipt = applied.into_receipt();
            self.watched = Some(Box::new(Watched { receipt, words: words.to_string(), watch }));
        } else if let Some(watched) =
            self.watched.as_mut().filter(|_| patch.kind() == PatchKind::Superoptimize)
            && watched.receipt.family() == patch.family
        {
            // A smaller circuit of the same behaviour is taken back together with what is watched.
            watched.receipt.carry_over(structure.1);
        }
        Ok((accepted, structure))
    }

    /// The two whose rollouts tell whether the latest change keeps its promise; none if there is nothing to watch now.
    pub fn watch_duel(&self) -> Option<Duel> {
        let watched = self.watched.as_ref()?;
        let before = watched.receipt.family_before()?;
        let now = self.tables.family(watched.receipt.family()).ok()?;
        let forgotten = |bucket: &Bucket| bucket.selections_total() < RESET_GRACE;
        if watched.receipt.kind() == PatchKind::Reset && now.buckets().iter().any(forgotten) {
            return None;
        }
        let frozen = |family: &Family| Performer::frozen(&self.config, family);
        Some(Duel { new: frozen(now), old: frozen(before) })
    }

    /// Books a pair of the watch. A record comes when the patch is taken back; a watch that is long enough ends.
    pub fn book_watch(&mut self, new: &Rollout, old: &Rollout, step: u64) -> Option<Record> {
        let watched = self.watched.as_mut()?;
        let serial = watched.receipt.serial();
        let guard = self.guards.iter_mut().find(|guard| guard.serial == serial)?;
        let contradiction = watched.watch.observe(difference(new, old, guard.span));
        if guard.basis == Basis::Watch {
            guard.observe(old.total(), new.total());
        }
        if let Some(reason) = contradiction {
            guard.rolled_back = true;
            let Watched { receipt, words, .. } = *self.watched.take()?;
            let (kind, family) = (receipt.kind(), receipt.family());
            // Nothing has changed since, so that this cannot fail; if it did, the patch would simply stay.
            self.tables.roll_back(receipt, reason).ok()?;
            self.pox.book_rolled_back(kind);
            self.mark(serial, PatchStatus::RolledBack);
            let pox = PoxReading::of(&self.pox, kind);
            let verdict = Verdict::RolledBack { reason };
            return Some(Record { serial, kind, family, step, words, verdict, pox });
        }
        if WATCH_PAIRS_MAX <= watched.watch.pairs() {
            self.watched = None;
        }
        None
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
    Fixed::from_ratio((new.total() - old.total()).clamp(-span, span), span)
}

/// Books a rollout for the expert that acted in all of it.
fn credit(family: &mut Family, slot: u8, rollout: &Rollout) {
    let slot = usize::from(slot);
    if family.is_sticky(slot) {
        let payoff = rollout.steps.iter().map(|step| family.payoff().payoff(&step.outcome, 0)).sum();
        family.credit_episode(Pick::certain(slot), payoff);
    } else {
        for step in &rollout.steps {
            family.credit(step.bucket, slot, &step.outcome);
        }
    }
}

#[cfg(test)]
mod tests;
