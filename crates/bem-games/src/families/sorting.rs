//! Sort a row of keys by exchanging neighbours that stand in the wrong order.
//!
//! Action `i` compares places `i` and `i + 1` and exchanges them if the left key is greater, which removes one
//! inversion and earns the full reward. There are as many steps as the row had inversions, so the best player
//! wastes none. Random play is solved exactly over all weak orders of the keys. Clauses: GLE-1.

use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use bem_base::environment::{Bits, Outcome, Shape};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The family `sorting`.
pub struct Sorting;

/// More keys would make the exact value of random play too slow: there are 47,293 weak orders of seven.
const KEYS_MAX: usize = 7;

impl Family for Sorting {
    fn name(&self) -> &'static str {
        "sorting"
    }

    fn about(&self) -> &'static str {
        "Sort a row of keys with as few exchanges of neighbours as it has inversions."
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter {
                name: "keys",
                about: "how many keys",
                range: Range::Number { min: 3, max: KEYS_MAX as i64, default: 4 },
            },
            Parameter {
                name: "key_bits",
                about: "bits of each key",
                range: Range::Number { min: 1, max: 5, default: 2 },
            },
        ];
        PARAMETERS
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let keys = settings.number("keys") as usize;
        let key_bits = settings.number("key_bits") as u16;
        let inversions_max = (keys * (keys - 1) / 2) as u32;
        let shape =
            rules::answer_shape(&vec![usize::from(key_bits); keys], keys - 1, inversions_max, inversions_max);
        Ok(Arc::new(RuleGame::new(Row { keys, key_bits, shape })))
    }
}

/// The rules: how many keys there are and how wide each is.
struct Row {
    keys: usize,
    key_bits: u16,
    shape: Shape,
}

type Keys = [u8; KEYS_MAX];

/// The row as it stands, and the exchanges that are left.
#[derive(Clone)]
struct State {
    keys: Keys,
    budget: u32,
}

fn inversions(keys: &[u8]) -> u32 {
    let later = |place: usize| keys[place + 1..].iter().filter(|key| **key < keys[place]).count() as u32;
    (0..keys.len()).map(later).sum()
}

fn choose(count: u64, chosen: u64) -> i128 {
    (0..chosen).fold(1, |ways, index| {
        if count < chosen { 0 } else { ways * i128::from(count - index) / i128::from(index + 1) }
    })
}

impl Row {
    fn key_count(&self) -> u64 {
        1 << self.key_bits
    }

    /// How many rows of keys have at least one inversion; only these are dealt.
    fn unsorted(&self) -> i128 {
        let (kinds, keys) = (self.key_count(), self.keys as u64);
        i128::from(kinds).pow(self.keys as u32) - choose(kinds + keys - 1, keys)
    }

    /// Each of the pairs is inverted in (1 - 1/kinds)/2 of all rows; sorted rows are not dealt.
    fn inversions_mean(&self) -> Expectation {
        let kinds = i128::from(self.key_count());
        let pairs = choose(self.keys as u64, 2);
        let inversions_of_all = pairs * (kinds - 1) * kinds.pow(self.keys as u32 - 1) / 2;
        Expectation::from_ratio(inversions_of_all, self.unsorted())
    }

    /// All weak orders of the keys: rows over `0..kinds` in which every kind occurs, with their kind count.
    fn weak_orders(&self) -> Vec<Keys> {
        let mut orders = Vec::new();
        let mut row = [0u8; KEYS_MAX];
        let kinds_max = (self.keys as u64).min(self.key_count()) as u8;
        loop {
            let used = row[..self.keys].iter().fold(0u32, |set, key| set | 1 << key);
            if (used + 1).is_power_of_two() {
                orders.push(row);
            }
            let Some(place) = (0..self.keys).rev().find(|place| row[*place] + 1 < kinds_max) else {
                return orders;
            };
            row[place] += 1;
            row[place + 1..self.keys].fill(0);
        }
    }
}

impl Rules for Row {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        loop {
            let mut keys = [0; KEYS_MAX];
            for key in &mut keys[..self.keys] {
                *key = draw.bits(u32::from(self.key_bits)) as u8;
            }
            let budget = inversions(&keys[..self.keys]);
            if 0 < budget {
                return State { keys, budget };
            }
        }
    }

    fn observe(&self, state: &State) -> Bits {
        let width = usize::from(self.key_bits);
        let mut bits = Bits::ZERO;
        for (place, key) in state.keys[..self.keys].iter().enumerate() {
            bits.set_field(place * width, width, u64::from(*key));
        }
        bits
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, _draw: &mut D) -> Outcome {
        let place = usize::from(action);
        let exchanged = state.keys[place + 1] < state.keys[place];
        if exchanged {
            state.keys.swap(place, place + 1);
        }
        state.budget -= 1;
        rules::answer(exchanged, state.budget == 0)
    }

    fn best(&self, state: &State) -> u16 {
        let keys = &state.keys[..self.keys];
        (0..keys.len() - 1).find(|place| keys[place + 1] < keys[*place]).unwrap_or(0) as u16
    }

    fn optimum(&self) -> Value {
        self.inversions_mean().times(i64::from(RIGHT)).to_value()
    }

    fn random(&self) -> Value {
        let orders = self.weak_orders();
        let places: BTreeMap<Keys, usize> =
            orders.iter().enumerate().map(|(place, order)| (*order, place)).collect();
        let budgets: Vec<u32> = orders.iter().map(|order| inversions(&order[..self.keys])).collect();
        let targets: Vec<Vec<usize>> = orders
            .iter()
            .map(|order| {
                let exchange = |place: usize| {
                    let mut row = *order;
                    row.swap(place, place + 1);
                    if order[place + 1] < order[place] { places[&row] } else { places[order] }
                };
                (0..self.keys - 1).map(exchange).collect()
            })
            .collect();
        let mut sum = Expectation::ZERO;
        let mut later = vec![Expectation::ZERO; orders.len()];
        for steps in 1..=self.shape.horizon {
            let from = |place: usize| {
                let value = |target: &usize| {
                    let gain = i64::from(*target != place) * i64::from(RIGHT);
                    Expectation::from_int(gain).plus(later[*target])
                };
                let all = targets[place].iter().map(value).fold(Expectation::ZERO, Expectation::plus);
                all.over(self.keys as u64 - 1)
            };
            later = (0..orders.len()).map(from).collect();
            for (place, order) in orders.iter().enumerate().filter(|(place, _)| budgets[*place] == steps) {
                let kinds = u64::from(*order[..self.keys].iter().max().unwrap_or(&0)) + 1;
                sum = sum.plus(later[place].times(choose(self.key_count(), kinds) as i64));
            }
        }
        sum.over(self.unsorted() as u64).to_value()
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(self.inversions_mean().to_fixed())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use bem_base::fixed::Fixed;

    #[test]
    fn three_keys_of_one_bit_are_solved_by_hand() {
        // The unsorted rows 100, 010, 101 and 110 have 2, 1, 1 and 2 inversions, and in every row that can
        // be met exactly one of the two actions is useful.
        let game = testing::build(&Sorting, &[("keys", "3"), ("key_bits", "1")], 1);
        assert_eq!(game.optimum().mean, Fixed::from_int(1500));
        assert_eq!(game.random().mean, Fixed::from_int((500 + 1000 + 500 + 1000) / 4));
    }

    #[test]
    fn there_are_as_many_weak_orders_as_the_fubini_numbers_say() {
        for (keys, want) in [(2, 3), (3, 13), (4, 75), (5, 541)] {
            let row = Row { keys, key_bits: 4, shape: rules::answer_shape(&[], 1, 1, 1) };
            assert_eq!(row.weak_orders().len(), want);
        }
    }

    #[test]
    fn stated_values_are_what_play_gives() {
        for (keys, key_bits) in [("3", "1"), ("4", "2"), ("6", "3")] {
            testing::check_values(
                &*testing::build(&Sorting, &[("keys", keys), ("key_bits", key_bits)], 1),
                60,
            );
        }
    }
}
