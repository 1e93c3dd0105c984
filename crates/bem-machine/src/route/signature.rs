//! A directory's signature, prepared for the step: tables for one lane, a compiled circuit for 256.
//!
//! Both come from the same columns over GF(2), so they agree bit for bit. Must not know statistics.
//! Clauses: VM-6, D-11.

use super::directory::{RouteInput, TABLE_DEPTH_MAX};
use bem_base::environment::Bits;
use bem_base::lanes::LaneWord;
use bem_circuit::compile::Evaluator;
use bem_circuit::netlist::{Builder, Signal};
use bem_circuit::placed::{Evaluate, PlacedCircuit, Placement, Scratch, Target};

/// The signature of one lane at a time.
#[derive(Clone, Debug)]
pub struct SignatureTable {
    /// For every byte of the observation, the signature bits of each value; linear, so they just add up.
    bytes: Vec<[u16; 256]>,
    rest: Vec<(RouteInput, u64)>,
}

const _: () = assert!(TABLE_DEPTH_MAX <= 16, "the tables hold sixteen signature bits");

impl SignatureTable {
    /// Tables for the lowest `width` state bits, which are the observation; the rest is looked at bit by bit.
    ///
    /// A signature that is wider than the tables is put together bit by bit.
    pub(super) fn new(inputs: &[RouteInput], columns: &[u64], width: usize) -> SignatureTable {
        let is_wide = columns.iter().any(|column| *column >> 16 != 0);
        let width = if is_wide { 0 } else { width };
        let mut table = SignatureTable { bytes: vec![[0; 256]; width.div_ceil(8)], rest: Vec::new() };
        for (input, column) in inputs.iter().zip(columns) {
            match input {
                RouteInput::State(bit) if usize::from(*bit) < width => {
                    let (byte, bit) = (usize::from(bit / 8), bit % 8);
                    for (value, entry) in table.bytes[byte].iter_mut().enumerate() {
                        *entry ^= (column & u64::from(value >> bit & 1 == 1).wrapping_neg()) as u16;
                    }
                }
                _ => table.rest.push((*input, *column)),
            }
        }
        table
    }

    /// The signature of an observation and of whatever else is declared.
    #[inline]
    pub fn signature(&self, observation: &Bits, mut is_set: impl FnMut(RouteInput) -> bool) -> u64 {
        let mut signature = 0u16;
        for (table, word) in self.bytes.chunks(8).zip(observation.0) {
            let mut word = word;
            for byte in table {
                signature ^= byte[usize::from(word as u8)];
                word >>= 8;
            }
        }
        let rest = self.rest.iter().map(|(input, column)| column & u64::from(is_set(*input)).wrapping_neg());
        rest.fold(u64::from(signature), |signature, column| signature ^ column)
    }
}

/// The signatures of 256 lanes: sums over GF(2) are a circuit, so they are compiled like one.
#[derive(Clone, Debug)]
pub struct SignatureCircuit {
    evaluator: Evaluator,
    scratch: Scratch,
    /// Bits that are the same for every lane: address, bit and column.
    shared: Vec<(u32, u8, u64)>,
}

impl SignatureCircuit {
    /// Compiles the columns of the state bits.
    pub(super) fn new(inputs: &[RouteInput], columns: &[u64]) -> SignatureCircuit {
        let (mut reads, mut state, mut shared) = (Vec::new(), Vec::new(), Vec::new());
        for (input, column) in inputs.iter().zip(columns) {
            match input {
                RouteInput::State(bit) => {
                    reads.push(*bit);
                    state.push(*column);
                }
                RouteInput::Shared { address, bit } => shared.push((*address, *bit, *column)),
            }
        }
        let mut builder = Builder::new(reads.len());
        let mut outputs = Vec::with_capacity(TABLE_DEPTH_MAX);
        for bit in 0..TABLE_DEPTH_MAX {
            let taking_part = (0..reads.len()).filter(|place| state[*place] >> bit & 1 == 1);
            let terms: Vec<Signal> = taking_part.map(|place| builder.input(place)).collect();
            outputs.push(builder.xor_all(&terms));
        }
        let circuit = builder.finish(&outputs).expect("256 inputs and ten outputs are within every bound");
        let targets = (0..TABLE_DEPTH_MAX as u16).map(Target::Result).collect();
        let placed = PlacedCircuit::new(circuit, Placement { reads, targets }, u32::MAX)
            .expect("a directory declares bits of STATE only");
        SignatureCircuit { evaluator: Evaluator::new(&placed), scratch: Scratch::new(), shared }
    }

    /// One plane per signature bit; planes past the directory's depth are zero.
    #[inline]
    pub fn signatures(
        &mut self,
        planes: &mut [LaneWord],
        shared_bit: impl Fn(u32, u8) -> bool,
        signature: &mut [LaneWord; TABLE_DEPTH_MAX],
    ) {
        self.evaluator.evaluate(planes, &LaneWord::ONES, signature, &mut self.scratch);
        for (address, bit, column) in &self.shared {
            if shared_bit(*address, *bit) {
                for (position, plane) in signature.iter_mut().enumerate() {
                    *plane ^= LaneWord::splat(column >> position & 1 == 1);
                }
            }
        }
    }
}
