//! The trial of a patch whose condition was shown: two who play the same seeds, until a test decides.
//!
//! Clauses: SCC-8; decision D-23.

use super::{Basis, Duel, Evolution, Guard, Record, Surroundings, Verdict, difference};
use crate::apply::TablesError;
use crate::condition::{BadPair, SafetyDemand};
use crate::improvement::{ImprovementTest, Progress};
use crate::patch::{Change, Patch, PatchKind};
use crate::queue::PatchStatus;
use crate::rollout::{Performer, Rollout};
use crate::verify::{Improvement, RETURN_TOLERANCE, Verified};
use bem_base::fixed::Fixed;
use bem_machine::family::{Family, Pick};

/// Pairs of one trial at most.
pub const TRIAL_PAIRS_MAX: u32 = 1_024;
/// How often a trial without a winner is asked whether equality is shown.
const EQUALITY_EVERY: u32 = 64;

/// A patch that is measured.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) verified: Verified,
    /// What it was shown against, to show it again when it is read from bytes.
    pub(super) bad: Vec<BadPair>,
    pub(super) safety: SafetyDemand,
    pub(super) words: String,
    pub(super) test: ImprovementTest,
    /// The family with the patch.
    pub(super) candidate: Family,
    /// The expert that the patch brings, if it brings one.
    pub(super) slot: Option<u8>,
    pub(super) guard: Guard,
    /// What the new expert's rollouts brought, to be booked for it when it is applied.
    pub(super) credits: Vec<Rollout>,
}

impl Evolution {
    pub(super) fn open_trial(
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
    pub(super) fn preview(&self, patch: &Patch) -> Result<(Family, Option<u8>), TablesError> {
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
            trial.test = self.trials.reopen(&trial.test, promise);
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
                    && !matches!(
                        trial.verified.patch().change,
                        Change::Synthesize { .. } | Change::Macro { .. }
                    )
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
}

/// Books a rollout for the expert that acted in all of it.
pub(super) fn credit(family: &mut Family, slot: u8, rollout: &Rollout) {
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
