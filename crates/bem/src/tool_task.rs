//! A world of a catalog, `bem solve --tool-task FILE.toml`: a database, or a simulator (ENV_TASK) by its name. Every observation
//! and every reward is a request on a tool bus.
//!
//! A state is a whole number; a query shows it as bits, a statement for every action says what it earns: what the statement
//! cost, in steps of the database's machine beside those of the cheapest statement, how many rows it found, or a value that it
//! read. Where episodes have several steps, a column called `next` says the next state. A lookup adds what the database knows
//! about the state to the observation. The best and the random policy are worked out by trying every statement in every state.
//! Answers are recorded like those of every world outside, so that a run is played again without the database.
//! Clauses: TOOL-7, TOOL-8, GLE-9; decisions D-74, D-205.

use crate::files;
use crate::process::Process;
use anyhow::{Context as _, Result, anyhow, bail};
use bem_base::fixed::Fixed;
use bem_base::ids::ObjectId;
use bem_base::prng::Prng;
use bem_engine::evaluate::Yardstick;
use bem_games::import::pipe::Transport;
use bem_tools::bus::{Request, key};
use bem_tools::cbor::Item;
use bem_tools::limits::PAYLOAD_MAX;
use bem_tools::operation::db_flag;
use bem_workers::catalog_file::CatalogFile;
use bem_workers::host::{Host, HostOptions, PATIENCE};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a task over the bus is named where programs are.
pub const PREFIX: &str = "tool-task ";
/// States at most.
const STATES_MAX: u32 = 4_096;
/// Actions at most.
const ACTIONS_MAX: u32 = 256;
/// Steps of an episode at most.
const HORIZON_MAX: u32 = 64;
/// Bits of all fields at most.
const BITS_MAX: u32 = 256;

/// A task over tools as its file is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    catalog: PathBuf,
    database: String,
    starts: u32,
    states: Option<u32>,
    #[serde(default = "one")]
    horizon: u32,
    reward: Earned,
    rows_max: Option<u32>,
    observe: Look,
    lookup: Option<Look>,
    #[serde(default)]
    actions: Vec<String>,
    act: Option<String>,
    action_count: Option<u32>,
}

/// A simulator of a catalog, by its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    catalog: PathBuf,
    environment: String,
}

/// Only to see which of the two a file is.
#[derive(Deserialize)]
struct Which {
    environment: Option<toml::Value>,
}

fn one() -> u32 {
    1
}

/// What an action earns.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Earned {
    /// Thousand times the steps of the cheapest statement, over those that it took.
    Cost,
    /// The share of `rows_max` rows that it found, in thousandths.
    Rows,
    /// What its first column says, in milli-units.
    Value,
}

/// A query with the widths of its columns.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    query: String,
    bits: Vec<u32>,
    #[serde(default = "yes")]
    enabled: bool,
}

fn yes() -> bool {
    true
}

/// The statements of a task.
struct Rules {
    database: ObjectId,
    starts: u32,
    states: u32,
    horizon: u32,
    reward: Earned,
    rows_max: i64,
    observe: Look,
    lookup: Option<Look>,
    actions: Vec<(String, Option<i64>)>,
}

impl Rules {
    fn check(file: File, database: ObjectId) -> Result<Rules> {
        let range = |name: &str, value: u32, max: u32| match value {
            0 => bail!("{name} 0 is out of range: 1 to {max}"),
            value if max < value => bail!("{name} {value} is out of range: 1 to {max}"),
            value => Ok(value),
        };
        let states = range("states", file.states.unwrap_or(file.starts), STATES_MAX)?;
        let starts = range("starts", file.starts, states)?;
        let horizon = range("horizon", file.horizon, HORIZON_MAX)?;
        let actions: Vec<(String, Option<i64>)> = match (&file.act, file.actions.as_slice()) {
            (Some(act), []) => {
                let count = range("action_count", file.action_count.unwrap_or(0), ACTIONS_MAX)?;
                (0..i64::from(count)).map(|action| (act.clone(), Some(action))).collect()
            }
            (None, [_, ..]) => file.actions.iter().map(|text| (text.clone(), None)).collect(),
            _ => bail!(
                "one of actions = [\"SELECT ...\", ...] and act = \"SELECT ...\" with action_count is needed"
            ),
        };
        range("actions", actions.len() as u32, ACTIONS_MAX)?;
        let looks = core::iter::once(("observe", &file.observe))
            .chain(file.lookup.iter().map(|look| ("lookup", look)));
        let mut bits = 0;
        for (name, look) in looks {
            if look.bits.is_empty() || look.bits.iter().any(|width| !(1..=32).contains(width)) {
                bail!("{name}.bits must list the widths of its columns, 1 to 32 each");
            }
            bits += look.bits.iter().sum::<u32>();
        }
        range("bits of all columns", bits, BITS_MAX)?;
        let rows_max = i64::from(range("rows_max", file.rows_max.unwrap_or(1), 10_000)?);
        let File { reward, observe, lookup, .. } = file;
        Ok(Rules { database, starts, states, horizon, reward, rows_max, observe, lookup, actions })
    }
}

/// What a statement brought: rows found, steps taken, first column, next state.
struct Brought {
    rows: i64,
    steps: i64,
    value: Option<i64>,
    next: Option<i64>,
}

/// A database's world behind the lines of the protocol for worlds outside.
pub struct ToolWorld {
    host: Host,
    kind: ObjectId,
    rules: Rules,
    number: u64,
    /// What the cheapest statement costs in every state.
    cheapest: Vec<i64>,
    state: u32,
    left: u32,
    answer: Option<String>,
}

/// What a task's file names.
pub enum Opened {
    /// A database, with what best and random play earn.
    Database(Box<ToolWorld>, Yardstick),
    /// A simulator: nobody knows what it pays.
    Simulator(Box<Process>),
}

/// Reads a task's file; what is wrong is said with its line.
fn read<T: DeserializeOwned>(name: &str, text: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        anyhow!("{name}:{line}: {}", error.message())
    })
}

/// Opens the task of a file.
pub fn open(path: &Path) -> Result<Opened> {
    let name = path.display().to_string();
    let text = files::read_text(path)?;
    let base = path.parent().unwrap_or(Path::new("."));
    if read::<Which>(&name, &text)?.environment.is_some() {
        return open_simulator(&name, read(&name, &text)?, base).map(Opened::Simulator);
    }
    let (world, yardstick) = open_database(&name, read(&name, &text)?, base)?;
    Ok(Opened::Database(Box::new(world), yardstick))
}

/// A simulator of the catalog: ENV_TASK's row says which, the bus steps it.
fn open_simulator(name: &str, file: Named, base: &Path) -> Result<Box<Process>> {
    let catalog = Arc::new(CatalogFile::load(&base.join(&file.catalog))?);
    let found = catalog.catalog.find(&file.environment).filter(|id| catalog.simulators.contains_key(id));
    let id = found.with_context(|| {
        let known: Vec<&str> =
            catalog.simulators.keys().filter_map(|id| catalog.catalog.name_of(*id)).collect();
        let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        format!("{name}: environment {:?} is not in the catalog: known are {known}", file.environment)
    })?;
    Ok(Box::new(Process::named(catalog, id).map_err(|error| anyhow!("{name}: {error}"))?))
}

fn open_database(name: &str, file: File, base: &Path) -> Result<(ToolWorld, Yardstick)> {
    let catalog = Arc::new(CatalogFile::load(&base.join(&file.catalog))?);
    let database = catalog.catalog.find(&file.database).filter(|id| catalog.databases.contains_key(id));
    let database = database.with_context(|| {
        let known: Vec<&str> = catalog.databases.values().map(|database| database.name.as_str()).collect();
        format!("{name}: database {:?} is not in the catalog: known are {}", file.database, known.join(", "))
    })?;
    let kind = catalog.catalog.find("db").context("the catalog has no databases")?;
    let rules = Rules::check(file, database).with_context(|| name.to_string())?;
    let host = Host::start(catalog, &HostOptions { has_commands: false, ..HostOptions::default() })?;
    let hello = None;
    let mut world =
        ToolWorld { host, kind, rules, number: 0, cheapest: Vec::new(), state: 0, left: 0, answer: hello };
    let yardstick = world.brute_force().map_err(|error| anyhow!("{name}: {error}"))?;
    Ok((world, yardstick))
}

impl ToolWorld {
    /// One statement over the bus.
    fn ask(&mut self, text: &str, parameters: &[i64]) -> Result<Item, String> {
        // Statements say how many of the parameters they read.
        let wanted =
            (1..=parameters.len()).rev().find(|place| text.contains(&format!("?{place}"))).unwrap_or(0);
        let bound = parameters[..wanted].iter().map(|value| Item::Int(*value)).collect();
        let payload =
            Item::fields([(0, Item::Text(text.to_string())), (3, Item::List(bound)), (4, Item::Int(10_000))])
                .to_bytes();
        self.number += 1;
        let asked = Request {
            operation: 0,
            flags: db_flag::READ_ONLY,
            resource: self.rules.database,
            payload: &payload,
            capacity: PAYLOAD_MAX as u32,
            number: self.number,
            key: key(self.number, &payload),
            is_idempotent: true,
            lease: 0,
            patience: PATIENCE,
        };
        let done = self.host.call(self.kind, &asked).map_err(|refused| refused.to_string())?;
        match done.error {
            Some(code) => {
                Err(format!("{text:?}: {} ({})", code.words(), String::from_utf8_lossy(&done.response)))
            }
            None => Item::from_bytes(&done.response).map_err(|error| error.to_string()),
        }
    }

    fn act(&mut self, state: u32, action: usize) -> Result<Brought, String> {
        let (text, number) = self.rules.actions[action].clone();
        let answer = self.ask(&text, &[i64::from(state), number.unwrap_or(0)])?;
        let int = |key: u64| answer.field(key).and_then(Item::int).unwrap_or(0);
        let columns = answer.field(0).and_then(Item::list).unwrap_or_default();
        let first = answer.field(1).and_then(Item::list).and_then(<[Item]>::first).and_then(Item::list);
        let next = columns.iter().position(|column| column.text() == Some("next"));
        let next = next.and_then(|place| first?.get(place)?.int());
        if let Some(next) = next.filter(|next| !(0..i64::from(self.rules.states)).contains(next)) {
            return Err(format!("{text:?}: next {next} is no state: 0 to {}", self.rules.states - 1));
        }
        Ok(Brought { rows: int(2), steps: int(5), value: first.and_then(|row| row.first()?.int()), next })
    }

    fn earned(&self, state: u32, brought: &Brought) -> Result<i64, String> {
        match self.rules.reward {
            Earned::Cost => {
                let cheapest = self.cheapest.get(state as usize).copied().unwrap_or(brought.steps);
                Ok(1_000 * cheapest / brought.steps.max(1))
            }
            Earned::Rows => Ok(1_000 * brought.rows.min(self.rules.rows_max) / self.rules.rows_max),
            Earned::Value => {
                brought.value.ok_or_else(|| "an action's statement found no whole number".to_string())
            }
        }
    }

    /// Tries every statement in every state: what the best and the random policy earn an episode.
    fn brute_force(&mut self) -> Result<Yardstick, String> {
        let (states, actions) = (self.rules.states, self.rules.actions.len());
        let mut found = Vec::new();
        for state in 0..states {
            let brought =
                (0..actions).map(|action| self.act(state, action)).collect::<Result<Vec<_>, _>>()?;
            self.cheapest.push(brought.iter().map(|brought| brought.steps).min().unwrap_or(1).max(1));
            found.push(brought);
        }
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        let mut table = Vec::new();
        for (state, brought) in (0..states).zip(&found) {
            let mut row = Vec::new();
            for brought in brought {
                let earned = self.earned(state, brought)?;
                (low, high) = (low.min(earned), high.max(earned));
                row.push((earned, brought.next.map_or(state, |next| next as u32)));
            }
            table.push(row);
        }
        let to_go = |best: &[i128], row: &[(i64, u32)], place: usize| {
            i128::from(row[place].0) + best[row[place].1 as usize]
        };
        let (mut best, mut random) = (vec![0i128; states as usize], vec![0i128; states as usize]);
        // Random values are scaled by the number of actions to the power of the steps so far: kept as raw fixed numbers.
        for _ in 0..self.rules.horizon {
            let better =
                |row: &Vec<(i64, u32)>| (0..actions).map(|place| to_go(&best, row, place)).max().unwrap_or(0);
            let next_best: Vec<i128> = table.iter().map(better).collect();
            let mean = |row: &Vec<(i64, u32)>| {
                let sum: i128 = row
                    .iter()
                    .map(|(earned, next)| (i128::from(*earned) << 32) + random[*next as usize])
                    .sum();
                sum / actions as i128
            };
            random = table.iter().map(mean).collect();
            best = next_best;
        }
        let starts = i128::from(self.rules.starts);
        let over = |values: &[i128]| values[..self.rules.starts as usize].iter().sum::<i128>();
        let optimum = Fixed::from_raw(((over(&best) << 32) / starts) as i64);
        let random = Fixed::from_raw((over(&random) / starts) as i64);
        let range = match self.rules.reward {
            Earned::Cost | Earned::Rows => [0, 1_000],
            Earned::Value => [low, high],
        };
        self.answer = Some(self.hello(range).to_string());
        Ok(Yardstick { optimum, random })
    }

    fn hello(&self, range: [i64; 2]) -> Value {
        let widths =
            self.rules.observe.bits.iter().chain(self.rules.lookup.iter().flat_map(|look| &look.bits));
        let mut low = 0;
        let fields: Vec<[u32; 2]> = widths
            .map(|width| {
                low += width;
                [low - width, *width]
            })
            .collect();
        json!({
            "hello": 1, "obs_bits": low, "actions": self.rules.actions.len(), "horizon": self.rules.horizon,
            "reward_range": range, "fields": fields,
        })
    }

    /// The bits of a state: what the query shows, then what the lookup knows.
    fn observation(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let looks: Vec<Look> =
            core::iter::once(self.rules.observe.clone()).chain(self.rules.lookup.clone()).collect();
        for look in looks {
            if !look.enabled {
                text.extend(core::iter::repeat_n('0', look.bits.iter().sum::<u32>() as usize));
                continue;
            }
            let answer = self.ask(&look.query, &[i64::from(self.state)])?;
            let row = answer.field(1).and_then(Item::list).and_then(<[Item]>::first).and_then(Item::list);
            let row =
                row.ok_or_else(|| format!("{:?} found nothing for state {}", look.query, self.state))?;
            if row.len() != look.bits.len() {
                return Err(format!(
                    "{:?} has {} columns, bits names {}",
                    look.query,
                    row.len(),
                    look.bits.len()
                ));
            }
            for (item, width) in row.iter().zip(&look.bits) {
                let value = item.int().filter(|value| (0..1 << width).contains(value));
                let value = value
                    .ok_or_else(|| format!("{:?}: {item:?} is no number of {width} bits", look.query))?;
                text.extend((0..*width).map(|bit| if value >> bit & 1 == 1 { '1' } else { '0' }));
            }
        }
        Ok(text)
    }

    fn reset(&mut self, seed: u64) -> Result<Value, String> {
        self.state = Prng::stream(seed, "tool-task/start").below(u64::from(self.rules.starts)) as u32;
        self.left = self.rules.horizon;
        Ok(json!({ "obs": self.observation()? }))
    }

    fn step(&mut self, action: usize) -> Result<Value, String> {
        if self.rules.actions.len() <= action || self.left == 0 {
            return Err(format!("action {action} is out of range, or the episode is over"));
        }
        let brought = self.act(self.state, action)?;
        let reward = self.earned(self.state, &brought)?;
        self.left -= 1;
        self.state = brought.next.map_or(self.state, |next| next as u32);
        Ok(json!({ "obs": self.observation()?, "reward": reward, "done": self.left == 0 }))
    }
}

impl Transport for ToolWorld {
    fn send(&mut self, line: &str) -> Result<(), String> {
        let said: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let answer = match (said["reset"].as_u64(), said["act"].as_u64()) {
            (Some(seed), _) => self.reset(seed)?,
            (_, Some(action)) => self.step(action as usize)?,
            _ => return Err(format!("a line that is neither reset nor act: {line}")),
        };
        self.answer = Some(answer.to_string());
        Ok(())
    }

    fn receive(&mut self) -> Result<String, String> {
        self.answer.take().ok_or_else(|| "nothing was asked".to_string())
    }
}
