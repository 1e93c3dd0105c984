//! The records of the fast path: a choice, a reward that may come later, and what was seen.
//!
//! A choice and a reward take 16 bytes each, so the fast path stores two words and nothing else; a block of them is
//! sealed and hashed as one entry (decisions D-16, D-18). Clauses: LOG-1, VM-13.

use crate::limits::STEP_RECORD_BYTES;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS};
use bem_base::limits::OBSERVATION_BITS_MAX;

/// One record of 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRecord {
    /// The machine chose.
    Step {
        /// Step number less the block's first.
        offset: u32,
        /// Low half of the task's serial number.
        task: u32,
        /// The expert's place in its bucket.
        #[doc(alias = "expert_slot")]
        arm: u16,
        /// The bucket.
        bucket: u16,
        /// What it did.
        action: u16,
        /// The action was drawn uniformly.
        uniform: bool,
    },
    /// The world answered.
    Reward {
        /// Step number, less the block's first, of the choice this belongs to.
        offset: u32,
        /// Low half of the task's serial number.
        task: u32,
        /// Work units, saturated.
        #[doc(alias = "cost_proxy")]
        cost: u16,
        /// In milli-units.
        #[doc(alias = "reward_proxy")]
        reward: i32,
        /// The episode is over.
        done: bool,
        /// The step did something that must not happen.
        bad: bool,
    },
}

impl StepRecord {
    /// The 16 bytes. Cost: a few shifts; no branch on the values.
    #[inline]
    pub fn to_bytes(self) -> [u8; STEP_RECORD_BYTES] {
        let (low, offset, task) = match self {
            StepRecord::Step { offset, task, arm, bucket, action, uniform } => {
                let fields = u64::from(arm) << 16 | u64::from(bucket) << 32 | u64::from(action) << 48;
                (u64::from(uniform) << 8 | fields, offset, task)
            }
            StepRecord::Reward { offset, task, cost, reward, done, bad } => {
                let flags = u64::from(done) << 8 | u64::from(bad) << 9;
                (1 | flags | u64::from(cost) << 16 | u64::from(reward as u32) << 32, offset, task)
            }
        };
        let high = u64::from(offset) | u64::from(task) << 32;
        let mut bytes = [0; STEP_RECORD_BYTES];
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes[8..].copy_from_slice(&high.to_le_bytes());
        bytes
    }

    /// Reads one record back; an unknown tag or flag is refused.
    pub fn decode(reader: &mut Reader<'_>) -> Result<StepRecord, DecodeError> {
        let tag_error = reader.error("a step record with an unknown tag");
        let flag_error = reader.error("a step record with an unknown flag");
        let tag = reader.u8()?;
        let flags = reader.u8()?;
        match tag {
            0 if flags <= 1 => {
                let (arm, bucket, action) = (reader.u16()?, reader.u16()?, reader.u16()?);
                let (offset, task) = (reader.u32()?, reader.u32()?);
                Ok(StepRecord::Step { offset, task, arm, bucket, action, uniform: flags == 1 })
            }
            1 if flags <= 3 => {
                let (cost, reward) = (reader.u16()?, reader.i32()?);
                let (offset, task) = (reader.u32()?, reader.u32()?);
                let (done, bad) = (flags & 1 == 1, flags & 2 == 2);
                Ok(StepRecord::Reward { offset, task, cost, reward, done, bad })
            }
            0 | 1 => Err(flag_error),
            _ => Err(tag_error),
        }
    }
}

/// What was seen and what came of it, for the learner (decision D-34).
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

    #[test]
    fn the_drawn_bytes_are_the_stored_bytes() {
        let step = StepRecord::Step { offset: 7, task: 9, arm: 2, bucket: 3, action: 4, uniform: true };
        assert_eq!(step.to_bytes(), [0, 1, 2, 0, 3, 0, 4, 0, 7, 0, 0, 0, 9, 0, 0, 0]);
        let reward = StepRecord::Reward { offset: 7, task: 9, cost: 5, reward: -1, done: true, bad: true };
        assert_eq!(reward.to_bytes(), [1, 3, 5, 0, 255, 255, 255, 255, 7, 0, 0, 0, 9, 0, 0, 0]);
    }

    proptest::proptest! {
        #[test]
        fn any_16_bytes_are_refused_or_come_back_unchanged(bytes in proptest::array::uniform16(0u8..)) {
            // Small tags and flags, so that most cases get past the first check.
            let mut bytes = bytes;
            bytes[0] &= 3;
            bytes[1] &= 7;
            if let Ok(record) = StepRecord::decode(&mut Reader::new(&bytes)) {
                proptest::prop_assert_eq!(record.to_bytes(), bytes);
            }
        }

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
