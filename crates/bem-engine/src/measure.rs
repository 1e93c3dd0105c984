//! How hard a game is for the learner: the steps after which it first plays like the best.
//!
//! The same learner and the same evaluator as in `solve`, but the run ends with the answer, so that a whole ladder can
//! be measured in minutes. Clauses: GLE-5.

use crate::agent::Agent;
use crate::evaluate::baselines::evaluate_episodes;
use crate::evaluate::{Judge, Yardstick};
use crate::learner::{Decision, Event, Learner, Settings, Tally, Witness};
use crate::session::Session;
use crate::solve::SOLVED;
use bem_base::environment::{Environment, EnvironmentError};
use bem_evolve::verify::AcceptedPatch;
use bem_games::game::Game;

/// Episodes with which a policy is judged in a world outside.
pub const JUDGING_EPISODES: u32 = 400;

/// Steps taken when an evaluation first gave a score of at least 0.99; none if the budget ended before.
pub fn steps_to_solve(game: &dyn Game, settings: Settings) -> Result<Option<u64>, EnvironmentError> {
    let mut world = game.start();
    let mut stopwatch =
        Stopwatch { judge: Judge::new(game), seed: settings.seed, steps: None, failure: None };
    let mut learner = Learner::new(game.shape(), settings)?;
    while !stopwatch.has_stopped() && learner.advance(world.as_mut(), &mut stopwatch)? != Event::Over {}
    match stopwatch.failure {
        Some(failure) => Err(failure),
        None => Ok(stopwatch.steps),
    }
}

/// The same in a world outside that says what is best; `judging` is a second one of its kind, for evaluations.
pub fn steps_to_solve_outside(
    world: &mut dyn Environment,
    judging: &mut dyn Environment,
    yardstick: Yardstick,
    settings: Settings,
) -> Result<Option<u64>, EnvironmentError> {
    let (seed, budget) = (settings.seed, settings.budget);
    let mut session = Session::new(world, settings)?;
    loop {
        let known = session.tally().acting_changes;
        let goes_on = |tally: &Tally| tally.acting_changes == known && tally.steps < budget;
        session.run(world, &mut |tally, _| goes_on(tally))?;
        let tally = *session.tally();
        if tally.acting_changes != known {
            let agent = session.learned().agent;
            let evaluation = evaluate_episodes(judging, &agent, seed, JUDGING_EPISODES, &mut || true)?;
            if evaluation.is_some_and(|evaluation| SOLVED <= yardstick.score(evaluation.mean)) {
                return Ok(Some(tally.steps));
            }
        }
        if budget <= tally.steps {
            return Ok(None);
        }
    }
}

/// Evaluates every new incumbent until one is good enough.
struct Stopwatch<'a> {
    judge: Judge<'a>,
    seed: u64,
    steps: Option<u64>,
    failure: Option<EnvironmentError>,
}

impl Stopwatch<'_> {
    fn has_stopped(&self) -> bool {
        self.steps.is_some() || self.failure.is_some()
    }
}

impl Witness for Stopwatch<'_> {
    fn incumbent_changed(&mut self, agent: &Agent, _words: &str, tally: &Tally) {
        if self.has_stopped() {
            return;
        }
        match self.judge.evaluate(agent, self.seed) {
            Ok(evaluation) if SOLVED <= self.judge.yardstick().score(evaluation.mean) => {
                self.steps = Some(tally.steps)
            }
            Ok(_) => {}
            Err(error) => self.failure = Some(error),
        }
    }

    fn decided(&mut self, _decision: &Decision, _patch: Option<&AcceptedPatch>) {}

    fn tick(&mut self, _tally: &Tally) -> bool {
        !self.has_stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::solve;
    use bem_games::compose::{NoPrograms, TaskTree};

    #[test]
    fn the_stopwatch_shows_what_solving_to_the_end_shows() {
        for text in ["parity{n=8,relevant=4}", "signaling{states=4}", "majority{n=9,relevant=3}"] {
            let game = TaskTree::parse(text).unwrap().build(3, &NoPrograms).unwrap();
            let settings = Settings { budget: 2_000, ..Settings::new(3) };
            let whole = solve(game.as_ref(), settings.clone(), &mut |_| true).unwrap();
            assert_eq!(steps_to_solve(game.as_ref(), settings).unwrap(), whole.steps_to_99, "{text}");
            assert!(whole.steps_to_99.is_some(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_solved_within_the_budget_has_no_steps() {
        let game = TaskTree::parse("parity{n=64,relevant=32}").unwrap().build(1, &NoPrograms).unwrap();
        let settings = Settings { budget: 48, ..Settings::new(1) };
        assert_eq!(steps_to_solve(game.as_ref(), settings).unwrap(), None);
    }
}
