//! Hidden states by merging: the smallest machine found under which rewards are a function of state, symbol and
//! action.
//!
//! All logged episodes make one tree. From the root on, states are either merged with one that is already kept,
//! the merge with most agreeing evidence first, or kept as new when no merge is free of contradiction. What
//! contradicts: the same action with two rewards, or two actions with the highest one. Actions must not change
//! what is seen. Must not know games. Clauses: SCC-2.

use crate::experience::Episode;
use crate::function::{build_word_table, choice_bits};
use crate::functions::is_short;
use crate::hypothesis::Stated;
use crate::policy::{Policy, action_bits};
use crate::samples::Work;
use crate::statement::Statement;
use bem_base::environment::{Bits, Shape};
use bem_circuit::netlist::{Builder, Signal};
use std::collections::BTreeMap;

/// Different observations at most.
const SYMBOLS_MAX: usize = 16;
/// States at most.
const STATES_MAX: usize = 32;
/// Nodes of the tree at most.
const NODES_MAX: usize = 10_000;
const NONE: u32 = u32::MAX;

/// What is known about one node and symbol: rewards of actions, sorted by action.
type Known = Vec<(u16, i32)>;

/// A state: where each observation leads, and which rewards were seen there.
#[derive(Clone, Debug)]
struct Node {
    children: Vec<u32>,
    known: Vec<Known>,
}

/// The states found so far, with the highest reward there is and how many observations are told apart.
struct Machine {
    nodes: Vec<Node>,
    top: i32,
    symbols: usize,
}

/// One change that can be taken back.
enum Change {
    Child { node: u32, symbol: usize, old: u32 },
    Known { node: u32, symbol: usize, old: Known },
}

/// A policy from the smallest machine found; none when there is no small one.
pub fn fit(shape: &Shape, episodes: &[&Episode], work: &mut Work) -> Option<(Stated, u32, String)> {
    let mut symbols: BTreeMap<Bits, usize> = BTreeMap::new();
    for step in episodes.iter().flat_map(|episode| &episode.steps) {
        let number = symbols.len();
        symbols.entry(step.observation).or_insert(number);
        if SYMBOLS_MAX < symbols.len() {
            return None;
        }
    }
    let fitting: Vec<&Episode> = episodes.iter().copied().filter(|episode| !episode.is_screen()).collect();
    let top = fitting.iter().flat_map(|episode| &episode.steps).map(|step| step.reward).max()?;
    let mut machine = Machine { nodes: Vec::new(), top, symbols: symbols.len() };
    let labels = machine.grow(&fitting, &symbols)?;
    let states = machine.merge(work)?;
    let bits = choice_bits(states.len()) as usize;
    let edges: u32 = states.iter().map(|state| machine.nodes[*state as usize].known_symbols()).sum();
    let length = edges * (bits + action_bits(shape.actions)) as u32 + 4;
    if states.len() < 2 || !is_short(length, labels) {
        return None;
    }
    let policy = machine.compile(shape, &states, &symbols, bits)?;
    Some((policy, length, format!("machine of {} states", states.len())))
}

impl Node {
    fn new(symbols: usize) -> Node {
        Node { children: vec![NONE; symbols], known: vec![Vec::new(); symbols] }
    }

    fn known_symbols(&self) -> u32 {
        self.known.iter().filter(|known| !known.is_empty()).count() as u32
    }
}

/// Joins what is known; the number of agreements, or none where it contradicts.
fn join(target: &mut Known, other: &Known, top: i32) -> Option<u32> {
    let mut agreements = 0;
    for (action, reward) in other {
        match target.binary_search_by_key(action, |(action, _)| *action) {
            Ok(place) if target[place].1 == *reward => agreements += if *reward == top { 2 } else { 1 },
            Ok(_) => return None,
            Err(place) => target.insert(place, (*action, *reward)),
        }
    }
    let right = target.iter().filter(|(_, reward)| *reward == top).count();
    (right <= 1).then_some(agreements)
}

impl Machine {
    /// The tree of all episodes; the number of informative steps, or none when rewards contradict each other.
    fn grow(&mut self, episodes: &[&Episode], symbols: &BTreeMap<Bits, usize>) -> Option<usize> {
        self.nodes.push(Node::new(self.symbols));
        let mut labels = 0;
        for episode in episodes.iter().rev() {
            if NODES_MAX < self.nodes.len() + episode.steps.len() {
                break;
            }
            let mut node = 0;
            for step in &episode.steps {
                let symbol = symbols[&step.observation];
                join(&mut self.nodes[node].known[symbol], &vec![(step.action, step.reward)], self.top)?;
                labels += usize::from(step.reward == self.top);
                if self.nodes[node].children[symbol] == NONE {
                    self.nodes[node].children[symbol] = self.nodes.len() as u32;
                    self.nodes.push(Node::new(self.symbols));
                }
                node = self.nodes[node].children[symbol] as usize;
            }
        }
        Some(labels)
    }

    /// Blue-fringe merging; the states that are left, the first one first.
    fn merge(&mut self, work: &mut Work) -> Option<Vec<u32>> {
        let mut kept: Vec<u32> = vec![0];
        loop {
            let mut fringe: Vec<(u32, usize, u32)> = Vec::new();
            for state in &kept {
                for (symbol, child) in self.nodes[*state as usize].children.iter().enumerate() {
                    if *child != NONE && !kept.contains(child) {
                        fringe.push((*state, symbol, *child));
                    }
                }
            }
            if fringe.is_empty() {
                return Some(kept);
            }
            let mut best: Option<(u32, u32, usize, u32)> = None;
            let mut orphan: Option<(u32, u32)> = None;
            for (parent, symbol, blue) in &fringe {
                let mut fits = false;
                for red in &kept {
                    let mut undo = Vec::new();
                    let score = self.fold(*red, *blue, &mut undo, work);
                    self.take_back(undo);
                    if let Some(score) = score {
                        fits = true;
                        if best.is_none_or(|held| held.0 < score) {
                            best = Some((score, *red, *symbol, *parent));
                        }
                    }
                }
                if !fits {
                    let weight = self.weight(*blue);
                    if orphan.is_none_or(|held| held.0 < weight) {
                        orphan = Some((weight, *blue));
                    }
                }
                if work.left() == 0 {
                    return None;
                }
            }
            match (orphan, best) {
                (Some((_, blue)), _) => {
                    if STATES_MAX <= kept.len() {
                        return None;
                    }
                    kept.push(blue);
                }
                (None, Some((_, red, symbol, parent))) => {
                    let blue = self.nodes[parent as usize].children[symbol];
                    let mut undo = Vec::new();
                    let folded = self.fold(red, blue, &mut undo, work);
                    assert!(folded.is_some() || work.left() == 0, "a merge that was tried succeeds");
                    self.nodes[parent as usize].children[symbol] = red;
                }
                (None, None) => return None,
            }
        }
    }

    /// How much is known below a node, looking a few steps ahead.
    fn weight(&self, node: u32) -> u32 {
        let mut total = 0;
        let mut level = vec![node];
        for _ in 0..4 {
            let mut next = Vec::new();
            for node in level {
                let node = &self.nodes[node as usize];
                total += node.known.iter().map(|known| known.len() as u32).sum::<u32>();
                next.extend(node.children.iter().copied().filter(|child| *child != NONE));
            }
            level = next;
        }
        total
    }

    /// Folds the tree at `blue` into the machine at `red`; the agreements, or none on a contradiction.
    fn fold(&mut self, red: u32, blue: u32, undo: &mut Vec<Change>, work: &mut Work) -> Option<u32> {
        let mut pending = vec![(red, blue)];
        let mut score = 0;
        while let Some((target, source)) = pending.pop() {
            if target == source {
                continue;
            }
            if !work.spend(8 * self.symbols as u64) {
                return None;
            }
            for symbol in 0..self.symbols {
                let other = self.nodes[source as usize].known[symbol].clone();
                if !other.is_empty() {
                    let top = self.top;
                    let held = &mut self.nodes[target as usize].known[symbol];
                    undo.push(Change::Known { node: target, symbol, old: held.clone() });
                    score += join(held, &other, top)?;
                }
                let below = self.nodes[source as usize].children[symbol];
                if below == NONE {
                    continue;
                }
                match self.nodes[target as usize].children[symbol] {
                    NONE => {
                        undo.push(Change::Child { node: target, symbol, old: NONE });
                        self.nodes[target as usize].children[symbol] = below;
                    }
                    child => pending.push((child, below)),
                }
            }
        }
        Some(score)
    }

    fn take_back(&mut self, undo: Vec<Change>) {
        for change in undo.into_iter().rev() {
            match change {
                Change::Child { node, symbol, old } => self.nodes[node as usize].children[symbol] = old,
                Change::Known { node, symbol, old } => self.nodes[node as usize].known[symbol] = old,
            }
        }
    }

    /// The best known action; unknown ones before those known to be wrong.
    fn best_action(&self, known: &Known, actions: u16) -> u16 {
        if let Some((action, _)) = known.iter().find(|(_, reward)| *reward == self.top) {
            return *action;
        }
        let untried = (0..actions).find(|action| known.iter().all(|(tried, _)| tried != action));
        untried
            .or_else(|| known.iter().max_by_key(|(_, reward)| *reward).map(|(action, _)| *action))
            .unwrap_or(0)
    }

    fn compile(
        &self,
        shape: &Shape,
        states: &[u32],
        symbols: &BTreeMap<Bits, usize>,
        state_bits: usize,
    ) -> Option<Stated> {
        let observation_bits = usize::from(shape.observation_bits);
        // Only bits in which symbols differ are needed.
        let telling: Vec<usize> = (0..observation_bits)
            .filter(|bit| {
                symbols.keys().any(|one| symbols.keys().any(|other| one.get(*bit) != other.get(*bit)))
            })
            .collect();
        if 40 < telling.len() {
            return None;
        }
        let code_bits = action_bits(shape.actions);
        let mut table: BTreeMap<u64, u64> = BTreeMap::new();
        for (number, state) in states.iter().enumerate() {
            let node = &self.nodes[*state as usize];
            for (observation, symbol) in symbols {
                let (known, child) = (&node.known[*symbol], node.children[*symbol]);
                if known.is_empty() && child == NONE {
                    continue;
                }
                let next = states.iter().position(|state| *state == child).unwrap_or(0) as u64;
                let seen = telling
                    .iter()
                    .enumerate()
                    .fold(0, |key, (place, bit)| key | u64::from(observation.get(*bit)) << place);
                let key = seen << state_bits | number as u64;
                table.insert(key, u64::from(self.best_action(known, shape.actions)) | next << code_bits);
            }
        }
        let mut builder = Builder::new(observation_bits + state_bits);
        let mut bits: Vec<Signal> =
            (0..state_bits).map(|bit| Signal::input(observation_bits + bit)).collect();
        bits.extend(telling.iter().map(|bit| Signal::input(*bit)));
        let outputs = build_word_table(&mut builder, &bits, &table, code_bits + state_bits);
        let (action, next) = outputs.split_at(code_bits);
        let policy = Policy::close(builder, observation_bits, shape.actions, action, next).ok()?;
        let seen = telling.iter().map(|bit| *bit as u16).collect();
        let statement = Statement::Machine { state_bits: state_bits as u8, seen, rows: table };
        Some(Stated { policy, statement })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experience::Step;
    use crate::policy::Player;
    use bem_base::environment::Field;
    use bem_base::prng::Prng;

    /// A random machine with `states` states, two inputs and four outputs, played uniformly.
    fn check(states: usize, episodes: u64, seed: u64) {
        let mut prng = Prng::stream(seed, "machine");
        let table: Vec<[(usize, u16); 2]> = (0..states)
            .map(|state| {
                let next = |prng: &mut Prng| (prng.below(states as u64) as usize, prng.below(4) as u16);
                let mut row = [next(&mut prng), next(&mut prng)];
                row[0].0 = (state + 1) % states;
                row
            })
            .collect();
        let shape = Shape {
            observation_bits: 1,
            actions: 4,
            horizon: 24,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 24_000,
            fields: vec![Field { low: 0, width: 1 }],
        };
        let mut play = |serial: u64, policy: Option<&Policy>| {
            let mut state = 0;
            let mut player = policy.map(Player::new);
            let steps = (0..24)
                .map(|time| {
                    let input = prng.below(2);
                    let observation = Bits([input, 0, 0, 0]);
                    let action = match &mut player {
                        Some(player) => player.act(&observation),
                        None => prng.below(4) as u16,
                    };
                    let (next, wanted) = table[state][input as usize];
                    state = next;
                    let reward = if action == wanted { 1_000 } else { 0 };
                    let (uniform, done) = (policy.is_none(), time == 23);
                    Step { observation, action, reward, done, bad: false, uniform, propensity: 16_383 }
                })
                .collect();
            Episode { serial, steps }
        };
        let log: Vec<Episode> = (0..episodes).map(|serial| play(serial, None)).collect();
        let (Stated { policy, .. }, _, words) =
            fit(&shape, &log.iter().collect::<Vec<_>>(), &mut Work::new(1 << 34)).unwrap();
        let total: i64 = (0..50).map(|serial| play(serial, Some(&policy)).total()).sum();
        assert!(50 * 24_000 * 99 / 100 <= total, "{words}: {total}");
    }

    #[test]
    fn random_machines_are_found_from_random_play() {
        check(2, 30, 1);
        check(4, 80, 2);
        check(8, 250, 3);
    }
}
