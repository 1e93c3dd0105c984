//! Contests of the gate in a served world: who plays an episode of one, and what is booked of it when its outcomes have come.
//!
//! A contest is the trial of a candidate, or the watch over the latest patch. While one is open a fair coin says who plays an
//! episode; with one step, an observation for which both do the same is left to whoever plays for experience. Outcomes may
//! come when the contest is long decided, or when another is open: an episode carries the contest that it was begun in, and
//! counts in no other. If its contest ends before it does, what is held goes on in it. Clauses: SCC-8, SCC-9; decisions D-60,
//! D-110.

use super::Settled;
use crate::learner::act::{is_exploring, step_taken};
use crate::learner::gate::Contest;
use crate::learner::{Learner, Phase, Witness};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_evolve::improvement::interleaved::Earlier;
use bem_machine::turn::{Actor, Turn};
use bem_synth::experience::{Episode, Step};

/// The latest episodes that say what is paid up to a step.
const EARLIER_EPISODES: usize = 256;
/// Episodes after which the range of returns is what was seen of it.
const SEEN_EPISODES: usize = 32;
/// So many episodes of a contest may be under way at first, and so many times those that are complete may have begun besides.
const UNDER_WAY_MIN: u64 = 128;
const UNDER_WAY_TIMES: u64 = 3;
/// Why a contest is given up that nobody wants to go on with.
const FORGONE: &str = "people have decided otherwise";

/// How an episode began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Whose turn it is.
    pub turn: Turn,
    /// The contest that was open when it began, if one was.
    pub contest: Option<u64>,
    /// How often what acts had changed when it began; nothing where nobody counts.
    pub reign: Option<u32>,
}

impl Begun {
    /// Outside of every contest.
    pub const fn alone(turn: Turn) -> Begun {
        Begun { turn, contest: None, reign: None }
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

    /// Whether what acts has changed since it began: what it earns was earned by somebody else.
    pub(super) fn is_past(self, changes: u32) -> bool {
        self.reign.is_some_and(|reign| reign != changes)
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.turn.encode(writer);
        writer.u64(self.contest.map_or(0, |contest| contest + 1));
        writer.u32(self.reign.map_or(0, |reign| reign.saturating_add(1)));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Begun, DecodeError> {
        let (turn, contest) = (Turn::decode(reader)?, reader.u64()?.checked_sub(1));
        Ok(Begun { turn, contest, reign: reader.u32()?.checked_sub(1) })
    }
}

/// How many episodes of the latest contest have begun, and how many of them are complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnderWay {
    contest: Option<u64>,
    begun: u64,
    complete: u64,
}

impl UnderWay {
    /// Whether another episode of this contest may begin.
    pub(super) fn has_room(&self, contest: Option<u64>) -> bool {
        self.contest != contest || self.begun < UNDER_WAY_MIN + UNDER_WAY_TIMES * self.complete
    }

    /// An episode of this contest begins.
    pub(super) fn begin(&mut self, contest: Option<u64>) {
        if self.contest != contest {
            *self = UnderWay { contest, ..UnderWay::default() };
        }
        self.begun += 1;
    }

    /// One of this contest is complete.
    pub(super) fn book(&mut self, contest: Option<u64>) {
        let is_one = self.contest == contest && self.complete < self.begun;
        self.complete += u64::from(is_one);
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        [self.contest.map_or(0, |contest| contest + 1), self.begun, self.complete]
            .into_iter()
            .for_each(|count| writer.u64(count));
    }

    /// Reads canonical bytes back.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<UnderWay, DecodeError> {
        let malformed = reader.error("more complete episodes of a contest than have begun");
        let under_way =
            UnderWay { contest: reader.u64()?.checked_sub(1), begun: reader.u64()?, complete: reader.u64()? };
        let fits = under_way.complete <= under_way.begun && under_way.begun < 1 << 48;
        if fits { Ok(under_way) } else { Err(malformed) }
    }
}

/// Takes an episode that is complete into a learner; the serial under which it is known from now on.
pub(super) fn take_into(
    learner: &mut Learner,
    begun: Begun,
    steps: &[Settled],
    witness: &mut dyn Witness,
) -> u64 {
    let begun = learner.seen_now(begun);
    for step in steps {
        learner.machinery.book_apart(&step.observation, (step.action, step.odds), &step.outcome);
    }
    let steps: Vec<Step> = steps
        .iter()
        .map(|step| {
            let taken = step_taken(step.observation, step.action, step.outcome, step.odds);
            let propensity = if step.is_told { taken.propensity } else { Step::UNTOLD };
            Step { propensity, ..taken }
        })
        .collect();
    // What was promised to every action is no play of what is held.
    let is_pure = steps.iter().all(|step| !step.uniform);
    let first = steps.first().map_or(Bits::ZERO, |step| step.observation);
    let is_mixed = begun.turn == Turn::HELD && !is_pure && !learner.is_measured(begun, &first);
    let turn = if is_mixed { Turn::INDEX } else { begun.turn };
    learner.take_served(Begun { turn, ..begun }, steps, witness)
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

    /// How an episode began, as it counts now: what a candidate played in the contest that it has won, it has played as what acts.
    pub(super) fn seen_now(&self, begun: Begun) -> Begun {
        let won = self.machinery.evolution().watched().map(|serial| 2 * serial);
        let is_won = won.is_some() && begun.contest == won && self.contest() != won;
        match is_won && begun.turn == Turn::SEAT {
            true => Begun { turn: Turn::HELD, contest: None, reign: None },
            false => begun,
        }
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
        } else if matches!(turn.actor, Actor::Seat | Actor::Member(_) | Actor::Plain)
            || begun.is_past(self.tally.acting_changes) && !is_exploring(turn)
        {
            // Its contest is over, or something else acts now: it was played by somebody who has left.
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
                Phase::Collect
                    if self.workload.is_paced() && self.hearing.is_due(self.walked(), self.tally.steps) =>
                {
                    self.look_at_told(witness);
                }
                Phase::Measure(_) if self.contest().is_none() => {
                    // Nothing is left that could be taken back.
                    self.phase = Phase::Collect;
                }
                Phase::Measure(_) | Phase::Collect | Phase::Over => return,
            }
        }
    }

    /// Whether its world is served.
    pub(in crate::learner) fn is_served(&self) -> bool {
        self.settings.budget == super::BUDGET
    }

    /// What a contest compares of an episode that differs from this step on: what was paid since, and in a served world what the
    /// log pays up to there on average. The coin does not know the step at which the two differ, so that both sides gain the
    /// same by it, and what is compared lies where returns lie.
    pub(in crate::learner) fn paid_apart(&self, episode: &Episode, place: usize) -> i64 {
        let paid = |steps: &[Step]| steps.iter().map(|step| i64::from(step.reward)).sum::<i64>();
        let since = paid(&episode.steps[place..]);
        if !self.is_served() || place == 0 {
            return since;
        }
        let latest = self.experience.episodes().rev().take(EARLIER_EPISODES);
        let (count, sum) = latest.fold((0i64, 0i64), |(count, sum), earlier| {
            (count + 1, sum.saturating_add(paid(&earlier.steps[..place.min(earlier.steps.len())])))
        });
        since.saturating_add(sum.div_euclid(count.max(1)))
    }

    /// The range of returns of a contest that begins now: what was seen, and an eighth beyond it on both sides. A loss beyond
    /// it opens another test, so that nothing rests on its being the whole range.
    pub(in crate::learner) fn served_range(&self, mean: i64, (low, high): (i64, i64)) -> Earlier {
        let totals = || self.experience.episodes().map(Episode::total);
        let (least, most) = (totals().min().unwrap_or(low), totals().max().unwrap_or(high));
        if self.experience.episode_count() < SEEN_EPISODES || least == most {
            return Earlier { low: low.min(0), high: high.max(0), mean };
        }
        let (beyond, shape) = ((most - least) / 8 + 1, &self.shape);
        let (low, high) = ((least - beyond).max(shape.return_min), (most + beyond).min(shape.return_max));
        Earlier { low, high, mean: mean.clamp(low, high) }
    }

    /// Gives the open contest up; nobody is told.
    pub(super) fn forgo(&mut self) {
        if self.is_measuring() {
            self.give_up(FORGONE, &mut ());
        }
    }
}
