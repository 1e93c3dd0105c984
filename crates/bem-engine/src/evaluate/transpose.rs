//! From what each lane sees to planes: 256 words of observation, one a lane, as up to 64 planes.
//!
//! Four matrices of 64 by 64 bits lie side by side in one register a row, so that all four are transposed by the same
//! vector instructions. Must not know what the bits mean. Clauses: MEM-1.

use bem_base::lanes::{LANE_WORDS, LaneWord};

/// Rows of a matrix of bits.
pub(super) const ROWS: usize = 64;

/// One word of every lane: lane `l` is word `l / 64` of row `l % 64`. After [`transpose`], row `b` is plane `b`.
pub(super) type Rows = [LaneWord; ROWS];

/// Makes planes of the lowest `columns` bits of every lane; the other rows hold nothing of use then.
///
/// In each round the upper half of every group of rows trades bits with the lower half. Where no bit of the upper half
/// is wanted, it is left out of this round and all further ones: eight columns take a third of what 64 take.
pub(super) fn transpose(rows: &mut Rows, columns: usize) {
    assert!(columns <= ROWS, "{columns} columns");
    let mut live = ROWS;
    live = round::<32>(rows, live, columns, 0x0000_0000_FFFF_FFFF);
    live = round::<16>(rows, live, columns, 0x0000_FFFF_0000_FFFF);
    live = round::<8>(rows, live, columns, 0x00FF_00FF_00FF_00FF);
    live = round::<4>(rows, live, columns, 0x0F0F_0F0F_0F0F_0F0F);
    live = round::<2>(rows, live, columns, 0x3333_3333_3333_3333);
    round::<1>(rows, live, columns, 0x5555_5555_5555_5555);
}

/// One round; returns how many rows the next ones have to look at.
#[inline]
fn round<const HALF: usize>(rows: &mut Rows, live: usize, columns: usize, mask: u64) -> usize {
    for group in rows[..live].chunks_exact_mut(2 * HALF) {
        let (low, high) = group.split_at_mut(HALF);
        exchange(low, high, HALF as u32, mask);
    }
    if columns <= HALF { HALF.min(live) } else { live }
}

/// The bits of `low` that the mask leaves out change places with those of `high` that are in it.
///
/// Not inlined, because unrolled into its caller it may become scalar code, four instructions for each one here.
#[inline(never)]
fn exchange(low: &mut [LaneWord], high: &mut [LaneWord], shift: u32, mask: u64) {
    for (low, high) in low.iter_mut().zip(high) {
        let mut swap = [0; LANE_WORDS];
        for (swap, (low, high)) in swap.iter_mut().zip(low.0.iter().zip(&high.0)) {
            *swap = (low >> (shift % 64) ^ high) & mask;
        }
        *high ^= LaneWord(swap);
        *low ^= LaneWord(swap.map(|swap| swap << (shift % 64)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::limits::LANES;
    use bem_base::prng::Prng;

    #[test]
    fn bit_b_of_lane_l_becomes_lane_l_of_plane_b() {
        let mut prng = Prng::stream(1, "transpose");
        for columns in 0..=ROWS {
            let seen: Vec<u64> = (0..LANES).map(|_| prng.next_u64()).collect();
            let mut rows = [LaneWord::ZERO; ROWS];
            for (lane, word) in seen.iter().enumerate() {
                rows[lane % ROWS].0[lane / ROWS] = *word;
            }
            transpose(&mut rows, columns);
            for (bit, plane) in rows[..columns].iter().enumerate() {
                assert!((0..LANES).all(|lane| plane.get(lane) == (seen[lane] >> bit & 1 == 1)), "{columns}");
            }
        }
    }
}
