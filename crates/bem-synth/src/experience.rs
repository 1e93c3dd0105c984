//! What was seen and done: a bounded ring of whole episodes (decision D-34).
//!
//! A step holds observation bits, the learner's own action, reward, done, BAD, and how the action was chosen.
//! There is no room here for a game's name or parameters. Everything a hypothesis is made from has a digest,
//! so that it can be derived again. Clauses: SCC-2, SCC-8, LOG-5.

use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS};
use bem_base::prng::mix;
use std::collections::{BTreeMap, VecDeque};

/// Steps that the ring holds at most.
pub const EXPERIENCE_STEPS_MAX: usize = 1 << 18;

/// One step as the learner saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was seen before acting.
    pub observation: Bits,
    /// What was done.
    pub action: u16,
    /// What it brought, in milli-units.
    pub reward: i32,
    /// The episode ended with this step.
    pub done: bool,
    /// The step did something that must not happen.
    pub bad: bool,
    /// The action was drawn with equal chance from all.
    pub uniform: bool,
    /// The chance of this action when it was drawn, in units of 1/65,535.
    pub propensity: u16,
}

impl Step {
    /// Stands in place of a chance where the reward never came: what is there is what it was taken for. No action has so small
    /// a chance.
    pub const UNTOLD: u16 = 1;

    /// Whether the reward came.
    pub fn is_told(&self) -> bool {
        self.propensity != Step::UNTOLD
    }
}

/// One run from reset to done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    /// Which episode of the run this is; never used twice.
    pub serial: u64,
    /// Its steps in order.
    pub steps: Vec<Step>,
}

impl Episode {
    /// The sum of rewards.
    pub fn total(&self) -> i64 {
        self.steps.iter().map(|step| i64::from(step.reward)).sum()
    }

    /// Whether some of its actions were drawn with equal chance.
    pub fn has_draws(&self) -> bool {
        self.steps.iter().any(|step| step.uniform)
    }

    /// Whether this episode is kept away from fitting, to screen what was fitted on the others.
    pub fn is_screen(&self) -> bool {
        mix(self.serial ^ 0x5343_5245_454E) & 3 == 0
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.serial);
        writer.length(self.steps.len());
        for step in &self.steps {
            for word in step.observation.0 {
                writer.u64(word);
            }
            writer.u16(step.action);
            writer.i32(step.reward);
            writer.u8(u8::from(step.done) | u8::from(step.bad) << 1 | u8::from(step.uniform) << 2);
            writer.u16(step.propensity);
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Episode, DecodeError> {
        let serial = reader.u64()?;
        let count = reader.length(8 * OBSERVATION_WORDS + 9)?;
        let mut steps = Vec::with_capacity(count);
        for _ in 0..count {
            let mut observation = Bits::ZERO;
            for word in &mut observation.0 {
                *word = reader.u64()?;
            }
            let (action, reward) = (reader.u16()?, reader.i32()?);
            let refused = reader.error("unknown step flags");
            let flags = reader.u8()?;
            if 8 <= flags {
                return Err(refused);
            }
            let propensity = reader.u16()?;
            let (done, bad, uniform) = (flags & 1 == 1, flags & 2 == 2, flags & 4 == 4);
            steps.push(Step { observation, action, reward, done, bad, uniform, propensity });
        }
        Ok(Episode { serial, steps })
    }
}

/// The most recent episodes, oldest first, whole ones only.
///
/// Episodes with steps that were drawn with equal chance, and those without, each have half of the room to themselves: where
/// exploration fades, what it found is not displaced by play that follows from it.
#[derive(Clone, Debug)]
#[doc(alias = "EXPERIENCE")]
pub struct Experience {
    /// By serial.
    episodes: BTreeMap<u64, Episode>,
    /// Serials and steps of episodes with drawn steps, and of those without.
    classes: [Class; 2],
    steps_max: usize,
}

/// The episodes of one class.
#[derive(Clone, Debug, Default)]
struct Class {
    serials: VecDeque<u64>,
    steps: usize,
}

impl Default for Experience {
    fn default() -> Experience {
        Experience::new(EXPERIENCE_STEPS_MAX)
    }
}

impl Experience {
    /// An empty ring for at most this many steps; zero switches remembering off.
    pub fn new(steps_max: usize) -> Experience {
        let steps_max = steps_max.min(EXPERIENCE_STEPS_MAX);
        Experience { episodes: BTreeMap::new(), classes: Default::default(), steps_max }
    }

    /// Adds an episode, later than all others; the oldest ones of a class that has more than half of the room make room. An
    /// episode larger than the ring is not kept.
    pub fn push(&mut self, episode: Episode) {
        let is_latest = self.episodes.last_key_value().is_none_or(|(last, _)| *last < episode.serial);
        if self.steps_max < episode.steps.len() || !is_latest {
            return;
        }
        let class = &mut self.classes[usize::from(!episode.has_draws())];
        class.serials.push_back(episode.serial);
        class.steps += episode.steps.len();
        self.episodes.insert(episode.serial, episode);
        while self.steps_max < self.step_count() {
            let largest = usize::from(self.classes[0].steps <= self.steps_max / 2);
            let class = &mut self.classes[largest];
            let oldest = class.serials.pop_front().and_then(|serial| self.episodes.remove(&serial));
            class.steps -= oldest.expect("steps are held by episodes").steps.len();
        }
    }

    /// Takes an episode out, which nobody may learn from any more; nothing where it is not held.
    pub fn take_out(&mut self, serial: u64) -> Option<Episode> {
        let episode = self.episodes.remove(&serial)?;
        let class = &mut self.classes[usize::from(!episode.has_draws())];
        class.serials.retain(|known| *known != serial);
        class.steps -= episode.steps.len();
        Some(episode)
    }

    /// Forgets all episodes before this one: they are of a world that has changed since.
    pub fn forget_before(&mut self, serial: u64) {
        let later = self.episodes.split_off(&serial);
        for episode in core::mem::replace(&mut self.episodes, later).values() {
            let class = &mut self.classes[usize::from(!episode.has_draws())];
            class.serials.pop_front();
            class.steps -= episode.steps.len();
        }
    }

    /// Puts an episode back that was taken out, at its own place; whether there is room for it.
    pub fn put_back(&mut self, episode: Episode) -> bool {
        if self.steps_max < self.step_count() + episode.steps.len()
            || self.episodes.contains_key(&episode.serial)
        {
            return false;
        }
        let class = &mut self.classes[usize::from(!episode.has_draws())];
        let place = class.serials.partition_point(|serial| *serial < episode.serial);
        class.serials.insert(place, episode.serial);
        class.steps += episode.steps.len();
        self.episodes.insert(episode.serial, episode);
        true
    }

    /// The episodes held, oldest first.
    pub fn episodes(&self) -> impl DoubleEndedIterator<Item = &Episode> + Clone + '_ {
        self.episodes.values()
    }

    /// The latest episodes with at most this many steps, oldest first; those with drawn steps have half of the room.
    pub fn latest(&self, steps_max: usize) -> Vec<&Episode> {
        let [drawn, own] = [&self.classes[0], &self.classes[1]].map(|class| class.steps);
        let room_drawn = steps_max - own.min(steps_max / 2);
        let mut left = [room_drawn, steps_max - drawn.min(room_drawn)];
        let mut list: Vec<&Episode> = Vec::new();
        for episode in self.episodes().rev() {
            let left = &mut left[usize::from(!episode.has_draws())];
            // Nothing older than what has no room is taken.
            *left = left.checked_sub(episode.steps.len()).map_or(0, |rest| {
                list.push(episode);
                rest
            });
        }
        list.reverse();
        list
    }

    /// How many episodes are held.
    pub fn episode_count(&self) -> usize {
        self.episodes.len()
    }

    /// How many steps are held.
    pub fn step_count(&self) -> usize {
        self.classes.iter().map(|class| class.steps).sum()
    }

    /// The digest of everything held: the provenance of what is derived from it.
    pub fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        for episode in self.episodes.values() {
            episode.encode(&mut writer);
        }
        digest::hash_parts("bem/experience", &[writer.as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(serial: u64, length: usize) -> Episode {
        let step = Step {
            observation: Bits([serial, 1, 2, 3]),
            action: 1,
            reward: -5,
            done: false,
            bad: true,
            uniform: true,
            propensity: 7,
        };
        Episode { serial, steps: vec![step; length] }
    }

    #[test]
    fn the_oldest_episodes_make_room_and_the_digest_follows() {
        let mut ring = Experience::new(10);
        ring.push(episode(1, 6));
        let first = ring.digest();
        ring.push(episode(2, 4));
        assert_eq!((ring.episode_count(), ring.step_count()), (2, 10));
        assert_ne!(ring.digest(), first);
        ring.push(episode(3, 1));
        assert_eq!(ring.episodes().map(|held| held.serial).collect::<Vec<_>>(), [2, 3]);
        ring.push(episode(4, 11));
        assert_eq!(ring.step_count(), 5);
    }

    #[test]
    fn what_came_before_a_change_is_forgotten_in_both_classes() {
        let mut ring = Experience::new(100);
        for serial in 1..10 {
            let mut episode = episode(serial, serial as usize);
            episode.steps.iter_mut().for_each(|step| step.uniform = serial % 2 == 0);
            ring.push(episode);
        }
        ring.forget_before(6);
        assert_eq!(ring.episodes().map(|held| held.serial).collect::<Vec<_>>(), [6, 7, 8, 9]);
        assert_eq!((ring.step_count(), ring.latest(100).len()), (30, 4));
        assert!(ring.take_out(7).is_some() && ring.step_count() == 23);
        ring.forget_before(100);
        assert_eq!((ring.step_count(), ring.episode_count()), (0, 0));
    }

    #[test]
    fn drawn_episodes_are_not_displaced_by_play_without_draws() {
        let mut ring = Experience::new(10);
        ring.push(episode(1, 3));
        for serial in 2..40 {
            let mut own = episode(serial, 2);
            own.steps.iter_mut().for_each(|step| step.uniform = false);
            ring.push(own);
        }
        assert_eq!(ring.episodes().map(|held| held.serial).collect::<Vec<_>>(), [1, 37, 38, 39]);
        let latest = |steps| ring.latest(steps).iter().map(|held| held.serial).collect::<Vec<_>>();
        assert_eq!((latest(10), latest(6), latest(4)), (vec![1, 37, 38, 39], vec![1, 39], vec![39]));
    }

    #[test]
    fn an_episode_comes_back_from_its_bytes_and_damage_is_refused() {
        let mut writer = Writer::new();
        episode(9, 3).encode(&mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(Episode::decode(&mut Reader::new(&bytes)), Ok(episode(9, 3)));
        for cut in 0..bytes.len() {
            assert!(Episode::decode(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }

    #[test]
    fn about_a_quarter_of_the_episodes_screens_the_rest() {
        let held = (0..4_000).filter(|serial| episode(*serial, 1).is_screen()).count();
        assert!((900..1_100).contains(&held), "{held}");
    }
}
