//! Tables: keys that are not listed follow those that are.

use bem_prover::graph::{Bit, Graph};
use bem_synth::statement::{Index, Table};
use std::collections::BTreeMap;

/// The bits of a row at these places.
pub(super) fn gather(row: &[Bit], bits: &[Index]) -> Option<Vec<Bit>> {
    bits.iter().map(|bit| row.get(usize::from(*bit)).copied()).collect()
}

/// The lowest bits of what a table says about a key.
pub(super) fn look_up(graph: &mut Graph, table: &Table, key: &[Bit], bits: usize) -> Option<Vec<Bit>> {
    if 64 < key.len() {
        return None;
    }
    let column = |bit: usize| table.iter().map(|(key, value)| (*key, value >> bit & 1 == 1)).collect();
    Some((0..bits).map(|bit| look_up_bit(graph, column(bit), key)).collect())
}

/// From the highest bit of the key down, a bit counts only where rows contradict each other without it.
fn look_up_bit(graph: &mut Graph, rows: BTreeMap<u64, bool>, key: &[Bit]) -> Bit {
    let first = rows.values().next().copied().unwrap_or(false);
    if rows.values().all(|value| *value == first) {
        return Bit::constant(first);
    }
    let Some((highest, rest)) = key.split_last() else { return Bit::constant(first) };
    let mut halves = [BTreeMap::new(), BTreeMap::new()];
    for (key, value) in &rows {
        halves[usize::from(key >> rest.len() & 1 == 1)].insert(key & !(1 << rest.len()), *value);
    }
    let [clear, set] = halves;
    if clear.iter().all(|(key, value)| set.get(key).is_none_or(|other| other == value)) {
        return look_up_bit(graph, clear.into_iter().chain(set).collect(), rest);
    }
    let (clear, set) = (look_up_bit(graph, clear, rest), look_up_bit(graph, set, rest));
    graph.choose(*highest, set, clear)
}
