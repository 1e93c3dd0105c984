//! The pool of the main machine: which expert acts in which setting.
//!
//! An expert (`expert.rs`) comes in when a unit of the main machine has learned something, its circuit proven and measured there; a
//! setting then has a route to it. At the end of a phase, and after every round of mixed learning, the pool settles: every expert is
//! measured in every setting that it can be built for, under other names too where its own do not serve (`renaming.rs`), and as few
//! of them stay as do in every setting what the best of them does there. So no change can cost a setting that was learned before: an
//! expert that would is not routed to, and one that nobody is routed to leaves. A setting whose lesson failed gets the expert that was
//! measured to earn most there. Must not know specialists or units. Clauses: PIPE-1, PIPE-3; decisions D-135, D-278, D-333, D-334.

use crate::expert::Expert;
use crate::renaming::Renaming;
use crate::scoring::{AS_GOOD, ExpertScore, ExpertScores, ScoringPlace, best_of};
use bem_base::environment::EnvironmentError;
use bem_base::fixed::Fixed;
use bem_engine::agent::Agent;
use bem_engine::evaluate::Judge;
use bem_engine::solve::SOLVED;
use bem_games::game::Game;
use bem_synth::library::Machine;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A setting keeps at least this share of the score it had.
pub const KEPT: Fixed = Fixed::from_ratio(98, 100);

/// A setting that has an expert.
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
    /// Under which names it does, where these are not its own.
    pub(crate) renaming: Option<Renaming>,
    /// The score of what acts there.
    pub score: Fixed,
    /// The highest score that anything of the pool ever had there, or the specialist.
    pub best: Fixed,
}

/// A setting that has no expert, because its lesson failed.
pub(crate) struct Unserved {
    pub(crate) task: String,
    pub(crate) domain: String,
    pub(crate) game: Arc<dyn Game>,
    /// Seed of the episodes that experts are measured in there.
    pub(crate) seed: u64,
    /// Seed of the game's instance.
    pub(crate) instance: u64,
    /// The score of its specialist in these episodes; nothing where there is none.
    pub(crate) other: Fixed,
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
    /// What settling has measured, by setting, so that it is measured once.
    pub(crate) measured: BTreeMap<String, ExpertScores>,
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
                renaming: None,
                score: learnt.score,
                best: learnt.score.max(other),
            };
            // What was measured before it had an expert was in other episodes.
            self.measured.remove(learnt.task);
            self.routes.insert(learnt.task.to_string(), route);
        }
        outcome
    }

    /// Routes every setting anew, over as few experts as do in every setting what the best does there; the others leave. Settings that
    /// have no expert get what serves them.
    pub(crate) fn settle(&mut self, mut unserved: Vec<Unserved>) -> Result<Settled, EnvironmentError> {
        self.measure()?;
        for setting in &unserved {
            self.measure_unserved(setting)?;
        }
        // An expert that solves what no lesson did is worth staying for.
        unserved.retain(|setting| !self.open(setting, SOLVED));
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
            let stays = chosen.contains(&route.expert) && served[&route.expert].contains(task);
            let able = chosen.iter().filter(|number| served[*number].contains(task));
            if let (false, Some((best, found))) = (stays, best_of(scores, able)) {
                (route.expert, route.score) = (best, found.score);
                route.renaming = found.renaming.clone();
            }
        }
        let stay = self.acting();
        let costs = |number: &u32| {
            let settings = self.measured.iter().filter(|(task, _)| self.routes.contains_key(*task));
            let mut able = settings.filter(|(_, scores)| scores.get(number).is_some_and(Option::is_some));
            able.any(|(task, _)| !served[number].contains(task))
        };
        let newcomers =
            self.experts.keys().filter(|number| !before.contains(number) && !stay.contains(number));
        let blocked = newcomers.filter(|number| costs(number)).count();
        let replaced = before.difference(&stay).count();
        self.experts.retain(|number, _| stay.contains(number));
        self.measured.values_mut().for_each(|scores| scores.retain(|number, _| stay.contains(number)));
        // Whatever earns more than random play is better than nobody, and nobody stays for it alone.
        for setting in &unserved {
            self.open(setting, Fixed::from_raw(1));
        }
        Ok(Settled { replaced, blocked })
    }

    /// Measures every expert in every setting where that was not done before.
    fn measure(&mut self) -> Result<(), EnvironmentError> {
        for (task, route) in &mut self.routes {
            let scores = self.measured.entry(task.clone()).or_default();
            let acting = self.experts.get(&route.expert);
            let acting = acting.and_then(|expert| expert.at(route.game.shape(), route.renaming.as_ref()));
            let place = ScoringPlace { game: route.game.as_ref(), seed: route.seed, best: route.best };
            place.measure(&self.experts, scores, acting.as_ref())?;
            let highest = scores.values().flatten().map(|found| found.score).max();
            route.best = highest.unwrap_or(route.best).max(route.best);
            // What acts there is measured like the others.
            if let Some(Some(own)) = scores.get(&route.expert) {
                (route.score, route.renaming) = (own.score, own.renaming.clone());
            }
        }
        Ok(())
    }

    fn measure_unserved(&mut self, setting: &Unserved) -> Result<(), EnvironmentError> {
        let scores = self.measured.entry(setting.task.clone()).or_default();
        let place = ScoringPlace { game: setting.game.as_ref(), seed: setting.seed, best: setting.other };
        place.measure(&self.experts, scores, None)
    }

    /// Routes a setting without an expert to the one that was measured to earn most there, if that is at least so much.
    fn open(&mut self, setting: &Unserved, least: Fixed) -> bool {
        let Some(scores) = self.measured.get(&setting.task) else { return false };
        let found = best_of(scores, self.experts.keys()).filter(|(_, found)| least <= found.score);
        let Some((expert, ExpertScore { score, renaming })) = found else { return false };
        let route = Route {
            domain: setting.domain.clone(),
            game: Arc::clone(&setting.game),
            seed: setting.seed,
            instance: setting.instance,
            expert,
            renaming: renaming.clone(),
            score: *score,
            best: setting.other.max(*score),
        };
        self.routes.insert(setting.task.clone(), route);
        true
    }

    /// The settings in which each expert does what the best does there; where nobody does, the best of them counts.
    fn served(&self) -> BTreeMap<u32, BTreeSet<String>> {
        let mut served: BTreeMap<u32, BTreeSet<String>> =
            self.experts.keys().map(|number| (*number, BTreeSet::new())).collect();
        for (task, route) in &self.routes {
            let scores = &self.measured[task];
            let highest = scores.values().flatten().map(|found| found.score).max().unwrap_or(route.score);
            let least = AS_GOOD.mul_floor(route.best).min(highest);
            for (number, found) in scores {
                if found.as_ref().is_some_and(|found| least <= found.score)
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
        self.experts.get(&route.expert)?.at(route.game.shape(), route.renaming.as_ref())
    }
}

/// As few experts as serve all that any of them serves, greedily: always the one that serves most of what is left, the lowest number
/// of those that serve as much; then those are left out whose settings others serve.
fn cover(served: &BTreeMap<u32, BTreeSet<String>>) -> BTreeSet<u32> {
    let mut left: BTreeSet<&String> = served.values().flatten().collect();
    let mut chosen = Vec::new();
    while !left.is_empty() {
        let gain = |number: &u32| served[number].iter().filter(|task| left.contains(task)).count();
        let best = served.keys().max_by_key(|number| (gain(number), Reverse(**number)));
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
pub(crate) mod tests {
    use super::*;
    use bem_engine::learner::Settings;
    use bem_engine::solve::{Lesson, Solution, teach};
    use bem_engine::start::tabled;
    use bem_engine::worlds::Catalog;
    use bem_synth::policy::Policy;

    fn served(lists: &[&[&str]]) -> BTreeMap<u32, BTreeSet<String>> {
        let tasks = |list: &&[&str]| list.iter().map(|task| (*task).to_string()).collect();
        (0..).zip(lists.iter().map(tasks)).collect()
    }

    fn learnt<'a>(
        task: &'a str,
        agent: &'a Agent,
        machine: Option<&'a Machine>,
        instance: u64,
    ) -> Learnt<'a> {
        let game = Catalog.game(task, instance).unwrap();
        let (score, setting) = (Fixed::ONE, Some(Fixed::ONE));
        Learnt { task, domain: "aggregation", game, seed: 3, instance, agent, machine, score, setting }
    }

    fn learn(task: &str, instance: u64) -> Solution {
        let settings = Settings { seed: 1, budget: 20_000, config: Arc::default() };
        let game = Catalog.game(task, instance).unwrap();
        let lesson = Lesson { until_solved: true, ..Lesson::alone(settings) };
        let solution = teach(game.as_ref(), lesson, &mut |_| true).unwrap();
        assert!(solution.is_solved(), "{task}");
        solution
    }

    /// A pool with what was learned in each of these tasks, before it settles.
    pub(crate) fn pool_of(tasks: &[&str], instance: u64) -> Pool {
        let mut pool = Pool::default();
        for task in tasks {
            let solution = learn(task, instance);
            let (agent, machine) = (&solution.learned.agent, solution.learned.machine.as_ref());
            assert_eq!(pool.install(learnt(task, agent, machine, instance)), Outcome::Installed);
        }
        pool
    }

    fn unserved(task: &str) -> Unserved {
        let (game, domain) = (Catalog.game(task, 1).unwrap(), "aggregation".to_string());
        Unserved { task: task.to_string(), domain, game, seed: 3, instance: 1, other: Fixed::ZERO }
    }

    /// Two fields of two bits, and the same with fields and actions in another order.
    const CODINGS: [&str; 2] = ["compare{bits=2}", "compare{bits=2,scramble=fields}"];

    /// What was learned in both, in an instance in which the fields do trade places.
    pub(crate) fn pool_of_codings() -> Pool {
        let seen = |task: &str, instance: u64, seed: u64| {
            let mut world = Catalog.game(task, instance).unwrap().start();
            world.reset(seed).unwrap();
            *world.observation()
        };
        let differs = |instance: &u64| {
            (0..8).any(|seed| seen(CODINGS[0], *instance, seed) != seen(CODINGS[1], *instance, seed))
        };
        pool_of(&CODINGS, (1..100).find(differs).unwrap())
    }

    #[test]
    fn one_expert_serves_two_codings_of_a_game_under_other_names() {
        let mut pool = pool_of_codings();
        assert_eq!(pool.len(), 2);
        pool.settle(Vec::new()).unwrap();
        assert_eq!(pool.len(), 1);
        let renamed: Vec<&Route> =
            pool.routes().map(|(_, route)| route).filter(|route| route.renaming.is_some()).collect();
        assert_eq!(renamed.len(), 1);
        for (_, route) in pool.routes() {
            let agent = pool.agent_of(route).unwrap();
            assert!(SOLVED <= score_of(route.game.as_ref(), &agent, 77).unwrap(), "on seeds of its own");
        }
        // Control: under its own names the expert does not serve there.
        let plain = Route { renaming: None, ..renamed[0].clone() };
        let agent = pool.agent_of(&plain).unwrap();
        assert!(score_of(plain.game.as_ref(), &agent, 77).unwrap() < SOLVED);
    }

    #[test]
    fn experts_that_do_other_things_in_worlds_that_look_alike_both_stay() {
        let mut pool = pool_of(&["compare{bits=1}", "subtract{bits=1,form=word}"], 1);
        let routes: Vec<(String, u32)> =
            pool.routes().map(|(task, route)| (task.to_string(), route.expert)).collect();
        pool.settle(Vec::new()).unwrap();
        assert_eq!(pool.len(), 2);
        let stay = |(task, expert): &(String, u32)| pool.route(task).unwrap().expert == *expert;
        assert!(routes.iter().all(stay));
    }

    #[test]
    fn a_setting_without_an_expert_gets_the_one_that_earns_most_there_or_nobody() {
        let mut pool = pool_of(&["majority{n=5}"], 1);
        let tasks = ["majority{n=9}", "majority{n=9,relevant=3}", "bandit{arms=4}"];
        pool.settle(tasks.map(unserved).into()).unwrap();
        let score = |task: &str| pool.route(task).map(|route| route.score);
        // Of another size it is solved; where only three bits matter it is better than nobody.
        assert!(Some(SOLVED) <= score(tasks[0]));
        assert!(score(tasks[1]).is_some_and(|score| Fixed::ZERO < score && score < SOLVED));
        // Control: nothing that looks at bits can act where none are seen.
        assert_eq!((score(tasks[2]), pool.len()), (None, 1));
    }

    #[test]
    fn a_pool_settles_on_the_machine_that_serves_all_sizes_and_blocks_what_would_cost_one() {
        let tasks = ["majority{n=5}", "majority{n=9}"];
        let mut pool = pool_of(&tasks, 1);
        let settled = pool.settle(Vec::new()).unwrap();
        assert_eq!((pool.len(), settled.blocked), (1, 0));
        assert!(pool.routes().all(|(_, route)| AS_GOOD <= route.score && route.best <= Fixed::ONE));
        // What earns less stays out, wherever it was learned.
        let poor = Agent::circuit(Policy::constant(2, 1));
        let machine = tabled(&poor.policy().clone(), Catalog.game(tasks[0], 1).unwrap().shape());
        let practised = Learnt { setting: None, ..learnt("majority{n=7}", &poor, machine.as_ref(), 1) };
        assert_eq!(pool.install(practised), Outcome::Installed);
        assert_eq!(pool.settle(Vec::new()).unwrap(), Settled { replaced: 0, blocked: 1 });
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
