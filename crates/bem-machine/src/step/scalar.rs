//! The reference: the step on plain truth values, one lane at a time, written to be read.
//!
//! It shares experts, directory and statistics with the fast forms, and nothing of how they evaluate circuits, keep
//! state or order their work. The fast forms must agree with it bit for bit. Clauses: VM-8, VM-13.

mod block;

pub use block::ReferenceBlock;

use super::{action_of, store_integers};
use crate::expert::{Expert, OutputUse};
use crate::family::{Family, Pick, STEP_BY_STEP};
use crate::memory::segment::Caller;
use crate::memory::shared::SharedMemory;
use crate::route::{Candidates, RouteView, Router};
use crate::trace::TraceEvent;
use bem_base::environment::{Bits, Outcome};
use bem_base::prng::Prng;

/// The state of one lane: one truth value per bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarLane {
    /// All bits of STATE.
    pub state: Vec<bool>,
}

impl ScalarLane {
    /// All false.
    pub fn new(family: &Family) -> ScalarLane {
        ScalarLane { state: vec![false; family.layout().state_bits()] }
    }

    /// An episode begins: everything but the observation is false.
    pub fn begin(&mut self, family: &Family) {
        self.state[family.layout().action().start..].fill(false);
    }

    /// What the world shows enters STATE.
    pub fn observe(&mut self, family: &Family, observation: &Bits) {
        for bit in family.layout().observation() {
            self.state[bit] = observation.get(bit);
        }
    }

    /// What the family's router sees of this lane.
    pub fn view<'a>(&'a self, family: &Family, shared: &'a SharedMemory) -> ScalarView<'a> {
        ScalarView { lane: self, shared, observation_bits: family.layout().observation().len() }
    }

    /// Lets an expert act; returns its counted outputs, all false when the lane mask is.
    pub fn execute(&mut self, expert: &Expert, shared: &SharedMemory) -> Vec<bool> {
        let view = shared.view(Caller::Expert);
        let mut inputs: Vec<bool> =
            expert.read().state_bits.iter().map(|bit| self.state[usize::from(*bit)]).collect();
        for field in &expert.read().shared {
            let word = view.read_address(field.address).expect("checked when the expert was built");
            inputs.extend((field.low..field.low + field.width).map(|bit| word >> bit & 1 == 1));
        }
        let outputs = expert.placed().circuit().evaluate(&inputs);
        let uses = &expert.write().outputs;
        let masked = outputs.iter().zip(uses).all(|(value, output)| *output != OutputUse::Mask || *value);
        let mut counted = Vec::new();
        for (value, output) in outputs.iter().zip(uses) {
            match output {
                OutputUse::State(bit) if masked => self.state[usize::from(*bit)] = *value,
                OutputUse::State(_) | OutputUse::Mask => {}
                OutputUse::Count => counted.push(masked && *value),
            }
        }
        counted
    }

    /// The action that stands in STATE.
    pub fn action(&self, family: &Family) -> u16 {
        let bits = &self.state[family.layout().action()];
        let number =
            bits.iter().enumerate().fold(0, |number, (bit, value)| number | u64::from(*value) << bit);
        action_of(number, family.shape().actions)
    }

    /// The outcome enters STATE.
    pub fn settle(&mut self, family: &Family, outcome: &Outcome) {
        let shape = family.shape();
        let middle = i64::from(shape.reward_min) + i64::from(shape.reward_max);
        self.state[family.layout().reward()] = middle <= 2 * i64::from(outcome.reward);
        self.state[family.layout().bad()] = outcome.bad;
    }
}

/// One lane and SHARED, as routers see them.
pub struct ScalarView<'a> {
    lane: &'a ScalarLane,
    shared: &'a SharedMemory,
    observation_bits: usize,
}

impl RouteView for ScalarView<'_> {
    fn state_bit(&self, bit: u16) -> bool {
        self.lane.state[usize::from(bit)]
    }

    fn shared_bit(&self, address: u32, bit: u8) -> bool {
        self.shared.view(Caller::FastPath).read_address(address).unwrap_or(0) >> bit & 1 == 1
    }

    fn observation(&self) -> Bits {
        let mut bits = Bits::ZERO;
        (0..self.observation_bits).for_each(|bit| bits.set(bit, self.lane.state[bit]));
        bits
    }
}

/// A whole machine of one family and one lane, step by step as the module [`super`] lists them.
#[derive(Clone, Debug)]
pub struct ReferenceMachine {
    /// The family with its statistics.
    pub family: Family,
    /// SHARED, for experts that use it.
    pub shared: SharedMemory,
    /// The lane.
    pub lane: ScalarLane,
    /// Everything that was recorded.
    pub events: Vec<TraceEvent>,
    prng: Prng,
    steps: u64,
    episode: Pick,
    episode_steps: u32,
    episode_return: i64,
    payoff_sum: i64,
    choice: (u16, Pick),
}

impl ReferenceMachine {
    /// An idle machine that draws from this register.
    pub fn new(family: Family, shared: SharedMemory, prng: Prng) -> ReferenceMachine {
        ReferenceMachine {
            lane: ScalarLane::new(&family),
            family,
            shared,
            events: Vec::new(),
            prng,
            steps: 0,
            episode: Pick::certain(STEP_BY_STEP),
            episode_steps: 0,
            episode_return: 0,
            payoff_sum: 0,
            choice: (0, Pick::certain(0)),
        }
    }

    /// Starts an episode.
    pub fn begin(&mut self) {
        self.lane.begin(&self.family);
        (self.episode_steps, self.episode_return, self.payoff_sum) = (0, 0, 0);
        self.episode = self.family.choose_episode(&mut self.prng);
    }

    /// Chooses and acts.
    pub fn act(&mut self, observation: &Bits) -> u16 {
        self.lane.observe(&self.family, observation);
        let (bucket, pick) = if usize::from(self.episode.arm) == STEP_BY_STEP {
            let mut found = Candidates::EMPTY;
            self.family.router().query(&self.lane.view(&self.family, &self.shared), &mut found);
            (found.bucket, self.family.choose(found.bucket, found.arms(), &mut self.prng))
        } else {
            (0, self.episode)
        };
        let arm = usize::from(pick.arm);
        let expert = self.family.expert(arm).expect("a chosen slot holds an expert");
        let counted = self.lane.execute(expert, &self.shared);
        store_integers(expert, true, |result| i64::from(counted[result]), &mut self.shared);
        let action = self.lane.action(&self.family);
        self.events.push(TraceEvent::Step {
            family: 0,
            bucket,
            arm: arm as u8,
            action,
            step: self.steps as u32,
            cost: expert.cost(),
        });
        self.choice = (bucket, pick);
        self.steps += 1;
        self.episode_steps += 1;
        action
    }

    /// Learns from the outcome of the last action.
    pub fn learn(&mut self, outcome: &Outcome) {
        let (bucket, pick) = self.choice;
        let arm = usize::from(pick.arm);
        let step = (self.steps - 1) as u32;
        self.lane.settle(&self.family, outcome);
        self.episode_return += i64::from(outcome.reward);
        self.payoff_sum += self.family.payoff().payoff(outcome, self.family.facts[arm].penalty);
        self.events.push(TraceEvent::Reward {
            family: 0,
            arm: arm as u8,
            step,
            reward: outcome.reward,
            done: outcome.done,
            bad: outcome.bad,
            delay: 0,
        });
        self.family.notice(outcome);
        if usize::from(self.episode.arm) == STEP_BY_STEP
            && let Some(way) = self.family.credit_pick(bucket, pick, outcome)
        {
            self.events.push(TraceEvent::Reset { family: 0, bucket, way, step });
        }
        if outcome.done {
            if self.family.has_sticky() {
                self.family.credit_episode(self.episode, self.payoff_sum);
            }
            self.events.push(TraceEvent::Episode {
                family: 0,
                arm: self.episode.arm,
                steps: self.episode_steps.min(u32::from(u16::MAX)) as u16,
                step,
                episode_return: self.episode_return.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
            });
        }
    }
}
