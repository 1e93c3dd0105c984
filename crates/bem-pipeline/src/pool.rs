//! The pool of the main machine: which expert acts in which setting.
//!
//! An expert is a machine that can be built for many settings, a rule by which actions adapt within an episode, or an agent for
//! one shape. It comes in when a unit of the main machine has learned something, its circuit proven and measured there; a setting
//! then has a route to it. At the end of a phase, and after every round of mixed learning, the pool settles: every expert is measured
//! in every setting that it can be built for, and as few of them stay as do in every setting what the best of them does there. So
//! no change can cost a setting that was learned before: an expert that would is not routed to, and one that nobody is routed to
//! leaves. Must not know specialists or units. Clauses: PIPE-1, PIPE-3; decisions D-135, D-278.

use bem_base::environment::{EnvironmentError, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_engine::agent::Agent;
use bem_engine::evaluate::Judge;
use bem_engine::start::tabled;
use bem_games::game::Game;
use bem_machine::held::Adaptation;
use bem_synth::library::Machine;
use bem_synth::policy::Policy;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An expert is as good as another in a setting where it earns at least this share of the other's score. What is asked of it on
/// seeds that nobody has seen is 0.99: half of what may be lost is left to the error of measuring.
const AS_GOOD: Fixed = Fixed::from_ratio(995, 1_000);
/// A setting keeps at least this share of the score it had.
pub const KEPT: Fixed = Fixed::from_ratio(98, 100);

/// What acts.
#[derive(Clone, Debug)]
pub(crate) enum Expert {
    /// Built anew for every setting.
    Machine(Machine),
    /// Only as it is, in worlds of this shape.
    Agent(Agent, Shape),
    /// A rule by which plain actions adapt within an episode, whatever they are.
    Rule(Adaptation),
}

impl Expert {
    /// What was learned as experts, the last of which does just what the agent does. A machine that is built to another circuit,
    /// because a guard stands before the agent, may still serve elsewhere.
    fn all_of(agent: &Agent, machine: Option<&Machine>, shape: &Shape) -> Vec<Expert> {
        let exactly = || Expert::Agent(agent.clone(), shape.clone());
        if agent.adapts() {
            return vec![if agent.is_unguarded() { Expert::Rule(agent.rule()) } else { exactly() }];
        }
        let Some(machine) = machine.cloned().or_else(|| tabled(agent.policy(), shape)) else {
            return vec![exactly()];
        };
        let built = machine.instantiate(shape).map(|built| built.policy.digest());
        let is_exact = built == Some(agent.policy().digest());
        let mut all = vec![Expert::Machine(machine)];
        if !is_exact {
            all.push(exactly());
        }
        all
    }

    fn at(&self, shape: &Shape) -> Option<Agent> {
        match self {
            Expert::Machine(machine) => Some(Agent::circuit(machine.instantiate(shape)?.policy)),
            Expert::Agent(agent, own) => (own == shape).then(|| agent.clone()),
            Expert::Rule(rule) => (usize::from(shape.actions) <= ARMS_MAX)
                .then(|| Agent::adapting(Policy::constant(shape.actions, 0), *rule, shape)),
        }
    }

    /// Whether it is the same, said in the same way.
    fn is(&self, other: &Expert) -> bool {
        match (self, other) {
            (Expert::Machine(one), Expert::Machine(other)) => one == other,
            (Expert::Rule(one), Expert::Rule(other)) => one == other,
            (Expert::Agent(one, shape), Expert::Agent(other, own)) => {
                shape == own && one.to_bytes() == other.to_bytes()
            }
            _ => false,
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
    /// The highest score that anything of the pool ever had there, or the specialist.
    pub best: Fixed,
}

/// What became of a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It came in.
    Installed,
    /// The pool has it already.
    Known,
}

/// What became of the pool when it settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Experts that others do as well as wherever they acted.
    pub replaced: usize,
    /// Newcomers that could act in settings of the pool and would cost some of them.
    pub blocked: usize,
}

/// The experts and the routes to them.
#[derive(Clone, Default)]
pub struct Pool {
    pub(crate) experts: BTreeMap<u32, Expert>,
    pub(crate) next: u32,
    pub(crate) routes: BTreeMap<String, Route>,
    /// Scores of experts by setting, none where one cannot be built for it: what settling has measured, so that it is measured once.
    pub(crate) measured: BTreeMap<String, BTreeMap<u32, Option<Fixed>>>,
}

/// Something that was just learned.
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
    /// The score that the task's specialist has in the same episodes, nothing where there is none, if the task is a setting that
    /// must have an expert.
    pub setting: Option<Fixed>,
}

impl Pool {
    /// Takes in what was learned. A setting that has no expert gets this one; what was learned elsewhere, or again, waits until
    /// the pool settles.
    pub fn install(&mut self, learnt: Learnt<'_>) -> Outcome {
        let (mut number, mut outcome) = (0, Outcome::Known);
        for newcomer in Expert::all_of(learnt.agent, learnt.machine, learnt.game.shape()) {
            let known =
                self.experts.iter().find(|(_, expert)| expert.is(&newcomer)).map(|(number, _)| *number);
            number = known.unwrap_or(self.next);
            if known.is_none() {
                self.next += 1;
                self.experts.insert(number, newcomer);
                outcome = Outcome::Installed;
            }
        }
        if let (Some(other), false) = (learnt.setting, self.routes.contains_key(learnt.task)) {
            let route = Route {
                domain: learnt.domain.to_string(),
                game: learnt.game,
                seed: learnt.seed,
                instance: learnt.instance,
                expert: number,
                score: learnt.score,
                best: learnt.score.max(other),
            };
            self.routes.insert(learnt.task.to_string(), route);
        }
        outcome
    }

    /// Routes every setting anew, over as few experts as do in every setting what the best does there; the others leave.
    pub fn settle(&mut self) -> Result<Settled, EnvironmentError> {
        self.measure()?;
        let before = self.acting();
        let served = self.served();
        let chosen = match self.is_served_by(&before, &served) {
            // Nobody is moved for nothing.
            true => {
                Some(cover(&served)).filter(|chosen| chosen.len() < before.len()).unwrap_or(before.clone())
            }
            false => cover(&served),
        };
        for (task, route) in &mut self.routes {
            let scores = &self.measured[task];
            let score = |number: &u32| scores.get(number).copied().flatten();
            let stays = chosen.contains(&route.expert) && served[&route.expert].contains(task);
            let able = chosen.iter().filter(|number| served[*number].contains(task));
            let best = able.max_by_key(|number| (score(number), std::cmp::Reverse(**number)));
            if let (false, Some(best)) = (stays, best) {
                (route.expert, route.score) = (*best, score(best).unwrap_or(Fixed::ZERO));
            }
        }
        let stay = self.acting();
        let costs = |number: &u32| {
            let mut able =
                self.measured.iter().filter(|(_, scores)| scores.get(number).is_some_and(Option::is_some));
            able.any(|(task, _)| !served[number].contains(task))
        };
        let newcomers =
            self.experts.keys().filter(|number| !before.contains(number) && !stay.contains(number));
        let blocked = newcomers.filter(|number| costs(number)).count();
        let replaced = before.difference(&stay).count();
        self.experts.retain(|number, _| stay.contains(number));
        self.measured.values_mut().for_each(|scores| scores.retain(|number, _| stay.contains(number)));
        Ok(Settled { replaced, blocked })
    }

    /// Measures every expert in every setting where that was not done before.
    fn measure(&mut self) -> Result<(), EnvironmentError> {
        for (task, route) in &mut self.routes {
            let scores = self.measured.entry(task.clone()).or_default();
            let mut judge = Judge::new(route.game.as_ref());
            for (number, expert) in &self.experts {
                if scores.contains_key(number) {
                    continue;
                }
                let score = match expert.at(route.game.shape()) {
                    Some(agent) => {
                        let mean = judge.evaluate(&agent, route.seed)?.mean;
                        Some(judge.yardstick().score(mean))
                    }
                    None => None,
                };
                scores.insert(*number, score);
            }
            let highest = scores.values().flatten().copied().max();
            route.best = highest.unwrap_or(route.best).max(route.best);
            // What acts there is measured like the others.
            route.score = scores.get(&route.expert).copied().flatten().unwrap_or(route.score);
        }
        Ok(())
    }

    /// The settings in which each expert does what the best does there; where nobody does, the best of them counts.
    fn served(&self) -> BTreeMap<u32, BTreeSet<String>> {
        let mut served: BTreeMap<u32, BTreeSet<String>> =
            self.experts.keys().map(|number| (*number, BTreeSet::new())).collect();
        for (task, route) in &self.routes {
            let scores = &self.measured[task];
            let highest = scores.values().flatten().copied().max().unwrap_or(route.score);
            let least = AS_GOOD.mul_floor(route.best).min(highest);
            for (number, score) in scores {
                if score.is_some_and(|score| least <= score)
                    && let Some(tasks) = served.get_mut(number)
                {
                    tasks.insert(task.clone());
                }
            }
            // An expert that cannot be built anew acts where it was learned.
            if scores.get(&route.expert).is_none_or(Option::is_none)
                && let Some(tasks) = served.get_mut(&route.expert)
            {
                tasks.insert(task.clone());
            }
        }
        served
    }

    fn acting(&self) -> BTreeSet<u32> {
        self.routes.values().map(|route| route.expert).collect()
    }

    fn is_served_by(&self, acting: &BTreeSet<u32>, served: &BTreeMap<u32, BTreeSet<String>>) -> bool {
        self.routes.keys().all(|task| acting.iter().any(|number| served[number].contains(task)))
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

    /// What acts in a setting, built for it.
    pub(crate) fn agent_of(&self, route: &Route) -> Option<Agent> {
        self.experts.get(&route.expert)?.at(route.game.shape())
    }
}

/// As few experts as serve all that any of them serves, greedily: always the one that serves most of what is left, the lowest number
/// of those that serve as much; then those are left out whose settings others serve.
fn cover(served: &BTreeMap<u32, BTreeSet<String>>) -> BTreeSet<u32> {
    let mut left: BTreeSet<&String> = served.values().flatten().collect();
    let mut chosen = Vec::new();
    while !left.is_empty() {
        let gain = |number: &u32| served[number].iter().filter(|task| left.contains(task)).count();
        let best = served.keys().max_by_key(|number| (gain(number), std::cmp::Reverse(**number)));
        let Some(best) = best else { break };
        left.retain(|task| !served[best].contains(*task));
        chosen.push(*best);
    }
    let all: Vec<u32> = chosen.clone();
    for number in all {
        let others = || chosen.iter().filter(|other| **other != number);
        let is_spare = served[&number].iter().all(|task| others().any(|other| served[other].contains(task)));
        if is_spare {
            chosen.retain(|other| *other != number);
        }
    }
    chosen.into_iter().collect()
}

/// The score of an agent in a game.
pub(crate) fn score_of(game: &dyn Game, agent: &Agent, seed: u64) -> Result<Fixed, EnvironmentError> {
    let mut judge = Judge::new(game);
    let mean = judge.evaluate(agent, seed)?.mean;
    Ok(judge.yardstick().score(mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_engine::learner::Settings;
    use bem_engine::solve::{Lesson, teach};
    use bem_engine::worlds::Catalog;

    fn served(lists: &[&[&str]]) -> BTreeMap<u32, BTreeSet<String>> {
        let tasks = |list: &&[&str]| list.iter().map(|task| (*task).to_string()).collect();
        (0..).zip(lists.iter().map(tasks)).collect()
    }

    fn learnt<'a>(task: &'a str, agent: &'a Agent, machine: Option<&'a Machine>, score: Fixed) -> Learnt<'a> {
        let game = Catalog.game(task, 1).unwrap();
        let setting = Some(Fixed::ONE);
        Learnt { task, domain: "aggregation", game, seed: 3, instance: 1, agent, machine, score, setting }
    }

    #[test]
    fn a_pool_settles_on_the_machine_that_serves_all_sizes_and_blocks_what_would_cost_one() {
        let learn = |task: &str| {
            let settings = Settings { seed: 1, budget: 20_000, config: Arc::default() };
            let game = Catalog.game(task, 1).unwrap();
            let lesson = Lesson { until_solved: true, ..Lesson::alone(settings) };
            teach(game.as_ref(), lesson, &mut |_| true).unwrap()
        };
        let tasks = ["majority{n=5}", "majority{n=9}"];
        let mut pool = Pool::default();
        for (task, solution) in tasks.map(|task| (task, learn(task))) {
            assert!(solution.is_solved(), "{task}");
            let (agent, machine) = (&solution.learned.agent, solution.learned.machine.as_ref());
            assert_eq!(pool.install(learnt(task, agent, machine, Fixed::ONE)), Outcome::Installed);
        }
        let settled = pool.settle().unwrap();
        assert_eq!((pool.len(), settled.blocked), (1, 0));
        assert!(pool.routes().all(|(_, route)| AS_GOOD <= route.score && route.best <= Fixed::ONE));
        // What earns less stays out, wherever it was learned.
        let poor = Agent::circuit(Policy::constant(2, 1));
        let machine = tabled(&poor.policy().clone(), Catalog.game(tasks[0], 1).unwrap().shape());
        let practised =
            Learnt { setting: None, ..learnt("majority{n=7}", &poor, machine.as_ref(), Fixed::ONE) };
        assert_eq!(pool.install(practised), Outcome::Installed);
        assert_eq!(pool.settle().unwrap(), Settled { replaced: 0, blocked: 1 });
        assert_eq!((pool.len(), pool.routes().count()), (1, 2));
    }

    #[test]
    fn a_cover_takes_the_widest_first_and_leaves_out_whom_others_make_spare() {
        assert_eq!(cover(&served(&[&["a"], &["b"], &["a", "b", "c"]])), [2].into());
        // The widest is spare once the others are there.
        assert_eq!(
            cover(&served(&[&["a", "b", "c", "d"], &["a", "b", "e"], &["c", "d", "f"]])),
            [1, 2].into()
        );
        assert_eq!(cover(&served(&[&["a"], &["a"]])), [0].into());
        assert_eq!(cover(&served(&[&[]])), [].into());
    }
}
