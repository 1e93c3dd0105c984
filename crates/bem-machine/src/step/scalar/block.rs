//! The reference for 256 lanes: a loop over plain lanes, with the same schedule of statistics.
//!
//! Clauses: VM-8.

use super::ScalarLane;
use crate::family::{Family, STEP_BY_STEP};
use crate::memory::shared::SharedMemory;
use crate::route::directory::RouteInput;
use crate::step::schedule::Schedule;
use crate::step::store_integers;
use bem_base::environment::{Bits, Outcome};
use bem_base::lanes::{LaneEnvironment, LaneWord, planes_for};
use bem_base::limits::{ARMS_MAX, LANES};

/// 256 plain lanes of one family.
pub struct ReferenceBlock<E> {
    /// The family with its statistics.
    pub family: Family,
    /// SHARED, for experts that use it.
    pub shared: SharedMemory,
    /// The lanes.
    pub lanes: Vec<ScalarLane>,
    /// The schedule of statistics.
    pub schedule: Schedule,
    world: E,
    observation: Vec<LaneWord>,
    episode_arm: [usize; LANES],
    payoff_sum: [i64; LANES],
}

impl<E: LaneEnvironment> ReferenceBlock<E> {
    /// A block whose world is reset with this seed.
    pub fn new(family: Family, shared: SharedMemory, mut world: E, seed: u64) -> ReferenceBlock<E> {
        let mut observation = vec![LaneWord::ZERO; family.layout().observation().len()];
        world.reset(seed, &mut observation);
        let schedule = Schedule::new(&family);
        let arm = |lane: usize| usize::from(schedule.episode_arm(lane / 64));
        let episode_arm =
            core::array::from_fn(|lane| if family.has_sticky() { arm(lane) } else { STEP_BY_STEP });
        ReferenceBlock {
            lanes: vec![ScalarLane::new(&family); LANES],
            episode_arm,
            schedule,
            world,
            observation,
            payoff_sum: [0; LANES],
            family,
            shared,
        }
    }

    fn row(&self, lane: usize) -> usize {
        if self.schedule.is_grouped() {
            return usize::from(self.lanes[lane].bucket(&self.family, &self.shared));
        }
        let signature = self.family.directory().signature(|input| match input {
            RouteInput::State(bit) => self.lanes[lane].state[usize::from(bit)],
            RouteInput::Shared { .. } => false,
        });
        signature as usize
    }

    /// One step of every lane; returns the arm that each lane played and what it won.
    pub fn step(&mut self) -> Vec<(usize, bool)> {
        for (lane, scalar) in self.lanes.iter_mut().enumerate() {
            let mut bits = Bits::ZERO;
            for (bit, plane) in self.observation.iter().enumerate() {
                bits.set(bit, plane.get(lane));
            }
            scalar.observe(&self.family, &bits);
        }
        let rows: Vec<usize> = (0..LANES).map(|lane| self.row(lane)).collect();
        let arms: Vec<usize> = (0..LANES)
            .map(|lane| match self.episode_arm[lane] {
                STEP_BY_STEP => usize::from(self.schedule.row(rows[lane])[lane / 64]),
                arm => arm,
            })
            .collect();
        for slot in 0..ARMS_MAX {
            self.run_expert(slot, &arms);
        }
        let outcome = self.take_actions();
        let results: Vec<(usize, bool)> = (0..LANES)
            .map(|lane| (arms[lane], outcome[lane].0.reward == self.family.shape().reward_max))
            .collect();
        self.learn(&rows, &arms, &outcome);
        results
    }

    /// Experts run in order of their slots; each sees SHARED as those before it left it.
    fn run_expert(&mut self, slot: usize, arms: &[usize]) {
        if !arms.contains(&slot) {
            return;
        }
        let expert = self.family.expert(slot).expect("a chosen slot holds an expert");
        let mut counts = vec![0i64; expert.write().outputs.len()];
        for (scalar, _) in self.lanes.iter_mut().zip(arms).filter(|(_, arm)| **arm == slot) {
            for (count, value) in counts.iter_mut().zip(scalar.execute(expert, &self.shared)) {
                *count += i64::from(value);
            }
        }
        store_integers(expert, true, |result| counts[result], &mut self.shared);
    }

    /// The world takes all actions; every lane is told its outcome, and whether its episode ended.
    fn take_actions(&mut self) -> Vec<(Outcome, bool)> {
        let shape = self.family.shape();
        let mut action = vec![LaneWord::ZERO; planes_for(usize::from(shape.actions))];
        for (lane, scalar) in self.lanes.iter().enumerate() {
            let number = scalar.action(&self.family);
            for (bit, plane) in action.iter_mut().enumerate() {
                plane.set(lane, number >> bit & 1 == 1);
            }
        }
        let outcome = self.world.step(&action, LaneWord::ONES, &mut self.observation);
        let of_lane = |lane: usize| Outcome {
            reward: if outcome.reward.get(lane) { shape.reward_max } else { shape.reward_min },
            done: outcome.done.get(lane),
            bad: outcome.bad.get(lane),
        };
        (0..LANES).map(|lane| (of_lane(lane), outcome.done.get(lane))).collect()
    }

    fn learn(&mut self, rows: &[usize], arms: &[usize], outcomes: &[(Outcome, bool)]) {
        let lost = |outcome: &Outcome| outcome.reward != self.family.shape().reward_max;
        for lane in 0..LANES {
            let (outcome, _) = &outcomes[lane];
            if self.episode_arm[lane] == STEP_BY_STEP {
                self.schedule.count(rows[lane], lane / 64, lost(outcome));
                if outcome.bad {
                    self.schedule.count_bad(rows[lane], lane / 64, lost(outcome));
                }
            }
        }
        for (outcome, _) in outcomes.iter().filter(|(outcome, _)| outcome.bad) {
            self.family.notice(outcome);
        }
        if self.schedule.is_stale(&self.family) {
            self.schedule.follow(&self.family);
        }
        for lane in 0..LANES {
            let (outcome, done) = &outcomes[lane];
            self.lanes[lane].settle(&self.family, outcome);
            let penalty = self.family.facts[arms[lane]].penalty;
            self.payoff_sum[lane] += self.family.payoff().payoff(outcome, penalty);
            if *done {
                self.lanes[lane].begin(&self.family);
                if self.family.has_sticky() {
                    self.schedule.count_episode(&self.family, self.episode_arm[lane], self.payoff_sum[lane]);
                    self.episode_arm[lane] = usize::from(self.schedule.episode_arm(lane / 64));
                }
                self.payoff_sum[lane] = 0;
            }
        }
        self.schedule.advance(&mut self.family);
    }
}
