//! Contests of the gate in a served world: who plays an episode of one, and what is booked of it when its outcomes have come.
//!
//! A contest is the trial of a candidate, or the watch over the latest patch. While one is open a fair coin says who plays an
//! episode; with one step, an observation for which both do the same is left to whoever plays for experience. Outcomes may
//! come when the contest is long decided, or when another is open: an episode carries the contest that it was begun in, and
//! counts in no other. If its contest ends before it does, what is held goes on in it. Clauses: SCC-8, SCC-9; decisions D-60,
//! D-110.

use crate::learner::gate::Contest;
use crate::learner::{Learner, Phase, Witness};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_machine::turn::{Actor, Turn};
use bem_synth::experience::{Episode, Step};

/// Why a contest is given up that nobody wants to go on with.
const FORGONE: &str = "people have decided otherwise";

/// How an episode began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Whose turn it is.
    pub turn: Turn,
    /// The contest that was open when it began, if one was.
    pub contest: Option<u64>,
}

impl Begun {
    /// Outside of every contest.
    pub const fn alone(turn: Turn) -> Begun {
        Begun { turn, contest: None }
    }

    /// Whose turn it is while this contest is open: a contest that is over has no players.
    pub(super) fn turn_now(self, open: Option<u64>) -> Turn {
        match self.contest {
            Some(contest) if open != Some(contest) => match self.turn.actor {
                Actor::Seat | Actor::Member(_) | Actor::Plain => Turn { actor: Actor::Held, ..self.turn },
                _ => self.turn,
            },
            _ => self.turn,
        }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.turn.encode(writer);
        writer.u64(self.contest.map_or(0, |contest| contest + 1));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Begun, DecodeError> {
        Ok(Begun { turn: Turn::decode(reader)?, contest: reader.u64()?.checked_sub(1) })
    }
}

impl Learner {
    /// Names the contest that is open: by the patch, and by what it is about.
    pub(super) fn contest(&self) -> Option<u64> {
        let Phase::Measure(gate) = &self.phase else { return None };
        let evolution = self.machinery.evolution();
        match gate.contest() {
            Contest::Trial => Some(2 * evolution.trial()?.patch().serial),
            Contest::Watch => {
                self.machinery.turn_before().and(evolution.watched()).map(|serial| 2 * serial + 1)
            }
        }
    }

    /// Who plays an episode of the open contest that begins with what is seen, each as likely as the other.
    pub(super) fn contest_turns(&self, observation: &Bits) -> Option<[Turn; 2]> {
        self.contest()?;
        let Phase::Measure(gate) = &self.phase else { return None };
        match gate.contest() {
            Contest::Trial if self.shape.horizon == 1 && !self.would_differ(observation) => None,
            Contest::Trial => Some([Turn::SEAT, Turn::HELD]),
            Contest::Watch => Some([self.machinery.turn_before()?, Turn::HELD]),
        }
    }

    /// Whether an episode that began like this, with what was seen first, belongs to the contest that is open.
    pub(super) fn is_measured(&self, begun: Begun, first: &Bits) -> bool {
        let is_current = begun.contest.is_some() && begun.contest == self.contest();
        is_current && self.contest_turns(first).is_some()
    }

    /// Takes in an episode that was played elsewhere; its serial.
    pub(super) fn take_served(&mut self, begun: Begun, steps: Vec<Step>, witness: &mut dyn Witness) -> u64 {
        self.tally.steps += steps.len() as u64;
        self.tally.episodes += 1;
        let serial = self.history.count();
        let first = steps.first().map_or(Bits::ZERO, |step| step.observation);
        let (is_current, turn) = (begun.contest == self.contest(), begun.turn);
        let episode = Episode { serial, steps };
        if is_current && begun.contest.is_some() {
            if self.contest_turns(&first).is_some() {
                self.take_unpaired(turn, episode, witness);
            } else {
                self.gather(turn, episode, witness);
                self.pass_unpaired(witness);
            }
        } else if turn == Turn::BASELINE {
            self.tally.left += 1;
            self.remember(turn, episode, witness);
        } else if matches!(turn.actor, Actor::Seat | Actor::Member(_) | Actor::Plain) {
            // Its contest is over: part of it was played by somebody who has left.
            self.remember(turn, episode, witness);
        } else if self.is_measuring() {
            self.gather(turn, episode, witness);
        } else {
            self.finish((0, turn), episode, witness);
        }
        serial
    }

    /// Decides what waits and searches if that is due, until a contest has to be played or nothing is left to do.
    pub(super) fn search_served(&mut self, witness: &mut dyn Witness) {
        loop {
            match &self.phase {
                Phase::Start => drop(self.start(witness)),
                Phase::Judge => drop(self.judge(witness)),
                Phase::Collect if self.candidates.next_search() <= self.tally.steps => {
                    self.search(witness);
                }
                Phase::Collect if self.offered.is_due() => drop(self.look_at_offered()),
                Phase::Measure(_) if self.contest().is_none() => {
                    // Nothing is left that could be taken back.
                    self.phase = Phase::Collect;
                }
                Phase::Measure(_) | Phase::Collect | Phase::Over => return,
            }
        }
    }

    /// Gives the open contest up; nobody is told.
    pub(super) fn forgo(&mut self) {
        if self.is_measuring() {
            self.give_up(FORGONE, &mut ());
        }
    }
}
