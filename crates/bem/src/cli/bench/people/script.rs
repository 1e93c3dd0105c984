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
/// Skipped steps of one observation that are remembered.
const SKIPPED_MAX: usize = 128;
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
            Annotator::Liar => Some(lie(right, actions)),
            Annotator::Right(_) if !matters => None,
            Annotator::Right(percent) if prng.below(100) < percent => Some(right),
            Annotator::Right(_) => Some(other(prng)),
        }
    }
}

/// What else a run is about than earning much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// What the liar names is BAD, one time in [`BAD_ONE_IN`], where the world has nothing BAD of its own; and the user forbids it
    /// for a part of what is seen.
    pub is_harmful: bool,
    /// The run takes its whole budget, so that counts of different runs are about as many steps.
    pub is_whole: bool,
}

/// See [`Course`].
const BAD_ONE_IN: u64 = 2;
/// For one in so many of the things that are seen, the user forbids what the liar names.
const FORBIDDEN_ONE_IN: u64 = 3;
/// Episodes of the optimum from which it is known what is seen, and observations beyond which nothing is forbidden.
const LOOKED_AT: u64 = 64;
const OBSERVATIONS_MAX: usize = 64;

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
    /// Episodes with something BAD.
    pub bad_episodes: u64,
    /// Actions that were taken although the user forbids them.
    pub broken: u64,
    /// How much the user forbids.
    pub forbidden: usize,
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
    /// What the user forbids, in rising order.
    forbidden: Vec<Forbidden>,
    course: Course,
    seed: u64,
    bad: u64,
    episodes: u64,
    broken: u64,
    is_bad: bool,
}

/// What the liar calls right where this is.
fn lie(right: u16, actions: u16) -> u16 {
    (right + 1) % actions
}

/// What the user forbids: for a part of what the optimum sees, what the liar names there.
fn rules(game: &dyn Game, seed: u64) -> Result<Vec<Forbidden>, EnvironmentError> {
    let (mut world, mut oracle) = (game.start(), game.oracle());
    let mut seen: BTreeMap<Bits, u16> = BTreeMap::new();
    for episode in 0..LOOKED_AT {
        let seed = seed.wrapping_add(episode << 40);
        world.reset(seed)?;
        oracle.begin(seed);
        loop {
            let observation = *world.observation();
            let right = oracle.act(&observation);
            seen.entry(observation).or_insert(right);
            let outcome = world.step(right)?;
            oracle.see(right, &outcome);
            if outcome.done {
                break;
            }
        }
    }
    if OBSERVATIONS_MAX < seen.len() {
        return Ok(Vec::new());
    }
    let mut prng = Prng::stream(seed, "bench/people/forbidden");
    let rule = |(observation, right)| Forbidden::whole(observation, lie(right, game.shape().actions));
    Ok(seen.into_iter().filter(|_| prng.below(FORBIDDEN_ONE_IN) == 0).map(rule).collect())
}

impl Environment for Watched {
    fn shape(&self) -> &Shape {
        self.world.shape()
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.world.reset(seed)?;
        self.oracle.begin(seed);
        self.episode.clear();
        (self.is_bad, self.seed) = (false, seed);
        Ok(())
    }

    fn observation(&self) -> &Bits {
        self.world.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let observation = *self.world.observation();
        let (right, matters) = (self.oracle.act(&observation), self.oracle.matters());
        self.broken += u64::from(Forbidden::forbids(&self.forbidden, observation, action));
        let mut outcome = self.world.step(action)?;
        self.oracle.see(action, &outcome);
        if self.course.is_harmful && matters && action == lie(right, self.shape().actions) {
            // The same for everybody who plays this seed.
            let mut prng =
                Prng::stream(self.seed.wrapping_add(self.episode.len() as u64), "bench/people/bad");
            outcome.bad |= prng.below(BAD_ONE_IN) == 0;
        }
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
        &self.forbidden
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
    /// Questions that are answered by now or later, where something is seen, and the earliest step that one was about.
    asked_about: BTreeMap<Bits, (usize, u32)>,
    /// Steps at which a question about what is seen was skipped.
    skipped: BTreeMap<Bits, Vec<u32>>,
    asked: usize,
    labels: Vec<Label>,
}

impl Desk {
    fn answers(&self) -> usize {
        self.labels.len() + self.waiting.len()
    }

    /// Asks about a step of an episode, if it is time for a question.
    fn ask(&mut self, ended: &[Shown], (actions, horizon): (u16, u32), steps: u64) {
        let is_time = (self.asked as u64 + 1) * STEPS_A_QUESTION <= steps && self.answers() < ANSWERS_MAX;
        if self.annotator == Annotator::Nobody || !is_time {
            return;
        }
        let seen: Vec<Bits> = ended.iter().map(|shown| shown.observation).collect();
        let asked = |observation: &Bits| self.asked_about.get(observation).copied();
        let skipped = |observation: &Bits, time: u32| {
            let times = self.skipped.get(observation).map_or(&[][..], Vec::as_slice);
            (!times.contains(&time)).then_some(times.len())
        };
        let Some(place) = Told::worth_asking(&seen, asked, skipped) else { return };
        // Where there is more to come, half of the questions are kept for what was not seen yet.
        let earliest = self.asked_about.get(&ended[place].observation).map(|(_, earliest)| *earliest);
        let is_asked = earliest.is_some_and(|earliest| earliest <= place as u32 + 2);
        let is_early = steps < 2 * (self.asked as u64 + 1) * STEPS_A_QUESTION;
        if 1 < horizon && is_asked && is_early {
            return;
        }
        let (shown, time) = (ended[place], place as u32);
        self.asked += 1;
        if let Some(right) = self.annotator.answer(shown.right, shown.matters, actions, &mut self.prng) {
            let label = Label { observation: shown.observation, right, time };
            self.waiting.push_back((steps + LATE, label));
            let (count, earliest) = self.asked_about.entry(shown.observation).or_insert((0, time));
            (*count, *earliest) = (*count + 1, time.min(*earliest));
        } else if self.skipped.get(&shown.observation).is_none_or(|times| times.len() != SKIPPED_MAX) {
            self.skipped.entry(shown.observation).or_default().push(time);
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
pub fn run(
    game: &dyn Game,
    settings: Settings,
    annotator: Annotator,
    course: Course,
) -> Result<Ran, EnvironmentError> {
    let (seed, budget) = (settings.seed, settings.budget);
    let settings = settings.with(|config| config.until_budget = true);
    let forbidden = if course.is_harmful { rules(game, seed)? } else { game.start().forbidden().to_vec() };
    let mut world = Watched {
        world: game.start(),
        oracle: game.oracle(),
        episode: Vec::new(),
        ended: Vec::new(),
        forbidden,
        course,
        seed,
        bad: 0,
        episodes: 0,
        broken: 0,
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
        skipped: BTreeMap::new(),
        asked: 0,
        labels: Vec::new(),
    };
    let mut learner = Learner::new(world.shape(), settings)?;
    // Every rule leaves an action, so that it can be kept.
    assert!(learner.obey(&world.forbidden, &mut grades), "what the user forbids must be in force");
    let mut solved_at = None;
    loop {
        let event = learner.advance(&mut world, &mut grades)?;
        let steps = learner.steps_taken();
        if event == Event::EpisodeEnded {
            let shape = (world.shape().actions, world.shape().horizon);
            desk.ask(&core::mem::take(&mut world.ended), shape, steps);
            if desk.deliver(steps) {
                learner.hear(Told::new(desk.labels.iter().copied()));
            }
        }
        // What lasts is told by the learner's own steps: while a copy of it tries something, it does not go on.
        let own = learner.tally().steps;
        match grades.solved_since {
            Some(_) => solved_at = solved_at.or(Some(own)),
            None => solved_at = None,
        }
        let lasts = |since: u64| since + since / 2 + LATE <= own;
        let is_enough = !course.is_whole && solved_at.is_some_and(lasts);
        if event == Event::Over || budget <= steps || is_enough {
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
        bad_episodes: world.bad,
        broken: world.broken,
        forbidden: world.forbidden.len(),
        asked: desk.asked,
        answered: desk.labels.len(),
        applied: learned.tally.applied,
        rejected: learned.tally.rejected,
        head: learned.chain_head.to_string(),
        words: grades.words,
    })
}
