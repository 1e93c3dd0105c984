//! Few conjunctions or few clauses: disjunctive and conjunctive normal forms by covering.
//!
//! A term starts as one whole row, loses every literal it can without touching a row of the other label, and
//! takes all the rows it then covers; the next term starts from a row that is left. The clause form is the
//! same on inverted labels.

use super::FunctionClass;
use crate::function::{Function, choice_bits};
use crate::samples::{ROW_WORDS, Row, Samples, Work};
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Op, Signal};

/// Terms at most.
const TERMS_MAX: usize = 64;
/// Orders in which literals are dropped, per term.
const ORDERS: usize = 12;

/// A disjunction of conjunctions, or the other way round.
pub struct Decision;

/// The literals of a conjunction: where `care` is set the row must equal `value`.
#[derive(Clone, Copy)]
struct Term {
    care: Row,
    value: Row,
}

impl Term {
    fn covers(&self, row: &Row) -> bool {
        (0..ROW_WORDS).all(|word| (row.0[word] ^ self.value.0[word]) & self.care.0[word] == 0)
    }

    fn literals(&self) -> u32 {
        self.care.0.iter().map(|word| word.count_ones()).sum()
    }
}

impl FunctionClass for Decision {
    fn name(&self) -> &'static str {
        "decision"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if !samples.accepts(0) || 0 < samples.tolerance {
            return None;
        }
        let forms =
            [true, false].map(|polarity| cover(samples, polarity, work).map(|terms| (polarity, terms)));
        let (polarity, terms) =
            forms.into_iter().flatten().min_by_key(|(_, terms)| length(samples, terms))?;
        let mut builder = Builder::new(samples.width);
        let mut signals = Vec::new();
        for term in &terms {
            let literals: Vec<Signal> = (0..samples.width)
                .filter(|index| term.care.get(*index))
                .map(|index| {
                    builder.gate(Op::Xor, Signal::input(index), Signal::constant(!term.value.get(index)))
                })
                .collect();
            signals.push(builder.and_all(&literals));
        }
        let any = builder.or_all(&signals);
        let output = builder.gate(Op::Xor, any, Signal::constant(!polarity));
        let form = if polarity { "conjunctions" } else { "clauses" };
        let words = format!("decision by {} {form}", terms.len());
        Function::close(builder, output, length(samples, &terms), words)
    }
}

fn length(samples: &Samples, terms: &[Term]) -> u32 {
    let literal = 1 + choice_bits(samples.width);
    4 + terms.iter().map(|term| 2 + term.literals() * literal).sum::<u32>()
}

fn cover(samples: &Samples, polarity: bool, work: &mut Work) -> Option<Vec<Term>> {
    let of = |wanted: bool| -> Vec<&Row> {
        let pairs = samples.rows.iter().zip(&samples.labels);
        pairs.filter(|(_, label)| **label == wanted).map(|(row, _)| row).collect()
    };
    let (mut left, others) = (of(polarity), of(!polarity));
    let wanted = left.len();
    let mut prng = Prng::stream(samples.len() as u64, "synth/cover");
    let mut terms = Vec::new();
    while let Some(start) = left.first() {
        if terms.len() == TERMS_MAX {
            return None;
        }
        let mut best: Option<(usize, u32, Term)> = None;
        for order in 0..ORDERS {
            if !work.spend((samples.width * others.len() / 4) as u64) {
                return None;
            }
            let term = generalise(samples, start, &others, drop_order(samples, order % 2 == 0, &mut prng));
            let covered = left.iter().filter(|row| term.covers(row)).count();
            let better = |held: &(usize, u32, Term)| (held.0, term.literals()) < (covered, held.1);
            if best.as_ref().is_none_or(better) {
                best = Some((covered, term.literals(), term));
            }
        }
        let (_, _, term) = best?;
        left.retain(|row| !term.covers(row));
        terms.push(term);
        // Terms that cover a row or two each memorise; they do not explain.
        if terms.len() == 8 && wanted < 2 * left.len() && 64 < wanted {
            return None;
        }
    }
    Some(terms)
}

/// A random order of the bits; with `by_field` those of a field stay together, which leaves terms over few fields.
fn drop_order(samples: &Samples, by_field: bool, prng: &mut Prng) -> Vec<usize> {
    if !by_field {
        let mut order: Vec<usize> = (0..samples.width).collect();
        prng.shuffle(&mut order);
        return order;
    }
    let mut groups = samples.groups.clone();
    prng.shuffle(&mut groups);
    let mut order = Vec::with_capacity(samples.width);
    for group in groups {
        let mut bits: Vec<usize> = (usize::from(group.low)..usize::from(group.low + group.width)).collect();
        prng.shuffle(&mut bits);
        order.extend(bits);
    }
    order
}

/// Drops literals in this order as long as no row of the other label is covered.
fn generalise(samples: &Samples, start: &Row, others: &[&Row], order: Vec<usize>) -> Term {
    let width = samples.width;
    let mut term = Term { care: Row::default(), value: *start };
    (0..width).for_each(|index| term.care.set(index, true));
    // How many literals keep each other row out; a literal that is the last one must stay.
    let mut keepers: Vec<u32> = others
        .iter()
        .map(|row| {
            (0..ROW_WORDS).map(|word| ((row.0[word] ^ start.0[word]) & term.care.0[word]).count_ones()).sum()
        })
        .collect();
    for index in order {
        let differs = |row: &Row| row.get(index) != start.get(index);
        let needed = others.iter().zip(&keepers).any(|(row, keepers)| *keepers == 1 && differs(row));
        if !needed {
            term.care.set(index, false);
            for (row, keepers) in others.iter().zip(&mut keepers) {
                *keepers -= u32::from(differs(row));
            }
        }
    }
    term
}
