//! Which task plays, and what its recent past looks like.
//!
//! The context hash covers the last `window` observations with the action and reward of each and starts anew with
//! every episode: a hash of the whole history would never repeat, and what never repeats cannot be learned from
//! (decision D-12). Integer operations only. Clauses: MEM-4.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::OBSERVATION_WORDS;
use bem_base::limits::EPISODE_STEPS_MAX;
use bem_base::prng::mix;

/// Which task instance plays: stable from its start to its end. A serial number, because tasks come without end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "task_id")]
pub struct TaskSerial(pub u64);

/// Which family of tasks plays: an index into the machine's families.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "tau_f")]
pub struct FamilyIndex(pub u16);

/// The longest window the configuration admits.
pub const CONTEXT_WINDOW_MAX: usize = 64;

/// A rolling hash of the recent past. Invariant: `hash` is the sum of the entries in the window, each multiplied
/// by [`AGE`] once per step since it entered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "H_ctx")]
pub struct ContextHash {
    entries: [u64; CONTEXT_WINDOW_MAX],
    window: u32,
    length: u32,
    /// What the oldest entry has been multiplied by when it leaves.
    leaving_factor: u64,
    hash: u64,
}

/// Odd, so that multiplying by it can be undone; from the digits of the golden ratio.
pub const AGE: u64 = 0x9E37_79B9_7F4A_7C15;

/// One odd factor per observation word, so that no two words can trade places unseen.
pub const WORD_FACTORS: [u64; OBSERVATION_WORDS] =
    [0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB, 0x8EBC_6AF0_9C88_C6E3, 0x5899_65CC_7537_4CC3];

impl ContextHash {
    /// An empty past that will cover this many steps.
    pub fn new(window: u32) -> ContextHash {
        assert!(0 < window && window as usize <= CONTEXT_WINDOW_MAX, "window of {window}");
        let leaving_factor = AGE.wrapping_pow(window);
        ContextHash { entries: [0; CONTEXT_WINDOW_MAX], window, length: 0, leaving_factor, hash: 0 }
    }

    /// Forgets everything: an episode begins.
    pub fn reset(&mut self) {
        *self = ContextHash::new(self.window);
    }

    /// The hash now; zero at the start of an episode.
    #[inline]
    pub fn value(&self) -> u64 {
        self.hash
    }

    /// Takes in one step; the step `window` steps ago drops out. Constant work. Words of observation that are zero
    /// may be left out at the end.
    #[inline]
    pub fn push(&mut self, observation: &[u64], action: u16, reward: i32) {
        let words = observation
            .iter()
            .zip(WORD_FACTORS)
            .fold(0u64, |sum, (word, factor)| sum.wrapping_add((word ^ (word >> 32)).wrapping_mul(factor)));
        let entry = mix(words ^ u64::from(action) << 32 ^ u64::from(reward as u32));
        let place = (self.length % self.window) as usize;
        // Before the window is full the place still holds the zero of the reset.
        let leaving = self.entries[place];
        self.entries[place] = entry;
        self.length += 1;
        self.hash = self.hash.wrapping_mul(AGE).wrapping_add(entry);
        self.hash = self.hash.wrapping_sub(leaving.wrapping_mul(self.leaving_factor));
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u32(self.window);
        writer.u32(self.length);
        writer.u64(self.hash);
        self.entries[..self.window as usize].iter().for_each(|entry| writer.u64(*entry));
    }

    /// Reads canonical bytes.
    pub fn decode(reader: &mut Reader<'_>) -> Result<ContextHash, DecodeError> {
        let error = reader.error("a context window out of range");
        let window = reader.u32()?;
        if window == 0 || CONTEXT_WINDOW_MAX < window as usize {
            return Err(error);
        }
        let mut context = ContextHash::new(window);
        let error = reader.error("more steps than an episode has");
        context.length = reader.u32()?;
        if EPISODE_STEPS_MAX < context.length {
            return Err(error);
        }
        context.hash = reader.u64()?;
        for entry in &mut context.entries[..window as usize] {
            *entry = reader.u64()?;
        }
        Ok(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    fn step(prng: &mut Prng) -> ([u64; 4], u16, i32) {
        ([prng.next_u64(), 0, 0, prng.next_u64()], prng.below(8) as u16, prng.between(-9, 9) as i32)
    }

    #[test]
    fn only_the_last_steps_of_the_window_matter() {
        let mut prng = Prng::stream(1, "context");
        for window in [1, 3, 64] {
            let mut long = ContextHash::new(window);
            for _ in 0..100 {
                let (observation, action, reward) = step(&mut prng);
                long.push(&observation, action, reward);
            }
            let mut short = ContextHash::new(window);
            for _ in 0..window {
                let (observation, action, reward) = step(&mut prng);
                long.push(&observation, action, reward);
                short.push(&observation, action, reward);
            }
            assert_eq!(long.value(), short.value(), "window {window}");
        }
    }

    #[test]
    fn observation_action_reward_and_order_all_count() {
        let value = |steps: &[(u64, u16, i32)]| {
            let mut context = ContextHash::new(4);
            for (observation, action, reward) in steps {
                context.push(&[*observation, 0, 0, 0], *action, *reward);
            }
            context.value()
        };
        let base = value(&[(1, 1, 1), (2, 2, 2)]);
        for other in
            [[(3, 1, 1), (2, 2, 2)], [(1, 0, 1), (2, 2, 2)], [(1, 1, 0), (2, 2, 2)], [(2, 2, 2), (1, 1, 1)]]
        {
            assert_ne!(base, value(&other));
        }
        assert_eq!(base, value(&[(1, 1, 1), (2, 2, 2)]));
    }

    #[test]
    fn an_episode_begins_with_an_empty_past_and_a_saved_one_continues() {
        let mut prng = Prng::stream(2, "context");
        let mut context = ContextHash::new(5);
        for _ in 0..7 {
            let (observation, action, reward) = step(&mut prng);
            context.push(&observation, action, reward);
        }
        let mut writer = Writer::new();
        context.encode(&mut writer);
        let copy = ContextHash::decode(&mut Reader::new(writer.as_bytes())).unwrap();
        assert_eq!(copy, context);
        context.reset();
        assert_eq!(context, ContextHash::new(5));
    }
}
