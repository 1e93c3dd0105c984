//! Worlds come back from their files, and a record answers what it was asked and nothing else.

use super::record::{Playback, Recorder};
use super::*;
use bem_base::environment::Environment;
use bem_base::prng::Prng;
use bem_games::catalog;
use bem_games::game::Game;
use std::sync::Arc;

fn game() -> Arc<dyn Game> {
    let family = catalog::family("parity_stream").unwrap();
    catalog::build(family, &catalog::settings(family, &BTreeMap::new()).unwrap(), 1).unwrap()
}

/// Plays with these draws; what was seen and earned.
fn play(world: &mut dyn Environment, draws: u64) -> Vec<String> {
    let mut prng = Prng::stream(draws, "record");
    let mut seen = Vec::new();
    for seed in 0..20 {
        world.reset(seed).unwrap();
        loop {
            let action = prng.below(u64::from(world.shape().actions)) as u16;
            let before = *world.observation();
            let outcome = world.step(action).unwrap();
            seen.push(format!("{before:?} {outcome:?}"));
            if outcome.done {
                break;
            }
        }
    }
    seen
}

fn recorded(draws: u64) -> (Record, Vec<String>) {
    let mut world = game().start();
    let mut recorder = Recorder::new(world.as_mut());
    let seen = play(&mut recorder, draws);
    (recorder.into_record(), seen)
}

fn open(file: &WorldFile) -> Playback {
    let WorldFile::Record(record) = file else { panic!("a record was written") };
    Playback::new(record)
}

#[test]
fn what_a_specialist_has_left_is_tried_first_and_files_of_before_hand_no_machine_on() {
    use crate::start::machine_of;
    use crate::worlds::Worlds;
    use bem_synth::policy::Policy;
    use distilled::Taught;
    let shape = game().shape().clone();
    let policy = Policy::constant(shape.actions, 1);
    let machine = machine_of(&policy, &shape);
    assert!(machine.is_some());
    let taught =
        Taught { domain: "aggregation".to_string(), instance: 1, policy, machine, episodes: Vec::new() };
    let unseen = [("parity_stream{n=5}".to_string(), 1)].into();
    let file = Distilled { masks: true, tasks: [("parity_stream".to_string(), taught)].into(), unseen };
    let bytes = WorldFile::Distilled(file.clone()).to_bytes();
    let WorldFile::Distilled(read) = WorldFile::from_bytes(&bytes).unwrap() else { panic!("another file") };
    assert_eq!(read, file);
    assert_eq!(read.start_of("parity_stream", 5).machines.len(), 1);
    assert!(read.start_of("parity", 5).machines.is_empty());
    assert_eq!(
        ["parity_stream", "parity_stream{n=5}", "parity"].map(|task| read.instance(task, 5)),
        [1, 1, 5]
    );
    (0..bytes.len()).for_each(|cut| assert!(WorldFile::from_bytes(&bytes[..cut]).is_err()));
    // A file of before has another kind, and no machine behind the circuit.
    let mut writer = Writer::new();
    writer.text(FORMAT);
    writer.u8(7);
    writer.bool(true);
    writer.length(1);
    writer.text("parity_stream");
    writer.text("aggregation");
    writer.u64(1);
    Policy::constant(shape.actions, 1).encode(&mut writer);
    writer.length(0);
    let WorldFile::Distilled(old) = WorldFile::from_bytes(writer.as_bytes()).unwrap() else {
        panic!("another file")
    };
    assert!(old.start_of("parity_stream", 5).is_empty());
}

#[test]
fn a_record_answers_as_the_world_did_and_nothing_else() {
    let (record, seen) = recorded(1);
    let bytes = WorldFile::Record(record).to_bytes();
    let file = WorldFile::from_bytes(&bytes).unwrap();
    assert_eq!(file.to_bytes(), bytes);
    assert_eq!(play(&mut open(&file), 1), seen);
    let mut world = open(&file);
    let error = world.reset(7).unwrap_err().to_string();
    assert_eq!(error, "an episode with seed 7 is not what byte 0 of the record holds");
    play(&mut world, 1);
    let error = world.reset(20).unwrap_err().to_string();
    assert!(error.starts_with("the record ends"), "{error}");
}

#[test]
fn a_failure_is_part_of_the_record() {
    let mut world = game().start();
    let mut recorder = Recorder::new(world.as_mut());
    recorder.reset(3).unwrap();
    let failure = recorder.step(99).unwrap_err().to_string();
    let file = WorldFile::Record(recorder.into_record());
    let mut again = open(&file);
    again.reset(3).unwrap();
    assert_eq!(again.step(99).unwrap_err().to_string(), failure);
}

#[test]
fn who_is_asked_to_stop_fails_at_the_next_call_and_so_does_the_record() {
    let mut world = game().start();
    let calls = std::cell::Cell::new(0);
    let is_asked = || 2 <= calls.replace(calls.get() + 1);
    let mut recorder = Recorder::until(world.as_mut(), &is_asked);
    recorder.reset(3).unwrap();
    let outcome = recorder.step(1).unwrap();
    let stopped = recorder.step(1).unwrap_err().to_string();
    assert_eq!(stopped, "stopped on request");
    let mut again = open(&WorldFile::Record(recorder.into_record()));
    again.reset(3).unwrap();
    assert_eq!(again.step(1).unwrap(), outcome);
    assert_eq!(again.step(1).unwrap_err().to_string(), stopped);
}

#[test]
fn files_come_back_and_damaged_ones_are_refused_or_are_the_one_spelling_of_another() {
    let text = r#"{"states":2,"actions":2,"horizon":3,"start":[[0,1]],"transitions":[[0,0,1,1,1000,false],[0,1,0,1,0,false],[1,0,0,1,0,true],[1,1,1,1,500,false]],"observe":"state"}"#;
    let game = GameFile {
        name: "two.json".to_string(),
        text: text.to_string(),
        player: Some("1".to_string()),
        opponent: Some(("other".to_string(), "uniform".to_string())),
    };
    let sources =
        BTreeMap::from([("a.basm".to_string(), "halt".to_string()), ("b".to_string(), String::new())]);
    let files = [WorldFile::Game(game), WorldFile::Programs(sources), WorldFile::Record(recorded(2).0)];
    let mut prng = Prng::stream(1, "world file");
    for file in files {
        let honest = file.to_bytes();
        assert_eq!(WorldFile::from_bytes(&honest), Ok(file));
        for _ in 0..5_000 {
            let mut bytes = honest.clone();
            let place = prng.below(bytes.len() as u64) as usize;
            match prng.below(3) {
                0 => bytes.truncate(place),
                1 => bytes[place] = prng.next_u64() as u8,
                _ => bytes[place] ^= 1 << prng.below(8),
            }
            let Ok(read) = WorldFile::from_bytes(&bytes) else { continue };
            assert_eq!(read.to_bytes(), bytes);
            if let WorldFile::Record(_) = &read {
                // Whatever it holds, it is played without a panic until it refuses.
                let mut world = open(&read);
                for seed in 0..3 {
                    if world.reset(seed).is_err() {
                        break;
                    }
                    while world.step(0).is_ok_and(|outcome| !outcome.done) {}
                }
            }
        }
    }
}
