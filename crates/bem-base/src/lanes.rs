//! 256 lanes at a time: the word that holds one bit of every lane, and the contract of bit-sliced worlds.
//!
//! A lane is one running world with its own machine state. Bit k of all lanes of a block is one [`LaneWord`], so
//! that one vector instruction serves 256 worlds. Must not know what the planes mean. Clauses: MEM-1, VM-8, VM-15.

use crate::environment::Shape;
use crate::limits::LANES;
use core::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Not};

/// How many 64-bit words one plane takes.
pub const LANE_WORDS: usize = LANES / 64;

/// One bit of each of the 256 lanes of a block: a plane. Lane `l` is bit `l % 64` of word `l / 64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C, align(32))]
pub struct LaneWord(pub [u64; LANE_WORDS]);

/// The lanes that take part: a lane whose bit is 0 keeps its state.
pub type LaneMask = LaneWord;

impl LaneWord {
    /// False in every lane.
    pub const ZERO: LaneWord = LaneWord([0; LANE_WORDS]);
    /// True in every lane.
    pub const ONES: LaneWord = LaneWord([u64::MAX; LANE_WORDS]);

    /// The same value in every lane.
    #[inline]
    pub const fn splat(value: bool) -> LaneWord {
        if value { LaneWord::ONES } else { LaneWord::ZERO }
    }

    /// True in this lane alone.
    #[inline]
    pub const fn single(lane: usize) -> LaneWord {
        let mut words = [0; LANE_WORDS];
        words[lane / 64] = 1 << (lane % 64);
        LaneWord(words)
    }

    /// The lanes below `count`.
    pub fn first(count: usize) -> LaneWord {
        assert!(count <= LANES, "{count} of {LANES} lanes");
        LaneWord(core::array::from_fn(|word| match count.saturating_sub(64 * word) {
            64.. => u64::MAX,
            rest => (1 << rest) - 1,
        }))
    }

    /// The value in this lane.
    #[inline]
    pub const fn get(&self, lane: usize) -> bool {
        self.0[lane / 64] >> (lane % 64) & 1 == 1
    }

    /// Sets the value in this lane.
    #[inline]
    pub const fn set(&mut self, lane: usize, value: bool) {
        let word = &mut self.0[lane / 64];
        *word = *word & !(1 << (lane % 64)) | (value as u64) << (lane % 64);
    }

    /// In how many lanes it is true.
    #[inline]
    pub const fn count_ones(&self) -> u32 {
        let mut count = 0;
        let mut word = 0;
        while word < LANE_WORDS {
            count += self.0[word].count_ones();
            word += 1;
        }
        count
    }

    /// Whether it is false everywhere.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.0.iter().fold(0, |any, word| any | word) == 0
    }

    /// The lowest lane in which it is true.
    pub fn first_lane(&self) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some(64 * word + self.0[word].trailing_zeros() as usize)
    }

    /// The lanes in which it is true, in rising order.
    pub fn lanes(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(word, mut bits)| {
            core::iter::from_fn(move || {
                let lane = (bits != 0).then(|| 64 * word + bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(lane)
            })
        })
    }

    /// `then` where `self` is true, `otherwise` elsewhere.
    #[inline]
    #[must_use]
    pub fn select(self, then: LaneWord, otherwise: LaneWord) -> LaneWord {
        otherwise ^ (self & (then ^ otherwise))
    }

    /// This word outside the mask, `new` inside: the masked write-back of one plane.
    #[inline]
    #[must_use]
    pub fn replace(self, new: LaneWord, mask: LaneMask) -> LaneWord {
        mask.select(new, self)
    }

    /// `self & !other`.
    #[inline]
    #[must_use]
    pub fn and_not(self, other: LaneWord) -> LaneWord {
        self & !other
    }
}

macro_rules! lane_operator {
    ($trait:ident, $method:ident, $assign_trait:ident, $assign_method:ident, $operator:tt) => {
        impl $trait for LaneWord {
            type Output = LaneWord;
            #[inline]
            fn $method(self, other: LaneWord) -> LaneWord {
                LaneWord(core::array::from_fn(|word| self.0[word] $operator other.0[word]))
            }
        }
        impl $assign_trait for LaneWord {
            #[inline]
            fn $assign_method(&mut self, other: LaneWord) {
                *self = *self $operator other;
            }
        }
    };
}
lane_operator!(BitAnd, bitand, BitAndAssign, bitand_assign, &);
lane_operator!(BitOr, bitor, BitOrAssign, bitor_assign, |);
lane_operator!(BitXor, bitxor, BitXorAssign, bitxor_assign, ^);

impl Not for LaneWord {
    type Output = LaneWord;
    #[inline]
    fn not(self) -> LaneWord {
        LaneWord(self.0.map(|word| !word))
    }
}

/// What one step brought to every lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneOutcome {
    /// True: the largest reward of the [`Shape`]; false: the smallest. Sliced worlds pay one of these two.
    pub reward: LaneWord,
    /// The episode of this lane is over, and its next one has begun.
    pub done: LaneWord,
    /// The step did something that must not happen.
    #[doc(alias = "BAD_t")]
    pub bad: LaneWord,
}

/// 256 running worlds of one kind, bit-sliced.
///
/// A lane whose episode ends begins its next one at once, from its own random bits, and its observation planes
/// already show the new episode: no lane ever waits for another. Same seed and same actions: same planes.
pub trait LaneEnvironment {
    /// What may be known before playing; the same for every lane.
    fn shape(&self) -> &Shape;

    /// Starts the first episode of every lane and writes what is seen. `observation` has `observation_bits`
    /// planes, bit 0 first.
    fn reset(&mut self, seed: u64, observation: &mut [LaneWord]);

    /// Takes one step in the lanes of `mask`; the other lanes keep their state and observation, and their bits
    /// of the outcome are zero. `action` holds the planes of the action's number, lowest bit first; the caller
    /// keeps it below `actions`.
    fn step(&mut self, action: &[LaneWord], mask: LaneWord, observation: &mut [LaneWord]) -> LaneOutcome;
}

/// How many planes the numbers `0..count` take; none for a count of one.
pub const fn planes_for(count: usize) -> usize {
    assert!(0 < count);
    (usize::BITS - (count - 1).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_is_set_and_found_alone() {
        for lane in 0..LANES {
            let word = LaneWord::single(lane);
            assert_eq!(word.count_ones(), 1);
            assert_eq!(word.first_lane(), Some(lane));
            assert_eq!(word.lanes().collect::<Vec<_>>(), [lane]);
            assert!((0..LANES).all(|other| word.get(other) == (other == lane)));
            let mut cleared = LaneWord::ONES;
            cleared.set(lane, false);
            assert_eq!(cleared, !word);
        }
        assert_eq!(LaneWord::ZERO.first_lane(), None);
        assert!(LaneWord::ZERO.is_zero());
    }

    #[test]
    fn the_first_lanes_are_counted_from_zero() {
        for count in 0..=LANES {
            assert_eq!(LaneWord::first(count).lanes().collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_replaced_word_keeps_what_the_mask_leaves_out() {
        let (old, new) = (LaneWord::first(130), LaneWord::first(70));
        let replaced = old.replace(new, LaneWord::first(100));
        assert_eq!(replaced, LaneWord::first(70) | LaneWord::first(130).and_not(LaneWord::first(100)));
    }

    #[test]
    fn plane_counts_fit_the_largest_number() {
        let counts: Vec<usize> = [1, 2, 3, 4, 5, 1_024].into_iter().map(planes_for).collect();
        assert_eq!(counts, [0, 1, 2, 2, 3, 10]);
    }
}
