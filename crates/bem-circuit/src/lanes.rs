//! 256 lanes of one bit: the unit in which circuits are evaluated.
//!
//! The state of a block of lanes is a slice of [`LaneWord`]s, one per state bit (a *plane*). Must not know what a
//! lane stands for. Clauses: MEM-1, VM-2.

use bem_base::limits::LANES;
use core::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Not};

/// Machine words in one [`LaneWord`].
pub const WORDS: usize = LANES / 64;

const _: () = assert!(LANES == 256, "the compiler emits code for 256 lanes");

/// One bit for each of 256 lanes. Lane 0 is the lowest bit of the first word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C, align(32))]
pub struct LaneWord(pub [u64; WORDS]);

/// The lanes that take part: a lane whose bit is 0 keeps its state.
pub type LaneMask = LaneWord;

impl LaneWord {
    /// No lane.
    pub const ZERO: LaneWord = LaneWord([0; WORDS]);
    /// Every lane.
    pub const ONES: LaneWord = LaneWord([u64::MAX; WORDS]);

    /// The same bit in every lane.
    #[inline]
    pub const fn splat(bit: bool) -> LaneWord {
        if bit { LaneWord::ONES } else { LaneWord::ZERO }
    }

    /// The lanes below `count`.
    pub fn first(count: usize) -> LaneWord {
        assert!(count <= LANES, "{count} of {LANES} lanes");
        LaneWord(core::array::from_fn(|word| match count.saturating_sub(64 * word) {
            64.. => u64::MAX,
            rest => (1 << rest) - 1,
        }))
    }

    /// Only this lane.
    pub fn single(lane: usize) -> LaneWord {
        let mut word = LaneWord::ZERO;
        word.set(lane, true);
        word
    }

    /// The bit of a lane.
    #[inline]
    pub const fn get(&self, lane: usize) -> bool {
        self.0[lane / 64] >> (lane % 64) & 1 == 1
    }

    /// Sets the bit of a lane.
    #[inline]
    pub const fn set(&mut self, lane: usize, bit: bool) {
        let word = &mut self.0[lane / 64];
        *word = *word & !(1 << (lane % 64)) | (bit as u64) << (lane % 64);
    }

    /// How many lanes have their bit set.
    #[inline]
    pub const fn count_ones(&self) -> u32 {
        let [a, b, c, d] = self.0;
        a.count_ones() + b.count_ones() + c.count_ones() + d.count_ones()
    }

    /// Whether no lane has its bit set.
    #[inline]
    pub fn is_zero(&self) -> bool {
        *self == LaneWord::ZERO
    }

    /// The lowest lane whose bit is set.
    pub fn first_lane(&self) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some(64 * word + self.0[word].trailing_zeros() as usize)
    }

    /// The lanes whose bits are set, in rising order.
    pub fn lanes(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(word, mut bits)| {
            core::iter::from_fn(move || {
                let lane = (bits != 0).then(|| 64 * word + bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(lane)
            })
        })
    }

    /// `self & !other`
    #[inline]
    #[must_use]
    pub fn and_not(self, other: LaneWord) -> LaneWord {
        self.zip(other, |a, b| a & !b)
    }

    /// This word outside the mask, `new` inside: the masked write-back of one plane.
    #[inline]
    #[must_use]
    pub fn replace(self, new: LaneWord, mask: LaneMask) -> LaneWord {
        self.and_not(mask) | (new & mask)
    }

    #[inline]
    pub(crate) fn zip(self, other: LaneWord, combine: impl Fn(u64, u64) -> u64) -> LaneWord {
        LaneWord(core::array::from_fn(|word| combine(self.0[word], other.0[word])))
    }
}

impl BitAnd for LaneWord {
    type Output = LaneWord;
    #[inline]
    fn bitand(self, other: LaneWord) -> LaneWord {
        self.zip(other, |a, b| a & b)
    }
}

impl BitOr for LaneWord {
    type Output = LaneWord;
    #[inline]
    fn bitor(self, other: LaneWord) -> LaneWord {
        self.zip(other, |a, b| a | b)
    }
}

impl BitXor for LaneWord {
    type Output = LaneWord;
    #[inline]
    fn bitxor(self, other: LaneWord) -> LaneWord {
        self.zip(other, |a, b| a ^ b)
    }
}

impl Not for LaneWord {
    type Output = LaneWord;
    #[inline]
    fn not(self) -> LaneWord {
        LaneWord(self.0.map(|word| !word))
    }
}

impl BitAndAssign for LaneWord {
    #[inline]
    fn bitand_assign(&mut self, other: LaneWord) {
        *self = *self & other;
    }
}

impl BitOrAssign for LaneWord {
    #[inline]
    fn bitor_assign(&mut self, other: LaneWord) {
        *self = *self | other;
    }
}

impl BitXorAssign for LaneWord {
    #[inline]
    fn bitxor_assign(&mut self, other: LaneWord) {
        *self = *self ^ other;
    }
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
}
