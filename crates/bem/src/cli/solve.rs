//! `bem solve`: learn one task from scratch, say how well it went, and keep it if asked to.
//!
//! With `--out` the folder is a run with one task: `bem verify`, `bem export` and `bem replay` take it like any other.
//! When a program dies on the way, what it taught until then is kept; after Ctrl-C the run can go on. Clauses: SCC-8,
//! LOG-4, LOG-5.

use super::Answer;
use super::config::ConfigFile;
use super::run::free_folder;
use super::run::history::{History, PutAway};
use super::run::report::{self, Curves};
use crate::interrupt;
use crate::kept_world::encoder_of;
use crate::start_from;
use crate::task::{Task, TaskArguments, TaskWorld};
use anyhow::{Context as _, Result, bail};
use bem_base::digest::hash;
use bem_base::environment::Environment as _;
use bem_base::fixed::Fixed;
use bem_data::Encoder;
use bem_engine::climb::{Climb, UnitResult};
use bem_engine::evaluate::Evaluation;
use bem_engine::guarding::USER_RULES_OUT;
use bem_engine::learner::{Settings, Tally};
use bem_engine::parameters::check_world;
use bem_engine::solve::{Broken, Lesson, Point, Solution, Taught, solve_world, teach_on};
use bem_engine::start::Start;
use bem_engine::world_file::WorldFile;
use bem_engine::world_file::record::Recorder;
use bem_evolve::improvement::Evidence;
use bem_ledger::log::LogOptions;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Learn one task from scratch.
#[derive(Args)]
#[command(after_help = "Example: bem solve parity --param n=16 --seed 7\n\
    Example: bem solve 'seq(parity{n=4},majority{n=5})'\n\
    Example: bem solve --game examples/games/kuhn_poker.efg --param opponent=uniform\n\
    Example: bem solve --env-cmd 'python3 examples/count_env.py'\n\
    Example: bem solve --env-cmd 'python3 my_world.py' --start-from last-run\n\
    Example: bem solve safety_grid --config bem.toml, with a file from bem config show\n\
    Example: bem solve dyck --out my-dyck, then bem export my-dyck --format verilog")]
pub struct SolveArguments {
    #[command(flatten)]
    task: TaskArguments,
    /// All random choices come from this number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Steps in the world at most; measuring candidates counts.
    #[arg(long, default_value_t = 200_000)]
    budget: u64,
    /// Begin with what is there: a run, a circuit or policy (tried first), or a log of steps (.jsonl, .csv)
    #[arg(long, value_name = "RUN|FILE")]
    start_from: Option<PathBuf>,
    /// Keep the run in this folder: ledger, circuit, report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The file of the key that signs the history; made if it is not there [default: as for bem run]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFile,
    /// Print one JSON object and nothing else.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &SolveArguments) -> Result<Answer> {
    let out = arguments.out.as_deref();
    if let Some(key) = arguments.key.as_ref().filter(|_| out.is_none()) {
        bail!("--key {} has no effect without --out DIR: nothing is kept that it could sign", key.display());
    }
    if let Some(directory) = out.filter(|directory| directory.join("ledger").exists()) {
        bail!("{} holds a run already: name another folder", directory.display());
    }
    let settings =
        &Settings { seed: arguments.seed, budget: arguments.budget, config: arguments.config.load()? };
    let Task { name, params, text, world, mut file } = arguments.task.open(arguments.seed)?;
    let hint =
        (file.is_some() || matches!(world, TaskWorld::Program(_))).then(|| hint_at_units(&world)).flatten();
    let shape = match &world {
        TaskWorld::Game(game) => game.shape(),
        TaskWorld::Program(program) => program.shape(),
    };
    check_world(&settings.config, shape).with_context(|| format!("{text} does not fit the configuration"))?;
    let start = begun(arguments, &world, file.as_ref())?;
    let started = Instant::now();
    let bar = progress_bar(arguments);
    interrupt::listen();
    let on_tick = &mut |tally: &Tally| {
        bar.set_position(tally.steps.min(arguments.budget));
        bar.set_message(format!("{} applied, {} rejected", tally.applied, tally.rejected));
        !interrupt::is_asked()
    };
    let Taught { solution, put_away } = match world {
        TaskWorld::Game(game) => {
            file = with_start(file, &start);
            let lesson = Lesson { start: start.unwrap_or_default(), ..Lesson::alone(settings.clone()) };
            teach_on(game.as_ref(), lesson, None, on_tick).context("the world failed")?
        }
        TaskWorld::Program(mut program) => {
            // What it answers is all that a replay will have of it, Ctrl-C included: that is a call which fails.
            let features = program.encoder().map(Encoder::to_json);
            let mut recorder = Recorder::until(program.as_mut(), &interrupt::is_asked);
            let begin = start.clone().unwrap_or_default();
            let solved = solve_world(&mut recorder, settings.clone(), begin, &mut |tally| {
                on_tick(tally);
                true
            });
            file = with_start(Some(WorldFile::Record(recorder.into_record().named(features))), &start);
            match solved {
                Ok(solution) => Taught { solution, put_away: None },
                Err(broken) => match *broken {
                    Broken { kept: Some(solution), .. } if interrupt::is_asked() => {
                        Taught { solution, put_away: None }
                    }
                    broken => {
                        bar.finish_and_clear();
                        return keep_broken(arguments, settings, text, file.as_ref(), broken);
                    }
                },
            }
        }
    };
    bar.finish_and_clear();
    if interrupt::is_asked() && solution.evaluation.episodes == 0 {
        return keep_interrupted(arguments, settings, text, file.as_ref(), &solution, put_away);
    }
    let wall_ms = started.elapsed().as_millis() as u64;
    // A disk that is full must not cost the result: it is printed before the failure is said.
    let kept =
        out.map_or(Ok(()), |directory| keep(directory, arguments, settings, text, file.as_ref(), &solution));
    if arguments.json {
        say!("{}", to_json(arguments.seed, (&name, params), &solution, wall_ms));
    } else {
        print_summary(&name, arguments.seed, &solution, wall_ms);
        if let Some(directory) = out.filter(|_| kept.is_ok()) {
            say!("  kept in      {0} (report.html; bem verify {0}; bem export {0})", directory.display());
        }
    }
    if let Some(directory) = out {
        kept.with_context(|| format!("the run cannot be kept in {}", directory.display()))?;
    }
    if let Some(hint) = hint {
        note!("bem: {hint}");
    }
    // Of a world outside the optimum is not known: that its score cannot be told is no "no".
    Ok(if solution.is_solved() || solution.score().is_none() { Answer::Yes } else { Answer::No })
}

/// What the learner begins with, if something was named.
fn begun(arguments: &SolveArguments, world: &TaskWorld, file: Option<&WorldFile>) -> Result<Option<Start>> {
    let Some(path) = &arguments.start_from else { return Ok(None) };
    let (shape, encoder) = match world {
        TaskWorld::Game(game) => {
            (game.shape(), encoder_of(&file.map(WorldFile::to_bytes).into_iter().collect::<Vec<_>>()))
        }
        TaskWorld::Program(program) => (program.shape(), program.encoder().cloned()),
    };
    let (start, words) = start_from::open(path, shape, encoder.as_ref())?;
    if !arguments.json {
        note!("bem: starts from {}: {words}", path.display());
    }
    Ok(Some(start))
}

/// The world's file with what a learner in it begins with.
fn with_start(world: Option<WorldFile>, start: &Option<Start>) -> Option<WorldFile> {
    match start {
        None => world,
        Some(start) => {
            Some(WorldFile::Started { world: world.map(Box::new), start: Box::new(start.clone()) })
        }
    }
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

/// Writes a run folder: ledger with certificates and what the world is made of, circuit, curve and report.
fn keep(
    directory: &Path,
    arguments: &SolveArguments,
    settings: &Settings,
    task: String,
    file: Option<&WorldFile>,
    solution: &Solution,
) -> Result<()> {
    let (mut climb, files) = single(settings, &task, file);
    let unit = climb.next(&BTreeSet::new()).context("a single task has one unit")?;
    let key = arguments.key.as_deref();
    let mut history = History::create_with(directory, &climb, &files, key, None, LogOptions::default())?;
    let result = UnitResult { unit, seed: arguments.seed, solution: solution.clone(), reused: false };
    climb.take(&result);
    let mut curves = Curves::open(directory)?;
    curves.add(&result)?;
    history.unit(&result, &climb)?;
    let saved = history.save(&climb, PutAway::new())?;
    history.publish(directory, report::NAME, report::html(&climb, &curves, &saved).as_bytes())?;
    Ok(())
}

/// What the expert is called: the family, the operator, the file without folder and ending, or the program's name.
fn short_name(task: &str) -> &str {
    let first = task.split_whitespace().next().unwrap_or(task);
    let name = first.split(['{', '(']).next().unwrap_or(first);
    Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or("task")
}

/// A program died: what it taught until then goes to a folder, and the error says where.
fn keep_broken(
    arguments: &SolveArguments,
    settings: &Settings,
    task: String,
    file: Option<&WorldFile>,
    broken: Broken,
) -> Result<Answer> {
    let Broken { error, kept } = broken;
    let Some(solution) = kept.filter(|solution| 0 < solution.learned.tally.episodes) else {
        bail!("the world failed: {error}");
    };
    let (steps, words) = (solution.learned.tally.steps, solution.learned.words.clone());
    let directory = match &arguments.out {
        Some(directory) => directory.clone(),
        None => free_folder(Path::new("runs"))?,
    };
    keep(&directory, arguments, settings, task, file, &solution)?;
    let kept = directory.display();
    bail!("the world failed: {error}; what was learned in {steps} steps is kept in {kept}: {words}")
}

/// Ctrl-C: the folder asked for gets what is needed to go on, or, of a program outside, what was learned from it.
fn keep_interrupted(
    arguments: &SolveArguments,
    settings: &Settings,
    task: String,
    file: Option<&WorldFile>,
    solution: &Solution,
    put_away: Option<Vec<u8>>,
) -> Result<Answer> {
    let (steps, words) = (solution.learned.tally.steps, &solution.learned.words);
    let advice = match &arguments.out {
        None => "nothing is kept without --out DIR".to_string(),
        Some(directory) => {
            let name = directory.display();
            match put_away {
                Some(bytes) => {
                    put_away_in(directory, arguments, settings, &task, file, bytes)?;
                    format!("go on with bem run --resume {name}")
                }
                None => {
                    keep(directory, arguments, settings, task, file, solution)?;
                    format!("what was learned is kept in {name}")
                }
            }
        }
    };
    if arguments.json {
        let kept = arguments.out.as_ref().map(|directory| directory.display().to_string());
        let interrupted = json!({ "interrupted": true, "solved": false, "seed": arguments.seed, "steps": steps,
            "hypothesis": words, "kept": kept });
        say!("{interrupted}");
    }
    note!("bem: interrupted after {steps} steps ({words}); {advice}");
    Ok(Answer::No)
}

/// Writes a run folder whose only unit is under way.
fn put_away_in(
    directory: &Path,
    arguments: &SolveArguments,
    settings: &Settings,
    task: &str,
    file: Option<&WorldFile>,
    bytes: Vec<u8>,
) -> Result<()> {
    let (climb, files) = single(settings, task, file);
    let unit = climb.next(&BTreeSet::new()).context("a single task has one unit")?;
    let key = arguments.key.as_deref();
    let mut history = History::create_with(directory, &climb, &files, key, None, LogOptions::default())?;
    history.save(&climb, PutAway::from([(unit.track, (unit.number, bytes))]))?;
    Ok(())
}

/// The run over this task alone, and the files that its world is made of.
fn single(settings: &Settings, task: &str, file: Option<&WorldFile>) -> (Climb, Vec<Vec<u8>>) {
    let files: Vec<Vec<u8>> = file.into_iter().map(WorldFile::to_bytes).collect();
    let digests = files.iter().map(|file| hash(file)).collect();
    let climb = Climb::single(short_name(task), task, settings);
    (climb.with_files(digests), files)
}

fn progress_bar(arguments: &SolveArguments) -> ProgressBar {
    if arguments.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} steps, {msg}");
    ProgressBar::new(arguments.budget).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A fixed number as a float for display; six decimals are kept.
pub fn to_float(value: Fixed) -> f64 {
    let exact = value.to_raw() as f64 / 4_294_967_296.0;
    (exact * 1e6).round() / 1e6
}

fn units(value: Fixed) -> f64 {
    (to_float(value) * 1e3).round() / 1e6
}

fn to_json(seed: u64, task: (&str, Map<String, Value>), solution: &Solution, wall_ms: u64) -> Value {
    let learned = &solution.learned;
    json!({
        "task": task.0,
        "params": task.1,
        "seed": seed,
        "solved": solution.is_solved(),
        "steps": learned.tally.steps,
        "steps_to_99": solution.steps_to_99,
        "score": solution.score().map(to_float),
        "random": solution.yardstick.map(|yardstick| units(yardstick.random)),
        "optimum": solution.yardstick.map(|yardstick| units(yardstick.optimum)),
        "return_mean": units(solution.evaluation.mean),
        "episodes": learned.tally.episodes,
        "wall_ms": wall_ms,
        "gates": learned.agent.policy().gates(),
        "state_bits": learned.agent.policy().memory_bits(),
        "patches_applied": learned.tally.applied,
        "patches_rejected": learned.tally.rejected,
        "patches_undecided": undecided(solution),
        "proofs_checked": learned.tally.proofs,
        "steps_by_machine": learned.tally.steps_by_machine,
        "acting_changes": learned.tally.acting_changes,
        "acting_changes_patched": learned.tally.acting_changes_patched,
        "hypothesis": learned.words,
        "trace_head": learned.chain_head.to_hex(),
    })
}

/// Patches whose condition was neither shown nor refuted within its budget of conflicts; none of them was let in.
fn undecided(solution: &Solution) -> usize {
    solution.decisions.iter().filter(|decision| decision.reason.contains(" is undecided: ")).count()
}

fn print_summary(name: &str, seed: u64, solution: &Solution, wall_ms: u64) {
    let learned = &solution.learned;
    let verdict = match solution.score() {
        None => "learned as far as it went; the optimum of a world outside is not known",
        Some(_) if solution.is_solved() => "solved",
        Some(_) => "not solved",
    };
    say!("{name} (seed {seed}): {verdict}");
    if let (Some(score), Some(yardstick)) = (solution.score(), solution.yardstick) {
        say!(
            "  score        {:.4}   return {:.3}, random {:.3}, optimum {:.3}",
            to_float(score),
            units(solution.evaluation.mean),
            units(yardstick.random),
            units(yardstick.optimum)
        );
    } else {
        let Evaluation { mean, episodes, .. } = solution.evaluation;
        say!("  return       {:.3} on average, frozen, over {episodes} episodes", units(mean));
    }
    let to_99 = match (solution.steps_to_99, solution.yardstick) {
        (Some(steps), _) => format!("; score 0.99 first reached at step {steps}"),
        (None, Some(_)) => "; score 0.99 never reached".to_string(),
        // A world outside has returns, not scores.
        (None, None) => String::new(),
    };
    say!(
        "  steps        {} in {} episodes, {wall_ms} ms{to_99}",
        learned.tally.steps,
        learned.tally.episodes
    );
    say!(
        "  circuit      {} gates, {} memory bits, reads {} bits",
        learned.agent.policy().gates(),
        learned.agent.policy().memory_bits(),
        learned.agent.policy().reads().len()
    );
    say!("  hypothesis   {}", learned.words);
    for decision in &solution.decisions {
        let Evidence { pairs, mean, lower_bound, .. } = decision.evidence;
        let speaks = match decision.words.ends_with(USER_RULES_OUT) {
            true => "proven; the user's word needs no evidence".to_string(),
            false => support(decision.accepted, pairs, to_float(mean), to_float(lower_bound)),
        };
        say!(
            "  {:>8}  {}  {}{}: {}",
            decision.steps,
            if decision.accepted { "install" } else { "reject " },
            decision.words,
            if decision.gates == 0 { String::new() } else { format!(" ({} gates)", decision.gates) },
            if speaks.is_empty() { &decision.reason } else { &speaks },
        );
    }
    say_text!("{}", plot(&solution.curve));
    if solution.score().is_some() && !solution.is_solved() {
        say!("  what helps   {}", advice(solution));
    }
    say!("  trace head   {}", learned.chain_head);
}

/// What speaks for a patch, or against it, in words; nothing where none of it was looked at.
pub fn support(accepted: bool, pairs: u32, mean: f64, lower_bound: f64) -> String {
    match (pairs, accepted) {
        (1.., _) => format!("{pairs} pairs, mean {mean:+.3}, at least {lower_bound:+.3}"),
        // How much the log says is in the words of the patch, because it is another measure for every kind.
        (0, true) if 0.0 < lower_bound => "by the log".to_string(),
        (0, true) => "nothing that is done changes".to_string(),
        (0, false) => String::new(),
    }
}

/// What may bring more, by what the run showed.
fn advice(solution: &Solution) -> &'static str {
    let steps = solution.learned.tally.steps;
    let is_cut = solution.decisions.iter().any(|decision| decision.reason.contains("no budget is left"));
    // The last point is the final evaluation, not a change.
    let changes = solution.curve.split_last().map_or(&[][..], |(_, changes)| changes);
    let is_gaining = changes.last().is_some_and(|point| steps / 2 < point.steps);
    if is_cut || is_gaining {
        "it was still getting better when the budget ended: try a larger --budget"
    } else if solution.learned.tally.applied == 0 {
        "nothing was found that plays better than a choice by what is seen: fields that group the observation bits, rewards \
         nearer to the action, shorter episodes or a larger --budget may help"
    } else {
        "nothing better was found for long: what the observation hides would have to be shown, or remembered by a structure \
         of docs/grammar.md"
    }
}

/// The learning curve as a small plot: each line is one change of the acting policy.
fn plot(curve: &[Point]) -> String {
    // The final evaluation is the last change's once more where nothing has changed since.
    let curve = match curve {
        [rest @ .., change, last] if change == last => &curve[..=rest.len()],
        _ => curve,
    };
    let top = curve.iter().map(|point| units(point.mean)).fold(f64::MIN, f64::max);
    let low = curve.iter().map(|point| units(point.mean)).fold(0.0, f64::min);
    let stride = curve.len().div_ceil(12).max(1);
    let mut text = String::new();
    for (position, point) in curve.iter().enumerate() {
        if position % stride != 0 && position + 1 != curve.len() {
            continue;
        }
        let share = (units(point.mean) - low) / (top - low).max(1e-9);
        let bar = "#".repeat((share * 40.0).round() as usize);
        text.push_str(&format!("  {:>8}  {:>9.3} {bar}\n", point.steps, units(point.mean)));
    }
    text
}
