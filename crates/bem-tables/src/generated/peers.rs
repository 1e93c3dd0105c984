//! What the learner is compared with on drawn worlds: Q-learning with an optimistic start, posterior sampling over a counted
//! model, and an upper confidence bound over first actions. Floats are fine here: peers prove nothing.

#![expect(
    clippy::disallowed_types,
    reason = "peers look things up and go through no map, and reach no state"
)]

use crate::normal::Normal;
use anyhow::Result;
use bem_base::environment::{Bits, Environment, Shape};
use bem_base::prng::Prng;
use std::collections::HashMap;

/// States that posterior sampling keeps apart; all others are one.
const STATES_MAX: usize = 192;
/// Operations of planning that every step pays for.
const PLANNING_PER_STEP: u64 = 2_000;

/// Somebody who plays and learns from it.
pub trait Peer {
    /// An episode begins.
    fn begin(&mut self) {}
    /// What to do at this step of the episode.
    fn act(&mut self, seen: &Bits, time: u32) -> u16;
    /// What that brought, and what is seen next; nothing at the end.
    fn learn(&mut self, seen: &Bits, time: u32, action: u16, reward: f64, next: Option<&Bits>);
    /// The episode is over and brought this.
    fn end(&mut self, _total: f64) {}
}

/// Names of the peers, in the order of reports.
pub const NAMES: [&str; 4] = ["q", "q_timed", "psrl", "ucb_first"];

/// A fresh peer for worlds of this shape.
pub fn fresh(name: &str, shape: &Shape, seed: u64) -> Box<dyn Peer> {
    let prng = Prng::stream(seed, "table/generated/peer");
    match name {
        "q" => Box::new(Tabular::new(shape, false, prng)),
        "q_timed" => Box::new(Tabular::new(shape, true, prng)),
        "psrl" => Box::new(Posterior::new(shape, prng)),
        _ => Box::new(FirstActions::new(shape)),
    }
}

/// Lets a peer play and learn until so many steps are taken.
pub fn play(world: &mut dyn Environment, peer: &mut dyn Peer, seed: u64, steps: u64) -> Result<()> {
    let mut seeds = Prng::stream(seed, "table/generated/episodes");
    let mut taken = 0u64;
    while taken < steps {
        world.reset(seeds.next_u64() >> 2)?;
        peer.begin();
        let (mut total, mut time) = (0.0, 0);
        loop {
            let seen = *world.observation();
            let action = peer.act(&seen, time);
            let outcome = world.step(action)?;
            let reward = f64::from(outcome.reward);
            let next = (!outcome.done).then(|| *world.observation());
            peer.learn(&seen, time, action, reward, next.as_ref());
            (total, time, taken) = (total + reward, time + 1, taken + 1);
            if outcome.done {
                break;
            }
        }
        peer.end(total);
    }
    Ok(())
}

/// The place of the largest; the first of equals.
fn largest(values: impl Iterator<Item = f64>) -> (usize, f64) {
    let better = |best: (usize, f64), next: (usize, f64)| if best.1 < next.1 { next } else { best };
    values.enumerate().fold((0, f64::NEG_INFINITY), better)
}

/// Q-learning on the observation, or on it and the step of the episode: values begin at what can be earned at most, and
/// the share of even draws falls with the visits of a state.
struct Tabular {
    timed: bool,
    actions: usize,
    horizon: f64,
    ceiling: f64,
    values: HashMap<(Bits, u32), Vec<(f64, f64)>>,
    prng: Prng,
}

impl Tabular {
    fn new(shape: &Shape, timed: bool, prng: Prng) -> Tabular {
        let ceiling = shape.return_max as f64;
        let (actions, horizon) = (usize::from(shape.actions), f64::from(shape.horizon));
        Tabular { timed, actions, horizon, ceiling, values: HashMap::new(), prng }
    }

    fn key(&self, seen: &Bits, time: u32) -> (Bits, u32) {
        (*seen, if self.timed { time } else { 0 })
    }
}

impl Peer for Tabular {
    fn act(&mut self, seen: &Bits, time: u32) -> u16 {
        let key = self.key(seen, time);
        let Some(values) = self.values.get(&key) else { return self.prng.below(self.actions as u64) as u16 };
        let visits: f64 = values.iter().map(|(_, visits)| visits).sum();
        let draw = (self.prng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        if draw < 0.5 / (1.0 + visits).sqrt() {
            return self.prng.below(self.actions as u64) as u16;
        }
        largest(values.iter().map(|(value, _)| *value)).0 as u16
    }

    fn learn(&mut self, seen: &Bits, time: u32, action: u16, reward: f64, next: Option<&Bits>) {
        let ahead = next.map_or(0.0, |next| {
            let values = self.values.get(&self.key(next, time + 1));
            values.map_or(self.ceiling, |values| largest(values.iter().map(|(value, _)| *value)).1)
        });
        let (key, fresh) = (self.key(seen, time), (self.ceiling, 0.0));
        let cells = self.values.entry(key).or_insert_with(|| vec![fresh; self.actions]);
        let (value, visits) = &mut cells[usize::from(action)];
        *visits += 1.0;
        let rate = (self.horizon + 1.0) / (self.horizon + 1.0 + *visits);
        *value += rate * ((reward + ahead).min(self.ceiling) - *value);
    }
}

/// What was counted of one state and action.
#[derive(Clone, Default)]
struct Pair {
    visits: f64,
    sum: f64,
    squares: f64,
    /// Successors and how often they came; the end has no number.
    next: Vec<(Option<usize>, f64)>,
}

/// A drawn mean reward, and drawn chances of what follows; the end has no number.
type Drawn = (f64, Vec<(Option<usize>, f64)>);

/// Posterior sampling: a model is drawn from what the counts leave open and planned in, again when some count has doubled.
struct Posterior {
    shape: Shape,
    numbers: HashMap<Bits, usize>,
    pairs: Vec<Vec<Pair>>,
    /// Visits of every pair when the last plan was made.
    planned: Vec<Vec<f64>>,
    /// The best action by steps left and state.
    plan: Vec<Vec<u16>>,
    is_due: bool,
    steps: u64,
    spent: u64,
    draws: Normal,
    prng: Prng,
}

impl Posterior {
    fn new(shape: &Shape, mut prng: Prng) -> Posterior {
        let draws = Normal::new(Prng::quick(prng.next_u64()));
        Posterior {
            shape: shape.clone(),
            numbers: HashMap::new(),
            pairs: Vec::new(),
            planned: Vec::new(),
            plan: Vec::new(),
            is_due: true,
            steps: 0,
            spent: 0,
            draws,
            prng,
        }
    }

    fn number(&mut self, seen: &Bits) -> usize {
        let count = self.numbers.len();
        if let Some(number) = self.numbers.get(seen) {
            return *number;
        }
        if STATES_MAX <= count {
            return count - 1;
        }
        self.numbers.insert(*seen, count);
        self.pairs.push(vec![Pair::default(); usize::from(self.shape.actions)]);
        self.planned.push(vec![0.0; usize::from(self.shape.actions)]);
        self.is_due = true;
        count
    }

    /// A drawn mean reward and drawn chances of successors of every pair.
    fn draw(&mut self) -> Vec<Vec<Drawn>> {
        let (low, high) = (f64::from(self.shape.reward_min), f64::from(self.shape.reward_max));
        let (middle, half, states) = ((low + high) / 2.0, (high - low) / 2.0, self.pairs.len());
        let draw_pair = |pair: &Pair, draws: &mut Normal, prng: &mut Prng| {
            let count = pair.visits + 1.0;
            let mean = (pair.sum + middle) / count;
            let spread = (pair.squares + middle * middle + half * half) / count - mean * mean;
            let reward = mean + draws.normal() * (spread.max(0.0) / count).sqrt();
            // One imagined visit to any state or to the end.
            let imagined = Some(prng.below(states as u64 + 1) as usize).filter(|place| *place < states);
            let weighed = pair.next.iter().copied().chain([(imagined, 1.0 / (1.0 + pair.visits))]);
            let mut chances: Vec<(Option<usize>, f64)> =
                weighed.map(|(next, count)| (next, draws.gamma(count + 1.0) * small(count, draws))).collect();
            let all: f64 = chances.iter().map(|(_, weight)| weight).sum();
            chances.iter_mut().for_each(|(_, weight)| *weight /= all.max(1e-300));
            (reward, chances)
        };
        let (draws, prng) = (&mut self.draws, &mut self.prng);
        self.pairs
            .iter()
            .map(|pairs| pairs.iter().map(|pair| draw_pair(pair, draws, prng)).collect())
            .collect()
    }

    fn plan_again(&mut self) {
        let model = self.draw();
        let mut values = vec![0.0; model.len()];
        self.plan = Vec::new();
        for _ in 0..self.shape.horizon {
            let worth = |(reward, chances): &Drawn| {
                let ahead =
                    chances.iter().map(|(next, chance)| next.map_or(0.0, |next| chance * values[next]));
                reward + ahead.sum::<f64>()
            };
            let best: Vec<(usize, f64)> =
                model.iter().map(|pairs| largest(pairs.iter().map(worth))).collect();
            values = best.iter().map(|(_, value)| *value).collect();
            self.plan.push(best.iter().map(|(action, _)| *action as u16).collect());
        }
        let size: usize = model.iter().flatten().map(|(_, chances)| 1 + chances.len()).sum();
        self.spent += size as u64 * u64::from(self.shape.horizon);
        let visits = |pairs: &Vec<Pair>| pairs.iter().map(|pair| pair.visits).collect();
        self.planned = self.pairs.iter().map(visits).collect();
        self.is_due = false;
    }
}

/// Makes a draw of Gamma(shape + 1) one of Gamma(shape).
fn small(shape: f64, draws: &mut Normal) -> f64 {
    draws.uniform().powf(1.0 / shape)
}

impl Peer for Posterior {
    fn begin(&mut self) {
        if self.is_due && !self.pairs.is_empty() && self.spent <= PLANNING_PER_STEP * self.steps {
            self.plan_again();
        }
    }

    fn act(&mut self, seen: &Bits, time: u32) -> u16 {
        let state = self.number(seen);
        let left = (self.shape.horizon - 1 - time) as usize;
        let planned = self.plan.get(left).and_then(|actions| actions.get(state));
        planned.copied().unwrap_or_else(|| self.prng.below(u64::from(self.shape.actions)) as u16)
    }

    fn learn(&mut self, seen: &Bits, _time: u32, action: u16, reward: f64, next: Option<&Bits>) {
        self.steps += 1;
        let state = self.number(seen);
        let next = next.map(|next| self.number(next));
        let before = self.planned[state][usize::from(action)];
        let pair = &mut self.pairs[state][usize::from(action)];
        (pair.visits, pair.sum, pair.squares) =
            (pair.visits + 1.0, pair.sum + reward, pair.squares + reward * reward);
        match pair.next.iter_mut().find(|(known, _)| *known == next) {
            Some((_, count)) => *count += 1.0,
            None => pair.next.push((next, 1.0)),
        }
        self.is_due |= (2.0 * before).max(1.0) <= pair.visits;
    }
}

/// An upper confidence bound on the return of every first action, which is then repeated to the end of the episode.
struct FirstActions {
    /// Episodes, sum and squares of returns.
    arms: Vec<(f64, f64, f64)>,
    chosen: usize,
}

impl FirstActions {
    fn new(shape: &Shape) -> FirstActions {
        FirstActions { arms: vec![(0.0, 0.0, 0.0); usize::from(shape.actions)], chosen: 0 }
    }
}

impl Peer for FirstActions {
    fn begin(&mut self) {
        if let Some(few) = self.arms.iter().position(|(count, _, _)| *count < 2.0) {
            self.chosen = few;
            return;
        }
        let episodes: f64 = self.arms.iter().map(|(count, _, _)| count).sum();
        // The spread within arms, pooled.
        let within = |(count, sum, squares): &(f64, f64, f64)| squares - sum * sum / count;
        let variance =
            self.arms.iter().map(within).sum::<f64>() / (episodes - self.arms.len() as f64).max(1.0);
        let bound = |(count, sum, _): &(f64, f64, f64)| {
            sum / count + (2.0 * variance.max(0.0) * episodes.ln() / count).sqrt()
        };
        self.chosen = largest(self.arms.iter().map(bound)).0;
    }

    fn act(&mut self, _seen: &Bits, _time: u32) -> u16 {
        self.chosen as u16
    }

    fn learn(&mut self, _: &Bits, _: u32, _: u16, _: f64, _: Option<&Bits>) {}

    fn end(&mut self, total: f64) {
        let (count, sum, squares) = &mut self.arms[self.chosen];
        (*count, *sum, *squares) = (*count + 1.0, *sum + total, *squares + total * total);
    }
}
