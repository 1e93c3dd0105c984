//! Where the chance inside an episode comes from.
//!
//! The rules of a game ask for draws and never see a generator. The same rules can so be played from a seed
//! ([`Dice`]), from one lane's column of random planes (to compare with the bit-sliced game), or over every
//! outcome in turn (to compute an expectation exactly). Must not know any game. Clauses: GLE-1, LOG-5.

use bem_base::fixed::Fixed;
use bem_base::prng::Prng;

/// A chance in units of 2^-32, so that a draw is a comparison of bits and its expectation is a [`Fixed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(u64);

impl Chance {
    /// Bits after the point.
    pub const BITS: u32 = 32;

    /// `numerator / denominator`, rounded up to the next unit. The numerator must not be the larger one.
    pub const fn ratio(numerator: u64, denominator: u64) -> Chance {
        assert!(0 < denominator && numerator <= denominator && denominator <= 1 << 31);
        Chance((numerator << Chance::BITS).div_ceil(denominator))
    }

    /// The units of 2^-32: at most 2^32.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// The chance as a number.
    pub const fn to_fixed(self) -> Fixed {
        Fixed::from_raw(self.0 as i64)
    }
}

/// A source of chance.
pub trait Draw {
    /// Marks the start of a reset or a step. A source that shares its random bits between lanes lines them up
    /// here; the others ignore it.
    fn begin(&mut self) {}

    /// That many fair bits, at most 64, in the low bits of the result.
    fn bits(&mut self, count: u32) -> u64;

    /// A whole number below `bound` that is accepted, every such number equally likely. There must be one.
    fn pick(&mut self, bound: u32, accept: impl Fn(u32) -> bool) -> u32;

    /// A whole number below `bound`, every one equally likely. `bound` must be positive.
    #[inline]
    fn below(&mut self, bound: u32) -> u32 {
        self.pick(bound, |_| true)
    }

    /// True with this chance.
    fn chance(&mut self, chance: Chance) -> bool;

    /// One fair bit.
    #[inline]
    fn bit(&mut self) -> bool {
        self.bits(1) == 1
    }
}

/// Draws from a seed.
#[derive(Clone, Debug)]
pub struct Dice {
    prng: Prng,
    buffer: u64,
    left: u32,
}

impl Dice {
    /// The draws of the episode with this seed.
    #[inline]
    pub fn new(seed: u64) -> Dice {
        Dice { prng: Prng::quick(seed), buffer: 0, left: 0 }
    }
}

impl Draw for Dice {
    #[inline]
    fn bits(&mut self, count: u32) -> u64 {
        debug_assert!(count <= 64);
        if count == 0 {
            return 0;
        }
        if self.left < count {
            self.buffer = self.prng.next_u64();
            self.left = 64;
        }
        let taken = self.buffer & (u64::MAX >> (64 - count));
        self.buffer = self.buffer.checked_shr(count).unwrap_or(0);
        self.left -= count;
        taken
    }

    #[inline]
    fn pick(&mut self, bound: u32, accept: impl Fn(u32) -> bool) -> u32 {
        assert!(0 < bound);
        loop {
            // Lemire's multiplication; the few draws that would favour low results are thrown away.
            let product = self.bits(32) * u64::from(bound);
            let (low, drawn) = (product as u32, (product >> 32) as u32);
            if (bound <= low || bound.wrapping_neg() % bound <= low) && accept(drawn) {
                return drawn;
            }
        }
    }

    #[inline]
    fn chance(&mut self, chance: Chance) -> bool {
        self.bits(Chance::BITS) < chance.units()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_below_a_bound_are_even() {
        let mut dice = Dice::new(1);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[dice.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn certain_and_impossible_chances_are_just_that() {
        let mut dice = Dice::new(2);
        for _ in 0..1_000 {
            assert!(dice.chance(Chance::ratio(7, 7)));
            assert!(!dice.chance(Chance::ratio(0, 7)));
        }
    }

    #[test]
    fn bits_of_all_counts_stay_within_their_width() {
        let mut dice = Dice::new(3);
        for count in 0..=64u32 {
            let value = dice.bits(count);
            assert!(count == 64 || value < 1 << count, "count={count} value={value:#x}");
        }
    }
}
