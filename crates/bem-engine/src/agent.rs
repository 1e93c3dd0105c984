//! What acts, frozen: a circuit, or for long episodes without a context the bandit's choice that goes on learning.
//!
//! A frozen agent begins every episode in the same state. Within a long episode the choice over plain actions
//! keeps its own statistics, with change detection; they end with the episode. Clauses: VM-9, VM-16; decision D-4.

use bem_base::environment::{Bits, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_learn::bucket::Bucket;
use bem_learn::index::{ChangeParameters, Parameters};
use bem_learn::loss::PayoffRange;
use bem_synth::policy::{Player, Policy};

/// An episode that gives every action this many turns is long enough to learn in.
const TURNS_MIN: u64 = 64;

/// A policy with all statistics frozen.
#[derive(Clone, Debug)]
pub struct Agent {
    policy: Policy,
    range: Option<PayoffRange>,
}

impl Agent {
    /// A circuit that acts as it is.
    pub fn circuit(policy: Policy) -> Agent {
        Agent { policy, range: None }
    }

    /// The frozen choice over plain actions. In long episodes of a world without a context it goes on learning.
    pub fn choice(shape: &Shape, policy: Policy) -> Agent {
        let actions = u64::from(shape.actions);
        let adapts = policy.reads().is_empty()
            && policy.memory_bits() == 0
            && usize::from(shape.actions) <= ARMS_MAX
            && TURNS_MIN * actions <= u64::from(shape.horizon);
        let range = PayoffRange::new(i64::from(shape.reward_min), i64::from(shape.reward_max)).ok();
        Agent { policy, range: range.filter(|_| adapts) }
    }

    /// The circuit; of an agent that adapts, what it would do before it has learned anything.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether it goes on learning within an episode.
    pub fn adapts(&self) -> bool {
        self.range.is_some()
    }
}

/// An agent at work.
#[derive(Clone, Debug)]
pub struct Actor<'a> {
    player: Player<'a>,
    adapting: Option<(PayoffRange, Bucket)>,
    fresh: Option<Bucket>,
}

/// The index rule with its change detector.
///
/// Within one episode there is less time to explore than in a whole run, so that the weight is the lowest that is safe
/// (D-3) and the alarm comes a little earlier; measured on four arms, gap 0.2, segments of 16,000 steps.
const PARAMETERS: Parameters = Parameters {
    exploration: Fixed::from_ratio(1, 4),
    change: Some(ChangeParameters { drift: Fixed::from_ratio(1, 20), threshold: Fixed::from_int(24) }),
    ..Parameters::DEFAULT
};

impl<'a> Actor<'a> {
    /// Ready for its first episode.
    pub fn new(agent: &'a Agent) -> Actor<'a> {
        let actions = agent.policy.actions();
        let fresh = agent.range.map(|range| {
            let live = u16::MAX >> (ARMS_MAX as u16 - actions.min(ARMS_MAX as u16));
            (range, Bucket::new(&PARAMETERS, live))
        });
        let player = Player::new(&agent.policy);
        Actor { player, fresh: fresh.as_ref().map(|(_, bucket)| bucket.clone()), adapting: fresh }
    }

    /// An episode starts: private memory is cleared and statistics are as frozen.
    pub fn begin(&mut self) {
        self.player.begin();
        if let (Some((_, bucket)), Some(fresh)) = (&mut self.adapting, &self.fresh) {
            bucket.clone_from(fresh);
        }
    }

    /// The action for what is seen.
    #[inline]
    pub fn act(&mut self, observation: &Bits) -> u16 {
        match &self.adapting {
            Some((_, bucket)) => bucket.choose() as u16,
            None => self.player.act(observation),
        }
    }

    /// What the action brought.
    #[inline]
    pub fn see(&mut self, action: u16, reward: i32) {
        if let Some((range, bucket)) = &mut self.adapting {
            bucket.update(&PARAMETERS, usize::from(action), range.loss(i64::from(reward)));
        }
    }
}
