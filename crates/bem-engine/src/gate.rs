//! The gate: waiting candidates become patches, their conditions are shown, and pairs are played until a test decides.
//!
//! Candidate and incumbent play the same fresh seeds. Rollouts are steps like all others: they count against the budget
//! and are remembered. Nothing else makes an incumbent. An applied patch is watched: where the incumbent's episodes bring
//! less than its rollouts promised, it is played against what was there before, and taken back if that is better.
//! Clauses: SCC-1, SCC-3, SCC-4, SCC-8, SCC-9; decisions D-21, D-23.

use crate::act::Mode;
use crate::learner::{Decision, Event, Incumbent, Learner, Phase, Witness};
use crate::structure::gates_of;
use crate::verification::{bad_pairs, proposal};
use bem_base::digest::Digest;
use bem_base::encode::Writer;
use bem_base::environment::{Environment, EnvironmentError};
use bem_base::fixed::Fixed;
use bem_evolve::condition::BadPair;
use bem_evolve::evolution::{Advance, Record, Verdict};
use bem_evolve::improvement::Evidence;
use bem_evolve::patch::{Change, PatchKind};
use bem_evolve::rollout::Rollout;
use bem_evolve::verify::{AcceptedPatch, Improvement};
use bem_synth::experience::Episode;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::policy::{Policy, PolicyState};
use bem_synth::propose;
use std::sync::Arc;

/// Pairs without a single difference after which a candidate is given up: rollouts cost steps.
const EQUAL_PAIRS_MAX: usize = 80;

/// Episodes from which on the range of returns is taken from what was seen.
pub(crate) const SPAN_EPISODES: usize = 16;

/// Two who play the same seeds.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) contest: Contest,
    /// The one who plays first: the candidate of a trial, the incumbent of a watch.
    pub(crate) policy: Arc<Policy>,
    /// Rollouts of the candidate in a row at the declared maximum.
    pub(crate) streak: u32,
    /// The first half of a pair whose other half is still to be played.
    pub(crate) half: Option<Half>,
}

/// What the pairs are played for. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Contest {
    /// A candidate against the incumbent, before it is let in.
    Trial = 0,
    /// The incumbent against the one before, after it was let in.
    Watch = 1,
}

/// What the first player did on a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Half {
    pub(crate) seed: u64,
    pub(crate) episode: Episode,
}

impl Learner {
    /// Makes patches of candidates that are new and that the log does not speak against.
    pub(crate) fn submit(&mut self, candidates: Vec<Hypothesis>, is_searched: bool) {
        let bad = self.bad_pairs();
        if let Some(machinery) = self.machinery.as_mut().filter(|_| !candidates.is_empty())
            && let Some(room) = machinery.propose_room()
        {
            machinery.submit(room);
        }
        for candidate in candidates {
            if self.waiting.values().any(|waiting| waiting.policy == candidate.policy) {
                continue;
            }
            // What was learned on a lower rung is always tried: there is no log yet to screen it with.
            let promise = if is_searched { self.passes_screen(&candidate) } else { Some(Fixed::ZERO) };
            if let Some(promise) = promise {
                self.submit_one(candidate, promise, &bad, true);
            }
        }
    }

    fn submit_one(&mut self, candidate: Hypothesis, promise: Fixed, bad: &[BadPair], tagged: bool) {
        let episodes = propose::recent(&self.experience, self.settings.search.steps_max);
        // A circuit that says nothing about itself stood for others in the pool, and is not proposed by itself.
        let Some(mut proposal) = proposal(&candidate, &episodes, bad, tagged) else { return };
        proposal.effects.return_gain = promise;
        if let Some(serial) = self.machinery.as_mut().and_then(|machinery| machinery.submit(proposal)) {
            self.waiting.insert(serial, candidate);
        }
    }

    /// How far apart the returns seen so far lie, in milli-units; as declared while few were seen.
    ///
    /// What may be declared is often a hundred times wider than what happens, and a test that must fear losses of that
    /// size takes a hundred times the pairs. It is at least what one step may bring: returns that were all equal so far
    /// need not stay so.
    pub(crate) fn seen_span(&self) -> i64 {
        let declared = (self.shape.return_max - self.shape.return_min).max(1);
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for total in self.experience.episodes().map(Episode::total) {
            (low, high) = (low.min(total), high.max(total));
        }
        let is_few = self.experience.episode_count() < SPAN_EPISODES;
        let step = i64::from(self.shape.reward_max) - i64::from(self.shape.reward_min);
        if is_few { declared } else { high.saturating_sub(low).max(step).clamp(1, declared) }
    }

    fn bad_pairs(&self) -> Vec<BadPair> {
        bad_pairs(&propose::recent(&self.experience, self.settings.search.steps_max))
    }

    /// Takes the head of the queue: shows its condition and opens its trial, or ends the round.
    pub(crate) fn judge(&mut self, witness: &mut dyn Witness) -> Event {
        // A unit of a scheduler decides one patch; the library is decided at once.
        let is_enough = self.workload.as_ref().is_some_and(|workload| workload.decided);
        if self.tested_before.is_some() && (is_enough || self.settings.budget <= self.tally.steps) {
            return self.end_judging();
        }
        let (bad, span) = (self.bad_pairs(), self.seen_span());
        let Some(machinery) = &mut self.machinery else { return self.end_judging() };
        match machinery.decide_next(&bad, span, self.tally.steps) {
            Advance::Idle => return self.end_judging(),
            Advance::Decided(record) => self.conclude(*record, 0, witness),
            Advance::Measuring => {
                let shown = machinery.evolution().trial().expect("a trial has just been opened");
                let (serial, proofs) = (shown.patch().serial, shown.proofs());
                self.tally.proofs += proofs as u32;
                match self.waiting.get(&serial) {
                    Some(candidate) => {
                        self.tested.insert(candidate.policy.digest(), self.tally.steps);
                        let policy = Arc::new(candidate.policy.clone());
                        self.open(Contest::Trial, policy);
                    }
                    None => self.give_up("nobody can play it", witness),
                }
            }
        }
        Event::Judged
    }

    fn open(&mut self, contest: Contest, policy: Arc<Policy>) {
        self.phase = Phase::Measure(Box::new(Gate { contest, policy, streak: 0, half: None }));
    }

    fn end_judging(&mut self) -> Event {
        match self.tested_before.take() {
            Some(_) if self.workload.is_some() => {
                self.end_round();
                Event::RoundEnded
            }
            Some(before) => {
                let idle = !self.incumbent.is_choice && before == self.tested.len() as u64;
                self.fruitless = if idle { self.fruitless + 1 } else { 0 };
                self.pause()
            }
            None => {
                self.end_round();
                Event::Judged
            }
        }
    }

    /// Begins the next half of a pair; a pair that cannot differ is booked without playing it.
    #[doc(alias = "PoX")]
    pub(crate) fn measure(
        &mut self,
        world: &mut dyn Environment,
        witness: &mut dyn Witness,
    ) -> Result<Event, EnvironmentError> {
        let Phase::Measure(gate) = &mut self.phase else { unreachable!("only a gate measures") };
        let (first, second) = match gate.contest {
            Contest::Trial => (Mode::Candidate, Mode::Incumbent),
            Contest::Watch => (Mode::Incumbent, Mode::Previous),
        };
        if let Some(half) = &gate.half {
            let seed = half.seed;
            return self.begin(world, seed, second);
        }
        let seed = self.gate_seeds.next_seed();
        if self.shape.horizon == 1 && gate.contest == Contest::Trial {
            world.reset(seed)?;
            let observation = world.observation();
            let action = |policy: &Policy| PolicyState::new(policy).act(policy, observation);
            if action(&gate.policy) == action(&self.incumbent.policy) {
                // One step, the same action, the same seed: the same return. Nothing needs to be played.
                self.book_trial(&Rollout::default(), &Rollout::default(), witness);
                return Ok(Event::Paired);
            }
        }
        self.begin(world, seed, first)
    }

    /// Books a rollout: the first half, and the pair as soon as both are known.
    pub(crate) fn take_rollout(
        &mut self,
        seed: u64,
        mode: Mode,
        episode: Episode,
        witness: &mut dyn Witness,
    ) {
        // An incumbent that would have done the same all along has the same return: worlds repeat themselves.
        let is_same = mode == Mode::Candidate && self.is_incumbents(&episode);
        let Phase::Measure(gate) = &mut self.phase else { unreachable!("only a gate plays rollouts") };
        let (contest, half) = (gate.contest, gate.half.take());
        if mode == Mode::Incumbent {
            self.realised.book(episode.total());
        }
        if mode == Mode::Candidate {
            gate.streak = if episode.total() == self.shape.return_max { gate.streak + 1 } else { 0 };
        }
        let machinery = self.machinery.as_ref().expect("patches are measured where there is a machine");
        let this = machinery.rollout(&episode);
        let Some(half) = half else {
            if is_same {
                self.remember(episode, witness);
                return self.book_trial(&this, &this, witness);
            }
            gate.half = Some(Half { seed, episode: episode.clone() });
            return self.remember(episode, witness);
        };
        let first = machinery.rollout(&half.episode);
        self.remember(episode, witness);
        match contest {
            Contest::Trial => self.book_trial(&first, &this, witness),
            Contest::Watch => self.book_watch(&first, &this, witness),
        }
    }

    fn book_trial(&mut self, new: &Rollout, old: &Rollout, witness: &mut dyn Witness) {
        let steps = self.tally.steps;
        let machinery = self.machinery.as_mut().expect("patches are measured where there is a machine");
        if let Some(record) = machinery.book_pair(new, old, steps) {
            let streak = self.end_contest();
            return self.conclude(record, streak, witness);
        }
        let is_played = !new.steps.is_empty();
        let shown = machinery.evolution().trial();
        // What saves gates may live by doing the same; everybody else must do something else.
        let may_be_equal = shown.is_some_and(|shown| matches!(shown.patch().change, Change::Play { .. }));
        if is_played && !may_be_equal && machinery.evolution().trial_never_differed(EQUAL_PAIRS_MAX) {
            self.give_up("it never does anything else", witness);
        } else if is_played && self.settings.budget <= steps {
            let plan = self.measured_plan();
            self.give_up("no budget is left to measure it", witness);
            // What cannot be measured any more is left to what was counted.
            if let Some(plan) = plan.filter(|_| self.is_borne_out()) {
                self.look_ahead(plan, witness);
            }
        }
    }

    /// The candidate that is measured now, if it is a plan.
    fn measured_plan(&self) -> Option<Hypothesis> {
        let serial = self.machinery.as_ref()?.evolution().trial()?.patch().serial;
        self.waiting.get(&serial).filter(|candidate| candidate.foreseen.is_some()).cloned()
    }

    fn give_up(&mut self, reason: &str, witness: &mut dyn Witness) {
        let steps = self.tally.steps;
        let record = self.machinery.as_mut().and_then(|machinery| machinery.abandon_trial(steps, reason));
        let streak = self.end_contest();
        if let Some(record) = record {
            self.conclude(record, streak, witness);
        }
    }

    /// Leaves the gate; returns the candidate's streak.
    fn end_contest(&mut self) -> u32 {
        match core::mem::replace(&mut self.phase, Phase::Judge) {
            Phase::Measure(gate) => gate.streak,
            _ => 0,
        }
    }

    /// Does what follows from a decision about a patch.
    pub(crate) fn conclude(&mut self, record: Record, streak: u32, witness: &mut dyn Witness) {
        let candidate = self.waiting.remove(&record.serial);
        if let Some(workload) = &mut self.workload {
            workload.decided = true;
        }
        if let Some(candidate) = &candidate {
            self.tested.insert(candidate.policy.digest(), self.tally.steps);
        }
        let bytes = decision_bytes(&record, candidate.as_ref());
        self.link("bem/chain/decision", &bytes);
        let decision = decision(&record, candidate.as_ref().or(self.watched.as_ref()));
        witness.decided(&decision, applied_patch(&record));
        match (&record.verdict, candidate) {
            (Verdict::Applied { .. }, candidate) => {
                self.tally.applied += 1;
                match candidate {
                    Some(candidate) => {
                        // Only the latest patch can be taken back.
                        (self.previous, self.watched, self.alarm) = (None, None, None);
                        self.install(candidate, streak, witness);
                        if record.kind == PatchKind::Merge {
                            // The experts that a merge is made of are gone: there is nobody to fall back to.
                            (self.previous, self.watched, self.alarm) = (None, None, None);
                        }
                    }
                    None => self.follow(&record, witness),
                }
                // Patches that waited are obsolete now: those still worth it are made again.
                let rest: Vec<Hypothesis> = core::mem::take(&mut self.waiting).into_values().collect();
                self.submit(rest, self.tested_before.is_some());
            }
            (Verdict::RolledBack { .. }, _) => self.fall_back(&record, witness),
            (Verdict::Refused { reason, .. }, Some(candidate)) if reason.starts_with("BAD avoidance") => {
                // It may come without the tag; then the measured veto alone protects.
                self.tested.remove(&candidate.policy.digest());
                let bad = self.bad_pairs();
                self.submit_one(candidate, Fixed::ZERO, &bad, false);
            }
            (Verdict::Refused { .. }, _) => self.tally.rejected += 1,
        }
    }

    /// The candidate acts from now on.
    fn install(&mut self, candidate: Hypothesis, streak: u32, witness: &mut dyn Witness) {
        (self.streak, self.last_gain) = (streak, self.tally.steps);
        let policy = Arc::new(candidate.policy.clone());
        let (words, machine) = (candidate.words.clone(), candidate.machine.clone());
        let incumbent = Incumbent { policy, words, is_choice: false, looks_ahead: false, machine };
        self.previous = Some(self.hand_over(incumbent));
        self.watched = Some(candidate);
        self.open_watch();
        witness.incumbent_changed(&self.agent(), &self.incumbent.words, &self.tally);
    }
}

/// What is linked into the chain.
pub(crate) fn decision_bytes(record: &Record, candidate: Option<&Hypothesis>) -> Vec<u8> {
    let mut writer = Writer::new();
    record.encode(&mut writer);
    if let Some(candidate) = candidate {
        writer.raw(candidate.policy.digest().as_bytes());
        writer.raw(candidate.provenance.as_bytes());
    }
    writer.into_bytes()
}

/// What the witness is told.
pub(crate) fn decision(record: &Record, subject: Option<&Hypothesis>) -> Decision {
    let (mean, lower_bound) = (Fixed::ZERO, Fixed::ONE.negated());
    let evidence = match record.improvement() {
        Some(Improvement::Rollouts(evidence)) => *evidence,
        Some(Improvement::Logged { lower_bound, .. }) => {
            Evidence { pairs: 0, mean: *lower_bound, lower_bound: *lower_bound, odds: 20, bad_excess: 0 }
        }
        _ => Evidence { pairs: 0, mean, lower_bound, odds: 1, bad_excess: 0 },
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
        threshold: record.pox.threshold,
        provenance: subject.map_or_else(Digest::default, |candidate| candidate.provenance),
        proofs: patch.map_or(0, |accepted| accepted.verified().proofs() as u32),
    }
}

/// What was put into force.
pub(crate) fn applied_patch(record: &Record) -> Option<&AcceptedPatch> {
    match &record.verdict {
        Verdict::Applied { accepted, .. } => Some(accepted),
        _ => None,
    }
}
