//! A drawn world that changes, for what alarms are worth: of one step, few contexts, and best actions that change five times.
//!
//! It stands beside the drawn kinds and is none of them: what it pays for an episode depends on how many there were before, so
//! that it is no game, and what is asked of the kinds is not asked of it. The last change only raises actions that earned little
//! until then. What is scored are chances, so that no luck of the draws is in it. Must not know learning. Clauses: VM-16, GLE-1.

use super::{Played, STEADY_MIN};
use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::prng::Prng;

/// The name in reports.
pub const NAME: &str = "changing";
/// What it is about, in a few words.
pub const ABOUT: &str = "a best action that changes five times, once because an idle one rises";
/// Parts of equal length.
const PHASES: usize = 6;
/// Chances to be paid, in percent: of the best action, of all others at most, and of the one that rises.
const BEST: u64 = 60;
const OTHERS: [u64; 3] = [20, 30, 40];
const RISEN: u64 = 90;

/// One world.
pub struct Changing {
    shape: Shape,
    prng: Prng,
    /// Chances by phase, context and action.
    chances: Vec<Vec<Vec<u64>>>,
    seen: u64,
    taken: u64,
    steps: u64,
    /// What was earned, what could have been and what random play earns, in percent: in the first half and in the second.
    sums: [[f64; 3]; 2],
    /// The last step after which the score over everything so far was below what is asked to stay.
    below: u64,
}

/// The score of what was earned, where so much could have been and random play earns so much.
fn score([earned, best, random]: [f64; 3]) -> f64 {
    (earned - random) / (best - random).max(1.0)
}

impl Changing {
    /// The world of a seed, that changes within so many steps.
    pub fn draw(seed: u64, steps: u64) -> Changing {
        let mut prng = Prng::stream(seed, NAME);
        let (bits, actions) = (prng.below(3) as u16, 2 + prng.below(4) as u16);
        let shape = Shape {
            observation_bits: bits,
            actions,
            fields: Vec::new(),
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
        };
        let mut chances = vec![first(1 << bits, usize::from(actions), &mut prng)];
        while chances.len() < PHASES {
            let is_last = chances.len() + 1 == PHASES;
            let next = after(&chances[chances.len() - 1], is_last, &mut prng);
            chances.push(next);
        }
        Changing { shape, prng, chances, seen: 0, taken: 0, steps, sums: [[0.0; 3]; 2], below: 0 }
    }

    /// What was played, in so many seconds.
    pub fn played(&self, seconds: f64) -> Played {
        let steady = (self.below < self.taken).then_some(self.below + 1);
        Played { score: score(self.whole()), last_half: Some(score(self.sums[1])), steady, seconds }
    }

    /// The sums of both halves.
    fn whole(&self) -> [f64; 3] {
        let [first, second] = self.sums;
        core::array::from_fn(|part| first[part] + second[part])
    }

    fn now(&self) -> &[u64] {
        let phase = self.taken * PHASES as u64 / self.steps.max(1);
        &self.chances[(phase as usize).min(PHASES - 1)][self.seen as usize]
    }
}

/// The chances of the first phase.
fn first(contexts: usize, actions: usize, prng: &mut Prng) -> Vec<Vec<u64>> {
    let of_context = |_| {
        let mut chances: Vec<u64> =
            (0..actions).map(|_| OTHERS[prng.below(OTHERS.len() as u64) as usize]).collect();
        chances[prng.below(actions as u64) as usize] = BEST;
        chances
    };
    (0..contexts).map(of_context).collect()
}

/// Those of the next: in one context, and in every other with equal chance, the best action becomes another, or one that was
/// not the best rises above it.
fn after(before: &[Vec<u64>], is_last: bool, prng: &mut Prng) -> Vec<Vec<u64>> {
    let surely = prng.below(before.len() as u64) as usize;
    let mut next = before.to_vec();
    for (context, chances) in next.iter_mut().enumerate() {
        if context != surely && prng.bit() {
            continue;
        }
        let best = (0..chances.len()).max_by_key(|action| chances[*action]).unwrap_or(0);
        let other = (best + 1 + prng.below(chances.len() as u64 - 1) as usize) % chances.len();
        match is_last {
            true => chances[other] = RISEN,
            false => chances.swap(best, other),
        }
    }
    next
}

impl Environment for Changing {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn repeats(&self) -> bool {
        false
    }

    fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
        self.seen = self.prng.below(1 << self.shape.observation_bits);
        Ok(())
    }

    fn observation(&self) -> &Bits {
        const SEEN: [Bits; 4] = [Bits::ZERO, Bits([1, 0, 0, 0]), Bits([2, 0, 0, 0]), Bits([3, 0, 0, 0])];
        &SEEN[self.seen as usize]
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let chances = self.now();
        let (chance, best) = (chances[usize::from(action)], chances.iter().max().copied().unwrap_or(0));
        let random = chances.iter().sum::<u64>() as f64 / chances.len() as f64;
        let half = usize::from(self.steps / 2 <= self.taken);
        for (sum, part) in self.sums[half].iter_mut().zip([chance as f64, best as f64, random]) {
            *sum += part;
        }
        self.taken += 1;
        if score(self.whole()) < STEADY_MIN {
            self.below = self.taken;
        }
        Ok(Outcome { reward: 1_000 * i32::from(self.prng.below(100) < chance), done: true, bad: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_actions_change_in_every_phase_and_rise_in_the_last() {
        for seed in 0..50 {
            let world = Changing::draw(seed, 600);
            assert_eq!(world.chances.len(), PHASES);
            let best = |chances: &Vec<u64>| (0..chances.len()).max_by_key(|action| chances[*action]);
            for (phase, pair) in world.chances.windows(2).enumerate() {
                let changed =
                    pair[0].iter().zip(&pair[1]).filter(|(before, after)| best(before) != best(after));
                assert!(0 < changed.count(), "seed {seed}, phase {phase}");
            }
            let (before, last) = (&world.chances[PHASES - 2], &world.chances[PHASES - 1]);
            let fell = |(before, after): (&u64, &u64)| after < before;
            assert!(!before.iter().flatten().zip(last.iter().flatten()).any(fell), "seed {seed}");
        }
    }

    #[test]
    fn who_knows_the_chances_scores_one_and_one_who_does_not_change_scores_less() {
        let score = |knows: bool| {
            let mut world = Changing::draw(7, 6_000);
            for seed in 0..6_000 {
                world.reset(seed).expect("it begins");
                let chances = world.now();
                let best = (0..chances.len()).max_by_key(|action| chances[*action]).expect("an action");
                world.step(if knows { best as u16 } else { 0 }).expect("it is played");
            }
            world.played(0.0)
        };
        let (knowing, stubborn) = (score(true), score(false));
        assert!((knowing.score - 1.0).abs() < 1e-9 && knowing.last_half == Some(knowing.score));
        assert!(knowing.steady.is_some_and(|steps| steps < 10) && stubborn.steady.is_none());
        assert!(stubborn.score < 0.7, "{}", stubborn.score);
    }
}
