//! A learned policy that a user names: of a run, of a snapshot, or a circuit in a file; with its world and provenance.
//!
//! Clauses: LOG-4, GLE-9.

use crate::cli::ledger_directory;
use crate::cli::run::evaluations::{self, Kept};
use crate::cli::snapshot::{files_in, newest_climb};
use crate::files;
use crate::kept_world::{encoder_of, kept_files, worlds_from};
use crate::measured::Measured;
use crate::{patched, policy_file, served};
use anyhow::{Context as _, Result, anyhow, bail};
use bem_base::environment::{Field, Shape};
use bem_base::plain::plain;
use bem_circuit::formats;
use bem_data::Encoder;
use bem_engine::climb::{Climb, Climbed, Track};
use bem_engine::journal::climb_of;
use bem_engine::worlds::World;
use bem_explain::Explainable;
use bem_games::game::Value;
use bem_ledger::entry::Entry;
use bem_ledger::reader::EntryReader;
use bem_ledger::snapshot::{Snapshot, snapshot_name};
pub use bem_serve::taken::ADAPTING;
use bem_serve::taken::{circuit_line, memory_warnings};
use bem_synth::policy::Policy;
use bem_tables::figures::to_float;
use std::path::Path;

/// What was found under a name.
pub enum Found {
    /// The policy that was asked for.
    One(Box<Learned>),
    /// The policies that there are; nobody said which.
    Several {
        /// That there are several of what, in words.
        what: &'static str,
        /// The policies.
        all: Vec<Listed>,
    },
}

impl Found {
    /// Policies of a run, of which nobody said which.
    pub fn several_of_a_run(all: Vec<Listed>) -> Found {
        Found::Several { what: "the run has several policies", all }
    }

    /// The one policy; where there are several, an error names them.
    pub fn one(self) -> Result<Box<Learned>> {
        match self {
            Found::One(learned) => Ok(learned),
            Found::Several { what, all } => {
                let names: Vec<String> = all.into_iter().map(|one| one.name).collect();
                bail!("{what}: name one with --expert, {}", names.join(", "))
            }
        }
    }
}

/// What is said of a circuit that follows from patches alone.
pub const NO_STATE: &str = "the run's own state is of another version of bem, which this one cannot read";

/// A line of the list of policies.
pub struct Listed {
    /// Family and rung.
    pub name: String,
    /// Its size.
    pub gates: usize,
    /// What it was learned for.
    pub task: String,
}

/// A policy, and what is known of it.
pub struct Learned {
    /// Family and rung, or the name of a circuit.
    pub name: String,
    /// What it does.
    pub policy: Policy,
    /// Bits that its world shows.
    pub observation_bits: usize,
    /// How its world groups them.
    pub fields: Vec<Field>,
    /// No episode of its world takes more steps; unknown for a circuit alone.
    pub horizon: Option<u32>,
    /// How named features become bits, where they are named.
    pub names: Option<Encoder>,
    /// What the actions are called; empty where they have numbers only.
    pub actions: Vec<String>,
    /// Where it comes from and what was measured.
    pub provenance: Vec<String>,
    /// What to look out for.
    pub warnings: Vec<String>,
}

impl Learned {
    /// What is explained of it.
    pub fn subject(&self) -> Explainable<'_> {
        Explainable {
            policy: &self.policy,
            observation_bits: self.observation_bits,
            fields: &self.fields,
            names: self.names.as_ref(),
            actions: &self.actions,
            horizon: self.horizon,
        }
    }

    /// Provenance and warnings, as the first lines of a file.
    pub fn lines(&self) -> Vec<String> {
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        self.provenance.iter().cloned().chain(warnings).collect()
    }
}

/// Opens the folder of a run or of a server, a snapshot or a circuit.
pub fn open(source: &Path, expert: Option<&str>) -> Result<Found> {
    if !source.is_file() {
        // What is no run at all is said once, before anything is tried with it.
        ledger_directory::locate(source)?;
        if served::is_served(source) {
            return served::open(source, expert).with_context(|| source.display().to_string());
        }
        let (climb, snapshot) = match newest_climb(source) {
            Ok(found) => found,
            // A state of another version of bem: the circuit follows from the patches of the history.
            Err(error) => return patched::open(source, expert).context(error),
        };
        check_newest(source, &snapshot)?;
        let files = || kept_files(source, climb.files());
        let kept = |climbed: &Climbed| evaluations::read(source, climbed);
        return choose(&climb, expert, &files, &kept).with_context(|| source.display().to_string());
    }
    let bytes = files::read_bytes(source)?;
    let name = || source.display().to_string();
    let refuse_expert = |what: &str| match expert {
        None => Ok(()),
        Some(expert) => bail!(
            "--expert {expert} has no effect on {}: it is {what}, which holds one policy; a run or a snapshot is needed",
            source.display()
        ),
    };
    if let Ok((snapshot, _)) = Snapshot::from_bytes(&bytes) {
        let climb = climb_of(&snapshot).with_context(name)?;
        return choose(&climb, expert, &|| files_in(&snapshot, &climb), &|_| None).with_context(name);
    }
    if let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| policy_file::is_one(text)) {
        refuse_expert("a policy of bem learn")?;
        return policy_file::read(text).map(|learned| Found::One(Box::new(learned))).with_context(name);
    }
    let model = formats::read(&bytes)
        .with_context(|| format!("{} is neither a run, nor a snapshot, nor a circuit", source.display()))?;
    refuse_expert("a circuit")?;
    circuit(&model).map(|learned| Found::One(Box::new(learned))).with_context(name)
}

/// A run whose newest snapshot is gone has older ones, but not what it learned last.
fn check_newest(directory: &Path, found: &Snapshot) -> Result<()> {
    let mut store = ledger_directory::open(directory)?;
    let mut reader = EntryReader::open(&mut store)?;
    let mut newest = None;
    while let Some(bytes) = reader.next(&mut store)? {
        if let Ok(Entry::Snapshot { .. }) = Entry::from_bytes(bytes) {
            newest = Some(reader.position() - 1);
        }
    }
    match newest {
        Some(entries) if entries != found.entries => bail!(
            "{}: the newest snapshot ({}) is missing or damaged, and the circuits are in it",
            directory.display(),
            snapshot_name(entries)
        ),
        _ => Ok(()),
    }
}

fn choose(
    climb: &Climb,
    expert: Option<&str>,
    files: &dyn Fn() -> Result<Vec<Vec<u8>>>,
    kept: &dyn Fn(&Climbed) -> Option<Kept>,
) -> Result<Found> {
    let experts = experts(climb);
    let name_of = |(track, climbed): &(&Track, &Climbed)| format!("{}/{}", track.family, climbed.stage);
    let names: Vec<String> = experts.iter().map(name_of).collect();
    if experts.is_empty() {
        bail!("there is no learned circuit in it: nothing was learned to its end yet");
    }
    let place = match expert {
        Some(wanted) => {
            let named = |place: &usize| experts[*place].0.family == wanted || names[*place] == wanted;
            (0..experts.len()).rev().find(named).with_context(|| {
                format!("there is no expert {wanted:?} in this run; there are {}", names.join(", "))
            })?
        }
        // A run over one task has one expert, which needs no name.
        None if climb.config().stages == 1 => 0,
        None => {
            let listed = |((_, climbed), name): (&(&Track, &Climbed), &String)| Listed {
                name: name.clone(),
                gates: climbed.policy.gates(),
                task: climbed.task.clone(),
            };
            return Ok(Found::several_of_a_run(experts.iter().zip(&names).map(listed).collect()));
        }
    };
    let climbed = experts[place].1;
    let name = expert.map_or_else(|| names[place].clone(), str::to_string);
    let files = files()?;
    let names = encoder_of(&files);
    let world = worlds_from(files)?.open(&climbed.task, climb.config().seed)?;
    let (measured, before) = kept(climbed).map_or((None, None), |kept| (kept.measured, kept.before.told()));
    let mut learned = learned(climb, climbed, name, &world, measured);
    learned.provenance.extend(before);
    Ok(Found::One(Box::new(Learned { names, ..learned })))
}

/// What can be taken out: every solved rung, and of a family without any what it came to last.
pub fn experts(climb: &Climb) -> Vec<(&Track, &Climbed)> {
    let of = |track: &Track| -> Vec<usize> {
        let solved: Vec<usize> =
            (0..track.climbed.len()).filter(|place| track.climbed[*place].solved).collect();
        if solved.is_empty() { (0..track.climbed.len()).rev().take(1).collect() } else { solved }
    };
    let tracks = climb.tracks().iter();
    tracks.flat_map(|track| of(track).into_iter().map(move |place| (track, &track.climbed[place]))).collect()
}

/// The shape of a world.
pub fn shape_of(world: &World) -> &Shape {
    match world {
        World::Game(game) => game.shape(),
        World::Outside(world) | World::Stated(world, _) => world.shape(),
    }
}

/// The shape of a world, and optimum and random play where they are known.
fn known(world: &World) -> (&Shape, Option<(Value, Value)>) {
    let values = match world {
        World::Game(game) => Some((game.optimum(), game.random())),
        World::Outside(_) => None,
        World::Stated(_, yardstick) => {
            Some((Value::exact(yardstick.optimum), Value::exact(yardstick.random)))
        }
    };
    (shape_of(world), values)
}

fn learned(
    climb: &Climb,
    climbed: &Climbed,
    name: String,
    world: &World,
    measured: Option<Measured>,
) -> Learned {
    let (shape, values) = known(world);
    let policy = climbed.policy.clone();
    let bits = usize::from(shape.observation_bits);
    let units = |value: Value| to_float(value.mean) / 1_000.0;
    let score = to_float(climbed.score);
    let figure = measured.map(|measured| (measured.policy.text(), measured.policy.episodes));
    let mut figures = Vec::new();
    match (values, figure) {
        (Some((optimum, random)), figure) => {
            let (optimum, random) = (units(optimum), units(random));
            let (mean, how) = match figure {
                Some((mean, episodes)) => (mean, format!(" (95 % interval, {episodes} episodes)")),
                None => (format!("{:.3}", random + score * (optimum - random)), String::new()),
            };
            figures.push(format!(
                "measured: mean return {mean}{how}, random play {random:.3}, optimum {optimum:.3}, score {score:.3}"
            ));
        }
        (None, Some((mean, episodes))) => figures.push(format!(
            "measured: mean return {mean} (95 % interval, {episodes} episodes); the optimum of the world is not known"
        )),
        (None, None) => figures.push("measured: nothing that is kept here".to_string()),
    };
    if let Some(compared) = measured.and_then(|measured| measured.baselines) {
        let words = compared.rows().map(|(name, figure)| format!("{name} {}", figure.text()));
        figures.push(format!("baselines: {}", words.join(", ")));
    }
    let mut provenance = vec![
        format!("BEM policy {name}"),
        format!("task: {}", climbed.task),
        format!("run: seed {}, history {}", climb.config().seed, climb.head()),
        circuit_line(&policy, bits),
    ];
    provenance.extend(figures);
    provenance.push(format!("learned in {} steps: {}", climbed.steps, plain(&climbed.words)));
    let warnings = warnings(climbed, shape.horizon, values.is_some());
    let (fields, horizon) = (shape.fields.clone(), Some(shape.horizon));
    let (names, actions) = (None, Vec::new());
    Learned { name, policy, observation_bits: bits, fields, horizon, names, actions, provenance, warnings }
}

/// What to look out for when a policy is used. Whether it is solved is only known where its optimum is.
pub fn warnings(climbed: &Climbed, horizon: u32, is_known: bool) -> Vec<String> {
    let (policy, score) = (&climbed.policy, to_float(climbed.score));
    let mut warnings = Vec::new();
    if is_known && !climbed.solved {
        warnings.push(format!("not solved: score {score:.3} where 0.99 counts as solved"));
    }
    if climbed.adapts {
        warnings.push(ADAPTING.to_string());
    }
    warnings.extend(memory_warnings(policy, horizon));
    warnings
}

/// A run's policy with what the run knows of it.
pub struct Picked {
    /// The run.
    pub climb: Climb,
    /// The try that it is of.
    pub climbed: Climbed,
    /// The family's place.
    pub place: usize,
    /// The shape of its world.
    pub shape: Shape,
    /// Whether the optimum of its world is known.
    pub is_known: bool,
}

/// Picks a policy of a run's folder; of several one must be named.
pub fn pick(directory: &Path, expert: Option<&str>) -> Result<Picked> {
    let (climb, snapshot) = newest_climb(directory)?;
    check_newest(directory, &snapshot)?;
    let (place, climbed) = {
        let experts = experts(&climb);
        let names: Vec<String> =
            experts.iter().map(|(track, climbed)| format!("{}/{}", track.family, climbed.stage)).collect();
        let found = match expert {
            Some(wanted) => (0..experts.len())
                .rev()
                .find(|place| experts[*place].0.family == wanted || names[*place] == wanted)
                .with_context(|| {
                    format!("there is no expert {wanted:?} in this run; there are {}", names.join(", "))
                })?,
            None if experts.len() == 1 => 0,
            None if experts.is_empty() => {
                bail!("there is no learned circuit in it: nothing was learned to its end yet")
            }
            None => bail!("the run has several policies: name one with --expert, {}", names.join(", ")),
        };
        let (track, climbed) = experts[found];
        let place = climb.tracks().iter().position(|other| other.family == track.family).unwrap_or(0);
        (place, climbed.clone())
    };
    let files = kept_files(directory, climb.files())?;
    let world = worlds_from(files)?.open(&climbed.task, climb.config().seed)?;
    let (shape, values) = known(&world);
    let (shape, is_known) = (shape.clone(), values.is_some());
    Ok(Picked { climb, climbed, place, shape, is_known })
}

/// A circuit alone: inputs called `observation_N` are that bit, any others are the bits in order.
pub fn circuit(model: &formats::Model) -> Result<Learned> {
    let names = &model.input_names()[..model.free_inputs()];
    let number = |name: &String| name.strip_prefix("observation_")?.parse::<u16>().ok();
    let reads: Option<Vec<u16>> = names.iter().map(number).collect();
    let reads = reads.unwrap_or_else(|| (0..names.len() as u16).collect());
    let bits = reads.iter().max().map_or(0, |last| usize::from(*last) + 1);
    let actions = u16::try_from(1u64 << model.free_outputs().min(16)).unwrap_or(u16::MAX);
    let policy = Policy::new(model.circuit().clone(), reads, model.memory(), actions).ok_or_else(|| {
        anyhow!(
            "it is no policy: {} inputs in rising order and at most 15 outputs that are an action's bits are needed",
            names.len()
        )
    })?;
    let provenance = vec![format!("BEM policy {}", model.name()), circuit_line(&policy, bits)];
    let mut warnings =
        vec!["a circuit alone: its world, its return and its episodes are not known".to_string()];
    if 0 < policy.memory_bits() {
        warnings.push("it has memory; call bem_reset at the start of each episode".to_string());
    }
    let fields = (0..bits as u16).map(|low| Field { low, width: 1 }).collect();
    let name = model.name().to_string();
    let (names, actions, horizon) = (None, Vec::new(), None);
    Ok(Learned {
        name,
        policy,
        observation_bits: bits,
        fields,
        horizon,
        names,
        actions,
        provenance,
        warnings,
    })
}
