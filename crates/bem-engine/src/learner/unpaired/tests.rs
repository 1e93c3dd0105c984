//! A learner in worlds that cannot be repeated, that pay late, that pay nothing, and that pay more than they said.

use super::*;
use crate::learner::Settings;
use crate::solve::{Solution, solve};
use crate::state::SavedLearner;
use bem_base::environment::{Bits, Field, Late, Outcome, Shape};
use bem_base::prng::Prng;
use bem_games::catalog;
use bem_games::game::Game;
use bem_games::wrappers::{Terms, on_terms};
use bem_learn::index::ArmStatistics;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc as Shared;

fn game(family: &str, params: &[(&str, &str)]) -> Shared<dyn Game> {
    let texts: BTreeMap<String, String> =
        params.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let family = catalog::family(family).unwrap();
    catalog::build(family, &catalog::settings(family, &texts).unwrap(), 3).unwrap()
}

fn learned(game: Shared<dyn Game>, terms: Terms, budget: u64) -> Solution {
    let settings = Settings { budget, ..Settings::new(3) };
    solve(on_terms(game, terms).as_ref(), settings, &mut |_| true).unwrap()
}

const UNREPEATED: Terms = Terms { unrepeated: true, delay: 0 };

/// A world that says that it cannot be repeated, or claims that it can, and keeps account of what is asked of it.
struct Strict {
    inner: Box<dyn Environment + Send>,
    claims: bool,
    seeds: BTreeSet<u64>,
    is_open: bool,
    resets: u64,
}

impl Strict {
    fn new(game: &dyn Game, claims: bool) -> Strict {
        Strict { inner: game.start(), claims, seeds: BTreeSet::new(), is_open: false, resets: 0 }
    }
}

impl Environment for Strict {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn repeats(&self) -> bool {
        self.claims
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        assert!(self.claims || !self.is_open, "an episode is left before its end");
        assert!(self.seeds.insert(seed) || self.claims, "a seed comes twice");
        (self.is_open, self.resets) = (true, self.resets + 1);
        self.inner.reset(self.resets)
    }

    fn observation(&self) -> &Bits {
        self.inner.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let outcome = self.inner.step(action)?;
        self.is_open = !outcome.done;
        Ok(outcome)
    }
}

#[test]
fn nothing_is_peeked_at_or_repeated_where_a_world_cannot_be_repeated() {
    for (family, params) in [
        ("parity", &[("n", "8")][..]),
        ("signaling", &[]),
        ("copy", &[("length", "4")]),
        ("dyck", &[("types", "1"), ("depth", "2"), ("length", "8")]),
    ] {
        let game = game(family, params);
        let mut world = Strict::new(game.as_ref(), false);
        let settings = Settings { budget: 3_000, ..Settings::new(5) };
        let mut learner = Learner::new(world.shape(), settings).unwrap();
        let learned = learner.run(&mut world, &mut ()).unwrap();
        let tally = learned.tally;
        assert_eq!((tally.unplayed, tally.repetition), (0, Repetition::Denied), "{family}");
        assert_eq!((tally.resets, tally.resets), (tally.episodes, world.resets), "{family}");
        assert_eq!(tally.steps, tally.steps_by_machine);
        assert!(0 < tally.applied, "{family}: something is let in without pairs");
    }
}

#[test]
fn one_mismatch_voids_all_pairs_and_the_run_goes_on_without_them() {
    let game = game("copy", &[("length", "4")]);
    let mut world = Strict::new(game.as_ref(), true);
    let mut learner = Learner::new(world.shape(), Settings { budget: 6_000, ..Settings::new(5) }).unwrap();
    let learned = learner.run(&mut world, &mut ()).unwrap();
    assert_eq!(learned.tally.repetition, Repetition::Refuted);
    assert!(0 < learned.tally.applied);
    // The control: the same world with honest seeds is never suspected.
    let honest = solve(game.as_ref(), Settings { budget: 6_000, ..Settings::new(5) }, &mut |_| true).unwrap();
    assert_eq!(honest.learned.tally.repetition, Repetition::Claimed);
    assert_eq!(honest.learned.tally.abandoned, 0);
}

#[test]
fn worlds_are_solved_without_pairs() {
    for (family, params, budget) in [
        ("parity", &[("n", "16")][..], 2_000),
        ("majority", &[("n", "9")], 2_000),
        ("copy", &[("length", "4")], 8_000),
        ("contextual_bandit", &[("context_bits", "2"), ("noise_bits", "2"), ("arms", "3")], 20_000),
    ] {
        let solution = learned(game(family, params), UNREPEATED, budget);
        assert!(solution.is_solved(), "{family}: {:?} {}", solution.score(), solution.learned.words);
        let again = learned(game(family, params), UNREPEATED, budget);
        assert_eq!(again.learned.chain_head, solution.learned.chain_head, "{family}");
    }
}

#[test]
fn rewards_that_come_late_are_entered_at_their_own_step() {
    // Every reward is the action, so that the log can be checked without knowing the world.
    struct Echo {
        shape: Shape,
        actions: Vec<u16>,
        late: Vec<Late>,
        loses: bool,
    }
    impl Environment for Echo {
        fn shape(&self) -> &Shape {
            &self.shape
        }
        fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
            self.actions.clear();
            self.late.clear();
            Ok(())
        }
        fn observation(&self) -> &Bits {
            &Bits::ZERO
        }
        fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
            self.actions.push(action);
            let done = self.actions.len() == 6;
            // All come with the last step, in reverse order; some never.
            self.late.clear();
            if done {
                let steps = (0..5).rev().filter(|step| !(self.loses && *step == 2));
                let late = |step: usize| Late { step: step as u32, reward: i32::from(self.actions[step]) };
                self.late = steps.map(late).collect();
            }
            Ok(Outcome { reward: if done { i32::from(action) } else { 0 }, done, bad: false })
        }
        fn is_awaited(&self) -> bool {
            self.actions.len() < 6
        }
        fn late(&self) -> &[Late] {
            &self.late
        }
    }
    for loses in [false, true] {
        let shape =
            Shape { horizon: 6, return_max: 12, reward_max: 2, ..game("bandit", &[]).shape().clone() };
        let mut world = Echo { shape: shape.clone(), actions: Vec::new(), late: Vec::new(), loses };
        let mut learner = Learner::new(&shape, Settings { budget: 600, ..Settings::new(1) }).unwrap();
        learner.run(&mut world, &mut ()).unwrap();
        let mut episodes = 0;
        for episode in learner.experience.episodes() {
            episodes += 1;
            for (place, step) in episode.steps.iter().enumerate() {
                let lost = loses && place == 2;
                assert_eq!(step.reward, if lost { 0 } else { i32::from(step.action) }, "step {place}");
            }
        }
        let tally = learner.tally();
        assert!(0 < episodes && tally.expired == if loses { tally.episodes } else { 0 }, "{tally:?}");
        assert_eq!(tally.late, tally.episodes * if loses { 4 } else { 5 });
        // The machine's own statistics know the same: means are those of the actions.
        let family = learner.machinery.family();
        assert!(0 < family.plain()[0].selections_total());
    }
}

#[test]
fn delayed_rewards_change_nothing_that_is_learned_where_episodes_are_judged_as_wholes() {
    let plain = learned(game("copy", &[("length", "4")]), Terms::default(), 8_000);
    let late = learned(game("copy", &[("length", "4")]), Terms { delay: 3, ..Terms::default() }, 8_000);
    assert!(plain.is_solved() && late.is_solved(), "{}", late.learned.words);
    assert!(0 < late.learned.tally.late && late.learned.tally.expired == 0);
}

#[test]
fn an_episode_in_flight_is_abandoned_where_it_cannot_be_resumed() {
    let game = on_terms(game("copy", &[("length", "4")]), UNREPEATED);
    let mut world = game.start();
    let mut learner = Learner::new(world.shape(), Settings { budget: 3_000, ..Settings::new(2) }).unwrap();
    let mut abandoned = 0;
    for _ in 0..40 {
        for _ in 0..97 {
            learner.advance(world.as_mut(), &mut ()).unwrap();
        }
        abandoned += u64::from(learner.is_in_episode());
        world = game.start();
        learner = Learner::restore(&learner.encode(), world.as_mut()).unwrap();
        assert!(!learner.is_in_episode());
        assert_eq!(learner.tally().abandoned, abandoned);
    }
    assert!(0 < abandoned);
    assert_eq!(learner.tally().steps, learner.machinery.steps());
}

#[test]
fn what_is_paid_beyond_the_range_widens_it_and_the_run_goes_on() {
    // The second action pays three times what was said, now and then.
    struct Generous(Shape, u64);
    impl Environment for Generous {
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
            let reward = match action {
                0 => 600,
                1 if self.1.is_multiple_of(3) => 3_000,
                _ => 0,
            };
            self.0.cover_reward(reward);
            self.0.cover_return(i64::from(reward));
            Ok(Outcome { reward, done: true, bad: false })
        }
    }
    let shape = Shape {
        actions: 2,
        reward_max: 1_000,
        return_max: 1_000,
        ..game("bandit", &[("arms", "2")]).shape().clone()
    };
    let mut world = Generous(shape.clone(), 0);
    let mut learner = Learner::new(&shape, Settings { budget: 4_000, ..Settings::new(1) }).unwrap();
    let learned = learner.run(&mut world, &mut ()).unwrap();
    assert_eq!((learned.tally.widened, learner.shape.return_max), (1, 3_000));
    assert_eq!(learner.machinery.family().shape().reward_max, 3_000);
    let frozen = learner.machinery.frozen().replay([&Episode {
        serial: 0,
        steps: vec![learner.experience.episodes().next().unwrap().steps[0]],
    }]);
    assert_eq!(frozen[0], [1], "1,000 a step on average is more than 600: {}", learned.words);
}

#[test]
fn a_wider_range_leaves_the_means_of_actions_and_the_step_that_was_too_large_counts_at_once() {
    // Rewards within what was said, until the second action pays three times as much for good.
    struct Lavish(Shape, Prng, u64);
    const ORDINARY: u64 = 1_500;
    impl Environment for Lavish {
        fn shape(&self) -> &Shape {
            &self.0
        }
        fn repeats(&self) -> bool {
            false
        }
        fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
            Ok(())
        }
        fn observation(&self) -> &Bits {
            &Bits::ZERO
        }
        fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
            self.2 += 1;
            let is_large = ORDINARY < self.2 && action == 1;
            let reward = if is_large { 3_000 } else { self.1.below(1_001) as i32 };
            self.0.cover_reward(reward);
            self.0.cover_return(i64::from(reward));
            Ok(Outcome { reward, done: true, bad: false })
        }
    }
    let shape =
        Shape { reward_max: 1_000, return_max: 1_000, ..game("bandit", &[("arms", "3")]).shape().clone() };
    let mut world = Lavish(shape.clone(), Prng::stream(4, "lavish"), 0);
    // An alarm would forget what came before the change.
    let settings = Settings { budget: 4_000, ..Settings::new(4) }
        .with(|config| (config.until_budget, config.alarms) = (true, false));
    let mut learner = Learner::new(&shape, settings).unwrap();
    // Visits of every action and the mean of what they brought in milli-units, without the imagined one at a half.
    let means = |learner: &Learner| -> Vec<(u32, i128)> {
        let (low, high) = (i128::from(learner.shape.reward_min), i128::from(learner.shape.reward_max));
        let arms = learner.machinery.family().plain()[0].arms();
        let mean = |arm: &ArmStatistics| {
            let (visits, lost) = (arm.visits - 1, i128::from(arm.loss_sum) - (1 << 31));
            (visits, high - ((lost * (high - low) / i128::from(visits.max(1))) >> 32))
        };
        arms.iter().map(mean).collect()
    };
    let steps = |means: &[(u32, i128)]| means.iter().map(|(visits, _)| *visits as usize).sum::<usize>();
    let before = loop {
        let before = means(&learner);
        learner.advance(&mut world, &mut ()).unwrap();
        if learner.tally().widened == 1 {
            break before;
        }
    };
    let after = means(&learner);
    assert_eq!(learner.shape.reward_max, 3_000);
    // Nothing is counted again: the step that was too large counts beside all others.
    assert_eq!((steps(&before) + 1, steps(&after)), (learner.experience.step_count(), steps(&before) + 1));
    for (action, ((visits, mean), (visits_after, mean_after))) in before.iter().zip(&after).enumerate() {
        let (large, count) = (i128::from(action == 1), i128::from(*visits));
        assert_eq!(count + large, i128::from(*visits_after));
        let mean = (mean * count + large * 3_000) / (count + large);
        assert!(16 < count && mean.abs_diff(*mean_after) <= 2, "{before:?} {after:?}");
    }
    learner.run(&mut world, &mut ()).unwrap();
    let last = means(&learner);
    assert_eq!(steps(&last), learner.experience.step_count());
    assert!(1_500 < last[1].1 && last[0].1 < 900 && last[2].1 < 900, "{last:?}");
}

#[test]
fn a_wider_range_keeps_what_explores_and_the_learner_can_be_saved_in_the_middle_of_the_episode() {
    // Whoever goes right three times is paid and stands at the start again.
    struct Corridor {
        shape: Shape,
        seen: Bits,
        left: u32,
        total: i64,
        pays: i32,
    }
    impl Environment for Corridor {
        fn shape(&self) -> &Shape {
            &self.shape
        }
        fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
            (self.seen, self.left, self.total) = (Bits::ZERO, self.shape.horizon, 0);
            Ok(())
        }
        fn observation(&self) -> &Bits {
            &self.seen
        }
        fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
            let place = &mut self.seen.0[0];
            *place = if action == 1 { *place + 1 } else { place.saturating_sub(1) };
            let reward = if *place == 3 { self.pays } else { 0 };
            *place %= 3;
            (self.left, self.total) = (self.left - 1, self.total + i64::from(reward));
            self.shape.cover_reward(reward);
            self.shape.cover_return(self.total);
            Ok(Outcome { reward, done: self.left == 0, bad: false })
        }
    }
    let shape = Shape {
        observation_bits: 2,
        actions: 2,
        horizon: 8,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 2_000,
        fields: vec![Field { low: 0, width: 2 }],
    };
    let mut world = Corridor { shape: shape.clone(), seen: Bits::ZERO, left: 0, total: 0, pays: 1_000 };
    let settings = Settings { budget: 8_000, ..Settings::new(5) }.with(|config| config.until_budget = true);
    let mut learner = Learner::new(&shape, settings).unwrap();
    while learner.exploration.explorer().is_none() {
        assert!(learner.tally().steps < 4_000, "counts of three places make an explorer");
        learner.advance(&mut world, &mut ()).unwrap();
    }
    world.pays = 3_000;
    while learner.tally().widened == 0 {
        assert!(learner.tally().steps < 6_000);
        learner.advance(&mut world, &mut ()).unwrap();
    }
    assert_eq!((learner.shape.reward_max, learner.exploration.explorer().is_some()), (3_000, true));
    let read = SavedLearner::parse(&learner.encode(), &world.shape);
    assert!(read.is_ok(), "{:?}", read.err());
    let learned = learner.run(&mut world, &mut ()).unwrap();
    assert_eq!(learned.tally.steps, 8_000);
    assert_eq!(learner.shape.return_max, 6_000);
}
