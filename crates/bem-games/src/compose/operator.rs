//! What every operator says about itself, and what they share. Clauses: GLE-3.

use super::{branch, interleave, looped, mask, nest, par, repeat, seq};
use crate::exact::Expectation;
use crate::game::{Game, GameError, Parameter, Settings, Steps, Value};
use bem_base::environment::{Bits, Field, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::{ACTIONS_MAX, EPISODE_STEPS_MAX, OBSERVATION_BITS_MAX};
use bem_base::prng::mix;
use std::sync::Arc;

/// A way to make one game of one or two.
pub trait Operator: Send + Sync {
    /// Its name in the text form.
    fn name(&self) -> &'static str;
    /// What it does, in one sentence.
    fn about(&self) -> &'static str;
    /// How many parts it takes.
    fn arity(&self) -> usize;
    /// Its parameters.
    fn parameters(&self) -> &'static [Parameter];
    /// The whole. There are as many parts as [`Operator::arity`] says.
    fn build(&self, parts: Vec<Arc<dyn Game>>, settings: &Settings) -> Result<Arc<dyn Game>, GameError>;
}

/// All operators, in the order of the specification.
pub fn operators() -> &'static [&'static dyn Operator] {
    &[
        &seq::Seq,
        &par::Par,
        &nest::Nest,
        &mask::Mask,
        &interleave::Interleave,
        &repeat::Repeat,
        &branch::Branch,
        &looped::Loop,
    ]
}

/// The operator with this name, if there is one.
pub fn operator(name: &str) -> Option<&'static dyn Operator> {
    operators().iter().copied().find(|operator| operator.name() == name)
}

/// The seed of one run inside an episode.
pub(super) fn run_seed(seed: u64, run: usize) -> u64 {
    mix(seed.wrapping_add((run as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// The seed of the operator's own draws, apart from those of all runs.
pub(super) fn own_seed(seed: u64) -> u64 {
    mix(!seed)
}

/// The fields of the whole: one of `label_bits`, then those of every part, moved to its region.
pub(super) fn join_fields(label_bits: usize, parts: &[Arc<dyn Game>]) -> Vec<Field> {
    let mut low = label_bits as u16;
    let mut fields = Vec::new();
    if 0 < label_bits {
        fields.push(Field { low: 0, width: low });
    }
    for part in parts {
        let shape = part.shape();
        fields.extend(shape.fields.iter().map(|field| Field { low: low + field.low, width: field.width }));
        low += shape.observation_bits;
    }
    fields
}

/// Where the region of each part begins.
pub(super) fn region_lows(label_bits: usize, parts: &[Arc<dyn Game>]) -> Vec<usize> {
    let widths = parts.iter().map(|part| usize::from(part.shape().observation_bits));
    widths
        .scan(label_bits, |low, width| {
            let here = *low;
            *low += width;
            Some(here)
        })
        .collect()
}

/// Copies the low `width` bits of `from` to the place `low` of `to`.
pub(super) fn copy_bits(to: &mut Bits, low: usize, from: &Bits, width: usize) {
    for start in (0..width).step_by(64) {
        let count = (width - start).min(64);
        to.set_field(low + start, count, from.field(start, count));
    }
}

/// The numbers of a whole before they are known to fit the machine.
pub(super) struct Extent {
    pub observation_bits: usize,
    pub actions: u64,
    pub horizon: u64,
    pub rewards: (i64, i64),
    pub returns: (i64, i64),
    pub fields: Vec<Field>,
}

impl Extent {
    /// The shape, or a message that names the bound that is broken.
    pub fn to_shape(&self, name: &str) -> Result<Shape, GameError> {
        let refuse = |what: &str, found: i64, allowed: i64| {
            let text = format!("{name} would have {found} {what}; at most {allowed} are allowed");
            Err(GameError::Impossible(text))
        };
        if OBSERVATION_BITS_MAX < self.observation_bits {
            return refuse("observation bits", self.observation_bits as i64, OBSERVATION_BITS_MAX as i64);
        }
        if self.actions > ACTIONS_MAX as u64 {
            return refuse("actions", self.actions as i64, ACTIONS_MAX as i64);
        }
        if u64::from(EPISODE_STEPS_MAX) < self.horizon {
            return refuse("steps in an episode", self.horizon as i64, i64::from(EPISODE_STEPS_MAX));
        }
        let largest = self.returns.0.saturating_abs().max(self.returns.1.saturating_abs());
        if i64::from(i32::MAX) < largest {
            return refuse("milli-units of return", largest, i64::from(i32::MAX));
        }
        Ok(Shape {
            observation_bits: self.observation_bits as u16,
            actions: self.actions as u16,
            horizon: self.horizon as u32,
            // A step pays no more than an episode.
            reward_min: self.rewards.0.max(i64::from(i32::MIN)) as i32,
            reward_max: self.rewards.1.min(i64::from(i32::MAX)) as i32,
            return_min: self.returns.0,
            return_max: self.returns.1,
            fields: self.fields.clone(),
        })
    }
}

/// Observation bits of a label and all parts.
pub(super) fn joined_bits(label_bits: usize, parts: &[Arc<dyn Game>]) -> usize {
    label_bits + parts.iter().map(|part| usize::from(part.shape().observation_bits)).sum::<usize>()
}

/// The least common multiple of the parts' actions.
pub(super) fn common_actions(parts: &[Arc<dyn Game>]) -> u64 {
    parts.iter().fold(1, |sofar, part| {
        let actions = u64::from(part.shape().actions);
        sofar / greatest_common_divisor(sofar, actions) * actions
    })
}

fn greatest_common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

/// The smallest and largest reward of one step of any part.
pub(super) fn any_reward(parts: &[Arc<dyn Game>]) -> (i64, i64) {
    let shapes = || parts.iter().map(|part| part.shape());
    let low = shapes().map(|shape| i64::from(shape.reward_min)).min().unwrap_or(0);
    let high = shapes().map(|shape| i64::from(shape.reward_max)).max().unwrap_or(0);
    (low, high)
}

/// How often a part is played in one episode, in expectation: a fraction.
#[derive(Clone, Copy)]
pub(super) struct Plays {
    pub numerator: u64,
    pub denominator: u64,
}

impl Plays {
    pub const ONCE: Plays = Plays { numerator: 1, denominator: 1 };

    fn weigh(self, value: Fixed) -> Expectation {
        Expectation::from_fixed(value).times(self.numerator as i64).over(self.denominator)
    }
}

/// The sum of the parts' values, each weighed by how often it is played.
pub(super) fn sum_values(
    parts: &[Arc<dyn Game>],
    plays: &[Plays],
    value: impl Fn(&dyn Game) -> Value,
) -> Value {
    let values: Vec<(Value, Plays)> =
        parts.iter().map(|part| value(&**part)).zip(plays.iter().copied()).collect();
    let sum = |side: fn(&Value) -> Fixed| {
        let weighed = values.iter().map(|(value, plays)| plays.weigh(side(value)));
        weighed.fold(Expectation::ZERO, Expectation::plus).to_fixed()
    };
    // Errors add up at most; independent ones less.
    Value { mean: sum(|value| value.mean), standard_error: sum(|value| value.standard_error) }
}

/// The expected steps of parts played one after another.
pub(super) fn sum_steps(parts: &[Arc<dyn Game>], plays: &[Plays]) -> Steps {
    let mut sum = Expectation::ZERO;
    for (part, plays) in parts.iter().zip(plays) {
        match part.steps() {
            Steps::Drawn(mean) => sum = sum.plus(plays.weigh(mean)),
            Steps::ByPolicy => return Steps::ByPolicy,
        }
    }
    Steps::Drawn(sum.to_fixed())
}
