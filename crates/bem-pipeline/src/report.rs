//! What a pipeline has reached, setting by setting and in all. Clauses: PIPE-3.

use crate::domain::domain_of;
use crate::pipeline::{Done, Pipeline, PoolTally};
use crate::specialist::machines_of;
use crate::volume::Volume;
use bem_base::fixed::Fixed;
use bem_engine::climb::Track;
use std::collections::BTreeMap;

/// One setting.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its domain.
    pub domain: &'static str,
    /// Its task.
    pub task: String,
    /// No specialist has seen it.
    pub unseen: bool,
    /// The specialist's score; of an unseen setting, that of the learner from scratch, if one was asked for.
    pub specialist: Option<Fixed>,
    /// What the main machine did with it; nothing if it did not get there.
    pub main: Option<Done>,
    /// The score of the expert that the pool holds for it.
    pub pool: Option<Fixed>,
    /// Steps until the score was 0.99 from scratch.
    pub scratch_steps: Option<u64>,
    /// Whether it was learned from scratch at all.
    pub is_compared: bool,
}

/// How a domain stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainStanding {
    /// Its name.
    pub domain: String,
    /// Whether the main machine is through with it, as far as its plan goes.
    pub is_learned: bool,
    /// Settings that the main machine is to learn; none before its specialist is through.
    pub settings: usize,
    /// Settings for which its pool has an expert.
    pub solved: usize,
    /// The mean score of these experts.
    pub score: Option<Fixed>,
    /// The share of what it had that its worst setting keeps.
    pub kept: Option<Fixed>,
}

/// What there is to say about the whole.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Every setting of the main machine.
    pub rows: Vec<Row>,
    /// Distinct circuits that specialists act with, all together.
    pub specialists_experts: usize,
    /// Experts of the main machine.
    pub experts: usize,
    /// What its pool did with newcomers.
    pub pool: PoolTally,
    /// Episodes handed on, and how many of them are off-policy and unstable.
    pub episodes: (usize, [usize; 2]),
    /// How often mixed learning chose each domain.
    pub chosen: BTreeMap<String, u32>,
    /// The least share of what it had that any domain kept after any round of mixed learning.
    pub kept_least: Option<Fixed>,
    /// The same at the end, by domain.
    pub kept: BTreeMap<String, Fixed>,
}

impl Pipeline {
    /// What it has reached.
    pub fn summary(&self) -> Summary {
        let rows =
            self.volumes.iter().enumerate().flat_map(|(cycle, volume)| self.rows_of(cycle, volume)).collect();
        let masked = self.volumes.iter().map(|volume| volume.distilled.masked());
        let episodes = |volume: &Volume| {
            volume.distilled.tasks.values().map(|taught| taught.episodes.len()).sum::<usize>()
        };
        Summary {
            rows,
            specialists_experts: self.specialists.iter().map(machines_of).sum(),
            experts: self.pool.len(),
            pool: self.pool_tally,
            episodes: (
                self.volumes.iter().map(episodes).sum(),
                masked.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]),
            ),
            chosen: self.chosen.clone(),
            kept_least: self.kept_least,
            kept: self.pool.kept(),
        }
    }

    /// How every domain that has a specialist stands, in their order.
    pub fn standings(&self) -> Vec<DomainStanding> {
        let kept = self.pool.kept();
        let tracks: Vec<&Track> = self.volumes.iter().flat_map(|volume| volume.climb.tracks()).collect();
        let standing = |(place, domain): (usize, String)| {
            let own = tracks.iter().filter(|track| domain_of(&track.family) == Some(&domain));
            let scores: Vec<Fixed> = self
                .pool
                .routes()
                .filter(|(_, route)| route.domain == domain)
                .map(|(_, route)| route.score)
                .collect();
            let sum = scores.iter().fold(Fixed::ZERO, |sum, score| sum.plus_saturating(*score));
            DomainStanding {
                is_learned: place < self.learned(),
                settings: own.map(|track| track.tasks().len()).sum(),
                solved: scores.len(),
                score: (!scores.is_empty()).then(|| sum.div_count_floor(scores.len() as u64)),
                kept: kept.get(&domain).copied(),
                domain,
            }
        };
        self.domains().into_iter().enumerate().map(standing).collect()
    }

    fn rows_of(&self, cycle: usize, volume: &Volume) -> Vec<Row> {
        let scratch = self.scratch.get(cycle);
        let alone = |task: &str| {
            let track = scratch?.tracks().iter().find(|track| track.family == task)?;
            track.climbed.last()
        };
        let learned = |task: &str| {
            let tracks = self.specialists.iter().flat_map(|specialist| specialist.climb.tracks());
            let mut solved = tracks.flat_map(|track| track.climbed.iter().rev());
            solved.find(|climbed| climbed.solved && climbed.task == task).map(|climbed| climbed.score)
        };
        let row = |track: &Track, task: &String| Row {
            domain: domain_of(&track.family).unwrap_or_default(),
            task: task.clone(),
            unseen: volume.unseen.contains(task),
            specialist: learned(task).or_else(|| alone(task).map(|climbed| climbed.score)),
            main: self.done.get(task).cloned(),
            pool: self.pool.route(task).map(|route| route.score),
            scratch_steps: alone(task).and_then(|climbed| climbed.steps_to_99),
            is_compared: alone(task).is_some(),
        };
        let tracks = volume.climb.tracks().iter();
        tracks
            .flat_map(|track| track.tasks().iter().map(move |task| row(track, task)).collect::<Vec<_>>())
            .collect()
    }
}
