//! Fuzzing without a special compiler: every decoder gets millions of damaged inputs made from good ones.
//!
//! A target is a set of good inputs and a function that reads one and says whether it was accepted; a decoder that
//! accepts must write the same bytes again. Mutants that are accepted join the good inputs, so that a run moves away from
//! where it began. Everything is a function of the seed. Coverage-guided targets for the same decoders are in `fuzz/`.
//! Clauses: LOG-2, LOG-4.

mod targets;

pub use targets::{TARGETS, Target};

use bem_base::prng::Prng;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Inputs kept for mutation.
const POOL_MAX: usize = 512;
/// Bytes of an input at most: decoders see small inputs often rather than large ones rarely.
const INPUT_BYTES_MAX: usize = 16_384;
/// Bytes that break things more often than others.
const BYTES: [u8; 9] = [0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF, b'0'];
/// Numbers at the edges of what fits somewhere.
const NUMBERS: [u64; 10] =
    [0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 32, i64::MAX as u64];

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Inputs tried.
    pub executions: u64,
    /// Inputs that the decoder took.
    pub accepted: u64,
    /// Inputs in the pool at the end.
    pub pool: u64,
}

/// Tries so many mutants on a target. An error holds the input that broke it.
pub fn fuzz(target: &Target, corpus: Vec<Vec<u8>>, count: u64, seed: u64) -> Result<Outcome, Vec<u8>> {
    let mut prng = Prng::stream(seed, target.name);
    let mut pool = (target.seeds)();
    let seeds = pool.len();
    assert!(pool.iter().all(|input| (target.run)(input)), "{}: a good input is refused", target.name);
    pool.extend(corpus);
    let mut outcome = Outcome::default();
    for _ in 0..count {
        let mut input = pool[prng.below(pool.len() as u64) as usize].clone();
        for _ in 0..=prng.below(4) {
            mutate(&mut input, &pool, &mut prng);
        }
        input.truncate(INPUT_BYTES_MAX);
        let Ok(accepted) = catch_unwind(AssertUnwindSafe(|| (target.run)(&input))) else { return Err(input) };
        outcome.executions += 1;
        if accepted {
            outcome.accepted += 1;
            if pool.len() < POOL_MAX {
                pool.push(input);
            } else if prng.below(16) == 0 {
                // The first inputs stay; of the others any may go.
                let place = seeds + prng.below((pool.len() - seeds) as u64) as usize;
                pool[place] = input;
            }
        }
    }
    outcome.pool = pool.len() as u64;
    Ok(outcome)
}

/// Changes an input in one of the ways in which files go wrong.
fn mutate(input: &mut Vec<u8>, pool: &[Vec<u8>], prng: &mut Prng) {
    let length = input.len() as u64;
    let place = prng.below(length + 1) as usize;
    match prng.below(9) {
        0 | 1 if 0 < length => {
            let bit = prng.below(length * 8) as usize;
            input[bit / 8] ^= 1 << (bit % 8);
        }
        2 if place < input.len() => input[place] = BYTES[prng.below(BYTES.len() as u64) as usize],
        3 => {
            let number = NUMBERS[prng.below(NUMBERS.len() as u64) as usize].wrapping_add(prng.below(3));
            let width = 1 << prng.below(4);
            let end = input.len().min(place + width);
            let bytes = number.to_le_bytes();
            input[place..end].copy_from_slice(&bytes[..end - place]);
        }
        4 => input.truncate(place),
        5 => {
            let end = (place + 1 + prng.below(8) as usize).min(input.len());
            input.drain(place..end);
        }
        6 => {
            let end = (place + 1 + prng.below(16) as usize).min(input.len());
            let copy = input[place..end].to_vec();
            let target = prng.below(length + 1) as usize;
            input.splice(target..target, copy);
        }
        7 => {
            let other = &pool[prng.below(pool.len() as u64) as usize];
            let cut = prng.below(other.len() as u64 + 1) as usize;
            input.truncate(place);
            input.extend_from_slice(&other[cut..]);
        }
        _ => input.insert(place, prng.next_u64() as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decoder_takes_good_inputs_and_survives_damaged_ones() {
        for target in TARGETS {
            let outcome = fuzz(target, Vec::new(), 300, 1);
            let outcome = outcome.unwrap_or_else(|input| panic!("{} breaks on {input:?}", target.name));
            assert_eq!(outcome.executions, 300);
        }
    }

    #[test]
    fn a_decoder_that_panics_is_found() {
        let canary = Target {
            name: "canary",
            seeds: || vec![vec![1, 2, 3, 4]],
            run: |bytes| {
                assert!(bytes.first() != Some(&0x81), "the canary");
                true
            },
        };
        let broken = fuzz(&canary, Vec::new(), 100_000, 1).unwrap_err();
        assert_eq!(broken[0], 0x81);
    }
}
