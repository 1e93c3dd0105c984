//! What simple policies earn in the episodes that a frozen policy is evaluated on: the baselines of a report.
//!
//! Three of them: uniform random play, the best fixed action, and the policy that was in force before anything was learned.
//! How many episodes they take is planned before the first one ([`Plan`]), so that it can be announced and bounded: a world
//! outside is somebody's program, and every step in it takes its time. None of this reaches the learner, and none of it
//! counts as a step of learning. What the user forbids binds them as well. Must not know files, nor whether anybody watches. Clauses: SCC-8, GLE-9.

use super::scalar::play;
use super::tally::Tally;
use super::{Evaluation, Extent, Played};
use crate::agent::{Actor, Agent};
use crate::seeds::{Domain, Seeds};
use bem_base::environment::{Bits, Environment, EnvironmentError, Forbidden, Late, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;

/// Fixed actions that are tried at most: the first ones.
pub const FIXED_ACTIONS_MAX: u16 = 256;
/// Episodes of a baseline at least, where any are asked for.
const EPISODES_MIN: u64 = 8;

/// What simple policies earn in the first episodes of the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Baselines {
    /// Every action with equal chance.
    pub random: Evaluation,
    /// The same action in every step: the one that earned most.
    pub best_fixed: Evaluation,
    /// Which action that is.
    pub best_action: u16,
    /// The policy that was in force before anything was learned.
    pub first: Evaluation,
    /// By how much the policy earns more than each of them, where its returns are known.
    pub gains: Option<Gains>,
}

/// Differences of the policy's return and a baseline's in the episodes that both played: what an episode brings to both falls
/// out, so that far smaller differences are told from chance than by two intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gains {
    /// Over random play.
    pub random: Evaluation,
    /// Over the best fixed action.
    pub best_fixed: Evaluation,
    /// Over the policy that was in force before anything was learned.
    pub first: Evaluation,
}

/// How many episodes the baselines take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Episodes of every baseline.
    pub episodes: u32,
    /// Actions that are tried as fixed ones.
    pub actions: u16,
    /// Episodes by which the best of them is found.
    pub screening: u32,
}

impl Plan {
    /// At most this many episodes a baseline, and, where episodes are long, about this many steps in all.
    pub fn new(shape: &Shape, episodes: u32, steps_max: u64) -> Plan {
        let actions = shape.actions.min(FIXED_ACTIONS_MAX);
        let (share, horizon) = (steps_max / 4, u64::from(shape.horizon.max(1)));
        let bounded = |count: u64, least: u64| (share / horizon / count).max(least).min(u64::from(episodes));
        let each = bounded(1, EPISODES_MIN) as u32;
        let screening = (bounded(u64::from(actions.max(1)), 1) as u32).min(each);
        Plan { episodes: each, actions, screening }
    }

    /// Episodes in all.
    pub fn total(&self) -> u64 {
        3 * u64::from(self.episodes) + u64::from(self.actions) * u64::from(self.screening)
    }
}

/// Told after every episode; false asks to stop.
pub type OnEpisode<'a> = &'a mut dyn FnMut() -> bool;

/// Plays the baselines; nothing where the caller asked to stop. `returns` are those of the policy in the same episodes, as far
/// as it played them.
pub fn baselines(
    world: &mut dyn Environment,
    first: &Agent,
    returns: &[i64],
    run_seed: u64,
    plan: &Plan,
    on_episode: OnEpisode<'_>,
) -> Result<Option<Baselines>, EnvironmentError> {
    let (episodes, actions) = (plan.episodes, world.shape().actions);
    let forbidden = world.forbidden().to_vec();
    let world: &mut dyn Environment = &mut Obedient { world, forbidden: &forbidden };
    let mut prng = Prng::stream(run_seed, "engine/baseline");
    let mut draw = |observation: &Bits| {
        if forbidden.is_empty() {
            return prng.below(u64::from(actions)) as u16;
        }
        let left: Vec<u16> = Forbidden::left(&forbidden, *observation, actions).collect();
        left[prng.below(left.len() as u64) as usize]
    };
    let Some(random) = simple(world, &mut draw, run_seed, episodes, on_episode)? else { return Ok(None) };
    let Some(first) = evaluate_returns(world, first, run_seed, episodes, on_episode)? else {
        return Ok(None);
    };
    let mut best: Option<(Fixed, u16)> = None;
    for action in 0..plan.actions {
        let Some(found) = simple(world, &mut |_| action, run_seed, plan.screening, on_episode)? else {
            return Ok(None);
        };
        // Of equal ones the lowest action.
        let mean = found.0.mean;
        if best.is_none_or(|(most, _)| most < mean) {
            best = Some((mean, action));
        }
    }
    let best_action = best.map_or(0, |(_, action)| action);
    let best_fixed = simple(world, &mut |_| best_action, run_seed, episodes, on_episode)?;
    Ok(best_fixed.map(|best_fixed| {
        let gains = || {
            let gain = |played: &Returned| gain(returns, &played.1);
            Some(Gains { random: gain(&random)?, best_fixed: gain(&best_fixed)?, first: gain(&first)? })
        };
        Baselines { gains: gains(), random: random.0, best_fixed: best_fixed.0, best_action, first: first.0 }
    }))
}

/// By how much the first returns are more than the second ones, episode by episode; nothing where there are not two episodes
/// that both have.
fn gain(own: &[i64], others: &[i64]) -> Option<Evaluation> {
    if own.len().min(others.len()) < 2 {
        return None;
    }
    let mut tally = Tally::new(Extent::outside(&[]));
    for (own, other) in own.iter().zip(others) {
        tally.add(&Played { total: own - other, ..Played::default() }, None);
    }
    Some(tally.evaluation(None))
}

/// An evaluation with the return of every episode, in milli-units.
pub type Returned = (Evaluation, Vec<i64>);

/// A world in which the lowest action that is left is done in the place of a forbidden one.
struct Obedient<'a> {
    world: &'a mut dyn Environment,
    forbidden: &'a [Forbidden],
}

impl Environment for Obedient<'_> {
    fn shape(&self) -> &Shape {
        self.world.shape()
    }

    fn forbidden(&self) -> &[Forbidden] {
        self.forbidden
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

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.world.reset(seed)
    }

    fn observation(&self) -> &Bits {
        self.world.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let observation = *self.world.observation();
        let is_forbidden = Forbidden::forbids(self.forbidden, observation, action);
        let instead = Forbidden::left(self.forbidden, observation, self.world.shape().actions).next();
        self.world.step(instead.filter(|_| is_forbidden).unwrap_or(action))
    }
}

/// A frozen agent on this many evaluation seeds, fewer where that takes more than [`super::EVALUATION_STEPS_MAX`] steps; nothing
/// where the caller asked to stop. For worlds whose optimum nobody knows.
pub fn evaluate_episodes(
    world: &mut dyn Environment,
    agent: &Agent,
    run_seed: u64,
    episodes: u32,
    on_episode: OnEpisode<'_>,
) -> Result<Option<Evaluation>, EnvironmentError> {
    let found = evaluate_returns(world, agent, run_seed, episodes, on_episode)?;
    Ok(found.map(|(evaluation, _)| evaluation))
}

/// The same, with the return of every episode.
pub fn evaluate_returns(
    world: &mut dyn Environment,
    agent: &Agent,
    run_seed: u64,
    episodes: u32,
    on_episode: OnEpisode<'_>,
) -> Result<Option<Returned>, EnvironmentError> {
    let mut actor = Actor::new(agent);
    collect(world, &mut |world, seed| play(world, &mut actor, seed), run_seed, episodes, on_episode)
}

/// A policy that is a function of what is seen, or of nothing.
fn simple(
    world: &mut dyn Environment,
    choose: &mut dyn FnMut(&Bits) -> u16,
    run_seed: u64,
    episodes: u32,
    on_episode: OnEpisode<'_>,
) -> Result<Option<Returned>, EnvironmentError> {
    let mut episode = |world: &mut dyn Environment, seed: u64| {
        world.reset(seed)?;
        let mut played = Played::default();
        loop {
            let action = choose(world.observation());
            let outcome = world.step(action)?;
            played.take(&outcome);
            played.take_late(world.late());
            if outcome.done {
                return Ok(played);
            }
        }
    };
    collect(world, &mut episode, run_seed, episodes, on_episode)
}

type PlayEpisode<'a> = &'a mut dyn FnMut(&mut dyn Environment, u64) -> Result<Played, EnvironmentError>;

fn collect(
    world: &mut dyn Environment,
    episode: PlayEpisode<'_>,
    run_seed: u64,
    episodes: u32,
    on_episode: OnEpisode<'_>,
) -> Result<Option<Returned>, EnvironmentError> {
    let mut seeds = Seeds::new(run_seed, Domain::Evaluation);
    let (mut tally, mut returns) = (Tally::new(Extent::outside(&[])), Vec::new());
    for _ in 0..episodes {
        let played = episode(world, seeds.next_seed())?;
        tally.add(&played, None);
        returns.push(played.total);
        if !on_episode() {
            return Ok(None);
        }
        if tally.is_long() {
            break;
        }
    }
    Ok((0 < episodes).then(|| (tally.evaluation(None), returns)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_games::compose::{NoPrograms, TaskTree};
    use bem_games::game::Game;
    use bem_synth::policy::Policy;
    use std::sync::Arc;

    fn game(text: &str) -> Arc<dyn Game> {
        TaskTree::parse(text).unwrap().build(3, &NoPrograms).unwrap()
    }

    #[test]
    fn baselines_are_what_the_game_says_of_them() {
        let game = game("bandit{arms=4,gap=40}");
        let plan = Plan::new(game.shape(), 1_000, 1_000_000);
        let first = Agent::circuit(Policy::constant(4, 2));
        let mut count = 0;
        let mut on_episode = || {
            count += 1;
            true
        };
        let found =
            baselines(game.start().as_mut(), &first, &[], 7, &plan, &mut on_episode).unwrap().unwrap();
        assert_eq!((count, found.gains), (plan.total(), None));
        // The best arm is the best fixed action, and nothing is better than it.
        let (low, high) = found.best_fixed.interval95().unwrap();
        assert!(low <= game.optimum().mean && game.optimum().mean <= high, "{found:?}");
        let (low, high) = found.random.interval95().unwrap();
        assert!(low <= game.random().mean && game.random().mean <= high, "{found:?}");
        assert!(found.first.mean <= found.best_fixed.mean);
    }

    #[test]
    fn intervals_hold_the_true_mean_about_as_often_as_they_say() {
        for text in ["bandit{arms=4,gap=40}", "safety_grid{size=4}", "matrix_game"] {
            let game = game(text);
            let mut world = game.start();
            let mut held = 0;
            for run_seed in 0..400 {
                let mut prng = Prng::stream(run_seed, "coverage");
                let actions = u64::from(game.shape().actions);
                let mut draw = |_: &Bits| prng.below(actions) as u16;
                let found = simple(world.as_mut(), &mut draw, run_seed, 200, &mut || true).unwrap().unwrap();
                let (low, high) = found.0.interval95().unwrap();
                held += u32::from(low <= game.random().mean && game.random().mean <= high);
            }
            // 380 of 400 are expected; four standard deviations are 17.
            assert!((363..=397).contains(&held), "{text}: {held} of 400");
        }
    }

    #[test]
    fn a_small_gain_is_shown_in_the_same_episodes_where_two_intervals_overlap() {
        // What an episode is worth differs far more between episodes than between actions.
        struct Lucky(Shape, u64);
        impl Environment for Lucky {
            fn shape(&self) -> &Shape {
                &self.0
            }
            fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
                self.1 = seed;
                Ok(())
            }
            fn observation(&self) -> &Bits {
                &Bits::ZERO
            }
            fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
                let luck = Prng::stream(self.1, "luck").below(1_000) as i32;
                Ok(Outcome { reward: luck + 10 * i32::from(action == 3), done: true, bad: false })
            }
        }
        let mut shape = game("bandit{arms=4,gap=40}").shape().clone();
        (shape.horizon, shape.actions) = (1, 4);
        let plan = Plan { episodes: 100, actions: 3, screening: 100 };
        let policy = Agent::circuit(Policy::constant(4, 3));
        let first = Agent::circuit(Policy::constant(4, 3));
        let mut world = Lucky(shape, 0);
        let (own, returns) = evaluate_returns(&mut world, &policy, 7, 300, &mut || true).unwrap().unwrap();
        let found = baselines(&mut world, &first, &returns, 7, &plan, &mut || true).unwrap().unwrap();
        let (low, _) = own.interval95().unwrap();
        let (_, high) = found.best_fixed.interval95().unwrap();
        assert!(low < high, "the intervals overlap: {own:?}, {found:?}");
        let gains = found.gains.unwrap();
        assert_eq!((gains.best_fixed.mean, gains.best_fixed.episodes), (Fixed::from_int(10), 100));
        assert!(Fixed::ZERO < gains.random.interval95().unwrap().0, "{gains:?}");
        // Against itself there is none.
        assert_eq!((gains.first.mean, gains.first.error), (Fixed::ZERO, Fixed::ZERO));
    }

    /// A game that says what must not be done, and fails where it is done.
    struct Guarded(Box<dyn Environment + Send>, Vec<Forbidden>);

    impl Environment for Guarded {
        fn shape(&self) -> &Shape {
            self.0.shape()
        }
        fn forbidden(&self) -> &[Forbidden] {
            &self.1
        }
        fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
            self.0.reset(seed)
        }
        fn observation(&self) -> &Bits {
            self.0.observation()
        }
        fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
            let observation = *self.0.observation();
            assert!(!Forbidden::forbids(&self.1, observation, action), "action {action} is forbidden");
            self.0.step(action)
        }
    }

    #[test]
    fn baselines_keep_to_what_is_forbidden() {
        let game = game("bandit{arms=4,gap=40}");
        let mut world = game.start();
        world.reset(0).unwrap();
        let observation = *world.observation();
        let forbidden = [0, 2].map(|action| Forbidden::whole(observation, action)).to_vec();
        let mut world = Guarded(world, forbidden);
        let plan = Plan::new(game.shape(), 100, 1_000_000);
        let first = Agent::circuit(Policy::constant(4, 2));
        let found = baselines(&mut world, &first, &[], 7, &plan, &mut || true).unwrap().unwrap();
        assert!(found.first.mean <= found.best_fixed.mean);
    }

    #[test]
    fn long_episodes_and_many_actions_are_bounded() {
        let mut shape = game("parity{n=4}").shape().clone();
        (shape.horizon, shape.actions) = (500, 1_000);
        let plan = Plan::new(&shape, 1_000, 50_000);
        assert_eq!(plan, Plan { episodes: 25, actions: FIXED_ACTIONS_MAX, screening: 1 });
        (shape.horizon, shape.actions) = (1, 2);
        assert_eq!(Plan::new(&shape, 200, 50_000), Plan { episodes: 200, actions: 2, screening: 200 });
        assert_eq!(Plan::new(&shape, 0, 50_000).total(), 0);
    }

    #[test]
    fn whoever_asks_to_stop_is_heard() {
        let game = game("parity{n=4}");
        let plan = Plan::new(game.shape(), 10, 1_000);
        let first = Agent::circuit(Policy::constant(2, 0));
        let mut left = 15;
        let mut on_episode = || {
            left -= 1;
            0 < left
        };
        let found = baselines(game.start().as_mut(), &first, &[], 7, &plan, &mut on_episode);
        assert_eq!(found.unwrap(), None);
        assert_eq!(left, 0);
    }
}
