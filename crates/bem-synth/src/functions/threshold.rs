//! Weighted thresholds with small whole weights, by descent from what every bit tells alone.
//!
//! How far each bit goes with the label, scaled down to small numbers, is a first guess at the weights. Single weights
//! are then changed by one as long as that brings rows closer to their right side; where nothing helps any more, rows
//! on the wrong side pull at all their weights at once. Small weights are tried before larger ones. Where no small
//! weights are found, the perceptron rule finds large ones, which are scaled down again as far as that goes.

use super::{FunctionClass, is_short};
use crate::function::{Function, add_weighted, build_sum};
use crate::samples::{Samples, Work};
use crate::statement::Formula;
use bem_circuit::netlist::{Builder, Op, Signal};

/// Largest weights that are tried in turn.
const SCALES: [i64; 7] = [1, 2, 3, 5, 8, 12, 20];
/// Bits and rows at most.
const WIDTH_MAX: usize = 64;
const ROWS_MAX: usize = 4_096;
/// How often rows on the wrong side may pull, for one scale.
const PULLS: usize = 12;
/// Passes of the perceptron rule over all rows, the scale it starts from, and the largest weight worth a circuit.
const PASSES: usize = 300;
const PERCEPTRON_SCALE: i64 = 24;
const WEIGHT_MAX: i64 = 127;

/// Whether a weighted sum of the bits exceeds a bound.
pub struct Threshold;

impl FunctionClass for Threshold {
    fn name(&self) -> &'static str {
        "threshold"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if WIDTH_MAX < samples.width || ROWS_MAX < samples.len() || 0 < samples.tolerance || samples.width < 2
        {
            return None;
        }
        let tie = |index: usize| {
            let errors = samples.errors(samples.column(index)) as i64;
            samples.len() as i64 - 2 * errors
        };
        let ties: Vec<i64> = (0..samples.width).map(tie).collect();
        let mut search = WeightSearch::new(samples);
        if search.scale_down(&ties, &SCALES, work) {
            return close(samples, &search.weights, search.bound);
        }
        search.begin(scaled(&ties, PERCEPTRON_SCALE)?);
        if !search.learn_row_by_row(samples, work) {
            return None;
        }
        let (large, bound) = (search.weights.clone(), search.bound);
        if search.scale_down(&large, &SCALES[3..], work) {
            return close(samples, &search.weights, search.bound);
        }
        let usable = large.iter().all(|weight| weight.abs() <= WEIGHT_MAX);
        (usable && is_short(length(&large), samples.observations)).then(|| close(samples, &large, bound))?
    }
}

/// The same numbers with this largest one; none when all are zero.
fn scaled(numbers: &[i64], scale: i64) -> Option<Vec<i64>> {
    let largest = numbers.iter().map(|number| number.abs()).max().filter(|largest| 0 < *largest)?;
    let round = |number: &i64| (2 * number.abs() * scale + largest) / (2 * largest) * number.signum();
    Some(numbers.iter().map(round).collect())
}

/// Bits to say the weights and the bound.
fn length(weights: &[i64]) -> u32 {
    weights.iter().map(|weight| 1 + 2 * (weight.unsigned_abs() + 1).ilog2()).sum::<u32>() + 6
}

/// Weights on their way to the right ones.
struct WeightSearch {
    /// For every bit the rows in which it is set; at the end all rows, for the bound.
    rows: Vec<Vec<u32>>,
    labels: Vec<bool>,
    observations: usize,
    weights: Vec<i64>,
    /// The label is whether the weighted sum exceeds this.
    bound: i64,
    /// For every row twice its distance from the border, below zero on the wrong side; odd, so that none is on it.
    margins: Vec<i64>,
}

impl WeightSearch {
    fn new(samples: &Samples) -> WeightSearch {
        let set = |index: usize| {
            (0..samples.len() as u32).filter(|row| samples.rows[*row as usize].get(index)).collect()
        };
        let mut rows: Vec<Vec<u32>> = (0..samples.width).map(set).collect();
        rows.push((0..samples.len() as u32).collect());
        let labels = samples.labels.clone();
        let observations = samples.observations;
        WeightSearch {
            rows,
            observations,
            weights: Vec::new(),
            bound: 0,
            margins: vec![0; labels.len()],
            labels,
        }
    }

    /// Starts from these weights with the best bound for them.
    fn begin(&mut self, weights: Vec<i64>) {
        let mut sums = vec![0i64; self.labels.len()];
        for (weight, rows) in weights.iter().zip(&self.rows) {
            rows.iter().for_each(|row| sums[*row as usize] += weight);
        }
        let mut sorted: Vec<(i64, bool)> = sums.iter().copied().zip(self.labels.iter().copied()).collect();
        sorted.sort_unstable();
        // With a bound below all sums every row counts as set; it rises from sum to sum.
        let mut wrong = sorted.iter().filter(|(_, label)| !label).count() as i64;
        let mut best = (wrong, sorted.first().map_or(0, |(sum, _)| sum - 1));
        for (place, (sum, label)) in sorted.iter().enumerate() {
            wrong += if *label { 1 } else { -1 };
            let last = sorted.get(place + 1).is_none_or(|(next, _)| next != sum);
            if last && wrong < best.0 {
                best = (wrong, *sum);
            }
        }
        (self.weights, self.bound) = (weights, best.1);
        for (row, sum) in sums.iter().enumerate() {
            let signed = 2 * (sum - self.bound) - 1;
            self.margins[row] = if self.labels[row] { signed } else { -signed };
        }
    }

    /// Weights in proportion to these numbers, the smallest that can be made to separate the rows; false when none can.
    fn scale_down(&mut self, numbers: &[i64], scales: &[i64], work: &mut Work) -> bool {
        scales.iter().any(|scale| {
            let Some(weights) = scaled(numbers, *scale) else { return false };
            if !is_short(length(&weights), self.observations) {
                return false;
            }
            self.begin(weights);
            self.settle(*scale, work) && is_short(length(&self.weights), self.observations)
        })
    }

    /// The perceptron rule: every row on the wrong side pulls at its weights at once. False when it does not come to
    /// an end.
    fn learn_row_by_row(&mut self, samples: &Samples, work: &mut Work) -> bool {
        for _ in 0..PASSES {
            if !work.spend((samples.len() * samples.width) as u64) {
                return false;
            }
            let mut wrong = false;
            for (row, label) in samples.rows.iter().zip(&samples.labels) {
                let set = || (0..samples.width).filter(|bit| row.get(*bit));
                let sum: i64 = set().map(|bit| self.weights[bit]).sum();
                if (self.bound < sum) == *label {
                    continue;
                }
                wrong = true;
                let change = if *label { 1 } else { -1 };
                set().for_each(|bit| self.weights[bit] += change);
                self.bound -= change;
            }
            if !wrong {
                return true;
            }
        }
        false
    }

    /// Descends until no row is on the wrong side; false when it gives up.
    fn settle(&mut self, scale: i64, work: &mut Work) -> bool {
        for _ in 0..PULLS {
            while self.margins.iter().any(|margin| *margin < 0) {
                if !work.spend((2 * self.labels.len() * self.rows.len()) as u64) {
                    return false;
                }
                let Some((place, change)) = self.best_change(scale) else { break };
                self.change(place, change);
            }
            let wrong: Vec<usize> = (0..self.margins.len()).filter(|row| self.margins[*row] < 0).collect();
            if wrong.is_empty() {
                return true;
            }
            // Every bit is pulled by the rows on the wrong side; those pulled most give way by one.
            let pull = |place: usize| -> i64 {
                let rows = self.rows[place].iter().filter(|row| self.margins[**row as usize] < 0);
                rows.map(|row| if self.labels[*row as usize] { 1 } else { -1 }).sum()
            };
            let pulls: Vec<i64> = (0..self.rows.len()).map(pull).collect();
            let most = pulls.iter().map(|pull| pull.abs()).max().unwrap_or(0);
            if most == 0 {
                return false;
            }
            for (place, pull) in pulls.iter().enumerate() {
                if most <= 2 * pull.abs() {
                    self.change(place, pull.signum());
                }
            }
        }
        false
    }

    /// The change of one weight by one that brings rows on the wrong side closest, if any does.
    fn best_change(&self, scale: i64) -> Option<(usize, i64)> {
        let mut best: Option<(i64, usize, i64)> = None;
        for (place, rows) in self.rows.iter().enumerate() {
            for change in [1, -1] {
                if self.weights.get(place).is_some_and(|weight| scale < (weight + change).abs()) {
                    continue;
                }
                let gain: i64 = rows
                    .iter()
                    .map(|row| {
                        let margin = self.margins[*row as usize];
                        let moved = if self.labels[*row as usize] {
                            margin + 2 * change
                        } else {
                            margin - 2 * change
                        };
                        (1 - margin).max(0) - (1 - moved).max(0)
                    })
                    .sum();
                if 0 < gain && best.is_none_or(|held| held.0 < gain) {
                    best = Some((gain, place, change));
                }
            }
        }
        best.map(|(_, place, change)| (place, change))
    }

    /// Changes a weight; the place after the last one is the bound, downward.
    fn change(&mut self, place: usize, change: i64) {
        match self.weights.get_mut(place) {
            Some(weight) => *weight += change,
            None => self.bound -= change,
        }
        for row in &self.rows[place] {
            let toward = if self.labels[*row as usize] { 2 * change } else { -2 * change };
            self.margins[*row as usize] += toward;
        }
    }
}

fn close(samples: &Samples, weights: &[i64], bound: i64) -> Option<Function> {
    let said = weights.iter().zip(0..).filter(|(weight, _)| **weight != 0);
    let statement =
        Formula::Threshold { weights: said.map(|(weight, bit)| (bit, *weight as i32)).collect(), bound };
    // A negative weight counts the inverted bit, which moves the bound.
    let bound = bound + weights.iter().filter(|weight| **weight < 0).map(|weight| -weight).sum::<i64>();
    let mut builder = Builder::new(samples.width);
    let mut ranks: Vec<Vec<Signal>> = Vec::new();
    for (index, weight) in weights.iter().enumerate() {
        let bit = builder.gate(Op::Xor, Signal::input(index), Signal::constant(*weight < 0));
        add_weighted(&mut ranks, weight.unsigned_abs(), bit);
    }
    let sum = build_sum(&mut builder, ranks);
    let output = greater_than(&mut builder, &sum, bound);
    let words = "threshold with whole weights".to_string();
    let function = Function::close(builder, output, statement, length(weights), words)?;
    function.explains(samples).then_some(function)
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

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;
    use crate::samples::Row;
    use bem_base::prng::Prng;

    fn check(bits: usize, weight_max: u64, count: usize, errors_max: usize) {
        for seed in 1..=6 {
            let mut prng = Prng::stream(seed, "threshold");
            let mut draw = || (1 + prng.below(weight_max) as i64) * if prng.bit() { 1 } else { -1 };
            let weights: Vec<i64> = (0..bits).map(|_| draw()).collect();
            let middle: i64 = weights.iter().sum();
            let wanted = |row: &Row| {
                middle < 2 * (0..bits).filter(|bit| row.get(*bit)).map(|bit| weights[bit]).sum::<i64>()
            };
            let train = sample(&[bits as u16], count, seed, wanted);
            let function = Threshold.fit(&train, &mut Work::new(1 << 30));
            let errors =
                function.as_ref().map(|function| function.errors(&sample(&[bits as u16], 1_000, 99, wanted)));
            assert!(
                errors.is_some_and(|errors| errors <= errors_max),
                "{bits} bits, seed {seed}: {errors:?} errors"
            );
        }
    }

    #[test]
    fn whole_weights_are_found_from_few_rows() {
        check(15, 1, 300, 5);
        check(12, 5, 1_500, 10);
        check(16, 9, 3_000, 15);
    }
}
