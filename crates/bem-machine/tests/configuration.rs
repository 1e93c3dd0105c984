//! The configuration as a file: every parameter in it counts, and those of the machine change what it does.
//! Clauses: MEM-3, VM-1, VM-5.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use bem_base::digest::{Digest, hash};
use bem_base::encode::Writer;
use bem_base::prng::Prng;
use bem_circuit::anf::Anf;
use bem_machine::config::{GenesisConfig, Reference, Trial};
use bem_machine::machine::{Machine, MachineError};
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::memory::segment::{Caller, Segment, SegmentMap};
use bem_machine::route::directory::RouteInput;
use bem_machine::trace::Record;
use std::collections::BTreeMap;
use support::{Noise, random_expert};

const FAMILY: FamilyIndex = FamilyIndex(0);

fn config(text: &str) -> Result<GenesisConfig, String> {
    GenesisConfig::from_toml(text).map_err(|error| error.to_string())
}

#[test]
fn changing_any_parameter_in_the_file_changes_the_digest_or_is_refused() {
    let names: Vec<&str> = GenesisConfig::TRIALS.iter().map(|trial| trial.name).collect();
    assert_eq!(names, GenesisConfig::NAMES);
    for trial in GenesisConfig::TRIALS {
        let (before, after) = (config(&trial.file()).unwrap(), config(&trial.changed_file()));
        if trial.reference == Reference::Refused {
            assert!(after.as_ref().unwrap_err().contains("line "), "{}: {after:?}", trial.name);
            continue;
        }
        let after = after.unwrap_or_else(|error| panic!("{}: {error}", trial.name));
        assert_ne!(after.digest(), before.digest(), "{}", trial.name);
        assert_ne!(after.words(), before.words(), "{}", trial.name);
        assert_eq!(before.first_difference(&after).map(|(name, ..)| name), Some(trial.name));
    }
}

/// Where every segment of SHARED begins and how long it is.
fn map_head(config: &GenesisConfig) -> String {
    let map = SegmentMap::new(config);
    Segment::ALL.map(|segment| format!("{} {}", map.base(segment), map.size(segment))).join(", ")
}

/// What a machine with a full pool writes down in a world of noise, or why it cannot be built.
fn machine_head(config: &GenesisConfig) -> Result<Digest, MachineError> {
    let mut world = Noise::new(5, 6, 4, 12, 8);
    let mut machine = Machine::new(config.clone(), 1);
    machine.add_family(world.shape.clone())?;
    machine.add_family(world.shape.clone())?;
    let layout = machine.family(FAMILY)?.layout().clone();
    let mut prng = Prng::stream(1, "tests/configuration");
    for index in 0..15 {
        let mut parts = random_expert(&mut prng, config, &layout, index % 3 == 2, index == 4);
        if index == 0 {
            let anf = Anf::from_netlist(&parts.circuit).unwrap();
            parts = parts.with_anf(config, &anf).map_err(bem_machine::family::FamilyError::from)?;
        }
        machine.install(FAMILY, parts)?;
    }
    machine.split(FAMILY, 0, &[RouteInput::State(0)])?;
    let mut records: Vec<Record> = Vec::new();
    for episode in 0..400 {
        world.reset();
        machine.begin(FAMILY, TaskSerial(episode % 3))?;
        loop {
            let action = machine.act(&world.observation)?;
            let mut outcome = world.step(action);
            // Half-way the world turns bad, which a detector of changes may notice.
            outcome.reward = if 200 <= episode { world.shape.reward_min } else { outcome.reward };
            machine.learn(&outcome)?;
            machine.trace_mut().drain(|new| records.extend_from_slice(new));
            if outcome.done {
                break;
            }
        }
        if machine.is_barrier_due() {
            machine.barrier();
        }
    }
    let mut writer = Writer::new();
    records.iter().flat_map(|record| record.0).for_each(|word| writer.u64(word));
    let work = machine.shared().view(Caller::FastPath);
    (0..8).for_each(|word| writer.u64(work.read(Segment::Work, word).unwrap()));
    Ok(hash(writer.as_bytes()))
}

#[test]
fn every_parameter_of_the_machine_matters() {
    let (mut known, mut idle) = (BTreeMap::new(), Vec::new());
    for trial in GenesisConfig::TRIALS {
        let head = |file: &str| {
            let config = config(file).unwrap();
            match trial.reference {
                Reference::Map => map_head(&config),
                _ => machine_head(&config).map_or_else(|error| error.to_string(), |head| head.to_hex()),
            }
        };
        let Trial { name, given, .. } = *trial;
        match trial.reference {
            // Those of learners and teachers are tried in the room that has both.
            Reference::Refused | Reference::Teacher | Reference::Schedule => {}
            Reference::Search
            | Reference::Score
            | Reference::Condition
            | Reference::Clock
            | Reference::Change
            | Reference::Task { .. } => {}
            Reference::Map if head(given) == head(&trial.changed_file()) => idle.push(name),
            Reference::Map => {}
            Reference::Machine => {
                let before = known.entry(given).or_insert_with(|| head(given)).clone();
                if before == head(&trial.changed_file()) {
                    idle.push(name);
                }
            }
        }
    }
    assert_eq!(idle, Vec::<&str>::new(), "these change nothing");
}
