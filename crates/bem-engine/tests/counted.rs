//! A world that counts what reaches it: every step was chosen by the machine, and every change of what acts was a patch.
//!
//! The machine counts its choices, the world the actions that it is given; neither knows of the other. Searches count their word
//! operations, which steps must pay for however wide and noisy a world is. Clauses: VM-16, SCC-8.

use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Outcome, Shape};
use bem_base::prng::Prng;
use bem_engine::agent::Agent;
use bem_engine::learner::{Decision, Learner, Settings, Tally, Witness};
use bem_evolve::verify::AcceptedPatch;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_synth::models::control::memory_search::RECALL_WORK;

struct Counting {
    inner: Box<dyn Environment + Send>,
    steps: u64,
}

impl Environment for Counting {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.inner.reset(seed)
    }

    fn observation(&self) -> &Bits {
        self.inner.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        self.steps += 1;
        self.inner.step(action)
    }
}

#[test]
fn every_step_that_a_world_takes_was_chosen_by_the_machine() {
    let mut changes = 0;
    for task in ["bandit", "dyck", "safety_grid", "contextual_bandit", "transducer", "nonstationary_bandit"] {
        let game = TaskTree::parse(task).unwrap().build(3, &NoPrograms).unwrap();
        let mut world = Counting { inner: game.start(), steps: 0 };
        let settings = Settings { budget: 4_000, ..Settings::new(3) };
        let learned = Learner::new(game.shape(), settings).unwrap().run(&mut world, &mut ()).unwrap();
        let tally = learned.tally;
        assert_eq!((world.steps, tally.steps), (tally.steps_by_machine, tally.steps_by_machine), "{task}");
        assert_eq!(tally.acting_changes, tally.acting_changes_patched, "{task}");
        changes += tally.acting_changes;
    }
    assert!(5 < changes, "{changes}");
}

/// Twelve steps of 256 random bits; what they pay is random too.
struct Coins {
    shape: Shape,
    prng: Prng,
    seen: Bits,
    time: u32,
}

impl Coins {
    fn new() -> Coins {
        let shape = Shape {
            observation_bits: 256,
            actions: 2,
            fields: (0..256).map(|low| Field { low, width: 1 }).collect(),
            horizon: 12,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 12_000,
        };
        Coins { shape, prng: Prng::stream(0, "coins"), seen: Bits::ZERO, time: 0 }
    }

    fn toss(&mut self) {
        self.seen = Bits(core::array::from_fn(|_| self.prng.next_u64()));
    }
}

impl Environment for Coins {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        (self.prng, self.time) = (Prng::stream(seed, "coins"), 0);
        self.toss();
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.seen
    }

    fn step(&mut self, _: u16) -> Result<Outcome, EnvironmentError> {
        let reward = self.prng.below(1_001) as i32;
        self.toss();
        self.time += 1;
        Ok(Outcome { reward, done: self.time == self.shape.horizon, bad: false })
    }
}

/// Word operations of the costliest round, which has one search at most.
#[derive(Default)]
struct Rounds {
    before: u64,
    largest: u64,
    searched: u32,
}

impl Witness for Rounds {
    fn incumbent_changed(&mut self, _: &Agent, _: &str, _: &Tally) {}

    fn decided(&mut self, _: &Decision, _: Option<&AcceptedPatch>) {}

    fn tick(&mut self, tally: &Tally) -> bool {
        let work = tally.work - self.before;
        (self.before, self.largest) = (tally.work, self.largest.max(work));
        self.searched += u32::from(0 < work);
        true
    }
}

#[test]
fn a_run_among_256_random_bits_searches_no_more_than_its_steps_pay_for() {
    const STEPS: u64 = 5_000;
    // What a search is given, and what every step of experience pays for.
    const GIVEN: u32 = 20_000_000;
    const PAID: u64 = 1_000_000;
    let settings = Settings { budget: STEPS, ..Settings::new(5) }
        .with(|config| (config.until_budget, config.search_work_max) = (true, GIVEN));
    let (mut world, mut rounds) = (Coins::new(), Rounds::default());
    let learner = Learner::new(&world.shape, settings);
    let learned = learner.expect("the world fits").run(&mut world, &mut rounds).expect("coins do not fail");
    let (tally, search_max) = (learned.tally, 3 * u64::from(GIVEN) + RECALL_WORK);
    assert!(STEPS <= tally.steps && 5 < rounds.searched, "{tally:?}");
    assert!(rounds.largest <= search_max, "{} in one search, {search_max} allowed", rounds.largest);
    // The last search may owe what steps have not paid yet.
    assert!(tally.work <= PAID * STEPS + search_max, "{} in {STEPS} steps", tally.work);
}
