//! `bem` and `bem run`: climb the ladder over all families, and leave a scoreboard, a report and an audited history.
//!
//! The climb itself is deterministic; only how far it comes depends on the clock. With `--steps` not even that: units
//! are taken in one fixed order, whatever the number of threads. Every unit is acknowledged when it is
//! taken in; Ctrl-C and the time limit put away what is under way, a crash loses at most that. Clauses: SCC-14, LOG-5.

pub mod evaluations;
pub mod history;
mod pool;
pub mod report;
pub mod scoreboard;
mod world;

use super::Answer;
use super::config::ConfigFile;
use super::solve::{self, SolveArguments, game_baselines, is_program_run};
use crate::kept_world::{SharedWorlds, worlds_of};
use crate::{interrupt, task};
use anyhow::{Context, Result, bail};
use bem_base::words::quantity;
use bem_engine::agent::Agent;
use bem_engine::climb::{Climb, ClimbConfig, UnitResult, Worked};
use bem_engine::learner::Settings;
use bem_engine::worlds::World;
use bem_ledger::limits::SEGMENT_BYTES_DEFAULT;
use bem_ledger::log::LogOptions;
use bem_tables::beside::without_losses;
use bem_teacher::ladder::{Domain, MEASURED_STAGES, STAGES_MAX};
use clap::Args;
use history::{History, PutAway};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Enough for most rungs, and little enough that no family waits long for its turn.
const UNIT_STEPS: u64 = 20_000;

/// The seed of a new run when nothing else is said.
const SEED: u64 = 1;
/// Its rungs.
const STAGES: usize = MEASURED_STAGES;

/// More threads than any machine has cores would only wait for each other.
const THREADS_MAX: usize = 1_024;

/// Climb the ladder over all families: the main job.
#[derive(Args, Clone)]
#[command(after_help = "Example: bem run --minutes 1 --families parity,dyck --out my-run\n\
    Example: bem run --resume my-run --minutes 5\n\
    Example: bem run --world examples/worlds/lock.toml --minutes 1")]
pub struct RunArguments {
    /// Where the run is kept [default: the first free folder runs/N]
    #[arg(long)]
    out: Option<PathBuf>,
    /// All random choices come from this number [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Stop after this many minutes [default: 2]
    #[arg(long, conflicts_with = "steps")]
    minutes: Option<f64>,
    /// Stop after this many steps in all worlds together: the same history on every machine
    #[arg(long)]
    steps: Option<u64>,
    /// Only these families, separated by commas
    #[arg(long, value_delimiter = ',')]
    families: Vec<String>,
    /// A parametrised world of your own: its settings are measured, ordered by difficulty and climbed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["families", "resume"])]
    world: Option<PathBuf>,
    /// Rungs of every family's ladder [default: 5]
    #[arg(long)]
    stages: Option<usize>,
    /// Steps of the first try at a task; every further try at it may take four times as many [default: 20000]
    #[arg(long)]
    unit_steps: Option<u64>,
    /// Threads; the history is the same for any number [default: all]
    #[arg(long)]
    threads: Option<usize>,
    /// Go on with a run
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "families"])]
    resume: Option<PathBuf>,
    /// The file of the key that signs the history; made if it is not there [default: one a run, in the user's state
    /// directory]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Bytes of a file of the ledger before the next one is begun; the history does not depend on it
    #[arg(long, value_name = "BYTES", default_value_t = SEGMENT_BYTES_DEFAULT, hide = true)]
    segment_bytes: u64,
    #[command(flatten)]
    config: ConfigFile,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Default for RunArguments {
    /// What `bem` without a word does.
    fn default() -> RunArguments {
        RunArguments {
            out: None,
            seed: None,
            minutes: None,
            steps: None,
            families: Vec::new(),
            world: None,
            stages: None,
            unit_steps: None,
            threads: None,
            resume: None,
            key: None,
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            config: ConfigFile::default(),
            json: false,
        }
    }
}

/// When to stop starting new work.
struct Limit {
    started: Instant,
    time: Option<Duration>,
    steps: Option<u64>,
}

impl Limit {
    fn is_reached(&self, steps: u64) -> bool {
        self.is_over() || self.steps.is_some_and(|limit| limit <= steps)
    }

    /// Whether what is under way must be cut: at Ctrl-C and when the time is up.
    fn is_over(&self) -> bool {
        self.is_interrupted() || self.time.is_some_and(|time| time <= self.started.elapsed())
    }

    /// With a limit in steps units are taken in order, so that the clock decides nothing.
    fn is_ordered(&self) -> bool {
        self.steps.is_some()
    }

    fn is_interrupted(&self) -> bool {
        interrupt::is_asked()
    }
}

/// `bem run`
pub fn run(arguments: &RunArguments) -> Result<Answer> {
    check(arguments)?;
    if let Some(directory) = arguments.resume.as_deref().filter(|directory| is_program_run(directory)) {
        // A program's run is over one task, and needs its program.
        refuse_idle(arguments, directory)?;
        let (key, config) = (arguments.key.as_deref(), &arguments.config);
        solve::run(&SolveArguments::resuming(directory, key, config, arguments.json))?;
        return Ok(Answer::Yes);
    }
    interrupt::listen();
    let threads =
        arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let Open { mut climb, mut history, directory, mut put_away, ordered } = open(arguments, threads)?;
    let worlds = worlds_of(&directory, climb.files())?;
    let mut curves = report::Curves::open(&directory)?;
    let time = match (arguments.minutes, arguments.steps) {
        (Some(minutes), _) => Some(Duration::from_secs_f64(minutes * 60.0)),
        (None, Some(_)) => None,
        (None, None) => Some(Duration::from_secs(120)),
    };
    let limit = Limit { started: Instant::now(), time, steps: arguments.steps };
    if !arguments.json {
        say!(
            "BEM climbs {}, seed {}, {}. The run is kept in {}.",
            quantity(climb.tracks().len(), "family"),
            climb.config().seed,
            quantity(threads, "thread"),
            directory.display()
        );
    }
    if let Some(ordered) = ordered.as_ref().filter(|_| !arguments.json) {
        say_text!("{}", ordered.table());
    }
    go_through_record(&mut climb, &worlds, &mut history, &mut curves)?;
    let board = scoreboard::Live::new(!arguments.json && std::io::stderr().is_terminal(), &climb);
    let mut taken = |result: &UnitResult, climb: &Climb| {
        curves.add(result, None, None, None)?;
        history.unit(result, climb)?;
        board.unit(result, climb);
        Ok(())
    };
    pool::work(&mut climb, &worlds, threads, &limit, &board, &mut put_away, &mut taken)?;
    board.finish();
    // After a limit in steps the clock must not show in the history: what is under way then is worked out anew.
    let put_away = if limit.is_over() { put_away } else { PutAway::new() };
    let saved = history.save(&climb, put_away)?;
    compare(&climb, &worlds, &mut curves);
    let figures = evaluations::text(&directory, &climb, &curves);
    history.publish(&directory, evaluations::NAME, figures.as_bytes())?;
    let head = history.publish(&directory, report::NAME, report::html(&climb, &curves, &saved).as_bytes())?;
    if arguments.json {
        let mut object = scoreboard::to_json(&climb, &curves, &head, &directory);
        if let Some(ordered) = &ordered {
            object["ladder"] = ordered.to_json();
        }
        say!("{object}");
    } else {
        say_text!("{}", scoreboard::table(&climb, &curves));
        say!("report   {}", directory.join(report::NAME).display());
        say!("history  {head}");
        say!("audit    bem verify {}", directory.display());
        if limit.is_interrupted() || climb.is_climbing() {
            say!("go on    bem run --resume {}", directory.display());
        }
    }
    Ok(Answer::Yes)
}

/// Plays the baselines beside what every family shows.
fn compare(climb: &Climb, worlds: &SharedWorlds, curves: &mut report::Curves) {
    for climbed in climb.tracks().iter().filter_map(scoreboard::best) {
        let Some(seed) = curves.of(climbed).map(|curve| curve.seed) else { continue };
        if let Ok(World::Game(game)) = worlds.open(&climbed.task, seed) {
            let config = Arc::clone(&climb.config().parameters);
            let settings = Settings { seed, budget: climbed.budget, config };
            // Of what adapts only the beginning is kept.
            let agent = (!climbed.adapts).then(|| Agent::circuit(climbed.policy.clone()));
            curves.compare(climbed, game_baselines(game.as_ref(), agent.as_ref(), &settings, None));
        }
    }
}

/// Units that are recorded after the newest snapshot are worked on again and compared before anything new.
fn go_through_record(
    climb: &mut Climb,
    worlds: &SharedWorlds,
    history: &mut History,
    curves: &mut report::Curves,
) -> Result<()> {
    while let Some(unit) = history.recorded_unit(climb)? {
        let worked = climb.assign(&unit).go_on_in(worlds.as_ref(), None, &mut || !interrupt::is_asked())?;
        let Worked::Done(result) = worked else {
            bail!("interrupted before the recorded units were compared: nothing is lost, resume again");
        };
        climb.take(&result);
        curves.add(&result, None, None, None)?;
        history.unit(&result, climb)?;
    }
    Ok(())
}

fn check(arguments: &RunArguments) -> Result<()> {
    if let Some(directory) = &arguments.resume {
        let frozen = [
            ("--seed", arguments.seed.is_some()),
            ("--stages", arguments.stages.is_some()),
            ("--unit-steps", arguments.unit_steps.is_some()),
        ];
        if let Some((option, _)) = frozen.into_iter().find(|(_, is_given)| *is_given) {
            bail!(
                "{option} has no effect on --resume {}: it was fixed when the run began",
                directory.display()
            );
        }
    }
    if let Some(stages) = arguments.stages.filter(|stages| !(2..=STAGES_MAX).contains(stages)) {
        bail!("--stages {stages} is out of range: 2 to {STAGES_MAX}");
    }
    if let Some(minutes) = arguments.minutes
        && !(0.0..=100_000.0).contains(&minutes)
    {
        bail!("--minutes {minutes} is out of range: 0 to 100000");
    }
    if let Some(threads) = arguments.threads.filter(|threads| !(1..=THREADS_MAX).contains(threads)) {
        bail!("--threads {threads} is out of range: 1 to {THREADS_MAX}");
    }
    if arguments.unit_steps == Some(0) {
        bail!("--unit-steps 0 is out of range: at least 1");
    }
    for family in &arguments.families {
        task::family(family).context("--families")?;
    }
    Ok(())
}

/// What limits a climb does not limit a run over one task, which ends with its budget.
fn refuse_idle(arguments: &RunArguments, directory: &Path) -> Result<()> {
    let name = directory.display();
    let ends = format!("a run over one task ends with its budget, see bem solve --resume {name} --budget N");
    let idle = [
        ("--minutes", arguments.minutes.is_some(), ends.as_str()),
        ("--steps", arguments.steps.is_some(), ends.as_str()),
        ("--threads", arguments.threads.is_some(), "one task is learned on one thread"),
        (
            "--segment-bytes",
            arguments.segment_bytes != SEGMENT_BYTES_DEFAULT,
            "the ledger of a run over one task has files of one size",
        ),
    ];
    if let Some((option, _, reason)) = idle.into_iter().find(|(_, is_given, _)| *is_given) {
        bail!("{option} has no effect on --resume {name}: {reason}");
    }
    Ok(())
}

/// A run that is ready to go on.
struct Open {
    climb: Climb,
    history: History,
    directory: PathBuf,
    put_away: PutAway,
    /// The settings of a user's world in the order of their difficulty.
    ordered: Option<world::Ordered>,
}

/// A new run in a folder of its own, or the one to go on with.
fn open(arguments: &RunArguments, threads: usize) -> Result<Open> {
    let options = LogOptions { segment_bytes: arguments.segment_bytes, ..LogOptions::default() };
    if let Some(directory) = &arguments.resume {
        let (history, climb, mut put_away) = History::resume(directory, arguments.key.as_deref(), options)?;
        // A task of `bem solve` was put away with what it had lost, of which the report of a run says nothing.
        for (_, lesson) in put_away.values_mut() {
            *lesson = without_losses(std::mem::take(lesson)).0;
        }
        arguments.config.check_against(&climb.config().parameters)?;
        return Ok(Open { climb, history, directory: directory.clone(), put_away, ordered: None });
    }
    let families = if arguments.families.is_empty() {
        Domain::all().map(|domain| domain.name().to_string()).collect()
    } else {
        arguments.families.clone()
    };
    let config = ClimbConfig {
        seed: arguments.seed.unwrap_or(SEED),
        stages: arguments.stages.unwrap_or(STAGES),
        unit_steps: arguments.unit_steps.unwrap_or(UNIT_STEPS),
        families,
        parameters: arguments.config.load()?,
    };
    let (climb, files, ordered) = match &arguments.world {
        Some(path) => {
            let ClimbConfig { seed, stages, unit_steps, parameters, .. } = config;
            let (climb, bytes, ordered) =
                world::prepare(path, (seed, stages, unit_steps), parameters, threads)?;
            (climb, vec![bytes], Some(ordered))
        }
        None => (Climb::new(config)?, Vec::new(), None),
    };
    let directory = match &arguments.out {
        Some(directory) => directory.clone(),
        None => free_folder(Path::new("runs"))?,
    };
    let history = History::create_with(&directory, &climb, &files, arguments.key.as_deref(), None, options)?;
    Ok(Open { climb, history, directory, put_away: PutAway::new(), ordered })
}

/// The first folder here that does not exist yet, by number.
pub fn free_folder(parent: &Path) -> Result<PathBuf> {
    for number in 1..100_000 {
        let candidate = parent.join(number.to_string());
        if !candidate.exists() {
            return Ok(candidate);
        }
    }
    bail!("{} is full: name a folder with --out", parent.display())
}
