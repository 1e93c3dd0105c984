//! Up the ladder: every family at its frontier, round after round, until the top or a rung that does not give.
//!
//! A unit of work is one task of one family. It depends on the run's seed and its own place only, so units may be
//! worked on by several threads and in any order: a family's history is the same. When to stop is the
//! caller's business. Clauses: GLE-5, SCC-15, LOG-5; decision D-25.

use crate::learner::Settings;
use crate::solve::{Solution, solve};
use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::EnvironmentError;
use bem_base::fixed::Fixed;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::game::GameError;
use bem_synth::policy::Policy;
use bem_teacher::ladder::{Domain, Ladder};

/// Tries at one rung, each with another instance, before a family counts as stuck.
pub const ATTEMPTS_MAX: u32 = 2;

/// How a climb is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClimbConfig {
    /// All random choices come from this.
    pub seed: u64,
    /// Rungs of every family's ladder.
    pub stages: usize,
    /// Steps in the world at most, for one unit.
    pub unit_steps: u64,
    /// The families, by name.
    pub families: Vec<String>,
}

/// One task to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Which family, as its place in the configuration.
    pub track: usize,
    /// Which rung.
    pub stage: usize,
    /// Which try.
    pub attempt: u32,
    /// The task in the catalog's own words.
    pub task: String,
}

/// What a unit brought.
#[derive(Clone, Debug)]
pub struct UnitResult {
    /// The unit.
    pub unit: Unit,
    /// Seed of its instance and its learner.
    pub seed: u64,
    /// The whole solution: curve, decisions, evaluation.
    pub solution: Solution,
}

/// What is kept of a rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Climbed {
    /// The task.
    pub task: String,
    /// Which rung and which try.
    pub stage: usize,
    /// Which try.
    pub attempt: u32,
    /// Final score.
    pub score: Fixed,
    /// Whether it counts as solved.
    pub solved: bool,
    /// Steps taken, and until the score first was 0.99.
    pub steps: u64,
    /// Steps until the score first was 0.99.
    pub steps_to_99: Option<u64>,
    /// Patches installed and turned down.
    pub applied: u32,
    /// Patches turned down.
    pub rejected: u32,
    /// Proofs that the checker accepted.
    pub proofs: u32,
    /// What was learned, in words.
    pub words: String,
    /// The circuit.
    pub policy: Policy,
    /// Head of the unit's own chain.
    pub head: Digest,
}

/// One family on its way up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// The family.
    pub family: String,
    tasks: Vec<String>,
    stage: usize,
    attempt: u32,
    /// Every rung tried, in order.
    pub climbed: Vec<Climbed>,
}

impl Track {
    /// The task of every rung, from the foot to the top.
    pub fn tasks(&self) -> &[String] {
        &self.tasks
    }

    /// Rungs solved.
    pub fn solved(&self) -> usize {
        self.stage
    }

    /// Rungs there are.
    pub fn stages(&self) -> usize {
        self.tasks.len()
    }

    /// Whether the top is reached.
    pub fn is_at_top(&self) -> bool {
        self.stage == self.tasks.len()
    }

    /// Whether a rung resisted every try.
    pub fn is_stuck(&self) -> bool {
        ATTEMPTS_MAX <= self.attempt
    }
}

/// A climb between rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Climb {
    config: ClimbConfig,
    tracks: Vec<Track>,
    steps: u64,
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
    /// A rung cannot be built.
    #[error("{task}: {error}")]
    Game {
        /// The task.
        task: String,
        /// Why.
        error: GameError,
    },
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
        let mut tracks = Vec::new();
        for family in &config.families {
            let domain = Domain::from_name(family).ok_or_else(|| ClimbError::UnknownFamily {
                name: family.clone(),
                known: Domain::all().map(Domain::name).collect::<Vec<_>>().join(", "),
            })?;
            let ladder = Ladder::new(domain);
            let mut tasks: Vec<String> =
                ladder.rungs(config.stages).into_iter().map(|rung| rung.tree.to_string()).collect();
            tasks.dedup();
            tracks.push(Track { family: family.clone(), tasks, stage: 0, attempt: 0, climbed: Vec::new() });
        }
        Ok(Climb { config, tracks, steps: 0 })
    }

    /// One unit for every family that is neither at the top nor stuck.
    pub fn round(&self) -> Vec<Unit> {
        let open =
            self.tracks.iter().enumerate().filter(|(_, track)| !track.is_at_top() && !track.is_stuck());
        open.map(|(place, track)| Unit {
            track: place,
            stage: track.stage,
            attempt: track.attempt,
            task: track.tasks[track.stage].clone(),
        })
        .collect()
    }

    /// Works on a unit. Nothing of the climb changes; `None` when the caller asked to stop.
    pub fn work(
        &self,
        unit: &Unit,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<UnitResult>, ClimbError> {
        let seed = self.unit_seed(unit);
        let game = |error| ClimbError::Game { task: unit.task.clone(), error };
        let tree = TaskTree::parse(&unit.task).map_err(game)?;
        let instance = tree.build(seed, &NoPrograms).map_err(game)?;
        let settings = Settings { budget: self.config.unit_steps, ..Settings::new(seed) };
        let mut stopped = false;
        let solution = solve(instance.as_ref(), settings, &mut |_| {
            stopped |= !go_on();
            !stopped
        })
        .map_err(|error| ClimbError::World { task: unit.task.clone(), error })?;
        Ok((!stopped).then(|| UnitResult { unit: unit.clone(), seed, solution }))
    }

    fn unit_seed(&self, unit: &Unit) -> u64 {
        let place = format!("{}/{}/{}", self.tracks[unit.track].family, unit.stage, unit.attempt);
        let digest =
            digest::hash_parts("bem/climb/unit", &[&self.config.seed.to_le_bytes(), place.as_bytes()]);
        u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("eight of 32 bytes"))
    }

    /// Takes a result in. Families may be taken in any order; within a family a unit follows the one before.
    pub fn take(&mut self, result: &UnitResult) {
        let solution = &result.solution;
        let track = &mut self.tracks[result.unit.track];
        let solved = solution.is_solved();
        (track.stage, track.attempt) =
            if solved { (track.stage + 1, 0) } else { (track.stage, track.attempt + 1) };
        let learned = &solution.learned;
        track.climbed.push(Climbed {
            task: result.unit.task.clone(),
            stage: result.unit.stage,
            attempt: result.unit.attempt,
            score: solution.score().unwrap_or(Fixed::ZERO),
            solved,
            steps: learned.tally.steps,
            steps_to_99: solution.steps_to_99,
            applied: learned.tally.applied,
            rejected: learned.tally.rejected,
            proofs: learned.tally.proofs,
            words: learned.words.clone(),
            policy: learned.agent.policy().clone(),
            head: learned.chain_head,
        });
        self.steps += learned.tally.steps;
    }

    /// All families.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// The digest that stands for everything so far: every family's chain of units, whatever the order in which
    /// families took turns.
    pub fn head(&self) -> Digest {
        let start = digest::hash_parts("bem/climb", &[&self.config.seed.to_le_bytes()]);
        let chain = |track: &Track| {
            let link = |head: Digest, climbed: &Climbed| {
                digest::hash_parts("bem/climb/link", &[head.as_bytes(), climbed.head.as_bytes()])
            };
            track.climbed.iter().fold(digest::hash_parts("bem/climb/track", &[track.family.as_bytes()]), link)
        };
        self.tracks.iter().map(chain).fold(start, |head, track| {
            digest::hash_parts("bem/climb/join", &[head.as_bytes(), track.as_bytes()])
        })
    }

    /// Steps taken in all worlds.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The set-up.
    pub fn config(&self) -> &ClimbConfig {
        &self.config
    }

    /// Everything that decides the next round, as canonical bytes.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text("bem climb 1");
        writer.u64(self.config.seed);
        writer.u32(self.config.stages as u32);
        writer.u64(self.config.unit_steps);
        writer.u64(self.steps);
        writer.length(self.tracks.len());
        for track in &self.tracks {
            writer.text(&track.family);
            writer.u32(track.stage as u32);
            writer.u32(track.attempt);
            writer.length(track.climbed.len());
            track.climbed.iter().for_each(|climbed| climbed.encode(&mut writer));
        }
        writer.into_bytes()
    }

    /// Continues from a snapshot.
    pub fn restore(bytes: &[u8]) -> Result<Climb, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a snapshot of a climb");
        if reader.text()? != "bem climb 1" {
            return Err(foreign);
        }
        let wild = reader.error("a climb that this version cannot have made");
        let (seed, stages, unit_steps) = (reader.u64()?, reader.u32()? as usize, reader.u64()?);
        let steps = reader.u64()?;
        let mut families = Vec::new();
        let mut places = Vec::new();
        for _ in 0..reader.length(16)? {
            families.push(reader.text()?.to_string());
            let (stage, attempt) = (reader.u32()? as usize, reader.u32()?);
            let mut climbed = Vec::new();
            for _ in 0..reader.length(64)? {
                climbed.push(Climbed::decode(&mut reader)?);
            }
            places.push((stage, attempt, climbed));
        }
        reader.finish()?;
        if !(2..=bem_teacher::ladder::STAGES_MAX).contains(&stages) {
            return Err(wild);
        }
        let config = ClimbConfig { seed, stages, unit_steps, families };
        let mut climb = Climb::new(config).map_err(|_| wild.clone())?;
        for (track, (stage, attempt, climbed)) in climb.tracks.iter_mut().zip(places) {
            if track.tasks.len() < stage || ATTEMPTS_MAX < attempt {
                return Err(wild);
            }
            (track.stage, track.attempt, track.climbed) = (stage, attempt, climbed);
        }
        climb.steps = steps;
        Ok(climb)
    }
}

impl Climbed {
    fn encode(&self, writer: &mut Writer) {
        writer.text(&self.task);
        writer.u32(self.stage as u32);
        writer.u32(self.attempt);
        writer.i64(self.score.to_raw());
        writer.bool(self.solved);
        writer.u64(self.steps);
        writer.bool(self.steps_to_99.is_some());
        writer.u64(self.steps_to_99.unwrap_or(0));
        for count in [self.applied, self.rejected, self.proofs] {
            writer.u32(count);
        }
        writer.text(&self.words);
        self.policy.encode(writer);
        writer.raw(self.head.as_bytes());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Climbed, DecodeError> {
        Ok(Climbed {
            task: reader.text()?.to_string(),
            stage: reader.u32()? as usize,
            attempt: reader.u32()?,
            score: Fixed::from_raw(reader.i64()?),
            solved: reader.bool()?,
            steps: reader.u64()?,
            steps_to_99: {
                let known = reader.bool()?;
                Some(reader.u64()?).filter(|_| known)
            },
            applied: reader.u32()?,
            rejected: reader.u32()?,
            proofs: reader.u32()?,
            words: reader.text()?.to_string(),
            policy: Policy::decode(reader)?,
            head: read_digest(reader)?,
        })
    }
}

fn read_digest(reader: &mut Reader<'_>) -> Result<Digest, DecodeError> {
    Ok(Digest::from_bytes(reader.raw(32)?.try_into().expect("32 bytes were read")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn climb() -> Climb {
        let families = ["parity", "majority"].map(str::to_string).to_vec();
        Climb::new(ClimbConfig { seed: 3, stages: 3, unit_steps: 20_000, families }).unwrap()
    }

    fn one_round(climb: &mut Climb, backward: bool) {
        let units = climb.round();
        let mut results: Vec<(usize, UnitResult)> = Vec::new();
        let mut order: Vec<usize> = (0..units.len()).collect();
        if backward {
            order.reverse();
        }
        for place in order {
            results.push((place, climb.work(&units[place], &mut || true).unwrap().unwrap()));
        }
        results.sort_by_key(|(place, _)| *place);
        results.iter().for_each(|(_, result)| climb.take(result));
    }

    #[test]
    fn the_order_in_which_units_are_worked_on_does_not_matter() {
        let (mut forward, mut backward) = (climb(), climb());
        for _ in 0..2 {
            one_round(&mut forward, false);
            one_round(&mut backward, true);
        }
        assert_eq!(forward, backward);
        assert!(forward.tracks().iter().all(|track| 0 < track.solved()));
    }

    #[test]
    fn a_snapshot_continues_as_if_nothing_had_happened() {
        let mut whole = climb();
        one_round(&mut whole, false);
        let bytes = whole.snapshot();
        let mut resumed = Climb::restore(&bytes).unwrap();
        assert_eq!(resumed, whole);
        one_round(&mut whole, false);
        one_round(&mut resumed, false);
        assert_eq!(resumed.head(), whole.head());
        for length in 0..bytes.len() {
            assert!(Climb::restore(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn a_stopped_unit_leaves_nothing_behind() {
        let climb = climb();
        let unit = &climb.round()[0];
        assert!(climb.work(unit, &mut || false).unwrap().is_none());
    }

    #[test]
    fn an_unknown_family_is_named_with_the_known() {
        let families = vec!["chess".to_string()];
        let error = Climb::new(ClimbConfig { seed: 1, stages: 3, unit_steps: 1, families }).unwrap_err();
        assert!(error.to_string().starts_with("there is no ladder for \"chess\"; known are"), "{error}");
    }
}
