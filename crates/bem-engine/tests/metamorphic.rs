//! What a change of a world must not change: rewards on another scale, actions twice or without use, bits in another order,
//! a start that is delayed.
//!
//! Where nothing but the scale of rewards differs, the learner must take the same actions, one by one. Where the world has
//! more to look through, it must still be solved, within a stated multiple of the steps.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use bem_base::digest::Digest;
use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_engine::agent::Agent;
use bem_engine::learner::{Decision, Learner, Settings, Tally, Witness};
use bem_engine::solve::{Solution, solve};
use bem_engine::worlds::Catalog;
use bem_evolve::verify::AcceptedPatch;
use bem_games::game::{Game, Oracle, Steps, Value};
use bem_synth::experience::Episode;
use std::sync::Arc;

/// What is done to a world.
#[derive(Clone, Copy, Debug)]
enum How {
    /// Every reward is multiplied, then something is added.
    Affine { factor: i32, offset: i32 },
    /// The declared range is twice as wide; what is paid stays as it is.
    Stretched,
    /// Every action has a second code.
    Duplicated,
    /// So many actions more, which earn the least and otherwise do what action 0 does.
    Dummy(u16),
    /// The first steps of an episode do nothing, whatever is done.
    Delayed(u32),
}

/// A game after the change.
struct Changed {
    game: Arc<dyn Game>,
    shape: Shape,
    how: How,
}

impl Changed {
    fn new(task: &str, seed: u64, how: How) -> Changed {
        let game = Catalog.game(task, seed).unwrap();
        let mut shape = game.shape().clone();
        match how {
            How::Affine { factor, offset } => {
                let steps = i64::from(offset) * i64::from(shape.horizon);
                shape.reward_min = shape.reward_min * factor + offset;
                shape.reward_max = shape.reward_max * factor + offset;
                shape.return_min = shape.return_min * i64::from(factor) + steps;
                shape.return_max = shape.return_max * i64::from(factor) + steps;
            }
            How::Stretched => {
                shape.reward_max += shape.reward_max - shape.reward_min;
                shape.return_max += shape.return_max - shape.return_min;
            }
            How::Duplicated => shape.actions *= 2,
            How::Dummy(count) => {
                shape.actions += count;
                shape.return_min =
                    shape.return_min.min(i64::from(shape.reward_min) * i64::from(shape.horizon));
            }
            How::Delayed(steps) => {
                assert!((shape.reward_min..=shape.reward_max).contains(&0), "{task} never pays nothing");
                shape.horizon += steps;
            }
        }
        Changed { game, shape, how }
    }

    /// The mean return of the changed game; episodes with an offset have as many steps as the horizon.
    fn value(&self, value: Value) -> Value {
        let How::Affine { factor, offset } = self.how else { return value };
        let steps = i64::from(offset) * i64::from(self.shape.horizon);
        Value::exact(
            Fixed::from_raw(value.mean.to_raw() * i64::from(factor)).plus(Fixed::from_int(steps as i32)),
        )
    }
}

impl Game for Changed {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        let inner = self.game.start();
        Box::new(World { inner, shape: self.shape.clone(), how: self.how, taken: 0 })
    }

    fn optimum(&self) -> Value {
        self.value(self.game.optimum())
    }

    fn random(&self) -> Value {
        self.value(self.game.random())
    }

    fn steps(&self) -> Steps {
        match (self.game.steps(), self.how) {
            (Steps::Drawn(mean), How::Delayed(steps)) => {
                Steps::Drawn(mean.plus(Fixed::from_int(steps as i32)))
            }
            (steps, _) => steps,
        }
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        Box::new(Knowing {
            inner: self.game.oracle(),
            actions: self.game.shape().actions,
            how: self.how,
            taken: 0,
        })
    }
}

struct World {
    inner: Box<dyn Environment + Send>,
    shape: Shape,
    how: How,
    taken: u32,
}

impl Environment for World {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.taken = 0;
        self.inner.reset(seed)
    }

    fn observation(&self) -> &Bits {
        self.inner.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        self.taken += 1;
        let actions = self.inner.shape().actions;
        let lowest = self.inner.shape().reward_min;
        Ok(match self.how {
            How::Affine { factor, offset } => {
                let outcome = self.inner.step(action)?;
                Outcome { reward: outcome.reward * factor + offset, ..outcome }
            }
            How::Duplicated => self.inner.step(action % actions)?,
            How::Dummy(_) if actions <= action => Outcome { reward: lowest, ..self.inner.step(0)? },
            How::Delayed(steps) if self.taken <= steps => Outcome { reward: 0, done: false, bad: false },
            How::Stretched | How::Dummy(_) | How::Delayed(_) => self.inner.step(action)?,
        })
    }
}

struct Knowing {
    inner: Box<dyn Oracle>,
    actions: u16,
    how: How,
    taken: u32,
}

impl Oracle for Knowing {
    fn begin(&mut self, seed: u64) {
        self.taken = 0;
        self.inner.begin(seed);
    }

    fn act(&mut self, observation: &Bits) -> u16 {
        self.inner.act(observation)
    }

    fn see(&mut self, action: u16, outcome: &Outcome) {
        self.taken += 1;
        match self.how {
            How::Affine { factor, offset } => {
                self.inner.see(action, &Outcome { reward: (outcome.reward - offset) / factor, ..*outcome });
            }
            How::Delayed(steps) if self.taken <= steps => {}
            How::Dummy(_) if self.actions <= action => self.inner.see(0, outcome),
            _ => self.inner.see(action % self.actions, outcome),
        }
    }
}

/// Keeps the actions of a run.
#[derive(Default)]
struct Actions(Vec<u16>);

impl Witness for Actions {
    fn incumbent_changed(&mut self, _: &Agent, _: &str, _: &Tally) {}

    fn decided(&mut self, _: &Decision, _: Option<&AcceptedPatch>) {}

    fn played(&mut self, episode: &Episode, _: u64, _: &Digest) {
        self.0.extend(episode.steps.iter().map(|step| step.action));
    }

    fn tick(&mut self, _: &Tally) -> bool {
        true
    }
}

/// All actions of a run with this budget.
fn actions(game: &dyn Game, budget: u64) -> Vec<u16> {
    let mut actions = Actions::default();
    let settings = Settings { budget, ..Settings::new(5) };
    let mut learner = Learner::new(game.shape(), settings).unwrap();
    learner.run(game.start().as_mut(), &mut actions).unwrap();
    actions.0
}

fn solved(game: &dyn Game, seed: u64, budget: u64) -> Solution {
    solve(game, Settings { budget, ..Settings::new(seed) }, &mut |_| true).unwrap()
}

/// Worlds of one step and of many, with chance, with memory and with BAD steps. Where rewards are graded, shares of explained
/// variance are rounded, and a share at a threshold may fall on the other side of it.
const WORLDS: [(&str, u64); 9] = [
    ("parity{n=8}", 1_500),
    ("bandit{arms=4}", 3_000),
    ("contextual_bandit{context_bits=2,noise_bits=2,arms=3}", 4_000),
    ("copy{length=4}", 3_000),
    ("dyck{types=1,depth=3,length=10}", 3_000),
    ("safety_grid{size=4}", 4_000),
    ("nonstationary_bandit", 3_000),
    ("transducer{states=2,inputs=2,outputs=2,horizon=8}", 3_000),
    ("stack_machine{depth=3,horizon=12}", 3_000),
];

#[test]
fn rewards_on_another_scale_lead_to_the_same_actions() {
    for (task, budget) in WORLDS {
        let game = Catalog.game(task, 5).unwrap();
        let plain = actions(game.as_ref(), budget);
        for factor in [2, 3, 10] {
            let changed = Changed::new(task, 5, How::Affine { factor, offset: 0 });
            let found = actions(&changed, budget);
            let differs = plain.iter().zip(&found).position(|(one, other)| one != other);
            assert!(
                plain == found,
                "{task} times {factor}: {} and {} steps, {differs:?}",
                plain.len(),
                found.len()
            );
        }
    }
}

/// The comparison above sees a difference where there is one.
#[test]
fn a_range_that_is_declared_wider_leads_to_other_actions() {
    let differs = |(task, budget): (&str, u64)| {
        let game = Catalog.game(task, 5).unwrap();
        actions(game.as_ref(), budget) != actions(&Changed::new(task, 5, How::Stretched), budget)
    };
    assert!(WORLDS.into_iter().take(3).any(differs));
}

#[test]
fn an_amount_added_to_every_reward_leads_to_the_same_actions_where_episodes_have_one_length() {
    let mut tried = 0;
    for (task, budget) in WORLDS {
        let game = Catalog.game(task, 5).unwrap();
        let horizon = game.shape().horizon;
        // Elsewhere the sum of an episode tells how long it was, and a longer one may be worth more.
        if game.steps() != Steps::Drawn(Fixed::from_int(horizon as i32)) {
            continue;
        }
        tried += 1;
        let plain = actions(game.as_ref(), budget);
        for (factor, offset) in [(1, -1_000), (1, 7_000), (3, 500)] {
            let found = actions(&Changed::new(task, 5, How::Affine { factor, offset }), budget);
            let differs = plain.iter().zip(&found).position(|(one, other)| one != other);
            assert!(
                plain == found,
                "{task} times {factor} plus {offset}: {} steps, {differs:?}",
                plain.len()
            );
        }
    }
    assert!(4 <= tried, "{tried}");
}

/// Solves the changed world within so many steps.
fn check(game: &dyn Game, what: &str, steps_max: u64) {
    let solution = solved(game, 5, steps_max);
    assert!(solution.is_solved(), "{what}: {:?} within {steps_max} steps", solution.score());
}

#[test]
fn actions_that_come_twice_or_are_of_no_use_are_seen_through() {
    for (task, steps_max) in [
        ("parity{n=8}", 600),
        ("majority{n=7}", 600),
        ("compare{bits=5}", 800),
        ("bandit{arms=4}", 400),
        ("contextual_bandit{context_bits=2,noise_bits=2,arms=3}", 3_000),
        ("copy{length=4}", 30_000),
        ("safety_grid{size=4}", 4_000),
    ] {
        for how in [How::Duplicated, How::Dummy(1), How::Dummy(3)] {
            check(&Changed::new(task, 5, how), &format!("{task} {how:?}"), steps_max);
        }
    }
}

#[test]
fn a_start_that_is_delayed_is_waited_for() {
    for (task, steps_max) in [
        ("parity{n=8}", 800),
        ("majority{n=7}", 1_200),
        ("compare{bits=5}", 2_400),
        ("bandit{arms=4}", 600),
        ("copy{length=4}", 8_000),
        ("safety_grid{size=4}", 10_000),
        ("transducer{states=2,inputs=2,outputs=2,horizon=8}", 40_000),
    ] {
        for how in [How::Delayed(1), How::Delayed(3)] {
            check(&Changed::new(task, 5, how), &format!("{task} {how:?}"), steps_max);
        }
    }
}

#[test]
fn bits_in_another_order_and_turned_around_are_learned_from() {
    for (task, steps_max) in [
        ("parity{n=8,scramble=bits}", 400),
        ("majority{n=7,scramble=bits}", 600),
        ("bandit{arms=4,scramble=bits}", 400),
        ("contextual_bandit{context_bits=2,noise_bits=2,arms=3,scramble=bits}", 4_000),
        ("copy{length=4,scramble=bits}", 4_000),
        ("safety_grid{size=4,scramble=bits}", 8_000),
    ] {
        check(Catalog.game(task, 5).unwrap().as_ref(), task, steps_max);
    }
}

/// The four tests above fail for a learner that makes no circuits: their bounds ask for something.
#[test]
fn without_synthesis_the_changed_worlds_are_not_learned_within_the_same_bounds() {
    let is_learned = |game: &dyn Game, budget| {
        let settings = Settings { budget, ..Settings::new(5) }.with(|config| config.synthesis = false);
        solve(game, settings, &mut |_| true).unwrap().is_solved()
    };
    for (how, steps_max) in [(How::Duplicated, 600), (How::Dummy(3), 600), (How::Delayed(3), 800)] {
        assert!(!is_learned(&Changed::new("parity{n=8}", 5, how), steps_max), "{how:?}");
    }
    let game = Catalog.game("parity{n=8,scramble=bits}", 5).unwrap();
    assert!(!is_learned(game.as_ref(), 400), "bits in another order");
}
