//! What the model cannot represent: contexts in which acting earns less than draws of the same action have promised.
//!
//! A context is what the machine tells apart: its bucket, the bits that the acting policy reads, and what that remembers. If
//! rewards followed from that and the action, an action would earn in one context the same on average, whoever chose it. Where
//! it surely earns less when what is held acts, something that matters is neither read nor remembered, or the world has
//! changed. In worlds of one step, contexts that are seen too seldom are taken together by bucket: there, what is seen does not
//! depend on who acts, and draws that agree with what is held promise what it will earn. It is derived from the log when it is
//! asked for, so that nothing is kept. Must not know what the bits mean. Clauses: VM-16, SCC-13.

use crate::learner::Learner;
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_synth::experience::Step;
use bem_synth::propose;
use std::collections::BTreeMap;

/// The newest steps of the log that are looked at.
const STEPS_MAX: usize = 65_536;
/// Episodes of either kind in a context before it is compared.
const EPISODES_MIN: i128 = 8;
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

/// What the machine tells apart: a bucket, and within it what the acting policy reads and remembers.
type Context = (u16, Vec<u64>, u16);

/// Rewards of one action in one context: steps and what they brought, and squares and products of both by episode, because the
/// steps of one episode may all hang on the same chance.
#[derive(Clone, Copy, Default)]
struct Sums {
    episodes: i128,
    count: i128,
    sum: i128,
    squares: i128,
    products: i128,
    counts_squared: i128,
}

impl Sums {
    /// Books the steps of an episode in this context.
    fn book(&mut self, count: i128, sum: i128) {
        let one = Sums {
            episodes: 1,
            count,
            sum,
            squares: sum * sum,
            products: sum * count,
            counts_squared: count * count,
        };
        self.add(&one);
    }

    fn add(&mut self, other: &Sums) {
        self.episodes += other.episodes;
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.products += other.products;
        self.counts_squared += other.counts_squared;
    }

    /// What the sums of episodes differ by from the mean of a step times their steps: the sum of squares, rounded up.
    fn spread(&self) -> i128 {
        let (count, sum) = (self.count, self.sum);
        let spread =
            count * count * self.squares - 2 * count * sum * self.products + sum * sum * self.counts_squared;
        spread / (count * count) + 1
    }
}

/// Draws, and what is held, in one context.
type Both = [Sums; 2];

fn is_comparable(both: &Both) -> bool {
    both.iter().all(|sums| EPISODES_MIN <= sums.episodes)
}

/// How much less a step earned than was promised, times the counts of both; nothing if that may be chance among so many.
fn falls_short([promised, earned]: &Both, compared: u64) -> Option<i128> {
    let (n, m) = (promised.count, earned.count);
    let less = promised.sum * m - earned.sum * n;
    // Of few episodes the spread is known badly: each is taken as if it came from as few as the fewer.
    let spread = promised.episodes * promised.spread() * m * m + earned.episodes * earned.spread() * n * n;
    let fewer = promised.episodes.min(earned.episodes);
    let log = i128::from(Fixed::ln_count_floor(ERROR_ONE_IN * compared * compared).to_raw()) + 2;
    let bound = (2 * log).saturating_mul(spread / (fewer - 1)) >> FRACTION_BITS;
    (0 < less && bound < less.saturating_mul(less)).then_some(less)
}

impl Learner {
    /// What is earned less than was promised; nothing where no context surely falls short.
    pub fn shortfall(&self) -> Option<Shortfall> {
        let episodes = propose::recent(&self.experience, STEPS_MAX);
        let family = self.machinery.family();
        let situations = self.machinery.frozen().situations(&episodes);
        let told = episodes.iter().zip(situations).map(|(episode, situations)| {
            let seen = episode.steps.iter().zip(situations);
            let of = |(step, (situation, action)): (&Step, (Vec<u64>, u16))| {
                ((family.bucket_of(&step.observation), situation, action), *step)
            };
            seen.map(of).collect()
        });
        shortfall(told, self.shape.horizon == 1)
    }
}

/// Of episodes, each step with its context, the last part of which is what the acting policy would have done.
fn shortfall(episodes: impl Iterator<Item = Vec<(Context, Step)>>, is_single: bool) -> Option<Shortfall> {
    let mut contexts: BTreeMap<Context, Both> = BTreeMap::new();
    for steps in episodes {
        let is_drawn = steps.iter().all(|(_, step)| step.uniform);
        let is_held = || steps.iter().all(|((.., action), step)| *action == step.action);
        if !is_drawn && !is_held() {
            continue;
        }
        let mut own: BTreeMap<Context, (i128, i128)> = BTreeMap::new();
        for (context, step) in steps.into_iter().filter(|((.., action), step)| *action == step.action) {
            let (count, sum) = own.entry(context).or_default();
            (*count, *sum) = (*count + 1, *sum + i128::from(step.reward));
        }
        for (context, (count, sum)) in own {
            // What was drawn and is what the incumbent would have done is a promise still.
            contexts.entry(context).or_default()[usize::from(!is_drawn)].book(count, sum);
        }
    }
    compare(&comparable(contexts, is_single))
}

/// The contexts that can be compared; what is seen too seldom in worlds of one step by bucket and action.
fn comparable(contexts: BTreeMap<Context, Both>, is_single: bool) -> Vec<Both> {
    let (mut known, mut pooled): (Vec<Both>, BTreeMap<(u16, u16), Both>) = (Vec::new(), BTreeMap::new());
    for ((bucket, _, action), both) in contexts {
        if is_comparable(&both) {
            known.push(both);
        } else if is_single {
            let pool = pooled.entry((bucket, action)).or_default();
            pool.iter_mut().zip(&both).for_each(|(pool, sums)| pool.add(sums));
        }
    }
    known.extend(pooled.into_values().filter(is_comparable));
    known
}

fn compare(known: &[Both]) -> Option<Shortfall> {
    let compared = known.len() as u32;
    let (mut count, mut lost, mut steps) = (0, 0, 0);
    for both in known {
        if let Some(less) = falls_short(both, u64::from(compared)) {
            count += 1;
            lost += less / both[0].count;
            steps += both[1].count;
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
    use bem_base::environment::Bits;
    use bem_base::prng::Prng;

    /// An episode whose steps are all in the context of this number, and what they bring.
    fn episode(seen: u64, uniform: bool, rewards: &[i32]) -> Vec<(Context, Step)> {
        let told = |reward: &i32| {
            let observation = Bits([seen, 0, 0, 0]);
            let (action, reward, propensity) = (1, *reward, u16::MAX);
            let step = Step { observation, action, reward, done: true, bad: false, uniform, propensity };
            ((0, vec![seen], action), step)
        };
        rewards.iter().map(told).collect()
    }

    /// In context c the action pays by chance c in eight when drawn, and one in eight less in the first contexts when held.
    fn log(seed: u64, short: u64) -> Vec<Vec<(Context, Step)>> {
        let mut prng = Prng::stream(seed, "shortfall");
        let mut episodes = Vec::new();
        for turn in 0..16_000u64 {
            let (seen, drawn) = (1 + turn % 7, turn % 2 == 0);
            let eighths = if !drawn && seen <= short { seen - 1 } else { seen };
            episodes.push(episode(seen, drawn, &[1_000 * i32::from(prng.below(8) < eighths)]));
        }
        episodes
    }

    fn found(log: &[Vec<(Context, Step)>]) -> Option<Shortfall> {
        shortfall(log.iter().cloned(), true)
    }

    #[test]
    fn contexts_in_which_acting_earns_less_than_draws_are_counted() {
        let shortfall = found(&log(1, 3)).unwrap();
        assert_eq!((shortfall.contexts, shortfall.compared), (3, 7));
        let mean = shortfall.mean.to_raw() >> FRACTION_BITS;
        assert!((90..=160).contains(&mean), "{mean}");
    }

    #[test]
    fn what_is_seen_only_once_is_compared_by_bucket_in_worlds_of_one_step() {
        let mut log = log(1, 3);
        for (number, episode) in log.iter_mut().enumerate() {
            episode[0].0.1 = vec![number as u64];
        }
        let found = found(&log).unwrap();
        assert_eq!((found.contexts, found.compared), (1, 1));
        // Where actions change what follows, draws of another way promise nothing.
        assert_eq!(shortfall(log.into_iter(), false), None);
    }

    #[test]
    fn chance_is_no_shortfall() {
        let false_alarms = (0..200).filter(|seed| found(&log(*seed, 0)).is_some()).count();
        assert!(false_alarms <= 10, "{false_alarms} of 200");
    }

    #[test]
    fn what_all_steps_of_an_episode_share_by_chance_is_no_shortfall() {
        let is_alarm = |seed: &u64| {
            let mut prng = Prng::stream(*seed, "shared");
            let mut coin = || 1_000 * i32::from(prng.bit());
            let log: Vec<_> = (0..40).map(|turn| episode(1, turn % 2 == 0, &[coin(); 50])).collect();
            shortfall(log.into_iter(), false).is_some()
        };
        let false_alarms = (0..200).filter(is_alarm).count();
        assert!(false_alarms <= 10, "{false_alarms} of 200");
    }
}
