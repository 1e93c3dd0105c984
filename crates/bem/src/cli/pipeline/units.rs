//! The answers of a pipeline's units on disk, and the work on those that have none.
//!
//! An answer is there whole or not at all, and before anybody relies on it. Must not know phases. Clauses: PIPE-2, PIPE-4.

use crate::crew::Order;
use anyhow::{Context as _, Result};
use bem_engine::climb::{UnitResult, Worked as Answered, message};
use bem_pipeline::pipeline::{Job, Pipeline, Who};
use std::path::{Path, PathBuf};

/// Works on orders, and tells of each answer with the number of its order.
pub type Work<'w> = dyn FnMut(&[Order], &mut dyn FnMut(usize, Vec<u8>) -> Result<()>) -> Result<()> + 'w;

/// The answers of units, by number.
pub struct Units {
    folder: PathBuf,
}

/// What a round brought.
pub struct RoundAnswers {
    /// All results in order; none where the work was cut off.
    pub results: Option<Vec<UnitResult>>,
    /// Units that were worked on, not just read.
    pub worked: u32,
    /// Steps of these.
    pub steps: u64,
}

impl Units {
    pub fn open(directory: &Path) -> Result<Units> {
        let folder = directory.join("units");
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Units { folder })
    }

    pub fn path(&self, number: u32, ending: &str) -> PathBuf {
        self.folder.join(format!("{number:06}{ending}"))
    }

    fn keep(&self, number: u32, ending: &str, bytes: &[u8]) -> Result<()> {
        let (place, aside) = (self.path(number, ending), self.path(number, ".tmp"));
        std::fs::write(&aside, bytes)
            .and_then(|()| std::fs::rename(&aside, &place))
            .with_context(|| place.display().to_string())
    }

    /// The answer that is there, if it is one to this job.
    pub fn read(&self, pipeline: &Pipeline, job: &Job, number: u32) -> Option<UnitResult> {
        let bytes = std::fs::read(self.path(number, "")).ok()?;
        let parameters = &pipeline.climb(job.who).config().parameters;
        match message::read_answer(&job.unit, parameters, &bytes) {
            Ok(Ok(Answered::Done(result))) => Some(*result),
            _ => None,
        }
    }

    /// Works on what has no answer yet; answers are on disk before anybody relies on them.
    pub fn round(
        &self,
        pipeline: &Pipeline,
        jobs: &[Job],
        first: u32,
        work: &mut Work<'_>,
        left: Option<u32>,
    ) -> Result<RoundAnswers> {
        let mut results: Vec<Option<UnitResult>> =
            jobs.iter().zip(first..).map(|(job, number)| self.read(pipeline, job, number)).collect();
        let mut open: Vec<usize> = (0..jobs.len()).filter(|place| results[*place].is_none()).collect();
        open.truncate(left.unwrap_or(u32::MAX) as usize);
        let order = |place: &usize| {
            let put_away = std::fs::read(self.path(first + *place as u32, ".part")).ok();
            let mut order = pipeline.order(&jobs[*place]);
            order.put_away = put_away;
            Order { machine: machine_number(jobs[*place].who), bytes: order.to_bytes() }
        };
        let orders: Vec<Order> = open.iter().map(order).collect();
        let (mut worked, mut steps) = (0, 0);
        work(&orders, &mut |place, bytes| {
            let (place, job) = (open[place], &jobs[open[place]]);
            let number = first + place as u32;
            let parameters = &pipeline.climb(job.who).config().parameters;
            let answer = message::read_answer(&job.unit, parameters, &bytes);
            match answer.with_context(|| format!("the answer to unit {number}"))?? {
                Answered::Done(result) => {
                    self.keep(number, "", &bytes)?;
                    let _ = std::fs::remove_file(self.path(number, ".part"));
                    steps += result.solution.learned.tally.steps;
                    results[place] = Some(*result);
                    worked += 1;
                }
                Answered::PutAway(bytes) => self.keep(number, ".part", &bytes)?,
            }
            Ok(())
        })?;
        Ok(RoundAnswers { results: results.into_iter().collect(), worked, steps })
    }

    /// Removes the answers to units before this one: the saved pipeline has taken them in.
    pub fn drop_before(&self, number: u32) -> Result<()> {
        let entries = std::fs::read_dir(&self.folder).with_context(|| self.folder.display().to_string())?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let stem =
                path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u32>().ok());
            if stem.is_some_and(|stem| stem < number) {
                std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
            }
        }
        Ok(())
    }
}

/// A number of its own for every machine, which does not change when others come in.
fn machine_number(who: Who) -> u32 {
    match who {
        Who::Specialist(place) => 3 * place as u32,
        Who::Main(place) => 3 * place as u32 + 1,
        Who::Scratch(place) => 3 * place as u32 + 2,
    }
}
