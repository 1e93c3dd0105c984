//! Learners put away at random points and taken up again: they must go on bit for bit as if nothing had happened.
//!
//! A point is any unit of work: in the middle of an episode, between the two halves of a measured pair, with a patch that
//! is proven and not yet applied. From the saved bytes alone, in a world of its own, the learner must write the same bytes
//! again and end with the same chain and the same final bytes. Clauses: LOG-4, LOG-5; decision D-19.

use bem_base::prng::Prng;
use bem_engine::learner::{Event, Learner, Settings};
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::game::Game;
use std::sync::Arc;

/// Tasks with short and long episodes, with and without memory, noise and safety.
const TASKS: [&str; 8] = [
    "parity{n=6}",
    "parity_stream{n=8}",
    "majority{n=9}",
    "copy{length=4}",
    "dyck{types=1,depth=4,length=12}",
    "bandit{arms=4}",
    "compare{bits=4}",
    "safety_grid{size=4,bad=3}",
];
/// Steps of one learner.
const BUDGET: u64 = 2_500;
/// Points tried along one learner's life.
const POINTS: u64 = 10;

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Restore points.
    pub points: u64,
    /// Among them: in the middle of an episode.
    pub in_episode: u64,
    /// Among them: with a patch that is proven and not yet applied or refused.
    pub with_patch: u64,
    /// Learners they lie on.
    pub learners: u64,
}

fn build(task: &str, seed: u64) -> Arc<dyn Game> {
    let tree = TaskTree::parse(task).expect("a task of the list above");
    tree.build(seed, &NoPrograms).expect("its parameters are in range")
}

/// Tries at least so many points; an error names the point.
pub fn restore_points(count: u64, seed: u64) -> Result<Restored, String> {
    let mut prng = Prng::stream(seed, "restore points");
    let mut restored = Restored::default();
    while restored.points < count {
        let task = TASKS[prng.below(TASKS.len() as u64) as usize];
        one_learner(task, prng.next_u64(), &mut prng, &mut restored)
            .map_err(|reason| format!("{task}: {reason}"))?;
        restored.learners += 1;
    }
    Ok(restored)
}

fn one_learner(task: &str, seed: u64, prng: &mut Prng, restored: &mut Restored) -> Result<(), String> {
    let game = build(task, seed);
    let settings = Settings { budget: BUDGET, ..Settings::new(seed) };
    let fail = |error: &dyn std::fmt::Display| format!("seed {seed}: {error}");
    // The undisturbed life, and where patches were being measured in it.
    let mut world = game.start();
    let mut whole = Learner::new(world.shape(), settings.clone()).expect("the world fits the machine");
    let (mut units, mut measuring) = (0u64, Vec::new());
    while whole.advance(world.as_mut(), &mut ()).map_err(|error| fail(&error))? != Event::Over {
        units += 1;
        if whole.is_measuring() {
            measuring.push(units);
        }
    }
    let last = whole.encode();
    let mut points: Vec<u64> = (0..POINTS)
        .map(|_| match measuring.len() as u64 {
            count if 0 < count && prng.bit() => measuring[prng.below(count) as usize],
            _ => 1 + prng.below(units),
        })
        .collect();
    points.sort_unstable();
    points.dedup();
    let mut world = game.start();
    let mut learner = Learner::new(world.shape(), settings).expect("the world fits the machine");
    let mut unit = 0;
    for point in points {
        while unit < point {
            learner.advance(world.as_mut(), &mut ()).map_err(|error| fail(&error))?;
            unit += 1;
        }
        let bytes = learner.encode();
        let mut elsewhere = build(task, seed).start();
        let mut again = Learner::restore(&bytes, elsewhere.as_mut()).map_err(|error| fail(&error))?;
        if again.encode() != bytes {
            return Err(format!("seed {seed}, unit {point}: other bytes right after it was taken up"));
        }
        while again.advance(elsewhere.as_mut(), &mut ()).map_err(|error| fail(&error))? != Event::Over {}
        if again.encode() != last {
            return Err(format!("seed {seed}, unit {point}: another end"));
        }
        restored.points += 1;
        restored.in_episode += u64::from(learner.is_in_episode());
        restored.with_patch += u64::from(learner.is_measuring());
    }
    Ok(())
}
