//! What was hardly tried is worth what the same action was worth where the same bits were seen.
//!
//! On a board nearly every position is met a few times, and most of its actions never. Per action a tree divides states
//! by the bit of the observation that tells most about what the action was worth, as long as it tells more than chance
//! would. The mean of a leaf stands in for tries that a pair of state and action does not have yet.
//! Must not know games. Clauses: SCC-2, SCC-8.

use super::chance::{Dynamics, VALUE_BITS};
use super::counts::Model;
use super::fitted::set_bits;
use super::plan::{Attitude, Plan, evaluate_uniform};
use bem_base::environment::Bits;

/// How often worths are fitted and planned with. The first time they are those of actions drawn with equal chance.
const ROUNDS: usize = 3;
/// Tries of one pair that count at most: what one state knows well says little about others.
const TRIES_MAX: i64 = 8;
/// Tries on either side of a bit before the side says anything.
const SIDE_MIN: i64 = 8;
/// Imagined tries at the mean of the part that was divided.
const IMAGINED: i64 = 4;
/// How far a statistic must exceed what one bit brings by chance: the best of many is looked at.
const BEYOND_CHANCE: i128 = 16;
/// Divisions of one tree below each other at most.
const DEPTH_MAX: usize = 12;

/// The best plan where analogies stand in for missing tries. What was tried seldom is hoped to bring this many
/// milli-units more, half of it after three tries.
pub fn plan(model: &Model, dynamics: &Dynamics, horizon: u32, hope: i64) -> Plan {
    let best = |values: &[i64], hope: i64| {
        let worths = worths(model, dynamics, values);
        Plan::best(dynamics, horizon, Attitude::Analogous { worths: &worths, hope })
    };
    let mut values = evaluate_uniform(dynamics, horizon);
    for _ in 1..ROUNDS {
        values = best(&values, 0).values;
    }
    best(&values, hope)
}

/// What every action should be worth in every state, if states are worth this much, with the bits of a value.
fn worths(model: &Model, dynamics: &Dynamics, values: &[i64]) -> Vec<i64> {
    let mut pairs: Vec<Vec<Pair<'_>>> = (0..dynamics.actions).map(|_| Vec::new()).collect();
    for state in 0..dynamics.states() {
        let seen = model.observation(state as u32);
        for (row, pairs) in dynamics.of(state).iter().zip(&mut pairs).filter(|(row, _)| 0 < row.tries) {
            let worth = row.value(values) >> VALUE_BITS;
            pairs.push(Pair { seen, tries: row.tries.min(TRIES_MAX), worth });
        }
    }
    let mut all = Tally::default();
    pairs.iter().flatten().for_each(|pair| all.add(pair));
    let width = model.observations().iter().flat_map(set_bits).max().map_or(0, |bit| bit + 1);
    let tree = |pairs: &Vec<Pair<'_>>| Tree::grow(&pairs.iter().collect::<Vec<_>>(), width, all.mean(), 0);
    let trees: Vec<Tree> = pairs.iter().map(tree).collect();
    let states = 0..dynamics.states() as u32;
    let of_state = |state| trees.iter().map(move |tree| tree.worth(model.observation(state)) << VALUE_BITS);
    states.flat_map(of_state).collect()
}

/// What an action was worth in a state, in milli-units.
struct Pair<'m> {
    seen: &'m Bits,
    tries: i64,
    worth: i64,
}

/// Counts, sums and squares of worths, which may be as large as numbers go.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    count: i64,
    sum: i128,
    squares: i128,
}

impl Tally {
    fn add(&mut self, pair: &Pair<'_>) {
        self.count += pair.tries;
        self.sum += i128::from(pair.tries) * i128::from(pair.worth);
        self.squares += i128::from(pair.tries) * i128::from(pair.worth) * i128::from(pair.worth);
    }

    fn less(&self, part: &Tally) -> Tally {
        let (count, sum) = (self.count - part.count, self.sum - part.sum);
        Tally { count, sum, squares: self.squares - part.squares }
    }

    fn mean(&self) -> i64 {
        (self.sum / i128::from(self.count.max(1))) as i64
    }

    /// The sum of squared distances from the mean.
    fn strays(&self) -> i128 {
        self.squares - self.sum * self.sum / i128::from(self.count.max(1))
    }

    /// How far the means of a part and the rest are apart, squared, in units of what one try strays within them.
    fn telling(&self, part: &Tally) -> i128 {
        let rest = self.less(part);
        if part.count < SIDE_MIN || rest.count < SIDE_MIN {
            return 0;
        }
        let count = i128::from(self.count);
        let variance = (part.strays() + rest.strays()) / count + 1;
        let apart = i128::from(part.mean() - rest.mean());
        let sides = i128::from(part.count) * i128::from(rest.count);
        (apart * apart).saturating_mul(sides) / count / variance
    }
}

/// What one action is worth, by a tree over bits of the observation.
enum Tree {
    Leaf(i64),
    Node(usize, Box<Tree>, Box<Tree>),
}

impl Tree {
    fn worth(&self, seen: &Bits) -> i64 {
        match self {
            Tree::Leaf(worth) => *worth,
            Tree::Node(bit, low, high) => (if seen.get(*bit) { high } else { low }).worth(seen),
        }
    }

    fn grow(pairs: &[&Pair<'_>], width: usize, mean: i64, depth: usize) -> Tree {
        let mut whole = Tally::default();
        let mut sides = vec![Tally::default(); width];
        for pair in pairs {
            whole.add(pair);
            set_bits(pair.seen).for_each(|bit| sides[bit].add(pair));
        }
        let sum = whole.sum + i128::from(IMAGINED) * i128::from(mean);
        let mean = (sum / i128::from(whole.count + IMAGINED)) as i64;
        let telling = |bit: &usize| whole.telling(&sides[*bit]);
        let chosen = (0..width).max_by_key(|bit| (telling(bit), core::cmp::Reverse(*bit)));
        let Some(bit) = chosen.filter(|bit| depth < DEPTH_MAX && BEYOND_CHANCE < telling(bit)) else {
            return Tree::Leaf(mean);
        };
        let (high, low): (Vec<&Pair<'_>>, Vec<&Pair<'_>>) = pairs.iter().partition(|pair| pair.seen.get(bit));
        let side = |part: &[&Pair<'_>]| Box::new(Tree::grow(part, width, mean, depth + 1));
        Tree::Node(bit, side(&low), side(&high))
    }
}

#[cfg(test)]
mod tests {
    use super::super::grain::Grain;
    use super::*;
    use crate::experience::{Episode, Step};
    use crate::models::control::Lens;
    use bem_base::environment::{Field, Shape};
    use bem_base::prng::Prng;

    /// Action `a` pays where bit `a` is set and bit `a + 4` is not; everything else costs as much.
    fn pays(seen: u64, action: u16) -> bool {
        seen >> action & 1 == 1 && seen >> (action + 4) & 1 == 0
    }

    #[test]
    fn an_action_never_tried_in_a_state_is_chosen_where_it_paid_in_states_alike() {
        let shape = Shape {
            observation_bits: 10,
            actions: 4,
            horizon: 3,
            reward_min: -1_000,
            reward_max: 1_000,
            return_min: -3_000,
            return_max: 3_000,
            fields: vec![Field { low: 0, width: 10 }],
        };
        let mut prng = Prng::stream(5, "analogy");
        let mut model = Model::new(&shape, Lens::default(), Grain::FULL);
        for serial in 0..500 {
            let step = |time| {
                let (seen, action) = (prng.below(1 << 10), prng.below(4) as u16);
                let reward = if pays(seen, action) { 1_000 } else { -1_000 };
                let (done, bad, uniform, propensity) = (time == 2, false, true, 0);
                Step { observation: Bits([seen, 0, 0, 0]), action, reward, done, bad, uniform, propensity }
            };
            assert!(model.add(&Episode { serial, steps: (0..3).map(step).collect() }));
        }
        assert!(model.is_crowded());
        let dynamics = Dynamics::expected(&model);
        let right = |plan: &Plan| {
            let (mut right, mut possible) = (0, 0);
            for state in 0..model.keys().len() as u32 {
                let seen = model.observation(state).0[0];
                possible += usize::from((0..4).any(|action| pays(seen, action)));
                right += usize::from(pays(seen, plan.action(state, 3)));
            }
            100 * right / possible
        };
        let alone = right(&Plan::best(&dynamics, 3, Attitude::Careful));
        let alike = right(&plan(&model, &dynamics, 3, 0));
        assert!(alone < 60 && 95 < alike, "{alone} of 100 alone, {alike} by analogy");
    }
}
