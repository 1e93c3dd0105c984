//! The episode in flight as bytes: its seed and its actions, from which the world is brought in step again.
//!
//! Whoever acts by a rule must act again as it did, and no episode that was saved in flight may end. Clauses: LOG-4.

use super::RestoreError;
use crate::codec::{decode_list, encode_list};
use crate::learner::act::Flight;
use crate::learner::gate::Contest;
use crate::learner::{Learner, Phase};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Environment, Outcome};
use bem_machine::turn::Turn;
use bem_synth::experience::Step;
use bem_synth::policy::PolicyState;

pub(super) fn encode_flight(flight: &Flight, writer: &mut Writer) {
    writer.u64(flight.seed);
    flight.turn.encode(writer);
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

/// Seed, turn and steps.
pub(super) type SavedFlight = (u64, Turn, Vec<Move>);

pub(super) fn decode_flight(learner: &Learner, reader: &mut Reader<'_>) -> Result<SavedFlight, DecodeError> {
    let malformed = reader.error("an episode in flight that nobody began");
    let seed = reader.u64()?;
    let turn = Turn::decode(reader)?;
    let moves = decode_list(reader, |reader| {
        Ok(Move { action: reader.u16()?, uniform: reader.bool()?, propensity: reader.u16()? })
    })?;
    let fits = match &learner.phase {
        Phase::Measure(gate) => {
            let is_second = gate.half_seed() == Some(seed);
            let before = learner.machinery.turn_before();
            match (gate.contest(), turn) {
                (_, Turn::BASELINE) => learner.may_play(turn),
                (Contest::Trial, turn) if !learner.repeats() => learner.may_play(turn),
                (Contest::Watch, turn) if !learner.repeats() => turn == Turn::HELD || before == Some(turn),
                (Contest::Trial, Turn::SEAT) | (Contest::Watch, Turn::HELD) => gate.half_seed().is_none(),
                (Contest::Trial, Turn::HELD) => is_second,
                (Contest::Watch, turn) => is_second && before == Some(turn),
                // Between two pairs.
                (Contest::Trial, turn) => gate.half_seed().is_none() && learner.may_play(turn),
            }
        }
        Phase::Collect => {
            learner.may_play(turn) && turn != Turn::SEAT && learner.machinery.turn_before() != Some(turn)
        }
        _ => false,
    };
    if fits { Ok((seed, turn, moves)) } else { Err(malformed) }
}

impl Learner {
    /// Plays the episode in flight again up to where it was saved. The machine comes from its own bytes; the world and what
    /// is remembered of the episode are brought in step with it.
    pub(super) fn replay(
        &mut self,
        world: &mut dyn Environment,
        seed: u64,
        turn: Turn,
        moves: &[Move],
    ) -> Result<(), RestoreError> {
        world.reset(seed)?;
        let mut flight = Flight::new(seed, turn);
        let is_paired =
            matches!(&self.phase, Phase::Measure(gate) if gate.contest() == Contest::Trial) && self.repeats();
        flight.is_aside = is_paired && ![Turn::SEAT, Turn::HELD, Turn::BASELINE].contains(&turn);
        for (place, Move { action, uniform, propensity }) in moves.iter().copied().enumerate() {
            let observation = *world.observation();
            let outcome = world.step(action)?;
            if outcome.done {
                return Err(RestoreError::Diverged { step: place });
            }
            let Outcome { reward, done, bad } = outcome;
            flight.steps.push(Step { observation, action, reward, done, bad, uniform, propensity });
            for late in world.late() {
                flight.settle(*late);
            }
            if world.is_awaited() {
                flight.awaited.push(place as u32);
            }
        }
        self.check_policy(turn, &flight.steps)?;
        self.machinery.adapt_again(&flight.steps);
        self.flight = Some(flight);
        Ok(())
    }

    /// Who acts by a circuit alone must act again as it did.
    fn check_policy(&self, turn: Turn, steps: &[Step]) -> Result<(), RestoreError> {
        let policy = match (&self.phase, turn) {
            (Phase::Measure(gate), Turn::SEAT) => gate.policy(),
            (_, Turn::HELD) if !self.agent().adapts() => self.machinery.frozen(),
            _ => return Ok(()),
        };
        let guard = self.machinery.family().guard();
        let mut state = PolicyState::new(policy);
        for (place, step) in steps.iter().enumerate() {
            if guard.pass(&step.observation, state.act(policy, &step.observation)) != step.action {
                return Err(RestoreError::Diverged { step: place });
            }
        }
        Ok(())
    }
}
