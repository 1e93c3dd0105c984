//! Smaller circuits for functions that are too large for exact synthesis.
//!
//! Three moves are repeated until none of them saves a gate: simplification, merging of equal signals
//! ([`crate::sweep`]), and windows: a gate together with the gates that serve only it, seen as a function of a few
//! signals, is replaced by a smallest circuit for that function. None of the moves is trusted: the result is
//! compared with the original, and the evidence goes with it. Clauses: SCC-7, SCC-4. Decision: D-21.

use crate::cegis::{Synthesis, SynthesisOptions, synthesize};
use crate::equivalence::{Equivalence, EquivalenceOptions, Evidence, check_equivalence_with};
use crate::solver::Budget;
use crate::specification::Specification;
use crate::sweep::sweep;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_circuit::simplify::simplify;
use std::collections::{BTreeMap, BTreeSet};

/// Signals that a window may read.
const LEAVES_MAX: usize = 4;
/// Gates of the largest window: what replaces it must be found among smaller circuits quickly.
const WINDOW_GATES_MAX: usize = 7;
/// Windows looked at for each gate.
const WINDOWS_MAX: usize = 12;

/// What it may cost.
#[derive(Clone, Copy, Debug)]
pub struct SuperoptimizeOptions {
    /// Rounds of the three moves at most.
    pub rounds_max: usize,
    /// For each attempt to find a smaller window.
    pub window_budget: Budget,
    /// For each attempt to merge two signals.
    pub sweep_budget: Budget,
    /// For the final proof.
    pub equivalence: EquivalenceOptions,
}

impl Default for SuperoptimizeOptions {
    fn default() -> SuperoptimizeOptions {
        SuperoptimizeOptions {
            rounds_max: 8,
            window_budget: Budget::conflicts(2_000),
            sweep_budget: Budget::conflicts(200),
            equivalence: EquivalenceOptions::default(),
        }
    }
}

/// A circuit that was made smaller, with the evidence that it computes the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superoptimized {
    /// The smaller circuit.
    pub circuit: Netlist,
    /// Why it equals the original.
    pub evidence: Evidence,
}

/// Looks for a circuit with fewer gates; none if there was nothing to gain or equality could not be shown.
#[doc(alias = "SUPEROPT")]
pub fn superoptimize(circuit: &Netlist, options: SuperoptimizeOptions) -> Option<Superoptimized> {
    let mut best = simplify(circuit);
    let mut known = KnownFunctions { smallest: BTreeMap::new(), budget: options.window_budget };
    for _ in 0..options.rounds_max {
        let swept = simplify(&sweep(&best, options.sweep_budget));
        let rewritten = simplify(&rewrite_windows(&swept, &mut known));
        let smaller = if rewritten.gates().len() < swept.gates().len() { rewritten } else { swept };
        if best.gates().len() <= smaller.gates().len() {
            break;
        }
        best = smaller;
    }
    if circuit.gates().len() <= best.gates().len() {
        return None;
    }
    match check_equivalence_with(circuit, &best, options.equivalence) {
        Equivalence::Equal(evidence) => Some(Superoptimized { circuit: best, evidence }),
        _ => None,
    }
}

/// Smallest circuits that were searched for already, by the number of inputs and the table.
struct KnownFunctions {
    smallest: BTreeMap<(usize, u64), Option<Netlist>>,
    budget: Budget,
}

impl KnownFunctions {
    /// A circuit with fewer than `gates` gates, if the search finds one.
    fn smaller_than(&mut self, inputs: usize, table: u64, gates: usize) -> Option<&Netlist> {
        let budget = self.budget;
        let found = self.smallest.entry((inputs, table)).or_insert_with(|| {
            let specification = Specification::from_table(inputs, table);
            let options =
                SynthesisOptions { gates_max: WINDOW_GATES_MAX - 1, budget, ..SynthesisOptions::default() };
            match synthesize(&specification, options, &mut |_| {}) {
                Synthesis::Found { circuit, .. } => Some(circuit),
                Synthesis::NotFound { .. } => None,
            }
        });
        found.as_ref().filter(|circuit| circuit.gates().len() < gates)
    }
}

/// A gate as a function of a few signals.
struct Window {
    leaves: Vec<Signal>,
    /// Gates that nothing outside needs; they go when the window is replaced.
    inside: BTreeSet<usize>,
}

/// Replaces windows that do not touch each other by smaller circuits.
fn rewrite_windows(circuit: &Netlist, known: &mut KnownFunctions) -> Netlist {
    let uses = count_uses(circuit);
    let mut claimed: BTreeSet<usize> = BTreeSet::new();
    let mut replaced: BTreeMap<usize, (Vec<Signal>, Netlist)> = BTreeMap::new();
    for gate in (0..circuit.gates().len()).rev() {
        if claimed.contains(&gate) {
            continue;
        }
        let mut best: Option<(usize, Window, Netlist)> = None;
        for window in windows(circuit, &uses, gate) {
            if window.inside.len() < 2 || !window.inside.is_disjoint(&claimed) {
                continue;
            }
            let table = table_of(circuit, gate, &window.leaves);
            let size = window.inside.len();
            if let Some(smaller) = known.smaller_than(window.leaves.len(), table, size) {
                let saved = size - smaller.gates().len();
                if best.as_ref().is_none_or(|(most, _, _)| *most < saved) {
                    best = Some((saved, window, smaller.clone()));
                }
            }
        }
        if let Some((_, window, smaller)) = best {
            claimed.extend(window.inside);
            replaced.insert(gate, (window.leaves, smaller));
        }
    }
    let mut builder = Builder::new(circuit.inputs());
    let mut map: Vec<Signal> = (0..2 + circuit.inputs()).map(Signal::from_index).collect();
    for (position, gate) in circuit.gates().iter().enumerate() {
        let signal = match replaced.get(&position) {
            Some((leaves, smaller)) => {
                let inputs: Vec<Signal> = leaves.iter().map(|leaf| map[leaf.index()]).collect();
                builder.embed(smaller, &inputs)[0]
            }
            None => builder.gate(gate.op, map[gate.a.index()], map[gate.b.index()]),
        };
        map.push(signal);
    }
    let outputs: Vec<Signal> = circuit.outputs().iter().map(|output| map[output.index()]).collect();
    builder.finish(&outputs).unwrap_or_else(|_| circuit.clone())
}

/// By gate: how many gates and outputs read it.
fn count_uses(circuit: &Netlist) -> Vec<usize> {
    let mut uses = vec![0; circuit.gates().len()];
    let read =
        circuit.gates().iter().flat_map(|gate| [gate.a, gate.b]).chain(circuit.outputs().iter().copied());
    for position in read.filter_map(|signal| circuit.gate_position(signal)) {
        uses[position] += 1;
    }
    uses
}

/// Windows of a gate, from its own inputs outwards: one leaf after the other is replaced by what drives it.
fn windows(circuit: &Netlist, uses: &[usize], gate: usize) -> Vec<Window> {
    let mut queue: Vec<BTreeSet<Signal>> = vec![drivers(circuit, gate)];
    let mut next = 0;
    while next < queue.len() && queue.len() < WINDOWS_MAX {
        let leaves = queue[next].clone();
        next += 1;
        for leaf in &leaves {
            let Some(position) = circuit.gate_position(*leaf) else { continue };
            let mut wider = leaves.clone();
            wider.remove(leaf);
            wider.extend(drivers(circuit, position));
            if wider.len() <= LEAVES_MAX && !queue.contains(&wider) {
                queue.push(wider);
            }
        }
    }
    queue
        .into_iter()
        .filter(|leaves| (1..=LEAVES_MAX).contains(&leaves.len()))
        .map(|leaves| {
            let inside = inside(circuit, uses, gate, &leaves);
            Window { leaves: leaves.into_iter().collect(), inside }
        })
        .collect()
}

/// The signals a gate reads, without constants.
fn drivers(circuit: &Netlist, gate: usize) -> BTreeSet<Signal> {
    let gate = circuit.gates()[gate];
    [gate.a, gate.b].into_iter().filter(|signal| Signal::TRUE < *signal).collect()
}

/// The gate and the gates above the leaves that are read only from within.
fn inside(circuit: &Netlist, uses: &[usize], gate: usize, leaves: &BTreeSet<Signal>) -> BTreeSet<usize> {
    let mut left: BTreeMap<usize, usize> = BTreeMap::new();
    let mut inside = BTreeSet::from([gate]);
    let mut open = vec![gate];
    while let Some(position) = open.pop() {
        let gate = circuit.gates()[position];
        for signal in [gate.a, gate.b] {
            let Some(driver) = circuit.gate_position(signal) else { continue };
            if leaves.contains(&signal) {
                continue;
            }
            let left = left.entry(driver).or_insert(uses[driver]);
            *left -= 1;
            if *left == 0 && inside.insert(driver) {
                open.push(driver);
            }
        }
    }
    inside
}

/// The value of a gate for all values of the leaves.
fn table_of(circuit: &Netlist, gate: usize, leaves: &[Signal]) -> u64 {
    const COLUMNS: [u64; 6] = [
        0xAAAA_AAAA_AAAA_AAAA,
        0xCCCC_CCCC_CCCC_CCCC,
        0xF0F0_F0F0_F0F0_F0F0,
        0xFF00_FF00_FF00_FF00,
        0xFFFF_0000_FFFF_0000,
        0xFFFF_FFFF_0000_0000,
    ];
    let mut values: BTreeMap<Signal, u64> = BTreeMap::from([(Signal::FALSE, 0), (Signal::TRUE, u64::MAX)]);
    values.extend(leaves.iter().copied().zip(COLUMNS));
    let top = circuit.gate_signal(gate);
    let mut open = vec![top];
    while let Some(signal) = open.last().copied() {
        if values.contains_key(&signal) {
            open.pop();
            continue;
        }
        let position = circuit.gate_position(signal).expect("every path from the gate ends at a leaf");
        let gate = circuit.gates()[position];
        match (values.get(&gate.a), values.get(&gate.b)) {
            (Some(a), Some(b)) => {
                let value = gate.op.apply(*a, *b);
                values.insert(signal, value);
            }
            (None, _) => open.push(gate.a),
            (_, None) => open.push(gate.b),
        }
    }
    let rows = 1 << leaves.len();
    values[&top] & if rows == 64 { u64::MAX } else { (1 << rows) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;
    use bem_circuit::testing::random_dense_netlist;
    use bem_circuit::truth_table::equal_exhaustive;

    /// A function written as a tree of choices, one input after the other: correct and wasteful.
    fn choices(inputs: usize, value: impl Fn(usize) -> bool) -> Netlist {
        let mut builder = Builder::new(inputs);
        let mut level: Vec<Signal> = (0..1 << inputs).map(|row| Signal::constant(value(row))).collect();
        for input in 0..inputs {
            let choose = builder.input(input);
            level = level.chunks(2).map(|pair| builder.mux(choose, pair[1], pair[0])).collect();
        }
        builder.finish(&level).unwrap()
    }

    #[test]
    fn wasteful_circuits_shrink_and_stay_equal() {
        let majority = choices(5, |row| 3 <= row.count_ones());
        let found =
            superoptimize(&majority, SuperoptimizeOptions::default()).expect("a tree of choices is wasteful");
        assert_eq!(equal_exhaustive(&majority, &found.circuit), Ok(()));
        assert!(
            found.circuit.gates().len() <= 16,
            "{} of {}",
            found.circuit.gates().len(),
            majority.gates().len()
        );
        assert!(matches!(found.evidence, Evidence::Exhaustive { rows: 32 }));
    }

    #[test]
    fn above_the_exhaustive_bound_the_evidence_is_a_proof() {
        let circuit = choices(4, |row| row % 3 == 1);
        let equivalence = EquivalenceOptions { exhaustive_inputs: 0, budget: Budget::DEFAULT };
        let options = SuperoptimizeOptions { equivalence, ..SuperoptimizeOptions::default() };
        let found = superoptimize(&circuit, options).expect("a tree of choices is wasteful");
        let Evidence::Proof { formula, certificate } = found.evidence else { panic!("{:?}", found.evidence) };
        assert!(certificate.check(&formula).is_ok());
    }

    #[test]
    fn random_circuits_never_grow_and_keep_their_meaning() {
        let mut prng = Prng::stream(1, "superoptimize");
        let (mut before, mut after) = (0, 0);
        let options = SuperoptimizeOptions { rounds_max: 2, ..SuperoptimizeOptions::default() };
        for _ in 0..6 {
            let circuit = random_dense_netlist(&mut prng, 6, 40, 3);
            let simple = simplify(&circuit).gates().len();
            let found = superoptimize(&circuit, options).map_or(circuit.clone(), |found| found.circuit);
            assert_eq!(equal_exhaustive(&circuit, &found), Ok(()));
            before += simple;
            after += found.gates().len().min(simple);
        }
        assert!(after < before, "{after} gates of {before} after simplification");
    }

    #[test]
    fn what_is_smallest_already_stays() {
        let mut builder = Builder::new(4);
        let wires: Vec<Signal> = (0..4).map(Signal::input).collect();
        let sum = builder.xor_all(&wires);
        let parity = builder.finish(&[sum]).unwrap();
        assert_eq!(superoptimize(&parity, SuperoptimizeOptions::default()), None);
    }
}
