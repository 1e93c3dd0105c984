//! The interpreter: evaluates a placed circuit gate by gate, 256 lanes at a time.
//!
//! It is the meaning of a placed circuit: portable, safe, and what the compiler is checked against. Must not know
//! about machine code. Clauses: VM-2, VM-4.

use crate::lanes::{LaneMask, LaneWord};
use crate::netlist::Gate;
use crate::placed::{Evaluate, PlacedCircuit, Scratch, Target};

/// A placed circuit, evaluated by interpretation.
#[derive(Clone, Debug)]
pub struct Interpreted {
    circuit: PlacedCircuit,
}

impl Interpreted {
    /// Takes any placed circuit.
    pub fn new(circuit: PlacedCircuit) -> Interpreted {
        Interpreted { circuit }
    }

    /// The circuit it evaluates.
    pub fn circuit(&self) -> &PlacedCircuit {
        &self.circuit
    }
}

impl Evaluate for Interpreted {
    fn evaluate(
        &self,
        state: &mut [LaneWord],
        mask: &LaneMask,
        results: &mut [LaneWord],
        scratch: &mut Scratch,
    ) {
        self.circuit.check_room(state, results);
        let circuit = self.circuit.circuit();
        let placement = self.circuit.placement();
        let first_gate = 2 + circuit.inputs();
        let values = scratch.words(first_gate + circuit.gates().len());
        values[0] = LaneWord::ZERO;
        values[1] = LaneWord::ONES;
        for (value, plane) in values[2..first_gate].iter_mut().zip(&placement.reads) {
            *value = state[usize::from(*plane)];
        }
        evaluate_gates(circuit.gates(), values, first_gate);

        let outputs = circuit.outputs().iter().map(|output| values[output.index()]);
        let mut effective = *mask;
        for (value, target) in outputs.clone().zip(&placement.targets) {
            if *target == Target::Guard {
                effective &= value;
            }
        }
        for (value, target) in outputs.zip(&placement.targets) {
            match target {
                Target::Guard => {}
                Target::Plane(plane) => {
                    let old = &mut state[usize::from(*plane)];
                    *old = old.replace(value, effective);
                }
                Target::Result(result) => results[usize::from(*result)] = value & effective,
            }
        }
    }
}

/// Every operation as `a & (b & both ^ first) ^ b & second ^ one`, with masks that are all zeros or all ones: no branch
/// depends on the operation, so none is mispredicted. The masks are as wide as the lanes, so that they are operands
/// of instructions and need no loads of their own.
static MASKS: [[LaneWord; 4]; 8] = {
    const F: LaneWord = LaneWord::ZERO;
    const T: LaneWord = LaneWord::ONES;
    [
        [T, F, F, F],
        [T, T, T, F],
        [F, T, T, F],
        [T, T, F, F],
        [T, F, F, T],
        [T, T, T, T],
        [F, T, T, T],
        [T, T, F, T],
    ]
};

/// Fills `values[first_gate..]`, one value per gate, from the constants and inputs before it.
fn evaluate_gates(gates: &[Gate], values: &mut [LaneWord], first_gate: usize) {
    for (position, gate) in gates.iter().enumerate() {
        let (a, b) = (values[gate.a.index()], values[gate.b.index()]);
        let [both, first, second, one] = &MASKS[gate.op as usize];
        values[first_gate + position] = (a & ((b & *both) ^ *first)) ^ (b & *second) ^ *one;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{random_lanes, random_netlist, random_placement};
    use bem_base::limits::LANES;
    use bem_base::prng::Prng;

    /// One lane by the definition of the module [`crate::placed`], bit by bit.
    fn expected_lane(
        placed: &PlacedCircuit,
        before: &[LaneWord],
        mask: bool,
        lane: usize,
    ) -> (Vec<bool>, Vec<bool>) {
        let bit = |plane: &u16| before[usize::from(*plane)].get(lane);
        let inputs: Vec<bool> = placed.placement().reads.iter().map(bit).collect();
        let outputs = placed.circuit().evaluate(&inputs);
        let targets = &placed.placement().targets;
        let mask =
            mask && outputs.iter().zip(targets).all(|(value, target)| *value || *target != Target::Guard);
        let mut state: Vec<bool> = before.iter().map(|word| word.get(lane)).collect();
        let mut results = vec![false; placed.results()];
        for (value, target) in outputs.iter().zip(targets) {
            match target {
                Target::Guard => {}
                Target::Plane(plane) if mask => state[usize::from(*plane)] = *value,
                Target::Plane(_) => {}
                Target::Result(result) => results[usize::from(*result)] = mask && *value,
            }
        }
        (state, results)
    }

    #[test]
    fn every_lane_follows_the_definition() {
        let mut prng = Prng::stream(1, "interpreter");
        let mut scratch = Scratch::new();
        let rounds = if cfg!(miri) { 2 } else { 60 };
        for _ in 0..rounds {
            let (inputs, gates) = (prng.below(12) as usize, prng.below(40) as usize);
            let outputs = prng.below(10) as usize;
            let circuit = random_netlist(&mut prng, inputs, gates, outputs);
            let placed = random_placement(&mut prng, circuit, 16);
            let mut state: Vec<LaneWord> = (0..16).map(|_| random_lanes(&mut prng)).collect();
            let before = state.clone();
            let mask = random_lanes(&mut prng);
            let mut results = vec![LaneWord::ZERO; placed.results()];
            Interpreted::new(placed.clone()).evaluate(&mut state, &mask, &mut results, &mut scratch);
            let written: Vec<usize> = placed
                .placement()
                .targets
                .iter()
                .filter_map(|target| match target {
                    Target::Result(result) => Some(usize::from(*result)),
                    _ => None,
                })
                .collect();
            for lane in (0..LANES).step_by(if cfg!(miri) { 31 } else { 1 }) {
                let (state_expected, results_expected) =
                    expected_lane(&placed, &before, mask.get(lane), lane);
                let found: Vec<bool> = state.iter().map(|word| word.get(lane)).collect();
                assert_eq!(found, state_expected);
                assert!(written.iter().all(|place| results[*place].get(lane) == results_expected[*place]));
            }
        }
    }
}
