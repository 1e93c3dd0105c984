//! A learner with a baseline beneath it: what all its episodes earn stays above the floor, all the way, and it learns all the
//! same.

use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};
use bem_engine::agent::Agent;
use bem_engine::evaluate::Judge;
use bem_engine::learner::Settings;
use bem_engine::solve::{Lesson, Solution, teach, teach_world};
use bem_engine::start::{Baseline, Start};
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::game::Game;
use bem_synth::policy::Policy;
use std::sync::Arc;

/// Runs of one step, as many as the promise is stated for, and of several.
const RUNS: u64 = 100;
const RUNS_OF_SEVERAL_STEPS: u64 = 34;
const STEPS: u64 = 30_000;
/// Of so many runs one may earn less than the floor somewhere: what `bem solve --conservative` says.
const ERROR_ONE_IN: u64 = 20;

fn game(text: &str) -> Arc<dyn Game> {
    let tree = TaskTree::parse(text).expect("a task");
    tree.build(1, &NoPrograms).expect("a game of the catalog")
}

/// The mean return of an action, in thousandths of a milli-unit.
fn worth(game: &dyn Game, action: u16) -> i128 {
    let agent = Agent::circuit(Policy::constant(game.shape().actions, action));
    let evaluation = Judge::new(game).evaluate(&agent, 1).expect("games do not fail");
    (i128::from(evaluation.mean.to_raw()) * 1_000) >> 32
}

/// Whether all episodes together had earned less than this a thousand episodes at some point on the way.
fn was_below(solution: &Solution, floor: i128) -> bool {
    let points = solution.online.points().iter().chain([solution.online.now()]);
    points.into_iter().any(|sums| 1_000 * sums.earned < floor * i128::from(sums.episodes))
}

/// A world that keeps account of what is earned in it after every episode.
struct Watched {
    inner: Box<dyn Environment + Send>,
    /// The baseline, and what a thousand episodes must earn, in milli-units.
    baseline: u16,
    floor: i128,
    episodes: i128,
    earned: i128,
    /// What the episode under way has brought.
    total: i128,
    /// Something else than the baseline was done at some time: what that earns by bad luck before is nobody's loss.
    is_tried: bool,
    /// Episodes after which all of them had earned less than the floor, since something else was first done.
    below: u64,
}

impl Watched {
    fn new(game: &dyn Game, baseline: u16, floor: i128) -> Watched {
        let (episodes, earned, total) = (0, 0, 0);
        Watched { inner: game.start(), baseline, floor, episodes, earned, total, is_tried: false, below: 0 }
    }
}

impl Environment for Watched {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.total = 0;
        self.inner.reset(seed)
    }

    fn observation(&self) -> &Bits {
        self.inner.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let outcome = self.inner.step(action)?;
        self.is_tried |= action != self.baseline;
        self.total += i128::from(outcome.reward);
        if outcome.done {
            (self.episodes, self.earned) = (self.episodes + 1, self.earned + self.total);
            let is_below = 1_000 * self.earned < self.floor * self.episodes;
            self.below += u64::from(self.is_tried && is_below);
        }
        Ok(outcome)
    }
}

#[test]
fn what_is_earned_while_learning_stays_above_the_floor() {
    // What is tried may bring nothing, and what the baseline brings is a matter of luck.
    let game = game("bandit{arms=8,gap=10}");
    let best = (0..8).max_by_key(|action| worth(game.as_ref(), *action)).expect("there are actions");
    let baseline = u16::from(best == 0);
    // All arms but the best pay 45 times in a hundred.
    let kept = 450_000;
    let (mut below, mut gained) = (Vec::new(), 0);
    for seed in 1..=RUNS {
        let mut world = Watched::new(game.as_ref(), baseline, 95 * kept / 100);
        let settings =
            Settings { budget: STEPS, ..Settings::new(seed) }.with(|config| config.until_budget = true);
        let policy = Policy::constant(game.shape().actions, baseline);
        let start = Start { baseline: Some(Baseline { policy, risk: 50 }), ..Start::default() };
        let lesson = Lesson { start, ..Lesson::alone(settings) };
        let solution = teach_world(&mut world, lesson, &mut |_| true).expect("a bandit does not fail");
        let tally = &solution.learned.tally;
        assert!(0 < tally.left, "seed {seed} never asked the baseline");
        assert!(tally.left < tally.episodes && world.is_tried, "seed {seed} never tried anything");
        if 0 < world.below {
            below.push((seed, world.below));
        }
        let (now, half) = (solution.online.now(), solution.online.at(STEPS / 2));
        gained += 1_000 * (now.earned - half.earned) - kept * i128::from(now.episodes - half.episodes);
    }
    assert!(below.len() as u64 * ERROR_ONE_IN <= RUNS, "below the floor, with episodes: {below:?}");
    // The best arm pays ten times in a hundred more, and an even draw of all arms once in a hundred.
    let gained = gained / i128::from(RUNS * STEPS / 2);
    assert!(10_000 < gained, "the second halves earn {gained} thousandths of a milli-unit more an episode");
}

/// Six steps, each with a hint: to do what it says pays 0.6. A third action pays 1 where the hint is one, and nothing else.
struct Hints {
    shape: Shape,
    prng: Prng,
    seen: Bits,
    time: u32,
}

impl Hints {
    fn new() -> Hints {
        let shape = Shape {
            observation_bits: 1,
            actions: 3,
            fields: Vec::new(),
            horizon: 6,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 6_000,
        };
        Hints { shape, prng: Prng::stream(0, "hints"), seen: Bits::ZERO, time: 0 }
    }

    /// Does what the hint says.
    fn baseline() -> Policy {
        let action = [Signal::input(0), Signal::FALSE];
        Policy::close(Builder::new(1), 1, 3, &action, &[]).expect("a policy")
    }
}

impl Environment for Hints {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        (self.prng, self.time) = (Prng::stream(seed, "hints"), 0);
        self.seen = Bits([u64::from(self.prng.bit()), 0, 0, 0]);
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.seen
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let hint = self.seen.get(0);
        let reward = match action {
            2 => 1_000 * i32::from(hint),
            _ => 600 * i32::from((action == 1) == hint),
        };
        self.time += 1;
        self.seen = Bits([u64::from(self.prng.bit()), 0, 0, 0]);
        Ok(Outcome { reward, done: self.time == 6, bad: false })
    }
}

#[test]
fn above_a_policy_over_several_steps_it_never_falls_below_the_floor() {
    let (mut below, mut better) = (0, 0);
    for seed in 1..=RUNS_OF_SEVERAL_STEPS {
        let settings =
            Settings { budget: STEPS, ..Settings::new(seed) }.with(|config| config.until_budget = true);
        let start =
            Start { baseline: Some(Baseline { policy: Hints::baseline(), risk: 50 }), ..Start::default() };
        let lesson = Lesson { start, ..Lesson::alone(settings) };
        let solution = teach_world(&mut Hints::new(), lesson, &mut |_| true).expect("hints do not fail");
        // The baseline earns 3.6 in every episode, so that its luck is in none of the points.
        below += u64::from(was_below(&solution, 95 * 3_600 * 10));
        let tally = &solution.learned.tally;
        assert!(0 < tally.left && tally.left < tally.episodes, "seed {seed}: {tally:?}");
        // The best earns 4.8: the part of the run that is its own shows.
        let (now, half) = (solution.online.now(), solution.online.at(STEPS / 2));
        better += u32::from(4_000 * i128::from(now.episodes - half.episodes) < now.earned - half.earned);
    }
    assert!(
        below * ERROR_ONE_IN <= RUNS_OF_SEVERAL_STEPS,
        "{below} of {RUNS_OF_SEVERAL_STEPS} runs had earned less than the floor somewhere"
    );
    assert!(
        25 <= better,
        "{better} of {RUNS_OF_SEVERAL_STEPS} runs earned more than the baseline in their second half"
    );
}

#[test]
fn without_a_baseline_the_same_worlds_are_learned_below_the_floor_at_first() {
    // The control: exploring freely costs more than a twentieth where the baseline is good from the start.
    let game = game("bandit{arms=8,gap=10}");
    let best = (0..8).max_by_key(|action| worth(game.as_ref(), *action)).expect("there are actions");
    let settings = Settings { budget: 500, ..Settings::new(3) }.with(|config| config.until_budget = true);
    let free = teach(game.as_ref(), Lesson::alone(settings), &mut |_| true).expect("games do not fail");
    let floor = 95 * worth(game.as_ref(), best) / 100;
    assert!(was_below(&free, floor), "{:?}", free.online.now());
    assert!(1_000 * free.online.now().earned < floor * i128::from(free.online.now().episodes));
}
