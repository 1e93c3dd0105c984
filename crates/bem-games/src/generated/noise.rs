//! One step, few contexts: the best action earns a little more than the others, and noise is up to ten times that.
//!
//! Clauses: GLE-1, VM-9, VM-16.

use crate::draw::Draw;
use crate::game::{Steps, Value};
use crate::rules::Rules;
use bem_base::environment::{Bits, Field, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;

/// What the best action earns more than the others.
const GAP: i32 = 100;

/// One world.
pub(super) struct Noise {
    actions: u16,
    bits: u16,
    /// The best action for every context.
    best: Vec<u16>,
    /// Rewards lie evenly within this distance of their mean.
    spread: i32,
}

impl Noise {
    pub(super) fn draw(prng: &mut Prng) -> Noise {
        let bits = prng.below(3) as u16;
        let actions = 2 + prng.below(4) as u16;
        let best = (0..1 << bits).map(|_| prng.below(u64::from(actions)) as u16).collect();
        // Even noise within w has a standard deviation of w over the root of three.
        let spread = GAP * prng.between(1, 10) as i32 * 1_732 / 1_000;
        Noise { actions, bits, best, spread }
    }
}

impl Rules for Noise {
    type State = u64;

    fn shape(&self) -> Shape {
        let (low, high) = (-self.spread, GAP + self.spread);
        Shape {
            observation_bits: self.bits,
            actions: self.actions,
            horizon: 1,
            reward_min: low,
            reward_max: high,
            return_min: i64::from(low),
            return_max: i64::from(high),
            fields: (0..self.bits).map(|low| Field { low, width: 1 }).collect(),
        }
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> u64 {
        draw.bits(u32::from(self.bits))
    }

    fn observe(&self, state: &u64) -> Bits {
        Bits([*state, 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut u64, action: u16, draw: &mut D) -> Outcome {
        let mean = if action == self.best(state) { GAP } else { 0 };
        let luck = draw.below(2 * self.spread as u32 + 1) as i32 - self.spread;
        Outcome { reward: mean + luck, done: true, bad: false }
    }

    fn best(&self, state: &u64) -> u16 {
        self.best[*state as usize]
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_int(GAP))
    }

    fn random(&self) -> Value {
        Value::exact(Fixed::from_ratio(i64::from(GAP), i64::from(self.actions)))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::ONE)
    }
}
