//! The Hamming router: the experts whose descriptors are nearest to the features of the step.
//!
//! The search is exact and bounded: a shard holds at most `rounds * degree` descriptors (D_max, M_max), every one is
//! compared once, a histogram of distances finds the radius, and ties go to the lowest place. Used by synthesis to
//! propose pool members and selectable as the router of a step. Must not know statistics. Clauses: VM-7, D-11.

use super::{CANDIDATES_MAX, Candidates, RouteView, Router};
use crate::config::GenesisConfig;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_base::limits::OBSERVATION_BITS_MAX;

/// Why the index refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HammingError {
    /// As many descriptors as a bounded search can compare.
    #[error("the index is full: a search compares at most {maximum} descriptors (D_max * M_max)")]
    Full {
        /// Descriptors there may be.
        maximum: usize,
    },
    /// A descriptor wider than the configuration says.
    #[error("a descriptor has a bit at {bit}, but only {width} are used (d)")]
    TooWide {
        /// The highest bit set.
        bit: usize,
        /// Bits in use.
        width: usize,
    },
}

/// One shard: the descriptors of one family's experts. Invariant: no more than `rounds * degree` of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "ANN_QUERY")]
pub struct HammingIndex {
    descriptors: Vec<(Bits, u32)>,
    width: usize,
    wanted: usize,
    rounds: usize,
    degree: usize,
}

/// Counts of one search, to show that it is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchWork {
    /// Rounds begun; at most D_max.
    pub rounds: u32,
    /// Descriptors compared; at most D_max * M_max.
    pub compared: u32,
}

impl HammingIndex {
    /// An empty index with the configuration's bounds.
    pub fn new(config: &GenesisConfig) -> HammingIndex {
        HammingIndex {
            descriptors: Vec::new(),
            width: config.feature_bits as usize,
            wanted: config.candidates_max as usize,
            rounds: config.search_depth_max as usize,
            degree: config.search_degree_max as usize,
        }
    }

    /// How many descriptors it can hold.
    pub fn capacity(&self) -> usize {
        self.rounds * self.degree
    }

    /// How many descriptors it holds.
    pub fn count(&self) -> usize {
        self.descriptors.len()
    }

    /// Adds a descriptor for an expert.
    pub fn insert(&mut self, descriptor: Bits, expert: u32) -> Result<(), HammingError> {
        if let Some(bit) = (self.width..OBSERVATION_BITS_MAX).rev().find(|bit| descriptor.get(*bit)) {
            return Err(HammingError::TooWide { bit, width: self.width });
        }
        if self.capacity() <= self.descriptors.len() {
            return Err(HammingError::Full { maximum: self.capacity() });
        }
        self.descriptors.push((descriptor, expert));
        Ok(())
    }

    /// Feature bits of an observation or of a descriptor: what lies past the width in use is folded onto it.
    #[inline]
    pub fn fold(&self, bits: &Bits) -> Bits {
        let mut folded = Bits::ZERO;
        match self.width {
            OBSERVATION_BITS_MAX => folded = *bits,
            // Whole words fold at once; this is what the default has.
            128 => folded.0[..2].copy_from_slice(&[bits.0[0] ^ bits.0[2], bits.0[1] ^ bits.0[3]]),
            width => (0..OBSERVATION_BITS_MAX).filter(|bit| bits.get(*bit)).for_each(|bit| {
                folded.set(bit % width, !folded.get(bit % width));
            }),
        }
        folded
    }

    /// Removes all descriptors.
    pub fn clear(&mut self) {
        self.descriptors.clear();
    }

    /// Removes every descriptor of an expert.
    pub fn remove(&mut self, expert: u32) {
        self.descriptors.retain(|(_, owner)| *owner != expert);
    }

    /// The nearest experts by Hamming distance, nearest first; equal distances in order of insertion.
    pub fn nearest(&self, features: &Bits, candidates: &mut Candidates) -> SearchWork {
        let mut work = SearchWork::default();
        // How many descriptors lie at each distance; then the places that each distance's candidates start at.
        let mut histogram = [0u16; OBSERVATION_BITS_MAX + 1];
        for round in self.descriptors.chunks(self.degree) {
            work.rounds += 1;
            work.compared += round.len() as u32;
            for (descriptor, _) in round {
                histogram[distance(descriptor, features)] += 1;
            }
        }
        let wanted = self.wanted.min(CANDIDATES_MAX).min(self.descriptors.len());
        let mut starts = [u16::MAX; OBSERVATION_BITS_MAX + 1];
        let mut before = 0;
        for (start, count) in starts.iter_mut().zip(histogram) {
            if wanted <= usize::from(before) {
                break;
            }
            *start = before;
            before += count;
        }
        *candidates = Candidates::EMPTY;
        candidates.count = wanted;
        for (descriptor, expert) in &self.descriptors {
            let place = &mut starts[distance(descriptor, features)];
            if usize::from(*place) < wanted {
                candidates.members[usize::from(*place)] = *expert;
                *place += 1;
            }
        }
        candidates.work = work.compared;
        work
    }

    /// Writes the canonical bytes; the bounds come from the configuration.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.descriptors.len());
        for (descriptor, expert) in &self.descriptors {
            descriptor.0.iter().for_each(|word| writer.u64(*word));
            writer.u32(*expert);
        }
    }

    /// Reads canonical bytes within the configuration's bounds.
    pub fn decode(config: &GenesisConfig, reader: &mut Reader<'_>) -> Result<HammingIndex, DecodeError> {
        let mut index = HammingIndex::new(config);
        for _ in 0..reader.length(36)? {
            let error = reader.error("a descriptor past the bounds of the index");
            let descriptor = Bits([reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?]);
            index.insert(descriptor, reader.u32()?).map_err(|_| error)?;
        }
        Ok(index)
    }
}

fn distance(a: &Bits, b: &Bits) -> usize {
    a.0.iter().zip(&b.0).map(|(a, b)| (a ^ b).count_ones() as usize).sum()
}

impl Router for HammingIndex {
    fn query(&self, view: &impl RouteView, candidates: &mut Candidates) {
        self.nearest(&self.fold(&view.observation()), candidates);
    }

    fn work_max(&self) -> u32 {
        self.capacity() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    fn random_bits(prng: &mut Prng, width: usize) -> Bits {
        let mut bits = Bits::ZERO;
        for bit in 0..width {
            bits.set(bit, prng.bit());
        }
        bits
    }

    #[test]
    fn the_answer_is_the_sorted_list_of_all_distances_cut_short() {
        let mut prng = Prng::stream(1, "hamming");
        for width in [64, 128, 256] {
            let config = GenesisConfig { feature_bits: width, ..GenesisConfig::default() };
            let mut index = HammingIndex::new(&config);
            let mut all = Vec::new();
            for expert in 0..300 {
                // Few distinct descriptors, so that ties are common.
                let descriptor = random_bits(&mut Prng::stream(prng.below(40), "descriptor"), width as usize);
                index.insert(descriptor, expert).unwrap();
                all.push((descriptor, expert));
                let features = random_bits(&mut prng, width as usize);
                let mut sorted: Vec<(usize, u32)> = all
                    .iter()
                    .map(|(descriptor, expert)| (distance(descriptor, &features), *expert))
                    .collect();
                sorted.sort_unstable();
                let want: Vec<u32> = sorted.iter().take(16).map(|(_, expert)| *expert).collect();
                let mut candidates = Candidates::EMPTY;
                index.nearest(&features, &mut candidates);
                assert_eq!(candidates.members(), want);
            }
        }
    }

    #[test]
    fn folding_is_linear_and_keeps_what_fits() {
        let mut prng = Prng::stream(4, "hamming");
        for width in [64, 100, 128, 256] {
            let config = GenesisConfig { feature_bits: width, ..GenesisConfig::default() };
            let index = HammingIndex::new(&config);
            for _ in 0..100 {
                let (a, b) = (random_bits(&mut prng, 256), random_bits(&mut prng, 64));
                let sum = Bits(core::array::from_fn(|word| a.0[word] ^ b.0[word]));
                let want = Bits(core::array::from_fn(|word| index.fold(&a).0[word] ^ b.0[word]));
                assert_eq!((index.fold(&b), index.fold(&sum)), (b, want));
                let bits = (0..256).filter(|bit| a.get(*bit) && bit % width as usize == 3).count();
                assert_eq!(index.fold(&a).get(3), bits % 2 == 1);
            }
        }
    }

    #[test]
    fn work_never_exceeds_its_bounds_and_a_full_index_says_so() {
        let config = GenesisConfig { search_depth_max: 3, search_degree_max: 8, ..GenesisConfig::default() };
        let mut index = HammingIndex::new(&config);
        let mut prng = Prng::stream(2, "hamming");
        for expert in 0..24 {
            index.insert(random_bits(&mut prng, 128), expert).unwrap();
            let mut candidates = Candidates::EMPTY;
            let work = index.nearest(&random_bits(&mut prng, 128), &mut candidates);
            assert!(work.rounds <= 3 && work.compared <= 24, "{work:?}");
            assert!(candidates.work <= index.work_max());
        }
        assert_eq!(index.insert(Bits::ZERO, 24), Err(HammingError::Full { maximum: 24 }));
        index.remove(7);
        index.insert(Bits::ZERO, 24).unwrap();
        let mut wide = Bits::ZERO;
        wide.set(130, true);
        assert_eq!(index.insert(wide, 25), Err(HammingError::TooWide { bit: 130, width: 128 }));
    }

    #[test]
    fn canonical_bytes_come_back() {
        let config = GenesisConfig::default();
        let mut index = HammingIndex::new(&config);
        let mut prng = Prng::stream(3, "hamming");
        for expert in 0..20 {
            index.insert(random_bits(&mut prng, 128), expert).unwrap();
        }
        let mut writer = Writer::new();
        index.encode(&mut writer);
        assert_eq!(HammingIndex::decode(&config, &mut Reader::new(writer.as_bytes())), Ok(index));
    }
}
