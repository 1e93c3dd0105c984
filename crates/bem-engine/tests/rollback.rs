//! A patch whose promise the world breaks is taken back, written down, and counted against its proposer.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its world has failed")]

use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Outcome, Shape};
use bem_base::prng::mix;
use bem_engine::agent::Agent;
use bem_engine::learner::{Decision, Event, Learner, Settings, Tally, Witness};
use bem_evolve::patch::PatchKind;
use bem_evolve::verify::AcceptedPatch;

/// Three random bits are seen at every step, and the right action is their parity; from some episode on it is the
/// opposite.
struct Fickle {
    shape: Shape,
    episodes: u32,
    faithful: u32,
    seed: u64,
    time: u32,
    observation: Bits,
}

impl Fickle {
    /// A step pays one of these, and episodes have this many steps.
    fn new(faithful: u32, [wrong, right]: [i32; 2], steps: u32) -> Fickle {
        let shape = Shape {
            observation_bits: 3,
            actions: 2,
            horizon: steps,
            reward_min: wrong,
            reward_max: right,
            return_min: i64::from(wrong) * i64::from(steps),
            return_max: i64::from(right) * i64::from(steps),
            fields: vec![Field { low: 0, width: 3 }],
        };
        Fickle { shape, episodes: 0, faithful, seed: 0, time: 0, observation: Bits::ZERO }
    }

    fn show(&mut self) {
        self.observation = Bits([mix(self.seed ^ u64::from(self.time)) & 7, 0, 0, 0]);
    }
}

impl Environment for Fickle {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.episodes += 1;
        (self.seed, self.time) = (seed, 0);
        self.show();
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let is_odd = self.observation.0[0].count_ones() % 2 == 1;
        let right = u16::from(is_odd == (self.episodes <= self.faithful));
        self.time += 1;
        self.show();
        let reward = if action == right { self.shape.reward_max } else { self.shape.reward_min };
        Ok(Outcome { reward, done: self.time == self.shape.horizon, bad: false })
    }
}

/// Episodes after which a world turns on a patch before its own returns are many enough to say that the world has changed.
const SOON: u32 = 120;

#[derive(Default)]
struct Notes {
    decisions: Vec<Decision>,
    incumbents: Vec<String>,
    records: usize,
}

impl Witness for Notes {
    fn incumbent_changed(&mut self, _: &Agent, words: &str, _: &Tally) {
        self.incumbents.push(words.to_string());
    }

    fn decided(&mut self, decision: &Decision, _: Option<&AcceptedPatch>) {
        self.decisions.push(decision.clone());
    }

    fn records(&mut self, block: &[bem_machine::trace::Record], _: &bem_base::digest::Digest) {
        self.records += block.len();
    }

    fn tick(&mut self, _: &Tally) -> bool {
        true
    }
}

fn learn(faithful: u32) -> (Tally, Notes) {
    let mut notes = Notes::default();
    let mut world = Fickle::new(faithful, [0, 1_000], 4);
    let settings = Settings { budget: 6_000, ..Settings::new(3) };
    let learned =
        Learner::new(&world.shape().clone(), settings).unwrap().run(&mut world, &mut notes).unwrap();
    (learned.tally, notes)
}

#[test]
fn a_patch_that_the_world_contradicts_is_taken_back() {
    let (tally, notes) = learn(SOON);
    assert_eq!(tally.rolled_back, 1);
    let taken_back = notes.decisions.iter().position(|decision| decision.rolled_back).unwrap();
    let decision = &notes.decisions[taken_back];
    assert_eq!(decision.kind, PatchKind::Synthesize);
    let applied =
        notes.decisions[..taken_back].iter().rfind(|earlier| earlier.serial == decision.serial).unwrap();
    assert!(applied.accepted && 0 < applied.proofs && !decision.accepted);
    assert!(decision.reason.starts_with("over "), "{}", decision.reason);
    assert!(4 * u64::from(SOON) < decision.steps, "nothing contradicts it before the world changes");
}

#[test]
fn a_world_that_changes_long_after_is_learned_anew_and_nothing_is_taken_back() {
    let (tally, notes) = learn(400);
    assert_eq!((tally.rolled_back, tally.changed), (0, 1));
    let latest = notes.decisions.iter().rfind(|decision| decision.accepted).unwrap();
    assert!(latest.kind == PatchKind::Synthesize && 4 * 400 < latest.steps, "{latest:?}");
}

#[test]
fn a_world_that_keeps_its_word_takes_nothing_back() {
    let (tally, notes) = learn(u32::MAX);
    let synthesized = |decision: &&Decision| decision.accepted && decision.kind == PatchKind::Synthesize;
    assert_eq!((tally.rolled_back, notes.decisions.iter().filter(synthesized).count()), (0, 1));
    assert!(notes.decisions.iter().all(|decision| !decision.rolled_back));
}

#[test]
fn every_step_has_its_records_whoever_chose_the_action() {
    let (tally, notes) = learn(u32::MAX);
    // A step and a reward each, an episode's end each, and one more where the action was not an expert's.
    let least = 2 * tally.steps + tally.episodes;
    assert!(least as usize <= notes.records && notes.records as u64 <= least + tally.steps);
}

#[test]
fn the_machine_may_turn_away_from_an_incumbent_before_its_watch_has_seen_enough() {
    // The longer an episode, the fewer of them the machine's own choice needs to turn to another expert.
    for seed in 1..4 {
        let mut notes = Notes::default();
        let mut world = Fickle::new(SOON, [0, 1_000], 8);
        let settings = Settings { budget: 16_000, ..Settings::new(seed) };
        let learned =
            Learner::new(&world.shape().clone(), settings).unwrap().run(&mut world, &mut notes).unwrap();
        assert_eq!(learned.tally.rolled_back, 1, "seed {seed}: {:?}", notes.incumbents);
    }
}

/// The returns of every episode are above what a mean of returns is kept as, 2^30 milli-units: the first episodes after the patch
/// promise what is watched, so that the world must keep its word a little longer.
#[test]
fn returns_beyond_what_a_mean_can_hold_are_watched_all_the_same_and_saved() {
    let mut notes = Notes::default();
    let mut world = Fickle::new(SOON + 40, [150_000_000, 250_000_000], 8);
    let settings = Settings { budget: 12_000, ..Settings::new(2) };
    let mut learner = Learner::new(&world.shape().clone(), settings).unwrap();
    for unit in 0.. {
        if learner.advance(&mut world, &mut notes).unwrap() == Event::Over {
            break;
        }
        if learner.is_in_episode() || unit % 8 != 0 {
            continue;
        }
        let bytes = learner.encode();
        // Only the shape of the world is looked at between episodes.
        let mut other = Fickle::new(SOON + 40, [150_000_000, 250_000_000], 8);
        assert!(Learner::restore(&bytes, &mut other).unwrap().encode() == bytes);
    }
    assert_eq!(learner.tally().rolled_back, 1, "{:?} {:?}", learner.tally(), notes.decisions);
}
