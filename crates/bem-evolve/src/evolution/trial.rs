//! The trial of a patch whose condition was shown: two who play the same seeds, or interleaved at random where a world cannot
//! be repeated, until a test decides.
//!
//! The candidate sits in the machine's trial seat meanwhile; what it plays against is what the machine holds. Clauses:
//! SCC-8; decisions D-23, D-60.

use super::{Basis, Evolution, Guard, Record, Surroundings, Verdict, difference};
use crate::apply::{Live, TablesError, parts_of};
use crate::improvement::interleaved::{InterleavedTest, Played};
use crate::improvement::{Account, ImprovementTest, Progress};
use crate::patch::{Change, PatchKind};
use crate::queue::PatchStatus;
use crate::rollout::Rollout;
use crate::verify::{Improvement, RETURN_TOLERANCE, Verified};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_machine::machine::MachineError;
use bem_machine::memory::context::FamilyIndex;

/// Pairs of one trial at most, and half of its episodes where they are interleaved.
pub const TRIAL_PAIRS_MAX: u32 = 1_024;
/// How often a trial without a winner is asked whether equality is shown.
const EQUALITY_EVERY: u32 = 64;

/// A patch that is measured.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) verified: Verified,
    pub(super) words: String,
    pub(super) test: Test,
    pub(super) guard: Guard,
}

/// How it is measured.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// Both play the same seeds.
    Paired(ImprovementTest),
    /// A coin says who plays.
    Interleaved(Box<InterleavedTest>),
}

impl Test {
    /// What was measured so far.
    fn improvement(&self) -> Improvement {
        match self {
            Test::Paired(test) => Improvement::Rollouts(test.evidence()),
            Test::Interleaved(test) => Improvement::Interleaved(test.evidence()),
        }
    }

    /// Whether so many pairs, or episodes, were played and none made a difference.
    fn never_differed(&self, count: usize) -> bool {
        match self {
            Test::Paired(test) => test.never_differed(count),
            Test::Interleaved(test) => test.never_differed(count),
        }
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        match self {
            Test::Paired(test) => {
                writer.u8(0);
                test.encode(writer);
            }
            Test::Interleaved(test) => {
                writer.u8(1);
                test.encode(writer);
            }
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Test, DecodeError> {
        let unknown = reader.error("a test of no known kind");
        match reader.u8()? {
            0 => ImprovementTest::decode(reader).map(Test::Paired),
            1 => InterleavedTest::decode(reader).map(|test| Test::Interleaved(Box::new(test))),
            _ => Err(unknown),
        }
    }
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
        let promise = promise.clamp(Fixed::ZERO, Fixed::ONE);
        let test = match surroundings.unpaired {
            None => Test::Paired(self.alpha.open_with_promise(promise)),
            Some(earlier) => {
                let test = self.alpha.open_interleaved(Account::Trials, earlier, promise);
                guard.span = test.span();
                Test::Interleaved(Box::new(test))
            }
        };
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

    /// What was measured of it so far.
    pub fn trial_improvement(&self) -> Option<Improvement> {
        self.trial.as_ref().map(|trial| trial.test.improvement())
    }

    /// About how many pairs the next trial takes to show a mean difference with this variance.
    pub fn pairs_expected(&self, mean: Fixed, variance: Fixed) -> Option<u64> {
        self.alpha.pairs_expected(mean, variance)
    }

    /// About how many episodes the next trial takes where they are interleaved.
    pub fn episodes_expected(&self, mean: Fixed, variance: Fixed) -> Option<u64> {
        self.alpha.episodes_expected(mean, variance)
    }

    /// Whether at least this many pairs, or episodes, of the open trial were played and none made a difference.
    pub fn trial_never_differed(&self, count: usize) -> bool {
        self.trial.as_ref().is_some_and(|trial| trial.test.never_differed(count))
    }

    /// Books an episode of the open trial that a coin has given to one of the two. A record comes when the trial is over.
    pub fn book_episode(&mut self, machine: &mut Live, played: &Played, step: u64) -> Option<Record> {
        let Test::Interleaved(test) = &mut self.trial.as_mut()?.test else { return None };
        let progress = test.observe(&mut self.alpha, Account::Trials, played);
        self.look_at(machine, progress, step)
    }

    /// Books an episode of the open trial in which both would have done the same, and that somebody else played.
    pub fn pass_episode(&mut self, machine: &mut Live, step: u64) -> Option<Record> {
        let Test::Interleaved(test) = &mut self.trial.as_mut()?.test else { return None };
        let progress = test.pass();
        self.look_at(machine, progress, step)
    }

    /// Ends an interleaved trial that has come this far, or lets it go on.
    fn look_at(&mut self, machine: &mut Live, progress: Progress, step: u64) -> Option<Record> {
        let trial = self.trial.as_mut()?;
        let Test::Interleaved(test) = &trial.test else { return None };
        trial.guard.take_means(test.episodes(), test.means(), test.span());
        let (episodes, lower_bound) = (test.episodes(), test.evidence().lower_bound);
        let is_synthesized = trial.verified.patch().kind() == PatchKind::Synthesize;
        let over = match progress {
            Progress::Better => is_synthesized || self.pox.threshold() <= lower_bound,
            Progress::Open => {
                !matches!(trial.verified.patch().change, Change::Synthesize { .. })
                    && 0 < trial.verified.gates_saved()
                    && RETURN_TOLERANCE.negated() <= lower_bound
            }
            Progress::Futile | Progress::Unsafe => true,
        };
        if !over && (is_synthesized || episodes < 2 * TRIAL_PAIRS_MAX) {
            return None;
        }
        self.close_trial(machine, step)
    }

    /// Decides the open trial by what was measured.
    fn close_trial(&mut self, machine: &mut Live, step: u64) -> Option<Record> {
        let trial = *self.trial.take()?;
        self.vacate(machine, &trial);
        let improvement = trial.test.improvement();
        Some(self.decide(machine, trial.verified, improvement, trial.words, Some(trial.guard), step))
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
        let Test::Paired(test) = &mut trial.test else { return None };
        let loss = old.total - new.total;
        if trial.guard.span < loss {
            // The test holds for losses within the range seen so far. This one is beyond it: another test begins, with
            // the wider range and the share of error that the next candidate would have had.
            let promise = test.promise().mul_floor(Fixed::from_ratio(trial.guard.span, loss));
            *test = self.alpha.reopen(test, promise);
            trial.guard.span = loss;
        }
        let difference = difference(new, old, trial.guard.span);
        if 0 < new.steps {
            trial.guard.observe(old.total, new.total);
        }
        let progress = test.observe(difference, new.is_bad, old.is_bad);
        let pairs = trial.guard.pairs;
        // A synthesised expert is what the pool lives by: its novelty makes up for a gain that is small, and its test
        // has a patience of its own.
        let is_synthesized = trial.verified.patch().kind() == PatchKind::Synthesize;
        let bound = |reached: Fixed| reached <= test.evidence().lower_bound;
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
        self.close_trial(machine, step)
    }

    /// Gives the open trial up, because the budget is gone or it leads nowhere. Its patch is rejected and may be proposed
    /// again.
    pub fn abandon_trial(&mut self, machine: &mut Live, step: u64, reason: &str) -> Option<Record> {
        let trial = self.trial.take()?;
        self.vacate(machine, &trial);
        let patch = trial.verified.patch();
        self.mark(patch.serial, PatchStatus::Rejected);
        let improvement = Some(trial.test.improvement());
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
