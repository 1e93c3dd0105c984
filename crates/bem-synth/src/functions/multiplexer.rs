//! A selector of few neighbouring bits chooses which simple function applies: constants, bits or xors.
//!
//! This is also how a composition of parts is taken apart: a phase or sub-game number selects the part.

use super::affine::Affine;
use super::literal::Literal;
use super::relation::Relation;
use super::scan::Scan;
use super::symmetric::Symmetric;
use super::{FunctionClass, is_short};
use crate::function::{Function, choice_bits};
use crate::samples::{Samples, Work};
use bem_circuit::netlist::{Builder, Signal};

/// Bits of a selector at most.
const SELECTOR_BITS_MAX: usize = 6;

/// Bits of a selector whose parts may be anything of the first tiers; these cost more to try.
const PARTS_WIDTH_MAX: usize = 1;

/// A simple function for every value of a selector.
pub struct Multiplexer;

impl FunctionClass for Multiplexer {
    fn name(&self) -> &'static str {
        "multiplexer"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        let mut best: Option<Function> = None;
        let selectors = selectors(samples);
        for (low, width) in &selectors {
            if !work.spend((samples.len() * samples.width / 8) as u64) {
                break;
            }
            let Some(function) = fit_selector(samples, *low, *width, work) else { continue };
            if best.as_ref().is_none_or(|held| function.description_length < held.description_length) {
                best = Some(function);
            }
        }
        best
    }
}

/// Whole fields first; inside wider fields every contiguous run.
fn selectors(samples: &Samples) -> Vec<(usize, usize)> {
    let mut list = Vec::new();
    for field in &samples.groups {
        let (low, width) = (usize::from(field.low), usize::from(field.width));
        if width <= SELECTOR_BITS_MAX {
            list.push((low, width));
        } else if samples.groups.len() == 1 && width <= 24 {
            for size in 1..=SELECTOR_BITS_MAX {
                list.extend((0..=width - size).map(|start| (low + start, size)));
            }
        }
    }
    list
}

fn fit_selector(samples: &Samples, low: usize, width: usize, work: &mut Work) -> Option<Function> {
    let selector: Vec<usize> = (low..low + width).collect();
    let values = 1u64 << width;
    let mut leaves: Vec<Option<Function>> = Vec::new();
    let mut description_length = choice_bits(samples.width) + 3;
    let mut seen = 0;
    for value in 0..values {
        let part = samples.restrict(|row| row.gather(&selector) == value);
        if part.is_empty() {
            leaves.push(None);
            continue;
        }
        seen += 1;
        let classes: &[&dyn FunctionClass] = if width <= PARTS_WIDTH_MAX {
            &[&Literal, &Affine, &Symmetric, &Relation, &Scan]
        } else {
            &[&Literal, &Affine, &Symmetric]
        };
        // One wrong leaf among many spoils the whole, so that each must be surer the more there are.
        let leaf = classes
            .iter()
            .filter_map(|class| class.fit(&part, work))
            .filter(|leaf| is_short(leaf.description_length + width as u32, part.observations + width))
            .min_by_key(|leaf| leaf.description_length)?;
        description_length += leaf.description_length;
        leaves.push(Some(leaf));
    }
    if seen < 2 || !is_short(description_length, samples.observations) {
        return None;
    }
    let mut builder = Builder::new(samples.width);
    let row: Vec<Signal> = (0..samples.width).map(Signal::input).collect();
    let signals: Vec<Signal> = leaves
        .iter()
        .map(|leaf| leaf.as_ref().map_or(Signal::FALSE, |leaf| leaf.embed(&mut builder, &row)))
        .collect();
    let bits: Vec<Signal> = selector.iter().map(|index| Signal::input(*index)).collect();
    let output = select(&mut builder, &bits, &signals);
    let function = Function::close(
        builder,
        output,
        description_length,
        format!("choose by bits {low}..{}", low + width),
    )?;
    function.explains(samples).then_some(function)
}

/// The signal at the index that the bits spell, lowest bit first. `signals` has an entry for every index.
pub fn select(builder: &mut Builder, bits: &[Signal], signals: &[Signal]) -> Signal {
    match bits.split_last() {
        None => signals[0],
        Some((top, rest)) => {
            let (low, high) = signals.split_at(1 << rest.len());
            let otherwise = select(builder, rest, low);
            let then = select(builder, rest, high);
            builder.mux(*top, then, otherwise)
        }
    }
}
