//! The episode in flight as bytes: its seed and its actions, from which the world is brought in step again.
//!
//! Whoever acts by a rule must act again as it did, and no episode that was saved in flight may end. Clauses: LOG-4.

use super::RestoreError;
use crate::act::{Flight, Mode};
use crate::codec::{decode_list, encode_list};
use crate::gate::Contest;
use crate::learner::{Learner, Phase};
use crate::machinery::Hand;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Environment, Outcome};
use bem_synth::experience::Step;
use bem_synth::policy::PolicyState;

pub(super) fn encode_flight(flight: &Flight, writer: &mut Writer) {
    writer.u64(flight.seed);
    writer.u8(flight.mode as u8);
    encode_list(writer, flight.steps.iter(), |step, writer| {
        writer.u16(step.action);
        writer.bool(step.uniform);
        writer.u16(step.propensity);
    });
}

/// What is saved of one step in flight: what was done, and how it was chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    action: u16,
    uniform: bool,
    propensity: u16,
}

/// Seed, mode and steps.
pub(super) type SavedFlight = (u64, Mode, Vec<Move>);

pub(super) fn decode_flight(learner: &Learner, reader: &mut Reader<'_>) -> Result<SavedFlight, DecodeError> {
    let wild = reader.error("an episode in flight that nobody began");
    let seed = reader.u64()?;
    let mode = Mode::ALL.get(usize::from(reader.u8()?)).copied().ok_or(wild.clone())?;
    let moves = decode_list(reader, |reader| {
        Ok(Move { action: reader.u16()?, uniform: reader.bool()?, propensity: reader.u16()? })
    })?;
    let fits = match (&learner.phase, mode) {
        (Phase::Measure(gate), mode) => {
            let second = gate.half.as_ref().is_some_and(|half| half.seed == seed);
            match (gate.contest, mode) {
                (Contest::Trial, Mode::Candidate) | (Contest::Watch, Mode::Incumbent) => gate.half.is_none(),
                (Contest::Trial, Mode::Incumbent) | (Contest::Watch, Mode::Previous) => second,
                _ => false,
            }
        }
        (Phase::Collect, Mode::Candidate | Mode::Previous) => false,
        (Phase::Collect, _) => learner.policy_of(mode).is_some(),
        _ => false,
    };
    if fits { Ok((seed, mode, moves)) } else { Err(wild) }
}

impl Learner {
    /// Plays the episode in flight again up to where it was saved.
    pub(super) fn replay(
        &mut self,
        world: &mut dyn Environment,
        seed: u64,
        mode: Mode,
        moves: &[Move],
    ) -> Result<(), RestoreError> {
        world.reset(seed)?;
        let policy = self.policy_of(mode).expect("a mode is read where its policy is");
        let state = PolicyState::new(&policy);
        self.flight = Some(Flight { seed, mode, policy, state, steps: Vec::new() });
        let is_guest = self.hand(mode) == Hand::Guest;
        let acts = is_guest && mode != Mode::Uniform && !self.is_by_index(mode);
        let Some(flight) = &mut self.flight else { return Ok(()) };
        for (place, Move { action, uniform, propensity }) in moves.iter().copied().enumerate() {
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
            let Outcome { reward, done, bad } = outcome;
            flight.steps.push(Step { observation, action, reward, done, bad, uniform, propensity });
        }
        Ok(())
    }
}
