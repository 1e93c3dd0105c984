//! What was played, in few bytes: sealed blocks of whole episodes with the action and the reward of every step.
//!
//! A world is a function of its seed and the actions, so observations are not stored: the learner's own chain, whose
//! head every block carries, binds them together with everything else the learner remembers. Most steps take two or
//! three bytes. A block has one spelling, and reading checks every byte of it. Clauses: LOG-1; decisions D-16, D-18, D-34.

use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::limits::EPISODE_STEPS_MAX;

/// Bytes of episodes after which a block is sealed.
pub const PLAY_BYTES_SEAL: usize = 1 << 15;
/// Bytes of episodes in one block at most: a block one byte short of being sealed, and the longest episode after it.
pub const PLAY_BYTES_MAX: usize = PLAY_BYTES_SEAL + EPISODE_BYTES_MAX;
/// Serial, length, and at most three bytes for an action and five for a reward.
const EPISODE_BYTES_MAX: usize = 10 + 3 + EPISODE_STEPS_MAX as usize * 8;

/// One step as the block keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayedStep {
    /// What was done.
    pub action: u16,
    /// What it brought, in milli-units.
    pub reward: i32,
    /// The action was drawn uniformly.
    pub uniform: bool,
    /// The step did something that must not happen.
    pub bad: bool,
}

/// One episode as the block keeps it; its last step is the one that ended it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedEpisode {
    /// Which episode of the learner; ascending within a block, and stored as the distance from the one before.
    pub serial: u64,
    /// Its steps, at least one.
    pub steps: Vec<PlayedStep>,
}

/// A sealed block of episodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayBlock {
    /// Steps that the learner took before this block.
    pub first_step: u64,
    /// Steps in this block.
    pub steps: u32,
    /// Head of the learner's own chain after the last episode: binds what was seen.
    pub chain: Digest,
    /// The episodes, in the form that [`PlayBlock::episodes`] reads.
    body: Vec<u8>,
}

impl PlayBlock {
    /// The episodes.
    pub fn episodes(&self) -> Vec<PlayedEpisode> {
        let mut episodes: Vec<PlayedEpisode> = Vec::new();
        let read = read_episodes(&mut Reader::new(&self.body), self.steps, |seen| {
            match (seen, episodes.last_mut()) {
                (Seen::Episode { serial, steps }, _) => {
                    episodes.push(PlayedEpisode { serial, steps: Vec::with_capacity(steps) });
                }
                (Seen::Step(step), Some(episode)) => episode.steps.push(step),
                (Seen::Step(_), None) => unreachable!("a step belongs to an episode"),
            }
        });
        read.expect("a block is checked when it is made");
        episodes
    }

    /// The step after the last one.
    pub fn end(&self) -> u64 {
        self.first_step + u64::from(self.steps)
    }

    /// Bytes of the episodes.
    pub fn size_bytes(&self) -> usize {
        self.body.len()
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.first_step);
        writer.u32(self.steps);
        writer.raw(self.chain.as_bytes());
        writer.bytes(&self.body);
    }

    /// Reads a block back and checks every episode in it.
    pub fn decode(reader: &mut Reader<'_>) -> Result<PlayBlock, DecodeError> {
        let long = reader.error("a block that ends after the last step there can be");
        let (first_step, steps) = (reader.u64()?, reader.u32()?);
        if first_step.checked_add(u64::from(steps)).is_none() {
            return Err(long);
        }
        let chain = Digest::decode(reader)?;
        let large = reader.error("a block of more episodes than one may hold");
        let start = reader.position() + 4;
        let body = reader.bytes()?;
        if PLAY_BYTES_MAX < body.len() {
            return Err(large);
        }
        let inside = |error: DecodeError| DecodeError { position: start + error.position, ..error };
        read_episodes(&mut Reader::new(body), steps, |_| {}).map_err(inside)?;
        Ok(PlayBlock { first_step, steps, chain, body: body.to_vec() })
    }
}

/// What a block holds, in order.
enum Seen {
    /// An episode begins.
    Episode { serial: u64, steps: usize },
    /// A step of it.
    Step(PlayedStep),
}

/// Reads all episodes; to check a block nothing needs to be kept.
fn read_episodes(
    reader: &mut Reader<'_>,
    steps: u32,
    mut visit: impl FnMut(Seen),
) -> Result<(), DecodeError> {
    let (mut last, mut left): (Option<u64>, u64) = (None, u64::from(steps));
    while 0 < reader.remaining() {
        let disorder = reader.error("an episode out of order");
        let distance = read_number(reader)?;
        let serial = match last {
            None => Some(distance),
            Some(last) => last.checked_add(distance).filter(|serial| last < *serial),
        };
        let serial = serial.ok_or(disorder)?;
        let wrong = reader.error("an episode without a step, or with more than the block has");
        let count = read_number(reader)?;
        // A step takes two bytes at least, so that a forged count cannot make anybody reserve more than there is.
        if count == 0 || left < count || (reader.remaining() as u64) < 2 * count {
            return Err(wrong);
        }
        left -= count;
        visit(Seen::Episode { serial, steps: count as usize });
        for _ in 0..count {
            visit(Seen::Step(read_step(reader)?));
        }
        last = Some(serial);
    }
    if left == 0 { Ok(()) } else { Err(reader.error("fewer steps than the block says")) }
}

fn read_step(reader: &mut Reader<'_>) -> Result<PlayedStep, DecodeError> {
    let error = reader.error("an action or a reward that does not fit");
    let choice = read_number(reader)?;
    let reward = read_number(reader)?;
    let action = u16::try_from(choice >> 2).map_err(|_| error.clone())?;
    // Zigzag: the sign stands in the lowest bit.
    let reward = u32::try_from(reward).map_err(|_| error)?;
    let reward = (reward >> 1) as i32 ^ -((reward & 1) as i32);
    Ok(PlayedStep { action, reward, uniform: choice & 2 != 0, bad: choice & 1 != 0 })
}

/// Seven bits a byte, lowest first, the high bit set on all but the last.
fn write_number(body: &mut Vec<u8>, mut value: u64) {
    while 0x80 <= value {
        body.push(value as u8 | 0x80);
        value >>= 7;
    }
    body.push(value as u8);
}

fn read_number(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let error = reader.error("a number that is too large or not spelled in the shortest way");
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = reader.u8()?;
        let bits = u64::from(byte & 0x7F);
        // The tenth byte has room for one bit only, and a last byte of zero could have been left out.
        if shift == 63 && 1 < bits || byte == 0 && 0 < shift {
            return Err(error);
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(error)
}

/// Gathers episodes and seals them into blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealer {
    first_step: u64,
    steps: u32,
    /// Serial of the last episode that waits; zero if none does.
    serial: u64,
    chain: Digest,
    body: Vec<u8>,
}

impl Sealer {
    /// A sealer at this step of a learner.
    pub fn new(first_step: u64) -> Sealer {
        Sealer { first_step, steps: 0, serial: 0, chain: Digest::default(), body: Vec::new() }
    }

    /// The step after the last one that was taken in.
    pub fn end(&self) -> u64 {
        self.first_step + u64::from(self.steps)
    }

    /// Takes an episode, with the head of the learner's chain after it; a block if it is full now.
    ///
    /// Serials ascend, and an episode has at least one step and at most `EPISODE_STEPS_MAX`.
    pub fn push(
        &mut self,
        serial: u64,
        steps: impl ExactSizeIterator<Item = PlayedStep>,
        chain: &Digest,
    ) -> Option<PlayBlock> {
        let count = steps.len();
        assert!((1..=EPISODE_STEPS_MAX as usize).contains(&count), "an episode of {count} steps");
        assert!(self.body.is_empty() || self.serial < serial, "episode {serial} after {}", self.serial);
        write_number(&mut self.body, serial - self.serial);
        write_number(&mut self.body, count as u64);
        self.serial = serial;
        for step in steps {
            let flags = u64::from(step.uniform) << 1 | u64::from(step.bad);
            write_number(&mut self.body, u64::from(step.action) << 2 | flags);
            let zigzag = (step.reward << 1) ^ (step.reward >> 31);
            write_number(&mut self.body, u64::from(zigzag as u32));
        }
        self.steps += count as u32;
        self.chain = *chain;
        if PLAY_BYTES_SEAL <= self.body.len() { self.seal() } else { None }
    }

    /// Seals what is there: before a decision, and at the end.
    pub fn seal(&mut self) -> Option<PlayBlock> {
        if self.steps == 0 {
            return None;
        }
        let next = Sealer::new(self.first_step + u64::from(self.steps));
        let Sealer { first_step, steps, chain, body, .. } = core::mem::replace(self, next);
        Some(PlayBlock { first_step, steps, chain, body })
    }

    /// Writes the canonical bytes of what waits.
    pub fn encode(&self, writer: &mut Writer) {
        let Sealer { first_step, steps, chain, body, .. } = self.clone();
        PlayBlock { first_step, steps, chain, body }.encode(writer);
    }

    /// Reads back what waited.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Sealer, DecodeError> {
        let block = PlayBlock::decode(reader)?;
        let serial = block.episodes().last().map_or(0, |last| last.serial);
        let PlayBlock { first_step, steps, chain, body } = block;
        Ok(Sealer { first_step, steps, serial, chain, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use bem_base::digest::hash;
    use bem_base::prng::Prng;

    #[test]
    fn episodes_come_back_as_they_were_played() {
        let mut prng = Prng::stream(1, "play");
        for _ in 0..300 {
            let (block, episodes) = testing::play_block(&mut prng);
            assert_eq!(block.episodes(), episodes);
            let mut writer = Writer::new();
            block.encode(&mut writer);
            let bytes = writer.into_bytes();
            let mut reader = Reader::new(&bytes);
            assert_eq!(PlayBlock::decode(&mut reader), Ok(block));
            assert_eq!(reader.remaining(), 0);
        }
    }

    #[test]
    fn extreme_numbers_take_the_bytes_that_the_limits_allow() {
        let step = PlayedStep { action: u16::MAX, reward: i32::MIN, uniform: true, bad: true };
        let mut sealer = Sealer::new(7);
        let steps = vec![step; EPISODE_STEPS_MAX as usize];
        let block = sealer.push(u64::MAX, steps.iter().copied(), &hash(b"chain")).expect("a long episode");
        assert_eq!(block.size_bytes(), EPISODE_BYTES_MAX);
        assert_eq!(block.episodes()[0].steps, steps);
        assert_eq!(block.end(), 7 + u64::from(EPISODE_STEPS_MAX));
        assert_eq!(sealer, Sealer::new(block.end()));
    }

    #[test]
    fn usual_steps_take_two_or_three_bytes() {
        let step = |reward| PlayedStep { action: 3, reward, uniform: false, bad: false };
        let mut sealer = Sealer::new(0);
        assert_eq!(sealer.push(1, [step(0), step(1_000)].into_iter(), &hash(b"chain")), None);
        assert_eq!(sealer.seal().expect("two steps wait").size_bytes(), 2 + 2 + 3);
        assert_eq!(sealer.seal(), None);
    }

    #[test]
    fn a_number_has_one_spelling() {
        for bytes in [&[0x80, 0x00][..], &[0xFF; 10], &[0x81, 0x80, 0x00]] {
            assert!(read_number(&mut Reader::new(bytes)).is_err(), "{bytes:?}");
        }
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::MAX] {
            let mut body = Vec::new();
            write_number(&mut body, value);
            assert_eq!(read_number(&mut Reader::new(&body)), Ok(value));
        }
    }
}
