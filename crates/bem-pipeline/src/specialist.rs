//! A specialist: the machine of one domain, on its way up, and what it leaves for others. Clauses: PIPE-1, PIPE-2.

use bem_engine::climb::{Climb, Track, UnitResult};
use bem_engine::world_file::distilled::Taught;
use bem_synth::experience::Episode;
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
    /// Seeds of the units that solved a rung, by task.
    pub(crate) instances: BTreeMap<String, u64>,
}

impl Specialist {
    pub(crate) fn take(&mut self, result: &UnitResult) {
        self.climb.take(result);
        let task = &result.unit.task;
        let played = self.gathered.entry(task.clone()).or_default();
        played.extend(result.solution.gathered.iter().map(|episode| (result.seed, episode.clone())));
        if result.unit.climbs() && result.solution.is_solved() {
            self.instances.insert(task.clone(), result.seed);
        }
    }

    /// The rungs of a family that it has solved, in order.
    pub fn solved(&self, track: &Track) -> Vec<String> {
        track.climbed.iter().filter(|climbed| climbed.solved).map(|climbed| climbed.task.clone()).collect()
    }

    /// What it leaves of a task: the better half of its episodes, at least as good as the middle one of them.
    pub(crate) fn taught(&self, track: &Track, task: &str, hands_on: bool) -> Taught {
        let climbed = track.climbed.iter().rev().find(|climbed| climbed.solved && climbed.task == task);
        let policy = climbed.expect("a solved rung has its circuit").policy.clone();
        let played = self.gathered.get(task).filter(|_| hands_on).cloned().unwrap_or_default();
        let mut returns: Vec<i64> = played.iter().map(|(_, episode)| episode.total()).collect();
        returns.sort_unstable();
        let middle = returns.get(returns.len() / 2).copied().unwrap_or(0);
        let episodes = played.into_iter().filter(|(_, episode)| middle <= episode.total()).collect();
        let (domain, instance) = (self.domain.clone(), self.instances[task]);
        Taught { domain, instance, policy, episodes }
    }
}

/// Machines that a specialist keeps, for reports.
pub fn machines_of(specialist: &Specialist) -> usize {
    let climbed = specialist.climb.tracks().iter().flat_map(|track| &track.climbed);
    let solved = climbed.filter(|climbed| climbed.solved).map(|climbed| climbed.policy.digest());
    solved.collect::<BTreeSet<_>>().len()
}
