//! A selector of few neighbouring bits, or the count of a field, chooses which simple function applies: constants, bits
//! or xors.
//!
//! This is also how a composition of parts is taken apart: a phase or sub-game number selects the part.

use super::affine::Affine;
use super::literal::Literal;
use super::relation::Relation;
use super::scan::Scan;
use super::symmetric::Symmetric;
use super::tree::Tree;
use super::{FunctionClass, is_short};
use crate::function::{Function, build_count, choice_bits};
use crate::samples::{Row, Samples, Work};
use crate::statement::{Formula, Word};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};

/// Bits of a selector at most.
const SELECTOR_BITS_MAX: usize = 6;

/// One row in as many may belong to values of the selector that are too rare to be understood.
const SPELLED_SHARE: usize = 12;

/// Bits of a field whose count may choose.
const COUNTED_BITS_MAX: u16 = 24;

/// Bits of a selector whose parts may be anything of the first tiers; these cost more to try.
const PARTS_WIDTH_MAX: usize = 1;

/// A simple function for every value of a selector.
pub struct Multiplexer;

impl FunctionClass for Multiplexer {
    fn name(&self) -> &'static str {
        "multiplexer"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        let mut best: Option<(u32, Function)> = None;
        let selectors = selectors(samples);
        for selector in &selectors {
            if !work.spend((samples.len() * samples.width / 8) as u64) {
                break;
            }
            let Some(function) = fit_selector(samples, *selector, work) else { continue };
            let length = function.length_with_exceptions(samples);
            if best.as_ref().is_none_or(|(held, _)| length < *held) {
                best = Some((length, function));
            }
        }
        best.map(|(_, function)| function)
    }
}

/// What chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selector {
    /// The number that neighbouring bits spell: from which on, and how many.
    Bits(usize, usize),
    /// How many bits of a field are set.
    Count(Field),
}

impl Selector {
    fn value(self, row: &Row) -> u64 {
        match self {
            Selector::Bits(low, width) => row.word(&Field { low: low as u16, width: width as u16 }),
            Selector::Count(field) => u64::from(row.word(&field).count_ones()),
        }
    }

    fn build(self, builder: &mut Builder) -> Vec<Signal> {
        let inputs = |low: usize, width: usize| (low..low + width).map(Signal::input).collect();
        match self {
            Selector::Bits(low, width) => inputs(low, width),
            Selector::Count(field) => {
                let bits: Vec<Signal> = inputs(usize::from(field.low), usize::from(field.width));
                build_count(builder, &bits)
            }
        }
    }

    fn statement(self) -> Word {
        match self {
            Selector::Bits(low, width) => Word::Plain(Field { low: low as u16, width: width as u16 }),
            Selector::Count(field) => Word::Ones(field),
        }
    }

    /// Bits of its value.
    fn width(self) -> usize {
        match self {
            Selector::Bits(_, width) => width,
            Selector::Count(field) => choice_bits(usize::from(field.width) + 1) as usize,
        }
    }

    fn words(self) -> String {
        match self {
            Selector::Bits(low, width) => format!("choose by bits {low}..{}", low + width),
            Selector::Count(field) => format!("choose by the count of the field at {}", field.low),
        }
    }
}

/// Whole fields first; inside wider fields every contiguous run; then how many bits of a field are set.
fn selectors(samples: &Samples) -> Vec<Selector> {
    let mut list = Vec::new();
    for field in &samples.groups {
        let (low, width) = (usize::from(field.low), usize::from(field.width));
        if width <= SELECTOR_BITS_MAX {
            list.push(Selector::Bits(low, width));
        } else if samples.groups.len() == 1 && width <= 24 {
            for size in 1..=SELECTOR_BITS_MAX {
                list.extend((0..=width - size).map(|start| Selector::Bits(low + start, size)));
            }
        }
    }
    let counted = |field: &&Field| (3..=COUNTED_BITS_MAX).contains(&field.width);
    list.extend(samples.groups.iter().filter(counted).map(|field| Selector::Count(*field)));
    list
}

fn fit_selector(samples: &Samples, selector: Selector, work: &mut Work) -> Option<Function> {
    let width = selector.width();
    let values = 1u64 << width;
    let mut leaves: Vec<Option<Function>> = Vec::new();
    let mut description_length = choice_bits(samples.width) + 3;
    // Rows of values too rare to be understood that may be spelled out.
    let mut spelled = samples.len() / SPELLED_SHARE;
    let mut seen = 0;
    for value in 0..values {
        let part = samples.restrict(|row| selector.value(row) == value);
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
            .min_by_key(|leaf| leaf.description_length)
            .or_else(|| spell_out(&part, &mut spelled, work))?;
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
    let bits = selector.build(&mut builder);
    let output = select(&mut builder, &bits, &signals);
    let said = |leaf: Option<Function>| leaf.map_or(Formula::constant(false), |leaf| leaf.statement);
    let statement =
        Formula::Select { selector: selector.statement(), parts: leaves.into_iter().map(said).collect() };
    let function = Function::close(builder, output, statement, description_length, selector.words())?;
    function.explains(samples).then_some(function)
}

/// The few rows of a rare value one by one, as long as they are within what is left for that.
fn spell_out(part: &Samples, left: &mut usize, work: &mut Work) -> Option<Function> {
    *left = left.checked_sub(part.len())?;
    Tree.fit(part, work)
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
