//! The safety override acts by every rule of the scheduler: while what acts is BAD more often than what acted before, nothing is put
//! into force, and the latest patch goes. Clauses: SCC-11.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Outcome, Shape};
use bem_base::prng::mix;
use bem_engine::learner::{Event, Learner, Settings};
use bem_machine::config::{SchedulerKind, Word};

/// Four steps an episode; the right action is the parity of the three bits that are seen. From some episode on it is the
/// opposite, and what is wrong is BAD.
struct Turncoat {
    shape: Shape,
    faithful: u32,
    episodes: u32,
    seed: u64,
    time: u32,
    observation: Bits,
}

impl Turncoat {
    fn new(faithful: u32) -> Turncoat {
        let shape = Shape {
            observation_bits: 3,
            actions: 2,
            horizon: 4,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 4_000,
            fields: vec![Field { low: 0, width: 3 }],
        };
        Turncoat { shape, faithful, episodes: 0, seed: 0, time: 0, observation: Bits::ZERO }
    }

    fn show(&mut self) {
        self.observation = Bits([mix(self.seed ^ u64::from(self.time)) & 7, 0, 0, 0]);
    }
}

impl Environment for Turncoat {
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
        let is_faithful = self.episodes <= self.faithful;
        let is_odd = self.observation.0[0].count_ones() % 2 == 1;
        let is_right = action == u16::from(is_odd == is_faithful);
        self.time += 1;
        self.show();
        let (reward, done) = (1_000 * i32::from(is_right), self.time == 4);
        Ok(Outcome { reward, done, bad: !is_right && !is_faithful })
    }
}

/// Units that the override took, and how many of them put something into force.
fn overridden(scheduler: SchedulerKind, faithful: u32) -> (u64, u32) {
    let mut world = Turncoat::new(faithful);
    let settings = Settings { budget: 8_000, ..Settings::new(3) }.with(|config| config.scheduler = scheduler);
    let mut learner = Learner::new(world.shape(), settings).unwrap();
    let (mut alarms, mut applied, mut breaches) = (0, 0, 0);
    loop {
        let event = learner.advance(&mut world, &mut ()).unwrap();
        // Whether a unit was the override's is known when the next one begins.
        if !matches!(event, Event::Stepped | Event::EpisodeBegan) {
            let now = learner.learned().scheduled.alarms;
            let is_alarmed = alarms < now;
            breaches += u32::from(is_alarmed && applied < learner.tally().applied);
            (alarms, applied) = (now, learner.tally().applied);
        }
        if event == Event::Over {
            return (alarms, breaches);
        }
    }
}

#[test]
fn the_override_acts_by_every_rule_and_nothing_is_put_into_force_while_it_does() {
    for scheduler in SchedulerKind::ALL.iter().copied() {
        let (alarms, breaches) = overridden(scheduler, 120);
        assert!(0 < alarms, "{}: the alarm was never raised", scheduler.name());
        assert_eq!(breaches, 0, "{}", scheduler.name());
        // The control: in a world that stays faithful nothing is BAD, and the override has nothing to do.
        assert_eq!(overridden(scheduler, u32::MAX).0, 0, "{}", scheduler.name());
    }
}
