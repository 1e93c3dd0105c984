//! A specialist: the machine of one domain, on its way up, and what it leaves for others. Clauses: PIPE-1, PIPE-2.

use bem_base::environment::Shape;
use bem_engine::agent::Agent;
use bem_engine::climb::{Climb, Climbed, Track, UnitResult};
use bem_engine::start::machine_of;
use bem_engine::world_file::distilled::Taught;
use bem_synth::experience::Episode;
use bem_synth::library::Machine;
use std::collections::{BTreeMap, BTreeSet};

/// A specialist: the machine of one domain.
#[derive(Clone, Debug)]
pub struct Specialist {
    /// Its domain.
    pub domain: String,
    /// Its way up.
    pub climb: Climb,
    /// Episodes of every task with the seed of their instance, the latest last.
    pub(crate) gathered: BTreeMap<String, Vec<(u64, Episode)>>,
    /// The rungs that it has solved, by task.
    pub(crate) mastered: BTreeMap<String, Mastered>,
}

/// What a rung does not keep of a solution, and others need.
#[derive(Clone, Debug)]
pub(crate) struct Mastered {
    /// Seed of the instance.
    pub(crate) instance: u64,
    /// The machine that acts, where one does.
    pub(crate) machine: Option<Machine>,
    /// What acts, where its circuit alone does not say it.
    pub(crate) adapting: Option<Agent>,
}

impl Specialist {
    pub(crate) fn take(&mut self, result: &UnitResult) {
        self.climb.take(result);
        let task = &result.unit.task;
        let played = self.gathered.entry(task.clone()).or_default();
        played.extend(result.solution.gathered.iter().map(|episode| (result.seed, episode.clone())));
        if result.unit.climbs() && result.solution.is_solved() {
            let learned = &result.solution.learned;
            let mastered = Mastered {
                instance: result.seed,
                machine: learned.machine.clone().filter(|_| !learned.agent.adapts()),
                adapting: Some(learned.agent.clone()).filter(Agent::adapts),
            };
            self.mastered.insert(task.clone(), mastered);
        }
    }

    /// The rungs of a family that it has solved, in order.
    pub fn solved(&self, track: &Track) -> Vec<String> {
        track.climbed.iter().filter(|climbed| climbed.solved).map(|climbed| climbed.task.clone()).collect()
    }

    /// What acts in a task that it has solved, with its instance and the score that was measured when it was.
    pub(crate) fn agent_of(&self, task: &str) -> Option<(Agent, u64)> {
        let mastered = self.mastered.get(task)?;
        let tracks = self.climb.tracks().iter();
        let climbed = tracks.flat_map(|track| &track.climbed).rfind(|one| one.solved && one.task == task)?;
        let agent = mastered.adapting.clone().unwrap_or_else(|| Agent::circuit(climbed.policy.clone()));
        Some((agent, mastered.instance))
    }

    /// What it leaves of a task in worlds of this shape: what it acts with, and the better half of its episodes, at least as
    /// good as the middle one of them.
    pub(crate) fn taught(&self, track: &Track, task: &str, shape: &Shape, hands_on: bool) -> Taught {
        let climbed = track.climbed.iter().rev().find(|climbed| climbed.solved && climbed.task == task);
        let policy = climbed.expect("a solved rung has its circuit").policy.clone();
        let mastered = &self.mastered[task];
        let stated = || machine_of(&policy, shape).filter(|_| mastered.adapting.is_none());
        let machine = if hands_on { mastered.machine.clone().or_else(stated) } else { None };
        let played = self.gathered.get(task).filter(|_| hands_on).cloned().unwrap_or_default();
        let mut returns: Vec<i64> = played.iter().map(|(_, episode)| episode.total()).collect();
        returns.sort_unstable();
        let middle = returns.get(returns.len() / 2).copied().unwrap_or(0);
        let episodes = played.into_iter().filter(|(_, episode)| middle <= episode.total()).collect();
        let (domain, instance) = (self.domain.clone(), mastered.instance);
        Taught { domain, instance, policy, machine, episodes }
    }

    /// Distinct circuits that it acts with, and distinct machines: one that is built for several sizes counts once, and so does
    /// a rule by which it adapts.
    pub fn experts(&self) -> (usize, usize) {
        let climbed = self.climb.tracks().iter().flat_map(|track| &track.climbed);
        let solved: Vec<&Climbed> = climbed.filter(|climbed| climbed.solved).collect();
        let circuits: BTreeSet<_> = solved.iter().map(|climbed| climbed.policy.digest()).collect();
        let machine = |climbed: &&Climbed| {
            let mastered = self.mastered.get(&climbed.task)?;
            match &mastered.adapting {
                Some(agent) => Some(format!("{:?}", agent.rule())),
                None => mastered.machine.as_ref().map(|machine| machine.digest().to_hex()),
            }
        };
        let own = |climbed: &&Climbed| machine(climbed).unwrap_or_else(|| climbed.policy.digest().to_hex());
        (circuits.len(), solved.iter().map(own).collect::<BTreeSet<_>>().len())
    }
}
