//! What a pipeline has reached, setting by setting and in all.
//!
//! What the main machine keeps is what the expert earns that its pool routes a setting to, on seeds that nobody has seen; a setting
//! without an expert earns nothing. What its lesson there came to is said beside it. Clauses: PIPE-3; decision D-277.

use crate::PipelineError;
use crate::domain::domain_of;
use crate::pipeline::{Done, Pipeline, PoolTally};
use crate::pool::score_of;
use crate::volume::Volume;
use bem_base::fixed::Fixed;
use bem_engine::climb::{Climbed, Track};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The score of the expert that the pool routes it to; nothing where there is none.
    pub main: Fixed,
    /// The number of this expert.
    pub expert: Option<u32>,
    /// Whether it acts there under other names than its own.
    pub renamed: bool,
    /// What was there when mixed learning first began with it, in the same fresh episodes; nothing before that.
    pub had: Option<Fixed>,
    /// What its lessons there came to; nothing if it did not get there.
    pub lesson: Option<Done>,
    /// What a learner from scratch came to, if one was asked for.
    pub scratch: Option<Alone>,
}

/// What a learner from scratch came to in a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone {
    /// Steps until the score was 0.99, those of tries that failed included.
    pub steps_to_99: Option<u64>,
    /// Steps of all tries.
    pub steps: u64,
}

impl Row {
    /// The share of the specialist's score that the main machine keeps.
    pub fn share(&self) -> Option<Fixed> {
        let specialist = self.specialist.filter(|score| Fixed::ZERO < *score)?;
        Some(self.main.max(Fixed::ZERO).div_floor(specialist))
    }

    /// Steps of the main machine and from scratch: until 0.99 where that was reached, and else all that were taken.
    pub fn steps(&self) -> Option<(u64, u64)> {
        let (lesson, scratch) = (self.lesson.as_ref()?, self.scratch?);
        Some((lesson.steps_to_99.unwrap_or(lesson.steps), scratch.steps_to_99.unwrap_or(scratch.steps)))
    }
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
    /// Whether scores are of seeds that nobody has seen; else they are those that were measured when an expert came in.
    pub is_judged: bool,
    /// Every setting of the main machine.
    pub rows: Vec<Row>,
    /// Distinct circuits that specialists act with, all together.
    pub specialists_experts: usize,
    /// Distinct machines that these are built of: one for several sizes counts once.
    pub specialists_machines: usize,
    /// Experts of the main machine.
    pub experts: usize,
    /// What its pool did with newcomers.
    pub pool: PoolTally,
    /// Episodes handed on, and how many of them are off-policy and unstable.
    pub episodes: (usize, [usize; 2]),
    /// How often mixed learning chose each domain.
    pub chosen: BTreeMap<String, u32>,
    /// The least share of what it had that any domain kept after any round since the first mixed learning.
    pub kept_least: Option<Fixed>,
    /// The same at the end, by domain.
    pub kept: BTreeMap<String, Fixed>,
}

impl Summary {
    /// Experts of the main machine that act in settings of specialists: what is left of them without those that only unseen
    /// settings need.
    pub fn experts_where_taught(&self) -> usize {
        let taught = self.rows.iter().filter(|row| !row.unseen).filter_map(|row| row.expert);
        taught.collect::<BTreeSet<u32>>().len()
    }

    /// Settings in which an expert acts under other names, and settings that have one although their lesson failed.
    pub fn shared(&self) -> (usize, usize) {
        let is_failed = |row: &&Row| row.lesson.as_ref().is_none_or(|done| done.steps_to_99.is_none());
        let served = self.rows.iter().filter(|row| row.expert.is_some());
        (self.rows.iter().filter(|row| row.renamed).count(), served.filter(is_failed).count())
    }

    /// The least share of its specialist's score that the main machine keeps in a setting that one has seen, or in one that none has.
    pub fn least_share(&self, unseen: bool) -> Option<Fixed> {
        self.rows.iter().filter(|row| row.unseen == unseen).filter_map(Row::share).min()
    }
}

impl Pipeline {
    /// What it has reached. To judge it, what acts in every setting is played there on seeds that nobody has seen.
    pub fn summary(&self, is_judged: bool) -> Result<Summary, PipelineError> {
        let mut rows: Vec<Row> =
            self.volumes.iter().enumerate().flat_map(|(cycle, volume)| self.rows_of(cycle, volume)).collect();
        if is_judged {
            rows.iter_mut().try_for_each(|row| self.judge(row))?;
        }
        let masked = self.volumes.iter().map(|volume| volume.distilled.masked());
        let episodes = |volume: &Volume| {
            volume.distilled.tasks.values().map(|taught| taught.episodes.len()).sum::<usize>()
        };
        let specialists = self.specialists.iter().map(|specialist| specialist.experts());
        let (circuits, machines) = specialists.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Ok(Summary {
            is_judged,
            rows,
            specialists_experts: circuits,
            specialists_machines: machines,
            experts: self.pool.len(),
            pool: self.pool_tally,
            episodes: (
                self.volumes.iter().map(episodes).sum(),
                masked.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]),
            ),
            chosen: self.chosen.clone(),
            kept_least: self.kept_least,
            kept: self.kept(),
        })
    }

    /// Plays what the pool routes a setting to, and the specialist in the same instance, in the same fresh episodes.
    fn judge(&self, row: &mut Row) -> Result<(), PipelineError> {
        let seed = self.fresh_seed(&row.task);
        row.main = self.fresh_score(&row.task)?;
        let Some(route) = self.pool.route(&row.task) else { return Ok(()) };
        let specialist = self.specialists.iter().find_map(|specialist| specialist.agent_of(&row.task));
        if let Some((agent, _)) = specialist.filter(|(_, instance)| *instance == route.instance) {
            row.specialist = Some(score_of(route.game.as_ref(), &agent, seed)?);
        }
        Ok(())
    }

    /// How every domain that has a specialist stands, in their order.
    pub fn standings(&self) -> Vec<DomainStanding> {
        let kept = self.kept();
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
            track.climbed.last().map(|last| (last, alone_of(&track.climbed)))
        };
        let row = |track: &Track, task: &String| Row {
            domain: domain_of(&track.family).unwrap_or_default(),
            task: task.clone(),
            unseen: volume.unseen.contains(task),
            specialist: self.specialist_score(task).or_else(|| alone(task).map(|(last, _)| last.score)),
            main: self.pool.route(task).map_or(Fixed::ZERO, |route| route.score),
            expert: self.pool.route(task).map(|route| route.expert),
            renamed: self.pool.route(task).is_some_and(|route| route.renaming.is_some()),
            had: self.had.get(task).copied(),
            lesson: self.done.get(task).cloned(),
            scratch: alone(task).map(|(_, alone)| alone),
        };
        let tracks = volume.climb.tracks().iter();
        tracks
            .flat_map(|track| track.tasks().iter().map(move |task| row(track, task)).collect::<Vec<_>>())
            .collect()
    }
}

/// The tries of a learner from scratch, one after the other.
fn alone_of(tries: &[Climbed]) -> Alone {
    let steps = tries.iter().map(|one| one.steps).sum();
    let failed = tries.iter().filter(|one| one.steps_to_99.is_none()).map(|one| one.steps).sum::<u64>();
    let steps_to_99 = tries.iter().find_map(|one| one.steps_to_99).map(|last| failed + last);
    Alone { steps_to_99, steps }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{Phase, Plan, Who};
    use crate::saved::tests::small_plan;
    use bem_engine::climb::Worked;
    use bem_engine::world_file::WorldFile;
    use bem_engine::worlds::{Catalog, Worlds};
    use std::sync::Arc;

    /// One small domain, worked through.
    fn learned() -> Pipeline {
        let plan = Plan { compares: true, ..small_plan("stack") };
        let mut pipeline = Pipeline::new(plan).unwrap();
        while pipeline.phase() != Phase::Over {
            let jobs = pipeline.jobs();
            let work = |job| {
                let order = pipeline.order(job);
                let file = order.files.first().map(|file| WorldFile::from_bytes(file).unwrap());
                let worlds: Box<dyn Worlds> = match file {
                    Some(WorldFile::Distilled(distilled)) => Box::new(distilled),
                    _ => Box::new(Catalog),
                };
                match order.assignment.go_on_in(worlds.as_ref(), None, &mut || true).unwrap() {
                    Worked::Done(result) => *result,
                    Worked::PutAway(_) => unreachable!("nobody asks it to stop"),
                }
            };
            let results: Vec<_> = jobs.iter().map(work).collect();
            pipeline.take(&jobs, &results).unwrap();
        }
        pipeline
    }

    #[test]
    fn who_is_there_to_be_compared_with_has_the_main_machines_configuration() {
        let pipeline = learned();
        let parameters = |who| Arc::clone(&pipeline.climb(who).config().parameters);
        let main = parameters(Who::Main(0));
        assert_eq!(parameters(Who::Scratch(0)), main);
        // Control: a specialist has less room.
        assert!(parameters(Who::Specialist(0)).experts_max < main.experts_max);
    }

    #[test]
    fn what_is_kept_is_what_the_pool_earns_on_fresh_seeds_and_nothing_without_an_expert() {
        let mut pipeline = learned();
        let summary = pipeline.summary(true).unwrap();
        let seen: Vec<&Row> = summary.rows.iter().filter(|row| !row.unseen).collect();
        assert!(!seen.is_empty() && seen.len() < summary.rows.len());
        assert!(summary.least_share(false) >= Some(Fixed::from_ratio(99, 100)), "{seen:?}");
        assert!(summary.experts <= summary.rows.len());
        assert!(pipeline.kept().values().all(|share| crate::pool::KEPT <= *share));
        // The specialist's machine is tried first: it needs fewer steps than from scratch.
        let steps =
            seen.iter().filter_map(|row| row.steps()).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert!(steps.0 < steps.1, "{steps:?}");
        // Control: an expert that is lost is missed, however well the lesson went.
        let task = seen[0].task.clone();
        pipeline.pool.routes.remove(&task);
        let summary = pipeline.summary(true).unwrap();
        let row = summary.rows.iter().find(|row| row.task == task).unwrap();
        assert!(
            row.main == Fixed::ZERO && row.lesson.as_ref().is_some_and(|done| done.steps_to_99.is_some())
        );
        assert_eq!(summary.least_share(false), Some(Fixed::ZERO));
        assert_eq!(pipeline.kept()["stack"], Fixed::ZERO);
    }
}
