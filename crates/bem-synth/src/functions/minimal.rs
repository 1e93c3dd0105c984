//! Smallest circuits over few bits, by exact synthesis: what has no name but little structure.
//!
//! Bits that the rows can do without are dropped; over the few that are left the solver looks for a circuit with one
//! gate, two gates, and so on. Rows never seen may become either, so that the smallest circuit also generalises.

use super::{FunctionClass, longest_for};
use crate::function::{Function, choice_bits};
use crate::samples::{Queries, Samples, Work};
use crate::statement::Formula;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_prover::{Budget, Specification, Synthesis, SynthesisOptions, synthesize};
use std::collections::BTreeMap;

/// Bits of a row for which a smallest circuit is sought.
const SUPPORT_MAX: usize = 6;
/// Gates at most; past this a smallest circuit takes too long to find.
const GATES_MAX: usize = 6;
/// What a size that is tried counts as in work.
const WORK_PER_SIZE: u64 = 400_000;

/// A smallest circuit of two-input gates.
pub struct Minimal;

impl FunctionClass for Minimal {
    fn name(&self) -> &'static str {
        "minimal"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if !samples.accepts(0) || 0 < samples.tolerance {
            return None;
        }
        let support = support(samples, work)?;
        let gates_max = (1..=GATES_MAX)
            .rev()
            .find(|gates| length(samples, support.len(), *gates) <= longest_for(samples.observations))?;
        if !work.spend(WORK_PER_SIZE * gates_max as u64) {
            return None;
        }
        let mut specification = Specification::new(support.len(), 1);
        for (row, label) in samples.rows.iter().zip(&samples.labels) {
            if !specification.want(row.gather(&support), &[Some(*label)]) {
                return None;
            }
        }
        let Queries { conflicts, rounds } = work.queries();
        let budget = Budget::conflicts(conflicts);
        let options = SynthesisOptions { gates_max, budget, rounds_max: rounds as usize };
        let Synthesis::Found { circuit, gates, .. } = synthesize(&specification, options, &mut |_| ()) else {
            return None;
        };
        let mut builder = Builder::new(samples.width);
        let inputs: Vec<Signal> = support.iter().map(|index| Signal::input(*index)).collect();
        let output = builder.embed(&circuit, &inputs)[0];
        let words = format!("smallest circuit of {gates} gates over {} bits", support.len());
        let statement = truth_table(&circuit, &support);
        Function::close(builder, output, statement, length(samples, support.len(), gates), words)
    }
}

/// The whole table of a circuit over few bits: what has no name is said row by row.
fn truth_table(circuit: &Netlist, support: &[usize]) -> Formula {
    let row = |key: u64| {
        let inputs: Vec<bool> = (0..support.len()).map(|bit| key >> bit & 1 == 1).collect();
        (key, circuit.evaluate(&inputs)[0])
    };
    Formula::rows(support, &(0..1 << support.len()).map(row).collect())
}

/// Bits to say which bits are read and how the gates are wired.
fn length(samples: &Samples, support: usize, gates: usize) -> u32 {
    let wiring: u32 = (0..gates).map(|gate| 3 + 2 * choice_bits(support + gate)).sum();
    3 + support as u32 * choice_bits(samples.width) + wiring
}

/// Few bits that still tell all rows with different labels apart, those that tell least dropped first.
fn support(samples: &Samples, work: &mut Work) -> Option<Vec<usize>> {
    if samples.len() < 8 || !work.spend((samples.len() * samples.width * samples.width / 4) as u64) {
        return None;
    }
    let mut order: Vec<(usize, usize)> = (0..samples.width)
        .map(|index| {
            let errors = samples.errors(samples.column(index));
            (errors.abs_diff(samples.len() - errors), index)
        })
        .collect();
    order.sort_unstable();
    let mut kept: Vec<usize> = (0..samples.width).collect();
    for (_, index) in order {
        let without: Vec<usize> = kept.iter().copied().filter(|other| *other != index).collect();
        if tells(samples, &without) {
            kept = without;
        }
    }
    (2..=SUPPORT_MAX).contains(&kept.len()).then_some(kept)
}

/// Whether rows that agree in these bits have the same label.
fn tells(samples: &Samples, bits: &[usize]) -> bool {
    let mut seen: BTreeMap<Vec<u64>, bool> = BTreeMap::new();
    samples.rows.iter().zip(&samples.labels).all(|(row, label)| {
        let key = bits.chunks(64).map(|bits| row.gather(bits)).collect();
        *seen.entry(key).or_insert(*label) == *label
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;
    use crate::samples::Row;

    #[test]
    fn a_small_circuit_over_few_of_many_bits_is_found_from_few_rows() {
        let wanted = |row: &Row| (row.get(2) ^ row.get(9)) && (row.get(4) || row.get(11));
        let function = Minimal.fit(&sample(&[14], 110, 1, wanted), &mut Work::new(1 << 32)).unwrap();
        assert_eq!(function.errors(&sample(&[14], 1_000, 2, wanted)), 0, "{}", function.words);
        assert_eq!(function.circuit.gates().len(), 3);
    }

    #[test]
    fn what_needs_many_bits_is_left_to_others() {
        let wanted = |row: &Row| row.0[0].count_ones() % 2 == 1;
        assert!(Minimal.fit(&sample(&[12], 300, 1, wanted), &mut Work::new(1 << 32)).is_none());
    }
}
