//! A chain of places with one reward at its end: at every place one drawn action leads on, all others lead back.
//!
//! Moves may fail by chance and may cost something, so that doing nothing looks better than walking until the end was reached
//! once. The actions that lead on are drawn for every place: no single action walks the chain. Clauses: GLE-1, VM-16.

use super::one_of;
use crate::draw::{Chance, Draw};
use crate::game::{Steps, Value};
use crate::rules::{RIGHT, Rules, bits_for};
use bem_base::environment::{Bits, Field, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;

/// One world.
pub(super) struct Chain {
    actions: u16,
    /// The action that leads on, for every place but the end.
    onward: Vec<u16>,
    /// How often a move onward succeeds.
    success: Chance,
    /// Any other action leads back to the first place, else one place back.
    falls_to_start: bool,
    /// What a move onward costs, whether it succeeds or not.
    cost: i32,
    horizon: u32,
    /// The best value by steps left and place, in milli-units with 32 fractional bits.
    values: Vec<Vec<i64>>,
}

/// A walk along the chain under way.
#[derive(Clone)]
pub(super) struct State {
    place: usize,
    time: u32,
}

impl Chain {
    pub(super) fn draw(prng: &mut Prng) -> Chain {
        let length = one_of(prng, &[5, 10, 20, 35, 50]);
        let actions = 2 + prng.below(2) as u16;
        let onward = (1..length).map(|_| prng.below(u64::from(actions)) as u16).collect();
        // Episodes end a little after the best walk on average does, later where no move fails.
        let moves = length as u32 - 1;
        let (success, horizon) = one_of(
            prng,
            &[
                (Chance::ratio(1, 1), moves * 3 / 2),
                (Chance::ratio(9, 10), (moves * 11).div_ceil(9)),
                (Chance::ratio(8, 10), (moves * 11).div_ceil(8)),
            ],
        );
        let falls_to_start = prng.bit();
        let cost = one_of(prng, &[0, 1, 3]);
        let mut chain = Chain { actions, onward, success, falls_to_start, cost, horizon, values: Vec::new() };
        chain.values = chain.work_out(i64::max);
        chain
    }

    fn back(&self, place: usize) -> usize {
        if self.falls_to_start { 0 } else { place.saturating_sub(1) }
    }

    /// Values by steps left and place, where `join` makes one of what moving on and falling back are worth.
    fn work_out(&self, join: impl Fn(i64, i64) -> i64) -> Vec<Vec<i64>> {
        let places = self.onward.len();
        let mut values = vec![vec![0i64; places]];
        for _ in 0..self.horizon {
            let after = &values[values.len() - 1];
            let value = |place: usize| join(self.moving_on(after, place), after[self.back(place)]);
            values.push((0..places).map(value).collect());
        }
        values
    }

    /// What moving on is worth if the values of all places afterwards are these.
    fn moving_on(&self, after: &[i64], place: usize) -> i64 {
        let unit = Fixed::ONE.to_raw();
        let reached = after.get(place + 1).copied().unwrap_or(i64::from(RIGHT) * unit);
        let [on, stays] = [self.success.units(), (1 << Chance::BITS) - self.success.units()].map(i128::from);
        let mean = (on * i128::from(reached) + stays * i128::from(after[place])) >> Chance::BITS;
        mean as i64 - i64::from(self.cost) * unit
    }
}

impl Rules for Chain {
    type State = State;

    fn shape(&self) -> Shape {
        let bits = bits_for(self.onward.len() as u64) as u16;
        Shape {
            observation_bits: bits,
            actions: self.actions,
            horizon: self.horizon,
            reward_min: -self.cost,
            reward_max: RIGHT,
            return_min: -i64::from(self.cost) * i64::from(self.horizon),
            return_max: i64::from(RIGHT),
            fields: vec![Field { low: 0, width: bits }],
        }
    }

    fn begin<D: Draw>(&self, _draw: &mut D) -> State {
        State { place: 0, time: 0 }
    }

    fn observe(&self, state: &State) -> Bits {
        Bits([state.place as u64, 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let mut reward = 0;
        state.time += 1;
        if action == self.onward[state.place] {
            reward -= self.cost;
            state.place += usize::from(draw.chance(self.success));
        } else {
            state.place = self.back(state.place);
        }
        let is_there = state.place == self.onward.len();
        reward += if is_there { RIGHT } else { 0 };
        Outcome { reward, done: is_there || state.time == self.horizon, bad: false }
    }

    fn best(&self, state: &State) -> u16 {
        let after = &self.values[(self.horizon - state.time - 1) as usize];
        let onward = self.onward[state.place];
        match after[self.back(state.place)] < self.moving_on(after, state.place) {
            true => onward,
            false => (0..self.actions).find(|action| *action != onward).unwrap_or(0),
        }
    }

    fn matters(&self, state: &State) -> bool {
        let after = &self.values[(self.horizon - state.time - 1) as usize];
        after[self.back(state.place)] != self.moving_on(after, state.place)
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_raw(self.values[self.horizon as usize][0]))
    }

    fn random(&self) -> Value {
        let actions = i64::from(self.actions);
        let values = self.work_out(|on, back| (on + (actions - 1) * back).div_euclid(actions));
        Value::exact(Fixed::from_raw(values[self.horizon as usize][0]))
    }

    fn steps(&self) -> Steps {
        Steps::ByPolicy
    }
}
