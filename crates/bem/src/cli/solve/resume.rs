//! `bem solve --resume`: go on with a run over one task, after Ctrl-C, after a crash, or with more budget.
//!
//! A game goes on from where its learner was put away. A program is started again: what it has answered is taken from the
//! run, and it is asked only for what comes after. With more budget the task is learned as if it had been given at once,
//! so that the result does not depend on how often one asked; the history before is set aside. Clauses: LOG-4, LOG-5.

use super::keep::{Keeper, set_aside};
use super::look::Look;
use super::{Named, SolveArguments, learn_game, learn_program, unanswered};
use crate::answers;
use crate::cli::Answer;
use crate::cli::snapshot::newest_climb;
use crate::interrupt;
use crate::kept_world::{kept_files, worlds_from};
use crate::task::{ENV_TIMEOUT_DEFAULT, TIMED_BY_CATALOG, TaskWorld, patience, program};
use crate::tool_task::PREFIX;
use anyhow::{Context as _, Result, bail};
use bem_data::Encoder;
use bem_engine::climb::Climb;
use bem_engine::learner::Settings;
use bem_engine::start::Start;
use bem_engine::world_file::WorldFile;
use bem_engine::world_file::record::Record;
use bem_engine::worlds::World;
use serde_json::Map;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Whether the run in this folder is one over a program.
pub fn is_program_run(directory: &Path) -> bool {
    if answers::path(directory).exists() {
        return true;
    }
    let Ok((climb, _)) = newest_climb(directory) else { return false };
    let files = kept_files(directory, climb.files());
    let Ok(files) = files else { return false };
    let Ok(Some(file)) = world_file(&files) else { return false };
    matches!(file.world(), Some(WorldFile::Record(_)))
}

/// What the one world of a run is made of.
fn world_file(files: &[Vec<u8>]) -> Result<Option<WorldFile>> {
    files.first().map(|bytes| WorldFile::from_bytes(bytes).context("the world's file")).transpose()
}

/// Goes on with the run in this folder.
pub fn run(arguments: &SolveArguments, directory: &Path) -> Result<Answer> {
    refuse_idle(arguments, directory)?;
    interrupt::listen();
    if answers::path(directory).exists() {
        let begun = answers::read(directory)?;
        arguments.config.check_against(&begun.climb.config().parameters)?;
        return go_on_with_program(arguments, directory, begun, true);
    }
    let (climb, _) = newest_climb(directory)?;
    if climb.config().stages != 1 {
        let name = directory.display();
        bail!("{name} is a run over a ladder: go on with bem run --resume {name}");
    }
    arguments.config.check_against(&climb.config().parameters)?;
    let files = kept_files(directory, climb.files())?;
    let file = world_file(&files)?;
    let start = file.as_ref().map(WorldFile::start).unwrap_or_default();
    match file.as_ref().and_then(WorldFile::world) {
        Some(WorldFile::Record(record)) => {
            let command = task_of(&climb);
            let timeout = ENV_TIMEOUT_DEFAULT;
            let is_cut = record.is_cut();
            let begun = answers::Begun { climb, command, timeout, record: record.whole_episodes(), start };
            go_on_with_program(arguments, directory, begun, is_cut)
        }
        _ => {
            if arguments.task.env_timeout.is_some() {
                bail!("--env-timeout has no effect on {}: its world is no program", directory.display());
            }
            go_on_with_game(arguments, directory, &climb, (file, start), files)
        }
    }
}

/// What the run has had from its beginning cannot be changed, and what is not kept cannot go on.
fn refuse_idle(arguments: &SolveArguments, directory: &Path) -> Result<()> {
    let (fixed, unkept) = ("it was fixed when the run began", "no run on such terms is kept");
    let idle = [
        ("--seed", arguments.seed.is_some(), fixed),
        ("--stationary", arguments.stationary, fixed),
        ("--no-replay", arguments.terms.no_replay, unkept),
        ("--delay-rewards", 0 < arguments.terms.delay_rewards, unkept),
    ];
    if let Some((option, _, reason)) = idle.into_iter().find(|(_, is_given, _)| *is_given) {
        bail!("{option} has no effect on --resume {}: {reason}", directory.display());
    }
    Ok(())
}

fn task_of(climb: &Climb) -> String {
    climb.tracks().first().and_then(|track| track.tasks().first()).cloned().unwrap_or_default()
}

/// The task of a run, with the budget that it shall have.
fn named<'a>(
    arguments: &'a SolveArguments,
    directory: &Path,
    climb: &Climb,
    start: Start,
) -> Result<Named<'a>> {
    let config = climb.config();
    if let Some(budget) = arguments.budget.filter(|budget| *budget < config.unit_steps) {
        bail!("--budget {budget} is less than the {} that the run was given", config.unit_steps);
    }
    let budget = arguments.budget.unwrap_or(config.unit_steps);
    let settings = Settings { seed: config.seed, budget, config: Arc::clone(&config.parameters) };
    let text = task_of(climb);
    Ok(Named {
        arguments,
        settings,
        name: text.clone(),
        params: Map::new(),
        text,
        start,
        yardstick: None,
        looked: Look::kept(directory)?,
    })
}

fn refuse_finished(directory: &Path, climb: &Climb) -> Result<()> {
    bail!(
        "{} is finished: it has had its budget of {} steps; give it more with --budget N",
        directory.display(),
        climb.config().unit_steps
    )
}

fn go_on_with_game(
    arguments: &SolveArguments,
    directory: &Path,
    climb: &Climb,
    (file, start): (Option<WorldFile>, Start),
    files: Vec<Vec<u8>>,
) -> Result<Answer> {
    let lesson = named(arguments, directory, climb, start)?;
    let is_larger = climb.config().unit_steps < lesson.settings.budget;
    let is_finished = climb.tracks().iter().all(|track| track.next().is_none());
    if is_finished && !is_larger {
        refuse_finished(directory, climb)?;
    }
    let World::Game(game) = worlds_from(files)?.open(&lesson.text, lesson.settings.seed)? else {
        bail!("{} has a world outside", directory.display());
    };
    let key = arguments.key.as_deref();
    if is_larger {
        let aside = set_aside(directory)?;
        note!("bem: the run so far is set aside in {}", aside.display());
        let keeper = Keeper::create(directory, key, &lesson.settings, &lesson.text, file.as_ref());
        return learn_game(&lesson, &game, Some(directory), keeper.map(Some), None);
    }
    let (keeper, saved) = Keeper::resume(directory, key)?;
    learn_game(&lesson, &game, Some(directory), Ok(Some(keeper)), saved)
}

fn go_on_with_program(
    arguments: &SolveArguments,
    directory: &Path,
    begun: answers::Begun,
    is_cut: bool,
) -> Result<Answer> {
    let answers::Begun { climb, command, timeout, record, start } = begun;
    if arguments.task.env_timeout.is_some() && command.starts_with(PREFIX) {
        bail!("--env-timeout has no effect on {}: {TIMED_BY_CATALOG}", directory.display());
    }
    let mut lesson = named(arguments, directory, &climb, start)?;
    if !is_cut && lesson.settings.budget == climb.config().unit_steps {
        refuse_finished(directory, &climb)?;
    }
    let timeout = arguments.task.env_timeout.unwrap_or(timeout);
    let task = program(&command, &BTreeMap::new(), patience(timeout)?)?;
    lesson.yardstick = task.yardstick;
    let TaskWorld::Program(mut world) = task.world else { bail!("{command} is no program") };
    // Numbers stay cut as they were when the run began, whatever was looked at then.
    if let Some(encoder) = record.features().and_then(|features| Encoder::from_json(features).ok()) {
        world.take_encoder(&encoder);
    }
    check_same(&record, &unanswered(&mut world), &command)?;
    if directory.join("ledger").exists() {
        let aside = set_aside(directory)?;
        note!("bem: the run so far is set aside in {}", aside.display());
    }
    learn_program(&lesson, world, timeout, Some(directory), Some(&record))
}

/// A program that has another world now cannot go on with the answers of the one before.
fn check_same(record: &Record, now: &Record, command: &str) -> Result<()> {
    if !record.is_of_same_world(now) {
        bail!("the program {command:?} says another world in its first line than when the run began");
    }
    Ok(())
}
