//! Up the ladder: every family on its own way from rung to rung, and beyond the top practice without end.
//!
//! A family's history is a chain of units. A unit depends on the run's seed, on the units before it in its own chain,
//! and, where a rung resists, on the first two units of the other families ([`OPENING_UNITS`]); on nothing
//! else. So units may be worked on by any number of threads and in any order. All units of all chains have
//! one order ([`Unit::key`]): a run limited by steps takes them in that order and ends with the same history
//! everywhere; a run limited by the clock takes of every chain as much as it can: a prefix of the same chain.
//! When to stop is the caller's business. Clauses: GLE-5, GLE-10, SCC-15, LOG-5; decision D-25.

pub mod message;
pub mod practice;
mod snapshot;
mod taught;
mod track;
mod turns;
mod unit;

pub use track::{Climbed, Edit, Practised, Track};
pub use turns::{Turns, WAITING_MAX};
pub use unit::{Assignment, Purpose, Unit, UnitBegin, UnitKey, UnitResult, Worked};

use crate::learner::{Barriers, Learned, Scheduled, Settings};
use bem_base::digest::{self, Digest};
use bem_base::environment::EnvironmentError;
use bem_games::game::GameError;
use bem_machine::config::GenesisConfig;
use bem_machine::family::FamilyError;
use bem_synth::library::Machine;
use bem_teacher::ladder::{Domain, Ladder};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Tries at one rung, each with another instance and four times the steps, before a family counts as stuck.
pub const ATTEMPTS_MAX: u32 = 4;
/// The first units of every chain: what is learned in them is lent to other families.
pub const OPENING_UNITS: u32 = 2;
/// Requests of a family after its climb that may come before the rungs of slower families.
pub const REQUESTS_EARLY: u32 = 2;
/// Machines of other families that are tried where a rung resists.
const BORROWED_MAX: usize = 4;

/// How a climb is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClimbConfig {
    /// All random choices come from this.
    pub seed: u64,
    /// Rungs of every family's ladder; one is a single task without a ladder.
    pub stages: usize,
    /// Steps in the world at most, for the first try at a task.
    pub unit_steps: u64,
    /// The families, by name.
    pub families: Vec<String>,
    /// The configuration in force, of machine, learner and teacher.
    pub parameters: Arc<GenesisConfig>,
}

/// A climb between units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Climb {
    config: ClimbConfig,
    tracks: Vec<Track>,
    steps: u64,
    acting: Acting,
    /// What worlds are made of, where the text of their task does not say it.
    files: Vec<Digest>,
    /// Tries after which a rung is passed over; none where a family stays below a rung that resists.
    tries: Option<u32>,
}

/// Who chose the actions of all units, what changed the policy that acts when frozen, and who divided the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acting {
    /// Steps whose action the machine chose, as the machine counts them.
    pub steps_by_machine: u64,
    /// How often what acts when frozen changed.
    pub changes: u64,
    /// How many of these changes a decision about a patch made.
    pub changes_patched: u64,
    /// What the schedulers gave out.
    pub scheduled: Scheduled,
    /// Barriers that were passed, and priors that group advantages moved there.
    pub barriers: Barriers,
}

impl Acting {
    fn take(&mut self, learned: &Learned) {
        let tally = &learned.tally;
        for (sum, units) in self.scheduled.units.iter_mut().zip(learned.scheduled.units) {
            *sum = sum.saturating_add(units);
        }
        self.scheduled.alarms = self.scheduled.alarms.saturating_add(learned.scheduled.alarms);
        self.barriers.passed = self.barriers.passed.saturating_add(learned.barriers.passed);
        self.barriers.moved = self.barriers.moved.saturating_add(learned.barriers.moved);
        self.steps_by_machine = self.steps_by_machine.saturating_add(tally.steps_by_machine);
        self.changes = self.changes.saturating_add(u64::from(tally.acting_changes));
        self.changes_patched = self.changes_patched.saturating_add(u64::from(tally.acting_changes_patched));
    }
}

/// Why a climb cannot start or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClimbError {
    /// No ladder has this name.
    #[error("there is no ladder for {name:?}; known are {known}")]
    UnknownFamily {
        /// The name asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// A family is named twice.
    #[error("family {name:?} is named twice")]
    Twice {
        /// The family.
        name: String,
    },
    /// A rung cannot be built.
    #[error("{task}: {error}")]
    Game {
        /// The task.
        task: String,
        /// Why.
        error: GameError,
    },
    /// A world that the configuration has no room for.
    #[error("{task} does not fit the configuration: {error}")]
    Unfit {
        /// The task.
        task: String,
        /// The bound that it exceeds.
        error: FamilyError,
    },
    /// Work on a unit failed in another process, which says why.
    #[error("{0}")]
    Elsewhere(String),
    /// A world failed.
    #[error("{task}: {error}")]
    World {
        /// The task.
        task: String,
        /// Why.
        error: EnvironmentError,
    },
}

impl Climb {
    /// A climb at the foot of every ladder.
    pub fn new(config: ClimbConfig) -> Result<Climb, ClimbError> {
        let mut ladders = Vec::new();
        for family in &config.families {
            let domain = Domain::from_name(family).ok_or_else(|| ClimbError::UnknownFamily {
                name: family.clone(),
                known: Domain::all().map(Domain::name).collect::<Vec<_>>().join(", "),
            })?;
            let ladder = Ladder::new(domain);
            let mut tasks: Vec<String> =
                ladder.rungs(config.stages).into_iter().map(|rung| rung.tree.to_string()).collect();
            tasks.dedup();
            ladders.push(tasks);
        }
        Climb::with_rungs(config, ladders)
    }

    /// A climb over these rungs, one list a family, instead of those of the teacher's ladders.
    pub fn with_rungs(config: ClimbConfig, rungs: Vec<Vec<String>>) -> Result<Climb, ClimbError> {
        assert!(config.families.len() == rungs.len(), "every family has its rungs");
        let mut seen = BTreeSet::new();
        if let Some(name) = config.families.iter().find(|name| !seen.insert(*name)) {
            return Err(ClimbError::Twice { name: name.clone() });
        }
        let families = config.families.iter().zip(rungs).enumerate();
        let tracks =
            families.map(|(place, (family, tasks))| Track::new(&config, place, family, tasks)).collect();
        Ok(Climb { config, tracks, steps: 0, acting: Acting::default(), files: Vec::new(), tries: None })
    }

    /// A run over one task: the seed is the task's own, and there is neither a ladder nor practice.
    pub fn single(name: &str, task: &str, settings: &Settings) -> Climb {
        let families = vec![name.to_string()];
        let (seed, unit_steps) = (settings.seed, settings.budget);
        let parameters = Arc::clone(&settings.config);
        let config = ClimbConfig { seed, stages: 1, unit_steps, families, parameters };
        Climb::with_rungs(config, vec![vec![task.to_string()]]).expect("one name cannot come twice")
    }

    /// The same climb over worlds that are made of these files, by digest: they are part of its configuration, and its
    /// history is kept beside them.
    #[must_use]
    pub fn with_files(mut self, files: Vec<Digest>) -> Climb {
        self.files = files;
        self
    }

    /// The same climb over rungs of which none needs the one before: one that has resisted so many tries is passed over.
    #[must_use]
    pub fn passing_over(mut self, tries: u32) -> Climb {
        assert!((1..=ATTEMPTS_MAX).contains(&tries), "a rung is tried before it is passed over");
        self.tries = Some(tries);
        self
    }

    /// The same climb with machines that each family tries first, the first before the others.
    #[must_use]
    pub fn with_libraries(mut self, libraries: Vec<Vec<Machine>>) -> Climb {
        assert!(self.tracks.len() == libraries.len(), "every family has its machines");
        self.tracks.iter_mut().zip(libraries).for_each(|(track, library)| track.library = library);
        self
    }

    /// What worlds are made of, where the text of their task does not say it.
    pub fn files(&self) -> &[Digest] {
        &self.files
    }

    /// The first unit in order that is not among the busy families.
    pub fn next(&self, busy: &BTreeSet<usize>) -> Option<Unit> {
        let free = self.tracks.iter().enumerate().filter(|(place, _)| !busy.contains(place));
        let open = free.filter_map(|(_, track)| track.next());
        open.filter(|unit| self.may_start(unit)).min_by_key(Unit::key)
    }

    /// A unit that borrows waits until every family has lent what it has to lend.
    fn may_start(&self, unit: &Unit) -> bool {
        !unit.borrows() || self.tracks.iter().all(|track| OPENING_UNITS <= track.units())
    }

    /// Everything that a unit needs, apart from the climb: ready to be worked on elsewhere.
    pub fn assign(&self, unit: &Unit) -> Assignment {
        let track = &self.tracks[unit.track];
        let borrowed = if unit.borrows() { self.lent_to(unit.track) } else { Vec::new() };
        Assignment {
            unit: unit.clone(),
            seed: self.unit_seed(unit),
            parameters: Arc::clone(&self.config.parameters),
            shard: track.shard().cloned(),
            library: track.library().to_vec(),
            borrowed,
            // Practice goes on until the learner itself sees nothing left to gain: it is there to find out.
            until_solved: 1 < self.config.stages && !matches!(unit.purpose, Purpose::Practice { .. }),
            gathers: false,
        }
    }

    /// What the other families learned in their first units, the shortest first.
    fn lent_to(&self, borrower: usize) -> Vec<Machine> {
        let others = self.tracks.iter().enumerate().filter(|(place, _)| *place != borrower);
        let mut lent: Vec<&Machine> = others.flat_map(|(_, track)| track.lent()).collect();
        lent.sort_by_key(|machine| machine.description_length());
        lent.into_iter().cloned().collect()
    }

    /// Works on a unit at once. Nothing of the climb changes; `None` when the caller asked to stop.
    pub fn work(
        &self,
        unit: &Unit,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<UnitResult>, ClimbError> {
        self.assign(unit).work(go_on)
    }

    fn unit_seed(&self, unit: &Unit) -> u64 {
        if self.config.stages == 1 {
            return self.config.seed;
        }
        let place = format!("{}/{}", self.tracks[unit.track].family, unit.number);
        let digest =
            digest::hash_parts("bem/climb/unit", &[&self.config.seed.to_le_bytes(), place.as_bytes()]);
        u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("eight of 32 bytes"))
    }

    /// Takes a result in. Families may be taken in any order; within a family a unit follows the one before.
    pub fn take(&mut self, result: &UnitResult) {
        self.tracks[result.unit.track].take(&self.config, self.tries, result);
        let learned = &result.solution.learned;
        self.steps += learned.tally.steps;
        self.acting.take(learned);
    }

    /// All families.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// Whether some family is still on its way up.
    pub fn is_climbing(&self) -> bool {
        self.tracks.iter().any(Track::is_climbing)
    }

    /// The digest that stands for everything so far: every family's chain of units, whatever the order in which
    /// families took turns.
    pub fn head(&self) -> Digest {
        let start = digest::hash_parts("bem/climb", &[&self.config.seed.to_le_bytes()]);
        self.tracks.iter().fold(start, |head, track| {
            digest::hash_parts("bem/climb/join", &[head.as_bytes(), track.head().as_bytes()])
        })
    }

    /// Steps taken in all worlds.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Who chose the actions, and what changed the policy that acts when frozen.
    pub fn acting(&self) -> Acting {
        self.acting
    }

    /// The set-up.
    pub fn config(&self) -> &ClimbConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests;
