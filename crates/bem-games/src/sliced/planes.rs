//! Draws for all lanes at once, from planes of fair bits.
//!
//! Draws by rejection go round by round until every lane has what it needs; a lane keeps its first acceptable
//! round and ignores the rest, so its result depends on its own column alone. Must not know any game.
//! Clauses: GLE-1, LOG-5.

use crate::draw::Chance;
use crate::sliced::arithmetic;
use bem_base::lanes::{LANE_WORDS, LaneWord, planes_for};
use bem_base::prng::{Prng, mix};

/// The planes that any number below a bound of this crate's games takes, at most.
pub const NUMBER_PLANES_MAX: usize = 9;

/// A source of random planes.
pub trait Planes {
    /// Marks the start of a reset or a step, for sources that keep what was drawn.
    #[inline]
    fn begin_step(&mut self) {}
    /// Marks that the draws of new episodes follow.
    #[inline]
    fn begin_episodes(&mut self) {}
    /// Marks the start of one draw.
    #[inline]
    fn begin_draw(&mut self) {}

    /// One fair bit in every lane.
    fn plane(&mut self) -> LaneWord;

    /// Fair bits, lowest first.
    #[inline]
    fn bits(&mut self, out: &mut [LaneWord]) {
        self.begin_draw();
        for plane in out {
            *plane = self.plane();
        }
    }

    /// True with chance `then` where `which` is true, with chance `otherwise` elsewhere; only the lanes of `mask`
    /// mean something.
    #[inline]
    fn chance(&mut self, which: LaneWord, then: Chance, otherwise: Chance, mask: LaneWord) -> LaneWord {
        self.begin_draw();
        let unit = 1 << Chance::BITS;
        let plane_of = |bit: u64| match (then.units() & bit != 0, otherwise.units() & bit != 0) {
            (true, true) => LaneWord::ONES,
            (true, false) => which,
            (false, true) => !which,
            (false, false) => LaneWord::ZERO,
        };
        // A certain chance has its own bit, above all others.
        let mut less = plane_of(unit);
        let mut undecided = mask & !less;
        // Highest bit first: a lane is decided where its random bit and its chance's bit first differ.
        let mut bit = unit >> 1;
        while bit != 0 && !undecided.is_zero() {
            let (random, limit) = (self.plane(), plane_of(bit));
            less |= undecided & limit & !random;
            undecided &= !(limit ^ random);
            bit >>= 1;
        }
        less
    }

    /// A number below `bound` that is accepted, in every lane of `mask`; elsewhere the number means nothing.
    /// `accept` is given the planes of a number and says in which lanes it will do.
    #[inline]
    fn pick(
        &mut self,
        bound: u32,
        mask: LaneWord,
        accept: impl Fn(&[LaneWord]) -> LaneWord,
    ) -> [LaneWord; NUMBER_PLANES_MAX] {
        self.begin_draw();
        let count = planes_for(bound as usize);
        let mut number = [LaneWord::ZERO; NUMBER_PLANES_MAX];
        let mut missing = mask;
        while !missing.is_zero() {
            let mut tried = [LaneWord::ZERO; NUMBER_PLANES_MAX];
            for plane in &mut tried[..count] {
                *plane = self.plane();
            }
            let below = arithmetic::is_below(&tried[..count], u64::from(bound));
            let taken = missing & below & accept(&tried[..count]);
            for (plane, new) in number[..count].iter_mut().zip(tried) {
                *plane = plane.replace(new, taken);
            }
            missing &= !taken;
        }
        number
    }

    /// A number below `bound` in every lane of `mask`.
    #[inline]
    fn below(&mut self, bound: u32, mask: LaneWord) -> [LaneWord; NUMBER_PLANES_MAX] {
        self.pick(bound, mask, |_| LaneWord::ONES)
    }
}

/// Random planes from a seed: four xoshiro256++ generators side by side, one for each word of a plane.
#[derive(Clone, Debug)]
pub struct PlaneDice {
    state: [LaneWord; 4],
}

impl PlaneDice {
    /// The planes of the run with this seed.
    pub fn new(seed: u64) -> PlaneDice {
        let mut state = [LaneWord::ZERO; 4];
        for word in 0..LANE_WORDS {
            let mut prng = Prng::quick(mix(seed).wrapping_add(word as u64));
            for row in &mut state {
                row.0[word] = prng.next_u64();
            }
        }
        PlaneDice { state }
    }
}

impl Planes for PlaneDice {
    #[inline]
    fn plane(&mut self) -> LaneWord {
        let [LaneWord(a), LaneWord(b), LaneWord(c), LaneWord(d)] = &mut self.state;
        let mut result = [0; LANE_WORDS];
        for word in 0..LANE_WORDS {
            let sum = a[word].wrapping_add(d[word]);
            result[word] = sum.rotate_left(23).wrapping_add(a[word]);
            let shifted = b[word] << 17;
            c[word] ^= a[word];
            d[word] ^= b[word];
            b[word] ^= c[word];
            a[word] ^= d[word];
            c[word] ^= shifted;
            d[word] = d[word].rotate_left(45);
        }
        LaneWord(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_met_in_both_kinds_of_lanes() {
        let mut planes = PlaneDice::new(1);
        let which = LaneWord([u64::MAX, 0, u64::MAX, 0]);
        let (mut then, mut otherwise) = (0, 0);
        for _ in 0..1_000 {
            let drawn = planes.chance(which, Chance::ratio(7, 10), Chance::ratio(1, 5), LaneWord::ONES);
            then += (drawn & which).count_ones();
            otherwise += (drawn & !which).count_ones();
        }
        assert!((88_000..91_200).contains(&then), "{then} of 128000");
        assert!((24_200..27_000).contains(&otherwise), "{otherwise} of 128000");
        let certain = planes.chance(which, Chance::ratio(1, 1), Chance::ratio(0, 1), LaneWord::ONES);
        assert_eq!(certain, which);
    }

    #[test]
    fn numbers_below_a_bound_are_even() {
        let mut planes = PlaneDice::new(2);
        let mut counts = [0u32; 6];
        for _ in 0..400 {
            let number = planes.below(6, LaneWord::ONES);
            for lane in 0..256 {
                counts[arithmetic::read(&number, lane) as usize] += 1;
            }
        }
        assert!(counts.iter().all(|count| (16_200..17_900).contains(count)), "{counts:?}");
    }

    #[test]
    fn neighbouring_lanes_and_words_are_independent() {
        let mut planes = PlaneDice::new(3);
        let mut equal = [0u32; 256];
        for _ in 0..4_000 {
            let plane = planes.plane();
            for (lane, count) in equal.iter_mut().enumerate() {
                *count += u32::from(plane.get(lane) == plane.get((lane + 64) % 256));
            }
        }
        assert!(equal.iter().all(|count| (1_800..2_200).contains(count)), "{equal:?}");
    }
}
