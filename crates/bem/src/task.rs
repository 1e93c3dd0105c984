//! What to learn, as named on the command line: a family, a composition, a game file, or a program.

use crate::files;
use crate::kept_world;
use crate::process::Process;
use crate::program_game::{ProgramFiles, sources};
use crate::spelling;
use crate::tool_task::{self, Opened, ToolWorld};
use anyhow::{Context as _, Result, anyhow, bail};
use bem_engine::evaluate::Yardstick;
use bem_engine::world_file::{GameFile, WorldFile};
use bem_games::catalog;
use bem_games::compose::{TaskTree, operator};
use bem_games::game::{Family, Game, Range, Setting};
use bem_games::import::pipe::{PipeWorld, Transport};
use bem_games::import::{FILE_BYTES_MAX, Format};
use bem_games::wrappers::Terms;
use clap::Args;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A program may think for a day about one line.
const ENV_TIMEOUT_MAX: u64 = 86_400;
/// Seconds for one line when nothing else is said.
pub const ENV_TIMEOUT_DEFAULT: u64 = 10;

/// Why nobody else says how long a tool may take.
pub const TIMED_BY_CATALOG: &str = "the catalog of its tools says how long they may take";

/// Names one game: a family, a composition or a file.
#[derive(Args, Default)]
pub struct GameArguments {
    /// A family by name (`bem games list` shows them), or a composition such as
    /// `seq(parity{n=4},majority{n=5})`
    #[arg(conflicts_with = "game")]
    pub task: Option<String>,
    /// A parameter as name=value; may be given again
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// A game file: Gambit's .nfg or .efg (with --param opponent=uniform|FILE and player=N), or a tabular process
    /// in .json
    #[arg(long, value_name = "FILE")]
    pub game: Option<PathBuf>,
}

/// Names one task: a game, or a program that is the world.
#[derive(Args, Default)]
pub struct TaskArguments {
    #[command(flatten)]
    pub game: GameArguments,
    /// A program that is the world and speaks one JSON object a line: docs/formats/worlds.md, examples/count_env.py
    #[arg(long, value_name = "CMD", conflicts_with_all = ["task", "game"])]
    pub env_cmd: Option<String>,
    /// A database, or a simulator of a catalog, as a world over a tool bus: docs/tools.md, examples/tools/cheapest.toml
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["task", "game", "env_cmd"])]
    pub tool_task: Option<PathBuf>,
    /// Seconds that the program may take for one line [default: 10]
    #[arg(long, value_name = "SECONDS")]
    pub env_timeout: Option<u64>,
}

/// How a family treats its player, to try the learner on it.
#[derive(Args, Default, Clone, Copy)]
pub struct TermsArguments {
    /// The world cannot be repeated: seeds promise nothing, and candidates are measured without pairs
    #[arg(long)]
    pub no_replay: bool,
    /// Rewards come so many steps late; what is due at the end of an episode comes with its last step
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    pub delay_rewards: u32,
}

/// Rewards that come later than this are tried by nobody.
const DELAY_MAX: u32 = 4_096;

impl TermsArguments {
    /// The terms, if they are within bounds.
    pub fn check(self) -> Result<Terms> {
        if DELAY_MAX < self.delay_rewards {
            bail!("--delay-rewards {} is out of range: 0 to {DELAY_MAX}", self.delay_rewards);
        }
        Ok(Terms { unrepeated: self.no_replay, delay: self.delay_rewards })
    }
}

/// A task that is ready to be played.
pub struct Task {
    /// How it was named.
    pub name: String,
    /// Its parameters, for the report.
    pub params: Map<String, Value>,
    /// The task with its parameters in one line; a family or composition can be built from it again.
    pub text: String,
    /// The world itself.
    pub world: TaskWorld,
    /// What the world is made of, where the text does not say it.
    pub file: Option<WorldFile>,
    /// What best and random play earn in a world outside, where that was worked out.
    pub yardstick: Option<Yardstick>,
}

/// What stands behind a task.
pub enum TaskWorld {
    /// A game with known optimum.
    Game(Arc<dyn Game>),
    /// A program of which nobody knows the optimum.
    Program(Box<Outside>),
}

/// A world outside: a program, or a database behind a tool bus.
pub type Outside = PipeWorld<Speaker>;

/// Who speaks the protocol of worlds outside.
pub enum Speaker {
    /// A program.
    Program(Box<Process>),
    /// A database behind a tool bus.
    Tools(Box<ToolWorld>),
}

impl Transport for Speaker {
    fn send(&mut self, line: &str) -> Result<(), String> {
        match self {
            Speaker::Program(process) => process.send(line),
            Speaker::Tools(world) => world.send(line),
        }
    }

    fn receive(&mut self) -> Result<String, String> {
        match self {
            Speaker::Program(process) => process.receive(),
            Speaker::Tools(world) => world.receive(),
        }
    }
}

impl GameArguments {
    /// Builds the game; hidden choices come from the seed. `ways` says how a task may be named where none is.
    fn open(&self, seed: u64, ways: &str) -> Result<Task> {
        let texts = parse_params(&self.params)?;
        match (&self.task, &self.game) {
            (Some(name), _) => named(name, &texts, seed),
            (_, Some(path)) => file(path, texts),
            _ => bail!("a task is needed: {ways}"),
        }
    }

    /// The task and its game.
    pub fn open_game(&self, seed: u64) -> Result<(Task, Arc<dyn Game>)> {
        let task = self.open(seed, "a name such as parity, or --game FILE")?;
        match &task.world {
            TaskWorld::Game(game) => {
                let game = game.clone();
                Ok((task, game))
            }
            TaskWorld::Program(_) => bail!("a program is no game: nobody knows its optimum"),
        }
    }
}

impl TaskArguments {
    /// Builds the game or starts the program; hidden choices come from the seed.
    pub fn open(&self, seed: u64) -> Result<Task> {
        if let Some(path) = &self.tool_task {
            let name = path.display();
            if let Some(seconds) = self.env_timeout {
                bail!("--env-timeout {seconds} has no effect on --tool-task {name}: {TIMED_BY_CATALOG}");
            }
            if let Some(text) = self.game.params.first() {
                bail!("--param {text} has no effect on --tool-task {name}: the file says all of the task");
            }
            return program(&format!("{}{name}", tool_task::PREFIX), &BTreeMap::new(), Duration::ZERO);
        }
        let Some(command) = &self.env_cmd else {
            if let Some(seconds) = self.env_timeout {
                bail!("--env-timeout {seconds} has no effect without --env-cmd CMD");
            }
            return self
                .game
                .open(seed, "a name such as parity, --game FILE, --env-cmd CMD or --tool-task FILE.toml");
        };
        let patience = patience(self.env_timeout.unwrap_or(ENV_TIMEOUT_DEFAULT))?;
        program(command, &parse_params(&self.game.params)?, patience)
    }
}

/// How long a program may take for one line, if that is within bounds.
pub fn patience(seconds: u64) -> Result<Duration> {
    if !(1..=ENV_TIMEOUT_MAX).contains(&seconds) {
        bail!("--env-timeout {seconds} is out of range: 1 to {ENV_TIMEOUT_MAX} seconds");
    }
    Ok(Duration::from_secs(seconds))
}

/// Splits `name=value` texts; a text without `=` or a name that comes twice is an error.
pub fn parse_params(texts: &[String]) -> Result<BTreeMap<String, String>> {
    let mut params = BTreeMap::new();
    for text in texts {
        let Some((name, value)) = text.split_once('=') else {
            bail!("--param {text:?} must have the form NAME=VALUE");
        };
        if params.insert(name.trim().to_string(), value.trim().to_string()).is_some() {
            bail!("parameter {name} is given twice");
        }
    }
    Ok(params)
}

fn named(name: &str, texts: &BTreeMap<String, String>, seed: u64) -> Result<Task> {
    if name.contains(['(', '{']) || operator(name).is_some() {
        let tree = TaskTree::parse(name).with_context(|| format!("composition {name:?}"))?;
        // Parameters given apart belong to the root.
        let mut settings = tree.settings().clone();
        settings.extend(texts.clone());
        let tree = tree.with_settings(settings);
        let game = tree.build(seed, &ProgramFiles).with_context(|| format!("composition {name:?}"))?;
        let params = texts.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let text = tree.to_string();
        let programs = sources(&tree).map_err(|error| anyhow!(error))?;
        let file = (!programs.is_empty()).then_some(WorldFile::Programs(programs));
        return Ok(Task {
            name: text.clone(),
            params,
            text,
            world: TaskWorld::Game(game),
            file,
            yardstick: None,
        });
    }
    let family = family(name)?;
    let settings = catalog::settings(family, texts).with_context(|| format!("family {name}"))?;
    let game = catalog::build(family, &settings, seed).with_context(|| format!("family {name}"))?;
    let parameters = catalog::parameters(family);
    let describe = |(name, setting): (&'static str, Setting)| {
        let range =
            parameters.iter().find(|parameter| parameter.name == name).map(|parameter| parameter.range);
        let value = match (setting, range) {
            (Setting::Choice(index), Some(Range::Choice { words })) => json!(words[index]),
            (Setting::Choice(index), _) => json!(index),
            (Setting::Number(value), _) => json!(value),
        };
        (name.to_string(), value)
    };
    let params = settings.iter().map(describe).collect();
    let given: Vec<String> = texts.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let text = if given.is_empty() { name.to_string() } else { format!("{name}{{{}}}", given.join(",")) };
    Ok(Task {
        name: name.to_string(),
        params,
        text,
        world: TaskWorld::Game(game),
        file: None,
        yardstick: None,
    })
}

/// The family of this name; a slip is answered with the name that was probably meant.
pub fn family(name: &str) -> Result<&'static dyn Family> {
    catalog::family(name).map_err(|error| {
        let known = catalog::families().iter().map(|family| family.name());
        match spelling::hint(name, known) {
            hint if hint.is_empty() => error.into(),
            hint => anyhow!("there is no family called {name:?}{hint}; bem games list shows all"),
        }
    })
}

/// Reads a text file that must not be larger than a game may be.
fn read_text(path: &Path) -> Result<String> {
    let named = || path.display().to_string();
    let size = std::fs::metadata(path).map_or(0, |about| about.len());
    if path.is_file() && FILE_BYTES_MAX as u64 <= size {
        bail!("{}: the file has {size} bytes; at most {FILE_BYTES_MAX} are allowed", named());
    }
    files::read_text(path)
}

fn file(path: &Path, mut texts: BTreeMap<String, String>) -> Result<Task> {
    let name = path.display().to_string();
    let format = Format::from_file_name(&name)?;
    let params = texts.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let (mut player, mut opponent) = (None, None);
    if format != Format::Table {
        player = texts.remove("player");
        opponent = match texts.remove("opponent").filter(|policy| policy != "uniform") {
            None => None,
            Some(policy) => Some((policy.clone(), read_text(Path::new(&policy))?)),
        };
    }
    if let Some(unknown) = texts.keys().next() {
        let known = if format == Format::Table { "none" } else { "opponent, player" };
        bail!("{name}: there is no parameter called {unknown:?}; known are {known}");
    }
    let file = GameFile { name: name.clone(), text: read_text(path)?, player, opponent };
    let world = TaskWorld::Game(kept_world::build(&file)?);
    Ok(Task { text: name.clone(), name, params, world, file: Some(WorldFile::Game(file)), yardstick: None })
}

/// Starts a program.
pub fn program(command: &str, texts: &BTreeMap<String, String>, timeout: Duration) -> Result<Task> {
    if let Some(name) = texts.keys().next() {
        bail!("a program takes no parameters here, but {name} is given: put it into the command");
    }
    let (speaker, yardstick) = match command.strip_prefix(tool_task::PREFIX) {
        Some(path) => match tool_task::open(Path::new(path))? {
            Opened::Database(world, yardstick) => (Speaker::Tools(world), Some(yardstick)),
            Opened::Simulator(process) => (Speaker::Program(process), None),
        },
        None => (
            Speaker::Program(Box::new(Process::start(command, timeout).map_err(|error| anyhow!(error))?)),
            None,
        ),
    };
    let world = PipeWorld::open(speaker).with_context(|| format!("the program {command:?}"))?;
    let (name, text) = (command.to_string(), command.to_string());
    let world = TaskWorld::Program(Box::new(world));
    Ok(Task { name, params: Map::new(), text, world, file: None, yardstick })
}
