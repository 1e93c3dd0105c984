//! What the model cannot represent: contexts in which acting earns less than draws of the same action have promised.
//!
//! In a world whose rewards follow from what is seen and done, an action earns in one context the same on average, whoever
//! chose it. Where it surely earns less when what is held acts, something that matters is neither seen nor remembered, or the
//! world has changed. It is derived from the log when it is asked for, so that nothing is kept. A context is an observation.
//! Must not know what the bits mean. Clauses: VM-16, SCC-13.

use crate::learner::Learner;
use bem_base::environment::Bits;
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_synth::experience::Episode;
use bem_synth::propose;
use std::collections::BTreeMap;

/// The newest steps of the log that are looked at.
const STEPS_MAX: usize = 65_536;
/// Steps of either kind in a context before it is compared.
const STEPS_MIN: i128 = 8;
/// A context falls short by chance with one chance in this many, over all contexts.
const ERROR_ONE_IN: u64 = 20;

/// How much less is earned than was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Contexts in which surely less is earned.
    pub contexts: u32,
    /// Contexts in which both were seen often enough.
    pub compared: u32,
    /// How much less in one of their steps, on average, in milli-units.
    pub mean: Fixed,
}

/// Rewards of one action in one context.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: i128,
    sum: i128,
    squares: i128,
}

impl Sums {
    fn book(&mut self, reward: i32) {
        let reward = i128::from(reward);
        *self =
            Sums { count: self.count + 1, sum: self.sum + reward, squares: self.squares + reward * reward };
    }

    /// The sum of squared deviations from the mean, times the count.
    fn spread(&self) -> i128 {
        self.count * self.squares - self.sum * self.sum
    }
}

/// How much less a step earned than was promised, times the counts of both; nothing if that may be chance among so many.
fn falls_short(promised: &Sums, earned: &Sums, compared: u64) -> Option<i128> {
    let (n, m) = (promised.count, earned.count);
    let less = promised.sum * m - earned.sum * n;
    // Both spreads brought to n m times their own: what is left is the pooled variance, from above.
    let spread = promised.spread() * m * m + earned.spread() * n * n;
    let log = i128::from(Fixed::ln_count_floor(ERROR_ONE_IN * compared * compared).to_raw()) + 2;
    let bound = (2 * log).saturating_mul(spread / (n.min(m) - 1)) >> FRACTION_BITS;
    (0 < less && bound < less.saturating_mul(less)).then_some(less)
}

impl Learner {
    /// What is earned less than was promised; nothing where no context surely falls short.
    pub(super) fn shortfall(&self) -> Option<Shortfall> {
        let episodes = propose::recent(&self.experience, STEPS_MAX);
        shortfall(episodes.into_iter().map(|episode| (episode, self.is_held_play(episode))))
    }
}

fn shortfall<'e>(episodes: impl Iterator<Item = (&'e Episode, bool)>) -> Option<Shortfall> {
    let mut contexts: BTreeMap<(Bits, u16), [Sums; 2]> = BTreeMap::new();
    for (episode, is_held) in episodes {
        let is_drawn = episode.steps.iter().all(|step| step.uniform);
        if is_held || is_drawn {
            for step in &episode.steps {
                let sums = contexts.entry((step.observation, step.action)).or_default();
                // What was drawn and is what the incumbent would have done is a promise still.
                sums[usize::from(!is_drawn)].book(step.reward);
            }
        }
    }
    contexts.retain(|_, sums| sums.iter().all(|sums| STEPS_MIN <= sums.count));
    let compared = contexts.len() as u32;
    let (mut count, mut lost, mut steps) = (0, 0, 0);
    for [promised, earned] in contexts.values() {
        if let Some(less) = falls_short(promised, earned, u64::from(compared)) {
            count += 1;
            lost += less / promised.count;
            steps += earned.count;
        }
    }
    (0 < count).then(|| Shortfall {
        contexts: count,
        compared,
        mean: Fixed::from_raw(((lost << FRACTION_BITS) / steps) as i64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;
    use bem_synth::experience::Step;

    fn episode(seen: u64, uniform: bool, reward: i32) -> Episode {
        let step = Step {
            observation: Bits([seen, 0, 0, 0]),
            action: 1,
            reward,
            done: true,
            bad: false,
            uniform,
            propensity: u16::MAX,
        };
        Episode { serial: 1, steps: vec![step] }
    }

    /// In context c the action pays by chance c in eight when drawn, and one in eight less in the first contexts when held.
    fn log(seed: u64, short: u64) -> Vec<(Episode, bool)> {
        let mut prng = Prng::stream(seed, "shortfall");
        let mut episodes = Vec::new();
        for turn in 0..16_000u64 {
            let (seen, drawn) = (1 + turn % 7, turn % 2 == 0);
            let eighths = if !drawn && seen <= short { seen - 1 } else { seen };
            let reward = 1_000 * i32::from(prng.below(8) < eighths);
            episodes.push((episode(seen, drawn, reward), !drawn));
        }
        episodes
    }

    fn found(log: &[(Episode, bool)]) -> Option<Shortfall> {
        shortfall(log.iter().map(|(episode, is_held)| (episode, *is_held)))
    }

    #[test]
    fn contexts_in_which_acting_earns_less_than_draws_are_counted() {
        let shortfall = found(&log(1, 3)).unwrap();
        assert_eq!((shortfall.contexts, shortfall.compared), (3, 7));
        let mean = shortfall.mean.to_raw() >> FRACTION_BITS;
        assert!((90..=160).contains(&mean), "{mean}");
    }

    #[test]
    fn chance_is_no_shortfall() {
        let false_alarms = (0..200).filter(|seed| found(&log(*seed, 0)).is_some()).count();
        assert!(false_alarms <= 10, "{false_alarms} of 200");
    }
}
