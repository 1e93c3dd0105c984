//! A learner as bytes: everything that decides its next unit of work, canonical, and checked when read.
//!
//! ```text
//! version, settings, shape,
//! incumbent, explorer, machine with its patches, tested, counters, chain, random streams, library, waiting, watch,
//! workload, phase, flight, experience
//! ```
//!
//! An episode in flight is its seed and its actions; [`Learner::restore`] plays them into the world again, so that
//! learner and world are in step. Bytes are read to their end first ([`SavedLearner`]), which is cheap; then what they
//! claim is proven: a patch whose condition was shown is shown again, because a stored word is no proof.
//! Bytes that no learner can have written are refused; none make it panic. Must not know files.
//! Clauses: LOG-4, LOG-5; invariant 5 of the architecture.

mod flight;

use crate::codec::{
    decode_hypothesis, decode_list, decode_option, decode_settings, encode_hypothesis, encode_list,
    encode_option, encode_settings, stays_in_range,
};
use crate::exploration::Exploration;
use crate::gate::{Contest, Gate, Half};
use crate::learner::{Learner, Phase, Tally, decode_incumbent, encode_incumbent};
use crate::machinery::Machinery;
use crate::planning::Realised;
use crate::seeds::{Domain, Seeds};
use crate::watch::Alarm;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Environment, EnvironmentError, Shape};
use bem_evolve::evolution::Claim;
use bem_evolve::improvement::{Account, AlphaLedger};
use bem_evolve::patch::{Change, Patch};
use bem_evolve::watch::Watch;
use bem_synth::experience::{Episode, Experience, Step};
use bem_synth::library::Machine;
use bem_synth::models::control::Explorer;
use bem_synth::policy::Policy;
use flight::{SavedFlight, decode_flight, encode_flight};
use std::sync::Arc;

/// Version of the bytes.
const VERSION: u32 = 4;

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
        let mut reader = Reader::new(bytes);
        if reader.u32()? != VERSION {
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
        learner.decode_knowledge(&mut reader)?;
        learner.decode_counters(&mut reader)?;
        learner.library = decode_list(&mut reader, Machine::decode)?;
        for _ in 0..reader.length(8)? {
            let start = reader.clone();
            let (serial, candidate) = (reader.u64()?, decode_hypothesis(&learner.shape, &mut reader)?);
            if learner.waiting.last_key_value().is_some_and(|(last, _)| serial <= *last) {
                return Err(start.error("waiting candidates out of order").into());
            }
            learner.waiting.insert(serial, candidate);
        }
        learner.decode_watch(&mut reader)?;
        learner.tested_before = decode_option(&mut reader, Reader::u64)?;
        if let Some(workload) = &mut learner.workload {
            workload.restore(&mut reader)?;
        }
        learner.decode_phase(claim.as_ref().map(Claim::patch), &mut reader)?;
        let flight = decode_option(&mut reader, |reader| decode_flight(&learner, reader))?;
        learner.decode_experience(&mut reader)?;
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
        if let Some((seed, turn, moves)) = flight {
            learner.replay(world, seed, turn, &moves)?;
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
        self.encode_knowledge(&mut writer);
        self.encode_counters(&mut writer);
        encode_list(&mut writer, self.library.iter(), Machine::encode);
        writer.length(self.waiting.len());
        for (serial, candidate) in &self.waiting {
            writer.u64(*serial);
            encode_hypothesis(candidate, &mut writer);
        }
        self.encode_watch(&mut writer);
        encode_option(&mut writer, self.tested_before.as_ref(), |before, writer| writer.u64(*before));
        self.workload.iter().for_each(|workload| workload.encode(&mut writer));
        self.encode_phase(&mut writer);
        encode_option(&mut writer, self.flight.as_ref(), encode_flight);
        writer.length(self.experience.episode_count());
        self.experience.episodes().for_each(|episode| episode.encode(&mut writer));
        writer.into_bytes()
    }

    /// A learner that goes on in this world exactly as the saved one would have.
    pub fn restore(bytes: &[u8], world: &mut dyn Environment) -> Result<Learner, RestoreError> {
        SavedLearner::parse(bytes, world.shape())?.restore(world)
    }

    fn encode_knowledge(&self, writer: &mut Writer) {
        encode_incumbent(&self.incumbent, writer);
        self.realised.encode(writer);
        encode_option(writer, self.explorer.as_ref(), Explorer::encode);
        self.exploration.encode(writer);
        writer.length(self.tested.len());
        for (digest, steps) in &self.tested {
            writer.raw(digest.as_bytes());
            writer.u64(*steps);
        }
    }

    fn decode_knowledge(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let stray = reader.error("plain actions that act by counts");
        self.incumbent = decode_incumbent(reader)?;
        if self.incumbent.by_counts && self.acts_plainly() {
            return Err(stray);
        }
        self.realised = Realised::decode(&self.shape, reader)?;
        let stranger = reader.error("an explorer of another world");
        self.explorer = decode_option(reader, Explorer::decode)?;
        if self.explorer.as_ref().is_some_and(|explorer| !explorer.fits(&self.shape)) {
            return Err(stranger);
        }
        self.exploration = Exploration::decode(reader)?;
        let unsorted = reader.error("tested candidates out of order");
        let tested = decode_list(reader, |reader| Ok((Digest::decode(reader)?, reader.u64()?)))?;
        if !tested.windows(2).all(|pair| pair[0].0 < pair[1].0)
            || tested.iter().any(|(_, steps)| 1 << 48 <= *steps)
        {
            return Err(unsorted);
        }
        self.tested = tested.into_iter().collect();
        Ok(())
    }

    fn encode_counters(&self, writer: &mut Writer) {
        let Tally { steps, episodes, applied, rejected, proofs, rolled_back, work, .. } = self.tally;
        let Tally { acting_changes, acting_changes_patched, .. } = self.tally;
        [steps, episodes, work, self.serial, self.fruitless, self.last_gain, self.next_search]
            .into_iter()
            .for_each(|count| writer.u64(count));
        [applied, rejected, proofs, rolled_back, self.streak, acting_changes, acting_changes_patched]
            .into_iter()
            .for_each(|count| writer.u32(count));
        writer.raw(self.chain.as_bytes());
        self.play_seeds.encode(writer);
        self.gate_seeds.encode(writer);
    }

    fn decode_counters(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let wild = reader.error("counters that no run can have reached");
        let mut long = || reader.u64();
        let (steps, episodes, work) = (long()?, long()?, long()?);
        (self.serial, self.fruitless, self.last_gain, self.next_search) =
            (long()?, long()?, long()?, long()?);
        let mut short = || reader.u32();
        let (applied, rejected, proofs, rolled_back) = (short()?, short()?, short()?, short()?);
        self.streak = short()?;
        let (acting_changes, acting_changes_patched) = (short()?, short()?);
        // The machine counts its own steps.
        let steps_by_machine = self.machinery.steps();
        self.tally = Tally {
            steps,
            episodes,
            applied,
            rejected,
            proofs,
            rolled_back,
            work,
            steps_by_machine,
            acting_changes,
            acting_changes_patched,
        };
        self.chain = Digest::decode(reader)?;
        self.play_seeds = Seeds::decode(Domain::Play, reader)?;
        self.gate_seeds = Seeds::decode(Domain::Improvement, reader)?;
        // Far above what any machine counts to, and far below what would overflow a sum.
        let counts = [steps, episodes, self.serial, self.fruitless, self.next_search];
        if counts.iter().any(|count| 1 << 48 <= *count) || steps < self.last_gain {
            return Err(wild);
        }
        Ok(())
    }

    fn encode_phase(&self, writer: &mut Writer) {
        match &self.phase {
            Phase::Start => writer.u8(0),
            Phase::Collect => writer.u8(1),
            Phase::Judge => writer.u8(2),
            Phase::Measure(gate) => {
                writer.u8(3);
                writer.u8(gate.contest as u8);
                writer.u32(gate.streak);
                encode_option(writer, gate.half.as_ref(), |half, writer| {
                    writer.u64(half.seed);
                    half.episode.encode(writer);
                });
            }
            Phase::Over => writer.u8(4),
        }
    }

    fn decode_phase(&mut self, claimed: Option<&Patch>, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let wild = reader.error("a phase that does not exist here");
        self.phase = match reader.u8()? {
            0 => Phase::Start,
            1 => Phase::Collect,
            2 => Phase::Judge,
            3 => {
                let (contest, policy) = self.decode_contest(claimed, reader)?;
                let streak = reader.u32()?;
                let half = decode_option(reader, |reader| {
                    Ok(Half { seed: reader.u64()?, episode: self.decode_episode(reader)? })
                })?;
                Phase::Measure(Box::new(Gate { contest, policy, streak, half }))
            }
            4 => Phase::Over,
            _ => return Err(wild),
        };
        Ok(())
    }

    /// What pairs are played for, and by whom: there must be a trial or a watch for it.
    fn decode_contest(
        &self,
        claimed: Option<&Patch>,
        reader: &mut Reader<'_>,
    ) -> Result<(Contest, Arc<Policy>), DecodeError> {
        let wild = reader.error("pairs that nobody has asked for");
        let evolution = self.machinery.evolution();
        match reader.u8()? {
            0 => {
                let patch = claimed.ok_or(wild.clone())?;
                let candidate = self.waiting.get(&patch.serial).ok_or(wild.clone())?;
                match &patch.change {
                    Change::Synthesize { policy, .. } if *policy == candidate.policy => {
                        Ok((Contest::Trial, Arc::new(policy.clone())))
                    }
                    Change::Play { policy, .. } if *policy == candidate.policy => {
                        Ok((Contest::Trial, Arc::new(policy.clone())))
                    }
                    _ => Err(wild),
                }
            }
            1 if evolution.watched().is_some() && self.previous.is_some() => {
                Ok((Contest::Watch, Arc::clone(self.machinery.frozen())))
            }
            _ => Err(wild),
        }
    }

    fn encode_watch(&self, writer: &mut Writer) {
        encode_option(writer, self.previous.as_ref(), |(incumbent, candidate), writer| {
            encode_incumbent(incumbent, writer);
            encode_hypothesis(candidate, writer);
        });
        encode_option(writer, self.alarm.as_ref(), |alarm, writer| {
            encode_option(writer, alarm.promised.as_ref(), |promised, writer| writer.i64(*promised));
            writer.u32(alarm.episodes);
            writer.i64(alarm.sum);
            alarm.watch.encode(writer);
            writer.u32(alarm.ledger.entered()[Account::Watches as usize]);
        });
    }

    fn decode_watch(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let wild = reader.error("a watch that no patch has opened");
        self.previous = decode_option(reader, |reader| {
            Ok((decode_incumbent(reader)?, decode_hypothesis(&self.shape, reader)?))
        })?;
        self.alarm = decode_option(reader, |reader| {
            Ok(Alarm {
                promised: decode_option(reader, Reader::i64)?,
                episodes: reader.u32()?,
                sum: reader.i64()?,
                watch: Watch::decode(reader)?,
                ledger: AlphaLedger::resume([0, reader.u32()?, 0, 0]),
            })
        })?;
        let (low, high) = (self.shape.return_min, self.shape.return_max);
        let fits = |alarm: &Alarm| {
            let count = i64::from(alarm.episodes);
            let promised = alarm.promised.is_none_or(|promised| (low..=high).contains(&promised));
            let sum = i128::from(low) * i128::from(count)..=i128::from(high) * i128::from(count);
            promised && alarm.episodes <= 64 && sum.contains(&i128::from(alarm.sum))
        };
        if self.alarm.as_ref().is_none_or(fits) { Ok(()) } else { Err(wild) }
    }

    fn decode_episode(&self, reader: &mut Reader<'_>) -> Result<Episode, DecodeError> {
        let wild = reader.error("an episode that this world cannot have played");
        let episode = Episode::decode(reader)?;
        let rewards = self.shape.reward_min..=self.shape.reward_max;
        let possible = |step: &Step| step.action < self.shape.actions && rewards.contains(&step.reward);
        let is_long = (self.shape.horizon as usize) < episode.steps.len();
        if episode.steps.is_empty() || is_long || !episode.steps.iter().all(possible) {
            return Err(wild);
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
