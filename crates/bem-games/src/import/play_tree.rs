//! Playing and solving a game tree for one player; everybody else and chance draw by fixed weights.
//!
//! A step is one own decision; the player sees the number of its information set. Payoffs along the way are paid at
//! the end, so that a reward never tells more than the information set. Information sets may differ in their number
//! of actions: an action is taken modulo that number. The optimum is the best response, found from the last
//! decisions backward, which needs perfect recall. Clauses: GLE-9.

use super::normal::draw_index;
use super::{ImportError, REWARD_MAX};
use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Game, Steps, Value};
use crate::rules::{self, RuleGame, Rules, bits_for};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::EPISODE_STEPS_MAX;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who moves at a node.
#[derive(Clone, Debug)]
pub(super) enum Move {
    /// Nobody: the game is over.
    End,
    /// Chance or another player, with these weights.
    Draw(Vec<u32>),
    /// The player, at the information set with this number.
    Choose(u32),
}

/// A node of the tree; children come after their parent.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Own payoff here, in milli-units.
    pub payoff: i64,
    pub choice: Move,
    pub children: Vec<u32>,
    /// Children still to be read; zero once the tree is complete.
    pub waiting: usize,
}

impl Node {
    pub fn new(payoff: i64, choice: Move) -> Node {
        Node { payoff, choice, children: Vec::new(), waiting: 0 }
    }
}

/// What is known about a node's past.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Past {
    /// Own decisions before this node.
    decisions: u32,
    /// The last of them: information set and action.
    last: Option<(u32, u32)>,
}

pub(super) struct TreeGame {
    nodes: Vec<Node>,
    shape: Shape,
    /// What is shown at each information set.
    codes: BTreeMap<u32, u16>,
    /// What is shown when the game ended before the first own decision.
    idle_code: u16,
    /// The best action at each information set.
    best: BTreeMap<u32, u16>,
    optimum: Value,
    random: Value,
}

impl TreeGame {
    pub fn build(nodes: Vec<Node>) -> Result<Arc<dyn Game>, ImportError> {
        let pasts = pasts(&nodes)?;
        let mut codes = BTreeMap::new();
        for node in &nodes {
            if let Move::Choose(set) = node.choice {
                let next = codes.len() as u16;
                if codes.len() == usize::from(u16::MAX) - 1 {
                    return Err(ImportError::content("more than 65534 information sets"));
                }
                codes.entry(set).or_insert(next);
            }
        }
        let totals = totals(&nodes);
        let ends = || {
            nodes.iter().zip(&totals).filter(|(node, _)| node.children.is_empty()).map(|(_, total)| *total)
        };
        let (low, high) = (ends().min().unwrap_or(0), ends().max().unwrap_or(0));
        if i64::from(REWARD_MAX) < low.abs().max(high.abs()) {
            return Err(ImportError::content("payoffs along one way through the tree exceed 250,000 units"));
        }
        let horizon = pasts.iter().map(|past| past.decisions).max().unwrap_or(0).max(1);
        if EPISODE_STEPS_MAX < horizon {
            let text = format!(
                "one way through the tree has {horizon} own decisions; at most {EPISODE_STEPS_MAX} are allowed"
            );
            return Err(ImportError::Content(text));
        }
        let own_actions = |node: &Node| matches!(node.choice, Move::Choose(_)).then_some(node.children.len());
        let actions = nodes.iter().filter_map(own_actions).max().unwrap_or(1);
        let one_step = horizon == 1;
        let shape = Shape {
            reward_min: if one_step { low } else { low.min(0) } as i32,
            reward_max: if one_step { high } else { high.max(0) } as i32,
            return_min: low,
            return_max: high,
            ..rules::answer_shape(&[bits_for(codes.len() as u64 + 1)], actions, horizon, 1)
        };
        let idle_code = codes.len() as u16;
        let (best, optimum) = solve(&nodes, &pasts);
        let random = uniform(&nodes, actions).to_value();
        Ok(Arc::new(RuleGame::new(TreeGame { nodes, shape, codes, idle_code, best, optimum, random })))
    }

    /// Follows the draws of others to the next own decision or the end; returns the node and what was paid.
    fn follow<D: Draw>(&self, mut node: usize, draw: &mut D) -> (usize, i64) {
        let mut paid = self.nodes[node].payoff;
        while let Move::Draw(weights) = &self.nodes[node].choice {
            node = self.nodes[node].children[draw_index(weights, draw)] as usize;
            paid += self.nodes[node].payoff;
        }
        (node, paid)
    }
}

/// The past of every node, and whether the player remembers what its information sets say it should.
fn pasts(nodes: &[Node]) -> Result<Vec<Past>, ImportError> {
    let mut pasts = vec![Past { decisions: 0, last: None }; nodes.len()];
    let mut of_set: BTreeMap<u32, (Past, usize)> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let past = pasts[index];
        if let Move::Choose(set) = node.choice {
            let (first, actions) = *of_set.entry(set).or_insert((past, node.children.len()));
            if first != past {
                return Err(ImportError::content(format!(
                    "information set {set} needs the player to forget an own move: only games with perfect recall \
                     can be played"
                )));
            }
            debug_assert_eq!(actions, node.children.len());
        }
        for (action, child) in node.children.iter().enumerate() {
            pasts[*child as usize] = match node.choice {
                Move::Choose(set) => Past { decisions: past.decisions + 1, last: Some((set, action as u32)) },
                _ => past,
            };
        }
    }
    Ok(pasts)
}

/// What has been paid on the way to every node, the node included.
fn totals(nodes: &[Node]) -> Vec<i64> {
    let mut totals: Vec<i64> = nodes.iter().map(|node| node.payoff).collect();
    for (index, node) in nodes.iter().enumerate() {
        for child in &node.children {
            totals[*child as usize] = totals[*child as usize].saturating_add(totals[index]);
        }
    }
    totals
}

fn shares(weights: &[u32]) -> (impl Iterator<Item = u64> + '_, u64) {
    let sum = weights.iter().map(|weight| u64::from(*weight)).sum();
    (weights.iter().map(|weight| u64::from(*weight)), sum)
}

/// The chance that the others' draws lead to each node.
fn reaches(nodes: &[Node]) -> Vec<Expectation> {
    let mut reaches = vec![Expectation::ONE; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        let here = reaches[index];
        match &node.choice {
            Move::Draw(weights) => {
                let (weights, sum) = shares(weights);
                for (child, weight) in node.children.iter().zip(weights) {
                    reaches[*child as usize] = here.share(weight, sum);
                }
            }
            _ => node.children.iter().for_each(|child| reaches[*child as usize] = here),
        }
    }
    reaches
}

/// The best action at every information set, and the value of playing so.
fn solve(nodes: &[Node], pasts: &[Past]) -> (BTreeMap<u32, u16>, Value) {
    let reaches = reaches(nodes);
    let mut members: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        if let Move::Choose(set) = node.choice {
            members.entry(set).or_default().push(index);
        }
    }
    // After more own decisions first, and children before parents: every value is there when it is needed.
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse((pasts[*index].decisions, *index)));
    let mut best: BTreeMap<u32, u16> = BTreeMap::new();
    let mut values = vec![Expectation::ZERO; nodes.len()];
    for index in order {
        let node = &nodes[index];
        let later = match &node.choice {
            Move::End => Expectation::ZERO,
            Move::Draw(weights) => mean(&values, &node.children, weights),
            Move::Choose(set) => {
                let action = *best.entry(*set).or_insert_with(|| {
                    let worth = |action: usize| {
                        let value = |member: &usize| {
                            let child = nodes[*member].children[action] as usize;
                            values[child].times_chance(reaches[*member])
                        };
                        members[set].iter().map(value).fold(Expectation::ZERO, Expectation::plus)
                    };
                    let worths: Vec<Expectation> = (0..node.children.len()).map(worth).collect();
                    let most = worths.iter().max();
                    worths.iter().position(|worth| Some(worth) == most).unwrap_or(0) as u16
                });
                values[node.children[usize::from(action)] as usize]
            }
        };
        values[index] = later.plus(Expectation::from_int(node.payoff));
    }
    (best, values[0].to_value())
}

fn mean(values: &[Expectation], children: &[u32], weights: &[u32]) -> Expectation {
    let (weights, sum) = shares(weights);
    let weighed =
        children.iter().zip(weights).map(|(child, weight)| values[*child as usize].share(weight, sum));
    weighed.fold(Expectation::ZERO, Expectation::plus)
}

/// The value of choosing every one of `actions` actions with equal chance.
fn uniform(nodes: &[Node], actions: usize) -> Expectation {
    let mut values = vec![Expectation::ZERO; nodes.len()];
    for (index, node) in nodes.iter().enumerate().rev() {
        let later = match &node.choice {
            Move::End => Expectation::ZERO,
            Move::Draw(weights) => mean(&values, &node.children, weights),
            Move::Choose(_) => {
                // How many of the actions mean each of the node's own, when taken modulo.
                let count = node.children.len();
                let weights: Vec<u32> =
                    (0..count).map(|own| (actions - own).div_ceil(count) as u32).collect();
                mean(&values, &node.children, &weights)
            }
        };
        values[index] = later.plus(Expectation::from_int(node.payoff));
    }
    values[0]
}

/// The node of the tree, and what was paid on the way there.
#[derive(Clone)]
pub(super) struct State {
    node: usize,
    paid: i64,
}

impl Rules for TreeGame {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let (node, paid) = self.follow(0, draw);
        State { node, paid }
    }

    fn observe(&self, state: &State) -> Bits {
        let code = match self.nodes[state.node].choice {
            Move::Choose(set) => self.codes[&set],
            _ => self.idle_code,
        };
        let mut bits = Bits::ZERO;
        bits.set_field(0, usize::from(self.shape.observation_bits), u64::from(code));
        bits
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let children = &self.nodes[state.node].children;
        if !children.is_empty() {
            let (node, paid) = self.follow(children[usize::from(action) % children.len()] as usize, draw);
            *state = State { node, paid: state.paid + paid };
        }
        let done = self.nodes[state.node].children.is_empty();
        Outcome { reward: if done { state.paid as i32 } else { 0 }, done, bad: false }
    }

    fn best(&self, state: &State) -> u16 {
        match self.nodes[state.node].choice {
            Move::Choose(set) => self.best[&set],
            _ => 0,
        }
    }

    fn optimum(&self) -> Value {
        self.optimum
    }

    fn random(&self) -> Value {
        self.random
    }

    fn steps(&self) -> Steps {
        if self.shape.horizon == 1 { Steps::Drawn(Fixed::ONE) } else { Steps::ByPolicy }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Opponent, Seat, extensive};
    use super::*;
    use crate::conformance;

    const KUHN: &str = include_str!("../../../../examples/games/kuhn_poker.efg");
    const CENTIPEDE: &str = include_str!("../../../../examples/games/centipede.efg");

    fn seat(player: usize, policy: &str) -> Seat {
        Seat { player, opponent: Opponent::parse(policy).unwrap() }
    }

    #[test]
    fn examples_pass_the_kit_in_every_seat() {
        for text in [KUHN, CENTIPEDE] {
            for player in [1, 2] {
                conformance::check(&*extensive::read(text, &seat(player, "{}")).unwrap()).unwrap();
            }
        }
    }

    #[test]
    fn the_best_response_to_the_balanced_poker_player_is_worth_the_known_value() {
        // In equilibrium the second player bets a jack after a check with one third, calls with a queen with one
        // third, and plays the rest straight; the first player then gets -1/18 at best.
        let policy = r#"{"2":{"1":[2,1],"2":[1,0],"3":[0,1],"4":[1,0],"5":[2,1],"6":[0,1]}}"#;
        let game = extensive::read(KUHN, &seat(1, policy)).unwrap();
        let want = Fixed::from_ratio(-1000, 18).to_raw();
        let got = game.optimum().mean.to_raw();
        assert!(got.abs_diff(want) <= 2, "{got} {want}");
    }

    #[test]
    fn going_on_pays_in_the_centipede_when_the_other_flips_a_coin() {
        let game = extensive::read(CENTIPEDE, &seat(1, "{}")).unwrap();
        // Take at once: 1. Pass: half of 0, half of the last own choice between 3 and 2.
        assert_eq!(game.optimum().mean, Fixed::from_int(1500));
        assert_eq!(game.shape().horizon, 2);
    }

    #[test]
    fn forgetful_games_are_refused() {
        let text = r#"EFG 2 R "absent-minded" { "A" }
            p "" 1 1 "" { "x" "y" } 0
            p "" 1 1 "" { "x" "y" } 0
            t "" 1 "" { 1 } t "" 2 "" { 2 } t "" 3 "" { 3 }"#;
        let error = extensive::read(text, &Seat::default()).err().unwrap().to_string();
        assert!(error.starts_with("information set 1 needs the player to forget"), "{error}");
    }

    #[test]
    fn a_game_that_may_end_before_any_decision_still_takes_a_step() {
        let text = r#"EFG 2 R "lucky" { "A" }
            c "" 1 "" { "end" 1/3 "go" 2/3 } 0
            t "" 1 "" { 6 }
            p "" 1 1 "" { "x" "y" "z" } 0
            t "" 2 "" { 0 } t "" 3 "" { 3 } t "" 4 "" { 1 }"#;
        let game = extensive::read(text, &Seat::default()).unwrap();
        conformance::check(&*game).unwrap();
        assert_eq!(game.optimum().mean, Fixed::from_int(4000));
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str| extensive::read(text, &Seat::default()).err().unwrap().to_string();
        let head = "EFG 2 R \"x\" { \"A\" \"B\" }\n";
        assert_eq!(error(&format!("{head}q \"\"")), "line 2: expected a node (c, p or t), found \"q\"");
        assert_eq!(
            error(&format!("{head}c \"\" 1 \"\" {{ \"a\" 1/2 \"b\" 1/3 }} 0")),
            "line 2: probabilities sum to 5/6; they must sum to 1"
        );
        assert_eq!(
            error(&format!("{head}p \"\" 3 1")),
            "line 2: expected a player, a whole number from 1 to 2, found \"3\""
        );
        assert_eq!(error(&format!("{head}t \"\" 1")), "line 2: outcome 1 has no payoffs yet");
        assert_eq!(
            error(&format!("{head}p \"\" 1 1 \"\" {{ \"a\" }} 0")),
            "line 2: expected a node (c, p or t), found the end of the file"
        );
        assert_eq!(
            error(&format!("{head}t \"\" 1 \"\" {{ 1 2 }}\nt \"\" 1")),
            "line 3: expected the end of the file, found \"t\""
        );
    }

    #[test]
    fn a_very_deep_tree_costs_no_stack() {
        let mut text = "EFG 2 R \"deep\" { \"A\" }\n".to_string();
        for set in 1..=60_000 {
            text.push_str(&format!("p \"\" 1 {set} \"\" {{ \"on\" }} 0\n"));
        }
        text.push_str("t \"\" 1 \"\" { 1 }");
        let game = extensive::read(&text, &Seat::default()).unwrap();
        assert_eq!(game.optimum().mean, Fixed::from_int(1000));
    }
}
