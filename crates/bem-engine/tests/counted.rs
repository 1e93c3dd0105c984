//! A world that counts what reaches it: every step was chosen by the machine, and every change of what acts was a patch.
//!
//! The machine counts its choices, the world the actions that it is given; neither knows of the other. Clauses: VM-16, SCC-8.

use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_engine::learner::{Learner, Settings};
use bem_games::compose::{NoPrograms, TaskTree};

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
