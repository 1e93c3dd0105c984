//! `--start-from`: what a learner begins with, from a run, a circuit, a policy of `bem learn`, or a log of steps.
//!
//! A circuit is put before the world's own bits ([`crate::translated`]) and stated as its table or gate by gate; a run over a
//! program brings what was played there as well. A log has the columns `action` and `reward` (milli-units), the features or `obs`, and `episode` where episodes have more
//! than one step. Clauses: LOG-5, GLE-9.

use crate::cli::ledger_directory;
use crate::cli::serve::is_service;
use crate::cli::snapshot::newest_climb;
use crate::files;
use crate::kept_world::kept_files;
use crate::learned::{self, Found};
use crate::translated::{Rounding, Translated, difference, translated};
use anyhow::{Context as _, Result, anyhow, bail};
use bem_base::environment::{Bits, Shape};
use bem_base::words::quantity;
use bem_data::{Decimal, Declared, Encoder, Table};
use bem_engine::start::{Baseline, EPISODES_MAX, Start, machine_of};
use bem_engine::world_file::WorldFile;
use bem_runtime::history::renewed;
use bem_runtime::input::WorldSpec;
use bem_synth::experience::{EXPERIENCE_STEPS_MAX, Episode, Experience, Step};
use bem_synth::hypothesis::Stated;
use bem_synth::library::Machine;
use bem_synth::policy::Policy;
use bem_synth::propose::{Settings, propose};
use std::collections::BTreeSet;
use std::path::Path;

/// Explanations of a log that are tried.
const EXPLAINED_MAX: usize = 3;

/// What a learner in a world begins with, and a line that says so.
pub fn open(
    path: &Path,
    shape: &Shape,
    encoder: Option<&Encoder>,
    rounding: Rounding,
) -> Result<(Start, String)> {
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
    if let Some(start) = served(path, shape, encoder).with_context(named)? {
        return told(start, shape).with_context(named);
    }
    let learned = match learned::open(path, None)? {
        Found::One(learned) => learned,
        Found::Several { .. } => bail!("{}: the run has several policies; name a circuit", named()),
    };
    let episodes = if path.is_dir() { played(path, shape, encoder)? } else { Vec::new() };
    let (machines, rounded) = match translated(&learned, shape, encoder, rounding) {
        Ok(Translated { policy, rounded }) => (Vec::from_iter(machine_of(&policy, shape)), rounded),
        // A circuit that does not fit is found again in what it was learned from.
        Err(_) if !episodes.is_empty() => (explained(shape, &episodes), BTreeSet::new()),
        Err(reason) => bail!("{}: the circuit cannot be tried here: {reason}", named()),
    };
    let (start, words) = told(Start { machines, episodes, baseline: None }, shape).with_context(named)?;
    let rounded: Vec<String> = rounded.iter().map(|name| format!("{name:?}")).collect();
    Ok(match rounded.is_empty() {
        true => (start, words),
        false => {
            (start, format!("{words}; thresholds of {} are the nearest of this world", rounded.join(", ")))
        }
    })
}

/// What the one world of this shape in a server's folder was played and learned, whatever learner wrote it; nothing where the folder is no
/// server's.
fn served(path: &Path, shape: &Shape, encoder: Option<&Encoder>) -> Result<Option<Start>> {
    if !path.is_dir() {
        return Ok(None);
    }
    let mut store = ledger_directory::open(path)?;
    if !is_service(&mut store) {
        return Ok(None);
    }
    let fitting = renewed::told(&mut store)?.into_iter().filter(|(spec, _)| spec.shape == *shape);
    let mut fitting: Vec<(WorldSpec, Start)> = fitting.collect();
    match (fitting.len(), fitting.pop()) {
        (1, Some((spec, start))) => {
            // The same bits may mean something else.
            let own = Declared::encoder_of(&spec.note).ok();
            match own.zip(encoder).and_then(|(own, world)| difference(&own, world)) {
                None => Ok(Some(start)),
                Some(reason) => bail!("world {} of that server does not fit: {reason}", spec.name),
            }
        }
        (count, _) => bail!("{count} worlds of that server look like this one; one is needed"),
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
        Found::Several { .. } => bail!("--baseline {text}: the run has several policies; name a circuit"),
    };
    let misfit = |reason: String| anyhow!("--baseline {text}: it does not fit this world: {reason}");
    let policy = translated(&learned, shape, encoder, Rounding::Nearest).map_err(misfit)?.policy;
    Ok(Baseline { policy, risk })
}

/// What explains the episodes of others best: tried first, like a circuit that was named.
fn explained(shape: &Shape, episodes: &[Episode]) -> Vec<Machine> {
    let mut experience = Experience::new(EXPERIENCE_STEPS_MAX);
    for (serial, episode) in episodes.iter().enumerate() {
        experience.push(Episode { serial: serial as u64, ..episode.clone() });
    }
    let stated = propose(shape, &experience, &[], None, &Settings::default())
        .hypotheses
        .into_iter()
        .filter_map(|found| {
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
        (0, episodes) => format!("{} as experience", quantity(episodes, "episode")),
        (machines, 0) => format!("{}, tried first", quantity(machines, "circuit")),
        (machines, episodes) => {
            let (machines, episodes) = (quantity(machines, "circuit"), quantity(episodes, "episode"));
            format!("{machines}, tried first, and {episodes} as experience")
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
