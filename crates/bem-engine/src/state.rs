//! A learner as bytes: everything that decides its next unit of work, canonical, and checked when read.
//!
//! ```text
//! version, settings, shape,
//! incumbent, explorer, contexts, machine, counters, chain, random streams, tested, library, waiting, phase, flight, experience
//! ```
//!
//! An episode in flight is its seed and its actions; [`Learner::restore`] plays them into the world again, so that
//! learner and world are in step. A patch whose condition was shown is shown again, because a stored word is no proof.
//! Bytes that no learner can have written are refused; none make it panic. Must not know files.
//! Clauses: LOG-4, LOG-5; invariant 5 of the architecture.

use crate::act::{Flight, Mode, step_taken};
use crate::bandit::RoutedBandit;
use crate::codec::{
    decode_actor, decode_hypothesis, decode_list, decode_option, decode_settings, encode_hypothesis,
    encode_list, encode_option, encode_settings, encode_shape, read_digest,
};
use crate::gate::{Gate, Half};
use crate::learner::{Incumbent, Learner, Phase, Tally};
use crate::machinery::{Hand, Machinery};
use crate::seeds::{Domain, Seeds};
use crate::verification::Verification;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Environment, EnvironmentError};
use bem_base::prng::Prng;
use bem_evolve::improvement::{AlphaLedger, ImprovementTest};
use bem_evolve::patch::Change;
use bem_synth::experience::{Episode, Experience, Step};
use bem_synth::library::Machine;
use bem_synth::models::control::Explorer;
use bem_synth::policy::PolicyState;
use std::sync::Arc;

/// Version of the bytes.
const VERSION: u32 = 1;

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

impl Learner {
    /// Everything that decides the next unit of work.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u32(VERSION);
        encode_settings(&self.settings, &mut writer);
        encode_shape(&self.shape, &mut writer);
        self.encode_knowledge(&mut writer);
        self.encode_counters(&mut writer);
        encode_list(&mut writer, self.library.iter(), Machine::encode);
        encode_list(&mut writer, self.waiting.iter(), encode_hypothesis);
        encode_option(&mut writer, self.tested_before.as_ref(), |before, writer| writer.u64(*before));
        self.encode_phase(&mut writer);
        encode_option(&mut writer, self.flight.as_ref(), encode_flight);
        writer.length(self.experience.episode_count());
        self.experience.episodes().for_each(|episode| episode.encode(&mut writer));
        writer.into_bytes()
    }

    /// A learner that goes on in this world exactly as the saved one would have.
    pub fn restore(bytes: &[u8], world: &mut dyn Environment) -> Result<Learner, RestoreError> {
        let mut reader = Reader::new(bytes);
        if reader.u32()? != VERSION {
            return Err(Reader::new(bytes).error("an unknown version of the learner").into());
        }
        let settings = decode_settings(&mut reader)?;
        let mut shape = Writer::new();
        encode_shape(world.shape(), &mut shape);
        if reader.raw(shape.as_bytes().len())? != shape.as_bytes() {
            return Err(RestoreError::OtherWorld);
        }
        let mut learner = Learner::new(world.shape(), settings);
        learner.decode_knowledge(&mut reader)?;
        learner.decode_counters(&mut reader)?;
        learner.library = decode_list(&mut reader, Machine::decode)?;
        let shape = learner.shape.clone();
        learner.waiting = decode_list(&mut reader, |reader| decode_hypothesis(&shape, reader))?.into();
        learner.tested_before = decode_option(&mut reader, Reader::u64)?;
        learner.decode_phase(&mut reader)?;
        let flight = decode_option(&mut reader, |reader| decode_flight(&learner, reader))?;
        learner.decode_experience(&mut reader)?;
        reader.finish()?;
        let in_flight = flight.as_ref().map(|(_, _, moves)| moves.len());
        if learner.machinery.as_ref().is_some_and(|machinery| machinery.steps_in_flight() != in_flight) {
            return Err(Reader::new(bytes).error("a machine that plays another episode").into());
        }
        if let Some((seed, mode, moves)) = flight {
            learner.replay(world, seed, mode, &moves)?;
        }
        Ok(learner)
    }

    fn encode_knowledge(&self, writer: &mut Writer) {
        self.incumbent.policy.encode(writer);
        writer.text(&self.incumbent.words);
        writer.bool(self.incumbent.is_choice);
        encode_option(writer, self.incumbent.machine.as_ref(), Machine::encode);
        encode_option(writer, self.explorer.as_ref(), Explorer::encode);
        self.bandit.encode(writer);
        encode_option(writer, self.machinery.as_ref(), Machinery::encode);
        writer.u32(self.ledger.tested());
        writer.length(self.tested.len());
        for (digest, steps) in &self.tested {
            writer.raw(digest.as_bytes());
            writer.u64(*steps);
        }
    }

    fn decode_knowledge(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.incumbent = Incumbent {
            policy: Arc::new(decode_actor(&self.shape, reader)?),
            words: reader.text()?.to_string(),
            is_choice: reader.bool()?,
            machine: decode_option(reader, Machine::decode)?,
        };
        let stranger = reader.error("an explorer of another world");
        self.explorer = decode_option(reader, Explorer::decode)?;
        if self.explorer.as_ref().is_some_and(|explorer| !explorer.fits(&self.shape)) {
            return Err(stranger);
        }
        self.bandit = RoutedBandit::decode(&self.shape, reader)?;
        self.decode_machinery(reader)?;
        self.ledger = AlphaLedger::resume(reader.u32()?);
        let unsorted = reader.error("tested candidates out of order");
        let tested = decode_list(reader, |reader| Ok((read_digest(reader)?, reader.u64()?)))?;
        if !tested.windows(2).all(|pair| pair[0].0 < pair[1].0)
            || tested.iter().any(|(_, steps)| 1 << 48 <= *steps)
        {
            return Err(unsorted);
        }
        self.tested = tested.into_iter().collect();
        Ok(())
    }

    fn decode_machinery(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let wild = reader.error("a machine where none can be, or none where one must be");
        let config = self.verification.as_ref().map(Verification::config);
        self.machinery = match (reader.bool()?, config) {
            (true, Some(config)) => Some(Machinery::decode(config, &self.shape, reader)?),
            (false, None) => None,
            _ => return Err(wild),
        };
        let circuit = self.machinery.as_ref().and_then(Machinery::incumbent_circuit);
        let holds = self.incumbent.is_choice || circuit == Some(self.incumbent.policy.circuit());
        if holds { Ok(()) } else { Err(wild) }
    }

    fn encode_counters(&self, writer: &mut Writer) {
        let Tally { steps, episodes, applied, rejected, proofs } = self.tally;
        [steps, episodes, self.serial, self.fruitless, self.last_gain, self.next_search]
            .into_iter()
            .for_each(|count| writer.u64(count));
        [applied, rejected, proofs, self.streak].into_iter().for_each(|count| writer.u32(count));
        writer.bool(self.announced);
        writer.raw(self.chain.as_bytes());
        self.draw.encode(writer);
        self.play_seeds.encode(writer);
        self.gate_seeds.encode(writer);
    }

    fn decode_counters(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let wild = reader.error("counters that no run can have reached");
        let mut long = || reader.u64();
        let (steps, episodes) = (long()?, long()?);
        (self.serial, self.fruitless, self.last_gain, self.next_search) =
            (long()?, long()?, long()?, long()?);
        let mut short = || reader.u32();
        let (applied, rejected, proofs) = (short()?, short()?, short()?);
        self.streak = short()?;
        self.tally = Tally { steps, episodes, applied, rejected, proofs };
        self.announced = reader.bool()?;
        self.chain = read_digest(reader)?;
        self.draw = Prng::decode(reader)?;
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
                encode_hypothesis(&gate.candidate, writer);
                gate.shown.encode(writer);
                gate.test.encode(writer);
                writer.u32(gate.streak);
                encode_option(writer, gate.half.as_ref(), |half, writer| {
                    writer.u64(half.seed);
                    writer.i64(half.total);
                    writer.bool(half.bad);
                });
            }
            Phase::Over => writer.u8(4),
        }
    }

    fn decode_phase(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let wild = reader.error("a phase that does not exist here");
        self.phase = match reader.u8()? {
            0 => Phase::Start,
            1 => Phase::Collect,
            2 => Phase::Judge,
            3 => {
                let candidate = decode_hypothesis(&self.shape, reader)?;
                let verification = self.verification.as_ref().ok_or(wild.clone())?;
                let machinery = self.machinery.as_ref().ok_or(wild.clone())?;
                let shown = verification.decode(machinery.family(), reader)?;
                let change = &shown.verified().patch().change;
                if !matches!(change, Change::Synthesize { policy, .. } if *policy == candidate.policy) {
                    return Err(wild);
                }
                let policy = Arc::new(candidate.policy.clone());
                let (test, streak) = (ImprovementTest::decode(reader)?, reader.u32()?);
                let half = decode_option(reader, |reader| {
                    let (seed, total, bad) = (reader.u64()?, reader.i64()?, reader.bool()?);
                    Ok(Half { seed, total, bad })
                })?;
                let range = self.shape.return_min..=self.shape.return_max;
                if half.is_some_and(|half| !range.contains(&half.total)) {
                    return Err(wild);
                }
                Phase::Measure(Box::new(Gate { candidate, policy, shown, test, streak, half }))
            }
            4 => Phase::Over,
            _ => return Err(wild),
        };
        Ok(())
    }

    fn decode_experience(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let wild = reader.error("an episode that this world cannot have played");
        let mut experience = Experience::new(self.settings.experience_steps);
        let count = reader.length(12)?;
        for _ in 0..count {
            let episode = Episode::decode(reader)?;
            let rewards = self.shape.reward_min..=self.shape.reward_max;
            let possible = |step: &Step| step.action < self.shape.actions && rewards.contains(&step.reward);
            if episode.steps.is_empty()
                || (self.shape.horizon as usize) < episode.steps.len()
                || !episode.steps.iter().all(possible)
            {
                return Err(wild);
            }
            experience.push(episode);
        }
        if experience.episode_count() != count {
            return Err(wild);
        }
        self.experience = experience;
        Ok(())
    }

    /// Plays the episode in flight again up to where it was saved.
    fn replay(
        &mut self,
        world: &mut dyn Environment,
        seed: u64,
        mode: Mode,
        moves: &[(u16, bool)],
    ) -> Result<(), RestoreError> {
        world.reset(seed)?;
        let policy = self.policy_of(mode).expect("a mode is read where its policy is");
        let state = PolicyState::new(&policy);
        self.flight = Some(Flight { seed, mode, policy, state, steps: Vec::new() });
        let is_guest = self.hand(mode) == Hand::Guest;
        let acts = is_guest && mode != Mode::Uniform && !self.is_by_index(mode);
        let actions = self.shape.actions;
        let Some(flight) = &mut self.flight else { return Ok(()) };
        for (place, (action, uniform)) in moves.iter().copied().enumerate() {
            let observation = *world.observation();
            if acts {
                let wanted = match (&self.explorer, mode) {
                    (Some(explorer), Mode::Curious) => explorer.act(&flight.steps, &observation),
                    _ => Some(flight.state.act(&flight.policy, &observation)),
                };
                if !uniform && wanted != Some(action) {
                    return Err(RestoreError::Diverged { step: place });
                }
            }
            let outcome = world.step(action)?;
            if outcome.done {
                return Err(RestoreError::Diverged { step: place });
            }
            flight.steps.push(step_taken(observation, action, outcome, uniform.then_some(actions)));
        }
        Ok(())
    }
}

fn encode_flight(flight: &Flight, writer: &mut Writer) {
    writer.u64(flight.seed);
    writer.u8(flight.mode as u8);
    encode_list(writer, flight.steps.iter(), |step, writer| {
        writer.u16(step.action);
        writer.bool(step.uniform);
    });
}

/// Seed, mode, and for every step the action and whether it was drawn.
type SavedFlight = (u64, Mode, Vec<(u16, bool)>);

fn decode_flight(learner: &Learner, reader: &mut Reader<'_>) -> Result<SavedFlight, DecodeError> {
    let wild = reader.error("an episode in flight that nobody began");
    let seed = reader.u64()?;
    let mode = Mode::ALL.get(usize::from(reader.u8()?)).copied().ok_or(wild.clone())?;
    let moves = decode_list(reader, |reader| Ok((reader.u16()?, reader.bool()?)))?;
    let fits = match (&learner.phase, mode) {
        (Phase::Measure(gate), Mode::Candidate) => gate.half.is_none(),
        (Phase::Measure(gate), Mode::Incumbent) => gate.half.is_some_and(|half| half.seed == seed),
        (Phase::Collect, Mode::Candidate) => false,
        (Phase::Collect, _) => learner.policy_of(mode).is_some(),
        _ => false,
    };
    if fits { Ok((seed, mode, moves)) } else { Err(wild) }
}

#[cfg(test)]
mod tests;
