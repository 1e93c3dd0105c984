//! How far back a plan looks where observations are too many for a machine that recalls.
//!
//! That the past tells something is not enough: in every state of a longer past all has to be learned anew, and while its
//! counts are thin a plan in it is a matter of luck. So what followed is written as a code that learns as it goes
//! ([`super::coding`]), once for every number of steps back. The shortest code foretells what comes best with what was
//! counted so far, and says how far back to look; with more steps in the log it may be further.
//! Must not know games. Clauses: SCC-2; decision D-220.

use super::coding::{Coder, reward_classes};
use super::counts::{CUT, Lens, Model};
use super::grain::Grain;
use crate::experience::Episode;
use bem_base::environment::Shape;
use std::collections::{BTreeMap, BTreeSet};

/// How often each outcome came.
type Counts = BTreeMap<u32, usize>;

/// The number of steps back, at most so many, with which the code is shortest; the fewer of those that tie.
pub fn telling_history(shape: &Shape, episodes: &[&Episode], most: usize) -> usize {
    let classes = reward_classes(episodes);
    let steps: usize = episodes.iter().map(|episode| episode.steps.len()).sum();
    let length = |history: usize| {
        let model = Model::of(shape, Lens::Past(history), Grain::FULL, episodes)?;
        Some((code_length(&model, &classes, steps), history))
    };
    (0..=most).filter_map(length).min().map_or(0, |(_, history)| history)
}

/// What rewards and next observations take to say, when the state of the model is known. What can follow an observation and
/// an action is taken as known, whatever came before it.
fn code_length(model: &Model, classes: &BTreeMap<i32, u16>, steps: usize) -> i64 {
    let actions = usize::from(model.actions());
    let mut seen: Vec<[BTreeSet<u32>; 2]> = vec![Default::default(); model.observations().len() * actions];
    let mut cells: Vec<(usize, [Counts; 2])> = Vec::new();
    for (key, row) in model.keys().iter().zip(model.edges()) {
        for (action, edge) in row.iter().enumerate().filter(|(_, edge)| 0 < edge.count) {
            let mut cell: [Counts; 2] = Default::default();
            for ((next, reward), count) in &edge.outcomes {
                let class = classes.get(reward).copied().unwrap_or(0);
                *cell[0].entry(u32::from(class)).or_default() += *count as usize;
                if *next != CUT {
                    // The end of an episode is an outcome like any observation.
                    let sight = model.keys().get(*next as usize).map_or(u32::MAX, |key| key[0]);
                    *cell[1].entry(sight).or_default() += *count as usize;
                }
            }
            let pair = key[0] as usize * actions + action;
            for (known, counts) in seen[pair].iter_mut().zip(&cell) {
                known.extend(counts.keys());
            }
            cells.push((pair, cell));
        }
    }
    let outcomes = seen.iter().flatten().map(BTreeSet::len).max().unwrap_or(0);
    let coder = Coder::new(steps + outcomes + 2);
    let length = |(pair, cell): &(usize, [Counts; 2])| -> i64 {
        let kinds = seen[*pair].iter().zip(cell);
        kinds.map(|(known, counts)| coder.cost(known.len(), counts.values().copied())).sum()
    };
    cells.iter().map(length).sum()
}

#[cfg(test)]
mod tests {
    use super::super::dependence::needed_history;
    use super::*;
    use crate::experience::Step;
    use bem_base::environment::{Bits, Field};
    use bem_base::prng::Prng;

    /// A walk round eighty places by one or two of them, in which the action before tells five times in eight what is paid.
    fn walks(count: u64) -> (Shape, Vec<Episode>) {
        let shape = Shape {
            observation_bits: 7,
            actions: 2,
            horizon: 20,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 20_000,
            fields: vec![Field { low: 0, width: 7 }],
        };
        let mut prng = Prng::stream(4, "depth");
        let mut walk = |serial| {
            let (mut place, mut before) = (prng.below(80), 0);
            let mut steps = Vec::new();
            for time in 0..20 {
                let action = prng.below(2) as u16;
                let pays = (prng.below(8) < 5) == (before == 1);
                let (observation, reward) = (Bits([place, 0, 0, 0]), 1_000 * i32::from(pays));
                let (done, propensity) = (time == 19, 32_767);
                steps.push(Step { observation, action, reward, done, bad: false, uniform: true, propensity });
                (place, before) = ((place + 1 + prng.below(2)) % 80, action);
            }
            Episode { serial, steps }
        };
        (shape, (0..count).map(&mut walk).collect())
    }

    #[test]
    fn the_past_is_looked_at_once_the_log_is_long_enough_to_learn_from_it() {
        let histories = |count| {
            let (shape, episodes) = walks(count);
            let episodes: Vec<&Episode> = episodes.iter().collect();
            (needed_history(shape.horizon, &episodes), telling_history(&shape, &episodes, 2))
        };
        // That the past matters is shown long before counts with it foretell more than counts without it.
        assert_eq!(histories(1_000), (1, 0));
        assert_eq!(histories(4_000), (1, 1));
    }
}
