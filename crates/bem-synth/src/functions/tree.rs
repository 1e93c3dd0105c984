//! Decision trees on single bits, grown where they tell most, until they explain the samples.

use super::FunctionClass;
use crate::function::{Function, choice_bits};
use crate::samples::{Samples, Work};
use crate::statement::{Branch, Formula};
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
        let mut spare = samples.errors_allowed()?;
        let mut branches = Vec::new();
        let output = grow(samples, &all, &mut builder, &mut branches, &mut spare, work)?;
        let leaves = leaves(&branches);
        let length = leaves as u32 * (2 + choice_bits(samples.width));
        let words = format!("decision tree of {leaves} leaves");
        let function = Function::close(builder, output, Formula::Tree(branches), length, words)?;
        function.explains(samples).then_some(function)
    }
}

fn leaves(branches: &[Branch]) -> usize {
    branches.iter().filter(|branch| matches!(branch, Branch::Leaf(_))).count()
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
    branches: &mut Vec<Branch>,
    spare: &mut usize,
    work: &mut Work,
) -> Option<Signal> {
    let labels = samples.label_words();
    let size = ones(part.iter().copied());
    let positive = ones(part.iter().zip(labels).map(|(part, label)| part & label));
    let minority = positive.min(size - positive) as usize;
    if minority == 0 || minority * 8 <= (*spare).min(size as usize) {
        *spare -= minority;
        let answer = size < 2 * positive;
        branches.push(Branch::Leaf(u16::from(answer)));
        return (leaves(branches) <= LEAVES_MAX).then_some(Signal::constant(answer));
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
    branches.push(Branch::Test(index as u16));
    let otherwise = grow(samples, &low, builder, branches, spare, work)?;
    let then = grow(samples, &high, builder, branches, spare, work)?;
    Some(builder.mux(Signal::input(index), then, otherwise))
}
