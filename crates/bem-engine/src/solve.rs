//! `solve`: a learner in one game, with the evaluator as its silent witness.
//!
//! Clauses: SCC-8, GLE-1; the keys of the result are those of `bem solve --json`.

use crate::agent::Agent;
use crate::chronicle::Chronicle;
use crate::evaluate::{Evaluation, Yardstick, evaluate};
use crate::learner::{Decision, Learned, Learner, Settings, Tally, Witness};
use bem_base::digest::Digest;
use bem_base::environment::{Environment, EnvironmentError};
use bem_base::fixed::Fixed;
use bem_games::game::{Game, Oracle};
use bem_synth::experience::Episode;

/// From this score on a task counts as solved.
pub const SOLVED: Fixed = Fixed::from_ratio(99, 100);

/// One point of the learning curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Steps taken.
    pub steps: u64,
    /// Mean return of the incumbent at that time, in milli-units.
    pub mean: Fixed,
}

/// Everything there is to say about a solved or unsolved task.
#[derive(Clone, Debug)]
pub struct Solution {
    /// What was learned.
    pub learned: Learned,
    /// What optimum and random play are worth; unknown for worlds outside.
    pub yardstick: Option<Yardstick>,
    /// The final evaluation.
    pub evaluation: Evaluation,
    /// Steps taken when an evaluation first gave a score of at least 0.99.
    pub steps_to_99: Option<u64>,
    /// The learning curve.
    pub curve: Vec<Point>,
    /// All decisions of the gate.
    pub decisions: Vec<Decision>,
    /// What was played and decided, for the ledger.
    pub chronicle: Chronicle,
}

impl Solution {
    /// The final score, if it can be told.
    pub fn score(&self) -> Option<Fixed> {
        self.yardstick.map(|yardstick| yardstick.score(self.evaluation.mean))
    }

    /// Whether the final score is high enough.
    pub fn is_solved(&self) -> bool {
        self.score().is_some_and(|score| SOLVED <= score)
    }
}

/// Told of progress while a run goes on; false asks it to stop.
pub type OnTick<'a> = &'a mut dyn FnMut(&Tally) -> bool;

/// Learns one game from scratch.
pub fn solve(game: &dyn Game, settings: Settings, on_tick: OnTick<'_>) -> Result<Solution, EnvironmentError> {
    let mut world = game.start();
    let mut judge = game.start();
    let mut oracle = game.oracle();
    let court = Court { judge: judge.as_mut(), yardstick: Yardstick::of(game), oracle: oracle.as_mut() };
    learn(world.as_mut(), Some(court), settings, on_tick)
}

/// Learns a world outside, of which nobody knows the optimum.
pub fn solve_world(
    world: &mut dyn Environment,
    settings: Settings,
    on_tick: OnTick<'_>,
) -> Result<Solution, EnvironmentError> {
    learn(world, None, settings, on_tick)
}

/// What evaluates: a world of its own, what there is to gain in it, and who plays it best.
struct Court<'a> {
    judge: &'a mut dyn Environment,
    yardstick: Yardstick,
    oracle: &'a mut dyn Oracle,
}

impl Court<'_> {
    fn evaluate(&mut self, agent: &Agent, seed: u64) -> Result<Evaluation, EnvironmentError> {
        evaluate(self.judge, agent, seed, Some(self.yardstick), Some(self.oracle))
    }
}

fn learn<'a>(
    world: &mut dyn Environment,
    court: Option<Court<'a>>,
    settings: Settings,
    on_tick: OnTick<'a>,
) -> Result<Solution, EnvironmentError> {
    let yardstick = court.as_ref().map(|court| court.yardstick);
    let mut evaluator = Evaluator {
        court,
        seed: settings.seed,
        steps_to_99: None,
        curve: Vec::new(),
        decisions: Vec::new(),
        chronicle: Chronicle::new(),
        failure: None,
        on_tick,
    };
    let learned = Learner::new(world.shape(), settings).run(world, &mut evaluator)?;
    if let Some(failure) = evaluator.failure.take() {
        return Err(failure);
    }
    let Evaluator { court, steps_to_99, mut curve, decisions, mut chronicle, .. } = evaluator;
    chronicle.seal();
    let evaluation = match court {
        Some(mut court) => court.evaluate(&learned.agent, settings.seed)?,
        None => evaluate(world, &learned.agent, settings.seed, None, None)?,
    };
    curve.push(Point { steps: learned.tally.steps, mean: evaluation.mean });
    Ok(Solution { learned, yardstick, evaluation, steps_to_99, curve, decisions, chronicle })
}

/// Evaluates every new incumbent. It writes down and says nothing.
struct Evaluator<'a> {
    court: Option<Court<'a>>,
    seed: u64,
    steps_to_99: Option<u64>,
    curve: Vec<Point>,
    decisions: Vec<Decision>,
    chronicle: Chronicle,
    failure: Option<EnvironmentError>,
    on_tick: OnTick<'a>,
}

impl Witness for Evaluator<'_> {
    fn incumbent_changed(&mut self, agent: &Agent, _words: &str, tally: &Tally) {
        let Some(court) = &mut self.court else { return };
        match court.evaluate(agent, self.seed) {
            Ok(evaluation) => {
                self.curve.push(Point { steps: tally.steps, mean: evaluation.mean });
                if self.steps_to_99.is_none() && SOLVED <= court.yardstick.score(evaluation.mean) {
                    self.steps_to_99 = Some(tally.steps);
                }
            }
            Err(error) => self.failure = Some(error),
        }
    }

    fn decided(&mut self, decision: &Decision) {
        self.decisions.push(decision.clone());
        self.chronicle.decided(decision);
    }

    fn played(&mut self, episode: &Episode, chain: &Digest) {
        self.chronicle.played(episode, chain);
    }

    fn tick(&mut self, tally: &Tally) -> bool {
        (self.on_tick)(tally)
    }
}
