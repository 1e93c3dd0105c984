//! Many rows through one circuit: 256 at a time, from words of observation to numbers of actions.
//!
//! A block of rows becomes planes, the circuit runs once for all of them, and the planes of its answer become numbers
//! again. Must not know Python. Clauses: MEM-1, VM-2.

use bem_base::environment::OBSERVATION_WORDS;
use bem_base::lanes::{LANE_WORDS, LaneWord};
use bem_base::limits::LANES;
use bem_circuit::compile::Evaluator;
use bem_circuit::interpret::Interpreted;
use bem_circuit::placed::{Evaluate as _, PlacedCircuit, Placement, Scratch, Target};
use bem_synth::policy::{Policy, action_bits};

/// Rows that are interpreted before the circuit is compiled.
const ROWS_INTERPRETED: usize = 16_384;
/// Words that the memory of a policy takes for one row.
const WORD_BITS: usize = 64;

/// A policy that answers many rows at once.
pub struct Blocks {
    evaluator: Evaluator,
    rows: usize,
    scratch: Scratch,
    planes: Vec<LaneWord>,
    code: Vec<LaneWord>,
    reads: Vec<u16>,
    memory: usize,
}

/// Transposes 64 words of 64 bits: bit `b` of word `w` becomes bit `w` of word `b`.
pub fn transpose(words: &mut [u64; 64]) {
    let (mut half, mut mask) = (32, 0x0000_0000_FFFF_FFFFu64);
    while half != 0 {
        let mut low = 0;
        while low < 64 {
            for row in low..low + half {
                let swap = (words[row] >> half ^ words[row + half]) & mask;
                words[row + half] ^= swap;
                words[row] ^= swap << half;
            }
            low += 2 * half;
        }
        half /= 2;
        mask ^= mask << half;
    }
}

impl Blocks {
    /// Prepares a policy.
    pub fn new(policy: &Policy) -> Blocks {
        let (reads, bits) = (policy.reads().to_vec(), action_bits(policy.actions()));
        let inputs = policy.circuit().inputs();
        let memory = (reads.len()..inputs).map(|plane| Target::Plane(plane as u16));
        let placement = Placement {
            reads: (0..inputs).map(|plane| plane as u16).collect(),
            targets: (0..bits).map(|bit| Target::Result(bit as u16)).chain(memory).collect(),
        };
        let placed = PlacedCircuit::new(policy.circuit().clone(), placement, u32::MAX)
            .expect("inputs and outputs of a circuit have room in a block");
        Blocks {
            evaluator: Evaluator::Interpreted(Interpreted::new(placed)),
            rows: 0,
            scratch: Scratch::new(),
            planes: vec![LaneWord::ZERO; inputs],
            code: vec![LaneWord::ZERO; bits],
            reads,
            memory: policy.memory_bits(),
        }
    }

    /// Words of memory that one row keeps.
    pub fn state_words(&self) -> usize {
        self.memory.div_ceil(WORD_BITS)
    }

    /// Answers all rows. `seen` holds `words` words for every row, and `state` its memory, which is read and written.
    pub fn act(&mut self, seen: &[u64], words: usize, state: &mut [u64], actions: &mut [i64]) {
        debug_assert!(words <= OBSERVATION_WORDS);
        let state_words = self.state_words();
        for (block, actions) in actions.chunks_mut(LANES).enumerate() {
            let first = block * LANES;
            let seen = &seen[first * words..(first + actions.len()) * words];
            let kept = &mut state[first * state_words..(first + actions.len()) * state_words];
            self.block(seen, words, kept, actions);
        }
    }

    fn block(&mut self, seen: &[u64], words: usize, state: &mut [u64], actions: &mut [i64]) {
        let (rows, state_words, reads) = (actions.len(), self.state_words(), self.reads.len());
        for group in 0..rows.div_ceil(64) {
            let (first, count) = (64 * group, (rows - 64 * group).min(64));
            let mut next = 0;
            while next < reads {
                let word = usize::from(self.reads[next]) / 64;
                let mut matrix = [0u64; 64];
                (0..count).for_each(|row| matrix[row] = seen[(first + row) * words + word]);
                transpose(&mut matrix);
                while next < reads && usize::from(self.reads[next]) / 64 == word {
                    self.planes[next].0[group] = matrix[usize::from(self.reads[next]) % 64];
                    next += 1;
                }
            }
            for word in 0..state_words {
                let mut matrix = [0u64; 64];
                (0..count).for_each(|row| matrix[row] = state[(first + row) * state_words + word]);
                transpose(&mut matrix);
                let bits = (self.memory - word * 64).min(64);
                (0..bits).for_each(|bit| self.planes[reads + word * 64 + bit].0[group] = matrix[bit]);
            }
        }
        self.rows += rows;
        if ROWS_INTERPRETED <= self.rows
            && let Evaluator::Interpreted(interpreted) = &self.evaluator
        {
            self.evaluator = Evaluator::new(interpreted.circuit());
        }
        self.evaluator.evaluate(&mut self.planes, &LaneWord::ONES, &mut self.code, &mut self.scratch);
        for group in 0..rows.div_ceil(64).min(LANE_WORDS) {
            let (first, count) = (64 * group, (rows - 64 * group).min(64));
            let mut matrix = [0u64; 64];
            self.code.iter().zip(&mut matrix).for_each(|(plane, word)| *word = plane.0[group]);
            transpose(&mut matrix);
            (0..count).for_each(|row| actions[first + row] = matrix[row] as i64);
            for word in 0..state_words {
                let mut matrix = [0u64; 64];
                let bits = (self.memory - word * 64).min(64);
                (0..bits).for_each(|bit| matrix[bit] = self.planes[reads + word * 64 + bit].0[group]);
                transpose(&mut matrix);
                (0..count).for_each(|row| state[(first + row) * state_words + word] = matrix[row]);
            }
        }
    }
}
