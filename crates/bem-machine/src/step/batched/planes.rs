//! Arithmetic on planes: 256 numbers at a time, and the way between planes and one byte per lane.
//!
//! Must not know what the numbers mean. Clauses: MEM-1, VM-8.

use bem_base::lanes::{LANE_WORDS, LaneMask, LaneWord};
use bem_base::limits::LANES;

/// The lowest bit of every byte.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;

/// The lanes in which the number is below `bound`.
pub(super) fn below(number: &[LaneWord], bound: u16) -> LaneMask {
    let (mut less, mut equal) = (LaneWord::ZERO, LaneWord::ONES);
    for (bit, plane) in number.iter().enumerate().rev() {
        if bound >> bit & 1 == 1 {
            less |= equal.and_not(*plane);
            equal &= *plane;
        } else {
            equal = equal.and_not(*plane);
        }
    }
    less
}

/// Adds one to the counters of some lanes; a full counter wraps.
pub(super) fn increment(counter: &mut [LaneWord], mut carry: LaneWord) {
    for plane in counter {
        if carry.is_zero() {
            return;
        }
        (*plane, carry) = (*plane ^ carry, *plane & carry);
    }
}

/// The lanes of every number that the planes spell: each plane halves what is left.
pub(super) fn split_lanes(planes: &[LaneWord], masks: &mut [LaneMask; 16]) {
    masks[0] = LaneWord::ONES;
    for (bit, plane) in planes.iter().enumerate().take(4) {
        let (low, high) = masks.split_at_mut(1 << bit);
        halve(low, high, plane);
    }
}

/// Divides each mask by a plane: where it is true, the lanes move to the upper half.
///
/// Not inlined, because unrolled into its caller it becomes scalar code, four instructions for each one here.
#[inline(never)]
fn halve(low: &mut [LaneMask], high: &mut [LaneMask], plane: &LaneWord) {
    for (low, high) in low.iter_mut().zip(high) {
        *high = *low & *plane;
        *low = low.and_not(*plane);
    }
}

/// Transposes every 8x8 block of bits: byte g of row j becomes the eight planes' bits of lane 8g + j.
///
/// It is its own inverse. In this order of bytes eight neighbours share a word of lanes, and the words take turns.
#[inline]
pub(super) fn transpose(rows: &mut [LaneWord; 8]) {
    for (shift, mask) in [(1, 0x5555_5555_5555_5555), (2, 0x3333_3333_3333_3333), (4, 0x0F0F_0F0F_0F0F_0F0F)]
    {
        for row in (0..8).filter(|row| row & shift == 0) {
            let (low, high) = (rows[row], rows[row + shift]);
            let mut swap = [0; LANE_WORDS];
            for (swap, (low, high)) in swap.iter_mut().zip(low.0.iter().zip(&high.0)) {
                *swap = (low >> shift ^ high) & mask;
            }
            rows[row + shift] = high ^ LaneWord(swap);
            rows[row] = low ^ LaneWord(swap.map(|swap| swap << shift));
        }
    }
}

/// What [`transpose`] gives for two planes and six zeros, in fewer steps.
#[inline]
pub(super) fn spread(low: LaneWord, high: LaneWord) -> [LaneWord; 8] {
    core::array::from_fn(|row| {
        LaneWord(core::array::from_fn(|word| {
            low.0[word] >> row & LOW_BITS | (high.0[word] >> row & LOW_BITS) << 1
        }))
    })
}

/// The bytes of eight rows, row by row.
#[inline]
pub(super) fn bytes_of(rows: &[LaneWord; 8]) -> [u8; LANES] {
    let mut bytes = [0; LANES];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(rows.iter().flat_map(|row| row.0)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Undoes [`bytes_of`].
#[inline]
pub(super) fn lanes_of(bytes: &[u8; LANES]) -> [LaneWord; 8] {
    let word =
        |place: usize| u64::from_le_bytes(bytes[8 * place..8 * place + 8].try_into().expect("eight bytes"));
    core::array::from_fn(|row| LaneWord(core::array::from_fn(|index| word(LANE_WORDS * row + index))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    #[test]
    fn transposing_gives_every_lane_its_own_byte_and_comes_back() {
        let mut prng = Prng::stream(1, "transpose");
        let planes: [LaneWord; 8] =
            core::array::from_fn(|_| LaneWord(core::array::from_fn(|_| prng.next_u64())));
        let mut rows = planes;
        transpose(&mut rows);
        let bytes = bytes_of(&rows);
        for lane in 0..LANES {
            let want = (0..8).fold(0, |byte, bit| byte | u8::from(planes[bit].get(lane)) << bit);
            let (word, group, row) = (lane / 64, lane % 64 / 8, lane % 8);
            assert_eq!(bytes[row * 32 + word * 8 + group], want, "lane {lane}");
        }
        let mut back = lanes_of(&bytes);
        transpose(&mut back);
        assert_eq!(back, planes);
        let mut two = [LaneWord::ZERO; 8];
        two[..2].copy_from_slice(&planes[..2]);
        transpose(&mut two);
        assert_eq!(two, spread(planes[0], planes[1]));
    }

    #[test]
    fn comparison_with_a_bound_holds_in_every_lane() {
        let mut prng = Prng::stream(2, "below");
        let number: [LaneWord; 5] =
            core::array::from_fn(|_| LaneWord(core::array::from_fn(|_| prng.next_u64())));
        for bound in 0..32 {
            let mask = below(&number, bound);
            for lane in 0..LANES {
                let value = (0..5).fold(0, |value, bit| value | u16::from(number[bit].get(lane)) << bit);
                assert_eq!(mask.get(lane), value < bound);
            }
        }
    }
}
