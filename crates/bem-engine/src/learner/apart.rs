//! What is measured for people, apart from what the learner measures for itself.
//!
//! When labels suggest a candidate, the learner is set aside as it is. A copy of it tries the candidate, with seeds of a stream
//! of its own and with the chances of error of tests beyond all that it has entered. If the candidate is let in, the copy goes on;
//! if it is refused, the learner goes on as it was set aside, and of the trial there remain its steps, its entries in the chain and
//! a count. So whoever is always refused changes nothing that is learned: a run beside a liar is the run beside nobody, later by
//! the steps of the trials, which are bounded by a part of all steps. In a served world every episode is handed to both.
//! Must not know labels, nor who gave them. Clause: HUM-13; decision D-210.

use super::state::{RestoreError, SavedLearner};
use super::{Learner, Phase, Tally, Witness};
use crate::codec::{decode_option, encode_option};
use crate::seeds::Seeds;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_evolve::improvement::Account;
use bem_synth::hypothesis::Hypothesis;

/// Steps that trials for people may take at first, and one part in so many of all steps besides. A trial that has begun is
/// finished.
const FREE_STEPS: u64 = 1_024;
const STEPS_SHARE: u64 = 16;
/// Counts that no run reaches, far below what would overflow a sum.
const COUNT_MAX: u64 = 1 << 48;

/// What was measured for people.
#[derive(Clone, Debug, Default)]
pub(super) struct Apart {
    /// Something of theirs was let in.
    has_won: bool,
    /// Trials that were begun, and those in a row of which nothing was let in.
    begun: u32,
    refused: u32,
    /// Steps that were taken while trials for people ran.
    played: u64,
    /// What is in no other account, because it was taken by a copy that was given up.
    spent: Spent,
    /// Steps when the trial that runs began.
    since: u64,
    /// The learner as it was then, while a trial runs.
    before: Option<Box<Learner>>,
}

/// What copies took that were given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    steps: u64,
    episodes: u64,
    resets: u64,
    unplayed: u64,
    rejected: u32,
    proofs: u32,
}

impl Apart {
    /// Whether anything was ever measured for people.
    pub(super) fn is_used(&self) -> bool {
        0 < self.begun
    }

    /// Whether something of theirs was let in.
    pub(super) fn has_won(&self) -> bool {
        self.has_won
    }

    /// Trials in a row of which nothing was let in.
    pub(super) fn refused(&self) -> u32 {
        self.refused
    }

    /// Whether so many steps have paid for what was measured so far.
    pub(super) fn is_paid_for(&self, steps: u64) -> bool {
        self.played < FREE_STEPS + steps / STEPS_SHARE
    }

    /// The learner that was set aside.
    pub(super) fn before_mut(&mut self) -> Option<&mut Learner> {
        self.before.as_deref_mut()
    }

    /// Takes the learner out that was set aside, or puts it back.
    pub(super) fn swap(&mut self, before: &mut Option<Box<Learner>>) {
        core::mem::swap(&mut self.before, before);
    }

    /// Books what a copy took that is given up.
    fn book(&mut self, before: &Tally, after: &Tally) {
        let spent = &mut self.spent;
        spent.steps += after.steps - before.steps;
        spent.episodes += after.episodes - before.episodes;
        spent.resets += after.resets - before.resets;
        spent.unplayed += after.unplayed - before.unplayed;
        spent.rejected += after.rejected - before.rejected;
        spent.proofs += after.proofs - before.proofs;
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        let Spent { steps, episodes, resets, unplayed, rejected, proofs } = self.spent;
        writer.bool(self.has_won);
        [self.begun, self.refused, rejected, proofs].into_iter().for_each(|count| writer.u32(count));
        [self.played, steps, episodes, resets, unplayed, self.since]
            .into_iter()
            .for_each(|count| writer.u64(count));
        encode_option(writer, self.before.as_ref(), |before, writer| writer.bytes(&before.encode()));
    }

    /// Reads canonical bytes back, of a learner in worlds of this shape.
    pub(super) fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<Apart, RestoreError> {
        let malformed = reader.error("trials for people that nobody can have made");
        let has_won = reader.bool()?;
        let (begun, refused, rejected, proofs) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        let (played, steps, episodes) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (resets, unplayed, since) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let before = decode_option(reader, |reader| Ok(reader.bytes()?.to_vec()))?;
        let counts = [played, steps, episodes, resets, unplayed, since];
        if counts.iter().any(|count| COUNT_MAX <= *count) || begun == 0 || begun < refused {
            return Err(malformed.into());
        }
        let before = before.map(|bytes| SavedLearner::parse_set_aside(&bytes, shape)).transpose()?;
        let spent = Spent { steps, episodes, resets, unplayed, rejected, proofs };
        Ok(Apart { has_won, begun, refused, played, spent, since, before: before.map(Box::new) })
    }
}

impl Learner {
    /// Sets the learner aside and goes on as a copy of it that tries these candidates.
    pub(super) fn begin_apart(&mut self, candidates: Vec<Hypothesis>, witness: &mut dyn Witness) {
        // What is recorded so far is everybody's.
        self.seal(witness);
        let hearing = core::mem::take(&mut self.hearing);
        let before = Box::new(self.clone());
        self.hearing = hearing;
        let apart = &mut self.hearing.apart;
        (apart.before, apart.since) = (Some(before), self.tally.steps);
        // Tests that were made for people before are in no account of the learner that was set aside.
        for _ in 0..apart.begun {
            self.machinery.enter_test(Account::Trials);
        }
        apart.begun = apart.begun.saturating_add(1);
        self.gate_seeds = Seeds::for_people(self.settings.seed, apart.begun);
        self.make_room();
        candidates.into_iter().for_each(|candidate| self.submit_one(candidate, Fixed::ZERO));
        self.phase = Phase::Judge;
    }

    /// Everything is decided: the copy goes on if something of people's was let in, else the learner that was set aside.
    pub(super) fn end_apart(&mut self, witness: &mut dyn Witness) {
        let apart = &mut self.hearing.apart;
        let Some(before) = apart.before.take() else { return };
        apart.played += self.tally.steps - apart.since;
        if self.machinery.acting_digest() != before.machinery.acting_digest() {
            (apart.has_won, apart.refused) = (true, 0);
            self.gate_seeds = before.gate_seeds;
            return;
        }
        apart.refused = apart.refused.saturating_add(1);
        apart.book(&before.tally, &self.tally);
        self.seal(witness);
        let approval = self.machinery.evolution().pox().approval();
        let mut before = before;
        // A number names one patch and the contest about it, whatever became of them.
        before.machinery.number_after(&self.machinery);
        let (hearing, offered) = (core::mem::take(&mut self.hearing), core::mem::take(&mut self.offered));
        let mut history = self.history.clone();
        // What is searched goes by the numbers of episodes.
        history.number_like(&before.history);
        *self = Learner { hearing, offered, history, ..*before };
        self.machinery.lend_approval(approval);
    }

    /// Steps taken in the world, those of trials for people included of which nothing is left but the count.
    pub fn steps_taken(&self) -> u64 {
        self.tally.steps + self.hearing.apart.spent.steps
    }

    /// Whether the budget is spent.
    pub(super) fn is_spent(&self) -> bool {
        self.settings.budget <= self.steps_taken()
    }

    /// Where the run stands, with what was taken by copies that were given up.
    pub(super) fn accounted(&self) -> Tally {
        let Spent { steps, episodes, resets, unplayed, rejected, proofs } = self.hearing.apart.spent;
        let own = self.tally;
        Tally {
            steps: own.steps + steps,
            steps_by_machine: own.steps_by_machine + steps,
            episodes: own.episodes + episodes,
            resets: own.resets + resets,
            unplayed: own.unplayed + unplayed,
            rejected: own.rejected + rejected,
            proofs: own.proofs + proofs,
            ..own
        }
    }
}
