//! One task from scratch: play, remember, propose, gate, install.
//!
//! The learner sees a running world and nothing else: no name, no parameter, no optimum. It stops at its budget,
//! when every recent episode reached the declared maximum, or when nothing has been gained for long. A witness
//! is told of every new incumbent and cannot answer. Same seed, same history.
//! Clauses: SCC-1, SCC-8, VM-16; decisions D-20, D-23, D-32 to D-35.

use crate::agent::Agent;
use crate::bandit::RoutedBandit;
use crate::seeds::{Domain, Seeds};
use crate::verification::Verification;
use bem_base::digest::{self, Digest};
use bem_base::encode::Writer;
use bem_base::environment::{Environment, EnvironmentError, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_evolve::improvement::{AlphaLedger, Evidence, Progress};
use bem_evolve::patch::Change;
use bem_evolve::verify::{AcceptedPatch, Verified};
use bem_synth::experience::{Episode, Experience, Step};
use bem_synth::hypothesis::Hypothesis;
use bem_synth::library::Machine;
use bem_synth::models::control::Model;
use bem_synth::policy::{Player, Policy};
use bem_synth::propose;
use bem_synth::screen::Screen;
use std::collections::BTreeSet;

/// How a learner works; the defaults are what the table of results was made with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// All random streams come from this.
    pub seed: u64,
    /// Steps in the world at most, rollouts of the gate included.
    pub budget: u64,
    /// Circuits are synthesised; off is an ablation.
    pub synthesis: bool,
    /// Steps that are remembered; zero is an ablation.
    pub experience_steps: usize,
    /// What the search may use.
    pub search: propose::Settings,
}

impl Settings {
    /// The defaults with this seed.
    pub fn new(seed: u64) -> Settings {
        Settings {
            seed,
            budget: 200_000,
            synthesis: true,
            experience_steps: bem_synth::experience::EXPERIENCE_STEPS_MAX,
            search: propose::Settings::default(),
        }
    }
}

/// Where a run stands; goes to witnesses and the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps taken in the world, rollouts of the gate included.
    pub steps: u64,
    /// Episodes played, rollouts included.
    pub episodes: u64,
    /// Candidates that passed the gate.
    pub applied: u32,
    /// Candidates that the gate turned down.
    pub rejected: u32,
    /// Proofs that the independent checker accepted.
    pub proofs: u32,
}

/// One decision of the gate.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Steps taken when it was made.
    pub steps: u64,
    /// The candidate in words.
    pub words: String,
    /// Its gates.
    pub gates: usize,
    /// Whether it was installed.
    pub accepted: bool,
    /// What was measured; nothing if its condition was not shown.
    pub evidence: Evidence,
    /// What was installed, with its certificates and its score.
    pub patch: Option<AcceptedPatch>,
}

/// Who watches a run. Nothing it does can reach the learner.
pub trait Witness {
    /// The policy that acts has changed.
    fn incumbent_changed(&mut self, agent: &Agent, words: &str, tally: &Tally);
    /// The gate has decided.
    fn decided(&mut self, decision: &Decision);
    /// An episode was played, for experience or for the gate; `chain` is the head of the run's own chain after it.
    fn played(&mut self, _episode: &Episode, _chain: &Digest) {}
    /// Called now and then; false asks the run to stop.
    fn tick(&mut self, tally: &Tally) -> bool;
}

/// The policy that acts.
#[derive(Clone, Debug)]
struct Incumbent {
    policy: Policy,
    words: String,
    /// It is the frozen choice of the routed bandit, not a synthesised circuit.
    is_choice: bool,
    /// The abstract machine behind it, if it can be built for other sizes.
    machine: Option<Machine>,
}

/// How the actions of an episode are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Uniform,
    Mixed,
    Incumbent,
    /// Along the policy that looks for what was never tried, with few uniform steps.
    Curious,
}

/// The first search happens after this many steps.
const FIRST_SEARCH: u64 = 32;
/// Episodes in a row at the declared maximum that end a run.
const PERFECT_STREAK: u32 = 400;

/// At first all actions are drawn with equal chance, so that the first labels favour none.
const UNIFORM_STEPS: u64 = 160;
/// Steps without any gain that end a run, at least.
const QUIET_MIN: u64 = 120_000;

/// A learner in one world.
pub struct Learner<'w> {
    world: &'w mut dyn Environment,
    shape: Shape,
    settings: Settings,
    experience: Experience,
    bandit: RoutedBandit,
    incumbent: Incumbent,
    ledger: AlphaLedger,
    /// None for a world that the machine cannot hold; then nothing is ever installed.
    verification: Option<Verification>,
    tested: BTreeSet<Digest>,
    library: Vec<Machine>,
    curious: Option<Policy>,
    tally: Tally,
    serial: u64,
    streak: u32,
    fruitless: u64,
    announced: bool,
    last_gain: u64,
    chain: Digest,
    draw: Prng,
    play_seeds: Seeds,
    gate_seeds: Seeds,
}

/// What a finished run leaves.
#[derive(Clone, Debug)]
pub struct Learned {
    /// What acts at the end.
    pub agent: Agent,
    /// What it is, in words.
    pub words: String,
    /// The abstract machine behind it, for the next rung.
    pub machine: Option<Machine>,
    /// Counts.
    pub tally: Tally,
    /// The head of the digest chain over everything that happened.
    pub chain_head: Digest,
}

impl<'w> Learner<'w> {
    /// A learner that knows nothing yet.
    pub fn new(world: &'w mut dyn Environment, settings: Settings) -> Learner<'w> {
        let shape = world.shape().clone();
        let bandit = RoutedBandit::new(&shape);
        let incumbent = Incumbent {
            policy: Policy::constant(shape.actions, 0),
            words: "always 0".to_string(),
            is_choice: true,
            machine: None,
        };
        Learner {
            world,
            settings,
            experience: Experience::new(settings.experience_steps),
            bandit,
            incumbent,
            ledger: AlphaLedger::default(),
            verification: Verification::new(&shape).ok(),
            tested: BTreeSet::new(),
            library: Vec::new(),
            curious: None,
            tally: Tally::default(),
            serial: 0,
            streak: 0,
            fruitless: 0,
            announced: false,
            last_gain: 0,
            chain: digest::hash_parts("bem/run", &[&settings.seed.to_le_bytes()]),
            draw: Prng::stream(settings.seed, "engine/explore"),
            play_seeds: Seeds::new(settings.seed, Domain::Play),
            gate_seeds: Seeds::new(settings.seed, Domain::Improvement),
            shape,
        }
    }

    /// Tries these machines first, built for this world: what was learned on a lower rung.
    #[must_use]
    pub fn with_library(mut self, library: Vec<Machine>) -> Learner<'w> {
        self.library = library;
        self
    }

    /// Learns until there is a reason to stop.
    pub fn run(mut self, witness: &mut dyn Witness) -> Result<Learned, EnvironmentError> {
        witness.incumbent_changed(&self.agent(), &self.incumbent.words, &self.tally);
        for machine in core::mem::take(&mut self.library) {
            if let Some(candidate) = machine.instantiate(&self.shape) {
                self.gate(candidate, witness)?;
            }
        }
        let mut next_search = FIRST_SEARCH;
        while self.tally.steps < self.settings.budget && !self.is_done() {
            while self.tally.steps < next_search.min(self.settings.budget) && !self.is_done() {
                self.collect_one(witness)?;
            }
            self.settle(witness);
            // What explains everything needs no search until something contradicts it.
            if self.settings.synthesis && !self.explains_all() {
                let tested = self.tested.len();
                self.search(witness)?;
                let idle = !self.incumbent.is_choice && tested == self.tested.len();
                self.fruitless = if idle { self.fruitless + 1 } else { 0 };
            }
            if !witness.tick(&self.tally) {
                break;
            }
            // A search costs more on more data, so that later ones are farther apart.
            let share = if self.tally.steps < 4_000 { 4 } else { 2 };
            let pause = (self.tally.steps / share).max(16);
            // Where a circuit acts and searching keeps bringing nothing new, it happens less and less often.
            next_search = self.tally.steps + pause * self.fruitless.clamp(1, 8);
        }
        Ok(Learned {
            agent: self.agent(),
            words: self.incumbent.words,
            machine: self.incumbent.machine,
            tally: self.tally,
            chain_head: self.chain,
        })
    }

    /// What acts now, frozen.
    fn agent(&self) -> Agent {
        let policy = self.incumbent.policy.clone();
        if self.incumbent.is_choice { Agent::choice(&self.shape, policy) } else { Agent::circuit(policy) }
    }

    /// Whether, by the learner's own evidence, there is nothing left to gain.
    fn is_done(&self) -> bool {
        let quiet = self.tally.steps - self.last_gain;
        PERFECT_STREAK <= self.streak || QUIET_MIN.max(4 * self.last_gain) < quiet
    }

    /// Plays one episode for experience.
    fn collect_one(&mut self, witness: &mut dyn Witness) -> Result<(), EnvironmentError> {
        let mode = match self.draw.below(10) {
            _ if self.tally.steps < UNIFORM_STEPS => Mode::Uniform,
            0..=4 => Mode::Uniform,
            5..=7 => Mode::Mixed,
            _ => Mode::Incumbent,
        };
        let curious = self.curious.clone().filter(|_| mode == Mode::Uniform && self.draw.below(4) != 0);
        let mode = if curious.is_some() { Mode::Curious } else { mode };
        let seed = self.play_seeds.next_seed();
        let policy = curious.unwrap_or_else(|| self.incumbent.policy.clone());
        let episode = self.play(seed, &policy, mode)?;
        if mode == Mode::Incumbent {
            self.watch_streak(&episode);
        }
        self.remember(episode, witness);
        Ok(())
    }

    fn watch_streak(&mut self, episode: &Episode) {
        self.streak = if episode.total() == self.shape.return_max { self.streak + 1 } else { 0 };
    }

    fn remember(&mut self, episode: Episode, witness: &mut dyn Witness) {
        let mut writer = Writer::new();
        episode.encode(&mut writer);
        self.link("bem/chain/episode", writer.as_bytes());
        witness.played(&episode, &self.chain);
        self.experience.push(episode);
    }

    fn link(&mut self, domain: &str, bytes: &[u8]) {
        self.chain = digest::hash_parts(domain, &[self.chain.as_bytes(), bytes]);
    }

    fn play(&mut self, seed: u64, policy: &Policy, mode: Mode) -> Result<Episode, EnvironmentError> {
        self.world.reset(seed)?;
        let actions = u64::from(self.shape.actions);
        let mut player = Player::new(policy);
        let mut steps = Vec::new();
        // Among choices of the bandit the index explores; a circuit acts as it is.
        let by_index = self.incumbent.is_choice && mode == Mode::Mixed;
        loop {
            let observation = *self.world.observation();
            let wanted = if by_index { self.bandit.choose(&observation) } else { player.act(&observation) };
            let uniform = match mode {
                Mode::Uniform => true,
                Mode::Mixed => !by_index && self.draw.below(4) == 0,
                Mode::Curious => self.draw.below(16) == 0,
                Mode::Incumbent => false,
            };
            let action = if uniform { self.draw.below(actions) as u16 } else { wanted };
            let outcome = self.world.step(action)?;
            self.tally.steps += 1;
            self.bandit.record(&observation, action, outcome.reward);
            let propensity = if uniform { (65_535 / actions) as u16 } else { u16::MAX };
            steps.push(Step {
                observation,
                action,
                reward: outcome.reward,
                done: outcome.done,
                bad: outcome.bad,
                uniform,
                propensity,
            });
            if outcome.done {
                break;
            }
        }
        self.tally.episodes += 1;
        self.serial += 1;
        Ok(Episode { serial: self.serial, steps })
    }

    /// Regrows the contexts from the log; where the choice itself acts, its new best actions act from now on.
    fn settle(&mut self, witness: &mut dyn Witness) {
        let episodes = propose::recent(&self.experience, 64_000);
        if !episodes.is_empty() {
            self.bandit = RoutedBandit::grow(&self.shape, &episodes);
        }
        let Some(policy) = self.bandit.freeze() else { return };
        if self.incumbent.is_choice && policy != self.incumbent.policy {
            let words = format!("best action in each of {} contexts", self.bandit.contexts());
            self.link("bem/chain/choice", policy.digest().as_bytes());
            let adapted = self.agent().adapts();
            self.incumbent = Incumbent { policy, words, is_choice: true, machine: None };
            // An agent that learns anew in every episode is the same whatever it begins with.
            if !(adapted && self.agent().adapts() && self.announced) {
                self.announced = true;
                witness.incumbent_changed(&self.agent(), &self.incumbent.words, &self.tally);
            }
        }
    }

    /// Proposes candidates and sends those that pass the free screen through the gate.
    fn search(&mut self, witness: &mut dyn Witness) -> Result<(), EnvironmentError> {
        let proposal = propose::propose(&self.shape, &self.experience, &self.settings.search);
        self.curious = proposal.curious;
        let mut candidates = proposal.hypotheses;
        if !self.incumbent.is_choice
            && let Some(policy) = self.bandit.freeze()
        {
            let words = format!("best action in each of {} contexts", self.bandit.contexts());
            let provenance = self.experience.digest();
            let description_length = u32::MAX;
            let exact = false;
            candidates.push(Hypothesis {
                policy,
                words,
                description_length,
                exact,
                foreseen: None,
                provenance,
                machine: None,
            });
        }
        for candidate in candidates {
            if self.settings.budget <= self.tally.steps {
                break;
            }
            if self.tested.contains(&candidate.policy.digest()) || !self.passes_screen(&candidate) {
                continue;
            }
            self.gate(candidate, witness)?;
        }
        Ok(())
    }

    /// Whether the incumbent is a circuit that would have given every answer ever seen to be right.
    fn explains_all(&self) -> bool {
        if self.incumbent.is_choice {
            return false;
        }
        let episodes = propose::recent(&self.experience, self.settings.search.steps_max);
        let steps = || episodes.iter().flat_map(|episode| &episode.steps);
        let top = steps().map(|step| step.reward).max().unwrap_or(0);
        let wanted = self.incumbent.policy.replay(episodes.iter().copied());
        // An action of its own choice that earned less than another did for the same observation is a doubt.
        let agreed = steps().zip(wanted.iter().flatten());
        top == self.shape.reward_max
            && agreed.into_iter().all(|(step, action)| step.reward < top || step.action == *action)
    }

    fn passes_screen(&self, candidate: &Hypothesis) -> bool {
        if candidate.policy == self.incumbent.policy {
            return false;
        }
        let episodes = propose::recent(&self.experience, self.settings.search.steps_max);
        if let Some(foreseen) = candidate.foreseen {
            let Some(model) = Model::new(&self.shape, &episodes) else { return false };
            let margin = (self.shape.return_max - self.shape.return_min) / 1_000;
            let complete = candidate.exact || 20_000 < self.tally.steps;
            return complete && model.value_of(&self.incumbent.policy) + margin < foreseen;
        }
        let (theirs, ours) = Screen::compare(&candidate.policy, &self.incumbent.policy, &episodes);
        theirs.beats(&ours) || candidate.exact && theirs.misses_nothing() && theirs.missed < ours.missed + 1
    }

    /// Whether two policies begin this episode with the same action; looking takes no step.
    fn agree_at_start(&mut self, seed: u64, one: &Policy, other: &Policy) -> Result<bool, EnvironmentError> {
        self.world.reset(seed)?;
        let observation = *self.world.observation();
        Ok(Player::new(one).act(&observation) == Player::new(other).act(&observation))
    }

    /// Shows the condition of a candidate before anything is played with it.
    #[doc(alias = "VC")]
    fn verify(&mut self, policy: &Policy) -> Option<Verified> {
        let episodes = propose::recent(&self.experience, self.settings.search.steps_max);
        let serial = self.tested.len() as u64;
        let verified = self.verification.as_ref()?.check(serial, policy, &episodes).ok()?;
        self.tally.proofs += verified.proofs() as u32;
        Some(verified)
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

    /// Paired rollouts on fresh seeds until the test decides. Rollouts are steps like all others.
    #[doc(alias = "PoX")]
    fn gate(&mut self, candidate: Hypothesis, witness: &mut dyn Witness) -> Result<(), EnvironmentError> {
        self.tested.insert(candidate.policy.digest());
        let Some(verified) = self.verify(&candidate.policy) else {
            self.refuse(&candidate, witness);
            return Ok(());
        };
        let mut test = self.ledger.open();
        let incumbent = self.incumbent.policy.clone();
        let span = (self.shape.return_max - self.shape.return_min).max(1);
        let mut streak = 0;
        let progress = loop {
            let seed = self.gate_seeds.next_seed();
            if self.shape.horizon == 1 && self.agree_at_start(seed, &candidate.policy, &incumbent)? {
                // One step, the same action, the same seed: the same return. Nothing needs to be played.
                let progress = test.observe(Fixed::ZERO, false, false);
                if progress != Progress::Open {
                    break progress;
                }
                continue;
            }
            let theirs = self.play(seed, &candidate.policy, Mode::Incumbent)?;
            let bad = |episode: &Episode| episode.steps.iter().any(|step| step.bad);
            streak = if theirs.total() == self.shape.return_max { streak + 1 } else { 0 };
            let (total, spoiled) = (theirs.total(), bad(&theirs));
            let actions: Vec<u16> = theirs.steps.iter().map(|step| step.action).collect();
            let same = incumbent.replay([&theirs])[0] == actions;
            self.remember(theirs, witness);
            // An incumbent that would have done the same all along has the same return: worlds repeat themselves.
            let progress = if same {
                test.observe(Fixed::ZERO, spoiled, spoiled)
            } else {
                let ours = self.play(seed, &incumbent, Mode::Incumbent)?;
                let difference = Fixed::from_ratio((total - ours.total()).clamp(-span, span), span);
                let progress = test.observe(difference, spoiled, bad(&ours));
                self.remember(ours, witness);
                progress
            };
            if progress != Progress::Open {
                break progress;
            }
            // Rollouts cost steps: policies that never differ are not worth many.
            if test.never_differed(80) {
                break Progress::Futile;
            }
            if self.settings.budget <= self.tally.steps {
                break Progress::Futile;
            }
        };
        let evidence = test.evidence();
        let patch = self.verification.as_ref().filter(|_| progress == Progress::Better);
        let patch = patch.and_then(|verification| verification.accept(verified, evidence).ok());
        let accepted = patch.is_some();
        let decision = Decision {
            steps: self.tally.steps,
            words: candidate.words.clone(),
            gates: candidate.policy.gates(),
            accepted,
            evidence,
            patch,
        };
        let mut writer = Writer::new();
        writer.bool(accepted);
        writer.raw(candidate.policy.digest().as_bytes());
        writer.raw(candidate.provenance.as_bytes());
        evidence.encode(&mut writer);
        for finding in decision.patch.iter().flat_map(|patch| patch.verified().findings()) {
            finding
                .proof()
                .into_iter()
                .for_each(|(_, certificate)| writer.raw(certificate.formula.as_bytes()));
        }
        self.link("bem/chain/decision", writer.as_bytes());
        witness.decided(&decision);
        // The incumbent is what the accepted patch says, and nothing else can become one.
        let change = decision.patch.map(|accepted| accepted.patch().change.clone());
        if let Some(Change::Synthesize { policy, .. }) = change {
            self.tally.applied += 1;
            self.last_gain = self.tally.steps;
            self.streak = streak;
            let Hypothesis { words, machine, .. } = candidate;
            self.incumbent = Incumbent { policy, words, is_choice: false, machine };
            witness.incumbent_changed(&self.agent(), &self.incumbent.words, &self.tally);
        } else {
            self.tally.rejected += 1;
        }
        Ok(())
    }
}
