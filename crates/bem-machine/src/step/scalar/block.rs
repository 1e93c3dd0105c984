//! The reference for 256 lanes: a loop over plain lanes, with the same schedule of statistics.
//!
//! Clauses: VM-8.

use super::ScalarLane;
use crate::family::{Family, Pick, STEP_BY_STEP};
use crate::memory::shared::SharedMemory;
use crate::route::directory::RouteInput;
use crate::route::{Candidates, Router};
use crate::step::schedule::Schedule;
use crate::step::store_integers;
use bem_base::environment::{Bits, Outcome};
use bem_base::lanes::{LaneEnvironment, LaneWord, planes_for};
use bem_base::limits::{ARMS_MAX, LANES};
use bem_base::prng::Prng;
use bem_learn::bucket::Batch;
use std::collections::BTreeMap;

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
    prng: Prng,
    episode: [Pick; LANES],
    payoff_sum: [i64; LANES],
}

impl<E: LaneEnvironment> ReferenceBlock<E> {
    /// A block whose world is reset with this seed.
    pub fn new(
        family: Family,
        shared: SharedMemory,
        mut world: E,
        seed: u64,
        mut prng: Prng,
    ) -> ReferenceBlock<E> {
        let mut observation = vec![LaneWord::ZERO; family.layout().observation().len()];
        world.reset(seed, &mut observation);
        let schedule = Schedule::new(&family);
        ReferenceBlock {
            lanes: vec![ScalarLane::new(&family); LANES],
            episode: core::array::from_fn(|lane| episode_pick(&family, &schedule, lane, &mut prng)),
            schedule,
            world,
            observation,
            prng,
            payoff_sum: [0; LANES],
            family,
            shared,
        }
    }

    fn route(&self, lane: usize) -> Candidates {
        let mut found = Candidates::EMPTY;
        self.family.router().query(&self.lanes[lane].view(&self.family, &self.shared), &mut found);
        found
    }

    fn row(&self, lane: usize) -> usize {
        if self.schedule.is_grouped() {
            return usize::from(self.route(lane).bucket);
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
        let mut choices = Vec::new();
        for lane in 0..LANES {
            choices.push(if usize::from(self.episode[lane].arm) != STEP_BY_STEP {
                (0, self.episode[lane])
            } else if self.family.is_plain() {
                let row = self.row(lane);
                (row, Pick::certain(usize::from(self.schedule.row(row)[lane / 64])))
            } else {
                let found = self.route(lane);
                let pick = self.family.choose(found.bucket, found.arms(), &mut self.prng);
                (usize::from(found.bucket), pick)
            });
        }
        let arms: Vec<usize> = choices.iter().map(|(_, pick)| usize::from(pick.arm)).collect();
        for slot in 0..ARMS_MAX {
            self.run_expert(slot, &arms);
        }
        let outcome = self.take_actions();
        let results: Vec<(usize, bool)> = (0..LANES)
            .map(|lane| (arms[lane], outcome[lane].0.reward == self.family.shape().reward_max))
            .collect();
        self.learn(&choices, &outcome);
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

    fn learn(&mut self, choices: &[(usize, Pick)], outcomes: &[(Outcome, bool)]) {
        let stepwise = |lane: usize, episode: &[Pick; LANES]| usize::from(episode[lane].arm) == STEP_BY_STEP;
        for (lane, ((row, _), (outcome, _))) in choices.iter().zip(outcomes).enumerate() {
            if stepwise(lane, &self.episode) && self.family.is_plain() {
                let lost = outcome.reward != self.family.shape().reward_max;
                self.schedule.count(*row, lane / 64, lost);
                if outcome.bad {
                    self.schedule.count_bad(*row, lane / 64, lost);
                }
            }
        }
        for (outcome, _) in outcomes.iter().filter(|(outcome, _)| outcome.bad) {
            self.family.notice(outcome);
        }
        if self.schedule.is_stale(&self.family) {
            self.schedule.follow(&self.family);
        }
        if !self.family.is_plain() {
            let mut batches: BTreeMap<usize, Batch> = BTreeMap::new();
            for (lane, ((bucket, pick), (outcome, _))) in choices.iter().zip(outcomes).enumerate() {
                if stepwise(lane, &self.episode) {
                    let arm = usize::from(pick.arm);
                    let loss = self.family.payoff().step_loss(outcome, self.family.facts[arm].penalty);
                    batches.entry(*bucket).or_default().record(arm, loss);
                    self.family.record_pick(*bucket, *pick, loss);
                }
            }
            for (bucket, batch) in batches {
                self.family.credit_batch(bucket, &batch);
            }
        }
        for (lane, ((_, pick), (outcome, done))) in choices.iter().zip(outcomes).enumerate() {
            self.lanes[lane].settle(&self.family, outcome);
            let penalty = self.family.facts[usize::from(pick.arm)].penalty;
            self.payoff_sum[lane] += self.family.payoff().payoff(outcome, penalty);
            if *done {
                self.lanes[lane].begin(&self.family);
            }
        }
        self.end_episodes(outcomes);
        self.schedule.advance(&mut self.family);
    }

    /// All episodes that ended are counted before any lane chooses for its next one.
    fn end_episodes(&mut self, outcomes: &[(Outcome, bool)]) {
        let ended: Vec<usize> = (0..LANES).filter(|lane| outcomes[*lane].1).collect();
        for &lane in &ended {
            if self.family.has_sticky() {
                self.schedule.count_episode(&mut self.family, self.episode[lane], self.payoff_sum[lane]);
            }
            self.payoff_sum[lane] = 0;
        }
        for &lane in &ended {
            self.episode[lane] = episode_pick(&self.family, &self.schedule, lane, &mut self.prng);
        }
    }
}

/// The arm for a lane's next episode: drawn, or read from the plan.
fn episode_pick(family: &Family, schedule: &Schedule, lane: usize, prng: &mut Prng) -> Pick {
    match (family.has_sticky(), family.draws()) {
        (false, _) => Pick::certain(STEP_BY_STEP),
        (true, true) => family.choose_episode(prng),
        (true, false) => Pick::certain(usize::from(schedule.episode_arm(lane / 64))),
    }
}
