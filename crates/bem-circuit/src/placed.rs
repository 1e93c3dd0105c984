//! A circuit placed on state planes: where its inputs come from and where its outputs go.
//!
//! All reads happen before all writes, so a plane may be read and written. With `y` the value of an output:
//!
//! ```text
//! mask     := mask & y                                    for every output that guards
//! STATE[k] := (STATE[k] & !mask) | (y & mask)             for an output placed on plane k
//! results[k] := y & mask                                  for an output placed on result k
//! ```
//!
//! Must not know how the circuit is evaluated: [`crate::interpret`] and [`crate::compile`] both implement
//! [`Evaluate`] and agree bit for bit. Clauses: VM-1, VM-4, VM-5.

use crate::cost::{Cost, CostError};
use crate::lanes::{LaneMask, LaneWord};
use crate::netlist::Netlist;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::limits::{CIRCUIT_OUTPUTS_MAX, STATE_BITS_MAX};

/// Where an output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Written back to this state plane, in the lanes of the mask.
    Plane(u16),
    /// Narrows the mask of this evaluation to the lanes where the output is true.
    Guard,
    /// Put into this word of the results, false outside the mask: for sums over lanes and for simulation.
    Result(u16),
}

/// Which plane each input is read from and where each output goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "R_spec")]
#[doc(alias = "W_spec")]
pub struct Placement {
    /// The state plane of each input; a plane may serve several inputs.
    pub reads: Vec<u16>,
    /// The target of each output; no plane and no result may be written twice.
    pub targets: Vec<Target>,
}

impl Placement {
    /// Inputs from the planes given, outputs to the planes given.
    pub fn on_planes(reads: &[u16], writes: &[u16]) -> Placement {
        Placement {
            reads: reads.to_vec(),
            targets: writes.iter().map(|plane| Target::Plane(*plane)).collect(),
        }
    }

    /// Input `i` from plane `i`, output `i` to result `i`: nothing is written back.
    pub fn simulation(circuit: &Netlist) -> Placement {
        Placement {
            reads: (0..circuit.inputs() as u16).collect(),
            targets: (0..circuit.outputs().len() as u16).map(Target::Result).collect(),
        }
    }
}

/// Why a circuit cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// The read specification has another length than the circuit has inputs.
    #[error("{found} planes are given for {expected} inputs")]
    ReadCount {
        /// Planes given.
        found: usize,
        /// Inputs of the circuit.
        expected: usize,
    },
    /// The write specification has another length than the circuit has outputs.
    #[error("{found} targets are given for {expected} outputs")]
    WriteCount {
        /// Targets given.
        found: usize,
        /// Outputs of the circuit.
        expected: usize,
    },
    /// A plane that no state has.
    #[error("plane {plane} is out of range: a state has planes 0 to {}", STATE_BITS_MAX - 1)]
    Plane {
        /// The plane named.
        plane: u16,
    },
    /// A result that no evaluation has.
    #[error("result {result} is out of range: an evaluation has results 0 to {}", CIRCUIT_OUTPUTS_MAX - 1)]
    Result {
        /// The result named.
        result: u16,
    },
    /// Two outputs with the same target.
    #[error("{target:?} is the target of two outputs")]
    Twice {
        /// The target named twice.
        target: Target,
    },
    /// The circuit is over its cost bound.
    #[error(transparent)]
    Cost(#[from] CostError),
}

/// A circuit together with its placement. Invariants: every plane is below [`STATE_BITS_MAX`], no plane or result is
/// written twice, and the cost is within the bound it was built under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlacedCircuit {
    circuit: Netlist,
    placement: Placement,
    planes: usize,
    results: usize,
}

impl PlacedCircuit {
    /// Checks the placement and that the static cost is at most `cost_max` work units.
    pub fn new(
        circuit: Netlist,
        placement: Placement,
        cost_max: u32,
    ) -> Result<PlacedCircuit, PlacementError> {
        let (found, expected) = (placement.reads.len(), circuit.inputs());
        if found != expected {
            return Err(PlacementError::ReadCount { found, expected });
        }
        let (found, expected) = (placement.targets.len(), circuit.outputs().len());
        if found != expected {
            return Err(PlacementError::WriteCount { found, expected });
        }
        let written = placement.targets.iter().filter_map(|target| match target {
            Target::Plane(plane) => Some(plane),
            _ => None,
        });
        if let Some(plane) =
            placement.reads.iter().chain(written).find(|plane| STATE_BITS_MAX <= usize::from(**plane))
        {
            return Err(PlacementError::Plane { plane: *plane });
        }
        let mut seen: Vec<Target> =
            placement.targets.iter().copied().filter(|target| *target != Target::Guard).collect();
        seen.sort_unstable();
        if let Some(pair) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(PlacementError::Twice { target: pair[0] });
        }
        let (mut planes, mut results) = (0, 0);
        for target in seen {
            match target {
                Target::Plane(plane) => planes = usize::from(plane) + 1,
                Target::Result(result) if CIRCUIT_OUTPUTS_MAX <= usize::from(result) => {
                    return Err(PlacementError::Result { result });
                }
                Target::Result(result) => results = usize::from(result) + 1,
                Target::Guard => {}
            }
        }
        let planes = placement.reads.iter().map(|plane| usize::from(*plane) + 1).fold(planes, usize::max);
        let placed = PlacedCircuit { circuit, placement, planes, results };
        placed.cost().check(cost_max)?;
        Ok(placed)
    }

    /// The circuit alone.
    pub fn circuit(&self) -> &Netlist {
        &self.circuit
    }

    /// Where it reads and writes.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// How many planes a state must have at least.
    pub fn planes(&self) -> usize {
        self.planes
    }

    /// How many words the results must have at least.
    pub fn results(&self) -> usize {
        self.results
    }

    /// Panics if the state or the results are too small for this circuit.
    #[inline]
    pub(crate) fn check_room(&self, state: &[LaneWord], results: &[LaneWord]) {
        assert!(self.planes <= state.len(), "{} planes given, {} needed", state.len(), self.planes);
        assert!(self.results <= results.len(), "{} results given, {} needed", results.len(), self.results);
    }

    /// The planes it may change, in order of the outputs.
    pub fn written_planes(&self) -> impl Iterator<Item = u16> {
        self.placement.targets.iter().filter_map(|target| match target {
            Target::Plane(plane) => Some(*plane),
            _ => None,
        })
    }

    /// The static cost of one evaluation over one block.
    pub fn cost(&self) -> Cost {
        let guards = self.placement.targets.iter().filter(|target| **target == Target::Guard).count();
        Cost {
            gates: self.circuit.gates().len() as u32,
            words_read: self.placement.reads.len() as u32,
            words_written: (self.placement.targets.len() - guards) as u32,
        }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.circuit.encode(writer);
        for plane in &self.placement.reads {
            writer.u16(*plane);
        }
        for target in &self.placement.targets {
            let (kind, place) = match target {
                Target::Plane(plane) => (0, *plane),
                Target::Guard => (1, 0),
                Target::Result(result) => (2, *result),
            };
            writer.u8(kind);
            writer.u16(place);
        }
    }

    /// Reads canonical bytes and checks everything that [`PlacedCircuit::new`] checks.
    pub fn decode(reader: &mut Reader<'_>, cost_max: u32) -> Result<PlacedCircuit, DecodeError> {
        let start = reader.clone();
        let circuit = Netlist::decode(reader)?;
        let reads = (0..circuit.inputs()).map(|_| reader.u16()).collect::<Result<Vec<_>, _>>()?;
        let mut targets = Vec::with_capacity(circuit.outputs().len());
        for _ in 0..circuit.outputs().len() {
            let unknown = reader.error("an unknown kind of output target");
            targets.push(match (reader.u8()?, reader.u16()?) {
                (0, plane) => Target::Plane(plane),
                (1, 0) => Target::Guard,
                (2, result) => Target::Result(result),
                _ => return Err(unknown),
            });
        }
        PlacedCircuit::new(circuit, Placement { reads, targets }, cost_max)
            .map_err(|_| start.error("a placement that breaks its bounds"))
    }
}

/// Working memory of evaluations; one per thread serves all circuits. It grows to the largest circuit it has met.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    words: Vec<LaneWord>,
}

impl Scratch {
    /// Empty working memory.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// At least `count` words, with whatever was in them before.
    #[inline]
    pub(crate) fn words(&mut self, count: usize) -> &mut [LaneWord] {
        if self.words.len() < count {
            self.words.resize(count, LaneWord::ZERO);
        }
        &mut self.words[..count]
    }
}

/// A placed circuit that can be run on a block of 256 lanes.
pub trait Evaluate {
    /// Runs the circuit once over all lanes of `mask`; see the module for the exact meaning.
    ///
    /// `state` and `results` must have at least as many words as the placement names; more are left alone.
    /// Cost: one unit per gate and word, whatever the lanes hold; no allocation once `scratch` has grown.
    fn evaluate(
        &self,
        state: &mut [LaneWord],
        mask: &LaneMask,
        results: &mut [LaneWord],
        scratch: &mut Scratch,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlist::{Gate, Op, Signal};

    fn conjunction() -> Netlist {
        let gate = Gate { op: Op::And, a: Signal::input(0), b: Signal::input(1) };
        Netlist::new(2, vec![gate], vec![Signal::from_index(4), Signal::input(0)]).unwrap()
    }

    fn check(reads: &[u16], targets: &[Target], cost_max: u32) -> Result<PlacedCircuit, PlacementError> {
        PlacedCircuit::new(
            conjunction(),
            Placement { reads: reads.to_vec(), targets: targets.to_vec() },
            cost_max,
        )
    }

    #[test]
    fn every_fault_of_a_placement_is_named() {
        use Target::{Guard, Plane, Result};
        let fault = |reads: &[u16], targets: &[Target]| check(reads, targets, 100).unwrap_err();
        assert_eq!(fault(&[0], &[Guard, Guard]), PlacementError::ReadCount { found: 1, expected: 2 });
        assert_eq!(fault(&[0, 1], &[Guard]), PlacementError::WriteCount { found: 1, expected: 2 });
        assert_eq!(fault(&[0, 1_024], &[Guard, Plane(0)]), PlacementError::Plane { plane: 1_024 });
        assert_eq!(fault(&[0, 1], &[Guard, Plane(2_000)]), PlacementError::Plane { plane: 2_000 });
        assert_eq!(fault(&[0, 1], &[Result(256), Guard]), PlacementError::Result { result: 256 });
        assert_eq!(fault(&[0, 1], &[Plane(3), Plane(3)]), PlacementError::Twice { target: Plane(3) });
        assert_eq!(fault(&[0, 1], &[Result(3), Result(3)]), PlacementError::Twice { target: Result(3) });
    }

    #[test]
    fn a_circuit_over_its_cost_bound_cannot_be_placed() {
        // One gate, two words read, two written at two units each.
        let targets = [Target::Plane(0), Target::Plane(5)];
        assert_eq!(check(&[0, 1], &targets, 7).unwrap().planes(), 6);
        let error = PlacementError::Cost(CostError { found: 7, bound: 6 });
        assert_eq!(check(&[0, 1], &targets, 6), Err(error));
    }

    #[test]
    fn canonical_bytes_come_back_and_every_cut_is_refused() {
        let placed = check(&[7, 7], &[Target::Result(2), Target::Guard], 100).unwrap();
        let mut writer = Writer::new();
        placed.encode(&mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(PlacedCircuit::decode(&mut Reader::new(&bytes), 100), Ok(placed));
        for cut in 0..bytes.len() {
            assert!(PlacedCircuit::decode(&mut Reader::new(&bytes[..cut]), 100).is_err());
        }
        assert!(PlacedCircuit::decode(&mut Reader::new(&bytes), 3).is_err());
    }
}
