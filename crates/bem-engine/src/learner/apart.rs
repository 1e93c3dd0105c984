//! What is measured for people, apart from what the learner measures for itself.
//!
//! When labels suggest a candidate, the learner is set aside as it is, between two episodes and be it in the middle of a trial of
//! its own. A copy of it tries the candidate, with seeds of a stream of its own and with the chances of error of tests beyond all
//! that it has entered. Where an episode has several steps, the copy first plays some along what people said and beyond
//! (`scouting`): so what can be asked about is seen, and what they suggest is what earned more there. If the candidate is let in,
//! the copy goes on; if it is refused, the learner goes on as it was set aside, and of the trial there remain its steps, its entries
//! in the chain and a count. A candidate that meets something BAD which the policy in force does not is given up at once. So whoever is always refused changes nothing that is learned: a run beside a liar is the run beside nobody, later by
//! the steps of the trials, which are bounded by a part of all steps. In a served world every episode is handed to both.
//! Must not know labels, nor who gave them. Clause: HUM-13; decisions D-210, D-216, D-217.

use super::scouting::Trails;
use super::state::{RestoreError, SavedLearner};
use super::{Event, Learner, Phase, Tally, Witness};
use crate::codec::{decode_option, encode_option};
use crate::seeds::Seeds;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Environment, EnvironmentError, Shape};
use bem_base::fixed::Fixed;
use bem_evolve::improvement::Account;
use bem_evolve::verify::Improvement;
use bem_machine::turn::Turn;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::told::ROWS_MAX;

/// Steps that trials for people may take at first, as many episodes besides where an episode has several steps, and one part in
/// so many of all steps. In worlds of one step a trial that has begun is finished.
const FREE_STEPS: u64 = 1_024;
const FREE_EPISODES: u64 = 128;
const STEPS_SHARE: u64 = 16;
/// Pairs after which a trial of several steps is given up that shows no gain: what reaches what nothing reached shows it at once.
const PAIRS_MIN: u32 = 3;
/// What a refusal counts for with something BAD in it: twice as many labels must be new for each.
const BAD_COUNTS: u32 = 12;
/// Why a trial is given up that risks something.
const MET_BAD: &str = "what people call right met something BAD";
/// Episodes of several steps that a copy may play in all.
const TRIED_MAX: u64 = 72;
/// Episodes that are played along what people said before what they suggest is tried.
const SCOUTED: u64 = 8;
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
    /// Steps when the copy that is at work began.
    since: u64,
    /// The learner as it was then, while a trial runs.
    before: Option<Box<Learner>>,
    /// Where actions led so far, while an episode goes along what people said. A function of the log.
    trails: Option<Trails>,
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
    pub(super) fn is_paid_for(&self, horizon: u32, steps: u64) -> bool {
        self.played < allowed(horizon, steps)
    }

    /// Whether a copy is at work.
    pub(super) fn is_running(&self) -> bool {
        self.before.is_some()
    }

    /// What was tried for people met something BAD: they are not heard again until very much is new.
    pub(super) fn meet_bad(&mut self) {
        if self.is_running() {
            self.refused = self.refused.saturating_add(BAD_COUNTS);
        }
    }

    /// Where actions led so far, if that is known.
    pub(super) fn trails(&self) -> Option<&Trails> {
        self.trails.as_ref()
    }

    /// An episode is over: where actions led is worked out anew for the next one.
    pub(super) fn forget_trails(&mut self) {
        self.trails = None;
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
        if counts.iter().any(|count| COUNT_MAX <= *count)
            || begun == 0
            || begun.saturating_mul(BAD_COUNTS + 1) < refused
        {
            return Err(malformed.into());
        }
        let before = before.map(|bytes| SavedLearner::parse_set_aside(&bytes, shape)).transpose()?;
        let spent = Spent { steps, episodes, resets, unplayed, rejected, proofs };
        let before = before.map(Box::new);
        Ok(Apart { has_won, begun, refused, played, spent, since, before, trails: None })
    }
}

/// Steps that may be taken for people in so many of all.
fn allowed(horizon: u32, steps: u64) -> u64 {
    let episodes = if 1 < horizon { FREE_EPISODES * u64::from(horizon) } else { 0 };
    FREE_STEPS + episodes + steps / STEPS_SHARE
}

impl Learner {
    /// Sets the learner aside and goes on as a copy of it that tries these candidates, or scouts first.
    pub(super) fn begin_apart(
        &mut self,
        candidates: Vec<Hypothesis>,
        scouts: bool,
        witness: &mut dyn Witness,
    ) {
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
        // A trial of the learner's own that is under way is the business of the learner that was set aside, as is what waits.
        if self.is_measuring() {
            let policy = self.measured_policy();
            self.machinery.abandon_trial(self.tally.steps, "what people say is measured first");
            self.end_contest();
            policy.iter().for_each(|policy| self.candidates.forgive(policy));
        }
        self.machinery.withdraw();
        self.candidates.take_waiting();
        self.candidates.close_round();
        match scouts {
            // First it goes along what people said; what they suggest is worked out then.
            true => self.phase = Phase::Collect,
            false => self.try_for_people(candidates),
        }
    }

    /// Tries these candidates.
    fn try_for_people(&mut self, candidates: Vec<Hypothesis>) {
        self.make_room();
        candidates.into_iter().for_each(|candidate| self.submit_one(candidate, Fixed::ZERO));
        self.phase = Phase::Judge;
    }

    /// The next unit of a copy that goes along what people said: an episode, or the candidates that follow from all of them.
    pub(super) fn scout(&mut self, world: &mut dyn Environment) -> Result<Event, EnvironmentError> {
        let is_enough =
            SCOUTED * u64::from(self.shape.horizon) <= self.tally.steps - self.hearing.apart.since;
        if is_enough || self.is_spent() || !self.hearing.is_safe() {
            let candidates = self.worth_hearing();
            self.try_for_people(candidates);
            return Ok(Event::Searched);
        }
        let seed = self.gate_seeds.next_seed();
        self.begin(world, seed, Turn::ADVISED)
    }

    /// Whether something of people's was let in by the copy that is at work.
    fn has_copy_won(&self) -> bool {
        let before = self.hearing.apart.before.as_ref();
        before.is_some_and(|before| before.machinery.acting_digest() != self.machinery.acting_digest())
    }

    /// Whether episodes along what people said may be played, and can show anything new.
    pub(super) fn may_scout(&self) -> bool {
        1 < self.walked()
            && self.hearing.is_safe()
            && self.floor.is_none()
            && Trails::of(self.experience.episodes(), self.shape.actions).len() <= ROWS_MAX
    }

    /// Works out where actions led so far, in an episode that goes along what people said and has come to this observation.
    pub(super) fn find_trails(&mut self, observation: Bits) {
        let Some(flight) = self.flight.as_ref().filter(|flight| flight.turn == Turn::ADVISED) else { return };
        let (apart, past) = (&mut self.hearing.apart, &flight.steps);
        match &mut apart.trails {
            _ if apart.before.is_none() => {}
            Some(trails) => {
                past.iter().last().into_iter().for_each(|step| trails.note(step, Some(observation)))
            }
            None => {
                let mut trails = Trails::of(self.experience.episodes(), self.shape.actions);
                let after = |place: usize| past.get(place + 1).map_or(observation, |step| step.observation);
                past.iter().enumerate().for_each(|(place, step)| trails.note(step, Some(after(place))));
                apart.trails = Some(trails);
            }
        }
    }

    /// Whether a trial for people goes on; else why it is given up. Nothing is risked for them: the first pair in which the
    /// candidate alone met something BAD ends it.
    fn ends_trial_for_people(&self) -> Option<&'static str> {
        let apart = &self.hearing.apart;
        apart.before.as_ref()?;
        let Some(Improvement::Rollouts(evidence)) = self.machinery.evolution().trial_improvement() else {
            return None;
        };
        let is_long = TRIED_MAX * u64::from(self.walked()) < self.tally.steps - apart.since;
        if 0 < evidence.bad_excess {
            Some(MET_BAD)
        } else if 1 < self.walked() && PAIRS_MIN <= evidence.pairs && evidence.mean <= Fixed::ZERO {
            Some("what people call right shows no gain")
        } else if 1 < self.walked() && is_long {
            Some("what people call right takes too long to measure")
        } else {
            None
        }
    }

    /// Gives a trial for people up, if there is a reason; whether there was.
    pub(super) fn gives_up_for_people(&mut self, witness: &mut dyn Witness) -> bool {
        let Some(reason) = self.ends_trial_for_people() else { return false };
        if reason == MET_BAD {
            self.hearing.apart.meet_bad();
        }
        self.give_up(reason, witness);
        true
    }

    /// Everything is decided: the copy goes on if something of people's was let in, else the learner that was set aside.
    pub(super) fn end_apart(&mut self, witness: &mut dyn Witness) {
        let (has_won, walked) = (self.has_copy_won(), self.walked());
        let apart = &mut self.hearing.apart;
        let Some(before) = apart.before.take() else { return };
        apart.trails = None;
        apart.played += self.tally.steps - apart.since;
        if has_won {
            (apart.has_won, apart.refused) = (true, 0);
            self.gate_seeds = before.gate_seeds;
            return;
        }
        // In worlds of several steps a word may be right and of no use until more is known: there steps alone are the limit.
        apart.refused = apart.refused.saturating_add(u32::from(walked == 1));
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
