//! What the learner keeps of a step: what was seen, what was done and what came of it (decision D-34).
//!
//! It is sealed into the same entry as the step's records, so it is under the same hash. Clause: LOG-1.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS};
use bem_base::limits::OBSERVATION_BITS_MAX;

/// One experience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experience {
    /// Step number less the block's first.
    pub offset: u32,
    /// The episode is over.
    pub done: bool,
    /// The step did something that must not happen.
    pub bad: bool,
    /// The action was drawn uniformly.
    pub uniform: bool,
    /// What was done.
    pub action: u16,
    /// In milli-units.
    pub reward: i32,
    /// Chance with which the action was taken, 32 fractional bits; `u32::MAX` stands for certainty.
    pub propensity: u32,
    /// Bits of the observation that count.
    pub width: u16,
    /// What was seen; bits past the width are zero.
    pub observation: Bits,
}

/// Bytes of the shortest experience record.
pub(crate) const EXPERIENCE_BYTES_MIN: usize = 17;

impl Experience {
    /// Appends the record.
    pub fn encode(&self, writer: &mut Writer) {
        assert!(usize::from(self.width) <= OBSERVATION_BITS_MAX);
        writer.u32(self.offset);
        writer.u8(u8::from(self.done) | u8::from(self.bad) << 1 | u8::from(self.uniform) << 2);
        writer.u16(self.action);
        writer.i32(self.reward);
        writer.u32(self.propensity);
        writer.u16(self.width);
        let mut bytes = [0; OBSERVATION_WORDS * 8];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(self.observation.0) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        writer.raw(&bytes[..usize::from(self.width).div_ceil(8)]);
    }

    /// Reads one record back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Experience, DecodeError> {
        let offset = reader.u32()?;
        let flag_error = reader.error("an experience record with an unknown flag");
        let flags = reader.u8()?;
        if 7 < flags {
            return Err(flag_error);
        }
        let (action, reward, propensity) = (reader.u16()?, reader.i32()?, reader.u32()?);
        let width_error = reader.error("an observation wider than 256 bits");
        let width = reader.u16()?;
        if OBSERVATION_BITS_MAX < usize::from(width) {
            return Err(width_error);
        }
        let spill_error = reader.error("an observation with bits past its width");
        let mut bytes = [0; OBSERVATION_WORDS * 8];
        let length = usize::from(width).div_ceil(8);
        bytes[..length].copy_from_slice(reader.raw(length)?);
        let mut observation = Bits::ZERO;
        for (word, chunk) in observation.0.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(chunk.try_into().expect("chunks of eight bytes"));
        }
        if (usize::from(width)..length * 8).any(|bit| observation.get(bit)) {
            return Err(spill_error);
        }
        let (done, bad, uniform) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
        Ok(Experience { offset, done, bad, uniform, action, reward, propensity, width, observation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_experience_bytes_are_refused_or_come_back_unchanged(
            head in proptest::array::uniform15(0u8..),
            width in 0u16..300,
            tail in proptest::collection::vec(0u8.., 0..40),
        ) {
            let mut bytes = head.to_vec();
            bytes[4] &= 7;
            bytes.extend(width.to_le_bytes());
            bytes.extend(tail);
            let mut reader = Reader::new(&bytes);
            if let Ok(record) = Experience::decode(&mut reader) {
                let read = reader.position();
                let mut writer = Writer::new();
                record.encode(&mut writer);
                proptest::prop_assert_eq!(writer.as_bytes(), &bytes[..read]);
            }
        }
    }
}
