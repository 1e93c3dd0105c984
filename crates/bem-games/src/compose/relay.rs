//! Playing parts one at a time: what SEQ, NEST, INTERLEAVE, REPEAT, BRANCH and LOOP share.
//!
//! An operator only says, as an [`Order`], which run is on turn next and what its label shows. A run is one
//! episode of one part. Must not know which operator it serves. Clauses: GLE-3.

use super::operator::{
    Extent, Plays, any_reward, common_actions, copy_bits, join_fields, joined_bits, own_seed, region_lows,
    run_seed, sum_steps, sum_values,
};
use crate::draw::Dice;
use crate::game::{Game, GameError, Oracle, Steps, Value};
use crate::rules::bits_for;
use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use std::sync::Arc;

/// Who is on turn.
pub(super) trait Order: Clone + Send + Sync + 'static {
    /// What changes during an episode.
    type State: Clone + Send;

    /// The start of an episode.
    fn begin(&self, dice: &mut Dice) -> Self::State;
    /// The run on turn, or none when the episode is over.
    fn turn(&self, state: &Self::State) -> Option<usize>;
    /// The run on turn took a step; `ended` says that it was its last.
    fn advance(&self, state: &mut Self::State, ended: bool, dice: &mut Dice);
    /// What the operator's own field shows.
    fn label(&self, state: &Self::State) -> u64;
}

/// What an operator knows about the whole.
pub(super) struct Plan<O> {
    pub name: &'static str,
    pub order: O,
    pub parts: Vec<Arc<dyn Game>>,
    /// The part that each run plays.
    pub runs: Vec<usize>,
    pub label_bits: usize,
    /// How often each part is played.
    pub plays: Vec<Plays>,
    pub horizon: u64,
    pub returns: (i64, i64),
}

impl<O: Order> Plan<O> {
    /// Every part once.
    pub fn each_once(name: &'static str, order: O, parts: Vec<Arc<dyn Game>>) -> Plan<O> {
        Plan {
            name,
            order,
            runs: (0..parts.len()).collect(),
            label_bits: bits_for(parts.len() as u64),
            plays: vec![Plays::ONCE; parts.len()],
            horizon: horizon_of(&parts),
            returns: returns_of(&parts, 1),
            parts,
        }
    }

    /// The only part so many times.
    pub fn again(name: &'static str, order: O, parts: Vec<Arc<dyn Game>>, times: u64) -> Plan<O> {
        Plan {
            name,
            order,
            runs: vec![0; times as usize],
            label_bits: bits_for(times),
            plays: vec![Plays { numerator: times, denominator: 1 }],
            horizon: horizon_of(&parts) * times,
            returns: returns_of(&parts, times as i64),
            parts,
        }
    }
}

/// The game that plays the parts by this plan.
pub(super) fn build<O: Order>(plan: Plan<O>) -> Result<Arc<dyn Game>, GameError> {
    let parts = &plan.parts;
    let extent = Extent {
        observation_bits: joined_bits(plan.label_bits, parts),
        actions: common_actions(parts),
        horizon: plan.horizon,
        rewards: any_reward(parts),
        returns: plan.returns,
        fields: join_fields(plan.label_bits, parts),
    };
    let shape = extent.to_shape(plan.name)?;
    let lows = region_lows(plan.label_bits, parts);
    Ok(Arc::new(Relay(Arc::new(Table { plan, shape, lows }))))
}

/// The parts with their order of play, and where what is seen of each begins in the joint observation.
struct Table<O> {
    plan: Plan<O>,
    shape: Shape,
    lows: Vec<usize>,
}

struct Relay<O>(Arc<Table<O>>);

impl<O: Order> Relay<O> {
    fn episode(&self) -> Episode<O> {
        let worlds = self.0.plan.runs.iter().map(|_| None).collect();
        Episode {
            table: Arc::clone(&self.0),
            seed: 0,
            dice: Dice::new(0),
            state: None,
            worlds,
            observation: Bits::ZERO,
        }
    }
}

impl<O: Order> Game for Relay<O> {
    fn shape(&self) -> &Shape {
        &self.0.shape
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        Box::new(self.episode())
    }

    fn optimum(&self) -> Value {
        sum_values(&self.0.plan.parts, &self.0.plan.plays, |part| part.optimum())
    }

    fn random(&self) -> Value {
        sum_values(&self.0.plan.parts, &self.0.plan.plays, |part| part.random())
    }

    fn steps(&self) -> Steps {
        sum_steps(&self.0.plan.parts, &self.0.plan.plays)
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        let oracles = self.0.plan.runs.iter().map(|_| None).collect();
        Box::new(RelayOracle { shadow: self.episode(), oracles })
    }
}

/// The running world: whose turn it is, and the worlds that have begun.
struct Episode<O: Order> {
    table: Arc<Table<O>>,
    seed: u64,
    dice: Dice,
    /// None when no episode is under way.
    state: Option<O::State>,
    /// The world of each run that has begun.
    worlds: Vec<Option<Box<dyn Environment + Send>>>,
    observation: Bits,
}

impl<O: Order> Episode<O> {
    fn turn(&self) -> Option<usize> {
        self.state.as_ref().and_then(|state| self.table.plan.order.turn(state))
    }

    /// Brings the run on turn to the table and shows what it sees.
    fn show(&mut self) -> Result<(), EnvironmentError> {
        self.observation = Bits::ZERO;
        let (Some(run), Some(state)) = (self.turn(), &self.state) else {
            return Ok(());
        };
        let plan = &self.table.plan;
        let label = plan.order.label(state);
        let part = plan.runs[run];
        let world = match &mut self.worlds[run] {
            Some(world) => world,
            empty => {
                let mut world = plan.parts[part].start();
                world.reset(run_seed(self.seed, run))?;
                empty.insert(world)
            }
        };
        self.observation.set_field(0, plan.label_bits, label);
        let width = usize::from(plan.parts[part].shape().observation_bits);
        copy_bits(&mut self.observation, self.table.lows[part], world.observation(), width);
        Ok(())
    }

    /// A step, with what the part itself answered.
    fn step_run(&mut self, action: u16) -> Result<(Outcome, Outcome), EnvironmentError> {
        let shape = &self.table.shape;
        if shape.actions <= action {
            return Err(EnvironmentError::ActionOutOfRange { action, last: shape.actions - 1 });
        }
        let run = self.turn().ok_or(EnvironmentError::EpisodeOver)?;
        let actions = self.table.plan.parts[self.table.plan.runs[run]].shape().actions;
        let world = self.worlds[run].as_mut().expect("the run on turn has begun");
        let inner = world.step(action % actions)?;
        let state = self.state.as_mut().expect("an episode is under way");
        self.table.plan.order.advance(state, inner.done, &mut self.dice);
        self.show()?;
        let done = self.turn().is_none();
        if done {
            self.state = None;
        }
        Ok((Outcome { done, ..inner }, inner))
    }
}

impl<O: Order> Environment for Episode<O> {
    fn shape(&self) -> &Shape {
        &self.table.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.seed = seed;
        self.dice = Dice::new(own_seed(seed));
        self.state = Some(self.table.plan.order.begin(&mut self.dice));
        self.worlds.fill_with(|| None);
        self.show()
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        self.step_run(action).map(|(outcome, _)| outcome)
    }
}

/// Follows the episode with one oracle per run.
struct RelayOracle<O: Order> {
    shadow: Episode<O>,
    oracles: Vec<Option<Box<dyn Oracle>>>,
}

impl<O: Order> Oracle for RelayOracle<O> {
    fn begin(&mut self, seed: u64) {
        self.shadow.reset(seed).expect("games made of parts reset as their parts do");
        self.oracles.fill_with(|| None);
    }

    fn act(&mut self, _observation: &Bits) -> u16 {
        let run = self.shadow.turn().expect("an oracle is asked during an episode");
        let part = &self.shadow.table.plan.parts[self.shadow.table.plan.runs[run]];
        let oracle = match &mut self.oracles[run] {
            Some(oracle) => oracle,
            empty => {
                let mut oracle = part.oracle();
                oracle.begin(run_seed(self.shadow.seed, run));
                empty.insert(oracle)
            }
        };
        let world = self.shadow.worlds[run].as_ref().expect("the run on turn has begun");
        oracle.act(world.observation())
    }

    fn see(&mut self, action: u16, _outcome: &Outcome) {
        // An action may come before the oracle was ever asked; its run then needs its oracle all the same.
        let run = self.shadow.turn().expect("an action is taken during an episode");
        let part = Arc::clone(&self.shadow.table.plan.parts[self.shadow.table.plan.runs[run]]);
        let seed = run_seed(self.shadow.seed, run);
        let oracle = self.oracles[run].get_or_insert_with(|| {
            let mut oracle = part.oracle();
            oracle.begin(seed);
            oracle
        });
        let (_, inner) = self.shadow.step_run(action).expect("the shadow follows the real episode");
        oracle.see(action % part.shape().actions, &inner);
    }
}

/// Returns of parts that are all played the given number of times.
pub(super) fn returns_of(parts: &[Arc<dyn Game>], times: i64) -> (i64, i64) {
    let sum = |side: fn(&Shape) -> i64| {
        let each = parts.iter().map(|part| side(part.shape()).saturating_mul(times));
        each.fold(0, i64::saturating_add)
    };
    (sum(|shape| shape.return_min), sum(|shape| shape.return_max))
}

/// Steps of all parts together.
pub(super) fn horizon_of(parts: &[Arc<dyn Game>]) -> u64 {
    parts.iter().map(|part| u64::from(part.shape().horizon)).sum()
}
