//! Gambit's extensive form (`.efg`): a tree of chance, decisions and outcomes, written in prefix order.
//!
//! Probabilities are exact fractions; payoffs become milli-units, rounded to the nearest. Names are read and
//! dropped: a player sees its information set and nothing else. Clauses: GLE-9.

use super::lexer::{Lexer, Rational, Token};
use super::play_tree::{Move, Node, TreeGame};
use super::{ImportError, Seat};
use crate::game::Game;
use bem_base::limits::ACTIONS_MAX;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Nodes of one game.
pub const NODES_MAX: usize = 1 << 20;

/// Reads a game in extensive form, for the player in this seat.
pub fn read(text: &str, seat: &Seat) -> Result<Arc<dyn Game>, ImportError> {
    let mut reader = Reader::new(text, seat)?;
    let nodes = reader.nodes()?;
    TreeGame::build(nodes)
}

/// The file as far as it was read, seen from one player's seat.
struct Reader<'a> {
    lexer: Lexer<'a>,
    seat: &'a Seat,
    players: usize,
    /// Own payoff of every outcome defined so far.
    outcomes: BTreeMap<usize, i64>,
    /// Actions of every information set defined so far; chance is player 0.
    sets: BTreeMap<(usize, usize), Set>,
}

#[derive(Clone)]
struct Set {
    actions: usize,
    weights: Vec<u32>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, seat: &'a Seat) -> Result<Reader<'a>, ImportError> {
        let mut lexer = Lexer::new(text);
        let players = lexer.header("EFG", "2")?.len();
        if !(1..=players).contains(&seat.player) {
            return Err(ImportError::content(format!(
                "player {} does not exist: there are {players}",
                seat.player
            )));
        }
        if lexer.peek() == Some(b'"') {
            lexer.text("the comment")?;
        }
        Ok(Reader { lexer, seat, players, outcomes: BTreeMap::new(), sets: BTreeMap::new() })
    }

    /// All nodes in prefix order. A stack of open nodes stands for recursion, so that depth costs no stack.
    fn nodes(&mut self) -> Result<Vec<Node>, ImportError> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        loop {
            if NODES_MAX <= nodes.len() {
                return Err(self.lexer.error(format!("more than {NODES_MAX} nodes")));
            }
            let index = nodes.len();
            let (node, children) = self.node()?;
            if let Some(&parent) = open.last() {
                nodes[parent].children.push(index as u32);
                nodes[parent].waiting -= 1;
            }
            nodes.push(node);
            if 0 < children {
                nodes[index].waiting = children;
                open.push(index);
            }
            while open.last().is_some_and(|last| nodes[*last].waiting == 0) {
                open.pop();
            }
            if open.is_empty() {
                self.lexer.expect(&Token::End, "the end of the file")?;
                return Ok(nodes);
            }
        }
    }

    fn node(&mut self) -> Result<(Node, usize), ImportError> {
        let kind = self.lexer.next()?;
        let Token::Word(kind) = kind else {
            let reason = format!("expected a node (c, p or t), found {}", kind.describe());
            return Err(self.lexer.error(reason));
        };
        match kind.as_str() {
            "t" => {
                self.lexer.text("the node's name")?;
                Ok((Node::new(self.outcome()?, Move::End), 0))
            }
            "c" => {
                self.lexer.text("the node's name")?;
                let set = self.set(0)?.1;
                let actions = set.actions;
                Ok((Node::new(self.outcome()?, Move::Draw(set.weights)), actions))
            }
            "p" => {
                self.lexer.text("the node's name")?;
                let player = self.lexer.count("a player", 1, self.players)?;
                let (number, set) = self.set(player)?;
                let actions = set.actions;
                let choice = if player == self.seat.player {
                    Move::Choose(number as u32)
                } else {
                    Move::Draw(set.weights)
                };
                Ok((Node::new(self.outcome()?, choice), actions))
            }
            other => {
                let reason = format!("expected a node (c, p or t), found {other:?}");
                Err(self.lexer.error(reason))
            }
        }
    }

    /// An information set: its number, and its actions unless they were given before.
    fn set(&mut self, player: usize) -> Result<(usize, Set), ImportError> {
        let number = self.lexer.count("an information set", 1, NODES_MAX)?;
        if self.lexer.peek() == Some(b'"') {
            self.lexer.text("the information set's name")?;
        }
        let known = self.sets.get(&(player, number)).cloned();
        let set = if self.lexer.peek() == Some(b'{') {
            let set = self.actions(player, number)?;
            if known.as_ref().is_some_and(|known| known.actions != set.actions) {
                let reason = format!(
                    "information set {number} of player {player} had another number of actions before"
                );
                return Err(self.lexer.error(reason));
            }
            set
        } else {
            known.ok_or_else(|| {
                self.lexer.error(format!("information set {number} of player {player} has no actions yet"))
            })?
        };
        self.sets.insert((player, number), set.clone());
        Ok((number, set))
    }

    fn actions(&mut self, player: usize, number: usize) -> Result<Set, ImportError> {
        self.lexer.expect(&Token::Open, "'{' before the actions")?;
        let mut chances = Vec::new();
        let mut actions = 0;
        while self.lexer.peek() != Some(b'}') {
            self.lexer.text("an action's name")?;
            actions += 1;
            if player == 0 {
                chances.push(self.lexer.number("a probability")?);
            }
            if ACTIONS_MAX < actions {
                return Err(self.lexer.error(format!("more than {ACTIONS_MAX} actions")));
            }
        }
        self.lexer.expect(&Token::Close, "'}' after the actions")?;
        if actions == 0 {
            return Err(self.lexer.error("a node without actions must be written as t"));
        }
        let weights = match player {
            0 => chance_weights(&chances).map_err(|reason| self.lexer.error(reason))?,
            player if player == self.seat.player => Vec::new(),
            player => self.seat.opponent.weights(player, number, actions)?,
        };
        Ok(Set { actions, weights })
    }

    fn outcome(&mut self) -> Result<i64, ImportError> {
        let number = self.lexer.count("an outcome", 0, NODES_MAX)?;
        if self.lexer.peek() == Some(b'"') {
            self.lexer.text("the outcome's name")?;
        }
        if self.lexer.peek() == Some(b'{') {
            self.lexer.expect(&Token::Open, "'{'")?;
            let mut own = 0;
            for player in 1..=self.players {
                let payoff = self.lexer.number("a payoff")?;
                let milli = payoff.to_milli();
                let milli = milli.ok_or_else(|| self.lexer.error("a payoff beyond 250,000 units"))?;
                if player == self.seat.player {
                    own = milli;
                }
            }
            self.lexer.expect(&Token::Close, "'}' after one payoff per player")?;
            self.outcomes.insert(number, own);
        }
        match self.outcomes.get(&number) {
            Some(own) => Ok(*own),
            None if number == 0 => Ok(0),
            None => Err(self.lexer.error(format!("outcome {number} has no payoffs yet"))),
        }
    }
}

/// Whole weights in the proportion of these probabilities.
///
/// Decimals such as 0.333 are common, so a sum within one thousandth of one is taken as one.
fn chance_weights(chances: &[Rational]) -> Result<Vec<u32>, String> {
    if chances.iter().any(|chance| chance.numerator < 0) {
        return Err("a probability below zero".to_string());
    }
    let too_fine = || "probabilities whose common denominator is too large".to_string();
    let mut common = 1i128;
    for chance in chances {
        let (numerator, denominator) = (chance.numerator, chance.denominator);
        let reduced = denominator / gcd(numerator, denominator);
        common = common.checked_mul(reduced / gcd(common, reduced)).ok_or_else(too_fine)?;
        if 1 << 80 < common {
            return Err(too_fine());
        }
    }
    let scaled: Option<Vec<i128>> = chances
        .iter()
        .map(|chance| chance.numerator.checked_mul(common).map(|wide| wide / chance.denominator))
        .collect();
    let scaled = scaled.ok_or_else(too_fine)?;
    let sum: i128 =
        scaled.iter().try_fold(0i128, |sum, weight| sum.checked_add(*weight)).ok_or_else(too_fine)?;
    if sum == 0 || common / 1_000 < (sum - common).abs() {
        return Err(format!("probabilities sum to {sum}/{common}; they must sum to 1"));
    }
    let shared = scaled.iter().fold(sum, |shared, weight| gcd(shared, *weight));
    if i128::from(u32::MAX) < sum / shared {
        return Err(too_fine());
    }
    Ok(scaled.iter().map(|weight| (weight / shared) as u32).collect())
}

fn gcd(left: i128, right: i128) -> i128 {
    let (mut left, mut right) = (left.abs(), right.abs());
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left.max(1)
}
