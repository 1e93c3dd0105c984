//! Rollouts of a family: what it would do with frozen statistics, or with one expert alone.
//!
//! The step is the machine's own reference step, so that nothing about acting is written twice. Must not know which
//! world it plays. Clauses: SCC-8, VM-13.

use crate::localize::{TracedEpisode, TracedStep};
use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_machine::config::GenesisConfig;
use bem_machine::family::{Family, STEP_BY_STEP};
use bem_machine::memory::shared::SharedMemory;
use bem_machine::route::{Candidates, Router};
use bem_machine::step::scalar::ScalarLane;

/// One step of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutStep {
    /// The bucket it was routed to.
    pub bucket: u16,
    /// The expert that acted.
    pub slot: u8,
    /// What was seen.
    pub observation: Bits,
    /// What it brought.
    pub outcome: Outcome,
}

/// One episode of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Its steps.
    pub steps: Vec<RolloutStep>,
}

impl Rollout {
    /// The sum of rewards.
    pub fn total(&self) -> i64 {
        self.steps.iter().map(|step| i64::from(step.outcome.reward)).sum()
    }

    /// Whether something happened that must not.
    pub fn is_bad(&self) -> bool {
        self.steps.iter().any(|step| step.outcome.bad)
    }

    /// The episode as proposers look at it, with losses on the family's scale.
    pub fn traced(&self, family: &Family) -> TracedEpisode {
        let traced = |step: &RolloutStep| TracedStep {
            bucket: step.bucket,
            slot: step.slot,
            loss: Fixed::from_raw(family.payoff().step_loss(&step.outcome, 0).to_raw() as i64),
            observation: step.observation,
        };
        self.steps.iter().map(traced).collect()
    }
}

/// Someone who acts as a family would and learns nothing.
#[derive(Clone, Debug)]
pub struct Performer {
    family: Family,
    only: Option<u8>,
    lane: ScalarLane,
    shared: SharedMemory,
    episode_arm: usize,
    /// A frozen family draws nothing; its choice asks for a register all the same.
    unused: Prng,
}

impl Performer {
    /// Acts as the family would if it stopped learning now and trusted what it has seen most.
    pub fn frozen(config: &GenesisConfig, family: &Family) -> Performer {
        let mut family = family.clone();
        family.make_pessimistic();
        Performer::new(config, family, None)
    }

    /// Lets one expert of the family act at every step, whatever statistics say.
    pub fn only(config: &GenesisConfig, family: &Family, slot: u8) -> Performer {
        assert!(family.expert(usize::from(slot)).is_some(), "slot {slot} is empty");
        Performer::new(config, family.clone(), Some(slot))
    }

    fn new(config: &GenesisConfig, family: Family, only: Option<u8>) -> Performer {
        let (lane, shared) = (ScalarLane::new(&family), SharedMemory::new(config));
        let unused = Prng::stream(0, "performer");
        Performer { family, only, lane, shared, episode_arm: STEP_BY_STEP, unused }
    }

    /// An episode begins.
    pub fn begin(&mut self) {
        self.lane.begin(&self.family);
        self.episode_arm = match self.only {
            None => usize::from(self.family.choose_episode(&mut self.unused).arm),
            Some(_) => STEP_BY_STEP,
        };
    }

    /// The bucket, the expert that acts, and its action.
    pub fn act(&mut self, observation: &Bits) -> (u16, u8, u16) {
        self.lane.observe(&self.family, observation);
        let mut found = Candidates::EMPTY;
        self.family.router().query(&self.lane.view(&self.family, &self.shared), &mut found);
        let bucket = found.bucket;
        let slot = match (self.only, self.episode_arm) {
            (Some(slot), _) => usize::from(slot),
            (None, STEP_BY_STEP) => {
                usize::from(self.family.choose(bucket, found.arms(), &mut self.unused).arm)
            }
            (None, arm) => arm,
        };
        let expert = self.family.expert(slot).expect("a chosen slot holds an expert");
        self.lane.execute(expert, &self.shared);
        (bucket, slot as u8, self.lane.action(&self.family))
    }

    /// What the action brought.
    pub fn see(&mut self, outcome: &Outcome) {
        self.lane.settle(&self.family, outcome);
    }

    /// Plays one episode.
    pub fn play(&mut self, world: &mut dyn Environment, seed: u64) -> Result<Rollout, EnvironmentError> {
        world.reset(seed)?;
        self.begin();
        let mut rollout = Rollout::default();
        loop {
            let observation = *world.observation();
            let (bucket, slot, action) = self.act(&observation);
            let outcome = world.step(action)?;
            self.see(&outcome);
            rollout.steps.push(RolloutStep { bucket, slot, observation, outcome });
            if outcome.done {
                return Ok(rollout);
            }
        }
    }
}
