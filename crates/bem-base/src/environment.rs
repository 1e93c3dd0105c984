//! The contract between a learner and a world.
//!
//! A learner sees observation bits, rewards, dones and BAD flags, and knows of the world only its [`Shape`]:
//! widths, counts, bounds and an unnamed grouping of the bits. There is no family name, no parameter and no
//! optimum here, so nothing that learns can depend on them. Clauses: VM-15, VM-17, GLE-1.

use crate::encode::{DecodeError, Reader, Writer};
use crate::limits::OBSERVATION_BITS_MAX;

pub use crate::forbidden::{Forbidden, Pattern};

/// How many 64-bit words an observation takes.
pub const OBSERVATION_WORDS: usize = OBSERVATION_BITS_MAX / 64;

/// An observation: up to 256 bits, those past the declared width are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits(pub [u64; OBSERVATION_WORDS]);

impl Bits {
    /// All zero.
    pub const ZERO: Bits = Bits([0; OBSERVATION_WORDS]);

    /// The bit at this index.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    /// Sets the bit at this index.
    #[inline]
    pub fn set(&mut self, index: usize, value: bool) {
        let word = &mut self.0[index / 64];
        *word = *word & !(1 << (index % 64)) | u64::from(value) << (index % 64);
    }

    /// Up to 64 bits from `low` on, the lowest first.
    #[inline]
    pub fn field(&self, low: usize, width: usize) -> u64 {
        debug_assert!(width <= 64 && low + width <= OBSERVATION_BITS_MAX);
        if width == 0 {
            return 0;
        }
        let shift = low % 64;
        let mut value = self.0[low / 64] >> shift;
        if 64 < shift + width {
            value |= self.0[low / 64 + 1] << (64 - shift);
        }
        value & (u64::MAX >> (64 - width))
    }

    /// Writes the low `width` bits of `value` from `low` on, at most 64.
    #[inline]
    pub fn set_field(&mut self, low: usize, width: usize, value: u64) {
        debug_assert!(width <= 64 && low + width <= OBSERVATION_BITS_MAX);
        if width == 0 {
            return;
        }
        let (shift, mask) = (low % 64, u64::MAX >> (64 - width));
        let value = value & mask;
        let word = &mut self.0[low / 64];
        *word = *word & !(mask << shift) | value << shift;
        if 64 < shift + width {
            let word = &mut self.0[low / 64 + 1];
            *word = *word & !(mask >> (64 - shift)) | value >> (64 - shift);
        }
    }

    /// The bits as text, index 0 first.
    pub fn to_text(&self, width: usize) -> String {
        (0..width).map(|index| if self.get(index) { '1' } else { '0' }).collect()
    }

    /// Reads text of zeros and ones, index 0 first.
    pub fn from_text(text: &str) -> Option<Bits> {
        if OBSERVATION_BITS_MAX < text.len() {
            return None;
        }
        let mut bits = Bits::ZERO;
        for (index, byte) in text.bytes().enumerate() {
            match byte {
                b'0' => {}
                b'1' => bits.set(index, true),
                _ => return None,
            }
        }
        Some(bits)
    }
}

/// A group of neighbouring observation bits that belong together. It has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    /// Index of its first bit.
    pub low: u16,
    /// How many bits; at least one.
    pub width: u16,
}

/// Everything a learner may know of a world before it plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Width of an observation; may be zero.
    pub observation_bits: u16,
    /// Actions are `0..actions`.
    pub actions: u16,
    /// No episode takes more steps than this.
    pub horizon: u32,
    /// Smallest reward of one step, in milli-units.
    pub reward_min: i32,
    /// Largest reward of one step, in milli-units.
    pub reward_max: i32,
    /// Smallest sum of rewards of one episode.
    pub return_min: i64,
    /// Largest sum of rewards of one episode.
    pub return_max: i64,
    /// A grouping of the observation bits: ascending, disjoint, covering all of them.
    pub fields: Vec<Field>,
}

impl Shape {
    /// The ranges of rewards and of returns.
    pub fn ranges(&self) -> (i32, i32, i64, i64) {
        (self.reward_min, self.reward_max, self.return_min, self.return_max)
    }

    /// Makes the range of rewards hold this one.
    pub fn cover_reward(&mut self, reward: i32) {
        (self.reward_min, self.reward_max) = (self.reward_min.min(reward), self.reward_max.max(reward));
    }

    /// Makes the range of returns hold this one.
    pub fn cover_return(&mut self, total: i64) {
        (self.return_min, self.return_max) = (self.return_min.min(total), self.return_max.max(total));
    }

    /// Makes the ranges hold those of another world of the same kind.
    pub fn cover(&mut self, other: &Shape) {
        [other.reward_min, other.reward_max].into_iter().for_each(|reward| self.cover_reward(reward));
        [other.return_min, other.return_max].into_iter().for_each(|total| self.cover_return(total));
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        let Shape {
            observation_bits,
            actions,
            horizon,
            reward_min,
            reward_max,
            return_min,
            return_max,
            fields,
        } = self;
        writer.u16(*observation_bits);
        writer.u16(*actions);
        writer.u32(*horizon);
        writer.i32(*reward_min);
        writer.i32(*reward_max);
        writer.i64(*return_min);
        writer.i64(*return_max);
        writer.length(fields.len());
        for field in fields {
            writer.u16(field.low);
            writer.u16(field.width);
        }
    }

    /// Reads canonical bytes. Whether such a world may be is for its reader to say.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Shape, DecodeError> {
        Ok(Shape {
            observation_bits: reader.u16()?,
            actions: reader.u16()?,
            horizon: reader.u32()?,
            reward_min: reader.i32()?,
            reward_max: reader.i32()?,
            return_min: reader.i64()?,
            return_max: reader.i64()?,
            fields: (0..reader.length(4)?)
                .map(|_| Ok(Field { low: reader.u16()?, width: reader.u16()? }))
                .collect::<Result<_, DecodeError>>()?,
        })
    }
}

/// What one step brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// In milli-units, within the declared range.
    pub reward: i32,
    /// The episode is over.
    pub done: bool,
    /// The step did something that must not happen.
    #[doc(alias = "BAD_t")]
    pub bad: bool,
}

/// The reward of an earlier step of the episode, which comes late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Which step, counted from zero.
    pub step: u32,
    /// In milli-units.
    pub reward: i32,
}

/// Why a world refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// The action is not one of the world's.
    #[error("action {action} is out of range: this world takes 0 to {last}")]
    ActionOutOfRange {
        /// The action asked for.
        action: u16,
        /// The last action there is.
        last: u16,
    },
    /// The episode has ended; it must be reset first.
    #[error("the episode is over: reset before the next step")]
    EpisodeOver,
    /// The episode is gone with the world that it was played in; another one may begin.
    #[error("the episode in flight is lost: this world cannot bring it back")]
    Lost,
    /// A world outside this process broke its contract or went away.
    #[error("{0}")]
    External(String),
}

/// A running world. Same seed and same actions: same observations and outcomes, unless it says that it cannot be repeated.
///
/// A world in flight is saved as its seed and the actions since: that works for every world that repeats itself, also for
/// one in another process, and the horizon bounds the cost. Elsewhere the episode in flight is lost.
pub trait Environment {
    /// What may be known before playing.
    fn shape(&self) -> &Shape;
    /// Starts the episode with this seed.
    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError>;
    /// What is seen now.
    fn observation(&self) -> &Bits;
    /// Takes an action.
    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError>;
    /// What must never be done, in rising order; for every observation some action is left.
    fn forbidden(&self) -> &[Forbidden] {
        &[]
    }
    /// Whether an episode comes back by its seed and actions. Where it does not, a seed carries no promise: nothing is
    /// compared on equal seeds, and no episode is looked at without being played.
    fn repeats(&self) -> bool {
        true
    }
    /// Whether the reward of the last step is still to come; its outcome says zero until then.
    fn is_awaited(&self) -> bool {
        false
    }
    /// Rewards of earlier steps of this episode that came with the last step. None comes twice, and those that have not come
    /// with the last step of the episode never come.
    fn late(&self) -> &[Late] {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_cross_word_borders() {
        let mut bits = Bits::ZERO;
        bits.set_field(60, 10, 0b10_1100_0111);
        assert_eq!(bits.field(60, 10), 0b10_1100_0111);
        assert_eq!(bits.field(61, 9), 0b1_0110_0011);
        assert_eq!(bits.field(0, 60), 0);
    }

    #[test]
    fn a_field_is_written_like_its_single_bits() {
        let pattern = 0x9E37_79B9_7F4A_7C15u64;
        for (low, width) in (0..=256).flat_map(|low| (0..=(256 - low).min(64)).map(move |width| (low, width)))
        {
            let before = Bits([pattern, !pattern, pattern.rotate_left(7), !pattern.rotate_left(19)]);
            let (mut whole, mut single) = (before, before);
            whole.set_field(low, width, pattern.rotate_left(29));
            for offset in 0..width {
                single.set(low + offset, pattern.rotate_left(29) >> offset & 1 == 1);
            }
            assert_eq!(whole, single, "{width} bits from {low} on");
        }
    }

    #[test]
    fn text_comes_back_and_other_letters_are_refused() {
        let bits = Bits::from_text("0110").unwrap();
        assert_eq!(bits.to_text(4), "0110");
        assert_eq!(Bits::from_text("012"), None);
        assert_eq!(Bits::from_text(&"0".repeat(257)), None);
    }
}
