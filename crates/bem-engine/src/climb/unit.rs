//! One unit of work: one task of one family, with a budget, from its seed alone.
//!
//! A unit is plain data with canonical bytes of its own version, so that it can be named in a ledger and worked on elsewhere.
//! Clauses: SCC-15, GLE-10.

use super::ClimbError;
use crate::evaluate::Yardstick;
use crate::evaluate::baselines::evaluate_episodes;
use crate::learner::Settings;
use crate::measure::JUDGING_EPISODES;
use crate::parameters::check_world;
use crate::shard::Shard;
use crate::solve::{Broken, Lesson, Solution, Taught, teach_on, teach_world};
use crate::start::Start;
use crate::worlds::{Catalog, World, Worlds};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Environment, EnvironmentError, Shape};
use bem_games::game::Game;
use bem_machine::config::GenesisConfig;
use bem_synth::library::Machine;
use bem_teacher::template::TemplateId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The version of a unit's encoding, its first byte.
const FORMAT: u8 = 1;

/// Machines of its own that a family tries first, the latest before the others.
const OWN_MAX: usize = 3;

/// What a unit is for. The order is the order of turns: those that climb go before those that practise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The next rung.
    Rung {
        /// Which rung.
        stage: usize,
        /// Which try.
        attempt: u32,
    },
    /// Practice that comes before the rungs of slower families: what lies below while the family climbs (D-25), what shows where
    /// a rung has resisted, and the first requests after the top.
    Replay {
        /// The teacher's template.
        template: TemplateId,
    },
    /// A task that the teacher chose after the family's climb.
    Practice {
        /// The teacher's template.
        template: TemplateId,
    },
}

/// One task to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Which family, as its place in the configuration.
    pub track: usize,
    /// Its place in the family's chain.
    pub number: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// Work that the family has taken before: steps, and what searching took in steps.
    pub spent: u64,
    /// Steps at most.
    pub budget: u64,
    /// The task in the catalog's own words.
    pub task: String,
}

/// The order of all units: climbing before practice, then whoever has taken the least work, then the first family.
///
/// A family's keys only grow, so that taking the smallest key again and again is one fixed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnitKey {
    practice: bool,
    spent: u64,
    /// Which family.
    pub track: usize,
}

impl Unit {
    /// Its place in the order.
    pub fn key(&self) -> UnitKey {
        let practice = matches!(self.purpose, Purpose::Practice { .. });
        UnitKey { practice, spent: self.spent, track: self.track }
    }

    /// The canonical bytes: format 1 · family u32 · number u32 · purpose u8 · rung u32 and try u32, or template u32 · spent
    /// u64 · budget u64 · task text.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(FORMAT);
        writer.u32(self.track as u32);
        writer.u32(self.number);
        match self.purpose {
            Purpose::Rung { stage, attempt } => {
                writer.u8(0);
                writer.u32(stage as u32);
                writer.u32(attempt);
            }
            Purpose::Replay { template } => {
                writer.u8(1);
                writer.u32(template.0);
            }
            Purpose::Practice { template } => {
                writer.u8(2);
                writer.u32(template.0);
            }
        }
        writer.u64(self.spent);
        writer.u64(self.budget);
        writer.text(&self.task);
        writer.into_bytes()
    }

    /// Reads them back.
    pub fn from_bytes(bytes: &[u8]) -> Result<Unit, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("a unit written by another version of bem: its format is not 1");
        if reader.u8()? != FORMAT {
            return Err(foreign);
        }
        let (track, number) = (reader.u32()? as usize, reader.u32()?);
        let unknown = reader.error("a unit of unknown purpose");
        let purpose = match reader.u8()? {
            0 => Purpose::Rung { stage: reader.u32()? as usize, attempt: reader.u32()? },
            1 => Purpose::Replay { template: TemplateId(reader.u32()?) },
            2 => Purpose::Practice { template: TemplateId(reader.u32()?) },
            _ => return Err(unknown),
        };
        let (spent, budget, task) = (reader.u64()?, reader.u64()?, reader.text()?.to_string());
        reader.finish()?;
        Ok(Unit { track, number, purpose, spent, budget, task })
    }

    /// Whether it is a try at a rung.
    pub fn climbs(&self) -> bool {
        matches!(self.purpose, Purpose::Rung { .. })
    }

    /// Whether machines of other families are tried: where a rung resisted once, after the opening.
    pub fn borrows(&self) -> bool {
        let again = matches!(self.purpose, Purpose::Rung { attempt, .. } if 0 < attempt);
        again && super::OPENING_UNITS <= self.number
    }
}

/// The beginning of a unit as the ledger has it: which unit, and what its worlds look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitBegin {
    /// The unit.
    pub unit: Unit,
    /// The shape of its worlds, which names the machine's family that it goes on with.
    pub shape: Shape,
}

impl UnitBegin {
    /// The canonical bytes: the unit's behind their length, then the shape.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.bytes(&self.unit.to_bytes());
        self.shape.encode(&mut writer);
        writer.into_bytes()
    }

    /// Reads them back.
    pub fn from_bytes(bytes: &[u8]) -> Result<UnitBegin, DecodeError> {
        let mut reader = Reader::new(bytes);
        let unit = Unit::from_bytes(reader.bytes()?)?;
        let shape = Shape::decode(&mut reader)?;
        reader.finish()?;
        Ok(UnitBegin { unit, shape })
    }
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
    /// What acts at the end came out of the library as it was.
    pub reused: bool,
}

impl UnitResult {
    /// What the unit's worlds look like.
    pub(crate) fn shape(&self) -> &Shape {
        self.solution.shard.shape().expect("a learner's machine has a family for its world")
    }
}

/// How far work on a unit came.
#[derive(Clone, Debug)]
pub enum Worked {
    /// To its end.
    Done(Box<UnitResult>),
    /// The caller asked to stop: the bytes to go on from.
    PutAway(Vec<u8>),
}

/// A unit with all that it needs.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The unit.
    pub unit: Unit,
    /// Seed of its instance and its learner.
    pub seed: u64,
    pub(super) parameters: Arc<GenesisConfig>,
    /// The family's part of the run's machine; none before its first unit.
    pub(super) shard: Option<Shard>,
    pub(super) library: Vec<Machine>,
    pub(super) borrowed: Vec<Machine>,
    pub(super) until_solved: bool,
    pub(super) gathers: bool,
}

impl Assignment {
    /// The same, with the latest episodes kept for others to learn from.
    #[must_use]
    pub fn gathering(self) -> Assignment {
        Assignment { gathers: true, ..self }
    }

    /// Works on it; `None` when the caller asked to stop.
    pub fn work(self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<UnitResult>, ClimbError> {
        Ok(match self.go_on(None, go_on)? {
            Worked::Done(result) => Some(*result),
            Worked::PutAway(_) => None,
        })
    }

    /// Works on it, from where it was put away if it was. The result is the same however often that happens.
    pub fn go_on(
        self,
        put_away: Option<&[u8]>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Worked, ClimbError> {
        self.go_on_in(&Catalog, put_away, go_on)
    }

    /// The same in these worlds. One outside is gone through to its end: it cannot be put away.
    pub fn go_on_in(
        self,
        worlds: &dyn Worlds,
        put_away: Option<&[u8]>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Worked, ClimbError> {
        let impossible = |error| ClimbError::Game { task: self.unit.task.clone(), error };
        let unfit = |error| ClimbError::Unfit { task: self.unit.task.clone(), error };
        let start = worlds.start_of(&self.unit.task, self.seed);
        match worlds.open(&self.unit.task, self.seed).map_err(impossible)? {
            World::Game(game) => {
                check_world(&self.parameters, game.shape()).map_err(unfit)?;
                self.go_on_with(game.as_ref(), start, put_away, go_on)
            }
            World::Outside(mut world) => {
                check_world(&self.parameters, world.shape()).map_err(unfit)?;
                Ok(Worked::Done(Box::new(self.work_outside(world.as_mut(), start)?)))
            }
            World::Stated(mut world, yardstick) => {
                check_world(&self.parameters, world.shape()).map_err(unfit)?;
                let mut result = self.work_outside(world.as_mut(), start)?;
                judge(world.as_mut(), yardstick, &mut result)
                    .map_err(|error| ClimbError::World { task: result.unit.task.clone(), error })?;
                Ok(Worked::Done(Box::new(result)))
            }
        }
    }

    /// The same in this game.
    fn go_on_with(
        self,
        game: &dyn Game,
        start: Start,
        put_away: Option<&[u8]>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Worked, ClimbError> {
        let lesson = self.lesson(game.shape(), start);
        let known: Vec<_> = lesson.library.iter().map(Machine::digest).collect();
        let Taught { solution, put_away } = teach_on(game, lesson, put_away, &mut |_| go_on())
            .map_err(|error| ClimbError::World { task: self.unit.task.clone(), error })?;
        if let Some(bytes) = put_away {
            return Ok(Worked::PutAway(bytes));
        }
        let machine = solution.learned.machine.as_ref();
        let reused = machine.is_some_and(|machine| known.contains(&machine.digest()));
        let result = UnitResult { unit: self.unit, seed: self.seed, solution, reused };
        Ok(Worked::Done(Box::new(result)))
    }

    /// Works on it in a world outside, to its end or until the world fails: what was learned until then counts.
    fn work_outside(self, world: &mut dyn Environment, start: Start) -> Result<UnitResult, ClimbError> {
        let lesson = self.lesson(world.shape(), start);
        let solution = match teach_world(world, lesson, &mut |_| true) {
            Ok(solution) => solution,
            Err(broken) => {
                let Broken { error, kept } = *broken;
                kept.ok_or_else(|| ClimbError::World { task: self.unit.task.clone(), error })?
            }
        };
        Ok(UnitResult { unit: self.unit, seed: self.seed, solution, reused: false })
    }

    /// What the learner is given.
    fn lesson(&self, shape: &Shape, start: Start) -> Lesson {
        let config = Arc::clone(&self.parameters);
        Lesson {
            settings: Settings { seed: self.seed, budget: self.unit.budget, config },
            shard: self.shard.clone(),
            library: self.machines_for(shape),
            start,
            until_solved: self.until_solved,
            gathers: self.gathers,
            keeps_play: true,
        }
    }

    /// Machines that can be built for this world and differ once built: the family's own, then borrowed ones.
    fn machines_for(&self, shape: &Shape) -> Vec<Machine> {
        let mut built = BTreeSet::new();
        let mut fitting = |machines: &[Machine], count_max: usize| -> Vec<Machine> {
            let new = machines.iter().filter(|machine| {
                machine.instantiate(shape).is_some_and(|candidate| built.insert(candidate.policy.digest()))
            });
            new.take(count_max).cloned().collect()
        };
        let mut list = fitting(&self.library, OWN_MAX);
        list.extend(fitting(&self.borrowed, super::BORROWED_MAX));
        list
    }
}

/// Plays the frozen policy of a result in its world: the world has said what is best.
fn judge(
    world: &mut dyn Environment,
    yardstick: Yardstick,
    result: &mut UnitResult,
) -> Result<(), EnvironmentError> {
    let (seed, solution) = (result.seed, &mut result.solution);
    let evaluation = evaluate_episodes(world, &solution.learned.agent, seed, JUDGING_EPISODES, &mut || true)?;
    if let Some(evaluation) = evaluation {
        solution.yardstick = Some(yardstick);
        solution.take_evaluation(evaluation);
        let steps = solution.is_solved().then_some(solution.learned.tally.steps);
        (solution.steps_to_99, solution.first_to_99) = (steps, steps);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_every_purpose_come_back_from_their_bytes_and_other_versions_are_named() {
        let template = TemplateId(7);
        for purpose in [
            Purpose::Rung { stage: 3, attempt: 1 },
            Purpose::Replay { template },
            Purpose::Practice { template },
        ] {
            let task = "parity{n=4}".to_string();
            let unit = Unit { track: 2, number: 9, purpose, spent: 5, budget: 6, task };
            let bytes = unit.to_bytes();
            assert_eq!(Unit::from_bytes(&bytes), Ok(unit));
            (0..bytes.len()).for_each(|cut| assert!(Unit::from_bytes(&bytes[..cut]).is_err()));
            assert!(Unit::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
            let mut newer = bytes;
            newer[0] += 1;
            assert!(Unit::from_bytes(&newer).unwrap_err().to_string().contains("another version"));
        }
    }
}
