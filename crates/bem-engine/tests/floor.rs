//! A learner with a baseline beneath it: what all its episodes earn stays above the floor, all the way, and it learns all the
//! same.

use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};
use bem_engine::agent::Agent;
use bem_engine::evaluate::Judge;
use bem_engine::learner::Settings;
use bem_engine::online::Sums;
use bem_engine::solve::{Lesson, Solution, teach, teach_world};
use bem_engine::start::{Baseline, Start};
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::game::Game;
use bem_synth::policy::Policy;
use std::sync::Arc;

/// Runs of every world.
const RUNS: u64 = 34;
const STEPS: u64 = 30_000;

fn game(text: &str) -> Arc<dyn Game> {
    let tree = TaskTree::parse(text).expect("a task");
    tree.build(1, &NoPrograms).expect("a game of the catalog")
}

/// Learns with this action as the baseline, a twentieth of whose return may be risked.
fn learn(game: &dyn Game, action: u16, seed: u64) -> Solution {
    let settings =
        Settings { budget: STEPS, ..Settings::new(seed) }.with(|config| config.until_budget = true);
    let policy = Policy::constant(game.shape().actions, action);
    let start = Start { baseline: Some(Baseline { policy, risk: 50 }), ..Start::default() };
    teach(game, Lesson { start, ..Lesson::alone(settings) }, &mut |_| true).expect("games do not fail")
}

/// The mean return of an action, in thousandths of a milli-unit.
fn worth(game: &dyn Game, action: u16) -> i128 {
    let agent = Agent::circuit(Policy::constant(game.shape().actions, action));
    let evaluation = Judge::new(game).evaluate(&agent, 1).expect("games do not fail");
    (i128::from(evaluation.mean.to_raw()) * 1_000) >> 32
}

/// Whether all episodes together had earned less than this a thousand episodes at some point on the way, since something else than
/// the baseline was first done: what the baseline earns by bad luck before that is nobody's loss.
fn was_below(solution: &Solution, floor: i128, is_tried: impl Fn(&Sums) -> bool) -> bool {
    let points = solution.online.points().iter().skip_while(|sums| !is_tried(sums));
    points.chain([solution.online.now()]).any(|sums| 1_000 * sums.earned < floor * i128::from(sums.episodes))
}

#[test]
fn what_is_earned_while_learning_stays_above_the_floor() {
    let mut below = 0;
    let mut scores = Vec::new();
    for text in
        ["bandit{arms=8,gap=10}", "contextual_bandit{context_bits=3,noise_bits=5,arms=4}", "compare{bits=4}"]
    {
        let game = game(text);
        let floor = 95 * worth(game.as_ref(), 0) / 100;
        for seed in 1..=RUNS {
            let solution = learn(game.as_ref(), 0, seed);
            let now = solution.online.now();
            below += u32::from(1_000 * now.earned < floor * i128::from(now.episodes));
            assert!(0 < solution.learned.tally.left, "{text} never asked the baseline");
            assert!(
                solution.learned.tally.left < solution.learned.tally.episodes,
                "{text} never tried anything"
            );
            scores.push(solution.is_solved());
        }
    }
    assert!(below <= 5, "{below} of {} runs earned less than the floor", 3 * RUNS);
    let solved = scores.iter().filter(|solved| **solved).count();
    assert!(75 <= solved, "{solved} of {} runs were solved", scores.len());
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
    for seed in 1..=RUNS {
        let settings =
            Settings { budget: STEPS, ..Settings::new(seed) }.with(|config| config.until_budget = true);
        let start =
            Start { baseline: Some(Baseline { policy: Hints::baseline(), risk: 50 }), ..Start::default() };
        let lesson = Lesson { start, ..Lesson::alone(settings) };
        let solution = teach_world(&mut Hints::new(), lesson, &mut |_| true).expect("hints do not fail");
        // The baseline earns 3.6 in every episode, so that its luck is in none of the points.
        below += u32::from(was_below(&solution, 95 * 3_600 * 10, |_| true));
        let tally = &solution.learned.tally;
        assert!(0 < tally.left && tally.left < tally.episodes, "seed {seed}: {tally:?}");
        // The best earns 4.8: the part of the run that is its own shows.
        let (now, half) = (solution.online.now(), solution.online.at(STEPS / 2));
        better += u32::from(4_000 * i128::from(now.episodes - half.episodes) < now.earned - half.earned);
    }
    assert!(below <= 1, "{below} of {RUNS} runs had earned less than the floor somewhere");
    assert!(25 <= better, "{better} of {RUNS} runs earned more than the baseline in their second half");
}

#[test]
fn without_a_baseline_the_same_worlds_are_learned_below_the_floor_at_first() {
    // The control: exploring freely costs more than a twentieth where the baseline is good from the start.
    let game = game("bandit{arms=8,gap=10}");
    let best = (0..8).max_by_key(|action| worth(game.as_ref(), *action)).expect("there are actions");
    let settings = Settings { budget: 500, ..Settings::new(3) }.with(|config| config.until_budget = true);
    let free = teach(game.as_ref(), Lesson::alone(settings), &mut |_| true).expect("games do not fail");
    let floor = 95 * worth(game.as_ref(), best) / 100;
    assert!(was_below(&free, floor, |_| true), "{:?}", free.online.now());
    assert!(1_000 * free.online.now().earned < floor * i128::from(free.online.now().episodes));
}
