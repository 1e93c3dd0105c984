//! Worlds in which actions change what is seen next: counts of what followed what, and the best plan in them.
//!
//! An observation is taken for the state. Plans are by dynamic programming over the horizon, rewards and
//! successors as counted. The careful plan avoids what was never tried; the curious one expects the best of it
//! and serves exploration. Must not know games. Clauses: SCC-1.

use crate::experience::Episode;
use crate::function::build_word_table;
use crate::policy::{Player, Policy, action_bits};
use bem_base::environment::{Bits, Shape};
use bem_circuit::netlist::{Builder, Signal};
use std::collections::BTreeMap;

/// States at most.
const STATES_MAX: usize = 4_096;
/// Sweeps of dynamic programming at most.
const SWEEPS_MAX: u32 = 160;
/// Entries of a plan that counts steps at most.
const TIMED_ROWS_MAX: usize = 2_048;
/// Fractional bits of a value.
const VALUE_BITS: u32 = 12;
/// Tries of a pair after which it counts as known.
const KNOWN_AT: i64 = 2;

#[derive(Clone, Debug, Default)]
struct Edge {
    count: i64,
    reward: i64,
    /// Successors and how often; the end of an episode is not among them.
    next: BTreeMap<u32, i64>,
}

/// What followed what.
#[derive(Clone, Debug)]
pub struct Model {
    states: BTreeMap<Bits, u32>,
    edges: Vec<Vec<Edge>>,
    starts: BTreeMap<u32, i64>,
    actions: u16,
    sweeps: u32,
    return_max: i64,
}

/// How to value what was never tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attitude {
    /// As if it could not be done.
    Careful,
    /// As if it led to the highest return.
    Curious,
}

impl Model {
    /// Counts the log; none when there are too many different observations.
    pub fn new(shape: &Shape, episodes: &[&Episode]) -> Option<Model> {
        let mut model = Model {
            states: BTreeMap::new(),
            edges: Vec::new(),
            starts: BTreeMap::new(),
            actions: shape.actions,
            sweeps: shape.horizon.min(SWEEPS_MAX),
            return_max: shape.return_max,
        };
        for episode in episodes {
            for (time, step) in episode.steps.iter().enumerate() {
                let state = model.state(&step.observation)?;
                if time == 0 {
                    *model.starts.entry(state).or_default() += 1;
                }
                let next = match episode.steps.get(time + 1) {
                    Some(next) => Some(model.state(&next.observation)?),
                    None => None,
                };
                let edge = &mut model.edges[state as usize][usize::from(step.action)];
                edge.count += 1;
                edge.reward += i64::from(step.reward);
                if let Some(next) = next {
                    *edge.next.entry(next).or_default() += 1;
                }
            }
        }
        Some(model)
    }

    fn state(&mut self, observation: &Bits) -> Option<u32> {
        let number = self.states.len() as u32;
        let state = *self.states.entry(*observation).or_insert(number);
        if state == number {
            if STATES_MAX <= self.edges.len() {
                return None;
            }
            self.edges.push(vec![Edge::default(); usize::from(self.actions)]);
        }
        Some(state)
    }

    /// Whether what follows depends on the action, by comparing successors of actions in the same state.
    pub fn is_controlled(&self) -> bool {
        let (mut differ, mut compared) = (0i64, 0i64);
        for edges in &self.edges {
            // Successors must be known well enough to compare: several visits for each of them.
            let known = |edge: &&Edge| 4.max(2 * edge.next.len() as i64 + 2) <= edge.count;
            let tried: Vec<&Edge> = edges.iter().filter(known).collect();
            for pair in tried.windows(2) {
                compared += 1;
                // Overlap of the two distributions, in 1/1000.
                let overlap: i64 = pair[0]
                    .next
                    .iter()
                    .map(|(next, count)| {
                        let other = pair[1].next.get(next).copied().unwrap_or(0);
                        (count * 1_000 / pair[0].count).min(other * 1_000 / pair[1].count)
                    })
                    .sum();
                let total: i64 = pair.iter().map(|edge| edge.next.values().sum::<i64>()).sum();
                differ += i64::from(overlap < 300 && 0 < total);
            }
        }
        4 <= compared && compared <= 3 * differ
    }

    /// The value of every state and the best action in it.
    pub fn plan(&self, attitude: Attitude) -> Vec<(i64, u16)> {
        self.plans(attitude).pop().unwrap_or_default()
    }

    /// The plan for every number of steps left, one step first.
    fn plans(&self, attitude: Attitude) -> Vec<Vec<(i64, u16)>> {
        let ceiling = self.return_max << VALUE_BITS;
        let mut values = vec![0i64; self.edges.len()];
        let mut best = vec![0u16; self.edges.len()];
        let mut plans = Vec::new();
        for _ in 0..self.sweeps {
            let mut next_values = vec![0i64; values.len()];
            for (state, edges) in self.edges.iter().enumerate() {
                let mut top: Option<(i64, u16)> = None;
                for (action, edge) in edges.iter().enumerate() {
                    let value = match attitude {
                        Attitude::Curious if edge.count < KNOWN_AT => ceiling,
                        _ if edge.count == 0 => continue,
                        _ => edge.value(&values),
                    };
                    if top.is_none_or(|held| held.0 < value) {
                        top = Some((value, action as u16));
                    }
                }
                let (value, action) = top.unwrap_or((0, 0));
                (next_values[state], best[state]) = (value, action);
            }
            values = next_values;
            plans.push(values.iter().copied().zip(best.iter().copied()).collect());
        }
        plans
    }

    /// The value from the start of a policy by the counts; pairs never tried earn nothing. Of what a policy keeps in
    /// memory only the number of steps taken is understood.
    pub fn value_of(&self, policy: &Policy) -> i64 {
        let mut player = Player::new(policy);
        let times = if policy.memory_bits() == 0 { 1 } else { self.sweeps as usize };
        let mut chosen = vec![vec![0usize; self.edges.len()]; times];
        for chosen in &mut chosen {
            for (observation, state) in &self.states {
                chosen[*state as usize] = usize::from(player.clone().act(observation));
            }
            player.act(&Bits::ZERO);
        }
        let mut values = vec![0i64; self.edges.len()];
        for left in 0..self.sweeps as usize {
            let now = &chosen[(self.sweeps as usize - 1 - left).min(times - 1)];
            let value = |(edges, action): (&Vec<Edge>, &usize)| match &edges[*action] {
                edge if edge.count == 0 => 0,
                edge => edge.value(&values),
            };
            values = self.edges.iter().zip(now).map(value).collect();
        }
        self.from_start(|state| values[state])
    }

    /// The mean over starts, in milli-units.
    pub fn from_start(&self, value: impl Fn(usize) -> i64) -> i64 {
        let total: i64 = self.starts.values().sum();
        let sum: i128 = self
            .starts
            .iter()
            .map(|(state, count)| i128::from(value(*state as usize)) * i128::from(*count))
            .sum();
        ((sum / i128::from(total.max(1))) >> VALUE_BITS) as i64
    }

    /// The plan as a circuit over the observation.
    pub fn compile(&self, shape: &Shape, plan: &[(i64, u16)]) -> Option<Policy> {
        let observation_bits = usize::from(shape.observation_bits);
        let telling: Vec<usize> = (0..observation_bits)
            .filter(|bit| {
                let ones = self.states.keys().filter(|observation| observation.get(*bit)).count();
                0 < ones && ones < self.states.len()
            })
            .collect();
        if 40 < telling.len() {
            return None;
        }
        let table = self
            .states
            .iter()
            .map(|(observation, state)| {
                let key = telling
                    .iter()
                    .enumerate()
                    .fold(0, |key, (place, bit)| key | u64::from(observation.get(*bit)) << place);
                (key, u64::from(plan[*state as usize].1))
            })
            .collect();
        let mut builder = Builder::new(observation_bits);
        let bits: Vec<Signal> = telling.iter().map(|bit| Signal::input(*bit)).collect();
        let action = build_word_table(&mut builder, &bits, &table, action_bits(shape.actions));
        Policy::close(builder, observation_bits, shape.actions, &action, &[]).ok()
    }

    /// A plan that knows how many steps are left: a counter beside the observation. None when that is too large.
    pub fn compile_timed(&self, shape: &Shape) -> Option<Policy> {
        let plans = self.plans(Attitude::Careful);
        if TIMED_ROWS_MAX < plans.len() * self.states.len() || plans.len() != shape.horizon as usize {
            return None;
        }
        let observation_bits = usize::from(shape.observation_bits);
        let counter_bits = shape.horizon.next_power_of_two().ilog2() as usize;
        let mut table = BTreeMap::new();
        for (observation, state) in &self.states {
            if 64 < observation_bits + counter_bits {
                return None;
            }
            for time in 0..plans.len() {
                let best = plans[plans.len() - 1 - time][*state as usize].1;
                table.insert(observation.0[0] << counter_bits | time as u64, u64::from(best));
            }
        }
        let mut builder = Builder::new(observation_bits + counter_bits);
        let counter: Vec<Signal> =
            (0..counter_bits).map(|bit| Signal::input(observation_bits + bit)).collect();
        let mut key = counter.clone();
        key.extend((0..observation_bits).map(Signal::input));
        let action = build_word_table(&mut builder, &key, &table, action_bits(shape.actions));
        let mut carry = Signal::TRUE;
        let mut next = Vec::new();
        for digit in &counter {
            next.push(builder.xor(*digit, carry));
            carry = builder.and(carry, *digit);
        }
        Policy::close(builder, observation_bits, shape.actions, &action, &next).ok()
    }

    /// How many different observations were seen.
    pub fn states(&self) -> usize {
        self.states.len()
    }
}

impl Edge {
    fn value(&self, values: &[i64]) -> i64 {
        let ahead: i64 = self.next.iter().map(|(next, count)| values[*next as usize] * count).sum();
        ((self.reward << VALUE_BITS) + ahead) / self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experience::Step;
    use bem_base::environment::Field;
    use bem_base::prng::Prng;

    /// A corridor of eight cells: right leads to the reward at the end, left to a small one at once.
    fn episode(serial: u64, prng: &mut Prng) -> Episode {
        let mut place = 2u64;
        let mut steps = Vec::new();
        for time in 0..12 {
            let action = prng.below(2) as u16;
            let observation = Bits([place, 0, 0, 0]);
            place = if action == 1 { (place + 1).min(7) } else { place.saturating_sub(1) };
            let reward = if place == 7 { 1_000 } else { i32::from(action == 0) * 20 };
            steps.push(Step {
                observation,
                action,
                reward,
                done: time == 11,
                bad: false,
                uniform: true,
                propensity: 0,
            });
        }
        Episode { serial, steps }
    }

    #[test]
    fn a_plan_gives_up_small_rewards_for_a_large_one() {
        let shape = Shape {
            observation_bits: 3,
            actions: 2,
            horizon: 12,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 12_000,
            fields: vec![Field { low: 0, width: 3 }],
        };
        let mut prng = Prng::stream(1, "corridor");
        let log: Vec<Episode> = (0..300).map(|serial| episode(serial, &mut prng)).collect();
        let model = Model::new(&shape, &log.iter().collect::<Vec<_>>()).unwrap();
        assert!(model.is_controlled());
        let policy = model.compile(&shape, &model.plan(Attitude::Careful)).unwrap();
        let mut player = Player::new(&policy);
        assert!((0..8).all(|place| player.act(&Bits([place, 0, 0, 0])) == 1));
        assert!(model.value_of(&Policy::constant(2, 0)) < model.value_of(&policy));
    }
}
