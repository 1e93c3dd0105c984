//! A learner as bytes: everything that decides its next unit of work, canonical, and checked when read.
//!
//! ```text
//! version, settings, shape,
//! machine with its patches, tally, standing, candidates, exploration, drift, constancy, floor, library, history, random streams,
//! workload, phase, flight, experience, if people said anything how many labels were looked at and what was measured for them,
//! and if anything was offered how much of it
//! ```
//!
//! An episode in flight is its seed and its actions; [`Learner::restore`] plays them into the world again, so that
//! learner and world are in step; where a world cannot be repeated, the episode is abandoned and counted. Bytes are read to their end first ([`SavedLearner`]), which is cheap; then what they
//! claim is proven: a patch whose condition was shown is shown again, because a stored word is no proof.
//! Bytes that no learner can have written are refused; none make it panic. Must not know files.
//! Clauses: LOG-4, LOG-5; invariant 5 of the architecture.

mod flight;

use super::candidates::Candidates;
use super::constancy::Constancy;
use super::drift::Drift;
use super::exploration::Exploration;
use super::floor::Floor;
use super::gate::{Contest, Gate};
use super::hearing::Hearing;
use super::history::History;
use super::machinery::Machinery;
use super::offered::Offered;
use super::standing::Standing;
use super::{Learner, Phase, Tally};
use crate::codec::{
    decode_list, decode_option, decode_settings, encode_list, encode_option, encode_settings, stays_in_range,
};
use crate::seeds::{Domain, Seeds};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Environment, EnvironmentError, Shape};
use bem_evolve::evolution::Claim;
use bem_evolve::patch::{Change, Patch};
use bem_synth::experience::{Episode, Experience, Step};
use bem_synth::library::Machine;
use bem_synth::policy::Policy;
use flight::{SavedFlight, decode_flight, encode_flight};
use std::sync::Arc;

/// Version of the bytes. 16 says what 15 did; what was learned before a range became wider is no longer counted anew.
const VERSION: u32 = 16;
/// The oldest version that a service may have saved. What came after such a state are inputs, which are played again and
/// compared, so that another learner is noticed. A run has no such inputs and is not gone on with.
const VERSION_SERVED: u32 = 8;
/// The version from which on it is said what acts has earned so far, so that a change is noticed.
const SAYS_CONSTANCY: u32 = 14;
/// The version from which on it is said how often that happened, and from how many pairs is drawn.
const SAYS_CHANGES: u32 = 15;

/// Why a learner cannot go on from some bytes in some world.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The bytes are not those of a learner.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The world refused or failed.
    #[error(transparent)]
    World(#[from] EnvironmentError),
    /// The world looks different from the one that was saved in.
    #[error("this is another world than the one that the learner was saved in")]
    OtherWorld,
    /// The world does not repeat itself.
    #[error("step {step} of the episode in flight does not repeat itself in this world")]
    Diverged {
        /// Which step, from zero.
        step: usize,
    },
}

/// A learner as it was read: its bytes fit together and to worlds of its shape. What they claim is not proven yet, and
/// no world is in step with it.
#[derive(Clone, Debug)]
pub struct SavedLearner {
    learner: Learner,
    /// What is said of the patch under trial.
    claim: Option<Claim>,
    flight: Option<SavedFlight>,
}

impl SavedLearner {
    /// Reads canonical bytes. Cost: a pass over them, and no proof.
    pub fn parse(bytes: &[u8], shape: &Shape) -> Result<SavedLearner, RestoreError> {
        SavedLearner::parse_in(bytes, shape, VERSION, false)
    }

    /// Reads a learner that was set aside between two episodes: none is set aside in it, and what it claims of a trial under way is
    /// proven.
    pub(super) fn parse_set_aside(bytes: &[u8], shape: &Shape) -> Result<Learner, RestoreError> {
        let impossible = || Reader::new(bytes).error("a learner that cannot have been set aside");
        let SavedLearner { mut learner, claim, flight } =
            SavedLearner::parse_in(bytes, shape, VERSION, true)?;
        if flight.is_some() || !stays_in_range(learner.machinery.frozen()) {
            return Err(impossible().into());
        }
        if let Some(claim) = claim {
            learner.machinery.prove(claim)?;
        }
        Ok(learner)
    }

    fn parse_in(
        bytes: &[u8],
        shape: &Shape,
        oldest: u32,
        is_set_aside: bool,
    ) -> Result<SavedLearner, RestoreError> {
        let mut reader = Reader::new(bytes);
        let version = reader.u32()?;
        if !(oldest..=VERSION).contains(&version) {
            return Err(Reader::new(bytes).error("a learner written by another version of bem").into());
        }
        let settings = decode_settings(&mut reader)?;
        let mut known = Writer::new();
        shape.encode(&mut known);
        if reader.raw(known.as_bytes().len())? != known.as_bytes() {
            return Err(RestoreError::OtherWorld);
        }
        let (machinery, claim) = Machinery::decode(&settings.config, shape, &mut reader)?;
        let mut learner = Learner::with_machinery(shape, settings, machinery);
        learner.tally = Tally::decode(learner.machinery.steps(), SAYS_CHANGES <= version, &mut reader)?;
        let stray = reader.error("plain actions that act by counts");
        learner.standing = Standing::decode(shape, learner.tally.steps, version, &mut reader)?;
        if learner.standing.incumbent().by_counts && learner.acts_plainly() {
            return Err(stray.into());
        }
        learner.candidates = Candidates::decode(shape, &mut reader)?;
        learner.exploration = Exploration::decode(shape, version, &mut reader)?;
        learner.drift = Drift::decode(&mut reader)?;
        if SAYS_CONSTANCY <= version {
            learner.constancy = Constancy::decode(SAYS_CHANGES <= version, &mut reader)?;
        }
        learner.floor = decode_option(&mut reader, |reader| Floor::decode(shape, reader))?;
        learner.library = decode_list(&mut reader, Machine::decode)?;
        learner.history = History::decode(&mut reader)?;
        learner.play_seeds = Seeds::decode(Domain::Play, &mut reader)?;
        learner.gate_seeds = Seeds::decode(Domain::Improvement, &mut reader)?;
        learner.workload.restore(&mut reader)?;
        learner.decode_phase(claim.as_ref().map(Claim::patch), &mut reader)?;
        let flight = decode_option(&mut reader, |reader| decode_flight(&learner, reader))?;
        learner.decode_experience(&mut reader)?;
        learner.hearing = Hearing::decode((!is_set_aside).then_some(shape), &mut reader)?;
        learner.offered = Offered::decode(&mut reader)?;
        reader.finish()?;
        let in_flight = flight.as_ref().map(|(_, turn, moves)| (*turn, moves.len()));
        if learner.machinery.in_flight() != in_flight {
            return Err(Reader::new(bytes).error("a machine that plays another episode").into());
        }
        Ok(SavedLearner { learner, claim, flight })
    }

    /// Proves what is claimed and brings this world in step: the learner goes on exactly as the saved one would have.
    pub fn restore(self, world: &mut dyn Environment) -> Result<Learner, RestoreError> {
        let SavedLearner { mut learner, claim, flight } = self;
        if learner.shape != *world.shape() {
            return Err(RestoreError::OtherWorld);
        }
        if !stays_in_range(learner.machinery.frozen()) {
            return Err(Reader::new(&[]).error("a policy with an action that is none").into());
        }
        if let Some(claim) = claim {
            learner.machinery.prove(claim)?;
        }
        let may_resume = learner.may_resume(world);
        match flight {
            Some((seed, turn, moves)) if may_resume => learner.replay(world, seed, turn, &moves)?,
            Some(_) => {
                learner.abandon();
            }
            None => {}
        }
        Ok(learner)
    }
}

impl Learner {
    /// Everything that decides the next unit of work.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u32(VERSION);
        encode_settings(&self.settings, &mut writer);
        self.shape.encode(&mut writer);
        self.machinery.encode(&mut writer);
        self.tally.encode(&mut writer);
        self.standing.encode(&mut writer);
        self.candidates.encode(&mut writer);
        self.exploration.encode(&mut writer);
        self.drift.encode(&mut writer);
        self.constancy.encode(&mut writer);
        encode_option(&mut writer, self.floor.as_ref(), Floor::encode);
        encode_list(&mut writer, self.library.iter(), Machine::encode);
        self.history.encode(&mut writer);
        self.play_seeds.encode(&mut writer);
        self.gate_seeds.encode(&mut writer);
        self.workload.encode(&mut writer);
        self.encode_phase(&mut writer);
        encode_option(&mut writer, self.flight.as_ref(), encode_flight);
        writer.length(self.experience.episode_count());
        self.experience.episodes().for_each(|episode| episode.encode(&mut writer));
        self.hearing.encode(self.offered.is_used(), &mut writer);
        self.offered.encode(&mut writer);
        writer.into_bytes()
    }

    /// A learner that goes on in this world exactly as the saved one would have.
    pub fn restore(bytes: &[u8], world: &mut dyn Environment) -> Result<Learner, RestoreError> {
        SavedLearner::parse(bytes, world.shape())?.restore(world)
    }

    /// The learner of a served world, which goes on from inputs: it may have been saved by the version before.
    pub(super) fn restore_served(bytes: &[u8], world: &mut dyn Environment) -> Result<Learner, RestoreError> {
        SavedLearner::parse_in(bytes, world.shape(), VERSION_SERVED, false)?.restore(world)
    }

    fn encode_phase(&self, writer: &mut Writer) {
        match &self.phase {
            Phase::Start => writer.u8(0),
            Phase::Collect => writer.u8(1),
            Phase::Judge => writer.u8(2),
            Phase::Measure(gate) => {
                writer.u8(3);
                gate.encode(writer);
            }
            Phase::Over => writer.u8(4),
        }
    }

    fn decode_phase(&mut self, claimed: Option<&Patch>, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let malformed = reader.error("a phase that does not exist here");
        self.phase = match reader.u8()? {
            0 => Phase::Start,
            1 => Phase::Collect,
            2 => Phase::Judge,
            3 => Phase::Measure(Box::new(Gate::decode(
                |contest| self.first_player(contest, claimed),
                |reader| self.decode_episode(reader),
                reader,
            )?)),
            4 => Phase::Over,
            _ => return Err(malformed),
        };
        Ok(())
    }

    /// Who plays first in a pair: there must be a trial or a watch for it.
    fn first_player(&self, contest: Contest, claimed: Option<&Patch>) -> Option<Arc<Policy>> {
        match contest {
            Contest::Trial => {
                let patch = claimed?;
                let candidate = self.candidates.waiting(patch.serial)?;
                match &patch.change {
                    Change::Synthesize { policy, .. } | Change::Play { policy, .. } => {
                        (*policy == candidate.policy).then(|| Arc::new(policy.clone()))
                    }
                    _ => None,
                }
            }
            Contest::Watch => {
                let is_watched = self.machinery.evolution().watched().is_some();
                let may_fall_back = is_watched && self.standing.replaced_by().is_some();
                may_fall_back.then(|| Arc::clone(self.machinery.frozen()))
            }
        }
    }

    fn decode_episode(&self, reader: &mut Reader<'_>) -> Result<Episode, DecodeError> {
        let malformed = reader.error("an episode that this world cannot have played");
        let episode = Episode::decode(reader)?;
        let rewards = self.shape.reward_min..=self.shape.reward_max;
        let possible = |step: &Step| step.action < self.shape.actions && rewards.contains(&step.reward);
        let is_long = (self.shape.horizon as usize) < episode.steps.len();
        if episode.steps.is_empty() || is_long || !episode.steps.iter().all(possible) {
            return Err(malformed);
        }
        Ok(episode)
    }

    fn decode_experience(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let overfull = reader.error("more episodes than the log holds");
        let mut experience = Experience::new(self.settings.config.experience_steps as usize);
        let count = reader.length(12)?;
        for _ in 0..count {
            experience.push(self.decode_episode(reader)?);
        }
        if experience.episode_count() != count {
            return Err(overfull);
        }
        self.experience = experience;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
