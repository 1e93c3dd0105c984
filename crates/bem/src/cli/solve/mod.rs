//! `bem solve`: learn one task from scratch, say how well it went beside simple policies, and keep it if asked to.
//!
//! With `--out` the folder is a run with one task: `bem verify`, `bem export` and `bem replay` take it like any other, and
//! `--resume` goes on with it after Ctrl-C, after a crash, and with more budget. When a program dies on the way, what it
//! taught until then is kept. Clauses: SCC-8, LOG-4, LOG-5.

pub mod keep;
mod look;
mod measure;
mod resume;
mod words;

pub use look::Look;
pub use measure::game_baselines;
pub use resume::is_program_run;
pub use words::{COUNTING, circuit_words, saturation, support, unexplained};

use super::Answer;
use super::config::ConfigFile;
use super::run::free_folder;
use crate::answers::{self, Answers};
use crate::interrupt;
use crate::kept_world::encoder_of;
use crate::measured::{Measured, millionths};
use crate::task::{ENV_TIMEOUT_DEFAULT, Outside, Task, TaskArguments, TaskWorld, TermsArguments};
use crate::translated::Rounding;
use crate::{asked_model, start_from};
use anyhow::{Context as _, Result, bail};
use bem_base::environment::Environment as _;
use bem_base::fixed::Fixed;
use bem_base::plain::plain;
use bem_base::words::quantity;
use bem_data::{Decimal, Encoder};
use bem_engine::evaluate::{Evaluation, Yardstick};
use bem_engine::learner::{Settings, Tally};
use bem_engine::parameters::check_world;
use bem_engine::solve::{Broken, Lesson, OnTick, Solution, Taught, teach_on, teach_world};
use bem_engine::start::{MACHINES_MAX, Start};
use bem_engine::world_file::WorldFile;
use bem_engine::world_file::continued::Continued;
use bem_engine::world_file::record::{Record, Recorder};
use bem_games::game::Game;
use bem_games::wrappers::{Terms, on_terms};
use bem_tables::beside::Beside;
use bem_tables::losses::Losses;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use keep::{Keeper, Saves, single};
use measure::ProgramMeasure;
use serde_json::{Map, Value, json};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use words::{Told, print_summary, to_json};

/// The seed when nothing else is said.
const SEED: u64 = 1;
/// Steps when nothing else is said.
const BUDGET: u64 = 200_000;
/// More episodes than this take longer than anybody waits.
const EVAL_EPISODES_MAX: u32 = 10_000_000;
/// No evaluation was asked for.
const UNEVALUATED: Evaluation = Evaluation { mean: Fixed::ZERO, error: Fixed::ZERO, bad: 0, episodes: 0 };

/// Learn one task from scratch.
#[derive(Args, Default)]
#[command(after_help = "Example: bem solve parity --param n=16 --seed 7\n\
    Example: bem solve 'seq(parity{n=4},majority{n=5})'\n\
    Example: bem solve --game examples/games/kuhn_poker.efg --param opponent=uniform\n\
    Example: bem solve --env-cmd 'python3 examples/count_env.py'\n\
    Example: bem solve --tool-task examples/tools/cheapest.toml\n\
    Example: bem solve --env-cmd 'python3 my_world.py' --start-from last-run\n\
    Example: bem solve 'bandit{arms=8}' --online --baseline 3 --conservative 0.05\n\
    Example: bem config show > bem.toml, then bem solve dyck --config bem.toml\n\
    Example: bem solve dyck --out my-dyck, then bem export my-dyck --format verilog\n\
    Example: bem solve --resume my-dyck --budget 400000")]
pub struct SolveArguments {
    #[command(flatten)]
    task: TaskArguments,
    #[command(flatten)]
    terms: TermsArguments,
    /// Propose no policy that counts steps: for a world whose episodes need not end
    #[arg(long)]
    stationary: bool,
    /// All random choices come from this number [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Steps in the world at most; measuring candidates counts [default: 200000, or that of the run to go on with]
    #[arg(long)]
    budget: Option<u64>,
    /// Episodes of the final evaluation, and of every baseline at most; 0 switches both off [default: 1000, and 200 for
    /// the baselines of a program]. They are not counted in the budget. A game is evaluated over 1000 episodes at least, or
    /// not at all; with --out and 0 its history still names the score, which a replay compares
    #[arg(long, value_name = "N")]
    eval_episodes: Option<u32>,
    /// Act until the budget is spent instead of ending when nothing is left to gain, and say what was earned meanwhile
    #[arg(long, conflicts_with = "resume")]
    online: bool,
    /// Begin with what is there: a run, a circuit or policy (tried first), or a log of steps (.jsonl, .csv)
    #[arg(long, value_name = "RUN|FILE")]
    start_from: Option<PathBuf>,
    /// The catalog of the tools that are asked
    #[arg(long, value_name = "CATALOG.toml", requires = "model", conflicts_with = "resume")]
    tools: Option<PathBuf>,
    /// A model of the catalog that is asked for candidates; they are tried first, through the gate
    #[arg(long, value_name = "NAME", requires = "tools", conflicts_with = "resume")]
    model: Option<String>,
    /// Never fall below this while learning, save for what --conservative allows: an action, a run or a policy
    #[arg(long, value_name = "ACTION|POLICY", requires = "conservative", conflicts_with = "resume")]
    baseline: Option<String>,
    /// The part of the baseline's return that may be risked, such as 0.05: what is tried is paid from it and from gains.
    /// After every try, what all episodes have earned is at least the rest, with a probability of 19 in 20 for all tries of a run
    /// together: with 1 in 20 the baseline earns more than the upper bound that its own episodes give
    #[arg(long, value_name = "EPSILON", requires = "baseline", conflicts_with = "resume")]
    conservative: Option<String>,
    /// Keep the run in this folder: ledger, circuit, report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with a run in this folder: after Ctrl-C, after a crash, or, with a larger --budget, when it is finished
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "task", "game", "env_cmd", "tool_task", "params", "start_from"])]
    resume: Option<PathBuf>,
    /// The file of the key that signs the history; made if it is not there [default: as for bem run]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFile,
    /// Print one JSON object and nothing else.
    #[arg(long)]
    json: bool,
}

impl SolveArguments {
    /// Goes on with a run, as `bem run --resume` asks for it.
    pub fn resuming(directory: &Path, key: Option<&Path>, config: &ConfigFile, json: bool) -> SolveArguments {
        let (resume, key) = (Some(directory.to_path_buf()), key.map(Path::to_path_buf));
        SolveArguments { resume, key, config: config.clone(), json, ..SolveArguments::default() }
    }
}

/// Runs the command.
pub fn run(arguments: &SolveArguments) -> Result<Answer> {
    if let Some(episodes) = arguments.eval_episodes.filter(|episodes| EVAL_EPISODES_MAX < *episodes) {
        bail!("--eval-episodes {episodes} is out of range: 0 to {EVAL_EPISODES_MAX}");
    }
    if let Some(directory) = &arguments.resume {
        return resume::run(arguments, directory);
    }
    let out = arguments.out.as_deref();
    if let Some(key) = arguments.key.as_ref().filter(|_| out.is_none()) {
        bail!("--key {} has no effect without --out DIR: nothing is kept that it could sign", key.display());
    }
    if let Some(directory) = out
        && (directory.join("ledger").exists() || answers::path(directory).exists())
    {
        let name = directory.display();
        bail!("{name} holds a run already: go on with bem solve --resume {name}, or name another folder");
    }
    let seed = arguments.seed.unwrap_or(SEED);
    let budget = arguments.budget.unwrap_or(BUDGET);
    let settings = Settings { seed, budget, config: arguments.config.load()? };
    let settings =
        if arguments.online { settings.with(|config| config.until_budget = true) } else { settings };
    let settings =
        if arguments.stationary { settings.with(|config| config.stationary = true) } else { settings };
    let Task { name, params, text, world, file, yardstick } = arguments.task.open(seed)?;
    let mut world = on_these(arguments, world)?;
    interrupt::listen();
    let looked = looked(arguments, &mut world, seed)?;
    if interrupt::is_asked() && matches!(world, TaskWorld::Program(_)) {
        return Ok(interrupted_before(arguments, seed, &looked));
    }
    let hint =
        (file.is_some() || matches!(world, TaskWorld::Program(_))).then(|| hint_at_units(&world)).flatten();
    let shape = match &world {
        TaskWorld::Game(game) => game.shape(),
        TaskWorld::Program(program) => program.shape(),
    };
    if arguments.stationary && shape.horizon == 1 {
        bail!("--stationary has no effect on {text}: its episodes take one step, which nothing can count");
    }
    check_world(&settings.config, shape).with_context(|| format!("{text} does not fit the configuration"))?;
    let start = begun(arguments, &world, file.as_ref())?;
    let file = WorldFile::started(file, &start);
    let lesson = Named { arguments, settings, name, params, text, start, yardstick, looked };
    let answer = match world {
        TaskWorld::Game(game) => {
            let create = |directory| {
                Keeper::create(
                    directory,
                    arguments.key.as_deref(),
                    &lesson.settings,
                    &lesson.text,
                    file.as_ref(),
                )
            };
            let keeper = out.map(create).transpose();
            learn_game(&lesson, &game, out, keeper, None)
        }
        TaskWorld::Program(program) => {
            let timeout = arguments.task.env_timeout.unwrap_or(ENV_TIMEOUT_DEFAULT);
            learn_program(&lesson, program, timeout, out, None)
        }
    }?;
    if let Some(hint) = hint {
        note!("bem: {hint}");
    }
    Ok(answer)
}

/// The world on the terms that were asked for: a trial of the learner, of which nothing is kept.
fn on_these(arguments: &SolveArguments, world: TaskWorld) -> Result<TaskWorld> {
    let terms = arguments.terms.check()?;
    if terms == Terms::default() {
        return Ok(world);
    }
    if arguments.out.is_some() {
        bail!(
            "--no-replay and --delay-rewards try the learner: leave --out away, nothing is kept of such a run"
        );
    }
    match world {
        TaskWorld::Game(game) => Ok(TaskWorld::Game(on_terms(game, terms))),
        TaskWorld::Program(_) => bail!(
            "--no-replay and --delay-rewards are for games: a program says \"replay\":false and sends \"late\" by itself"
        ),
    }
}

/// What a look at a program's world brings: places where its numbers lie, those of the run that is started from if it has such.
fn looked(arguments: &SolveArguments, world: &mut TaskWorld, seed: u64) -> Result<Look> {
    let TaskWorld::Program(program) = world else { return Ok(Look::default()) };
    let from = arguments.start_from.as_deref();
    if arguments.baseline.is_some() || from.is_some_and(|from| look::take_places(program, from)) {
        return Ok(Look::default());
    }
    look::look(program, seed, arguments.json)
}

/// Ctrl-C before the first step: nothing was learned, and the next run begins in the same way.
fn interrupted_before(arguments: &SolveArguments, seed: u64, looked: &Look) -> Answer {
    if arguments.json {
        let mut told = json!({ "interrupted": true, "solved": false, "seed": seed, "steps": 0, "hypothesis": null,
            "kept": null });
        looked.add_to(&mut told);
        say!("{told}");
    }
    let steps = quantity(looked.steps, "step");
    note!("bem: interrupted before the first step, after a look of {steps}; nothing is kept");
    Answer::No
}

/// A task to learn, with its name and what was asked for.
struct Named<'a> {
    arguments: &'a SolveArguments,
    settings: Settings,
    name: String,
    params: Map<String, Value>,
    text: String,
    /// What the learner begins with.
    start: Start,
    /// What best and random play earn in a world outside, where that is known.
    yardstick: Option<Yardstick>,
    /// What was seen of a program's world before the first step.
    looked: Look,
}

/// What the learner begins with, if something was named.
fn begun(arguments: &SolveArguments, world: &TaskWorld, file: Option<&WorldFile>) -> Result<Start> {
    let files: Vec<Vec<u8>> = file.into_iter().map(WorldFile::to_bytes).collect();
    let (shape, encoder) = match world {
        TaskWorld::Game(game) => (game.shape(), encoder_of(&files)),
        TaskWorld::Program(program) => (program.shape(), program.encoder().cloned()),
    };
    let mut start = match &arguments.start_from {
        None => Start::default(),
        Some(path) => {
            let (start, words) = start_from::open(path, shape, encoder.as_ref(), Rounding::Nearest)?;
            if !arguments.json {
                note!("bem: starts from {}: {words}", path.display());
            }
            start
        }
    };
    if let (Some(catalog), Some(model)) = (&arguments.tools, &arguments.model) {
        let features = encoder.as_ref().map_or_else(String::new, |encoder| encoder.to_json());
        let steps = start.episodes.iter().flat_map(|episode| &episode.steps);
        let known: Vec<_> = steps.map(|step| (step.observation, step.action, step.reward)).collect();
        let read = asked_model::propose(catalog, model, (shape, &features), &known)?;
        if !arguments.json {
            read.refused.iter().for_each(|reason| note!("bem: model {model}: {reason}"));
            note!("bem: model {model} proposes {} machines, which are tried first", read.machines.len());
        }
        start.machines.extend(read.machines);
        start.machines.truncate(MACHINES_MAX);
    }
    if let (Some(baseline), Some(risk)) = (&arguments.baseline, &arguments.conservative) {
        start.baseline = Some(start_from::baseline(baseline, per_mille(risk)?, shape, encoder.as_ref())?);
    }
    Ok(start)
}

/// A part of one in thousandths.
fn per_mille(text: &str) -> Result<u16> {
    let raw = Decimal::parse(text).ok().and_then(|part| part.to_fixed()).map(|part| part.to_raw());
    let risk =
        raw.map(|raw| (i128::from(raw) * 1_000 + (1 << 31)) >> 32).filter(|risk| (1..=1_000).contains(risk));
    risk.map(|risk| risk as u16).with_context(|| {
        format!("--conservative {text}: must be a part of the baseline's return, 0.001 to 1")
    })
}

/// Rewards of one's own that look like units are probably meant as units.
fn hint_at_units(world: &TaskWorld) -> Option<String> {
    let shape = match world {
        TaskWorld::Game(game) => game.shape(),
        TaskWorld::Program(program) => program.shape(),
    };
    let (low, high) = (shape.reward_min, shape.reward_max);
    let is_small = low < high && low.unsigned_abs().max(high.unsigned_abs()) <= UNITS_MAX;
    is_small.then(|| {
        format!(
            "rewards lie between {low} and {high} milli-units, thousandths of a unit: if 1 was meant as one unit, write 1000"
        )
    })
}

/// Rewards up to this look like units.
const UNITS_MAX: u32 = 10;

/// Learns a game, from where its learner was put away if it was. A folder that cannot be written costs the run, not the
/// result: that is printed before the failure is said.
fn learn_game(
    lesson: &Named<'_>,
    game: &Arc<dyn Game>,
    directory: Option<&Path>,
    keeper: Result<Option<Keeper>>,
    saved: Option<(Vec<u8>, Losses)>,
) -> Result<Answer> {
    let started = Instant::now();
    let bar = lesson.progress_bar();
    let (mut keeper, mut failure) = match keeper {
        Ok(keeper) => (keeper, None),
        Err(error) => (None, Some(error)),
    };
    let mut saves = Saves::new(saved.is_some());
    let (mut saved, lost) = saved.unzip();
    let beside = Beside::after(Arc::clone(game), lost.unwrap_or_default());
    let mut solution = loop {
        let is_kept = keeper.is_some();
        let mut on_tick = |tally: &Tally| {
            bar.set_position(tally.steps.min(lesson.settings.budget));
            bar.set_message(format!("{} applied, {} rejected", tally.applied, tally.rejected));
            !(interrupt::is_asked() || is_kept && saves.is_due(tally.steps))
        };
        let Taught { solution, put_away } = lesson.teach(&beside, is_kept, saved.as_deref(), &mut on_tick)?;
        let Some(bytes) = put_away else { break solution };
        if interrupt::is_asked() {
            bar.finish_and_clear();
            if let Some(keeper) = &mut keeper {
                keeper.save(&bytes, game.shape(), Some(&beside.losses()?))?;
            }
            return lesson.interrupted(directory.filter(|_| failure.is_none()), &solution);
        }
        let kept = match &mut keeper {
            Some(open) => open.save(&bytes, game.shape(), Some(&beside.losses()?)),
            None => Ok(bytes.clone()),
        };
        saves.done(solution.learned.tally.steps);
        saved = Some(kept.unwrap_or_else(|error| {
            (keeper, failure) = (None, Some(error));
            bytes
        }));
    };
    bar.finish_and_clear();
    let losses = beside.losses_of(&solution.online).context("the world failed")?;
    let evaluated = Measured::of(&solution.evaluation, solution.yardstick);
    let mut measured = evaluated.filter(|_| lesson.is_evaluated());
    if let Some(measured) = &mut measured {
        let game = game.without_terms().unwrap_or(game.as_ref());
        let agent = &solution.learned.agent;
        measured.baselines =
            game_baselines(game, Some(agent), &lesson.settings, lesson.arguments.eval_episodes);
    }
    let wall_ms = started.elapsed().as_millis() as u64;
    let kept = match (keeper, failure) {
        (Some(keeper), _) => keeper.with_losses(losses.clone()).finish(&solution, measured.as_ref()),
        (None, Some(failure)) => Err(failure),
        (None, None) => Ok(()),
    };
    if !lesson.is_evaluated() {
        solution.evaluation = UNEVALUATED;
        (solution.steps_to_99, solution.first_to_99) = (None, None);
        solution.curve.clear();
    }
    let (measured, losses) = (measured.as_ref(), losses.as_ref());
    lesson.say(
        &Told { solution: &solution, measured, losses, looked: &lesson.looked, wall_ms },
        directory,
        kept,
    )
}

/// What a program has stated, for scores.
pub fn yardstick((optimum, random): (i64, i64)) -> Yardstick {
    let milli = |value: i64| Fixed::from_int(value as i32);
    Yardstick { optimum: milli(optimum), random: milli(random) }
}

/// The record of a program's world before anything was asked.
fn unanswered(program: &mut Outside) -> Record {
    let features = program.encoder().map(Encoder::to_json);
    Recorder::new(program).into_record().named(features)
}

/// Learns a program's world, after what it has answered before.
fn learn_program(
    lesson: &Named<'_>,
    mut program: Box<Outside>,
    timeout: u64,
    directory: Option<&Path>,
    before: Option<&Record>,
) -> Result<Answer> {
    let started = Instant::now();
    let bar = lesson.progress_bar();
    let empty = unanswered(program.as_mut());
    let stated = program.stated().map(yardstick);
    let open = |directory: &Path| {
        let (climb, _) = single(&lesson.settings, &lesson.text, None);
        let known = before.map_or(&[][..], Record::calls);
        let start = (&empty, &lesson.start);
        let written = Answers::create(directory, &climb, (&lesson.text, timeout), start, known)?;
        lesson.looked.keep(directory).map(|()| written)
    };
    let (mut written, mut failure) = match directory.map(open).transpose() {
        Ok(written) => (written, None),
        Err(error) => (None, Some(error)),
    };
    let mut sink = |bytes: &[u8]| {
        if let Some(written) = &mut written {
            written.take(bytes);
        }
    };
    // What it answers is all that a replay will have of it, Ctrl-C included: that is a call which fails.
    let mut source = Continued::new(program.as_mut(), before);
    let mut recorder = Recorder::until(&mut source, &interrupt::is_asked).into_sink(&mut sink);
    // What was played is kept without a folder too: one is made where the program dies.
    let solved = teach_world(&mut recorder, lesson.lesson(true), &mut |tally| {
        bar.set_position(tally.steps.min(lesson.settings.budget));
        bar.set_message(format!("{} applied, {} rejected", tally.applied, tally.rejected));
        true
    });
    let record = empty.with_calls(recorder.into_record().into_calls());
    let file = WorldFile::started(Some(WorldFile::Record(record)), &lesson.start);
    bar.finish_and_clear();
    failure = failure.or_else(|| written.as_mut().and_then(Answers::failure));
    let keep = |directory: &Path, solution: &Solution, measured: Option<&Measured>| {
        let key = lesson.arguments.key.as_deref();
        let keeper = Keeper::create(directory, key, &lesson.settings, &lesson.text, file.as_ref())?;
        lesson.looked.keep(directory)?;
        keeper.finish(solution, measured)
    };
    let mut solution = match solved {
        Ok(solution) => solution,
        Err(broken) => match *broken {
            Broken { kept: Some(solution), .. } if interrupt::is_asked() => {
                if let Some(directory) = directory.filter(|_| failure.is_none()) {
                    keep(directory, &solution, None)?;
                }
                return lesson.interrupted(directory.filter(|_| failure.is_none()), &solution);
            }
            Broken { error, kept } => {
                let Some(solution) = kept.filter(|solution| 0 < solution.learned.tally.episodes) else {
                    bail!("the world failed: {error}");
                };
                let directory = match directory {
                    Some(directory) => directory.to_path_buf(),
                    None => free_folder(Path::new("runs"))?,
                };
                keep(&directory, &solution, None)?;
                let (steps, words) = (solution.learned.tally.steps, plain(&solution.learned.words));
                let kept = directory.display();
                bail!(
                    "the world failed: {error}; what was learned in {steps} steps is kept in {kept}: {words}; go on with \
                     bem solve --resume {kept}"
                );
            }
        },
    };
    let measure =
        ProgramMeasure::new(program.as_ref(), lesson.arguments.eval_episodes, lesson.arguments.json);
    // A program that fails now costs the figures, not what was learned.
    let found = measure.run(program.as_mut(), &solution.learned.agent, &lesson.settings);
    let (found, unmeasured) = match found {
        Ok(found) => (found, None),
        Err(error) => (None, Some(error)),
    };
    let measured = found.map(|(evaluation, measured)| {
        solution.yardstick = stated;
        solution.take_evaluation(evaluation);
        let (optimum, random) = (lesson.yardstick.map(|it| it.optimum), lesson.yardstick.map(|it| it.random));
        Measured { optimum: optimum.map(millionths), random: random.map(millionths), ..measured }
    });
    look::warnings(&program).iter().for_each(|warning| note!("bem: {warning}"));
    let wall_ms = started.elapsed().as_millis() as u64;
    let kept = match (directory, failure) {
        (_, Some(failure)) => Err(failure),
        (Some(directory), None) => keep(directory, &solution, measured.as_ref()),
        (None, None) => Ok(()),
    };
    // What best play earns is no part of the history: a replay does not know it.
    solution.yardstick = lesson.yardstick.filter(|_| measured.is_some());
    let looked = &lesson.looked;
    let told = Told { solution: &solution, measured: measured.as_ref(), losses: None, looked, wall_ms };
    let answer = lesson.say(&told, directory, kept)?;
    unmeasured.map_or(Ok(answer), Err)
}

impl Named<'_> {
    /// What the learner is given; what is played is kept if somebody will write it down.
    fn lesson(&self, keeps_play: bool) -> Lesson {
        Lesson { start: self.start.clone(), keeps_play, ..Lesson::alone(self.settings.clone()) }
    }

    /// Whether anybody wants to know how good the policy is.
    fn is_evaluated(&self) -> bool {
        self.arguments.eval_episodes != Some(0)
    }

    /// Teaches a game, from where it was put away if it was. Without an evaluation nobody looks on, unless the run is kept: its
    /// history names scores, and a replay works them out again.
    fn teach(
        &self,
        game: &dyn Game,
        is_kept: bool,
        saved: Option<&[u8]>,
        on_tick: OnTick<'_>,
    ) -> Result<Taught> {
        let lesson = self.lesson(is_kept);
        if is_kept || saved.is_some() || self.is_evaluated() {
            return teach_on(game, lesson, saved, on_tick).context("the world failed");
        }
        let mut solution = teach_world(game.start().as_mut(), lesson, on_tick).context("the world failed")?;
        solution.yardstick = Some(Yardstick::of(game));
        // After Ctrl-C there is nothing to go on from, because nothing is kept.
        Ok(Taught { solution, put_away: interrupt::is_asked().then(Vec::new) })
    }

    /// Prints what was learned, then what went wrong with keeping it.
    fn say(&self, told: &Told<'_>, directory: Option<&Path>, kept: Result<()>) -> Result<Answer> {
        let seed = self.settings.seed;
        if self.arguments.json {
            say!("{}", to_json(seed, (&self.name, self.params.clone()), told));
        } else {
            print_summary(&self.name, seed, told);
            if let Some(directory) = directory.filter(|_| kept.is_ok()) {
                say!("  kept in      {} (open its report.html)", directory.display());
                say!("  next         bem explain, bem export, bem verify, with this folder");
            }
        }
        if let Some(directory) = directory {
            kept.with_context(|| format!("the run cannot be kept in {}", directory.display()))?;
        }
        // Of a world outside the optimum is not known, and what was not evaluated has no score: neither is a "no".
        Ok(if told.is_solved() || told.score().is_none() { Answer::Yes } else { Answer::No })
    }

    /// Ctrl-C: what was learned so far, and how to go on.
    fn interrupted(&self, directory: Option<&Path>, solution: &Solution) -> Result<Answer> {
        let (steps, words) = (solution.learned.tally.steps, &solution.learned.words);
        let kept = directory.map(|directory| directory.display().to_string());
        let advice = match &kept {
            Some(name) => format!("go on with bem solve --resume {name}"),
            None => "nothing is kept without --out DIR".to_string(),
        };
        if self.arguments.json {
            let mut interrupted = json!({ "interrupted": true, "solved": false, "seed": self.settings.seed, "steps": steps,
                "hypothesis": words, "kept": kept });
            self.looked.add_to(&mut interrupted);
            say!("{interrupted}");
        }
        note!("bem: interrupted after {steps} steps ({}); {advice}", plain(words));
        Ok(Answer::No)
    }

    fn progress_bar(&self) -> ProgressBar {
        if self.arguments.json || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len} steps, {msg}");
        ProgressBar::new(self.settings.budget)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}
