//! A repeated two-by-two game against an opponent with a fixed way of playing.
//!
//! The player sees both last moves, whether this is the first round, and the round's number. Values come from
//! dynamic programming over the opponent's next move. Clauses: GLE-1.

use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RuleGame, Rules, bits_for};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use std::sync::Arc;

/// The family `matrix_game`.
pub struct MatrixGame;

const GAMES: &[&str] = &["matching_pennies", "prisoners_dilemma", "stag_hunt", "chicken", "custom"];
const OPPONENTS: &[&str] = &["constant", "mixed", "tit_for_tat", "pavlov", "grim"];

/// Payoffs in milli-units at `[own move][opponent's move]`; move 0 is heads, cooperate, stag or swerve.
const PAYOFFS: [[[i32; 2]; 2]; 4] =
    [[[1000, 0], [0, 1000]], [[600, 0], [1000, 200]], [[1000, 0], [750, 500]], [[600, 200], [1000, 0]]];

const fn payoff(name: &'static str, default: i64, about: &'static str) -> Parameter {
    Parameter { name, about, range: Range::Number { min: -1000, max: 1000, default } }
}

impl Family for MatrixGame {
    fn name(&self) -> &'static str {
        "matrix_game"
    }

    fn about(&self) -> &'static str {
        "Play a two-by-two game again and again against an opponent whose way of playing never changes."
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter { name: "game", about: "the payoffs", range: Range::Choice { words: GAMES } },
            Parameter {
                name: "opponent",
                about: "how the opponent plays",
                range: Range::Choice { words: OPPONENTS },
            },
            Parameter {
                name: "horizon",
                about: "rounds of one episode",
                range: Range::Number { min: 1, max: 256, default: 7 },
            },
            payoff("payoff_00", 600, "own payoff for moves 0 and 0 in the custom game, in milli-units"),
            payoff("payoff_01", 0, "own payoff for own move 0 against 1 in the custom game"),
            payoff("payoff_10", 1000, "own payoff for own move 1 against 0 in the custom game"),
            payoff("payoff_11", 200, "own payoff for moves 1 and 1 in the custom game"),
        ];
        PARAMETERS
    }

    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let payoffs = match PAYOFFS.get(settings.choice("game")) {
            Some(payoffs) => *payoffs,
            None => {
                let value = |name| settings.number(name) as i32;
                [[value("payoff_00"), value("payoff_01")], [value("payoff_10"), value("payoff_11")]]
            }
        };
        let mut random = Prng::stream(instance_seed, "matrix_game");
        let opponent = match settings.choice("opponent") {
            0 => Opponent::Constant(u8::from(random.bit())),
            1 => Opponent::Mixed(if random.bit() { 70 } else { 30 }),
            2 => Opponent::TitForTat,
            3 => Opponent::Pavlov,
            _ => Opponent::Grim,
        };
        let rounds = settings.number("horizon") as u32;
        Ok(Arc::new(RuleGame::new(Rounds::new(payoffs, opponent, rounds))))
    }
}

/// How the opponent chooses its next move.
#[derive(Clone, Copy)]
enum Opponent {
    /// Always this move.
    Constant(u8),
    /// Move 1 with this many percent, whatever happened.
    Mixed(u8),
    /// What the player did last.
    TitForTat,
    /// Stays when the player made move 0, changes otherwise.
    Pavlov,
    /// Move 0 until the player once made move 1, then 1 for ever.
    Grim,
}

impl Opponent {
    /// Percent chance of move 1 when `planned` is what its memory says.
    const fn percent(self, planned: u8) -> u64 {
        match self {
            Opponent::Mixed(percent) => percent as u64,
            _ => 100 * planned as u64,
        }
    }

    const fn first(self) -> u8 {
        match self {
            Opponent::Constant(action) => action,
            _ => 0,
        }
    }

    const fn next(self, planned: u8, own: u8) -> u8 {
        match self {
            Opponent::Constant(_) | Opponent::Mixed(_) => planned,
            Opponent::TitForTat => own,
            Opponent::Pavlov => planned ^ own,
            Opponent::Grim => planned | own,
        }
    }
}

struct Rounds {
    payoffs: [[i32; 2]; 2],
    opponent: Opponent,
    shape: Shape,
    /// Expected return of best play from round `t` on, by the opponent's plan.
    best: Vec<[Expectation; 2]>,
    /// The same for uniform play.
    uniform: Vec<[Expectation; 2]>,
}

/// The round, what the opponent is about to do, and what both did last.
#[derive(Clone)]
struct State {
    round: u32,
    planned: u8,
    own_last: u8,
    opponent_last: u8,
}

impl Rounds {
    fn new(payoffs: [[i32; 2]; 2], opponent: Opponent, rounds: u32) -> Rounds {
        let all = payoffs.as_flattened();
        let (low, high) = all.iter().fold((i32::MAX, i32::MIN), |(low, high), p| (low.min(*p), high.max(*p)));
        let widths = [1, 1, 1, bits_for(u64::from(rounds))];
        let shape = Shape {
            reward_min: low,
            reward_max: high,
            return_min: i64::from(low) * i64::from(rounds),
            return_max: i64::from(high) * i64::from(rounds),
            ..rules::answer_shape(&widths, 2, rounds, rounds)
        };
        let mut game = Rounds { payoffs, opponent, shape, best: Vec::new(), uniform: Vec::new() };
        game.best = game.solve(|first, second| first.max(second));
        game.uniform = game.solve(|first, second| first.plus(second).over(2));
        game
    }

    /// Backward over the rounds; `join` says what the player makes of the values of its two moves.
    fn solve(&self, join: impl Fn(Expectation, Expectation) -> Expectation) -> Vec<[Expectation; 2]> {
        let mut later = [Expectation::ZERO; 2];
        let mut table = vec![later];
        for _ in 0..self.shape.horizon {
            later = [0, 1].map(|planned| {
                let value = |own| self.move_value(&later, planned, own);
                join(value(0), value(1))
            });
            table.push(later);
        }
        table.reverse();
        table
    }

    fn move_value(&self, later: &[Expectation; 2], planned: u8, own: u8) -> Expectation {
        let percent = self.opponent.percent(planned) as i64;
        let [against_0, against_1] = self.payoffs[usize::from(own)].map(i64::from);
        let now = Expectation::from_int(against_0 * (100 - percent) + against_1 * percent).over(100);
        now.plus(later[usize::from(self.opponent.next(planned, own))])
    }
}

impl Rules for Rounds {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, _draw: &mut D) -> State {
        State { round: 0, planned: self.opponent.first(), own_last: 0, opponent_last: 0 }
    }

    fn observe(&self, state: &State) -> Bits {
        let mut bits = Bits::ZERO;
        bits.set(0, state.own_last == 1);
        bits.set(1, state.opponent_last == 1);
        bits.set(2, state.round == 0);
        bits.set_field(3, usize::from(self.shape.observation_bits) - 3, u64::from(state.round));
        bits
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let own = action as u8;
        let theirs = match self.opponent {
            Opponent::Mixed(percent) => u8::from(draw.below(100) < u32::from(percent)),
            _ => state.planned,
        };
        state.planned = self.opponent.next(state.planned, own);
        state.own_last = own;
        state.opponent_last = theirs;
        state.round += 1;
        let reward = self.payoffs[usize::from(own)][usize::from(theirs)];
        Outcome { reward, done: state.round == self.shape.horizon, bad: false }
    }

    fn best(&self, state: &State) -> u16 {
        // The plan is no secret: it follows from the player's own moves.
        let later = &self.best[state.round as usize + 1];
        let value = |own| self.move_value(later, state.planned, own);
        u16::from(value(0) < value(1))
    }

    fn optimum(&self) -> Value {
        self.best[0][usize::from(self.opponent.first())].to_value()
    }

    fn random(&self) -> Value {
        self.uniform[0][usize::from(self.opponent.first())].to_value()
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_int(self.shape.horizon as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn cooperation_with_tit_for_tat_pays_until_the_last_round() {
        let texts = [("game", "prisoners_dilemma"), ("opponent", "tit_for_tat"), ("horizon", "7")];
        let game = testing::build(&MatrixGame, &texts, 1);
        assert_eq!(game.optimum().mean, Fixed::from_int(6 * 600 + 1000));
    }

    #[test]
    fn random_play_against_grim_is_the_sum_of_a_halving_series() {
        let texts = [("game", "prisoners_dilemma"), ("opponent", "grim"), ("horizon", "2")];
        let game = testing::build(&MatrixGame, &texts, 1);
        // First round 800; then the opponent has turned with one half: 800/2 + 100/2.
        assert_eq!(game.random().mean, Fixed::from_int(800 + 450));
    }

    #[test]
    fn stated_values_are_what_play_gives_for_every_game_and_opponent() {
        for game in &GAMES[..4] {
            for opponent in OPPONENTS {
                let texts = [("game", *game), ("opponent", *opponent), ("horizon", "5")];
                testing::check_values(&*testing::build(&MatrixGame, &texts, 3), 25);
            }
        }
    }

    #[test]
    fn no_policy_over_three_rounds_beats_the_stated_optimum() {
        for opponent in ["constant", "tit_for_tat", "pavlov", "grim"] {
            let texts = [("game", "chicken"), ("opponent", opponent), ("horizon", "3")];
            let game = testing::build(&MatrixGame, &texts, 5);
            let mut world = game.start();
            // These opponents draw nothing, so a policy is a sequence of moves.
            let returns = (0..8u16).map(|moves| {
                world.reset(0).unwrap();
                (0..3).map(|round| world.step(moves >> round & 1).unwrap().reward).sum::<i32>()
            });
            assert_eq!(Some(game.optimum().mean), returns.max().map(Fixed::from_int), "{opponent}");
        }
    }
}
