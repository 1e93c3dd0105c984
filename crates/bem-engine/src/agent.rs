//! What acts, frozen: a circuit, or for long episodes without a context the bandit's choice that goes on learning.
//!
//! A frozen agent begins every episode in the same state. Within a long episode the choice over plain actions
//! keeps its own statistics, with change detection; they end with the episode. Where the log shows that the best action
//! changes, the levels it shows are part of what is frozen. Clauses: VM-9, VM-16; decision D-4.

use bem_base::environment::{Bits, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_learn::bucket::Bucket;
use bem_learn::index::{ChangeParameters, Parameters};
use bem_learn::loss::PayoffRange;
use bem_learn::switching::{Levels, Pull, Switching};
use bem_synth::experience::{Episode, Experience, Step};
use bem_synth::policy::{Player, Policy};

/// An episode that gives every action this many turns is long enough to learn in.
const TURNS_MIN: u64 = 64;

/// A policy with all statistics frozen.
#[derive(Clone, Debug)]
pub struct Agent {
    policy: Policy,
    adaptation: Option<Adaptation>,
}

/// How the choice goes on learning within an episode.
#[derive(Clone, Copy, Debug)]
struct Adaptation {
    range: PayoffRange,
    actions: u16,
    /// What the log says about worlds whose best action changes; without it the index rule adapts.
    levels: Option<Levels>,
}

impl Adaptation {
    fn new(shape: &Shape, policy: &Policy, log: &Experience) -> Option<Adaptation> {
        let turns = u64::from(shape.horizon) / u64::from(shape.actions);
        if !policy.reads().is_empty() || policy.memory_bits() != 0 || turns < TURNS_MIN {
            return None;
        }
        let range = PayoffRange::new(i64::from(shape.reward_min), i64::from(shape.reward_max)).ok()?;
        let pulls = |episode: &Episode| -> Vec<Pull> {
            let pull = |step: &Step| (step.action, range.loss(i64::from(step.reward)));
            episode.steps.iter().map(pull).collect()
        };
        let sequences: Vec<Vec<Pull>> = log.episodes().map(pulls).collect();
        let levels = Levels::fit(usize::from(shape.actions), &sequences);
        let adapts = levels.is_some() || usize::from(shape.actions) <= ARMS_MAX;
        adapts.then_some(Adaptation { range, actions: shape.actions, levels })
    }

    fn begin(&self) -> Adapting {
        match self.levels {
            Some(levels) => Adapting::Switching(Switching::new(levels, usize::from(self.actions))),
            None => {
                let live = u16::MAX >> (ARMS_MAX as u16 - self.actions.min(ARMS_MAX as u16));
                Adapting::Index(Box::new(Bucket::new(&PARAMETERS, live)))
            }
        }
    }
}

impl Agent {
    /// A circuit that acts as it is.
    pub fn circuit(policy: Policy) -> Agent {
        Agent { policy, adaptation: None }
    }

    /// The frozen choice over plain actions. In long episodes of a world without a context it goes on learning, with
    /// what the log says about changes.
    pub fn choice(shape: &Shape, policy: Policy, log: &Experience) -> Agent {
        let adaptation = Adaptation::new(shape, &policy, log);
        Agent { policy, adaptation }
    }

    /// The circuit; of an agent that adapts, what it would do before it has learned anything.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether it goes on learning within an episode.
    pub fn adapts(&self) -> bool {
        self.adaptation.is_some()
    }

    /// Whether it knows from the log that the best action changes, and at which levels.
    pub fn levels(&self) -> Option<Levels> {
        self.adaptation.and_then(|adaptation| adaptation.levels)
    }
}

/// An agent at work.
#[derive(Clone, Debug)]
pub struct Actor<'a> {
    player: Player<'a>,
    adaptation: Option<Adaptation>,
    adapting: Option<Adapting>,
}

/// Statistics of the present episode.
#[derive(Clone, Debug)]
enum Adapting {
    Index(Box<Bucket>),
    Switching(Switching),
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
        let adapting = agent.adaptation.as_ref().map(Adaptation::begin);
        Actor { player: Player::new(&agent.policy), adaptation: agent.adaptation, adapting }
    }

    /// An episode starts: private memory is cleared and statistics are as frozen.
    pub fn begin(&mut self) {
        self.player.begin();
        self.adapting = self.adaptation.as_ref().map(Adaptation::begin);
    }

    /// The action for what is seen.
    #[inline]
    pub fn act(&mut self, observation: &Bits) -> u16 {
        match &self.adapting {
            Some(Adapting::Index(bucket)) => bucket.choose() as u16,
            Some(Adapting::Switching(rule)) => rule.choose() as u16,
            None => self.player.act(observation),
        }
    }

    /// What the action brought.
    #[inline]
    pub fn see(&mut self, action: u16, reward: i32) {
        let Some(Adaptation { range, .. }) = &self.adaptation else { return };
        let loss = range.loss(i64::from(reward));
        match &mut self.adapting {
            Some(Adapting::Index(bucket)) => {
                bucket.update(&PARAMETERS, usize::from(action), loss);
            }
            Some(Adapting::Switching(rule)) => rule.update(usize::from(action), loss),
            None => {}
        }
    }
}
