//! A scripted annotator beside a learner: questions about steps that were played, answers that come late.
//!
//! The learner asks about what least was said about; the script knows the optimum, and skips what makes no difference. What
//! it knows reaches the learner as labels and in no other way. Clause: HUM-13.

use bem_base::environment::{Bits, Environment, EnvironmentError, Forbidden, Late, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_engine::agent::Agent;
use bem_engine::evaluate::{Evaluation, Judge};
use bem_engine::learner::{Decision, Event, Label, Learner, Settings, Tally, Told, Witness};
use bem_engine::solve::SOLVED;
use bem_evolve::verify::AcceptedPatch;
use bem_games::game::{Game, Oracle};
use bem_synth::experience::Episode;
use std::collections::{BTreeMap, VecDeque};

/// Steps for every question, at least.
pub const STEPS_A_QUESTION: u64 = 100;
/// Answers at most.
pub const ANSWERS_MAX: usize = 200;
/// Steps that an answer is late, at least.
pub const LATE: u64 = 1_000;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotator {
    /// There are no people.
    Nobody,
    /// Right out of a hundred answers; the others name some other action.
    Right(u64),
    /// Every answer names an action that is not right.
    Liar,
}

impl Annotator {
    /// What is answered where this is right; nothing where it makes no difference to an honest one.
    fn answer(self, right: u16, matters: bool, actions: u16, prng: &mut Prng) -> Option<u16> {
        let other =
            |prng: &mut Prng| (right + 1 + prng.below(u64::from(actions.max(2)) - 1) as u16) % actions;
        match self {
            Annotator::Nobody => None,
            Annotator::Liar => Some((right + 1) % actions),
            Annotator::Right(_) if !matters => None,
            Annotator::Right(percent) if prng.below(100) < percent => Some(right),
            Annotator::Right(_) => Some(other(prng)),
        }
    }
}

/// What came of one run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Steps when the score was first 0.99 and stayed.
    pub steps_to_99: Option<u64>,
    /// The last score.
    pub score: Fixed,
    /// Steps taken in all.
    pub steps: u64,
    /// Episodes with something BAD, per thousand episodes.
    pub bad: u64,
    /// Questions asked and answers given.
    pub asked: usize,
    /// Answers given.
    pub answered: usize,
    /// Patches let in.
    pub applied: u32,
    /// Patches turned down.
    pub rejected: u32,
    /// The head of the learner's history.
    pub head: String,
    /// What acts, in words.
    pub words: String,
}

/// A step that may be asked about.
#[derive(Clone, Copy)]
struct Shown {
    observation: Bits,
    right: u16,
    matters: bool,
}

/// A world whose steps the annotator sees.
struct Watched {
    world: Box<dyn Environment + Send>,
    oracle: Box<dyn Oracle>,
    episode: Vec<Shown>,
    /// The steps of the last episode that ended.
    ended: Vec<Shown>,
    bad: u64,
    episodes: u64,
    is_bad: bool,
}

impl Environment for Watched {
    fn shape(&self) -> &Shape {
        self.world.shape()
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.world.reset(seed)?;
        self.oracle.begin(seed);
        self.episode.clear();
        self.is_bad = false;
        Ok(())
    }

    fn observation(&self) -> &Bits {
        self.world.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let observation = *self.world.observation();
        let (right, matters) = (self.oracle.act(&observation), self.oracle.matters());
        let outcome = self.world.step(action)?;
        self.oracle.see(action, &outcome);
        self.episode.push(Shown { observation, right, matters });
        self.is_bad |= outcome.bad;
        if outcome.done {
            self.ended = core::mem::take(&mut self.episode);
            self.bad += u64::from(self.is_bad);
            self.episodes += 1;
        }
        Ok(outcome)
    }

    fn forbidden(&self) -> &[Forbidden] {
        self.world.forbidden()
    }

    fn repeats(&self) -> bool {
        self.world.repeats()
    }

    fn is_awaited(&self) -> bool {
        self.world.is_awaited()
    }

    fn late(&self) -> &[Late] {
        self.world.late()
    }
}

/// Evaluates what acts, for the report alone.
struct Grades<'a> {
    judge: Judge<'a>,
    seed: u64,
    solved_since: Option<u64>,
    score: Fixed,
    words: String,
    failure: Option<EnvironmentError>,
}

impl Witness for Grades<'_> {
    fn incumbent_changed(&mut self, agent: &Agent, words: &str, tally: &Tally) {
        match self.judge.evaluate(agent, self.seed) {
            Ok(Evaluation { mean, .. }) => {
                self.score = self.judge.yardstick().score(mean);
                let solved = SOLVED <= self.score;
                self.solved_since = self.solved_since.or(Some(tally.steps)).filter(|_| solved);
                self.words = words.to_string();
            }
            Err(error) => self.failure = Some(error),
        }
    }

    fn decided(&mut self, _: &Decision, _: Option<&AcceptedPatch>) {}

    fn played(&mut self, _: &Episode, _: u64, _: &bem_base::digest::Digest) {}

    fn tick(&mut self, _: &Tally) -> bool {
        true
    }
}

/// Questions on their way to an answer.
struct Desk {
    annotator: Annotator,
    prng: Prng,
    /// Answers on their way, with the step from which on they are there.
    waiting: VecDeque<(u64, Label)>,
    /// Questions asked where something is seen, answered or not, and the earliest step that one was about.
    asked_about: BTreeMap<Bits, (usize, u32)>,
    asked: usize,
    labels: Vec<Label>,
}

impl Desk {
    fn answers(&self) -> usize {
        self.labels.len() + self.waiting.len()
    }

    /// Asks about a step of an episode, if it is time for a question.
    fn ask(&mut self, ended: &[Shown], actions: u16, steps: u64) {
        let is_time = (self.asked as u64 + 1) * STEPS_A_QUESTION <= steps && self.answers() < ANSWERS_MAX;
        if self.annotator == Annotator::Nobody || !is_time {
            return;
        }
        let seen: Vec<Bits> = ended.iter().map(|shown| shown.observation).collect();
        let asked = |observation: &Bits| self.asked_about.get(observation).copied();
        let Some(place) = Told::worth_asking(&seen, asked) else { return };
        let (shown, time) = (ended[place], place as u32);
        self.asked += 1;
        let (count, earliest) = self.asked_about.entry(shown.observation).or_insert((0, time));
        (*count, *earliest) = (*count + 1, time.min(*earliest));
        if let Some(right) = self.annotator.answer(shown.right, shown.matters, actions, &mut self.prng) {
            let label = Label { observation: shown.observation, right, time };
            self.waiting.push_back((steps + LATE, label));
        }
    }

    /// Answers that have come by now; whether there are any.
    fn deliver(&mut self, steps: u64) -> bool {
        let before = self.labels.len();
        while let Some((_, label)) = self.waiting.pop_front_if(|(due, _)| *due <= steps) {
            self.labels.push(label);
        }
        before < self.labels.len()
    }
}

/// Learns a game beside an annotator, until 0.99 has lasted for half as long as it took to get there, or to the budget.
pub fn run(game: &dyn Game, settings: Settings, annotator: Annotator) -> Result<Ran, EnvironmentError> {
    let (seed, budget) = (settings.seed, settings.budget);
    let settings = settings.with(|config| config.until_budget = true);
    let mut world = Watched {
        world: game.start(),
        oracle: game.oracle(),
        episode: Vec::new(),
        ended: Vec::new(),
        bad: 0,
        episodes: 0,
        is_bad: false,
    };
    let judge = Judge::new(game.without_terms().unwrap_or(game));
    let mut grades =
        Grades { judge, seed, solved_since: None, score: Fixed::ZERO, words: String::new(), failure: None };
    let mut desk = Desk {
        annotator,
        prng: Prng::stream(seed, "bench/people"),
        waiting: VecDeque::new(),
        asked_about: BTreeMap::new(),
        asked: 0,
        labels: Vec::new(),
    };
    let mut learner = Learner::new(world.shape(), settings)?;
    loop {
        let event = learner.advance(&mut world, &mut grades)?;
        let steps = learner.steps_taken();
        if event == Event::EpisodeEnded {
            let actions = world.shape().actions;
            desk.ask(&core::mem::take(&mut world.ended), actions, steps);
            if desk.deliver(steps) {
                learner.hear(Told::new(desk.labels.iter().copied()));
            }
        }
        let lasts = |since: u64| since + since / 2 + LATE <= steps;
        if event == Event::Over || budget <= steps || grades.solved_since.is_some_and(lasts) {
            break;
        }
    }
    if let Some(failure) = grades.failure {
        return Err(failure);
    }
    let learned = learner.learned();
    Ok(Ran {
        steps_to_99: grades.solved_since,
        score: grades.score,
        steps: learned.tally.steps,
        bad: world.bad * 1_000 / world.episodes.max(1),
        asked: desk.asked,
        answered: desk.labels.len(),
        applied: learned.tally.applied,
        rejected: learned.tally.rejected,
        head: learned.chain_head.to_string(),
        words: grades.words,
    })
}
