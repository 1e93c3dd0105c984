//! Decision trees on single bits, grown where they tell most, until they explain the samples.

use super::FunctionClass;
use crate::function::{Function, choice_bits};
use crate::samples::{Samples, Work};
use bem_circuit::netlist::{Builder, Signal};

/// Leaves at most.
const LEAVES_MAX: usize = 256;

/// A decision tree.
pub struct Tree;

impl FunctionClass for Tree {
    fn name(&self) -> &'static str {
        "tree"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        let mut builder = Builder::new(samples.width);
        let all: Vec<u64> = (0..samples.label_words().len()).map(|word| samples.mask(word)).collect();
        let mut leaves = 0;
        let mut spare = samples.errors_allowed()?;
        let output = grow(samples, &all, &mut builder, &mut leaves, &mut spare, work)?;
        let length = leaves as u32 * (2 + choice_bits(samples.width));
        let function = Function::close(builder, output, length, format!("decision tree of {leaves} leaves"))?;
        function.explains(samples).then_some(function)
    }
}

fn ones(words: impl Iterator<Item = u64>) -> u64 {
    words.map(|word| u64::from(word.count_ones())).sum()
}

/// Twice the Gini impurity times the size, as a fraction over the size, scaled to stay whole.
fn impurity(positive: u64, size: u64) -> u64 {
    ((positive * (size - positive)) << 16).checked_div(size).unwrap_or(0)
}

fn grow(
    samples: &Samples,
    part: &[u64],
    builder: &mut Builder,
    leaves: &mut usize,
    spare: &mut usize,
    work: &mut Work,
) -> Option<Signal> {
    let labels = samples.label_words();
    let size = ones(part.iter().copied());
    let positive = ones(part.iter().zip(labels).map(|(part, label)| part & label));
    let minority = positive.min(size - positive) as usize;
    if minority == 0 || minority * 8 <= (*spare).min(size as usize) {
        *leaves += 1;
        *spare -= minority;
        return (*leaves <= LEAVES_MAX).then_some(Signal::constant(size < 2 * positive));
    }
    if !work.spend((samples.width * part.len() * 2) as u64) {
        return None;
    }
    let mut best: Option<(u64, usize)> = None;
    for index in 0..samples.width {
        let column = samples.column(index);
        let high = ones(part.iter().zip(column).map(|(part, bit)| part & bit));
        if high == 0 || high == size {
            continue;
        }
        let high_positive =
            ones(part.iter().zip(column).zip(labels).map(|((part, bit), label)| part & bit & label));
        let score = impurity(high_positive, high) + impurity(positive - high_positive, size - high);
        if best.is_none_or(|held| (score, index) < held) {
            best = Some((score, index));
        }
    }
    let (_, index) = best?;
    let column = samples.column(index);
    let low: Vec<u64> = part.iter().zip(column).map(|(part, bit)| part & !bit).collect();
    let high: Vec<u64> = part.iter().zip(column).map(|(part, bit)| part & bit).collect();
    let otherwise = grow(samples, &low, builder, leaves, spare, work)?;
    let then = grow(samples, &high, builder, leaves, spare, work)?;
    Some(builder.mux(Signal::input(index), then, otherwise))
}
