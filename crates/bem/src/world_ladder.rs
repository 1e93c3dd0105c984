//! A user's parametrised world as a ladder: a declaration with a list or grid of parameters, and the world of every setting.
//!
//! ```toml
//! name = "lock"
//! command = "python3 examples/lock_env.py --width {width} --relevant {relevant} --steps {steps}"
//! [grid]
//! width = [4, 8]
//! relevant = [1, 2, 3]
//! steps = [1, 4]
//! ```
//!
//! Instead of `command` there may be `game`, a family or composition, or `file`, a game's file; instead of `[grid]` several
//! `[[list]]`. A program must say `"optimum"` and `"random"`: without them nobody knows when a rung is solved. How hard a
//! setting is, and who climbs, is decided elsewhere. Clauses: GLE-9, GLE-5; decision D-84.

use crate::cli::solve::yardstick;
use crate::kept_world;
use crate::process::Process;
use crate::program_game::ProgramFiles;
use crate::task::ENV_TIMEOUT_DEFAULT;
use anyhow::{Context as _, Result, anyhow, bail};
use bem_engine::world_file::GameFile;
use bem_engine::worlds::World;
use bem_games::catalog;
use bem_games::compose::TaskTree;
use bem_games::import::pipe::PipeWorld;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Settings of one world at most: each is measured several times.
pub const SETTINGS_MAX: usize = 256;

/// The declaration as it stands in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    name: String,
    #[serde(default)]
    game: Option<String>,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    timeout: Option<u64>,
    #[serde(default)]
    grid: BTreeMap<String, Vec<toml::Value>>,
    #[serde(default)]
    list: Vec<BTreeMap<String, toml::Value>>,
}

/// What the worlds are made by, with `{parameter}` where a value goes.
#[derive(Clone, Debug)]
enum Source {
    Game(String),
    File(String),
    Command(String),
}

/// One setting of the parameters.
pub type Setting = BTreeMap<String, String>;

/// A parametrised world.
#[derive(Clone, Debug)]
pub struct WorldLadder {
    /// What it is called.
    pub name: String,
    source: Source,
    timeout: Duration,
    /// All settings, in the order of the declaration.
    pub settings: Vec<Setting>,
    files: BTreeMap<String, String>,
}

impl WorldLadder {
    /// Reads a declaration; the files that it names are at hand.
    pub fn parse(text: &str, files: BTreeMap<String, String>) -> Result<WorldLadder> {
        let declared: Declared =
            toml::from_str(text).map_err(|error| anyhow!("{}", error.to_string().trim()))?;
        let Declared { name, game, file, command, timeout, grid, list } = declared;
        let is_word = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
        if name.is_empty() || 64 < name.len() || !name.chars().all(is_word) {
            bail!("name is {name:?}; it must be 1 to 64 letters, digits, - and _");
        }
        if catalog::family(&name).is_ok() {
            bail!("name is {name:?}, which is a family that comes with BEM: give it another one");
        }
        let source = match (game, file, command) {
            (Some(game), None, None) => Source::Game(game),
            (None, Some(file), None) => Source::File(file),
            (None, None, Some(command)) => Source::Command(command),
            _ => bail!("exactly one of game, file and command says what the worlds are made by"),
        };
        let timeout = timeout.unwrap_or(ENV_TIMEOUT_DEFAULT);
        if !(1..=86_400).contains(&timeout) {
            bail!("timeout is {timeout}; allowed is 1 to 86400 seconds");
        }
        let settings = match (grid.is_empty(), list.is_empty()) {
            (false, true) => product(&grid)?,
            (true, false) => list.iter().map(texts).collect::<Result<Vec<Setting>>>()?,
            _ => bail!("either [grid] with lists of values or several [[list]] say the parameters"),
        };
        if !(2..=SETTINGS_MAX).contains(&settings.len()) {
            bail!("there are {} settings; a ladder has 2 to {SETTINGS_MAX}", settings.len());
        }
        if settings.iter().any(|setting| setting.keys().ne(settings[0].keys())) {
            bail!("every [[list]] must name the same parameters");
        }
        let ladder = WorldLadder { name, source, timeout: Duration::from_secs(timeout), settings, files };
        let template = ladder.template();
        if let Some(name) = ladder.settings[0].keys().find(|name| !template.contains(&format!("{{{name}}}")))
        {
            bail!("parameter {name} has no place: write {{{name}}} where its value goes in {template:?}");
        }
        Ok(ladder)
    }

    /// The same with the files that it names, read by `read`.
    pub fn with_files(mut self, read: impl Fn(&str) -> Result<String>) -> Result<WorldLadder> {
        if let Source::File(template) = &self.source {
            for setting in &self.settings {
                let name = filled(template, setting);
                self.files.insert(name.clone(), read(&name)?);
            }
        }
        Ok(self)
    }

    /// The files that it names.
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    fn template(&self) -> &str {
        match &self.source {
            Source::Game(text) | Source::File(text) | Source::Command(text) => text,
        }
    }

    /// The task of a setting, in the words of a run.
    pub fn task(&self, setting: &Setting) -> String {
        let values: Vec<String> = setting.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}{{{}}}", self.name, values.join(","))
    }

    /// The world of a task; hidden choices of a family come from the seed.
    pub fn open(&self, task: &str, seed: u64) -> Result<World> {
        let setting = self.settings.iter().find(|setting| self.task(setting) == task);
        let setting = setting.with_context(|| format!("{task:?} is no setting of {}", self.name))?;
        let text = filled(self.template(), setting);
        match &self.source {
            Source::Game(_) => {
                let tree = TaskTree::parse(&text).with_context(|| format!("game {text:?}"))?;
                Ok(World::Game(tree.build(seed, &ProgramFiles).with_context(|| format!("game {text:?}"))?))
            }
            Source::File(_) => {
                let content = self.files.get(&text).with_context(|| format!("{text} is not kept"))?.clone();
                let file = GameFile { name: text, text: content, player: None, opponent: None };
                Ok(World::Game(kept_world::build(&file)?))
            }
            Source::Command(_) => {
                let process = Process::start(&text, self.timeout).map_err(|error| anyhow!(error))?;
                let world = PipeWorld::open(process).with_context(|| format!("the program {text:?}"))?;
                let stated = world.stated().with_context(|| {
                    format!(
                        "the program {text:?} says no \"optimum\" and \"random\" in its first line: a ladder needs them to \
                         know when a rung is solved"
                    )
                })?;
                Ok(World::Stated(Box::new(world), yardstick(stated)))
            }
        }
    }
}

/// A template with the values of a setting in their places.
fn filled(template: &str, setting: &Setting) -> String {
    setting
        .iter()
        .fold(template.to_string(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// A value as text: whole numbers, words and truth values.
fn text(name: &str, value: &toml::Value) -> Result<String> {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "._-+/".contains(sign);
    match value {
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(value) => Ok(value.to_string()),
        toml::Value::String(word) if !word.is_empty() && word.chars().all(is_plain) => Ok(word.clone()),
        other => bail!(
            "{name} is {other}; a whole number, a truth value or a word of letters, digits and ._-+/ is needed"
        ),
    }
}

fn texts(values: &BTreeMap<String, toml::Value>) -> Result<Setting> {
    values.iter().map(|(name, value)| Ok((name.clone(), text(name, value)?))).collect()
}

/// All settings of a grid, the last parameter fastest.
fn product(grid: &BTreeMap<String, Vec<toml::Value>>) -> Result<Vec<Setting>> {
    let mut settings = vec![Setting::new()];
    for (name, values) in grid {
        if values.is_empty() || SETTINGS_MAX < settings.len() * values.len() {
            bail!("{name} has {} values: a grid has 2 to {SETTINGS_MAX} settings in all", values.len());
        }
        let values = values.iter().map(|value| text(name, value)).collect::<Result<Vec<String>>>()?;
        let with = |setting: &Setting, value: &String| {
            let mut setting = setting.clone();
            setting.insert(name.clone(), value.clone());
            setting
        };
        settings = settings
            .iter()
            .flat_map(|setting| values.iter().map(move |value| with(setting, value)))
            .collect();
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<WorldLadder, String> {
        WorldLadder::parse(text, BTreeMap::new()).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_grid_is_gone_through_and_a_list_is_taken_as_it_stands() {
        let grid = parse("name='w'\ngame='parity{n={n},relevant={r}}'\n[grid]\nn=[2,4]\nr=[1,2]").unwrap();
        let tasks: Vec<String> = grid.settings.iter().map(|setting| grid.task(setting)).collect();
        assert_eq!(tasks, ["w{n=2,r=1}", "w{n=2,r=2}", "w{n=4,r=1}", "w{n=4,r=2}"]);
        let World::Game(game) = grid.open("w{n=4,r=2}", 1).unwrap() else { panic!("a game") };
        assert_eq!(game.shape().observation_bits, 4);
        let list = parse("name='w'\ngame='parity{n={n}}'\n[[list]]\nn=3\n[[list]]\nn=2").unwrap();
        assert_eq!(list.task(&list.settings[0]), "w{n=3}");
    }

    #[test]
    fn what_is_wrong_with_a_declaration_is_named() {
        let body = "game='parity{n={n}}'\n[grid]\nn=[2,4]";
        for (text, words) in [
            (format!("name='a b'\n{body}"), "name is \"a b\""),
            (format!("name='parity'\n{body}"), "comes with BEM"),
            ("name='w'\n[grid]\nn=[1,2]".to_string(), "exactly one of game, file and command"),
            ("name='w'\ngame='parity{n={n}}'".to_string(), "either [grid]"),
            ("name='w'\ngame='parity{n={n}}'\n[grid]\nn=[2]".to_string(), "there are 1 settings"),
            ("name='w'\ngame='parity'\n[grid]\nn=[2,4]".to_string(), "parameter n has no place"),
            ("name='w'\ngame='parity{n={n}}'\n[grid]\nn=[2,0.5]".to_string(), "n is 0.5"),
            ("name='w'\ncommand='x {n}'\n[grid]\nn=[2,'; rm']".to_string(), "a word of letters"),
            (format!("name='w'\ntimeout=0\n{body}"), "timeout is 0"),
            (format!("name='w'\nwrong=1\n{body}"), "unknown field `wrong`"),
            (
                "name='w'\ngame='parity{n={n}}'\n[[list]]\nn=2\n[[list]]\nm=2".to_string(),
                "the same parameters",
            ),
        ] {
            let error = parse(&text).err().unwrap_or_default();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
