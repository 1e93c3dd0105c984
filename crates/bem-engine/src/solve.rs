//! `solve`: a learner in one game, with the evaluator as its silent witness.
//!
//! A lesson may end when the evaluator has seen enough, as a teacher ends one; the learner is told nothing. When a
//! world fails, what was learned until then is kept.
//! Clauses: SCC-8, GLE-1; the keys of the result are those of `bem solve --json`.

use crate::agent::Agent;
use crate::chronicle::Chronicle;
use crate::evaluate::{Evaluation, Judge, Yardstick, leaves_doubt};
use crate::learner::{Decision, Event, Learned, Learner, Settings, Tally, Witness};
use crate::online::Online;
use crate::shard::Shard;
use crate::start::Start;
use crate::suspend::{Evaluated, Seen};
use bem_base::digest::Digest;
use bem_base::environment::{Environment, EnvironmentError, Shape};
use bem_base::fixed::Fixed;
use bem_evolve::verify::AcceptedPatch;
use bem_games::game::Game;
use bem_machine::held::Adaptation;
use bem_machine::trace::Record;
use bem_synth::experience::Episode;
use bem_synth::library::Machine;

/// From this score on a task counts as solved.
pub const SOLVED: Fixed = Fixed::from_ratio(99, 100);

/// One point of the learning curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Steps taken.
    pub steps: u64,
    /// Mean return of the incumbent at that time, in milli-units.
    pub mean: Fixed,
    /// What it earns more than the one before in the same episodes, where that had to be looked at.
    pub gain: Option<Fixed>,
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
    /// Steps taken when an evaluation gave a score of at least 0.99, and no later one a lower score.
    pub steps_to_99: Option<u64>,
    /// Steps taken when an evaluation first gave a score of at least 0.99.
    pub first_to_99: Option<u64>,
    /// The learning curve.
    pub curve: Vec<Point>,
    /// All decisions of the gate.
    pub decisions: Vec<Decision>,
    /// What was played and decided, for the ledger.
    pub chronicle: Chronicle,
    /// What was earned while it was learned.
    pub online: Online,
    /// The machine as the learner leaves it.
    pub shard: Shard,
    /// The latest episodes, where the lesson gathers them.
    pub gathered: Vec<Episode>,
}

impl Solution {
    /// The final score, if it can be told.
    pub fn score(&self) -> Option<Fixed> {
        self.yardstick.map(|yardstick| yardstick.score(self.evaluation.mean))
    }

    /// Adds the final evaluation of a world outside, with its point of the curve.
    pub fn take_evaluation(&mut self, evaluation: Evaluation) {
        self.evaluation = evaluation;
        if 0 < evaluation.episodes {
            self.curve.push(Point { steps: self.learned.tally.steps, mean: evaluation.mean, gain: None });
        }
    }

    /// Whether the final score is high enough.
    pub fn is_solved(&self) -> bool {
        self.score().is_some_and(|score| SOLVED <= score)
    }
}

/// Told of progress while a run goes on; false asks it to stop.
pub type OnTick<'a> = &'a mut dyn FnMut(&Tally) -> bool;

/// What a learner is given, and when its lesson is over.
#[derive(Clone, Debug)]
pub struct Lesson {
    /// How the learner works.
    pub settings: Settings,
    /// The machine that it goes on with, if one has worked before.
    pub shard: Option<Shard>,
    /// What it tries first.
    pub library: Vec<Machine>,
    /// What it begins with besides.
    pub start: Start,
    /// The lesson is over when the score has been 0.99 for half as long as it took to get there. The learner is not
    /// told; its teacher goes on to the next task.
    pub until_solved: bool,
    /// The latest episodes are kept for others to learn from.
    pub gathers: bool,
    /// Somebody will write a ledger of it: what is played is kept until then. Otherwise a long run needs no memory for it.
    pub keeps_play: bool,
}

impl Lesson {
    /// From scratch, until the learner itself stops.
    pub fn alone(settings: Settings) -> Lesson {
        Lesson {
            settings,
            shard: None,
            library: Vec::new(),
            start: Start::default(),
            until_solved: false,
            gathers: false,
            keeps_play: true,
        }
    }
}

/// A world failed on the way. What was learned until then is kept.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct Broken {
    /// Why the world failed.
    pub error: EnvironmentError,
    /// What was learned; its evaluation has no episodes. Nothing where the world does not fit the machine at all.
    pub kept: Option<Solution>,
}

/// Learns one game from scratch.
pub fn solve(game: &dyn Game, settings: Settings, on_tick: OnTick<'_>) -> Result<Solution, EnvironmentError> {
    teach(game, Lesson::alone(settings), on_tick)
}

/// Learns one game with what is known already.
pub fn teach(game: &dyn Game, lesson: Lesson, on_tick: OnTick<'_>) -> Result<Solution, EnvironmentError> {
    teach_on(game, lesson, None, on_tick).map(|taught| taught.solution)
}

/// A lesson as far as it went.
#[derive(Clone, Debug)]
pub struct Taught {
    /// What it brought so far.
    pub solution: Solution,
    /// If the caller asked to stop: the bytes from which [`teach_on`] goes on as if nothing had happened.
    pub put_away: Option<Vec<u8>>,
}

/// Goes on with a lesson that was put away, or begins it. Bytes that are not of this lesson make it begin anew, which
/// leads to the same end.
pub fn teach_on(
    game: &dyn Game,
    lesson: Lesson,
    put_away: Option<&[u8]>,
    on_tick: OnTick<'_>,
) -> Result<Taught, EnvironmentError> {
    let mut world = game.start();
    let judge = Judge::new(game.without_terms().unwrap_or(game));
    learn(world.as_mut(), Some(judge), lesson, put_away, on_tick).map_err(|broken| broken.error)
}

/// Learns a world outside, of which nobody knows the optimum. How good the frozen policy is in the end is for the caller to
/// find out ([`crate::evaluate::baselines::evaluate_episodes`]): these episodes are no part of what was learned from.
pub fn solve_world(
    world: &mut dyn Environment,
    settings: Settings,
    on_tick: OnTick<'_>,
) -> Result<Solution, Box<Broken>> {
    teach_world(world, Lesson::alone(settings), on_tick)
}

/// Learns a world outside with what is known already.
pub fn teach_world(
    world: &mut dyn Environment,
    lesson: Lesson,
    on_tick: OnTick<'_>,
) -> Result<Solution, Box<Broken>> {
    learn(world, None, lesson, None, on_tick).map(|taught| taught.solution)
}

/// What acts before anything is learned.
pub fn first_agent(shape: &Shape, settings: Settings) -> Result<Agent, EnvironmentError> {
    Ok(Learner::new(shape, settings)?.learned().agent)
}

/// The evaluation of an agent, and what it earns more than the one before where two evaluations leave open whether it
/// earns less: both play the same episodes then.
fn evaluate_after(
    judge: &mut Judge<'_>,
    last: Option<&Evaluated>,
    agent: &Agent,
    seed: u64,
) -> Result<(Evaluation, Option<Fixed>), EnvironmentError> {
    let evaluation = judge.evaluate(agent, seed)?;
    let comparable = last.filter(|last| last.rule == Adaptation::Fixed && !agent.adapts());
    let gain = match comparable {
        Some(last) if leaves_doubt(&last.evaluation, &evaluation, judge.yardstick()) => {
            Some(judge.compare([&last.policy, agent.policy()], seed)?)
        }
        _ => None,
    };
    Ok((evaluation, gain))
}

/// What a lesson begins with comes before the family's machines, of which those are left out that are built to the same circuit.
fn start_first(mut machines: Vec<Machine>, mut library: Vec<Machine>, shape: &Shape) -> Vec<Machine> {
    let circuit = |machine: &Machine| machine.instantiate(shape).map(|built| built.policy.digest());
    let begun: Vec<_> = machines.iter().map(circuit).collect();
    if !begun.is_empty() {
        library.retain(|machine| !begun.contains(&circuit(machine)));
    }
    machines.extend(library);
    machines
}

fn learn<'a>(
    world: &mut dyn Environment,
    judge: Option<Judge<'a>>,
    lesson: Lesson,
    put_away: Option<&[u8]>,
    on_tick: OnTick<'a>,
) -> Result<Taught, Box<Broken>> {
    let Lesson { settings, shard, library, start, until_solved, gathers, keeps_play } = lesson;
    let start = start.fitting(world.shape());
    let library = start_first(start.machines, library, world.shape());
    let saved = put_away.and_then(|bytes| {
        let (seen, learner) = Seen::take_up(bytes).ok()?;
        let learner = Learner::restore(learner, world).ok()?;
        (*learner.settings() == settings).then_some((learner, seen))
    });
    let seed = settings.seed;
    let forbidden = world.forbidden().to_vec();
    let is_new = saved.is_none();
    let (mut learner, mut seen) = match saved {
        Some(saved) => saved,
        None => match Learner::on(shard, world.shape(), settings) {
            Ok(learner) => {
                let learner = learner.with_library(library).with_experience(start.episodes);
                (learner.with_baseline(start.baseline), Seen::nothing())
            }
            Err(error) => return Err(Box::new(Broken { error, kept: None })),
        },
    };
    if !keeps_play {
        seen.chronicle.forget_play();
    }
    let mut evaluator =
        Evaluator { judge, seed, until_solved, gathers, seen, failure: None, stopped: false, on_tick };
    // What the user forbids is in force before the first step; a machine that cannot keep it does not play.
    if is_new && !learner.obey(&forbidden, &mut evaluator) {
        let error = EnvironmentError::External(FORBIDDEN_UNPROVEN.to_string());
        return Err(Box::new(Broken { error, kept: None }));
    }
    let run = evaluator.go_on(&mut learner, world);
    if run.is_ok() && !evaluator.stopped {
        learner.end_unit(&mut evaluator);
    }
    let put_away = (evaluator.stopped && run.is_ok()).then(|| evaluator.seen.put_away(&learner.encode()));
    let outcome = match evaluator.failure.take() {
        Some(failure) => Err(failure),
        None => run.and_then(|()| match put_away {
            // Nobody looks at the score of a lesson that will go on.
            Some(_) => Ok(UNKNOWN),
            None => evaluator.final_evaluation(&learner.learned().agent),
        }),
    };
    let close = |evaluation| {
        let learned = learner.learned();
        evaluator.close(learned, learner.into_shard(), evaluation)
    };
    match outcome {
        Ok(evaluation) => Ok(Taught { solution: close(evaluation), put_away }),
        Err(error) => Err(Box::new(Broken { error, kept: Some(close(UNKNOWN)) })),
    }
}

/// Why a world with forbidden actions may be refused.
const FORBIDDEN_UNPROVEN: &str = "what is forbidden cannot be put into force: too many pairs of observation and action, or no action is left for some";

/// No evaluation was made.
const UNKNOWN: Evaluation = Evaluation { mean: Fixed::ZERO, error: Fixed::ZERO, bad: 0, episodes: 0 };
/// Units of work between two looks at whether the caller wants to stop.
const UNITS_A_LOOK: u32 = 64;

/// Evaluates every new incumbent. It writes down and says nothing; only its teacher listens.
struct Evaluator<'a> {
    judge: Option<Judge<'a>>,
    seed: u64,
    until_solved: bool,
    gathers: bool,
    seen: Seen,
    failure: Option<EnvironmentError>,
    /// The caller asked to stop.
    stopped: bool,
    on_tick: OnTick<'a>,
}

impl Evaluator<'_> {
    /// Lets the learner work until it, its teacher or the caller has had enough.
    fn go_on(&mut self, learner: &mut Learner, world: &mut dyn Environment) -> Result<(), EnvironmentError> {
        let (mut units, mut is_due) = (0u32, false);
        loop {
            let event = learner.advance(world, self)?;
            units += 1;
            let round_over = event == Event::RoundEnded;
            if event == Event::Over || round_over && self.is_over(learner.tally()) {
                return Ok(());
            }
            is_due |= round_over || units.is_multiple_of(UNITS_A_LOOK);
            // Where an episode in flight could not be resumed, nobody stops in the middle of one.
            if is_due && (world.repeats() || !learner.is_in_episode()) {
                is_due = false;
                self.stopped = !(self.on_tick)(learner.tally());
                if self.stopped {
                    return Ok(());
                }
            }
        }
    }

    /// Whether the lesson has lasted long enough for its teacher.
    fn is_over(&self, tally: &Tally) -> bool {
        let held = |since: u64| since + since / 2 <= tally.steps;
        self.until_solved && self.seen.solved_since.is_some_and(held)
    }

    /// How good the agent is in the end. The same agent on the same seeds gives the same: it is not asked twice.
    fn final_evaluation(&mut self, agent: &Agent) -> Result<Evaluation, EnvironmentError> {
        let known = self.seen.last.as_ref().filter(|last| last.is_of(agent));
        match (known, &mut self.judge) {
            (Some(Evaluated { evaluation, .. }), _) => Ok(*evaluation),
            (None, Some(judge)) => judge.evaluate(agent, self.seed),
            (None, None) => Ok(UNKNOWN),
        }
    }

    fn close(self, learned: Learned, shard: Shard, evaluation: Evaluation) -> Solution {
        let Evaluator { judge, seen, .. } = self;
        let Seen { first_to_99, solved_since, mut curve, decisions, mut chronicle, online, gathered, .. } =
            seen;
        let steps_to_99 = solved_since;
        chronicle.seal();
        if 0 < evaluation.episodes {
            curve.push(Point { steps: learned.tally.steps, mean: evaluation.mean, gain: None });
        }
        let yardstick = judge.map(|judge| judge.yardstick());
        Solution {
            learned,
            yardstick,
            evaluation,
            steps_to_99,
            first_to_99,
            curve,
            decisions,
            chronicle,
            online,
            shard,
            gathered: gathered.into(),
        }
    }
}

impl Witness for Evaluator<'_> {
    fn incumbent_changed(&mut self, agent: &Agent, _words: &str, tally: &Tally) {
        let Some(judge) = &mut self.judge else { return };
        let seen = &mut self.seen;
        match evaluate_after(judge, seen.last.as_ref(), agent, self.seed) {
            Ok((evaluation, gain)) => {
                let policy = agent.policy().clone();
                seen.last = Some(Evaluated { policy, rule: agent.rule(), evaluation });
                seen.curve.push(Point { steps: tally.steps, mean: evaluation.mean, gain });
                let solved = SOLVED <= judge.yardstick().score(evaluation.mean);
                seen.solved_since = seen.solved_since.or(Some(tally.steps)).filter(|_| solved);
                seen.first_to_99 = seen.first_to_99.or(seen.solved_since);
            }
            Err(error) => self.failure = Some(error),
        }
    }

    fn decided(&mut self, decision: &Decision, patch: Option<&AcceptedPatch>) {
        self.seen.decisions.push(decision.clone());
        self.seen.chronicle.decided(decision, patch);
    }

    fn played(&mut self, episode: &Episode, strayed: u64, chain: &Digest) {
        self.seen.online.book(episode.steps.len() as u64, episode.total(), strayed);
        let optimum = self.judge.as_ref().map(|judge| judge.yardstick().optimum);
        self.seen.chronicle.played(episode, chain, optimum);
        if self.gathers {
            self.seen.gather(episode);
        }
    }

    fn records(&mut self, block: &[Record], _chain: &Digest) {
        self.seen.chronicle.traced(block);
    }

    fn tick(&mut self, _tally: &Tally) -> bool {
        true
    }
}
