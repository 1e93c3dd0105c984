//! What a main machine begins with: for tasks that a specialist has learned, the instance, the machine that it acts with there,
//! and episodes that it played.
//!
//! The machine is tried first, through the gate like every other. Episodes prove nothing: they are experience, as if the learner
//! had seen them itself. Which of them may be is decided when a unit begins, from this file, its task and its seed alone, so that a replay decides the same. With masking an episode is left
//! out if it is off-policy (the specialist itself would now do something else in more than a quarter of its steps), or unstable:
//! it comes from another instance, so that the same
//! actions need not bring the same again. Without masking everything is let in. Clauses: PIPE-2, PIPE-3, LOG-5; decisions D-134, D-277.

use crate::codec::{decode_option, encode_option};
use crate::start::Start;
use crate::worlds::{Catalog, World, Worlds};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_games::game::GameError;
use bem_synth::experience::Episode;
use bem_synth::library::Machine;
use bem_synth::policy::Policy;
use std::collections::BTreeMap;

/// What a specialist has left of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taught {
    /// Which domain it belongs to.
    pub domain: String,
    /// Seed of its instance.
    pub instance: u64,
    /// What the specialist does when nothing is explored.
    pub policy: Policy,
    /// The machine that does so, which a learner of the task tries first; none where nothing is handed on or what acts adapts.
    pub machine: Option<Machine>,
    /// Episodes with the seed of the instance that they were played in, the latest last: those of earlier tries too.
    pub episodes: Vec<(u64, Episode)>,
}

/// Everything that specialists have left, by task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distilled {
    /// Whether off-policy and unstable episodes are left out.
    pub masks: bool,
    /// By the task's text.
    pub tasks: BTreeMap<String, Taught>,
    /// Seeds of the instances of tasks that nobody has learned: of the same world in another size or with its fields elsewhere.
    pub unseen: BTreeMap<String, u64>,
}

/// Why an episode is not learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// The specialist would now do something else.
    OffPolicy,
    /// The world need not answer the same again.
    Unstable,
}

/// Steps of an episode of which at most one may differ from what the specialist does now.
const STEPS_A_DIFFERENCE: usize = 4;

impl Taught {
    /// Whether an episode is left out where this task is learned.
    pub fn mask(&self, (instance, episode): &(u64, Episode)) -> Option<Mask> {
        if *instance != self.instance {
            return Some(Mask::Unstable);
        }
        let wanted = self.policy.replay([episode]);
        let pairs = episode.steps.iter().zip(&wanted[0]);
        let different = pairs.filter(|(step, action)| step.action != **action).count();
        (episode.steps.len() < different * STEPS_A_DIFFERENCE).then_some(Mask::OffPolicy)
    }

    fn unmasked(&self) -> impl Iterator<Item = &Episode> {
        self.episodes.iter().filter(|played| self.mask(played).is_none()).map(|(_, episode)| episode)
    }

    /// Steps of the episodes that are not masked, and in how many of them the policy does what the specialist did.
    pub fn agreement(&self, policy: &Policy) -> (u64, u64) {
        let episodes: Vec<&Episode> = self.unmasked().collect();
        let wanted = policy.replay(episodes.iter().copied());
        let pairs =
            episodes.iter().zip(&wanted).flat_map(|(episode, wanted)| episode.steps.iter().zip(wanted));
        pairs.fold((0, 0), |(steps, same), (step, action)| {
            (steps + 1, same + u64::from(step.action == *action))
        })
    }
}

impl Distilled {
    /// The episodes that a learner of this task begins with.
    pub fn episodes_for(&self, task: &str) -> Vec<Episode> {
        let Some(taught) = self.tasks.get(task) else { return Vec::new() };
        let kept = taught.episodes.iter().filter(|played| !self.masks || taught.mask(played).is_none());
        kept.map(|(_, episode)| episode.clone()).collect()
    }

    /// How many episodes are off-policy, and how many unstable.
    pub fn masked(&self) -> [usize; 2] {
        let masks = self
            .tasks
            .values()
            .flat_map(|taught| taught.episodes.iter().filter_map(|played| taught.mask(played)));
        masks.fold([0, 0], |mut counts, mask| {
            counts[mask as usize] += 1;
            counts
        })
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.bool(self.masks);
        writer.length(self.tasks.len());
        for (task, taught) in &self.tasks {
            writer.text(task);
            writer.text(&taught.domain);
            writer.u64(taught.instance);
            taught.policy.encode(writer);
            encode_option(writer, taught.machine.as_ref(), Machine::encode);
            writer.length(taught.episodes.len());
            for (instance, episode) in &taught.episodes {
                writer.u64(*instance);
                episode.encode(writer);
            }
        }
        writer.length(self.unseen.len());
        for (task, instance) in &self.unseen {
            writer.text(task);
            writer.u64(*instance);
        }
    }

    /// Reads canonical bytes back; those of earlier versions hand no machines on and name no task that nobody has learned.
    pub fn decode(reader: &mut Reader<'_>, is_older: bool) -> Result<Distilled, DecodeError> {
        let disorder = reader.error("tasks that are not in the order of their names");
        let mut distilled = Distilled { masks: reader.bool()?, ..Distilled::default() };
        for _ in 0..reader.length(16)? {
            let (task, domain) = (reader.text()?.to_string(), reader.text()?.to_string());
            let (instance, policy) = (reader.u64()?, Policy::decode(reader)?);
            let machine = if is_older { None } else { decode_option(reader, Machine::decode)? };
            let count = reader.length(20)?;
            let episodes = (0..count).map(|_| Ok((reader.u64()?, Episode::decode(reader)?)));
            let episodes = episodes.collect::<Result<_, DecodeError>>()?;
            if distilled.tasks.last_key_value().is_some_and(|(last, _)| task <= *last) {
                return Err(disorder);
            }
            distilled.tasks.insert(task, Taught { domain, instance, policy, machine, episodes });
        }
        let others = if is_older { 0 } else { reader.length(12)? };
        for _ in 0..others {
            let (task, instance) = (reader.text()?.to_string(), reader.u64()?);
            if distilled.unseen.last_key_value().is_some_and(|(last, _)| task <= *last) {
                return Err(disorder);
            }
            distilled.unseen.insert(task, instance);
        }
        Ok(distilled)
    }

    /// The instance of a task: the specialist's where it has learned it or something like it.
    pub fn instance(&self, task: &str, seed: u64) -> u64 {
        let like = self.unseen.get(task).copied();
        self.tasks.get(task).map(|taught| taught.instance).or(like).unwrap_or(seed)
    }
}

impl Worlds for Distilled {
    fn open(&self, task: &str, seed: u64) -> Result<World, GameError> {
        Catalog.open(task, self.instance(task, seed))
    }

    fn start_of(&self, task: &str, _seed: u64) -> Start {
        let machines = self.tasks.get(task).and_then(|taught| taught.machine.clone()).into_iter().collect();
        Start { machines, episodes: self.episodes_for(task), ..Start::default() }
    }
}
