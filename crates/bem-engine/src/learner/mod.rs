//! One task from scratch, as a machine of small units: play a step, search, show a condition, measure a pair.
//!
//! The learner is data. [`Learner::advance`] does one unit and says what it was, so that whoever owns the learner may
//! stop, save and restore it between any two units ([`state`]); [`Learner::run`] is a loop over it. It sees a
//! running world and nothing else: no name, no parameter, no optimum. It stops at its budget, when every recent
//! episode reached the declared maximum, or when nothing has been gained for long. A witness is told of every new
//! incumbent and cannot answer. Same seed, same history.
//!
//! Each part of it has one owner with private fields that encodes itself: the machine (`machinery`), what is known of what acts
//! (`standing`), who waits and who was measured (`candidates`), what is played for knowledge (`exploration`), whether contexts
//! (`drift`) or the world (`constancy`) have changed, what must not be fallen below (`floor`), the unit that a scheduler has
//! chosen (`pacing`), the pairs that are played (`gate`), chain and numbers (`history`). What happens in a unit is told where
//! it happens: `act`, `search`, `contexts`, `guarding`, `planning`, `gate`, `watch`.
//!
//! ```text
//! Start -> Judge -> Collect -> Judge -> Measure -> Judge ... -> Collect ... -> Over
//! ```
//!
//! Clauses: SCC-1, SCC-8, SCC-15, VM-16; decisions D-20, D-23, D-32 to D-35.

mod act;
mod apart;
mod candidates;
mod claim;
mod constancy;
mod contexts;
mod counterexample;
mod drift;
mod exploration;
mod floor;
mod gate;
pub mod guarding;
mod hearing;
mod history;
mod learned;
mod machinery;
mod offered;
mod pacing;
mod planning;
mod play;
mod safety;
mod scouting;
mod search;
pub mod serving;
mod shortfall;
pub(crate) mod standing;
pub mod state;
mod structure;
mod unpaired;
mod watch;
mod witness;

pub use self::machinery::Barriers;
pub use self::offered::{OFFERS_MAX, Offers};
pub use self::pacing::Scheduled;
pub use self::shortfall::Shortfall;
pub use self::unpaired::Repetition;
pub use self::witness::{Decision, EvidenceBasis, Witness};
pub use bem_synth::told::{Label, Told};

use self::act::Flight;
use self::candidates::Candidates;
use self::constancy::Constancy;
use self::drift::Drift;
use self::exploration::Exploration;
use self::floor::Floor;
use self::gate::Gate;
use self::hearing::Hearing;
use self::history::History;
use self::machinery::Machinery;
use self::offered::Offered;
use self::pacing::Workload;
use self::standing::{Incumbent, Standing};
use crate::agent::Agent;
use crate::seeds::{Domain, Seeds};
use crate::shard::Shard;
use crate::start::Baseline;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Environment, EnvironmentError, Shape};
use bem_machine::config::GenesisConfig;
use bem_synth::experience::{Episode, Experience};
use bem_synth::library::Machine;
use bem_synth::policy::Policy;
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
    /// Resets of the world, those of episodes that were not played included.
    pub resets: u64,
    /// Episodes that were lost in flight, because their world cannot bring them back.
    pub abandoned: u64,
    /// Rewards that came later than in the answer to their own action.
    pub late: u64,
    /// Rewards that had not come by the end of their episode.
    pub expired: u64,
    /// How often the world paid beyond the range that it had said.
    pub widened: u64,
    /// How often the world was found to have changed under what acts.
    pub changed: u64,
    /// Episodes that were left to the baseline, because there was nothing to pay for a try.
    pub left: u64,
    /// Whether the world brings an episode back by its seed.
    pub repetition: Repetition,
    /// Steps whose action the machine chose, as the machine counts them.
    pub steps_by_machine: u64,
    /// How often what acts when frozen changed.
    pub acting_changes: u32,
    /// How many of these changes a decision about a patch made.
    pub acting_changes_patched: u32,
}

impl Tally {
    /// Writes the canonical bytes; the machine counts its own steps.
    fn encode(&self, writer: &mut Writer) {
        let Tally { steps, episodes, applied, rejected, proofs, rolled_back, work, unplayed, .. } = *self;
        [
            steps,
            episodes,
            work,
            unplayed,
            self.resets,
            self.abandoned,
            self.late,
            self.expired,
            self.widened,
            self.changed,
            self.left,
        ]
        .into_iter()
        .for_each(|count| writer.u64(count));
        writer.u8(self.repetition as u8);
        [applied, rejected, proofs, rolled_back, self.acting_changes, self.acting_changes_patched]
            .into_iter()
            .for_each(|count| writer.u32(count));
    }

    /// Reads canonical bytes back, which may not say yet how often the world has changed; counts are far below what would overflow
    /// a sum.
    fn decode(
        steps_by_machine: u64,
        says_changes: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Tally, DecodeError> {
        let malformed = reader.error("counters that no run can have reached");
        let mut long = || reader.u64();
        let (steps, episodes, work, unplayed) = (long()?, long()?, long()?, long()?);
        let (resets, abandoned, late, expired, widened) = (long()?, long()?, long()?, long()?, long()?);
        let changed = if says_changes { long()? } else { 0 };
        let left = long()?;
        let repetition = reader.u8()?;
        let Some(repetition) = Repetition::ALL.get(usize::from(repetition)).copied() else {
            return Err(malformed);
        };
        let mut short = || reader.u32();
        let (applied, rejected, proofs, rolled_back) = (short()?, short()?, short()?, short()?);
        let (acting_changes, acting_changes_patched) = (short()?, short()?);
        if [steps, episodes, resets, abandoned, late, expired, widened, changed, left]
            .iter()
            .any(|count| 1 << 48 <= *count)
        {
            return Err(malformed);
        }
        Ok(Tally {
            steps,
            episodes,
            applied,
            rejected,
            proofs,
            rolled_back,
            work,
            unplayed,
            resets,
            abandoned,
            late,
            expired,
            widened,
            changed,
            left,
            repetition,
            steps_by_machine,
            acting_changes,
            acting_changes_patched,
        })
    }
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
    /// The world has lost the episode.
    EpisodeLost,
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
enum Phase {
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

/// A learner in one world.
#[derive(Clone, Debug)]
pub struct Learner {
    shape: Shape,
    settings: Settings,
    /// What was seen.
    experience: Experience,
    /// The machine, which chooses whatever reaches the world.
    machinery: Machinery,
    /// How what acts stands.
    standing: Standing,
    /// Who waits for a decision, and who was measured.
    candidates: Candidates,
    /// Which episodes are played for knowledge.
    exploration: Exploration,
    /// Whether the world behind a context has changed.
    drift: Drift,
    /// Whether what acts goes on earning what it earned.
    constancy: Constancy,
    /// What must not be fallen below while it is learned, if anything.
    floor: Option<Floor>,
    /// What people said.
    hearing: Hearing,
    /// What others propose.
    offered: Offered,
    /// What was learned on lower rungs, until it is tried.
    library: Vec<Machine>,
    tally: Tally,
    history: History,
    play_seeds: Seeds,
    gate_seeds: Seeds,
    /// The scheduler with its unit.
    workload: Workload,
    phase: Phase,
    /// The episode that has begun and is not over.
    flight: Option<Flight>,
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
    /// What was seen where verification finds what acts to contradict the log, if it does.
    pub contradiction: Option<Bits>,
    /// What is earned less than was promised, if it surely is.
    pub shortfall: Option<Shortfall>,
    /// Steps since the score of an applied patch stood out, or since the beginning where none has; none in an answer of another
    /// process, which does not carry it.
    pub steps_since_high_score: Option<u64>,
    /// What the scheduler has given out.
    pub scheduled: Scheduled,
    /// Barriers that were passed.
    pub barriers: Barriers,
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
        let standing = Standing::new(incumbent);
        Ok(Learner { standing, ..Learner::with_machinery(shape, settings, machinery) })
    }

    /// The unit is over for whoever gave it out: records that wait are sealed, and a last barrier is passed.
    pub fn end_unit(&mut self, witness: &mut dyn Witness) {
        self.seal(witness);
        self.machinery.end_unit();
    }

    /// The machine, for the next unit.
    pub fn into_shard(self) -> Shard {
        self.machinery.into_shard(self.standing.into_incumbent())
    }

    /// A learner that knows nothing yet but its machine.
    fn with_machinery(shape: &Shape, settings: Settings, machinery: Machinery) -> Learner {
        Learner {
            experience: Experience::new(settings.config.experience_steps as usize),
            machinery,
            standing: Standing::new(Incumbent::at_boot()),
            candidates: Candidates::new(),
            exploration: Exploration::default(),
            drift: Drift::default(),
            constancy: Constancy::default(),
            floor: None,
            hearing: Hearing::default(),
            offered: Offered::default(),
            library: Vec::new(),
            tally: Tally::default(),
            history: History::new(settings.seed),
            play_seeds: Seeds::new(settings.seed, Domain::Play),
            gate_seeds: Seeds::new(settings.seed, Domain::Improvement),
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

    /// Does not fall below a baseline while it learns.
    #[must_use]
    pub fn with_baseline(mut self, baseline: Option<Baseline>) -> Learner {
        self.floor = baseline.filter(|baseline| baseline.fits(&self.shape)).map(Floor::new);
        self
    }

    /// Takes episodes in that others played, as experience: they are searched like its own, and prove nothing.
    #[must_use]
    pub(crate) fn with_experience(mut self, episodes: Vec<Episode>) -> Learner {
        for episode in episodes {
            let serial = self.history.count();
            self.experience.push(Episode { serial, ..episode });
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
    fn notice_acting(&mut self) {
        if self.machinery.has_changed() {
            self.tally.acting_changes += 1;
            self.constancy.begin_anew();
        }
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
            Phase::Start => {
                self.ask_repetition(world);
                Ok(self.start(witness))
            }
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
            words: self.standing.incumbent().words.clone(),
            machine: self.standing.incumbent().machine.clone(),
            tally: self.accounted(),
            counterexample: self.counterexample(),
            contradiction: self.contradiction(),
            shortfall: self.shortfall(),
            steps_since_high_score: Some(
                self.machinery.evolution().pox().steps_since_high_score(self.tally.steps),
            ),
            scheduled: self.workload.scheduled(),
            barriers: self.machinery.barriers(),
            chain_head: *self.history.head(),
        }
    }

    /// How it works.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Where the run stands, without what was measured for people in vain.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether an episode has begun and is not over.
    pub fn is_in_episode(&self) -> bool {
        self.flight.is_some()
    }

    /// Whether the next unit asks nothing of the world: a search, or the condition of a patch. These are the long ones.
    pub fn is_thinking(&self) -> bool {
        let is_apart = self.flight.is_some() || self.hearing.apart.is_running();
        match self.phase {
            Phase::Judge => !is_apart,
            Phase::Collect => {
                !is_apart && self.workload.act_until(self.candidates.next_search()) <= self.tally.steps
            }
            Phase::Start | Phase::Measure(_) | Phase::Over => false,
        }
    }

    /// Whether a copy of the learner tries what people said, and the learner itself waits.
    pub fn is_set_aside(&self) -> bool {
        self.hearing.apart.is_running()
    }

    /// Whether a patch whose condition was shown is being measured: proven, and neither applied nor refused.
    pub fn is_measuring(&self) -> bool {
        matches!(self.phase, Phase::Measure(_))
    }

    /// What acts now, frozen.
    fn agent(&self) -> Agent {
        let family = self.machinery.family();
        let rule = family.held().acting_rule();
        Agent::adapting(Policy::clone(self.machinery.frozen()), rule, &self.shape).behind(family.guard())
    }

    /// Whether plain actions act.
    fn acts_plainly(&self) -> bool {
        self.machinery.held_slot().is_none()
    }

    /// Whether an expert acts that has won its pairs.
    fn acts_by_proof(&self) -> bool {
        !self.acts_plainly() && !self.standing.incumbent().by_counts
    }

    fn start(&mut self, witness: &mut dyn Witness) -> Event {
        self.announce(witness);
        let library = core::mem::take(&mut self.library);
        let candidates = library.iter().filter_map(|machine| machine.instantiate(&self.shape)).collect();
        self.submit(candidates, false);
        self.phase = Phase::Judge;
        Event::Started
    }

    /// Goes back to collecting, unless there is a reason to stop.
    fn end_round(&mut self) {
        let more = !self.is_spent() && !self.is_done();
        self.phase = if more { Phase::Collect } else { Phase::Over };
    }

    /// Whether, by the learner's own evidence, there is nothing left to gain.
    fn is_done(&self) -> bool {
        let is_final = || self.standing.is_final(&self.shape, self.tally.steps) && !self.leaves_open();
        !self.settings.config.until_budget && is_final()
    }

    /// Somebody else acts from now on.
    fn hand_over(&mut self, witness: &mut dyn Witness) {
        self.exploration.hand_over();
        self.announce(witness);
    }

    /// Tells the witness what acts.
    fn announce(&self, witness: &mut dyn Witness) {
        witness.incumbent_changed(&self.agent(), &self.standing.incumbent().words, &self.accounted());
    }
}
