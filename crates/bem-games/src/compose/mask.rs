//! MASK: the part seen through noise.
//!
//! Every step, `bits` random bits that mean nothing are added to the observation, and with chance `percent` the
//! reward is hidden: zero is paid instead. Horizon, done and BAD: those of the part. Observation: the part's bits,
//! then the random ones, each a field of its own. Values: those of the part times the share of rewards that is
//! shown, because hiding depends on nothing. Clauses: GLE-3.

use super::operator::{Extent, Operator, Plays, own_seed, sum_values};
use crate::draw::{Dice, Draw};
use crate::game::{Game, GameError, Oracle, Parameter, Range, Settings, Steps, Value};
use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Outcome, Shape};
use std::sync::Arc;

/// The operator `mask`.
pub struct Mask;

impl Operator for Mask {
    fn name(&self) -> &'static str {
        "mask"
    }

    fn about(&self) -> &'static str {
        "Adds meaningless bits to the observation and hides some of the rewards."
    }

    fn arity(&self) -> usize {
        1
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "percent",
                about: "how many of the rewards are hidden",
                range: Range::Number { min: 0, max: 90, default: 10 },
            },
            Parameter {
                name: "bits",
                about: "how many meaningless bits are added",
                range: Range::Number { min: 0, max: 64, default: 2 },
            },
        ]
    }

    fn build(&self, parts: Vec<Arc<dyn Game>>, settings: &Settings) -> Result<Arc<dyn Game>, GameError> {
        let percent = settings.number("percent") as u32;
        let bits = settings.number("bits") as u16;
        let shape = parts[0].shape();
        let low = shape.observation_bits;
        let mut fields = shape.fields.clone();
        fields.extend((0..bits).map(|index| Field { low: low + index, width: 1 }));
        let (rewards, returns) = if percent == 0 {
            ((shape.reward_min.into(), shape.reward_max.into()), (shape.return_min, shape.return_max))
        } else {
            masked_range(shape)
        };
        let extent = Extent {
            observation_bits: usize::from(low) + usize::from(bits),
            actions: shape.actions.into(),
            horizon: shape.horizon.into(),
            rewards,
            returns,
            fields,
        };
        let shape = extent.to_shape(self.name())?;
        Ok(Arc::new(Masked { parts, shape, percent, bits }))
    }
}

/// Rewards and returns when any reward may turn into zero.
fn masked_range(shape: &Shape) -> ((i64, i64), (i64, i64)) {
    let horizon = i64::from(shape.horizon);
    let (low, high) = (i64::from(shape.reward_min).min(0), i64::from(shape.reward_max).max(0));
    // Without rewards of the other sign, hiding can only bring a return closer to zero.
    let return_min = if high == 0 { shape.return_min.min(0) } else { low * horizon };
    let return_max = if low == 0 { shape.return_max.max(0) } else { high * horizon };
    ((low, high), (return_min, return_max))
}

struct Masked {
    parts: Vec<Arc<dyn Game>>,
    shape: Shape,
    percent: u32,
    bits: u16,
}

impl Masked {
    fn shown(&self) -> [Plays; 1] {
        [Plays { numerator: u64::from(100 - self.percent), denominator: 100 }]
    }
}

impl Game for Masked {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        Box::new(Episode {
            inner: self.parts[0].start(),
            shape: self.shape.clone(),
            percent: self.percent,
            bits: u32::from(self.bits),
            dice: Dice::new(0),
            observation: Bits::ZERO,
        })
    }

    fn optimum(&self) -> Value {
        sum_values(&self.parts, &self.shown(), |part| part.optimum())
    }

    fn random(&self) -> Value {
        sum_values(&self.parts, &self.shown(), |part| part.random())
    }

    fn steps(&self) -> Steps {
        self.parts[0].steps()
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        // What is added means nothing, and oracles of the part look only at the part's bits.
        let width = usize::from(self.parts[0].shape().observation_bits);
        Box::new(Unmasked { inner: self.parts[0].oracle(), width })
    }
}

/// The running world: that of the part, with its observation flipped by chance.
struct Episode {
    inner: Box<dyn Environment + Send>,
    shape: Shape,
    percent: u32,
    bits: u32,
    dice: Dice,
    observation: Bits,
}

impl Episode {
    fn show(&mut self) {
        let low = usize::from(self.inner.shape().observation_bits);
        self.observation = *self.inner.observation();
        self.observation.set_field(low, self.bits as usize, self.dice.bits(self.bits));
    }
}

impl Environment for Episode {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.dice = Dice::new(own_seed(seed));
        self.inner.reset(seed)?;
        self.show();
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let outcome = self.inner.step(action)?;
        let hidden = self.dice.below(100) < self.percent;
        if outcome.done {
            self.observation = Bits::ZERO;
        } else {
            self.show();
        }
        Ok(Outcome { reward: if hidden { 0 } else { outcome.reward }, ..outcome })
    }
}

/// Looks past the added bits.
struct Unmasked {
    inner: Box<dyn Oracle>,
    width: usize,
}

impl Oracle for Unmasked {
    fn begin(&mut self, seed: u64) {
        self.inner.begin(seed);
    }

    fn act(&mut self, observation: &Bits) -> u16 {
        let mut own = Bits::ZERO;
        super::operator::copy_bits(&mut own, 0, observation, self.width);
        self.inner.act(&own)
    }

    fn see(&mut self, action: u16, outcome: &Outcome) {
        self.inner.see(action, outcome);
    }
}

#[cfg(test)]
mod tests {
    use crate::compose::tree::tests::{check, play};
    use expect_test::expect;

    #[test]
    fn values_and_contract_follow_from_the_part() {
        check("mask{percent=25,bits=3}(add{bits=4})");
        check("mask{percent=0,bits=5}(safety_grid{size=3,bad=1})");
        check("mask{percent=50,bits=0}(safety_grid{size=3,bad=1})");
    }

    #[test]
    fn some_rewards_are_hidden_and_some_bits_mean_nothing() {
        let want = expect![[r#"
            0 0 1 1 1 -> 0: 1000
            1 0 0 1 1 -> 1: 1000
            0 0 1 0 0 -> 0: 0 done
        "#]];
        want.assert_eq(&play("mask{percent=40,bits=3}(add{bits=6})", 2));
    }
}
