//! A long list as a table: where two things decide, one row for every value of the first, and in it ranges of the second.
//!
//! Neighbouring values of the first that decide alike share a row. A table is a list of rules like any other, so that it is
//! compared with the circuit in the same way; only its lines are drawn together. Clauses: GLE-9.

use crate::facts::{Fact, Number};
use crate::list::{Agreement, Condition, Rule, RuleList};
use crate::observations::{Feature, Observations, Unit};
use bem_circuit::netlist::Netlist;

/// The table of a circuit that two topics decide, if these are all that it reads.
pub fn table(circuit: &Netlist, observations: &Observations) -> Option<RuleList> {
    let [Unit::Feature(first), Unit::Feature(second)] = observations.units() else { return None };
    let (group, ranged) = match (first.is_number, second.is_number) {
        (true, false) => (second, first),
        (false, true) => (first, second),
        _ if second.classes.len() < first.classes.len() => (second, first),
        _ => (first, second),
    };
    let answer = |row: usize, column: usize| {
        let mut input = vec![false; circuit.inputs()];
        for (feature, class) in [(group, row), (ranged, column)] {
            let bits = feature.places.iter().zip(&feature.classes[class].bits);
            bits.for_each(|(place, bit)| input[*place] = *bit);
        }
        circuit.evaluate(&input)
    };
    let rows: Vec<Vec<Vec<bool>>> = (0..group.classes.len())
        .map(|row| (0..ranged.classes.len()).map(|column| answer(row, column)).collect())
        .collect();
    let mut rules = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let end = (start..rows.len()).find(|row| rows[*row] != rows[start]).unwrap_or(rows.len());
        let mut when = Vec::new();
        if 0 < start {
            when.push(Condition { fact: from(group, start)?, holds: true });
        }
        if end < rows.len() {
            when.push(Condition { fact: from(group, end)?, holds: false });
        }
        let row = &rows[start];
        for column in 0..row.len() {
            // A range ends before the next one; the last has no end.
            let next = row.get(column + 1);
            if next == Some(&row[column]) {
                continue;
            }
            let mut all = when.clone();
            if next.is_some() {
                all.push(Condition { fact: from(ranged, column + 1)?, holds: false });
            }
            rules.push(Rule { when: all, then: row[column].clone() });
        }
        start = end;
    }
    let otherwise = rules.last()?.then.clone();
    let agreement = Agreement::Summary { agreed: 0, tried: 0, met: None };
    let group = Some(group.places.clone());
    Some(RuleList { rules, otherwise, agreement, of_features: true, group, met_values: Vec::new() })
}

/// The fact that a feature is of this class or of a later one, if one comparison says so.
fn from(feature: &Feature, class: usize) -> Option<Fact> {
    let wanted: Vec<bool> = (0..feature.classes.len()).map(|other| class <= other).collect();
    let number = Number { places: feature.places.clone(), field: 0, back: 0, skipped: 0 };
    let levels = (1..1u64 << feature.places.len().min(12)).map(|value| Fact::AtLeast(number.clone(), value));
    let bits = feature.places.iter().map(|place| Fact::Bit(*place));
    bits.chain(levels).find(|fact| feature.holds(fact) == wanted)
}
