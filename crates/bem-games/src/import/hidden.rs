//! Processes whose observations hide their states: the best play by everything seen and done so far.
//!
//! A history is summed up by the weights of the states it leaves possible. Weights stay whole numbers, reduced by
//! their common divisor, so that equal situations are found to be equal. The number of situations is bounded: a
//! process beyond it is refused rather than solved approximately. Clauses: GLE-9.

use super::ImportError;
use super::mdp::Process;
use crate::exact::Expectation;
use bem_base::environment::Bits;
use std::collections::BTreeMap;

/// Situations of one process.
pub const SITUATIONS_MAX: usize = 100_000;
/// Steps of an episode whose states are hidden; the search goes as deep.
pub const HIDDEN_HORIZON_MAX: u32 = 256;

/// The states that are possible, with their weights.
type Situation = Vec<(u32, u128)>;

/// What a step showed.
type Sight = (Bits, i32, bool);

/// The best action in every situation, and where each step leads.
pub(super) struct PolicyGraph {
    first: BTreeMap<Bits, u32>,
    nodes: Vec<PolicyNode>,
}

#[derive(Default)]
struct PolicyNode {
    action: u16,
    next: BTreeMap<(u16, Sight), u32>,
}

impl PolicyGraph {
    /// The situation after the first observation.
    pub fn begin(&self, seen: &Bits) -> u32 {
        self.first.get(seen).copied().expect("every start was searched")
    }

    /// The situation after one more step.
    pub fn next(&self, node: u32, action: u16, seen: &Bits, reward: i32, bad: bool) -> u32 {
        let next = &self.nodes[node as usize].next;
        next.get(&(action, (*seen, reward, bad))).copied().expect("every step was searched")
    }

    /// The best action.
    pub fn action(&self, node: u32) -> u16 {
        self.nodes[node as usize].action
    }
}

/// The best play and its value.
pub(super) fn solve(process: &Process) -> Result<(PolicyGraph, Expectation), ImportError> {
    if HIDDEN_HORIZON_MAX < process.horizon {
        return Err(ImportError::content(format!(
            "\"horizon\" is {}; with observations that hide states at most {HIDDEN_HORIZON_MAX} is allowed",
            process.horizon
        )));
    }
    let mut search = BeliefSearch {
        process,
        known: BTreeMap::new(),
        graph: PolicyGraph { first: BTreeMap::new(), nodes: Vec::new() },
    };
    let mut starts: BTreeMap<Bits, Situation> = BTreeMap::new();
    for (state, weight) in process.start.iter().filter(|(_, weight)| 0 < *weight) {
        add(starts.entry(process.observations[*state as usize]).or_default(), *state, u128::from(*weight))?;
    }
    let all: u128 = starts.values().flatten().map(|(_, weight)| weight).sum();
    let mut value = Expectation::ZERO;
    for (seen, situation) in starts {
        let chance = total(&situation);
        let (node, worth) = search.solve(reduced(situation), process.horizon)?;
        search.graph.first.insert(seen, node);
        value = value.plus(share(worth, chance, all));
    }
    Ok((search.graph, value))
}

struct BeliefSearch<'a> {
    process: &'a Process,
    known: BTreeMap<(u32, Situation), (u32, Expectation)>,
    graph: PolicyGraph,
}

impl BeliefSearch<'_> {
    /// The node and the value of a situation with this many steps left. Depth is bounded by the horizon.
    fn solve(&mut self, situation: Situation, left: u32) -> Result<(u32, Expectation), ImportError> {
        let key = (left, situation);
        if let Some(found) = self.known.get(&key) {
            return Ok(*found);
        }
        if SITUATIONS_MAX <= self.graph.nodes.len() {
            return Err(ImportError::content(format!(
                "observations hide states, and best play meets more than {SITUATIONS_MAX} situations, which is the \
                 bound for an exact optimum"
            )));
        }
        let node = self.graph.nodes.len();
        self.graph.nodes.push(PolicyNode::default());
        let mut best: Option<(u16, Expectation)> = None;
        for action in 0..self.process.actions {
            let value = self.action_value(&key.1, action, left, node)?;
            if best.is_none_or(|(_, most)| most < value) {
                best = Some((action as u16, value));
            }
        }
        let (action, value) = best.unwrap_or_default();
        self.graph.nodes[node].action = action;
        self.known.insert(key, (node as u32, value));
        Ok((node as u32, value))
    }

    fn action_value(
        &mut self,
        situation: &Situation,
        action: usize,
        left: u32,
        node: usize,
    ) -> Result<Expectation, ImportError> {
        // All rows are brought to one denominator, so that the weights of their branches can be added.
        let sum_of = |state: u32| -> u128 {
            self.process.row(state, action).iter().map(|branch| u128::from(branch.weight)).sum()
        };
        let common = situation.iter().try_fold(1u128, |common, (state, _)| {
            let sum = sum_of(*state);
            common.checked_mul(sum / gcd(common, sum)).filter(|common| *common < 1 << 60)
        });
        let common = common.ok_or_else(too_fine)?;
        let all = total(situation).checked_mul(common).ok_or_else(too_fine)?;
        let mut value = Expectation::ZERO;
        let mut sights: BTreeMap<Sight, Situation> = BTreeMap::new();
        for (state, weight) in situation {
            let scale = weight.checked_mul(common / sum_of(*state)).ok_or_else(too_fine)?;
            for branch in self.process.row(*state, action).iter().filter(|branch| 0 < branch.weight) {
                let chance = scale.checked_mul(u128::from(branch.weight)).ok_or_else(too_fine)?;
                value = value.plus(share(Expectation::from_int(i64::from(branch.reward)), chance, all));
                if !branch.done && 1 < left {
                    let sight =
                        (self.process.observations[branch.target as usize], branch.reward, branch.bad);
                    add(sights.entry(sight).or_default(), branch.target, chance)?;
                }
            }
        }
        for (sight, next) in sights {
            let chance = total(&next);
            let (target, worth) = self.solve(reduced(next), left - 1)?;
            self.graph.nodes[node].next.insert((action as u16, sight), target);
            value = value.plus(share(worth, chance, all));
        }
        Ok(value)
    }
}

fn too_fine() -> ImportError {
    ImportError::content("observations hide states, and the weights are too fine for an exact optimum")
}

fn add(situation: &mut Situation, state: u32, weight: u128) -> Result<(), ImportError> {
    match situation.binary_search_by_key(&state, |(state, _)| *state) {
        Ok(index) => {
            let sum = situation[index].1.checked_add(weight).ok_or_else(too_fine)?;
            situation[index].1 = sum;
        }
        Err(index) => situation.insert(index, (state, weight)),
    }
    // Room for the sum over all states.
    if situation.iter().try_fold(0u128, |sum, (_, weight)| sum.checked_add(*weight)).is_none() {
        return Err(too_fine());
    }
    Ok(())
}

fn total(situation: &Situation) -> u128 {
    situation.iter().map(|(_, weight)| weight).sum()
}

fn reduced(situation: Situation) -> Situation {
    let shared = situation.iter().fold(0, |shared, (_, weight)| gcd(shared, *weight)).max(1);
    situation.into_iter().map(|(state, weight)| (state, weight / shared)).collect()
}

fn gcd(left: u128, right: u128) -> u128 {
    let (mut left, mut right) = (left, right);
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

/// `value * part / all`, after both have lost the bits beyond 62.
fn share(value: Expectation, part: u128, all: u128) -> Expectation {
    let excess = (128 - all.leading_zeros()).saturating_sub(62);
    value.share((part >> excess) as u64, (all >> excess) as u64)
}
