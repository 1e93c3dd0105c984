//! The phases: who learns what now, and what becomes of it.
//!
//! Phase 0 sets up specialists and a main machine with more room than one of them; phase 1 lets every specialist climb; phase 2
//! lets the main machine learn what they have solved, beginning with their machines and episodes; phase 3 mixes domains; phase 4
//! takes in what is named late, through phases 1 to 3 again. Work comes in rounds of units that do not depend on each other.
//! A plan without an end goes on with mixed learning when nobody is left to take in; from time to time the main machine begins a
//! new volume with all that it has (`volume.rs`), so that what is kept does not grow. Clauses: PIPE-1, PIPE-2; decisions D-133, D-237, D-277, D-278.

use crate::PipelineError;
use crate::domain::{domain_of, families_of};
use crate::pool::{Learnt, Outcome, Pool, score_of};
use crate::specialist::Specialist;
use crate::volume::{Volume, scratch_file};
use bem_base::digest::{Digest, hash_parts};
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_engine::climb::message::Order;
use bem_engine::climb::{Climb, ClimbConfig, Purpose, Track, Unit, UnitResult};
use bem_engine::worlds::{World, Worlds};
use bem_games::game::{Game, GameError};
use bem_learn::bucket::Bucket;
use bem_learn::index::Parameters;
use bem_learn::loss::Loss;
use bem_machine::config::GenesisConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tries at one setting, each with four times the steps of the one before.
pub(crate) const TRIES: u32 = 2;
/// The main machine has room for so many times the experts of one specialist, as far as a configuration allows.
const ROOM: u32 = 4;
/// See `ROOM`.
const EXPERTS_MOST: u32 = 65_536;
/// A plan without an end begins a new volume when this many times the rounds of a cycle have been mixed.
const CYCLES_A_VOLUME: u32 = 8;

/// Everything that a pipeline's history follows from.
#[derive(Clone, Debug)]
pub struct Plan {
    /// All random choices come from this.
    pub seed: u64,
    /// The domains of the first cycle.
    pub domains: Vec<String>,
    /// Domains that come in afterwards, each in a cycle of its own.
    pub late: Vec<String>,
    /// Rungs of every family's ladder.
    pub stages: usize,
    /// Steps of the first try at a setting.
    pub unit_steps: u64,
    /// Rounds of mixed learning in every cycle.
    pub mixed_rounds: u32,
    /// Whether specialists' machines and episodes are handed on.
    pub distils: bool,
    /// Whether off-policy and unstable episodes are masked.
    pub masks: bool,
    /// Whether every setting of the main machine is learned from scratch as well, to compare.
    pub compares: bool,
    /// Whether mixed learning goes on when all domains are done.
    pub endless: bool,
    /// The configuration of every specialist.
    pub parameters: Arc<GenesisConfig>,
    /// That of the main machine, which has room for more experts besides, and of those who learn from scratch beside it.
    pub main: Arc<GenesisConfig>,
}

/// Where a pipeline stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Specialists climb.
    Specialists,
    /// The main machine learns what they have solved.
    Distillation,
    /// The main machine goes on with all domains.
    Mixed,
    /// Nothing is left.
    Over,
}

/// Which machine a unit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// A specialist, by number.
    Specialist(usize),
    /// The main machine, in the volume of this cycle.
    Main(usize),
    /// A learner from scratch in the settings of this cycle, to compare.
    Scratch(usize),
}

/// A unit to be worked on, anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Whose it is.
    pub who: Who,
    /// The unit.
    pub unit: Unit,
}

/// What is kept of the main machine's work on a setting.
#[derive(Clone, Debug)]
pub struct Done {
    /// Its score.
    pub score: Fixed,
    /// Steps until the score was 0.99, those of tries that failed included.
    pub steps_to_99: Option<u64>,
    /// Steps taken, of all tries until then.
    pub steps: u64,
    /// Steps of the specialist's unmasked episodes, and in how many of them the main machine does the same.
    pub agreement: (u64, u64),
}

/// Counts of what the pool did with newcomers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolTally {
    /// Came in.
    pub installed: u32,
    /// Left, because others do as well wherever they acted.
    pub replaced: u32,
    /// Was known already.
    pub known: u32,
    /// Would have cost a setting.
    pub blocked: u32,
}

/// A pipeline between two results.
#[derive(Clone)]
pub struct Pipeline {
    pub(crate) plan: Plan,
    pub(crate) phase: Phase,
    /// Cycles begun: the first is phases 1 to 3, every later one is part of phase 4.
    pub(crate) cycle: usize,
    pub(crate) specialists: Vec<Specialist>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) scratch: Vec<Climb>,
    pub(crate) pool: Pool,
    pub(crate) pool_tally: PoolTally,
    /// The first time that a setting was solved by the main machine, or the last try at it.
    pub(crate) done: BTreeMap<String, Done>,
    /// What every setting's expert earned on fresh seeds when mixed learning first began with it.
    pub(crate) had: BTreeMap<String, Fixed>,
    /// Which domain the main machine goes on with.
    pub(crate) scheduler: Bucket,
    pub(crate) chosen: BTreeMap<String, u32>,
    pub(crate) round: u32,
    /// Units taken in, and their steps.
    pub(crate) units: u32,
    /// See `units`.
    pub(crate) steps: u64,
    /// Specialists whose domains the main machine has learned or given up.
    pub(crate) learned: u32,
    /// Volumes begun.
    pub(crate) begun: u32,
    /// The volumes that the present ones came from: what was learned in them is in these.
    pub(crate) passed: Vec<u32>,
    /// The least share of what it had that any domain kept after any round since the first mixed learning.
    pub(crate) kept_least: Option<Fixed>,
    pub(crate) head: Digest,
}

impl Pipeline {
    /// Phase 0: specialists at the foot of their ladders, and an empty main machine.
    pub fn new(plan: Plan) -> Result<Pipeline, PipelineError> {
        let mut seen = BTreeSet::new();
        for name in plan.domains.iter().chain(&plan.late) {
            families_of(name)?;
            if !seen.insert(name) {
                return Err(PipelineError::Twice { name: name.clone() });
            }
        }
        let live = u16::MAX >> (ARMS_MAX - seen.len().clamp(1, ARMS_MAX));
        let mut pipeline = Pipeline {
            phase: Phase::Specialists,
            cycle: 0,
            specialists: Vec::new(),
            volumes: Vec::new(),
            scratch: Vec::new(),
            pool: Pool::default(),
            pool_tally: PoolTally::default(),
            done: BTreeMap::new(),
            had: BTreeMap::new(),
            scheduler: Bucket::new(&Parameters::DEFAULT, live),
            chosen: BTreeMap::new(),
            round: 0,
            units: 0,
            steps: 0,
            learned: 0,
            begun: 0,
            passed: Vec::new(),
            kept_least: None,
            head: hash_parts("bem/pipeline", &[&plan.seed.to_le_bytes()]),
            plan,
        };
        let domains = pipeline.plan.domains.clone();
        pipeline.hire(&domains)?;
        Ok(pipeline)
    }

    /// Specialists for these domains.
    fn hire(&mut self, domains: &[String]) -> Result<(), PipelineError> {
        for domain in domains {
            let families = families_of(domain)?.iter().map(|family| (*family).to_string()).collect();
            let climb = Climb::new(self.config(self.plan.stages, families))?;
            let domain = domain.clone();
            self.specialists.push(Specialist {
                domain,
                climb,
                gathered: BTreeMap::new(),
                mastered: BTreeMap::new(),
            });
        }
        Ok(())
    }

    fn config(&self, stages: usize, families: Vec<String>) -> ClimbConfig {
        let Plan { seed, unit_steps, .. } = self.plan;
        ClimbConfig { seed, stages, unit_steps, families, parameters: Arc::clone(&self.plan.parameters) }
    }

    /// The main machine's configuration, with room for more experts than a specialist has. It is part of its genesis.
    pub(crate) fn main_config(&self, families: Vec<String>) -> ClimbConfig {
        let config = self.config(self.plan.stages.max(2), families);
        let mut parameters = GenesisConfig::clone(&self.plan.main);
        parameters.experts_max = parameters.experts_max.saturating_mul(ROOM).min(EXPERTS_MOST);
        ClimbConfig { parameters: Arc::new(parameters), ..config }
    }

    /// The units of the present round, in the order of their numbers. None depends on another. Empty when all is over.
    pub fn jobs(&self) -> Vec<Job> {
        match self.phase {
            Phase::Specialists => self.climbing(|who| matches!(who, Who::Specialist(_))),
            Phase::Distillation => self.climbing(|who| !matches!(who, Who::Specialist(_))),
            Phase::Mixed => self.mixed_jobs(),
            Phase::Over => Vec::new(),
        }
    }

    /// The climb of a machine.
    pub fn climb(&self, who: Who) -> &Climb {
        match who {
            Who::Specialist(number) => &self.specialists[number].climb,
            Who::Main(cycle) => &self.volumes[cycle].climb,
            Who::Scratch(cycle) => &self.scratch[cycle],
        }
    }

    /// All machines, in order.
    pub fn machines(&self) -> Vec<Who> {
        let specialists = (0..self.specialists.len()).map(Who::Specialist);
        let main = (0..self.volumes.len()).map(Who::Main);
        specialists.chain(main).chain((0..self.scratch.len()).map(Who::Scratch)).collect()
    }

    fn climbing(&self, is_asked: impl Fn(Who) -> bool) -> Vec<Job> {
        let machines = self.machines().into_iter().filter(|who| is_asked(*who));
        machines
            .flat_map(|who| climbing_units(self.climb(who)).into_iter().map(move |unit| Job { who, unit }))
            .collect()
    }

    /// One unit of every volume's family with the least work behind it, for the domains that the scheduler chooses.
    fn mixed_jobs(&self) -> Vec<Job> {
        let domains = self.domains();
        // The indices are those of the last round: a round's units are chosen together, the best first.
        let indices = self.scheduler.indices();
        let mut order: Vec<usize> = (0..domains.len().min(ARMS_MAX)).collect();
        order.sort_by_key(|arm| (indices[*arm], *arm));
        let best = order.into_iter().take(domains.len().div_ceil(2));
        let mut jobs: Vec<Job> = best.filter_map(|arm| self.practice(&domains[arm])).collect();
        jobs.sort_by_key(|job| (job.who, job.unit.track));
        jobs
    }

    /// The next unit of practice in a domain: of the family with the least work behind it.
    fn practice(&self, domain: &str) -> Option<Job> {
        let units = self.volumes.iter().enumerate().flat_map(|(cycle, volume)| {
            let tracks =
                volume.climb.tracks().iter().filter(|track| domain_of(&track.family) == Some(domain));
            tracks
                .filter_map(Track::next)
                .filter(is_affordable)
                .map(move |unit| Job { who: Who::Main(cycle), unit })
        });
        units.min_by_key(|job| (job.unit.spent, job.who, job.unit.track))
    }

    /// The domains that have a specialist, in order.
    pub fn domains(&self) -> Vec<String> {
        self.specialists.iter().map(|specialist| specialist.domain.clone()).collect()
    }

    /// The unit with all that it needs, as a message.
    pub fn order(&self, job: &Job) -> Order {
        let assignment = self.climb(job.who).assign(&job.unit);
        let (assignment, files) = match job.who {
            Who::Specialist(_) => (assignment.gathering(), Vec::new()),
            Who::Main(cycle) => (assignment, vec![self.volumes[cycle].file.clone()]),
            Who::Scratch(cycle) => (assignment, vec![scratch_file(&self.volumes[cycle])]),
        };
        Order { assignment, files, put_away: None }
    }

    /// The file that a machine's worlds are made of, if there is one.
    pub fn file(&self, who: Who) -> Option<Vec<u8>> {
        match who {
            Who::Specialist(_) => None,
            Who::Main(cycle) => Some(self.volumes[cycle].file.clone()),
            Who::Scratch(cycle) => Some(scratch_file(&self.volumes[cycle])),
        }
    }

    /// Takes in the results of a round, one for every job and in their order; then the phase may change.
    pub fn take(&mut self, jobs: &[Job], results: &[UnitResult]) -> Result<(), PipelineError> {
        assert!(jobs.len() == results.len(), "every job of a round has its result");
        for (job, result) in jobs.iter().zip(results) {
            let head = result.solution.learned.chain_head;
            self.head = hash_parts("bem/pipeline/link", &[self.head.as_bytes(), head.as_bytes()]);
            self.units += 1;
            self.steps = self.steps.saturating_add(result.solution.learned.tally.steps);
            match job.who {
                Who::Specialist(number) => self.specialists[number].take(result),
                Who::Main(cycle) => self.take_main(cycle, result)?,
                Who::Scratch(cycle) => self.scratch[cycle].take(result),
            }
        }
        self.end_round()
    }

    fn take_main(&mut self, cycle: usize, result: &UnitResult) -> Result<(), PipelineError> {
        self.volumes[cycle].climb.take(result);
        let (task, solution) = (&result.unit.task, &result.solution);
        let score = solution.score().unwrap_or(Fixed::ZERO);
        let domain =
            domain_of(&self.volumes[cycle].climb.tracks()[result.unit.track].family).unwrap_or_default();
        if self.phase == Phase::Mixed {
            self.reward(domain, result);
        }
        let volume = &self.volumes[cycle];
        let agent = &solution.learned.agent;
        let agreement =
            volume.distilled.tasks.get(task).map_or((0, 0), |taught| taught.agreement(agent.policy()));
        let is_setting = volume.climb.tracks()[result.unit.track].tasks().contains(task);
        let before = self.done.get(task);
        if is_setting && before.is_none_or(|done| done.steps_to_99.is_none()) {
            // What failed before is part of the way there.
            let failed = before.map_or(0, |done| done.steps);
            let steps_to_99 = solution.steps_to_99.map(|steps| failed.saturating_add(steps));
            let steps = failed.saturating_add(solution.learned.tally.steps);
            self.done.insert(task.clone(), Done { score, steps_to_99, steps, agreement });
        }
        if !solution.is_solved() {
            return Ok(());
        }
        let World::Game(game) = volume.distilled.open(task, result.seed)? else {
            return Err(GameError::Impossible("a setting without a game".to_string()).into());
        };
        let machine = solution.learned.machine.as_ref();
        let (seed, instance) = (result.seed, volume.distilled.instance(task, result.seed));
        // Its specialist plays the same episodes: what it had on others may have been luck.
        let setting = match is_setting && self.pool.route(task).is_none() {
            true => Some(self.specialist_on(task, game.as_ref(), (result.seed, instance))?),
            false => None,
        };
        let learnt = Learnt { task, domain, game, seed, instance, agent, machine, score, setting };
        match self.pool.install(learnt) {
            Outcome::Installed => self.pool_tally.installed += 1,
            Outcome::Known => self.pool_tally.known += 1,
        }
        Ok(())
    }

    /// The score that a specialist had in a task when it solved it.
    pub(crate) fn specialist_score(&self, task: &str) -> Option<Fixed> {
        let tracks = self.specialists.iter().flat_map(|specialist| specialist.climb.tracks());
        let mut solved = tracks.flat_map(|track| track.climbed.iter().rev());
        solved.find(|climbed| climbed.solved && climbed.task == task).map(|climbed| climbed.score)
    }

    /// What the specialist that has solved a task earns there in the episodes of this seed; nothing where there is none.
    pub(crate) fn specialist_on(
        &self,
        task: &str,
        game: &dyn Game,
        (seed, instance): (u64, u64),
    ) -> Result<Fixed, PipelineError> {
        let known = self.specialists.iter().find_map(|specialist| specialist.agent_of(task));
        match known.filter(|(_, own)| *own == instance) {
            Some((agent, _)) => Ok(score_of(game, &agent, seed)?),
            None => Ok(Fixed::ZERO),
        }
    }

    /// The seed of episodes of a task that nobody has seen.
    pub(crate) fn fresh_seed(&self, task: &str) -> u64 {
        let place = hash_parts("bem/pipeline/fresh", &[&self.plan.seed.to_le_bytes(), task.as_bytes()]);
        u64::from_le_bytes(place.as_bytes()[..8].try_into().expect("eight of 32 bytes"))
    }

    /// What the pool earns in a setting in the episodes that nobody has seen; nothing without an expert.
    pub(crate) fn fresh_score(&self, task: &str) -> Result<Fixed, PipelineError> {
        let Some(route) = self.pool.route(task) else { return Ok(Fixed::ZERO) };
        match self.pool.agent_of(route) {
            Some(agent) => Ok(score_of(route.game.as_ref(), &agent, self.fresh_seed(task))?),
            None => Ok(Fixed::ZERO),
        }
    }

    /// Notes what every setting has before mixed learning goes on with it.
    fn note_had(&mut self) -> Result<(), PipelineError> {
        let routed = self.pool.routes().map(|(task, _)| task.to_string());
        let new: Vec<String> = routed.filter(|task| !self.had.contains_key(task)).collect();
        for task in new {
            let score = self.fresh_score(&task)?;
            self.had.insert(task, score);
        }
        Ok(())
    }

    /// For every domain, the share of what it had that its worst setting keeps: nothing where a setting that was learned has no
    /// expert. A setting whose lesson failed counts from when it has one.
    pub fn kept(&self) -> BTreeMap<String, Fixed> {
        let mut kept: BTreeMap<String, Fixed> = BTreeMap::new();
        let tracks = self.volumes.iter().flat_map(|volume| volume.climb.tracks());
        for (track, task) in tracks.flat_map(|track| track.tasks().iter().map(move |task| (track, task))) {
            let is_learned = self.done.get(task).is_some_and(|done| done.steps_to_99.is_some());
            if !is_learned && self.pool.route(task).is_none() {
                continue;
            }
            let share = self.pool.route(task).map_or(Fixed::ZERO, |route| match Fixed::ZERO < route.best {
                true => route.score.div_floor(route.best),
                false => Fixed::ONE,
            });
            let domain = domain_of(&track.family).unwrap_or_default().to_string();
            let least = kept.entry(domain).or_insert(share);
            *least = (*least).min(share);
        }
        kept
    }

    /// What a unit of practice was worth: what is learned there and was not known before.
    fn reward(&mut self, domain: &str, result: &UnitResult) {
        *self.chosen.entry(domain.to_string()).or_default() += 1;
        let Some(arm) = self.domains().iter().position(|name| name == domain) else { return };
        let solution = &result.solution;
        let first = solution
            .curve
            .first()
            .zip(solution.yardstick)
            .map(|(point, yardstick)| yardstick.score(point.mean));
        let gain = solution.score().unwrap_or(Fixed::ZERO).minus(first.unwrap_or(Fixed::ZERO));
        let loss = Fixed::ONE.minus(gain.clamp(Fixed::ZERO, Fixed::ONE));
        self.scheduler.update(&Parameters::DEFAULT, arm, Loss::from_fixed(loss).unwrap_or(Loss::ONE));
    }

    fn end_round(&mut self) -> Result<(), PipelineError> {
        if self.phase == Phase::Mixed {
            self.round += 1;
            self.settle()?;
        }
        self.note_kept();
        loop {
            let is_over = match self.phase {
                Phase::Specialists | Phase::Distillation => self.jobs().is_empty(),
                Phase::Mixed => self.is_mixed_enough() || self.jobs().is_empty(),
                Phase::Over => false,
            };
            if !is_over {
                return Ok(());
            }
            self.next_phase()?;
        }
    }

    /// From the first mixed learning on, whatever happens is held against what every domain had.
    fn note_kept(&mut self) {
        if 0 < self.learned {
            let least = self.kept().into_values().min();
            self.kept_least = self.kept_least.into_iter().chain(least).min();
        }
    }

    fn next_phase(&mut self) -> Result<(), PipelineError> {
        self.phase = match self.phase {
            Phase::Specialists => {
                self.distil()?;
                Phase::Distillation
            }
            Phase::Distillation => {
                self.round = 0;
                self.settle()?;
                self.note_had()?;
                self.learned = self.specialists.len() as u32;
                self.note_kept();
                Phase::Mixed
            }
            Phase::Mixed | Phase::Over => match self.plan.late.get(self.cycle).cloned() {
                Some(domain) => {
                    self.cycle += 1;
                    self.hire(&[domain])?;
                    Phase::Specialists
                }
                None if self.plan.endless && self.renew()? => Phase::Distillation,
                None => Phase::Over,
            },
        };
        Ok(())
    }

    /// Whether a cycle's mixed learning ends here: without an end only for somebody new, or for a new volume.
    fn is_mixed_enough(&self) -> bool {
        let is_last = self.plan.late.len() <= self.cycle;
        let rounds = match self.plan.endless && is_last {
            true => self.plan.mixed_rounds.max(1).saturating_mul(CYCLES_A_VOLUME),
            false => self.plan.mixed_rounds,
        };
        rounds <= self.round
    }

    /// Takes in a domain that nobody has named before, between two rounds: a cycle of its own when those before it are over.
    pub fn take_in(&mut self, domain: &str) -> Result<(), PipelineError> {
        families_of(domain)?;
        if self.plan.domains.iter().chain(&self.plan.late).any(|name| name == domain) {
            return Err(PipelineError::Twice { name: domain.to_string() });
        }
        let arm = self.plan.domains.len() + self.plan.late.len();
        if arm < ARMS_MAX {
            self.scheduler.admit(&Parameters::DEFAULT, arm);
        }
        self.plan.late.push(domain.to_string());
        if self.phase == Phase::Over {
            self.next_phase()?;
        }
        Ok(())
    }

    /// From now on there is no end.
    pub fn go_on_without_end(&mut self) -> Result<(), PipelineError> {
        self.plan.endless = true;
        if self.phase == Phase::Over {
            self.next_phase()?;
        }
        Ok(())
    }

    /// Whether a plan without an end has come to the rounds that need nobody new.
    pub fn is_beyond_its_plan(&self) -> bool {
        let is_last = self.plan.late.len() <= self.cycle;
        let is_renewed = !self.passed.is_empty();
        is_last && (is_renewed || self.phase == Phase::Mixed && self.plan.mixed_rounds <= self.round)
    }

    /// Steps that all tries at a setting may take.
    pub fn setting_steps_max(&self) -> u64 {
        (0..TRIES).map(|attempt| self.plan.unit_steps << (2 * attempt)).sum()
    }

    /// Units taken in: the number of the next one.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Steps of all units.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Domains that are learned or given up: so many of `domains`, from the first on.
    pub fn learned(&self) -> usize {
        self.learned as usize
    }

    /// Cycles begun after the first.
    pub fn cycle(&self) -> usize {
        self.cycle
    }

    /// The volumes whose histories are kept: the present ones, and those that they came from.
    pub fn volumes_kept(&self) -> BTreeSet<u32> {
        self.volumes.iter().map(|volume| volume.number).chain(self.passed.iter().copied()).collect()
    }

    /// The number of a volume.
    pub fn volume_number(&self, place: usize) -> u32 {
        self.volumes[place].number
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The specialists.
    pub fn specialists(&self) -> &[Specialist] {
        &self.specialists
    }

    /// The digest of everything so far: every unit's own chain, in the order of their numbers.
    pub fn head(&self) -> Digest {
        self.head
    }
}

/// The units of a climb that may be worked on now: one of every family that is on its way up.
fn climbing_units(climb: &Climb) -> Vec<Unit> {
    let all: BTreeSet<usize> = (0..climb.tracks().len()).collect();
    let climbing = all.iter().filter(|place| climb.tracks()[**place].is_climbing());
    let units = climbing.filter_map(|place| {
        let others = all.iter().filter(|other| *other != place).copied().collect();
        climb.next(&others)
    });
    units.filter(|unit| !matches!(unit.purpose, Purpose::Practice { .. }) && is_affordable(unit)).collect()
}

/// A specialist's rung is given up after a few tries, with all that lie above it; a volume passes over such a setting.
fn is_affordable(unit: &Unit) -> bool {
    !matches!(unit.purpose, Purpose::Rung { attempt, .. } if TRIES <= attempt)
}
