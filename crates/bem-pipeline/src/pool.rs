//! The pool of the main machine: which expert acts in which setting.
//!
//! An expert is a machine that can be built for many settings, or an agent for one. It comes in when a unit of the main machine
//! has learned a setting, its circuit proven and measured there. If an expert of the pool does as well in the new setting, that
//! one gets the route and nothing comes in; if the newcomer does as well as an older expert wherever that one acts, the older
//! one leaves. A change that would cost a setting that was learned before is blocked: where the pool is full, a newcomer must
//! replace somebody, and nobody may be replaced whose settings would lose more than two in a hundred. Must not know specialists
//! or units. Clauses: PIPE-1, PIPE-3; decision D-135.

use bem_base::environment::{EnvironmentError, Shape};
use bem_base::fixed::Fixed;
use bem_engine::agent::Agent;
use bem_engine::evaluate::Judge;
use bem_engine::start::tabled;
use bem_games::game::Game;
use bem_synth::library::Machine;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An expert as good as another earns at least this share of its score.
const AS_GOOD: Fixed = Fixed::from_ratio(99, 100);
/// A setting keeps at least this share of the score it had.
pub const KEPT: Fixed = Fixed::from_ratio(98, 100);

/// What acts.
#[derive(Clone, Debug)]
pub(crate) enum Expert {
    /// Built anew for every setting.
    Machine(Machine),
    /// Only as it is, in worlds of this shape.
    Agent(Agent, Shape),
}

impl Expert {
    fn of(agent: &Agent, machine: Option<&Machine>, shape: &Shape) -> Expert {
        let machine = machine.cloned().filter(|_| !agent.adapts());
        let stated = || tabled(agent.policy(), shape).filter(|_| !agent.adapts());
        match machine.or_else(stated) {
            Some(machine) => Expert::Machine(machine),
            None => Expert::Agent(agent.clone(), shape.clone()),
        }
    }

    fn at(&self, shape: &Shape) -> Option<Agent> {
        match self {
            Expert::Machine(machine) => Some(Agent::circuit(machine.instantiate(shape)?.policy)),
            Expert::Agent(agent, own) => (own == shape).then(|| agent.clone()),
        }
    }
}

/// A setting that the main machine has learned.
#[derive(Clone)]
pub struct Route {
    /// Its domain.
    pub domain: String,
    /// What it is played in.
    pub(crate) game: Arc<dyn Game>,
    pub(crate) seed: u64,
    /// Seed of the game's instance.
    pub(crate) instance: u64,
    /// Which expert acts there.
    pub(crate) expert: u32,
    /// The score of what acts there.
    pub score: Fixed,
    /// The highest score that it ever had there.
    pub best: Fixed,
}

/// What became of a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It came in, and so many older experts left.
    Installed(usize),
    /// An expert of the pool does as well.
    Known,
    /// It would cost a setting that was learned before.
    Blocked,
}

/// The number of an expert, and for every setting where it acts the score that a newcomer has there.
type Replaceable = (u32, Vec<(String, Fixed)>);

/// The experts and the routes to them. A new one has no room.
#[derive(Clone, Default)]
pub struct Pool {
    pub(crate) capacity: usize,
    pub(crate) experts: BTreeMap<u32, Expert>,
    pub(crate) next: u32,
    pub(crate) routes: BTreeMap<String, Route>,
}

/// A setting that was just learned.
pub struct Learnt<'a> {
    /// The task's text.
    pub task: &'a str,
    /// Its domain.
    pub domain: &'a str,
    /// The game.
    pub game: Arc<dyn Game>,
    /// Seed of the evaluation.
    pub seed: u64,
    /// Seed of the game's instance.
    pub instance: u64,
    /// What acts.
    pub agent: &'a Agent,
    /// The machine behind it.
    pub machine: Option<&'a Machine>,
    /// Its score.
    pub score: Fixed,
}

impl Pool {
    /// Makes room for at least so many.
    pub fn widen(&mut self, capacity: usize) {
        self.capacity = self.capacity.max(capacity);
    }

    /// Takes in what was learned in a setting, if that costs nobody anything.
    pub fn install(&mut self, learnt: Learnt<'_>) -> Result<Outcome, EnvironmentError> {
        let shape = learnt.game.shape().clone();
        let route = |expert, score, best| Route {
            domain: learnt.domain.to_string(),
            game: Arc::clone(&learnt.game),
            seed: learnt.seed,
            instance: learnt.instance,
            expert,
            score,
            best,
        };
        let before = self.routes.get(learnt.task).map(|route| route.best);
        let best = before.unwrap_or(learnt.score).max(learnt.score);
        for (number, expert) in &self.experts {
            let Some(agent) = expert.at(&shape) else { continue };
            let score = score_of(learnt.game.as_ref(), &agent, learnt.seed)?;
            if AS_GOOD.mul_floor(learnt.score) <= score {
                self.routes.insert(learnt.task.to_string(), route(*number, score, best.max(score)));
                return Ok(Outcome::Known);
            }
        }
        let newcomer = Expert::of(learnt.agent, learnt.machine, &shape);
        let replaced = self.replaceable(&newcomer, learnt.task)?;
        if self.capacity <= self.experts.len() - replaced.len() {
            return Ok(Outcome::Blocked);
        }
        let number = self.next;
        self.next += 1;
        for (old, scores) in &replaced {
            self.experts.remove(old);
            for (task, score) in scores {
                let route = self.routes.get_mut(task).expect("a route of the pool");
                (route.expert, route.score) = (number, *score);
            }
        }
        self.experts.insert(number, newcomer);
        self.routes.insert(learnt.task.to_string(), route(number, learnt.score, best));
        self.experts.retain(|number, _| self.routes.values().any(|route| route.expert == *number));
        Ok(Outcome::Installed(replaced.len()))
    }

    /// The experts that the newcomer does as well as wherever they act, with its scores there.
    fn replaceable(&self, newcomer: &Expert, task: &str) -> Result<Vec<Replaceable>, EnvironmentError> {
        let mut all = Vec::new();
        'experts: for number in self.experts.keys() {
            let mut scores = Vec::new();
            for (other, route) in
                self.routes.iter().filter(|(other, route)| route.expert == *number && *other != task)
            {
                let Some(agent) = newcomer.at(route.game.shape()) else { continue 'experts };
                let score = score_of(route.game.as_ref(), &agent, route.seed)?;
                if score < KEPT.mul_floor(route.best) {
                    continue 'experts;
                }
                scores.push((other.clone(), score));
            }
            all.push((*number, scores));
        }
        Ok(all)
    }

    /// How many experts there are.
    pub fn len(&self) -> usize {
        self.experts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.experts.is_empty()
    }

    /// Every setting with what acts there.
    pub fn routes(&self) -> impl Iterator<Item = (&str, &Route)> {
        self.routes.iter().map(|(task, route)| (task.as_str(), route))
    }

    /// The setting of a task.
    pub fn route(&self, task: &str) -> Option<&Route> {
        self.routes.get(task)
    }

    /// For every domain, the share of what it had that its worst setting keeps.
    pub fn kept(&self) -> BTreeMap<String, Fixed> {
        let mut kept: BTreeMap<String, Fixed> = BTreeMap::new();
        for route in self.routes.values().filter(|route| Fixed::ZERO < route.best) {
            let share = route.score.div_floor(route.best);
            let least = kept.entry(route.domain.clone()).or_insert(share);
            *least = (*least).min(share);
        }
        kept
    }
}

/// The score of an agent in a game.
fn score_of(game: &dyn Game, agent: &Agent, seed: u64) -> Result<Fixed, EnvironmentError> {
    let mut judge = Judge::new(game);
    let mean = judge.evaluate(agent, seed)?.mean;
    Ok(judge.yardstick().score(mean))
}
