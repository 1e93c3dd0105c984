//! A learner with a baseline beneath it: what all its episodes earn stays above the floor, and it learns all the same.

use bem_engine::agent::Agent;
use bem_engine::evaluate::Judge;
use bem_engine::learner::Settings;
use bem_engine::solve::{Lesson, Solution, teach};
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
            let sums = solution.online.now();
            let earned = 1_000 * sums.earned / i128::from(sums.episodes);
            below += u32::from(earned < floor);
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

#[test]
fn without_a_baseline_the_same_worlds_are_learned_below_the_floor_at_first() {
    // The control: exploring freely costs more than a twentieth where the baseline is good from the start.
    let game = game("bandit{arms=8,gap=10}");
    let best = (0..8).max_by_key(|action| worth(game.as_ref(), *action)).expect("there are actions");
    let settings = Settings { budget: 500, ..Settings::new(3) }.with(|config| config.until_budget = true);
    let free = teach(game.as_ref(), Lesson::alone(settings), &mut |_| true).expect("games do not fail");
    let mean = 1_000 * free.online.now().earned / i128::from(free.online.now().episodes);
    assert!(100 * mean < 95 * worth(game.as_ref(), best), "{mean}");
}
