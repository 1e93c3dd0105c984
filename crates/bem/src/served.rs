//! The folder of a server as other commands see it: the policies of its worlds, and the logs of their decisions.
//!
//! The state is that of the newest snapshot with what came after it; nothing is written, and the server may run meanwhile. Where this
//! program cannot read the learner of the history, the circuits follow from its patches. Clauses: GLE-9, LOG-4; decisions D-231, D-255,
//! D-256.

use crate::cli::ledger_directory;
use crate::cli::serve::is_service;
use crate::file_store::FileStore;
use crate::learned::{Found, Learned, Listed, NO_STATE};
use anyhow::{Context as _, Result, bail};
use bem_base::words::quantity;
use bem_data::Declared;
use bem_ledger::recover::read_checkpoint;
use bem_runtime::history::{self, played, renewed};
use bem_runtime::input::{WorldIndex, WorldSpec};
use bem_runtime::world::World;
use bem_serve::taken::{LogLines, TakenPolicy, circuit_line, memory_warnings};
use bem_synth::policy::Policy;
use std::path::Path;

/// Whether a folder is a server's.
pub fn is_served(directory: &Path) -> bool {
    directory.is_dir() && ledger_directory::open(directory).is_ok_and(|mut store| is_service(&mut store))
}

/// The place of the world that is wanted among these; nothing where nobody said which of several.
fn place(names: &[&str], wanted: Option<&str>) -> Result<Option<usize>> {
    match wanted {
        _ if names.is_empty() => bail!("the server has no world yet"),
        Some(wanted) => names.iter().position(|name| *name == wanted).map(Some).with_context(|| {
            format!("there is no world {wanted:?} in this server; there are {}", names.join(", "))
        }),
        None if names.len() == 1 => Ok(Some(0)),
        None => Ok(None),
    }
}

fn several(all: Vec<Listed>) -> Found {
    Found::Several { what: "the server has several worlds", all }
}

/// The policy in force of a world of a server's folder.
pub fn open(directory: &Path, wanted: Option<&str>) -> Result<Found> {
    let mut store = ledger_directory::open(directory)?;
    let Ok(service) = history::served(&mut store) else { return by_patches(&mut store, wanted) };
    let worlds: Vec<&World> = service.worlds().map(|(_, world)| world).collect();
    let names: Vec<&str> = worlds.iter().map(|world| world.spec().name.as_str()).collect();
    let Some(place) = place(&names, wanted)? else {
        let listed = |world: &&World| {
            let decisions = quantity(world.statistics().decisions, "decision");
            let gates = world.acting().in_force().agent.policy().gates();
            listed(world.spec(), gates, &decisions)
        };
        return Ok(several(worlds.iter().map(listed).collect()));
    };
    let head = read_checkpoint(&mut store)?.checkpoint.head.digest();
    let (spec, force) = (worlds[place].spec(), worlds[place].acting().in_force());
    let taken = TakenPolicy {
        spec,
        statistics: worlds[place].statistics(),
        agent: &force.agent,
        words: &force.words,
        head: Some((service.last(), head)),
    };
    let policy = force.agent.policy().clone();
    let (provenance, warnings) = (taken.provenance(), taken.warnings());
    Ok(Found::One(Box::new(learned(spec, policy, provenance, warnings))))
}

fn listed(spec: &WorldSpec, gates: usize, more: &str) -> Listed {
    let task = format!("{} bits, {} actions, {more}", spec.shape.observation_bits, spec.shape.actions);
    Listed { name: spec.name.clone(), gates, task }
}

fn learned(spec: &WorldSpec, policy: Policy, provenance: Vec<String>, warnings: Vec<String>) -> Learned {
    Learned {
        name: spec.name.clone(),
        policy,
        observation_bits: usize::from(spec.shape.observation_bits),
        fields: spec.shape.fields.clone(),
        horizon: Some(spec.shape.horizon),
        names: Declared::encoder_of(&spec.note).ok(),
        actions: Vec::new(),
        provenance,
        warnings,
    }
}

/// The same by the patches of the history, which any learner has written alike.
fn by_patches(store: &mut FileStore, wanted: Option<&str>) -> Result<Found> {
    let found = renewed::policies(store)?;
    let names: Vec<&str> = found.iter().map(|(spec, _)| spec.name.as_str()).collect();
    let Some(place) = place(&names, wanted)? else {
        let listed = |(spec, policy): &(WorldSpec, Option<Policy>)| {
            listed(spec, policy.as_ref().map_or(0, Policy::gates), "by its patches")
        };
        return Ok(several(found.iter().map(listed).collect()));
    };
    let (spec, policy) = &found[place];
    let Some(policy) = policy else {
        bail!("world {}: no patch has brought about a circuit", spec.name);
    };
    let provenance = vec![
        format!("BEM policy {}", spec.name),
        format!("history: {}, by its patches", read_checkpoint(store)?.checkpoint.head.digest()),
        circuit_line(policy, usize::from(spec.shape.observation_bits)),
    ];
    let mut warnings = vec![NO_STATE.to_string()];
    warnings.extend(memory_warnings(policy, spec.shape.horizon));
    Ok(Found::One(Box::new(learned(spec, policy.clone(), provenance, warnings))))
}

/// A log that was written.
pub struct WrittenLog {
    /// The world.
    pub world: String,
    /// Its lines.
    pub lines: u64,
    /// Whether lines name their episode.
    pub has_episodes: bool,
}

/// Writes the log of a world line by line.
pub fn write_log(
    directory: &Path,
    wanted: Option<&str>,
    write: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<WrittenLog> {
    let mut store = ledger_directory::open(directory)?;
    let specs = played::declared(&mut store)?;
    let names: Vec<&str> = specs.values().map(|spec| spec.name.as_str()).collect();
    let Some(place) = place(&names, wanted)? else {
        bail!("the server has several worlds: name one with --expert, {}", names.join(", "));
    };
    let Some((world, spec)) = specs.iter().nth(place) else { bail!("the server has no world yet") };
    let lines = LogLines::new(spec)?;
    let (mut count, mut text, mut failed) = (0, String::new(), None);
    played::played(&mut store, (WorldIndex(*world), spec), 0, &mut |episode| {
        text.clear();
        lines.write(&episode, &mut text);
        count += episode.steps.len() as u64;
        failed = write(text.as_bytes()).err();
        failed.is_none()
    })?;
    match failed {
        Some(error) => Err(error).context("the log cannot be written"),
        None => {
            let (world, has_episodes) = (spec.name.clone(), 1 < spec.shape.horizon);
            Ok(WrittenLog { world, lines: count, has_episodes })
        }
    }
}
