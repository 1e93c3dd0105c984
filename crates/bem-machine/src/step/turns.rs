//! How a family that stands for a world chooses: the one function from structure, statistics, turn and random register to
//! an action.
//!
//! | turn | who proposes | credit |
//! |---|---|---|
//! | Index | plain actions by the rule of the configuration, or the expert that is held | the expert |
//! | Held | what is held | the expert |
//! | Plain | plain actions as they are held | nobody |
//! | Member | the expert that the turn names | the expert |
//! | Seat | the circuit in the trial seat | nobody |
//! | Plan | the plan that the owner lends | nobody |
//! | Baseline | the baseline that the owner lends | nobody |
//!
//! Whoever proposes, a drawn action takes the place of the proposal as often as the turn says, and the guard masks what
//! must not be done. Every step counts for the plain action that was taken. Must not know what an episode is played for.
//! Clauses: VM-9, VM-13, VM-16; decisions D-41 to D-43, D-45, D-170.

use super::execute;
use super::single::{LANE, SingleLane, Surroundings};
use crate::family::{Family, Pick, STEP_BY_STEP, SlotFacts};
use crate::held::Adapting;
use crate::turn::{Actor, Drawn, Odds, Plan, Turn, member};
use bem_base::environment::Bits;
use bem_base::limits::ARMS_MAX;
use bem_learn::tsallis_inf::Chance;

/// What was chosen, and where it is credited.
pub(super) struct Chosen {
    pub(super) bucket: u16,
    pub(super) pick: Pick,
    /// Single rewards are not credited to it.
    pub(super) sticky: bool,
}

impl Family {
    /// The expert of the pool that proposes in this turn, if it is one.
    pub(super) fn proposer(&self, turn: Turn) -> Option<usize> {
        match turn.actor {
            Actor::Index | Actor::Held => self.held.member(),
            Actor::Member(slot) => Some(usize::from(slot)),
            Actor::Seat | Actor::Plan | Actor::Baseline | Actor::Plain => None,
        }
        .filter(|_| turn.drawn != Drawn::Always)
    }

    /// The rule by which what acts in this turn adapts within the episode, at its start.
    pub(crate) fn adapting_in(&self, turn: Turn) -> Option<Adapting> {
        match turn.actor {
            Actor::Held => self.held.acting_rule().begin(&self.shape),
            Actor::Plain => self.held.rule.begin(&self.shape),
            Actor::Index | Actor::Member(_) | Actor::Seat | Actor::Plan | Actor::Baseline => None,
        }
    }

    /// What the step needs of a member; plain actions and plans cost nothing.
    #[inline]
    pub(crate) fn facts_of(&self, arm: u8) -> SlotFacts {
        match (self.facts.get(usize::from(arm)), &self.seat) {
            (Some(facts), _) => *facts,
            (None, Some(seat)) if arm == member::SEAT => {
                SlotFacts { cost: seat.expert.cost(), ..SlotFacts::default() }
            }
            (None, _) => SlotFacts::default(),
        }
    }
}

impl SingleLane {
    /// Chooses and lets the choice act; the action is in the planes and in `action`.
    pub(super) fn choose_in_world(
        &mut self,
        around: &mut Surroundings<'_>,
        observation: &Bits,
        plan: &dyn Plan,
    ) -> Chosen {
        let bucket = self.bucket(around.family, around.shared);
        if self.progress.steps == 0 {
            self.progress.first_bucket = bucket;
        }
        let turn = self.progress.turn;
        let advised = if turn.actor.is_lent() { plan.advise(observation) } else { None };
        let is_silent = turn.actor.is_lent() && advised.is_none();
        // Circuits act even where their proposal is not taken: what they remember goes on.
        let proposed = self.propose(around, (bucket, observation), advised);
        let is_drawn = match turn.drawn {
            Drawn::Never => is_silent,
            Drawn::Always => true,
            Drawn::OneIn(count) => is_silent || around.prng.below(u64::from(count)) == 0,
        };
        let family = &*around.family;
        let (arm, action, chance) = if is_drawn {
            let (action, count) = family.draw(observation, around.prng);
            (self.progress.mixed, self.odds) = (true, Odds::equal(count));
            let chance = family.weighs_by_chance().then(|| family.draw_chance(observation, action));
            (member::DRAWN, action, chance.map(Chance::from_fixed))
        } else {
            let (arm, wanted, chance) = proposed;
            self.odds = chance.map_or(Odds::CERTAIN, Odds::weighed);
            (arm, family.guard.pass(observation, wanted), chance)
        };
        if usize::from(arm) < ARMS_MAX {
            self.progress.arms_used |= 1 << arm;
        }
        self.take(family, action);
        let sticky = usize::from(arm) < ARMS_MAX && family.is_sticky(usize::from(arm));
        Chosen { bucket, pick: Pick { arm, chance: chance.unwrap_or(Chance::CERTAIN) }, sticky }
    }

    /// The action stands in the planes.
    fn take(&mut self, family: &Family, action: u16) {
        self.action = action;
        for (bit, plane) in self.planes[family.layout().action()].iter_mut().enumerate() {
            plane.0[0] = u64::from(action >> bit & 1);
        }
    }

    /// Circuits see a step again in which this action was taken, whoever proposed it.
    pub(super) fn relive(&mut self, around: &mut Surroundings<'_>, action: u16) {
        self.run_circuit(around);
        self.take(around.family, action);
    }

    /// The member that proposes in this turn, its action, and the chance that this had if the member drew it.
    fn propose(
        &mut self,
        around: &mut Surroundings<'_>,
        (bucket, observation): (u16, &Bits),
        advised: Option<u16>,
    ) -> (u8, u16, Option<Chance>) {
        let turn = self.progress.turn;
        if turn.drawn == Drawn::Always {
            return (member::DRAWN, 0, None);
        }
        if let Some((arm, action)) = self.run_circuit(around) {
            return (arm, action, None);
        }
        let family = &*around.family;
        match turn.actor {
            Actor::Plan | Actor::Baseline => (member::PLAN, advised.unwrap_or(0), None),
            Actor::Held | Actor::Plain => {
                let adapted = self.adapting.as_ref().map(|adapting| adapting.choose());
                (member::ACTION, adapted.unwrap_or_else(|| family.held.actions[usize::from(bucket)]), None)
            }
            Actor::Index | Actor::Member(_) | Actor::Seat => {
                let (action, chance) = family.choose_plain(bucket, observation, around.prng);
                (member::ACTION, action, chance)
            }
        }
    }

    /// The circuit whose turn it is sees the step: who it is, and what it proposes. Nothing where no circuit acts.
    #[inline]
    fn run_circuit(&mut self, around: &mut Surroundings<'_>) -> Option<(u8, u16)> {
        let turn = self.progress.turn;
        if let Some(slot) = around.family.proposer(turn) {
            execute(around.family, slot, &mut self.planes, &LANE, around.shared, &mut self.workspace);
            return Some((slot as u8, self.proposed(around.family)));
        }
        if turn.actor != Actor::Seat || turn.drawn == Drawn::Always {
            return None;
        }
        let family = &*around.family;
        let seat = family.seat.as_ref().expect("a turn of the seat is begun where it is taken");
        self.workspace.evaluate(&seat.evaluator, &mut self.planes, &LANE);
        Some((member::SEAT, self.proposed(family)))
    }
}

const _: () = assert!(ARMS_MAX == member::ACTION as usize && STEP_BY_STEP == 0);
