//! Random circuits for tests and benchmarks of this and other crates. Nothing that learns may use them.

use crate::lanes::LaneWord;
use crate::netlist::{Gate, Netlist, Op, Signal};
use crate::placed::{PlacedCircuit, Placement, Target};
use bem_base::prng::Prng;

/// A random netlist, unsimplified: constants, repeated operands and unused gates occur. Operands are drawn from all
/// earlier signals, so that long-lived values are common.
pub fn random_netlist(prng: &mut Prng, inputs: usize, gates: usize, outputs: usize) -> Netlist {
    let mut list = Vec::with_capacity(gates);
    for position in 0..gates {
        let bound = (2 + inputs + position) as u64;
        let mut pick = || Signal::from_index(prng.below(bound) as usize);
        let (a, b) = (pick(), pick());
        list.push(Gate { op: Op::ALL[prng.below(8) as usize], a, b });
    }
    let bound = (2 + inputs + gates) as u64;
    let outputs = (0..outputs).map(|_| Signal::from_index(prng.below(bound) as usize)).collect();
    Netlist::new(inputs, list, outputs).expect("the caller stays within the bounds")
}

/// A random netlist without waste: every gate has two distinct, non-constant operands, the first of which is the
/// oldest signal that nobody uses yet, and the outputs are the last gates.
pub fn random_dense_netlist(prng: &mut Prng, inputs: usize, gates: usize, outputs: usize) -> Netlist {
    assert!(2 <= inputs && outputs <= gates);
    let mut list = Vec::with_capacity(gates);
    let mut unused: Vec<Signal> = (0..inputs).map(Signal::input).collect();
    for position in 0..gates {
        let bound = (inputs + position) as u64;
        let a = if unused.is_empty() {
            Signal::from_index(2 + prng.below(bound) as usize)
        } else {
            unused.remove(0)
        };
        let b = loop {
            let b = Signal::from_index(2 + prng.below(bound) as usize);
            if b != a {
                break b;
            }
        };
        unused.retain(|signal| *signal != b);
        unused.push(Signal::from_index(2 + inputs + position));
        list.push(Gate { op: Op::ALL[prng.below(8) as usize], a, b });
    }
    let outputs =
        (gates - outputs..gates).map(|position| Signal::from_index(2 + inputs + position)).collect();
    Netlist::new(inputs, list, outputs).expect("the caller stays within the bounds")
}

/// Places a circuit at random on `planes` planes: reads repeat, writes hit read planes, some outputs go to results and
/// one or two may guard. More guards would leave hardly a lane in the mask and hide every other fault.
pub fn random_placement(prng: &mut Prng, circuit: Netlist, planes: usize) -> PlacedCircuit {
    assert!(circuit.outputs().len() <= planes);
    let reads = (0..circuit.inputs()).map(|_| prng.below(planes as u64) as u16).collect();
    let mut places: Vec<u16> = (0..planes as u16).collect();
    prng.shuffle(&mut places);
    let mut guards = prng.below(3);
    let mut targets = Vec::with_capacity(circuit.outputs().len());
    for (result, plane) in places.iter().take(circuit.outputs().len()).enumerate() {
        targets.push(match prng.below(8) {
            0 if 0 < guards => {
                guards -= 1;
                Target::Guard
            }
            1 | 2 => Target::Result(result as u16),
            _ => Target::Plane(*plane),
        });
    }
    PlacedCircuit::new(circuit, Placement { reads, targets }, u32::MAX).expect("every place is in range")
}

/// A word of random lanes.
pub fn random_lanes(prng: &mut Prng) -> LaneWord {
    LaneWord(core::array::from_fn(|_| prng.next_u64()))
}
