//! STATE: bit k of all lanes of a block is one plane; a lane's own bits are a column through the planes.
//!
//! Must not know what a bit means. Clauses: MEM-1, D-10.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_base::lanes::LaneWord;
use bem_base::limits::LANES;

/// The planes of one block of 256 lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "STATE")]
pub struct LaneState {
    planes: Vec<LaneWord>,
}

impl LaneState {
    /// This many planes, all zero.
    pub fn new(planes: usize) -> LaneState {
        LaneState { planes: vec![LaneWord::ZERO; planes] }
    }

    /// All planes.
    #[inline]
    pub fn planes(&self) -> &[LaneWord] {
        &self.planes
    }

    /// All planes, to be written.
    #[inline]
    pub fn planes_mut(&mut self) -> &mut [LaneWord] {
        &mut self.planes
    }

    /// One bit of one lane.
    #[inline]
    pub fn get(&self, bit: usize, lane: usize) -> bool {
        self.planes[bit].get(lane)
    }

    /// Sets one bit of one lane.
    #[inline]
    pub fn set(&mut self, bit: usize, lane: usize, value: bool) {
        self.planes[bit].set(lane, value);
    }

    /// The lane view: up to 64 bits of one lane from `low` on, the lowest first.
    #[inline]
    pub fn field(&self, low: usize, width: usize, lane: usize) -> u64 {
        debug_assert!(width <= 64 && lane < LANES);
        let (word, shift) = (lane / 64, lane % 64);
        self.planes[low..low + width]
            .iter()
            .enumerate()
            .fold(0, |value, (bit, plane)| value | (plane.0[word] >> shift & 1) << bit)
    }

    /// Writes observation bits into one lane, from `low` on.
    #[inline]
    pub fn set_bits(&mut self, low: usize, width: usize, lane: usize, bits: &Bits) {
        let (word, shift) = (lane / 64, lane % 64);
        for (bit, plane) in self.planes[low..low + width].iter_mut().enumerate() {
            let value = bits.0[bit / 64] >> (bit % 64) & 1;
            plane.0[word] = plane.0[word] & !(1 << shift) | value << shift;
        }
    }

    /// Clears these planes in the lanes of `mask`.
    #[inline]
    pub fn clear(&mut self, low: usize, width: usize, mask: LaneWord) {
        for plane in &mut self.planes[low..low + width] {
            *plane = plane.and_not(mask);
        }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.planes.len());
        for plane in &self.planes {
            plane.0.iter().for_each(|word| writer.u64(*word));
        }
    }

    /// Reads canonical bytes.
    pub fn decode(reader: &mut Reader<'_>) -> Result<LaneState, DecodeError> {
        let count = reader.length(32)?;
        let mut planes = Vec::with_capacity(count);
        for _ in 0..count {
            planes.push(LaneWord([reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?]));
        }
        Ok(LaneState { planes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    #[test]
    fn the_lane_view_agrees_with_the_planes() {
        let mut prng = Prng::stream(1, "state");
        let mut state = LaneState::new(70);
        let mut model = vec![[false; LANES]; 70];
        for _ in 0..20_000 {
            let (bit, lane, value) = (prng.below(70) as usize, prng.below(256) as usize, prng.bit());
            state.set(bit, lane, value);
            model[bit][lane] = value;
        }
        for lane in 0..LANES {
            for (bit, row) in model.iter().enumerate() {
                assert_eq!(state.get(bit, lane), row[lane]);
                assert_eq!(state.planes()[bit].get(lane), row[lane]);
            }
            let want = (0..64).fold(0u64, |value, bit| value | u64::from(model[3 + bit][lane]) << bit);
            assert_eq!(state.field(3, 64, lane), want);
        }
    }

    #[test]
    fn writing_one_lane_leaves_the_others_alone() {
        let mut state = LaneState::new(130);
        let mut bits = Bits::ZERO;
        bits.set_field(0, 64, 0xDEAD_BEEF_0123_4567);
        bits.set_field(64, 60, 0x0FED_CBA9_8765_4321);
        state.set_bits(4, 124, 200, &bits);
        assert_eq!(state.field(4, 64, 200), 0xDEAD_BEEF_0123_4567);
        assert_eq!(state.field(68, 60, 200), 0x0FED_CBA9_8765_4321);
        state.clear(4, 124, !LaneWord::single(200));
        assert_eq!(state.field(4, 64, 200), 0xDEAD_BEEF_0123_4567);
        state.clear(4, 124, LaneWord::single(200));
        assert!(state.planes().iter().all(LaneWord::is_zero));
    }
}
