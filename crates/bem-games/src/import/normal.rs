//! Gambit's normal form (`.nfg`): one simultaneous move of every player, played once.
//!
//! Both ways of writing payoffs are read: a list of all payoffs, and outcomes with an index per contingency.
//! Contingencies run with the first player's strategy fastest. Clauses: GLE-9.

use super::lexer::{Lexer, Token};
use super::{ImportError, Seat};
use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Game, Steps, Value};
use crate::rules::{self, RuleGame, Rules};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::ACTIONS_MAX;
use std::sync::Arc;

/// Contingencies of one game.
pub const CONTINGENCIES_MAX: usize = 1 << 20;

/// Reads a game in normal form, for the player in this seat.
pub fn read(text: &str, seat: &Seat) -> Result<Arc<dyn Game>, ImportError> {
    let mut lexer = Lexer::new(text);
    let players = lexer.header("NFG", "1")?.len();
    let strategies = read_strategies(&mut lexer, players)?;
    if lexer.peek() == Some(b'"') {
        lexer.text("the comment")?;
    }
    if !(1..=players).contains(&seat.player) {
        return Err(ImportError::content(format!(
            "player {} does not exist: there are {players}",
            seat.player
        )));
    }
    let payoffs = if lexer.peek() == Some(b'{') {
        read_outcomes(&mut lexer, players, &strategies, seat)?
    } else {
        read_payoffs(&mut lexer, players, &strategies, seat)?
    };
    lexer.expect(&Token::End, "the end of the file")?;
    OneShot::build(strategies, payoffs, seat)
}

fn read_strategies(lexer: &mut Lexer<'_>, players: usize) -> Result<Vec<usize>, ImportError> {
    lexer.expect(&Token::Open, "'{' before the strategies")?;
    let mut strategies = Vec::new();
    while lexer.peek() != Some(b'}') {
        if lexer.peek() == Some(b'{') {
            lexer.expect(&Token::Open, "'{'")?;
            let mut names = 0;
            while lexer.peek() != Some(b'}') {
                lexer.text("a strategy's name")?;
                names += 1;
            }
            lexer.expect(&Token::Close, "'}'")?;
            strategies.push(names);
        } else {
            strategies.push(lexer.count("a count of strategies", 1, ACTIONS_MAX)?);
        }
    }
    lexer.expect(&Token::Close, "'}' after the strategies")?;
    if strategies.len() != players {
        let reason = format!("strategies are given for {} players; there are {players}", strategies.len());
        return Err(lexer.error(reason));
    }
    if let Some(count) = strategies.iter().find(|count| !(1..=ACTIONS_MAX).contains(*count)) {
        return Err(lexer.error(format!("a player has {count} strategies; allowed is 1 to {ACTIONS_MAX}")));
    }
    let all = strategies.iter().try_fold(1usize, |product, count| product.checked_mul(*count));
    if all.is_none_or(|all| CONTINGENCIES_MAX < all) {
        return Err(lexer.error(format!("more than {CONTINGENCIES_MAX} contingencies")));
    }
    Ok(strategies)
}

fn milli(lexer: &mut Lexer<'_>) -> Result<i64, ImportError> {
    let number = lexer.number("a payoff")?;
    number.to_milli().ok_or_else(|| lexer.error("a payoff beyond 250,000 units"))
}

fn read_payoffs(
    lexer: &mut Lexer<'_>,
    players: usize,
    strategies: &[usize],
    seat: &Seat,
) -> Result<Vec<i64>, ImportError> {
    let all: usize = strategies.iter().product();
    let mut payoffs = Vec::with_capacity(all);
    for _ in 0..all {
        for player in 1..=players {
            let payoff = milli(lexer)?;
            if player == seat.player {
                payoffs.push(payoff);
            }
        }
    }
    Ok(payoffs)
}

fn read_outcomes(
    lexer: &mut Lexer<'_>,
    players: usize,
    strategies: &[usize],
    seat: &Seat,
) -> Result<Vec<i64>, ImportError> {
    lexer.expect(&Token::Open, "'{' before the outcomes")?;
    // Outcome 0 is the one that pays nothing.
    let mut outcomes = vec![0];
    while lexer.peek() != Some(b'}') {
        lexer.expect(&Token::Open, "'{' before an outcome")?;
        lexer.text("the outcome's name")?;
        for player in 1..=players {
            let payoff = milli(lexer)?;
            if player == seat.player {
                outcomes.push(payoff);
            }
        }
        lexer.expect(&Token::Close, "'}' after the payoffs of an outcome")?;
    }
    lexer.expect(&Token::Close, "'}' after the outcomes")?;
    let all: usize = strategies.iter().product();
    let last = outcomes.len() - 1;
    (0..all).map(|_| lexer.count("an outcome", 0, last).map(|outcome| outcomes[outcome])).collect()
}

/// A game of one step against players that draw their strategies.
struct OneShot {
    own: usize,
    strategies: Vec<usize>,
    /// Weights of every player's strategies; the own ones are not used.
    weights: Vec<Vec<u32>>,
    /// The own payoff at every contingency.
    payoffs: Vec<i64>,
    /// The expected payoff of every own strategy.
    means: Vec<Expectation>,
    shape: Shape,
}

impl OneShot {
    fn build(strategies: Vec<usize>, payoffs: Vec<i64>, seat: &Seat) -> Result<Arc<dyn Game>, ImportError> {
        let weights: Result<Vec<Vec<u32>>, _> = strategies
            .iter()
            .enumerate()
            .map(|(index, count)| seat.opponent.weights(index + 1, 1, *count))
            .collect();
        let low = payoffs.iter().copied().min().unwrap_or(0);
        let high = payoffs.iter().copied().max().unwrap_or(0);
        let shape = Shape {
            reward_min: low as i32,
            reward_max: high as i32,
            return_min: low,
            return_max: high,
            ..rules::answer_shape(&[], strategies[seat.player - 1], 1, 1)
        };
        let mut game = OneShot {
            own: seat.player - 1,
            strategies,
            weights: weights?,
            payoffs,
            means: Vec::new(),
            shape,
        };
        game.means = game.expected();
        Ok(Arc::new(RuleGame::new(game)))
    }

    fn expected(&self) -> Vec<Expectation> {
        let mut means = vec![Expectation::ZERO; self.strategies[self.own]];
        for (contingency, payoff) in self.payoffs.iter().enumerate() {
            let mut rest = contingency;
            let mut own = 0;
            let mut mean = Expectation::from_int(*payoff);
            for (player, count) in self.strategies.iter().enumerate() {
                let strategy = rest % count;
                rest /= count;
                if player == self.own {
                    own = strategy;
                } else {
                    let weights = &self.weights[player];
                    let sum = weights.iter().map(|weight| u64::from(*weight)).sum();
                    mean = mean.share(u64::from(weights[strategy]), sum);
                }
            }
            means[own] = means[own].plus(mean);
        }
        means
    }
}

/// Draws an index with these weights, whose sum fits 32 bits.
pub(super) fn draw_index<D: Draw>(weights: &[u32], draw: &mut D) -> usize {
    let mut left = draw.below(weights.iter().sum());
    for (index, weight) in weights.iter().enumerate() {
        if left < *weight {
            return index;
        }
        left -= weight;
    }
    weights.len() - 1
}

impl Rules for OneShot {
    type State = ();

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, _draw: &mut D) {}

    fn observe(&self, _state: &()) -> Bits {
        Bits::ZERO
    }

    fn play<D: Draw>(&self, _state: &mut (), action: u16, draw: &mut D) -> Outcome {
        let (mut contingency, mut stride) = (0, 1);
        for (player, count) in self.strategies.iter().enumerate() {
            let strategy = if player == self.own {
                usize::from(action)
            } else {
                draw_index(&self.weights[player], draw)
            };
            contingency += strategy * stride;
            stride *= count;
        }
        Outcome { reward: self.payoffs[contingency] as i32, done: true, bad: false }
    }

    fn best(&self, _state: &()) -> u16 {
        let best = self.means.iter().max();
        self.means.iter().position(|mean| Some(mean) == best).unwrap_or(0) as u16
    }

    fn optimum(&self) -> Value {
        self.means.iter().max().copied().unwrap_or_default().to_value()
    }

    fn random(&self) -> Value {
        let sum = self.means.iter().copied().fold(Expectation::ZERO, Expectation::plus);
        sum.over(self.means.len() as u64).to_value()
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;
    use crate::import::Opponent;

    const PENNIES: &str = "NFG 1 R \"Matching pennies\" { \"Even\" \"Odd\" } { 2 2 }\n1 -1 -1 1 -1 1 1 -1\n";

    #[test]
    fn against_an_uneven_coin_one_matches_the_likelier_side() {
        let opponent = Opponent::parse(r#"{"2":{"1":[1,3]}}"#).unwrap();
        let game = read(PENNIES, &Seat { player: 1, opponent }).unwrap();
        conformance::check(&*game).unwrap();
        assert_eq!(game.optimum().mean, Fixed::from_int(500));
        assert_eq!(game.random().mean, Fixed::ZERO);
        let mut oracle = game.oracle();
        oracle.begin(1);
        assert_eq!(oracle.act(&Bits::ZERO), 1);
    }

    #[test]
    fn outcomes_mean_the_same_as_payoffs() {
        let text = r#"NFG 1 R "Stag hunt" { "A" "B" }
            { { "stag" "hare" } { "stag" "hare" } }
            "with outcomes"
            { { "both" 4, 4 } { "alone" 0 3 } { "safe" 3 0 } { "meh" 2 2 } }
            1 3 2 4"#;
        let game = read(text, &Seat::default()).unwrap();
        conformance::check(&*game).unwrap();
        // Stag: (4 + 0) / 2; hare: (3 + 2) / 2.
        assert_eq!(game.optimum().mean, Fixed::from_int(2500));
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str| read(text, &Seat::default()).err().unwrap().to_string();
        assert_eq!(error("EFG 2 R"), "line 1: expected NFG at the start, found \"EFG\"");
        assert_eq!(
            error("NFG 1 R \"x\" { \"A\" \"B\" } { 2 2 }\n1 2\n3 x"),
            "line 3: expected a payoff, a number, found \"x\""
        );
        assert_eq!(
            error("NFG 1 R \"x\" { \"A\" \"B\" } { 2 }"),
            "line 1: strategies are given for 1 players; there are 2"
        );
        assert_eq!(
            error("NFG 1 R \"x\" { \"A\" \"B\" } { 1024 1025 }"),
            "line 1: expected a count of strategies, a whole number from 1 to 1024, found \"1025\""
        );
        assert_eq!(error(&format!("{PENNIES} 7")), "line 3: expected the end of the file, found \"7\"");
        assert_eq!(error("NFG 1 R \"x"), "line 1: this quoted text has no end");
    }
}
