//! A world whose best actions change five times: acting while learning keeps up with whoever knows the changes.
//!
//! The last change only raises actions that nobody tries any more.

use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::prng::Prng;
use bem_engine::learner::Settings;
use bem_engine::solve::solve_world;

/// Steps between two changes.
const SEGMENT: u64 = 8_000;

/// Chances to be paid, in percent: phase, context, action.
const CHANCES: [[[u64; 4]; 2]; 6] = [
    [[60, 40, 30, 20], [20, 30, 40, 60]],
    [[30, 60, 30, 20], [20, 30, 40, 60]],
    [[30, 30, 20, 60], [60, 30, 40, 20]],
    [[20, 30, 60, 20], [30, 60, 20, 20]],
    [[60, 30, 20, 20], [30, 60, 20, 20]],
    [[60, 30, 20, 90], [30, 60, 90, 20]],
];

struct Changing {
    shape: Shape,
    prng: Prng,
    seen: Bits,
    steps: u64,
    /// What was earned and what could have been, in percent, phase by phase.
    earned: [[u64; 2]; 6],
}

impl Changing {
    fn new(seed: u64) -> Changing {
        let shape = Shape {
            observation_bits: 1,
            actions: 4,
            fields: Vec::new(),
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
        };
        Changing {
            shape,
            prng: Prng::stream(seed, "changing"),
            seen: Bits::ZERO,
            steps: 0,
            earned: [[0; 2]; 6],
        }
    }
}

impl Environment for Changing {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn repeats(&self) -> bool {
        false
    }

    fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
        self.seen = Bits([self.prng.below(2), 0, 0, 0]);
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.seen
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let phase = (self.steps / SEGMENT).min(5) as usize;
        let chances = CHANCES[phase][usize::from(self.seen.get(0))];
        let chance = chances[usize::from(action)];
        self.steps += 1;
        self.earned[phase][0] += chance;
        self.earned[phase][1] += chances.iter().max().expect("there are actions");
        Ok(Outcome { reward: 1_000 * i32::from(self.prng.below(100) < chance), done: true, bad: false })
    }
}

#[test]
fn acting_keeps_up_with_five_changes_one_of_which_only_raises_idle_actions() {
    for seed in 1..=5 {
        let mut world = Changing::new(seed);
        let settings = Settings { budget: 6 * SEGMENT, ..Settings::new(seed) };
        let settings = settings.with(|config| config.until_budget = true);
        let solution = solve_world(&mut world, settings, &mut |_| true).expect("this world does not fail");
        let patches: Vec<String> = solution
            .decisions
            .iter()
            .map(|decision| format!("{} {}", decision.steps, decision.words))
            .collect();
        let share = |[earned, best]: [u64; 2]| 1_000 * earned / best;
        let all = world.earned.iter().fold([0, 0], |sum, part| [sum[0] + part[0], sum[1] + part[1]]);
        assert!(
            900 <= share(all),
            "seed {seed}: {} in all, {:?}, {patches:#?}",
            share(all),
            world.earned.map(share)
        );
        // What stays the same is kept: the fifth phase changes one context of two.
        assert!(930 <= share(world.earned[4]), "seed {seed}: {:?}", world.earned.map(share));
        let resets =
            solution.decisions.iter().filter(|decision| decision.words.starts_with("forget context"));
        assert!(resets.count() <= 16, "seed {seed} forgets what has not changed");
    }
}
