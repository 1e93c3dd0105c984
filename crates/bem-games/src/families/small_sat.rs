//! Find an assignment that satisfies a small formula, a new one every episode.
//!
//! A clause is shown as two words: its positive and its negative variables. A hidden assignment satisfies every
//! clause, so an answer exists; any answer that satisfies all clauses is rewarded. The value of random play is
//! a formula over the distance from the hidden assignment. Clauses: GLE-1.

use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::OBSERVATION_BITS_MAX;
use std::sync::Arc;

/// The family `small_sat`.
pub struct SmallSat;

/// Literals of one clause, when there are as many variables.
const CLAUSE_WIDTH: u64 = 3;

impl Family for SmallSat {
    fn name(&self) -> &'static str {
        "small_sat"
    }

    fn about(&self) -> &'static str {
        "Name an assignment that satisfies all clauses shown."
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter {
                name: "vars",
                about: "how many variables",
                range: Range::Number { min: 1, max: 10, default: 3 },
            },
            Parameter {
                name: "clauses",
                about: "how many clauses; variables times clauses times two must fit the observation",
                range: Range::Number { min: 1, max: 64, default: 3 },
            },
        ];
        PARAMETERS
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let variables = settings.number("vars") as u16;
        let clauses = settings.number("clauses") as u16;
        let bits = usize::from(variables) * usize::from(clauses) * 2;
        if OBSERVATION_BITS_MAX < bits {
            return Err(GameError::Impossible(format!(
                "vars={variables} and clauses={clauses} need {bits} observation bits; at most \
                 {OBSERVATION_BITS_MAX} are allowed"
            )));
        }
        let widths = vec![usize::from(variables); usize::from(clauses) * 2];
        let shape = rules::answer_shape(&widths, 1 << variables, 1, 1);
        Ok(Arc::new(RuleGame::new(Formula { variables, clauses, shape })))
    }
}

/// The rules: how large the formulas are.
struct Formula {
    variables: u16,
    clauses: u16,
    shape: Shape,
}

/// The formula, as it is seen.
#[derive(Clone)]
struct State {
    observation: Bits,
}

impl Formula {
    fn width(&self) -> u64 {
        CLAUSE_WIDTH.min(u64::from(self.variables))
    }

    /// A clause that `hidden` satisfies: which variables it has, and which of them are negated.
    fn clause<D: Draw>(&self, hidden: u64, draw: &mut D) -> (u64, u64) {
        let mut chosen = 0u64;
        while u64::from(chosen.count_ones()) < self.width() {
            chosen |= 1 << draw.below(u32::from(self.variables));
        }
        loop {
            let negated = draw.bits(u32::from(self.variables)) & chosen;
            // The clause is false exactly where every chosen variable equals its negation.
            if hidden & chosen != negated {
                return (chosen, negated);
            }
        }
    }

    fn satisfied(&self, observation: &Bits, assignment: u64) -> bool {
        let variables = usize::from(self.variables);
        (0..usize::from(self.clauses)).all(|clause| {
            let positive = observation.field(2 * clause * variables, variables);
            let negative = observation.field((2 * clause + 1) * variables, variables);
            assignment & positive | !assignment & negative != 0
        })
    }
}

fn choose(count: u64, chosen: u64) -> i128 {
    (0..chosen).fold(1, |ways, index| {
        if count < chosen { 0 } else { ways * i128::from(count - index) / i128::from(index + 1) }
    })
}

impl Rules for Formula {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let variables = usize::from(self.variables);
        let hidden = draw.bits(u32::from(self.variables));
        let mut observation = Bits::ZERO;
        for clause in 0..usize::from(self.clauses) {
            let (chosen, negated) = self.clause(hidden, draw);
            observation.set_field(2 * clause * variables, variables, chosen & !negated);
            observation.set_field((2 * clause + 1) * variables, variables, negated);
        }
        State { observation }
    }

    fn observe(&self, state: &State) -> Bits {
        state.observation
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, _draw: &mut D) -> Outcome {
        rules::answer(self.satisfied(&state.observation, u64::from(action)), true)
    }

    fn best(&self, state: &State) -> u16 {
        let satisfies = |assignment: &u16| self.satisfied(&state.observation, u64::from(*assignment));
        (0..self.shape.actions).find(satisfies).expect("a hidden assignment satisfies the formula")
    }

    fn optimum(&self) -> Value {
        Expectation::from_int(i64::from(RIGHT)).to_value()
    }

    fn random(&self) -> Value {
        let variables = u64::from(self.variables);
        let patterns = (1i128 << self.width()) - 1;
        let all = choose(variables, self.width());
        let mut sum = Expectation::ZERO;
        for distance in 0..=variables {
            // A clause can fail only if one of its variables differs from the hidden assignment, and then
            // for exactly one of the sign patterns that the hidden assignment satisfies.
            let touching = all - choose(variables - distance, self.width());
            let holds = Expectation::from_ratio(all * patterns - touching, all * patterns);
            let all_hold = (0..self.clauses).fold(Expectation::ONE, |chance, _| chance.times_chance(holds));
            sum = sum.plus(all_hold.times(choose(variables, distance) as i64));
        }
        sum.times(i64::from(RIGHT)).over(1 << variables).to_value()
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn one_variable_leaves_one_answer_of_two() {
        let game = testing::build(&SmallSat, &[("vars", "1"), ("clauses", "4")], 1);
        assert_eq!(game.random().mean.to_raw() >> 32, 500);
    }

    #[test]
    fn stated_values_are_what_play_gives() {
        for (vars, clauses) in [("2", "3"), ("3", "6"), ("4", "6"), ("6", "20")] {
            let texts = [("vars", vars), ("clauses", clauses)];
            testing::check_values(&*testing::build(&SmallSat, &texts, 1), 12);
        }
    }

    #[test]
    fn formulas_too_large_for_an_observation_are_refused_with_the_bound() {
        let texts = [("vars".to_string(), "10".to_string()), ("clauses".to_string(), "13".to_string())];
        let settings = Settings::parse(SmallSat.parameters(), &texts.into_iter().collect()).unwrap();
        let error = SmallSat.build(&settings, 1).err().unwrap().to_string();
        assert_eq!(error, "vars=10 and clauses=13 need 260 observation bits; at most 256 are allowed");
    }
}
