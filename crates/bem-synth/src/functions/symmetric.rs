//! Functions of a count: how many of some bits, or of some pairs of bits, are set.
//!
//! Majority, thresholds, counting and distances are of this kind. The sets counted over are whole rows, single
//! fields and pairs of fields of equal width joined by xor or and; for a hidden subset the bits are ranked by
//! how far each tells the label, alone or beside another.

use super::FunctionClass;
use crate::function::{Function, build_count, build_table, choice_bits};
use crate::samples::{Samples, Work};
use crate::statement::{self, Formula, Join};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Op, Signal};
use core::cmp::Reverse;
use std::collections::BTreeMap;

/// A table over the count of a natural set of bits.
pub struct Symmetric;
/// A threshold over a subset of bits, the most telling ones.
pub struct RankedSymmetric;

/// One thing to count: a bit, or two joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atom {
    Bit(usize, bool),
    Pair(Op, usize, usize),
}

impl Atom {
    fn word(self, samples: &Samples, word: usize) -> u64 {
        match self {
            Atom::Bit(index, inverted) => samples.column(index)[word] ^ if inverted { u64::MAX } else { 0 },
            Atom::Pair(op, a, b) => op.apply(samples.column(a)[word], samples.column(b)[word]),
        }
    }

    fn statement(self) -> statement::Atom {
        match self {
            Atom::Bit(index, inverted) => statement::Atom::Bit(index as u16, inverted),
            Atom::Pair(Op::And, a, b) => statement::Atom::Pair(Join::And, a as u16, b as u16),
            Atom::Pair(_, a, b) => statement::Atom::Pair(Join::Xor, a as u16, b as u16),
        }
    }

    fn build(self, builder: &mut Builder) -> Signal {
        match self {
            Atom::Bit(index, inverted) => {
                builder.gate(Op::Xor, Signal::input(index), Signal::constant(inverted))
            }
            Atom::Pair(op, a, b) => builder.gate(op, Signal::input(a), Signal::input(b)),
        }
    }
}

impl FunctionClass for Symmetric {
    fn name(&self) -> &'static str {
        "symmetric"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        let sets = natural_sets(samples);
        let mut best: Option<(u32, Function)> = None;
        for (words, atoms) in &sets {
            if !work.spend((atoms.len() * samples.len()) as u64) {
                break;
            }
            let set_bits = choice_bits(sets.len());
            let found = fit_count(samples, atoms, set_bits, words);
            let Some(function) = found else { continue };
            let length = function.length_with_exceptions(samples);
            if best.as_ref().is_none_or(|(held, _)| length < *held) {
                best = Some((length, function));
            }
        }
        best.map(|(_, function)| function)
    }
}

/// Sets of bits that belong together: all, each field, all fields of one width, and pairs of fields.
fn natural_sets(samples: &Samples) -> Vec<(String, Vec<Atom>)> {
    let bits = |field: &Field| usize::from(field.low)..usize::from(field.low + field.width);
    let plain =
        |range: core::ops::Range<usize>| range.map(|index| Atom::Bit(index, false)).collect::<Vec<_>>();
    let mut sets = vec![(format!("all {} bits", samples.width), plain(0..samples.width))];
    let wide: Vec<&Field> = samples.groups.iter().filter(|field| 2 <= field.width).collect();
    if 1 < samples.groups.len() {
        for field in &wide {
            sets.push((format!("bits {:?}", bits(field)), plain(bits(field))));
        }
        let singles: Vec<Atom> = samples
            .groups
            .iter()
            .filter(|field| field.width == 1)
            .map(|field| Atom::Bit(usize::from(field.low), false))
            .collect();
        if 2 < singles.len() && singles.len() < samples.width {
            sets.push(("single bits".to_string(), singles));
        }
    }
    let mut pair = |name: &str, low: usize, other: usize, width: usize| {
        for op in [Op::Xor, Op::And] {
            let atoms = (0..width).map(|place| Atom::Pair(op, low + place, other + place)).collect();
            sets.push((format!("{op:?} of {name} {low} and {other}, {width} wide"), atoms));
        }
    };
    for (position, first) in wide.iter().enumerate().take(8) {
        for second in wide[position + 1..].iter().take(8).filter(|second| second.width == first.width) {
            pair("fields", usize::from(first.low), usize::from(second.low), usize::from(first.width));
        }
        if first.width.is_multiple_of(2) && 4 <= first.width {
            let half = usize::from(first.width / 2);
            pair("halves", usize::from(first.low), usize::from(first.low) + half, half);
        }
    }
    sets
}

fn counts(samples: &Samples, atoms: &[Atom]) -> Vec<usize> {
    let mut counts = vec![0; samples.len()];
    for atom in atoms {
        for word in 0..samples.label_words().len() {
            let mut set = atom.word(samples, word) & samples.mask(word);
            while set != 0 {
                counts[word * 64 + set.trailing_zeros() as usize] += 1;
                set &= set - 1;
            }
        }
    }
    counts
}

/// A table from counts to labels, if it explains the samples. Counts never seen take their neighbour's label.
pub(crate) fn fit_count(samples: &Samples, atoms: &[Atom], set_bits: u32, words: &str) -> Option<Function> {
    let mut votes = vec![[0usize; 2]; atoms.len() + 1];
    for (count, label) in counts(samples, atoms).into_iter().zip(&samples.labels) {
        votes[count][usize::from(*label)] += 1;
    }
    let errors = votes.iter().map(|vote| vote[0].min(vote[1])).sum();
    if !samples.accepts(errors) {
        return None;
    }
    let seen: Vec<usize> = (0..votes.len()).filter(|count| votes[*count] != [0, 0]).collect();
    let label = |count: usize| votes[count][0] < votes[count][1];
    // A short period goes on for ever; otherwise a count never seen is like its nearest neighbour.
    let period = (2..=4).find(|period| {
        2 * period < seen.len()
            && seen.iter().all(|count| {
                seen.iter().all(|other| count % period != other % period || label(*count) == label(*other))
            })
    });
    let filled = |count: usize| match period {
        Some(period) => seen.iter().any(|other| other % period == count % period && label(*other)),
        None => label(*seen.iter().min_by_key(|other| other.abs_diff(count)).expect("some count was seen")),
    };
    let table: Vec<bool> = (0..=atoms.len()).map(filled).collect();
    let changes = table.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // Say where the label changes, or every entry that was seen, or the period, whichever is shortest.
    let by_changes = 2 + changes as u32 * choice_bits(atoms.len() + 1);
    let by_period = period.map_or(u32::MAX, |period| 3 + period as u32);
    let description_length = set_bits + by_changes.min(2 + seen.len() as u32).min(by_period);
    let mut builder = Builder::new(samples.width);
    let signals: Vec<Signal> = atoms.iter().map(|atom| atom.build(&mut builder)).collect();
    let count = build_count(&mut builder, &signals);
    let pairs: BTreeMap<u64, bool> =
        table.iter().enumerate().map(|(count, label)| (count as u64, *label)).collect();
    let output = build_table(&mut builder, &count, &pairs);
    let statement = Formula::Count { atoms: atoms.iter().map(|atom| atom.statement()).collect(), table };
    let words = format!("count over {words}, {changes} changes");
    Function::close(builder, output, statement, description_length, words)
}

impl FunctionClass for RankedSymmetric {
    fn name(&self) -> &'static str {
        "ranked symmetric"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        if samples.width < 3 || !work.spend((samples.width * samples.width / 2 * samples.len() / 8) as u64) {
            return None;
        }
        let fit = |atoms: Vec<Atom>| {
            (3..=samples.width)
                .filter_map(|size| {
                    let words = format!("{size} ranked bits");
                    fit_count(samples, &atoms[..size], samples.width as u32, &words)
                })
                .min_by_key(|function| function.length_with_exceptions(samples))
        };
        fit(ranked_alone(samples)).or_else(|| fit(ranked_in_pairs(samples)?))
    }
}

/// How far a column agrees with the labels beyond a coin: positive when it does, negative when its opposite does.
fn agreement(samples: &Samples, column: &[u64]) -> i64 {
    samples.len() as i64 - 2 * samples.errors(column) as i64
}

/// The bits by how far each alone tells the label, turned so that they agree with it.
fn ranked_alone(samples: &Samples) -> Vec<Atom> {
    let told = |index: usize| agreement(samples, samples.column(index));
    let mut bits: Vec<usize> = (0..samples.width).collect();
    bits.sort_by_key(|index| Reverse(told(*index).abs()));
    bits.into_iter().map(|index| Atom::Bit(index, told(index) < 0)).collect()
}

/// Rounds in which the bits weigh each other, and the size that weights are brought back to.
const ROUNDS: usize = 8;
const WEIGHT_BITS: u32 = 20;

/// The bits by how far they tell the label in pairs: a bit weighs as much as the bits that it tells something beside, so
/// that bits of one count raise each other. A count that comes round, as a remainder does, is told by pairs of its bits
/// where no single one tells anything.
fn ranked_in_pairs(samples: &Samples) -> Option<Vec<Atom>> {
    let told = |one: usize, other: usize| {
        let columns = samples.column(one).iter().zip(samples.column(other));
        agreement(samples, &columns.map(|(one, other)| one ^ other).collect::<Vec<u64>>())
    };
    let bits = || 0..samples.width;
    let pairs: Vec<Vec<i64>> = bits()
        .map(|one| bits().map(|other| if one == other { 0 } else { told(one, other) }).collect())
        .collect();
    let strength = |row: &[i64]| row.iter().map(|told| told * told).sum::<i64>();
    let mut weights = pairs.iter().max_by_key(|row| strength(row))?.clone();
    for _ in 0..ROUNDS {
        let weighed = |row: &Vec<i64>| row.iter().zip(&weights).map(|(told, weight)| told * weight).sum();
        weights = pairs.iter().map(weighed).collect();
        let largest = weights.iter().map(|weight| weight.unsigned_abs()).max()?;
        let surplus = (u64::BITS - largest.leading_zeros()).saturating_sub(WEIGHT_BITS);
        weights.iter_mut().for_each(|weight| *weight >>= surplus);
    }
    let mut ranked: Vec<usize> = bits().collect();
    ranked.sort_by_key(|index| Reverse(weights[*index].abs()));
    // Bits that count in the same sense weigh alike; the strongest says which sense that is.
    let sense = weights[*ranked.first()?].signum();
    Some(ranked.into_iter().map(|index| Atom::Bit(index, weights[index].signum() == -sense)).collect())
}
