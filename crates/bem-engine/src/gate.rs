//! The gate: a candidate is screened, its condition is shown, and it is measured in pairs until the test decides.
//!
//! Candidate and incumbent play the same fresh seeds. Rollouts are steps like all others: they count against the
//! budget and are remembered. Nothing else makes an incumbent. Clauses: SCC-3, SCC-4, SCC-8; decisions D-21, D-23.

use crate::act::Mode;
use crate::learner::{Decision, Event, Incumbent, Learner, Phase, Witness};
use crate::verification::Shown;
use bem_base::encode::Writer;
use bem_base::environment::{Environment, EnvironmentError};
use bem_base::fixed::Fixed;
use bem_evolve::improvement::{Evidence, ImprovementTest, Progress};
use bem_evolve::patch::Change;
use bem_evolve::verify::AcceptedPatch;
use bem_synth::experience::Episode;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::policy::{Policy, PolicyState};
use bem_synth::propose;
use std::sync::Arc;

/// Pairs without a single difference after which a candidate is given up: rollouts cost steps.
const EQUAL_PAIRS_MAX: usize = 80;

/// A candidate that is measured.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) candidate: Hypothesis,
    pub(crate) policy: Arc<Policy>,
    pub(crate) shown: Shown,
    pub(crate) test: ImprovementTest,
    /// Rollouts of the candidate in a row at the declared maximum.
    pub(crate) streak: u32,
    /// The candidate's half of a pair whose other half is still to be played.
    pub(crate) half: Option<Half>,
}

/// What the candidate did on a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Half {
    pub(crate) seed: u64,
    pub(crate) total: i64,
    pub(crate) bad: bool,
}

impl Learner {
    /// Looks at the next waiting candidate, or ends the round.
    pub(crate) fn judge(&mut self, witness: &mut dyn Witness) -> Event {
        if self.tested_before.is_some() && self.settings.budget <= self.tally.steps {
            self.waiting.clear();
        }
        let Some(candidate) = self.waiting.pop_front() else { return self.end_judging() };
        // What was learned on a lower rung is always tried: there is no log yet to screen it with.
        let is_searched = self.tested_before.is_some();
        let promise = if is_searched { self.passes_screen(&candidate) } else { Some(Fixed::ZERO) };
        let Some(promise) = promise else { return Event::Judged };
        self.tested.insert(candidate.policy.digest(), self.tally.steps);
        match self.show(&candidate.policy) {
            Some(shown) => {
                let policy = Arc::new(candidate.policy.clone());
                let test = self.ledger.open_with_promise(promise);
                self.phase =
                    Phase::Measure(Box::new(Gate { candidate, policy, shown, test, streak: 0, half: None }));
            }
            None => self.refuse(&candidate, witness),
        }
        Event::Judged
    }

    fn end_judging(&mut self) -> Event {
        match self.tested_before.take() {
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

    /// Shows the condition of a candidate before anything is played with it.
    #[doc(alias = "VC")]
    fn show(&mut self, policy: &Policy) -> Option<Shown> {
        let episodes = propose::recent(&self.experience, self.settings.search.steps_max);
        let serial = u64::from(self.tally.applied + self.tally.rejected);
        let family = self.machinery.as_ref()?.family();
        let shown = self.verification.as_ref()?.check(family, serial, policy, &episodes).ok()?;
        self.tally.proofs += shown.verified().proofs() as u32;
        Some(shown)
    }

    /// Books a candidate whose condition was not shown. Nothing was played, so nothing was measured.
    fn refuse(&mut self, candidate: &Hypothesis, witness: &mut dyn Witness) {
        self.tally.rejected += 1;
        self.link("bem/chain/refused", candidate.policy.digest().as_bytes());
        let (mean, lower_bound) = (Fixed::ZERO, Fixed::ONE.negated());
        witness.decided(&Decision {
            steps: self.tally.steps,
            words: candidate.words.clone(),
            gates: candidate.policy.gates(),
            accepted: false,
            evidence: Evidence { pairs: 0, mean, lower_bound, odds: 1, bad_excess: 0 },
            patch: None,
        });
    }

    /// Begins the next half of a pair; a pair that cannot differ is booked without playing it.
    #[doc(alias = "PoX")]
    pub(crate) fn measure(
        &mut self,
        world: &mut dyn Environment,
        witness: &mut dyn Witness,
    ) -> Result<Event, EnvironmentError> {
        let Phase::Measure(gate) = &mut self.phase else { unreachable!("only a gate measures") };
        if let Some(half) = gate.half {
            return self.begin(world, half.seed, Mode::Incumbent);
        }
        let seed = self.gate_seeds.next_seed();
        if self.shape.horizon == 1 {
            world.reset(seed)?;
            let observation = world.observation();
            let first = |policy: &Policy| PolicyState::new(policy).act(policy, observation);
            if first(&gate.policy) == first(&self.incumbent.policy) {
                // One step, the same action, the same seed: the same return. Nothing needs to be played.
                let progress = gate.test.observe(Fixed::ZERO, false, false);
                if progress != Progress::Open {
                    self.decide(progress, witness);
                }
                return Ok(Event::Paired);
            }
        }
        self.begin(world, seed, Mode::Candidate)
    }

    /// Books a rollout: the candidate's half, and the pair as soon as both are known.
    pub(crate) fn take_rollout(
        &mut self,
        seed: u64,
        mode: Mode,
        episode: Episode,
        witness: &mut dyn Witness,
    ) {
        let Phase::Measure(gate) = &mut self.phase else { unreachable!("only a gate plays rollouts") };
        let (total, bad) = (episode.total(), episode.steps.iter().any(|step| step.bad));
        let progress = if mode == Mode::Candidate {
            gate.streak = if total == self.shape.return_max { gate.streak + 1 } else { 0 };
            let actions: Vec<u16> = episode.steps.iter().map(|step| step.action).collect();
            // An incumbent that would have done the same all along has the same return: worlds repeat themselves.
            if self.incumbent.policy.replay([&episode])[0] == actions {
                Some(gate.test.observe(Fixed::ZERO, bad, bad))
            } else {
                gate.half = Some(Half { seed, total, bad });
                None
            }
        } else {
            let theirs = gate.half.take().expect("the candidate plays first");
            let span = (self.shape.return_max - self.shape.return_min).max(1);
            let difference = Fixed::from_ratio((theirs.total - total).clamp(-span, span), span);
            Some(gate.test.observe(difference, theirs.bad, bad))
        };
        let never_differed = gate.test.never_differed(EQUAL_PAIRS_MAX);
        self.remember(episode, witness);
        match progress {
            None => {}
            Some(Progress::Open) if never_differed || self.settings.budget <= self.tally.steps => {
                self.decide(Progress::Futile, witness);
            }
            Some(Progress::Open) => {}
            Some(progress) => self.decide(progress, witness),
        }
    }

    /// Ends the measuring: the candidate becomes the incumbent, or nothing changes.
    fn decide(&mut self, progress: Progress, witness: &mut dyn Witness) {
        let Phase::Measure(gate) = core::mem::replace(&mut self.phase, Phase::Judge) else {
            unreachable!("only a gate decides")
        };
        let Gate { candidate, shown, test, streak, .. } = *gate;
        let evidence = test.evidence();
        let patch = self.verification.as_ref().filter(|_| progress == Progress::Better);
        let patch = patch.and_then(|verification| verification.accept(shown, evidence).ok());
        let decision = Decision {
            steps: self.tally.steps,
            words: candidate.words.clone(),
            gates: candidate.policy.gates(),
            accepted: patch.is_some(),
            evidence,
            patch,
        };
        self.link_decision(&candidate, &decision);
        witness.decided(&decision);
        // The incumbent is what the accepted patch says, and nothing else can become one.
        if let Some(policy) = decision.patch.and_then(|accepted| self.apply(accepted)) {
            self.tally.applied += 1;
            self.last_gain = self.tally.steps;
            self.streak = streak;
            let Hypothesis { words, machine, .. } = candidate;
            self.incumbent = Incumbent { policy: Arc::new(policy), words, is_choice: false, machine };
            witness.incumbent_changed(&self.agent(), &self.incumbent.words, &self.tally);
        } else {
            self.tally.rejected += 1;
        }
    }

    /// Puts an accepted patch into force between two episodes; returns the circuit it brings.
    fn apply(&mut self, accepted: AcceptedPatch) -> Option<Policy> {
        let Change::Synthesize { policy, .. } = accepted.patch().change.clone() else { return None };
        let (verification, machinery) = (self.verification.as_ref()?, self.machinery.as_mut()?);
        machinery.replace_family(verification.apply(machinery.family(), accepted).ok()?);
        Some(policy)
    }

    fn link_decision(&mut self, candidate: &Hypothesis, decision: &Decision) {
        let mut writer = Writer::new();
        writer.bool(decision.accepted);
        writer.raw(candidate.policy.digest().as_bytes());
        writer.raw(candidate.provenance.as_bytes());
        decision.evidence.encode(&mut writer);
        for finding in decision.patch.iter().flat_map(|patch| patch.verified().findings()) {
            if let Some((_, certificate)) = finding.proof() {
                writer.raw(certificate.formula.as_bytes());
            }
        }
        self.link("bem/chain/decision", writer.as_bytes());
    }
}
