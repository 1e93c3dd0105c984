//! `bem pipeline run`: specialists that teach a main machine, phases 0 to 4, in the foreground.
//!
//! The folder holds the plan, the pipeline as it was saved last, the answer of every unit since then under its number, and the
//! history of every machine. State and answers are what a run goes on from: whatever was cut off, units that have an answer are not
//! worked on again, and the others are. So the same plan leads to the same history, with any number of workers of any kind, in the
//! foreground and under a server. Clauses: PIPE-1 to PIPE-4; decisions D-132 to D-136, D-237.

pub mod engine;
mod histories;
pub mod plan;
mod results;
mod units;

use super::Answer;
use super::run::free_folder;
use crate::crew::{Crew, Order};
use crate::interrupt;
use anyhow::{Result, bail};
use bem_pipeline::pipeline::Phase;
use clap::{Args, Subcommand, ValueEnum};
use engine::{PipelineFolder, RoundEnd};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    /// Actors of a Ray cluster, one a specialist, and their tasks, through the Python package.
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
    /// Threads, processes or tasks at once [default: all cores]
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
        Engine::Ray => Crew::ray(arguments.address.clone(), count),
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
    let mut engine = PipelineFolder::open(&directory, plan, arguments.key.as_deref())?;
    let (mut worked, mut phase) = (0u32, None);
    let bar = progress(!arguments.json && std::io::stderr().is_terminal());
    let finished = loop {
        if phase != Some(engine.pipeline().phase()) && !arguments.json {
            phase = Some(engine.pipeline().phase());
            bar.suspend(|| note!("bem: {}", phase_words(engine.pipeline().phase())));
        }
        bar.set_position(0);
        let left = arguments.units.map(|units| units.saturating_sub(worked));
        let RoundEnd { is_over, is_taken, worked: more, .. } =
            engine.round(&mut |orders, answered| show_work(&bar, &crew, orders, answered), left)?;
        worked += more;
        if is_over || !is_taken {
            break is_over;
        }
    };
    bar.finish_and_clear();
    let (report, summary) = engine.save(finished)?;
    let pipeline = engine.pipeline();
    if arguments.json {
        say!("{report}");
    } else {
        say_text!("{}", results::table(&summary));
        say!("history  {}", pipeline.head());
        say!("audit    bem verify {}", directory.display());
        if !finished {
            say!("go on    bem pipeline run --resume {}", directory.display());
        }
    }
    Ok(Answer::Yes)
}

/// A bar over the units of a round; nothing when piped.
fn progress(is_visible: bool) -> ProgressBar {
    let bar = if is_visible { ProgressBar::new(0) } else { ProgressBar::hidden() };
    let style = ProgressStyle::with_template("{spinner} {bar:20} {pos}/{len} units of this round  {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn show_work(
    bar: &ProgressBar,
    crew: &Crew,
    orders: &[Order],
    answered: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    bar.set_length(orders.len() as u64);
    crew.work(orders, &mut |place, bytes| {
        bar.inc(1);
        answered(place, bytes)
    })
}

/// A phase in words.
pub fn phase_words(phase: Phase) -> &'static str {
    match phase {
        Phase::Specialists => "phase 1: specialists climb",
        Phase::Distillation => "phase 2: the main machine learns what they have solved",
        Phase::Mixed => "phase 3: the main machine goes on with mixed domains",
        Phase::Over => "nothing is left",
    }
}
