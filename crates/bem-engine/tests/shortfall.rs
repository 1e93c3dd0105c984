//! What the model cannot represent, found by a whole learner: where what pays depends on a bit that nobody sees and nobody may
//! remember, acting earns less than draws have promised, and the learner says so.

use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Outcome, Shape};
use bem_base::fixed::FRACTION_BITS;
use bem_engine::learner::{Learned, Learner, Settings};

/// Two steps that look alike. The first action sets a bit that is not shown; the second step pays for action 0 if it is set.
struct Lever {
    shape: Shape,
    is_set: bool,
    time: u32,
}

impl Lever {
    fn new() -> Lever {
        let shape = Shape {
            observation_bits: 1,
            actions: 2,
            fields: vec![Field { low: 0, width: 1 }],
            horizon: 2,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
        };
        Lever { shape, is_set: false, time: 0 }
    }
}

impl Environment for Lever {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
        self.time = 0;
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &Bits::ZERO
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let is_last = self.time == 1;
        let is_paid = is_last && self.is_set && action == 0;
        (self.time, self.is_set) = (self.time + 1, action == 1);
        Ok(Outcome { reward: 1_000 * i32::from(is_paid), done: is_last, bad: false })
    }
}

/// Learns for three thousand steps, with circuits and their memory or with plain actions alone.
fn learned(remembers: bool, seed: u64) -> Learned {
    let settings = Settings { budget: 3_000, ..Settings::new(seed) }.with(|config| {
        (config.until_budget, config.synthesis, config.memory_structures) = (true, remembers, remembers);
    });
    let mut world = Lever::new();
    let learner = Learner::new(&world.shape, settings);
    learner.expect("the world fits").run(&mut world, &mut ()).expect("a lever does not fail")
}

#[test]
fn a_learner_that_cannot_remember_says_in_how_many_contexts_it_earns_less_than_was_promised() {
    for seed in 1..=3 {
        let learned = learned(false, seed);
        let short =
            learned.shortfall.unwrap_or_else(|| panic!("seed {seed} finds nothing: {}", learned.words));
        assert!(0 < short.contexts && short.contexts <= short.compared, "seed {seed}: {short:?}");
        // Draws of action 0 earn a quarter on average over both steps, and whoever does nothing else earns nothing.
        let mean = short.mean.to_raw() >> FRACTION_BITS;
        assert!((100..=500).contains(&mean), "seed {seed}: {mean}");
    }
}

#[test]
fn a_learner_that_tells_the_two_steps_apart_has_nothing_to_report() {
    for seed in 1..=3 {
        let learned = learned(true, seed);
        assert_eq!(learned.shortfall, None, "seed {seed}: {}", learned.words);
    }
}
