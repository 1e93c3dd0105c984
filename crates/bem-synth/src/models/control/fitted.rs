//! Plans where observations are too many to be counted: values fitted to a tree of tested bits.
//!
//! What an action is worth is its reward and what the next observation is worth; what an observation is worth is what
//! its best action is. Beginning with rewards alone, worths are fitted again and again, each time to a tree that divides
//! observations by the bit that tells most about them, as long as more is told than chance would. The policy is the best
//! action of every leaf. Worlds that hide something are modelled wrongly; whether the policy is any good is measured.
//! Must not know games. Clauses: SCC-2, SCC-8.

use crate::experience::{Episode, Step};
use crate::hypothesis::Stated;
use crate::policy::{Policy, action_bits};
use crate::samples::Work;
use crate::statement::{Branch, Choice, Statement};
use bem_base::environment::{Bits, Shape};
use bem_circuit::netlist::{Builder, Signal};

/// Steps of the log from which on values are fitted, and the latest of them that are looked at.
const STEPS_MIN: usize = 12_000;
const STEPS_MAX: usize = 48_000;
/// Actions at most.
const ACTIONS_MAX: u16 = 16;
/// How often values are fitted: a reward is seen from as many steps away.
const ROUNDS: usize = 16;
/// What comes a step later counts this many sixteenths.
const PATIENCE: i64 = 15;
/// Leaves of a tree that is worth measuring, which takes whole episodes, and leaves at most.
const LEAVES_MIN: usize = 16;
const LEAVES_MAX: usize = 400;
/// Steps of one action on either side of a bit before the side says anything.
const SIDE_MIN: i64 = 12;
/// Imagined steps at the mean of the leaf, so that few lucky ones are no reason to act.
const IMAGINED: i64 = 8;
/// A BAD step counts as a loss of as many times what rewards can differ by.
const DREAD: i64 = 4;
/// Values are kept in parts of a milli-unit.
const PARTS: i64 = 16;
/// How far, in parts of sixteen, a statistic must exceed what chance brings: the best of many bits is looked at.
const BEYOND_CHANCE: i128 = 16 * 24;

/// One step: what was done, what it brought at once, and which step came next, if any.
struct Taken<'e> {
    step: &'e Step,
    next: Option<usize>,
}

/// Counts, sums and squares of worths per action.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    count: i64,
    sum: i64,
    squares: i128,
}

impl Tally {
    fn add(&mut self, worth: i64) {
        self.count += 1;
        self.sum += worth;
        self.squares += i128::from(worth) * i128::from(worth);
    }

    fn less(&self, other: &Tally) -> Tally {
        Tally {
            count: self.count - other.count,
            sum: self.sum - other.sum,
            squares: self.squares - other.squares,
        }
    }

    fn mean(&self) -> i64 {
        self.sum / self.count.max(1)
    }

    /// Sixteen times how far the means of a part and the rest are apart, squared, in units of what one step strays.
    fn telling(&self, part: &Tally) -> i128 {
        let rest = self.less(part);
        if part.count < SIDE_MIN || rest.count < SIDE_MIN {
            return 0;
        }
        let count = i128::from(self.count);
        let variance = (self.squares - i128::from(self.sum) * i128::from(self.sum) / count) / count + 1;
        let apart = i128::from(part.mean() - rest.mean());
        16 * apart * apart * i128::from(part.count) * i128::from(rest.count) / count / variance
    }
}

/// What every action is worth, by a tree over bits of the observation.
enum Tree {
    Leaf(Vec<i64>),
    Node(usize, Box<Tree>, Box<Tree>),
}

impl Tree {
    fn worths(&self, observation: &Bits) -> &[i64] {
        match self {
            Tree::Leaf(worths) => worths,
            Tree::Node(bit, low, high) => {
                let side = if observation.get(*bit) { high } else { low };
                side.worths(observation)
            }
        }
    }

    fn leaves(&self) -> usize {
        match self {
            Tree::Leaf(_) => 1,
            Tree::Node(_, low, high) => low.leaves() + high.leaves(),
        }
    }

    /// The tree of best actions, as data.
    fn say(&self, branches: &mut Vec<Branch>) {
        match self {
            Tree::Leaf(worths) => branches.push(Branch::Leaf(best(worths) as u16)),
            Tree::Node(bit, low, high) => {
                branches.push(Branch::Test(*bit as u16));
                low.say(branches);
                high.say(branches);
            }
        }
    }

    /// The code of the best action.
    fn build(&self, builder: &mut Builder, code_bits: usize) -> Vec<Signal> {
        match self {
            Tree::Leaf(worths) => {
                let best = best(worths);
                (0..code_bits).map(|bit| Signal::constant(best >> bit & 1 == 1)).collect()
            }
            Tree::Node(bit, low, high) => {
                let (low, high) = (low.build(builder, code_bits), high.build(builder, code_bits));
                let sides = low.iter().zip(&high);
                sides.map(|(low, high)| builder.mux(Signal::input(*bit), *high, *low)).collect()
            }
        }
    }
}

/// The action that is worth most, the lowest of equals.
fn best(worths: &[i64]) -> usize {
    let worths = worths.iter().enumerate();
    worths
        .max_by_key(|(action, worth)| (**worth, core::cmp::Reverse(*action)))
        .map_or(0, |(action, _)| action)
}

/// A policy by fitted values; none where there is little to go on, or where actions do not change what is seen.
pub fn fit(shape: &Shape, episodes: &[&Episode], work: &mut Work) -> Option<(Stated, u32, String)> {
    let steps: usize = episodes.iter().map(|episode| episode.steps.len()).sum();
    if steps < STEPS_MIN || ACTIONS_MAX < shape.actions || shape.horizon < 2 {
        return None;
    }
    let tree = fit_tree(shape, episodes, work)?;
    let leaves = tree.leaves();
    if leaves < LEAVES_MIN {
        return None;
    }
    Some((to_policy(shape, &tree)?, 8 * leaves as u32, format!("values fitted to a tree of {leaves} leaves")))
}

/// The best action of every leaf as a circuit.
fn to_policy(shape: &Shape, tree: &Tree) -> Option<Stated> {
    let bits = usize::from(shape.observation_bits);
    let mut builder = Builder::new(bits);
    let action = tree.build(&mut builder, action_bits(shape.actions));
    let policy = Policy::close(builder, bits, shape.actions, &action, &[]).ok()?;
    let mut branches = Vec::new();
    tree.say(&mut branches);
    Some(Stated { policy, statement: Statement::of(Choice::Tree(branches)) })
}

fn fit_tree(shape: &Shape, episodes: &[&Episode], work: &mut Work) -> Option<Tree> {
    let mut taken: Vec<Taken<'_>> = Vec::new();
    for episode in episodes.iter().rev() {
        if STEPS_MAX < taken.len() + episode.steps.len() {
            break;
        }
        let first = taken.len();
        taken.extend(episode.steps.iter().enumerate().map(|(place, step)| {
            let next = (place + 1 < episode.steps.len()).then_some(first + place + 1);
            Taken { step, next }
        }));
    }
    let bits = usize::from(shape.observation_bits);
    if !work.spend((taken.len() * bits) as u64) || !moves(&taken, shape, bits) {
        return None;
    }
    // What is BAD must not be bought with rewards.
    let dread = DREAD * (i64::from(shape.reward_max) - i64::from(shape.reward_min));
    let mut tree = Tree::Leaf(vec![0; usize::from(shape.actions)]);
    for _ in 0..ROUNDS {
        let worth = |taken: &Taken<'_>, next: Option<&Step>| -> i64 {
            let later =
                next.map_or(0, |step| tree.worths(&step.observation).iter().max().copied().unwrap_or(0));
            let reward = i64::from(taken.step.reward) - if taken.step.bad { dread } else { 0 };
            reward * PARTS + later * PATIENCE / 16
        };
        let worths: Vec<i64> =
            taken.iter().map(|step| worth(step, step.next.map(|next| taken[next].step))).collect();
        let mut growth = Growth { shape, bits, taken: &taken, worths: &worths, leaves: 1 };
        let all: Vec<usize> = (0..taken.len()).collect();
        tree = growth.grow(&all, work)?;
    }
    Some(tree)
}

/// How often a bit was set before an action, after it, and both.
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    before: i64,
    after: i64,
    both: i64,
}

/// Whether some bit that is seen next depends on the action, given what it is now.
fn moves(taken: &[Taken<'_>], shape: &Shape, bits: usize) -> bool {
    let actions = usize::from(shape.actions);
    let mut passages = vec![vec![Passage::default(); actions]; bits];
    let mut drawn = vec![0i64; actions];
    for Taken { step, next } in taken.iter().filter(|taken| taken.step.uniform) {
        let Some(next) = next.map(|next| &taken[next].step.observation) else { continue };
        let action = usize::from(step.action);
        drawn[action] += 1;
        let both = Bits(core::array::from_fn(|word| step.observation.0[word] & next.0[word]));
        set_bits(&step.observation).for_each(|bit| passages[bit][action].before += 1);
        set_bits(next).for_each(|bit| passages[bit][action].after += 1);
        set_bits(&both).for_each(|bit| passages[bit][action].both += 1);
    }
    passages.iter().any(|passages| {
        let from_set = passages.iter().map(|passage| (passage.before, passage.both));
        let from_clear = passages.iter().zip(&drawn);
        let from_clear =
            from_clear.map(|(passage, drawn)| (drawn - passage.before, passage.after - passage.both));
        let bound = BEYOND_CHANCE + 16 * i128::from(shape.actions);
        bound < chi_square(from_set) || bound < chi_square(from_clear)
    })
}

/// Sixteen times how far shares of counts stray from one common share, in units of what they stray by chance.
fn chi_square(shares: impl Iterator<Item = (i64, i64)> + Clone) -> i128 {
    let (total, set) = shares.clone().fold((0, 0), |held, (count, set)| (held.0 + count, held.1 + set));
    let (total, set) = (i128::from(total), i128::from(set));
    let strays = |(count, share): (i64, i64)| {
        let (count, share) = (i128::from(count), i128::from(share));
        let apart = share * total - count * set;
        16 * apart * apart / (count * set * (total - set)).max(1)
    };
    shares.map(strays).sum()
}

/// The bits that are set, ascending.
pub(super) fn set_bits(observation: &Bits) -> impl Iterator<Item = usize> + '_ {
    observation.0.iter().enumerate().flat_map(|(place, word)| {
        let mut left = *word;
        core::iter::from_fn(move || {
            let bit = (left != 0).then(|| place * 64 + left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(bit)
        })
    })
}

/// A tree that grows.
struct Growth<'a> {
    shape: &'a Shape,
    bits: usize,
    taken: &'a [Taken<'a>],
    worths: &'a [i64],
    leaves: usize,
}

impl Growth<'_> {
    /// Divides these steps as long as a bit tells more than chance would; none when the work is used up.
    fn grow(&mut self, part: &[usize], work: &mut Work) -> Option<Tree> {
        let actions = usize::from(self.shape.actions);
        if !work.spend((part.len() * 16 + self.bits * actions) as u64) {
            return None;
        }
        let mut whole = vec![Tally::default(); actions];
        let mut sides = vec![vec![Tally::default(); actions]; self.bits];
        for place in part {
            let (step, worth) = (self.taken[*place].step, self.worths[*place]);
            let action = usize::from(step.action);
            whole[action].add(worth);
            set_bits(&step.observation).for_each(|bit| sides[bit][action].add(worth));
        }
        let telling = |bit: &usize| -> i128 {
            whole.iter().zip(&sides[*bit]).map(|(whole, side)| whole.telling(side)).sum()
        };
        let chosen = (0..self.bits).max_by_key(|bit| (telling(bit), core::cmp::Reverse(*bit)));
        let chosen = chosen.filter(|bit| BEYOND_CHANCE + 16 * i128::from(self.shape.actions) < telling(bit));
        let Some(bit) = chosen.filter(|_| self.leaves < LEAVES_MAX) else {
            return Some(Tree::Leaf(worths(&whole)));
        };
        self.leaves += 1;
        let is_high = |place: &usize| self.taken[*place].step.observation.get(bit);
        let (high, low): (Vec<usize>, Vec<usize>) = part.iter().partition(|place| is_high(place));
        Some(Tree::Node(bit, Box::new(self.grow(&low, work)?), Box::new(self.grow(&high, work)?)))
    }
}

/// What each action is worth by its tally, drawn to the mean of all where it was hardly tried.
fn worths(tallies: &[Tally]) -> Vec<i64> {
    let (count, sum) = tallies.iter().fold((0, 0), |held, tally| (held.0 + tally.count, held.1 + tally.sum));
    let mean = sum / i64::max(count, 1);
    tallies.iter().map(|tally| (tally.sum + IMAGINED * mean) / (tally.count + IMAGINED)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Player;
    use bem_base::environment::Field;
    use bem_base::prng::Prng;

    /// A walker on a line of 16 cells is shown on which side the goal is, among bits that say nothing.
    fn observe(walker: i64, goal: i64, prng: &mut Prng) -> Bits {
        let noise = prng.below(1 << 40);
        Bits([noise << 8 | u64::from(walker < goal) << 3 | u64::from(goal < walker) << 5, 0, 0, 0])
    }

    #[test]
    fn a_walker_learns_to_go_where_the_goal_is_although_no_observation_comes_twice() {
        let shape = Shape {
            observation_bits: 48,
            actions: 3,
            horizon: 40,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 40_000,
            fields: vec![Field { low: 0, width: 48 }],
        };
        let mut prng = Prng::stream(3, "fitted");
        let mut play = |episodes: u64, policy: Option<&Policy>| -> (Vec<Episode>, i64) {
            let (mut list, mut gained) = (Vec::new(), 0);
            for serial in 0..episodes {
                let (mut walker, mut goal) = (prng.below(16) as i64, prng.below(16) as i64);
                let mut player = policy.map(Player::new);
                let mut steps = Vec::new();
                for time in 0..40 {
                    let observation = observe(walker, goal, &mut prng);
                    let action = match &mut player {
                        Some(player) => player.act(&observation),
                        None => prng.below(3) as u16,
                    };
                    walker = (walker + i64::from(action) - 1).clamp(0, 15);
                    let reward = if walker == goal { 1_000 } else { 0 };
                    if walker == goal {
                        goal = prng.below(16) as i64;
                    }
                    gained += i64::from(reward);
                    let (done, bad) = (time == 39, false);
                    steps.push(Step { observation, action, reward, done, bad, uniform: true, propensity: 0 });
                }
                list.push(Episode { serial, steps });
            }
            (list, gained / episodes as i64)
        };
        let (log, by_chance) = play(200, None);
        let log: Vec<&Episode> = log.iter().collect();
        let tree = fit_tree(&shape, &log, &mut Work::new(1 << 32)).expect("it moves what is seen");
        let policy = to_policy(&shape, &tree).unwrap();
        let (_, gained) = play(200, Some(&policy.policy));
        assert!(3 * by_chance < gained && 5_000 < gained, "{gained}, by chance {by_chance}");
    }
}
