//! A sealed-bid auction for one item against bidders whose bids are uniform.
//!
//! The player sees its value and bids; the highest bid wins and ties are lost. Losing pays half of the full
//! reward, winning pays that plus the gain or less the loss, so that rewards never leave 0 to 1000. Values come
//! from enumeration of the highest other bid. Clauses: GLE-1.

use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RuleGame, Rules};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use std::sync::Arc;

/// The family `auction`.
pub struct Auction;

/// What a player that does not win gets.
const REWARD_LOST: i64 = 500;

impl Family for Auction {
    fn name(&self) -> &'static str {
        "auction"
    }

    fn about(&self) -> &'static str {
        "Bid for an item whose value you know, against others whose bids you do not."
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter {
                name: "bits",
                about: "bits of values and bids",
                range: Range::Number { min: 1, max: 6, default: 3 },
            },
            Parameter {
                name: "opponents",
                about: "how many others bid",
                range: Range::Number { min: 1, max: 7, default: 1 },
            },
            Parameter {
                name: "price",
                about: "the winner pays its own bid or the second highest",
                range: Range::Choice { words: &["first", "second"] },
            },
        ];
        PARAMETERS
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let bits = settings.number("bits") as u16;
        let levels = 1u16 << bits;
        let shape = rules::answer_shape(&[usize::from(bits)], usize::from(levels), 1, 1);
        let opponents = settings.number("opponents") as u32;
        let second_price = settings.choice("price") == 1;
        Ok(Arc::new(RuleGame::new(SealedBid { levels, opponents, second_price, shape })))
    }
}

struct SealedBid {
    levels: u16,
    opponents: u32,
    second_price: bool,
    shape: Shape,
}

/// What the item is worth, and the highest of the other bids.
#[derive(Clone)]
struct State {
    value: u16,
    highest_other: u16,
}

impl SealedBid {
    fn reward(&self, value: u16, bid: u16, highest_other: u16) -> i64 {
        if bid <= highest_other {
            return REWARD_LOST;
        }
        let price = if self.second_price { highest_other } else { bid };
        let gain = i64::from(value) - i64::from(price);
        REWARD_LOST + (gain * REWARD_LOST).div_euclid(i64::from(self.levels) - 1)
    }

    /// Sum of the rewards of this bid over all ways the others can bid, of which there are
    /// `levels ^ opponents`.
    fn reward_sum(&self, value: u16, bid: u16) -> i128 {
        (0..self.levels)
            .map(|highest| {
                let ways = |below: u16| i128::from(below).pow(self.opponents);
                (ways(highest + 1) - ways(highest)) * i128::from(self.reward(value, bid, highest))
            })
            .sum()
    }

    fn mean(&self, sum_over_values: i128, per_value: i128) -> Value {
        let levels = i128::from(self.levels);
        Expectation::from_ratio(sum_over_values, levels.pow(self.opponents) * levels * per_value).to_value()
    }
}

impl Rules for SealedBid {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let mut level = || draw.below(u32::from(self.levels)) as u16;
        let value = level();
        let highest_other = (0..self.opponents).map(|_| level()).max().unwrap_or(0);
        State { value, highest_other }
    }

    fn observe(&self, state: &State) -> Bits {
        let mut bits = Bits::ZERO;
        bits.set_field(0, usize::from(self.shape.observation_bits), u64::from(state.value));
        bits
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, _draw: &mut D) -> Outcome {
        let reward = self.reward(state.value, action, state.highest_other) as i32;
        Outcome { reward, done: true, bad: false }
    }

    fn best(&self, state: &State) -> u16 {
        let mut best = (i128::MIN, 0);
        for bid in 0..self.levels {
            let sum = self.reward_sum(state.value, bid);
            if best.0 < sum {
                best = (sum, bid);
            }
        }
        best.1
    }

    fn optimum(&self) -> Value {
        let bids = || 0..self.levels;
        let best = |value| bids().map(|bid| self.reward_sum(value, bid)).max().unwrap_or(0);
        self.mean((0..self.levels).map(best).sum(), 1)
    }

    fn random(&self) -> Value {
        let all = |value| (0..self.levels).map(|bid| self.reward_sum(value, bid)).sum::<i128>();
        self.mean((0..self.levels).map(all).sum(), i128::from(self.levels))
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
    fn bidding_ones_value_is_best_when_the_second_price_is_paid() {
        let shape = rules::answer_shape(&[3], 8, 1, 1);
        let auction = SealedBid { levels: 8, opponents: 2, second_price: true, shape };
        for value in 0..8 {
            let best = auction.best(&State { value, highest_other: 0 });
            assert_eq!(auction.reward_sum(value, best), auction.reward_sum(value, value), "value={value}");
        }
    }

    #[test]
    fn one_shades_the_bid_when_the_own_price_is_paid() {
        let shape = rules::answer_shape(&[3], 8, 1, 1);
        let auction = SealedBid { levels: 8, opponents: 1, second_price: false, shape };
        assert!(auction.best(&State { value: 7, highest_other: 0 }) < 6);
    }

    #[test]
    fn stated_values_are_what_play_gives() {
        for price in ["first", "second"] {
            let texts = [("bits", "3"), ("opponents", "2"), ("price", price)];
            testing::check_values(&*testing::build(&Auction, &texts, 1), 6);
        }
    }
}
