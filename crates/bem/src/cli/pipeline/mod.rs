//! `bem pipeline run`: specialists that teach a main machine, phases 0 to 4, in the foreground.
//!
//! The folder holds the plan, every unit's answer under its number, and the history of every machine. The answers are what a run
//! goes on from: whatever was cut off, units that have an answer are not worked on again, and the others are. So the same plan
//! leads to the same history, with any number of workers of any kind. Clauses: PIPE-1 to PIPE-4; decisions D-132 to D-136.

mod histories;
mod plan;
mod results;

use super::Answer;
use super::run::free_folder;
use crate::crew::Crew;
use crate::interrupt;
use anyhow::{Context as _, Result, bail};
use bem_engine::climb::{UnitResult, Worked, message};
use bem_pipeline::pipeline::{Job, Phase, Pipeline};
use clap::{Args, Subcommand, ValueEnum};
use histories::Histories;
use std::path::{Path, PathBuf};

pub use histories::{PLAN, machine_folders};

/// Specialists that teach a main machine.
#[derive(Args)]
#[command(after_help = "Example: bem pipeline run --domains aggregation,stack --out my-pipeline")]
pub struct PipelineArguments {
    #[command(subcommand)]
    command: PipelineCommand,
}

#[derive(Subcommand)]
enum PipelineCommand {
    /// Phases 0 to 4: specialists, distillation, mixed learning, new domains.
    Run(RunArguments),
}

/// Where units are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// Threads of this process.
    Threads,
    /// Processes of this program.
    Processes,
    /// Actors of a Ray cluster, through the Python package.
    Ray,
}

/// Phases 0 to 4.
#[derive(Args)]
#[command(after_help = "Example: bem pipeline run --domains aggregation,stack --out my-pipeline\n\
    Example: bem pipeline run --resume my-pipeline --engine processes\n\
    Example: bem pipeline run --engine ray --address 10.0.0.1:6379")]
pub struct RunArguments {
    #[command(flatten)]
    plan: plan::PlanArguments,
    /// Where units are worked on; the history is the same everywhere
    #[arg(long, value_enum, default_value_t = Engine::Threads)]
    engine: Engine,
    /// The address of a Ray cluster [default: one is started here]
    #[arg(long)]
    address: Option<String>,
    /// Threads, processes or actors [default: all cores]
    #[arg(long)]
    workers: Option<usize>,
    /// Where the pipeline is kept [default: the first free folder pipelines/N]
    #[arg(long, conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Go on with a pipeline
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// The file of the key that signs the histories; made if it is not there
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Stop after this many units, to go on later
    #[arg(long, value_name = "UNITS")]
    units: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `bem pipeline`
pub fn run(arguments: &PipelineArguments) -> Result<Answer> {
    match &arguments.command {
        PipelineCommand::Run(arguments) => run_phases(arguments),
    }
}

fn crew(arguments: &RunArguments) -> Result<Crew> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let count = arguments.workers.unwrap_or_else(cores);
    if !(1..=1_024).contains(&count) {
        bail!("--workers {count} is out of range: 1 to 1024");
    }
    if arguments.address.is_some() && arguments.engine != Engine::Ray {
        bail!("--address names a Ray cluster: it goes with --engine ray");
    }
    Ok(match arguments.engine {
        Engine::Threads => Crew::Threads(count),
        Engine::Processes => Crew::Processes(count),
        Engine::Ray => Crew::Ray { address: arguments.address.clone(), actors: count },
    })
}

fn run_phases(arguments: &RunArguments) -> Result<Answer> {
    let crew = crew(arguments)?;
    interrupt::listen();
    let (directory, plan) = match &arguments.resume {
        Some(directory) => (directory.clone(), plan::resumed(directory, &arguments.plan)?),
        None => {
            let plan = plan::new(&arguments.plan)?;
            let directory = arguments.out.clone().map_or_else(|| free_folder(Path::new("pipelines")), Ok)?;
            plan::keep(&directory, &plan)?;
            (directory, plan)
        }
    };
    let mut pipeline = Pipeline::new(plan.plan()?)?;
    let units = Units::open(&directory)?;
    let mut histories = Histories::new(&directory, arguments.key.as_deref());
    let (mut number, mut worked, mut phase) = (0u32, 0u32, None);
    let finished = loop {
        let jobs = pipeline.jobs();
        if jobs.is_empty() {
            break true;
        }
        if phase != Some(pipeline.phase()) && !arguments.json {
            phase = Some(pipeline.phase());
            note!("bem: {}", phase_words(pipeline.phase()));
        }
        let left = arguments.units.map(|units| units.saturating_sub(worked));
        let round = units.round(&pipeline, &jobs, number, &crew, left)?;
        worked += round.worked;
        let Some(results) = round.results else { break false };
        histories.round(&pipeline, &jobs, number);
        pipeline.take(&jobs, &results)?;
        number += jobs.len() as u32;
    };
    let heads = histories.write(&units)?;
    let report = results::to_json(&pipeline, &heads, &directory, finished);
    std::fs::write(directory.join("pipeline.json"), format!("{report:#}\n")).context("pipeline.json")?;
    if arguments.json {
        say!("{report}");
    } else {
        say_text!("{}", results::table(&pipeline));
        say!("history  {}", pipeline.head());
        say!("audit    bem verify {}", directory.display());
        if !finished {
            say!("go on    bem pipeline run --resume {}", directory.display());
        }
    }
    Ok(Answer::Yes)
}

fn phase_words(phase: Phase) -> &'static str {
    match phase {
        Phase::Specialists => "phase 1: specialists climb",
        Phase::Distillation => "phase 2: the main machine learns what they have solved",
        Phase::Mixed => "phase 3: the main machine goes on with mixed domains",
        Phase::Over => "nothing is left",
    }
}

/// The answers of units, by number.
pub struct Units {
    folder: PathBuf,
}

/// What a round brought.
struct Round {
    /// All results in order; none where the work was cut off.
    results: Option<Vec<UnitResult>>,
    /// Units that were worked on, not just read.
    worked: u32,
}

impl Units {
    fn open(directory: &Path) -> Result<Units> {
        let folder = directory.join("units");
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Units { folder })
    }

    fn path(&self, number: u32, ending: &str) -> PathBuf {
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
            Ok(Ok(Worked::Done(result))) => Some(*result),
            _ => None,
        }
    }

    /// Works on what has no answer yet; answers are on disk before anybody relies on them.
    fn round(
        &self,
        pipeline: &Pipeline,
        jobs: &[Job],
        first: u32,
        crew: &Crew,
        left: Option<u32>,
    ) -> Result<Round> {
        let mut results: Vec<Option<UnitResult>> =
            jobs.iter().zip(first..).map(|(job, number)| self.read(pipeline, job, number)).collect();
        let mut open: Vec<usize> = (0..jobs.len()).filter(|place| results[*place].is_none()).collect();
        open.truncate(left.unwrap_or(u32::MAX) as usize);
        let order = |place: &usize| {
            let put_away = std::fs::read(self.path(first + *place as u32, ".part")).ok();
            let mut order = pipeline.order(&jobs[*place]);
            order.put_away = put_away;
            order.to_bytes()
        };
        let orders: Vec<Vec<u8>> = open.iter().map(order).collect();
        let mut worked = 0;
        crew.work(&orders, &mut |place, bytes| {
            let (place, job) = (open[place], &jobs[open[place]]);
            let number = first + place as u32;
            let parameters = &pipeline.climb(job.who).config().parameters;
            let answer = message::read_answer(&job.unit, parameters, &bytes);
            match answer.with_context(|| format!("the answer to unit {number}"))?? {
                Worked::Done(result) => {
                    self.keep(number, "", &bytes)?;
                    let _ = std::fs::remove_file(self.path(number, ".part"));
                    results[place] = Some(*result);
                    worked += 1;
                }
                Worked::PutAway(bytes) => self.keep(number, ".part", &bytes)?,
            }
            Ok(())
        })?;
        Ok(Round { results: results.into_iter().collect(), worked })
    }
}
