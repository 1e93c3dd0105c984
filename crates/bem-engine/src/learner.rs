//! One task from scratch, as a machine of small units: play a step, search, show a condition, measure a pair.
//!
//! The learner is data. [`Learner::advance`] does one unit and says what it was, so that whoever owns the learner may
//! stop, save and restore it between any two units ([`crate::state`]); [`Learner::run`] is a loop over it. It sees a
//! running world and nothing else: no name, no parameter, no optimum. It stops at its budget, when every recent
//! episode reached the declared maximum, or when nothing has been gained for long. A witness is told of every new
//! incumbent and cannot answer. Same seed, same history. What happens in a unit is told where it happens:
//! [`crate::act`], [`crate::search`], [`crate::contexts`], [`crate::planning`], [`crate::gate`].
//!
//! ```text
//! Start -> Judge -> Collect -> Judge -> Measure -> Judge ... -> Collect ... -> Over
//! ```
//!
//! Clauses: SCC-1, SCC-8, SCC-15, VM-16; decisions D-20, D-23, D-32 to D-35.

use crate::act::Flight;
use crate::agent::Agent;
use crate::codec::{decode_option, encode_option};
use crate::exploration::Exploration;
use crate::gate::Gate;
use crate::machinery::Machinery;
use crate::pacing::Workload;
use crate::planning::Realised;
use crate::seeds::{Domain, Seeds};
use crate::shard::Shard;
use crate::watch::Alarm;
use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Environment, EnvironmentError, Shape};
use bem_base::fixed::Fixed;
use bem_evolve::improvement::Evidence;
use bem_evolve::patch::PatchKind;
use bem_evolve::verify::AcceptedPatch;
use bem_machine::config::GenesisConfig;
use bem_machine::trace::Record;
use bem_synth::experience::{Episode, Experience};
use bem_synth::hypothesis::Hypothesis;
use bem_synth::library::Machine;
use bem_synth::models::control::Explorer;
use bem_synth::policy::Policy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a learner works; the defaults are what the table of results was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// All random streams come from this.
    pub seed: u64,
    /// Steps in the world at most, rollouts of the gate included.
    pub budget: u64,
    /// The configuration in force: everything else, from the machine's bounds to the switches for ablation.
    pub config: Arc<GenesisConfig>,
}

impl Settings {
    /// The defaults with this seed.
    pub fn new(seed: u64) -> Settings {
        Settings { seed, budget: 200_000, config: Arc::new(GenesisConfig::default()) }
    }

    /// The same with another configuration.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut GenesisConfig)) -> Settings {
        change(Arc::make_mut(&mut self.config));
        self
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
    /// Patches that were in force and taken back.
    pub rolled_back: u32,
    /// Word operations that the searches took.
    pub work: u64,
    /// Resets of the world whose episode was looked at and not played.
    pub unplayed: u64,
    /// Steps whose action the machine chose, as the machine counts them.
    pub steps_by_machine: u64,
    /// How often what acts when frozen changed.
    pub acting_changes: u32,
    /// How many of these changes a decision about a patch made.
    pub acting_changes_patched: u32,
}

/// One decision about a patch, as plain data: it is saved with a lesson that is put away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Steps taken when it was made.
    pub steps: u64,
    /// The serial of the patch.
    pub serial: u64,
    /// What the patch changes.
    pub kind: PatchKind,
    /// The change in words.
    pub words: String,
    /// Gates of the circuit that it brings.
    pub gates: usize,
    /// Whether it was put into force.
    pub accepted: bool,
    /// Whether it was in force and is taken back.
    pub rolled_back: bool,
    /// Why it is not in force; empty where it is.
    pub reason: String,
    /// What was measured; nothing if its condition was not shown.
    pub evidence: Evidence,
    /// What kind of evidence that is.
    pub basis: EvidenceBasis,
    /// The score that the next patch must reach.
    pub threshold: Fixed,
    /// The digest of the experience that the circuit was derived from; zero where it came from elsewhere.
    pub provenance: Digest,
    /// Proofs that the checker accepted, if it was put into force.
    pub proofs: u32,
}

/// What a decision about a patch rests on. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum EvidenceBasis {
    /// Nothing was measured: it was refused before, or taken back.
    #[default]
    None = 0,
    /// Pairs on fresh seeds.
    Rollouts = 1,
    /// A bound from logged steps.
    Logged = 2,
    /// The proof itself.
    Proof = 3,
    /// Counts that predicted what was earned; pairs have not shown the gain.
    Counted = 4,
    /// Means of the log.
    Means = 5,
}

impl EvidenceBasis {
    /// All of them, in order of their numbers.
    pub const ALL: [EvidenceBasis; 6] = [
        EvidenceBasis::None,
        EvidenceBasis::Rollouts,
        EvidenceBasis::Logged,
        EvidenceBasis::Proof,
        EvidenceBasis::Counted,
        EvidenceBasis::Means,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            EvidenceBasis::None => "none",
            EvidenceBasis::Rollouts => "rollouts",
            EvidenceBasis::Logged => "log",
            EvidenceBasis::Proof => "proof",
            EvidenceBasis::Counted => "counts",
            EvidenceBasis::Means => "means",
        }
    }
}

/// Who watches a run. Nothing it does can reach the learner.
pub trait Witness {
    /// The policy that acts has changed.
    fn incumbent_changed(&mut self, agent: &Agent, words: &str, tally: &Tally);
    /// The gate has decided; `patch` is what was put into force, with its certificates and its score.
    fn decided(&mut self, decision: &Decision, patch: Option<&AcceptedPatch>);
    /// An episode was played, for experience or for the gate; so many of its steps strayed from what is held, and `chain` is
    /// the head of the run's own chain after it.
    fn played(&mut self, _episode: &Episode, _strayed: u64, _chain: &Digest) {}
    /// A block of step, reward and episode records is full, or the run is over; `chain` is the head after it.
    fn records(&mut self, _block: &[Record], _chain: &Digest) {}
    /// Called now and then; false asks the run to stop.
    fn tick(&mut self, tally: &Tally) -> bool;
}

/// Nobody watches.
impl Witness for () {
    fn incumbent_changed(&mut self, _: &Agent, _: &str, _: &Tally) {}

    fn decided(&mut self, _: &Decision, _: Option<&AcceptedPatch>) {}

    fn tick(&mut self, _: &Tally) -> bool {
        true
    }
}

/// What is known of what acts, beside the structure itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Incumbent {
    pub(crate) words: String,
    /// It is a plan that acts by counts: pairs have not shown that it is better.
    pub(crate) by_counts: bool,
    /// The abstract machine behind it, if it can be built for other sizes.
    pub(crate) machine: Option<Machine>,
}

impl Incumbent {
    /// Of the plain action that a family holds at boot.
    pub(crate) fn at_boot() -> Incumbent {
        Incumbent { words: "always 0".to_string(), ..Incumbent::default() }
    }
}

/// Writes the canonical bytes.
pub(crate) fn encode_incumbent(incumbent: &Incumbent, writer: &mut Writer) {
    writer.text(&incumbent.words);
    writer.bool(incumbent.by_counts);
    encode_option(writer, incumbent.machine.as_ref(), Machine::encode);
}

/// Reads canonical bytes back.
pub(crate) fn decode_incumbent(reader: &mut Reader<'_>) -> Result<Incumbent, DecodeError> {
    Ok(Incumbent {
        words: reader.text()?.to_string(),
        by_counts: reader.bool()?,
        machine: decode_option(reader, Machine::decode)?,
    })
}

/// What one unit of work was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The run began.
    Started,
    /// An episode began; no step was taken.
    EpisodeBegan,
    /// One step in the world; the episode goes on.
    Stepped,
    /// One step in the world; the episode is over.
    EpisodeEnded,
    /// Contexts were grown again, and candidates were searched for if there was a reason.
    Searched,
    /// A candidate was screened, and if it passed, its condition was tried.
    Judged,
    /// A pair was decided without playing it.
    Paired,
    /// All candidates of a search are decided, or a scheduler has chosen the next unit.
    RoundEnded,
    /// There is a reason to stop; nothing happens any more.
    Over,
}

/// What is done when no episode is in flight.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// Nothing has happened yet.
    Start,
    /// Episodes are played for experience until a search is due, and the log is searched.
    Collect,
    /// The next waiting patch is looked at.
    Judge,
    /// Two play the same seeds: a candidate whose condition was shown against the incumbent, or it against the one before.
    Measure(Box<Gate>),
    /// The run has ended.
    Over,
}

/// The first search happens after this many steps.
const FIRST_SEARCH: u64 = 32;
/// Episodes in a row at the declared maximum that end a run.
const PERFECT_STREAK: u32 = 400;
/// After failures, a streak must be this many times as long as it usually goes between two of them.
const STREAK_FAILURES: i128 = 8;
/// Steps without any gain that end a run, at least.
const QUIET_MIN: u64 = 120_000;

/// A learner in one world.
#[derive(Clone, Debug)]
pub struct Learner {
    pub(crate) shape: Shape,
    pub(crate) settings: Settings,
    pub(crate) experience: Experience,
    /// The machine, which chooses whatever reaches the world.
    pub(crate) machinery: Machinery,
    pub(crate) incumbent: Incumbent,
    /// What the incumbent earned since it acts.
    pub(crate) realised: Realised,
    /// The incumbent before and the candidate that replaced it, while its patch may be taken back.
    pub(crate) previous: Option<(Incumbent, Hypothesis)>,
    pub(crate) alarm: Option<Alarm>,
    /// Candidates that were measured, and at which step.
    pub(crate) tested: BTreeMap<Digest, u64>,
    pub(crate) library: Vec<Machine>,
    /// Where actions change what follows: what plays for knowledge.
    pub(crate) explorer: Option<Explorer>,
    /// Which episodes are played for knowledge.
    pub(crate) exploration: Exploration,
    pub(crate) tally: Tally,
    pub(crate) serial: u64,
    pub(crate) streak: u32,
    pub(crate) fruitless: u64,
    pub(crate) last_gain: u64,
    pub(crate) next_search: u64,
    pub(crate) chain: Digest,
    pub(crate) play_seeds: Seeds,
    pub(crate) gate_seeds: Seeds,
    /// The candidates behind the patches that wait, by serial.
    pub(crate) waiting: BTreeMap<u64, Hypothesis>,
    /// How many candidates had been tested when the waiting ones were found; none if they are the library's.
    pub(crate) tested_before: Option<u64>,
    /// The scheduler with its unit; none where work is paced.
    pub(crate) workload: Option<Workload>,
    pub(crate) phase: Phase,
    pub(crate) flight: Option<Flight>,
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
    /// What was seen where it fails most often, if it fails.
    pub counterexample: Option<Bits>,
    /// The head of the digest chain over everything that happened.
    pub chain_head: Digest,
}

impl Learner {
    /// A learner that knows nothing yet, for worlds of this shape; a world that the machine cannot hold is refused.
    pub fn new(shape: &Shape, settings: Settings) -> Result<Learner, EnvironmentError> {
        Learner::on(None, shape, settings)
    }

    /// A learner on a machine that has worked before, if there is one: its family for this shape goes on.
    pub fn on(shard: Option<Shard>, shape: &Shape, settings: Settings) -> Result<Learner, EnvironmentError> {
        let (machinery, incumbent) = Machinery::take_up(shard, &settings.config, settings.seed, shape)?;
        Ok(Learner { incumbent, ..Learner::with_machinery(shape, settings, machinery) })
    }

    /// The machine, for the next unit.
    pub fn into_shard(self) -> Shard {
        self.machinery.into_shard(self.incumbent)
    }

    /// A learner that knows nothing yet but its machine.
    pub(crate) fn with_machinery(shape: &Shape, settings: Settings, machinery: Machinery) -> Learner {
        Learner {
            experience: Experience::new(settings.config.experience_steps as usize),
            machinery,
            incumbent: Incumbent::at_boot(),
            realised: Realised::default(),
            previous: None,
            alarm: None,
            tested: BTreeMap::new(),
            library: Vec::new(),
            explorer: None,
            exploration: Exploration::default(),
            tally: Tally::default(),
            serial: 0,
            streak: 0,
            fruitless: 0,
            last_gain: 0,
            next_search: FIRST_SEARCH,
            chain: digest::hash_parts("bem/run", &[&settings.seed.to_le_bytes()]),
            play_seeds: Seeds::new(settings.seed, Domain::Play),
            gate_seeds: Seeds::new(settings.seed, Domain::Improvement),
            waiting: BTreeMap::new(),
            tested_before: None,
            workload: Workload::new(&settings.config),
            phase: Phase::Start,
            flight: None,
            settings,
            shape: shape.clone(),
        }
    }

    /// Tries these machines first, built for this world: what was learned on a lower rung.
    #[must_use]
    pub fn with_library(mut self, library: Vec<Machine>) -> Learner {
        self.library = library;
        self
    }

    /// Takes episodes in that others played, as experience: they are searched like its own, and prove nothing.
    #[must_use]
    pub(crate) fn with_experience(mut self, episodes: Vec<Episode>) -> Learner {
        for episode in episodes {
            self.experience.push(Episode { serial: self.serial, ..episode });
            self.serial += 1;
        }
        self
    }

    /// Learns until there is a reason to stop, or the witness asks for it; then it may be called again.
    pub fn run(
        &mut self,
        world: &mut dyn Environment,
        witness: &mut dyn Witness,
    ) -> Result<Learned, EnvironmentError> {
        loop {
            match self.advance(world, witness)? {
                Event::Over => break,
                Event::RoundEnded if !witness.tick(&self.tally) => break,
                _ => {}
            }
        }
        Ok(self.learned())
    }

    /// Does one unit of work: at most one step in the world, one search, or one condition.
    ///
    /// The world must be the same from call to call, because an episode may be in flight. After an error of the world
    /// only [`Learner::learned`] makes sense.
    pub fn advance(
        &mut self,
        world: &mut dyn Environment,
        witness: &mut dyn Witness,
    ) -> Result<Event, EnvironmentError> {
        let event = self.do_unit(world, witness);
        self.tally.steps_by_machine = self.machinery.steps();
        self.notice_acting();
        event
    }

    /// Counts a change of what acts when frozen, whoever made it.
    pub(crate) fn notice_acting(&mut self) {
        self.tally.acting_changes += u32::from(self.machinery.has_changed());
    }

    fn do_unit(
        &mut self,
        world: &mut dyn Environment,
        witness: &mut dyn Witness,
    ) -> Result<Event, EnvironmentError> {
        if self.flight.is_some() {
            return self.step(world, witness);
        }
        match &self.phase {
            Phase::Start => Ok(self.start(witness)),
            Phase::Collect => self.collect(world, witness),
            Phase::Judge => Ok(self.judge(witness)),
            Phase::Measure(_) => self.measure(world, witness),
            Phase::Over => {
                self.seal(witness);
                Ok(Event::Over)
            }
        }
    }

    /// What has been learned so far.
    pub fn learned(&self) -> Learned {
        Learned {
            agent: self.agent(),
            words: self.incumbent.words.clone(),
            machine: self.incumbent.machine.clone(),
            tally: self.tally,
            counterexample: self.counterexample(),
            chain_head: self.chain,
        }
    }

    /// Where the run stands.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether an episode has begun and is not over.
    pub fn is_in_episode(&self) -> bool {
        self.flight.is_some()
    }

    /// Whether a patch whose condition was shown is being measured: proven, and neither applied nor refused.
    pub fn is_measuring(&self) -> bool {
        matches!(self.phase, Phase::Measure(_))
    }

    /// What acts now, frozen.
    pub(crate) fn agent(&self) -> Agent {
        let rule = self.machinery.family().held().acting_rule();
        Agent::adapting(Policy::clone(self.machinery.frozen()), rule, &self.shape)
    }

    /// Whether plain actions act.
    pub(crate) fn acts_plainly(&self) -> bool {
        self.machinery.held_slot().is_none()
    }

    /// Whether an expert acts that has won its pairs.
    pub(crate) fn acts_by_proof(&self) -> bool {
        !self.acts_plainly() && !self.incumbent.by_counts
    }

    pub(crate) fn start(&mut self, witness: &mut dyn Witness) -> Event {
        witness.incumbent_changed(&self.agent(), &self.incumbent.words, &self.tally);
        let library = core::mem::take(&mut self.library);
        let candidates = library.iter().filter_map(|machine| machine.instantiate(&self.shape)).collect();
        self.submit(candidates, false);
        self.phase = Phase::Judge;
        Event::Started
    }

    /// Goes back to collecting, unless there is a reason to stop.
    pub(crate) fn end_round(&mut self) {
        let more = self.tally.steps < self.settings.budget && !self.is_done();
        self.phase = if more { Phase::Collect } else { Phase::Over };
    }

    /// Whether, by the learner's own evidence, there is nothing left to gain.
    pub(crate) fn is_done(&self) -> bool {
        if self.settings.config.until_budget {
            return false;
        }
        let quiet = self.tally.steps - self.last_gain;
        self.is_perfect() || QUIET_MIN.max(4 * self.last_gain) < quiet
    }

    /// Whether what acts has reached the declared maximum for so long that no luck explains it. What was seen to fall short
    /// at times may do so again: it must have gone many times as long as it usually goes between two failures.
    fn is_perfect(&self) -> bool {
        let streak = i128::from(self.streak);
        let (lost, staked) = self.realised.lost(&self.shape);
        PERFECT_STREAK <= self.streak && (lost == 0 || STREAK_FAILURES * staked <= streak * lost)
    }

    /// Adds a link to the chain over everything that happens.
    pub(crate) fn link(&mut self, domain: &str, bytes: &[u8]) {
        self.chain = digest::hash_parts(domain, &[self.chain.as_bytes(), bytes]);
    }
}

#[cfg(test)]
mod tests;
