//! Random streams: one generator per purpose, forked by name from one seed.
//!
//! xoshiro256++ seeded through SHA-256 of the name, so that a stream depends on nothing but its seed and name
//! and adding a stream never disturbs another. Output is pinned by a test. Clauses: LOG-5.

use crate::digest;
use crate::encode::{DecodeError, Reader, Writer};
use crate::fixed::Ratio;

/// A deterministic generator of 64-bit numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "RAND")]
pub struct Prng {
    state: [u64; 4],
}

impl Prng {
    /// The stream called `name` of the run with this seed.
    pub fn stream(seed: u64, name: &str) -> Prng {
        let digest = digest::hash_parts("bem/prng", &[&seed.to_le_bytes(), name.as_bytes()]);
        let mut state = [0; 4];
        for (word, bytes) in state.iter_mut().zip(digest.as_bytes().chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes"));
        }
        // The all-zero state would stay zero for ever; a hash that lands there is not worth trusting.
        assert!(state != [0; 4]);
        Prng { state }
    }

    /// A generator from a seed alone, without hashing: for the inside of games, where resets are frequent.
    pub fn quick(seed: u64) -> Prng {
        let mut mixer = seed;
        let mut next = || {
            mixer = mixer.wrapping_add(0x9E37_79B9_7F4A_7C15);
            mix(mixer)
        };
        Prng { state: [next(), next(), next(), next()] }
    }

    /// A new stream that depends on this one's current state and the name; this one is not advanced.
    #[must_use]
    pub fn fork(&self, name: &str) -> Prng {
        let seed =
            self.state[0] ^ self.state[1].rotate_left(17) ^ self.state[2].rotate_left(34) ^ self.state[3];
        Prng::stream(seed, name)
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let state = &mut self.state;
        let result = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// A whole number below `bound`, every one equally likely. `bound` must be positive.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(0 < bound);
        // Lemire's multiplication; the few draws that would favour low results are thrown away.
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if threshold <= product as u64 {
                return (product >> 64) as u64;
            }
        }
    }

    /// A whole number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        assert!(low <= high);
        let span = high.abs_diff(low);
        let draw = if span == u64::MAX { self.next_u64() } else { self.below(span + 1) };
        low.wrapping_add_unsigned(draw)
    }

    /// True with this chance.
    #[inline]
    pub fn chance(&mut self, ratio: Ratio) -> bool {
        self.below(ratio.denominator) < ratio.numerator
    }

    /// One fair bit.
    #[inline]
    pub fn bit(&mut self) -> bool {
        self.next_u64() >> 63 == 1
    }

    /// Brings the items into a uniformly random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// Writes the whole state, for a snapshot.
    pub fn encode(&self, writer: &mut Writer) {
        for word in self.state {
            writer.u64(word);
        }
    }

    /// Reads a state back; the all-zero state is refused.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Prng, DecodeError> {
        let state = [reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?];
        if state == [0; 4] {
            return Err(reader.error("a generator state of all zeros"));
        }
        Ok(Prng { state })
    }
}

/// The finaliser of SplitMix64: every output bit depends on every input bit.
#[inline]
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_matches_the_published_algorithm() {
        // First outputs of xoshiro256++ from state [1, 2, 3, 4].
        let mut prng = Prng { state: [1, 2, 3, 4] };
        let got: Vec<u64> = (0..4).map(|_| prng.next_u64()).collect();
        assert_eq!(got, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn streams_differ_by_name_and_by_seed_and_repeat() {
        let first = |seed, name| Prng::stream(seed, name).next_u64();
        assert_eq!(first(7, "games"), first(7, "games"));
        assert_ne!(first(7, "games"), first(7, "bandit"));
        assert_ne!(first(7, "games"), first(8, "games"));
    }

    #[test]
    fn draws_below_a_bound_are_even() {
        let mut prng = Prng::stream(1, "even");
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[prng.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_saved_state_continues_the_same_stream() {
        let mut prng = Prng::stream(3, "saved");
        prng.next_u64();
        let mut writer = Writer::new();
        prng.encode(&mut writer);
        let bytes = writer.into_bytes();
        let mut copy = Prng::decode(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(copy.next_u64(), prng.next_u64());
    }
}
