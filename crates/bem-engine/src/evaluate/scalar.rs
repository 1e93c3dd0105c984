//! Episode by episode in one running world: worlds outside, agents that adapt, and the oracle.
//!
//! Must not know that episodes can be played side by side. Clauses: SCC-8, GLE-1.

use super::tally::Tally;
use super::{Evaluation, Extent, Played, Yardstick};
use crate::agent::{Actor, Agent};
use crate::seeds::{Domain, Seeds};
use bem_base::environment::{Environment, EnvironmentError};
use bem_base::fixed::Fixed;
use bem_games::game::Oracle;

/// Plays a frozen agent on evaluation seeds: at least [`super::EVALUATION_EPISODES`], fewer where they are very long, and more
/// until the mean is known to a quarter of a percent of what there is to gain, as far as [`super::EVALUATION_STEPS_MAX`] steps go.
pub fn evaluate(
    world: &mut dyn Environment,
    agent: &Agent,
    run_seed: u64,
    yardstick: Option<Yardstick>,
    oracle: Option<&mut dyn Oracle>,
) -> Result<Evaluation, EnvironmentError> {
    let policies = [agent.policy()];
    let extent = match yardstick {
        Some(_) => Extent::of(&policies, world.shape().horizon, Fixed::ZERO),
        None => Extent::outside(&policies),
    };
    evaluate_within(extent, world, agent, run_seed, yardstick, oracle)
}

/// The same within this extent.
pub(super) fn evaluate_within(
    extent: Extent,
    world: &mut dyn Environment,
    agent: &Agent,
    run_seed: u64,
    yardstick: Option<Yardstick>,
    mut oracle: Option<&mut dyn Oracle>,
) -> Result<Evaluation, EnvironmentError> {
    let mut seeds = Seeds::new(run_seed, Domain::Evaluation);
    let mut actor = Actor::new(agent);
    let mut tally = Tally::new(extent);
    loop {
        let seed = seeds.next_seed();
        let played = play(world, &mut actor, seed)?;
        let best = match &mut oracle {
            Some(oracle) => Some(play_oracle(world, *oracle, seed)?),
            None => None,
        };
        tally.add(&played, best);
        if tally.is_enough(yardstick) {
            return Ok(tally.evaluation(yardstick));
        }
    }
}

/// One episode of an agent.
pub(super) fn play(
    world: &mut dyn Environment,
    actor: &mut Actor<'_>,
    seed: u64,
) -> Result<Played, EnvironmentError> {
    world.reset(seed)?;
    actor.begin();
    let mut played = Played::default();
    let mut actions = Vec::new();
    loop {
        let action = actor.act(world.observation());
        let outcome = world.step(action)?;
        actions.push(action);
        for late in world.late() {
            if let Some(action) = actions.get(late.step as usize) {
                actor.see(*action, late.reward);
            }
        }
        if !world.is_awaited() {
            actor.see(action, outcome.reward);
        }
        played.take(&outcome);
        played.take_late(world.late());
        if outcome.done {
            return Ok(played);
        }
    }
}

/// What the oracle earns in the episode of this seed.
pub(super) fn play_oracle(
    world: &mut dyn Environment,
    oracle: &mut dyn Oracle,
    seed: u64,
) -> Result<i64, EnvironmentError> {
    world.reset(seed)?;
    oracle.begin(seed);
    let mut total = 0;
    loop {
        let action = oracle.act(world.observation());
        let outcome = world.step(action)?;
        oracle.see(action, &outcome);
        total += i64::from(outcome.reward);
        total += world.late().iter().map(|late| i64::from(late.reward)).sum::<i64>();
        if outcome.done {
            return Ok(total);
        }
    }
}
