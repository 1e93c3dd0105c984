//! The trial of a patch whose condition was shown: two who play the same seeds, until a test decides.
//!
//! The candidate sits in the machine's trial seat meanwhile; what it plays against is what the machine holds. Clauses:
//! SCC-8; decision D-23.

use super::{Basis, Evolution, Guard, Record, Surroundings, Verdict, difference};
use crate::apply::{Live, TablesError, parts_of};
use crate::improvement::{ImprovementTest, Progress};
use crate::patch::{Change, PatchKind};
use crate::queue::PatchStatus;
use crate::rollout::Rollout;
use crate::verify::{Improvement, RETURN_TOLERANCE, Verified};
use bem_base::fixed::Fixed;
use bem_machine::machine::MachineError;
use bem_machine::memory::context::FamilyIndex;

/// Pairs of one trial at most.
pub const TRIAL_PAIRS_MAX: u32 = 1_024;
/// How often a trial without a winner is asked whether equality is shown.
const EQUALITY_EVERY: u32 = 64;

/// A patch that is measured.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) verified: Verified,
    pub(super) words: String,
    pub(super) test: ImprovementTest,
    pub(super) guard: Guard,
}

impl Evolution {
    pub(super) fn open_trial(
        &mut self,
        machine: &mut Live,
        verified: Verified,
        surroundings: &Surroundings,
        words: String,
    ) -> Result<(), TablesError> {
        self.seat(machine, &verified)?;
        let shape = machine.family(FamilyIndex(verified.patch().family))?.shape();
        let declared = (shape.return_max - shape.return_min).max(1);
        let mut guard = self.guard(verified.patch(), Basis::Gate);
        guard.span = surroundings.span.map_or(declared, |seen| seen.clamp(1, declared));
        // What a synthesised expert promises decides how long pairs that show nothing are endured.
        let is_synthesized = verified.patch().kind() == PatchKind::Synthesize;
        let promise = if is_synthesized { verified.patch().effects.return_gain } else { Fixed::ZERO };
        let test = self.alpha.open_with_promise(promise.clamp(Fixed::ZERO, Fixed::ONE));
        self.trial = Some(Box::new(Trial { verified, words, test, guard }));
        Ok(())
    }

    /// Puts the expert of a shown patch into the machine's trial seat: nothing else gets there.
    pub(super) fn seat(&self, machine: &mut Live, verified: &Verified) -> Result<(), TablesError> {
        let index = FamilyIndex(verified.patch().family);
        let parts = parts_of(&verified.patch().change, machine.family(index)?);
        let parts = parts.ok_or(TablesError::Machine(MachineError::NotApplicable))?;
        Ok(machine.try_on(index, parts)?)
    }

    /// The patch that is measured now, with what was shown of it.
    pub fn trial(&self) -> Option<&Verified> {
        self.trial.as_ref().map(|trial| &trial.verified)
    }

    /// About how many pairs the next trial takes to show a mean difference with this variance.
    pub fn pairs_expected(&self, mean: Fixed, variance: Fixed) -> Option<u64> {
        self.alpha.pairs_expected(mean, variance)
    }

    /// Whether at least this many pairs of the open trial were played and none made a difference.
    pub fn trial_never_differed(&self, pairs: usize) -> bool {
        self.trial.as_ref().is_some_and(|trial| trial.test.never_differed(pairs))
    }

    /// Books a pair of the open trial: both played the same fresh seed. A record comes when the trial is over.
    ///
    /// A pair that cannot differ need not be played: two rollouts without steps stand for it.
    pub fn book_pair(
        &mut self,
        machine: &mut Live,
        new: &Rollout,
        old: &Rollout,
        step: u64,
    ) -> Option<Record> {
        let trial = self.trial.as_mut()?;
        let loss = old.total - new.total;
        if trial.guard.span < loss {
            // The test holds for losses within the range seen so far. This one is beyond it: another test begins, with
            // the wider range and the share of error that the next candidate would have had.
            let promise = trial.test.promise().mul_floor(Fixed::from_ratio(trial.guard.span, loss));
            trial.test = self.alpha.reopen(&trial.test, promise);
            trial.guard.span = loss;
        }
        let difference = difference(new, old, trial.guard.span);
        if 0 < new.steps {
            trial.guard.observe(old.total, new.total);
        }
        let progress = trial.test.observe(difference, new.is_bad, old.is_bad);
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
                    && !matches!(trial.verified.patch().change, Change::Synthesize { .. })
                    && 0 < trial.verified.gates_saved()
                    && bound(RETURN_TOLERANCE.negated())
            }
            Progress::Futile | Progress::Unsafe => true,
        };
        if !over && (is_synthesized || pairs < TRIAL_PAIRS_MAX) {
            return None;
        }
        let trial = *self.trial.take()?;
        self.vacate(machine, &trial);
        let improvement = Improvement::Rollouts(trial.test.evidence());
        Some(self.decide(machine, trial.verified, improvement, trial.words, Some(trial.guard), step))
    }

    /// Gives the open trial up, because the budget is gone or it leads nowhere. Its patch is rejected and may be proposed
    /// again.
    pub fn abandon_trial(&mut self, machine: &mut Live, step: u64, reason: &str) -> Option<Record> {
        let trial = self.trial.take()?;
        self.vacate(machine, &trial);
        let patch = trial.verified.patch();
        self.mark(patch.serial, PatchStatus::Rejected);
        let improvement = Some(Improvement::Rollouts(trial.test.evidence()));
        let verdict = Verdict::Refused { reason: reason.to_string(), improvement };
        Some(self.record(patch, trial.words.clone(), step, verdict))
    }

    /// The candidate leaves the seat.
    fn vacate(&self, machine: &mut Live, trial: &Trial) {
        machine
            .vacate(FamilyIndex(trial.verified.patch().family))
            .expect("a trial is about a family that exists");
    }
}
