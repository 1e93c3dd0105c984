//! What belongs to one block of 256 lanes and outlives a step: STATE and the running episodes.
//!
//! Must not know how lanes are routed. Clauses: VM-8, D-32.

use super::planes::{below, increment};
use crate::family::{Family, Pick, STEP_BY_STEP};
use crate::memory::state::LaneState;
use crate::step::schedule::Schedule;
use bem_base::environment::Outcome;
use bem_base::lanes::{LANE_WORDS, LaneMask, LaneOutcome, LaneWord};
use bem_base::limits::{ARMS_MAX, LANES, STATE_BITS_MAX};
use bem_base::prng::Prng;
use bem_learn::tsallis_inf::Chance;

/// Planes of the action's number that a world can have.
pub(super) const ACTION_PLANES_MAX: usize = 10;
/// Planes of a count of steps within an episode.
const COUNTER_PLANES: usize = 17;

/// One block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) state: LaneState,
    /// The lanes that each arm holds for their whole episode; those of arm 0 choose step by step.
    pub(super) held: [LaneMask; ARMS_MAX],
    /// Within the running episode of each lane: steps with the high reward, all steps, BAD steps.
    wins: [LaneWord; COUNTER_PLANES],
    steps: [LaneWord; COUNTER_PLANES],
    bads: [LaneWord; COUNTER_PLANES],
    /// Sum of cost penalties per lane; empty when cost is free.
    costs: Vec<i64>,
    /// The chance that each lane's arm had when its episode began.
    chances: Box<[Chance; LANES]>,
}

impl Block {
    /// A block whose lanes begin their first episodes.
    pub(super) fn new(family: &Family, schedule: &Schedule, prng: &mut Prng) -> Block {
        let cost_is_free = family.facts.iter().all(|facts| facts.penalty == 0);
        let mut block = Block {
            state: LaneState::new(STATE_BITS_MAX),
            held: [LaneWord::ZERO; ARMS_MAX],
            wins: [LaneWord::ZERO; COUNTER_PLANES],
            steps: [LaneWord::ZERO; COUNTER_PLANES],
            bads: [LaneWord::ZERO; COUNTER_PLANES],
            costs: if cost_is_free { Vec::new() } else { vec![0; LANES] },
            chances: Box::new([Chance::CERTAIN; LANES]),
        };
        block.assign_episodes(family, schedule, LaneWord::ONES, prng);
        block
    }

    /// The planes of the action that the world takes: numbers past the last action stand for action 0.
    pub(super) fn read_action(&self, family: &Family, action: &mut [LaneWord; ACTION_PLANES_MAX]) {
        let planes = &self.state.planes()[family.layout().action()];
        let action = &mut action[..planes.len()];
        action.copy_from_slice(planes);
        let actions = family.shape().actions;
        if !actions.is_power_of_two() {
            let valid = below(action, actions);
            action.iter_mut().for_each(|plane| *plane &= valid);
        }
    }

    /// The world's answer enters STATE.
    pub(super) fn settle(&mut self, family: &Family, outcome: &LaneOutcome) {
        let (layout, shape) = (family.layout(), family.shape());
        let planes = self.state.planes_mut();
        planes[layout.reward()] =
            if shape.reward_min == shape.reward_max { LaneWord::ONES } else { outcome.reward };
        planes[layout.bad()] = outcome.bad;
    }

    /// Adds the outcome to the running episodes; those that ended are counted, cleared and begin anew.
    pub(super) fn end_episodes(
        &mut self,
        family: &mut Family,
        schedule: &mut Schedule,
        arms: &[LaneMask; ARMS_MAX],
        outcome: &LaneOutcome,
        prng: &mut Prng,
    ) {
        if family.has_sticky() {
            increment(&mut self.wins, outcome.reward);
            increment(&mut self.steps, LaneWord::ONES);
            increment(&mut self.bads, outcome.bad);
            if !self.costs.is_empty() {
                for (arm, mask) in arms.iter().enumerate() {
                    mask.lanes().for_each(|lane| self.costs[lane] += family.facts[arm].penalty);
                }
            }
        }
        if outcome.done.is_zero() {
            return;
        }
        let layout = family.layout();
        let first = layout.action().start;
        let last = layout.memory().start + family.memory_used();
        self.state.clear(first, last - first, outcome.done);
        if family.has_sticky() {
            for lane in outcome.done.lanes() {
                let arm = self.held.iter().position(|mask| mask.get(lane)).expect("every lane has an arm");
                let pick = Pick { arm: arm as u8, chance: self.chances[lane] };
                schedule.count_episode(family, pick, self.payoff_sum(family, lane));
            }
            self.assign_episodes(family, schedule, outcome.done, prng);
        }
    }

    fn payoff_sum(&self, family: &Family, lane: usize) -> i64 {
        let column = |planes: &[LaneWord]| {
            planes.iter().enumerate().fold(0i64, |sum, (bit, plane)| sum | i64::from(plane.get(lane)) << bit)
        };
        let shape = family.shape();
        let (wins, steps, bads) = (column(&self.wins), column(&self.steps), column(&self.bads));
        let outcome = |reward, bad| family.statistics.payoff.payoff(&Outcome { reward, done: false, bad }, 0);
        let (high, low) = (outcome(shape.reward_max, false), outcome(shape.reward_min, false));
        let penalty = low - outcome(shape.reward_min, true);
        let cost = self.costs.get(lane).copied().unwrap_or(0);
        wins * high + (steps - wins) * low - bads * penalty - cost
    }

    /// New episodes: lanes are given to the arms of the plan or draw their own, and their counters start at zero.
    fn assign_episodes(&mut self, family: &Family, schedule: &Schedule, starting: LaneMask, prng: &mut Prng) {
        if !family.has_sticky() {
            self.held = [LaneWord::ZERO; ARMS_MAX];
            self.held[STEP_BY_STEP] = LaneWord::ONES;
            return;
        }
        for mask in &mut self.held {
            *mask = mask.and_not(starting);
        }
        if family.draws() {
            for lane in starting.lanes() {
                let pick = family.choose_episode(prng);
                self.held[usize::from(pick.arm)].set(lane, true);
                self.chances[lane] = pick.chance;
            }
        } else {
            for word in 0..LANE_WORDS {
                self.held[usize::from(schedule.episode_arm(word))].0[word] |= starting.0[word];
            }
        }
        for counter in [&mut self.wins, &mut self.steps, &mut self.bads] {
            counter.iter_mut().for_each(|plane| *plane = plane.and_not(starting));
        }
        if !self.costs.is_empty() {
            starting.lanes().for_each(|lane| self.costs[lane] = 0);
        }
    }
}
