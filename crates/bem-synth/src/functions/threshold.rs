//! Weighted thresholds with small whole weights, by the perceptron rule.

use super::FunctionClass;
use crate::function::{Function, build_count};
use crate::samples::{Samples, Work};
use bem_circuit::netlist::{Builder, Op, Signal};

/// Passes over the samples at most.
const PASSES: usize = 200;
/// Weights larger than this are not worth a circuit.
const WEIGHT_MAX: i64 = 15;

/// Whether a weighted sum of the bits exceeds a bound.
pub struct Threshold;

impl FunctionClass for Threshold {
    fn name(&self) -> &'static str {
        "threshold"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if 64 < samples.width || 4_096 < samples.len() || 0 < samples.tolerance {
            return None;
        }
        let mut weights = vec![0i64; samples.width + 1];
        for _ in 0..PASSES {
            if !work.spend((samples.len() * samples.width) as u64) {
                return None;
            }
            let mut errors = 0;
            for (row, label) in samples.rows.iter().zip(&samples.labels) {
                let sum = (0..samples.width)
                    .filter(|index| row.get(*index))
                    .map(|index| weights[index])
                    .sum::<i64>();
                if (0 < sum + weights[samples.width]) == *label {
                    continue;
                }
                errors += 1;
                let change = if *label { 1 } else { -1 };
                (0..samples.width).filter(|index| row.get(*index)).for_each(|index| weights[index] += change);
                weights[samples.width] += change;
            }
            if errors == 0 {
                return close(samples, &weights);
            }
        }
        None
    }
}

fn close(samples: &Samples, weights: &[i64]) -> Option<Function> {
    let (bias, weights) = weights.split_last()?;
    if weights.iter().any(|weight| WEIGHT_MAX < weight.abs()) {
        return None;
    }
    // A negative weight counts the inverted bit, which moves the bound.
    let negative: i64 = weights.iter().filter(|weight| **weight < 0).map(|weight| -weight).sum();
    let bound = negative - bias;
    let mut builder = Builder::new(samples.width);
    let mut signals = Vec::new();
    for (index, weight) in weights.iter().enumerate() {
        let bit = builder.gate(Op::Xor, Signal::input(index), Signal::constant(*weight < 0));
        signals.extend((0..weight.unsigned_abs()).map(|_| bit));
    }
    let sum = build_count(&mut builder, &signals);
    let output = greater_than(&mut builder, &sum, bound);
    let bits: u32 = weights.iter().map(|weight| 1 + 2 * (weight.unsigned_abs() + 1).ilog2()).sum();
    Function::close(builder, output, bits + 6, "threshold with whole weights".to_string())
}

/// Whether the binary number, lowest bit first, exceeds a constant.
fn greater_than(builder: &mut Builder, number: &[Signal], bound: i64) -> Signal {
    if bound < 0 {
        return Signal::TRUE;
    }
    if 63 <= number.len() || 1i64 << number.len() <= bound {
        return Signal::FALSE;
    }
    let mut greater = Signal::FALSE;
    for (place, bit) in number.iter().enumerate() {
        greater =
            if bound >> place & 1 == 1 { builder.and(*bit, greater) } else { builder.or(*bit, greater) };
    }
    greater
}
