//! Known minimum sizes, and what is not claimed when the budget is too small.

use super::*;
use crate::equivalence::{EquivalenceOptions, check_equivalence_with};

fn smallest(specification: &Specification) -> (Netlist, usize) {
    let found = synthesize(specification, SynthesisOptions::default(), &mut |_| {});
    let Synthesis::Found { circuit, gates, smaller } = found else { panic!("{found:?}") };
    assert_eq!(specification.first_violated(&circuit), None);
    assert!(smaller.is_complete());
    assert_eq!(smaller.refutations.len(), gates.saturating_sub(smaller.by_counting));
    for refutation in &smaller.refutations {
        assert!(refutation.certificate.check(&refutation.formula).is_ok());
    }
    (circuit, gates)
}

fn symmetric(inputs: usize, outputs: usize, value: impl Fn(u32) -> u32) -> Specification {
    Specification::from_function(inputs, outputs, |row| {
        let value = value(row.count_ones());
        (0..outputs).map(|output| Some(value >> output & 1 == 1)).collect()
    })
}

#[test]
fn known_minimum_sizes_are_found_and_proven() {
    assert_eq!(smallest(&symmetric(3, 2, |ones| ones)).1, 5, "full adder");
    assert_eq!(smallest(&symmetric(3, 1, |ones| u32::from(2 <= ones))).1, 4, "majority of three");
    assert_eq!(smallest(&symmetric(4, 1, |ones| u32::from(ones == 2))).1, 6, "two of four");
    assert_eq!(smallest(&symmetric(4, 1, |ones| u32::from(ones % 3 == 0))).1, 7, "multiple of three of four");
    for inputs in 1..=7 {
        assert_eq!(smallest(&symmetric(inputs, 1, |ones| ones & 1)).1, inputs - 1, "parity of {inputs}");
    }
}

#[test]
fn outputs_without_gates_and_complements_cost_nothing() {
    // Constant, input, inverted input, conjunction and its complement.
    let specification = Specification::from_function(2, 5, |row| {
        let (a, b) = (row & 1 == 1, row >> 1 == 1);
        [true, a, !b, a && b, !(a && b)].map(Some).to_vec()
    });
    let (circuit, gates) = smallest(&specification);
    assert_eq!(gates, 1);
    assert_eq!(circuit.gates().len(), 3, "and two inverters");
}

#[test]
fn open_rows_make_circuits_smaller() {
    // Exclusive or of three where the rows with more than one true input do not matter: a disjunction.
    let specification = Specification::from_function(3, 1, |row| {
        vec![(row.count_ones() < 2).then_some(row.count_ones() == 1)]
    });
    assert_eq!(smallest(&specification).1, 2);
    // Nothing is wanted in row 0, so either polarity will do: `!(a & b)` from three rows.
    let specification = Specification::parse("10 1\n01 1\n11 0").unwrap();
    assert_eq!(smallest(&specification).1, 1);
}

#[test]
fn the_loop_shows_its_candidates_and_counterexamples() {
    let (mut proposed, mut rows, mut refuted) = (0, Vec::new(), Vec::new());
    let majority = symmetric(3, 1, |ones| u32::from(2 <= ones));
    synthesize(&majority, SynthesisOptions::default(), &mut |event| match event {
        Event::Proposed { .. } => proposed += 1,
        Event::Counterexample { row } => rows.push(*row),
        Event::Refuted { gates } => refuted.push(*gates),
        Event::Undecided { .. } => panic!("the budget is ample"),
    });
    assert_eq!(refuted, [2, 3]);
    assert_eq!(proposed, rows.len() + 1, "all candidates but the last were refuted by a row");
    assert!(rows.len() < 8, "{rows:?}");
}

#[test]
fn a_circuit_can_be_the_oracle_beyond_any_table() {
    // Twelve inputs, of which the function reads four.
    let mut builder = Builder::new(12);
    let wires = [3, 5, 8, 11].map(|input| builder.input(input));
    let left = builder.and(wires[0], wires[1]);
    let right = builder.and(wires[2], wires[3]);
    let output = builder.xor(left, right);
    let circuit = builder.finish(&[output, wires[0]]).unwrap();
    let options = EquivalenceOptions { exhaustive_inputs: 0, budget: Budget::DEFAULT };
    let oracle = CircuitOracle::new(circuit.clone(), options);
    let found = synthesize(&oracle, SynthesisOptions::default(), &mut |_| {});
    let Synthesis::Found { circuit: smaller, gates, .. } = found else { panic!("{found:?}") };
    assert_eq!(gates, 3);
    assert!(check_equivalence_with(&circuit, &smaller, options).is_equal());
}

#[test]
fn without_budget_minimality_is_not_claimed() {
    let budget = Budget::conflicts(30);
    let options = SynthesisOptions { gates_max: 7, budget, ..SynthesisOptions::default() };
    let found = synthesize(&symmetric(4, 1, |ones| u32::from(ones % 3 == 0)), options, &mut |_| {});
    let (Synthesis::Found { smaller, .. } | Synthesis::NotFound { smaller }) = found;
    assert!(!smaller.is_complete());
}

#[test]
fn without_counterexamples_left_the_size_is_undecided() {
    let options = SynthesisOptions { rounds_max: 1, ..SynthesisOptions::default() };
    let found = synthesize(&symmetric(4, 1, |ones| u32::from(ones % 3 == 0)), options, &mut |_| {});
    assert!(matches!(found, Synthesis::NotFound { smaller } if !smaller.is_complete()));
}

#[test]
fn too_few_gates_are_a_proven_no() {
    let options = SynthesisOptions { gates_max: 3, ..SynthesisOptions::default() };
    let found = synthesize(&symmetric(3, 1, |ones| u32::from(2 <= ones)), options, &mut |_| {});
    assert!(matches!(found, Synthesis::NotFound { smaller } if smaller.is_complete()));
}
