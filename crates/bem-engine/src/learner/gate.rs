//! The gate: waiting candidates become patches, their conditions are shown, and pairs are played until a test decides.
//!
//! Candidate and incumbent play the same fresh seeds. Rollouts are steps like all others: they count against the budget
//! and are remembered. Nothing else makes an incumbent. An applied patch is watched: where the incumbent's episodes bring
//! less than its rollouts promised, it is played against what was there before, and taken back if that is better.
//! Where a world cannot be repeated there are no pairs: `unpaired`.
//! Clauses: SCC-1, SCC-3, SCC-4, SCC-8, SCC-9; decisions D-21, D-23.

use crate::codec::{decode_option, encode_option};
use crate::learner::claim::proposal;
use crate::learner::exploration::EXPLAINED_MIN;
use crate::learner::machinery::rollout;
use crate::learner::search::Screened;
use crate::learner::structure::gates_of;
use crate::learner::{Decision, Event, EvidenceBasis, Learner, Phase, Witness};
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Environment, EnvironmentError};
use bem_base::fixed::Fixed;
use bem_evolve::evolution::{Advance, Record, Verdict};
use bem_evolve::improvement::Evidence;
use bem_evolve::patch::{Change, PatchKind};
use bem_evolve::propose::Proposal;
use bem_evolve::rollout::Rollout;
use bem_evolve::verify::{AcceptedPatch, Improvement};
use bem_machine::turn::Turn;
use bem_synth::experience::Episode;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::policy::{Policy, PolicyState};
use std::sync::Arc;

/// Pairs without a single difference after which a candidate is given up, because rollouts cost steps: at least so many, and
/// later one for so many episodes. What is mended late is rare, and what earns the same costs nothing but steps.
const EQUAL_PAIRS_MIN: usize = 80;
const EPISODES_PER_EQUAL_PAIR: u64 = 16;

/// Episodes of usual length that a trial may last while the counts leave open that much more can be earned, besides a quarter of
/// the steps before it.
const HOPEFUL_EPISODES: u64 = 24;

/// Episodes from which on the range of returns is taken from what was seen.
pub(super) const SPAN_EPISODES: usize = 16;

/// Two who play the same seeds.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    contest: Contest,
    /// The one who plays first: the candidate of a trial, the incumbent of a watch.
    policy: Arc<Policy>,
    /// Rollouts of the candidate in a row at the declared maximum.
    streak: u32,
    /// The first half of a pair whose other half is still to be played.
    half: Option<Half>,
    /// Steps that the one who plays first has taken where there are no pairs.
    spent: u64,
}

/// What the pairs are played for. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Contest {
    /// A candidate against the incumbent, before it is let in.
    Trial = 0,
    /// The incumbent against the one before, after it was let in.
    Watch = 1,
}

/// What the first player did on a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Half {
    seed: u64,
    episode: Episode,
}

impl Gate {
    /// Before the first pair.
    pub(super) fn new(contest: Contest, policy: Arc<Policy>) -> Gate {
        Gate { contest, policy, streak: 0, half: None, spent: 0 }
    }

    /// What the pairs are played for.
    pub(super) fn contest(&self) -> Contest {
        self.contest
    }

    /// The one who plays first.
    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Counts an episode that was played where there are no pairs.
    pub(super) fn count(&mut self, turn: Turn, episode: &Episode, return_max: i64) {
        self.half = None;
        if turn == Turn::SEAT {
            self.spent += episode.steps.len() as u64;
            self.streak = if episode.total() == return_max { self.streak + 1 } else { 0 };
        }
    }

    /// Steps that the candidate has taken where there are no pairs.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    /// The seed of a pair whose first half was played.
    pub(super) fn half_seed(&self) -> Option<u64> {
        self.half.as_ref().map(|half| half.seed)
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.u8(self.contest as u8);
        writer.u32(self.streak);
        writer.u64(self.spent);
        encode_option(writer, self.half.as_ref(), |half, writer| {
            writer.u64(half.seed);
            half.episode.encode(writer);
        });
    }

    /// Reads canonical bytes back; who plays first must be known, and the episode one of its world.
    pub(super) fn decode(
        player: impl FnOnce(Contest) -> Option<Arc<Policy>>,
        episode: impl Fn(&mut Reader<'_>) -> Result<Episode, DecodeError>,
        reader: &mut Reader<'_>,
    ) -> Result<Gate, DecodeError> {
        let malformed = reader.error("pairs that nobody has asked for");
        let contest = match reader.u8()? {
            0 => Contest::Trial,
            1 => Contest::Watch,
            _ => return Err(malformed),
        };
        let policy = player(contest).ok_or(malformed)?;
        let malformed = reader.error("more steps than any candidate can have taken");
        let (streak, spent) = (reader.u32()?, reader.u64()?);
        if 1 << 48 <= spent {
            return Err(malformed);
        }
        let half =
            decode_option(reader, |reader| Ok(Half { seed: reader.u64()?, episode: episode(reader)? }))?;
        Ok(Gate { contest, policy, streak, half, spent })
    }
}

impl Learner {
    /// Decides a change on the evidence that it brings and tells everybody; whether it is in force.
    pub(super) fn decide_at_once(&mut self, proposal: Proposal, witness: &mut dyn Witness) -> bool {
        let acting = self.machinery.acting_digest();
        let is_held = matches!(proposal.change, Change::Hold { .. });
        let is_reset = matches!(proposal.change, Change::Reset { .. });
        let (span, steps) = (self.seen_span(), self.tally.steps);
        let Some(record) = self.machinery.decide_at_once(proposal, span, steps) else { return false };
        self.history.link("bem/chain/decision", &decision_bytes(&record, None));
        let is_changed = self.machinery.acting_digest() != acting;
        self.notice_acting();
        self.tally.acting_changes_patched += u32::from(is_changed && record.is_applied());
        if let Verdict::Applied { accepted, .. } = &record.verdict {
            // A change of the world is no gain.
            match is_reset {
                true => self.exploration.reopen(&self.shape),
                false => self.note_gain(&record),
            }
            self.tally.applied += 1;
            self.tally.proofs += accepted.verified().proofs() as u32;
        } else {
            self.tally.rejected += 1;
        }
        witness.decided(&decision(&record, None), applied_patch(&record));
        if is_changed && is_held {
            self.standing.hold(self.choice_words(), self.tally.steps);
            self.hand_over(witness);
        } else if self.acts_plainly()
            && record.is_applied()
            && !self.standing.incumbent().words.starts_with("always")
        {
            // The same actions may be held with fewer buckets, or with more of them.
            self.standing.rename(self.choice_words());
        }
        record.is_applied()
    }

    /// What was shown to gain enough is a reason to go on exploring: there may be more. Means of the log and proofs alone are
    /// no such evidence.
    fn note_gain(&mut self, record: &Record) {
        let is_gain = match record.improvement() {
            Some(Improvement::Rollouts(evidence)) => EXPLAINED_MIN <= evidence.mean,
            Some(Improvement::Counted { gain, .. }) => EXPLAINED_MIN <= *gain,
            Some(Improvement::Interleaved(_)) => true,
            // Contexts matter where plain actions act and no plan looks ahead; that something is BAD less often is no gain in return.
            Some(Improvement::Logged { lower_bound, .. }) => {
                let is_plain = self.acts_plainly() && self.exploration.explorer().is_none();
                EXPLAINED_MIN <= *lower_bound && is_plain && record.kind != PatchKind::Guard
            }
            _ => false,
        };
        if is_gain {
            self.exploration.note_gain();
        } else if matches!(record.improvement(), Some(Improvement::Logged { .. })) {
            self.exploration.note_explained();
        }
    }

    /// Makes room in the pool, if it is nearly full.
    pub(super) fn make_room(&mut self) {
        if let Some(room) = self.machinery.propose_room() {
            self.machinery.submit(room);
        }
    }

    /// Makes patches of candidates that are new and that the log does not speak against.
    pub(super) fn submit(&mut self, candidates: Vec<Hypothesis>, is_searched: bool) {
        if !candidates.is_empty() {
            self.make_room();
        }
        let (mut submitted, most) = (0, self.settings.config.synth_patches);
        let mut leader = None;
        for candidate in candidates {
            if is_searched && most <= submitted {
                // A plan is made anew with every search; what explains the log may wait for the next one.
                if candidate.exact && candidate.predicted.is_none() && self.shape.horizon == 1 {
                    self.candidates.put_off(candidate);
                }
                continue;
            }
            let is_timed = self.settings.config.stationary && 0 < candidate.policy.counts_steps();
            if is_timed {
                continue;
            }
            if self.candidates.is_waiting(&candidate.policy) || candidate.policy == **self.machinery.frozen()
            {
                continue;
            }
            // What was learned on a lower rung is always tried: there is no log yet to screen it with.
            let screened =
                if is_searched { self.screen(&candidate) } else { Screened::Promises(Fixed::ZERO) };
            match screened {
                Screened::Promises(gain) => {
                    submitted += 1;
                    self.submit_one(candidate, gain);
                }
                Screened::Undecided => self.candidates.put_off(candidate),
                Screened::Leads => leader = leader.or(Some(candidate)),
                Screened::Refuted => {}
            }
        }
        // Where a circuit acts and nothing is left to measure, a small gain may hide behind chance in the log.
        if let Some(leader) = leader.filter(|_| submitted == 0 && self.candidates.is_fruitless()) {
            self.submit_one(leader, Fixed::ZERO);
        }
    }

    /// Makes a patch of a candidate that promises this gain.
    pub(super) fn submit_one(&mut self, candidate: Hypothesis, gain: Fixed) {
        // A circuit that says nothing about itself stood for others in the pool, and is not proposed by itself.
        let Some(mut proposal) = proposal(&candidate, &self.recent()) else { return };
        proposal.effects.return_gain = gain;
        if let Some(serial) = self.machinery.submit(proposal) {
            self.candidates.wait(serial, candidate);
        }
    }

    /// How far apart the returns seen so far lie, in milli-units; as declared while few were seen.
    ///
    /// What may be declared is often a hundred times wider than what happens, and a test that must fear losses of that
    /// size takes a hundred times the pairs. It is at least what one step may bring: returns that were all equal so far
    /// need not stay so.
    pub(super) fn seen_span(&self) -> i64 {
        let declared = (self.shape.return_max - self.shape.return_min).max(1);
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for total in self.experience.episodes().map(Episode::total) {
            (low, high) = (low.min(total), high.max(total));
        }
        let is_few = self.experience.episode_count() < SPAN_EPISODES;
        let step = i64::from(self.shape.reward_max) - i64::from(self.shape.reward_min);
        if is_few { declared } else { high.saturating_sub(low).max(step).clamp(1, declared) }
    }

    /// Takes the head of the queue: shows its condition and opens its trial, or ends the round.
    pub(super) fn judge(&mut self, witness: &mut dyn Witness) -> Event {
        // A unit of a scheduler decides a few patches; the library is decided at once.
        let enough = self.settings.config.verify_patches;
        let is_enough = self.workload.is_enough(enough);
        if self.candidates.is_searched() && (is_enough || self.is_spent()) {
            return self.end_judging(witness);
        }
        let (span, acting) = (self.seen_span(), self.machinery.acting_digest());
        match self.machinery.decide_next(span, self.unpaired(), self.tally.steps) {
            Advance::Idle => return self.end_judging(witness),
            Advance::Decided(record) => self.conclude(*record, 0, acting, witness),
            Advance::Measuring => {
                let shown = self.machinery.evolution().trial().expect("a trial has just been opened");
                let (serial, proofs) = (shown.patch().serial, shown.proofs());
                self.tally.proofs += proofs as u32;
                match self.candidates.waiting(serial).map(|candidate| Arc::new(candidate.policy.clone())) {
                    Some(policy) => {
                        self.candidates.test(&policy, self.tally.steps);
                        self.phase = Phase::Measure(Box::new(Gate::new(Contest::Trial, policy)));
                    }
                    None => self.give_up("nobody can play it", witness),
                }
            }
        }
        Event::Judged
    }

    fn end_judging(&mut self, witness: &mut dyn Witness) -> Event {
        match self.candidates.close_round() {
            Some(_) if !self.workload.is_paced() => {
                self.end_round();
                Event::RoundEnded
            }
            Some(is_idle) => {
                self.candidates.note_round(is_idle && self.acts_by_proof());
                self.pause()
            }
            None => {
                self.end_apart(witness);
                // The learner that was set aside may be in the middle of a trial of its own.
                if !self.is_measuring() {
                    self.end_round();
                }
                Event::Judged
            }
        }
    }

    /// Begins the next half of a pair; a pair that cannot differ is booked without playing it.
    #[doc(alias = "PoX")]
    pub(super) fn measure(
        &mut self,
        world: &mut dyn Environment,
        witness: &mut dyn Witness,
    ) -> Result<Event, EnvironmentError> {
        if !self.is_spent() && !self.affords_a_try() {
            let seed = self.play_seeds.next_seed();
            return self.begin(world, seed, Turn::BASELINE);
        }
        if !self.repeats() {
            return self.measure_unpaired(world);
        }
        if self.interrupts_trial() {
            return Ok(self.look_at_told(witness));
        }
        let before = self.machinery.turn_before();
        let Phase::Measure(gate) = &mut self.phase else { unreachable!("only a gate measures") };
        let (first, second) = match (gate.contest, before) {
            (Contest::Watch, Some(before)) => (Turn::HELD, before),
            _ => (Turn::SEAT, Turn::HELD),
        };
        if let Some(half) = &gate.half {
            let seed = half.seed;
            return self.begin(world, seed, second);
        }
        if gate.contest == Contest::Trial && self.explores_between() {
            let (seed, turn) = (self.play_seeds.next_seed(), self.exploring_turn());
            let event = self.begin(world, seed, turn)?;
            self.flight.iter_mut().for_each(|flight| flight.is_aside = true);
            return Ok(event);
        }
        let Phase::Measure(gate) = &mut self.phase else { unreachable!("only a gate measures") };
        let seed = self.gate_seeds.next_seed();
        if self.shape.horizon == 1 && gate.contest == Contest::Trial {
            self.tally.resets += 1;
            world.reset(seed)?;
            let observation = world.observation();
            let guard = self.machinery.family().guard();
            let action = |policy: &Policy| PolicyState::new(policy).act(policy, observation);
            if guard.pass(observation, action(&gate.policy)) == action(self.machinery.frozen()) {
                // One step, the same action, the same seed: the same return. Nothing needs to be played.
                self.tally.unplayed += 1;
                self.book_trial(&Rollout::default(), &Rollout::default(), witness);
                return Ok(Event::Paired);
            }
        }
        self.begin(world, seed, first)
    }

    /// Books a rollout: the first half, and the pair as soon as both are known.
    pub(super) fn take_rollout(
        &mut self,
        seed: u64,
        turn: Turn,
        episode: Episode,
        witness: &mut dyn Witness,
    ) {
        if !self.repeats() {
            return self.take_unpaired(turn, episode, witness);
        }
        // What is held and would have done the same all along has the same return: worlds repeat themselves.
        let is_same = turn == Turn::SEAT && !self.agent().adapts() && self.is_held_play(&episode);
        let Phase::Measure(gate) = &mut self.phase else { unreachable!("only a gate plays rollouts") };
        let (contest, half) = (gate.contest, gate.half.take());
        if turn == Turn::HELD {
            self.standing.book_rollout(episode.total());
        }
        if turn == Turn::SEAT {
            gate.streak = if episode.total() == self.shape.return_max { gate.streak + 1 } else { 0 };
        }
        let this = rollout(&episode);
        let Some(half) = half else {
            if is_same {
                self.remember(turn, episode, witness);
                return self.book_trial(&this, &this, witness);
            }
            gate.half = Some(Half { seed, episode: episode.clone() });
            return self.remember(turn, episode, witness);
        };
        let first = rollout(&half.episode);
        let second = episode.clone();
        self.remember(turn, episode, witness);
        if self.voids_pairs([&half.episode, &second], witness) {
            return;
        }
        match contest {
            Contest::Trial => self.book_trial(&first, &this, witness),
            Contest::Watch => self.book_watch(&first, &this, witness),
        }
    }

    fn book_trial(&mut self, new: &Rollout, old: &Rollout, witness: &mut dyn Witness) {
        let (steps, acting) = (self.tally.steps, self.machinery.acting_digest());
        if let Some(record) = self.machinery.book_pair(new, old, steps) {
            let streak = self.end_contest();
            return self.conclude(record, streak, acting, witness);
        }
        if self.gives_up_for_people(witness) {
            return;
        }
        let is_played = 0 < new.steps;
        let evolution = self.machinery.evolution();
        let shown = evolution.trial();
        // What saves gates may live by doing the same; everybody else must do something else.
        let may_be_equal = shown.is_some_and(|shown| matches!(shown.patch().change, Change::Play { .. }));
        let equal_max = EQUAL_PAIRS_MIN.max((self.tally.episodes / EPISODES_PER_EQUAL_PAIR) as usize);
        if is_played && !may_be_equal && evolution.trial_never_differed(equal_max) {
            self.give_up("it never does anything else", witness);
        } else if is_played && self.is_spent() {
            self.run_out(witness);
        } else if is_played && !may_be_equal {
            self.give_up_for_more(witness);
        }
    }

    /// Gives a trial up that takes long while the counts leave open that much more can be earned than what acts does. Its
    /// candidate may come again when twice as many steps are taken.
    fn give_up_for_more(&mut self, witness: &mut dyn Witness) {
        let Phase::Measure(gate) = &self.phase else { return };
        let (policy, steps) = (gate.policy.clone(), self.tally.steps);
        let opened = self.candidates.tested_at(&policy).unwrap_or(steps).min(steps);
        let usual = steps.div_ceil(self.tally.episodes.max(1));
        if self.exploration.may_gain() && HOPEFUL_EPISODES * usual + opened / 4 < steps - opened {
            self.give_up("its gain is too small to be shown by now", witness);
            self.candidates.test(&policy, steps / 2);
        }
    }

    /// Whether the next episode is played for knowledge between two pairs: the counts leave open that much more can be earned,
    /// and what is measured is no plan to earn it.
    fn explores_between(&mut self) -> bool {
        if !self.exploration.may_gain() || self.is_spent() || self.measured_plan().is_some() {
            return false;
        }
        let (episodes, prng) = (self.tally.episodes, self.machinery.prng_mut());
        self.exploration.is_next(&self.shape, &self.settings.config, episodes, prng)
    }

    /// The budget is spent in the middle of a trial.
    pub(super) fn run_out(&mut self, witness: &mut dyn Witness) {
        let plan = self.measured_plan();
        self.give_up("no budget is left to measure it", witness);
        // What cannot be measured any more is left to what was counted.
        if let Some(plan) = plan.filter(|_| self.is_borne_out()) {
            self.follow_counts(plan, witness);
        }
    }

    /// The candidate that is measured now, if it is a plan.
    fn measured_plan(&self) -> Option<Hypothesis> {
        let serial = self.machinery.evolution().trial()?.patch().serial;
        self.candidates.waiting(serial).filter(|candidate| candidate.predicted.is_some()).cloned()
    }

    /// The candidate that is measured now.
    pub(super) fn measured_policy(&self) -> Option<Policy> {
        let serial = self.machinery.evolution().trial()?.patch().serial;
        self.candidates.waiting(serial).map(|candidate| candidate.policy.clone())
    }

    pub(super) fn give_up(&mut self, reason: &str, witness: &mut dyn Witness) {
        let (steps, acting) = (self.tally.steps, self.machinery.acting_digest());
        let record = self.machinery.abandon_trial(steps, reason);
        let streak = self.end_contest();
        if let Some(record) = record {
            self.conclude(record, streak, acting, witness);
        }
    }

    /// Leaves the gate; returns the candidate's streak.
    pub(super) fn end_contest(&mut self) -> u32 {
        match core::mem::replace(&mut self.phase, Phase::Judge) {
            Phase::Measure(gate) => gate.streak,
            _ => 0,
        }
    }

    /// Does what follows from a decision about a patch; `acting` is what acted before it.
    pub(super) fn conclude(
        &mut self,
        record: Record,
        streak: u32,
        acting: Digest,
        witness: &mut dyn Witness,
    ) {
        let candidate = self.candidates.decide(record.serial, self.tally.steps);
        self.workload.count_decision();
        self.notice_acting();
        let is_patch = record.is_applied() || matches!(record.verdict, Verdict::RolledBack { .. });
        self.tally.acting_changes_patched += u32::from(is_patch && self.machinery.acting_digest() != acting);
        let bytes = decision_bytes(&record, candidate.as_ref());
        self.history.link("bem/chain/decision", &bytes);
        let decision = decision(&record, candidate.as_ref().or(self.standing.replaced_by()));
        witness.decided(&decision, applied_patch(&record));
        match (&record.verdict, candidate) {
            (Verdict::Applied { .. }, candidate) => {
                self.note_gain(&record);
                self.tally.applied += 1;
                match candidate {
                    Some(candidate) => self.install(candidate, streak, witness),
                    None if record.kind == PatchKind::Superoptimize => self.announce(witness),
                    None => {}
                }
                // Patches that waited are obsolete now: those still worth it are made again.
                let rest = self.candidates.take_waiting();
                self.submit(rest, self.candidates.is_searched());
            }
            (Verdict::RolledBack { .. }, _) => self.fall_back(&record, witness),
            (Verdict::Refused { .. }, _) => self.tally.rejected += 1,
        }
    }

    /// The candidate acts from now on.
    fn install(&mut self, candidate: Hypothesis, streak: u32, witness: &mut dyn Witness) {
        let alarm = self.new_alarm();
        self.standing.install(candidate, streak, self.tally.steps, alarm);
        self.hand_over(witness);
    }
}

/// What is linked into the chain.
pub(super) fn decision_bytes(record: &Record, candidate: Option<&Hypothesis>) -> Vec<u8> {
    let mut writer = Writer::new();
    record.encode(&mut writer);
    if let Some(candidate) = candidate {
        writer.raw(candidate.policy.digest().as_bytes());
        writer.raw(candidate.provenance.as_bytes());
    }
    writer.into_bytes()
}

/// What the witness is told.
pub(super) fn decision(record: &Record, subject: Option<&Hypothesis>) -> Decision {
    let unmeasured = |mean: Fixed, lower_bound: Fixed, odds: u128| Evidence {
        pairs: 0,
        mean,
        lower_bound,
        odds,
        bad_excess: 0,
    };
    let nothing = unmeasured(Fixed::ZERO, Fixed::ONE.negated(), 1);
    let (basis, evidence) = match record.improvement() {
        Some(Improvement::Rollouts(evidence)) => (EvidenceBasis::Rollouts, *evidence),
        Some(Improvement::Logged { lower_bound, .. }) => {
            (EvidenceBasis::Logged, unmeasured(*lower_bound, *lower_bound, 20))
        }
        Some(Improvement::Counted { gain, .. }) => {
            (EvidenceBasis::Counted, unmeasured(*gain, Fixed::ZERO, 1))
        }
        Some(Improvement::Means { gain, .. }) => (EvidenceBasis::Means, unmeasured(*gain, Fixed::ZERO, 1)),
        Some(Improvement::Static) => (EvidenceBasis::Proof, nothing),
        Some(Improvement::Given) => (EvidenceBasis::Given, nothing),
        Some(Improvement::Interleaved(found)) => {
            let (pairs, bad_excess) = (found.episodes, found.bad_excess());
            let (mean, lower_bound, odds) = (found.mean, found.lower_bound, found.odds);
            (EvidenceBasis::Interleaved, Evidence { pairs, mean, lower_bound, odds, bad_excess })
        }
        None => (EvidenceBasis::None, nothing),
    };
    let patch = applied_patch(record);
    let subject = subject.filter(|_| record.kind == PatchKind::Synthesize);
    let gates = match patch {
        Some(accepted) => gates_of(&accepted.patch().change),
        None => subject.map_or(0, |candidate| candidate.policy.gates()),
    };
    Decision {
        steps: record.step,
        serial: record.serial,
        kind: record.kind,
        words: record.words.clone(),
        gates,
        accepted: record.is_applied(),
        rolled_back: matches!(record.verdict, Verdict::RolledBack { .. }),
        reason: match &record.verdict {
            Verdict::Applied { .. } => String::new(),
            Verdict::Refused { reason, .. } => reason.clone(),
            Verdict::RolledBack { reason } => {
                format!("over {} pairs what was there before is better", reason.pairs)
            }
        },
        evidence,
        basis,
        threshold: record.pox.threshold,
        provenance: subject.map_or_else(Digest::default, |candidate| candidate.provenance),
        proofs: patch.map_or(0, |accepted| accepted.verified().proofs() as u32),
    }
}

/// What was put into force.
pub(super) fn applied_patch(record: &Record) -> Option<&AcceptedPatch> {
    match &record.verdict {
        Verdict::Applied { accepted, .. } => Some(accepted),
        _ => None,
    }
}
