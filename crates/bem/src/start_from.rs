//! `--start-from`: what a learner begins with, from a run, a circuit, a policy of `bem learn`, or a log of steps.
//!
//! A circuit is put before the world's own bits and stated as its table; a run over a program brings what was played there
//! as well. A log has the columns `action` and `reward` (milli-units), the features or `obs`, and `episode` where episodes have more
//! than one step. Clauses: LOG-5, GLE-9.

use crate::cli::ledger_directory;
use crate::cli::serve::is_service;
use crate::cli::snapshot::newest_climb;
use crate::files;
use crate::kept_world::kept_files;
use crate::learned::{self, Found, Learned};
use anyhow::{Context as _, Result, bail};
use bem_base::environment::{Bits, Shape};
use bem_circuit::netlist::{Builder, Signal};
use bem_data::{Code, Column, Decimal, Encoder, FeatureKind, Table};
use bem_engine::start::{Baseline, EPISODES_MAX, STATED_INPUTS_MAX, Start, machine_of};
use bem_engine::world_file::WorldFile;
use bem_runtime::history::renewed;
use bem_synth::experience::{EXPERIENCE_STEPS_MAX, Episode, Experience, Step};
use bem_synth::hypothesis::Stated;
use bem_synth::library::Machine;
use bem_synth::policy::{Policy, action_bits};
use bem_synth::propose::{Settings, propose};
use std::path::Path;

/// Explanations of a log that are tried.
const EXPLAINED_MAX: usize = 3;

/// What a learner in a world begins with, and a line that says so.
pub fn open(path: &Path, shape: &Shape, encoder: Option<&Encoder>) -> Result<(Start, String)> {
    let named = || format!("--start-from {}", path.display());
    let ending = path.extension().and_then(|ending| ending.to_str());
    if let Some(ending @ ("jsonl" | "csv")) = ending {
        let text = files::read_text(path)?;
        let table = if ending == "csv" { Table::from_csv(&text) } else { Table::from_jsonl(&text) };
        let episodes = log(&table.with_context(named)?, shape, encoder).with_context(named)?;
        let start = Start { machines: Vec::new(), episodes, baseline: None }.fitting(shape);
        return told(Start { machines: explained(shape, &start.episodes), ..start }, shape)
            .with_context(named);
    }
    if let Some(start) = served(path, shape).with_context(named)? {
        return told(start, shape).with_context(named);
    }
    let learned = match learned::open(path, None)? {
        Found::One(learned) => learned,
        Found::Several(_) => bail!("{}: the run has several policies; name a circuit", named()),
    };
    let episodes = if path.is_dir() { played(path, shape, encoder)? } else { Vec::new() };
    let machine = translated(&learned, shape, encoder).and_then(|policy| machine_of(&policy, shape));
    // A circuit with too many inputs for a table is found again in what it was learned from.
    let machines = match machine {
        Some(machine) => vec![machine],
        None if episodes.is_empty() => Vec::new(),
        None => explained(shape, &episodes),
    };
    if machines.is_empty() && episodes.is_empty() {
        bail!("{}: the circuit cannot be tried here: {}", named(), misfit(&learned, shape, encoder));
    }
    told(Start { machines, episodes, baseline: None }, shape).with_context(named)
}

/// What the one world of this shape in a server's folder was played and learned, whatever learner wrote it; nothing where the folder is no
/// server's.
fn served(path: &Path, shape: &Shape) -> Result<Option<Start>> {
    if !path.is_dir() {
        return Ok(None);
    }
    let mut store = ledger_directory::open(path)?;
    if !is_service(&mut store) {
        return Ok(None);
    }
    let fitting = renewed::told(&mut store)?.into_iter().filter(|(spec, _)| spec.shape == *shape);
    let mut fitting: Vec<Start> = fitting.map(|(_, start)| start).collect();
    match fitting.len() {
        1 => Ok(fitting.pop()),
        count => bail!("{count} worlds of that server look like this one; one is needed"),
    }
}

/// A policy that must not be fallen below in a world: an action, or the one circuit of a run or file.
pub fn baseline(text: &str, risk: u16, shape: &Shape, encoder: Option<&Encoder>) -> Result<Baseline> {
    if let Ok(action) = text.parse::<u16>() {
        if shape.actions <= action {
            bail!("--baseline {action}: the actions of this world are 0 to {}", shape.actions - 1);
        }
        return Ok(Baseline { policy: Policy::constant(shape.actions, action), risk });
    }
    let learned = match learned::open(Path::new(text), None).with_context(|| {
        format!("--baseline {text}: must be an action, 0 to {}, a run, or a policy", shape.actions - 1)
    })? {
        Found::One(learned) => learned,
        Found::Several(_) => bail!("--baseline {text}: the run has several policies; name a circuit"),
    };
    let policy = translated(&learned, shape, encoder);
    let baseline = policy.map(|policy| Baseline { policy, risk }).filter(|baseline| baseline.fits(shape));
    baseline.with_context(|| {
        format!("--baseline {text}: it does not fit this world: {}", misfit(&learned, shape, encoder))
    })
}

/// Why a circuit cannot be tried in a world: the first condition that fails, with both sides of it.
fn misfit(learned: &Learned, shape: &Shape, encoder: Option<&Encoder>) -> String {
    let policy = &learned.policy;
    let (own, wanted) = (policy.actions(), shape.actions);
    let both = learned.names.as_ref().zip(encoder).filter(|(own, world)| own != world);
    let is_fitted = both.is_none() && action_bits(own) == action_bits(wanted);
    if own != wanted && !is_fitted {
        return format!("it has {own} actions and this world {wanted}");
    }
    if let Some((names, world)) = both {
        let there =
            |column: &&Column| world.columns().iter().find(|other| other.feature.name == column.feature.name);
        let read = |column: &&Column| {
            let bits = column.low..column.low + column.width;
            policy.reads().iter().any(|bit| bits.contains(bit))
        };
        let columns = || names.columns().iter().filter(read);
        if let Some(column) = columns().find(|column| there(column).is_none()) {
            return format!("it reads {:?}, which this world does not show", column.feature.name);
        }
        if 0 < policy.memory_bits() {
            let other = columns().find(|column| there(column).is_some_and(|other| other.code != column.code));
            let name = other.map_or("a feature", |column| column.feature.name.as_str());
            return format!("it remembers, and {name:?} has other thresholds here than it was learned with");
        }
        let unread = |bit: &&u16| {
            input(&mut Builder::new(usize::from(shape.observation_bits)), names, world, usize::from(**bit))
                .is_none()
        };
        let column = policy.reads().iter().find(unread).and_then(|bit| names.column_of(usize::from(*bit)));
        if let Some(column) = column {
            return format!("{:?} has other thresholds or words here", column.feature.name);
        }
    } else if let Some(last) = policy.reads().last().filter(|last| shape.observation_bits <= **last) {
        return format!("it reads bit {last} and this world shows {} bits", shape.observation_bits);
    }
    let inputs = translated(learned, shape, encoder).map_or(0, |policy| policy.circuit().inputs());
    format!("it has {inputs} inputs with memory; at most {STATED_INPUTS_MAX} can be stated as a table")
}

/// What explains the episodes of others best: tried first, like a circuit that was named.
fn explained(shape: &Shape, episodes: &[Episode]) -> Vec<Machine> {
    let mut experience = Experience::new(EXPERIENCE_STEPS_MAX);
    for (serial, episode) in episodes.iter().enumerate() {
        experience.push(Episode { serial: serial as u64, ..episode.clone() });
    }
    let stated =
        propose(shape, &experience, &Settings::default()).hypotheses.into_iter().filter_map(|found| {
            let stated = Stated { policy: found.policy, statement: found.statement? };
            Some(Machine::circuit(
                shape,
                stated,
                (format!("{}, from the log", found.words), found.description_length),
            ))
        });
    stated.take(EXPLAINED_MAX).collect()
}

/// What fits the world, and a line about it.
fn told(start: Start, shape: &Shape) -> Result<(Start, String)> {
    let start = start.fitting(shape);
    let (machines, episodes) = (start.machines.len(), start.episodes.len());
    if machines + episodes == 0 {
        bail!("nothing in it fits this world: {} bits, {} actions", shape.observation_bits, shape.actions);
    }
    let words = match (machines, episodes) {
        (0, episodes) => format!("{episodes} episodes as experience"),
        (machines, 0) => format!("{machines} circuits, tried first"),
        (machines, episodes) => {
            format!("{machines} circuits, tried first, and {episodes} episodes as experience")
        }
    };
    Ok((start, words))
}

/// What a run over a program was answered, where its world encoded the same way.
fn played(directory: &Path, shape: &Shape, encoder: Option<&Encoder>) -> Result<Vec<Episode>> {
    // A state of another version of bem says nothing of what was played.
    let Ok((climb, _)) = newest_climb(directory) else { return Ok(Vec::new()) };
    let files = kept_files(directory, climb.files())?;
    let Some(bytes) = files.first() else { return Ok(Vec::new()) };
    let file = WorldFile::from_bytes(bytes).context("the world's file")?;
    let Some(WorldFile::Record(record)) = file.world() else { return Ok(Vec::new()) };
    let is_same = record.features() == encoder.map(Encoder::to_json).as_deref() && record.shape() == shape;
    Ok(if is_same { latest(record.episodes()) } else { Vec::new() })
}

/// The last episodes with as many steps as an experience holds.
fn latest(mut episodes: Vec<Episode>) -> Vec<Episode> {
    let (mut steps, mut first) = (0, episodes.len());
    while 0 < first
        && steps + episodes[first - 1].steps.len() <= EXPERIENCE_STEPS_MAX
        && episodes.len() - first < EPISODES_MAX
    {
        first -= 1;
        steps += episodes[first].steps.len();
    }
    episodes.split_off(first)
}

/// A log's rows as episodes.
fn log(table: &Table, shape: &Shape, encoder: Option<&Encoder>) -> Result<Vec<Episode>> {
    let (action, reward) = (table.column("action")?, table.column("reward")?);
    let episode = table.column("episode").ok();
    let propensity = table.column("propensity").ok();
    if episode.is_none() && 1 < shape.horizon {
        bail!(
            "episodes of this world have up to {} steps: the log needs a column \"episode\"",
            shape.horizon
        );
    }
    let seen = |cells: &[String]| -> Result<Bits> {
        if let Some(encoder) = encoder {
            let cell = |name: &str| table.column(name).ok().map(|column| cells[column].as_str());
            return Ok(encoder.encode(cell)?);
        }
        let text = cells[table.column("obs")?].trim();
        let width = usize::from(shape.observation_bits);
        let bits = Bits::from_text(text).filter(|_| text.len() == width);
        bits.with_context(|| format!("\"obs\" is {text:?}; it must be {width} zeros and ones"))
    };
    let mut episodes: Vec<Episode> = Vec::new();
    let mut last: Option<&str> = None;
    for (number, cells) in table.rows.iter().enumerate() {
        let row = || format!("row {}", number + 1);
        let taken = cells[action].trim().parse::<u16>().ok().filter(|taken| *taken < shape.actions);
        let taken = taken.with_context(|| {
            format!("{}: the action {:?} must be 0 to {}", row(), cells[action], shape.actions - 1)
        })?;
        let paid = Decimal::parse(&cells[reward])
            .with_context(row)?
            .to_int()
            .and_then(|paid| i32::try_from(paid).ok());
        let paid =
            paid.filter(|paid| (shape.reward_min..=shape.reward_max).contains(paid)).with_context(|| {
                format!(
                    "{}: the reward {:?} must be a whole number of milli-units from {} to {}",
                    row(),
                    cells[reward],
                    shape.reward_min,
                    shape.reward_max
                )
            })?;
        let chance = match propensity {
            None => 65_535,
            Some(column) => {
                let fixed = Decimal::parse(&cells[column])
                    .with_context(row)?
                    .to_fixed()
                    .map_or(0, |value| value.to_raw());
                u16::try_from((i128::from(fixed) * 65_535) >> 32)
                    .ok()
                    .filter(|chance| 0 < *chance)
                    .with_context(|| {
                        format!("{}: the propensity {:?} must be above 0 and at most 1", row(), cells[column])
                    })?
            }
        };
        let step = Step {
            observation: seen(cells).with_context(row)?,
            action: taken,
            reward: paid,
            done: true,
            bad: false,
            uniform: propensity.is_some()
                && u32::from(chance).abs_diff(65_535 / u32::from(shape.actions)) <= 1,
            propensity: chance,
        };
        let name = episode.map(|column| cells[column].as_str());
        match episodes.last_mut() {
            Some(episode) if name.is_some() && name == last => {
                episode.steps.iter_mut().for_each(|step| step.done = false);
                episode.steps.push(step);
            }
            _ => episodes.push(Episode { serial: episodes.len() as u64, steps: vec![step] }),
        }
        last = name;
    }
    Ok(latest(episodes))
}

/// The policy over the world's own bits. Where its features have other thresholds than the world's, the nearest are taken: the
/// gate measures what comes of it.
fn translated(learned: &Learned, shape: &Shape, encoder: Option<&Encoder>) -> Option<Policy> {
    let policy = &learned.policy;
    let (Some(own), Some(world)) = (&learned.names, encoder) else { return in_range(policy, shape) };
    if own == world {
        return in_range(policy, shape);
    }
    if policy.actions() != shape.actions || policy.memory_bits() != 0 {
        return None;
    }
    let bits = usize::from(shape.observation_bits);
    let mut builder = Builder::new(bits);
    let mut inputs = Vec::new();
    for bit in policy.reads() {
        inputs.push(input(&mut builder, own, world, usize::from(*bit))?);
    }
    let outputs = builder.embed(policy.circuit(), &inputs);
    debug_assert!(outputs.len() == action_bits(shape.actions));
    Policy::close(builder, bits, shape.actions, &outputs, &[]).ok()
}

/// The policy with the world's actions: a circuit alone knows only how many bits an action has.
fn in_range(policy: &Policy, shape: &Shape) -> Option<Policy> {
    let (bits, code) = (usize::from(shape.observation_bits), action_bits(shape.actions));
    let fits = policy.reads().last().is_none_or(|last| usize::from(*last) < bits);
    if policy.actions() == shape.actions || !fits || action_bits(policy.actions()) != code {
        return Some(policy.clone());
    }
    let mut builder = Builder::new(bits + policy.memory_bits());
    let seen = policy.reads().iter().map(|bit| Signal::input(usize::from(*bit)));
    let kept = (0..policy.memory_bits()).map(|bit| Signal::input(bits + bit));
    let outputs = builder.embed(policy.circuit(), &seen.chain(kept).collect::<Vec<_>>());
    let (action, next) = outputs.split_at(code);
    Policy::close(builder, bits, shape.actions, action, next).ok()
}

/// A bit of the policy's own encoding, out of the world's bits.
fn input(builder: &mut Builder, own: &Encoder, world: &Encoder, bit: usize) -> Option<Signal> {
    let column = own.column_of(bit)?;
    let there = world.columns().iter().find(|other| other.feature.name == column.feature.name)?;
    let place = bit - usize::from(column.low);
    match (&column.code, &there.code) {
        (own, world) if own == world => Some(builder.input(usize::from(there.low) + place)),
        (Code::Steps(thresholds), Code::Level(levels)) => {
            let level = nearest(levels, thresholds[place])? + 1;
            Some(reaches(builder, there, level as u64))
        }
        (Code::Steps(thresholds), Code::Steps(steps)) => {
            Some(builder.input(usize::from(there.low) + nearest(steps, thresholds[place])?))
        }
        (Code::Words(places), Code::Index) => {
            let (FeatureKind::Choice(words), FeatureKind::Choice(others)) =
                (&column.feature.kind, &there.feature.kind)
            else {
                return None;
            };
            let word = &words[usize::from(places[place])];
            let value = others.iter().position(|other| other == word)?;
            let equal: Vec<Signal> = (0..usize::from(there.width))
                .map(|bit| {
                    let signal = builder.input(usize::from(there.low) + bit);
                    if value >> bit & 1 == 1 { signal } else { builder.not(signal) }
                })
                .collect();
            Some(builder.and_all(&equal))
        }
        _ => None,
    }
}

fn nearest(thresholds: &[Decimal], wanted: Decimal) -> Option<usize> {
    let above = thresholds.partition_point(|threshold| *threshold < wanted);
    match (above.checked_sub(1), thresholds.get(above)) {
        (Some(below), Some(next)) => {
            Some(if Decimal::is_nearer(wanted, thresholds[below], *next) { below } else { above })
        }
        (Some(below), None) => Some(below),
        (None, Some(_)) => Some(above),
        (None, None) => None,
    }
}

/// Whether a binary field is at least a value.
fn reaches(builder: &mut Builder, column: &Column, value: u64) -> Signal {
    (0..usize::from(column.width)).fold(Signal::TRUE, |so_far, bit| {
        let signal = builder.input(usize::from(column.low) + bit);
        if value >> bit & 1 == 1 { builder.and(signal, so_far) } else { builder.or(signal, so_far) }
    })
}
